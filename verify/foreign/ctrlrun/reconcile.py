"""Did every commit get a receipt? Events and effects against receipts.

ctrlrun writes the event `EXECUTION_COMMITTED` before the receipt of the same action. The chain cannot say that a receipt was never
written, or was cut off its end with the head put right: the event can, where it was left.

| found | code |
|---|---|
| an event or an effect says committed, no receipt does | `ctrlrun.no_receipt` |
| a receipt says committed, no event does | `ctrlrun.no_event` |
| no event is about any action of any receipt | `ctrlrun.events_of_others` |
| numbers of events are missing, before or after the last | `ctrlrun.events_missing` |

Events are neither chained nor hashed, so they accuse and never acquit. What a prune took with its receipts is not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ledger.errors import clip
from verify.foreign.ctrlrun.chain import Head
from verify.foreign.ctrlrun.tables import Row, integer, text
from verify.foreign.ctrlrun.words import EVENT_TYPES, PRUNE_ACTION
from verify.report import Report

__all__ = ["Reconciliation"]

_RESOLUTIONS: Final = frozenset({"EFFECT_RESOLVED", "RECONCILIATION_RESOLVED"})


@dataclass(slots=True)
class Reconciliation:
    """Takes receipts, then events, then effects, and reports what does not meet."""

    committed: dict[str, str] = field(default_factory=dict)
    """Action id -> what a receipt that says committed is called."""
    acted: set[str] = field(default_factory=set)
    """Action ids of all receipts."""
    _chained: set[str] = field(default_factory=set)
    _evented: set[str] = field(default_factory=set)
    _met: bool = False
    _resolved: set[str] = field(default_factory=set)
    _unmatched: dict[str, int] = field(default_factory=dict)
    _first_surviving: int | None = None
    _first: int | None = None
    _last: int = 0
    _events: int = 0
    _unknown: int = 0

    def receipt(self, value: dict[str, Any], seq: int | None) -> None:
        """Take a receipt."""
        action_id = value.get("action_id")
        if type(action_id) is not str:
            return
        self.acted.add(action_id)
        if seq is not None:
            self._chained.add(action_id)
        committed = value.get("result") == "committed" or value.get("execution") == "committed"
        if committed and value.get("action") != PRUNE_ACTION:
            self.committed[action_id] = f"seq {seq}" if seq is not None else action_id

    def event(self, row: Row) -> None:
        """Take the next event."""
        self._events += 1
        event_id = integer(row.get("event_id")) or 0
        self._first = event_id if self._first is None else self._first
        self._last = max(self._last, event_id)
        type_, action_id = text(row.get("type")), text(row.get("action_id"))
        if type_ not in EVENT_TYPES:
            self._unknown += 1
        elif type_ in _RESOLUTIONS:
            self._resolved.add(text(row.get("effect_key")) or "")
        if action_id is None:
            return
        self._met = self._met or action_id in self.acted
        if self._first_surviving is None and action_id in self._chained:
            self._first_surviving = event_id
        if type_ == "EXECUTION_COMMITTED":
            if action_id in self.committed:
                self._evented.add(action_id)
            else:
                self._unmatched[action_id] = event_id

    def finish(self, report: Report, *, checkpoint: Head | None, last_number: int | None, effects: list[Row]) -> None:
        """Report on all that was taken; `last_number` is the number that the store gave to its last event."""
        report.ran("reconcile", self._events + len(effects))
        if self._events and self.acted and not self._met:
            said = f"none of {self._events} events is about an action of any receipt here"
            report.find("reconcile", "ctrlrun.events_of_others", message=said)
            return
        missing = dict(self._unmatched)
        if checkpoint is not None:
            missing = self._without_pruned(missing, checkpoint)
        for action_id, event_id in missing.items():
            said = f"event {event_id} says that {clip(action_id)} was committed"
            report.find("reconcile", "ctrlrun.no_receipt", where=f"event {event_id}", message=said)
        if checkpoint is None:
            self._effects(report, effects)
        for action_id, where in self.committed.items():
            if action_id not in self._evented and self._events:
                report.find("reconcile", "ctrlrun.no_event", where=where, message=f"no event of {clip(action_id)}")
        if self._unknown:
            report.find("reconcile", "format.unknown", message="events of unknown types", count=self._unknown)
        self._numbers(report, last_number)

    def _without_pruned(self, missing: dict[str, int], checkpoint: Head) -> dict[str, int]:
        """Return what is missing without the events of receipts that the prune took: the oldest, no more than it took."""
        limit = self._first_surviving if self._first_surviving is not None else self._last + 1
        pruned = sorted((event_id, action_id) for action_id, event_id in missing.items() if event_id < limit)
        taken = {action_id for _, action_id in pruned[: checkpoint[0]]}
        return {action_id: event_id for action_id, event_id in missing.items() if action_id not in taken}

    def _effects(self, report: Report, effects: list[Row]) -> None:
        for row in effects:
            action_id, key = text(row.get("action_id")) or "", text(row.get("effect_key")) or ""
            settled = row.get("resolved_by") is not None or key in self._resolved
            if text(row.get("state")) != "committed" or settled or action_id in self._unmatched:
                continue
            if action_id not in self.committed:
                said = f"effect {clip(key)} of {clip(action_id)} is committed"
                report.find("reconcile", "ctrlrun.no_receipt", where="effects", message=said)

    def _numbers(self, report: Report, last_number: int | None) -> None:
        if last_number is None and not self._events:
            return
        last = max(self._last, last_number or 0)
        lost = last - self._events
        if lost > 0:
            said = f"{self._events} of {last} events are there"
            report.find("reconcile", "ctrlrun.events_missing", message=said, count=lost)
