"""References: what a person types to name a receipt, a run or a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.options import program_name
from ledger.errors import LedgerError, NotFoundError
from ledger.receipt import Opening, Run, parse_receipt
from ledger.storage.journal import Stored
from ledger.storage.reader import Reader

if TYPE_CHECKING:
    # Whoever only reads does not load what writes.
    from ledger.storage.ledger import Ledger

__all__ = ["closing_of", "latest_run", "resolve", "resolve_run", "runs_newest_first", "whole_run"]


def resolve(ledger: Ledger | Reader, reference: str) -> str:
    """Return the receipt id that a reference names: an id, 8 or more of its digits, or `latest`.

    Raises:
        NotFoundError: none.
        LedgerError: `reference.ambiguous`: several, listed in its hint.
    """
    reader = ledger if isinstance(ledger, Reader) else ledger.reader
    if reference == "latest":
        opening, closing = latest_run(reader)
        return (closing or opening).entry.receipt
    found = reader.find(reference)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(
            f"{reference}: no such receipt in this ledger", hint=f"list runs with: {program_name()} log"
        )
    raise LedgerError(
        f"{reference}: names {len(found)} receipts", code="reference.ambiguous", hint="one of: " + ", ".join(found)
    )


def resolve_run(ledger: Ledger, reference: str) -> str:
    """Return the run id that a reference names; a receipt inside a run names its run."""
    if reference == "latest":
        return latest_run(ledger.reader)[0].entry.receipt
    id_ = resolve(ledger, reference)
    receipt = parse_receipt(ledger.get(id_).envelope.payload)
    run = id_ if isinstance(receipt, Opening) else getattr(receipt, "run", None)
    if run is None:
        raise NotFoundError(f"{reference}: is a receipt of kind {receipt.kind}, in no run")
    return str(run)


def closing_of(reader: Reader, run: str) -> Stored | None:
    """Return the `run` receipt that closes a run, None while it is open."""
    return reader.parent_of(run, after=reader.get(run).entry.index)


def whole_run(reader: Reader, id_: str) -> str:
    """Return the receipt that closes a run where `id_` is a run id, else `id_`: who names a run means all of it."""
    payload = reader.get(id_).envelope.payload
    try:
        if not isinstance(parse_receipt(payload), Opening):
            return id_
    except LedgerError:
        return id_  # what is wrong with it is for the verifier to say
    closing = closing_of(reader, id_)
    return closing.entry.receipt if closing is not None else id_


def latest_run(reader: Reader) -> tuple[Stored, Stored | None]:
    """Return opening, and closing or None, of the newest run that no other run started.

    Raises:
        NotFoundError: there is none.
    """
    for opening, closing in runs_newest_first(reader):
        receipt = parse_receipt(opening.envelope.payload)
        if isinstance(receipt, Opening) and receipt.parent_opening is None:
            return opening, closing
    raise NotFoundError("latest: this ledger holds no run yet", hint=f"record one with: {program_name()} run -- CMD …")


def runs_newest_first(reader: Reader) -> Iterator[tuple[Stored, Stored | None]]:
    """Yield (opening, closing or None) of each run, the newest opening first."""
    closings: dict[str, Stored] = {}
    for stored in reader.backwards(b'"kind":"opening"', b'"kind":"run"'):
        receipt = parse_receipt(stored.envelope.payload)
        if isinstance(receipt, Run):
            closings.setdefault(receipt.run, stored)
        elif isinstance(receipt, Opening):
            yield stored, closings.pop(stored.entry.receipt, None)
