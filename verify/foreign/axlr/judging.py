"""The judgement on a document of AXLR, by its kind.

The native verdict is what the contract says: it holds where the form is that of the contract and no part contradicts another.
Beyond it are the policy and the budget that the caller brings, re-checked over every call that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.errors import CanonicalError, LedgerError, clip
from ledger.rules.amounts import read_budget
from ledger.rules.policy import Policy
from ledger.rules.policy_file import read_policy
from verify.foreign import Judgement, Native, NativeFinding, NativeStatus, Recognised
from verify.foreign.axlr.objects import correlation_misfits, read_session
from verify.foreign.axlr.recheck import recheck_budget, recheck_policy
from verify.foreign.axlr.result import RESULT_SCHEMA, Result, contradictions, read_result
from verify.foreign.axlr.stream import Stream, read_stream
from verify.foreign.strict import ReadError, read_object
from verify.options import Options
from verify.report import MAX_FINDINGS, Coverage, Report

__all__ = ["judge_document"]

_READ_CODES: Final = {"too_deep": "foreign.too_deep", "duplicate_name": "foreign.duplicate_name"}
_UNSIGNED: Final = "nothing of AXLR is signed: whoever wrote it could have written anything"


class _Judging:
    """What is gathered while one document is judged."""

    def __init__(self, found: Recognised, options: Options) -> None:
        self.found = found
        self.options = options
        self.report = Report()
        self.findings: list[NativeFinding] = []
        self.status: NativeStatus = "holds"
        self.code = "valid"

    def refuse(self, name: str, native: str, code: str, where: str, message: str, *, asked: bool = True) -> None:
        """Add a finding of the contract, under its word and ours."""
        self.findings.append(NativeFinding(native, where, message))
        self.report.find(name, code, where=where, message=message, asked=asked)
        if self.status == "holds":
            self.status = "fails"

    def unreadable(self, error: ReadError, where: str = "$") -> None:
        self.refuse("form", error.name, _READ_CODES.get(error.name, "foreign.malformed"), where, str(error))

    def end(self, count: int, *notes: str) -> Judgement:
        """Return the judgement."""
        code = self.findings[0].name if self.findings else self.code
        native = Native(
            "axlr",
            self.found.kind,
            self.found.version,
            self.status,
            code,
            tuple(self.findings[:MAX_FINDINGS]),
            len(self.findings),
        )
        return Judgement(native, self.report, Coverage(0, count, count), notes)


def judge_document(data: bytes, found: Recognised, options: Options) -> Judgement:
    """Return the judgement on bytes that were recognised."""
    judging = _Judging(found, options)
    if found.kind in ("stream", "journal"):
        return _judge_stream(judging, read_stream(data))
    judging.report.expect("form")
    try:
        value = read_object(data)
    except ReadError as error:
        judging.unreadable(error)
        judging.status = "unreadable"
        return judging.end(1)
    if found.kind == "result":
        result = _judge_result(judging, value, None)
        return judging.end(1, *_said(result))
    if found.kind == "session":
        return _judge_session(judging, value)
    judging.report.ran("form")
    _OBJECTS[found.kind](judging, data, value)
    judging.report.find("signatures", "foreign.unsigned", message=_UNSIGNED)
    return judging.end(1)


def _judge_stream(judging: _Judging, stream: Stream) -> Judgement:
    report = judging.report
    report.expect("form", "events", "result")
    report.ran("form", stream.events)
    report.ran("events", stream.events)
    for where, error in stream.unread:
        judging.unreadable(error, where)
    for misfit in stream.misfits:
        judging.refuse("events", "out_of_order", "foreign.contradicted", misfit.path, misfit.message)
    for where in stream.unknown:
        report.find("events", "format.unknown", where=where, message="is a type that the contract does not name")
    if stream.torn:
        judging.refuse("events", "torn_line", "foreign.incomplete", "last line", "the last line was cut")
    if stream.starts_at > 1:
        report.notes.append(f"it starts at event {stream.starts_at}; the earlier ones are not here")
    if stream.result is None and stream.service:
        # A journal goes on as long as its session does.
        report.find(
            "result", "run.open", message=f"no result is in it; its last end of a turn: {stream.ended_by or 'none'}"
        )
        if judging.status == "holds":
            judging.status, judging.code = "unverifiable", "no_result"
        return judging.end(stream.events)
    if stream.result is None:
        judging.code = "interrupted"
        judging.refuse(
            "result", "no_result", "foreign.incomplete", "end", "it ends without the result of its execution"
        )
        return judging.end(stream.events, "status interrupted: taken from where the lines end, not from AXLR")
    result = _judge_result(judging, stream.result, stream)
    return judging.end(stream.events, *_said(result))


def _judge_session(judging: _Judging, value: JsonObject) -> Judgement:
    session = read_session(value)
    if session.result is None:
        judging.report.find("result", "coverage.empty", message="the session has no result yet")
        judging.status = "unverifiable"
        return judging.end(0)
    policy = None
    if session.policy is not None:
        policy = _policy(judging, session.policy)
    result = _judge_result(judging, session.result, None, policy=policy)
    if result is not None and session.id and session.id not in result.sessions:
        message = f"session {clip(session.id)} is none of those of its result"
        judging.refuse("result", "other_session", "foreign.contradicted", "result.sessions", message)
    return judging.end(1, *_said(result))


def _judge_result(
    judging: _Judging, value: JsonObject, stream: Stream | None, *, policy: Policy | None = None
) -> Result | None:
    """Return a result that was read, after saying what does not hold of it."""
    report = judging.report
    report.expect("form", "result", "usage", "policy", "budget", "signatures")
    schema = value.get("schema")
    if schema != RESULT_SCHEMA:
        judging.status = "unverifiable"
        report.find("form", "format.unknown", where="schema", message=f"got {clip(schema)}, expected {RESULT_SCHEMA}")
        return None
    read = read_result(value, stream.arguments if stream is not None else None)
    if not isinstance(read, Result):
        for misfit in read:
            native = "unknown_field" if misfit.unknown else "malformed"
            judging.refuse("form", native, "foreign.malformed", misfit.path, misfit.message)
        return None
    report.ran("form")
    report.ran("result")
    judging.code = read.status
    for misfit in contradictions(read):
        name = "usage" if misfit.path.startswith("usage") else "result"
        judging.refuse(name, "contradiction", "foreign.contradicted", misfit.path, misfit.message)
    if stream is not None:
        _compare(judging, read, stream)
    report.ran("usage")
    if not read.cost.exact:
        text = _text(value["usage"]["cost_usd"])
        message = f"{text} USD is {read.cost.usd_micro} micro-dollars, rounded up"
        report.inform("usage", "foreign.rounded", where="usage.cost_usd", message=message)
    if value["artifacts"]:
        message = f"{len(value['artifacts'])} entries: their form is reserved by the contract and not laid down"
        report.find("result", "format.unknown", where="artifacts", message=message)
    _recheck(judging, read, policy)
    report.find("signatures", "foreign.unsigned", message=_UNSIGNED)
    return read


def _compare(judging: _Judging, result: Result, stream: Stream) -> None:
    """Say where the lines and the result after them differ."""
    if stream.ended_by is None:
        judging.refuse("events", "no_end", "foreign.incomplete", "end", "no line ends the turn before the result")
    elif result.status not in stream.statuses:
        message = f"{stream.ended_by} does not go with status {result.status}"
        judging.refuse("events", "other_end", "foreign.contradicted", "result.status", message)
    tools = {call.call_id: call.tool for call in result.calls}
    for call_id, where in stream.called.items():
        if call_id not in tools:
            message = f"it names call {clip(call_id)}, which the result does not have"
            judging.refuse("events", "lost_call", "foreign.contradicted", where, message)
        elif stream.tools.get(call_id, tools[call_id]) != tools[call_id]:
            message = (
                f"call {clip(call_id)} is of {clip(stream.tools[call_id])}, in the result of {clip(tools[call_id])}"
            )
            judging.refuse("events", "other_tool", "foreign.contradicted", where, message)
    if stream.session is not None and stream.session not in result.sessions:
        judging.refuse("result", "other_session", "foreign.contradicted", "sessions", "are of another session")


def _recheck(judging: _Judging, result: Result, policy: Policy | None) -> None:
    report, options = judging.report, judging.options
    if options.policy is not None:
        policy = _policy_file(judging, options.policy)
    if policy is not None:
        report.ran("policy", len(result.calls))
        for each in recheck_policy(policy, result.calls):
            report.find("policy", each.code, where=each.where, message=each.message, asked=not each.informs)
    elif options.policy is None:
        report.skip("policy", "check.not_asked", "no policy is at hand", asked=False)
    if options.limits:
        report.ran("budget", len(options.limits))
        for each in recheck_budget(options.limits, result):
            report.find("budget", each.code, where=each.where, message=each.message)
    else:
        report.skip("budget", "check.not_asked", "no budget is at hand", asked=False)


def _policy(judging: _Judging, value: JsonObject) -> Policy | None:
    """Return the policy that a session of the service shows."""
    try:
        return _policy_file(judging, canonical.encode(value))
    except CanonicalError as error:
        judging.report.find("policy", "policy.unreadable", message=str(error))
        return None


def _policy_file(judging: _Judging, data: bytes) -> Policy | None:
    try:
        return read_policy(data).policy
    except LedgerError as error:
        judging.report.find("policy", "policy.unreadable", message=str(error))
        return None


def _judge_policy(judging: _Judging, data: bytes, _: JsonObject) -> None:
    try:
        read_policy(data)
    except LedgerError as error:
        judging.refuse("form", "refused", "foreign.malformed", "policy", str(error))


def _judge_budget(judging: _Judging, data: bytes, _: JsonObject) -> None:
    try:
        read_budget(data)
    except LedgerError as error:
        judging.refuse("form", "refused", "foreign.malformed", "budget", str(error))


def _judge_correlation(judging: _Judging, _: bytes, value: JsonObject) -> None:
    for misfit in correlation_misfits(value):
        judging.refuse("form", "refused", "foreign.malformed", misfit.path, misfit.message)


def _said(result: Result | None) -> tuple[str, ...]:
    if result is None:
        return ()
    calls = f"{len(result.calls)} calls, {sum(call.ran for call in result.calls)} of them ran or may have"
    return (f"status {result.status}; {len(result.sessions)} sessions; {calls}",)


def _text(value: object) -> str:
    return str(getattr(value, "text", value))


_OBJECTS: Final[Mapping[str, Callable[[_Judging, bytes, JsonObject], None]]] = {
    "policy": _judge_policy,
    "budget": _judge_budget,
    "correlation": _judge_correlation,
}
