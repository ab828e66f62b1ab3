"""Commits: the one procedure that appends.

Under the lock: read what others appended, compare with the register, finish repairs, check the rules, build, sign, write,
fsync. Only then are the register, the tiles and the state moved; a crash before that leaves them behind, never ahead, and the
next writer catches them up. An error while writing cuts the journal back to the last acknowledged head.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ledger.checkpoint import Head, head_of, open_head, sign_head
from ledger.digest import digest, digest_bytes, print_digest
from ledger.entry import Entry, print_entry
from ledger.envelope import Envelope, print_envelope
from ledger.errors import (
    AdmissionError,
    ConflictError,
    DamagedError,
    FormatError,
    LedgerError,
    RegisterError,
    StorageError,
    UnrememberedWarning,
    clip,
)
from ledger.facts import read_facts
from ledger.keys import PrivateKey
from ledger.line import print_entry_line, print_head_line
from ledger.members import build_members
from ledger.merkle import leaf_hash, root_of
from ledger.receipt import Header, Key, Receipt
from ledger.storage import admission
from ledger.storage.clock import now
from ledger.storage.durable import append_all, fsync_folder, storage_error, sync
from ledger.storage.frozen import FROZEN, read_frozen
from ledger.storage.journal import (
    COMMIT_MAX_BYTES,
    COMMIT_MAX_ENTRIES,
    Commit,
    Rest,
    Tail,
    read_commits,
    read_segment,
    segment_path,
    segments,
)
from ledger.storage.lock import LedgerLock
from ledger.storage.reader import Reader
from ledger.storage.register import Register
from ledger.storage.repair import Repairs
from ledger.storage.rows import Keyring
from ledger.storage.state import State
from ledger.storage.tiles import Tiles, TreeHashes
from ledger.storage.topics import attempts, topics_of

__all__ = ["Position", "View", "Writer"]

# Whoever writes may do so from many threads and go on in forked processes: nothing is left to build in the middle of that.
build_members()

_HEAD_LINE_MAX_BYTES: Final = 128 << 10
_LAST_BYTES: Final = 64 << 10
_SPOILED: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""What SQLite says of a file that is not our state: no such table, malformed, no database."""
_STATE_CODES: Final = {
    sqlite3.SQLITE_FULL: "storage.full",
    sqlite3.SQLITE_READONLY: "storage.read_only",
    sqlite3.SQLITE_CANTOPEN: "storage.read_only",
}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a receipt stands: its id and index, and whether it was there before."""

    receipt: str
    index: int
    already: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a builder of receipts sees under the lock: the state after the newest head."""

    state: State
    keyring: Keyring
    size: int


Builder = Callable[[View], Sequence[Envelope]]
"""Returns the envelopes to append; called under the lock, so it must not append itself."""
Taker = Callable[[list[Position]], None]
"""Takes where receipts stand once they are durable, none where nothing was appended; called under the same lock, so it must not append
either, and must not raise: what was recorded is recorded."""

LogKeys = Callable[[Keyring, Keyring], Sequence[PrivateKey]]
"""Returns the keys that sign a head, from the keys in force before and after its commit; called under the lock."""


