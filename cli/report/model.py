"""What a report shows, as values: no text is escaped, cut or laid out here.

A page holds a verdict and runs; a run holds its tree of nodes, with when each began and how long it took, in milliseconds from the
run's opening. Times are those that receipts claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from verify.report import Verdict

__all__ = ["Approval", "Budget", "File", "Node", "Note", "Page", "Run", "Tone"]

Tone: TypeAlias = Literal["good", "bad", "alarm", "refused", "waiting", "plain"]
"""How a status reads: `alarm` is for what nobody knows, `refused` for what a rule or a person stopped."""


@dataclass(frozen=True, slots=True)
class File:
    """An artifact: what it is called, what it is, whether it is there; `text` is its beginning where it is to be shown."""

    name: str
    digest: str
    media_type: str
    size_bytes: int
    condition: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One line of the timeline: a call with its intent and outcome, a decision, a step, a run."""

    receipt: str
    index: int
    kind: str
    name: str
    status: str
    tone: Tone
    began_ms: int | None
    took_ms: int | None
    facts: tuple[tuple[str, str], ...]
    """Label and value of what else the receipts say."""
    files: tuple[File, ...]
    breach: str = ""
    """Code of the rule that the verifier found broken here."""
    children: tuple[Node, ...] = ()

    @property
    def stands_out(self) -> bool:
        """Whether whoever looks should not overlook it."""
        return bool(self.breach) or self.tone in {"alarm", "refused", "bad"}


@dataclass(frozen=True, slots=True)
class Budget:
    """One meter of a run: amounts in its unit, None where there is none."""

    meter: str
    limit: int | None
    soft: int | None
    spent: int
    reserved: int

    @property
    def over(self) -> bool:
        """Whether more was spent than the limit."""
        return self.limit is not None and self.spent > self.limit


@dataclass(frozen=True, slots=True)
class Approval:
    """A request that waited or an approval without one, and what answers it."""

    act: str
    requested: str
    """Receipt id of the waiting decision, empty for a standing approval."""
    roles: tuple[str, ...]
    answer: str
    """`granted`, `denied`, or `waiting`."""
    by: str
    role: str
    at: str
    expires_at: str
    uses: int
    used_by: tuple[str, ...]
    by_actor: bool
    """Whether who approved is who acted."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that stands out: what, where (a receipt id), and why."""

    tone: Tone
    title: str
    receipt: str
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run that no run of the page started, with all that happened in it."""

    id: str
    name: str
    status: str
    tone: Tone
    opened_at: str
    took_ms: int | None
    span_ms: int
    """What the whole width of its timeline stands for."""
    facts: tuple[tuple[str, str], ...]
    totals: tuple[tuple[str, int], ...]
    """Meter and what was spent of it, by the run's own close."""
    counts: tuple[tuple[str, int], ...]
    """How many acts ended how."""
    top: Node
    budgets: tuple[Budget, ...]
    approvals: tuple[Approval, ...]
    notes: tuple[Note, ...]
    counter_seals: tuple[str, ...]
    left_out: int = 0
    """Receipts that the page has no room for."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report. `commands` are lines that whoever reads it can run."""

    title: str
    origin: str
    made_at: str
    version: str
    verdict: Verdict
    runs: tuple[Run, ...]
    commands: tuple[tuple[str, str], ...]
    left_out: int = 0
    """Runs that the page has no room for."""
