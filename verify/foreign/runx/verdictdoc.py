"""Verdict documents of runx, `runx.verify_verdict.v1`: whether one says of itself what its findings say.

A verdict is a claim of the program that wrote it; nothing in it is signed.

Source: runx 0.8.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ledger.canonical import JsonObject, JsonValue
from verify.foreign.shape import ANY_TEXT, BOOLEAN, TEXT, Misfit, Shape, each, one_of

__all__ = ["verdict_misfits"]

_STATUS: Final = one_of("valid|invalid|not_evaluated")


def _text_or_null(value: JsonValue, path: str) -> Iterator[Misfit]:
    if value is not None:
        yield from TEXT(value, path)


_COMPARED: Final = Shape({"status*": _STATUS, "expected*": _text_or_null, "actual*": _text_or_null})
_VERDICT: Final = Shape(
    {
        "schema*": TEXT,
        "receipt_id*": _text_or_null,
        "valid*": BOOLEAN,
        "digest*": _COMPARED,
        "content_address*": _COMPARED,
        "signature*": Shape(
            {"mode*": one_of("production|local-development"), "status*": _STATUS, "kid*": _text_or_null}
        ),
        "lineage*": Shape({"status*": one_of("unverified"), "message*": ANY_TEXT}),
        "findings*": each(Shape({"code*": TEXT, "path*": ANY_TEXT, "message*": ANY_TEXT})),
    }
)


def verdict_misfits(value: JsonObject) -> tuple[Misfit, ...]:
    """Return what does not fit in a verdict, or contradicts another part of it."""
    return tuple(_VERDICT(value, "")) or tuple(_contradictions(value))


def _contradictions(value: JsonObject) -> Iterator[Misfit]:
    if value["valid"] != (not value["findings"]):
        yield Misfit("valid", f"got {value['valid']}, with {len(value['findings'])} findings")
    for name in ("digest", "content_address"):
        part = value[name]
        same = part["expected"] is not None and part["expected"] == part["actual"]
        if part["status"] != "not_evaluated" and (part["status"] == "valid") != same:
            yield Misfit(f"{name}.status", f"got {part['status']}, and the two digests say otherwise")
        if value["valid"] and part["status"] != "valid":
            yield Misfit(f"{name}.status", f"got {part['status']} in a verdict that calls the receipt valid")
    if value["valid"] and value["signature"]["status"] != "valid":
        yield Misfit("signature.status", "got another status than valid in a verdict that calls the receipt valid")
