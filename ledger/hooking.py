"""Tool calls of an agent, recorded and held from outside the agent: one event before each call, one after it.

    {"event": "before", "session": "s-1", "name": "shell", "arguments": {"command": "ls"}}      -> allow, deny or wait
    {"event": "after", "session": "s-1", "name": "shell", "arguments": {"command": "ls"}, "result": "a.txt"}
    {"event": "end", "session": "s-1"}

- A session is one run. The first event opens it, `end` closes it; what it stands at is read from the ledger, so that each event
  may come to another process.
- A call that is not admitted is answered with `deny` or `wait` before it runs. What cannot be recorded is denied.
- A call whose `after` never comes is ambiguous when the session ends.
- The names that agent clients use are understood too: `hook_event_name`, `tool_name`, `tool_input`, `tool_response`,
  `session_id`. Members that are not known are passed over.

Source: docs/how-to/hook.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ledger import canonical
from ledger.arguments import ArgumentsError
from ledger.canonical import MAX_INTEGER, JsonObject, JsonValue
from ledger.errors import LedgerError, clip
from ledger.granting import limited_under
from ledger.members import Adapter, Artifact, Charge
from ledger.opening_book import read_book
from ledger.oversight import bound_of
from ledger.receipt import Intent, Outcome, parse_receipt
from ledger.refusals import Blocked, Waiting
from ledger.rules.amounts import UNKNOWN, read_amounts
from ledger.rules.policy_file import read_policy
from ledger.run import Run
from ledger.run_options import RunOptions
from ledger.running_book import Ending, end_step
from ledger.scope import Scope
from ledger.spending import Spending, charges_used
from ledger.storage.ledger import Ledger
from ledger.storage.writer import View
from ledger.words import Basis, Kind, OutcomeStatus, Reason, RunStatus

__all__ = ["HOOK", "Event", "Hook", "HookAnswer", "Moment", "parse_event"]

HOOK: Final = Adapter(name="hook", version="1", coverage="tool-call-hook")
"""What the hook sees: every call that the client tells it of before making it, the shell included. Not what a tool does inside."""
_MAX_BYTES: Final = 64 << 20
_PREFIX: Final = "session "


class Moment(StrEnum):
    """When an event comes."""

    BEFORE = "before"
    AFTER = "after"
    STEP_END = "step-end"
    END = "end"
    OTHER = "other"


_MOMENTS: Final = {
    "before": Moment.BEFORE,
    "PreToolUse": Moment.BEFORE,
    "after": Moment.AFTER,
    "PostToolUse": Moment.AFTER,
    "PostToolUseFailure": Moment.AFTER,
    "step-end": Moment.STEP_END,
    "end": Moment.END,
    "SessionEnd": Moment.END,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event, read."""

    moment: Moment
    session: str | None = None
    name: str = ""
    arguments: JsonObject = field(default_factory=dict)
    result: JsonValue = None
    error: str | None = None
    step: str | None = None
    status: str | None = None
    observation: JsonObject | None = None
    reserve: Mapping[str, int | str] | None = None
    usage: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What an event is answered with."""

    decision: str
    """`allow`, `deny`, `wait`, `recorded`, `closed` or `ignored`."""
    run: str | None = None
    receipt: str | None = None
    """The intent, decision, outcome, step or `run` that records it."""
    reason: str | None = None
    message: str | None = None

    @property
    def stops(self) -> bool:
        """Whether the call must not be made."""
        return self.decision in ("deny", "wait")

    def value(self) -> JsonObject:
        """Return the answer as JSON."""
        members = {"run": self.run, "receipt": self.receipt, "reason": self.reason, "message": self.message}
        return {"decision": self.decision, **{name: str(value) for name, value in members.items() if value is not None}}


def parse_event(data: bytes) -> Event:
    """Return the event that JSON holds; a number with a point, or past 2^53-1, comes as its text.

    Raises:
        ArgumentsError: not an object of JSON, a member twice, or a member of another type.
    """
    value = _read(data)
    word = value.get("event", value.get("hook_event_name"))
    result = value.get("result", value.get("tool_response"))
    error = value.get("error")
    if word is None:
        word = "after" if result is not None or error is not None else "before"
    moment = _MOMENTS.get(word, Moment.OTHER) if isinstance(word, str) else Moment.OTHER
    arguments = value.get("arguments", value.get("tool_input", {}))
    return Event(
        moment=moment,
        session=_text(value.get("session", value.get("session_id")), "session"),
        name=_text(value.get("name", value.get("tool_name")), "name") or "",
        arguments=_object(arguments, "arguments"),
        result=result,
        error=None if error is None else error if isinstance(error, str) else json.dumps(error),
        step=_text(value.get("step"), "step"),
        status=_text(value.get("status"), "status"),
        observation=None if value.get("observation") is None else _object(value["observation"], "observation"),
        reserve=_object(value.get("reserve", {}), "reserve"),
        usage=_object(value.get("usage", {}), "usage"),
    )


class Hook:
    """Takes the events of sessions, one after another."""

    def __init__(
        self, ledger: Ledger, options: RunOptions, *, session: str = "default", inline: tuple[str, ...] = ()
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._session = session
        self._inline = inline
        self._runs: dict[str, Run] = {}

    def take(self, event: Event) -> HookAnswer:
        """Return the answer to an event, once what it says is recorded. Nothing that a rule or the disk refuses is raised."""
        try:
            match event.moment:
                case Moment.BEFORE:
                    return self._before(event)
                case Moment.AFTER:
                    return self._after(event)
                case Moment.STEP_END:
                    return self._end_step(event)
                case Moment.END:
                    return self._end(event)
                case Moment.OTHER:
                    return HookAnswer("ignored")
        except Waiting as waiting:
            return HookAnswer("wait", receipt=waiting.request, reason=waiting.reason, message=str(waiting))
        except Blocked as blocked:
            return HookAnswer("deny", receipt=blocked.decision, reason=blocked.reason, message=str(blocked))
        except LedgerError as error:
            return HookAnswer("deny", reason=error.code, message=f"it could not be recorded: {error}")

    def _before(self, event: Event) -> HookAnswer:
        run = self._run(event)
        self._refuse_other(run)
        scope: Scope = run
        if bound_of(run._recorder).own:
            block = run.step(event.step or run.due() or "none")
            block.__enter__()
            scope = block
        call = scope.call(
            event.name,
            arguments=event.arguments,
            inline=tuple(name for name in self._inline if name in event.arguments),
            reserve=event.reserve or None,
        )
        call.__enter__()
        return HookAnswer("allow", run.id, call.intent)

    def _after(self, event: Event) -> HookAnswer:
        run = self._begun(event)
        recorder = run._recorder
        wanted = run.call(event.name, arguments=event.arguments)
        artifacts: tuple[Artifact, ...] = ()
        for found, name in ((event.result, "result"), (event.error, "error")):
            if found is not None:
                content, media_type = _content(found)
                cut = run._secrets.content_of(content, name)[0]
                artifacts = (*artifacts, recorder.keep(cut, media_type, name))
        usage = tuple(
            Charge(meter=meter, settled=amount, basis=Basis.UNKNOWN if amount == UNKNOWN else Basis.REPORTED)  # type: ignore[arg-type]
            for meter, amount in read_amounts(event.usage or {}).items()
        )
        outcome = ""

        def build(view: View) -> list[Any]:
            nonlocal outcome
            intent = self._intent(view, run.id, event.name, wanted.act_digest)
            if intent is None:
                raise ArgumentsError(
                    f"hook: no call of {clip(event.name)} with these arguments was admitted and is under way"
                )
            id_, receipt = intent
            limited: frozenset[str] = frozenset()
            if recorder.limited:
                limited = Spending.of(self._ledger).limited(recorder.root, run.id, size=view.size)
            if receipt.grant is not None:
                limited |= limited_under(recorder, receipt.grant, view)
            made = Outcome(
                **recorder.common(),
                intent=id_,
                status=OutcomeStatus.COMMITTED if event.error is None else OutcomeStatus.AMBIGUOUS,
                reason=None if event.error is None else Reason.EXCEPTION,
                duration_ms="unknown",
                charges=charges_used(usage, receipt.reserved, limited),
                usage=usage,
                artifacts=artifacts,
                children=(id_, *(each.id for each in view.state.child_roots(id_))),
            )
            envelope = self._ledger.envelope(made)
            outcome = envelope.receipt_id
            return [envelope]

        self._ledger.commit(build)
        return HookAnswer("recorded", run.id, outcome)

    def _intent(self, view: View, run: str, name: str, act_digest: str) -> tuple[str, Intent] | None:
        """Return the oldest call under way that is this one: by its act digest, else the only one of its name."""
        named: list[tuple[str, Intent]] = []
        for pending in view.state.pending_of(run):
            if pending.kind != Kind.INTENT:
                continue
            receipt = parse_receipt(self._ledger.get(pending.id).envelope.payload)
            if isinstance(receipt, Intent):
                if receipt.act_digest == act_digest:
                    return pending.id, receipt
                if receipt.act.name == name:
                    named.append((pending.id, receipt))
        return named[0] if len(named) == 1 else None

    def _end_step(self, event: Event) -> HookAnswer:
        run = self._begun(event)
        recorder, step = run._recorder, event.step or run.due() or "none"
        block = run.step(step)
        if event.observation is not None:
            block.observe(event.observation)
        children: list[str] = []
        kinds = (Kind.OUTCOME, Kind.DECISION)
        self._ledger.look(
            lambda view: children.extend(each.id for each in view.state.pending_of(run.id) if each.kind in kinds)
        )
        ending = Ending(
            step,
            failed=event.status == "failed",
            duration_ms=None,
            children=children,
            observation=block._observation,
        )
        recorded: list[str] = []
        failed = end_step(recorder, ending, recorded.append)
        return HookAnswer("recorded", run.id, recorded[-1], None if failed is None else str(failed))

    def _end(self, event: Event) -> HookAnswer:
        name = self._name(event)
        found = self._open(name)
        if found is None:
            return HookAnswer("ignored", message="no call of this session was recorded")
        run = self._attached(name, found)
        position = run.close(event.status or RunStatus.COMPLETED)
        self._runs.pop(name, None)
        return HookAnswer("closed", run.id, position.receipt)

    def _run(self, event: Event) -> Run:
        """Return the run of a session; its first event opens it."""
        name = self._name(event)
        if name in self._runs:
            return self._runs[name]
        found = self._open(name)
        if found is not None:
            return self._attached(name, found)
        started = Run.start(self._ledger, name, **self._options)
        # Another process may have opened it at the same time: the earlier one is the session's.
        first = self._open(name)
        if first is not None and first != started.id:
            started.close(RunStatus.SUPERSEDED, reason=Reason.RUN_SUPERSEDED)
            return self._attached(name, first)
        self._runs[name] = started
        return started

    def _begun(self, event: Event) -> Run:
        """Return the run of a session that has begun; what comes after a call opens none."""
        name = self._name(event)
        found = self._runs[name].id if name in self._runs else self._open(name)
        if found is None:
            raise ArgumentsError("hook: no call of this session was admitted")
        return self._attached(name, found)

    def _refuse_other(self, run: Run) -> None:
        """Raise where a session was opened under less than is asked for now: what is asked for would not be held.

        Raises:
            ArgumentsError: another policy, grant or runbook, or other limits.
        """
        given, opening = self._options, run.opening
        policy, book, limits = given.get("policy"), given.get("runbook"), tuple(given.get("limits", ()))
        asked: list[tuple[str, object, object]] = []
        if policy is not None:
            asked.append(("policy", read_policy(policy).digest, opening.policy))
        if given.get("grant") is not None:
            asked.append(("grant", given.get("grant"), opening.grant))
        if limits:
            asked.append(("limits", limits, opening.limits))
        if book is not None:
            said = opening.runbook
            held = None if said is None else (said.envelope, said.profile.value, said.ceiling.value)
            wanted = (read_book(book)[0].digest, given.get("profile", "R2"), given.get("risk_ceiling", "write"))
            asked.append(("runbook", wanted, held))
        for what, expected, found in asked:
            if expected != found:
                raise ArgumentsError(
                    f"hook: this session was opened under another {what} than is asked for now",
                    hint="end the session, or give each of its events the same options",
                )

    def _attached(self, name: str, run: str) -> Run:
        if name not in self._runs:
            approvers = self._options.get("approvers")
            self._runs[name] = Run.resume(self._ledger, run, secrets=self._options.get("secrets"), approvers=approvers)
        return self._runs[name]

    def _open(self, name: str) -> str | None:
        return next((each.id for each in self._ledger.open_runs() if each.name == name), None)

    def _name(self, event: Event) -> str:
        return (_PREFIX + (event.session or self._session))[:256]


def _content(value: JsonValue) -> tuple[bytes | str | JsonObject, str]:
    if isinstance(value, str):
        return value, "text/plain"
    return canonical.encode(value if isinstance(value, dict) else {"result": value}), "application/json"


def _read(data: bytes) -> JsonObject:
    if len(data) > _MAX_BYTES:
        raise ArgumentsError(f"hook: got {len(data)} bytes, expected at most {_MAX_BYTES}")

    def pairs(found: list[tuple[str, JsonValue]]) -> JsonObject:
        if len({name for name, _ in found}) != len(found):
            raise ArgumentsError("hook: got a member twice in one object")
        return dict(found)

    def integer(text: str) -> int | str:
        return int(text) if len(text) <= 17 and abs(int(text)) <= MAX_INTEGER and text != "-0" else text

    def constant(text: str) -> JsonValue:
        raise ArgumentsError(f"hook: got {text}, expected a number of JSON")

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_float=str, parse_int=integer, parse_constant=constant)
    try:
        value = decoder.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(f"hook: not JSON: {error}") from error
    return _object(value, "event")


def _object(value: JsonValue, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ArgumentsError(f"hook: {where}: got {clip(value)}, expected an object")
    return value


def _text(value: JsonValue, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ArgumentsError(f"hook: {where}: got {clip(value)}, expected a text")
