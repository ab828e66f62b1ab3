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
from verify.foreign.ctrlrun.tables import Tables, integer, text
from verify.foreign.ctrlrun.words import EVENT_TYPES, PRUNE_ACTION
from verify.report import Report

__all__ = ["Reconciliation"]

_COMMITTED: Final = "EXECUTION_COMMITTED"
_COMMITTED_BYTES: Final = b"EXECUTION_COMMITTED"
_RESOLUTIONS: Final = ("EFFECT_RESOLVED", "RECONCILIATION_RESOLVED")


@dataclass(slots=True)
class Reconciliation:
    """Takes receipts, then the events and effects of the store that they are in, and reports what does not meet."""

    committed: dict[str, str] = field(default_factory=dict)
    """Action id -> what a receipt that says committed is called."""
    acted: set[str] = field(default_factory=set)
    """Action ids of all receipts."""
    _chained: set[str] = field(default_factory=set)

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

    def meet(self, report: Report, tables: Tables, checkpoint: Head | None) -> None:
        """Report on the events and effects of a store."""
        count, last, unknown = _counted(tables)
        report.ran("reconcile", count)
        evented: set[str] = set()
        unmatched: dict[str, int] = {}
        resolved: set[str] = set()
        for number, type_, action, effect_key in tables.events(_COMMITTED, *_RESOLUTIONS):
            action_id = text(action)
            if type_ != _COMMITTED_BYTES:
                resolved.add(text(effect_key) or "")
            elif action_id in self.committed:
                evented.add(action_id)
            elif action_id is not None:
                unmatched[action_id] = number if type(number) is int else 0
        if unmatched and not evented and not self._is_met(tables):
            said = f"none of {count} events is about an action of any receipt here"
            report.find("reconcile", "ctrlrun.events_of_others", message=said)
            return
        missing = unmatched if checkpoint is None else self._without_pruned(unmatched, tables, checkpoint)
        for action_id, number in missing.items():
            said = f"event {number} says that {clip(action_id)} was committed"
            report.find("reconcile", "ctrlrun.no_receipt", where=f"event {number}", message=said)
        if checkpoint is None:
            self._effects(report, tables, resolved | {""}, unmatched)
        for action_id, where in self.committed.items() if count else ():
            if action_id not in evented:
                report.find("reconcile", "ctrlrun.no_event", where=where, message=f"no event of {clip(action_id)}")
        if unknown:
            report.find("reconcile", "format.unknown", message="events of unknown types", count=unknown)
        _report_numbers(report, count, max(last, _last_number(tables)))

    def _is_met(self, tables: Tables) -> bool:
        """Return whether any event is about an action of a receipt; with no receipt, all are said to be."""
        return not self.acted or any(text(action) in self.acted for _, _, action, _ in tables.events())

    def _without_pruned(self, unmatched: dict[str, int], tables: Tables, checkpoint: Head) -> dict[str, int]:
        """Return what is missing without the events of receipts that the prune took: the oldest, no more than it took."""
        if not unmatched:
            return unmatched
        of_survivors = (number for number, _, action, _ in tables.events() if text(action) in self._chained)
        limit = next(of_survivors, None)
        pruned = sorted((number, each) for each, number in unmatched.items() if limit is None or number < limit)
        taken = {action_id for _, action_id in pruned[: checkpoint[0]]}
        return {action_id: number for action_id, number in unmatched.items() if action_id not in taken}

    def _effects(self, report: Report, tables: Tables, resolved: set[str], said: dict[str, int]) -> None:
        """Report committed effects without a receipt, but for those that a person or a remote settled, or that were said already."""
        for key, action, resolver in tables.effects():
            action_id = text(action) or ""
            if action_id in self.committed or action_id in said or resolver is not None or text(key) in resolved:
                continue
            message = f"effect {clip(text(key))} of {clip(action_id)} is committed"
            report.find("reconcile", "ctrlrun.no_receipt", where="effects", message=message)


def _counted(tables: Tables) -> tuple[int, int, int]:
    """Return how many events there are, the number of the last, and how many are of unknown types."""
    count = last = unknown = 0
    for type_, number, highest in tables.event_types():
        count += number
        last = max(last, highest if type(highest) is int else 0)
        unknown += number if text(type_) not in EVENT_TYPES else 0
    return count, last, unknown


def _last_number(tables: Tables) -> int:
    """Return the number that the store gave to its newest event, whether it is still there or not; 0 where it says none."""
    for row in tables.rows("sqlite_sequence"):
        if text(row.get("name")) == "events":
            return integer(row.get("seq")) or 0
    return 0


def _report_numbers(report: Report, count: int, last: int) -> None:
    if last > count:
        said = f"{count} of {last} events are there"
        report.find("reconcile", "ctrlrun.events_missing", message=said, count=last - count)
