"""Policy envelopes: what a runbook authorizes while it runs, step by step, read strictly.

    {"schema": "receipt-ledger.runbook-envelope/v1", "document": "sha256:...", "mode": "agent-autonomous",
     "allowlist": ["db.read", "db.drop"], "start": "count", "terminals": ["done"], "undeclared": [],
     "budgets": {"drop->count": 2},
     "steps": {"count": {"tools": ["db.read"], "gated": false, "risk": "read-only", "next": "drop"},
               "drop": {"tools": ["db.drop"], "gated": true, "risk": "destructive", "next": "done", "on_fail": "count"},
               "done": {"tools": [], "gated": false, "risk": "read-only"}}}

- An envelope never grants what its document does not declare: a tool outside the allowlist is in no step's scope.
- A destructive or irreversible step is always gated.
- A retry budget is counted and finite.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.digest import digest, is_digest
from ledger.errors import clip
from ledger.rules.assertion import Assertion, parse_assertions
from ledger.rules.document import read_object
from ledger.rules.errors import RunbookError
from ledger.rules.profile import Mode, at_least, implied_minimum, is_destructive
from ledger.rules.shape import Shape
from ledger.words import Profile, Risk

__all__ = ["ENVELOPE_SCHEMA", "Envelope", "Step", "parse_envelope", "read_envelope"]

ENVELOPE_SCHEMA: Final = "receipt-ledger.runbook-envelope/v1"
_SHAPE: Final = Shape("envelope", RunbookError)
_STEP_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_TRUST: Final = re.compile(r"T[0-9]")
_MOST_RETRIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """What one step may do, and where it goes."""

    tools: tuple[str, ...]
    gated: bool
    risk: Risk
    next: str | None = None
    on_fail: str | None = None
    expect: bool = False
    """Whether the document has prose for the reader about what should come of it. It is never evaluated."""
    asserts: tuple[Assertion, ...] = ()
    body: str | None = None
    """Digest of its text."""
    trust: str = "T0"

    @property
    def instructs(self) -> bool:
        """Whether its text may be taken for an instruction. Below trust T2 it is an artifact: input, and never more."""
        return self.trust >= "T2"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A policy envelope, read, with the canonical bytes that are kept and their digest."""

    document: str
    """Digest of the runbook that it was derived from."""
    mode: Mode
    allowlist: tuple[str, ...]
    start: str
    steps: Mapping[str, Step]
    budgets: Mapping[str, int]
    terminals: tuple[str, ...]
    undeclared: tuple[tuple[str, str], ...]
    """Step and tool: what the document asks for without declaring it. In no scope."""
    declared_minimum: Profile | None
    data: bytes
    digest: str

    @property
    def risks(self) -> frozenset[Risk]:
        """The risks of its steps."""
        return frozenset(step.risk for step in self.steps.values())

    @property
    def minimum(self) -> Profile:
        """The least profile that it may be run under: what it declares, and no less than its work implies."""
        implied = implied_minimum(self.mode, self.risks)
        said = self.declared_minimum
        return said if said is not None and at_least(said, implied) else implied


def read_envelope(data: bytes) -> Envelope:
    """Return the envelope of a file; white space and the order of members are free.

    Raises:
        RunbookError: not JSON of this shape, or one that grants more than it declares.
    """
    return parse_envelope(canonical.encode(read_object(data, "envelope", RunbookError)))


def parse_envelope(data: bytes) -> Envelope:
    """Return the envelope whose canonical bytes are `data`.

    Raises:
        RunbookError: not canonical, not of this shape, or one that grants more than it declares.
    """
    value = _SHAPE.canonical(data)
    if value.get("schema") != ENVELOPE_SCHEMA:
        raise _SHAPE.refuse("schema", value.get("schema"), ENVELOPE_SCHEMA, code="runbook.unknown")
    envelope = _envelope_of(value, data)
    _refuse_grants(envelope)
    _refuse_places(envelope)
    _refuse_loops(envelope)
    return envelope


def _envelope_of(value: JsonObject, data: bytes) -> Envelope:
    found = _SHAPE.members(
        value,
        "envelope",
        required=("schema", "document", "mode", "allowlist", "start", "steps", "budgets", "terminals", "undeclared"),
        optional=("min_runtime_profile",),
    )
    document = _SHAPE.text(found["document"], "document")
    if not is_digest(document):
        raise _SHAPE.refuse("document", document, "a digest")
    steps = {
        _id(name, "steps"): _step(each, f"steps.{clip(name)}")
        for name, each in _SHAPE.mapping(found["steps"], "steps").items()
    }
    budgets = {
        edge: _SHAPE.count(times, f"budgets.{clip(edge)}", _MOST_RETRIES)
        for edge, times in _SHAPE.mapping(found["budgets"], "budgets").items()
    }
    undeclared = []
    for place, each in enumerate(_SHAPE.items(found["undeclared"], "undeclared")):
        inner = _SHAPE.members(each, f"undeclared[{place}]", required=("step", "tool"))
        undeclared.append((_SHAPE.text(inner["step"], "undeclared"), _SHAPE.text(inner["tool"], "undeclared")))
    said = found.get("min_runtime_profile")
    return Envelope(
        document=document,
        mode=_SHAPE.word(found["mode"], "mode", Mode),
        allowlist=_SHAPE.texts(found["allowlist"], "allowlist"),
        start=_SHAPE.text(found["start"], "start"),
        steps=steps,
        budgets=budgets,
        terminals=_SHAPE.texts(found["terminals"], "terminals"),
        undeclared=tuple(undeclared),
        declared_minimum=None if said is None else _SHAPE.word(said, "min_runtime_profile", Profile),
        data=data,
        digest=digest(data),
    )


