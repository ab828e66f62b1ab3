"""Terminals: a pty for the command, our own keyboard in raw mode, and who is in the foreground.

Two cases. When our standard input is a terminal the command gets a session of its own with the pty as its controlling
terminal, and every key goes to the pty as a byte: Ctrl-C is turned into a signal once, there. Ctrl-Z is too, but
the kernel discards a stop in a session where nobody could continue it, so `StopKey` says when we have to stop the command.

Otherwise the command gets a process group in our session. It starts in the background of the terminal we may have; a key's signal reaches us and is passed
on. When it wants to read from that terminal (a password, say) the kernel stops it; then the foreground is lent to it until
it ends or is suspended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import termios
import tty
from pathlib import Path
from typing import Any, Final

__all__ = ["Foreground", "RawMode", "StopKey", "copy_size", "open_pty"]

_OFLAG: Final = 1
_NO_SIZE: Final = bytes(8)
_LOCAL: Final = 3
_CHARACTERS: Final = 6
_DISABLED: Final = b"\0"
_STOP_BIT: Final = 1 << (signal.SIGTSTP - 1)


def open_pty(model: int, *, interactive: bool) -> tuple[int, int]:
    """Return a pty, our side and the command's, with the modes and the size of the terminal `model`.

    Without `interactive`, output is not processed: the terminal it is passed on to does that itself.

    Raises:
        OSError: no pty is to be had.
    """
    master, slave = os.openpty()
    try:
        modes = termios.tcgetattr(model)
        if not interactive:
            modes[_OFLAG] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, modes)
    except termios.error:
        # The modes of a new pty serve as well.
        pass
    copy_size(model, slave)
    return master, slave


def copy_size(source: int, target: int) -> None:
    """Give the terminal `target` the window size of `source`, where that is known."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, _NO_SIZE)
        if size != _NO_SIZE:
            fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _in_foreground(fd: int) -> bool:
    """Return whether terminal `fd` is ours to read and set: True too where it is not our controlling terminal."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return True


class RawMode:
    """The raw mode of a terminal, taken and given back as often as needed."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._saved: list[Any] | None = None

    def take(self) -> bool:
        """Return whether the terminal is in raw mode now; in the background it is left alone."""
        if not _in_foreground(self.fd):
            return False
        with contextlib.suppress(termios.error):
            saved = self._saved or termios.tcgetattr(self.fd)
            tty.setraw(self.fd, termios.TCSANOW)
            self._saved = saved
        return self._saved is not None

    def give_back(self) -> None:
        """Restore the modes of before."""
        if self._saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fd, termios.TCSANOW, self._saved)
            self._saved = None


class StopKey:
    """Notices, among the keys on their way into a pty, the one that its terminal turns into a stop: mostly Ctrl-Z.

    `pty` is our side of it.
    """

    def __init__(self, pty: int) -> None:
        self._pty = pty
        self._typed = False
        self._quoted = False

    def take(self, chunk: bytes) -> None:
        """Look at keys; their meaning is the one that the terminal's modes give them now."""
        try:
            modes = termios.tcgetattr(self._pty)
        except termios.error:
            return
        local, characters = modes[_LOCAL], modes[_CHARACTERS]
        if not local & termios.ISIG:
            self._quoted = False
            return
        key = characters[termios.VSUSP]
        # After this key the next one is taken as it is.
        quote = characters[termios.VLNEXT] if local & termios.ICANON and local & termios.IEXTEN else _DISABLED
        for number in chunk:
            typed = bytes((number,))
            if self._quoted:
                self._quoted = False
            elif typed == key != _DISABLED:
                self._typed = True
            elif typed == quote != _DISABLED:
                self._quoted = True

    def pressed(self, group: int) -> bool:
        """Return whether the key was typed since the last call and stops `group`, whose leader has its number.

        It does where that group is in the foreground of the pty and its leader neither ignores, handles nor blocks the stop: a
        shell in there stops its own jobs, which the kernel allows.
        """
        typed, self._typed = self._typed, False
        if not typed:
            return False
        try:
            return os.tcgetpgrp(self._pty) == group and not _keeps_from_stopping(group)
        except OSError:
            return False


def _keeps_from_stopping(pid: int) -> bool:
    """Return whether a process ignores, handles or blocks SIGTSTP.

    Raises:
        OSError: it is gone, or the system does not say.
    """
    kept = 0
    for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
        name, _, value = line.partition(b":")
        if name in {b"SigBlk", b"SigIgn", b"SigCgt"}:
            kept |= int(value, 16)
    return bool(kept & _STOP_BIT)


class Foreground:
    """The foreground of our controlling terminal, lent to the command's group when it asks.

    While it is open this thread blocks SIGTTOU, or the kernel would stop us for using our terminal from the background. It
    is opened after the command's start, since a command inherits what is blocked.
    """

    def __init__(self) -> None:
        self._fd: int | None = None
        self._lent = False
        self._mask: set[int] | None = None

    def open(self) -> None:
        """Find our controlling terminal; without one nothing is ever lent."""
        self._mask = {*signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})}
        with contextlib.suppress(OSError):
            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)

    @property
    def exists(self) -> bool:
        """Whether there is a controlling terminal."""
        return self._fd is not None

    def lend(self, group: int) -> bool:
        """Return whether `group` is in the foreground now, because it was lent to it."""
        if self._fd is None or self._lent:
            return False
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(self._fd) == os.getpgrp():
                os.tcsetpgrp(self._fd, group)
                self._lent = True
        return self._lent

    def take_back(self) -> bool:
        """Return whether the foreground had been lent; it is ours again."""
        lent, self._lent = self._lent, False
        if lent and self._fd is not None:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(self._fd, os.getpgrp())
        return lent

    def close(self) -> None:
        """Take it back and forget the terminal."""
        self.take_back()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        if self._mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            self._mask = None
