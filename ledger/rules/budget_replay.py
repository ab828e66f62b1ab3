"""Budgets re-proved: a fold over receipts in chain order that finds the first act which its limits did not admit.

The fold asks the same functions as the recorder does: it keeps the budgets of all open runs, sets aside what each intent says,
and settles what each outcome and resolution says. Time limits are judged at the close, by the duration that the run gives.

Source: docs/spec/rules/budgets.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger.canonical import MAX_INTEGER
from ledger.members import Charge, Limit
from ledger.receipt import Decision, Intent, Opening, Outcome, Receipt, Resolution, Run, Step
from ledger.rules.amounts import DURATION, UNKNOWN, is_edge
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.budget import (
    Budget,
    Hold,
    Line,
    Refused,
    Reserved,
    admit_child,
    count_closed,
    count_opened,
    count_written,
    draw_of,
    hold,
    kept_time,
    reserve,
    settle,
    settled_of,
    settles_as,
)
from ledger.rules.said import judge_reserved, judge_said, usage_of
from ledger.words import OutcomeStatus, Reason

__all__ = ["BudgetReplay", "BudgetState", "RunState"]

_NO_LINE: Final = Line()
_STRUCTURE: Final = frozenset({"receipts", "depth", "fanout", "concurrency"})


@dataclass(slots=True)
class _RunBudget:
    parent: str | None
    root: str
    budget: Budget
    purses: tuple[str, ...]
    """The runs whose budgets an act of this run draws on: itself and those above it, as far as they have limits."""
    started: dict[str | None, int] = field(default_factory=dict)
    """Child runs by the intent that started them."""
    longest_ms: int = 0
    """The longest act: the run took no less."""
    held: set[str] = field(default_factory=set)
    """Intents of the run that hold something."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The budget of an open run at rest; `started` counts child runs by the intent that started them, "" for none."""

    parent: str | None
    root: str
    budget: Budget
    purses: tuple[str, ...]
    started: Mapping[str, int]
    longest_ms: int


@dataclass(frozen=True, slots=True)
class BudgetState:
    """Budgets at rest: open runs by id, and what intents hold: the run of each, and its amounts."""

    runs: Mapping[str, RunState] = field(default_factory=dict)
    holds: Mapping[str, tuple[str, Hold]] = field(default_factory=dict)


