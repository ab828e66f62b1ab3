"""References: what a person types to name a receipt, a run or a file."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.errors import NotFoundError
from ledger.receipt import Opening, Run, parse_receipt
from ledger.storage.journal import Stored
from ledger.storage.ledger import Ledger
from ledger.storage.reader import Reader

__all__ = ["closing_of", "resolve", "resolve_run", "runs_newest_first"]


def resolve(ledger: Ledger, reference: str) -> str:
    """Return the receipt id that a reference names: an id, 8 or more of its digits, or `latest`.

    Raises:
        NotFoundError: none, or several: they are listed.
    """
    if reference == "latest":
        for opening, closing in runs_newest_first(ledger.reader):
            return (closing or opening).entry.receipt
        raise NotFoundError("latest: this ledger holds no run yet", hint="record one with: ledger run -- CMD …")
    found = ledger.find(reference)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(f"{reference}: no such receipt in this ledger", hint="list runs with: ledger log")
    raise NotFoundError(
        f"{reference}: names {len(found)} receipts", code="reference.ambiguous", hint="one of: " + ", ".join(found)
    )


def resolve_run(ledger: Ledger, reference: str) -> str:
    """Return the run id that a reference names; a receipt inside a run names its run."""
    if reference == "latest":
        for opening, _ in runs_newest_first(ledger.reader):
            return opening.entry.receipt
    id_ = resolve(ledger, reference)
    receipt = parse_receipt(ledger.get(id_).envelope.payload)
    run = id_ if isinstance(receipt, Opening) else getattr(receipt, "run", None)
    if run is None:
        raise NotFoundError(f"{reference}: is a receipt of kind {receipt.kind}, in no run")
    return str(run)


def closing_of(reader: Reader, run: str) -> Stored | None:
    """Return the `run` receipt that closes a run, None while it is open."""
    return reader.parent_of(run, after=reader.get(run).entry.index)


def runs_newest_first(reader: Reader) -> Iterator[tuple[Stored, Stored | None]]:
    """Yield (opening, closing or None) of each run, the newest opening first."""
    closings: dict[str, Stored] = {}
    for stored in reader.backwards(b'"kind":"opening"', b'"kind":"run"'):
        receipt = parse_receipt(stored.envelope.payload)
        if isinstance(receipt, Run):
            closings.setdefault(receipt.run, stored)
        elif isinstance(receipt, Opening):
            yield stored, closings.pop(stored.entry.receipt, None)
