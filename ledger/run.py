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

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypedDict, Unpack

from pydantic import TypeAdapter, ValidationError

from ledger import receipt as kinds
from ledger.arguments import ArgumentsError, Secrets, content_of, inline_members, text_of
from ledger.canonical import JsonObject
from ledger.digest import ZERO_DIGEST, digest
from ledger.envelope import Envelope
from ledger.errors import AdmissionError, AlreadyClosedError, LedgerError, NotFoundError, StorageError, clip
from ledger.members import Act, Actor, Adapter, Artifact, Charge, CurrencyAmount, Effect, Limit, Name, Tool
from ledger.receipt import MAX_CHILDREN, Opening, Outcome, Receipt, Step, act_digest, parse_receipt
from ledger.storage.admission import STEP_LEVELS
from ledger.storage.artifacts import SALTED_BELOW_BYTES, salted_bytes
from ledger.storage.clock import monotonic_ms, nonce, now, random_bytes
from ledger.storage.ledger import PRODUCER, Ledger, Position
from ledger.storage.writer import View
from ledger.words import CALL_REASONS, Access, Basis, Kind, OutcomeStatus, Reason, RunStatus

__all__ = ["Call", "NotExecuted", "Run", "RunOptions", "StepBlock", "close_run"]

PYTHON: Final = Adapter(name="python", version="1", coverage="reported-calls")
"""The adapter of this API: it sees the calls that the program tells it of, and nothing else."""

_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)

# What one receipt may refer to, so that whatever a scope gathered it can be recorded when its block ends.
_MAX_ARTIFACTS: Final = 998
_MAX_USAGE: Final = 100
_REFERENCE_BYTES: Final = 300
_FEW_REFERENCES_BYTES: Final = 128 << 10
_MAX_REFERENCES_BYTES: Final = 768 << 10
_FEW_CHILDREN: Final = 1_500
_SETTLED_A_COMMIT: Final = 2_000


class RunOptions(TypedDict, total=False):
    """What a run may be told when it is opened."""

    actor: Actor | str | None
    """On whose behalf: an `Actor`, or the agent's name; parts not given are `unknown`."""
    correlation: Mapping[str, str] | None
    """Names of this work elsewhere, such as a ticket; carried unchanged."""
    limits: Sequence[Limit]
    """Limits on meters."""
    adapter: Adapter
    """What carries the run out and what it sees."""
    program: str | None
    """Digest of the program."""
    document: str | None
    """Digest of the document that the run follows."""
    continues: str | None
    """Run id of the closed run that this one follows."""
    parent: tuple[str, str | None] | None
    """Run id of the run that starts this one, and the intent of the call that does."""
    secrets: Mapping[str, str] | None
    """Named texts that are cut from everything recorded."""


class NotExecuted(Exception):  # noqa: N818  it is raised to say something, not to report a fault
    """Raised inside a call by code that knows that the act did not happen: the outcome is `failed`, not `ambiguous`."""


