"""Publishing: a ledger as a static tree of files that any web server can serve, and reading such a tree.

    checkpoint                    the newest signed note, verbatim
    tile/<level>/<n>[.p/<width>]  hashes
    tile/entries/<n>[.p/<width>]  entries; no receipt is published

- Files are made in `.tmp`, durable, and moved to their names only when they lead to the root of the head; then the checkpoint
  is replaced. Whoever reads meanwhile finds every file that the checkpoint he has read asks for.
- Full tiles are never written again. Partial ones of older checkpoints stay until the full tile is there and its checkpoint is.
- What is published is continued, never replaced: another origin, a longer or a forked tree is refused.
- The head is made durable in the ledger before it is published. Nothing is written into the ledger's folder.

Source: docs/spec/published.md.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.checkpoint import Head, head_of
from ledger.errors import DamagedError, FormatError, LedgerError, LockError, RegisterError, StorageError, clip
from ledger.line import HEAD_PREFIX, parse_entry_line
from ledger.note import NOTE_MAX_BYTES
from ledger.storage.durable import fsync_folder, make_folder, storage_error, sync
from ledger.storage.journal import read_segment, segment_path, segments
from ledger.storage.reader import Reader
from ledger.tiles import ENTRY_MAX_BYTES, TILE_WIDTH, Edge, Tile, tiles_between

__all__ = ["CHECKPOINT", "Progress", "Published", "PublishedTree", "is_published", "publish"]

CHECKPOINT: Final = "checkpoint"
_STAGE: Final = ".tmp"
_MAX_BYTES: Final = TILE_WIDTH * (ENTRY_MAX_BYTES + 2)
_BATCH: Final = 1_024
"""Files written before they are synced together."""
_THREADS: Final = 16
_PARTIAL = re.compile(r"([0-9]{3})\.p")
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})

Progress = Callable[[int, int], None]
"""Called with the entries published so far, of those that are new, and the number of those."""


@dataclass(frozen=True, slots=True)
class Published:
    """What a publication did: the head, the size published before (0 for a new tree), files made, partial tiles collected."""

    head: Head
    before: int
    made: int
    collected: int


def publish(folder: Path, target: Path, *, progress: Progress | None = None) -> Published:
    """Bring the tree in `target`, absent or published before, up to the newest head of the ledger in `folder`.

    Raises:
        NotFoundError: no ledger in the folder.
        DamagedError: the journal does not lead to its own head; nothing new is published.
        RegisterError: the tree is longer than the ledger (`publish.longer`), or no beginning of it (`publish.forked`).
        StorageError: the target is in use for something else (`publish.in_use`), is of another origin (`publish.origin`), or the
            disk refused.
        LockError: another publication into the same folder is under way.
    """
    _refuse_place(folder, target)
    note = _durable_note(folder)
    head = head_of(note)
    make_folder(target)
    with _alone(target):
        tree = _Target(target)
        before = tree.published()
        if before is not None:
            _refuse_other(before, head, target)
        old = 0 if before is None else before.size
        if tree.note == note and not tree.unfinished:
            return Published(head, old, 0, 0)
        tree.start()
        try:
            made = _grow(folder, tree, before, head, progress)
            tree.put_checkpoint(note)
            return Published(head, old, made, tree.collect(old, head.size))
        except BaseException:
            tree.abandon()
            raise


def _grow(folder: Path, tree: _Target, before: Head | None, head: Head, progress: Progress | None) -> int:
    """Add the tiles of a newer head; return how many files were made."""
    edge = None if before is None else tree.edge(before.size)
    if before is not None and edge is not None and edge.root() == before.root:
        start = edge.size
        _stage(folder, tree, edge, head.size, progress)
        # Old edge, new entries and the new root together prove that the new tree extends the old.
        if edge.root() == head.root:
            return tree.place(start, head.size)
        tree.start()
    # A new tree; or one whose edge is not what its checkpoint says, or does not lead to the head: look at every entry.
    edge, prefix = Edge(), None
    if before is not None:
        _stage(folder, tree, edge, before.size, None)
        prefix = edge.root()
    _stage(folder, tree, edge, head.size, progress)
    if edge.root() != head.root:
        raise DamagedError(
            "journal: its entries do not lead to the root of its head",
            code="head.root",
            hint=f"look at: ledger verify {folder}",
        )
    if before is not None and prefix != before.root:
        raise RegisterError(
            f"publish: the published tree of size {before.size} is not the beginning of this ledger",
            code="publish.forked",
            hint="two histories bear one name: keep both, and find out which one is a copy",
        )
    return tree.place(0, head.size)


def _stage(folder: Path, tree: _Target, edge: Edge, size: int, progress: Progress | None) -> None:
    """Add the journal's entries up to a size to the edge, and keep what it fills and its partial tiles at that size."""
    first = edge.size
    for tile, data in edge.extend(_entries(folder, first, size)):
        tree.stage(tile, data)
        if progress is not None and tile.level is None:
            progress(edge.size - first, size - first)
    for tile, data in edge.partial():
        tree.stage(tile, data)


