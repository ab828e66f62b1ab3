"""Batches: one thread that takes whatever waits, so that many submissions share what it costs to be durable.

Source: docs/spec/notary.md.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from dataclasses import dataclass
from typing import Final

from ledger.errors import LedgerError
from notary.desk import Ask, Desk, Outcome
from notary.errors import NotaryError

__all__ = ["Batches"]

_MAX_BATCH: Final = 256
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    ask: Ask
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[bytes]


class Batches:
    """Hands submissions to a desk, in the order in which they came."""

    def __init__(self, desk: Desk, *, max_waiting: int = 2_000) -> None:
        self._desk = desk
        self._max_waiting = max_waiting
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="notary-desk", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """About how many submissions wait."""
        return self._queue.qsize()

    @property
    def alive(self) -> bool:
        """Whether submissions are taken."""
        return self._thread.is_alive() and not self._stopped

    async def submit(self, ask: Ask) -> bytes:
        """Return the answer to a submission.

        Raises:
            RefusedError: it is refused.
            LedgerError: it could not be done; nothing was given out.
        """
        if not self.alive or self._queue.qsize() >= self._max_waiting:
            raise NotaryError("notary: stopping, or too many submissions wait", code="notary.unavailable")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(ask, loop, loop.create_future())
        self._queue.put(waiting)
        return await waiting.answer

    def stop(self) -> None:
        """Return when everything that waited is done."""
        self._stopped = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._take()
            if batch:
                self._serve(batch)

    def _take(self) -> tuple[list[_Waiting], bool]:
        """Return all that waits, at least one, and whether more may come."""
        batch: list[_Waiting] = []
        found = self._queue.get()
        while found is not None:
            batch.append(found)
            if len(batch) == _MAX_BATCH:
                return batch, True
            try:
                found = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _serve(self, batch: list[_Waiting]) -> None:
        outcomes: list[Outcome]
        try:
            outcomes = self._desk.process([each.ask for each in batch])
        except LedgerError as error:
            _log.error("batch of %d: %s: %s", len(batch), error.code, error)
            failed = NotaryError("notary: the submission could not be made durable", code="notary.unavailable")
            outcomes = [failed] * len(batch)
        except Exception as error:  # noqa: BLE001  the thread goes on, and whoever waits is told
            _log.error("batch of %d: %s", len(batch), type(error).__name__)
            outcomes = [NotaryError("notary: a fault of the program", code="notary.unavailable")] * len(batch)
        for waiting, outcome in zip(batch, outcomes, strict=True):
            waiting.loop.call_soon_threadsafe(_settle, waiting.answer, outcome)


def _settle(answer: asyncio.Future[bytes], outcome: Outcome) -> None:
    if answer.done():
        return  # whoever asked has left
    if isinstance(outcome, bytes):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)
