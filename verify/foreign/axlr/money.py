"""Money as AXLR writes it: a number of US dollars in JSON, taken from its text into micro-dollars without a float between.

An amount finer than a micro-dollar is rounded up, and `exact` says so: what was spent is never understated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ledger.canonical import MAX_INTEGER, JsonValue
from verify.foreign.strict import Number

__all__ = ["Amount", "usd_micro"]

_NUMBER: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?")
_MICRO_DIGITS: Final = 6
_MOST_DIGITS: Final = 60


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of micro-dollars; `exact` is False where it was rounded up."""

    usd_micro: int
    exact: bool


def usd_micro(value: JsonValue) -> Amount | None:
    """Return the amount of a number that `verify.foreign.strict` read, None where it is negative, too large or no number."""
    if isinstance(value, bool) or not isinstance(value, int | Number):
        return None
    match = _NUMBER.fullmatch(value.text if isinstance(value, Number) else str(value))
    if match is None:
        return None
    sign, whole, fraction, exponent = match[1], match[2], match[3] or "", int(match[4] or 0)
    digits = int((whole + fraction)[: 2 * _MOST_DIGITS])
    if len(whole + fraction) > 2 * _MOST_DIGITS or abs(exponent) > _MOST_DIGITS or (sign and digits):
        return None
    shift = exponent - len(fraction) + _MICRO_DIGITS
    if shift >= 0:
        amount, rest = digits * 10**shift, 0
    else:
        amount, rest = divmod(digits, 10**-shift)
    amount += rest > 0
    return Amount(amount, exact=rest == 0) if amount <= MAX_INTEGER else None
