"""Searching a journal: its newest head from the end, and lines by their bytes, so that no line without a text is looked at.

What is found is only where to look: a text may stand in a receipt by chance, so whoever asks reads the receipt.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import FormatError, NotFoundError
from ledger.line import ENTRY_PREFIX, HEAD_PREFIX, parse_entry_line, parse_head_line
from ledger.storage.journal import Stored, read_segment, segment_bytes, segments

__all__ = ["holding", "newest_note"]

_BLOCK: Final = 1 << 16


def newest_note(folder: Path) -> bytes:
    """Return the newest head of the ledger in a folder as the bytes of its signed note, whose signature is not checked here.

    Raises:
        NotFoundError: no commit in the folder.
    """
    for first in reversed(segments(folder)):
        size_bytes = segment_bytes(folder, first)
        # Nearly always the last line, so a block at the end is enough.
        for start in (max(0, size_bytes - _BLOCK), 0):
            line = _last_head_line(read_segment(folder, first, start), whole=start == 0)
            if line is not None:
                return parse_head_line(line)[0]
    raise NotFoundError(f"ledger: {str(folder)!r} holds no head", code="ledger.absent")


def _last_head_line(data: bytes, *, whole: bool) -> bytes | None:
    """Return the last whole head line, or a last line that lacks only its LF; `whole` if `data` begins with a line."""
    end = len(data)
    while end > 0:
        start = data.rfind(b"\n", 0, end) + 1
        line = data[start:end]
        if line.startswith(HEAD_PREFIX) and line.endswith(b'"}') and (start > 0 or whole):
            return line
        end = start - 1
    return None


def holding(folder: Path, *needles: bytes, start: int = 0, stop: int, newest_first: bool = False) -> Iterator[Stored]:
    """Yield the entries from index `start` up to, not including, `stop` whose lines hold one of the texts.

    Lines that do not parse are left out: what is wrong with them is for the verifier to say.
    """
    known = segments(folder)
    wanted = [first for first in known[max(bisect_right(known, start) - 1, 0) :] if first < stop]
    for first in reversed(wanted) if newest_first else wanted:
        data = read_segment(folder, first)
        places = sorted(set(_lines(data, needles)), reverse=newest_first)
        for begin, end in places:
            if not data.startswith(ENTRY_PREFIX, begin):
                continue
            try:
                entry_bytes, envelope_bytes = parse_entry_line(data[begin:end])
                entry, envelope = parse_entry(entry_bytes), parse_envelope(envelope_bytes)
            except FormatError:
                continue
            if start <= entry.index < stop:
                yield Stored(entry, entry_bytes, envelope, envelope_bytes, first, begin)


def _lines(data: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each whole line that holds one of the texts; a line may come twice."""
    for needle in needles:
        mark = data.find(needle)
        while mark >= 0:
            begin, end = data.rfind(b"\n", 0, mark) + 1, data.find(b"\n", mark)
            if end < 0:
                break
            yield begin, end
            mark = data.find(needle, end)
