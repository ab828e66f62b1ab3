"""Pack index: where the records of a pack begin, sorted by digest, so that a large pack need not be scanned.

    artifacts/packs/<number>.idx        numbers of 8 bytes, in the byte order of the machine
        24 bytes          `receipt-ledger.packs/v1` and NULs
         8 bytes          1, which another byte order reads as another number
         8 bytes          how many bytes of the pack it covers
         8 bytes          n, how many records it holds
         8 n bytes        the first 8 bytes of each digest as a big-endian number, ascending
         8 n bytes        where each of these records begins

It is derived: it may be deleted at any time, and it is a hint only. What it says is checked against the pack, and what it does
not hold is absent only after a scan.

Source: docs/spec/artifacts.md.
"""

from __future__ import annotations

import mmap
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["PackIndex", "prefix", "print_index"]

_MAGIC: Final = b"receipt-ledger.packs/v1".ljust(24, b"\0") + array("Q", [1]).tobytes()
_HEAD: Final = 48


def prefix(key: bytes) -> int:
    """Return the number that an index holds for 32 digest bytes."""
    return int.from_bytes(key[:8], "big")


class PackIndex:
    """An index file, mapped; `covers` is the size in bytes of the part of the pack that it is about."""

    __slots__ = ("_prefixes", "_starts", "covers", "size")

    def __init__(self, text: bytes | mmap.mmap) -> None:
        view = memoryview(text)
        self.covers, self.size = view[32:_HEAD].cast("Q")
        middle = _HEAD + 8 * self.size
        self._prefixes = view[_HEAD:middle].cast("Q")
        self._starts = view[middle : middle + 8 * self.size].cast("Q")

    @classmethod
    def load(cls, path: Path) -> PackIndex | None:
        """Return the index in `path`, None where there is none or it is not one."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            head = os.pread(descriptor, _HEAD, 0)
            size = os.fstat(descriptor).st_size
            if len(head) < _HEAD or head[:32] != _MAGIC or array("Q", head[40:])[0] * 16 + _HEAD != size:
                return None
            # The file is replaced, never cut, so the mapping stays whole.
            return cls(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
        except (OSError, ValueError):
            return None
        finally:
            os.close(descriptor)

    def find(self, key: bytes) -> int | None:
        """Return where the record named by 32 digest bytes may begin, None where the index does not hold it."""
        wanted = prefix(key)
        row = bisect_left(self._prefixes, wanted)
        return self._starts[row] if row < self.size and self._prefixes[row] == wanted else None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._prefixes, self._starts, strict=True)


def print_index(rows: Iterable[tuple[int, int]], *, covers: int) -> bytes:
    """Return the bytes of an index of `rows` (`prefix` and start of each record) over the first `covers` bytes of a pack."""
    ordered = sorted(rows)
    head = array("Q", [covers, len(ordered)])
    prefixes, starts = array("Q", [row[0] for row in ordered]), array("Q", [row[1] for row in ordered])
    return b"".join((_MAGIC, head.tobytes(), prefixes.tobytes(), starts.tobytes()))
