"""Receipt trees, checked in chain order while receipts pass by.

- A child stands before its parent, in the same run, and is committed once; a parent may also commit the root of a child run.
- `run` commits its opening first and then everything that is left; an `outcome` commits its intent first.
- Nothing but a resolution follows a `run`. Kinds that stand alone are linked, never committed.
- At most 10,000 children a receipt, 30,002 receipts a tree, 64 levels below its root.
- An unsealed receipt is attributed by the nearest sealed receipt that commits it, which must be of the same issuer.

Memory holds the receipts of open runs, and 8 bytes for each closed run.

Source: docs/spec/trees.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ledger.facts import Facts
from ledger.receipt import MAX_CHILDREN
from ledger.words import TREE_KINDS

__all__ = ["IN_RUN", "MAX_LEVELS", "MAX_TREE", "Find", "Node", "OpenRun", "TreeFold", "TreeState", "prefix_of"]

MAX_TREE: Final = 30_002
MAX_LEVELS: Final = 64

Find = Callable[[str, str, int, str], None]
"""Takes the name of a check, a code, the index of the entry and a message."""

_MAX_UNREAD: Final = 10_000
"""How many receipts that cannot be read are known by their ids."""
_MAX_LOOKUPS: Final = 1_000
"""How many receipts that stray are told apart; each costs a scan over the closed runs."""
IN_RUN: Final = frozenset(str(kind) for kind in TREE_KINDS) - {"opening"}
"""Kinds of receipts that belong to a run which was opened before."""


class Node:
    """A receipt that its run's root must reach: how high and how large its tree is, and whom its unsealed part needs."""

    __slots__ = ("bare", "committed", "count", "height", "index", "kind", "needs")

    def __init__(self, index: int, kind: str, height: int, count: int, bare: int, needs: dict[int, int] | None) -> None:
        self.index = index
        self.kind = kind
        self.height = height
        self.count = count
        self.bare = bare
        """How many unsealed receipts there are in its tree that no sealed receipt commits yet."""
        self.needs = needs
        """Of those, by the number of their issuer, the index of the first."""
        self.committed = False


@dataclass(slots=True)
class OpenRun:
    """A run without its `run` receipt: the index of its opening, its parent's id, and its receipts by id."""

    opening: int
    parent: str | None
    nodes: dict[str, Node] = field(default_factory=dict)
    overflow: bool = False
    """Whether it holds more receipts than a tree may, so that they are no longer followed."""
    unread: bool = False
    """Whether a receipt names it that could not be read, and may commit others."""


@dataclass(frozen=True, slots=True)
class TreeState:
    """A fold over trees at rest; see the attributes of `TreeFold`."""

    runs: dict[str, OpenRun] = field(default_factory=dict)
    closed_runs: array[int] = field(default_factory=lambda: array("Q"))
    by_root: int = 0
    blind: bool = False
    unsettled: int = 0
    strays: int = 0
    unread: frozenset[str] = frozenset()


