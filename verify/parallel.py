"""Segments judged apart, in any order and in other processes, and joined in order.

- `outline` reads from a segment what the next one depends on: its leaves, last entry and last head line. It judges nothing.
- `fold_part` folds a segment from an assumed point, with the same fold as in order, and gives up at the first finding.
- `LedgerFold.join` takes the part only if the point assumed is the one reached in order; else the segment is folded in order.

So a part can make a verdict sooner, never another one: what it assumed is compared, and all that is wrong is found in order.

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from ledger.entry import ENTRY_SCHEMA
from ledger.line import ENTRY_PREFIX, HEAD_PREFIX
from verify.chain import ChainFold, ChainPoint, Segment
from verify.errors import ApartError
from verify.heads import HeadPoint, HeadTotals
from verify.ids import IdSet
from verify.issuers import Issuers
from verify.options import Options
from verify.proof import FoldState, RootFold
from verify.receipts import ReceiptFold
from verify.report import Report
from verify.rules import ApartRules, RuleFold, RulePart
from verify.tree import Find, TreeFold
from verify.treepart import PartTrees, TreePart, fits, join_trees

__all__ = ["Informed", "Outline", "Part", "PartReceipts", "assume", "fold_part", "join_receipts", "outline"]

_SUFFIX = b'Z","schema":"' + ENTRY_SCHEMA.encode("ascii") + b'"}'
_START = len(ENTRY_PREFIX)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a segment says of itself, unjudged: its leaves, the digest and the time of its last entry, its last head line."""

    leaves: FoldState
    previous: str
    time: bytes
    line: bytes


@dataclass(frozen=True, slots=True)
class Informed:
    """An observation that a part made: name of the check, code, place, message and count."""

    name: str
    code: str
    where: str | None
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class PartReceipts:
    """The receipts of a part: the origin assumed, counts, issuers, trees, and what rules bear on."""

    origin: str | None
    receipts: int
    own_seals: int
    issuers: Issuers
    trees: TreePart
    rules: RulePart


@dataclass(frozen=True, slots=True)
class Part:
    """A segment judged from the point `start` to the point `end`, without any finding. `digest` is that of its bytes."""

    start: ChainPoint
    end: ChainPoint
    size_bytes: int
    digest: bytes
    heads: HeadTotals
    ids: IdSet
    informed: tuple[Informed, ...]
    receipts: PartReceipts | None


def outline(segment: Segment) -> Outline | None:
    """Return the outline of a segment, None where its last line is no head or it has no entry."""
    data = segment.data
    find, starts, hash_ = data.find, data.startswith, sha256
    leaves: list[bytes] = []
    entry = b""
    position = length = 0
    while (end := find(b"\n", position)) >= 0:
        if starts(ENTRY_PREFIX, position):
            start = position + _START
            # Entries next to each other mostly have one length.
            if not starts(_SUFFIX, start + length - len(_SUFFIX)):
                length = find(_SUFFIX, position, end) + len(_SUFFIX) - start
            entry = data[start : start + length]
            leaves.append(hash_(b"\0" + entry).digest())
        position = end + 1
    last = data.rfind(b"\n", 0, len(data) - 1) + 1
    line = data[last:-1]
    if not entry or position != len(data) or not line.startswith(HEAD_PREFIX):
        return None
    fold = RootFold(segment.first_index)
    fold.extend(leaves)
    return Outline(fold.snapshot(), sha256(entry).hexdigest(), entry[-len(_SUFFIX) - 23 : -len(_SUFFIX)], line)


def assume(point: ChainPoint, leaves: RootFold, found: Outline) -> ChainPoint:
    """Return the point after an outlined segment, if no key changes between `point` and its end.

    Args:
        point: a point reached in order.
        leaves: all leaves up to the end of the outlined segment.
        found: the outline of that segment.
    """
    head = HeadPoint(found.line, leaves.snapshot(), point.head.keys)
    return ChainPoint(found.previous, found.time, point.keyring, head)


class _Clean(Report):
    """A report that refuses findings and keeps observations."""

    def __init__(self) -> None:
        super().__init__()
        self.informed: list[Informed] = []

    def find(
        self, name: str, code: str, *, where: str | None = None, message: str = "", asked: bool = True, count: int = 1
    ) -> None:
        """Refuse a finding."""
        raise ApartError(f"{name}: {code} at {where}: {message} ({count}, {asked})")

    def inform(self, name: str, code: str, *, where: str | None = None, message: str = "", count: int = 1) -> None:
        """Keep an observation."""
        self.informed.append(Informed(name, code, where, message, count))

    def skip(self, name: str, code: str, message: str = "", *, asked: bool) -> None:
        """Refuse to leave something out."""
        raise ApartError(f"{name}: {code}: {message} ({asked})")


def fold_part(
    segment: Segment, start: ChainPoint, *, origin: str | None, watch: int | None, options: Options
) -> Part | None:
    """Return a segment judged from an assumed point, None where it has a finding or does not end with a commit.

    Args:
        segment: the bytes.
        start: the point assumed to be reached before them.
        origin: the ledger that the receipts before them name, as assumed.
        watch: the size whose root is wanted.
        options: what is asked for.
    """
    report = _Clean()
    receipts, trees, rules = None, None, ApartRules()
    if not options.bytes_only:

        def made(find: Find) -> TreeFold:
            nonlocal trees
            trees = PartTrees(find)
            return trees

        receipts = ReceiptFold(report, made, rules)
        receipts.origin = origin
    try:
        chain = ChainFold(
            report,
            every_head=options.every_head,
            watch=watch,
            consume=None if receipts is None else receipts.take,
            start=start,
        )
        chain.feed(segment)
    except ApartError:
        return None
    end = chain.point()
    if end is None or end.size == start.size or (receipts is not None and receipts.origin != origin):
        return None
    judged = None
    if receipts is not None and trees is not None:
        judged = PartReceipts(
            origin, receipts.receipts, receipts.own_seals, receipts.issuers, trees.part(), rules.part()
        )
    return Part(
        start,
        end,
        len(segment.data),
        sha256(segment.data).digest(),
        chain.heads.totals(),
        chain.ids,
        tuple(report.informed),
        judged,
    )


def join_receipts(fold: ReceiptFold, part: PartReceipts) -> bool:
    """Return whether the receipts of a part were joined; where not, nothing changed."""
    if fold.origin != part.origin or not fits(fold.trees, part.trees):
        return False
    if isinstance(fold.rules, RuleFold):
        fold.rules.join(part.rules)
    fold.receipts += part.receipts
    fold.own_seals += part.own_seals
    join_trees(fold.trees, part.trees, fold.issuers.join(part.issuers))
    return True
