r"""Packs: small artifacts that share files, so that a commit costs at most one more fsync.

    artifacts/packs/<number, 8 digits>.pack        records, one after the other:
        sha256:<64 hex> <length>\n<bytes>\n

- A pack is appended to under the ledger's lock only; a new one begins at 64 MiB. A pack's name is durable before its first
  record is written, and its bytes before the next pack begins.
- An append that a crash cut short is a torn tail: nothing refers to it, and the next append cuts it off. A tail of any other
  shape is damage: it is left as it is, a new pack begins, and whole records after the damage are still found.
- What is known of where a record begins is a hint: the file may have been written anew by another process. Every read checks
  the record's own header, and the caller checks the digest of the bytes.

Source: docs/spec/artifacts.md.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ledger.errors import StorageError
from ledger.storage.durable import (
    append_all,
    fsync_folder,
    make_folder,
    open_regular,
    remove_temporaries,
    replace,
    storage_error,
    sync,
    temporary_beside,
)
from ledger.storage.packindex import PackIndex, prefix, print_index
from ledger.storage.packrecord import is_torn, print_record, record_at, spans_of, stray_spans

__all__ = ["PACK_BYTES", "Packs"]

PACK_BYTES: Final = 64 * 1024 * 1024
"""A pack that has reached this size gets no further record."""
_INDEX_EVERY_BYTES: Final = 4 * 1024 * 1024
_NAME: Final = re.compile(r"[0-9]{8}\.pack")


@dataclass(slots=True)
class _Pack:
    """What is known of one pack file.

    `end` is where its unbroken row of whole records ends, `synced` how much of it is known to be on the disk, `starts` where
    the records begin that `index` does not cover.
    """

    identity: tuple[int, int]
    index: PackIndex | None = None
    written_ns: int = -1
    size: int = 0
    end: int = 0
    synced: int = 0
    starts: dict[bytes, int] = field(default_factory=dict)

    def find(self, key: bytes) -> int | None:
        start = self.starts.get(key)
        return self.index.find(key) if start is None and self.index is not None else start


class Packs:
    """The packs in one folder, which need not exist yet."""

    __slots__ = ("_current", "_known", "folder", "index_bytes", "pack_bytes")

    def __init__(self, folder: Path, *, pack_bytes: int = PACK_BYTES, index_bytes: int = _INDEX_EVERY_BYTES) -> None:
        self.folder = folder
        self.pack_bytes = pack_bytes
        self.index_bytes = index_bytes
        self._known: dict[int, _Pack] = {}
        self._current = -1

    def append(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Make records (32 digest bytes and the bytes they are of) durable; ones that are stored already are not repeated.

        The caller holds the ledger's lock.

        Raises:
            StorageError: none of them counts as stored; the pack is cut back to what it was.
        """
        self._find_current()
        known = self._known_packs()
        fresh = {key: data for key, data in records if not self._is_stored(key, data, known)}
        if not fresh:
            self._sync_current()
            return
        descriptor, pack = self._open_for_append()
        path = self._path(self._current)
        try:
            parts = [print_record(key, data) for key, data in fresh.items()]
            ends = list(itertools.accumulate(map(len, parts), initial=pack.end))
            self._write(descriptor, b"".join(parts), pack.end)
            pack.starts.update(zip(fresh, ends, strict=False))
            pack.end = pack.size = pack.synced = ends[-1]
            pack.written_ns = os.fstat(descriptor).st_mtime_ns
            if pack.end - (pack.index.covers if pack.index else 0) >= self.index_bytes:
                self._write_index(self._current, pack)
        except OSError as error:
            raise storage_error(error, path) from error
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, data: bytes, end: int) -> None:
        try:
            os.lseek(descriptor, end, os.SEEK_SET)
            append_all(descriptor, data, path=self._path(self._current))
            sync(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, end)
                sync(descriptor)
            raise

    def _find_current(self) -> None:
        if self._current < 0:
            self._current = max(self._numbers(), default=0)
        while self._path(self._current + 1).exists():
            # Others have appended to it before it was full.
            self._known.pop(self._current, None)
            self._current += 1

    def _known_packs(self) -> list[tuple[int, _Pack]]:
        """Return what is known of every pack, the current one first; the full ones are looked at once only."""
        packs = []
        for number in range(self._current, -1, -1):
            pack = self._known.get(number) if number < self._current else None
            if pack is None:
                try:
                    with self._opened(number) as descriptor:
                        pack = self._refresh(number, descriptor)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise storage_error(error, self._path(number)) from error
                if number < self._current and pack.starts:
                    self._write_index(number, pack)
            packs.append((number, pack))
        return packs

    def _is_stored(self, key: bytes, data: bytes, packs: list[tuple[int, _Pack]]) -> bool:
        return any(pack.find(key) is not None and self._read(number, key) == data for number, pack in packs)

    def _sync_current(self) -> None:
        """Sync the current pack unless it is known to be: whoever wrote its last records may have ended before that."""
        pack = self._known.get(self._current)
        if pack is not None and pack.synced < pack.end:
            try:
                with self._opened(self._current) as descriptor:
                    sync(descriptor)
            except OSError as error:
                raise storage_error(error, self._path(self._current)) from error
            pack.synced = pack.end

    def find(self, key: bytes) -> list[bytes]:
        """Return the bytes of records named by 32 digest bytes, newest pack first; whether they match is not checked.

        An empty list means that every record of every pack was looked at.

        Raises:
            StorageError: a pack cannot be read.
        """
        numbers = sorted(self._numbers(), reverse=True)
        found = [data for number in numbers if (data := self._read(number, key)) is not None]
        if not found:
            # An index that does not hold it proves nothing.
            found = [data for number in numbers if (data := self._read(number, key, scan=True)) is not None]
        return found

    def keys(self) -> Iterator[bytes]:
        """Yield the digest bytes of every record, pack by pack; one that is stored twice may come twice.

        Raises:
            StorageError: a pack cannot be read.
        """
        for number in sorted(self._numbers()):
            try:
                with self._opened(number) as descriptor:
                    keys = list(_scanned(descriptor).starts)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, self._path(number)) from error
            yield from keys

    def erase(self, key: bytes) -> bool:
        """Return whether a record was removed: each pack that holds it is written anew without it, durably.

        The caller holds the ledger's lock. A torn tail of such a pack goes with it, and one that is of this record goes anyway;
        so do files that a crash left of an earlier rewriting.

        Raises:
            StorageError: the pack in question is as it was.
        """
        removed = False
        remove_temporaries(self.folder)
        for number in sorted(self._numbers()):
            try:
                with self._opened(number) as descriptor:
                    removed |= self._erase_in(number, descriptor, key)
            except OSError as error:
                raise storage_error(error, self._path(number)) from error
        return removed

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.pack"

    def _numbers(self) -> list[int]:
        try:
            names = [item.name for item in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(error, self.folder) from error
        return [int(name[:8]) for name in names if _NAME.fullmatch(name)]

    @contextlib.contextmanager
    def _opened(self, number: int) -> Iterator[int]:
        with open_regular(self._path(number)) as file:
            yield file.fileno()

    def _open_for_append(self) -> tuple[int, _Pack]:
        """Return the current pack, open for writing, with nothing behind its `end`; `_current` is its number."""
        while True:
            path = self._path(self._current)
            try:
                descriptor = self._open_or_make(path)
                try:
                    pack = self._refresh(self._current, descriptor)
                    if self._ready(descriptor, pack):
                        if pack.end == 0:
                            fsync_folder(self.folder)
                        return descriptor, pack
                    if pack.synced < pack.end:
                        sync(descriptor)
                except BaseException:
                    os.close(descriptor)
                    raise
                os.close(descriptor)
            except OSError as error:
                raise storage_error(error, path) from error
            self._write_index(self._current, pack)
            self._current += 1

    def _open_or_make(self, path: Path) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o644)
        except FileNotFoundError:
            make_folder(self.folder)
            return os.open(path, flags, 0o644)

    def _ready(self, descriptor: int, pack: _Pack) -> bool:
        """Return whether records may follow at the pack's `end`, after cutting off a torn tail."""
        if pack.end < pack.size:
            if not is_torn(os.pread(descriptor, pack.size - pack.end, pack.end)):
                return False
            os.ftruncate(descriptor, pack.end)
            pack.size = pack.end
        return pack.end < self.pack_bytes

    def _refresh(self, number: int, descriptor: int) -> _Pack:
        """Return what the open pack file holds now, reading on from what was known of it or from its index."""
        status = os.fstat(descriptor)
        identity = (status.st_dev, status.st_ino)
        pack = self._known.get(number)
        if pack is not None and pack.identity == identity:
            whole = pack.end == pack.size
            if whole and pack.size == status.st_size and pack.written_ns == status.st_mtime_ns:
                return pack
            goes_on = whole and pack.size < status.st_size
        else:
            index = PackIndex.load(self._index_path(number))
            goes_on = index is not None and index.covers <= status.st_size
            pack = _Pack(identity, index=index, end=index.covers if index else 0)
        if goes_on and _ends_record(descriptor, pack.end):
            _read_on(descriptor, pack, status)
        if not goes_on or pack.end != status.st_size:
            # It does not go on where it was said to end: nothing known of it counts.
            pack = _scanned(descriptor)
        self._known[number] = pack
        return pack

    def _read(self, number: int, key: bytes, *, scan: bool = False) -> bytes | None:
        """Return the bytes of a record of one pack; with `scan`, if an index was relied on, after reading every header."""
        try:
            with self._opened(number) as descriptor:
                pack = self._refresh(number, descriptor)
                start = pack.find(key)
                data = None if start is None else record_at(descriptor, start, key)
                if data is None and (start is not None or (scan and pack.index is not None)):
                    # From here on the scan is what is known, so that it is made once.
                    pack = self._known[number] = _scanned(descriptor)
                    start = pack.find(key)
                    data = None if start is None else record_at(descriptor, start, key)
                return data
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self._path(number)) from error

    def _write_index(self, number: int, pack: _Pack) -> None:
        """Write the index of a pack and go on with it; without one a later start is slower, nothing more."""
        rows = list(pack.index) if pack.index is not None else []
        rows += [(prefix(key), start) for key, start in pack.starts.items() if start < pack.end]
        with contextlib.suppress(StorageError):
            replace(self._index_path(number), print_index(rows, covers=pack.end), durable=False)
            pack.index = PackIndex.load(self._index_path(number))
            if pack.index is not None:
                pack.starts = {key: start for key, start in pack.starts.items() if start >= pack.end}

    def _index_path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.idx"

    def _erase_in(self, number: int, descriptor: int, key: bytes) -> bool:
        size = os.fstat(descriptor).st_size
        gone: list[tuple[int, int]] = []
        end = 0
        for its_key, start, after in spans_of(descriptor, 0, size):
            end = after
            if its_key == key:
                gone.append((start, after))
        tail = os.pread(descriptor, size - end, end)
        gone += [(end + start, end + after) for its_key, start, after in stray_spans(tail) if its_key == key]
        if tail and is_torn(tail) and (gone or tail.startswith(b"sha256:" + key.hex().encode("ascii"))):
            gone.append((end, size))
        if not gone:
            return False
        self._write_without(number, descriptor, gone, size)
        self._known.pop(number, None)
        return True

    def _write_without(self, number: int, descriptor: int, gone: list[tuple[int, int]], size: int) -> None:
        path = self._path(number)
        temporary = temporary_beside(path)
        copy = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            try:
                position = 0
                for start, after in [*gone, (size, size)]:
                    while position < start:
                        chunk = os.pread(descriptor, min(1024 * 1024, start - position), position)
                        append_all(copy, chunk, path=temporary)
                        position += len(chunk)
                    position = max(position, after)
                sync(copy)
            finally:
                os.close(copy)
            self._index_path(number).unlink(missing_ok=True)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        fsync_folder(self.folder)


def _scanned(descriptor: int) -> _Pack:
    status = os.fstat(descriptor)
    pack = _Pack((status.st_dev, status.st_ino))
    _read_on(descriptor, pack, status)
    return pack


def _read_on(descriptor: int, pack: _Pack, status: os.stat_result) -> None:
    """Take in the records from the pack's `end` on; behind a break only those whose bytes match their digest."""
    size = status.st_size
    for key, start, after in spans_of(descriptor, pack.end, size):
        pack.starts[key] = start
        pack.end = after
    if pack.end < size:
        for key, start, _ in stray_spans(os.pread(descriptor, size - pack.end, pack.end)):
            pack.starts.setdefault(key, pack.end + start)
    pack.size, pack.written_ns = size, status.st_mtime_ns


def _ends_record(descriptor: int, end: int) -> bool:
    return end == 0 or os.pread(descriptor, 1, end - 1) == b"\n"
