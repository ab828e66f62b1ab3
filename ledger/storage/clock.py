"""The clock and the randomness: the one place that reads either.

Everything else takes time and nonces as arguments, so that it can be checked again later with the same result.
"""

from __future__ import annotations

import base64
import os
import time

__all__ = ["default_origin", "monotonic_ms", "nonce", "now", "random_bytes"]

_second: tuple[int, str] = (-1, "")


def now() -> str:
    """Return this moment in UTC, milliseconds, rounded down: `2026-11-30T09:15:00.123Z`."""
    global _second  # noqa: PLW0603  one pair, swapped whole: threads see the old one or the new one
    second, rest = divmod(time.time_ns(), 1_000_000_000)
    known, text = _second
    if known != second:
        text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        _second = (second, text)
    return f"{text}{rest // 1_000_000:03d}Z"


def monotonic_ms() -> int:
    """Return milliseconds of a clock that never steps back and means nothing outside this boot of this machine."""
    return time.monotonic_ns() // 1_000_000


def random_bytes(count: int) -> bytes:
    """Return `count` bytes from the operating system's generator; a forked child never repeats its parent's."""
    return os.urandom(count)


def nonce() -> str:
    """Return 16 random bytes as 32 hex digits: what makes two equal acts two receipts."""
    return os.urandom(16).hex()


def default_origin() -> str:
    """Return `ledger.invalid/` and 26 random characters of lower-case base32 (130 bits); it names no host."""
    return "ledger.invalid/" + base64.b32encode(os.urandom(17))[:26].decode("ascii").lower()
