"""JSON of other systems, read strictly and without loss: what a lax reader would settle in silence is refused by name.

| name | what was found |
|---|---|
| `too_large` | more bytes than a document may have |
| `not_utf8` | bytes that are not UTF-8 |
| `too_deep` | more levels than a document may have, counted before anything is parsed |
| `not_json` | a text outside the grammar; `NaN` and `Infinity` are such |
| `duplicate_name` | a member name twice in one object |
| `lone_surrogate` | half of a surrogate pair in a text |

A number that is not an integer of at most 20 characters comes as a `Number`, which keeps its text: nothing is rounded.
Lines are parted by LF alone: U+2028 and U+0085 are characters of a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ledger.canonical import JsonObject, JsonValue
from ledger.errors import FormatError, clip

__all__ = ["MAX_BYTES", "MAX_DEPTH", "Line", "Number", "ReadError", "lines", "read", "read_object"]

MAX_BYTES: Final = 256 << 20
MAX_DEPTH: Final = 127
"""Levels that serde_json takes, the reader of the widest of these systems."""
_INTEGER_LENGTH: Final = 20
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


class ReadError(FormatError):
    """A text that is refused; `name` is one of the table above, `offset` the byte where it was found, -1 for the whole."""

    code = "foreign.malformed"

    def __init__(self, name: str, message: str, offset: int = -1) -> None:
        super().__init__(message)
        self.name = name
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Number:
    """A number as its text: a fraction, an exponent, minus zero, or an integer of more than 20 characters."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its LF: its number from 1, the offset of its first byte, and whether an LF ended it."""

    number: int
    offset: int
    data: bytes
    ended: bool


def lines(data: bytes) -> Iterator[Line]:
    """Yield the lines of a text that hold more than white space."""
    offset = number = 0
    while offset < len(data):
        number += 1
        end = data.find(b"\n", offset)
        line = data[offset : end if end >= 0 else len(data)]
        if line.strip(b" \t\r"):
            yield Line(number, offset, line, ended=end >= 0)
        offset += len(line) + 1


def read_object(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> JsonObject:
    """Return the object that a text holds.

    Raises:
        ReadError: as `read`, and `not_json` for another value.
    """
    value = read(data, max_bytes=max_bytes, max_depth=max_depth)
    if not isinstance(value, dict):
        raise ReadError("not_json", f"got {_kind(value)}, expected an object")
    return value


def read(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> JsonValue:
    """Return the value that a text holds, numbers that are not small integers as `Number`.

    Raises:
        ReadError: one of the names above.
    """
    if len(data) > max_bytes:
        raise ReadError("too_large", f"got {len(data)} bytes, expected at most {max_bytes}")
    if data.count(b"{") + data.count(b"[") > max_depth and _depth(data) > max_depth:
        raise ReadError("too_deep", f"got more than {max_depth} levels")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError("not_utf8", f"byte {error.start} is not UTF-8", error.start) from error
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8"))
        raise ReadError("not_json", f"{error.msg.lower()} at byte {offset}", offset) from error
    if b"\\u" in data:
        _refuse_surrogates(value)
    return value


def _pairs(found: list[tuple[str, JsonValue]]) -> JsonObject:
    value = dict(found)
    if len(value) != len(found):
        seen: set[str] = set()
        for name, _ in found:
            if name in seen:
                raise ReadError("duplicate_name", f"got member {clip(name)} twice in one object")
            seen.add(name)
    return value


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= _INTEGER_LENGTH and text != "-0" else Number(text)


def _constant(text: str) -> None:
    raise ReadError("not_json", f"got {text}, expected a number of JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=Number, parse_constant=_constant
)


def _refuse_surrogates(value: JsonValue) -> None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ReadError("lone_surrogate", f"got a lone surrogate in {clip(value)}") from error
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            _refuse_surrogates(name)
            _refuse_surrogates(item)


def _depth(data: bytes) -> int:
    """Return how many brackets are open at the deepest place outside strings."""
    level = deepest = 0
    for bracket in _STRING.sub(b"", data).translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            level += 1
            deepest = max(deepest, level)
        else:
            level -= 1
    return deepest


def _kind(value: object) -> str:
    names = {list: "an array", str: "a text", bool: "a truth value", int: "a number", Number: "a number"}
    return names.get(type(value), "null")
