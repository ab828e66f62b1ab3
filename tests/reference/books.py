"""Runbooks for tests: a document's elements, its envelope, and chains of runs under it."""

from __future__ import annotations

import json
from typing import Any

from ledger import receipt as kinds
from ledger.digest import digest
from ledger.members import Adapter, Runbook
from ledger.receipt import Answer, Evaluator
from ledger.rules.evaluation import ASSERTS, criteria_of
from ledger.rules.replay import Replay
from ledger.rules.runbook import Envelope, parse_envelope
from ledger.rules.runbook_derive import derive
from ledger.rules.runbook_replay import ASSERT_ACT, RUNBOOK_TOOL, STEP_ACT
from tests.reference.rule_chain import Chain, approver

ELEMENTS: dict[str, Any] = {
    "schema": "receipt-ledger.runbook/v1",
    "mode": "agent-autonomous",
    "capabilities": ["db.read", "db.drop", "mail.send"],
    "steps": [
        {
            "id": "count",
            "tool": "db.read",
            "risk": "read-only",
            "body": "Count the rows.",
            "trust": "T1",
            "assert": [{"id": "rows", "at": "/rows", "is": "at_least", "value": 1}],
            "on_fail": "stop",
        },
        {"id": "drop", "tool": "db.drop", "risk": "destructive", "retry": {"count": 2}, "on_fail": "stop"},
        {"id": "tell", "tool": "mail.send", "risk": "write", "retry": {"tell": 1}, "on_fail": "stop"},
        {"id": "done", "terminal": True},
        {"id": "stop", "terminal": True},
    ],
}
"""Count, drop behind a gate, tell; `done` and `stop` end it."""


def changed(*path: Any, value: Any) -> dict[str, Any]:
    """Return the elements with one place changed."""
    copy = json.loads(json.dumps(ELEMENTS))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return copy


def book(elements: dict[str, Any] | None = None) -> Envelope:
    return derive(json.dumps(elements or ELEMENTS).encode())


def envelope(**members: Any) -> Envelope:
    """Return the envelope of the elements with members changed, as an author by hand would."""
    value = json.loads(book().data)
    value.update(members)
    return parse_envelope(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


class BookChain(Chain):
    """A chain with one run under a runbook; acts, steps and evaluations are of it."""

    def __init__(self, envelope: Envelope | None = None, **opening: Any) -> None:
        self.envelope = envelope or book()
        self.documents = {self.envelope.digest: self.envelope.data}
        super().__init__(Replay(approvers=dict([approver("ada", "ops")]), document_of=self.documents.get))
        self.header()
        self.run = self.start(**opening)

    def start(
        self, *, profile: str = "R2", ceiling: str = "irreversible", coverage: str = "tool-call-hook", **members: Any
    ) -> str:
        given = {"document": self.envelope.document, **members}
        return self.add(
            kinds.Opening,
            name="book",
            actor={"agent": "bot", "user": "unknown", "model": "unknown"},
            adapter=Adapter(name="hook", version="1", coverage=coverage),
            runbook=Runbook(envelope=self.envelope.digest, profile=profile, ceiling=ceiling),
            **given,
        )

    def call(self, step: str | None, tool: str, **members: Any) -> str:
        """Add an act that is committed; return its intent."""
        run = members.pop("run", self.run)
        intent = self.intent(run, act={"name": tool}, step=step, **members)
        self.outcome(run, intent)
        return intent

    def approved(self, step: str, tool: str, **members: Any) -> str:
        """Add an act at a gate that a person opened."""
        request = self.waiting(self.run, act={"name": tool}, step=step)
        return self.call(step, tool, approvals=(self.approval(request),), **members)

    def observed(self, step: str, observation: dict[str, Any] | None, **members: Any) -> str:
        """Add the evaluation of a step's assertions of an observation."""
        criteria = criteria_of(self.envelope.steps[step].asserts)
        data = json.dumps(observation, sort_keys=True, separators=(",", ":")).encode()
        self.documents |= {criteria.digest: criteria.data, digest(data): data}
        given: dict[str, Any] = {
            "run": self.run,
            "subject": digest(data),
            "criteria": criteria.digest,
            "evaluator": Evaluator(package=ASSERTS[0], method=ASSERTS[1], run=self.run),
            "verdict": "met",
            "answers": (Answer(criterion="rows", required=True, answer="met"),),
        }
        return self.add(kinds.Evaluation, **{**given, **members})

    def end(self, step: str, status: str = "completed", **members: Any) -> str:
        return self.add(kinds.Step, run=self.run, name=step, status=status, **members)

    def deny(self, step: str | None, tool: str, reason: str, **members: Any) -> str:
        """Add a decision that keeps an act from running."""
        given = {"status": "denied", "reason": reason, "step": step, **members}
        return self.add(kinds.Decision, **{**self.act(self.run, name=tool), **given})

    def deny_step(self, step: str, reason: str, **members: Any) -> str:
        return self.deny(step, RUNBOOK_TOOL, reason, **{**self.act(self.run, name=STEP_ACT), **members})

    def ask(self, step: str) -> str:
        """Add the request of a person to say whether a step is done."""
        return self.waiting(self.run, act={"name": ASSERT_ACT}, step=step)

    def finish(self, status: str = "completed", **members: Any) -> str:
        return self.add(kinds.Run, run=self.run, status=status, duration_ms=0, children=(self.run,), **members)

    def counted(self) -> None:
        self.call("count", "db.read")
        self.observed("count", {"rows": 1})
        self.end("count")

    def dropped(self, status: str = "completed") -> None:
        self.approved("drop", "db.drop")
        self.end("drop", status)

    def told(self) -> None:
        self.call("tell", "mail.send")
        self.end("tell")

    def whole(self) -> None:
        """Add the whole procedure up to its terminal and the close."""
        self.counted()
        self.dropped()
        self.told()
        self.end("done")
        self.finish()
