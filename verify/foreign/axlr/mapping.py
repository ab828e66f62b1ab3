"""AXLR in our words: an execution is a run, each of its calls an act, and what its requests to the model cost one act more.

- A result holds every call of its session, and the usage of all sessions it spans, from their start. Of a session that was
  imported before, only what is new becomes receipts, in a run that continues the earlier one.
- `failed` is `ambiguous`: the tool reported an error, which is no proof that nothing happened.
- Who approved is not said, and nobody's key signed it: `approve` and `auto_approve` stand as the rule of the intent.
- A stream that ends before its result is an `interrupted` run with the calls that its lines name.

Source: docs/spec/words.md, "AXLR".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ledger.canonical import JsonObject
from ledger.importing.facts import CallFact, CallStatus, Facts, RunFact, name_of
from ledger.members import Actor, Charge, CurrencyAmount
from ledger.words import Basis, Reason, RunStatus
from verify.foreign.axlr.objects import correlation_misfits, read_session
from verify.foreign.axlr.result import METERS, Call, Result, read_result
from verify.foreign.axlr.stream import Stream, read_stream
from verify.foreign.mapping import Earlier, EarlierOf, Given
from verify.foreign.strict import ReadError, read_object

__all__ = ["MAPPING", "SESSION", "facts"]

MAPPING: Final = "axlr/1"
SESSION: Final = "axlr.session"
"""Correlation that names the session which an execution ended in."""
_AXLR: Final = Actor(agent="axlr", user="unknown", model="unknown")
_MODEL: Final = "model.requests"
_COST: Final = "usd_micro"
_CALLS: Final[Mapping[str, tuple[CallStatus, Reason | None]]] = {
    "completed": ("committed", None),
    "failed": ("ambiguous", Reason.EXCEPTION),
    "uncertain": ("ambiguous", Reason.RECORDER_LOST),
    "forbidden": ("denied", Reason.POLICY_DENIED),
    "denied": ("denied", Reason.APPROVAL_DENIED),
    "pending": ("waiting", Reason.APPROVAL_REQUIRED),
}
_RUNS: Final = {
    "completed": RunStatus.COMPLETED,
    "needs_decision": RunStatus.NEEDS_DECISION,
    "interrupted": RunStatus.INTERRUPTED,
    "failed": RunStatus.FAILED,
}


@dataclass(frozen=True, slots=True)
class _Execution:
    """What one document says of an execution."""

    result: Result | None
    stream: Stream | None = None
    model: str | None = None


def facts(given: Sequence[Given], earlier: EarlierOf) -> Facts:
    """Return what documents of AXLR say: a run for each result or broken stream, nothing for the small objects."""
    runs: list[RunFact] = []
    notes: list[str] = []
    before: dict[str, _Execution] = {}
    named = _correlation(given)
    for each in given:
        execution = _read(each.data, each.found.kind)
        if execution is None:
            continue
        if execution.result is None:
            if execution.stream is not None and not execution.stream.service:
                runs.append(_interrupted(each.digest, execution.stream, earlier))
            continue
        runs.append(_run(each.digest, execution, execution.result, before, earlier, notes))
        for session in execution.result.sessions:
            before[session] = execution
    return Facts(tuple(_named(run, named) for run in runs), tuple(notes))


def _correlation(given: Sequence[Given]) -> dict[str, str]:
    """Return the names that correlation objects among the documents give to all that came with them."""
    named: dict[str, str] = {}
    for each in given:
        if each.found.kind == "correlation":
            value = read_object(each.data)
            if not correlation_misfits(value):
                named |= value["correlation"]
    return named


def _named(run: RunFact, named: Mapping[str, str]) -> RunFact:
    if not named:
        return run
    actor = run.actor.model_copy(update={"agent": name_of(named.get("bot_id"), run.actor.agent)})
    return replace(run, actor=actor, correlation={**run.correlation, **named})


def _read(data: bytes, kind: str) -> _Execution | None:
    """Return the execution in a document, None where it holds none that can be read."""
    if kind in ("stream", "journal"):
        stream = read_stream(data)
        result = read_result(stream.result, stream.arguments) if stream.result is not None else None
        return _Execution(result if isinstance(result, Result) else None, stream)
    try:
        value = read_object(data)
    except ReadError:
        return None
    model = None
    if kind == "session":
        session = read_session(value)
        value, model = session.result or {}, session.model
    elif kind != "result":
        return None
    result = read_result(value)
    return _Execution(result, None, model) if isinstance(result, Result) else None


def _run(
    document: str,
    execution: _Execution,
    result: Result,
    before: Mapping[str, _Execution],
    earlier: EarlierOf,
    notes: list[str],
) -> RunFact:
    known, continues = _known(result, before, earlier)
    spent, unmetered = _usage(result, known)
    old = {call.call_id: call.status for call in known.calls} if known is not None else {}
    calls = [call for call in result.calls if old.get(call.call_id) != call.status]
    if known is not None and len(calls) < len(result.calls):
        notes.append(
            f"session {result.sessions[-1]}: {len(result.calls) - len(calls)} calls are recorded from an earlier import"
        )
    if not result.cost.exact:
        notes.append(f"session {result.sessions[-1]}: the cost is finer than a micro-dollar and is rounded up")
    model = () if not spent and not unmetered else (_requests(document, spent, unmetered, execution.model),)
    return RunFact(
        "axlr.execution",
        _RUNS[result.status],
        document,
        (*model, *(_call(document, call) for call in calls)),
        actor=_AXLR if execution.model is None else _AXLR.model_copy(update={"model": name_of(execution.model)}),
        adapter="axlr",
        correlation={SESSION: result.sessions[-1] if result.sessions else "unknown"},
        totals=tuple(CurrencyAmount(meter=meter, value=amount) for meter, amount in spent.items()),
        continues=continues,
    )


def _known(result: Result, before: Mapping[str, _Execution], earlier: EarlierOf) -> tuple[Result | None, str | None]:
    """Return what was said of the same sessions before, and the run that says it, where that is recorded."""
    for session in reversed(result.sessions):
        if session in before:
            return before[session].result, None
        found: Earlier | None = earlier(SESSION, session)
        if found is not None:
            return _from_document(found.data), found.run
    return None, None


def _from_document(data: bytes) -> Result | None:
    for kind in ("result", "stream", "session"):
        execution = _read(data, kind)
        if execution is not None and execution.result is not None:
            return execution.result
    return None


def _usage(result: Result, known: Result | None) -> tuple[dict[str, int], int]:
    """Return what was used beyond what is known, by meter, and how many requests reported no cost."""
    amounts = {**result.usage, _COST: result.cost.usd_micro}
    unmetered = result.unmetered_requests
    if known is not None:
        old = {**known.usage, _COST: known.cost.usd_micro}
        amounts = {meter: max(0, amount - old[meter]) for meter, amount in amounts.items()}
        unmetered = max(0, unmetered - known.unmetered_requests)
    return {meter: amount for meter, amount in amounts.items() if amount}, unmetered


def _requests(document: str, spent: Mapping[str, int], unmetered: int, model: str | None) -> CallFact:
    """Return the requests to the model as one act: the contract gives their sum and not each of them."""
    charges = [
        Charge(meter=meter, settled=spent[meter], basis=Basis.REPORTED) for meter in (*METERS, _COST) if meter in spent
    ]
    if unmetered:
        charges.append(Charge(meter=_COST, settled="unknown", basis=Basis.UNKNOWN))
    inline: JsonObject = {"unmetered_requests": unmetered} if unmetered else {}
    return CallFact(
        _MODEL,
        "committed",
        document,
        tool="model",
        tool_version=model or "unknown",
        inline=inline,
        charges=tuple(charges),
    )


def _call(document: str, call: Call) -> CallFact:
    status, reason = _CALLS[call.status]
    return CallFact(
        call.tool,
        status,
        document,
        reason=reason,
        rule=call.decision if call.ran else None,
        arguments=call.arguments,
        inline={"call_id": call.call_id[:256]},
    )


def _interrupted(document: str, stream: Stream, earlier: EarlierOf) -> RunFact:
    """Return the run of a stream that broke: each call that a line names may have run."""
    calls = [
        CallFact(
            stream.tools.get(call_id, "unknown"),
            "ambiguous",
            document,
            reason=Reason.RECORDER_LOST,
            arguments=stream.arguments.get(call_id),
            inline={"call_id": call_id[:256]},
        )
        for call_id in stream.called
    ]
    session = stream.last_session
    before = earlier(SESSION, session) if session is not None else None
    return RunFact(
        "axlr.execution",
        RunStatus.INTERRUPTED,
        document,
        tuple(calls),
        actor=_AXLR,
        adapter="axlr",
        correlation={} if session is None else {SESSION: session},
        continues=None if before is None else before.run,
    )