class Writer:
    """Appends to one ledger folder. One a process is enough; threads may share it."""

    def __init__(
        self, folder: Path, *, log_keys: LogKeys, register: Register, seal_repair: Callable[[Rest], Envelope]
    ) -> None:
        self._folder = folder
        self._damaged = str(folder / "damaged")
        self._frozen = str(folder / FROZEN)
        self._log_keys = log_keys
        self._register = register
        self._lock = LedgerLock(folder / "lock")
        self._state = State(folder)
        self._tiles = Tiles(folder)
        self._reader = Reader(folder)
        self._repairs = Repairs(folder)
        self._seal_repair = seal_repair
        self._tail: Tail | None = None
        self._keyring = Keyring()
        self._registered = b""
        self._unremembered = False
        """Whether the register could not be written after the last commit."""
        self._segment = (-1, "")
        self._last = b""
        """The last commit, as this process wrote or read it."""
        self._tiles_checked = False
        self._pid = os.getpid()

    def close(self) -> None:
        """Save the state and release what is open."""
        with self._lock.hold(), self._state.in_use:
            if self._tail is not None and self._pid == os.getpid() and self._state.unsaved():
                self._tail.commit = digest(self._last)
                with contextlib.suppress(sqlite3.Error):
                    self._state.save(self._tail, self._keyring)
            self._state.close()
            self._tiles.close()
            self._tail = None

    def commit(self, build: Builder, take: Taker | None = None) -> list[Position]:
        """Append what `build` returns as one commit; return when it is durable and `take` has seen where it stands.

        Receipts that are in the ledger already under the same envelope are not appended again.

        Raises:
            ConflictError: a known receipt id under another envelope.
            AdmissionError: a rule of receipt trees; nothing was appended.
            RegisterError: the journal is not the one this machine wrote last.
            DamagedError: the journal is damaged.
            StorageError: the disk refused; the journal ends at the last acknowledged head.
        """
        before = self._unremembered
        positions = self._under_lock(lambda: self._commit(build, take))
        if self._unremembered and not before:
            warnings.warn(
                f"the newest head could not be remembered: {self._register.path} cannot be written; what was appended is durable,"
                " but this machine would not notice if it were cut off",
                UnrememberedWarning,
                stacklevel=2,
            )
        return positions

    def _commit(self, build: Builder, take: Taker | None) -> list[Position]:
        tail = self._current_tail()
        pending = self._repairs.pending()
        if pending:
            unsaid = [rest for rest in pending if not self._is_said(rest)]
            if unsaid:
                self._settle_keys()
                self._append(tail, [self._seal_repair(rest) for rest in unsaid])
            self._repairs.settle()
            tail = self._current_tail()
        self._settle_keys()
        envelopes = build(View(self._state, self._keyring, tail.size))
        positions = self._append(tail, envelopes) if envelopes else []
        if take is not None:
            take(positions)
        return positions

    def _settle_keys(self) -> None:
        """Have the key files follow the keys in force before anything is sealed."""
        if self._keyring.origin:
            self._log_keys(self._keyring, self._keyring)

    def _is_said(self, rest: Rest) -> bool:
        """Return whether a repair receipt says this cut already: its writer ended before it could note that."""
        said = f'"cut_bytes":{len(rest.data)},"cut_digest":"{digest(rest.data)}"'.encode("ascii")
        place = f'"offset_bytes":{rest.offset},'.encode("ascii")
        later = (stored.envelope.payload for stored in self._reader.entries(rest.segment))
        return any(said in payload and place in payload and b'"kind":"repair"' in payload for payload in later)

    def look(self, use: Callable[[View], None]) -> None:
        """Call `use` with the current state, under the lock, and append nothing."""

        def look() -> None:
            tail = self._current_tail()
            self._settle_keys()
            use(View(self._state, self._keyring, tail.size))

        self._under_lock(look)

    def _under_lock(self, work: Callable[[], _T]) -> _T:
        """Do some work under the lock; where the derived state fails it, make the state again and do it once more."""
        return self._lock.run(lambda: self._with_state(work))

    def _with_state(self, work: Callable[[], _T]) -> _T:
        with self._state.in_use:
            try:
                return work()
            except sqlite3.Error as error:
                self._tail = None
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _SPOILED:
                    raise _state_error(error) from error
            try:
                self._state.reset()
                return work()
            except sqlite3.Error as error:
                self._tail = None
                raise _state_error(error) from error

    # Reading what others appended.

    def _current_tail(self) -> Tail:
        if os.path.exists(self._damaged):
            raise DamagedError(
                "ledger: marked damaged, since a failed write could not be cut back",
                hint=f"look at the disk, run: ledger verify {self._folder}, then remove the file `damaged`",
            )
        if os.path.exists(self._frozen):
            frozen = read_frozen(self._folder)
            by = clip(frozen.continued_by) if frozen is not None and frozen.continued_by else "another ledger"
            raise StorageError(
                f"ledger: it is frozen: {by} continues it",
                code="ledger.frozen",
                hint="append to the one that continues it",
            )
        if self._pid != os.getpid():
            self._tail, self._pid = None, os.getpid()
        if self._tail is None or not self._is_newest(self._tail):
            self._tail = self._catch_up()
        self._compare_register(self._tail)
        return self._tail

    def _is_newest(self, tail: Tail) -> bool:
        """Return whether the journal still ends with the bytes that it ended with when this process last saw it."""
        last = self._last[-_LAST_BYTES:]
        try:
            descriptor = os.open(self._path_of(tail.segment), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            end = os.pread(descriptor, len(last) + 1, tail.offset - len(last))
        finally:
            os.close(descriptor)
        return end == last and not (tail.segment_is_full() and os.path.exists(self._path_of(tail.size)))

    def _path_of(self, segment: int) -> str:
        """Return a segment's path as text: `Path` objects cost more than the system calls here."""
        if segment != self._segment[0]:
            self._segment = (segment, str(segment_path(self._folder, segment)))
        return self._segment[1]

    def _catch_up(self) -> Tail:
        tail, keyring = self._load() or (Tail(), Keyring())
        self._registered = b""  # what was compared with an earlier journal
        rest = None
        saved = tail.size
        for found in read_commits(self._folder, tail):
            if isinstance(found, Rest):
                rest = found
                continue
            keyring = self._fold(found, keyring)
            with contextlib.suppress(sqlite3.Error):  # what cannot be saved is kept in memory
                self._state.advance(tail, keyring)
        self._keyring = keyring
        if tail.size:
            _check_signature(tail, keyring)
        elif rest is not None:
            raise DamagedError(
                "journal: it holds no head: the ledger's making never came to its end, or all was cut",
                hint="where nothing was ever recorded in it, remove the folder and make the ledger again",
            )
        # What this machine acknowledged is never taken for a torn tail.
        self._compare_register(tail)
        if rest is not None:
            self._repairs.cut(rest)
            tail.offset += 0 if rest.data else 1
        if tail.size != saved:
            with contextlib.suppress(sqlite3.Error):
                self._state.save(tail, keyring)
        if tail.size and not self._tiles_checked:
            self._mend_tiles(tail)
            self._tiles_checked = True
        self._last = (
            read_segment(self._folder, tail.segment, tail.start, tail.offset - tail.start) if tail.size else b""
        )
        return tail

    def _load(self) -> tuple[Tail, Keyring] | None:
        """Return what the saved state was made from, None where it is of no use here."""
        try:
            loaded = self._state.load()
        except (ValueError, KeyError, TypeError, LedgerError):
            loaded = None
        if loaded is None or not self._stands_in_journal(loaded[0]):
            self._state.reset()
            return None
        return loaded

    def _stands_in_journal(self, tail: Tail) -> bool:
        """Return whether the tail's last commit stands in the journal, byte for byte."""
        try:
            data = read_segment(self._folder, tail.segment, tail.start, tail.offset - tail.start)
        except OSError:
            return False
        return digest(data) == tail.commit

    def _mend_tiles(self, tail: Tail) -> None:
        """Make the tiles again where they do not lead to the root: after a loss of power, or where they were removed."""
        with contextlib.suppress(LedgerError):
            if root_of(tail.size, self._tiles.read) == tail.frontier.root():
                return
        starts = segments(self._folder)
        with contextlib.suppress(LedgerError):
            for first, end in zip(starts, [*starts[1:], tail.size], strict=True):
                self._write_tiles(first, [leaf_hash(stored.entry_bytes) for stored in self._reader.entries(first, end)])

    def _write_tiles(self, first_index: int, leaves: Sequence[bytes]) -> None:
        with contextlib.suppress(OSError, LedgerError):  # derived: what is not there is computed when it is asked for
            self._tiles.write(first_index, leaves)

    def _fold(self, commit: Commit, keyring: Keyring) -> Keyring:
        for stored in commit.entries:
            place = (stored.entry.index, stored.segment, stored.offset)
            self._state.add_id(bytes.fromhex(stored.entry.receipt[7:]), place)
            try:
                receipt = read_facts(stored.envelope.payload)
            except LedgerError:
                continue  # unknown or malformed: the verifier says so; the state has nothing to keep of it
            sealed = stored.envelope.seal is not None
            index, id_ = stored.entry.index, stored.entry.receipt
            payload = stored.envelope.payload
            topics = topics_of(self._state, receipt, payload)
            for topic in topics:
                self._state.add_topic(topic, place)
            admission.apply(
                self._state, receipt, payload, id_=id_, index=index, sealed=sealed, attempts=attempts(topics)
            )
            if isinstance(receipt.receipt, Key):
                try:
                    admission.check_key(keyring, receipt.receipt, index=index)
                except LedgerError as error:
                    raise DamagedError(f"entry {index}: {error}", where=f"entry {index}") from error
            keyring = admission.keyring_after(keyring, receipt.receipt, id_=id_)
        if commit.leaves:
            self._write_tiles(commit.entries[0].entry.index, commit.leaves)
        return keyring

    def _compare_register(self, tail: Tail) -> None:
        note = self._register.read()
        if note is None or note in (self._registered, tail.note):
            return
        try:
            head = head_of(note)
        except LedgerError as error:
            raise RegisterError(f"register {self._register.path}: {error}", code="register.unreadable") from error
        where = f"this machine wrote a head of size {head.size}, the journal holds {tail.size} entries"
        if head.origin != self._keyring.origin and tail.size:
            raise RegisterError(f"register: it is about {head.origin!r}, the journal about {self._keyring.origin!r}")
        if head.size > tail.size:
            raise RegisterError(
                f"register: {where}: it was cut, or this is an old copy; nothing was appended",
                code="register.shorter",
                hint="bring the newest copy back, or go on from this one under a new origin: ledger restore OLD NEW",
            )
        if not self._passed(tail, head):
            raise RegisterError(
                f"register: {where} with another root: another history; nothing was appended", code="register.forked"
            )
        self._registered = note

    def _passed(self, tail: Tail, head: Head) -> bool:
        """Return whether the journal had the head's root at its size."""
        if head.size == tail.size:
            return tail.frontier.root() == head.root
        with contextlib.suppress(LedgerError):
            tree = TreeHashes(self._tiles, tail.size)
            if (root_of(tail.size, tree.read), root_of(head.size, tree.read)) == (tail.frontier.root(), head.root):
                return True
        return self._reader.root_at(head.size) == head.root

    # Appending.

    def _append(self, tail: Tail, envelopes: Sequence[Envelope]) -> list[Position]:
        if len(envelopes) > COMMIT_MAX_ENTRIES:
            raise AdmissionError(
                f"commit: got {len(envelopes)} receipts, expected at most {COMMIT_MAX_ENTRIES}", code="commit.too_large"
            )
        try:
            after, positions = self._build(tail, envelopes)
        except BaseException:
            self._tail = None  # what the state took in of this commit is dropped with it
            raise
        if after is None:
            return positions
        # From here on the commit is acknowledged: the journal is durable, and what is derived is caught up next time.
        self._tail = None
        self._unremembered = not self._register.write(after.tail.note)
        self._registered = b"" if self._unremembered else after.tail.note
        self._write_tiles(tail.size, after.leaves)
        with contextlib.suppress(sqlite3.Error):
            if self._state.is_due():
                after.tail.commit = digest(after.data)
            self._state.advance(after.tail, after.keyring)
            self._tail, self._keyring, self._last = after.tail, after.keyring, after.data
        return positions

    def _build(self, tail: Tail, envelopes: Sequence[Envelope]) -> tuple[_After | None, list[Position]]:
        """Check, build, sign and write one commit; return the tail after it and the positions."""
        raws = [digest_bytes(envelope.payload) for envelope in envelopes]
        known = self._known(raws)
        new = _New(tail, self._keyring)
        positions: list[Position] = []
        rows = []
        for envelope, raw in zip(envelopes, raws, strict=True):
            id_ = print_digest(raw)
            if raw in known:
                positions.append(_again(id_, envelope, *known[raw]))
                continue
            receipt = read_facts(envelope.payload)
            index = tail.size + len(new.leaves)
            origin, retired = self._keyring.origin or receipt.ledger, new.keyring.retired
            admission.check_seal(envelope, receipt, origin=origin, retired=retired)
            if isinstance(receipt.receipt, Key):
                admission.check_key(new.keyring, receipt.receipt, index=index)
                if receipt.receipt.role == "issuer":
                    admission.check_no_open_runs(self._state, receipt.receipt.retired)
            sealed = envelope.seal is not None
            admission.check_tree(self._state, receipt, sealed=sealed, index=index)
            topics = topics_of(self._state, receipt, envelope.payload)
            admission.apply(
                self._state, receipt, envelope.payload, id_=id_, index=index, sealed=sealed, attempts=attempts(topics)
            )
            rows.append((raw, index, new.offset, topics))
            known[raw] = (index, new.add(envelope, receipt.receipt, id_, index))
            positions.append(Position(id_, index))
        if not new.leaves:
            return None, positions
        segment, start = (tail.size, 0) if tail.segment_is_full() else (tail.segment, tail.offset)
        for raw, index, offset, topics in rows:
            self._state.add_id(raw, (index, segment, start + offset))
            for topic in topics:
                self._state.add_topic(topic, (index, segment, start + offset))
        after = new.finish(self._log_keys(self._keyring, new.keyring), segment, start)
        self._write(after)
        return after, positions

    def _known(self, raws: Sequence[bytes]) -> dict[bytes, tuple[int, str]]:
        """Return index and envelope digest of those receipts that the ledger holds already."""
        known: dict[bytes, tuple[int, str]] = {}
        for raw in self._state.sharing_prefix(raws):
            for index, segment, offset in self._state.places(raw):
                stored = self._reader.line_at(segment, offset)
                if stored is not None and stored.entry.receipt == print_digest(raw):
                    known[raw] = (index, stored.entry.envelope)
        return known

    def _write(self, after: _After) -> None:
        path = self._path_of(after.tail.segment)
        start = after.tail.start
        created = start == 0  # also where a crash left the file behind, empty
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_APPEND | (os.O_CREAT if created else 0), 0o644)
        except OSError as error:
            raise storage_error(error, Path(path)) from error
        try:
            size = os.fstat(descriptor).st_size
            if size != start:
                raise DamagedError(f"{path}: got {size} bytes, expected {start}: something else writes to it")
            try:
                append_all(descriptor, after.data)
                sync(descriptor)
                if created:
                    fsync_folder(Path(path).parent)
            except BaseException:
                self._cut_back(descriptor, start)
                raise
        except OSError as error:
            raise storage_error(error, Path(path)) from error
        finally:
            os.close(descriptor)

    def _cut_back(self, descriptor: int, start: int) -> None:
        self._tail = None
        try:
            os.ftruncate(descriptor, start)
            sync(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                Path(self._damaged).touch()
            raise DamagedError(
                f"journal: a failed write could not be cut back: {error.strerror}",
                hint="the ledger refuses to append until the disk is looked at",
            ) from error


def _state_error(error: sqlite3.Error) -> StorageError:
    return StorageError(
        f"state.sqlite: {error}",
        code=_STATE_CODES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "storage.state"),
        hint="look at the disk; the file may be removed, it is made again from the journal",
    )


