"""When long work ends before it is done: its time is over, or the user interrupts it."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Self

from ledger.errors import LedgerError

__all__ = ["InterruptedWorkError", "Watch"]


class InterruptedWorkError(LedgerError):
    """The user interrupted a command that left something to go on from; the message says what."""

    code = "usage.interrupted"


class Watch:
    """Watches the time and the keyboard while work goes on that asks now and then whether it is to end.

    The first interrupt only asks for the end, so that the work stops where it can go on from; the second one is at once.

    Attributes:
        interrupted: whether the user asked for the end.
    """

    def __init__(self, max_seconds: int | None) -> None:
        self._end_s = None if max_seconds is None else time.monotonic() + max_seconds
        self._main = threading.current_thread() is threading.main_thread()
        self.interrupted = False

    @property
    def ended(self) -> bool:
        """Whether the work is to end."""
        return self.interrupted or (self._end_s is not None and time.monotonic() >= self._end_s)

    def __enter__(self) -> Self:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        signal.signal(number, signal.default_int_handler)
