"""The result of an execution, `axlr.execution-result/v1`: its form, and what it says of itself in two places.

    {"schema":"axlr.execution-result/v1","status":"needs_decision","session_id":"6c1f","sessions":["6c1f"],"answer":"...",
     "pending":{"call_id":"exec-1","tool":"local_exec","arguments":{...}},
     "tool_calls":[{"call_id":"exec-1","tool":"local_exec","status":"pending"}],
     "usage":{"requests":2,...,"cost_usd":0.0021,"cost_requests":2,"unmetered_requests":0},"artifacts":[]}

- A member that the contract does not name refuses the result.
- `pending` stands with `needs_decision` alone, and is one of the calls; `error` with `failed` and `interrupted` alone.
- The session that ended is the last of those spanned.
- A call that ran was decided for: `approve` or `auto_approve`; one that was denied has `deny`; one that waits has none.
- Each request reported a cost or did not: `requests` is `cost_requests` and `unmetered_requests` together.

Source: the runtime contract of AXLR, "Result".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ledger.canonical import JsonObject
from verify.foreign.axlr.money import Amount, usd_micro
from verify.foreign.shape import ANY, ANY_TEXT, COUNT, NUMBER, OBJECT, TEXT, Misfit, Shape, each, one_of

__all__ = ["EXIT_CODES", "METERS", "RESULT_SCHEMA", "STATUSES", "Call", "Result", "contradictions", "read_result"]

RESULT_SCHEMA: Final = "axlr.execution-result/v1"
EXIT_CODES: Final = {"completed": 0, "needs_decision": 3, "interrupted": 1, "failed": 1}
"""Status -> the exit code of `axlr-tui`."""
STATUSES: Final = frozenset(EXIT_CODES)
METERS: Final = (
    "requests",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
)
"""Counts of `usage` that are meters."""
_RAN: Final = frozenset({"completed", "failed", "uncertain"})

_CALL: Final = Shape(
    {
        "call_id*": TEXT,
        "tool*": TEXT,
        "decision": one_of("approve|auto_approve|deny"),
        "status*": one_of("pending|forbidden|denied|completed|failed|uncertain"),
    }
)
_RESULT: Final = Shape(
    {
        "schema*": one_of(RESULT_SCHEMA),
        "status*": one_of("completed|needs_decision|interrupted|failed"),
        "session_id*": TEXT,
        "sessions*": each(TEXT),
        "answer*": ANY_TEXT,
        "pending": Shape({"call_id*": TEXT, "tool*": TEXT, "arguments*": OBJECT}),
        "error": ANY_TEXT,
        "tool_calls*": each(_CALL),
        "usage*": Shape(
            {
                **{f"{meter}*": COUNT for meter in METERS},
                "cost_usd*": NUMBER,
                "cost_requests*": COUNT,
                "unmetered_requests*": COUNT,
            }
        ),
        "artifacts*": each(ANY),
    }
)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as the result has it; `arguments` where anything said them."""

    call_id: str
    tool: str
    decision: str | None
    status: str
    arguments: JsonObject | None

    @property
    def ran(self) -> bool:
        """Whether it ran, or may have."""
        return self.status in _RAN


@dataclass(frozen=True, slots=True)
class Result:
    """A result, read; `value` is what it was read from."""

    value: JsonObject
    status: str
    sessions: tuple[str, ...]
    calls: tuple[Call, ...]
    usage: dict[str, int]
    cost: Amount
    cost_requests: int
    unmetered_requests: int


def read_result(value: JsonObject, arguments: dict[str, JsonObject] | None = None) -> Result | tuple[Misfit, ...]:
    """Return the result that an object is, or what does not fit.

    Args:
        value: the object.
        arguments: call id -> arguments, where the events of the execution said them.
    """
    misfits = tuple(_RESULT(value, ""))
    if misfits:
        return misfits
    usage = value["usage"]
    cost = usd_micro(usage["cost_usd"])
    if cost is None:
        return (Misfit("usage.cost_usd", "is no amount of money: negative, or too large"),)
    said = dict(arguments or {})
    if "pending" in value:
        said.setdefault(value["pending"]["call_id"], value["pending"]["arguments"])
    calls = tuple(
        Call(call["call_id"], call["tool"], call.get("decision"), call["status"], said.get(call["call_id"]))
        for call in value["tool_calls"]
    )
    return Result(
        value,
        value["status"],
        tuple(value["sessions"]),
        calls,
        {meter: usage[meter] for meter in METERS},
        cost,
        usage["cost_requests"],
        usage["unmetered_requests"],
    )


def contradictions(result: Result) -> tuple[Misfit, ...]:
    """Return what a result says of itself in two ways."""
    return (*_of_sessions(result), *_of_calls(result), *_of_end(result), *_of_usage(result))


def _of_sessions(result: Result) -> Iterator[Misfit]:
    if not result.sessions or result.sessions[-1] != result.value["session_id"]:
        yield Misfit("session_id", "is not the last of the sessions")
    if len(set(result.sessions)) != len(result.sessions):
        yield Misfit("sessions", "hold one twice")


def _of_calls(result: Result) -> Iterator[Misfit]:
    seen: set[str] = set()
    for place, call in enumerate(result.calls):
        at = f"tool_calls[{place}]"
        if call.call_id in seen:
            yield Misfit(f"{at}.call_id", "stands twice")
        seen.add(call.call_id)
        if call.ran and call.decision not in ("approve", "auto_approve"):
            yield Misfit(
                f"{at}.decision", f"got {call.decision or 'none'} for a call that is {call.status}: nobody let it run"
            )
        if call.status == "denied" and call.decision != "deny":
            yield Misfit(f"{at}.decision", f"got {call.decision or 'none'} for a call that is denied")
        if call.status == "pending" and call.decision is not None:
            yield Misfit(f"{at}.decision", f"got {call.decision} for a call that waits for one")
        if call.status == "pending" and result.status != "needs_decision":
            yield Misfit(f"{at}.status", f"waits, and the execution is {result.status}")


def _of_end(result: Result) -> Iterator[Misfit]:
    pending = result.value.get("pending")
    if (pending is not None) != (result.status == "needs_decision"):
        yield Misfit("pending", f"{'stands' if pending is not None else 'is missing'} with status {result.status}")
    if pending is not None:
        waits = [call for call in result.calls if call.call_id == pending["call_id"]]
        if not waits or waits[0].status != "pending" or waits[0].tool != pending["tool"]:
            yield Misfit("pending.call_id", "is none of the calls that wait")
    if "error" in result.value and result.status not in ("failed", "interrupted"):
        yield Misfit("error", f"stands with status {result.status}")


def _of_usage(result: Result) -> Iterator[Misfit]:
    requests = result.usage["requests"]
    if requests != result.cost_requests + result.unmetered_requests:
        counted = f"{result.cost_requests} and {result.unmetered_requests}"
        yield Misfit("usage.requests", f"got {requests}, expected {counted} together")
    if result.cost.usd_micro and not result.cost_requests:
        yield Misfit("usage.cost_usd", "is a cost that no request reported")
