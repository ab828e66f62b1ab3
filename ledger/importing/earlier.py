"""What earlier imports of a ledger hold about a word of another system: found in the journal by its bytes, then read.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeAlias

import orjson

from ledger.errors import LedgerError
from ledger.receipt import Opening, Receipt, parse_receipt
from ledger.storage.ledger import Ledger
from ledger.storage.search import holding

__all__ = ["EarlierRun", "documents_naming", "earlier_of"]

_NAMING: Final = (b'.receipt":"', b'"disposition":"')
"""Where a foreign receipt is named: in the correlation of a run, and beside its disposition among inline arguments."""
_NAMED: Final = re.compile(rb'receipt":"([^"\\]{1,256})"')

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


def documents_naming(ledger: Ledger, ids: Collection[str]) -> dict[str, list[bytes]]:
    """Return the imported documents that speak of receipts of another system, by id; the journal is gone through once.

    Found are ids that stand as a correlation or among inline arguments; a document that is erased is left out.
    """
    found: dict[str, dict[str, None]] = {}
    wanted = set(ids)
    for stored in holding(ledger.folder, *_NAMING, stop=ledger.head().size) if wanted else ():
        named = {match[1].decode("ascii", "replace") for match in _NAMED.finditer(stored.envelope.payload)} & wanted
        if not named:
            continue
        try:
            source = parse_receipt(stored.envelope.payload).source
        except LedgerError:
            continue  # of a later version, or damaged, which is for the verifier to say
        if source is not None:
            for id_ in named:
                found.setdefault(id_, {})[source.document] = None
    read: dict[str, bytes | None] = {}
    for documents in found.values():
        read.update((each, _bytes(ledger, each)) for each in documents if each not in read)
    return {id_: [data for each in documents if (data := read[each]) is not None] for id_, documents in found.items()}


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
