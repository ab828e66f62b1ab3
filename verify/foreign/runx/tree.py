"""Receipt trees of runx: a parent commits each child by id and digest, a child names nobody.

`walk_tree` is the rule of 0.8.2, under its names and with its paths. `committed_once` is what 0.12 states beyond it: each receipt
is committed once, a tree holds at most 30,002 receipts and 64 levels below its root. The names 0.12 has for these are not
published; those here are ours.

- A child may have been read more than once; identical bodies are one receipt, different ones under one id are ambiguous.
- The walk holds the path it is on and the deepest level at which each receipt was seen: a shared child is not walked twice.

Source: runx 0.8.2 and its tree oracle; the prose of 0.12.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from ledger.canonical import JsonObject
from ledger.digest import digest
from verify.foreign.runx.receipt import Receipt

__all__ = ["MAX_RECEIPTS", "Node", "Rules", "TreeFinding", "committed_once", "graph_locator", "walk_tree"]

MAX_RECEIPTS: Final = 30_002
"""Receipts in a tree of 0.12."""
_REFERENCE: Final = re.compile(r"runx:receipt:(.+)")


@dataclass(frozen=True, slots=True)
class TreeFinding:
    """One finding in the words of a tree report (`ChildReceiptMissing`), and its path."""

    code: str
    path: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """Bounds of a walk. `strict` asks that the parent commits the digest too; `parent_links` that the child names its parent."""

    depth: int = 64
    breadth: int = 1_024
    strict: bool = True
    parent_links: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """What a walk needs of a receipt: who it is, whom it commits, and whom it names as its parent, if anybody."""

    id: str
    digest: str
    digest_holds: bool
    children: Sequence[JsonObject]
    parent: str | None

    @classmethod
    def of(cls, receipt: Receipt) -> Node:
        """Return the node of a receipt."""
        lineage = receipt.value.get("lineage")
        parent = lineage.get("parent") if isinstance(lineage, dict) else None
        uri = parent.get("uri") if isinstance(parent, dict) else None
        holds = receipt.digest == receipt.digest_actual
        return cls(receipt.id, receipt.digest, holds, receipt.children, uri if isinstance(uri, str) else None)


@dataclass(slots=True)
class _Walk:
    rules: Rules
    supplied: Sequence[Node]
    label: str
    fails: Callable[[str], bool]
    by_id: dict[str, list[int]]
    findings: list[TreeFinding] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)
    """Place of a supplied receipt -> the deepest level at which it was walked."""

    def find(self, code: str, path: str, message: str = "") -> None:
        self.findings.append(TreeFinding(code, path, message))

    def walk(self, node: Node, prefix: str, level: int, above: tuple[str, ...]) -> None:
        children = node.children
        if len(children) > self.rules.breadth:
            message = f"got {len(children)} children, expected at most {self.rules.breadth}"
            self.find("ChildReceiptBreadthLimit", f"{prefix}lineage.children", message)
        for place, reference in enumerate(children[: self.rules.breadth]):
            path = f"{prefix}lineage.children[{place}]"
            child = self._resolve(node, reference, path, level, above)
            if child is None:
                continue
            if self.seen.get(child, -1) < level + 1:
                self.seen[child] = level + 1
                found = self.supplied[child]
                self.walk(found, f"{self.label}[{child}].", level + 1, (*above, found.id))

    def _resolve(self, node: Node, reference: JsonObject, path: str, level: int, above: tuple[str, ...]) -> int | None:
        """Return the place of the child to walk into, None where there is none."""
        id_ = child_id(reference)
        if id_ is None:
            self.find("ChildReceiptRefMalformed", path, "the reference is not 'runx:receipt:' and an id")
            return None
        if level + 1 > self.rules.depth:
            self.find("ChildReceiptDepthLimit", path, f"got more than {self.rules.depth} levels")
            return None
        if self.fails(id_):
            self.find("ChildReceiptResolverError", path, "the receipt cannot be read")
            return None
        if id_ in above:
            self.find("ChildReceiptCycle", path, "the receipt is among its own descendants")
            return None
        places = self.by_id.get(id_, [])
        if not places:
            self.find("ChildReceiptMissing", path, "the receipt is not there")
            return None
        if len(places) > 1:
            self.find("ChildReceiptAmbiguous", path, f"{len(places)} receipts have this id")
            return None
        child = self.supplied[places[0]]
        if self.rules.strict and not (child.digest_holds and reference.get("locator") == child.digest):
            self.find("ChildReceiptDigestMismatch", path, "the digest committed is not that of the receipt")
        parent = child.parent
        if (parent is not None or self.rules.parent_links) and parent != f"runx:receipt:{node.id}":
            self.find("ChildReceiptParentMismatch", f"{path}.lineage.parent", "the child names another parent, or none")
        return places[0]


def child_id(reference: JsonObject) -> str | None:
    """Return the id that a reference to a receipt names, None where it is none."""
    uri = reference.get("uri")
    match = _REFERENCE.fullmatch(uri) if isinstance(uri, str) and reference.get("type") == "receipt" else None
    return match[1] if match is not None else None


def walk_tree(
    root: Node,
    supplied: Sequence[Node],
    *,
    rules: Rules = Rules(),
    label: str = "children",
    fails: Callable[[str], bool] = lambda _: False,
) -> tuple[TreeFinding, ...]:
    """Return what the rule of 0.8.2 finds in a tree, in its order.

    Args:
        root: where the tree begins.
        supplied: every other receipt of the tree.
        rules: bounds.
        label: what paths call the supplied receipts.
        fails: says of which ids reading failed.
    """
    by_id: dict[str, list[int]] = {}
    for place, node in enumerate(supplied):
        by_id.setdefault(node.id, []).append(place)
    state = _Walk(rules, supplied, label, fails, by_id)
    first: set[str] = set()
    for place, node in enumerate(supplied):
        if node.id in first:
            state.find("DuplicateChildReceipt", f"{label}[{place}].id", "another receipt has this id")
        first.add(node.id)
    state.walk(root, "", 0, (root.id,))
    for place in range(len(supplied)):
        if place not in state.seen:
            state.find("OrphanChildReceipt", f"{label}[{place}].id", "nothing in the tree commits it")
    return tuple(state.findings)


def committed_once(root: Node, supplied: Sequence[Node]) -> tuple[TreeFinding, ...]:
    """Return what 0.12 refuses in a tree besides: a receipt committed twice, too many receipts, too many levels."""
    places = {node.id: node for node in (*supplied, root)}
    findings: list[TreeFinding] = []
    parent_of: dict[str, str] = {}
    level, deepest, reached = [root], 0, {root.id}
    while level:
        below: list[Node] = []
        for node in level:
            for place, reference in enumerate(node.children):
                id_ = child_id(reference)
                child = None if id_ is None else places.get(id_)
                if id_ is None or child is None:
                    continue
                if id_ in parent_of:
                    path = f"{node.id}.lineage.children[{place}]"
                    findings.append(TreeFinding("committed_twice", path, f"{parent_of[id_][:15]} commits it too"))
                    continue
                parent_of[id_] = node.id
                if id_ not in reached:
                    reached.add(id_)
                    below.append(child)
        level = below
        deepest += bool(below)
    if len(reached) > MAX_RECEIPTS:
        findings.append(TreeFinding("too_many_receipts", "", f"got {len(reached)}, expected at most {MAX_RECEIPTS}"))
    if deepest > Rules().depth:
        findings.append(TreeFinding("too_many_levels", "", f"got {deepest} below the root, expected at most 64"))
    return tuple(findings)


def graph_locator(receipt: Receipt) -> TreeFinding | None:
    """Return what is wrong with the commitment to the children that the id of a graph covers, None if nothing is.

    Since about 0.8 a graph's `subject.ref.locator` is the digest of the list of its children's references.
    """
    subject = receipt.value.get("subject")
    reference = subject.get("ref") if isinstance(subject, dict) and subject.get("kind") == "graph" else None
    locator = reference.get("locator") if isinstance(reference, dict) else None
    if locator is None:
        return None
    expected = digest(orjson.dumps([child.get("uri") for child in receipt.children]))
    if locator == expected:
        return None
    return TreeFinding("graph_locator", "subject.ref.locator", "it is not the digest of the children's references")
