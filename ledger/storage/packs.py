r"""Packs: small artifacts that share files, so that a commit costs at most one more fsync.

    artifacts/packs/<number, 8 digits>.pack        records, one after the other:
        sha256:<64 hex> <length>\n<bytes>\n

- A pack is appended to under the ledger's lock only; a new one begins at 64 MiB. A pack's name is durable before its first
  record is written.
- An append that a crash cut short is a torn tail: nothing refers to it, and the next append cuts it off. A tail of any other
  shape is damage: it is left as it is, a new pack begins, and whole records after the damage are still found.
- What is cached (where a record begins) is only a hint: the file may have been rewritten by another process. Every read checks
  the record's own header, and the caller checks the digest of the bytes.

Source: docs/spec/artifacts.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ledger.storage.durable import append_all, fsync_folder, make_folder, storage_error, sync, temporary_beside

__all__ = ["Packs"]

PACK_BYTES: Final = 64 * 1024 * 1024
"""A pack that has reached this size gets no further record."""
_CHUNK: Final = 64 * 1024
_HEADER: Final = re.compile(rb"sha256:([0-9a-f]{64}) (0|[1-9][0-9]{0,8})\n")
_PARTIAL: Final = re.compile(rb"sha256:[0-9a-f]{0,64}|sha256:[0-9a-f]{64} (?:0|[1-9][0-9]{0,8})?")
_HEADER_BYTES: Final = 7 + 64 + 1 + 9 + 1
_NAME: Final = re.compile(r"[0-9]{8}\.pack")

Span = tuple[bytes, int, int]
"""The 32 digest bytes of a record, where the record begins, where it ends (its LF included)."""


@dataclass(slots=True)
class _Pack:
    """What is known of one pack file; `end` is where its unbroken row of whole records ends."""

    identity: tuple[int, int] = (0, 0)
    size: int = 0
    end: int = 0
    starts: dict[bytes, int] = field(default_factory=dict)


class Packs:
    """The packs in one folder, which need not exist yet."""

    __slots__ = ("_current", "_known", "folder", "pack_bytes")

    def __init__(self, folder: Path, *, pack_bytes: int = PACK_BYTES) -> None:
        self.folder = folder
        self.pack_bytes = pack_bytes
        self._known: dict[int, _Pack] = {}
        self._current = -1

    def append(self, records: Sequence[tuple[str, bytes]]) -> None:
        """Append digests with their bytes, durably. The caller holds the ledger's lock.

        Raises:
            StorageError: none of them counts as stored; the pack is cut back to what it was.
        """
        parts: list[bytes] = []
        spans: list[Span] = []
        position = 0
        for name, data in records:
            header = b"%b %d\n" % (name.encode("ascii"), len(data))
            length = len(header) + len(data) + 1
            spans.append((bytes.fromhex(name[7:]), position, position + length))
            parts += (header, data, b"\n")
            position += length
        descriptor, pack, path = self._open_for_append()
        try:
            try:
                os.lseek(descriptor, pack.end, os.SEEK_SET)
                append_all(descriptor, b"".join(parts), path=path)
                sync(descriptor)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, pack.end)
                    sync(descriptor)
                raise
        except OSError as error:
            raise storage_error(error, path) from error
        finally:
            os.close(descriptor)
        for key, start, _ in spans:
            pack.starts[key] = pack.end + start
        pack.end = pack.size = pack.end + position

    def find(self, key: bytes) -> list[bytes]:
        """Return the bytes of records named by 32 digest bytes, newest pack first; whether they match is not checked.

        Raises:
            StorageError: a pack cannot be read.
        """
        found = (self._read(number, key) for number in sorted(self._numbers(), reverse=True))
        return [data for data in found if data is not None]

    def keys(self) -> Iterator[bytes]:
        """Yield the digest bytes of every record, pack by pack; one that is stored twice may come twice."""
        for number in sorted(self._numbers()):
            with contextlib.suppress(FileNotFoundError), self._opened(number) as descriptor:
                yield from list(self._refresh(number, descriptor).starts)

    def erase(self, key: bytes) -> bool:
        """Return whether a record was removed: each pack that holds it is written anew without it, durably.

        The caller holds the ledger's lock. A torn tail of such a pack goes with it.

        Raises:
            StorageError: the pack in question is as it was.
        """
        removed = False
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
        descriptor = os.open(self._path(number), os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_for_append(self) -> tuple[int, _Pack, Path]:
        if self._current < 0:
            self._current = max(self._numbers(), default=0)
        while self._path(self._current + 1).exists():
            self._current += 1
        while True:
            path = self._path(self._current)
            try:
                descriptor = self._open_or_make(path)
                try:
                    pack = self._refresh(self._current, descriptor)
                    if self._ready(descriptor, pack):
                        if pack.end == 0:
                            fsync_folder(self.folder)
                        return descriptor, pack, path
                except BaseException:
                    os.close(descriptor)
                    raise
                os.close(descriptor)
            except OSError as error:
                raise storage_error(error, path) from error
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
        """Return what the open pack file holds now, reading on from what was known of it."""
        status = os.fstat(descriptor)
        identity = (status.st_dev, status.st_ino)
        pack = self._known.get(number)
        if pack is not None and pack.identity == identity and pack.size == status.st_size:
            return pack
        if pack is not None and pack.identity == identity and pack.end <= status.st_size:
            self._read_on(descriptor, pack, status.st_size)
            if pack.end == pack.size:
                return pack
        # Not what was known, or it does not go on where it ended: nothing known of it counts.
        pack = _Pack(identity=identity)
        self._read_on(descriptor, pack, status.st_size)
        self._known[number] = pack
        return pack

    def _read_on(self, descriptor: int, pack: _Pack, size: int) -> None:
        end = pack.end
        for key, start, after in spans_of(descriptor, pack.end, size):
            pack.starts[key] = start
            end = after
        if end < size:
            for key, start, _ in stray_spans(os.pread(descriptor, size - end, end)):
                pack.starts.setdefault(key, end + start)
        pack.end, pack.size = end, size

    def _read(self, number: int, key: bytes) -> bytes | None:
        try:
            with self._opened(number) as descriptor:
                start = self._refresh(number, descriptor).starts.get(key)
                if start is None:
                    return None
                data = record_at(descriptor, start, key)
                if data is None:
                    # The file was written anew under the number of an older one.
                    self._known.pop(number, None)
                    start = self._refresh(number, descriptor).starts.get(key)
                    data = None if start is None else record_at(descriptor, start, key)
                return data
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self._path(number)) from error

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
        if not gone:
            return False
        if tail and is_torn(tail):
            gone.append((end, size))
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
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        fsync_folder(self.folder)


def spans_of(descriptor: int, start: int, size: int) -> Iterator[Span]:
    """Yield the unbroken row of whole records from `start` on; `size` is where the file ends. Bytes are not hashed."""
    position = base = start
    buffer = b""
    while position < size:
        if position + _HEADER_BYTES > base + len(buffer):
            base, buffer = position, os.pread(descriptor, _CHUNK, position)
        header = _HEADER.match(buffer, position - base)
        if header is None:
            return
        last = base + header.end() + int(header[2])
        if last >= size:
            return
        if last >= base + len(buffer):
            base, buffer = last, os.pread(descriptor, _CHUNK, last)
        if buffer[last - base : last - base + 1] != b"\n":
            return
        yield bytes.fromhex(header[1].decode("ascii")), position, last + 1
        position = last + 1


def stray_spans(tail: bytes) -> Iterator[Span]:
    """Yield the records in a tail that does not begin with a whole one; only records whose bytes match their digest."""
    position = 0
    while (header := _HEADER.search(tail, position)) is not None:
        key, last = bytes.fromhex(header[1].decode("ascii")), header.end() + int(header[2])
        whole = tail[last : last + 1] == b"\n" and hashlib.sha256(tail[header.end() : last]).digest() == key
        if whole:
            yield key, header.start(), last + 1
        position = last + 1 if whole else header.end()


def is_torn(tail: bytes) -> bool:
    """Return whether a tail is what an interrupted append leaves: one record that stops short, NULs after it or not."""
    if any(True for _ in stray_spans(tail)):
        return False
    written = tail.rstrip(b"\0")
    header = _HEADER.match(written)
    if header is None:
        return b"sha256:".startswith(written) or _PARTIAL.fullmatch(written) is not None
    # A whole record under a wrong length is damage: its bytes are worth keeping.
    mistaken = hashlib.sha256(tail[header.end() : -1]).digest() == bytes.fromhex(header[1].decode("ascii"))
    return header.end() + int(header[2]) >= len(written) and not mistaken


def record_at(descriptor: int, start: int, key: bytes) -> bytes | None:
    """Return the bytes of the record that begins at `start`, None where none of that digest begins there."""
    buffer = os.pread(descriptor, 4096, start)
    header = _HEADER.match(buffer)
    if header is None or bytes.fromhex(header[1].decode("ascii")) != key:
        return None
    length = int(header[2])
    rest = length - (len(buffer) - header.end())
    if rest > 0:
        buffer += os.pread(descriptor, rest, start + len(buffer))
    data = buffer[header.end() : header.end() + length]
    return data if len(data) == length else None