class BudgetReplay:
    """Budgets of the runs of one ledger, folded over its receipts; forgets a tree of runs when its outermost run closes."""

    def __init__(self) -> None:
        self._runs: dict[str, _RunBudget] = {}
        self._holds: dict[str, tuple[str, Hold]] = {}
        """Intent -> its run, and what it holds."""
        self._trees: dict[str, list[str]] = {}

    def budget_of(self, run: str) -> Budget | None:
        """Return the budget of a run as it stands, None for a run that never opened or whose tree is closed."""
        found = self._runs.get(run)
        return None if found is None else found.budget

    def state(self) -> BudgetState:
        """Return the state to go on from."""
        runs = {
            id_: RunState(
                run.parent,
                run.root,
                run.budget,
                run.purses,
                {intent or "": count for intent, count in run.started.items()},
                run.longest_ms,
            )
            for id_, run in self._runs.items()
        }
        return BudgetState(runs, dict(self._holds))

    def resume(self, state: BudgetState) -> None:
        """Go on from a state."""
        for id_, run in state.runs.items():
            started = {intent or None: count for intent, count in run.started.items()}
            self._runs[id_] = _RunBudget(run.parent, run.root, run.budget, run.purses, started, run.longest_ms)
            self._trees.setdefault(run.root, []).append(id_)
        for intent, (run_id, hold_) in state.holds.items():
            self._holds[intent] = (run_id, hold_)
            self._runs[run_id].held.add(intent)

    def tree(self, root: str) -> tuple[str, ...]:
        """Return the runs of the tree whose outermost run is `root`, none where it is not open or not the outermost one."""
        return tuple(self._trees.get(root, ()))

    def budgets_of(self, run: str) -> tuple[Budget, ...]:
        """Return the budgets that an act of this run draws on, nearest run first; runs without limits are left out."""
        return tuple(self._runs[each].budget for each in self._purses(run))

    def child_refused(self, parent: str, intent: str | None, limits: Iterable[Limit]) -> Refused | None:
        """Return what keeps a run, or one of its calls, from starting a child run with these limits, None if nothing does."""
        above = self._runs.get(parent)
        if above is None:
            return None
        line = tuple(self._runs[each].budget for each in self._line(parent))
        return admit_child(line, siblings=above.started.get(intent, 0), limits=limits)

    def soft_limit_passed(self, intent: Intent) -> Refused | None:
        """Return the soft limit that an intent would pass if it stood next, None if it would pass none."""
        budgets = self.budgets_of(intent.run)
        if not any(line.soft is not None for budget in budgets for line in budget.lines.values()):
            return None
        found = reserve(budgets, draw_of(intent.reserved))
        return None if isinstance(found, Refused) else found.asks

    def see(self, index: int, id_: str, receipt: Receipt) -> list[Finding]:
        """Return what one receipt shows, and take it into account. Receipts come in chain order, each once."""
        match receipt:
            case Opening():
                return self._open(index, id_, receipt)
            case Intent():
                return self._intend(index, id_, receipt)
            case Outcome():
                return self._end(index, receipt)
            case Resolution():
                return self._resolve(index, receipt)
            case Run():
                return self._close(index, receipt)
            case Decision():
                findings = self._refuse(index, receipt)
                self._put(receipt.run, count_written(self.budgets_of(receipt.run)))
                return findings
            case Step():
                self._put(receipt.run, count_written(self.budgets_of(receipt.run)))
                return []
            case _:
                return []

    def _open(self, index: int, id_: str, opening: Opening) -> list[Finding]:
        parent = opening.parent_opening if opening.parent_opening in self._runs else None
        findings: list[Finding] = []
        if parent is not None:
            above = self._runs[parent]
            siblings = above.started.get(opening.parent_intent, 0)
            line = tuple(self._runs[each].budget for each in self._line(parent))
            refused = admit_child(line, siblings=siblings, limits=opening.limits)
            above.started[opening.parent_intent] = siblings + 1
            if refused is not None:
                findings.append(_breach(index, refused, child=True))
        root = id_ if parent is None else self._runs[parent].root
        own = (id_,) if opening.limits else ()
        purses = own if parent is None else own + self._runs[parent].purses
        self._runs[id_] = _RunBudget(parent, root, Budget.of(opening.limits), purses)
        self._trees.setdefault(root, []).append(id_)
        self._put(id_, count_opened(self.budgets_of(id_)))
        return findings

    def _intend(self, index: int, id_: str, intent: Intent) -> list[Finding]:
        budgets = self.budgets_of(intent.run)
        if not budgets:
            return []
        draw = draw_of(intent.reserved)
        found = reserve(budgets, draw)
        findings: list[Finding] = []
        if isinstance(found, Refused):
            findings.append(_judge(index, found, draw))
            found = hold(budgets, draw)
        findings += judge_reserved(index, budgets, intent.reserved)
        self.take(id_, intent.run, found)
        return findings

    def take(self, id_: str, run: str, found: Reserved) -> None:
        """Take an intent of a run with what it sets aside of the budgets as they stand now."""
        self._put(run, found.budgets)
        self._holds[id_] = (run, found.hold)
        self._runs[run].held.add(id_)

    def _end(self, index: int, outcome: Outcome) -> list[Finding]:
        found = self._runs.get(outcome.run)
        if found is None:
            return []
        if isinstance(outcome.duration_ms, int):
            found.longest_ms = max(found.longest_ms, outcome.duration_ms)
        if outcome.intent not in self._holds:
            return []
        status = settles_as(outcome.status, outcome.reason)
        return self._settle(index, outcome.intent, status, outcome.charges, usage_of(outcome))

    def _refuse(self, index: int, decision: Decision) -> list[Finding]:
        """Return what speaks against the amounts that a refusal gives: some budget above it has them."""
        budgets = self.budgets_of(decision.run)
        meter, said = decision.meter, (decision.limit, decision.spent, decision.reserved)
        if decision.reason in (Reason.GRANT_LIMIT, Reason.GRANT_PERIOD) or (decision.step and is_edge(meter or "")):
            return []  # the limits of a grant, and the retries of a runbook, are not the budget's
        if meter is None or meter == DURATION or meter in _STRUCTURE or None in said or not budgets:
            return []
        if any(said in _amounts(budget.lines.get(meter, _NO_LINE)) for budget in budgets):
            return []
        return [_contradicted(index, meter, "refused with", said)]

    def _resolve(self, index: int, resolution: Resolution) -> list[Finding]:
        if resolution.intent not in self._holds:
            return []
        happened = resolution.happened == "happened"
        status = OutcomeStatus.COMMITTED if happened else OutcomeStatus.FAILED
        return self._settle(index, resolution.intent, status, resolution.charges)

    def _settle(
        self, index: int, intent: str, status: OutcomeStatus, charges: Sequence[Charge], usage: Sequence[Charge] = ()
    ) -> list[Finding]:
        run, held = self._holds.pop(intent)
        settled = settled_of(charges)
        budgets = self.budgets_of(run)
        after, kept = settle(budgets, held, status, settled)
        if kept:
            self._holds[intent] = (run, kept)
        else:
            self._runs[run].held.discard(intent)
        self._put(run, after)
        findings: list[Finding] = [
            Breach("budget.overspent", index, f"{meter}: spent {line.spent + line.reserved}, limit {line.limit}")
            for old, new in zip(budgets, after, strict=True)
            for meter in settled  # nothing else can come to cost more than it had set aside
            if (line := new.lines.get(meter, _NO_LINE)).limit is not None and _passes(line, old.lines[meter])
        ]
        findings += judge_said(index, budgets, held, status, charges, usage, contradicted="budget.contradicted")
        return findings

    def _close(self, index: int, run: Run) -> list[Finding]:
        found = self._runs.get(run.run)
        if found is None:
            return []
        findings: list[Finding] = []
        line = found.budget.lines.get(DURATION)
        if line is not None and line.limit is not None:
            known = run.duration_ms != "unknown"
            took = max(found.longest_ms, run.duration_ms if isinstance(run.duration_ms, int) else 0)
            if not kept_time(found.budget, took):
                findings.append(
                    Breach(
                        "budget.over_time", index, f"duration_ms: took {took}, limit {line.limit}, grace {line.grace}"
                    )
                )
            elif not known:
                findings.append(Doubt("budget.time_unknown", index, f"duration_ms: limit {line.limit}, took unknown"))
        for total in run.totals:
            counted = found.budget.lines.get(total.meter, _NO_LINE).spent
            # What is restated from elsewhere may be known in sum only.
            if counted != total.value and found.budget.is_limited() and run.source is None:
                findings.append(_contradicted(index, total.meter, f"spent {counted}, closed with", total.value))
        self._put(run.run, count_closed(self.budgets_of(run.run)))
        if run.run == found.root:
            self._forget(run.run)
        return findings

    def _forget(self, root: str) -> None:
        for run in self._trees.pop(root, ()):
            for intent in self._runs.pop(run).held:
                del self._holds[intent]

    def _line(self, run: str) -> list[str]:
        """Return a run and the runs above it."""
        line: list[str] = []
        at: str | None = run
        while at is not None and at in self._runs:
            line.append(at)
            at = self._runs[at].parent
        return line

    def _purses(self, run: str) -> tuple[str, ...]:
        found = self._runs.get(run)
        return () if found is None else found.purses

    def _put(self, run: str, budgets: tuple[Budget, ...]) -> None:
        for each, budget in zip(self._purses(run), budgets, strict=True):
            self._runs[each].budget = budget


