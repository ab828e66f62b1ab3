"""JSON as ctrlrun reads it, and what a strict reader says of the same text.

ctrlrun parses with Python's parser: of members named twice the last counts, `NaN` and lone surrogates are values, and what it
cannot hash it calls altered. Its verdict follows from that reading. That a text says two things at once, or that others cannot
read it, is our finding.

- Depth is counted on the bytes before anything is parsed; beyond `MAX_DEPTH` nothing is read.
- `read` never raises.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from verify.foreign import strict
from verify.foreign.ctrlrun.usual import holds_float, is_usual

__all__ = ["MAX_DEPTH", "Fault", "Reading", "canonical_bytes", "read", "sha256_of"]

MAX_DEPTH: Final = 200
"""Levels that are read. ctrlrun's own reader ends in an uncaught error somewhere above 490, depending on its stack."""

_CODES: Final = {"too_deep": "foreign.too_deep", "duplicate_name": "foreign.duplicate_name"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What a strict reader refuses in a text: a code of ours, and what was found."""

    code: str
    message: str


class Reading(NamedTuple):
    """A text as ctrlrun takes it.

    `readable` is whether its parser takes it at all. `plain` says that the text is the compact print of its value: no fault, no
    float, no integer beyond 64 bits. `usual` says that it is surely a receipt in the shape of its schema. `fault` is the first that
    a strict reader finds.
    """

    value: Any
    readable: bool
    plain: bool
    fault: Fault | None = None
    usual: bool = False


def read(data: bytes) -> Reading:
    """Return what a text holds."""
    try:
        value = orjson.loads(data)
        if orjson.dumps(value) == data:
            if type(value) is dict and is_usual(value):
                return Reading._make((value, True, True, None, True))
            if _is_shallow(data) and not holds_float(value):
                return Reading(value, readable=True, plain=True)
    except (orjson.JSONDecodeError, TypeError):
        pass  # the slow reader says why
    fault = None
    try:
        strict.read(data, max_depth=MAX_DEPTH)
    except strict.ReadError as error:
        fault = Fault(_CODES.get(error.name, "foreign.malformed"), str(error))
        if error.name in {"too_deep", "too_large"}:
            return Reading(None, readable=False, plain=False, fault=fault)
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        fault = fault or Fault("foreign.malformed", f"not read: {type(error).__name__}")
        return Reading(None, readable=False, plain=False, fault=fault)
    return Reading(value, readable=True, plain=False, fault=fault)


_DECODER: Final = json.JSONDecoder()


def _is_shallow(data: bytes) -> bool:
    """Return whether a text that parses has no more brackets than levels are read, so that no level can be too deep."""
    return data.count(b"{") + data.count(b"[") <= MAX_DEPTH


def canonical_bytes(value: Any, *, plain: bool = False) -> bytes | None:  # noqa: ANN401  any JSON value
    """Return the bytes that ctrlrun hashes, None where it refuses the value: a float, a name that is no string, a lone surrogate.

    Members are sorted by code point, not by UTF-16 code unit, and integers have no bound: this is not RFC 8785. `plain` says
    that the value was read from a text that is plain.
    """
    if plain:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if not _is_plain_json(value):
        return None
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        return None


def sha256_of(canonical: bytes) -> str:
    """Return the digest of bytes as ctrlrun prints it."""
    return "sha256:" + sha256(canonical).hexdigest()


def _is_plain_json(value: Any) -> bool:  # noqa: ANN401  any value
    """Return whether a value holds strings, integers, truth values, null, lists and objects only."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if not all(isinstance(name, str) for name in each):
                return False
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
        elif not (each is None or isinstance(each, str | int)):
            return False
    return True
