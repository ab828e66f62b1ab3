"""What earlier imports of a ledger hold about a word of another system: found in the journal by its bytes, then read.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import orjson

from ledger.errors import LedgerError
from ledger.receipt import Opening, Receipt, parse_receipt
from ledger.storage.ledger import Ledger
from ledger.storage.search import holding

__all__ = ["EarlierRun", "bodies_of", "earlier_of"]

EarlierRun: TypeAlias = Callable[[str, str], tuple[str, bytes] | None]
"""Name and value of a correlation -> run id of the newest imported run that has it, and the bytes of its document."""


def earlier_of(ledger: Ledger) -> EarlierRun:
    """Return the function that finds imported runs of a ledger."""

    def earlier(name: str, value: str) -> tuple[str, bytes] | None:
        needle = _text(name) + b":" + _text(value)
        for id_, receipt in _found(ledger, needle):
            if not isinstance(receipt, Opening) or receipt.source is None:
                continue
            if (receipt.correlation or {}).get(name) == value:
                data = _bytes(ledger, receipt.source.document)
                return None if data is None else (id_, data)
        return None

    return earlier


def bodies_of(ledger: Ledger, id_: str, *, other_than: str) -> Iterator[bytes]:
    """Yield the imported documents that speak of a receipt of another system, but for one of them, by its digest."""
    seen = {other_than}
    for _, receipt in _found(ledger, b'receipt":' + _text(id_)):
        if receipt.source is not None and receipt.source.document not in seen:
            seen.add(receipt.source.document)
            data = _bytes(ledger, receipt.source.document)
            if data is not None:
                yield data


def _found(ledger: Ledger, needle: bytes) -> Iterator[tuple[str, Receipt]]:
    """Yield receipts that hold a text, the newest first, with their ids."""
    for stored in holding(ledger.folder, needle, stop=ledger.head().size, newest_first=True):
        try:
            yield stored.entry.receipt, parse_receipt(stored.envelope.payload)
        except LedgerError:
            continue  # of a later version, or damaged, which is for the verifier to say


def _bytes(ledger: Ledger, document: str) -> bytes | None:
    """Return the bytes of an imported document, None where they are erased or cannot be read."""
    try:
        return ledger.artifacts.get(document)
    except LedgerError:
        return None


def _text(text: str) -> bytes:
    return orjson.dumps(text)
