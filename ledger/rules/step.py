"""The step cursor: which step of a runbook is current, where it may go, and which tools exist there.

- The scope is that of the current step alone. Before the first step and between steps there is none.
- From a step that is completed a run goes to `next`; from one that failed to `on_fail`; along an edge with a retry budget as often
  as that says. Nowhere else.
- A retry budget that runs out ends the procedure: no step is entered after it.
- A run may end at a terminal that is completed.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ledger.rules.deviation import Deviates, Deviation
from ledger.rules.runbook import Envelope

__all__ = ["Cursor", "StepEnd", "abort", "at_terminal", "due", "enter", "leave", "move", "scope"]


class StepEnd(StrEnum):
    """How a step ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    BLOCKED = "blocked"
    """It halts: nobody could tell whether it did what it should, and a person has to say."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a run stands in its runbook."""

    step: str | None = None
    """The current step."""
    last: str | None = None
    """The step before it."""
    ended: StepEnd | None = None
    """How that one ended."""
    taken: Mapping[str, int] = field(default_factory=dict)
    """Edge -> how often it was taken."""
    aborted: bool = False


def enter(envelope: Envelope, cursor: Cursor, step: str) -> Cursor | Deviates:
    """Return the cursor in a step, or why the run may not go there now."""
    if step not in envelope.steps:
        return _out_of_order(f"step {step!r}: the runbook contains none of that name")
    if cursor.aborted:
        return _out_of_order(f"step {step!r}: a retry budget ran out before, which ended the procedure")
    if cursor.step is not None:
        return _out_of_order(f"step {step!r}: {cursor.step!r} is current")
    edge = f"{cursor.last}->{step}"
    limit, taken = envelope.budgets.get(edge), cursor.taken.get(edge, 0)
    if limit is not None and taken >= limit:
        message = f"{edge}: taken {taken} times, limit {limit}"
        return Deviates(Deviation.BUDGET_EXHAUSTED, message, edge, limit, taken)
    if limit is None and step != _following(envelope, cursor):
        return _out_of_order(f"step {step!r}: it does not follow {_word(cursor)}")
    return move(cursor, step)


def move(cursor: Cursor, step: str) -> Cursor:
    """Return the cursor in a step, whether it may be there or not; the edge that leads to it is counted."""
    edge = f"{cursor.step or cursor.last}->{step}"
    return replace(cursor, step=step, taken={**cursor.taken, edge: cursor.taken.get(edge, 0) + 1})


def leave(cursor: Cursor, ended: StepEnd) -> Cursor:
    """Return the cursor after its step ended."""
    return replace(cursor, step=None, last=cursor.step, ended=ended)


def abort(cursor: Cursor) -> Cursor:
    """Return the cursor after a retry budget ran out."""
    return replace(cursor, aborted=True)


def scope(envelope: Envelope, cursor: Cursor, tool: str) -> Deviates | None:
    """Return why a tool does not exist at the current step, None if it does."""
    if tool not in envelope.allowlist:
        return Deviates(Deviation.UNDECLARED_TOOL, f"tool {tool!r}: the runbook does not declare it")
    current = envelope.steps.get(cursor.step or "")
    if current is None:
        return Deviates(Deviation.OUT_OF_SCOPE_TOOL, f"tool {tool!r}: no step is current")
    if tool not in current.tools:
        return Deviates(Deviation.OUT_OF_SCOPE_TOOL, f"tool {tool!r}: step {cursor.step!r} does not declare it")
    return None


def at_terminal(envelope: Envelope, cursor: Cursor) -> bool:
    """Return whether a run may end here."""
    return cursor.step is None and cursor.last in envelope.terminals and cursor.ended is StepEnd.COMPLETED


def due(envelope: Envelope, cursor: Cursor) -> str | None:
    """Return the step that is current, else the one that follows without a retry; None where the procedure is over or halts."""
    return cursor.step or (None if cursor.aborted else _following(envelope, cursor))


def _following(envelope: Envelope, cursor: Cursor) -> str | None:
    """Return the step that follows without a retry, None where none does."""
    if cursor.last is None:
        return envelope.start
    last = envelope.steps.get(cursor.last)
    if last is None or cursor.ended is None or cursor.ended is StepEnd.BLOCKED:
        return None
    return last.next if cursor.ended is StepEnd.COMPLETED else last.on_fail


def _word(cursor: Cursor) -> str:
    return "the start" if cursor.last is None else f"{cursor.last!r}, which is {cursor.ended}"


def _out_of_order(message: str) -> Deviates:
    return Deviates(Deviation.OUT_OF_ORDER_STEP, message)
