"""Publishing: a ledger as a static tree of files that any web server can serve.

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
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.checkpoint import Head, head_of
from ledger.errors import DamagedError, FormatError, LockError, RegisterError, StorageError, clip
from ledger.line import HEAD_PREFIX, parse_entry_line
from ledger.storage.durable import make_folder, storage_error
from ledger.storage.journal import read_segment, segment_path, segments
from ledger.storage.reader import Reader
from ledger.storage.target import Target, sync_path
from ledger.tiles import Edge

__all__ = ["Progress", "Published", "publish"]

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
        tree = Target(target)
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


def _grow(folder: Path, tree: Target, before: Head | None, head: Head, progress: Progress | None) -> int:
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


def _stage(folder: Path, tree: Target, edge: Edge, size: int, progress: Progress | None) -> None:
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
            sync_path(path)
    finally:
        if lock is not None:
            os.close(lock)
    if head_of(note).origin != origin:
        raise DamagedError("journal: its newest head is of another origin than its header", code="head.origin")
    return note


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
