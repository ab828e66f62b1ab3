"""Shapes of foreign documents: which members an object has, which it must have, and what each may hold.

    POINT = Shape({"x*": INTEGER, "y*": INTEGER, "label": TEXT, "tags=[]": each(TEXT), "parent=null": TEXT})

A name that ends in `*` must be there. One that ends in `=[]` or `=null` may be left out, and its writer puts the empty list or
`null` in its place. Every other one may be left out and stays out. Members that a shape does not name do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from ledger.canonical import MAX_INTEGER, JsonObject, JsonValue
from ledger.errors import clip
from verify.foreign.strict import Number

__all__ = [
    "ANY",
    "ANY_TEXT",
    "BOOLEAN",
    "COUNT",
    "INTEGER",
    "NUMBER",
    "OBJECT",
    "TEXT",
    "TIME",
    "Each",
    "Misfit",
    "Shape",
    "Test",
    "each",
    "one_of",
    "text_like",
]

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A place that does not fit: its path, and what was found there."""

    path: str
    message: str
    unknown: bool = False
    """Whether it is a member that the shape does not name."""


Test: TypeAlias = "Callable[[JsonValue, str], Iterator[Misfit]]"
"""Yields what does not fit in a value that stands at a path."""


def _plain(expected: str, fits: Callable[[JsonValue], bool]) -> Test:
    def test(value: JsonValue, path: str) -> Iterator[Misfit]:
        if not fits(value):
            yield Misfit(path, f"got {_shown(value)}, expected {expected}")

    return test


ANY: Final = _plain("anything", lambda _: True)
TEXT: Final = _plain("a text that is not empty", lambda value: isinstance(value, str) and value != "")
ANY_TEXT: Final = _plain("a text", lambda value: isinstance(value, str))
BOOLEAN: Final = _plain("true or false", lambda value: isinstance(value, bool))
INTEGER: Final = _plain("an integer", lambda value: type(value) is int)
COUNT: Final = _plain("an integer from 0 to 2^53-1", lambda value: type(value) is int and 0 <= value <= MAX_INTEGER)
NUMBER: Final = _plain("a number", lambda value: type(value) is int or isinstance(value, Number))
OBJECT: Final = _plain("an object", lambda value: isinstance(value, dict))
TIME: Final = _plain("a time in UTC", lambda value: isinstance(value, str) and _TIME.fullmatch(value) is not None)


def one_of(words: str) -> Test:
    """Return the test of a text that is one of some words, parted by `|`."""
    allowed = frozenset(words.split("|"))
    return _plain(f"one of {clip(words, 200)[1:-1]}", lambda value: isinstance(value, str) and value in allowed)


def text_like(pattern: str, expected: str) -> Test:
    """Return the test of a text that a pattern covers as a whole."""
    compiled = re.compile(pattern)
    return _plain(expected, lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None)


class Each:
    """The test of a list whose items pass a test."""

    def __init__(self, test: Test) -> None:
        self.test: Final = test

    def __call__(self, value: JsonValue, path: str) -> Iterator[Misfit]:
        """Yield what does not fit, in the order of the items."""
        if not isinstance(value, list):
            yield Misfit(path, f"got {_shown(value)}, expected a list")
            return
        for place, item in enumerate(value):
            yield from self.test(item, f"{path}[{place}]")


def each(test: Test) -> Each:
    """Return the test of a list whose items pass a test."""
    return Each(test)


@dataclass(frozen=True, slots=True)
class _Member:
    test: Test
    required: bool
    filling: str


class Shape:
    """The shape of an object. It is a test itself."""

    def __init__(self, members: Mapping[str, Test]) -> None:
        self.members: Final = {
            name.rstrip("*").partition("=")[0]: _Member(test, name.endswith("*"), name.partition("=")[2])
            for name, test in members.items()
        }

    def __call__(self, value: JsonValue, path: str) -> Iterator[Misfit]:
        """Yield what does not fit, in the order of the members."""
        if not isinstance(value, dict):
            yield Misfit(path, f"got {_shown(value)}, expected an object")
            return
        at = f"{path}." if path else ""
        for name in value:
            if name not in self.members:
                yield Misfit(f"{at}{clip(name)[1:-1]}", "is a member that is not known", unknown=True)
        for name, member in self.members.items():
            if name not in value:
                if member.required:
                    yield Misfit(f"{at}{name}", "is not there")
            elif not (value[name] is None and member.filling == "null"):
                yield from member.test(value[name], f"{at}{name}")

    def filled(self, value: JsonObject) -> JsonObject:
        """Return an object that fits as its writer would write it again: with the members that it puts in their place."""
        result = dict(value)
        for name, member in self.members.items():
            if name not in result:
                if member.filling:
                    result[name] = [] if member.filling == "[]" else None
                continue
            result[name] = _filled(member.test, result[name])
        return result


def _filled(test: Test, value: JsonValue) -> JsonValue:
    if isinstance(test, Each) and isinstance(value, list):
        return [_filled(test.test, item) for item in value]
    return test.filled(value) if isinstance(test, Shape) and isinstance(value, dict) else value


def _shown(value: JsonValue) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return clip(value.text if isinstance(value, Number) else value)
