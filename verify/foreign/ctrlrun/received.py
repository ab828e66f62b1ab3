"""Receipts that a ledger received as they happened, held against a store.

The chain cannot show that its end was cut off and its head put right. What was received before the cut does: its documents name the
hash of the receipt before them, so those of this store are told from those of others by the links that lead from what is still
there to what is not.

- A receipt that was received is in the store, at its place and with its hash, or was pruned.
- Receipts that no link joins with the store are of another one, and nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from verify.foreign.ctrlrun.chain import Chain, Head
from verify.foreign.ctrlrun.reading import canonical_bytes, read, sha256_of
from verify.foreign.ctrlrun.words import GENESIS
from verify.report import Report

__all__ = ["Received"]


class Received:
    """Takes documents, then the places of a chain as they are walked, and reports what is not there."""

    def __init__(self, documents: Iterable[bytes], checkpoint: Head | None) -> None:
        self._pruned = 0 if checkpoint is None else checkpoint[0]
        self._links: dict[str, tuple[int, str, str]] = {}
        """Hash of a received receipt -> its place, the hash before it, and its id."""
        self._there: set[str] = set() if checkpoint is None else {checkpoint[1]}
        for data in documents:
            self._take(data)

    def __bool__(self) -> bool:
        """Whether there is anything to hold against the store."""
        return bool(self._links)

    def _take(self, data: bytes) -> None:
        reading = read(data)
        value = reading.value
        if type(value) is not dict:
            return
        seq = value.get("seq")
        canonical = canonical_bytes(value, plain=reading.plain)
        if canonical is not None and type(seq) is int:
            self._links[sha256_of(canonical)] = seq, str(value.get("prev_hash")), str(value.get("receipt_id"))

    def place(self, chain: Chain) -> None:
        """Take the last row that was walked."""
        if chain.last_hash is not None:
            self._there.add(chain.last_hash)

    def finish(self, report: Report) -> None:
        """Report on all that was taken."""
        here = self._here()
        if not here:
            return
        report.ran("received", len(here))
        lost = sorted((self._links[each][0], self._links[each][2]) for each in here if each not in self._there)
        for seq, id_ in lost:
            if seq > self._pruned:
                said = f"{id_} was received at {seq} and is not in the store: cut, altered, or an old copy"
                report.find("received", "ctrlrun.shorter", where=f"seq {seq}", message=said)

    def _here(self) -> set[str]:
        """Return the hashes of the received receipts that are of this store: those in it, and those that links join with it."""
        found = self._links.keys() & self._there
        after: dict[str, list[str]] = {}
        for hash_, (_, previous, _) in self._links.items():
            after.setdefault(previous, []).append(hash_)
        waiting = [each for each in (*self._there,) if each in after and each != GENESIS]
        joined = set(found)
        # What stands before a received receipt of this store is of it too, and so is all that follows either.
        for hash_ in found:
            waiting.append(hash_)
            previous = self._links[hash_][1]
            while previous in self._links and previous not in joined:
                joined.add(previous)
                waiting.append(previous)
                previous = self._links[previous][1]
        while waiting:
            for hash_ in after.get(waiting.pop(), ()):
                if hash_ not in joined:
                    joined.add(hash_)
                    waiting.append(hash_)
        return joined
