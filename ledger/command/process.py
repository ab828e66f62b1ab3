"""A process that was started: its end, its stops, and signals to its group."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import Final

__all__ = ["Process"]

_POLL_S: Final = 0.02


class Process:
    """A running child that leads its own process group, named by its pid.

    `end_fd` becomes readable at its end; it is None where the kernel has no such descriptor, then `reap` must be called now
    and then. `status` is its wait status; `lost` says that somebody else in this process waited for it first.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self.ended_ns: int | None = None
        self.status: int | None = None
        self.lost = False
        self.end_fd: int | None = None
        self._popen = popen
        with contextlib.suppress(OSError, AttributeError):
            self.end_fd = os.pidfd_open(popen.pid)

    def reap(self, *, stops: bool = False) -> int | None:
        """Take notice of its end; with `stops`, return the signal that stopped it, if one did."""
        if self.ended_ns is not None:
            return None
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG | (os.WUNTRACED if stops else 0))
        except ChildProcessError:
            self.lost = True
            self._end(0)
            return None
        if pid == 0:
            return None
        if os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        self.status = status
        self._end(os.waitstatus_to_exitcode(status))
        return None

    def _end(self, code: int) -> None:
        self.ended_ns = time.monotonic_ns()
        self._popen.returncode = code

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, or to the process alone when it left its group."""
        if self.ended_ns is None:
            with contextlib.suppress(PermissionError):
                try:
                    os.killpg(self.pid, number)
                except ProcessLookupError:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.pid, number)

    def signal_rest(self, number: int) -> bool:
        """Return whether members of the group are left after the end of its leader; they get the signal, 0 for none.

        The kernel gives the number of a group to no new process while the group has a member.
        """
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def destroy(self, grace_ms: int) -> None:
        """End it: SIGTERM, after `grace_ms` SIGKILL, and wait."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        until = time.monotonic_ns() + grace_ms * 1_000_000
        self.reap()
        while self.ended_ns is None and (rest := until - time.monotonic_ns()) > 0:
            watched = [] if self.end_fd is None else [self.end_fd]
            select.select(watched, [], [], rest / 1e9 if watched else _POLL_S)
            self.reap()
        if self.ended_ns is None:
            self.signal(signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                self._popen.wait()
            self.ended_ns = time.monotonic_ns()
        self.signal_rest(signal.SIGKILL)

    def close(self) -> None:
        """Close our descriptor."""
        if self.end_fd is not None:
            os.close(self.end_fd)
            self.end_fd = None