class _Scope:
    """What receipts can be recorded inside of: a run, a step or a call."""

    def __init__(self, run: Run, level: int, secrets: Secrets) -> None:
        self._run = run
        self._level = level
        self._secrets = secrets
        self._children: list[str] = []
        self._artifacts: list[Artifact] = []
        self._references_bytes = 0

    def step(self, name: str) -> StepBlock:
        """Return a step to record inside of: `with run.step("collect") as step:`.

        Raises:
            ArgumentsError: a name outside its form.
            AdmissionError: steps and calls nest too deep.
        """
        self._refuse_too_deep("step")
        try:
            return StepBlock(self._run, self, _NAME.validate_python(name))
        except ValidationError as error:
            raise _explain("step", error) from error

    def _refuse_too_deep(self, what: str) -> None:
        if self._level >= STEP_LEVELS:
            raise AdmissionError(f"{what}: steps and calls nest deeper than {STEP_LEVELS}", code="tree.too_deep")

    def call(
        self,
        name: str,
        *,
        tool: str | Tool | None = None,
        access: Access | str = "unknown",
        arguments: JsonObject | None = None,
        inline: Sequence[str] = (),
        secrets: Sequence[str] = (),
        resource: str = "unknown",
        environment: str = "unknown",
        amount: CurrencyAmount | None = None,
        precondition: str | None = None,
        effect_key: str | None = None,
    ) -> Call:
        """Return a call to make inside a `with` (or `async with`): its intent is durable when the block is entered.

        Args:
            name: What is done, such as `refund`.
            tool: The tool's name, or a `Tool` with version and digest; the act's name where absent.
            access: `read`, `propose`, `write` or `unknown`.
            arguments: A dict of JSON values, kept as an artifact outside the chain.
            inline: Members of the arguments that also stand in the receipt.
            secrets: Members of the arguments whose values are cut out everywhere before hashing.
            resource: What is acted on.
            environment: Where, such as `production`.
            amount: The amount the act moves.
            precondition: Digest of the state that was looked at.
            effect_key: Names the effect across retries.

        Raises:
            ArgumentsError: arguments outside the canonical profile, with the path, or another value outside its form; nothing
                was recorded.
            AdmissionError: steps and calls nest too deep.
        """
        self._refuse_too_deep("call")
        if access not in {*Access, "unknown"}:
            raise ArgumentsError(f"call: got access {clip(access)}, expected read, propose, write or unknown")
        if arguments is not None and not isinstance(arguments, dict):
            raise ArgumentsError(f"arguments: got {type(arguments).__name__}, expected a dict of JSON values")
        cut = self._secrets.with_members(secrets, arguments)
        kept: tuple[bytes, str] | None = None
        if arguments is not None:
            content_of(arguments, "arguments")
            arguments = cut.cut_arguments(arguments, secrets)
            kept = content_of(arguments, "arguments")
        try:
            if isinstance(tool, str) or tool is None:
                tool = Tool(name=tool or name, version="unknown", digest="unknown")
            act = Act(
                name=name,
                tool=tool,
                access=Access(access) if access in set(Access) else "unknown",
                arguments=inline_members(arguments, inline),
                arguments_digest="unknown",
                resource=resource,
                environment=environment,
                amount=amount,
                precondition=precondition,
            )
            effect = Effect(key=effect_key, attempt=1) if effect_key is not None else None
        except ValidationError as error:
            raise _explain("call", error) from error
        artifacts: tuple[Artifact, ...] = ()
        if kept is not None:
            # Last: arguments of a call that is refused are kept nowhere.
            artifacts = (self._run._keep(*kept, "arguments"),)
            act = act.model_copy(update={"arguments_digest": artifacts[0].digest})
        return Call(self._run, self, act, effect, artifacts, cut)

    def artifact(
        self,
        content: bytes | str | JsonObject,
        *,
        name: str,
        media_type: str | None = None,
        truncated_bytes: int | None = None,
        full_digest: str | None = None,
    ) -> Artifact:
        """Return the reference of content kept with this scope's receipt, durable when that receipt is.

        Where the content is the beginning of something longer, `truncated_bytes` says how much is not kept and `full_digest`
        is the digest of all of it.

        Raises:
            ArgumentsError: content, name or media type outside its form, or more than one receipt can refer to.
        """
        data, guessed = self._secrets.content_of(content, name)
        with self._run._mutex:
            references_bytes = self._references_bytes + _reference_bytes(name, media_type or guessed)
            if len(self._artifacts) >= _MAX_ARTIFACTS or references_bytes > _MAX_REFERENCES_BYTES:
                raise ArgumentsError(
                    f"artifact: got more than {len(self._artifacts)} in one scope, expected what one receipt can refer to",
                    hint="put them into several steps, or several files into one archive",
                )
            kept = self._run._keep(data, media_type or guessed, name)
            reference = kept.model_copy(update={"truncated_bytes": truncated_bytes, "full_digest": full_digest})
            self._artifacts.append(reference)
            self._references_bytes = references_bytes
        return reference

    def mention(self, name: str, *, full_digest: str, total_bytes: int) -> Artifact:
        """Return the reference of content that is not kept: its digest and size are recorded, and an empty artifact."""
        return self.artifact(b"", name=name, truncated_bytes=total_bytes, full_digest=full_digest)

    def _adopt(self, child: str) -> None:
        with self._run._mutex:
            self._children.append(child)

    def _take_children(self) -> list[str]:
        with self._run._mutex:
            taken, self._children = self._children, []
            return taken


