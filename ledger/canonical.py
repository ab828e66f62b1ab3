r"""Canonical JSON: one text for one value, the intersection of RFC 8785 and Matrix canonical JSON.

The rules, each with its clause in docs/spec/canonical-json.md:

- the top level is an object;
- strings are valid Unicode, written raw except for `"`, `\\` and U+0000 to U+001F;
- member names are unique, sorted, and hold no code point above U+D7FF, where UTF-16 and code point order part;
- the only numbers are integers within +-(2^53-1), without fraction, exponent or minus zero;
- no white space outside strings;
- nesting is at most `max_depth` deep, counted on the bytes before anything is parsed.

Bytes are accepted only if the strict decoder takes them and encoding the result gives the same bytes.
`encode` is served by orjson, which a property test holds byte-equal to canonicaljson, the reference writer, and rfc8785.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias

import orjson

from ledger.errors import CanonicalError, clip

__all__ = [
    "MAX_DEPTH",
    "MAX_INTEGER",
    "RECEIPT_MAX_BYTES",
    "RECEIPT_MAX_DEPTH",
    "JsonObject",
    "JsonValue",
    "decode",
    "decode_for_schema",
    "encode",
    "encode_part",
]

JsonValue: TypeAlias = Any
"""str, int, bool, None, a list of these or a dict from str to these."""
JsonObject: TypeAlias = dict[str, Any]

MAX_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 64
RECEIPT_MAX_DEPTH: Final = 48
RECEIPT_MAX_BYTES: Final = 1 << 20

_WRITE: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_NOT_MARKS: Final = bytes(set(range(256)) - set(b'"[]{}'))
# A number that is not an integer, as it can stand in a canonical text: after a colon, a comma or a bracket.
_FRACTION = re.compile(rb"[:,\[]-?[0-9]+[.eE]")
_ABOVE_D7FF = re.compile(rb"[\xee-\xff]")  # the lead bytes of U+E000 and above in UTF-8


def encode(value: JsonObject, *, max_depth: int = MAX_DEPTH) -> bytes:
    """Return the canonical bytes of an object.

    Nothing is converted: a tuple, a float, a key that is not a string or a subclass of a JSON type is refused with its path.

    Raises:
        CanonicalError: `value` does not fit the profile; `where` is a JSON path such as `$.act.arguments[2]`.
    """
    if type(value) is not dict:
        raise CanonicalError(
            f"top level: got {type(value).__name__}, expected an object", code="canonical.top_level", where="$"
        )
    _check(value, "$", max_depth)
    return orjson.dumps(value, option=_WRITE)


def encode_part(part: JsonObject) -> bytes:
    """Return the canonical bytes of an object that stands in a document which `decode` returned: it is not checked again."""
    return orjson.dumps(part, option=_WRITE)


def decode(data: bytes, *, max_depth: int = MAX_DEPTH, max_bytes: int | None = None) -> JsonObject:
    """Return the object whose canonical bytes are exactly `data`.

    Raises:
        CanonicalError: the text is not JSON, not canonical, or holds a value outside the profile.
    """
    value = decode_for_schema(data, max_depth=max_depth, max_bytes=max_bytes)
    if _FRACTION.search(data) is not None:
        _check(value, "$", max_depth)
    return value


def decode_for_schema(data: bytes, *, max_depth: int = MAX_DEPTH, max_bytes: int | None = None) -> JsonObject:
    """Return the object whose canonical bytes are `data`, leaving one rule to the caller: that no number is a fraction.

    For readers that hand the result to a strict schema without fractions, which refuses them anyway.

    Raises:
        CanonicalError: as `decode`.
    """
    if max_bytes is not None and len(data) > max_bytes:
        raise CanonicalError(
            f"size: got {len(data)} bytes, expected at most {max_bytes}", code="canonical.too_large", where="$"
        )
    if data.count(b"{") + data.count(b"[") > max_depth and _depth(data) > max_depth:
        raise CanonicalError(f"depth: got more than {max_depth} levels", code="canonical.too_deep", where="$")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        _refuse_by_text(data, fractions=True)
        raise CanonicalError(f"not JSON: {error}", code="canonical.not_json", where="$") from error
    if type(value) is not dict:
        raise CanonicalError(
            f"top level: got {type(value).__name__}, expected an object", code="canonical.top_level", where="$"
        )
    try:
        again = orjson.dumps(value, option=_WRITE)
    except TypeError as error:
        # orjson says "Integer exceeds 53-bit range" here; the walk finds the place.
        _check(value, "$", max_depth)
        raise CanonicalError(f"not canonical: {error}", code="canonical.refused", where="$") from error
    if again != data:
        _refuse_by_text(data)
        _check(value, "$", max_depth)
        raise CanonicalError(
            f"not canonical: byte {_first_difference(again, data)} differs from the canonical text of the same value",
            code="canonical.not_canonical",
            where="$",
        )
    if not data.isascii() and _ABOVE_D7FF.search(data) is not None:
        _check(value, "$", max_depth)
    return value


def _first_difference(left: bytes, right: bytes) -> int:
    for offset, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return offset
    return min(len(left), len(right))


def _refuse_by_text(data: bytes, *, fractions: bool = False) -> None:
    """Raise the better reason that only the text holds: a name twice, a larger integer than the parser knows.

    Text that is not JSON passes; so does, without `fractions`, one whose first fault is a fraction.
    """
    reasons: list[CanonicalError] = []

    def add(code: str, message: str) -> None:
        reasons.append(CanonicalError(message, code=code, where="$"))

    def pairs(found: list[tuple[str, JsonValue]]) -> None:
        seen: set[str] = set()
        for name, _ in found:
            if name in seen:
                add("canonical.duplicate_name", f"member names: got {clip(name)} twice in one object")
            seen.add(name)

    def integer(text: str) -> None:
        if len(text.lstrip("-")) > 16:
            add("canonical.integer_range", f"got {clip(text)}, expected an integer within +-(2^53-1)")

    def fraction(text: str) -> None:
        add("canonical.fraction", f"got {clip(text)}, expected an integer")

    def constant(text: str) -> None:
        raise ValueError(text)

    decoder = json.JSONDecoder(
        object_pairs_hook=pairs, parse_int=integer, parse_float=fraction, parse_constant=constant
    )
    try:
        decoder.decode(data.decode("utf-8"))
    except ValueError:
        return
    # Where the value is at hand, a walk over it gives a fraction its path.
    if reasons and (fractions or reasons[0].code != "canonical.fraction"):
        raise reasons[0]


def _depth(data: bytes) -> int:
    """Return how many objects and arrays are open at the deepest place, on bytes that need not be JSON."""
    plain = _ESCAPE.sub(b"", data) if b"\\" in data else data
    # Between quotes there are strings, whatever stands in them.
    outside = b"".join(plain.translate(None, _NOT_MARKS).split(b'"')[::2])
    level = deepest = 0
    for bracket in outside:
        if bracket in b"[{":
            level += 1
            deepest = max(deepest, level)
        else:
            level -= 1
    return deepest


def _refuse(code: str, message: str, path: str) -> CanonicalError:
    # Names come from outside: escaped and cut before anybody prints them.
    where = clip(path, 200)[1:-1]
    return CanonicalError(f"{where}: {message}", code=code, where=where)


def _check(value: JsonValue, path: str, levels_left: int) -> None:
    """Raise for the first value outside the profile; recursion is bounded by `levels_left`."""
    kind = type(value)
    if kind is str:
        _check_text(value, path)
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            # An integer of more than 4,300 digits cannot be printed at all.
            found = clip(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
            raise _refuse("canonical.integer_range", f"got {found}, expected an integer within +-(2^53-1)", path)
    elif kind is bool or value is None:
        return
    elif kind is list or kind is dict:
        if levels_left == 0:
            raise _refuse("canonical.too_deep", "nested too deep", path)
        if kind is list:
            for position, item in enumerate(value):
                _check(item, f"{path}[{position}]", levels_left - 1)
        else:
            _check_members(value, path, levels_left - 1)
    elif kind is float:
        raise _refuse(
            "canonical.fraction",
            f"got {value!r}, expected an integer (write decimals as strings, money in micro-units)",
            path,
        )
    else:
        raise _refuse("canonical.type", f"got {kind.__name__}, expected str, int, bool, None, list or dict", path)


def _check_members(value: JsonObject, path: str, levels_left: int) -> None:
    for name, item in value.items():
        if type(name) is not str:
            raise _refuse("canonical.name_type", f"got a member name of type {type(name).__name__}, expected str", path)
        _check_text(name, path)
        if not name.isascii() and max(name) > "\ud7ff":
            raise _refuse(
                "canonical.name_range", f"got member name {clip(name)}, expected no code point above U+D7FF", path
            )
        _check(item, f"{path}.{name}", levels_left)


def _check_text(text: str, path: str) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _refuse("canonical.surrogate", f"got a lone surrogate in {clip(text)}", path) from error
