"""Merkle, the verifier's half: check inclusion and consistency proofs, and recompute roots leaf by leaf.

- Nothing here comes from the prover (`ledger.merkle`), so an error in one is not an error in both.
- A proof must have exactly the number of hashes that its sizes ask for; each has 32 bytes.
- Every tree extends the empty one, so consistency with size 0 is refused: it would prove nothing.
- What does not hold raises; there is no boolean to forget.

Source: docs/spec/merkle.md, RFC 9162, 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from verify.errors import ProofError

__all__ = ["EMPTY_ROOT", "FoldState", "RootFold", "leaf_hash", "verify_consistency", "verify_inclusion"]

EMPTY_ROOT: Final = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""Root of the tree without leaves: SHA-256 of nothing."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf: SHA-256 over 0x00 and an entry's bytes."""
    return sha256(b"\x00" + data).digest()


def verify_inclusion(*, leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Return if `proof` shows that the leaf hash `leaf` stands at `index` in the tree of `size` leaves with `root`.

    `root` must come from a head that was verified: a proof against a root that nobody signed shows nothing.

    Raises:
        ProofError: `proof.malformed` if it cannot be a proof for this index and size, `proof.inclusion` if it leads elsewhere.

    Source: RFC 9162, 2.1.3.2.
    """
    if not 0 <= index < size:
        raise ProofError(f"index: got {index}, expected from 0 up to {size - 1}", code="proof.malformed")
    _check_hashes((leaf, root, *proof))
    # Up to the level where leaf and last leaf part, every level has a sibling; above it only where a bit of index is set.
    inner = (index ^ (size - 1)).bit_length()
    expected = inner + (index >> inner).bit_count()
    if len(proof) != expected:
        raise ProofError(
            f"inclusion proof: got {len(proof)} hashes, expected {expected} for index {index} of {size}",
            code="proof.malformed",
        )
    number, last, running = index, size - 1, leaf
    for sibling in proof:
        if number & 1 or number == last:
            running = _node(sibling, running)
            while number and not number & 1:
                number >>= 1
                last >>= 1
        else:
            running = _node(running, sibling)
        number >>= 1
        last >>= 1
    if last != 0 or running != root:
        raise ProofError(
            f"inclusion proof: index {index} of {size} leads to root {running.hex()[:16]}, expected {root.hex()[:16]}",
            code="proof.inclusion",
        )


def verify_consistency(
    *, old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Return if `proof` shows that the tree (`new_size`, `new_root`) begins with the tree (`old_size`, `old_root`).

    Raises:
        ProofError: `proof.malformed` if it cannot be a proof for these sizes, `proof.consistency` if it leads elsewhere.

    Source: RFC 9162, 2.1.4.2.
    """
    if not 1 <= old_size <= new_size:
        raise ProofError(f"old size: got {old_size}, expected from 1 up to {new_size}", code="proof.malformed")
    expected = _consistency_length(old_size, new_size)
    if len(proof) != expected:
        raise ProofError(
            f"consistency proof: got {len(proof)} hashes, expected {expected} for {old_size} to {new_size}",
            code="proof.malformed",
        )
    if old_size == new_size:
        if old_root != new_root:
            raise ProofError(f"consistency proof: two roots at size {new_size}", code="proof.consistency")
        return
    _check_hashes((old_root, new_root, *proof))
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    number, last = old_size - 1, new_size - 1
    while number & 1:
        number >>= 1
        last >>= 1
    old_running = new_running = path[0]
    for sibling in path[1:]:
        if number & 1 or number == last:
            old_running = _node(sibling, old_running)
            new_running = _node(sibling, new_running)
            while number and not number & 1:
                number >>= 1
                last >>= 1
        else:
            new_running = _node(new_running, sibling)
        number >>= 1
        last >>= 1
    if last != 0 or old_running != old_root or new_running != new_root:
        raise ProofError(
            f"consistency proof: {old_size} to {new_size} leads to other roots than the two heads",
            code="proof.consistency",
        )


@dataclass(frozen=True, slots=True)
class FoldState:
    """A fold at rest: the leaves [`start`, `size`) as the hashes of their maximal complete subtrees, left to right."""

    start: int
    size: int
    hashes: tuple[bytes, ...]


class RootFold:
    """Root of a growing range of leaves, by a binary counter: the carry out of a level is the node above two subtrees.

    A fold from 0 has a root. A fold from elsewhere stands for its range until `join` puts it behind the fold that ends there,
    so that ranges can be folded apart.

    Attributes:
        start: index of the first leaf.
        size: index after the last leaf; for a fold from 0, the number of leaves.
    """

    __slots__ = ("_edge", "_stack", "size", "start")

    def __init__(self, start: int = 0) -> None:
        if start < 0:
            raise ProofError(f"fold: got start {start}, expected 0 or more", code="proof.malformed")
        self.start = start
        self.size = start
        # Complete subtrees that wait for their right neighbours, left to right: each is larger than the next. Each stands there
        # after the byte 0x01, as a node begins.
        self._stack: list[bytes] = []
        # Complete subtrees whose left neighbour lies before `start`, left to right: they stand before all others.
        self._edge: list[bytes] = []

    @classmethod
    def resume(cls, state: FoldState) -> RootFold:
        """Return a fold that goes on from `state`.

        Raises:
            ProofError: the number of hashes is not that of the range, or a hash has not 32 bytes.
        """
        if state.size < state.start:
            raise ProofError(f"fold: got size {state.size} from start {state.start}", code="proof.malformed")
        fold = cls(state.start)
        levels = list(_levels(state.start, state.size))
        if len(levels) != len(state.hashes):
            raise ProofError(
                f"fold: got {len(state.hashes)} hashes, expected {len(levels)} for [{state.start}, {state.size})",
                code="proof.malformed",
            )
        _check_hashes(state.hashes)
        for level, found in zip(levels, state.hashes, strict=True):
            fold._add(level, found)
        return fold

    def append(self, leaf: bytes) -> None:
        """Add one leaf, given as its 32-byte leaf hash."""
        self._add(0, leaf)

    def append_root(self, leaf: bytes) -> bytes:
        """Add one leaf, given as its 32-byte leaf hash, to a fold from 0; return the root after it.

        Raises:
            ProofError: the fold does not start at 0, so it has no root.
        """
        if self.start != 0:
            raise self._rootless()
        stack, number, hash_ = self._stack, self.size, sha256
        self.size = number + 1
        while number & 1:
            leaf = hash_(stack.pop() + leaf).digest()
            number >>= 1
        root = leaf
        for left in reversed(stack):
            root = hash_(left + root).digest()
        stack.append(b"\x01" + leaf)
        return root

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add many leaves, given as their 32-byte leaf hashes; level by level, which is faster than one by one."""
        count, position = len(leaves), 0
        while count - position > 1:
            # The largest complete subtree that may start here and that the leaves fill.
            aligned = (self.size & -self.size) or 1 << 62
            width = min(aligned, 1 << ((count - position).bit_length() - 1))
            level, hashes = 0, leaves[position : position + width]
            while len(hashes) > 1:
                pairs = iter(hashes)
                hashes = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=True)]
                level += 1
            self._add(level, hashes[0])
            position += width
        if position < count:
            self.append(leaves[position])

    def join(self, after: RootFold) -> None:
        """Add the leaves of a fold that starts where this one ends.

        Raises:
            ProofError: it starts elsewhere.
        """
        if after.start != self.size:
            raise ProofError(
                f"fold: got a range from {after.start}, expected one from {self.size}", code="proof.malformed"
            )
        state = after.snapshot()
        for level, found in zip(_levels(state.start, state.size), state.hashes, strict=True):
            self._add(level, found)

    def root(self) -> bytes:
        """Return the root of the leaves so far.

        Raises:
            ProofError: the fold does not start at 0, so it has no root.
        """
        if self.start != 0:
            raise self._rootless()
        running = None
        for found in reversed(self._stack):
            running = found[1:] if running is None else sha256(found + running).digest()
        return EMPTY_ROOT if running is None else running

    def _rootless(self) -> ProofError:
        return ProofError(f"fold: a range from {self.start} has no root", code="proof.malformed")

    def snapshot(self) -> FoldState:
        """Return the state, to resume from or to send to another process."""
        return FoldState(self.start, self.size, (*self._edge, *(found[1:] for found in self._stack)))

    def _add(self, level: int, found: bytes) -> None:
        """Add a complete subtree of 2**level leaves; the size is a multiple of 2**level."""
        stack, number = self._stack, self.size >> level
        self.size += 1 << level
        while number & 1:
            if not stack:
                self._edge.append(found)
                return
            found = sha256(stack.pop() + found).digest()
            number >>= 1
        stack.append(b"\x01" + found)


def _levels(start: int, end: int) -> Iterator[int]:
    """Yield the levels of the maximal complete subtrees that make up [start, end), left to right."""
    while start < end:
        level = (end - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        yield level
        start += 1 << level


def _consistency_length(old: int, new: int) -> int:
    """Return how many hashes lead from size `old` to size `new`; 1 <= old <= new."""
    if old == new:
        return 0
    # The proof names the last complete subtree of the old tree (unless that is the whole old tree), then its siblings.
    level = (old & -old).bit_length() - 1
    number, last = (old - 1) >> level, (new - 1) >> level
    inner = (number ^ last).bit_length()
    return inner + (number >> inner).bit_count() + (1 if number else 0)


def _check_hashes(hashes: Sequence[bytes]) -> None:
    for found in hashes:
        if len(found) != 32:
            raise ProofError(f"hash: got {len(found)} bytes, expected 32", code="proof.malformed")


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
