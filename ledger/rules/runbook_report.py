"""The report of a run under a runbook: what was done step by step, what deviated, how it ended; without free text.

    {"schema": "receipt-ledger.runbook-report/v1", "run": "sha256:...", "profile": "R2", "status": "completed", "terminal": "done",
     "incomplete": false, "steps": [{"step": "count", "attempt": 1, "status": "completed"}], "deviations": [], ...}

- Each text is a word of a closed list, a digest, a time, or a name that the policy envelope declares. A tool or a step that the
  envelope does not contain is not named: its receipt is.
- It is made from receipts and the envelope alone, so anybody makes the same one.

Source: docs/spec/rules/runbooks.md, "Report".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ledger.canonical import JsonObject, JsonValue
from ledger.digest import is_digest
from ledger.receipt import Approval, Decision, Evaluation, Intent, Opening, Receipt, Run, Step
from ledger.rules.deviation import Deviation, class_of
from ledger.rules.errors import RunbookError
from ledger.rules.profile import COVERAGE, Mode
from ledger.rules.runbook import Envelope
from ledger.rules.runbook_replay import ASSERT_ACT
from ledger.rules.step import Cursor, StepEnd, at_terminal, leave, move
from ledger.words import Profile, Reason, Risk, RunStatus

__all__ = ["REPORT_SCHEMA", "free_text", "report_of"]

REPORT_SCHEMA: Final = "receipt-ledger.runbook-report/v1"
_CONTRACT: Final = "execution-contract/v1"
_ENDS: Final = {"completed": StepEnd.COMPLETED, "failed": StepEnd.FAILED, "blocked": StepEnd.BLOCKED}
_REFUSED: Final = frozenset(
    {Reason.NOT_ALLOWLISTED, Reason.PROFILE, Reason.COVERAGE, Reason.RISK, Reason.SCOPE_UNDECLARED_TOOL}
)
_WORDS: Final = frozenset(
    {
        REPORT_SCHEMA,
        _CONTRACT,
        "open",
        "unknown",
        *COVERAGE,
        *Mode,
        *Profile,
        *Risk,
        *RunStatus,
        *Reason,
        *Deviation,
        *StepEnd,
        *("granted", "denied", "waiting", "met", "not_met", "inconclusive", "act", "assert"),
    }
)


def report_of(run: str, receipts: Iterable[tuple[str, Receipt]], envelope: Envelope) -> JsonObject:
    """Return the report of a run.

    Args:
        run: Its run id.
        receipts: Ids and receipts of the run in chain order, with the approvals and evaluations that name it.
        envelope: The policy envelope that its opening names.

    Raises:
        RunbookError: the run is not under this envelope.
    """
    rows = list(receipts)
    opening = next((each for id_, each in rows if id_ == run and isinstance(each, Opening)), None)
    if opening is None or opening.runbook is None or opening.runbook.envelope != envelope.digest:
        raise RunbookError(f"report: run {run[:15]} is not under the envelope {envelope.digest[:15]}")
    made = _Report(run, envelope)
    for id_, receipt in rows:
        made.see(id_, receipt)
    said, coverage = opening.runbook, opening.adapter.coverage
    return {
        "schema": REPORT_SCHEMA,
        "contract": _CONTRACT,
        "run": run,
        "document": envelope.document,
        "envelope": envelope.digest,
        "mode": envelope.mode.value,
        "profile": said.profile.value,
        "minimum": envelope.minimum.value,
        "ceiling": said.ceiling.value,
        "coverage": coverage if coverage in COVERAGE or is_digest(coverage) else "unknown",
        **made.ending(),
        "steps": list(made.steps),
        "retries": [
            {"edge": edge, "limit": limit, "taken": made.cursor.taken.get(edge, 0)}
            for edge, limit in sorted(envelope.budgets.items())
        ],
        "gates": list(made.gates.values()),
        "deviations": list(made.deviations),
        "refusals": list(made.refusals),
    }


def free_text(report: JsonValue, envelope: Envelope) -> tuple[str, ...]:
    """Return the texts of a report that are no closed word, digest or time, and no name that the envelope declares."""
    names = {*envelope.steps, *envelope.allowlist, *envelope.budgets}
    return tuple(each for each in _texts(report) if each not in _WORDS and each not in names and not is_digest(each))


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for each in value.values():
                yield from _texts(each)
        case _:
            pass


class _Report:
    """A report under construction."""

    def __init__(self, run: str, envelope: Envelope) -> None:
        self._run, self._envelope = run, envelope
        self.cursor = Cursor()
        self.steps: list[JsonValue] = []
        self.gates: dict[str, JsonValue] = {}
        self.deviations: list[JsonValue] = []
        self.refusals: list[JsonValue] = []
        self._attempts: dict[str, int] = {}
        self._evaluation: tuple[str, str] | None = None
        self._acted = False
        self._close: Run | None = None

    def see(self, id_: str, receipt: Receipt) -> None:
        match receipt:
            case Intent() if receipt.run == self._run:
                self._acted = True
                self._begin(receipt.step)
                if receipt.would_have is not None:
                    self._deviate(id_, receipt.would_have.reason, receipt.step, receipt.act.tool.name)
            case Step() if receipt.run == self._run and receipt.status in _ENDS:
                self._begin(receipt.name)
                self._leave(id_, receipt)
            case Decision() if receipt.run == self._run:
                self._decide(id_, receipt)
            case Evaluation() if receipt.run == self._run:
                self._evaluation = (id_, receipt.verdict)
            case Approval() if receipt.request in self.gates:
                gate = self.gates[receipt.request or ""]
                assert isinstance(gate, dict)  # noqa: S101  as it was made
                gate["answer"] = receipt.answer
            case Run() if receipt.run == self._run:
                self._close = receipt
            case _:
                pass

    def ending(self) -> JsonObject:
        """Return how the run ended; a run that is open has not."""
        run = self._close
        if run is None:
            return {"status": "open", "incomplete": True}
        found: JsonObject = {"status": run.status.value}
        if run.reason is not None:
            found["reason"] = run.reason.value
        ended = at_terminal(self._envelope, self.cursor)
        if not ended and not self.refusals:
            self.deviations.append({"class": Deviation.TERMINAL_NOT_REACHED.value})
        if ended:
            found["terminal"] = self.cursor.last
        return {**found, "incomplete": not ended}

    def _begin(self, step: str | None) -> None:
        if step is not None and step != self.cursor.step:
            self.cursor = move(self.cursor, step)
            self._attempts[step] = self._attempts.get(step, 0) + 1

    def _leave(self, id_: str, step: Step) -> None:
        row: JsonObject = {"receipt": id_, "attempt": self._attempts[step.name], "status": step.status}
        if step.name in self._envelope.steps:
            row["step"] = step.name
        if step.reason is not None:
            row["reason"] = step.reason.value
        if self._evaluation is not None:
            row["evaluation"], row["verdict"] = self._evaluation
        self.steps.append(row)
        self._evaluation = None
        self.cursor = leave(self.cursor, _ENDS[step.status])

    def _decide(self, id_: str, decision: Decision) -> None:
        deviation = class_of(decision)
        if decision.status == "waiting":
            gate: JsonObject = {
                "request": id_,
                "answer": "waiting",
                "of": "assert" if decision.act.name == ASSERT_ACT else "act",
            }
            self._name(gate, decision.step, decision.act.tool.name)
            self.gates[id_] = gate
        elif not self._acted and self.cursor == Cursor() and decision.reason in _REFUSED and decision.rule == "start":
            row: JsonObject = {"decision": id_, "reason": decision.reason.value}
            self._name(row, decision.step, decision.act.tool.name)
            self.refusals.append(row)
        elif deviation is not None:
            self._deviate(id_, decision.reason, decision.step, decision.act.tool.name, deviation)

    def _deviate(
        self, id_: str, reason: Reason, step: str | None, tool: str, deviation: Deviation | None = None
    ) -> None:
        found = deviation or _BY_WORD.get(reason)
        if found is not None:
            row: JsonObject = {"class": found.value, "receipt": id_}
            self._name(row, step, tool)
            self.deviations.append(row)

    def _name(self, row: JsonObject, step: str | None, tool: str) -> None:
        """Name step and tool where the envelope does; others could hold anything."""
        if step in self._envelope.steps:
            row["step"] = step
        if tool in self._envelope.allowlist:
            row["tool"] = tool


_BY_WORD: Final = {
    Reason.SCOPE_UNDECLARED_TOOL: Deviation.UNDECLARED_TOOL,
    Reason.SCOPE_OUT_OF_SCOPE_TOOL: Deviation.OUT_OF_SCOPE_TOOL,
    Reason.SCOPE_OUT_OF_ORDER_STEP: Deviation.OUT_OF_ORDER_STEP,
}
