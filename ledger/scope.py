"""Scopes: the steps and calls of a run, and what can be recorded inside each.

A call's intent is durable when its block is entered, its outcome when the block is left; a step is recorded when its block
ends. What happens inside a block is committed by the receipt that ends it.

Source: docs/spec/receipts.md, docs/spec/trees.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, Unpack

from pydantic import TypeAdapter, ValidationError

from ledger.arguments import ArgumentsError, Secrets, content_of, inline_members, text_of
from ledger.canonical import MAX_INTEGER, JsonObject
from ledger.envelope import Envelope
from ledger.errors import AdmissionError, LedgerError, clip
from ledger.members import Act, Artifact, Charge, CurrencyAmount, Effect, Name, Tool
from ledger.policing import decide_call
from ledger.receipt import Decision, Intent, Outcome, Step, WouldHave, act_digest
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
from ledger.rules.amounts import COUNTED_METERS, DURATION, read_amounts
from ledger.rules.budget import Refused
from ledger.rules.effect import DEFAULT_LEASE_MS, PROOFS_OF_NOTHING, idempotency_token
from ledger.rules.policy import Answer
from ledger.rules.policy import Decision as PolicyDecision
from ledger.spending import Blocked, Spending, charges_of
from ledger.storage.admission import STEP_LEVELS
from ledger.storage.clock import monotonic_ms
from ledger.storage.ledger import Position
from ledger.storage.writer import View
from ledger.words import CALL_REASONS, Access, Basis, OutcomeStatus, Reason

if TYPE_CHECKING:
    from ledger.run import Run, RunOptions

__all__ = ["Call", "NotExecuted", "Scope", "StepBlock"]

_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)


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
        effect_key: str | None = None,
        reserve: Mapping[str, int | str] | None = None,
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
            reserve: What to set aside before the act, by meter: integers, `unknown`, or decimal text for `usd` and its like.
                Under a money limit it says what the act costs; zero is said.

        Raises:
            ArgumentsError: arguments outside the canonical profile, with the path, or another value outside its form; nothing
                was recorded.
            BudgetError: a meter or an amount to reserve outside its form.
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
            raise explain("call", error) from error
        reserved = charges_of(read_amounts(reserve or {}))
        artifacts: tuple[Artifact, ...] = ()
        if kept is not None:
            # Last: arguments of a call that is refused are kept nowhere.
            artifacts = (self._recorder.keep(*kept, "arguments"),)
            act = act.model_copy(update={"arguments_digest": artifacts[0].digest})
        return Call(self._recorder, self, act, effect, artifacts, cut, reserved, arguments)

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
        self._parent = parent
        self._started_ms = 0

    def __enter__(self) -> Self:
        self._started_ms = monotonic_ms()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, children = self._recorder, self._take_children()

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

    async def __aenter__(self) -> Self:
        return self.__enter__()

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
        act: Act,
        effect: Effect | None,
        artifacts: tuple[Artifact, ...],
        secrets: Secrets,
        reserved: tuple[Charge, ...] = (),
        arguments: JsonObject | None = None,
    ) -> None:
        super().__init__(recorder, parent._level + 1, secrets)
        self._reserved = reserved
        self._arguments = arguments
        self._limited: frozenset[str] = frozenset()
        self.act: Final = act
        self.act_digest: Final = act_digest(
            act,
            ledger=recorder.ledger.origin,
            run=recorder.id,
            actor=recorder.opening.actor,
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

    @property
    def idempotency_token(self) -> str:
        """What a provider can deduplicate this attempt by, once the block of a call with an effect key is entered."""
        if self._effect is None or not self.intent:
            raise ArgumentsError(
                "call: it has no attempt of an effect", hint="give it an effect_key and enter its block"
            )
        return idempotency_token(self._effect.key, self._effect.attempt)

    def use(self, meter: str, amount: int, *, basis: Basis | str = Basis.REPORTED) -> None:
        """Record what the act used: a meter with its unit in the name, such as `prompt_tokens` or `usd_micro`."""
        if basis not in set(Basis):
            raise ArgumentsError(f"usage: got basis {clip(basis)}, expected measured, reported, quoted or unknown")
        if len(self._usage) >= MAX_USAGE:
            raise ArgumentsError(f"usage: got more than {MAX_USAGE}", hint="add up what is of one meter")
        try:
            self._usage.append(Charge(meter=meter, settled=amount, basis=Basis(basis)))
        except ValidationError as error:
            raise explain("usage", error) from error

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
        from ledger.run import Run  # noqa: PLC0415  a run is a scope too, so its module comes after this one

        options["parent"] = (self._recorder.id, self.intent)
        child = Run.start(self._recorder.ledger, name, **options)
        child._secrets = self._secrets.and_those_of(child._secrets)
        return child

    def __enter__(self) -> Self:
        recorder = self._recorder
        if self.intent:
            raise ArgumentsError("call: it was made already", hint="each act is a call of its own")
        intent = Intent(
            **recorder.common(),
            act=self.act,
            act_digest=self.act_digest,
            effect=self._effect,
            reserved=self._reserved,
            artifacts=self._intent_artifacts,
        )
        if recorder.limited or self._effect is not None or recorder.opening.policy is not None:
            self.intent = self._admit(intent)
        else:
            self.intent = recorder.ledger.append(recorder.ledger.envelope(intent)).receipt
        self._started_ms = monotonic_ms()
        return self

    def _admit(self, intent: Intent) -> str:
        """Return the id of the intent, which stands in one commit with what it sets aside.

        Raises:
            Blocked: a policy, an effect or a limit does not admit it; a decision that says so is recorded.
        """
        recorder, blocked, decided = self._recorder, None, None
        policy = recorder.opening.policy
        if policy is not None:
            decided = decide_call(recorder.ledger, policy, intent.act, self._arguments)
            intent = intent.model_copy(
                update={
                    "policy": policy,
                    "rule": decided.rule,
                    "would_have": _would_have(decided) if decided.runs else None,
                }
            )

        def build(view: View) -> list[Envelope]:
            nonlocal blocked
            blocked, admitted = None, intent
            spending = Spending.of(recorder.ledger)
            if decided is not None and not decided.runs:
                blocked = _denied(decided)
            if blocked is None and intent.effect is not None:
                begun = spending.admit_effect(intent.act, intent.act_digest, intent.effect.key, size=view.size)
                if isinstance(begun, Blocked):
                    blocked = begun
                else:
                    self._effect = Effect(key=intent.effect.key, attempt=begun.attempt)
                    admitted = admitted.model_copy(update={"effect": self._effect, "lease_ms": DEFAULT_LEASE_MS})
            if blocked is None and recorder.limited:
                found = spending.admit(
                    recorder.root, recorder.id, self._reserved, size=view.size, elapsed_ms=recorder.elapsed_ms()
                )
                self._limited = spending.limited(recorder.root, recorder.id, size=view.size)
                if isinstance(found, Refused):
                    blocked = Blocked(found.reason, found.message, refused=found)
            made = admitted if blocked is None else _decision(recorder, intent, blocked, decided)
            return [recorder.ledger.envelope(made)]

        position = recorder.ledger.commit(build)[-1]
        if blocked is not None:
            self._parent._adopt(position.receipt)
            raise blocked
        return position.receipt

    def _charges(self, status: OutcomeStatus) -> tuple[Charge, ...]:
        """Return what the act cost: what was used of meters that are limited or were set aside, and what is released."""
        meters = {charge.meter: charge.reserved for charge in self._reserved}
        used: dict[str, tuple[int, Basis]] = {}
        for charge in self._usage:
            if charge.meter in COUNTED_METERS or charge.meter == DURATION:
                continue
            if isinstance(charge.settled, int) and (charge.meter in meters or charge.meter in self._limited):
                used[charge.meter] = (charge.settled + used.get(charge.meter, (0,))[0], charge.basis)
        charges = [
            Charge(meter=meter, settled=min(amount, MAX_INTEGER), basis=basis)
            for meter, (amount, basis) in used.items()
        ]
        if status == OutcomeStatus.FAILED:
            charges += [
                Charge(meter=meter, released=amount, basis=Basis.MEASURED)
                for meter, amount in meters.items()
                if meter not in used and isinstance(amount, int)
            ]
        return tuple(charges)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, children = self._recorder, self._take_children()
        duration_ms = monotonic_ms() - self._started_ms
        status, reason = self._ended or _ending(kind)
        if self._effect is not None and status == OutcomeStatus.FAILED and reason not in PROOFS_OF_NOTHING:
            # Without proof that nothing was done, an effect may have happened.
            status = OutcomeStatus.AMBIGUOUS
        artifacts = list(self._artifacts)
        if self._result is not None:
            artifacts.append(recorder.keep(*self._result, "result"))
        if text := text_of(value):
            kept = self._secrets.cut_text(text).encode("utf-8", "backslashreplace")
            artifacts.append(recorder.keep(kept, "text/plain", "error"))

        def build(view: View) -> list[Envelope]:
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

        try:
            self.outcome = recorder.ledger.commit(build)[-1]
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


def _denied(decided: PolicyDecision) -> Blocked:
    asks = decided.answer is Answer.ASK
    said = "needs an approval, which nothing gives yet" if asks else "is denied"
    return Blocked(decided.reason or Reason.POLICY_DENIED, f"policy: the act {said}, by {decided.rule or 'default'}")


def _would_have(decided: PolicyDecision) -> WouldHave | None:
    if decided.answer is Answer.ALLOW or decided.reason is None:
        return None
    return WouldHave(status="denied" if decided.answer is Answer.DENY else "waiting", reason=decided.reason)


def _decision(recorder: Recorder, intent: Intent, blocked: Blocked, decided: PolicyDecision | None) -> Decision:
    waits, refused = blocked.reason is Reason.APPROVAL_REQUIRED, blocked.refused
    by_policy = decided is not None and not decided.runs
    return Decision(
        **recorder.common(),
        act=intent.act,
        act_digest=intent.act_digest,
        status="waiting" if waits else "denied" if by_policy else "blocked",
        rule=intent.rule if by_policy else None,
        policy=intent.policy,
        roles=decided.roles if decided is not None and by_policy else (),
        reason=blocked.reason,
        effect=intent.effect,
        meter=None if refused is None else refused.meter,
        limit=None if refused is None else refused.limit,
        spent=None if refused is None else refused.spent,
        reserved=None if refused is None else refused.reserved,
        asked=None if refused is None else refused.asked,  # type: ignore[arg-type]  # an amount or `unknown`
        needed=max(1, decided.needed if decided is not None and by_policy else 1) if waits else None,
        artifacts=intent.artifacts,
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