def _again(id_: str, envelope: Envelope, index: int, envelope_digest: str) -> Position:
    """Return the position of a receipt that is there already, under the same envelope."""
    if digest(print_envelope(envelope)) != envelope_digest:
        raise ConflictError(
            f"receipt {id_[:15]}: is in the ledger at entry {index} under another envelope",
            hint="a receipt is appended once, with one seal",
        )
    return Position(id_, index, already=True)


def _check_signature(tail: Tail, keyring: Keyring) -> None:
    try:
        open_head(tail.note, origin=keyring.origin, log_key=keyring.log_key)
    except LedgerError as error:
        where = f"journal/{tail.segment:016d}.jsonl byte {tail.offset}"
        raise DamagedError(f"{where}: the last head is not signed by the log key in force: {error}") from error


@dataclass(frozen=True, slots=True)
class _After:
    """A commit that is built: its bytes, leaves, and the tail and keys after it."""

    data: bytes
    leaves: list[bytes]
    tail: Tail
    keyring: Keyring


class _New:
    """Lines of the commit that is being built after a tail."""

    def __init__(self, tail: Tail, keyring: Keyring) -> None:
        self._tail = tail.copy()
        self._lines: list[bytes] = []
        self.leaves: list[bytes] = []
        self.keyring = keyring
        self.offset = 0

    def add(self, envelope: Envelope, receipt: Receipt | None, id_: str, index: int) -> str:
        """Add the lines of a receipt and return the digest of its envelope."""
        tail = self._tail
        envelope_bytes = print_envelope(envelope)
        envelope_digest = digest(envelope_bytes)
        entry = Entry(envelope_digest, index, tail.keyring, tail.previous, id_, now())
        data = print_entry(entry)
        line = print_entry_line(data, envelope_bytes)
        self._lines.append(line)
        self.offset += len(line) + 1
        if self.offset > COMMIT_MAX_BYTES - _HEAD_LINE_MAX_BYTES:
            raise FormatError(
                f"commit: got more than {COMMIT_MAX_BYTES - _HEAD_LINE_MAX_BYTES} bytes", code="commit.too_large"
            )
        leaf = leaf_hash(data)
        self.leaves.append(leaf)
        tail.frontier.append(leaf)
        tail.previous = digest(data)
        if isinstance(receipt, Header | Key):
            tail.keyring = index
            self.keyring = admission.keyring_after(self.keyring, receipt, id_=id_)
        return envelope_digest

    def finish(self, log_keys: Sequence[PrivateKey], segment: int, start: int) -> _After:
        """Return the built commit, with its head signed by `log_keys`."""
        tail = self._tail
        tail.size += len(self.leaves)
        tail.note = sign_head(Head(self.keyring.origin, tail.size, tail.frontier.root()), *log_keys)
        line = print_head_line(tail.note, tail.head_line)
        tail.head_line = digest(line)
        self._lines.append(line)
        data = b"\n".join(self._lines) + b"\n"
        tail.segment, tail.start, tail.offset = segment, start, start + len(data)
        return _After(data, self.leaves, tail, self.keyring)
