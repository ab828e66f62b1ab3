"""Rows of the derived state: keys in force, runs, receipts that wait; and how they are kept in SQLite.

Source: docs/spec/journal.md, "Derived files".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledger.merkle import Frontier
from ledger.storage.journal import Tail

__all__ = [
    "Keyring",
    "Pending",
    "Place",
    "RunState",
    "keyring_of",
    "pending_of",
    "row_of",
    "tail_of",
    "value_of",
]

Place = tuple[int, int, int]
"""Index, segment, offset of a receipt's line."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """Keys in force after the newest entry, and the first: texts of key ids."""

    origin: str = ""
    header: str = ""
    issuer_name: str = ""
    issuer_key: str = ""
    log_key: str = ""
    next_issuer: str | None = None
    next_log: str | None = None
    retired: tuple[str, ...] = ()
    """Keys of both roles that were in force once and never return."""


@dataclass(slots=True)
class RunState:
    """One run: where it opened, whether it closed, how large its tree is."""

    id: str
    index: int
    name: str
    closed: int | None
    """Index of the `run` receipt, None while open."""
    issuer_name: str
    issuer_key: str
    parent: str | None
    parent_intent: str | None
    root: str
    """Run id of the outermost run of the tree."""
    level: int
    """Levels above this run's receipts in the tree of the outermost run."""
    receipts: int
    """Receipts in the whole tree; counted at the outermost run, as the next two are."""
    unsettled: int = 0
    """Intents in the whole tree that nothing commits yet."""
    open: int = 1
    """Runs in the whole tree that are open."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A receipt of an open run that no receipt commits yet."""

    id: str
    run: str
    index: int
    kind: str
    height: int
    """Levels of the tree below it."""
    uncovered: bool
    """Whether it waits for a seal of the run's issuer above it."""
    intent: str | None
    """For the root of a child run: the intent of the call that started it."""
    attempts: bool = False
    """Whether it is an intent that attempts an effect or acts under a grant."""


def row_of(run: RunState) -> tuple[Any, ...]:
    """Return the row of a run, in the order of its columns."""
    return (
        run.id,
        run.index,
        run.name,
        run.closed,
        run.issuer_name,
        run.issuer_key,
        run.parent,
        run.parent_intent,
        run.root,
        run.level,
        run.receipts,
        run.unsettled,
        run.open,
    )


def pending_of(row: tuple[Any, ...]) -> Pending:
    """Return the receipt that a row is of."""
    id_, run, index, kind, height, uncovered, intent, attempts = row
    return Pending(id_, run, index, kind, height, bool(uncovered), intent, bool(attempts))


def keyring_of(value: dict[str, Any]) -> Keyring:
    """Return the keys that a stamp gives."""
    return Keyring(**{**value, "retired": tuple(value["retired"])})


def value_of(tail: Tail) -> dict[str, Any]:
    """Return what a stamp keeps of a tail."""
    return {
        "segment": tail.segment,
        "start": tail.start,
        "offset": tail.offset,
        "size": tail.size,
        "previous": tail.previous,
        "keyring": tail.keyring,
        "frontier": [each.hex() for each in tail.frontier.hashes],
        "head_line": tail.head_line,
        "commit": tail.commit,
        "note": tail.note.decode("utf-8"),
    }


def tail_of(value: dict[str, Any]) -> Tail:
    """Return the tail that a stamp gives."""
    hashes = [bytes.fromhex(each) for each in value["frontier"]]
    return Tail(
        value["segment"],
        value["start"],
        value["offset"],
        value["size"],
        value["previous"],
        value["keyring"],
        Frontier.of(value["size"], hashes),
        value["head_line"],
        value["commit"],
        value["note"].encode("utf-8"),
    )
