"""Periods: a day, a week or a month of UTC, named by its first day.

- The Gregorian calendar decides: a month has 28 to 31 days, a week begins on Monday.
- A period is half-open: its first instant belongs to it, the first instant of the next one does not.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache

from ledger.words import Period

__all__ = ["end_of", "start_of"]


def start_of(period: Period, time: str) -> str:
    """Return the first day, `2026-11-30`, of the period in which a time `2026-11-30T09:15:00.123Z` lies."""
    return _start(period, time[:10])


def end_of(period: Period, start: str) -> str:
    """Return the first instant after the period that begins on a day: when its limit counts anew."""
    first = date.fromisoformat(start)
    if period is Period.DAY:
        following = first + timedelta(days=1)
    elif period is Period.WEEK:
        following = first + timedelta(days=7)
    else:
        following = (first.replace(day=1) + timedelta(days=32)).replace(day=1)
    return f"{following.isoformat()}T00:00:00.000Z"


@lru_cache(maxsize=64)
def _start(period: Period, day: str) -> str:
    found = date.fromisoformat(day)
    if period is Period.WEEK:
        found -= timedelta(days=found.weekday())
    elif period is Period.MONTH:
        found = found.replace(day=1)
    return found.isoformat()
