"""Assertions: a closed set of predicates over an observation. They pass, fail, or cannot be evaluated, and nothing guesses.

    {"id": "moved", "at": "/rows", "is": "at_least", "value": 10}

- The observation is a JSON object. `at` points into it (RFC 6901).
- What is not there, and what has another type than the predicate compares, cannot be evaluated. Only `exists` and `absent` judge
  whether something is there.
- `true` is no integer, and no text is a number.

Source: docs/spec/rules/assertions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

from ledger import canonical
from ledger.canonical import JsonValue
from ledger.rules.glob import matches
from ledger.rules.shape import LONGEST, Shape

__all__ = ["PREDICATES", "Assertion", "Finding", "evaluate", "parse_assertions", "print_assertion"]

_MISSING: Final = object()


class Finding(StrEnum):
    """What an assertion says of an observation."""

    PASS = "pass"  # noqa: S105  a word
    FAIL = "fail"
    UNEVALUABLE = "unevaluable"


@dataclass(frozen=True, slots=True)
class Assertion:
    """One predicate over one place of the observation."""

    id: str
    at: str
    predicate: str
    value: JsonValue = None


def _integers(compare: Callable[[int, int], bool]) -> Callable[[Any, Any], bool | None]:
    return lambda found, value: compare(found, value) if type(found) is int else None


def _sizes(compare: Callable[[int, int], bool]) -> Callable[[Any, Any], bool | None]:
    return lambda found, value: compare(len(found), value) if type(found) in (str, list, dict) else None


def _same(found: Any, value: Any) -> bool | None:  # noqa: ANN401  any JSON
    # Their texts are compared: in Python `true` equals 1, at any depth.
    return _text(found) == _text(value) if type(found) is type(value) else None


def _text(value: JsonValue) -> bytes:
    return canonical.encode({"": value}, max_depth=64)


def _differs(found: Any, value: Any) -> bool | None:  # noqa: ANN401
    same = _same(found, value)
    return None if same is None else not same


def _one_of(found: Any, value: Any) -> bool | None:  # noqa: ANN401
    comparable = [each for each in value if type(each) is type(found)]
    return any(map(partial(_same, found), comparable)) if comparable else None


def _matches(found: Any, value: Any) -> bool | None:  # noqa: ANN401
    return matches(value, found) if type(found) is str else None


PREDICATES: Final[Mapping[str, Callable[[Any, Any], bool | None]]] = {
    "exists": lambda found, _: found is not _MISSING,
    "absent": lambda found, _: found is _MISSING,
    "equals": _same,
    "differs": _differs,
    "one_of": _one_of,
    "at_least": _integers(lambda found, value: found >= value),
    "at_most": _integers(lambda found, value: found <= value),
    "size_at_least": _sizes(lambda found, value: found >= value),
    "size_at_most": _sizes(lambda found, value: found <= value),
    "matches": _matches,
}
"""Predicate -> a function of what is found and the value: true, false, or None where they cannot be compared."""

_OF_PRESENCE: Final = ("exists", "absent")
_OF_INTEGERS: Final = ("at_least", "at_most", "size_at_least", "size_at_most")


def evaluate(assertion: Assertion, observation: Mapping[str, JsonValue] | None) -> Finding:
    """Return what an assertion says of an observation; without one it cannot be evaluated."""
    if observation is None:
        return Finding.UNEVALUABLE
    found = _at(dict(observation), assertion.at)
    if found is _MISSING and assertion.predicate not in _OF_PRESENCE:
        return Finding.UNEVALUABLE
    holds = PREDICATES[assertion.predicate](found, assertion.value)
    if holds is None:
        return Finding.UNEVALUABLE
    return Finding.PASS if holds else Finding.FAIL


def parse_assertions(shape: Shape, value: object, where: str) -> tuple[Assertion, ...]:
    """Return the assertions of a list, each id once.

    Raises:
        LedgerError: of the shape's class; not of this form, or a predicate outside the closed set.
    """
    found = tuple(_parse(shape, each, f"{where}[{place}]") for place, each in enumerate(shape.items(value, where)))
    if len({each.id for each in found}) != len(found):
        raise shape.error(f"{shape.what}: {where}: got an id twice")
    return found


def print_assertion(assertion: Assertion) -> dict[str, JsonValue]:
    """Return the JSON of an assertion; the inverse of reading it."""
    found: dict[str, JsonValue] = {"id": assertion.id, "at": assertion.at, "is": assertion.predicate}
    return found if assertion.predicate in _OF_PRESENCE else {**found, "value": assertion.value}


def _parse(shape: Shape, value: object, where: str) -> Assertion:
    found = shape.members(value, where, required=("id", "at", "is"), any_value=("value",))
    name = found["is"]
    if type(name) is not str or name not in PREDICATES:
        raise shape.refuse(f"{where}.is", name, f"one of {', '.join(PREDICATES)}")
    if ("value" in found) == (name in _OF_PRESENCE):
        raise shape.error(f"{shape.what}: {where}: {name} takes {'no' if name in _OF_PRESENCE else 'a'} value")
    at, wanted = shape.text(found["at"], f"{where}.at", empty=True, longest=LONGEST), found.get("value")
    if at and (not at.startswith("/") or _bad_escape(at)):
        raise shape.refuse(f"{where}.at", at, "a JSON pointer (RFC 6901)")
    if name in _OF_INTEGERS and type(wanted) is not int:
        raise shape.refuse(f"{where}.value", wanted, "an integer")
    if name == "matches":
        shape.text(wanted, f"{where}.value", longest=LONGEST)
    if name == "one_of" and not shape.items(wanted, f"{where}.value"):
        raise shape.refuse(f"{where}.value", wanted, "a list that is not empty")
    return Assertion(shape.text(found["id"], f"{where}.id"), at, name, wanted)


def _bad_escape(pointer: str) -> bool:
    return any(part[:1] not in ("0", "1") for part in pointer.split("~")[1:])


def _at(value: object, pointer: str) -> object:
    """Return what a pointer points at, or that it is missing."""
    for raw in pointer.split("/")[1:]:
        part = raw.replace("~1", "/").replace("~0", "~")
        if type(value) is dict and part in value:
            value = value[part]
        elif (
            type(value) is list
            and part.isascii()
            and part.isdigit()
            and part == str(int(part))
            and int(part) < len(value)
        ):
            value = value[int(part)]
        else:
            return _MISSING
    return value
