"""Evidence for one receipt, gathered from a ledger folder into a bundle.

Gathering judges nothing: what is here is copied as it lies, and `verify` says what it is worth.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from ledger.bundle import Bundle, Item
from ledger.checkpoint import head_of
from ledger.errors import LedgerError, NotFoundError
from ledger.merkle import HashReader, inclusion_proof
from ledger.receipt import children_of, parse_receipt, run_of
from ledger.storage.journal import Stored
from ledger.storage.reader import Reader

__all__ = ["gather"]

_MAX_RECEIPTS = 40_000
"""More than a lawful tree with its path holds: an unlawful one is cut there, and the verifier says so."""


def gather(reader: Reader, receipt: str) -> Bundle:
    """Return the bundle of a receipt: itself, its tree, the path to the nearest seal, its opening, the keyring chain.

    Raises:
        NotFoundError: the receipt is not in the ledger.
        DamagedError: the journal does not lead to its own head, so nothing can be proved from it.
    """
    note = reader.note()
    head = head_of(note)
    found: dict[str, Stored] = {}
    subject = reader.get(receipt)
    _add_tree(reader, subject, found)
    above: Stored | None = subject
    while above is not None and above.envelope.seal is None and len(found) < _MAX_RECEIPTS:
        above = reader.parent_of(above.entry.receipt, after=above.entry.index)
        if above is not None:
            found.setdefault(above.entry.receipt, above)
    _add_opening(reader, subject, found)
    read = reader.hash_reader(head)
    items = sorted(found.values(), key=lambda stored: stored.entry.index)
    return Bundle(
        receipt,
        tuple(_item(stored, head.size, read) for stored in items),
        tuple(_item(stored, head.size, read) for stored in _keyring_chain(reader, head.size)),
        note,
    )


def _item(stored: Stored, size: int, read: HashReader) -> Item:
    return Item(stored.entry_bytes, stored.envelope_bytes, inclusion_proof(stored.entry.index, size, read))


def _add_tree(reader: Reader, top: Stored, found: dict[str, Stored]) -> None:
    """Add a receipt and all that it commits, as far as the ledger holds it."""
    waiting = [top]
    while waiting and len(found) < _MAX_RECEIPTS:
        stored = waiting.pop()
        if stored.entry.receipt in found:
            continue
        found[stored.entry.receipt] = stored
        try:
            children = children_of(parse_receipt(stored.envelope.payload))
        except LedgerError:
            continue
        for child in children:
            try:
                waiting.append(reader.get(child))
            except NotFoundError:
                continue


def _add_opening(reader: Reader, subject: Stored, found: dict[str, Stored]) -> None:
    try:
        run = run_of(parse_receipt(subject.envelope.payload), subject.entry.receipt)
        if run is not None and run not in found:
            found[run] = reader.get(run)
    except LedgerError:
        return


def _keyring_chain(reader: Reader, size: int) -> list[Stored]:
    """Return the header and every key entry under a head, oldest first: each entry names the one before."""
    chain: list[Stored] = []
    index = reader.at(size - 1).entry.keyring
    newest = reader.at(size - 1)
    if _is_key(newest):
        index = newest.entry.index
    while True:
        stored = reader.at(index)
        chain.append(stored)
        if index == 0 or stored.entry.keyring >= index:
            return chain[::-1]
        index = stored.entry.keyring


def _is_key(stored: Stored) -> bool:
    try:
        return parse_receipt(stored.envelope.payload).kind in ("header", "key")
    except LedgerError:
        return False
