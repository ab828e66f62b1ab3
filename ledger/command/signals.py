"""Signals: those this process receives while a command runs, as numbers to read from a descriptor.

A handler alone would come too late: a signal between the last check and the wait of the loop would not end that wait. The
interpreter's wake-up descriptor is written by the signal itself, so the loop's selector sees every one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

__all__ = ["FORWARDED", "SignalWatch", "stop_group"]

FORWARDED: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""Signals that end or interrupt a command and are passed on to it."""

_WATCHED: Final = (*sorted(FORWARDED), signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH, signal.SIGCHLD)


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing; the wake-up descriptor carries the number."""


class SignalWatch:
    """Watches signals between `open` and `close`, in the main thread; elsewhere it watches nothing and `fd` is None.

    A signal that was ignored stays ignored, here and in the command, so that `nohup` means what it says. The exception is
    SIGCHLD: were it ignored, the kernel would throw the command's status away. SIGPIPE is ignored while the watch is open.
    """

    def __init__(self) -> None:
        self.fd: int | None = None
        self._write_fd = -1
        self._old_fd = -1
        self._old: dict[signal.Signals, Any] = {}

    def open(self) -> None:
        """Install the handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)
        self._old_fd = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for number in _WATCHED:
            old = signal.getsignal(number)
            # None is a handler that was not installed from Python and could not be put back.
            if old is not None and (old != signal.SIG_IGN or number == signal.SIGCHLD):
                self._install(number, _note)
        if signal.getsignal(signal.SIGPIPE) is not None:
            self._install(signal.SIGPIPE, signal.SIG_IGN)

    def _install(
        self, number: signal.Signals, handler: Callable[[int, FrameType | None], None] | signal.Handlers
    ) -> None:
        self._old[number] = signal.signal(number, handler)

    def read(self) -> list[int]:
        """Return the numbers of the watched signals received since the last call, in order."""
        if self.fd is None:
            return []
        numbers: list[int] = []
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.fd, 4096):
                numbers += chunk
        return [number for number in numbers if number in self._old]

    def close(self) -> None:
        """Put the old handlers back."""
        for number, old in self._old.items():
            signal.signal(number, old)
        self._old = {}
        if self.fd is not None:
            signal.set_wakeup_fd(self._old_fd)
            os.close(self.fd)
            os.close(self._write_fd)
            self.fd = None


def stop_group() -> None:
    """Stop our own process group as Ctrl-Z would, and return when it is continued.

    The kernel discards the stop where nobody could continue us (an orphaned process group), then this returns at once.
    """
    old = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.killpg(os.getpgrp(), signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, old)