def _step(value: object, where: str) -> Step:
    found = _SHAPE.members(
        value,
        where,
        required=("tools", "gated", "risk"),
        optional=("next", "on_fail", "expect", "assert", "body", "trust"),
    )
    body = found.get("body")
    trust = _SHAPE.text(found.get("trust", "T0"), f"{where}.trust")
    if _TRUST.fullmatch(trust) is None:
        raise _SHAPE.refuse(f"{where}.trust", trust, "T0 to T9")
    if body is not None and not is_digest(_SHAPE.text(body, f"{where}.body")):
        raise _SHAPE.refuse(f"{where}.body", body, "a digest")
    following, on_fail = found.get("next"), found.get("on_fail")
    return Step(
        tools=_SHAPE.texts(found["tools"], f"{where}.tools"),
        gated=_SHAPE.flag(found["gated"], f"{where}.gated"),
        risk=_SHAPE.word(found["risk"], f"{where}.risk", Risk),
        next=None if following is None else _SHAPE.text(following, f"{where}.next"),
        on_fail=None if on_fail is None else _SHAPE.text(on_fail, f"{where}.on_fail"),
        expect=_SHAPE.flag(found.get("expect", False), f"{where}.expect"),
        asserts=parse_assertions(_SHAPE, found.get("assert", []), f"{where}.assert"),
        body=body,
        trust=trust,
    )


def _id(name: str, where: str) -> str:
    if _STEP_ID.fullmatch(name) is None:
        raise _SHAPE.refuse(where, name, "an id of letters, digits, _, . and -")
    return name


def _refuse_grants(envelope: Envelope) -> None:
    """Raise where a step may use what is not declared, or does harm without a gate."""
    for name, step in envelope.steps.items():
        for tool in step.tools:
            if tool not in envelope.allowlist:
                raise _SHAPE.refuse(f"steps.{name}.tools", tool, "a tool of the allowlist", code="runbook.widened")
        if is_destructive(step.risk) and not step.gated:
            raise RunbookError(f"envelope: steps.{name}: it is {step.risk} and not gated", code="runbook.ungated")
    for name, tool in envelope.undeclared:
        if tool in envelope.allowlist or name not in envelope.steps:
            raise _SHAPE.refuse("undeclared", [name, tool], "a step, and a tool that the allowlist does not hold")


def _refuse_places(envelope: Envelope) -> None:
    """Raise where a step leads to none, or the run could not end."""
    places = [("start", envelope.start), *(("terminals", each) for each in envelope.terminals)]
    for name, step in envelope.steps.items():
        places += [
            (f"steps.{name}.{word}", target)
            for word, target in (("next", step.next), ("on_fail", step.on_fail))
            if target is not None
        ]
        if (name in envelope.terminals) == (step.next is not None):
            expected = "none at a terminal" if step.next is not None else "a step, or this one among the terminals"
            raise _SHAPE.refuse(f"steps.{name}.next", step.next, expected)
    places += [(f"budgets.{clip(edge)}", side) for edge in envelope.budgets for side in edge.partition("->")[::2]]
    for where, target in places:
        if target not in envelope.steps:
            raise _SHAPE.refuse(where, target, "one of the steps")
    if not envelope.terminals:
        raise RunbookError("envelope: terminals: got none, expected one at least")


def _refuse_loops(envelope: Envelope) -> None:
    """Raise where a run could go round for ever: every loop has an edge with a retry budget, which is finite."""
    into = dict.fromkeys(envelope.steps, 0)
    free = {
        name: {
            each for each in (step.next, step.on_fail) if each is not None and f"{name}->{each}" not in envelope.budgets
        }
        for name, step in envelope.steps.items()
    }
    for targets in free.values():
        for each in targets:
            into[each] += 1
    ready = [name for name, count in into.items() if not count]
    left = len(into)
    while ready:
        left -= 1
        for each in free[ready.pop()]:
            into[each] -= 1
            if not into[each]:
                ready.append(each)
    if left:
        looped = sorted(name for name, count in into.items() if count)
        raise RunbookError(
            f"envelope: steps: {', '.join(looped[:5])} go round without a retry budget", code="runbook.loop"
        )
