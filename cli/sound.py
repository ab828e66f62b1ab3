"""The part of a ledger that holds, where not all of it does: that much of it can be asked about.

- Structure (journal, chain, heads): the commits before the first that does not hold.
- Receipts, seals, trees, ids: all but the entries that fail; those of a kind or schema that this version does not know, too.

Everything is folded once more, in order, with a report that keeps every place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cli.parallel import read
from ledger.line import HEAD_PREFIX
from verify.chain import ChainFold, ChainPoint, Rows, Segment
from verify.receipts import ReceiptFold
from verify.report import Report

__all__ = ["Sound", "sound_part"]

_ENTRY: Final = re.compile(r"entry ([0-9]+)\b")
_STRUCTURE: Final = frozenset({"journal", "chain", "keyring", "heads", "head signatures"})


@dataclass(frozen=True, slots=True)
class Sound:
    """First index and bytes of each file, up to the end of a commit; how many entries; and the indices of those to leave out."""

    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    size: int = 0
    left_out: frozenset[int] = frozenset()


class _BrokenError(Exception):
    """The structure does not hold."""


class _Places(Report):
    """Keeps the entry of every finding, and ends at the first one of structure."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: set[int] = set()

    def find(
        self, name: str, code: str, *, where: str | None = None, message: str = "", asked: bool = True, count: int = 1
    ) -> None:
        """Take a finding."""
        if name in _STRUCTURE and code != "format.unknown":
            raise _BrokenError(f"{name}: {code} {where} {message} {asked} {count}")
        match = _ENTRY.match(where or "")
        if match is not None:
            self.entries.add(int(match[1]))

    def skip(self, name: str, code: str, message: str = "", *, asked: bool) -> None:
        """Take nothing: what could not be looked at is said by the verdict."""


class _Once:
    """Passes receipts on and keeps the indices of those that stand there already."""

    def __init__(self, receipts: ReceiptFold) -> None:
        self._receipts = receipts
        self._ids: set[str] = set()
        self.repeated: set[int] = set()
        self.unread: set[int] = set()

    def take(self, rows: Rows) -> None:
        """Take the receipts of commits."""
        for index, id_, payload, *_ in rows:
            if not payload:
                self.unread.add(index)
            elif id_ in self._ids:
                self.repeated.add(index)
            self._ids.add(id_)
        self._receipts.take(rows)


def sound_part(folder: Path, files: tuple[tuple[int, int], ...]) -> Sound:
    """Return the part of a ledger that holds.

    Args:
        folder: the ledger.
        files: first index and size in bytes of each file of its journal.
    """
    places = _Places()
    once = _Once(ReceiptFold(places))
    pieces: list[tuple[int, bytes]] = []
    point: ChainPoint | None = None
    for segment in (read(folder, first, size) for first, size in files):
        end = _end_of_sound(segment, point)
        if end == 0:
            break
        whole = Segment(segment.name, segment.first_index, segment.data[:end])
        chain = ChainFold(places, consume=once.take, start=point)
        try:
            chain.feed(whole)
        except _BrokenError:
            break
        reached = chain.point()
        if reached is None:
            break
        point = reached
        pieces.append((segment.first_index, whole.data))
        if end < len(segment.data):
            break
    size = 0 if point is None else point.size
    return Sound(pieces, size, frozenset(places.entries | once.repeated | once.unread))


def _end_of_sound(segment: Segment, start: ChainPoint | None) -> int:
    """Return how many bytes of a file its longest run of commits that hold has, by halving."""
    ends = list(_commit_ends(segment.data))
    if not ends or segment.first_index != (0 if start is None else start.size):
        return 0
    low, high = 0, len(ends)
    if _holds(segment, ends[-1], start):
        return ends[-1]
    while high - low > 1:
        middle = (low + high) // 2
        if _holds(segment, ends[middle - 1], start):
            low = middle
        else:
            high = middle
    return ends[low - 1] if low else 0


def _holds(segment: Segment, end: int, start: ChainPoint | None) -> bool:
    chain = ChainFold(_Places(), every_head=True, start=start)
    try:
        chain.feed(Segment(segment.name, segment.first_index, segment.data[:end]))
        return chain.point() is not None
    except _BrokenError:
        return False


def _commit_ends(data: bytes) -> Iterator[int]:
    """Yield the offset after each head line."""
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        if data.startswith(HEAD_PREFIX, position):
            yield end + 1
        position = end + 1
