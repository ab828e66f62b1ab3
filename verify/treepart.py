"""Receipt trees of one stretch of a ledger, checked without what stands before it, and joined behind it.

- Runs that open and close inside the stretch are judged there; 8 bytes are left of each.
- Runs that open inside it and stay open go over whole.
- Receipts of runs that opened before it are handed over in their order, for the fold that knows those runs.
- Where a stretch and what stands before it touch in any other way, they are not joined: the stretch is folded in order.

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.facts import Facts
from verify.errors import ApartError
from verify.tree import IN_RUN, Find, Node, OpenRun, TreeFold, prefix_of

__all__ = ["PartTrees", "TreePart", "fits", "join_trees"]


@dataclass(frozen=True, slots=True)
class _Receipt:
    """A receipt of a run that opened before; `issuer` is the number of its issuer."""

    index: int
    id_: str
    facts: Facts
    issuer: int
    sealed: bool


@dataclass(frozen=True, slots=True)
class _ChildRun:
    """The root of a run whose parent opened before."""

    index: int
    id_: str
    parent: str
    height: int
    count: int


@dataclass(frozen=True, slots=True)
class TreePart:
    """The receipt trees of a stretch: runs still open, prefixes of those closed, and what is left for the fold before it."""

    runs: dict[str, OpenRun]
    closed: tuple[int, ...]
    by_root: int
    left: tuple[_Receipt | _ChildRun, ...]


@dataclass(slots=True)
class _Seen:
    """Ids of runs: those that closed inside the stretch, and those that opened before it."""

    closed: set[str] = field(default_factory=set)
    before: set[str] = field(default_factory=set)


class PartTrees(TreeFold):
    """Follows the receipts of a stretch."""

    def __init__(self, find: Find) -> None:
        super().__init__(find)
        self._seen = _Seen()
        self._left: list[_Receipt | _ChildRun] = []

    def part(self) -> TreePart:
        """Return what the stretch came to."""
        return TreePart(self.runs, tuple(self.closed_runs), self.by_root, tuple(self._left))

    def add(self, index: int, id_: str, facts: Facts, issuer: int, *, sealed: bool) -> None:
        """Take the next receipt.

        Raises:
            ApartError: the stretch cannot be judged apart.
        """
        if facts.kind in IN_RUN:
            run = facts.run or ""
            if run not in self.runs:
                if run in self._seen.closed:
                    raise ApartError("a run is reopened or goes on after its end")
                self._seen.before.add(run)
                self._left.append(_Receipt(index, id_, facts._replace(receipt=None), issuer, sealed))
                return
        elif facts.kind == "opening" and (id_ in self._seen.closed or id_ in self._seen.before):
            raise ApartError("a run is reopened or goes on after its end")
        super().add(index, id_, facts, issuer, sealed=sealed)

    def add_unread(self, id_: str, run: str | None) -> None:
        """Refuse a receipt that cannot be read.

        Raises:
            ApartError: always.
        """
        raise ApartError(f"{id_} of run {run} cannot be read")

    def add_child_run(self, parent_id: str | None, index: int, id_: str, *, height: int, count: int) -> None:
        """Take the root of a closed run into the run that started it, or leave it to the fold that knows that run."""
        if parent_id is not None and parent_id not in self.runs:
            self._left.append(_ChildRun(index, id_, parent_id, height, count))
        super().add_child_run(parent_id, index, id_, height=height, count=count)

    def _close(self, run_id: str, index: int, id_: str, run: OpenRun, root: Node | None) -> None:
        self._seen.closed.add(run_id)
        super()._close(run_id, index, id_, run, root)


def fits(trees: TreeFold, part: TreePart) -> bool:
    """Return whether a stretch and the fold before it touch only in what the stretch left over."""
    opened = {*part.closed, *map(prefix_of, part.runs)}
    if any(prefix_of(id_) in opened for id_ in trees.runs):
        return False
    for left in part.left:
        if isinstance(left, _Receipt) and left.facts.run is not None:
            run = trees.runs.get(left.facts.run)
            # A run that opened before must not be one that opened inside too, nor have its parent inside.
            named = left.facts.run if run is None else run.parent
            if named is not None and prefix_of(named) in opened:
                return False
    return True


def join_trees(trees: TreeFold, part: TreePart, numbers: list[int]) -> None:
    """Join a stretch that fits behind a fold; `numbers` are the fold's of the stretch's issuers."""
    for left in part.left:
        if isinstance(left, _Receipt):
            trees.add(left.index, left.id_, left.facts, numbers[left.issuer], sealed=left.sealed)
        else:
            trees.add_child_run(left.parent, left.index, left.id_, height=left.height, count=left.count)
    for run in part.runs.values():
        for node in run.nodes.values():
            if node.needs:
                node.needs = {numbers[issuer]: first for issuer, first in node.needs.items()}
    trees.runs.update(part.runs)
    trees.closed_runs.extend(part.closed)
    trees.by_root += part.by_root
