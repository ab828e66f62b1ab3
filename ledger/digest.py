"""Digests: SHA-256 written as `sha256:` and 64 lower-case hexadecimal digits.

Source: docs/spec/digests.md.
"""

from __future__ import annotations

import hashlib
import re

from ledger.errors import FormatError, clip

__all__ = ["ZERO_DIGEST", "digest", "digest_bytes", "is_digest", "parse_digest", "print_digest"]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

ZERO_DIGEST = "sha256:" + "0" * 64
"""The `previous` of entry 0 and the `previous_head` of the first head line."""


def digest(data: bytes) -> str:
    """Return the digest of `data` as text, 71 characters."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_bytes(data: bytes) -> bytes:
    """Return the SHA-256 of `data` as 32 bytes."""
    return hashlib.sha256(data).digest()


def is_digest(text: str) -> bool:
    """Return whether `text` is exactly one digest: nothing before, after or in another case."""
    return _DIGEST.fullmatch(text) is not None


def parse_digest(text: str) -> bytes:
    """Return the 32 bytes that a digest names.

    Raises:
        FormatError: `text` is not `sha256:` and 64 lower-case hexadecimal digits.
    """
    if not is_digest(text):
        raise FormatError(
            f"digest: got {clip(text)}, expected 'sha256:' and 64 lower-case hex digits", code="digest.malformed"
        )
    return bytes.fromhex(text[7:])


def print_digest(raw: bytes) -> str:
    """Return the text of a digest of 32 bytes; the inverse of `parse_digest`."""
    if len(raw) != 32:
        raise FormatError(f"digest: got {len(raw)} bytes, expected 32", code="digest.malformed")
    return "sha256:" + raw.hex()
