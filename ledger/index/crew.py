"""Batches of a journal loaded by several threads and committed in order, so that an index holds rows in the order of the chain.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeAlias

import duckdb

from ledger.index.load import Loader

__all__ = ["Crew"]

_MOST: Final = 4
"""Batches at a time: each is held in memory as it was read and as it is stored."""

_Connect: TypeAlias = Callable[[], duckdb.DuckDBPyConnection]


class Crew:
    """Threads that load, each over a connection of its own.

    What one of them raises comes out of the next `load` or `wait`.
    """

    def __init__(self, connect: _Connect, *, memory: int, threads: int) -> None:
        """Begin.

        Args:
            connect: gives a connection to the index.
            memory: how much of a journal may be loaded and not on the disk yet, in bytes.
            threads: how many work at a time; one more holds a batch that waits for its place, where there are several.
        """
        self._connect = connect
        self._memory = memory
        self._unwritten = 0
        self._size = min(threads + 1, _MOST) if threads > 1 else 1
        self._pool: ThreadPoolExecutor | None = None
        self._made = 0
        self._idle: list[duckdb.DuckDBPyConnection] = []
        """As many connections as batches were begun, up to one a thread, but those that are busy: no thread finds none."""
        self._busy: set[duckdb.DuckDBPyConnection] = set()
        self._under_way: deque[Future[None]] = deque()

    def load(self, pieces: Sequence[bytes], *, start: int, leave_out: frozenset[int]) -> None:
        """Have a batch loaded and return; waits while as many are under way as are held at a time. See `Loader.load`.

        Raises:
            duckdb.Error: an earlier batch could not be loaded.
        """
        while len(self._under_way) >= self._size:
            self._under_way.popleft().result()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size, thread_name_prefix="index")
        if self._made < self._size:
            self._idle.append(self._connect())
            self._made += 1
        before = self._under_way[-1] if self._under_way else None
        self._unwritten += sum(map(len, pieces))
        writes = self._unwritten >= self._memory
        if writes:
            self._unwritten = 0
        self._under_way.append(self._pool.submit(self._work, pieces, start, leave_out, before, writes=writes))

    def wait(self) -> None:
        """Return when all batches are loaded.

        Raises:
            duckdb.Error: one of them could not be.
        """
        while self._under_way:
            self._under_way.popleft().result()

    def stop(self) -> None:
        """Break off what is under way, and let go of all connections."""
        if self._pool is not None:
            for future in self._under_way:
                future.cancel()
            for connection in tuple(self._busy):
                connection.interrupt()
            self._pool.shutdown(wait=True)
            self._pool = None
        self._under_way.clear()
        while self._idle:
            self._idle.pop().close()
        self._made = 0

    def _work(
        self,
        pieces: Sequence[bytes],
        start: int,
        leave_out: frozenset[int],
        before: Future[None] | None,
        *,
        writes: bool,
    ) -> None:
        connection = self._idle.pop()
        self._busy.add(connection)
        try:
            connection.execute("BEGIN")
            try:
                Loader(connection).load(pieces, start=start, leave_out=leave_out)
                if before is not None:
                    before.result()
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            if writes:
                # The next batch is read meanwhile; it is committed afterwards.
                connection.execute("CHECKPOINT")
        finally:
            self._busy.discard(connection)
            self._idle.append(connection)
