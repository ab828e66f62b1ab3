"""Anchors: places and hashes of the chain, as somebody outside the store vouched for them, held against the chain.

ctrlrun asks the provider what it holds. Here there is no provider to ask: the copies in the store's own table are held against the
chain, so they can accuse and never acquit, and that the provider still vouches for them is not established. Where tokens are
signed heads of this kind of ledger, `ledger verify` of that ledger is the provider's answer.

| name | what |
|---|---|
| `anchor_broken` | the place is gone and no prune accounts for it, or its row has another hash |
| `anchor_missing`, `anchor_repudiated` | only the provider can say |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ledger.errors import clip
from verify.foreign.ctrlrun.chain import Head
from verify.foreign.ctrlrun.tables import Row, integer, text
from verify.report import Report

__all__ = ["Anchors"]

_MAX_ANCHORS: Final = 1_000_000


class Anchors:
    """Takes the rows of `anchors`, then the stored hash at each place of the chain, and reports what does not meet."""

    def __init__(self, rows: Iterable[Row], checkpoint: Head | None) -> None:
        self._checkpoint = checkpoint
        self._wanted: dict[int, list[str]] = {}
        self._anchored_checkpoint = False
        self.count = 0
        self.superseded = 0
        self.newest = 0
        for row in rows:
            seq, hash_ = integer(row.get("seq")), text(row.get("hash"))
            if seq is None or hash_ is None or self.count >= _MAX_ANCHORS:
                continue
            self.count += 1
            self.newest = max(self.newest, seq)
            self._wanted.setdefault(seq, []).append(hash_)
            if text(row.get("kind")) == "checkpoint" and (seq, hash_) == checkpoint:
                self._anchored_checkpoint = True
        self._met: set[int] = set()
        self._broken: list[tuple[int, str]] = []

    def place(self, seq: int, hash_: str | None) -> None:
        """Take the stored hash of a row of the chain."""
        wanted = self._wanted.get(seq)
        if wanted is None:
            return
        self._met.add(seq)
        for each in wanted:
            if each != hash_:
                self._broken.append((seq, f"{seq} has {clip(hash_)}, the anchor froze {clip(each)}"))

    def finish(self, report: Report) -> None:
        """Report on all that was taken."""
        if not self.count:
            return
        report.ran("anchors", self.count)
        for seq in sorted(self._wanted.keys() - self._met):
            if self._checkpoint is not None and seq <= self._checkpoint[0] and self._anchored_checkpoint:
                self.superseded += len(self._wanted[seq])
                continue
            self._broken.append((seq, f"{seq} is anchored and not there, and no anchored prune accounts for it"))
        for seq, said in sorted(self._broken):
            report.find("anchors", "ctrlrun.anchor_broken", where=f"seq {seq}", message=said)
        said = "the store's own copies were compared; whether the provider vouches for them it was not asked"
        report.find("anchors", "ctrlrun.anchor_unasked", message=said, asked=False, count=self.count)
