"""Amounts as people read them: money with its currency, time in seconds, all else with the name of its meter."""

from __future__ import annotations

__all__ = ["amount", "is_money"]

_MONEY = "_micro"
_DURATION = "duration_ms"


def is_money(meter: str) -> bool:
    """Return whether a meter counts millionths of a currency, by its name."""
    return meter.endswith(_MONEY)


def amount(meter: str, value: int | str | None) -> str:
    """Return an amount of a meter in words: `1.25 USD`, `4.2 s`, `60 tool_calls`, `unknown USD`."""
    unit = meter.removesuffix(_MONEY).upper() if is_money(meter) else meter
    if not isinstance(value, int):
        return f"{value or 'unknown'} {unit}"
    if is_money(meter):
        whole, rest = divmod(abs(value), 1_000_000)
        decimals = f"{rest:06d}".rstrip("0").ljust(2, "0")
        return f"{'-' if value < 0 else ''}{whole:,}.{decimals} {unit}"
    if meter == _DURATION:
        return f"{value:,} ms" if abs(value) < 10_000 else f"{value / 1000:,.1f} s"
    return f"{value:,} {unit}"
