"""Runbooks while runs go on: where each run stands in its runbook, folded from the journal under its lock.

A process folds the tree of a run from the opening of its outermost run on, and after that what came since, whoever wrote it. The
fold is the one that re-proves runbooks.

Source: docs/spec/rules/runbooks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError
from ledger.facts import read_facts
from ledger.line import parse_entry_line
from ledger.members import Act
from ledger.receipt import Opening, WouldHave, parse_receipt
from ledger.recorder import Recorder
from ledger.refusals import Blocked
from ledger.rules.approval import Approver
from ledger.rules.budget import Refused
from ledger.rules.deviation import Deviates, Deviation
from ledger.rules.runbook_replay import RunbookReplay, Supervised
from ledger.storage.cursor import Cursor
from ledger.storage.ledger import Ledger
from ledger.words import Reason

__all__ = ["Bound", "Deviated", "Oversight", "bound_of"]


class Deviated(Blocked):
    """What a runbook did not let happen: a tool that its step does not have, a step out of its order, a retry too many."""

    def __init__(self, found: Deviates) -> None:
        refused = None
        if found.deviation is Deviation.BUDGET_EXHAUSTED:
            refused = Refused(found.reason, found.edge or "", found.limit, found.taken, 0, 1, 0)
        super().__init__(found.reason, f"{found.deviation}: {found.message}", refused=refused)
        self.deviation: Final = found.deviation
        self.edge: Final = found.edge


@dataclass(frozen=True, slots=True)
class Bound:
    """What a run is under, by itself or by a run above it."""

    booked: bool = False
    """Whether it or a run above it follows a runbook."""
    own: bool = False
    """Whether it follows one itself."""
    grant: str | None = None
    """The grant that it acts under."""


_FREE: Final = Bound()
_BOUNDS: Final[WeakKeyDictionary[Recorder, Bound]] = WeakKeyDictionary()


def bound_of(recorder: Recorder) -> Bound:
    """Return what a run is under."""
    found = _BOUNDS.get(recorder)
    if found is None:
        found = _BOUNDS[recorder] = _bound(recorder)
    return found


def _bound(recorder: Recorder) -> Bound:
    opening = recorder.opening
    own, booked, grant = opening.runbook is not None, opening.runbook is not None, opening.grant
    while opening.parent_opening is not None:
        above = parse_receipt(recorder.ledger.get(opening.parent_opening).envelope.payload)
        if not isinstance(above, Opening):
            break
        opening = above
        booked, grant = booked or above.runbook is not None, grant or above.grant
    return Bound(booked, own, grant) if booked or grant is not None else _FREE


@dataclass(slots=True)
class _Tree:
    """The fold over one tree of runs."""

    cursor: Cursor
    root: str
    approvers: Mapping[str, Approver]
    replay: RunbookReplay
    runs: set[str] = field(default_factory=set)

    def see(self, index: int, line: bytes) -> None:
        """Take an entry; those of other trees are passed over."""
        entry, printed = parse_entry_line(line)
        envelope = parse_envelope(printed)
        facts = read_facts(envelope.payload)
        if facts.kind == "opening":
            id_ = envelope.receipt_id
            if id_ != self.root and facts.parent_opening not in self.runs:
                return
            self.runs.add(id_)
        elif facts.run not in self.runs or facts.kind == "outcome":
            return
        receipt = facts.receipt or parse_receipt(envelope.payload)
        self.replay.see(index, envelope.receipt_id, receipt, now=parse_entry(entry).recorded_at)


_ALL: Final[WeakKeyDictionary[Ledger, Oversight]] = WeakKeyDictionary()


class Oversight:
    """The runbooks of a ledger's open runs, as far as this process asked for them. Used under the ledger's lock only."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._trees: dict[str, _Tree] = {}

    @classmethod
    def of(cls, ledger: Ledger) -> Oversight:
        """Return the one of a ledger."""
        found = _ALL.get(ledger)
        if found is None:
            found = _ALL[ledger] = cls(ledger)
        return found

    def caught_up(self, recorder: Recorder, size: int) -> RunbookReplay:
        """Return the fold over the tree of a run, given the number of entries.

        Raises:
            DamagedError: an entry is missing.
        """
        root = recorder.root
        tree = self._trees.get(root)
        if tree is None or tree.approvers != recorder.approvers:
            cursor = Cursor(self._ledger.folder, self._ledger.reader.get(root))
            replay = RunbookReplay(self._document, recorder.approvers)
            tree = self._trees[root] = _Tree(cursor, root, dict(recorder.approvers), replay)
        try:
            tree.cursor.advance(size, tree.see)
        except BaseException:
            del self._trees[root]
            raise
        return tree.replay

    def book(self, recorder: Recorder, size: int) -> Supervised | None:
        """Return how a run stands in its own runbook, None where it has none or it cannot be read."""
        return self.caught_up(recorder, size).runs.get(recorder.id)

    def admit(
        self, recorder: Recorder, act: Act, step: str | None, *, size: int
    ) -> tuple[WouldHave | None, str | None]:
        """Return what an act that only advice speaks against has to say, and the step whose gate it stands before.

        Raises:
            Deviated: a runbook keeps it from running.
            Blocked: its runbook is not there or cannot be read.
        """
        replay = self.caught_up(recorder, size)
        if not replay.books(recorder.id):
            raise Blocked(Reason.POLICY_MISSING, "runbook: its policy envelope is not there or cannot be read")
        own = replay.runs.get(recorder.id)
        if own is not None and own.refusals:
            raise Blocked(own.refusals[0].reason, f"runbook: {own.refusals[0].message}")
        if step is not None and own is not None and own.enforces and step != own.cursor.step:
            late = replay.entry(recorder.id, step)
            if late is not None:
                raise Deviated(late)
        found = replay.scope(recorder.id, act, step)
        if found is not None:
            deviates, kept = found
            if kept:
                raise Deviated(deviates)
            return WouldHave(status="denied", reason=deviates.reason), replay.gate(recorder.id, step)
        return None, replay.gate(recorder.id, step)

    def forget(self, root: str) -> None:
        """Drop a tree whose outermost run is closed."""
        self._trees.pop(root, None)

    def _document(self, name: str) -> bytes | None:
        try:
            return self._ledger.artifacts.get(name)
        except (LedgerError, OSError):
            return None
