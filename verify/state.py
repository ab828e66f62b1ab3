"""The state of a fold over a ledger at the end of a commit, and whether it fits what is there now.

- It is bound to the bytes seen (segments, size, digest of the last entry, last head line, hashes of the leaves), to the trust,
  to what was asked for and to the version of the verifier.
- The last commit is read and compared again (`unlike`).

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from ledger import canonical
from ledger.digest import digest
from ledger.entry import ENTRY_SCHEMA
from ledger.line import ENTRY_PREFIX
from ledger.version import VERSION
from verify.chain import ChainPoint, Segment
from verify.heads import HeadTotals
from verify.ids import IdSet
from verify.options import Options
from verify.receipts import ReceiptState
from verify.report import NameState

__all__ = ["Binding", "LedgerCounts", "LedgerState", "binding", "counts_of", "unlike"]

_SUFFIX: Final = b'Z","schema":"' + ENTRY_SCHEMA.encode("ascii") + b'"}'


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """What a state counted: ids, receipts, seals, receipts under a sealed root, closed runs, receipts that rules bear on."""

    ids: int = 0
    receipts: int = 0
    own_seals: int = 0
    by_root: int = 0
    closed_runs: int = 0
    ruled: int = 0


@dataclass(frozen=True, slots=True)
class LedgerState:
    """A fold over a ledger at the end of a commit.

    `good` says that the verdict on everything before was good, so that only what follows is asked for. `files` holds the first
    index and the size of each segment, of the last one up to the end of the commit; `watch` is the size whose root was wanted.
    It shares what it holds with its fold.
    """

    good: bool
    files: tuple[tuple[int, int], ...]
    point: ChainPoint
    totals: HeadTotals
    watch: int | None
    ids: IdSet
    report: tuple[NameState, ...]
    receipts: ReceiptState | None

    @property
    def segment(self) -> int:
        """First index of the segment that the last commit stands in."""
        return self.files[-1][0]

    @property
    def offset(self) -> int:
        """Where in that segment the next commit begins."""
        return self.files[-1][1]


@dataclass(frozen=True, slots=True)
class Binding:
    """What a state is good for: digests of the trust and of what was asked for, version of the verifier."""

    trust: str | None
    asked: str
    version: str


def binding(trust: str | None, options: Options) -> Binding:
    """Return what a state under a trust (its digest) and options is good for."""
    asked = {"bytes_only": options.bytes_only, "every_head": options.every_head, "accept": list(options.accept)}
    return Binding(trust, digest(canonical.encode(asked)), VERSION)


def counts_of(state: LedgerState) -> LedgerCounts:
    """Return what a state counted."""
    receipts = state.receipts or ReceiptState()
    trees = receipts.trees
    return LedgerCounts(
        len(state.ids),
        receipts.receipts,
        receipts.own_seals,
        trees.by_root,
        len(trees.closed_runs),
        receipts.rules.seen,
    )


def unlike(state: LedgerState, segment: Segment) -> str | None:
    """Return why a segment does not end its commit where the state says, with that entry and head line; None if it does."""
    data, end = segment.data, state.offset
    if segment.first_index != state.segment or len(data) < end or data[end - 1 : end] != b"\n":
        return f"{segment.name} is not what it was: no line ends at byte {end}"
    start = data.rfind(b"\n", 0, end - 1) + 1
    if data[start : end - 1] != state.point.head.line:
        return f"{segment.name} is not what it was: another head line ends at byte {end}"
    before = data.rfind(b"\n", 0, start - 1) + 1
    cut = data.find(_SUFFIX, before, start) + len(_SUFFIX)
    entry = data[before + len(ENTRY_PREFIX) : cut]
    if not data.startswith(ENTRY_PREFIX, before) or sha256(entry).hexdigest() != state.point.previous:
        return f"{segment.name} is not what it was: another entry stands before byte {start}"
    return None