def _amounts(line: Line) -> tuple[tuple[int, int, int], ...]:
    """Return what a refusal by this meter may give as limit, spent and reserved."""
    hard = MAX_INTEGER if line.limit is None else line.limit
    found = ((hard, line.spent, line.reserved),)
    return found if line.soft is None else (*found, (line.soft, line.spent, line.reserved))


def _contradicted(index: int, meter: str, word: str, said: object) -> Breach:
    return Breach("budget.contradicted", index, f"{meter}: {word} {said}")


def _passes(line: Line, before: Line) -> bool:
    """Return whether a limited meter stands past its limit and grace, farther than before."""
    total = line.spent + line.reserved
    return total > (line.limit or 0) + line.grace and total > before.spent + before.reserved


def _judge(index: int, refused: Refused, draw: dict[str, int | str]) -> Finding:
    """Return what a refused intent shows: one whose price is said to be unknown leaves it open."""
    if refused.reason is Reason.PRICE_UNKNOWN and draw.get(refused.meter) == UNKNOWN:
        return Doubt("budget.basis_unknown", index, refused.message)
    return _breach(index, refused)


def _breach(index: int, refused: Refused, *, child: bool = False) -> Breach:
    if refused.reason is Reason.OVERRUN:
        code = "budget.act_after_overrun"
    elif refused.reason is Reason.PRICE_UNKNOWN:
        code = "budget.unknown_price"
    elif child and refused.meter not in _STRUCTURE:
        code = "budget.widened"
    elif refused.meter in _STRUCTURE:
        code = "budget.structure"
    elif is_edge(refused.meter):
        code = "budget.attempts"
    else:
        code = "budget.overspent"
    return Breach(code, index, refused.message)
