"""Profiles: how much of a runbook is enforced, how much it asks for, and what an adapter must see for that.

- A runbook's minimum is what it declares, and no less than what its work implies: R2 for destructive or irreversible work, R1 for
  an autonomous agent, else R0.
- A profile is bounded by what the adapter publishes that it sees, whatever the client claims. A coverage that is not known sees
  too little.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ledger.digest import is_digest
from ledger.rules.errors import RunbookError
from ledger.rules.shape import Shape
from ledger.words import Profile, Risk

__all__ = [
    "ADAPTERS",
    "COVERAGE",
    "STATEMENT_SCHEMA",
    "Coverage",
    "Mode",
    "at_least",
    "coverage_of",
    "exceeds",
    "implied_minimum",
    "is_destructive",
]

STATEMENT_SCHEMA: Final = "receipt-ledger.coverage/v1"
_SHAPE: Final = Shape("coverage", RunbookError)
_ORDER: Final = {profile: place for place, profile in enumerate(Profile)}
_HARM: Final = {risk: place for place, risk in enumerate(Risk)}


class Mode(StrEnum):
    """Who executes a runbook, as it declares."""

    HUMAN_ONLY = "human-only"
    HUMAN_WITH_AGENT = "human-with-agent"
    AGENT_AUTONOMOUS = "agent-autonomous"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an adapter publishes: whether it observes every invocation of a tool, and what it does not see."""

    complete: bool
    unseen: tuple[str, ...] = ()


COVERAGE: Final = {
    "one-process": Coverage(complete=False, unseen=("files", "network", "descendants")),
    "reported-calls": Coverage(complete=False, unseen=("calls-not-reported",)),
    "mcp-proxy": Coverage(complete=False, unseen=("shell",)),
    "in-loop": Coverage(complete=False, unseen=("calls-not-routed",)),
    "in-loop-routed": Coverage(complete=True),
    "tool-call-hook": Coverage(complete=True),
}
"""Coverage word of docs/reference/adapters.md -> what it says."""

ADAPTERS: Final = {
    "command": "one-process",
    "python": "reported-calls",
    "mcp-proxy": "mcp-proxy",
    "in-loop": "in-loop",
    "in-loop-routed": "in-loop-routed",
    "hook": "tool-call-hook",
}
"""Name of an adapter -> its coverage word."""


def coverage_of(word: str, statement: bytes | None = None) -> Coverage:
    """Return what a coverage says: a word of the list, or the digest of a statement that is given. Anything else sees too little.

    Raises:
        RunbookError: the statement is not of its form.
    """
    if word in COVERAGE:
        return COVERAGE[word]
    if statement is None or not is_digest(word):
        return Coverage(complete=False, unseen=("unknown",))
    found = _SHAPE.members(
        _SHAPE.canonical(statement), "statement", required=("schema", "adapter", "sees", "unseen"), optional=()
    )
    if found["schema"] != STATEMENT_SCHEMA:
        raise _SHAPE.refuse("schema", found["schema"], STATEMENT_SCHEMA, code="runbook.unknown")
    _SHAPE.text(found["adapter"], "adapter")
    sees, unseen = _SHAPE.texts(found["sees"], "sees"), _SHAPE.texts(found["unseen"], "unseen")
    return Coverage(complete=bool(sees) and not unseen, unseen=unseen)


def is_destructive(risk: Risk) -> bool:
    """Return whether what a step does cannot simply be taken back."""
    return risk in (Risk.DESTRUCTIVE, Risk.IRREVERSIBLE)


def exceeds(risk: Risk, ceiling: Risk) -> bool:
    """Return whether a risk is above a ceiling."""
    return _HARM[risk] > _HARM[ceiling]


def at_least(profile: Profile, minimum: Profile) -> bool:
    """Return whether a profile enforces all that another does."""
    return _ORDER[profile] >= _ORDER[minimum]


def implied_minimum(mode: Mode, risks: frozenset[Risk]) -> Profile:
    """Return the least profile that work of these risks may be run under."""
    if any(map(is_destructive, risks)):
        return Profile.R2
    return Profile.R1 if mode is Mode.AGENT_AUTONOMOUS else Profile.R0
