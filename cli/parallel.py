"""A ledger folded by several processes: workers judge segments apart, this one joins them in order.

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.storage.journal import read_segment
from verify.chain import Segment
from verify.ledger import LedgerFold
from verify.options import Options

__all__ = ["Fold", "fold_segments", "read"]

_FEW: Final = 4
"""Segments below which starting processes costs more than it saves."""


def read(folder: Path, first_index: int, size_bytes: int) -> Segment:
    """Return a segment of a snapshot."""
    return Segment(f"journal/{first_index:016d}.jsonl", first_index, read_segment(folder, first_index, 0, size_bytes))


@dataclass(frozen=True, slots=True)
class Fold:
    """A ledger to fold: its folder, the first index and size in bytes of each segment left, and what is asked for."""

    folder: Path
    segments: Sequence[tuple[int, int]]
    options: Options


Step = Callable[[int], bool]
"""Takes the bytes that were folded since the last call; returns whether to go on."""


def fold_segments(into: LedgerFold, fold: Fold, *, jobs: int, step: Step) -> bool:
    """Return whether all segments were folded, False where `step` ended it after one of them.

    Args:
        into: takes the segments in order.
        fold: the segments.
        jobs: how many processes judge; 1 for this one alone.
        step: told of progress after each segment.
    """
    several = jobs > 1 and len(fold.segments) >= _FEW
    if several:
        from cli.crew import Crew  # noqa: PLC0415  its imports would cost every short command
    with Crew(into, fold, min(jobs, len(fold.segments) - 1)) if several else nullcontext() as crew:
        for number, (first, size) in enumerate(fold.segments):
            # The first one is folded here: it holds the header, which all others depend on, and workers start meanwhile.
            part = crew.part(number) if crew is not None and number else None
            if part is None or not into.join(part, first):
                into.feed(read(fold.folder, first, size))
                if crew is not None:
                    crew.forget()
            if not step(size) and number + 1 < len(fold.segments):
                return False
    return True
