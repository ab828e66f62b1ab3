"""runx in our words: a receipt tree is a run, a graph inside it a step, a leaf an act.

- Trees are built over all receipts that are imported together; a receipt that several parents commit stands where it is met
  first. One id with two bodies is not mapped at all: nobody can say which of them happened.
- `failed`, `killed` and `timed_out` are `ambiguous`: nothing in a receipt proves that nothing was done.
- What an act cost is not in a receipt of 0.8.2, and neither is a time when it began.

Source: docs/spec/words.md, "runx".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ledger.canonical import JsonObject
from ledger.importing.facts import CallFact, CallStatus, Fact, Facts, RunFact, StepFact, name_of
from ledger.members import Actor
from ledger.words import Reason, RunStatus
from verify.foreign.mapping import EarlierOf, Given
from verify.foreign.runx.receipt import Receipt, parse_receipt
from verify.foreign.runx.tree import child_id
from verify.foreign.strict import ReadError, lines

__all__ = ["MAPPING", "RECEIPT", "facts"]

MAPPING: Final = "runx/1"
RECEIPT: Final = "runx.receipt"
"""Correlation that names the receipt at the root of a tree."""
_HARNESS: Final = ("runx:harness:", "hrn_")
_RUNS: Final[Mapping[str, tuple[RunStatus, Reason | None]]] = {
    "closed": (RunStatus.COMPLETED, None),
    "deferred": (RunStatus.INCOMPLETE, None),
    "superseded": (RunStatus.SUPERSEDED, Reason.RUN_SUPERSEDED),
    "declined": (RunStatus.DECLINED, None),
    "blocked": (RunStatus.BLOCKED, None),
    "failed": (RunStatus.FAILED, None),
    "killed": (RunStatus.KILLED, None),
    "timed_out": (RunStatus.KILLED, Reason.LIMIT),
}
_CALLS: Final[Mapping[str, tuple[CallStatus, Reason | None]]] = {
    "closed": ("committed", None),
    "deferred": ("waiting", Reason.APPROVAL_REQUIRED),
    "superseded": ("blocked", Reason.RUN_SUPERSEDED),
    "declined": ("denied", Reason.APPROVAL_DENIED),
    "blocked": ("blocked", Reason.NOT_EXECUTED),
    "failed": ("ambiguous", Reason.EXCEPTION),
    "killed": ("ambiguous", Reason.CANCELLED),
    "timed_out": ("ambiguous", Reason.LIMIT),
}
_REFUSALS: Final = {
    "authority_denied": Reason.POLICY_DENIED,
    "cap_exceeded": Reason.LIMIT,
    "preflight_refused": Reason.POLICY_DENIED,
}
_STEPS: Final[Mapping[str, Literal["completed", "failed", "blocked"]]] = {
    "closed": "completed",
    "blocked": "blocked",
    "declined": "blocked",
    "deferred": "blocked",
    "superseded": "blocked",
}
_MOST_LEVELS: Final = 64


@dataclass(frozen=True, slots=True)
class _Node:
    document: str
    receipt: Receipt


def facts(given: Sequence[Given], earlier: EarlierOf) -> Facts:
    """Return what receipts of runx say, a run for each tree; other documents of runx hold no acts."""
    del earlier  # a receipt says what it says once
    nodes: dict[str, dict[str, _Node]] = {}
    for each in given:
        for receipt in _receipts(each):
            if not receipt.misfits:
                nodes.setdefault(receipt.id, {}).setdefault(receipt.digest_actual, _Node(each.digest, receipt))
    notes = [
        f"receipt {id_[:19]}: {len(found)} bodies, none is mapped" for id_, found in nodes.items() if len(found) > 1
    ]
    single = {id_: next(iter(found.values())) for id_, found in nodes.items() if len(found) == 1}
    committed = {child_id(reference) for node in single.values() for reference in node.receipt.children}
    placed: set[str] = set()
    runs = [
        _run(node, single, placed)
        # Receipts that only commit one another have no root; the first of them stands for one.
        for only_roots in (True, False)
        for id_, node in single.items()
        if id_ not in placed and (not only_roots or id_ not in committed)
    ]
    return Facts(tuple(runs), tuple(notes))


def _receipts(given: Given) -> Iterable[Receipt]:
    if given.found.kind not in ("receipt", "receipts"):
        return
    parts = [given.data] if given.found.kind == "receipt" else [line.data for line in lines(given.data)]
    for part in parts:
        try:
            yield parse_receipt(part)
        except ReadError:
            continue  # a finding of the verdict, and nothing to say


def _run(root: _Node, nodes: Mapping[str, _Node], placed: set[str]) -> RunFact:
    receipt = root.receipt
    disposition = receipt.value["seal"]["disposition"]
    status, reason = _RUNS[disposition]
    placed.add(receipt.id)
    members: tuple[Fact, ...] = _below(receipt, nodes, placed, 1)
    if receipt.value.get("acts") or not receipt.children:
        members = (_act(root), *members)
    return RunFact(
        _name(receipt),
        status,
        root.document,
        members,
        reason=reason,
        actor=_actor(receipt),
        adapter="runx",
        correlation={RECEIPT: receipt.id, "runx.issuer": receipt.kid},
    )


def _below(receipt: Receipt, nodes: Mapping[str, _Node], placed: set[str], level: int) -> tuple[Fact, ...]:
    found: list[Fact] = []
    for reference in receipt.children:
        id_ = child_id(reference)
        child = nodes.get(id_ or "")
        if child is None or id_ is None or id_ in placed or level > _MOST_LEVELS:
            continue
        placed.add(id_)
        below = _below(child.receipt, nodes, placed, level + 1)
        if not child.receipt.children:
            found.append(_act(child))
            continue
        inner: tuple[Fact, ...] = (_act(child), *below) if child.receipt.value.get("acts") else below
        disposition = child.receipt.value["seal"]["disposition"]
        found.append(StepFact(_name(child.receipt), _STEPS.get(disposition, "failed"), child.document, inner))
    return tuple(found)


def _act(node: _Node) -> CallFact:
    """Return what a receipt says was done, as one act."""
    receipt = node.receipt
    seal = receipt.value["seal"]
    status, reason = _CALLS[seal["disposition"]]
    if status == "blocked":
        reason = _REFUSALS.get(seal["reason_code"], reason)
    inline: JsonObject = {"receipt": receipt.id, "disposition": seal["disposition"]}
    return CallFact(
        _name(receipt),
        status,
        node.document,
        tool=f"runx.{name_of(receipt.value['subject']['kind'])}",
        reason=reason,
        inline=inline,
        resource=receipt.value["subject"]["ref"]["uri"],
    )


def _name(receipt: Receipt) -> str:
    """Return what a receipt calls itself: its harness."""
    uri: str = receipt.value["subject"]["ref"]["uri"]
    for prefix in _HARNESS:
        uri = uri.removeprefix(prefix)
    return name_of(uri)


def _actor(receipt: Receipt) -> Actor:
    models = (act["by"].get("model") for act in receipt.value.get("acts", []) if "by" in act)
    model = next((each for each in models if each), None)
    return Actor(agent=name_of(receipt.value["authority"]["actor_ref"]["uri"]), user="unknown", model=name_of(model))
