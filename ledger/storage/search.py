"""Searching a journal for a text: by its bytes, a segment at a time, so that no line without the text is looked at.

What is found is only where to look: a text may stand in a receipt by chance, so whoever asks reads the receipt.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import FormatError
from ledger.line import ENTRY_PREFIX, parse_entry_line
from ledger.storage.journal import Stored, read_segment, segments

__all__ = ["holding"]


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
