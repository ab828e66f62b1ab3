"""What a document of runx is, told by its content."""

from __future__ import annotations

import re
from typing import Final

from ledger.canonical import JsonObject
from verify.foreign import Recognised
from verify.foreign.runx.evaluation import CRITERIA_SCHEMA
from verify.foreign.runx.evaluation import VERDICT_SCHEMA as EVALUATION_SCHEMA
from verify.foreign.runx.notary import is_runx_notary
from verify.foreign.runx.receipt import RECEIPT_SCHEMA
from verify.foreign.runx.resume import RESUME_SCHEMA, is_resume
from verify.foreign.runx.single import VERDICT_SCHEMA
from verify.foreign.strict import ReadError, lines, read_object

__all__ = ["recognise_document"]

_KINDS: Final = {
    RECEIPT_SCHEMA: "receipt",
    RESUME_SCHEMA: "resume",
    EVALUATION_SCHEMA: "verdict",
    CRITERIA_SCHEMA: "criteria",
    VERDICT_SCHEMA: "verify-verdict",
}
_MARK: Final = re.compile(rb'"schema"\s*:\s*"(runx\.[a-z0-9_.-]{1,80})"')
"""What is looked for in a text that no strict reader takes."""
_TOP: Final = re.compile(rb'\s*\{\s*"schema"\s*:\s*"(runx\.[a-z0-9_.-]{1,80})"')
_ANY: Final = (b'"runx.', b'"notary_verification"', b'"request_digest"', b'"close"')


def recognise_document(data: bytes) -> Recognised | None:
    """Return what the bytes are, None where they are nothing of runx."""
    if all(mark not in data for mark in _ANY):
        return None
    try:
        value = read_object(data)
    except ReadError:
        return _recognise_text(data)
    if is_runx_notary(data):
        return Recognised("runx", "counter-seal", "runx.hosted_notary_counter_seal.v1")
    if is_resume(value):
        return Recognised("runx", "resume", RESUME_SCHEMA)
    return _recognise_schema(value)


def _recognise_schema(value: JsonObject) -> Recognised | None:
    schema = value.get("schema")
    if not isinstance(schema, str) or not schema.startswith("runx."):
        return None
    return Recognised("runx", _KINDS.get(schema, "other"), schema)


def _recognise_text(data: bytes) -> Recognised | None:
    """Return what bytes are that are no single object of strict JSON: several, one a line, or one that is damaged."""
    first = next(lines(data), None)
    if first is None:
        return None
    try:
        found = _recognise_schema(read_object(first.data))
    except ReadError:
        found = None
    if found is not None and found.kind == "receipt" and first.ended:
        return Recognised("runx", "receipts", found.version)
    # A damaged document says at its top what it was; one whose members are in another order says it anywhere, but alone.
    match = _TOP.match(data)
    marks = {match[1]} if match is not None else set(_MARK.findall(data))
    for schema, kind in _KINDS.items():
        if schema.encode("ascii") in marks:
            return Recognised("runx", kind, schema)
    return None
