r"""Tiles: the files of a static tree (C2SP tlog-tiles), their paths and their bytes.

    tile/0/x001/x234/067           tile 1,234,067 of level 0: 256 hashes of 32 bytes
    tile/1/000.p/17                the first 17 hashes of a tile that is not full
    tile/entries/x001/x234/067     the 256 entries below a tile of level 0, each after its length: 2 bytes, big-endian
    tile/entries/000.p/112

- Item i of tile n at level l is the root over the entries from (256n+i)*256**l up to (256n+i+1)*256**l: at level 0 a leaf hash.
- A partial tile has the width `size // 256**l % 256`. An empty one is no file, and only full tiles are hashed upward.

`parse_tile_path(print_tile_path(t)) == t` and `parse_bundle(print_bundle(e)) == e`, both ways.

Source: docs/spec/published.md, C2SP tlog-tiles v0.1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from ledger.errors import FormatError, clip
from ledger.merkle import node_hash, root_of

__all__ = [
    "ENTRY_MAX_BYTES",
    "HASH_BYTES",
    "TILE_WIDTH",
    "Edge",
    "Tile",
    "parse_bundle",
    "parse_tile_path",
    "print_bundle",
    "print_tile_path",
    "tiles_between",
    "tiles_of",
]

HASH_BYTES: Final = 32
TILE_WIDTH: Final = 256
ENTRY_MAX_BYTES: Final = 65_535
_MAX_LEVEL: Final = 63
_MAX_INDEX: Final = 2**63 - 1
_PATH = re.compile(
    r"tile/(?P<level>entries|0|[1-9][0-9]?)/(?P<index>(?:x[0-9]{3}/){0,6}[0-9]{3})(?:\.p/(?P<width>[1-9][0-9]{0,2}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """A file of hashes at a level, or of entries where `level` is None; `width` is how many it holds, 1 to 256."""

    level: int | None
    index: int
    width: int = TILE_WIDTH

    @property
    def path(self) -> str:
        """The path of the file, relative to the tree's root."""
        return print_tile_path(self)


def print_tile_path(tile: Tile) -> str:
    """Return the path of a tile; the inverse of `parse_tile_path`.

    Raises:
        FormatError: a level over 63, a width outside 1 to 256, an index that the format cannot hold.
    """
    level, index, width = tile.level, tile.index, tile.width
    if (level is not None and not 0 <= level <= _MAX_LEVEL) or not 0 <= index <= _MAX_INDEX or not 1 <= width <= 256:
        raise FormatError(f"tile: got {clip(tile)}, expected level 0 to 63 and width 1 to 256", code="tile.path")
    name = f"{index % 1000:03d}"
    while index >= 1000:
        index //= 1000
        name = f"x{index % 1000:03d}/{name}"
    partial = "" if width == TILE_WIDTH else f".p/{width}"
    return f"tile/{'entries' if level is None else level}/{name}{partial}"


def parse_tile_path(path: str) -> Tile:
    """Return the tile that a path names.

    Raises:
        FormatError: not the one path of a tile: other folders, leading zeros, a group too many, a width over 255.
    """
    match = _PATH.fullmatch(path)
    if match is not None and not match["index"].startswith("x000/"):
        level = None if match["level"] == "entries" else int(match["level"])
        index = int(match["index"].replace("x", "").replace("/", ""))
        width = TILE_WIDTH if match["width"] is None else int(match["width"])
        if (level is None or level <= _MAX_LEVEL) and index <= _MAX_INDEX and (match["width"] is None or width < 256):
            return Tile(level, index, width)
    raise FormatError(f"tile: got {clip(path)}, expected the path of a tile", code="tile.path")


def tiles_of(size: int) -> Iterator[Tile]:
    """Yield every tile of the tree of `size` entries."""
    return tiles_between(0, size)


def tiles_between(old: int, new: int) -> Iterator[Tile]:
    """Yield the tiles of the tree of `new` entries that the tree of `old` entries has not; lower levels first."""
    level = 0
    while new >> 8 * level:
        before, after = old >> 8 * level, new >> 8 * level
        for index in range(before >> 8, after >> 8):
            yield from _both(level, index, TILE_WIDTH)
        if after & 255 and after != before:
            yield from _both(level, after >> 8, after & 255)
        level += 1


def _both(level: int, index: int, width: int) -> Iterator[Tile]:
    if level == 0:
        yield Tile(None, index, width)
    yield Tile(level, index, width)


def print_bundle(entries: Iterable[bytes]) -> bytes:
    """Return the bytes of an entry bundle; the inverse of `parse_bundle`.

    Raises:
        FormatError: an entry over 65,535 bytes.
    """
    return b"".join(_length(entry) + entry for entry in entries)


