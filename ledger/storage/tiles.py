"""Merkle hashes on disk: one growing file a level, whose slices are the C2SP tiles.

`tiles/<level>` holds hashes of 32 bytes: level 0 the leaves, level L the roots of complete subtrees of 256**L leaves. Bytes
8192*n to 8192*(n+1) are tile n of that level. The files are derived: a wrong or short one is made again from the journal, and
no proof is given out that does not end in the signed root.

Source: docs/spec/merkle.md, C2SP tlog-tiles.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from ledger.errors import StorageError
from ledger.storage.durable import open_regular

__all__ = ["HASH_BYTES", "TILE_WIDTH", "Tiles", "TreeHashes"]

HASH_BYTES: Final = 32
TILE_WIDTH: Final = 256
_LEVEL_BITS: Final = 8
_KEPT_TILES: Final = 256


class Tiles:
    """The level files of one ledger; `read` is a hash reader for `ledger.merkle`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tiles"
        self._open: dict[int, tuple[int, int, int]] = {}
        """Level -> descriptor, device and inode of its file."""

    def size(self) -> int:
        """Return how many leaves the files hold."""
        try:
            return (self._folder / "0").stat().st_size // HASH_BYTES
        except FileNotFoundError:
            return 0

    def write(self, first_index: int, leaves: Sequence[bytes]) -> None:
        """Write leaf hashes from an index on, and the roots of the tiles that they fill.

        Writing the same hashes again changes nothing. The files are not fsynced: they are derived.
        """
        if not leaves:
            return
        level, start, hashes = 0, first_index, list(leaves)
        while hashes:
            self._write_level(level, start, hashes)
            first_tile, end_tile = start // TILE_WIDTH, (start + len(hashes)) // TILE_WIDTH
            hashes = [self._tile_root(level, tile) for tile in range(first_tile, end_tile)]
            level, start = level + 1, first_tile

    def read(self, level: int, index: int) -> bytes:
        """Return the hash of the complete subtree of 2**level leaves that starts at leaf index*2**level.

        Raises:
            StorageError: the files do not reach that far.
        """
        tile_level, within = divmod(level, _LEVEL_BITS)
        count = 1 << within
        return _levels(self.hashes(tile_level, index * count, count))[-1]

    def hashes(self, level: int, start: int, count: int) -> bytes:
        """Return `count` hashes of a level from `start` on, one after the other.

        Raises:
            StorageError: the files do not reach that far.
        """
        try:
            with open_regular(self._folder / str(level)) as file:
                file.seek(start * HASH_BYTES)
                data = file.read(count * HASH_BYTES)
        except OSError as error:
            raise StorageError(f"tiles: level {level} cannot be read: {error.strerror}", code="tiles.short") from error
        if len(data) != count * HASH_BYTES:
            raise StorageError(f"tiles: level {level} ends before hash {start + count}", code="tiles.short")
        return data

    def close(self) -> None:
        """Close the files that writing opened."""
        while self._open:
            _, opened = self._open.popitem()
            if _is_still(*opened):
                os.close(opened[0])

    def __del__(self) -> None:
        """Close what nobody closed: a ledger that is let go of holds no file open."""
        with contextlib.suppress(AttributeError, OSError):
            self.close()

    def _write_level(self, level: int, start: int, hashes: list[bytes]) -> None:
        opened = self._open.get(level)
        if opened is None or not _is_still(*opened):
            self._open.pop(level, None)
            self._folder.mkdir(exist_ok=True)
            descriptor = os.open(
                self._folder / str(level), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644
            )
            status = os.fstat(descriptor)
            opened = self._open[level] = (descriptor, status.st_dev, status.st_ino)
        os.pwrite(opened[0], b"".join(hashes), start * HASH_BYTES)

    def _tile_root(self, level: int, tile: int) -> bytes:
        return _levels(self.hashes(level, tile * TILE_WIDTH, TILE_WIDTH))[-1]


class TreeHashes:
    """The hashes of the tree of `size` leaves, read from tiles and each led up to the root before it is given out.

    Every full tile is compared with its hash in the tile above. The tiles that are not full hold the right edge: whoever has
    compared `root_of(size, read)` with the root has compared them all.
    """

    def __init__(self, tiles: Tiles, size: int) -> None:
        self._tiles = tiles
        self._size = size
        self._edge: dict[int, list[bytes]] = {}
        """Level -> the hashes of its tile that is not full, and those of the complete subtrees over them."""
        self._full: dict[tuple[int, int], list[bytes]] = {}

    def read(self, level: int, index: int) -> bytes:
        """Return the hash of the complete subtree of 2**level leaves that starts at leaf index*2**level.

        Raises:
            StorageError: the tiles do not reach that far (`tiles.short`), or do not lead to the root (`tiles.wrong`).
        """
        if (index + 1) << level > self._size:
            raise StorageError(
                f"tiles: no subtree {index} of level {level} under {self._size} leaves", code="tiles.short"
            )
        tile_level, within = divmod(level, _LEVEL_BITS)
        number, start = divmod(index << within, TILE_WIDTH)
        at = (start >> within) * HASH_BYTES
        return self._tile(tile_level, number)[within][at : at + HASH_BYTES]

    def _tile(self, level: int, number: int) -> list[bytes]:
        width = min(TILE_WIDTH, (self._size >> (_LEVEL_BITS * level)) - number * TILE_WIDTH)
        known = self._full.get((level, number)) if width == TILE_WIDTH else self._edge.get(level)
        if known is not None:
            return known
        levels = _levels(self._tiles.hashes(level, number * TILE_WIDTH, width))
        if width < TILE_WIDTH:
            self._edge[level] = levels
            return levels
        above, at = divmod(number, TILE_WIDTH)
        if levels[-1] != self._tile(level + 1, above)[0][at * HASH_BYTES : (at + 1) * HASH_BYTES]:
            raise StorageError(f"tiles: tile {number} of level {level} does not lead to the root", code="tiles.wrong")
        if len(self._full) >= _KEPT_TILES:
            self._full.pop(next(iter(self._full)))
        self._full[level, number] = levels
        return levels


def _is_still(descriptor: int, device: int, inode: int) -> bool:
    """Return whether a descriptor is open on the file it was opened for, and that file has a name.

    A program that becomes a daemon closes every descriptor, and its own files get the numbers; and tiles may be removed.
    """
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (device, inode) and status.st_nlink > 0


def _levels(hashes: bytes) -> list[bytes]:
    """Return sibling hashes, and level by level those of the complete subtrees over them; of a power of two the last is the root."""
    levels = [hashes]
    while len(hashes) >= 2 * HASH_BYTES:
        pairs = range(0, len(hashes) - HASH_BYTES, 2 * HASH_BYTES)
        hashes = b"".join([sha256(b"\x01" + hashes[at : at + 2 * HASH_BYTES]).digest() for at in pairs])
        levels.append(hashes)
    return levels
