"""The branch of a receipt: the tree below it and the path up to the seal that covers it, from the receipts at hand.

The same rules as `verify.tree`, for a part of a ledger: what is left out of a closed run cannot be seen from here.

Source: docs/spec/trees.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ledger.facts import Facts
from ledger.receipt import MAX_CHILDREN
from verify.report import Covered, Report
from verify.tree import MAX_LEVELS, MAX_TREE

__all__ = ["Branch", "Leaf"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A receipt at hand: the index of its entry, its id, its facts, and whether its own seal holds."""

    index: int
    id: str
    facts: Facts
    sealed: bool

    @property
    def run(self) -> str | None:
        """The run that it is of; an opening's is its own id."""
        return self.id if self.facts.kind == "opening" else self.facts.run


class Branch:
    """Receipts by id, and who commits whom among them."""

    def __init__(self, leaves: Mapping[str, Leaf], unread: AbstractSet[str], report: Report) -> None:
        """Take the receipts that were read, and the ids of those at hand that could not be."""
        self._leaves = leaves
        self._unread = unread
        self._report = report
        self._parents: dict[str, Leaf] = {}
        for leaf in sorted(leaves.values(), key=lambda found: found.index):
            for child in leaf.facts.children:
                first = self._parents.setdefault(child, leaf)
                if first is not leaf:
                    self._find("tree.repeated", leaf, f"child {child} is committed by entry {first.index} already")

    def close_of(self, opening: Leaf) -> Leaf | None:
        """Return the `run` receipt that closes the run of an opening, where it is at hand."""
        if opening.facts.kind != "opening":
            return None
        parent = self._parents.get(opening.id)
        return parent if parent is not None and parent.facts.kind == "run" and parent.facts.run == opening.id else None

    def in_closed_run(self, leaf: Leaf) -> bool:
        """Return whether the path up from a receipt of a run reaches the `run` receipt that closes it."""
        run = leaf.run
        seen: set[str] = set()
        above: Leaf | None = leaf
        while above is not None and above.id not in seen:
            if above.facts.kind == "run" and above.facts.run == run:
                return True
            seen.add(above.id)
            above = self._parents.get(above.id)
        return False

    def above(self, leaf: Leaf) -> set[str]:
        """Return the ids of the receipts at hand that commit a receipt, one above the other, up to the nearest sealed one."""
        found: set[str] = set()
        while not leaf.sealed:
            parent = self._parents.get(leaf.id)
            if parent is None or parent.id in found:
                break
            found.add(parent.id)
            leaf = parent
        return found

    def walk(self, top: Leaf) -> list[Leaf]:
        """Return the tree below a receipt, itself first, after checking all of it."""
        tree: list[Leaf] = []
        reached: set[str] = set()
        waiting: list[tuple[Leaf, int]] = [(top, 0)]
        while waiting:
            leaf, level = waiting.pop()
            if leaf.id in reached:
                self._find("tree.cyclic" if leaf is top else "tree.repeated", leaf, "it is reached more than once")
                continue
            reached.add(leaf.id)
            tree.append(leaf)
            if len(tree) > MAX_TREE:
                self._find("tree.too_many", top, f"more than {MAX_TREE} receipts in its tree")
                break
            if level > MAX_LEVELS:
                self._find("tree.too_deep", leaf, f"{level} levels below entry {top.index}")
                continue
            self._check_parent(leaf)
            for child_id in leaf.facts.children:
                child = self._leaves.get(child_id)
                if child is None and child_id in self._unread:
                    why = f"child {child_id} of entry {leaf.index} could not be read"
                    self._report.skip("trees", "check.unreachable", why, asked=True)
                elif child is None:
                    self._find("tree.missing", leaf, f"child {child_id} is not at hand")
                elif self._may_commit(leaf, child):
                    waiting.append((child, level + 1))
        return tree

    def check_edges(self, leaves: Iterable[Leaf]) -> None:
        """Check what receipts commit, as far as both ends are at hand; of a child run, only where its opening is too."""
        for leaf in leaves:
            self._check_parent(leaf)
            for child_id in leaf.facts.children:
                child = self._leaves.get(child_id)
                if child is not None and (child.facts.kind != "run" or child.facts.run in self._leaves):
                    self._may_commit(leaf, child)

    def attribute(self, subject: Leaf, tree: list[Leaf]) -> tuple[Covered, tuple[str, ...]]:
        """Return how the receipts of a tree are covered, and the path from the subject up to its seal."""
        covered, bare = self._attribute({leaf.id: leaf for leaf in (*tree, subject)})
        if any(leaf.id == subject.id for leaf in bare):
            message = "no seal covers it: its run is open"
            self._report.find("attribution", "receipt.unattributed", where=_where(subject), message=message)
        if bare and subject.sealed:
            message = f"{len(bare)} receipts below it have no seal above them"
            self._report.find("attribution", "receipt.unattributed", where=_where(subject), message=message)
        return covered, self._path(subject)

    def attribute_each(self, leaves: Iterable[Leaf]) -> Covered:
        """Return how receipts are covered, each of which is asked for."""
        covered, bare = self._attribute({leaf.id: leaf for leaf in leaves})
        for leaf in bare:
            message = "no seal covers it: its run is open, or the seal is not at hand"
            self._report.find("attribution", "receipt.unattributed", where=_where(leaf), message=message)
        return covered

    def _attribute(self, chosen: Mapping[str, Leaf]) -> tuple[Covered, list[Leaf]]:
        """Return how receipts are covered, and those that no seal covers, the last first."""
        own = by_root = 0
        bare: list[Leaf] = []
        covers: dict[str, Leaf | None] = {}
        # A parent stands after its children, so from the last to the first each parent is known before its children.
        for leaf in sorted(chosen.values(), key=lambda found: -found.index):
            if leaf.sealed:
                own += 1
                covers[leaf.id] = leaf
                continue
            cover = self._cover(leaf, covers)
            covers[leaf.id] = cover
            if cover is None:
                bare.append(leaf)
            elif (cover.facts.name, cover.facts.key, cover.facts.ledger, cover.run) == (
                leaf.facts.name, leaf.facts.key, leaf.facts.ledger, leaf.run,
            ):  # fmt: skip
                by_root += 1
            else:
                self._report.find(
                    "attribution",
                    "receipt.borrowed_issuer",
                    where=_where(leaf),
                    message=f"the sealed receipt that commits it, entry {cover.index}, is of another issuer, ledger or run",
                )
        self._report.ran("attribution", own + by_root)
        return Covered(own, by_root, len(bare)), bare

    def _cover(self, leaf: Leaf, known: dict[str, Leaf | None]) -> Leaf | None:
        """Return the nearest sealed receipt above an unsealed one."""
        seen: set[str] = set()
        above = self._parents.get(leaf.id)
        while above is not None and above.id not in seen:
            if above.sealed:
                return above
            if above.id in known:
                return known[above.id]
            seen.add(above.id)
            above = self._parents.get(above.id)
        return None

    def _path(self, subject: Leaf) -> tuple[str, ...]:
        path = [subject.id]
        leaf = subject
        while not leaf.sealed:
            above = self._parents.get(leaf.id)
            if above is None or above.id in path:
                return ()
            path.append(above.id)
            leaf = above
        return tuple(path)

    def _check_parent(self, leaf: Leaf) -> None:
        facts = leaf.facts
        if len(facts.children) > MAX_CHILDREN:
            self._find("tree.too_many", leaf, f"{len(facts.children)} children")
        if len(set(facts.children)) != len(facts.children):
            self._find("tree.repeated", leaf, "a child is listed twice")
        if facts.kind == "run" and (not facts.children or facts.children[0] != facts.run):
            self._find("tree.order", leaf, "the first child of the run is not its opening")
        if facts.kind == "outcome":
            intent = self._leaves.get(facts.intent or "")
            if not facts.children or facts.children[0] != facts.intent:
                self._find("tree.order", leaf, "the first child of the outcome is not its intent")
            elif intent is not None and intent.facts.kind != "intent":
                self._find("tree.order", leaf, f"the outcome settles a receipt of kind {intent.facts.kind}")

    def _may_commit(self, parent: Leaf, child: Leaf) -> bool:
        """Return whether a receipt may commit another, after saying why not."""
        if child.index >= parent.index:
            self._find("tree.missing", parent, f"child {child.id} does not stand before it")
            return False
        kind = child.facts.kind
        if kind == "run":
            opening = self._leaves.get(child.facts.run or "")
            lawful = opening is not None and opening.facts.parent_opening == parent.run
        else:
            lawful = child.run == parent.run and kind in {"opening", "intent", "outcome", "decision", "step"}
        if not lawful:
            self._find("tree.missing", parent, f"child {child.id}, a {kind}, is not of its run")
        elif kind == "opening" and parent.facts.kind != "run":
            self._find("tree.order", parent, f"a {parent.facts.kind} commits the opening")
        return True

    def _find(self, code: str, leaf: Leaf, message: str) -> None:
        self._report.find("trees", code, where=_where(leaf), message=message)


def _where(leaf: Leaf) -> str:
    return f"entry {leaf.index}"