class Run(_Scope):
    """One run. Made by `ledger.run`, `ledger.attach` and `ledger.resume`."""

    def __init__(
        self, ledger: Ledger, opening: Opening, id_: str, *, drives: bool, secrets: Secrets | None = None
    ) -> None:
        super().__init__(self, 0, secrets or Secrets())
        self.ledger: Final = ledger
        self.opening: Final = opening
        self.id: Final = id_
        """The run id: receipt id of the opening."""
        self.status: RunStatus | None = None
        """Set it to end the run with another word than `completed`."""
        self._drives = drives
        self._mutex = threading.Lock()
        self._started_ms: int | None = monotonic_ms()
        self._salt = _read_salt(ledger, opening)
        self._closed: Position | None = None

    @classmethod
    def start(cls, ledger: Ledger, name: str, **options: Unpack[RunOptions]) -> Run:
        """Return a new run whose opening is durable.

        Raises:
            ArgumentsError: an option outside its form; nothing was recorded.
            AdmissionError: the parent is closed, or runs nest too deep.
        """
        actor, parent = options.get("actor"), options.get("parent")
        correlation = options.get("correlation")
        secrets = Secrets.of(options.get("secrets"))
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
                **_common(ledger),
                name=name,
                actor=actor,
                adapter=options.get("adapter", PYTHON),
                limits=tuple(options.get("limits", ())),
                program=options.get("program"),
                document=options.get("document"),
                correlation=dict(correlation) if correlation else None,
                artifacts=(artifact,),
                continues=options.get("continues"),
                parent_opening=parent[0] if parent else None,
                parent_intent=parent[1] if parent else None,
            )
        except ValidationError as error:
            raise _explain("run", error) from error
        ledger.artifacts.stage(salt)
        position = ledger.append(ledger.seal(opening))
        return cls(ledger, opening, position.receipt, drives=True, secrets=secrets)

    @classmethod
    def attach(cls, ledger: Ledger, id_: str, *, secrets: Mapping[str, str] | None = None) -> Run:
        """Return an open run that another process drives.

        Raises:
            NotFoundError: no such run.
            AlreadyClosedError: it is closed.
        """
        return cls(ledger, _open_opening(ledger, id_), id_, drives=False, secrets=Secrets.of(secrets))

    @classmethod
    def resume(cls, ledger: Ledger, id_: str, *, secrets: Mapping[str, str] | None = None) -> Run:
        """Return an open run to go on with; leaving its block closes it. How long it took in all is then `unknown`.

        Raises:
            NotFoundError: no such run.
            AlreadyClosedError: it is closed.
        """
        run = cls(ledger, _open_opening(ledger, id_), id_, drives=True, secrets=Secrets.of(secrets))
        run._started_ms = None
        return run

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
        if kind is None:
            self.close()
        elif issubclass(kind, Exception):
            self.close(self.status or RunStatus.FAILED, reason=Reason.RUN_EXCEPTION, error=_name_of(kind))
        else:
            self.close(self.status or RunStatus.INTERRUPTED, reason=Reason.RUN_EXCEPTION, error=_name_of(kind))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _shielded(self.__exit__, kind, value, trace)

    # For the scopes inside.

    def _keep(self, content: bytes, media_type: str, name: str) -> Artifact:
        salted = len(content) < SALTED_BELOW_BYTES
        try:
            reference = Artifact(
                digest=ZERO_DIGEST, media_type=media_type, name=name, size_bytes=len(content), salted=salted
            )
        except ValidationError as error:
            raise _explain("artifact", error) from error
        stored = salted_bytes(content, run_salt=self._salt) if salted else content
        return reference.model_copy(update={"digest": self.ledger.artifacts.stage(stored)})

    def _common(self) -> dict[str, Any]:
        return {**_common(self.ledger), "run": self.id}


