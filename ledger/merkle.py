"""Merkle, the prover's half: roots, inclusion and consistency proofs over entries.

- leaf hash = SHA-256(0x00 || entry bytes), node hash = SHA-256(0x01 || left || right);
- a tree of n > 1 leaves is split at the largest power of two smaller than n;
- a stored hash is addressed by (level, index): the complete subtree of 2**level leaves that starts at index * 2**level.

The verifier has its own arithmetic in `verify.proof` and never imports this module.

Source: docs/spec/merkle.md, RFC 9162, 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Protocol

from ledger.errors import FormatError

__all__ = [
    "EMPTY_ROOT",
    "Frontier",
    "HashReader",
    "consistency_proof",
    "inclusion_proof",
    "leaf_hash",
    "node_hash",
    "root_of",
    "subtree_hash",
    "tree_of",
]

EMPTY_ROOT: Final = sha256(b"").digest()
"""Root of the tree without leaves."""


class HashReader(Protocol):
    """Where stored hashes come from: tiles on disk, or a tree in memory."""

    def __call__(self, level: int, index: int, /) -> bytes:
        """Return the 32-byte hash of the complete subtree of 2**level leaves that starts at index * 2**level."""
        ...


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf: an entry's bytes."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of the node above two hashes."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The right edge of a growing tree: its complete subtrees, the largest first.

    Attributes:
        size: how many leaves.
        hashes: one hash for each bit set in `size`, from the highest bit to the lowest.
    """

    __slots__ = ("hashes", "size")

    def __init__(self) -> None:
        self.size = 0
        self.hashes: list[bytes] = []

    @classmethod
    def of(cls, size: int, hashes: Sequence[bytes]) -> Frontier:
        """Return the frontier of a tree of `size` leaves.

        Raises:
            FormatError: not one hash of 32 bytes for each bit set in `size`.
        """
        if size < 0 or len(hashes) != size.bit_count() or any(len(found) != 32 for found in hashes):
            raise FormatError(
                f"frontier: got {len(hashes)} hashes for size {size}, expected one of 32 bytes for each bit set",
                code="proof.range",
            )
        frontier = cls()
        frontier.size = size
        frontier.hashes = list(hashes)
        return frontier

    def append(self, leaf: bytes) -> None:
        """Add one leaf, given as its 32-byte leaf hash."""
        hashes = self.hashes
        size = self.size
        self.size = size + 1
        # Each trailing one bit of the size is a complete subtree that this leaf completes into one twice as large.
        while size & 1:
            leaf = sha256(b"\x01" + hashes.pop() + leaf).digest()
            size >>= 1
        hashes.append(leaf)

    def root(self) -> bytes:
        """Return the root of the tree so far."""
        if not self.hashes:
            return EMPTY_ROOT
        return _fold(self.hashes)

    def copy(self) -> Frontier:
        """Return a frontier that grows independently of this one."""
        copied = Frontier()
        copied.size = self.size
        copied.hashes = self.hashes.copy()
        return copied


def root_of(size: int, read: HashReader) -> bytes:
    """Return the root of the first `size` leaves.

    Raises:
        FormatError: `size` is negative.
    """
    return EMPTY_ROOT if size == 0 else subtree_hash(0, size, read)


def subtree_hash(start: int, end: int, read: HashReader) -> bytes:
    """Return the root of the leaves from `start` up to, not including, `end`.

    Raises:
        FormatError: the range is empty, or `start` is not a multiple of the smallest power of two that holds the range,
            so that its root is no part of the tree.
    """
    if not 0 <= start < end or start & ((1 << (end - start - 1).bit_length()) - 1):
        raise FormatError(f"subtree: got [{start}, {end}), expected an aligned range", code="proof.range")
    hashes = []
    while start < end:
        level = (end - start).bit_length() - 1
        hashes.append(read(level, start >> level))
        start += 1 << level
    return _fold(hashes)


def inclusion_proof(index: int, size: int, read: HashReader) -> tuple[bytes, ...]:
    """Return the proof that the leaf at `index` is in the tree of the first `size` leaves, the leaf's sibling first.

    At most ceil(log2(size)) hashes of 32 bytes.

    Raises:
        FormatError: not `0 <= index < size`.

    Source: RFC 9162, 2.1.3.1.
    """
    if not 0 <= index < size:
        raise FormatError(f"index: got {index}, expected from 0 up to {size - 1}", code="proof.range")
    path = []
    start, end = 0, size
    while end - start > 1:
        middle = _split(start, end)
        if index < middle:
            path.append(subtree_hash(middle, end, read))
            end = middle
        else:
            path.append(subtree_hash(start, middle, read))
            start = middle
    path.reverse()
    return tuple(path)


def consistency_proof(old: int, new: int, read: HashReader) -> tuple[bytes, ...]:
    """Return the proof that the tree of the first `new` leaves extends that of the first `old`; empty if they are equal.

    At most ceil(log2(new)) + 1 hashes of 32 bytes.

    Raises:
        FormatError: not `1 <= old <= new`; every tree extends the empty one, so nothing can prove it.

    Source: RFC 9162, 2.1.4.1.
    """
    if not 1 <= old <= new:
        raise FormatError(f"old size: got {old}, expected from 1 up to {new}", code="proof.range")
    path = []
    start, end = 0, new
    while end != old:
        middle = _split(start, end)
        if old <= middle:
            path.append(subtree_hash(middle, end, read))
            end = middle
        else:
            path.append(subtree_hash(start, middle, read))
            start = middle
    # The old tree itself is what the verifier holds; only a part of it has to be named.
    if start != 0:
        path.append(subtree_hash(start, end, read))
    path.reverse()
    return tuple(path)


def tree_of(leaves: Sequence[bytes]) -> HashReader:
    """Return a reader over leaf hashes of 32 bytes, with every level kept in memory: 64 bytes a leaf.

    The reader raises FormatError for a subtree that is not complete within `leaves`.
    """
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([node_hash(below[left], below[left + 1]) for left in range(0, len(below) - 1, 2)])

    def read(level: int, index: int, /) -> bytes:
        if not 0 <= level < len(levels) or not 0 <= index < len(levels[level]):
            raise FormatError(f"hash: got level {level} index {index}, which is not complete", code="proof.range")
        return levels[level][index]

    return read


def _split(start: int, end: int) -> int:
    """Return where a range of more than one leaf is split: after the largest power of two smaller than its length."""
    return start + (1 << ((end - start - 1).bit_length() - 1))


def _fold(hashes: Sequence[bytes]) -> bytes:
    """Return the root over complete subtrees, the largest first; at least one."""
    root = hashes[-1]
    for left in hashes[-2::-1]:
        root = sha256(b"\x01" + left + root).digest()
    return root
