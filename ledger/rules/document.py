"""JSON that a person wrote: read once, strictly, and never half.

White space and the order of members are free; everything else is as in canonical JSON: a name twice, a fraction, an integer past
2^53-1, a lone surrogate, more than 32 levels or 1 MiB are refused with their place.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

import json
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject, JsonValue
from ledger.errors import CanonicalError, LedgerError, clip

__all__ = ["DecimalText", "read_object"]

_MAX_BYTES: Final = 1 << 20
_MAX_DEPTH: Final = 32


class DecimalText(str):
    """The text of a number with a point or an exponent, as it stands in the file."""

    __slots__ = ()


def read_object(data: bytes, what: str, error: type[LedgerError], *, decimals: bool = False) -> JsonObject:
    """Return the object that a file holds; with `decimals`, numbers with a point come as their text.

    Raises:
        LedgerError: of the given class; not UTF-8, not JSON, not an object, or outside the canonical profile.
    """
    if len(data) > _MAX_BYTES:
        raise error(f"{what}: got {len(data)} bytes, expected at most {_MAX_BYTES}")

    def pairs(found: list[tuple[str, JsonValue]]) -> JsonObject:
        value = dict(found)
        if len(value) != len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise error(f"{what}: got member {clip(twice)} twice in one object")
        return value

    def fraction(text: str) -> DecimalText:
        if not decimals:
            raise error(f"{what}: got {clip(text)}, expected an integer or a text")
        return DecimalText(text)

    def integer(text: str) -> int:
        if len(text) > 17 or text == "-0":
            raise error(f"{what}: got {clip(text)}, expected an integer within +-(2^53-1), zero without a sign")
        return int(text)

    def constant(text: str) -> None:
        raise error(f"{what}: got {text}, expected a number of JSON")

    decoder = json.JSONDecoder(
        object_pairs_hook=pairs, parse_float=fraction, parse_int=integer, parse_constant=constant
    )
    try:
        value = decoder.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise error(f"{what}: not JSON: {problem}") from problem
    if type(value) is not dict:
        raise error(f"{what}: got {type(value).__name__}, expected an object")
    try:
        canonical.encode(_without_decimals(value) if decimals else value, max_depth=_MAX_DEPTH)
    except (CanonicalError, RecursionError) as problem:
        raise error(f"{what}: {problem}") from problem
    return value


def _without_decimals(value: JsonValue) -> JsonValue:
    """Return the value with texts of numbers as plain texts, so that the profile can be checked."""
    if isinstance(value, dict):
        return {name: _without_decimals(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_decimals(item) for item in value]
    return str(value) if isinstance(value, DecimalText) else value