class StepBlock(_Scope):
    """A step: groups what is recorded inside its block, and is recorded when the block ends."""

    def __init__(self, run: Run, parent: _Scope, name: str) -> None:
        super().__init__(run, parent._level + 1, parent._secrets)
        self.name: Final = name
        self._parent = parent
        self._started_ms = 0

    def __enter__(self) -> Self:
        self._started_ms = monotonic_ms()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, children = self._run, self._take_children()

        def build(_: View) -> list[Envelope]:
            folded, kept = _fold(run, children, self._references_bytes)
            step = Step(
                **run._common(),
                name=self.name,
                status="completed" if kind is None else "failed",
                duration_ms=monotonic_ms() - self._started_ms,
                artifacts=tuple(self._artifacts),
                children=tuple(kept),
            )
            return [*folded, run.ledger.envelope(step)]

        self._parent._adopt(run.ledger.commit(build)[-1].receipt)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _shielded(self.__exit__, kind, value, trace)


class Call(_Scope):
    """One act: its intent is durable when the block is entered, its outcome when the block is left."""

    def __init__(
        self,
        run: Run,
        parent: _Scope,
        act: Act,
        effect: Effect | None,
        artifacts: tuple[Artifact, ...],
        secrets: Secrets,
    ) -> None:
        super().__init__(run, parent._level + 1, secrets)
        self.act: Final = act
        self.act_digest: Final = act_digest(
            act,
            ledger=run.ledger.origin,
            run=run.id,
            actor=run.opening.actor,
            effect_key=effect.key if effect is not None else None,
        )
        self.intent = ""
        """Receipt id of the intent, once the block is entered."""
        self.outcome: Position | None = None
        """Where the outcome stands, once the block is left."""
        self._parent = parent
        self._effect = effect
        self._intent_artifacts = artifacts
        self._usage: list[Charge] = []
        self._result: tuple[bytes, str] | None = None
        self._ended: tuple[OutcomeStatus, Reason | None] | None = None
        self._exit_code: int | None = None
        self._signal: int | None = None
        self._started_ms = 0

    @property
    def result(self) -> None:
        """What the act returned: bytes, a text or a dict of JSON values; kept as an artifact. Write-only."""
        raise AttributeError("a call's result is kept as an artifact of its outcome")

    @result.setter
    def result(self, value: bytes | str | JsonObject) -> None:
        self._result = self._secrets.content_of(value, "result")

    def use(self, meter: str, amount: int, *, basis: Basis | str = Basis.REPORTED) -> None:
        """Record what the act used: a meter with its unit in the name, such as `prompt_tokens` or `usd_micro`."""
        if basis not in set(Basis):
            raise ArgumentsError(f"usage: got basis {clip(basis)}, expected measured, reported, quoted or unknown")
        if len(self._usage) >= _MAX_USAGE:
            raise ArgumentsError(f"usage: got more than {_MAX_USAGE}", hint="add up what is of one meter")
        try:
            self._usage.append(Charge(meter=meter, settled=amount, basis=Basis(basis)))
        except ValidationError as error:
            raise _explain("usage", error) from error

    def end(
        self,
        status: OutcomeStatus,
        *,
        reason: Reason | None = None,
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> None:
        """Say how the act ended, for adapters that know it better than an exception would.

        Raises:
            ArgumentsError: a word or a number that an outcome cannot hold.
        """
        if status not in set(OutcomeStatus) or (reason is not None and reason not in set(CALL_REASONS)):
            raise ArgumentsError(f"end: got {clip(status)}, {clip(reason)}, expected a status and reason of outcomes")
        if not 0 <= (exit_code or 0) <= 255 or not 1 <= (1 if signal is None else signal) <= 127:
            raise ArgumentsError(f"end: got exit code {clip(exit_code)}, signal {clip(signal)}, out of range")
        self._ended, self._exit_code, self._signal = (status, reason), exit_code, signal

    def run(self, name: str, **options: Unpack[RunOptions]) -> Run:
        """Return a child run that this call starts; its root is committed by this call's outcome."""
        options["parent"] = (self._run.id, self.intent)
        child = Run.start(self._run.ledger, name, **options)
        child._secrets = self._secrets.and_those_of(child._secrets)
        return child

    def __enter__(self) -> Self:
        run = self._run
        if self.intent:
            raise ArgumentsError("call: it was made already", hint="each act is a call of its own")
        intent = kinds.Intent(
            **run._common(),
            act=self.act,
            act_digest=self.act_digest,
            effect=self._effect,
            artifacts=self._intent_artifacts,
        )
        self.intent = run.ledger.append(run.ledger.envelope(intent)).receipt
        self._started_ms = monotonic_ms()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, children = self._run, self._take_children()
        duration_ms = monotonic_ms() - self._started_ms
        status, reason = self._ended or _ending(kind)
        artifacts = list(self._artifacts)
        if self._result is not None:
            artifacts.append(run._keep(*self._result, "result"))
        if text := text_of(value):
            kept = self._secrets.cut_text(text).encode("utf-8", "backslashreplace")
            artifacts.append(run._keep(kept, "text/plain", "error"))

        def build(view: View) -> list[Envelope]:
            roots = [each.id for each in view.state.child_roots(self.intent)]
            folded, kept = _fold(run, children + roots, self._references_bytes)
            outcome = Outcome(
                **run._common(),
                intent=self.intent,
                status=status,
                reason=reason,
                error=_name_of(kind) if kind is not None else None,
                exit_code=self._exit_code,
                signal=self._signal,
                duration_ms=duration_ms,
                usage=tuple(self._usage),
                artifacts=tuple(artifacts),
                children=(self.intent, *kept),
            )
            return [*folded, run.ledger.envelope(outcome)]

        try:
            self.outcome = run.ledger.commit(build)[-1]
        except LedgerError as error:
            error.hint = error.hint or f"the act {self.act.name!r} is ambiguous: its outcome is not recorded"
            raise
        self._parent._adopt(self.outcome.receipt)

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _shielded(self.__exit__, kind, value, trace)


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
    run = Run(ledger, _opening(ledger, id_), id_, drives=False)
    kept_artifacts = tuple(artifacts)
    references_bytes = sum(_reference_bytes(each.name, each.media_type) for each in kept_artifacts)
    closes = False

    def build(view: View) -> list[Envelope]:
        nonlocal closes
        pending = [each for each in view.state.pending_of(id_) if each.kind != Kind.OPENING]
        unsettled = [each.id for each in pending if each.kind == Kind.INTENT]
        closes = len(unsettled) <= _SETTLED_A_COMMIT
        made: list[Envelope] = []
        settled: dict[str, str] = {}
        for intent in unsettled[:_SETTLED_A_COMMIT]:
            folded, roots = _fold(run, [each.id for each in view.state.child_roots(intent)], 0)
            envelope = ledger.envelope(_ambiguous(run, intent, roots))
            made += [*folded, envelope]
            settled[intent] = envelope.receipt_id
        if not closes:
            return made
        # A child run's root belongs to the call that started it, as long as that is not settled.
        children = [settled.get(each.id, each.id) for each in pending if each.intent not in settled]
        folded, kept = _fold(run, children, references_bytes)
        closing = kinds.Run(
            **run._common(),
            status=RunStatus(status),
            reason=reason,
            error=error,
            duration_ms="unknown" if duration_ms is None else duration_ms,
            artifacts=kept_artifacts,
            children=(id_, *kept),
        )
        return [*made, *folded, ledger.seal(closing)]

    try:
        while True:
            positions = ledger.commit(build)
            if closes:
                return positions[-1]
    except ValidationError as invalid:
        raise _explain("close", invalid) from invalid


def _ambiguous(run: Run, intent: str, roots: Sequence[str]) -> Outcome:
    return Outcome(
        **run._common(),
        intent=intent,
        status=OutcomeStatus.AMBIGUOUS,
        reason=Reason.RECORDER_LOST,
        duration_ms=0,
        children=(intent, *roots),
    )


def _ending(kind: type[BaseException] | None) -> tuple[OutcomeStatus, Reason | None]:
    """Return what an exception, or none, says about an act."""
    if kind is None:
        return OutcomeStatus.COMMITTED, None
    if issubclass(kind, NotExecuted):
        return OutcomeStatus.FAILED, Reason.NOT_EXECUTED
    if issubclass(kind, asyncio.CancelledError | KeyboardInterrupt | SystemExit | GeneratorExit):
        return OutcomeStatus.AMBIGUOUS, Reason.CANCELLED
    return OutcomeStatus.AMBIGUOUS, Reason.EXCEPTION


def _fold(run: Run, children: Sequence[str], references_bytes: int) -> tuple[list[Envelope], list[str]]:
    """Return steps that hold the first of the children where they are too many for one receipt, and what is left to commit."""
    room = MAX_CHILDREN - 1 if references_bytes <= _FEW_REFERENCES_BYTES else _FEW_CHILDREN
    made: list[Envelope] = []
    while len(made) + len(children) > room:
        folded = Step(**run._common(), name="folded", status="folded", children=tuple(children[:MAX_CHILDREN]))
        made.append(run.ledger.envelope(folded))
        children = children[MAX_CHILDREN:]
    return made, [*(each.receipt_id for each in made), *children]


def _reference_bytes(name: str, media_type: str) -> int:
    """Return about how much room the reference of an artifact takes in a receipt."""
    return len(name.encode("utf-8", "replace")) + len(media_type) + _REFERENCE_BYTES


def _name_of(kind: type[BaseException]) -> str:
    return "".join(each for each in kind.__name__ if each.isprintable())[:256] or "Exception"


def _common(ledger: Ledger) -> dict[str, Any]:
    return {
        "ledger": ledger.origin,
        "issuer": ledger.issuer,
        "issued_at": now(),
        "nonce": nonce(),
        "producer": PRODUCER,
    }


def _opening(ledger: Ledger, id_: str) -> Opening:
    receipt: Receipt = parse_receipt(ledger.get(id_).envelope.payload)
    if not isinstance(receipt, Opening):
        raise NotFoundError(
            f"run {id_[:15]}: is a receipt of kind {receipt.kind}, no opening", code="run.unknown_opening"
        )
    return receipt


def _open_opening(ledger: Ledger, id_: str) -> Opening:
    opening = _opening(ledger, id_)

    def look(view: View) -> None:
        run = view.state.run(id_)
        if run is not None and run.closed is not None:
            raise AlreadyClosedError(
                f"run {id_[:15]}: closed at entry {run.closed}", hint="open a new run that `continues` it"
            )

    ledger.look(look)
    return opening


def _read_salt(ledger: Ledger, opening: Opening) -> bytes | None:
    for artifact in opening.artifacts:
        if artifact.name == "run-salt":
            try:
                return ledger.artifact(artifact)
            except (NotFoundError, StorageError):
                return None  # erased: what is kept from now on has salts of its own
    return None


def _explain(what: str, error: ValidationError) -> ArgumentsError:
    first = error.errors(include_url=False, include_context=False)[0]
    where = "".join(f"{part}: " for part in first["loc"])
    return ArgumentsError(f"{what}: {where}{first['msg'].lower()}, got {clip(first.get('input'))}")


async def _shielded(
    leave: Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None],
    kind: type[BaseException] | None,
    value: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Leave a block in a thread; a cancelled task waits for it, since a half-recorded outcome helps nobody."""
    task = asyncio.ensure_future(asyncio.to_thread(leave, kind, value, trace))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
