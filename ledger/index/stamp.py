"""What this machine remembers of an index that it made: by it, and by nothing in a ledger's folder, an index is believed.

    <state>/index/<sha256 of the index's path>          canonical JSON, mode 0600
    <state>/index/<sha256 of the index's path>.lock     held while the index is made

It names the file (inode, size, times), the files of the journal that were verified, the trust and the memory that they were
verified with. What is ahead, different, cut, swapped or of another version does not fit, and the index is made anew.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from ledger import canonical
from ledger.digest import digest
from ledger.errors import LedgerError
from ledger.index.files import Mark, mark_of, newer_of
from ledger.index.schema import SCHEMA_DIGEST
from ledger.storage.durable import replace
from ledger.storage.journal import segment_path, segments
from ledger.storage.places import Places
from ledger.version import VERSION

__all__ = ["Stamp", "building", "locate", "marks_of", "read_stamp", "write_stamp"]

INDEX_NAME: Final = "index.duckdb"
_MADE_BY: Final = f"{VERSION} {SCHEMA_DIGEST} {duckdb.__version__}"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an index was made from.

    `segments` holds first index and mark of each file of the journal; `end` is how many bytes of the last one are verified, and
    `tail` their digest. `index` are the marks of its two files. `trust` and `memory` are digests, empty for none. `resumable` says whether verification can go on there.
    """

    origin: str
    trust: str
    memory: str
    segments: tuple[tuple[int, Mark], ...]
    end: int
    tail: str
    resumable: bool
    index: tuple[Mark | None, Mark | None]
    made_by: str = _MADE_BY

    def is_for(self, index: Path) -> bool:
        """Return whether a file is the index that was made, untouched, by this version of the program."""
        return self.made_by == _MADE_BY and self.index[0] is not None and marks_of(index) == self.index

    def begins(self, marks: Sequence[tuple[int, Mark]]) -> bool:
        """Return whether files of a journal begin with those that were verified: all the same, but that the last may have grown."""
        if len(marks) < len(self.segments) or tuple(marks[: len(self.segments) - 1]) != self.segments[:-1]:
            return False
        (first, before), (found, after) = self.segments[-1], marks[len(self.segments) - 1]
        return first == found and before[1] == after[1] and after[0] >= self.end


def locate(folder: Path, origin: str, places: Places) -> Path:
    """Return where the index of a ledger lies: in its folder where that is this user's own, else in the user's cache."""
    try:
        status = folder.stat()
        own = (
            places.key_folder(origin).is_dir()
            and status.st_uid == os.geteuid()
            and os.access(folder, os.W_OK | os.X_OK)
        )
    except OSError:
        own = False
    if own:
        return folder / INDEX_NAME
    return places.cache_folder / "index" / f"{_key(folder)}.duckdb"


def marks_of(index: Path) -> tuple[Mark | None, Mark | None]:
    """Return the marks of both files of an index."""
    return mark_of(index), mark_of(newer_of(index))


def journal_marks(folder: Path) -> tuple[tuple[int, Mark], ...]:
    """Return first index and mark of each file of a journal as it is now.

    Raises:
        NotFoundError: the folder holds no journal.
    """
    return tuple((first, mark_of(segment_path(folder, first)) or (0, 0, 0, 0)) for first in segments(folder))


def read_stamp(index: Path, places: Places) -> Stamp | None:
    """Return what this machine remembers of an index, None where that is nothing or somebody else may have written it."""
    try:
        with _path(index, places).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
                return None
            value: Any = canonical.decode(file.read())
        marks = tuple((int(first), _mark(mark)) for first, mark in value["segments"])
        return Stamp(
            origin=str(value["origin"]),
            trust=str(value["trust"]),
            memory=str(value["memory"]),
            segments=marks,
            end=int(value["end"]),
            tail=str(value["tail"]),
            resumable=bool(value["resumable"]),
            index=(_mark(value["index"]), _mark(value["newer"]) if value["newer"] else None),
            made_by=str(value["made_by"]),
        )
    except (OSError, LedgerError, KeyError, TypeError, ValueError):
        return None


def write_stamp(index: Path, places: Places, stamp: Stamp) -> None:
    """Remember an index.

    Raises:
        StorageError: the user's state folder cannot be written.
    """
    path = _path(index, places)
    value: canonical.JsonObject = {
        "origin": stamp.origin,
        "trust": stamp.trust,
        "memory": stamp.memory,
        "segments": [[first, [str(part) for part in mark]] for first, mark in stamp.segments],
        "end": stamp.end,
        "tail": stamp.tail,
        "resumable": stamp.resumable,
        "index": [str(part) for part in stamp.index[0] or ()],
        "newer": [str(part) for part in stamp.index[1] or ()],
        "made_by": stamp.made_by,
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace(path, canonical.encode(value), mode=0o600, durable=False)


def drop_stamp(index: Path, places: Places) -> None:
    """Forget an index."""
    with suppress(OSError):
        _path(index, places).unlink()


def tail_digest(data: bytes) -> str:
    """Return the digest that a stamp keeps of the verified bytes of the last file."""
    return digest(data)


@contextmanager
def building(index: Path, places: Places) -> Iterator[None]:
    """Hold the right to make an index; others wait. Where the state folder cannot be written nobody is kept out."""
    path = _path(index, places).with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _mark(parts: Any) -> Mark:  # noqa: ANN401  parsed JSON
    size, inode, content, anything = (int(part) for part in parts)
    return size, inode, content, anything


def _key(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()


def _path(index: Path, places: Places) -> Path:
    return places.state / "index" / _key(index)
