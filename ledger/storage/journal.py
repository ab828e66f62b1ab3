"""The journal on disk: segments of lines, commits, and what stands after the last commit mark.

A segment `journal/<first index, 16 digits>.jsonl` holds commits; a commit is entry lines and one head line, written at once.
`Tail` is the state after the last commit; `read_commits` moves it forward over what other writers appended, checking every
index, link, digest and root on the way. What follows the last head line is the torn tail of a commit that never ended, or it
is damage; the two are told apart by `classify_rest`.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Final

from ledger import canonical
from ledger.checkpoint import head_of
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import Entry, parse_entry
from ledger.envelope import ENVELOPE_MAX_BYTES, Envelope, parse_envelope
from ledger.errors import DamagedError, FormatError, LedgerError, NotFoundError
from ledger.line import ENTRY_PREFIX, HEAD_PREFIX, parse_entry_line, parse_head_line
from ledger.merkle import Frontier, leaf_hash
from ledger.storage.durable import open_regular

__all__ = [
    "COMMIT_MAX_BYTES",
    "COMMIT_MAX_ENTRIES",
    "LINE_MAX_BYTES",
    "SEGMENT_MAX_BYTES",
    "SEGMENT_MAX_ENTRIES",
    "Commit",
    "Rest",
    "Stored",
    "Tail",
    "classify_rest",
    "read_commits",
    "read_segment",
    "segment_bytes",
    "segment_path",
    "segments",
]

COMMIT_MAX_BYTES: Final = 16 << 20
COMMIT_MAX_ENTRIES: Final = 8_192
SEGMENT_MAX_BYTES: Final = 64 << 20
SEGMENT_MAX_ENTRIES: Final = 8_192

_SEGMENT_LIMIT_BYTES: Final = SEGMENT_MAX_BYTES + 2 * COMMIT_MAX_BYTES
"""A segment is closed by the commit that passes its bound; the tail of one more may follow."""
LINE_MAX_BYTES: Final = ENVELOPE_MAX_BYTES + 1024
_SEGMENT = re.compile(r"([0-9]{16})\.jsonl")
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+"|["{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry as it lies in the journal, with its envelope and the place of its line."""

    entry: Entry
    entry_bytes: bytes
    envelope: Envelope
    envelope_bytes: bytes
    segment: int
    offset: int


@dataclass(slots=True)
class Tail:
    """What a writer needs to know to append: the state after the last commit. Mutable; one writer owns it."""

    segment: int = 0
    """First index of the segment that the last commit stands in."""
    start: int = 0
    """Where in that segment the last commit begins."""
    offset: int = 0
    """Bytes of that segment up to the end of the last commit."""
    size: int = 0
    previous: str = ZERO_DIGEST
    keyring: int = 0
    frontier: Frontier = field(default_factory=Frontier)
    head_line: str = ZERO_DIGEST
    commit: str = ZERO_DIGEST
    """Digest of the bytes of the last commit; a writer computes it when the state is saved."""
    note: bytes = b""

    def copy(self) -> Tail:
        """Return an independent copy."""
        return Tail(
            self.segment,
            self.start,
            self.offset,
            self.size,
            self.previous,
            self.keyring,
            self.frontier.copy(),
            self.head_line,
            self.commit,
            self.note,
        )

    def segment_is_full(self) -> bool:
        """Return whether the next commit starts a new segment."""
        return self.size - self.segment >= SEGMENT_MAX_ENTRIES or self.offset >= SEGMENT_MAX_BYTES


@dataclass(frozen=True, slots=True)
class Commit:
    """Entries that one head line acknowledges; the leaves are their merkle hashes."""

    entries: tuple[Stored, ...]
    leaves: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Rest:
    """Bytes of a commit that never ended, after the last head line of a segment."""

    segment: int
    offset: int
    data: bytes


@lru_cache(maxsize=256)
def segment_path(folder: Path, first_index: int) -> Path:
    """Return the path of the segment that starts at an index."""
    return folder / "journal" / f"{first_index:016d}.jsonl"


def segments(folder: Path) -> list[int]:
    """Return the first indices of all segments, ascending.

    Raises:
        NotFoundError: the folder holds no journal.
    """
    try:
        names = [each.name for each in (folder / "journal").iterdir()]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(
            f"ledger: {str(folder)!r} holds no journal",
            code="ledger.absent",
            hint=f"make one with: ledger init {folder}",
        ) from error
    return sorted(int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name)))


