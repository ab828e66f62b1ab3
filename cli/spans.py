"""Runs as OpenTelemetry spans, in the JSON encoding of OTLP: ids as hex, enumerations as numbers, 64-bit integers as text.

    run, child run      a span of its own; the child's parent is the call that started it
    step, call          a span below the receipt that commits it; a call is its intent and outcome together
    decision            a span of no length: nothing ran

- A span id is the first 8 bytes of a receipt id: of the opening of a run, of the intent of a call, else of the receipt itself.
- A trace id is that of the correlation of the outermost run: `traceparent` or `trace_id` where it names a W3C trace, else the first
  16 bytes of SHA-256 of its canonical JSON, so that runs of one correlation are one trace. Without a correlation it is of the run id.
- Times are those that receipts claim, in milliseconds.

Source: OpenTelemetry protocol 1.x, JSON Protobuf encoding; W3C Trace Context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from cli.report.collect import Collected
from ledger import canonical
from ledger.members import Charge
from ledger.receipt import Decision, Intent, Opening, Outcome, Receipt, Resolution, Run, Step, children_of
from ledger.rules.instant import ms_of
from ledger.version import VERSION

__all__ = ["span_id", "trace_and_parent", "traces"]

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_INTERNAL, _CLIENT = 1, 3
_UNSET, _OK, _ERROR = 0, 1, 2
_GOOD: Final = frozenset({"completed", "committed", "folded", "superseded"})
_PENDING: Final = frozenset({"open", "under way", "waiting", "needs_decision"})
_RESOURCE: Final = "receipt_ledger."

Json = dict[str, Any]


def traces(found: Collected, *, resource: Json) -> Json:
    """Return the spans of runs as a `TracesData` message; one resource an agent, with the attributes of `resource` beside."""
    spans: dict[str, list[Json]] = {}
    for root in found.roots:
        opening = found.get(root)
        if isinstance(opening, Opening):
            trace, parent = trace_and_parent(root, opening)
            for agent, span in _Tree(found, trace).spans(root, parent):
                spans.setdefault(agent, []).append(span)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": agent, **resource})},
                "scopeSpans": [{"scope": {"name": "receipt-ledger", "version": VERSION}, "spans": of_agent}],
            }
            for agent, of_agent in spans.items()
        ]
    }


def span_id(receipt: str) -> str:
    """Return the span id of a receipt id."""
    return receipt[7:23]


def trace_and_parent(run: str, opening: Opening) -> tuple[str, str | None]:
    """Return the trace id of an outermost run, and the id of the span above it, None where its correlation names none."""
    correlation = opening.correlation or {}
    match = _TRACEPARENT.fullmatch(correlation.get("traceparent", ""))
    if match is not None and set(match[1]) != {"0"} and set(match[2]) != {"0"}:
        return match[1], match[2]
    named = correlation.get("trace_id", "")
    if _TRACE_ID.fullmatch(named) and set(named) != {"0"}:
        return named, None
    if correlation:
        return sha256(canonical.encode(dict(correlation))).hexdigest()[:32], None
    return run[7:39], None


class _Tree:
    """The spans of one outermost run; each receipt is in at most one."""

    def __init__(self, found: Collected, trace: str) -> None:
        self._found = found
        self._trace = trace
        self._parents: dict[str, str] = {}
        self._outcomes: dict[str, tuple[str, Outcome]] = {}
        self._closings: dict[str, tuple[str, Run]] = {}
        self._resolutions: dict[str, Resolution] = {}

    def spans(self, root: str, parent: str | None) -> Iterator[tuple[str, Json]]:
        """Yield the agent and the span of each receipt of the run and of the runs below it, in chain order of their runs."""
        ids = list(self._found.whole(root))
        for id_ in ids:
            self._look(id_)
        runs = dict.fromkeys([root, *(id_ for id_ in ids if isinstance(self._found.get(id_), Opening))])
        for run in runs:
            opening = self._found.get(run)
            if not isinstance(opening, Opening):
                continue
            yield opening.actor.agent, self._run(run, opening, parent if run == root else self._above_run(run, opening))
            for id_ in self._found.by_run.get(run, ()):
                span = self._span(id_, run)
                if span is not None:
                    yield opening.actor.agent, span

    def _look(self, id_: str) -> None:
        receipt = self._found.get(id_)
        match receipt:
            case Outcome():
                self._outcomes.setdefault(receipt.intent, (id_, receipt))
            case Run():
                self._closings.setdefault(receipt.run, (id_, receipt))
            case Resolution():
                self._resolutions[receipt.intent] = receipt
            case _:
                pass
        if receipt is not None:
            above = receipt.intent if isinstance(receipt, Outcome) else id_
            for child in children_of(receipt):
                if child != above:
                    self._parents.setdefault(child, above)

    def _above_run(self, run: str, opening: Opening) -> str:
        return span_id(opening.parent_intent or opening.parent_opening or run)

    def _above(self, id_: str, run: str) -> str:
        """Return the span id of what commits a receipt: a step, a call, or the run."""
        above = self._parents.get(id_)
        receipt = None if above is None else self._found.get(above)
        return span_id(above) if above is not None and isinstance(receipt, Step | Intent) else span_id(run)

    def _span(self, id_: str, run: str) -> Json | None:
        receipt = self._found.get(id_)
        match receipt:
            case Intent():
                settled = self._outcomes.get(id_)
                return self._call(id_, receipt, settled, self._above(id_ if settled is None else settled[0], run))
            case Decision():
                at = ms_of(receipt.issued_at)
                return self._make(
                    id_,
                    id_,
                    receipt,
                    receipt.act.name,
                    receipt.status,
                    at,
                    at,
                    self._above(id_, run),
                    _decision(receipt),
                )
            case Step():
                end = ms_of(receipt.issued_at)
                start = end - (receipt.duration_ms or 0)
                return self._make(
                    id_, id_, receipt, receipt.name, receipt.status, start, end, self._above(id_, run), {}
                )
            case _:
                return None

    def _run(self, id_: str, opening: Opening, parent: str | None) -> Json:
        closing = self._closings.get(id_)
        start = ms_of(opening.issued_at)
        end = start if closing is None else _end(start, closing[1].duration_ms, closing[1].issued_at)
        status = "open" if closing is None else str(closing[1].status)
        more: Json = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": opening.actor.agent,
            "gen_ai.request.model": opening.actor.model,
            "enduser.id": opening.actor.user,
            _RESOURCE + "close": None if closing is None else closing[0],
            _RESOURCE + "policy": opening.policy,
            **{f"{_RESOURCE}correlation.{name}": value for name, value in (opening.correlation or {}).items()},
            **({} if closing is None else {f"{_RESOURCE}spent.{each.meter}": each.value for each in closing[1].totals}),
        }
        return self._make(
            id_, id_, opening if closing is None else closing[1], opening.name, status, start, end, parent, more
        )

    def _call(self, id_: str, intent: Intent, settled: tuple[str, Outcome] | None, parent: str) -> Json:
        act, outcome = intent.act, None if settled is None else settled[1]
        start = ms_of(intent.issued_at)
        end = start if outcome is None else _end(start, outcome.duration_ms, outcome.issued_at)
        closed = intent.run in self._closings
        status = str(outcome.status) if outcome is not None else "ambiguous" if closed else "under way"
        more: Json = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": act.tool.name,
            _RESOURCE + "tool.version": act.tool.version,
            _RESOURCE + "access": str(act.access),
            _RESOURCE + "resource": act.resource,
            _RESOURCE + "environment": act.environment,
            _RESOURCE + "effect": None if intent.effect is None else intent.effect.key,
            _RESOURCE + "attempt": None if intent.effect is None else intent.effect.attempt,
            _RESOURCE + "rule": intent.rule,
            _RESOURCE + "approvals": list(intent.approvals) or None,
            _RESOURCE + "outcome": None if settled is None else settled[0],
        }
        if outcome is not None:
            more |= {
                _RESOURCE + "exit_code": outcome.exit_code,
                **_spent(outcome.charges, "cost"),
                **_spent(outcome.usage, "used"),
            }
        resolution = self._resolutions.get(id_)
        if resolution is not None:
            more |= {_RESOURCE + "resolved": resolution.happened, _RESOURCE + "resolved_by": resolution.resolved_by}
        span = self._make(id_, id_, outcome or intent, act.name, status, start, end, parent, more)
        if outcome is not None and outcome.error is not None:
            span["events"] = [
                {
                    "timeUnixNano": _nano(end),
                    "name": "exception",
                    "attributes": _attributes({"exception.type": outcome.error}),
                }
            ]
        return span

    def _make(
        self,
        id_: str,
        own: str,
        holder: Receipt,
        name: str,
        status: str,
        start: int,
        end: int,
        parent: str | None,
        more: Json,
    ) -> Json:
        stored = self._found.receipts[own][0]
        reason = getattr(holder, "reason", None)
        span: Json = {
            "traceId": self._trace,
            "spanId": span_id(id_),
            "name": name,
            "kind": _CLIENT if isinstance(self._found.get(id_), Intent) else _INTERNAL,
            "startTimeUnixNano": _nano(start),
            "endTimeUnixNano": _nano(max(start, end)),
            "attributes": _attributes(
                {
                    _RESOURCE + "receipt": own,
                    _RESOURCE + "index": stored.entry.index,
                    _RESOURCE + "kind": str(getattr(self._found.get(id_), "kind", "")),
                    _RESOURCE + "status": status,
                    _RESOURCE + "reason": None if reason is None else str(reason),
                    **more,
                }
            ),
            "status": _status(status, reason),
        }
        if parent is not None:
            span["parentSpanId"] = parent
        return span


def _decision(decision: Decision) -> Json:
    return {
        "gen_ai.tool.name": decision.act.tool.name,
        _RESOURCE + "access": str(decision.act.access),
        _RESOURCE + "rule": decision.rule,
        _RESOURCE + "meter": decision.meter,
    }


def _spent(charges: Iterable[Charge], word: str) -> Json:
    return {f"{_RESOURCE}{word}.{each.meter}": each.settled for each in charges if each.settled is not None}


def _status(status: str, reason: object) -> Json:
    if status in _GOOD:
        return {"code": _OK}
    if status in _PENDING:
        return {"code": _UNSET}
    return {"code": _ERROR, "message": status if reason is None else f"{status}: {reason}"}


def _end(start: int, duration: object, issued_at: str) -> int:
    return start + duration if isinstance(duration, int) else ms_of(issued_at)


def _nano(milliseconds: int) -> str:
    return str(milliseconds * 1_000_000)


def _attributes(values: Json) -> list[Json]:
    """Return attributes as OTLP has them; what is None or `unknown` is left out."""
    return [
        {"key": key, "value": _value(value)}
        for key, value in values.items()
        if value is not None and value != "unknown"
    ]


def _value(value: object) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case list():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}
