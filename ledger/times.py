"""Times as receipts and entries write them: UTC, milliseconds, one text for each moment.

    2026-11-30T09:15:00.123Z

Source: docs/spec/receipts.md.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TIME_PATTERN"]

_YEAR = "[1-9][0-9]{3}"
_LEAP = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_DATE = f"(?:{_YEAR}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|{_LEAP}-02-29)"
TIME_PATTERN: Final = rf"^{_DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{{3}}Z$"
"""Matches a real day of the Gregorian calendar only."""
