"""Runs under runbooks: how they start or are refused, and how their steps begin and end.

    with ledger.run("drain", runbook=data, profile="R2", risk_ceiling="destructive", allowlist={"db.read"}, adapter=ROUTED) as run:
        while (name := run.due()) is not None:
            with run.step(name) as step:
                ...                             # step.call(...): only the tools of this step exist
                step.observe({"rows": rows})    # what the step's assertions are evaluated over

- Under R2 a step ends by its assertions. One that cannot be evaluated halts and asks a person; `run.conclude` goes on from there.
- The text of a step below trust T2 is kept as an artifact. It is never an instruction.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.arguments import ArgumentsError
from ledger.digest import digest
from ledger.envelope import Envelope as Wrapped
from ledger.errors import AdmissionError, clip
from ledger.members import Artifact
from ledger.opening_book import document_artifact, proposed
from ledger.oversight import Deviated, Oversight
from ledger.receipt import Decision, Evaluation, Evaluator, Step
from ledger.recorder import Recorder, common_of
from ledger.refusals import Blocked, Waiting
from ledger.rules.errors import RunbookError
from ledger.rules.evaluation import ASSERTS, CriteriaSet, Verdict, answers_of, criteria_of, verdict_of
from ledger.rules.profile import at_least
from ledger.rules.runbook_replay import ASSERT_ACT, RUNBOOK_TOOL, STEP_ACT, Supervised
from ledger.rules.step import at_terminal, due
from ledger.storage.writer import View
from ledger.words import Profile, Reason, RunStatus

__all__ = ["Body", "Ending", "body_of", "conclude_step", "due_step", "end_step", "ended_as", "enter_step"]

_OFF_TERMINAL: Final = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.BLOCKED})


@dataclass(frozen=True, slots=True)
class Body:
    """The text of a step, and whether it may be taken for an instruction; below trust T2 it is input and never more."""

    text: bytes
    instructs: bool


@dataclass(slots=True)
class Ending:
    """What a step leaves when its block ends."""

    step: str
    failed: bool
    duration_ms: int | None
    children: list[str]
    artifacts: tuple[Artifact, ...] = ()
    references_bytes: int = 0
    observation: bytes | None = None
    """The canonical JSON of what was observed."""


def enter_step(recorder: Recorder, step: str, adopt: Callable[[str], None]) -> None:
    """Let a run go to a step; one that is current goes on.

    Raises:
        Deviated: it may not go there now; a decision says so.
        Blocked: its runbook cannot be read.
    """
    blocked: Blocked | None = None

    def build(view: View) -> list[Wrapped]:
        nonlocal blocked
        blocked, book = None, _book(recorder, view)
        if not book.enforces or book.cursor.step == step:
            return []
        found = Oversight.of(recorder.ledger).caught_up(recorder, view.size).entry(recorder.id, step)
        if found is None:
            return []
        blocked = Deviated(found)
        refused = blocked.refused
        made = Decision(
            **recorder.common(),
            **proposed(recorder.ledger, recorder.id, recorder.opening, RUNBOOK_TOOL, STEP_ACT, step),
            status=found.status,
            reason=found.reason,
            step=step,
            meter=None if refused is None else refused.meter,
            limit=None if refused is None else refused.limit,
            spent=None if refused is None else refused.spent,
            reserved=None if refused is None else 0,
            asked=None if refused is None else 1,
        )
        return [recorder.ledger.envelope(made)]

    positions = recorder.ledger.commit(build)
    if blocked is not None:
        blocked.decision = positions[-1].receipt
        adopt(blocked.decision)
        raise blocked


def end_step(recorder: Recorder, ending: Ending, adopt: Callable[[str], None]) -> Reason | None:
    """Record how a step ended, and return why it failed by its assertions, None if it did not.

    Raises:
        Waiting: nobody can tell whether it did what it should; a person is asked, and the step stays current.
        AdmissionError: another process ended it meanwhile.
    """
    waiting: Waiting | None = None
    failed: Reason | None = None
    criteria: CriteriaSet | None = None

    def build(view: View) -> list[Wrapped]:
        nonlocal waiting, failed, criteria
        waiting, failed, made = None, None, list[Wrapped]()
        rule = _book(recorder, view)
        if rule.enforces and rule.cursor.step != ending.step:
            late = Oversight.of(recorder.ledger).caught_up(recorder, view.size).entry(recorder.id, ending.step)
            if late is not None:
                raise AdmissionError(f"step {ending.step!r}: somebody else ended it: {late.message}", code="step.ended")
        found = rule.envelope.steps.get(ending.step)
        if not ending.failed and found is not None and at_least(rule.profile, Profile.R2):
            verdict = None
            if found.asserts:
                criteria = criteria_of(found.asserts)
                evaluation, verdict = _evaluated(recorder, criteria, ending.observation)
                made.append(evaluation)
            if verdict is Verdict.INCONCLUSIVE or (verdict is None and found.expect):
                asked = _question(recorder, ending)
                waiting = Waiting(
                    f"step {ending.step!r}: it cannot be evaluated; a person has to say whether it is done"
                )
                return [*made, asked]
            failed = Reason.ASSERT_FAILED if verdict is Verdict.NOT_MET else None
        folded, kept = recorder.fold(ending.children, ending.references_bytes)
        step = Step(
            **recorder.common(),
            name=ending.step,
            status="failed" if ending.failed or failed is not None else "completed",
            reason=failed,
            duration_ms=ending.duration_ms,
            artifacts=ending.artifacts,
            children=tuple(kept),
        )
        return [*made, *folded, recorder.ledger.envelope(step)]

    position = recorder.ledger.commit(build)[-1]
    if waiting is None:
        adopt(position.receipt)
        return failed
    for child in (*ending.children, position.receipt):
        adopt(child)
    waiting.decision = position.receipt
    raise waiting


def conclude_step(recorder: Recorder, step: str, adopt: Callable[[str], None]) -> bool:
    """End a step that halted by what a person said, and return whether it is completed.

    Raises:
        Waiting: nobody has said yet.
        ArgumentsError: nobody was asked about this step.
    """
    completed = False

    def build(view: View) -> list[Wrapped]:
        nonlocal completed
        book = _book(recorder, view)
        if not book.asked or book.cursor.step not in (None, step):
            raise ArgumentsError(f"step {clip(step)}: nobody was asked about it", hint="end its block first")
        if not isinstance(book.passed, bool):
            message = f"step {step!r}: it waits for what a person says"
            raise Waiting(message, request=next(reversed(book.asked)))
        completed = book.passed
        made = Step(
            **recorder.common(),
            name=step,
            status="completed" if completed else "blocked",
            reason=None if completed else Reason.ASSERT_UNEVALUABLE,
        )
        return [recorder.ledger.envelope(made)]

    adopt(recorder.ledger.commit(build)[-1].receipt)
    return completed


def due_step(recorder: Recorder) -> str | None:
    """Return the step that a run is in or that follows; None at its end, and where it halts."""
    found: list[str | None] = []

    def look(view: View) -> None:
        book = _book(recorder, view)
        found.append(due(book.envelope, book.cursor))

    recorder.ledger.look(look)
    return found[-1]


def ended_as(
    recorder: Recorder, view: View, status: RunStatus | str, reason: Reason | None
) -> tuple[RunStatus, Reason | None]:
    """Return the word and the reason that a run under a runbook closes with: off a terminal it is incomplete."""
    word = RunStatus(status)
    book = Oversight.of(recorder.ledger).book(recorder, view.size)
    if book is None or word not in _OFF_TERMINAL:
        return word, reason
    if at_terminal(book.envelope, book.cursor):
        return word, reason
    return RunStatus.INCOMPLETE, Reason.TERMINAL_NOT_REACHED


def body_of(recorder: Recorder, step: str, text: bytes) -> Body:
    """Return the text of a step and what it may be taken for.

    Raises:
        RunbookError: the envelope names another text for this step.
    """
    found: list[Supervised] = []
    recorder.ledger.look(lambda view: found.append(_book(recorder, view)))
    rule = found[-1].envelope.steps.get(step)
    if rule is None or rule.body != digest(text):
        raise RunbookError(f"step {clip(step)}: got a body of {digest(text)[:15]}, expected that of the envelope")
    return Body(text, rule.instructs)


def _book(recorder: Recorder, view: View) -> Supervised:
    book = Oversight.of(recorder.ledger).book(recorder, view.size)
    if book is None:
        raise Blocked(Reason.POLICY_MISSING, "runbook: its policy envelope is not there or cannot be read")
    return book


def _evaluated(recorder: Recorder, criteria: CriteriaSet, observation: bytes | None) -> tuple[Wrapped, Verdict]:
    """Return the evaluation of an observation, and its verdict."""
    data = b"null" if observation is None else observation
    seen = None if observation is None else canonical.decode(observation)
    answers = answers_of(criteria, seen)
    verdict = verdict_of(criteria, answers)
    ledger = recorder.ledger
    ledger.artifacts.stage(criteria.data)
    ledger.artifacts.stage(data)
    evaluation = Evaluation(
        **common_of(ledger),
        run=recorder.id,
        subject=digest(data),
        criteria=criteria.digest,
        evaluator=Evaluator(package=ASSERTS[0], method=ASSERTS[1], run=recorder.id),
        verdict=verdict.value,
        answers=answers,
        artifacts=(document_artifact(criteria.data, "criteria"), document_artifact(data, "observation")),
    )
    return ledger.seal(evaluation), verdict


def _question(recorder: Recorder, ending: Ending) -> Wrapped:
    """Return the request of a person to say whether a step is done, bound to what was observed."""
    precondition = None if ending.observation is None else digest(ending.observation)
    asked = proposed(
        recorder.ledger, recorder.id, recorder.opening, RUNBOOK_TOOL, ASSERT_ACT, ending.step, precondition=precondition
    )
    made = Decision(
        **recorder.common(),
        **asked,
        status="waiting",
        reason=Reason.ASSERT_UNEVALUABLE,
        step=ending.step,
        needed=1,
        artifacts=ending.artifacts,
    )
    return recorder.ledger.envelope(made)
