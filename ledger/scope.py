"""Scopes: the steps and calls of a run, and what can be recorded inside each.

A call's intent is durable when its block is entered, its outcome when the block is left; a step is recorded when its block
ends. What happens inside a block is committed by the receipt that ends it.

Source: docs/spec/receipts.md, docs/spec/trees.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypedDict, TypeVar, Unpack

from pydantic import TypeAdapter, ValidationError

from ledger.arguments import ArgumentsError, Secrets, content_of, inline_members, text_of
from ledger.canonical import MAX_INTEGER, JsonObject
from ledger.deciding import Admitted, Proposal, propose
from ledger.envelope import Envelope
from ledger.errors import AdmissionError, LedgerError, clip
from ledger.members import Act, Artifact, Charge, CurrencyAmount, Effect, Name, Tool
from ledger.oversight import bound_of
from ledger.receipt import Outcome, Step, act_digest
from ledger.recorder import (
    MAX_ARTIFACTS,
    MAX_REFERENCES_BYTES,
    MAX_USAGE,
    Recorder,
    exception_name,
    explain,
    reference_bytes,
    shielded,
)
from ledger.refusals import Blocked, Happened, Waiting
from ledger.resolving import Reconcile, Recorded, reconcile, recorded_result
from ledger.rules.amounts import is_edge, is_money, read_amounts, refuse_meter
from ledger.rules.effect import DEFAULT_LEASE_MS, PROOFS_OF_NOTHING, idempotency_token
from ledger.rules.errors import BudgetError
from ledger.rules.template import Template
from ledger.running_book import Body, Ending, body_of, end_step, enter_step
from ledger.spending import Spending, charges_of, charges_used
from ledger.storage.admission import STEP_LEVELS
from ledger.storage.clock import monotonic_ms
from ledger.storage.ledger import Position
from ledger.storage.writer import View
from ledger.words import CALL_REASONS, Access, Basis, OutcomeStatus, Reason

if TYPE_CHECKING:
    from ledger.run import Run
    from ledger.run_options import RunOptions

__all__ = ["Call", "NotExecuted", "Scope", "StepBlock"]

_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)
_T = TypeVar("_T", bound="bytes | str | JsonObject | None")


class CallOptions(TypedDict, total=False):
    """What `perform` takes besides a name and a function: see `Scope.call`."""

    tool: str | Tool | None
    access: Access | str
    arguments: JsonObject | None
    inline: Sequence[str]
    secrets: Sequence[str]
    resource: str
    environment: str
    amount: CurrencyAmount | None
    precondition: str | None
    effect_key: str | Template | None
    lease_ms: int
    reconcile: Reconcile | None
    reserve: Mapping[str, int | str] | None
    edge: str | None
    ask: Sequence[str] | None
    grant: str | None


class NotExecuted(Exception):  # noqa: N818  it is raised to say something, not to report a fault
    """Raised inside a call by code that knows that the act did not happen: the outcome is `failed`, not `ambiguous`."""


class Scope:
    """What receipts can be recorded inside of: a run, a step or a call."""

    def __init__(self, recorder: Recorder, level: int, secrets: Secrets) -> None:
        self._recorder = recorder
        self._level = level
        self._secrets = secrets
        self._children: list[str] = []
        self._artifacts: list[Artifact] = []
        self._references_bytes = 0
        self._step: str | None = None
        """The step of the run's runbook that this is inside of."""

    def step(self, name: str) -> StepBlock:
        """Return a step to record inside of: `with run.step("collect") as step:`.

        Raises:
            ArgumentsError: a name outside its form.
            AdmissionError: steps and calls nest too deep.
        """
        self._refuse_too_deep("step")
        try:
            return StepBlock(self._recorder, self, _NAME.validate_python(name))
        except ValidationError as error:
            raise explain("step", error) from error

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
        effect_key: str | Template | None = None,
        lease_ms: int = DEFAULT_LEASE_MS,
        reconcile: Reconcile | None = None,
        reserve: Mapping[str, int | str] | None = None,
        edge: str | None = None,
        ask: Sequence[str] | None = None,
        grant: str | None = None,
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
            effect_key: Names the effect across retries, or a `Template` that makes the name from the arguments.
            lease_ms: How long the attempt may take before nobody may assume that it still runs.
            reconcile: Asked where nobody knows whether the effect happened; what it says is recorded as a resolution.
            reserve: What to set aside before the act, by meter: integers, `unknown`, or decimal text for `usd` and its like.
                Under a money limit it says what the act costs; zero is said.
            edge: The edge `from->to` that the act takes; a limit on it holds the number of attempts.
            ask: Roles of which one must approve the act, whatever the policy says; empty for any role.
            grant: The grant that it acts under, where that is one narrowed from its run's. Conditions look at `inline` arguments.

        Raises:
            ArgumentsError: arguments outside the canonical profile, with the path, or another value outside its form; nothing
                was recorded.
            BudgetError: a meter or an amount to reserve outside its form.
            TemplateError: an argument that the effect key needs is absent or of another form.
            AdmissionError: steps and calls nest too deep.
        """
        self._refuse_too_deep("call")
        if type(lease_ms) is not int or not 1 <= lease_ms <= MAX_INTEGER:
            raise ArgumentsError(f"call: got lease_ms {clip(lease_ms)}, expected milliseconds from 1")
        if access not in {*Access, "unknown"}:
            raise ArgumentsError(f"call: got access {clip(access)}, expected read, propose, write or unknown")
        if arguments is not None and not isinstance(arguments, dict):
            raise ArgumentsError(f"arguments: got {type(arguments).__name__}, expected a dict of JSON values")
        if arguments is None and self._recorder.opening.policy is not None:
            # Else nobody could tell later from the record that it had none.
            arguments = {}
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
            key = effect_key
            if isinstance(key, Template):
                key = key.key(arguments or {}, resource=resource)
            if key is not None:
                key = Effect(key=key, attempt=1).key
            roles = None if ask is None else tuple(_NAME.validate_python(each) for each in ask)
        except ValidationError as error:
            raise explain("call", error) from error
        if edge is not None and (type(edge) is not str or not is_edge(edge)):
            raise BudgetError(f"call: got edge {clip(edge)}, expected from->to", code="budget.unknown_meter")
        draw = read_amounts({} if reserve is None else reserve)
        reserved = charges_of(draw if edge is None else {**draw, edge: 1})
        artifacts: tuple[Artifact, ...] = ()
        if kept is not None:
            # Last: arguments of a call that is refused are kept nowhere.
            artifacts = (self._recorder.keep(*kept, "arguments"),)
            act = act.model_copy(update={"arguments_digest": artifacts[0].digest})
        digest = act_digest(
            act,
            ledger=self._recorder.ledger.origin,
            run=self._recorder.id,
            actor=self._recorder.opening.actor,
            effect_key=key,
        )
        proposal = Proposal(act, digest, arguments, key, lease_ms, reserved, artifacts, roles, self._step, grant)
        return Call(self._recorder, self, proposal, cut, reconcile)

    def perform(self, name: str, function: Callable[[Call], _T], **options: Unpack[CallOptions]) -> _T | Recorded:
        """Return what `function` returns, called inside a call; where its effect is committed, the result on record instead.

        What the function returns is kept as the call's result: bytes, a text, a dict of JSON values, or None.

        Raises:
            Blocked: as entering a call does, except where the effect is committed.
            NotFoundError, StorageError: the result on record is erased or cannot be read.
        """
        call = self.call(name, **options)
        with ExitStack() as stack:
            try:
                stack.enter_context(call)
            except Happened as happened:
                return recorded_result(self._recorder.ledger, happened)
            found = function(call)
            if found is not None:
                call.result = found
        return found

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
        with self._recorder.mutex:
            references_bytes = self._references_bytes + reference_bytes(name, media_type or guessed)
            if len(self._artifacts) >= MAX_ARTIFACTS or references_bytes > MAX_REFERENCES_BYTES:
                raise ArgumentsError(
                    f"artifact: got more than {len(self._artifacts)} in one scope, expected what one receipt can refer to",
                    hint="put them into several steps, or several files into one archive",
                )
            kept = self._recorder.keep(data, media_type or guessed, name)
            reference = kept.model_copy(update={"truncated_bytes": truncated_bytes, "full_digest": full_digest})
            self._artifacts.append(reference)
            self._references_bytes = references_bytes
        return reference

    def mention(self, name: str, *, full_digest: str, total_bytes: int) -> Artifact:
        """Return the reference of content that is not kept: its digest and size are recorded, and an empty artifact."""
        return self.artifact(b"", name=name, truncated_bytes=total_bytes, full_digest=full_digest)

    def _adopt(self, child: str) -> None:
        with self._recorder.mutex:
            self._children.append(child)

    def _take_children(self) -> list[str]:
        with self._recorder.mutex:
            taken, self._children = self._children, []
            return taken


class StepBlock(Scope):
    """A step: groups what is recorded inside its block, and is recorded when the block ends."""

    def __init__(self, recorder: Recorder, parent: Scope, name: str) -> None:
        super().__init__(recorder, parent._level + 1, parent._secrets)
        self.name: Final = name
        self.failed: Reason | None = None
        """Once the block is left: why the step failed although nothing was raised; its assertions do not hold."""
        self._parent = parent
        self._started_ms = 0
        self._booked = bound_of(recorder).own
        self._observation: bytes | None = None
        if self._booked:
            self._step = name
            if parent._level:
                raise ArgumentsError(f"step {clip(name)}: steps of a runbook do not nest")

    def observe(self, observation: JsonObject) -> None:
        """Say what came of the step: a dict of JSON values, which its assertions are evaluated over when the block ends."""
        self._observation = self._secrets.content_of(observation, "observation")[0]

    def body(self, text: str | bytes) -> Body:
        """Return the text of this step of the runbook, and whether it may be taken for an instruction; it is kept either way.

        Raises:
            RunbookError: the envelope names another text.
        """
        data = text.encode() if isinstance(text, str) else text
        found = body_of(self._recorder, self.name, data)
        self.artifact(data, name="step-body", media_type="text/plain")
        return found

    def __enter__(self) -> Self:
        if self._booked:
            enter_step(self._recorder, self.name, self._parent._adopt)
        self._started_ms = monotonic_ms()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, children = self._recorder, self._take_children()
        if self._booked:
            self._leave(kind, children)
            return

        def build(_: View) -> list[Envelope]:
            folded, kept = recorder.fold(children, self._references_bytes)
            step = Step(
                **recorder.common(),
                name=self.name,
                status="completed" if kind is None else "failed",
                duration_ms=monotonic_ms() - self._started_ms,
                artifacts=tuple(self._artifacts),
                children=tuple(kept),
            )
            return [*folded, recorder.ledger.envelope(step)]

        self._parent._adopt(recorder.ledger.commit(build)[-1].receipt)

    def _leave(self, kind: type[BaseException] | None, children: list[str]) -> None:
        """End a step of a runbook; one in which an act waits stays current, and goes on when the run does."""
        if kind is not None and issubclass(kind, Waiting):
            for child in children:
                self._parent._adopt(child)
            return
        ending = Ending(
            self.name,
            failed=kind is not None,
            duration_ms=monotonic_ms() - self._started_ms,
            children=children,
            artifacts=tuple(self._artifacts),
            references_bytes=self._references_bytes,
            observation=self._observation,
        )
        self.failed = end_step(self._recorder, ending, self._parent._adopt)

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await shielded(self.__exit__, kind, value, trace)


class Call(Scope):
    """One act: its intent is durable when the block is entered, its outcome when the block is left."""

    def __init__(
        self,
        recorder: Recorder,
        parent: Scope,
        proposal: Proposal,
        secrets: Secrets,
        reconcile: Reconcile | None = None,
    ) -> None:
        super().__init__(recorder, parent._level + 1, secrets)
        self._step = parent._step
        self._proposal = proposal
        self._reconcile = reconcile
        self._admitted = Admitted("")
        self.act: Final = proposal.act
        self.act_digest: Final = proposal.act_digest
        self.intent = ""
        """Receipt id of the intent, once the block is entered."""
        self.outcome: Position | None = None
        """Where the outcome stands, once the block is left."""
        self._parent = parent
        self._usage: list[Charge] = []
        self._uncounted: str | None = None
        """The money meter that is limited, once an amount of another currency was refused and until one of its own is said."""
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

    @property
    def idempotency_token(self) -> str:
        """What a provider can deduplicate this attempt by, once the block of a call with an effect key is entered."""
        effect = self._admitted.effect
        if effect is None:
            raise ArgumentsError(
                "call: it has no attempt of an effect", hint="give it an effect_key and enter its block"
            )
        return idempotency_token(effect.key, effect.attempt)

    def use(self, meter: str, amount: int | Literal["unknown"], *, basis: Basis | str = Basis.REPORTED) -> None:
        """Record what the act used: a meter with its unit in the name, such as `prompt_tokens` or `usd_micro`.

        Raises:
            ArgumentsError: an amount or a basis outside its form, or too many of them.
            BudgetError: an unknown meter, one that is counted by itself, or an amount of another currency under a money limit.
                Nothing is recorded of it; unless the act then says what it cost in the limit's currency, that is unknown.
        """
        if basis not in set(Basis):
            raise ArgumentsError(f"usage: got basis {clip(basis)}, expected measured, reported, quoted or unknown")
        refuse_meter(meter)
        if len(self._usage) >= MAX_USAGE:
            raise ArgumentsError(f"usage: got more than {MAX_USAGE}", hint="add up what is of one meter")
        try:
            charge = Charge(meter=meter, settled=amount, basis=Basis(basis))
        except ValidationError as error:
            raise explain("usage", error) from error
        currency = next(filter(is_money, self._admitted.limited), None)
        if currency is not None and amount and is_money(meter) and meter not in self._admitted.limited:
            self._uncounted = currency
            raise BudgetError(
                f"usage: got {clip(meter)}, expected {currency}: amounts of two currencies are never added",
                code="budget.mixed_currency",
            )
        self._usage.append(charge)
        if meter == self._uncounted:
            self._uncounted = None

    def end(
        self,
        status: OutcomeStatus,
        *,
        reason: Reason | None = None,
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> None:
        """Say how the act ended, for adapters that know it better than an exception would.

        `failed` without a reason that proves that nothing was done is recorded as `ambiguous`.

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
        from ledger.run import Run  # noqa: PLC0415  a run is a scope too, so its module comes after this one

        options["parent"] = (self._recorder.id, self.intent)
        child = Run.start(self._recorder.ledger, name, **options)
        child._secrets = self._secrets.and_those_of(child._secrets)
        return child

    def __enter__(self) -> Self:
        recorder = self._recorder
        if self.intent:
            raise ArgumentsError("call: it was made already", hint="each act is a call of its own")
        try:
            self._admitted = self._propose()
        except Blocked as blocked:
            if self._reconcile is None or blocked.reason is not Reason.EFFECT_AMBIGUOUS:
                raise
            if not reconcile(recorder.ledger, self._proposal.effect_key or "", self._reconcile):
                raise
            self._admitted = self._propose()
        self.intent = self._admitted.intent
        self._started_ms = monotonic_ms()
        return self

    def _propose(self) -> Admitted:
        recorder = self._recorder
        return propose(recorder, self._proposal, approvers=recorder.approvers, adopt=self._parent._adopt)

    def _charges(self, status: OutcomeStatus) -> tuple[Charge, ...]:
        """Return what the act cost: what was used of meters that are limited or were set aside, and what is released."""
        usage = list(self._usage)
        if self._uncounted is not None:
            usage.append(Charge(meter=self._uncounted, settled="unknown", basis=Basis.UNKNOWN))
        charges = charges_used(usage, self._proposal.reserved, self._admitted.limited)
        if status != OutcomeStatus.FAILED:
            return charges
        used = {charge.meter for charge in charges}
        # An attempt of an edge is one, whatever came of it.
        released = (
            Charge(meter=charge.meter, settled=charge.reserved, basis=Basis.MEASURED)
            if is_edge(charge.meter)
            else Charge(meter=charge.meter, released=charge.reserved, basis=Basis.MEASURED)
            for charge in self._proposal.reserved
            if charge.meter not in used and isinstance(charge.reserved, int)
        )
        return (*charges, *released)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, children = self._recorder, self._take_children()
        duration_ms = monotonic_ms() - self._started_ms
        status, reason = self._ended or _ending(kind)
        if status == OutcomeStatus.FAILED and reason not in PROOFS_OF_NOTHING:
            # Without proof that nothing was done, it may have been.
            status = OutcomeStatus.AMBIGUOUS
        artifacts = list(self._artifacts)
        if self._result is not None:
            artifacts.append(recorder.keep(*self._result, "result"))
        if text := text_of(value):
            kept = self._secrets.cut_text(text).encode("utf-8", "backslashreplace")
            artifacts.append(recorder.keep(kept, "text/plain", "error"))

        outcome: Outcome | None = None

        def build(view: View) -> list[Envelope]:
            nonlocal outcome
            roots = [each.id for each in view.state.child_roots(self.intent)]
            folded, kept = recorder.fold(children + roots, self._references_bytes)
            outcome = Outcome(
                **recorder.common(),
                intent=self.intent,
                status=status,
                reason=reason,
                error=exception_name(kind) if kind is not None else None,
                exit_code=self._exit_code,
                signal=self._signal,
                duration_ms=duration_ms,
                charges=self._charges(status),
                usage=tuple(self._usage),
                artifacts=tuple(artifacts),
                children=(self.intent, *kept),
            )
            return [*folded, recorder.ledger.envelope(outcome)]

        def tell(positions: list[Position]) -> None:
            if recorder.limited and outcome is not None:
                Spending.of(recorder.ledger).tell(recorder.root, positions[-1], outcome)

        try:
            self.outcome = recorder.ledger.commit(build, tell)[-1]
        except LedgerError as error:
            error.hint = error.hint or f"the act {self.act.name!r} is ambiguous: its outcome is not recorded"
            raise
        self._parent._adopt(self.outcome.receipt)

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await shielded(self.__exit__, kind, value, trace)


def _ending(kind: type[BaseException] | None) -> tuple[OutcomeStatus, Reason | None]:
    """Return what an exception, or none, says about an act."""
    if kind is None:
        return OutcomeStatus.COMMITTED, None
    if issubclass(kind, NotExecuted):
        return OutcomeStatus.FAILED, Reason.NOT_EXECUTED
    if issubclass(kind, asyncio.CancelledError | KeyboardInterrupt | SystemExit | GeneratorExit):
        return OutcomeStatus.AMBIGUOUS, Reason.CANCELLED
    return OutcomeStatus.AMBIGUOUS, Reason.EXCEPTION
