"""Ed25519 keys as text, and signatures: what may sign, what may be pinned.

A key id is `ed25519:` and the 64 hexadecimal digits of the 32 public bytes. Other prefixes are well formed but unknown here.
PyNaCl (libsodium) signs and verifies: it refuses points of low order and a signature scalar that is not reduced.

Source: docs/spec/envelopes.md, RFC 8032.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey

from ledger.errors import FormatError, SignatureError, UnknownFormatError, clip

__all__ = [
    "PrivateKey",
    "is_key_id",
    "next_digest",
    "parse_base64",
    "parse_key_id",
    "print_base64",
    "print_key_id",
    "refuse_weak_point",
    "verify_signature",
]

_KEY_ID = re.compile(r"[a-z][a-z0-9-]{0,31}:[0-9a-f]{64}")
_P: Final = 2**255 - 19
# The y coordinates of the eight points of low order: the sign bit is free, so five of them are all
# (orders 1, 2, 4 and the two of order 8; a test derives them from the curve equation).
_LOW_ORDER_Y: Final = frozenset(
    {
        0,
        1,
        _P - 1,
        int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
        int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    }
)


def is_key_id(text: str) -> bool:
    """Return whether `text` has the form of a key id, of any algorithm."""
    return _KEY_ID.fullmatch(text) is not None


def parse_key_id(text: str) -> bytes:
    """Return the 32 public bytes of an Ed25519 key id.

    Raises:
        FormatError: not the form of a key id.
        UnknownFormatError: a key id of an algorithm that this version does not know.
    """
    if not is_key_id(text):
        raise FormatError(
            f"key: got {clip(text)}, expected 'ed25519:' and 64 lower-case hex digits", code="key.malformed"
        )
    algorithm, _, digits = text.partition(":")
    if algorithm != "ed25519":
        raise UnknownFormatError(
            f"key: algorithm {clip(algorithm)} is not known to this version", code="key.unknown_algorithm"
        )
    return bytes.fromhex(digits)


def print_key_id(public: bytes) -> str:
    """Return the key id of 32 public bytes; the inverse of `parse_key_id`."""
    if len(public) != 32:
        raise FormatError(f"key: got {len(public)} bytes, expected 32", code="key.malformed")
    return "ed25519:" + public.hex()


def next_digest(key: str) -> str:
    """Return the commitment to a next key: the digest of its public bytes. Source: docs/spec/keys.md."""
    return "sha256:" + hashlib.sha256(parse_key_id(key)).hexdigest()


def refuse_weak_point(key: str) -> None:
    """Raise unless the key may be pinned.

    Raises:
        SignatureError: the point is of low order or its encoding is not canonical.
    """
    number = int.from_bytes(parse_key_id(key), "little") & (2**255 - 1)
    if number >= _P:
        raise SignatureError(f"key {clip(key)}: the encoding of the point is not canonical", code="key.not_canonical")
    if number in _LOW_ORDER_Y:
        raise SignatureError(f"key {clip(key)}: the point is of low order", code="key.low_order")


def print_base64(data: bytes) -> str:
    """Return padded standard base64 without line breaks."""
    return base64.b64encode(data).decode("ascii")


def parse_base64(text: str) -> bytes:
    """Return the bytes of padded standard base64 that encodes back to exactly `text`.

    Raises:
        FormatError: another alphabet, missing padding, stray characters or non-zero spare bits.
    """
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise FormatError(
            f"base64: got {clip(text)}, expected padded standard base64", code="base64.malformed"
        ) from error
    if print_base64(data) != text:
        raise FormatError(f"base64: {clip(text)} does not encode back to itself", code="base64.malformed")
    return data


_public_of = lru_cache(maxsize=1024)(parse_key_id)


def verify_signature(key: str, signature: bytes, message: bytes) -> None:
    """Return if `signature` (64 bytes) by `key` covers `message`.

    Raises:
        SignatureError: it does not.
        UnknownFormatError: the key is of an algorithm that this version does not know.
    """
    public = _public_of(key)
    if len(signature) != 64:
        raise SignatureError(f"signature: got {len(signature)} bytes, expected 64", code="signature.malformed")
    try:
        crypto_sign_open(signature + message, public)
    except BadSignatureError as error:
        raise SignatureError(f"signature by {clip(key)} does not verify", code="signature.invalid") from error


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """An Ed25519 private key in memory; `seed` is its 32 secret bytes. Its text shows the public half only."""

    seed: bytes
    _signer: SigningKey
    key: str

    @classmethod
    def from_seed(cls, seed: bytes) -> PrivateKey:
        """Return the key of a 32-byte seed."""
        signer = SigningKey(seed)
        return cls(seed, signer, print_key_id(bytes(signer.verify_key)))

    @property
    def public(self) -> bytes:
        """The 32 public bytes."""
        return parse_key_id(self.key)

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of `message` (RFC 8032, deterministic)."""
        return self._signer.sign(message).signature

    def __repr__(self) -> str:
        return f"PrivateKey({self.key})"
