"""The places of a journal's receipts, found by going through it once: for a reader whose ledger has no state that says them.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from ledger.storage.journal import read_segment, segments

__all__ = ["Scanned"]

_ENTRY_START = re.compile(
    rb'\{"entry":\{"envelope":"sha256:[0-9a-f]{64}","index":[0-9]{1,16},"keyring":[0-9]{1,16},'
    rb'"previous":"sha256:[0-9a-f]{64}","receipt":"sha256:([0-9a-f]{16})'
)
"""Also where a receipt holds the like: a place is looked at before it is believed. It begins with a text, which is soon found."""


class Scanned:
    """Where the receipts of a journal lie, from one pass over it: for a reader without a state that says so.

    Kept by the first 8 bytes of their ids, about 150 bytes a receipt. Whatever looks like the beginning of an entry line is in it.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        self._segments = segments(folder)
        self._places: dict[int, int] = {}
        self._more: dict[int, list[int]] = {}
        for number, first in enumerate(self._segments):
            for match in _ENTRY_START.finditer(read_segment(folder, first)):
                key, place = int(match[1], 16), number << 40 | match.start()
                if self._places.setdefault(key, place) != place:
                    self._more.setdefault(key, []).append(place)

    def places(self, receipt: str) -> list[tuple[int, int]]:
        """Return segment and offset of each entry whose receipt id begins with the same 8 bytes."""
        key = int(receipt[7:23], 16)
        first = self._places.get(key)
        found = [] if first is None else [first, *self._more.get(key, ())]
        return [(self._segments[place >> 40], place & (1 << 40) - 1) for place in found]
