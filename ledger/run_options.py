"""What a run may be told when it is opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypedDict

from ledger.arguments import ArgumentsError
from ledger.errors import clip
from ledger.members import Actor, Adapter, Limit
from ledger.rules.approval import Approver

__all__ = ["RunOptions", "refuse_types"]


class RunOptions(TypedDict, total=False):
    """What a run may be told when it is opened."""

    actor: Actor | str | None
    """On whose behalf: an `Actor`, or the agent's name; parts not given are `unknown`."""
    correlation: Mapping[str, str] | None
    """Names of this work elsewhere, such as a ticket; carried unchanged."""
    limits: Sequence[Limit]
    """Limits on meters."""
    budget: Mapping[str, int | str] | None
    """Limits as people write them: `{"usd": "0.50", "seconds": 90, "tool_calls": 60}`."""
    policy: bytes | None
    """A policy document; it is kept, and calls are decided under it. Without it: that of the run it is part of or follows."""
    adapter: Adapter
    """What carries the run out and what it sees."""
    program: str | None
    """Digest of the program."""
    document: str | None
    """Digest of the document that the run follows."""
    continues: str | None
    """Run id of the closed run that this one follows."""
    parent: tuple[str, str | None] | None
    """Run id of the run that starts this one, and the intent of the call that does."""
    secrets: Mapping[str, str] | None
    """Named texts that are cut from everything recorded."""
    approvers: Mapping[str, Approver] | None
    """Whom trust names as approvers, by name: nobody else's approval counts."""
    grant: str | None
    """Receipt id of the grant that it acts under. Without it: that of the run it is part of."""
    runbook: bytes | None
    """The policy envelope of a runbook, or the elements that one is derived from."""
    profile: str
    """How much of the runbook is enforced: `R0`, `R1`, or `R2`, which is meant without it."""
    risk_ceiling: str
    """The highest risk of a step that runs: `write` without it."""
    allowlist: Collection[str] | None
    """Tools that this client allows by itself. Without it: those that its policy does not deny; without both: none."""
    statement: bytes | None
    """The adapter's coverage statement, where its coverage is a digest."""


_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "continues": (str, "a run id"),
    "correlation": (Mapping, "a mapping of names"),
    "policy": (bytes, "the bytes of a policy document"),
    "secrets": (Mapping, "a mapping of names and texts"),
    "approvers": (Mapping, "a mapping of names and approvers"),
    "runbook": (bytes, "the bytes of an envelope or of elements"),
    "allowlist": (Collection, "a collection of names"),
    "statement": (bytes, "the bytes of a coverage statement"),
}
"""Option -> what it is if it is given, and in words; the others are checked where they are read."""


def refuse_types(options: RunOptions) -> None:
    """Raise for an option of another type.

    Raises:
        ArgumentsError: it says which, and what is expected.
    """
    for name, value in options.items():
        kind, words = _TYPES.get(name, (object, ""))
        if value is not None and (
            not isinstance(value, kind) or (kind is Collection and isinstance(value, str | bytes))
        ):
            raise ArgumentsError(f"run: {name}: got {clip(value)}, expected {words}")
