"""Prunes: a checkpoint stands for the receipts that were taken off the front.

Anyone who can write the store can write a checkpoint, and ctrlrun's walk believes it. A prune that ctrlrun did leaves a receipt of
its own behind, in the chain and after what it took: a checkpoint without one is a finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verify.foreign.ctrlrun.chain import Head
from verify.foreign.ctrlrun.words import PRUNE_ACTION
from verify.report import Report

__all__ = ["Prune"]


@dataclass(slots=True)
class Prune:
    """Takes receipts, and reports on the checkpoint that a store has, None for a store that was never pruned."""

    checkpoint: Head | None
    _proposed: bool = False
    _completed: bool = False

    def receipt(self, value: dict[str, Any], seq: int | None) -> None:
        """Take a receipt."""
        if self.checkpoint is None or seq is None or value.get("action") != PRUNE_ACTION:
            return
        arguments = value.get("arguments")
        through = arguments.get("through") if type(arguments) is dict else None
        if through == self.checkpoint[0]:
            # Proposed, then completed or refused; one that ended in a crash stays proposed.
            self._proposed = value.get("result") == "blocked"
            self._completed = self._completed or value.get("result") == "committed"

    def finish(self, report: Report) -> None:
        """Report on all that was taken."""
        if self.checkpoint is None:
            return
        place = self.checkpoint[0]
        if not (self._proposed or self._completed):
            said = f"no receipt of the chain says that it was pruned through {place}"
            report.find("prune", "ctrlrun.prune_unrecorded", where=f"seq {place}", message=said)
        said = f"a checkpoint stands for all receipts up to {place}; what they said is not here"
        report.find("prune", "ctrlrun.pruned", where=f"seq {place}", message=said)