def _entries(folder: Path, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of the entries from `start` up to, not including, `stop`; what they are is for the root to say."""
    known = segments(folder)
    position = max(bisect_right(known, start) - 1, 0)
    index = known[position] if known else 0
    for segment in known[position:]:
        if index >= stop:
            return
        if segment != index:
            break
        data = read_segment(folder, segment)
        at = 0
        while index < stop and (end := data.find(b"\n", at)) >= 0:
            if not data.startswith(HEAD_PREFIX, at):
                if index >= start:
                    yield _entry(data[at:end], segment, at)
                index += 1
            at = end + 1
    if index < stop:
        raise DamagedError(f"journal: entries {index} to {stop - 1} are missing", where=f"entry {index}")


def _entry(line: bytes, segment: int, offset: int) -> bytes:
    try:
        return parse_entry_line(line)[0]
    except FormatError as error:
        where = f"journal/{segment:016d}.jsonl byte {offset}"
        raise DamagedError(f"{where}: {error}", where=where) from error


def _durable_note(folder: Path) -> bytes:
    """Return the newest signed note, once the segment that holds it is on the disk.

    The lock is held meanwhile, shared: a writer whose own fsync fails cuts its commit back before anybody may read it.
    """
    origin = Reader(folder).header().ledger
    lock = None
    with contextlib.suppress(FileNotFoundError, PermissionError):
        lock = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if lock is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise storage_error(error, folder / "lock") from error
        note = Reader(folder).note()
        newest = segments(folder)[-1:]
        for path in (segment_path(folder, newest[0]), folder / "journal"):
            _sync_path(path)
    finally:
        if lock is not None:
            os.close(lock)
    if head_of(note).origin != origin:
        raise DamagedError("journal: its newest head is of another origin than its header", code="head.origin")
    return note


def _sync_path(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, path) from error


def _refuse_place(folder: Path, target: Path) -> None:
    ledger, there = folder.resolve(), target.resolve()
    if there == ledger or ledger in there.parents or there in ledger.parents:
        raise StorageError(
            f"publish: {str(target)!r} and the ledger lie one in the other; receipts would be served with the tree",
            code="publish.in_use",
            hint="name a folder of its own",
        )
    if (there / "journal").exists():
        raise StorageError(
            f"publish: {str(target)!r} is a ledger", code="publish.in_use", hint="name a folder of its own"
        )


def _refuse_other(before: Head, head: Head, target: Path) -> None:
    if before.origin != head.origin:
        raise StorageError(
            f"publish: {str(target)!r} holds the tree of {clip(before.origin)}, this ledger is {clip(head.origin)}",
            code="publish.origin",
            hint="publish each ledger into a folder of its own",
        )
    if before.size > head.size:
        raise RegisterError(
            f"publish: {before.size} entries are published, the ledger holds {head.size}: it was cut, or is an old copy",
            code="publish.longer",
            hint="bring the newest copy of the ledger back; a restored one goes on under a new origin",
        )
    if before.size == head.size and before.root != head.root:
        raise RegisterError(
            f"publish: the published tree of size {before.size} has another root than this ledger",
            code="publish.forked",
        )


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Exclude other publications into the folder; the lock is on the folder itself, so no file is left."""
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise storage_error(error, target) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockError(
                f"publish: another publication into {str(target)!r} is under way",
                code="storage.locked",
                hint="wait for it to end, then try again",
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise storage_error(error, target) from error
        yield
    finally:
        os.close(descriptor)


class _Target:
    """The folder that is published into.

    Attributes:
        note: the checkpoint that stands there, empty where none does.
        unfinished: whether a publication before this one never came to its end.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stage = folder / _STAGE
        self._folders: set[Path] = set()
        """Folders that are known to be there."""
        self._unsynced: list[Path] = []
        self._begun = False
        """Whether files were given their names."""
        self.note = b""
        self.unfinished = self._stage.exists()

    def published(self) -> Head | None:
        """Return the head that is published, None where the folder holds nothing yet."""
        try:
            with (self._folder / CHECKPOINT).open("rb") as file:
                self.note = file.read(NOTE_MAX_BYTES + 1)
            return head_of(self.note)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storage_error(error, self._folder / CHECKPOINT) from error
        except LedgerError as error:
            raise StorageError(
                f"publish: {str(self._folder / CHECKPOINT)!r} is no checkpoint of ours: {error}", code="publish.in_use"
            ) from error
        others = {path.name for path in self._folder.iterdir()} - {_STAGE, "tile"}
        if others or (not self.unfinished and (self._folder / "tile").exists()):
            raise StorageError(
                f"publish: {str(self._folder)!r} is neither empty nor a published tree",
                code="publish.in_use",
                hint="name a new folder",
            )
        return None

    def edge(self, size: int) -> Edge | None:
        """Return the right edge of the published tree, None where its partial tiles are not there as they should."""
        hashes, bundle = [], b""
        level = 0
        try:
            while size >> 8 * level:
                width, index = (size >> 8 * level) & 255, size >> 8 * (level + 1)
                hashes.append((self._folder / Tile(level, index, width).path).read_bytes() if width else b"")
                if level == 0 and width:
                    bundle = (self._folder / Tile(None, index, width).path).read_bytes()
                level += 1
            return Edge.of(size, hashes, bundle)
        except (OSError, LedgerError):
            return None

    def start(self) -> None:
        """Make the stage anew: what stands in it was never published."""
        try:
            shutil.rmtree(self._stage, ignore_errors=True)
            self._stage.mkdir()
        except OSError as error:
            raise storage_error(error, self._stage) from error
        self._folders = {self._stage}
        self._unsynced.clear()
        fsync_folder(self._folder)

    def abandon(self) -> None:
        """Remove what was staged; the empty stage stays where partial tiles may be left to collect."""
        shutil.rmtree(self._stage, ignore_errors=True)
        if self.unfinished or self._begun:
            with contextlib.suppress(OSError):
                self._stage.mkdir()

    def stage(self, tile: Tile, data: bytes) -> None:
        """Keep the bytes of a tile under no name yet."""
        self._write(self._stage / tile.path, data)
        if len(self._unsynced) >= _BATCH:
            self._sync()

    def place(self, old: int, size: int) -> int:
        """Move the staged tiles that a tree of `size` has and one of `old` has not to their names; return how many.

        They are durable before they have a name, and their names are when this returns.
        """
        self._sync()
        self._begun = True
        made = 0
        touched: set[Path] = set()
        for tile in tiles_between(old, size):
            staged, path = self._stage / tile.path, self._folder / tile.path
            try:
                if path.parent not in touched:
                    make_folder(path.parent)
                    touched.add(path.parent)
                if not self._is_there(path, staged):
                    staged.replace(path)
                    made += 1
            except OSError as error:
                raise storage_error(error, path) from error
        for folder in touched:
            fsync_folder(folder)
        return made

    def put_checkpoint(self, note: bytes) -> None:
        """Replace the checkpoint; everything it asks for is durable."""
        if note == self.note:
            return
        staged = self._stage / CHECKPOINT
        self._write(staged, note)
        self._sync()
        try:
            staged.replace(self._folder / CHECKPOINT)
        except OSError as error:
            raise storage_error(error, self._folder / CHECKPOINT) from error
        fsync_folder(self._folder)

    def collect(self, old: int, size: int) -> int:
        """Remove the partial tiles whose full tile is there, and the stage; return how many folders of them there were."""
        if self.unfinished:
            found = list(self._all_partial())
        elif old == 0:
            found = []
        else:
            found = [self._folder / f"{tile.path}.p" for tile in tiles_between(old, size) if tile.width == TILE_WIDTH]
        collected = 0
        for folder in found:
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, folder) from error
            collected += 1
        shutil.rmtree(self._stage, ignore_errors=True)
        return collected

    def _all_partial(self) -> Iterator[Path]:
        """Yield every folder of partial tiles whose full tile is there."""
        for parent, folders, files in os.walk(self._folder / "tile"):
            whole = set(files)
            for name in folders:
                match = _PARTIAL.fullmatch(name)
                if match is not None and match[1] in whole:
                    yield Path(parent, name)

    def _is_there(self, path: Path, staged: Path) -> bool:
        """Return whether the file stands under its name already, from a publication that never came to its end."""
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            return False
        if found != staged.read_bytes():
            raise DamagedError(
                f"publish: {str(path)!r} has other bytes than this ledger",
                code="publish.differs",
                hint="published tiles never change: compare with another copy, or publish into a new folder",
                where=str(path),
            )
        return True

    def _write(self, path: Path, data: bytes) -> None:
        try:
            if path.parent not in self._folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(path.parent)
            with path.open("wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
        except OSError as error:
            raise storage_error(error, path) from error
        self._unsynced.append(path)

    def _sync(self) -> None:
        """Make the files written since the last time durable; many at once share the journal commits of the file system."""
        if len(self._unsynced) < _THREADS:
            for path in self._unsynced:
                _sync_path(path)
        else:
            with ThreadPoolExecutor(_THREADS) as pool:
                for _ in pool.map(_sync_path, self._unsynced):
                    pass
        self._unsynced.clear()


def is_published(folder: Path) -> bool:
    """Return whether a folder looks like a published tree: a checkpoint and tiles, and no journal."""
    return (folder / CHECKPOINT).is_file() and (folder / "tile").is_dir() and not os.path.lexists(folder / "journal")


class PublishedTree:
    """Reads the files of a published tree by their paths; follows no symbolic link, leaves the folder by no path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, path: str) -> bytes | None:
        """Return the bytes of a file, None where there is none.

        Raises:
            FormatError: a symbolic link, a folder or a device, a file larger than any tile, or a path out of the tree.
        """
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise FormatError(f"path: got {clip(path)}, expected one inside the tree", code="tile.path", where=path)
        try:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                for part in parts[:-1]:
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    inner = os.open(part, flags, dir_fd=folder)
                    os.close(folder)
                    folder = inner
                return _read_plain(parts[-1], folder, path)
            finally:
                os.close(folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            # A link where a folder should be is "not a directory" here.
            if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
                raise FormatError(
                    f"{path}: a part of it is no plain file or folder", code="tile.file", where=path
                ) from error
            raise storage_error(error, self._folder / path) from error


def _read_plain(name: str, folder: int, path: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path}: no plain file", code="tile.file", where=path)
        if status.st_size > _MAX_BYTES:
            raise FormatError(
                f"{path}: got {status.st_size} bytes, more than a tile can have", code="tile.file", where=path
            )
        data = b""
        while block := os.read(descriptor, status.st_size + 1 - len(data)):
            data += block
        return data
    finally:
        os.close(descriptor)
