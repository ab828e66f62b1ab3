"""The chain of ctrlrun, walked by its own rule, each break under its own name.

| break | where | what |
|---|---|---|
| `unchained` | nowhere | rows without a place: written before there was a chain, never verified, never a pass |
| `missing` | the place | no row is at it |
| `content_altered` | the row | its document does not hash to its stored hash, or hashes to nothing |
| `hash_missing` | the row | it has a place and no stored hash |
| `link_broken` | the row | it does not name the hash of the row before it |
| `head_mismatch` | the head | the head is not the last row |

- Place and stored hash come from the row's columns, all else from its document.
- A row is linked by the hash that its document has, not by the one that was stored beside it: one change accuses one row.
- A prune moves the start: the first row left is the one after the checkpoint.
- Memory is flat but for the places that were accused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ledger.errors import clip
from verify.foreign import NativeFinding
from verify.foreign.ctrlrun.words import GENESIS
from verify.report import MAX_FINDINGS

__all__ = ["ABSENT", "Break", "Chain", "Hash", "Head"]

Hash: TypeAlias = str | Literal[False] | None
"""A stored hash; None where the column is empty, False where the evidence has no such column."""
Head: TypeAlias = tuple[int, str]
"""Place and hash: of the last receipt, or of the last one that was pruned."""
ABSENT: Final = "no hash"


@dataclass(frozen=True, slots=True)
class Break:
    """One break: its name, the place it is about, None for none, and what was found."""

    name: str
    seq: int | None
    detail: str

    def to_native(self) -> NativeFinding:
        """Return the break as a finding of ctrlrun's rules."""
        return NativeFinding(self.name, "" if self.seq is None else f"seq {self.seq}", self.detail)


@dataclass(slots=True)
class Chain:
    """A walk over rows in the order of their places: `add` each, then `end`.

    `breaks` holds at most `MAX_FINDINGS` of each name; `counts` counts all of them.
    """

    checkpoint: Head | None = None
    chained: int = 0
    unchained: int = 0
    breaks: list[Break] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    first_seq: int | None = None
    last_seq: int = 0
    _expected_seq: int = 1
    _expected_previous: str | None = GENESIS
    _accused: set[int] = field(default_factory=set)
    _gaps: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            self.last_seq, self._expected_previous = self.checkpoint
            self._expected_seq = self.last_seq + 1

    @property
    def verified(self) -> int:
        """How many rows have a place and no break."""
        return self.chained - len(self._accused)

    @property
    def last_hash(self) -> str | None:
        """The hash of the last row's document, None where it has none."""
        return self._expected_previous

    def add(self, seq: int, stored: Hash, found: str | None, previous: object, *, why: str = "") -> None:
        """Take the next row.

        Args:
            seq: its place.
            stored: the hash stored beside it.
            found: the hash of its document, None where it has none or is no receipt to ctrlrun.
            previous: `prev_hash` of its document.
            why: why `found` is None.
        """
        self.chained += 1
        if self.first_seq is None:
            self.first_seq = seq
        if seq != self._expected_seq:
            self._gaps.append((self._expected_seq, seq))
            self._break("missing", self._expected_seq, f"not here; the next receipt is at {seq}", row=False)
        self.last_seq = seq
        self._expected_seq = seq + 1
        if found is None:
            self._break("content_altered", seq, why)
            self._expected_previous = ABSENT
            return
        if stored is None:
            self._break("hash_missing", seq, "has a place in the chain and no stored hash")
        elif stored is not False and stored != found:
            self._break("content_altered", seq, f"hashes to {found}, stored is {clip(stored)}")
        if previous != self._expected_previous and self._expected_previous is not None:
            self._break("link_broken", seq, f"names {clip(previous)}, the one before it is {self._expected_previous}")
        self._expected_previous = found

    def skip(self, seq: int) -> None:
        """Take a row that could not be read at all, so that nobody knows what it hashes to; the one after it is not accused."""
        self.chained += 1
        if self.first_seq is None:
            self.first_seq = seq
        self._accused.add(seq)
        self.last_seq = seq
        self._expected_seq = seq + 1
        self._expected_previous = None

    def end(self, head: Head | None) -> None:
        """Compare the head with the last row; None for a store that has none."""
        if head is None:
            self._break("head_mismatch", None, "the store names no head")
        elif self._expected_previous is not None and head != (self.last_seq, self._expected_previous):
            seq, hash_ = head
            if self._has(seq):
                self._accused.add(seq)
            self._break(
                "head_mismatch", seq, f"names {seq}, {clip(hash_)}; last is {self.last_seq}, {self._expected_previous}"
            )

    def _has(self, seq: int) -> bool:
        """Return whether a row is at a place between the first and the last."""
        if self.first_seq is None or not self.first_seq <= seq <= self.last_seq:
            return False
        return not any(start <= seq < end for start, end in self._gaps)

    def end_unchained(self) -> None:
        """Say that rows have no place."""
        if self.unchained:
            number = self.unchained
            self.counts["unchained"] = 1
            self.breaks.insert(0, Break("unchained", None, f"{number} without a place: nothing of them is verified"))

    def _break(self, name: str, seq: int | None, detail: str, *, row: bool = True) -> None:
        if row and seq is not None and name != "head_mismatch":
            self._accused.add(seq)
        count = self.counts.get(name, 0) + 1
        self.counts[name] = count
        if count <= MAX_FINDINGS:
            self.breaks.append(Break(name, seq, detail))
