"""Deviations: what was kept from running, in the five words of the contract. Each is a receipt, none is dropped.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from ledger.receipt import Decision
from ledger.rules.amounts import is_edge
from ledger.words import Reason

__all__ = ["Deviates", "Deviation", "class_of"]


class Deviation(StrEnum):
    """The closed list of the contract."""

    UNDECLARED_TOOL = "undeclared-tool"
    OUT_OF_SCOPE_TOOL = "out-of-scope-tool"
    OUT_OF_ORDER_STEP = "out-of-order-step"
    BUDGET_EXHAUSTED = "budget-exhausted"
    TERMINAL_NOT_REACHED = "terminal-not-reached"


_BY_REASON: Final = {
    Reason.SCOPE_UNDECLARED_TOOL: Deviation.UNDECLARED_TOOL,
    Reason.SCOPE_OUT_OF_SCOPE_TOOL: Deviation.OUT_OF_SCOPE_TOOL,
    Reason.SCOPE_OUT_OF_ORDER_STEP: Deviation.OUT_OF_ORDER_STEP,
}
_REASONS: Final = {deviation: reason for reason, deviation in _BY_REASON.items()} | {
    Deviation.BUDGET_EXHAUSTED: Reason.LIMIT,
    Deviation.TERMINAL_NOT_REACHED: Reason.TERMINAL_NOT_REACHED,
}


@dataclass(frozen=True, slots=True)
class Deviates:
    """Something that a runbook does not let happen."""

    deviation: Deviation
    message: str
    edge: str | None = None
    """For an exhausted budget: the edge, its limit and how often it was taken."""
    limit: int = 0
    taken: int = 0

    @property
    def reason(self) -> Reason:
        """The reason that its receipt gives."""
        return _REASONS[self.deviation]

    @property
    def status(self) -> Literal["denied", "blocked"]:
        """The status of its decision: the state of the run said no, or the runbook did."""
        return "blocked" if self.deviation is Deviation.BUDGET_EXHAUSTED else "denied"


def class_of(decision: Decision) -> Deviation | None:
    """Return the deviation that a decision records, None for one that records none."""
    if decision.step is not None and decision.reason is Reason.LIMIT and is_edge(decision.meter or ""):
        return Deviation.BUDGET_EXHAUSTED
    return _BY_REASON.get(decision.reason)
