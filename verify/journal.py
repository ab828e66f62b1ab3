"""Segments of a journal as bytes, places in them, and what may follow the last head.

After the last head stands nothing, a torn tail, or damage. A torn tail is what an append that a crash interrupted leaves: whole
entry lines that continue the chain, then at most one line without LF, or NULs to the end. All else was whole once and is
different now.

Source: docs/spec/journal.md, "Torn tails".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from ledger.entry import Entry, parse_entry
from ledger.envelope import ENVELOPE_MAX_BYTES
from ledger.errors import LedgerError
from ledger.line import ENTRY_PREFIX, HEAD_PREFIX, parse_entry_line

__all__ = ["LINE_MAX_BYTES", "Place", "Segment", "place", "why_not_torn"]

LINE_MAX_BYTES: Final = ENVELOPE_MAX_BYTES + 1024
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Segment:
    """The bytes of one journal file, as one snapshot; `name` is how findings call it."""

    name: str
    first_index: int
    data: bytes


Place: TypeAlias = tuple[Segment, int]
"""A segment and the offset of a line in it."""


def place(at: Place) -> str:
    """Return a place in words: file, line counted from 1, and byte offset counted from 0."""
    segment, offset = at
    line = segment.data.count(b"\n", 0, offset) + 1
    return f"{segment.name}:{line} (byte {offset})"


def why_not_torn(fragment: bytes, *, index: int, previous: str) -> str | None:
    """Return why the last bytes, without LF, are not the beginning of a line that a crash cut short; None if they are.

    Args:
        fragment: the bytes after the last LF, none of which a head line that holds.
        index: the index that the next entry has.
        previous: the hexadecimal digest of the entry before it.
    """
    text = fragment.rstrip(b"\0")
    if b"\0" in text:
        return "NULs stand before other bytes"
    if len(text) > LINE_MAX_BYTES:
        return "the last bytes are more than any line of a journal"
    if not any(text.startswith(prefix[: len(text)]) for prefix in (ENTRY_PREFIX, HEAD_PREFIX)):
        return "the last bytes begin no line of a journal"
    # A head line holds one closing brace, its last byte, so a torn one holds none.
    if text.startswith(HEAD_PREFIX) and b"}" in text:
        return "the last line is a whole head that does not hold"
    end = _end_of_object(text)
    if end is None:
        return None
    if end != len(text):
        return "the last line goes on after its end"
    try:
        entry = parse_entry(parse_entry_line(text)[0])
    except LedgerError as error:
        return f"the last line is whole but is no entry: {error}"
    return (
        None
        if _continues(entry, index, previous)
        else "the last line is a whole entry that does not continue the chain"
    )


def _continues(entry: Entry, index: int, previous: str) -> bool:
    return entry.index == index and entry.previous[7:] == previous


def _end_of_object(text: bytes) -> int | None:
    """Return the offset after the JSON object that a text begins with, None if the text ends inside it."""
    level = position = 0
    while position < len(text):
        byte = text[position]
        if byte == 0x22:
            match = _STRING.match(text, position)
            if match is None:
                return None
            position = match.end()
            continue
        if byte == 0x7B:
            level += 1
        elif byte == 0x7D:
            level -= 1
            if level == 0:
                return position + 1
        position += 1
    return None
