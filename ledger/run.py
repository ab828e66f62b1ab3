"""Runs: what a person types to have work recorded while it happens.

    with ledger.run("nightly", actor=Actor(agent="bot", user="ann", model="unknown")) as run:
        with run.step("collect") as step:
            with step.call("http.get", access="read", arguments={"url": url}) as call:
                call.result = fetch(url)

The opening is durable before anything runs, each intent before its act, each outcome before its result is used. An exception
inside a call is recorded as `ambiguous`, since nobody knows how far the act came; only `NotExecuted`, raised by code that
knows that nothing happened, makes it `failed`. Exceptions go on to the caller.

Threads, tasks and other processes (`ledger.attach`) may record into one run at once: every commit is decided under one lock.

Source: docs/spec/receipts.md, docs/spec/trees.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, Unpack

from pydantic import ValidationError

from ledger import receipt as kinds
from ledger.arguments import ArgumentsError, Secrets
from ledger.digest import digest
from ledger.envelope import Envelope
from ledger.errors import AlreadyClosedError, clip
from ledger.granting import admit_opening
from ledger.members import Actor, Adapter, Artifact
from ledger.opening_book import Book, open_book, refuse
from ledger.oversight import Oversight
from ledger.policing import policy_for
from ledger.receipt import Opening, Outcome
from ledger.recorder import Recorder, common_of, exception_name, explain, opening_of, reference_bytes, shielded
from ledger.refusals import Blocked, Waiting
from ledger.rules.approval import Approver
from ledger.rules.policy_file import PolicyDocument
from ledger.run_options import RunOptions, refuse_types
from ledger.running_book import conclude_step, due_step, ended_as
from ledger.scope import Call, NotExecuted, Scope, StepBlock
from ledger.spending import Spending, limits_of, root_of
from ledger.storage.clock import monotonic_ms, random_bytes
from ledger.storage.ledger import Ledger, Position
from ledger.storage.writer import View
from ledger.words import Kind, OutcomeStatus, Profile, Reason, Risk, RunStatus

__all__ = ["Blocked", "Call", "NotExecuted", "Run", "StepBlock", "close_run"]

PYTHON: Final = Adapter(name="python", version="1", coverage="reported-calls")
"""The adapter of this API: it sees the calls that the program tells it of, and nothing else."""

_SETTLED_A_COMMIT: Final = 2_000


class Run(Scope):
    """One run. Made by `ledger.run`, `ledger.attach` and `ledger.resume`."""

    def __init__(
        self, ledger: Ledger, opening: Opening, id_: str, *, drives: bool, secrets: Secrets | None = None
    ) -> None:
        root, limited = (id_, bool(opening.limits))
        if opening.parent_opening is not None:
            root, limited = root_of(ledger.reader, id_)
        super().__init__(Recorder(ledger, opening, id_, root=root, limited=limited), 0, secrets or Secrets())
        self.ledger: Final = ledger
        self.opening: Final = opening
        self.id: Final = id_
        """The run id: receipt id of the opening."""
        self.status: RunStatus | None = None
        """Set it to end the run with another word than `completed`."""
        self._drives = drives
        self._started_ms: int | None = monotonic_ms()
        self._closed: Position | None = None

    @classmethod
    def start(cls, ledger: Ledger, name: str, **options: Unpack[RunOptions]) -> Run:
        """Return a new run whose opening is durable.

        Raises:
            ArgumentsError: an option outside its form; nothing was recorded.
            PolicyError: no policy, or one that allows more than the run above or before; nothing was recorded.
            BudgetError: a limit outside its form; nothing was recorded.
            RunbookError: a runbook that cannot be read; nothing was recorded.
            Refused: a runbook that may not start here; a closed run says every reason.
            Blocked: a limit of the run that starts it, or its grant, does not let it.
            AdmissionError: the parent is closed, or runs nest too deep.
        """
        refuse_types(options)
        actor, parent = options.get("actor"), options.get("parent")
        correlation, adapter = options.get("correlation"), options.get("adapter", PYTHON)
        secrets = Secrets.of(options.get("secrets"))
        limits = limits_of(options.get("limits", ()), options.get("budget"))
        policy = policy_for(
            ledger, options.get("policy"), parent=parent[0] if parent else None, continues=options.get("continues")
        )
        book = _book_of(options, adapter, policy)
        salt = random_bytes(32)
        artifact = Artifact(
            digest=digest(salt),
            media_type="application/octet-stream",
            name="run-salt",
            size_bytes=len(salt),
            salted=False,
        )
        try:
            if actor is None or isinstance(actor, str):
                actor = Actor(agent=actor or "unknown", user="unknown", model="unknown")
            opening = Opening(
                **common_of(ledger),
                name=name,
                actor=actor,
                adapter=adapter,
                limits=limits,
                policy=None if policy is None else policy.digest,
                grant=options.get("grant") or _grant_above(ledger, parent),
                program=options.get("program"),
                document=options.get("document") if book is None else book.envelope.document,
                runbook=None if book is None else book.said,
                correlation=dict(correlation) if correlation else None,
                artifacts=(
                    artifact,
                    *(() if policy is None else (_kept(policy),)),
                    *(() if book is None else book.artifacts(ledger)),
                ),
                continues=options.get("continues"),
                parent_opening=parent[0] if parent else None,
                parent_intent=parent[1] if parent else None,
            )
        except ValidationError as error:
            raise explain("run", error) from error
        ledger.artifacts.stage(salt)
        if policy is not None:
            ledger.artifacts.stage(policy.data)
        if book is not None and book.refusals:
            raise refuse(ledger, opening, book.refusals)
        started_ms = monotonic_ms()
        position = _open(ledger, opening)
        run = cls(ledger, opening, position.receipt, drives=True, secrets=secrets)
        run._recorder.started_ms = started_ms
        run._recorder.approvers = options.get("approvers") or {}
        return run

    @classmethod
    def attach(
        cls,
        ledger: Ledger,
        id_: str,
        *,
        secrets: Mapping[str, str] | None = None,
        approvers: Mapping[str, Approver] | None = None,
    ) -> Run:
        """Return an open run that another process drives.

        Raises:
            NotFoundError: no such run.
            AlreadyClosedError: it is closed.
        """
        run = cls(ledger, _open_opening(ledger, id_), id_, drives=False, secrets=Secrets.of(secrets))
        run._recorder.approvers = approvers or {}
        return run

    @classmethod
    def resume(
        cls,
        ledger: Ledger,
        id_: str,
        *,
        secrets: Mapping[str, str] | None = None,
        approvers: Mapping[str, Approver] | None = None,
    ) -> Run:
        """Return an open run to go on with; leaving its block closes it. How long it took in all is then `unknown`.

        Raises:
            NotFoundError: no such run.
            AlreadyClosedError: it is closed.
        """
        run = cls(ledger, _open_opening(ledger, id_), id_, drives=True, secrets=Secrets.of(secrets))
        run._started_ms = None
        run._recorder.approvers = approvers or {}
        return run

    def elapsed_ms(self) -> int:
        """Return how long the run has gone on."""
        return self._recorder.elapsed_ms()

    def due(self) -> str | None:
        """Return the step of its runbook that is current, else the one that follows; None at the end and where it halts."""
        return due_step(self._recorder)

    def conclude(self, step: str) -> bool:
        """End a step that nobody could evaluate by what a person said, and return whether it is completed.

        Raises:
            Waiting: nobody has said yet.
            ArgumentsError: nobody was asked about this step.
        """
        return conclude_step(self._recorder, step, self._adopt)

    def environment(self, call: Call | None = None) -> dict[str, str]:
        """Return what a child process needs to record into this ledger, as a child run of this one."""
        intent = f"/{call.intent}" if call is not None else ""
        return {"LEDGER_RUN": f"{self.id}{intent}", "LEDGER_DIR": str(self.ledger.folder)}

    def close(
        self, status: RunStatus | str | None = None, *, reason: Reason | None = None, error: str | None = None
    ) -> Position:
        """Close the run: its `run` receipt commits everything that is left. Closing twice returns the same position.

        Raises:
            ArgumentsError: a status, reason or error outside its form.
            AlreadyClosedError: somebody else closed it.
        """
        if self._closed is None:
            self._closed = close_run(
                self.ledger,
                self.id,
                status=status or self.status or RunStatus.COMPLETED,
                reason=reason,
                error=error,
                duration_ms=None if self._started_ms is None else monotonic_ms() - self._started_ms,
                artifacts=self._artifacts,
            )
        return self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._drives:
            return
        if isinstance(value, Waiting):
            return  # it goes on once the approval is there
        if kind is None:
            self.close()
        elif isinstance(value, Blocked):
            self.close(self.status or RunStatus.BLOCKED, reason=value.reason)
        elif issubclass(kind, Exception):
            self.close(self.status or RunStatus.FAILED, reason=Reason.RUN_EXCEPTION, error=exception_name(kind))
        else:
            self.close(self.status or RunStatus.INTERRUPTED, reason=Reason.RUN_EXCEPTION, error=exception_name(kind))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await shielded(self.__exit__, kind, value, trace)


def _kept(policy: PolicyDocument) -> Artifact:
    size_bytes = len(policy.data)
    return Artifact(
        digest=policy.digest, media_type="application/json", name="policy", size_bytes=size_bytes, salted=False
    )


def _open(ledger: Ledger, opening: Opening) -> Position:
    """Return where an opening stands; its grant has to stand too, and a child run is admitted by the budgets above it."""
    parent = opening.parent_opening
    sealed = ledger.seal(opening)
    if parent is None and opening.grant is None:
        return ledger.append(sealed)
    root, limited = (None, False) if parent is None else root_of(ledger.reader, parent)

    def build(view: View) -> list[Envelope]:
        if opening.grant is not None:
            above = _grant_above(ledger, None if parent is None else (parent, None))
            admit_opening(ledger, opening, above, view)
        if root is not None and parent is not None and limited:
            spending = Spending.of(ledger)
            spending.admit_child(root, parent, opening.parent_intent, opening.limits, size=view.size)
        return [sealed]

    return ledger.commit(build)[-1]


def _book_of(options: RunOptions, adapter: Adapter, policy: PolicyDocument | None) -> Book | None:
    data = options.get("runbook")
    if data is None:
        return None
    return open_book(
        data,
        profile=options.get("profile", Profile.R2),
        ceiling=options.get("risk_ceiling", Risk.WRITE),
        adapter=adapter,
        statement=options.get("statement"),
        allowlist=options.get("allowlist"),
        policy=None if policy is None else policy.policy,
    )


def _grant_above(ledger: Ledger, parent: tuple[str, str | None] | None) -> str | None:
    return None if parent is None else opening_of(ledger, parent[0]).grant


def close_run(
    ledger: Ledger,
    id_: str,
    *,
    status: RunStatus | str = RunStatus.INTERRUPTED,
    reason: Reason | None = Reason.RUN_CLOSED_LATER,
    error: str | None = None,
    duration_ms: int | None = None,
    artifacts: Iterable[Artifact] = (),
) -> Position:
    """Close an open run from its record and return where its `run` receipt stands.

    Intents without an outcome get one that says `ambiguous`: in the same commit, or where there are thousands, in commits
    before it.

    Raises:
        ArgumentsError: a status, reason or error outside its form.
        NotFoundError: no such run.
        AlreadyClosedError: it is closed already.
    """
    if status not in set(RunStatus):
        raise ArgumentsError(f"close: got {clip(status)}, expected one of {', '.join(RunStatus)}")
    recorder = Recorder(ledger, opening_of(ledger, id_), id_)
    kept_artifacts = tuple(artifacts)
    references_bytes = sum(reference_bytes(each.name, each.media_type) for each in kept_artifacts)
    root, limited = root_of(ledger.reader, id_)
    closes = False

    def build(view: View) -> list[Envelope]:
        nonlocal closes
        pending = [each for each in view.state.pending_of(id_) if each.kind != Kind.OPENING]
        unsettled = [each.id for each in pending if each.kind == Kind.INTENT]
        closes = len(unsettled) <= _SETTLED_A_COMMIT
        made: list[Envelope] = []
        settled: dict[str, str] = {}
        for intent in unsettled[:_SETTLED_A_COMMIT]:
            folded, roots = recorder.fold([each.id for each in view.state.child_roots(intent)], 0)
            envelope = ledger.envelope(_ambiguous(recorder, intent, roots))
            made += [*folded, envelope]
            settled[intent] = envelope.receipt_id
        if not closes:
            return made
        # A child run's root belongs to the call that started it, as long as that is not settled.
        children = [settled.get(each.id, each.id) for each in pending if each.intent not in settled]
        folded, kept = recorder.fold(children, references_bytes)
        word, why = RunStatus(status), reason
        if recorder.opening.runbook is not None:
            word, why = ended_as(recorder, view, status, reason)
        closing = kinds.Run(
            **recorder.common(),
            status=word,
            reason=why,
            error=error,
            duration_ms="unknown" if duration_ms is None else duration_ms,
            totals=Spending.of(ledger).totals(root, id_, size=view.size) if limited else (),
            artifacts=kept_artifacts,
            children=(id_, *kept),
        )
        return [*made, *folded, ledger.seal(closing)]

    def forget(_: list[Position]) -> None:
        if closes and id_ == root:
            Spending.of(ledger).forget(root)
            Oversight.of(ledger).forget(root)

    try:
        while True:
            positions = ledger.commit(build, forget)
            if closes:
                return positions[-1]
    except ValidationError as invalid:
        raise explain("close", invalid) from invalid


def _ambiguous(recorder: Recorder, intent: str, roots: Sequence[str]) -> Outcome:
    return Outcome(
        **recorder.common(),
        intent=intent,
        status=OutcomeStatus.AMBIGUOUS,
        reason=Reason.RECORDER_LOST,
        duration_ms="unknown",
        children=(intent, *roots),
    )


def _open_opening(ledger: Ledger, id_: str) -> Opening:
    opening = opening_of(ledger, id_)

    def look(view: View) -> None:
        run = view.state.run(id_)
        if run is not None and run.closed is not None:
            raise AlreadyClosedError(
                f"run {id_[:15]}: closed at entry {run.closed}", hint="open a new run that `continues` it"
            )

    ledger.look(look)
    return opening
