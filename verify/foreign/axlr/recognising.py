"""What a document of AXLR is, told by its content."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from ledger.canonical import JsonObject
from verify.foreign import Recognised
from verify.foreign.axlr.objects import is_session, wrapped_kind
from verify.foreign.axlr.result import RESULT_SCHEMA
from verify.foreign.axlr.stream import is_event
from verify.foreign.strict import ReadError, lines, read_object

__all__ = ["recognise_document"]

_FAMILY: Final = "axlr.execution-result/"
_MARK: Final = re.compile(rb'"schema"\s*:\s*"(axlr\.execution-result/v[0-9]{1,4})"')
_SMALL_BYTES: Final = 1 << 20
_LOOKED_AT: Final = 8
"""Lines at the start that must all be events where no result says what they are."""


def recognise_document(data: bytes) -> Recognised | None:
    """Return what the bytes are, None where they are nothing of AXLR."""
    first = next(lines(data), None)
    if first is None:
        return None
    if first.ended or first.data.lstrip()[:1] == b"{":
        event = _object(first.data)
        if event is not None and is_event(event):
            return _recognise_events(data, event)
    value = _object(data)
    if value is None:
        match = _MARK.search(data)
        return Recognised("axlr", "result", match[1].decode("ascii")) if match is not None else None
    schema = value.get("schema")
    if isinstance(schema, str) and schema.startswith(_FAMILY):
        return Recognised("axlr", "result", schema)
    if is_session(value):
        return Recognised("axlr", "session", RESULT_SCHEMA)
    kind = wrapped_kind(value) if len(data) <= _SMALL_BYTES else None
    return Recognised("axlr", kind, "v1") if kind is not None else None


def _recognise_events(data: bytes, event: JsonObject) -> Recognised | None:
    if "sequence" in event:
        return Recognised("axlr", "journal", RESULT_SCHEMA)
    if _MARK.search(data) is not None:
        return Recognised("axlr", "stream", RESULT_SCHEMA)
    # Without a result only the first lines can tell: they are all of the contract, and the first one starts a session.
    head = [_object(line.data) for line in islice(lines(data), _LOOKED_AT) if line.ended]
    known = all(each is not None and is_event(each) for each in head)
    return Recognised("axlr", "stream", "unknown") if event["type"] == "session" and known else None


def _object(data: bytes) -> JsonObject | None:
    try:
        return read_object(data)
    except ReadError:
        return None
