"""Times as milliseconds: the fixed UTC text of receipts, read exactly.

Source: docs/spec/receipts.md, "Types".
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Final

__all__ = ["ms_of"]

_EPOCH: Final = date(1970, 1, 1).toordinal()


def ms_of(time: str) -> int:
    """Return a time `2026-11-30T09:15:00.123Z` of a receipt or an entry as milliseconds since 1970; leap seconds do not exist."""
    hours, minutes, seconds, ms = int(time[11:13]), int(time[14:16]), int(time[17:19]), int(time[20:23])
    return _day_ms(time[:10]) + ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms


@lru_cache(maxsize=64)
def _day_ms(day: str) -> int:
    return (date(int(day[:4]), int(day[5:7]), int(day[8:10])).toordinal() - _EPOCH) * 86_400_000