class TreeFold:
    """Follows receipts in chain order and says what does not hold.

    Attributes:
        runs: open runs by id, in the order of their openings.
        by_root: how many unsealed receipts are attributed by a sealed receipt above them.
        blind: whether an entry passed by of which not even the receipt id is known.
        unsettled: how many questions stay open because receipts could not be read.
        unread: ids of receipts that could not be read.
        closed_runs: the first eight bytes of the id of each closed run.
        strays: how many receipts named a run that was not open.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self.blind = False
        self.unsettled = 0
        self.unread: set[str] = set()
        self.runs: dict[str, OpenRun] = {}
        self.closed_runs = array("Q")
        self.strays = 0
        self.by_root = 0

    def state(self) -> TreeState:
        """Return the state to resume from; it shares what it holds with the fold, which is not used after."""
        unread = frozenset(self.unread)
        return TreeState(self.runs, self.closed_runs, self.by_root, self.blind, self.unsettled, self.strays, unread)

    def resume(self, state: TreeState) -> None:
        """Go on from a state."""
        self.runs, self.closed_runs = state.runs, state.closed_runs
        self.by_root, self.blind = state.by_root, state.blind
        self.unsettled, self.strays, self.unread = state.unsettled, state.strays, set(state.unread)

    @property
    def closed(self) -> int:
        """How many runs are closed."""
        return len(self.closed_runs)

    def add(self, index: int, id_: str, facts: Facts, issuer: int, *, sealed: bool) -> None:
        """Take the next receipt; `issuer` numbers its issuer's name and key."""
        kind = facts.kind
        if kind in IN_RUN:
            run = self.runs.get(facts.run or "")
            if run is None:
                self._strayed(index, facts)
                return
            if run.overflow:
                if kind == "run":
                    self._close(facts.run or "", index, id_, run, None)
                return
            node = self._node(index, facts, run, issuer, sealed=sealed)
            if kind == "run":
                self._check_root(index, facts, run)
                self._close(facts.run or "", index, id_, run, node)
                return
            self._put(run, id_, node)
        elif kind == "opening":
            if id_ in self.runs:
                self._find("trees", "run.reopened", index, f"run {id_} was opened before")
                return
            run = self.runs[id_] = OpenRun(index, facts.parent_opening)
            run.nodes[id_] = _leaf(index, kind, issuer, sealed=sealed)

    def add_unread(self, id_: str, run: str | None) -> None:
        """Take the id of a receipt that cannot be read, and the run that it names: whatever it says, it is there."""
        if len(self.unread) < _MAX_UNREAD:
            self.unread.add(id_)
        else:
            self.blind = True
        open_run = self.runs.get(run or "")
        if open_run is not None:
            open_run.unread = True

    def unattributed(self) -> int:
        """Return how many unsealed receipts of open runs no seal covers."""
        return sum(node.bare for run in self.runs.values() for node in run.nodes.values() if not node.committed)

    def _strayed(self, index: int, facts: Facts) -> None:
        # Looked up among closed runs on this path only; a run id is a digest, so eight bytes of it name the run.
        run = facts.run or ""
        if self.blind or run in self.unread:
            self.unsettled += 1
            return
        self.strays += 1
        if self.strays <= _MAX_LOOKUPS and prefix_of(run) in self.closed_runs:
            self._find("trees", "tree.after_close", index, f"{facts.kind} of run {run}, which is closed")
        else:
            self._find("trees", "run.unknown_opening", index, f"{facts.kind} of run {run}, which was not opened")

    def _node(self, index: int, facts: Facts, run: OpenRun, issuer: int, *, sealed: bool) -> Node:
        """Return the node of a receipt, its children committed."""
        children = facts.children
        if not children:
            if facts.kind == "outcome":
                self._find("trees", "tree.order", index, "an outcome that commits nothing")
            return _leaf(index, facts.kind, issuer, sealed=sealed)
        height, count, bare = 0, 1, 0 if sealed else 1
        needs: dict[int, int] = {} if sealed else {issuer: index}
        for child in children:
            node = self._commit(index, facts, run, child)
            if node is None:
                continue
            if node.height > height:  # noqa: PLR1730  twice as fast as max()
                height = node.height
            count += node.count
            if node.needs is not None:
                if sealed:
                    self.by_root += node.bare
                    self._attribute(issuer, node.needs, index)
                else:
                    bare += node.bare
                    for needed, first in node.needs.items():
                        needs[needed] = min(first, needs.get(needed, first))
                node.needs = None
        height += 1
        if facts.kind == "outcome":
            self._check_outcome(index, facts, run.nodes)
        if height > MAX_LEVELS or count > MAX_TREE or len(children) > MAX_CHILDREN:
            self._out_of_bounds(index, height, count, len(children))
        return Node(index, facts.kind, height, count, bare, needs or None)

    def _out_of_bounds(self, index: int, height: int, count: int, children: int) -> None:
        if height > MAX_LEVELS:
            self._find("trees", "tree.too_deep", index, f"{height} levels below it")
        if count > MAX_TREE:
            self._find("trees", "tree.too_many", index, f"{count} receipts in its tree")
        if children > MAX_CHILDREN:
            self._find("trees", "tree.too_many", index, f"{children} children")

    def _commit(self, index: int, facts: Facts, run: OpenRun, child: str) -> Node | None:
        """Return the node of a child, committed from now on; None where it cannot be."""
        node = run.nodes.get(child)
        if node is None and (self.blind or child in self.unread):
            self.unsettled += 1
            return None
        if node is None:
            self._find("trees", "tree.missing", index, f"child {child} does not stand before it in this run")
            return None
        if node.committed:
            self._find("trees", "tree.repeated", index, f"child {child} is committed already")
            return None
        node.committed = True
        if node.kind == "opening" and facts.kind != "run":
            self._find("trees", "tree.order", index, f"a {facts.kind} commits the opening")
        return node

    def _attribute(self, issuer: int, needs: dict[int, int], index: int) -> None:
        for needed, first in needs.items():
            if needed != issuer:
                self._find(
                    "attribution",
                    "receipt.borrowed_issuer",
                    first,
                    f"unsealed; the sealed receipt that commits it, entry {index}, is of another issuer",
                )

    def _check_outcome(self, index: int, facts: Facts, nodes: dict[str, Node]) -> None:
        if facts.children[0] != facts.intent:
            self._find("trees", "tree.order", index, "the first child of the outcome is not its intent")
            return
        intent = nodes.get(facts.intent)
        if intent is not None and intent.kind != "intent":
            self._find("trees", "tree.order", index, f"the outcome settles a receipt of kind {intent.kind}")

    def _check_root(self, index: int, facts: Facts, run: OpenRun) -> None:
        if not facts.children or facts.children[0] != facts.run:
            self._find("trees", "tree.order", index, "the first child of the run is not its opening")
        for id_, node in run.nodes.items():
            if node.committed:
                continue
            if self.blind or run.unread:
                self.unsettled += 1
            else:
                self._find("trees", "tree.uncommitted", node.index, f"{node.kind} {id_} is left out of its closed run")

    def _close(self, run_id: str, index: int, id_: str, run: OpenRun, root: Node | None) -> None:
        del self.runs[run_id]
        self.closed_runs.append(prefix_of(run_id))
        if root is not None:
            self.add_child_run(run.parent, index, id_, height=root.height, count=root.count)

    def add_child_run(self, parent_id: str | None, index: int, id_: str, *, height: int, count: int) -> None:
        """Take the root of a closed run into the run that started it, where that is open."""
        parent = self.runs.get(parent_id or "")
        if parent is not None and not parent.overflow:
            # Its seal covers what is below; in the parent it waits for the call that started it.
            self._put(parent, id_, Node(index, "run", height, count, 0, None))

    def _put(self, run: OpenRun, id_: str, node: Node) -> None:
        run.nodes[id_] = node
        if len(run.nodes) > MAX_TREE:
            self._find("trees", "tree.too_many", node.index, f"more than {MAX_TREE} receipts in one run")
            run.overflow = True
            run.nodes.clear()


def _leaf(index: int, kind: str, issuer: int, *, sealed: bool) -> Node:
    return Node(index, kind, 0, 1, 0, None) if sealed else Node(index, kind, 0, 1, 1, {issuer: index})


def prefix_of(id_: str) -> int:
    """Return the first eight bytes of a receipt id, as closed runs are known by."""
    return int(id_[7:23], 16)
