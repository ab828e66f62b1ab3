"""A place in the journal that goes on: each line of an entry once, in order, whoever appended it.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ledger.errors import DamagedError
from ledger.line import HEAD_PREFIX
from ledger.storage.journal import Stored, read_segment, segments

__all__ = ["Cursor"]


class Cursor:
    """Where reading goes on: the segment, the offset in it, and the index of the next entry."""

    def __init__(self, folder: Path, start: Stored | None = None) -> None:
        """Begin at an entry, or at the beginning of the journal."""
        self._folder = folder
        self._segment, self._offset, self._index = (
            (0, 0, 0) if start is None else (start.segment, start.offset, start.entry.index)
        )

    def advance(self, size: int, see: Callable[[int, bytes], None]) -> None:
        """Show `see` the index and line of each entry up to, not including, `size`. Called under the lock.

        Raises:
            DamagedError: an entry is missing.
        """
        while self._index < size:
            data = read_segment(self._folder, self._segment, self._offset)
            for line in data.split(b"\n")[:-1]:
                if self._index >= size:
                    return
                if not line.startswith(HEAD_PREFIX):
                    see(self._index, line)
                    self._index += 1
                self._offset += len(line) + 1
            if self._index < size:
                following = [first for first in segments(self._folder) if first > self._segment]
                if not following or following[0] != self._index:
                    raise DamagedError(f"journal: entry {self._index} is not where it should be")
                self._segment, self._offset = following[0], 0
