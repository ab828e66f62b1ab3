"""The lines of one execution: `axlr-tui --exec --json` (or `--decide --json`), and the journal of `axlr-serve`.

    {"type":"session",...}                                          the command: one line an event, its last line the result
    {"type":"result","result":{"schema":"axlr.execution-result/v1",...}}
    {"session_id":"...","operation_id":"...","sequence":7,"time":"...","type":"turn.completed","payload":{...}}   the service

- The command's last line is the result, alone of its kind, after the line that ended the turn.
- The service numbers the events of a session from 1; the result is in the payload of the event that ended a turn.
- A call that a line names is one of the result. What else the lines hold is not laid down, and is not judged.
- A line that no reader takes is a finding; the others are read all the same. A stream that ends before its result is broken.

Source: the runtime contract of AXLR, "Events".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ledger.canonical import JsonObject
from ledger.errors import clip
from verify.foreign.shape import Misfit
from verify.foreign.strict import Line, ReadError, lines, read_object

__all__ = ["COMMAND_TYPES", "SERVICE_TYPES", "Stream", "is_event", "read_stream", "result_of_line"]

COMMAND_TYPES: Final = frozenset(
    {
        "session",
        "reasoning",
        "text",
        "tool.requested",
        "tool.completed",
        "session.continued",
        "decision.required",
        "completed",
        "failed",
        "result",
    }
)
_ENDS_TURN: Final = {
    "approval.required": ("needs_decision",),
    "turn.completed": ("completed",),
    "turn.interrupted": ("interrupted", "failed"),
    "operation.failed": ("failed", "interrupted"),
}
SERVICE_TYPES: Final = frozenset(_ENDS_TURN) | {
    "turn.started",
    "text.delta",
    "tool.requested",
    "tool.completed",
    "session.continued",
    "approval.decision",
    "operation.accepted",
}
_ENDS_COMMAND: Final = {
    "completed": ("completed",),
    "decision.required": ("needs_decision",),
    "failed": ("failed", "interrupted"),
}
"""Line that ended the turn -> status of the result after it."""


@dataclass(slots=True)
class Stream:
    """What the lines of an execution show."""

    service: bool = False
    events: int = 0
    starts_at: int = 1
    """Number of the first event of a journal; one that is read from a cursor starts later."""
    result: JsonObject | None = None
    """The last result."""
    ended_by: str | None = None
    """The last line that ended a turn."""
    statuses: tuple[str, ...] = ()
    """The statuses that go with it."""
    session: str | None = None
    """The session that the service's events are of."""
    last_session: str | None = None
    """The session that the command's lines named last, where they named any."""
    arguments: dict[str, JsonObject] = field(default_factory=dict)
    """Call id -> arguments, where a line said them."""
    called: dict[str, str] = field(default_factory=dict)
    """Call id -> the line that named it first."""
    tools: dict[str, str] = field(default_factory=dict)
    """Call id -> its tool, where a line said it."""
    unread: list[tuple[str, ReadError]] = field(default_factory=list)
    """Lines that no reader took."""
    torn: bool = False
    """Whether the last line was cut."""
    misfits: list[Misfit] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Types that the contract does not name."""


def is_event(value: JsonObject) -> bool:
    """Return whether an object is a line of the command or an event of the service."""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if {"session_id", "sequence", "payload"} <= value.keys():
        return kind in SERVICE_TYPES
    return kind in COMMAND_TYPES and ("result" in value if kind == "result" else "schema" not in value)


def result_of_line(value: JsonObject) -> JsonObject | None:
    """Return the result that a line of the command carries, None for any other line."""
    result = value.get("result")
    return result if value.get("type") == "result" and isinstance(result, dict) else None


def read_stream(data: bytes) -> Stream:
    """Return what the lines of an execution show."""
    stream = Stream()
    last = 0
    for line in lines(data):
        value = _read(stream, line)
        if value is None:
            continue
        stream.events += 1
        at = f"line {line.number}"
        if not isinstance(value.get("type"), str):
            stream.misfits.append(Misfit(at, "has no type"))
        elif "sequence" in value:
            last = _service_event(stream, value, at, last)
        else:
            _command_line(stream, value, at)
    return stream


def _read(stream: Stream, line: Line) -> JsonObject | None:
    try:
        return read_object(line.data)
    except ReadError as error:
        if line.ended:
            stream.unread.append((f"line {line.number}", error))
        else:
            stream.torn = True
        return None


def _command_line(stream: Stream, value: JsonObject, at: str) -> None:
    kind = value["type"]
    if kind not in COMMAND_TYPES:
        stream.unknown.append(f"{at} {clip(kind)}")
    if stream.result is not None:
        stream.misfits.append(Misfit(at, "stands after the result"))
    if kind == "result":
        stream.result = result_of_line(value) or {}
        if value.keys() != {"type", "result"}:
            stream.misfits.append(Misfit(at, "is a result line with other members than type and result"))
    elif kind in ("session", "session.continued") and isinstance(value.get("session_id"), str):
        stream.last_session = value["session_id"]
    elif kind in _ENDS_COMMAND:
        stream.ended_by, stream.statuses = f"{at} {kind}", _ENDS_COMMAND[kind]
    _calls(stream, value, value, at)


def _service_event(stream: Stream, value: JsonObject, at: str, last: int) -> int:
    """Take one event of the service in; return its number."""
    stream.service = True
    kind, payload = value["type"], value.get("payload")
    if kind not in SERVICE_TYPES:
        stream.unknown.append(f"{at} {clip(kind)}")
    session = value.get("session_id")
    if stream.session is None and isinstance(session, str):
        stream.session = session
    elif session != stream.session:
        stream.misfits.append(
            Misfit(at, f"is of session {clip(session)}, the lines before it of {clip(stream.session)}")
        )
    number = value["sequence"]
    if not last and type(number) is int and number > 1:
        stream.starts_at = number  # read from a cursor
    elif type(number) is not int or number != last + 1:
        stream.misfits.append(Misfit(at, f"has the number {clip(number)}, expected {last + 1}"))
    if isinstance(payload, dict):
        _calls(stream, value, payload, at)
        if kind in _ENDS_TURN:
            stream.ended_by, stream.statuses = f"{at} {kind}", _ENDS_TURN[kind]
            # The event that a service writes for a session that a crash left carries the status alone.
            result = payload.get("result", payload)
            stream.result = result if isinstance(result, dict) and "schema" in result else None
    return number if type(number) is int else last + 1


def _calls(stream: Stream, value: JsonObject, payload: JsonObject, at: str) -> None:
    """Note the call that a line names, and its arguments."""
    if value["type"] not in ("tool.requested", "tool.completed", "decision.required", "approval.required"):
        return
    for part in _parts(payload):
        call = part.get("call_id")
        if isinstance(call, str):
            stream.called.setdefault(call, at)
            arguments, tool = part.get("arguments"), part.get("tool")
            if isinstance(tool, str):
                stream.tools.setdefault(call, tool)
            if isinstance(arguments, dict):
                stream.arguments.setdefault(call, arguments)


def _parts(payload: JsonObject) -> Iterator[JsonObject]:
    yield payload
    for name in ("call", "pending", "payload"):
        if isinstance(payload.get(name), dict):
            yield payload[name]
