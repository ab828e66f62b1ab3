"""What a foreign document says, in our words and nothing more: what a mapping yields and an import records.

    Facts((RunFact("axlr.execution", "completed", document, (CallFact("local_read", "committed", document), ...)),))

A mapping is a pure function of the documents. Each fact names the document that says it; the receipts made of it carry that
name as their `source`, so that nobody takes them for something this ledger saw.

- A call that ran is an intent and an outcome, one that did not is a decision, as with our own.
- A run is closed as soon as it is recorded. Nothing of it waits for an answer here.
- No limits, policy, approvals or grants: those of the other system are not rules of this ledger. They stay in the document, and
  are checked again by its own rules.

Source: docs/spec/words.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ledger.canonical import JsonObject
from ledger.members import Actor, Charge, CurrencyAmount
from ledger.words import Access, Reason, RunStatus

__all__ = ["CallFact", "CallStatus", "Fact", "Facts", "RunFact", "StepFact", "name_of"]

CallStatus: TypeAlias = Literal["committed", "failed", "ambiguous", "denied", "blocked", "waiting"]
"""Outcomes, and decisions by which nothing ran."""
_UNKNOWN: Final = Actor(agent="unknown", user="unknown", model="unknown")
_LONGEST: Final = 256


@dataclass(frozen=True, slots=True)
class CallFact:
    """One act. `arguments` is kept as an artifact, `inline` in the receipt itself."""

    name: str
    status: CallStatus
    document: str
    """Digest of the document that says it."""
    tool: str | None = None
    """The act's name, where None."""
    tool_version: str = "unknown"
    access: Access | Literal["unknown"] = "unknown"
    reason: Reason | None = None
    rule: str | None = None
    arguments: JsonObject | None = None
    inline: JsonObject = field(default_factory=dict)
    resource: str = "unknown"
    environment: str = "unknown"
    amount: CurrencyAmount | None = None
    effect: tuple[str, int] | None = None
    """Effect key and attempt."""
    charges: tuple[Charge, ...] = ()
    usage: tuple[Charge, ...] = ()
    duration_ms: int | None = None
    exit_code: int | None = None
    inside: tuple[Fact, ...] = ()
    """What happened inside the call."""


@dataclass(frozen=True, slots=True)
class StepFact:
    """A group of what happened."""

    name: str
    status: Literal["completed", "failed", "blocked"]
    document: str
    members: tuple[Fact, ...] = ()
    reason: Reason | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RunFact:
    """One run. `follows` is a word of the format's own under which a later document finds this run, such as a session's id."""

    name: str
    status: RunStatus
    document: str
    members: tuple[Fact, ...] = ()
    reason: Reason | None = None
    actor: Actor = _UNKNOWN
    adapter: str = "import"
    coverage: str = "imported"
    correlation: Mapping[str, str] = field(default_factory=dict)
    totals: tuple[CurrencyAmount, ...] = ()
    duration_ms: int | None = None
    continues: str | None = None
    """Run id of an earlier import that this one goes on from."""


Fact: TypeAlias = CallFact | StepFact | RunFact
"""A run inside another fact stands as a step of its name."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that some documents say."""

    runs: tuple[RunFact, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person should know of the mapping: what it left out, and why."""


def name_of(text: object, otherwise: str = "unknown") -> str:
    """Return a text as a receipt can hold it as a name: without control characters, at most 256, never empty."""
    if not isinstance(text, str):
        return otherwise
    kept = "".join(each for each in text[: 2 * _LONGEST] if each >= " " and not "\x7f" <= each <= "\x9f")[:_LONGEST]
    return kept.encode("utf-8", "replace").decode("utf-8") or otherwise
