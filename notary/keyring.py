"""The keyring that comes with a head: followed from the header to the log key in force.

Every item stands under the head, in order, with its envelope and its issuer's seal; each names the one before, and the last entry
under the head names the newest. So no rotation can be hidden, and none can be made up beside the tree.

Source: docs/spec/keys.md, docs/spec/bundles.md, clauses 9 to 12.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.bundle import Item, LastEntry
from ledger.checkpoint import Head
from ledger.digest import digest
from ledger.entry import Entry, parse_entry
from ledger.envelope import parse_envelope, verify_seal
from ledger.errors import LedgerError
from ledger.receipt import Header, Key, Receipt, parse_receipt
from verify.keyring import Keyring, header_problem
from verify.proof import leaf_hash, verify_inclusion

__all__ = ["follow"]


def follow(items: Sequence[Item], last: LastEntry, head: Head) -> Keyring:
    """Return the keys in force under a head.

    Raises:
        LedgerError: an item or the last entry does not hold, does not follow, or does not stand under the head.
    """
    keyring: Keyring | None = None
    before = 0
    for item in items:
        entry, receipt = _read(item, head)
        keyring = _take(keyring, entry, receipt, before)
        before = entry.index
    if keyring is None:
        raise LedgerError("keyring: got no header", code="chain.first_entry")
    entry = _under(last.entry, last.proof, head)
    if entry.index != head.size - 1:
        raise LedgerError(f"last: got entry {entry.index}, expected {head.size - 1}", code="chain.index")
    newest = before if before < entry.index or entry.index == 0 else _before_last(items)
    if entry.keyring != newest:
        raise LedgerError(
            f"last: got keyring {entry.keyring}, expected {newest}: a key entry is hidden", code="chain.keyring"
        )
    return keyring


def _before_last(items: Sequence[Item]) -> int:
    """Return the index of the newest key entry before the last item, which is the last entry under the head itself."""
    return parse_entry(items[-2].entry).index if len(items) > 1 else 0


def _take(keyring: Keyring | None, entry: Entry, receipt: Receipt, before: int) -> Keyring:
    if isinstance(receipt, Header) and keyring is None and entry.index == 0:
        problem = header_problem(receipt)
        if problem is not None:
            raise LedgerError(f"header: {problem[1]}", code=problem[0])
        return Keyring.start(receipt, entry.receipt)
    if not isinstance(receipt, Key) or keyring is None or entry.index <= before or entry.keyring != before:
        raise LedgerError(f"entry {entry.index}: it does not follow entry {before}", code="chain.keyring")
    refused = keyring.take(receipt, entry.index)
    if refused is not None:
        raise LedgerError(f"entry {entry.index}: {refused}", code="key.chain")
    return keyring


def _read(item: Item, head: Head) -> tuple[Entry, Receipt]:
    entry = _under(item.entry, item.proof, head)
    envelope = parse_envelope(item.envelope)
    if digest(item.envelope) != entry.envelope:
        raise LedgerError(f"entry {entry.index}: its envelope has another digest", code="entry.envelope_digest")
    if envelope.receipt_id != entry.receipt:
        raise LedgerError(f"entry {entry.index}: its receipt has another id", code="entry.receipt_id")
    receipt = parse_receipt(envelope.payload)
    if envelope.seal is None or envelope.seal.key != receipt.issuer.key or receipt.ledger != head.origin:
        raise LedgerError(f"entry {entry.index}: no seal by its issuer in this ledger", code="seal.issuer")
    verify_seal(envelope)
    return entry, receipt


def _under(entry_bytes: bytes, proof: Sequence[bytes], head: Head) -> Entry:
    entry = parse_entry(entry_bytes)
    verify_inclusion(leaf=leaf_hash(entry_bytes), index=entry.index, size=head.size, proof=proof, root=head.root)
    return entry
