"""Envelopes: a receipt's bytes, their type and at most one seal.

    {"payload":{...},"payload_type":"application/vnd.receipt-ledger.receipt+json","seals":[]}
    {"payload":{...},"payload_type":"...","seals":[{"key":"ed25519:...","signature":"..."}]}

The members are sorted, so the payload's canonical bytes stand in the envelope as they are and the rest has one fixed layout.
A seal is an Ed25519 signature over the DSSE pre-authentication encoding of type and payload bytes.

Source: docs/spec/envelopes.md, DSSE 1.0.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ledger.canonical import RECEIPT_MAX_BYTES
from ledger.digest import digest
from ledger.errors import FormatError, SignatureError, clip
from ledger.keys import PrivateKey, parse_base64, print_base64, verify_signature

__all__ = [
    "ENVELOPE_MAX_BYTES",
    "RECEIPT_TYPE",
    "Envelope",
    "Seal",
    "pae",
    "parse_envelope",
    "print_envelope",
    "seal",
    "verify_seal",
]

RECEIPT_TYPE: Final = "application/vnd.receipt-ledger.receipt+json"
ENVELOPE_MAX_BYTES: Final = RECEIPT_MAX_BYTES + 16 * 1024

_HEAD: Final = b'{"payload":'
_TYPE: Final = b',"payload_type":"'
_TAIL = re.compile(
    rb',"payload_type":"(?P<type>[a-z0-9!#$&^_.+/-]{3,255})",'
    rb'"seals":\[(?:\{"key":"(?P<key>[a-z][a-z0-9-]{0,31}:[0-9a-f]{64})","signature":"(?P<signature>[A-Za-z0-9+/]+={0,2})"\})?\]\}'
)


@dataclass(frozen=True, slots=True)
class Seal:
    """The issuer's signature: key id and signature bytes."""

    key: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """Payload bytes, payload type and the seal, if there is one."""

    payload: bytes
    payload_type: str = RECEIPT_TYPE
    seal: Seal | None = None

    @property
    def receipt_id(self) -> str:
        """The receipt id: digest of the payload."""
        return digest(self.payload)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the DSSE pre-authentication encoding; lengths are ASCII decimal byte counts."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload: bytes, key: PrivateKey, *, payload_type: str = RECEIPT_TYPE) -> Envelope:
    """Return an envelope sealed by `key`, which must be the issuer's key inside the payload."""
    return Envelope(payload, payload_type, Seal(key.key, key.sign(pae(payload_type, payload))))


def verify_seal(envelope: Envelope) -> None:
    """Return if the envelope's seal covers its payload.

    Raises:
        SignatureError: no seal, or one that does not verify.
        UnknownFormatError: the key is of an algorithm that this version does not know.
    """
    if envelope.seal is None:
        raise SignatureError("envelope: no seal", code="seal.absent")
    verify_signature(envelope.seal.key, envelope.seal.signature, pae(envelope.payload_type, envelope.payload))


def parse_envelope(data: bytes) -> Envelope:
    """Return the envelope whose bytes are `data`; the payload itself is not parsed.

    Raises:
        FormatError: another layout, a signature whose base64 does not encode back to itself, or too large.
    """
    if len(data) > ENVELOPE_MAX_BYTES:
        raise FormatError(
            f"envelope: got {len(data)} bytes, expected at most {ENVELOPE_MAX_BYTES}", code="envelope.too_large"
        )
    end = data.rfind(_TYPE)
    match = _TAIL.fullmatch(data, end) if end > 0 and data.startswith(_HEAD) else None
    if match is None:
        raise FormatError(
            f"envelope: got {clip(data)}, expected payload, payload_type and seals", code="envelope.malformed"
        )
    found = None
    if match["key"] is not None:
        signature = parse_base64(match["signature"].decode("ascii"))
        found = Seal(match["key"].decode("ascii"), signature)
    return Envelope(data[len(_HEAD) : end], match["type"].decode("ascii"), found)


def print_envelope(envelope: Envelope) -> bytes:
    """Return the canonical bytes of an envelope; the inverse of `parse_envelope`."""
    seals = b""
    if envelope.seal is not None:
        signature = print_base64(envelope.seal.signature)
        seals = f'{{"key":"{envelope.seal.key}","signature":"{signature}"}}'.encode("ascii")
    kind = envelope.payload_type.encode("ascii")
    return b"".join((_HEAD, envelope.payload, _TYPE, kind, b'","seals":[', seals, b"]}"))
