"""Conditions on inline arguments: six comparisons over integers and texts, and nothing else.

    {"amount": {"le": 5000}, "currency": {"eq": "EUR"}}

An integer is compared with an integer, a text with a text, by code point. `true` is no integer. Everything else, and an argument
that does not stand inline, cannot be compared; the rule says what that means.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ledger.canonical import JsonValue
from ledger.errors import clip
from ledger.rules.shape import Shape

__all__ = ["COMPARISONS", "Condition", "holds", "parse_conditions"]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of one inline argument with a value."""

    argument: str
    comparison: str
    value: int | str


def holds(condition: Condition, inline: Mapping[str, JsonValue], *, otherwise: bool) -> bool:
    """Return whether a condition holds; `otherwise` where it cannot be compared."""
    value = inline.get(condition.argument)
    if type(value) is not type(condition.value) or type(value) not in (int, str):
        return otherwise
    return COMPARISONS[condition.comparison](value, condition.value)


def parse_conditions(shape: Shape, value: object, where: str) -> tuple[Condition, ...]:
    """Return the conditions that an object of arguments and comparisons holds; policies and grants share this one grammar.

    Raises:
        LedgerError: of the shape's class; not of this form.
    """
    conditions: list[Condition] = []
    for argument, comparisons in shape.mapping(value, where).items():
        at = f"{where}.{clip(argument)}"
        inner = shape.mapping(comparisons, f"{where}.{argument}")
        if not inner:
            raise shape.error(f"{shape.what}: {at}: got no comparison")
        for comparison, operand in inner.items():
            if comparison not in COMPARISONS:
                raise shape.refuse(at, comparison, f"one of {', '.join(COMPARISONS)}")
            if type(operand) not in (int, str):
                raise shape.refuse(at, operand, "an integer or a text")
            conditions.append(Condition(argument, comparison, operand))
    return tuple(conditions)