def read_segment(folder: Path, first_index: int, offset: int = 0, length: int = -1) -> bytes:
    """Return bytes of a segment from `offset`, all of them where `length` is negative.

    Raises:
        DamagedError: it is larger than a segment can be, or no file at all.
        OSError: it cannot be read.
    """
    with _open_segment(folder, first_index) as file:
        file.seek(offset)
        return file.read(length)


def segment_bytes(folder: Path, first_index: int) -> int:
    """Return how many bytes a segment has now. Raises as `read_segment`."""
    with _open_segment(folder, first_index) as file:
        return os.fstat(file.fileno()).st_size


def _open_segment(folder: Path, first_index: int) -> BufferedReader:
    path = segment_path(folder, first_index)
    where = f"journal/{path.name}"
    try:
        file = open_regular(path)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.EISDIR, errno.ELOOP}:
            raise DamagedError(f"{where}: {error.strerror}", where=where) from error
        raise
    size = os.fstat(file.fileno()).st_size
    if size > _SEGMENT_LIMIT_BYTES:
        file.close()
        raise DamagedError(f"{where}: got {size} bytes, more than a segment can have", where=where)
    return file


def read_commits(folder: Path, tail: Tail) -> Iterator[Commit | Rest]:
    """Yield the commits after `tail`, moving it; last a `Rest` if bytes of an unended commit follow.

    `tail` stands after a commit when that commit is yielded.

    Raises:
        DamagedError: a line, a link, a digest or a root does not hold, or a segment is missing.
    """
    known = segments(folder)
    if tail.size and tail.segment not in known:
        raise DamagedError(f"journal: segment {tail.segment:016d} is missing", where=f"segment {tail.segment:016d}")
    while True:
        rest = yield from _read_rest_of_segment(folder, tail)
        following = tail.size if tail.size != tail.segment else None
        if rest is None and following is not None and following in known:
            tail.segment, tail.start, tail.offset = following, 0, 0
            continue
        later = [first for first in known if first > tail.segment]
        if later:
            raise DamagedError(
                f"journal: segment {later[0]:016d} does not follow entry {tail.size - 1}",
                where=f"segment {later[0]:016d}",
            )
        if rest is not None:
            yield rest
        return


def _read_rest_of_segment(folder: Path, tail: Tail) -> Generator[Commit, None, Rest | None]:
    """Yield the commits of the current segment; return the `Rest` after them, or None."""
    data = read_segment(folder, tail.segment, tail.offset) if segment_path(folder, tail.segment).exists() else b""
    start = tail.offset
    reader = _CommitReader(tail)
    position = committed = 0
    while (end := data.find(b"\n", position)) >= 0:
        line = data[position:end]
        try:
            commit = reader.take(line, start + position)
        except LedgerError as error:
            where = f"journal/{tail.segment:016d}.jsonl byte {start + position}"
            raise DamagedError(f"{where}: {error}", where=where) from error
        position = end + 1
        if commit is not None:
            tail.commit = digest(data[committed:position])
            tail.start, tail.offset = start + committed, start + position
            committed = position
            yield commit
    if committed == len(data):
        return None
    rest = Rest(tail.segment, start + committed, data[committed:])
    if rest.data[position - committed :].startswith(HEAD_PREFIX) and rest.data.endswith(b'"}'):
        # A head line that lacks only its LF and holds is committed; the writer completes it.
        try:
            commit = reader.take(data[position:], start + position)
        except LedgerError as error:
            raise DamagedError(f"journal/{tail.segment:016d}.jsonl: last head line: {error}") from error
        if commit is not None:
            tail.commit = digest(rest.data + b"\n")
            tail.start, tail.offset = rest.offset, start + len(data)
            yield commit
            return Rest(tail.segment, tail.offset, b"")
    classify_rest(rest)
    try:
        reader.check_last(data[position:].rstrip(b"\0"))
    except LedgerError as error:
        where = f"journal/{tail.segment:016d}.jsonl byte {start + position}"
        raise DamagedError(f"{where}: {error}", where=where) from error
    return rest


