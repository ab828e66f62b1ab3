"""The process that judges segments apart for a verifying `ledger verify`: started by it, and gone when it is gone.

On the connection it takes `Task`s, answers each with the outline of its segment, then takes the point to start from and answers
with the part, None for either where the segment is to be folded in order. It reads the segment itself, once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from cli.parallel import read
from verify.chain import ChainPoint
from verify.options import Options
from verify.parallel import fold_part, outline

__all__ = ["Start", "Task", "main"]


@dataclass(frozen=True, slots=True)
class Task:
    """A segment to judge: folder of the ledger, first index, and how many bytes the snapshot has of it."""

    folder: Path
    first_index: int
    size_bytes: int
    options: Options
    watch: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """What the segment is judged from: the point before it, and the origin that the receipts before it name."""

    point: ChainPoint
    origin: str | None


def main() -> None:
    """Judge segments until the other end is gone; the one argument is the number of the connection's descriptor."""
    connection = Connection(int(sys.argv[1]))
    try:
        while True:
            task: Task = connection.recv()
            segment = read(task.folder, task.first_index, task.size_bytes)
            connection.send(outline(segment))
            start: Start | None = connection.recv()
            if start is None:
                continue
            connection.send(
                fold_part(segment, start.point, origin=start.origin, watch=task.watch, options=task.options)
            )
    except (EOFError, OSError):
        return
