"""How much work a whole ledger is worth: processes, time, and what an earlier run may stand for."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["Effort", "usable_cores"]


def usable_cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Effort:
    """How a whole ledger is gone through: processes, seconds, and what an earlier run on this machine may stand for.

    `resume` goes on where the last verification stopped; `since_last` judges only what is new since the last good verdict.
    """

    jobs: int = 1
    max_seconds: int | None = None
    resume: bool = False
    since_last: bool = False
