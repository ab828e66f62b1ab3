"""Runbooks re-proved: a fold over receipts in chain order that finds an act outside its step, and a step out of its place.

An intent names the step that was current; the first of a step is its beginning, the receipt of the step its end. The recorder
asks the same fold before it admits a step or an act.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ledger.members import Act
from ledger.receipt import Approval, Decision, Evaluation, Intent, Opening, Receipt, Run, Step
from ledger.rules.approval import Approver, Request, answer_of, check_answer, check_approver, request_of
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.deviation import Deviates, Deviation, class_of
from ledger.rules.errors import RunbookError
from ledger.rules.evaluation import ASSERTS, criteria_of
from ledger.rules.policy_replay import DocumentOf
from ledger.rules.profile import Coverage, at_least, coverage_of
from ledger.rules.runbook import Envelope, parse_envelope
from ledger.rules.runbook_derive import RUNBOOK_SCHEMA, derive
from ledger.rules.runbook_start import Refusal, refusals
from ledger.rules.step import Cursor, StepEnd, abort, at_terminal, enter, leave, move, scope
from ledger.words import Profile, Reason, RunStatus

__all__ = ["ASSERT_ACT", "RUNBOOK_TOOL", "STEP_ACT", "BookState", "RunbookReplay", "RunbooksState", "Supervised"]

RUNBOOK_TOOL: Final = "runbook"
"""The tool that the decisions of a supervisor name; nobody runs it."""
STEP_ACT: Final = "runbook.step"
"""The act of entering a step, which is asked for and never recorded as an intent."""
ASSERT_ACT: Final = "runbook.assert"
"""The act of taking a step for done that nobody could evaluate, which only a person approves."""
_OF_POLICIES: Final = ("policy.", "approval.")
"""Beginnings of reasons for which a policy that only observes would not have let an act run; one reason is all that it says."""
_ENDS: Final = {"completed": StepEnd.COMPLETED, "failed": StepEnd.FAILED, "blocked": StepEnd.BLOCKED}
_CODES: Final = {
    Deviation.UNDECLARED_TOOL: "runbook.undeclared_tool",
    Deviation.OUT_OF_SCOPE_TOOL: "runbook.out_of_scope_tool",
    Deviation.OUT_OF_ORDER_STEP: "runbook.out_of_order_step",
    Deviation.BUDGET_EXHAUSTED: "runbook.budget_exhausted",
    Deviation.TERMINAL_NOT_REACHED: "runbook.terminal_not_reached",
}
"""Deviation -> the breach that admitting it is."""


@dataclass(frozen=True, slots=True)
class BookState:
    """One run under a runbook at rest; its policy envelope is kept as its text."""

    envelope: str
    profile: Profile
    refusals: tuple[Refusal, ...]
    cursor: Cursor
    evaluations: Mapping[str, tuple[str, bool]]
    barred: tuple[str, ...]
    asked: Mapping[str, Request]
    passed: Doubt | bool | None


@dataclass(frozen=True, slots=True)
class RunbooksState:
    """A fold over runs under runbooks at rest."""

    runs: Mapping[str, BookState] = field(default_factory=dict)
    unread: Mapping[str, Doubt] = field(default_factory=dict)
    above: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Supervised:
    """One run under a runbook."""

    envelope: Envelope
    profile: Profile
    refusals: tuple[Refusal, ...]
    cursor: Cursor = field(default_factory=Cursor)
    evaluations: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Criteria -> verdict of the newest evaluation since the step began, and whether the supervisor made it."""
    barred: frozenset[str] = frozenset()
    """Names and keys that never say for a person whether a step is done: the agent's, the issuer's."""
    asked: dict[str, Request] = field(default_factory=dict)
    """Requests of a person to say what could not be evaluated, since the step began."""
    passed: Doubt | bool | None = None
    """Whether a person took the current step for done, None where nobody said; a doubt where trust does not name who did."""

    def forget(self) -> None:
        """Forget what was evaluated and answered: another attempt begins."""
        self.evaluations.clear()
        self.asked.clear()
        self.passed = None

    @property
    def enforces(self) -> bool:
        """Whether what deviates is kept from running: at R0 it is only said."""
        return at_least(self.profile, Profile.R1)

    def unproved(self, step: str) -> Reason | None:
        """Return why a step may not be called completed under R2, None if it may."""
        found = self.envelope.steps.get(step)
        if found is None or not at_least(self.profile, Profile.R2):
            return None
        if not found.asserts:
            return Reason.ASSERT_UNEVALUABLE if found.expect else None
        verdict, own = self.evaluations.get(criteria_of(found.asserts).digest, ("inconclusive", True))
        if not own or verdict == "inconclusive":
            return Reason.ASSERT_UNEVALUABLE
        return None if verdict == "met" else Reason.ASSERT_FAILED


