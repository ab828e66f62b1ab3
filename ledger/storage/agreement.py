"""What speaks against an answer that only the journal gives: that a receipt is absent, a run open, an entry of a later format.

One altered byte can hide a receipt from whoever looks for its id, the receipt that closes a run from whoever looks for the run,
and what an entry says from whoever reads it. What the state was made from is asked first, where it stands in this journal; what follows it, or all where there is no
state, is read and led up to the head. That costs a pass over the journal only where the state is missing or far behind.

Source: docs/spec/journal.md, "Derived files".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ledger.checkpoint import Head
from ledger.digest import digest
from ledger.entry import Entry, parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError, NotFoundError, UnknownFormatError
from ledger.line import HEAD_PREFIX, parse_entry_line
from ledger.merkle import leaf_hash
from ledger.storage.journal import Tail, read_segment, segments
from ledger.storage.reader import Reader
from ledger.storage.state import State

__all__ = ["against_absence", "against_openness", "against_unknown"]


def against_absence(folder: Path, digits: str) -> str | None:
    """Return what speaks against a journal that holds no receipt whose id starts with `digits`, None where nothing does."""

    def known(state: State) -> bool:
        return bool(state.starting_with(digits[:16], 1)) and not Reader(folder).find(digits)

    return _against(folder, known, f"a receipt {digits[:12]} was here when the state was saved, and is not found now")


def against_openness(folder: Path, run: str) -> str | None:
    """Return what speaks against a journal that holds a run, by its run id, and nothing that closes it."""

    def known(state: State) -> bool:
        found = state.run(run)
        if found is None or found.closed is None:
            return False
        reader = Reader(folder)  # another process may have closed it since
        return reader.parent_of(run, after=reader.get(run).entry.index) is None

    return _against(folder, known, "the run was closed when the state was saved, and what closed it is not found now")


def against_unknown(folder: Path) -> str | None:
    """Return what speaks against a journal in which an entry of an unknown format stands, None where it leads to its head."""
    try:
        return _altered(folder, Reader(folder).head(), Tail())
    except LedgerError as error:
        return str(error)


def _against(folder: Path, known: Callable[[State], bool], message: str) -> str | None:
    reader = Reader(folder)
    try:
        head = reader.head()
        tail = None
        state = State(folder, read_only=True)
        with state.in_use:
            try:
                loaded = state.load()
                tail = loaded[0] if loaded is not None and _stands(folder, loaded[0]) else None
                if tail is not None and known(state):
                    return message
            except (sqlite3.Error, ValueError, KeyError, TypeError, OSError, NotFoundError):
                tail = None
            finally:
                state.close()
        return _altered(folder, head, Tail() if tail is None or tail.size > head.size else tail)
    except LedgerError as error:
        return str(error)


def _altered(folder: Path, head: Head, tail: Tail) -> str | None:
    """Return what does not hold of the entries between a tail and a head, None where they lead from one to the other."""
    frontier = tail.frontier.copy()
    for segment in segments(folder):
        if segment < tail.segment:
            continue
        for line in read_segment(folder, segment, tail.offset if segment == tail.segment else 0).split(b"\n"):
            if frontier.size == head.size:
                break
            if not line or line.startswith(HEAD_PREFIX):
                continue
            entry, envelope = parse_entry_line(line)
            # An entry of a later format still is a leaf, whatever it says.
            with suppress(UnknownFormatError):
                if not _names(parse_entry(entry), frontier.size, envelope):
                    return f"entry {frontier.size}: it does not name its index, or the envelope or receipt beside it"
            frontier.append(leaf_hash(entry))
    return None if frontier.root() == head.root else "the entries do not lead to the root of the head"


def _names(entry: Entry, index: int, envelope: bytes) -> bool:
    known = entry.index == index and entry.envelope == digest(envelope)
    return known and entry.receipt == parse_envelope(envelope).receipt_id


def _stands(folder: Path, tail: Tail) -> bool:
    """Return whether the commit that a state was saved after stands in the journal, byte for byte."""
    return digest(read_segment(folder, tail.segment, tail.start, tail.offset - tail.start)) == tail.commit
