"""A set of receipts: a store's folder, or receipts that came together; each judged, and every tree among them.

    sha256-<64 hex>.json        one receipt; older stores have `sha256:<64 hex>.json`, copies made on Windows U+F03A for the colon
    index.json, index.jsonl     what the store says it holds (0.8), the mark of a store that 0.12 wrote

Findings of single files have the store's names, those of trees the names of a tree report.
Beyond both, since their tree report looks at neither: one id with two bodies, and a receipt that two parents commit.

Source: runx 0.8.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger.canonical import JsonObject
from ledger.errors import clip
from verify.foreign.runx.receipt import RECEIPT_SCHEMA, KeyOf, Receipt, parse_receipt
from verify.foreign.runx.single import ReceiptVerdict, judge_receipt
from verify.foreign.runx.tree import Node, TreeFinding, child_id, committed_once, graph_locator, walk_tree
from verify.foreign.strict import ReadError, lines, read_object

__all__ = [
    "INDEX",
    "INDEX_OF_012",
    "SetVerdict",
    "TreeVerdict",
    "judge_set",
    "judge_store",
    "receipts_in",
    "store_name",
]

INDEX: Final = "index.json"
INDEX_OF_012: Final = "index.jsonl"
_OTHERS: Final = frozenset({INDEX, INDEX_OF_012, "effect-state.json", "provider-effects.json"})
_NAME = re.compile("sha256[-:\uf03a]([0-9a-f]{64})\\.json")


@dataclass(frozen=True, slots=True)
class TreeVerdict:
    """The verdict on one tree. `beyond` is what their report does not look at."""

    root: str
    receipts: tuple[str, ...]
    """Ids of the receipts in the tree, the root first, each once."""
    parent_missing: str | None
    findings: tuple[TreeFinding, ...]
    beyond: tuple[TreeFinding, ...]


@dataclass(slots=True)
class SetVerdict:
    """The verdict on a set of receipts."""

    receipts: dict[str, ReceiptVerdict] = field(default_factory=dict)
    """File -> the verdict on the receipt in it."""
    unreadable: dict[str, ReadError] = field(default_factory=dict)
    files: list[TreeFinding] = field(default_factory=list)
    """Findings about files and the index, in the store's words; the path is the file's name."""
    trees: list[TreeVerdict] = field(default_factory=list)
    conflicts: list[TreeFinding] = field(default_factory=list)
    """Ids with more than one body."""
    writer: str = "unknown"
    """`0.8` or `0.12`, told by the index; `unknown` where there is none."""

    @property
    def valid(self) -> bool:
        """Whether `runx verify` over the whole set finds nothing."""
        singles = all(verdict.valid for verdict in self.receipts.values())
        return singles and not self.unreadable and all(not tree.findings for tree in self.trees)

    def to_value(self) -> JsonObject:
        """Return the verdict in the shape of `runx verify --json`."""
        modes = {verdict.mode for verdict in self.receipts.values()}
        return {
            "signature_mode": "production" if "production" in modes else "local-development",
            "trees": [
                {
                    "root_receipt_id": tree.root,
                    "receipt_count": len(tree.receipts),
                    "parent_missing": tree.parent_missing,
                    "valid": not tree.findings,
                    "findings": [{"code": f.code, "path": f.path, "message": f.message} for f in tree.findings],
                }
                for tree in self.trees
            ],
            "unreadable_files": [{"file": name, "message": str(error)} for name, error in self.unreadable.items()],
            "valid": self.valid,
        }


def store_name(name: str) -> str | None:
    """Return the id that a file name of a store stands for, None where it is none."""
    match = _NAME.fullmatch(name)
    return f"sha256:{match[1]}" if match is not None else None


def judge_store(files: Mapping[str, bytes], key_of: KeyOf) -> SetVerdict:
    """Return the verdict on the files of a store's folder, by name."""
    verdict = judge_set({name: data for name, data in files.items() if _holds_receipt(name)}, key_of)
    for name, judged in verdict.receipts.items():
        named = store_name(name)
        if named is not None and judged.receipt is not None and judged.receipt.id != named:
            verdict.files.append(TreeFinding("IdFilenameMismatch", name, f"it holds {judged.receipt.id[:15]}"))
    if INDEX_OF_012 in files:
        verdict.writer = "0.12"
    elif INDEX in files:
        verdict.writer = "0.8"
        verdict.files.extend(_index_findings(files[INDEX], verdict))
    return verdict


