"""The receipts that a report is about: one run with the runs below it and what is linked to it, or all runs since a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ledger.errors import LedgerError
from ledger.receipt import Approval, Intent, Opening, Receipt, parse_receipt, run_of
from ledger.storage.journal import Stored
from ledger.storage.reader import Reader
from ledger.storage.search import holding

__all__ = ["Collected", "collect_run", "collect_since"]


@dataclass(slots=True)
class Collected:
    """Receipts in chain order with their entries; `roots` are the openings of the runs that the report is about."""

    receipts: dict[str, tuple[Stored, Receipt | None]] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    by_run: dict[str, list[str]] = field(default_factory=dict)
    below: dict[str, list[str]] = field(default_factory=dict)
    """Run -> the runs that it started, in order."""

    def get(self, id_: str) -> Receipt | None:
        """Return a receipt, None where it is not among these or cannot be read."""
        found = self.receipts.get(id_)
        return None if found is None else found[1]

    def add(self, stored: Stored) -> Receipt | None:
        """Add a receipt; a second time changes nothing."""
        id_ = stored.entry.receipt
        if id_ in self.receipts:
            return self.receipts[id_][1]
        receipt = _read(stored)
        self.receipts[id_] = (stored, receipt)
        run = None if receipt is None else run_of(receipt, id_)
        if run is not None:
            self.by_run.setdefault(run, []).append(id_)
        if isinstance(receipt, Opening) and receipt.parent_opening is not None:
            self.below.setdefault(receipt.parent_opening, []).append(id_)
        return receipt

    def whole(self, run: str) -> Iterator[str]:
        """Yield the ids of the receipts of a run and of the runs below it; each run's in chain order."""
        waiting = [run]
        while waiting:
            here = waiting.pop()
            yield from self.by_run.get(here, ())
            waiting.extend(reversed(self.below.get(here, ())))


def collect_run(reader: Reader, run: str) -> Collected:
    """Return what the ledger holds of a run and of the runs below it.

    Raises:
        NotFoundError: no such run.
    """
    found = Collected(roots=[run])
    opening = reader.get(run)
    size = reader.head().size
    found.add(opening)
    waiting = [run]
    while waiting:
        here = waiting.pop()
        start = found.receipts[here][0].entry.index
        needles = (f'"run":"{here}"'.encode("ascii"), f'"parent_opening":"{here}"'.encode("ascii"))
        for stored in sorted(
            holding(reader.folder, *needles, start=start, stop=size), key=lambda each: each.entry.index
        ):
            known = stored.entry.receipt in found.receipts
            receipt = found.add(stored)
            if isinstance(receipt, Opening) and not known:
                waiting.append(stored.entry.receipt)
    _add_approvals(reader, found)
    return found


def collect_since(reader: Reader, moment: str) -> Collected:
    """Return what the ledger holds of the runs that opened at or after a moment and that no such run started."""
    found = Collected()
    size = reader.head().size
    openings = [
        stored.entry.index
        for stored in holding(reader.folder, b'"kind":"opening"', stop=size, newest_first=True)
        if isinstance(receipt := _read(stored), Opening) and receipt.issued_at >= moment
    ]
    if openings:
        for stored in reader.entries(min(openings), size):
            found.add(stored)
    for id_, (_, receipt) in found.receipts.items():
        if not isinstance(receipt, Opening) or receipt.issued_at < moment:
            continue
        parent = None if receipt.parent_opening is None else found.get(receipt.parent_opening)
        if not isinstance(parent, Opening) or parent.issued_at < moment:
            found.roots.append(id_)
    found.roots.reverse()
    _add_approvals(reader, found)
    return found


def _add_approvals(reader: Reader, found: Collected) -> None:
    """Add approvals that acts used and that stand outside the run."""
    for id_ in _approvals_used(receipt for _, receipt in list(found.receipts.values())):
        if id_ not in found.receipts:
            try:
                stored = reader.get(id_)
            except LedgerError:
                continue  # that it is missing is for the verdict to say
            receipt = _read(stored)
            if isinstance(receipt, Approval):
                found.receipts[id_] = (stored, receipt)


def _approvals_used(receipts: Iterable[Receipt | None]) -> set[str]:
    return {each for receipt in receipts if isinstance(receipt, Intent) for each in receipt.approvals}


def _read(stored: Stored) -> Receipt | None:
    try:
        return parse_receipt(stored.envelope.payload)
    except LedgerError:
        return None
