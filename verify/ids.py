"""Receipt ids, each once: eight bytes an id in memory, equal prefixes compared in full on a second look."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from ledger.errors import FormatError

__all__ = ["IdSet"]

_FEW: Final = 16
"""Prefixes that came to a bucket which are rather looked for in it one by one."""


class IdSet:
    """The first eight bytes of every id so far, in 256 buckets by the first byte: 80 MB at 10,000,000 ids."""

    def __init__(self) -> None:
        self._buckets = [bytearray() for _ in range(256)]
        self._judged = [0] * 256
        """How many bytes of each bucket were looked at before, and hold no id twice."""

    def __len__(self) -> int:
        return sum(map(len, self._buckets)) >> 3

    def extend(self, ids: Iterable[bytes]) -> None:
        """Add ids of 32 bytes."""
        buckets = self._buckets
        for id_ in ids:
            bucket = buckets[id_[0]]
            bucket += id_[:8]

    def join(self, other: IdSet) -> None:
        """Add the ids of another set."""
        for bucket, more in zip(self._buckets, other._buckets, strict=True):
            bucket.extend(more)

    def mark_judged(self) -> None:
        """Take what is there now as looked at: who did so found no id twice."""
        self._judged = list(map(len, self._buckets))

    def buckets(self) -> tuple[bytearray, ...]:
        """Return the first eight bytes of each id, in 256 buckets by their first byte; not to be changed."""
        return tuple(self._buckets)

    @classmethod
    def of(cls, buckets: Iterable[bytes]) -> IdSet:
        """Return the set whose buckets are given.

        Raises:
            FormatError: another number of buckets, or bytes that are no prefixes of ids in theirs.
        """
        ids = cls()
        ids._buckets = list(map(bytearray, buckets))
        if len(ids._buckets) != 256 or any(len(each) % 8 for each in ids._buckets):
            raise FormatError("state: got another number of bytes than 256 buckets hold", code="state.malformed")
        if any(set(each[::8]) - {number} for number, each in enumerate(ids._buckets)):
            raise FormatError("state: got an id in the bucket of another first byte", code="state.malformed")
        return ids

    def suspects(self) -> set[bytes]:
        """Return the prefixes of eight bytes that stand more than once; different ids may share one.

        Where some were judged before, those among them that share a prefix may be left out, but for those that came again.
        """
        found: set[bytes] = set()
        for bucket, judged in zip(self._buckets, self._judged, strict=True):
            if judged and len(bucket) - judged <= 8 * _FEW:
                found |= _come_again(bucket, judged)
                continue
            prefixes = array("Q", bytes(bucket))
            if len(set(prefixes)) == len(prefixes):
                continue
            seen: set[int] = set()
            for prefix in prefixes:
                if prefix in seen:
                    found.add(array("Q", [prefix]).tobytes())
                seen.add(prefix)
        return found


def _come_again(bucket: bytearray, judged: int) -> set[bytes]:
    """Return the prefixes after the first `judged` bytes of a bucket that stand before them too."""
    found: set[bytes] = set()
    for place in range(judged, len(bucket), 8):
        prefix = bytes(bucket[place : place + 8])
        at = bucket.find(prefix, 0, place)
        while at % 8 and at != -1:
            at = bucket.find(prefix, at + 1, place)
        if at != -1:
            found.add(prefix)
    return found
