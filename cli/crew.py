"""Workers: processes that judge segments apart, and who has which segment.

- Workers are our own interpreter with our own module, by descriptor; they take nothing from the terminal and end with us.
- At most two segments a worker are under way or wait to be joined, so memory is flat however long the ledger is.
- A worker that fails costs its segment nothing but time: it is read and folded in order.

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Final, Self, cast

from cli.parallel import Fold
from cli.worker import Start, Task
from verify.chain import ChainPoint
from verify.ledger import LedgerFold
from verify.parallel import Outline, Part, assume
from verify.proof import RootFold

__all__ = ["Crew"]

_AHEAD: Final = 2
"""Segments a worker that may be under way or wait to be joined."""
_WORKER: Final = "import sys; sys.path.append(sys.argv.pop(1)); from cli.worker import main; main()"


@dataclass(slots=True)
class _Worker:
    """A process, the connection to it, the number of the segment it has, and whether it waits for where to start."""

    process: subprocess.Popen[bytes]
    connection: Connection
    segment: int | None = None
    waits: bool = False


class Crew:
    """Workers on the segments of a ledger after the first."""

    def __init__(self, into: LedgerFold, fold: Fold, jobs: int) -> None:
        self._into = into
        self._fold = fold
        self._jobs = jobs
        self._workers: list[_Worker] = []
        self._outlines: dict[int, Outline | None] = {}
        self._parts: dict[int, Part | None] = {}
        """Parts that wait to be joined, by number of segment; None for one to be folded in order."""
        self._next = 1
        """The segment to be given out next."""
        self._folded = 1
        """The segment to be joined next: the fold has reached its start."""
        self._leaves, self._known = RootFold(), 0
        """All leaves before a segment, and its number."""

    def __enter__(self) -> Self:
        with suppress(OSError):  # as many as the system lets us have
            for _ in range(self._jobs):
                self._workers.append(_hire())
        self._employ()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._lose(worker)

    def part(self, number: int) -> Part | None:
        """Return a segment judged apart, None where it must be folded in order; all before it were joined or folded."""
        self._folded = number
        while number not in self._parts:
            self._employ()
            self._start()
            busy = {each.connection: each for each in self._workers if each.segment is not None and not each.waits}
            if not busy and number not in self._parts:
                # Nobody is left who could judge it.
                self._next = max(self._next, number + 1)
                return None
            for ready in wait(list(busy), timeout=None if number not in self._parts else 0):
                self._hear(busy[cast("Connection", ready)])
        self._outlines.pop(number - 1, None)
        return self._parts.pop(number)

    def forget(self) -> None:
        """Drop what outlines said of leaves: a segment is folded in order."""
        self._known = 0

    def _employ(self) -> None:
        """Give segments to idle workers."""
        limit = min(len(self._fold.segments), self._folded + _AHEAD * self._jobs)
        for worker in list(self._workers):
            if worker.segment is None and self._next < limit:
                first, size = self._fold.segments[self._next]
                worker.segment = self._next
                self._next += 1
                self._send(worker, Task(self._fold.folder, first, size, self._fold.options, self._into.watch))

    def _hear(self, worker: _Worker) -> None:
        """Take the next answer of a worker: the outline of its segment, then the part."""
        number = worker.segment
        assert number is not None  # noqa: S101  it is busy
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            self._lose(worker)
            return
        if number not in self._outlines:
            self._outlines[number] = answer
            worker.waits = True
        else:
            self._parts[number] = answer
            worker.segment = None

    def _start(self) -> None:
        """Tell workers that wait where their segments start, as far as that is known."""
        point = self._into.chain.point()
        if point is not None and self._known < self._folded:
            self._leaves, self._known = RootFold.resume(point.head.fold), self._folded
        for worker in sorted(self._workers, key=lambda each: each.segment or 0):
            number = worker.segment
            if not worker.waits or number is None:
                continue
            if number == self._folded:
                self._tell(worker, point)
            elif point is not None and self._reach(number):
                before = self._outlines[number - 1]
                assert before is not None  # noqa: S101  its leaves are known
                self._tell(worker, assume(point, self._leaves, before))

    def _reach(self, number: int) -> bool:
        """Return whether all leaves before a segment are known now."""
        while self._known < number:
            found = self._outlines.get(self._known)
            if found is None or found.leaves.start != self._leaves.size:
                return False
            self._leaves.join(RootFold.resume(found.leaves))
            self._known += 1
        return self._known == number

    def _tell(self, worker: _Worker, point: ChainPoint | None) -> None:
        """Tell a worker where its segment starts; where that is nowhere, the segment is folded in order."""
        assert worker.segment is not None  # noqa: S101  it waits
        worker.waits = False
        start = None if point is None else Start(point, self._into.origin)
        if start is None:
            self._parts[worker.segment] = None
            worker.segment = None
        self._send(worker, start)

    def _send(self, worker: _Worker, message: Task | Start | None) -> None:
        try:
            worker.connection.send(message)
        except OSError:
            self._lose(worker)

    def _lose(self, worker: _Worker) -> None:
        """End a worker; the segment that it has is folded in order."""
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.kill()
        worker.process.wait()
        if worker.segment is not None:
            self._parts[worker.segment] = None


def _hire() -> _Worker:
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER, str(Path(__file__).parents[1]), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            process_group=0,  # an interrupt from the terminal is for us
        )
    return _Worker(process, ours)
