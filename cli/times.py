"""Moments as people write them: a day, a moment in UTC or with an offset, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from ledger.errors import FormatError, clip

__all__ = ["parse_moment", "print_moment"]

_AGO: Final = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d|w)")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def parse_moment(text: str, *, now: str) -> str:
    """Return a moment as receipts write it, from `2026-11-30`, `2026-11-30T09:15Z`, or `24h` (before `now`); UTC unless it says else.

    Raises:
        FormatError: neither.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return print_moment(datetime.fromisoformat(now) - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]]))
        if _MOMENT.fullmatch(text):
            found = datetime.fromisoformat(text)
            return print_moment(found.replace(tzinfo=UTC) if found.tzinfo is None else found)
    except (ValueError, OverflowError):
        pass  # a day that does not exist
    raise FormatError(
        f"time: got {clip(text)}, expected a day or moment such as 2026-11-30 or 2026-11-30T09:15Z, or how long ago: 24h, 7d",
        code="time.malformed",
    )


def print_moment(moment: datetime) -> str:
    """Return a moment in UTC as receipts write it, milliseconds, rounded down."""
    at = moment.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