def parse_bundle(data: bytes) -> tuple[bytes, ...]:
    """Return the entries of a bundle.

    Raises:
        FormatError: it ends inside an entry.
    """
    entries: list[bytes] = []
    at, end = 0, len(data)
    while at < end:
        start = at + 2
        at = start + int.from_bytes(data[at:start], "big")
        if start > end or at > end:
            raise FormatError(f"entry bundle: it ends inside entry {len(entries)}", code="tile.bundle")
        entries.append(data[start:at])
    return tuple(entries)


class Edge:
    """The right edge of a growing tree: for each level the hashes of its last tile while it is not full, and its entries.

    Attributes:
        size: how many entries.
    """

    __slots__ = ("_entries", "_hashes", "size")

    def __init__(self) -> None:
        self.size = 0
        self._hashes: list[list[bytes]] = [[]]
        self._entries: list[bytes] = []
        """Each with its length before it."""

    @classmethod
    def of(cls, size: int, hashes: Sequence[bytes], bundle: bytes) -> Edge:
        """Return the edge of a tree of `size` entries from its partial tiles.

        Args:
            size: how many entries.
            hashes: the bytes of each level's partial tile, level 0 first, empty where it has none.
            bundle: the bytes of the partial entry bundle.

        Raises:
            FormatError: a tile has not the width that the size asks for, or the entries are not those of level 0.
        """
        edge = cls()
        edge.size = size
        edge._hashes = [[data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)] for data in hashes] or [
            []
        ]
        for level, data in enumerate(hashes):
            expected = (size >> 8 * level) & 255
            if len(data) != expected * HASH_BYTES:
                raise FormatError(
                    f"tile of level {level}: got {len(data)} bytes, expected {expected} hashes", code="tile.width"
                )
        if size >> 8 * max(len(hashes), 1):
            raise FormatError(f"edge: got {len(hashes)} levels, expected more for size {size}", code="tile.width")
        entries = parse_bundle(bundle)
        if [_leaf(entry) for entry in entries] != edge._hashes[0]:
            raise FormatError("entry bundle: it does not hold the entries of its hash tile", code="tile.bundle")
        edge._entries = [_length(entry) + entry for entry in entries]
        return edge

    def extend(self, entries: Iterable[bytes]) -> Iterator[tuple[Tile, bytes]]:
        """Add entries, and yield each tile that they fill with its bytes; nothing is added that is not asked for.

        Raises:
            FormatError: an entry over 65,535 bytes.
        """
        for entry in entries:
            self._entries.append(_length(entry) + entry)
            leaves = self._hashes[0]
            leaves.append(_leaf(entry))
            self.size += 1
            if len(leaves) == TILE_WIDTH:
                yield from self._filled()

    def partial(self) -> Iterator[tuple[Tile, bytes]]:
        """Yield the partial tiles, with their bytes."""
        if self._entries:
            yield Tile(None, self.size >> 8, len(self._entries)), b"".join(self._entries)
        for level, hashes in enumerate(self._hashes):
            if hashes:
                yield Tile(level, self.size >> 8 * (level + 1), len(hashes)), b"".join(hashes)

    def root(self) -> bytes:
        """Return the root of the tree."""
        return root_of(self.size, self._read)

    def _filled(self) -> Iterator[tuple[Tile, bytes]]:
        yield Tile(None, (self.size >> 8) - 1), b"".join(self._entries)
        self._entries.clear()
        level = 0
        while len(hashes := self._hashes[level]) == TILE_WIDTH:
            yield Tile(level, (self.size >> 8 * (level + 1)) - 1), b"".join(hashes)
            if level + 1 == len(self._hashes):
                self._hashes.append([])
            self._hashes[level + 1].append(_fold(hashes))
            hashes.clear()
            level += 1

    def _read(self, level: int, index: int, /) -> bytes:
        """Return the hash of a complete subtree at the edge, for `root_of`."""
        tile_level, within = divmod(level, 8)
        start = (index << within) & 255
        return _fold(self._hashes[tile_level][start : start + (1 << within)])


def _length(entry: bytes) -> bytes:
    if len(entry) > ENTRY_MAX_BYTES:
        raise FormatError(f"entry: got {len(entry)} bytes, expected at most {ENTRY_MAX_BYTES}", code="tile.bundle")
    return len(entry).to_bytes(2, "big")


def _leaf(entry: bytes) -> bytes:
    return sha256(b"\x00" + entry).digest()


def _fold(hashes: Sequence[bytes]) -> bytes:
    """Return the root of a power of two of sibling hashes."""
    while len(hashes) > 1:
        pairs = iter(hashes)
        hashes = [node_hash(left, right) for left, right in zip(pairs, pairs, strict=True)]
    return hashes[0]
