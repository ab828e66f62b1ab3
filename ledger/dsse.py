"""DSSE envelopes: a sealed receipt in the form that other tools verify.

    {"payload":"<base64>","payloadType":"application/vnd.receipt-ledger.receipt+json",
     "signatures":[{"keyid":"ed25519:...","sig":"<base64>"}]}           (one line, no white space)

Type, payload and signature are those of the receipt's own envelope, so any DSSE library verifies it with the issuer's key.
`print_dsse(parse_dsse(b)) == b`: another spelling of the same envelope is refused, since nothing signs the spelling.

Source: docs/spec/bundles.md, DSSE 1.0.2.
"""

from __future__ import annotations

import re
from typing import Final

from ledger.envelope import ENVELOPE_MAX_BYTES, Envelope, Seal
from ledger.errors import FormatError, clip
from ledger.keys import parse_base64, print_base64

__all__ = ["DSSE_MAX_BYTES", "parse_dsse", "print_dsse"]

DSSE_MAX_BYTES: Final = 2 * ENVELOPE_MAX_BYTES

_DSSE = re.compile(
    rb'\{"payload":"(?P<payload>[A-Za-z0-9+/]+={0,2})","payloadType":"(?P<type>[a-z0-9!#$&^_.+/-]{3,255})",'
    rb'"signatures":\[\{"keyid":"(?P<key>[a-z][a-z0-9-]{0,31}:[0-9a-f]{64})","sig":"(?P<signature>[A-Za-z0-9+/]+={0,2})"\}\]\}'
)


def parse_dsse(data: bytes) -> Envelope:
    """Return the envelope whose DSSE form is `data`; no signature is verified, and the payload is not parsed.

    Raises:
        FormatError: `dsse.malformed`, or `base64.malformed`.
    """
    match = _DSSE.fullmatch(data) if len(data) <= DSSE_MAX_BYTES else None
    if match is None:
        raise FormatError(
            f"dsse: got {clip(data)}, expected payload, payloadType and one signature in their one spelling",
            code="dsse.malformed",
        )
    payload, type_, key, signature = (found.decode("ascii") for found in match.groups())
    return Envelope(parse_base64(payload), type_, Seal(key, parse_base64(signature)))


def print_dsse(envelope: Envelope) -> bytes:
    """Return the DSSE form of a sealed envelope; the inverse of `parse_dsse`.

    Raises:
        FormatError: `dsse.unsealed` where there is no seal, `dsse.malformed` for what the form cannot hold.
    """
    if envelope.seal is None:
        raise FormatError("dsse: got a receipt without a seal of its own, expected a sealed one", code="dsse.unsealed")
    data = (
        f'{{"payload":"{print_base64(envelope.payload)}","payloadType":"{envelope.payload_type}",'
        f'"signatures":[{{"keyid":"{envelope.seal.key}","sig":"{print_base64(envelope.seal.signature)}"}}]}}'
    ).encode("ascii")
    if parse_dsse(data) != envelope:
        raise FormatError(f"dsse: got {clip(envelope)}, which the form cannot hold", code="dsse.malformed")
    return data
