"""Reading a ledger folder: by receipt id, by index, in order. Writes nothing, takes no lock.

What `state.sqlite` says is a hint: each answer is checked against the line it points to, and "absent" is said only after a
scan of the journal. A reader sees whole commits only: what stands after the last head line is not in the ledger.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from ledger.checkpoint import Head, head_of
from ledger.digest import is_digest
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import DamagedError, FormatError, LedgerError, NotFoundError, StorageError, UnknownFormatError, clip
from ledger.line import HEAD_PREFIX, parse_entry_line
from ledger.merkle import Frontier, HashReader, leaf_hash, root_of, tree_of
from ledger.receipt import Header, parse_receipt
from ledger.storage.durable import storage_error
from ledger.storage.journal import LINE_MAX_BYTES, Stored, read_segment, segment_path, segments
from ledger.storage.scanned import Scanned
from ledger.storage.search import newest_note
from ledger.storage.state import State
from ledger.storage.tiles import Tiles, TreeHashes

__all__ = ["FORMAT", "Reader"]

FORMAT = "receipt-ledger/v1"

_BLOCK = 1 << 16
_SCANS = 3
"""Receipts that are looked for through the whole journal before its places are kept."""
_SHORT = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")


class Reader:
    """Reads one ledger folder."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._state = State(folder, read_only=True)
        self._tiles = Tiles(folder)
        self._size_seen = 0
        self._scans = 0
        self._scanned: Scanned | None = None

    def header(self) -> Header:
        """Return the header.

        Raises:
            NotFoundError: the folder holds no ledger.
            DamagedError: entry 0 is no header.
            UnknownFormatError: a newer format.
        """
        segments(self.folder)
        try:
            line = self._line(0, 0)
        except OSError as error:
            raise storage_error(error, segment_path(self.folder, 0)) from error
        if line is None:
            raise NotFoundError(f"ledger: {str(self.folder)!r} has no entry 0", code="ledger.absent")
        try:
            receipt = parse_receipt(_stored(line, 0, 0).envelope.payload)
        except FormatError as error:
            raise DamagedError(f"entry 0: {error}", where="entry 0") from error
        if not isinstance(receipt, Header):
            raise DamagedError(f"entry 0: got kind {receipt.kind}, expected header", where="entry 0")
        if receipt.format != FORMAT:
            raise UnknownFormatError(
                f"ledger: got format {clip(receipt.format)}, this version reads {FORMAT}",
                code="format.unknown",
                hint="use a newer receipt-ledger",
            )
        return receipt

    def note(self) -> bytes:
        """Return the newest head as the bytes of its signed note. Its signature is not checked here.

        Raises:
            NotFoundError: no commit in the folder.
        """
        return newest_note(self.folder)

    def head(self) -> Head:
        """Return the newest head: origin, size, root."""
        return head_of(self.note())

    def line_at(self, segment: int, offset: int) -> Stored | None:
        """Return the entry whose line starts at an offset of a segment, None where none does."""
        try:
            line = self._line(segment, offset)
            return None if line is None else _stored(line, segment, offset)
        except (LedgerError, OSError):
            return None

    def _line(self, segment: int, offset: int) -> bytes | None:
        """Return the line that starts at an offset, None where no LF ends one."""
        data = b""
        while b"\n" not in data:
            more = read_segment(self.folder, segment, offset + len(data), _BLOCK)
            if not more or len(data) > LINE_MAX_BYTES:
                return None
            data += more
        return data[: data.index(b"\n")]

    def _is_committed(self, index: int) -> bool:
        """Return whether the newest head covers an index. Heads only grow, so what one covered stays covered."""
        if index >= self._size_seen:
            self._size_seen = self.head().size
        return index < self._size_seen

    def get(self, receipt: str) -> Stored:
        """Return the entry of a receipt by its full id.

        Raises:
            NotFoundError: no such receipt under the newest head.
        """
        if not is_digest(receipt):
            raise NotFoundError(
                f"receipt {clip(receipt)}: is no receipt id, which is sha256: and 64 hexadecimal digits",
                hint="list runs with: ledger log",
            )
        for segment, offset in self._hints(lambda state: state.places(bytes.fromhex(receipt[7:]))):
            stored = self.line_at(segment, offset)
            if stored is not None and stored.entry.receipt == receipt and self._is_committed(stored.entry.index):
                return stored
        found = self._scan_for(receipt)
        if found is None:
            raise NotFoundError(f"receipt {receipt}: not in this ledger", hint="list runs with: ledger log")
        return found

    def _scan_for(self, receipt: str) -> Stored | None:
        """Return the entry of a receipt that the state does not lead to, None where the journal does not hold it.

        The first few are looked for through the journal; for more the journal is gone through once and its places are kept, so
        that a tree of many receipts, or of many that are missing, costs no scan each.
        """
        self._scans += 1
        if self._scans > _SCANS:
            found = None if self._scanned is None else self._at_scanned(self._scanned, receipt)
            if found is None and (self._scanned is None or self._scanned.size != self.head().size):
                self._scanned = Scanned(self.folder, self.head().size)
                found = self._at_scanned(self._scanned, receipt)
            if found is not None or (self._scanned is not None and not self._scanned.places(receipt)):
                return found
        for stored in self._containing(f'"receipt":"{receipt}"'.encode("ascii")):
            if stored.entry.receipt == receipt:
                return stored
        return None

    def _at_scanned(self, scanned: Scanned, receipt: str) -> Stored | None:
        for segment, offset in scanned.places(receipt):
            stored = self.line_at(segment, offset)
            # Heads only grow, so what one covered stays covered.
            if stored is not None and stored.entry.receipt == receipt and stored.entry.index < scanned.size:
                return stored
        return None

    def find(self, short: str, *, limit: int = 20) -> list[str]:
        """Return up to `limit` receipt ids that start with at least 8 hexadecimal digits; `sha256:` may be left out."""
        match = _SHORT.fullmatch(short)
        if match is None:
            raise FormatError(
                f"reference: got {clip(short)}, expected a receipt id or at least 8 of its hex digits",
                code="reference.malformed",
            )
        digits = match[1]
        found = set()
        with self._state.in_use:
            self._state.close()  # what it has read of an older state is older still
        for segment, offset in self._hints(lambda state: state.starting_with(digits[:16], limit)):
            stored = self.line_at(segment, offset)
            if stored is not None and self._is_committed(stored.entry.index):
                found.add(stored.entry.receipt)
        newer = self._containing(
            f'"receipt":"sha256:{digits}'.encode("ascii"), first=self._saved_segment() if found else 0
        )
        found.update(stored.entry.receipt for stored in newer)
        return sorted(each for each in found if each.startswith(f"sha256:{digits}"))[:limit]

    def at(self, index: int) -> Stored:
        """Return the entry at an index.

        Raises:
            NotFoundError: the ledger is not that long.
        """
        known = segments(self.folder)
        position = bisect_right(known, index) - 1
        if index >= 0 and position >= 0:
            data = read_segment(self.folder, known[position])
            mark = data.find(b'","index":%d,"keyring":' % index)
            while mark >= 0:
                start = data.rfind(b"\n", 0, mark) + 1
                end = data.find(b"\n", mark)
                if end < 0:
                    break
                stored = _stored(data[start:end], known[position], start)
                if stored.entry.index == index and self._is_committed(index):
                    return stored
                mark = data.find(b'","index":%d,"keyring":' % index, end)
        raise NotFoundError(f"entry {index}: not in this ledger")

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Stored]:
        """Yield entries from index `start` up to, not including, `stop`; committed ones only.

        Raises:
            DamagedError: a line between them does not parse.
        """
        size = self.head().size
        stop = size if stop is None else min(stop, size)
        known = segments(self.folder)
        first = max(bisect_right(known, start) - 1, 0)
        following = known[first]
        for segment in known[first:]:
            if segment >= stop:
                break
            offset = 0
            for line in read_segment(self.folder, segment).split(b"\n"):
                if following >= stop:
                    break  # what follows the last head may be torn anywhere
                if line and not line.startswith(HEAD_PREFIX):
                    where = f"journal/{segment:016d}.jsonl byte {offset}"
                    try:
                        stored = _stored(line, segment, offset)
                    except FormatError as error:
                        raise DamagedError(f"{where}: {error}", where=where) from error
                    if stored.entry.index != following:
                        raise DamagedError(
                            f"{where}: got index {stored.entry.index}, expected {following}", where=where
                        )
                    following += 1
                    if stored.entry.index >= start:
                        yield stored
                offset += len(line) + 1
        if following < stop and start < stop:
            raise DamagedError(f"journal: entries {following} to {stop - 1} are missing", where=f"entry {following}")

    def backwards(self, *needles: bytes) -> Iterator[Stored]:
        """Yield the committed entries whose receipts hold one of the texts, the newest first."""
        size = self.head().size
        for segment in reversed(segments(self.folder)):
            offset = 0
            found = []
            for line in read_segment(self.folder, segment).split(b"\n"):
                if any(needle in line for needle in needles) and not line.startswith(HEAD_PREFIX):
                    found.append((offset, line))
                offset += len(line) + 1
            for at, line in reversed(found):
                try:
                    stored = _stored(line, segment, at)
                except FormatError:
                    continue
                if stored.entry.index < size:
                    yield stored

    def parent_of(self, receipt: str, *, after: int) -> Stored | None:
        """Return the entry of the receipt that commits `receipt`, which stands at index `after`, None where none does.

        Raises:
            FormatError: one that names it does not parse, so that nobody can say.
        """
        known = segments(self.folder)
        size = self.head().size
        needle = f'"{receipt}"'.encode("ascii")
        for segment in known[max(bisect_right(known, after) - 1, 0) :]:
            data = read_segment(self.folder, segment)
            mark = data.find(needle)
            while mark >= 0:
                start = data.rfind(b"\n", 0, mark) + 1
                end = data.find(b"\n", mark)
                if end < 0:
                    break
                if b'"children":[' in data[start:mark] and not data.startswith(HEAD_PREFIX, start):
                    stored = _stored(data[start:end], segment, start)
                    if after < stored.entry.index < size and receipt in _children(stored):
                        return stored
                mark = data.find(needle, end)
        return None

    def hash_reader(self, head: Head) -> HashReader:
        """Return a reader of subtree hashes that leads to the head's root: the tiles, or hashes made from the journal.

        Raises:
            DamagedError: the journal's entries do not lead to that root.
        """
        tree = TreeHashes(self._tiles, head.size)
        try:
            if root_of(head.size, tree.read) != head.root:
                return self._tree_of(head)
        except LedgerError:
            return self._tree_of(head)
        spare: HashReader | None = None

        def read(level: int, index: int) -> bytes:
            nonlocal spare
            if spare is None:
                try:
                    return tree.read(level, index)
                except StorageError:
                    spare = self._tree_of(head)
            return spare(level, index)

        return read

    def _tree_of(self, head: Head) -> HashReader:
        # Whatever these bytes say: they are the entries if they lead to the head's root.
        leaves = list(map(leaf_hash, islice(self._entry_bytes(), head.size)))
        read = tree_of(leaves)
        if len(leaves) != head.size or root_of(head.size, read) != head.root:
            for _ in self.entries(0, head.size):
                pass  # says which line does not parse, if that is why
            raise DamagedError("journal: its entries do not lead to the root of its head", code="head.root")
        return read

    def _entry_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of each entry in the journal up to the first line that has not the layout of one; nothing is parsed."""
        for segment in segments(self.folder):
            for line in read_segment(self.folder, segment).split(b"\n"):
                if line and not line.startswith(HEAD_PREFIX):
                    try:
                        yield parse_entry_line(line)[0]
                    except FormatError:
                        return

    def root_at(self, size: int) -> bytes:
        """Return the root over the first `size` entries, computed from the journal."""
        frontier = Frontier()
        for stored in self.entries(0, size):
            frontier.append(leaf_hash(stored.entry_bytes))
        return frontier.root()

    def _saved_segment(self) -> int:
        """Return the segment that the saved state reaches into: everything before it is in the state."""
        with self._state.in_use:
            try:
                saved = self._state.load()
            except (sqlite3.Error, ValueError, KeyError, TypeError, LedgerError):
                saved = None
        return 0 if saved is None else saved[0].segment

    def _hints(self, ask: Callable[[State], list[tuple[int, int, int]]]) -> list[tuple[int, int]]:
        with self._state.in_use:
            try:
                return [(segment, offset) for _, segment, offset in ask(self._state)]
            except (sqlite3.Error, OSError):
                self._state.close()
                return []

    def _containing(self, needle: bytes, *, first: int = 0) -> Iterator[Stored]:
        """Yield the committed entries whose own bytes hold `needle`, newest segment first, down to the segment `first`."""
        size = self.head().size
        for segment in reversed(segments(self.folder)):
            if segment < first:
                return
            data = read_segment(self.folder, segment)
            mark = data.find(needle)
            while mark >= 0:
                start = data.rfind(b"\n", 0, mark) + 1
                end = data.find(b"\n", mark)
                if end < 0:
                    break
                if data.startswith(b'{"entry":', start):
                    stored = _stored(data[start:end], segment, start)
                    if needle in stored.entry_bytes and stored.entry.index < size:
                        yield stored
                mark = data.find(needle, end)


def _stored(line: bytes, segment: int, offset: int) -> Stored:
    entry_bytes, envelope_bytes = parse_entry_line(line)
    return Stored(
        parse_entry(entry_bytes), entry_bytes, parse_envelope(envelope_bytes), envelope_bytes, segment, offset
    )


def _children(stored: Stored) -> tuple[str, ...]:
    try:
        receipt = parse_receipt(stored.envelope.payload)
    except UnknownFormatError:
        return ()
    return getattr(receipt, "children", ())
