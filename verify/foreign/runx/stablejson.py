r"""Canonical JSON of runx: `runx.stable-json.v1` for values, `runx.receipt.c14n.v1` for receipts; one writer.

- No white space, UTF-8; members sorted by code point; arrays in their order.
- Strings: `"`, `\\` and U+0000 to U+001F escaped, in their short forms where there are any; everything else as it is.
- Integers from -(2^63) to 2^64-1 as they are written. All other numbers are doubles: a whole one within these bounds prints as an
  integer (the two bounds themselves saturate), any other as its shortest text, with an exponent below 1e-5 and above the bounds.

JavaScript prints some of these numbers otherwise; these are the rules of the Rust writer, which seals receipts.

Source: runx 0.8.2, `runx.stable-json.v1` and `runx.receipt.c14n.v1`.
"""

from __future__ import annotations

import math
from typing import Final

import orjson

from ledger.canonical import JsonValue
from ledger.digest import digest
from verify.foreign.strict import Number, ReadError

__all__ = ["number_text", "stable_bytes", "stable_digest"]

_SIGNED_MIN: Final = -(2**63)
_UNSIGNED_MAX: Final = 2**64 - 1
_LONGEST_INTEGER: Final = 20
_PLAIN_DIGITS: Final = 16
"""Digits before the point up to which a number is written without an exponent."""
_PLAIN_ZEROS: Final = -5
"""Power of ten of the first digit, down to which a number is written without an exponent."""


def stable_digest(value: JsonValue) -> str:
    """Return the digest of the stable text of a value.

    Raises:
        ReadError: `not_json`, a number out of range.
    """
    return digest(stable_bytes(value))


def stable_bytes(value: JsonValue) -> bytes:
    """Return the stable text of a value that `verify.foreign.strict` read.

    Raises:
        ReadError: `not_json`, a number out of range.
    """
    try:
        # Without numbers of their own kind the usual writer says the same: UTF-8 order is code point order.
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:
        parts: list[bytes] = []
        _write(value, parts)
        return b"".join(parts)


def number_text(text: str) -> str:
    """Return how a number of JSON, given as its text, is written.

    Raises:
        ReadError: `not_json`, a number that no double is near to.
    """
    whole = len(text) <= _LONGEST_INTEGER and text.removeprefix("-").isdigit() and text != "-0"
    if whole and _SIGNED_MIN <= int(text) <= _UNSIGNED_MAX:
        return text
    value = float(text)
    if not math.isfinite(value):
        raise ReadError("not_json", "got a number out of range")
    if value.is_integer():
        if _SIGNED_MIN <= value <= 2**63:
            return str(min(int(value), 2**63 - 1))
        if 0 <= value <= 2**64:
            return str(min(int(value), _UNSIGNED_MAX))
    return _shortest(value)


def _shortest(value: float) -> str:
    """Return the shortest text that reads back as the double."""
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The power of ten of the first digit.
    power = int(exponent or 0) + (len(whole) - 1 if whole != "0" else -1 - (len(fraction) - len(fraction.lstrip("0"))))
    digits = digits.rstrip("0") or "0"
    if _PLAIN_ZEROS <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if 0 <= power < _PLAIN_DIGITS and len(digits) > power + 1:
        return f"{sign}{digits[: power + 1]}.{digits[power + 1 :]}"
    point = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}e{'+' if power >= 0 else '-'}{abs(power)}"


def _write(value: JsonValue, parts: list[bytes]) -> None:
    match value:
        case Number():
            parts.append(number_text(value.text).encode("ascii"))
        case dict():
            parts.append(b"{")
            for place, name in enumerate(sorted(value)):
                parts.append(b"," if place else b"")
                parts.append(orjson.dumps(name) + b":")
                _write(value[name], parts)
            parts.append(b"}")
        case list():
            parts.append(b"[")
            for place, item in enumerate(value):
                parts.append(b"," if place else b"")
                _write(item, parts)
            parts.append(b"]")
        case bool() | None | str():
            parts.append(orjson.dumps(value))
        case int():
            parts.append(number_text(str(value)).encode("ascii"))
        case _:
            raise TypeError(f"stable json: got {type(value).__name__}")