def receipts_in(data: bytes) -> list[Receipt]:
    """Return the receipts that a text holds, alone or one a line; what cannot be read is left out."""
    try:
        return [parse_receipt(data)]
    except ReadError:
        found: list[Receipt] = []
    for line in lines(data):
        try:
            found.append(parse_receipt(line.data))
        except ReadError:
            continue
    return found


def judge_set(files: Mapping[str, bytes], key_of: KeyOf) -> SetVerdict:
    """Return the verdict on receipts that came together, by a name each."""
    verdict = SetVerdict()
    bodies: dict[str, dict[str, Receipt]] = {}
    for name, data in files.items():
        try:
            receipt = parse_receipt(data)
        except ReadError as error:
            verdict.unreadable[name] = error
            continue
        if receipt.value.get("schema") != RECEIPT_SCHEMA:
            message = f"got schema {clip(receipt.value.get('schema'))}"
            verdict.files.append(TreeFinding("WrongSchema", name, message))
            continue
        verdict.receipts[name] = judge_receipt(receipt, key_of)
        # Bodies are told apart by what is signed: another spelling of one signature is the same receipt.
        bodies.setdefault(receipt.id, {}).setdefault(receipt.digest_actual, receipt)
    for id_, found in bodies.items():
        if len(found) > 1:
            message = f"{len(found)} bodies have this id: {', '.join(sorted(found))}"
            verdict.conflicts.append(TreeFinding("ambiguous", id_, message))
    _judge_trees(verdict, [receipt for found in bodies.values() for receipt in found.values()])
    return verdict


def _judge_trees(verdict: SetVerdict, receipts: Sequence[Receipt]) -> None:
    nodes = [Node.of(receipt) for receipt in receipts]
    locators = {id(node): graph_locator(receipt) for node, receipt in zip(nodes, receipts, strict=True)}
    by_id: dict[str, list[Node]] = {}
    for node in nodes:
        by_id.setdefault(node.id, []).append(node)
    committed = {child_id(reference) for node in nodes for reference in node.children}
    reached: set[int] = set()
    # Receipts that only commit one another in a circle have no root: the first of each circle stands for one.
    for only_roots in (True, False):
        for node in nodes:
            if id(node) in reached or (only_roots and node.id in committed):
                continue
            members = _below(node, by_id)
            reached.update(id(member) for member in members)
            supplied = members[1:]
            beyond = [*committed_once(node, supplied)]
            beyond += [found for member in members if (found := locators[id(member)]) is not None]
            parent = node.parent.removeprefix("runx:receipt:") if node.parent is not None else None
            verdict.trees.append(
                TreeVerdict(
                    node.id,
                    tuple(dict.fromkeys(member.id for member in members)),
                    parent if parent not in by_id else None,
                    walk_tree(node, supplied, label="runtime_receipts"),
                    tuple(beyond),
                )
            )


def _below(root: Node, by_id: Mapping[str, Sequence[Node]]) -> list[Node]:
    """Return a root and everything that is reached from it, each once."""
    found, waiting, seen = [root], [root], {id(root)}
    while waiting:
        for reference in waiting.pop().children:
            for child in by_id.get(child_id(reference) or "", ()):
                if id(child) not in seen:
                    seen.add(id(child))
                    found.append(child)
                    waiting.append(child)
    return found


def _holds_receipt(name: str) -> bool:
    return name.endswith(".json") and name not in _OTHERS


def _index_findings(data: bytes, verdict: SetVerdict) -> list[TreeFinding]:
    """Return what the index says otherwise than the files; it proves nothing and can be made again."""
    try:
        entries = read_object(data).get("entries")
        listed = {entry["receipt_id"]: entry["file_name"] for entry in entries}  # type: ignore[union-attr]
    except (ReadError, TypeError, KeyError, AttributeError) as error:
        return [TreeFinding("MalformedIndex", INDEX, f"not read: {type(error).__name__}")]
    held = {judged.receipt.id: name for name, judged in verdict.receipts.items() if judged.receipt is not None}
    if listed != held:
        differ = len(set(listed.items()) ^ set(held.items()))
        return [TreeFinding("ReceiptIndexStale", INDEX, f"{differ} entries differ from the files")]
    return []
