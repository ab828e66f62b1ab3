"""From the elements of a runbook to its policy envelope: derived, never written by hand, the same by whoever derives it.

    {"schema": "receipt-ledger.runbook/v1", "mode": "human-with-agent", "capabilities": ["db.read"],
     "steps": [{"id": "count", "tool": "db.read", "risk": "read-only", "retry": {"count": 2}, "on_fail": "stop"},
               {"id": "stop", "terminal": true}]}

- Steps follow each other as they stand; a terminal ends the run.
- `tools` of a step are what it names and the document declares. What it names beyond that is `undeclared`, and in no scope.
- A step is gated if it says so, and always if it is destructive or irreversible.

Source: docs/spec/rules/runbooks.md, "Deriving".
"""

from __future__ import annotations

from typing import Any, Final

from ledger import canonical
from ledger.canonical import JsonObject, JsonValue
from ledger.digest import digest
from ledger.rules.document import read_object
from ledger.rules.errors import RunbookError
from ledger.rules.profile import Mode, is_destructive
from ledger.rules.runbook import ENVELOPE_SCHEMA, Envelope, parse_envelope
from ledger.rules.shape import LONGEST, Shape
from ledger.words import Profile, Risk

__all__ = ["RUNBOOK_SCHEMA", "derive"]

RUNBOOK_SCHEMA: Final = "receipt-ledger.runbook/v1"
_SHAPE: Final = Shape("runbook", RunbookError)
_LONGEST_TEXT: Final = 100_000


def derive(data: bytes) -> Envelope:
    """Return the envelope of a runbook's elements; its `document` is the digest of their canonical bytes.

    Raises:
        RunbookError: not JSON of this shape, or its envelope would not be one.
    """
    value = read_object(data, "runbook", RunbookError)
    if value.get("schema") != RUNBOOK_SCHEMA:
        raise _SHAPE.refuse("schema", value.get("schema"), RUNBOOK_SCHEMA, code="runbook.unknown")
    found = _SHAPE.members(
        value, "runbook", required=("schema", "mode", "capabilities", "steps"), optional=("min_runtime_profile",)
    )
    capabilities = _SHAPE.texts(found["capabilities"], "capabilities")
    elements = [_element(each, f"steps[{place}]") for place, each in enumerate(_SHAPE.items(found["steps"], "steps"))]
    if not elements:
        raise RunbookError("runbook: steps: got none")
    ids = [each["id"] for each in elements]
    if len(set(ids)) != len(ids):
        raise RunbookError("runbook: steps: got an id twice")
    undeclared: list[JsonValue] = [
        {"step": each["id"], "tool": tool} for each in elements for tool in each["tools"] if tool not in capabilities
    ]
    budgets: JsonObject = {f"{each['id']}->{to}": times for each in elements for to, times in each["retry"].items()}
    envelope: JsonObject = {
        "schema": ENVELOPE_SCHEMA,
        "document": digest(canonical.encode(value)),
        "mode": _SHAPE.word(found["mode"], "mode", Mode).value,
        "allowlist": list(capabilities),
        "start": ids[0],
        "steps": {
            each["id"]: _step(each, capabilities, following)
            for each, following in zip(elements, [*ids[1:], None], strict=True)
        },
        "budgets": budgets,
        "terminals": [each["id"] for each in elements if each["terminal"]],
        "undeclared": undeclared,
    }
    if "min_runtime_profile" in found:
        envelope["min_runtime_profile"] = _SHAPE.word(
            found["min_runtime_profile"], "min_runtime_profile", Profile
        ).value
    return parse_envelope(canonical.encode(envelope))


def _element(value: object, where: str) -> dict[str, Any]:
    found = _SHAPE.members(
        value,
        where,
        required=("id",),
        optional=(
            *("tool", "risk", "requires_approval", "retry", "terminal", "expect", "assert", "on_fail", "body", "trust"),
        ),
    )
    tool = found.get("tool", [])
    # Where the document does not say how much harm a tool can do, it is not taken to do none.
    risk = found.get("risk", Risk.WRITE.value if tool else Risk.READ_ONLY.value)
    return {
        "id": _SHAPE.text(found["id"], f"{where}.id"),
        "tools": (tool,) if isinstance(tool, str) and tool else _SHAPE.texts(tool, f"{where}.tool"),
        "risk": _SHAPE.word(risk, f"{where}.risk", Risk),
        "gate": _SHAPE.flag(found.get("requires_approval", False), f"{where}.requires_approval"),
        "retry": _SHAPE.mapping(found.get("retry", {}), f"{where}.retry"),
        "terminal": _SHAPE.flag(found.get("terminal", False), f"{where}.terminal"),
        "expect": "expect" in found and bool(_SHAPE.text(found["expect"], f"{where}.expect", longest=_LONGEST_TEXT)),
        "assert": _SHAPE.items(found.get("assert", []), f"{where}.assert"),
        "on_fail": found.get("on_fail"),
        "body": (
            digest(_SHAPE.text(found["body"], f"{where}.body", longest=_LONGEST_TEXT).encode())
            if "body" in found
            else None
        ),
        "trust": _SHAPE.text(found.get("trust", "T0"), f"{where}.trust", longest=LONGEST),
    }


def _step(element: dict[str, Any], capabilities: tuple[str, ...], following: str | None) -> JsonObject:
    step: JsonObject = {
        "tools": [tool for tool in element["tools"] if tool in capabilities],
        "gated": element["gate"] or is_destructive(element["risk"]),
        "risk": element["risk"].value,
        "expect": element["expect"],
        "assert": element["assert"],
        "trust": element["trust"],
    }
    if not element["terminal"] and following is not None:
        step["next"] = following
    for name in ("on_fail", "body"):
        if element[name] is not None:
            step[name] = element[name]
    return step