class RunbookReplay:
    """Runs under runbooks of one ledger, folded over its receipts."""

    def __init__(self, document_of: DocumentOf, approvers: Mapping[str, Approver] | None = None) -> None:
        self._document_of = document_of
        self._approvers = approvers or {}
        self.runs: dict[str, Supervised] = {}
        """Open run -> how it stands."""
        self._unread: dict[str, Doubt] = {}
        """Open run -> why nothing can be said of it."""
        self._above: dict[str, str] = {}
        """Open child run -> the run above it."""

    def state(self) -> RunbooksState:
        """Return the state to go on from."""
        runs = {
            id_: BookState(
                book.envelope.data.decode(),
                book.profile,
                book.refusals,
                book.cursor,
                dict(book.evaluations),
                tuple(sorted(book.barred)),
                dict(book.asked),
                book.passed,
            )
            for id_, book in self.runs.items()
        }
        return RunbooksState(runs, dict(self._unread), dict(self._above))

    def resume(self, state: RunbooksState) -> None:
        """Go on from a state."""
        for id_, book in state.runs.items():
            self.runs[id_] = Supervised(
                parse_envelope(book.envelope.encode()),
                book.profile,
                book.refusals,
                book.cursor,
                dict(book.evaluations),
                frozenset(book.barred),
                dict(book.asked),
                book.passed,
            )
        self._unread |= state.unread
        self._above |= state.above

    def books(self, run: str) -> tuple[Supervised, ...]:
        """Return the runbooks that an act of a run is under: its own, and those of runs above it."""
        found, at = [], run
        while at:
            if at in self.runs:
                found.append(self.runs[at])
            at = self._above.get(at, "")
        return tuple(found)

    def entry(self, run: str, step: str) -> Deviates | None:
        """Return why a run may not go to a step now, None if it may, or if nothing keeps it from it."""
        book = self.runs.get(run)
        if book is None:
            return None
        found = enter(book.envelope, book.cursor, step)
        return found if isinstance(found, Deviates) else None

    def scope(self, run: str, act: Act, step: str | None) -> tuple[Deviates, bool] | None:
        """Return why an act's tool does not exist where its run stands, and whether that keeps it from running.

        Args:
            run: The run that acts.
            act: The act.
            step: The step of its own runbook that it is in; it may be about to begin.
        """
        weaker = None
        for book in self.books(run):
            cursor = book.cursor
            if book is self.runs.get(run) and step is not None and cursor.step is None:
                cursor = move(cursor, step)
            found = scope(book.envelope, cursor, act.tool.name)
            if found is not None:
                if book.enforces:
                    return found, True
                weaker = weaker or (found, False)
        return weaker

    def gate(self, run: str, step: str | None) -> str | None:
        """Return the step whose gate an act of a run stands before, None if it stands before none. Every profile honours it."""
        own = self.runs.get(run)
        for book in self.books(run):
            at = step if book is own and step is not None else book.cursor.step
            current = book.envelope.steps.get(at or "")
            if current is not None and current.gated:
                return at
        return None

    def see(self, index: int, id_: str, receipt: Receipt, *, now: str) -> list[Finding]:
        """Return what one receipt shows, and take it into account; `now` is `recorded_at` of its entry."""
        match receipt:
            case Opening():
                return self._open(index, id_, receipt)
            case Intent():
                return self._intend(index, receipt)
            case Step():
                return self._end(index, receipt)
            case Decision():
                return self._decide(index, id_, receipt)
            case Evaluation():
                self._evaluate(receipt)
            case Approval():
                self._answer(index, id_, receipt, now)
            case Run():
                return self._close(index, receipt)
            case _:
                pass
        return []

    def _open(self, index: int, id_: str, opening: Opening) -> list[Finding]:
        parent = opening.parent_opening
        if parent in self.runs or parent in self._above or parent in self._unread:
            self._above[id_] = str(parent)
        said = opening.runbook
        if said is None:
            return []
        data = self._document_of(said.envelope)
        if data is None:
            self._unread[id_] = Doubt("runbook.absent", index, f"envelope {said.envelope[:15]}: is not there")
            return [self._unread[id_]]
        try:
            envelope = parse_envelope(data)
        except RunbookError as error:
            self._unread[id_] = Doubt("runbook.unreadable", index, str(error))
            return [self._unread[id_]]
        coverage = self._coverage(opening.adapter.coverage)
        found = refusals(envelope, profile=said.profile, coverage=coverage, ceiling=said.ceiling, allowlist=None)
        barred = frozenset({opening.issuer.key, opening.issuer.name, opening.actor.agent})
        self.runs[id_] = Supervised(envelope, said.profile, found, barred=barred)
        if opening.document != envelope.document:
            message = f"document: got {opening.document}, its envelope was derived from {envelope.document}"
            return [Breach("runbook.other", index, message)]
        if not self._is_derived(envelope):
            return [Breach("runbook.other", index, "its policy envelope is not the one that its document comes to")]
        return []

    def _is_derived(self, envelope: Envelope) -> bool:
        """Return whether an envelope is what its document comes to, as far as that is at hand and is one that we derive from."""
        data = self._document_of(envelope.document)
        if data is None or RUNBOOK_SCHEMA.encode() not in data:
            return True
        try:
            return derive(data).digest == envelope.digest
        except RunbookError:
            return False

    def _coverage(self, word: str) -> Coverage:
        try:
            return coverage_of(word, self._document_of(word))
        except RunbookError:
            return Coverage(complete=False, unseen=("unknown",))

    def _intend(self, index: int, intent: Intent) -> list[Finding]:
        findings: list[Finding] = []
        own = self.runs.get(intent.run)
        if own is not None:
            if own.refusals:
                findings.append(Breach("runbook.not_refused", index, own.refusals[0].message))
            if intent.step is not None and intent.step != own.cursor.step:
                findings += self._begin(index, own, intent.step)
                # What was evaluated before the step's first act says nothing of what it did.
                own.forget()
            elif intent.step is None and own.cursor.step is not None:
                message = f"it names no step while {own.cursor.step!r} is current"
                findings.append(Breach("runbook.out_of_order_step", index, message))
        found = self.scope(intent.run, intent.act, intent.step)
        if found is not None:
            deviates, kept = found
            said = intent.would_have
            if kept:
                findings.append(Breach(_CODES[deviates.deviation], index, deviates.message))
            elif said is None or (said.reason is not deviates.reason and not said.reason.startswith(_OF_POLICIES)):
                findings.append(
                    Breach("runbook.unrecorded", index, f"{deviates.message}, and it does not say that it deviates")
                )
        return findings

    def _begin(self, index: int, book: Supervised, step: str) -> list[Finding]:
        """Take a step as begun, and return what speaks against it."""
        findings: list[Finding] = []
        if book.enforces:
            found = enter(book.envelope, book.cursor, step)
            if isinstance(found, Deviates):
                findings.append(Breach(_CODES[found.deviation], index, found.message))
        book.cursor = move(book.cursor, step)
        return findings

    def _end(self, index: int, step: Step) -> list[Finding]:
        book, ended = self.runs.get(step.run), _ENDS.get(step.status)
        if book is None or ended is None:
            return []
        findings: list[Finding] = []
        if book.cursor.step != step.name:
            findings += self._begin(index, book, step.name)
        why = book.unproved(step.name) if ended is StepEnd.COMPLETED else None
        if isinstance(book.passed, Doubt) and why is Reason.ASSERT_UNEVALUABLE:
            findings.append(Doubt(book.passed.code, index, book.passed.message))
        elif why is Reason.ASSERT_FAILED or (why is not None and not book.passed):
            findings.append(Breach("runbook.not_asserted", index, f"step {step.name!r} is called completed: {why}"))
        book.cursor = leave(book.cursor, ended)
        book.forget()
        return findings

    def _decide(self, index: int, id_: str, decision: Decision) -> list[Finding]:
        book = self.runs.get(decision.run)
        if book is None:
            return []
        if decision.status == "waiting" and decision.act.name == ASSERT_ACT and decision.step is not None:
            book.asked[id_] = request_of(id_, decision)
        if class_of(decision) is Deviation.BUDGET_EXHAUSTED and decision.step is not None:
            found = enter(book.envelope, book.cursor, decision.step)
            book.cursor = abort(book.cursor)
            said = (decision.meter, decision.limit, decision.spent)
            if not isinstance(found, Deviates) or said != (found.edge, found.limit, found.taken):
                return [Breach("runbook.contradicted", index, f"{decision.meter}: it is not exhausted like this")]
        return []

    def _evaluate(self, evaluation: Evaluation) -> None:
        book = self.runs.get(evaluation.run or "")
        if book is not None:
            own = (evaluation.evaluator.package, evaluation.evaluator.method) == ASSERTS
            book.evaluations[evaluation.criteria] = (evaluation.verdict, own)

    def _answer(self, index: int, id_: str, approval: Approval, now: str) -> None:
        """Take the word of a person, who is not the agent, for a step that nobody could evaluate."""
        book = self.runs.get(approval.run or "")
        request = None if book is None else book.asked.get(approval.request or "")
        if book is None or request is None:
            return
        answer = answer_of(id_, approval)
        fault = check_answer(request, answer, now=now)
        fault = fault or check_approver(answer, approvers=self._approvers, barred=book.barred)
        if fault is None:
            book.passed = answer.granted
        elif fault.code == "approval.unpinned" and answer.granted:
            book.passed = Doubt(fault.code, index, fault.message)

    def _close(self, index: int, run: Run) -> list[Finding]:
        self._above.pop(run.run, None)
        self._unread.pop(run.run, None)
        book = self.runs.pop(run.run, None)
        if book is None or run.status is not RunStatus.COMPLETED or at_terminal(book.envelope, book.cursor):
            return []
        message = f"it is called completed, and ended at {book.cursor.step or book.cursor.last or 'no step'!r}"
        return [Breach("runbook.terminal_not_reached", index, message)]
