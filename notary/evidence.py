"""Evidence that is sent in full: judged as any verifier would, under what the notary admitted.

The origin is pinned with the log key and the header that its own keyring begins with, and the issuer that this header names: the
notary vouches for no person, only that the run is whole and by that issuer.

Source: docs/spec/notary.md, `mode`.
"""

from __future__ import annotations

from ledger.bundle import Bundle
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError
from ledger.receipt import Header, parse_receipt
from verify.bundle import verify_bundle
from verify.report import Verdict
from verify.trust import IssuerPin, OriginPin, Trust, parse_trust, pin

__all__ = ["judge"]


def judge(bundle: Bundle) -> Verdict:
    """Return the verdict on a bundle; reads no clock and no file."""
    return verify_bundle(bundle, trust=_admitted(bundle))


def _admitted(bundle: Bundle) -> Trust | None:
    """Return the trust that pins the origin as its header has it, None where it has none that can be pinned."""
    try:
        item = bundle.keyring[0]
        header = parse_receipt(parse_envelope(item.envelope).payload)
        if not isinstance(header, Header):
            return None
        pinned = pin(
            b"",
            origin=OriginPin(name=header.ledger, log_key=header.log_key, header=parse_entry(item.entry).receipt),
            issuer=IssuerPin(name=header.issuer.name, key=header.issuer.key),
        )
        return parse_trust(pinned, source="the origin as admitted")
    except (LedgerError, IndexError):
        return None
