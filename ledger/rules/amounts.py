"""Limits and amounts as people write them, read exactly into integers.

    seconds=90   15m   usd=0.50   tool_calls=60   fetch->fetch=3   usd=0.50:soft=0.40   seconds=90:grace=2

- Decimal text becomes an integer by moving the point; nothing is rounded and nothing is a float.
- A sign, an exponent, a leading zero, too many decimals, an unknown or repeated meter and two currencies are refused.
- A name of a meter carries its unit: `duration_ms`, `usd_micro`. `seconds` and `usd` are words for people.

Source: docs/spec/rules/budgets.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ledger.canonical import MAX_INTEGER
from ledger.errors import clip
from ledger.members import Limit
from ledger.rules.document import DecimalText, read_object
from ledger.rules.errors import BudgetError

__all__ = [
    "COUNTED_METERS",
    "DURATION",
    "EDGE",
    "METERS",
    "UNKNOWN",
    "Draw",
    "is_edge",
    "is_money",
    "parse_budget",
    "parse_span",
    "read_amounts",
    "read_budget",
    "refuse_limits",
    "refuse_meter",
]

UNKNOWN: Final = "unknown"
DURATION: Final = "duration_ms"
COUNTED_METERS: Final = frozenset({"receipts", "depth", "fanout", "concurrency"})
"""Meters that are counted from the receipts themselves; nothing is charged to them."""
METERS: Final = COUNTED_METERS | {
    DURATION,
    "requests",
    "tool_calls",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
}
"""Meters without a currency or an edge in their name."""

Draw: TypeAlias = Mapping[str, int | str]
"""Meter -> what an act takes from it: an integer from 0 to 2^53-1, or `unknown`."""

# ISO 4217, the codes in use.
_CURRENCIES: Final = frozenset(
    re.findall(
        "[a-z]{3}",
        """aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf clp cny
    cop crc cup cve czk djf dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr iqd
    irr isk jmd jod jpy kes kgs khr kmf kpw krw kwd kyd kzt lak lbp lkr lrd lsl lyd mad mdl mga mkd mmk mnt mop mru mur mvr mwk
    mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sdg sek sgd shp sle sos
    srd ssp stn svc syp szl thb tjs tmt tnd top try ttd twd tzs uah ugx usd uyu uzs ves vnd vuv wst xaf xcd xof xpf yer zar zmw
    zwg""",
    )
)
_MONEY: Final = frozenset(f"{code}_micro" for code in _CURRENCIES)
_DURATION_WORDS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SCALES: Final = {
    "seconds": (DURATION, 1_000, 3),
    "minutes": (DURATION, 60_000, 0),
    "hours": (DURATION, 3_600_000, 0),
} | {code: (f"{code}_micro", 1_000_000, 6) for code in _CURRENCIES}
"""Word for people -> meter, units in one, decimals at most."""
EDGE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}->[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_SPAN = re.compile(r"([1-9][0-9]*)(ms|s|m|h|d)")
_MOST_DIGITS: Final = len(str(MAX_INTEGER))


def is_money(meter: str) -> bool:
    """Return whether a meter counts millionths of a currency of ISO 4217."""
    return meter in _MONEY


def is_edge(meter: str) -> bool:
    """Return whether a meter counts how often an edge `from->to` is taken."""
    return "->" in meter and EDGE.fullmatch(meter) is not None


def parse_budget(words: Iterable[str]) -> tuple[Limit, ...]:
    """Return the limits that words such as `usd=0.50` ask for, in their order; one word may hold several, parted by commas.

    Raises:
        BudgetError: a word outside its form, an unknown or repeated meter, two currencies.
    """
    limits = [_parse_limit(part) for word in words for part in word.split(",")]
    refuse_limits(limits)
    return tuple(limits)


def read_budget(data: bytes) -> tuple[Limit, ...]:
    """Return the limits of a budget file, `{"budget": {"seconds": 900, "usd": 0.5}}`; the wrapper `budget` may be left out.

    Raises:
        BudgetError: not JSON of this shape, an unknown or repeated meter, an amount outside its form, two currencies.
    """
    value = read_object(data, "budget", BudgetError, decimals=True)
    inner = value["budget"] if set(value) == {"budget"} else value
    if not isinstance(inner, dict):
        raise BudgetError(f"budget: got {type(inner).__name__}, expected an object of meters and limits")
    limits = []
    for name, amount in inner.items():
        # `true` is no number, and a text is no number either.
        if type(amount) is not int and type(amount) is not DecimalText:
            raise BudgetError(f"budget: {clip(name)}: got {clip(amount)}, expected a number")
        meter, units = _meter_of(name)
        limits.append(Limit(meter=meter, limit=_scaled(str(amount), *units, name)))
    refuse_limits(limits)
    return tuple(limits)


def read_amounts(amounts: Mapping[str, object]) -> Draw:
    """Return what an act says that it takes: integers by meter, `unknown`, or decimal text for the words of people (`usd`).

    Raises:
        BudgetError: an unknown or repeated meter, a float, a boolean, a negative or too large amount.
    """
    if not isinstance(amounts, Mapping):
        raise BudgetError(f"charge: got {clip(amounts)}, expected a mapping of meters and amounts")
    draw: dict[str, int | str] = {}
    for name, amount in amounts.items():
        meter, units = _meter_of(name)
        if meter in draw or meter in COUNTED_METERS or meter == DURATION:
            raise BudgetError(f"charge: got {clip(name)}, expected each meter once and none that is counted by itself")
        if amount == UNKNOWN and type(amount) is str:
            draw[meter] = UNKNOWN
        elif (type(amount) is int and units == (1, 0)) or (type(amount) is str and units != (1, 0)):
            draw[meter] = _scaled(str(amount), *units, name)
        else:
            expected = "an integer" if units == (1, 0) else "decimal text such as '0.05'"
            raise BudgetError(f"charge: {clip(name)}: got {clip(amount)}, expected {expected} or 'unknown'")
    return draw


def refuse_meter(meter: str) -> None:
    """Raise unless something can be said to have been used of a meter.

    Raises:
        BudgetError: an unknown meter, or one that is counted from the receipts themselves.
    """
    if type(meter) is not str or not (meter in METERS or is_money(meter) or is_edge(meter)):
        raise _unknown_meter(meter)
    if meter in COUNTED_METERS:
        raise BudgetError(f"usage: got {clip(meter)}, expected a meter that is not counted by itself")


def refuse_limits(limits: Iterable[Limit]) -> None:
    """Raise unless each meter is known and limited once, a soft limit is within its limit, and one currency stands alone.

    Raises:
        BudgetError: as said.
    """
    seen: set[str] = set()
    for each in limits:
        if each.meter not in METERS and not is_money(each.meter) and not is_edge(each.meter):
            raise _unknown_meter(each.meter)
        if each.meter in seen:
            raise BudgetError(f"budget: got meter {clip(each.meter)} twice", code="budget.repeated_meter")
        if each.soft is not None and each.soft > each.limit:
            raise BudgetError(
                f"budget: {clip(each.meter)}: got soft limit {each.soft}, expected at most its limit {each.limit}"
            )
        if each.limit + (each.grace or 0) > MAX_INTEGER:
            raise BudgetError(f"budget: {clip(each.meter)}: limit and grace are over 2^53-1")
        seen.add(each.meter)
    currencies = sorted(filter(is_money, seen))
    if len(currencies) > 1:
        raise BudgetError(
            f"budget: got {' and '.join(currencies)}, expected one currency: amounts of two are never added",
            code="budget.mixed_currency",
        )


def parse_span(text: str, what: str) -> int:
    """Return a time as people write it, such as `15m` or `24h`, in milliseconds.

    Raises:
        BudgetError: another text.
    """
    span = _SPAN.fullmatch(text)
    if span is None:
        raise BudgetError(f"{what}: got {clip(text)}, expected a time such as 90s, 15m or 24h", code="budget.amount")
    return _scaled(span[1], _DURATION_WORDS[span[2]], 0, what)


def _parse_limit(text: str) -> Limit:
    first, *rest = text.split(":")
    if _SPAN.fullmatch(first) is not None:
        name, amount = DURATION, first
    else:
        name, equals, amount = first.rpartition("=")
        if not equals:
            raise BudgetError(
                f"budget: got {clip(text)}, expected METER=AMOUNT or a time such as 15m",
                hint="for example: seconds=90, 15m, usd=0.50, tool_calls=60",
            )
    meter, units = _meter_of(name)
    values = {"limit": _amount(amount, meter, units, name)}
    for part in rest:
        word, equals, amount = part.partition("=")
        if word not in ("soft", "grace") or not equals or word in values:
            raise BudgetError(
                f"budget: {clip(name)}: got {clip(part)}, expected soft=AMOUNT or grace=AMOUNT, each once"
            )
        values[word] = _amount(amount, meter, units, name)
    return Limit(meter=meter, **values)


def _meter_of(name: str) -> tuple[str, tuple[int, int]]:
    """Return the meter of a word, how many of its units one is, and how many decimals it may have."""
    if type(name) is not str:
        raise _unknown_meter(name)
    if name in _SCALES:
        meter, scale, decimals = _SCALES[name]
        return meter, (scale, decimals)
    if name in METERS or is_money(name) or is_edge(name):
        return name, (1, 0)
    raise _unknown_meter(name)


def _amount(text: str, meter: str, units: tuple[int, int], name: str) -> int:
    span = _SPAN.fullmatch(text) if meter == DURATION else None
    if span is not None:
        return _scaled(span[1], _DURATION_WORDS[span[2]], 0, name)
    return _scaled(text, *units, name)


def _scaled(text: str, scale: int, decimals: int, name: str) -> int:
    """Return decimal text as an integer number of units."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise BudgetError(
            f"budget: {clip(name)}: got {clip(text)}, expected a plain number, not negative, without exponent",
            code="budget.amount",
        )
    whole, fraction = match[1], match[2] or ""
    if len(fraction) > decimals:
        raise BudgetError(
            f"budget: {clip(name)}: got {clip(text)}, expected at most {decimals} decimals; nothing is rounded",
            code="budget.amount",
        )
    if len(whole) <= _MOST_DIGITS:
        amount = int(whole) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
        if amount <= MAX_INTEGER:
            return amount
    raise BudgetError(f"budget: {clip(name)}: got {clip(text)}, expected at most 2^53-1 units", code="budget.amount")


def _unknown_meter(name: str) -> BudgetError:
    return BudgetError(
        f"budget: got meter {clip(name)}, expected one of {', '.join(sorted(METERS))}, <currency>_micro or from->to",
        code="budget.unknown_meter",
        hint="people's words: seconds, minutes, hours, and a currency such as usd or eur",
    )
