"""Proofs of equivocation: made where a notary holds all that a third party needs, and never otherwise.

Both notes were verified under the log key that is known of the origin. The keyring must come with the head that is the newer one,
since its items are proved under that. What is made here is judged by the verifier first; what that does not accept accuses nobody.

Source: docs/spec/trust.md, "Equivocation".
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.bundle import Item
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.equivocation import Equivocation, print_equivocation
from ledger.errors import LedgerError
from ledger.receipt import Header, parse_receipt
from notary.rules import Known, Shown
from verify.equivocation import verify_equivocation
from verify.trust import OriginPin, Trust, parse_trust, pin

__all__ = ["shown_by"]


def shown_by(known: Known, shown: Shown, *, proof: Sequence[bytes], keyring: Sequence[Item]) -> bytes | None:
    """Return an equivocation file that a refused head and the remembered one make, None where they make none.

    The log key in force signed both heads.
    """
    if not keyring or not known.note or shown.head.size < known.size:
        return None
    path = () if shown.head.size == known.size else tuple(proof)
    try:
        document = print_equivocation(Equivocation(known.note, shown.data, path, tuple(keyring)))
        trust = _admitted(keyring[0], known)
    except LedgerError:
        return None
    if trust is None:
        return None
    verdict = verify_equivocation(document, trust=trust, subject=known.origin)
    return document if verdict.exit == 1 and any(each.code == "head.forked" for each in verdict.findings) else None


def _admitted(item: Item, known: Known) -> Trust | None:
    """Return the trust that pins the origin with this header, where the header names the known log key or leads to it."""
    header = parse_receipt(parse_envelope(item.envelope).payload)
    if not isinstance(header, Header) or header.ledger != known.origin:
        return None
    pinned = pin(
        b"",
        origin=OriginPin(name=known.origin, log_key=header.log_key, header=parse_entry(item.entry).receipt),
    )
    return parse_trust(pinned, source="the origin as admitted")