class _CommitReader:
    """Takes lines in order and moves a tail at each head line."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._entries: list[Stored] = []
        self._leaves: list[bytes] = []
        self._previous = tail.previous
        self._keyring = tail.keyring
        self._frontier = tail.frontier.copy()

    def take(self, line: bytes, offset: int) -> Commit | None:
        """Return the commit that a head line ends, None for an entry line."""
        if line.startswith(HEAD_PREFIX):
            return self._head(line)
        self._entry(line, offset)
        return None

    def check_last(self, text: bytes) -> None:
        """Raise where the last line, which has no LF, is a whole entry line and could not have followed."""
        end = _end_of_object(text)
        if end is None:
            return
        entry = parse_entry(parse_entry_line(text)[0])
        if end != len(text) or (entry.index, entry.previous) != (self._tail.size + len(self._entries), self._previous):
            raise FormatError("the last line is whole but does not continue the chain", code="line.malformed")

    def _entry(self, line: bytes, offset: int) -> None:
        entry_bytes, envelope_bytes = parse_entry_line(line)
        entry = parse_entry(entry_bytes)
        index = self._tail.size + len(self._entries)
        if entry.index != index:
            raise FormatError(f"entry: got index {entry.index}, expected {index}", code="chain.index")
        if entry.previous != self._previous:
            raise FormatError(f"entry {index}: previous does not name entry {index - 1}", code="chain.previous")
        if entry.keyring != self._keyring:
            raise FormatError(
                f"entry {index}: got keyring {entry.keyring}, expected {self._keyring}", code="chain.keyring"
            )
        if digest(envelope_bytes) != entry.envelope:
            raise FormatError(f"entry {index}: the envelope is not the one committed", code="entry.envelope_digest")
        envelope = parse_envelope(envelope_bytes)
        if envelope.receipt_id != entry.receipt:
            raise FormatError(f"entry {index}: the receipt is not the one committed", code="entry.receipt_id")
        stored = Stored(entry, entry_bytes, envelope, envelope_bytes, self._tail.segment, offset)
        self._entries.append(stored)
        leaf = leaf_hash(entry_bytes)
        self._leaves.append(leaf)
        self._frontier.append(leaf)
        self._previous = digest(entry_bytes)
        if moves_keyring(envelope.payload):
            self._keyring = index

    def _head(self, line: bytes) -> Commit:
        tail = self._tail
        note, previous_head = parse_head_line(line)
        if previous_head != tail.head_line:
            raise FormatError("head: previous_head does not name the head line before", code="head.link")
        if not self._entries:
            raise FormatError("head: ends a commit of no entries", code="head.empty")
        head = head_of(note)
        size = tail.size + len(self._entries)
        if head.size != size or head.root != self._frontier.root():
            raise FormatError(f"head: size {head.size} and root are not those of {size} entries", code="head.root")
        commit = Commit(tuple(self._entries), tuple(self._leaves))
        tail.size = size
        tail.previous, tail.keyring, tail.frontier = self._previous, self._keyring, self._frontier.copy()
        tail.head_line, tail.note = digest(line), note
        self._entries, self._leaves = [], []
        return commit


def moves_keyring(payload: bytes) -> bool:
    """Return whether a receipt is a `header` or `key`, told from its canonical bytes.

    Members are sorted and `kind` is a plain string, so the text can only stand inside a nested object or be the member itself;
    the full answer is asked of the parser when the text is there.
    """
    if b'"kind":"header"' not in payload and b'"kind":"key"' not in payload:
        return False
    return canonical.decode(payload).get("kind") in ("header", "key")


def classify_rest(rest: Rest) -> None:
    """Return if the bytes after the last head line are the torn tail of a commit that never ended.

    The whole lines among them have been read as entries that continue the chain. What is left is at most one line without LF,
    or NULs to the end (a file that grew before its bytes arrived).

    Raises:
        DamagedError: no crash explains the bytes; nothing is moved.
    """
    where = f"journal/{rest.segment:016d}.jsonl byte {rest.offset}"
    fragment = rest.data.rpartition(b"\n")[2]
    text = fragment.rstrip(b"\0")
    if b"\0" in text:
        raise DamagedError(f"{where}: NULs stand before other bytes", where=where)
    # A head line holds one closing brace, its last byte: a torn one stops before it.
    if text.startswith(HEAD_PREFIX) and b"}" in text:
        raise DamagedError(f"{where}: the last head line is whole but is not what it claims", where=where)
    if not _could_begin_a_line(text) or len(text) > LINE_MAX_BYTES:
        raise DamagedError(f"{where}: the last bytes begin no line of a journal", where=where)


def _could_begin_a_line(text: bytes) -> bool:
    return any(text.startswith(prefix[: len(text)]) for prefix in (ENTRY_PREFIX, HEAD_PREFIX))


def _end_of_object(text: bytes) -> int | None:
    """Return the offset after the JSON object that a text begins with, None where the text ends inside it."""
    level = 0
    for match in _MARK.finditer(text):
        if match[0] == b'"':
            return None  # a text without its end
        level += {b"{": 1, b"}": -1}.get(match[0], 0)
        if level == 0 and match[0] == b"}":
            return match.end()
    return None
