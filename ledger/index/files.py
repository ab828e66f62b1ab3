"""The two files of an index: the one that was made at once, and the one beside it with what came to the ledger since.

    index.duckdb       index.newer.duckdb

Catching up writes the second anew, so it costs what is new and not what is there. When that has grown it is folded into the first.
The second says which first it follows; one that follows another is never read with it.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ledger.index.columns import Column, Table

__all__ = ["FOLLOWS", "Mark", "Way", "mark_of", "newer_of", "way_on"]

Mark: TypeAlias = tuple[int, int, int, int]
"""Size in bytes, inode, and the times of the last change of content and of anything, in ns: what tells a file from another."""

Way: TypeAlias = Literal["anew", "newer", "folded"]
"""How an index is made: from nothing, by what is new in a file beside it, or as a copy with that and what is new."""

FOLLOWS: Final = Table(
    "follows",
    "The file that this one follows.",
    (
        Column("size_bytes", "BIGINT", "Its size.", "bytes"),
        Column("inode", "UBIGINT", "Its inode."),
        Column("content_ns", "BIGINT", "When its content changed.", "ns"),
        Column("changed_ns", "BIGINT", "When anything of it changed.", "ns"),
    ),
    public=False,
)

_AT_ONCE: Final = 32 << 20
"""Bytes that are copied in a moment."""
_SHARE: Final = 8
"""A newer file is folded when it would be larger than this part of the older one."""


def newer_of(index: Path) -> Path:
    """Return the file beside an index that holds what came since."""
    return index.with_suffix(f".newer{index.suffix}")


def mark_of(path: Path) -> Mark | None:
    """Return the mark of a plain file, None where none is there."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def way_on(index: Path, more: int) -> Way:
    """Return how an index takes in `more` bytes of journal: both files together are small, or the newer one is, or neither."""
    old, newer = _size(index), _size(newer_of(index))
    if old + newer > _AT_ONCE and newer + more <= max(_AT_ONCE, old // _SHARE):
        return "newer"
    return "folded"


def _size(path: Path) -> int:
    mark = mark_of(path)
    return 0 if mark is None else mark[0]
