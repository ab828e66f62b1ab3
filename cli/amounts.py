"""Amounts as people read them: money with its currency, time in seconds, all else with the name of its meter."""

from __future__ import annotations

from ledger.rules.amounts import DURATION, is_money

__all__ = ["amount"]


def amount(meter: str, value: int | str | None) -> str:
    """Return an amount of a meter in words: `1.25 USD`, `4.2 s`, `60 tool_calls`, `unknown USD`."""
    unit = meter.removesuffix("_micro").upper() if is_money(meter) else meter
    if not isinstance(value, int):
        return f"{value or 'unknown'} {unit}"
    if is_money(meter):
        whole, rest = divmod(abs(value), 1_000_000)
        decimals = f"{rest:06d}".rstrip("0").ljust(2, "0")
        return f"{'-' if value < 0 else ''}{whole:,}.{decimals} {unit}"
    if meter == DURATION:
        return f"{value:,} ms" if abs(value) < 10_000 else f"{value / 1000:,.1f} s"
    return f"{value:,} {unit}"
