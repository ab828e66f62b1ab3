"""Pack index: where the records of a pack begin, sorted by digest, so that a large pack need not be scanned.

    artifacts/packs/<number>.idx
        32 bytes    `receipt-ledger.pack-index/v1` and NULs
         8 bytes    how many bytes of the pack it covers, big-endian
        40 bytes    a record: 32 digest bytes and 8 bytes of position, big-endian; ascending

It is derived: it may be deleted at any time, and it is a hint only. What it says is checked against the pack, and what it does
not hold is absent only after a scan.

Source: docs/spec/artifacts.md.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

__all__ = ["PackIndex", "print_index"]

_MAGIC: Final = b"receipt-ledger.pack-index/v1".ljust(32, b"\0")
_HEAD: Final = 40
_ROW: Final = 40


class PackIndex:
    """An index file, mapped; `covers` is the size in bytes of the part of the pack that it is about."""

    __slots__ = ("_rows", "covers", "size")

    def __init__(self, rows: bytes | mmap.mmap) -> None:
        self._rows = rows
        self.covers = int.from_bytes(rows[32:40], "big")
        self.size = (len(rows) - _HEAD) // _ROW

    @classmethod
    def load(cls, path: Path) -> PackIndex | None:
        """Return the index in `path`, None where there is none or it is not one."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            size = os.fstat(descriptor).st_size
            if size < _HEAD or (size - _HEAD) % _ROW or os.pread(descriptor, 32, 0) != _MAGIC:
                return None
            # The file is replaced, never cut, so the mapping stays whole.
            return cls(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def find(self, key: bytes) -> int | None:
        """Return where the record named by 32 digest bytes begins, None where the index does not hold it."""
        rows = self._rows
        row = bisect_left(range(self.size), key, key=lambda i: rows[_HEAD + _ROW * i : _HEAD + _ROW * i + 32])
        at = _HEAD + _ROW * row
        if row == self.size or rows[at : at + 32] != key:
            return None
        return int.from_bytes(rows[at + 32 : at + _ROW], "big")

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        for at in range(_HEAD, len(self._rows), _ROW):
            row = self._rows[at : at + _ROW]
            yield row[:32], int.from_bytes(row[32:], "big")


def print_index(starts: Mapping[bytes, int], *, covers: int) -> bytes:
    """Return the bytes of an index of `starts` (digest bytes to position) over the first `covers` bytes of a pack."""
    rows = (key + start.to_bytes(8, "big") for key, start in sorted(starts.items()))
    return b"".join((_MAGIC, covers.to_bytes(8, "big"), *rows))
