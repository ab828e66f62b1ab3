"""Times as milliseconds: the fixed UTC text of receipts, read exactly.

Source: docs/spec/receipts.md, "Types".
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

__all__ = ["ms_of", "time_after"]

_EPOCH: Final = date(1970, 1, 1).toordinal()


def ms_of(time: str) -> int:
    """Return a time `2026-11-30T09:15:00.123Z` of a receipt or an entry as milliseconds since 1970; leap seconds do not exist."""
    hours, minutes, seconds, ms = int(time[11:13]), int(time[14:16]), int(time[17:19]), int(time[20:23])
    return _day_ms(time[:10]) + ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms


def time_after(time: str, ms: int) -> str:
    """Return the time that comes some milliseconds after another, at most the last of year 9999."""
    try:
        later = datetime.fromtimestamp(ms_of(time) // 1_000, UTC) + timedelta(seconds=ms // 1_000)
        later += timedelta(milliseconds=ms_of(time) % 1_000 + ms % 1_000)
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"
    return f"{later:%Y-%m-%dT%H:%M:%S}.{later.microsecond // 1_000:03d}Z"


@lru_cache(maxsize=64)
def _day_ms(day: str) -> int:
    return (date(int(day[:4]), int(day[5:7]), int(day[8:10])).toordinal() - _EPOCH) * 86_400_000
