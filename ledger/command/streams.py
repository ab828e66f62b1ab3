"""Streams: bytes carried from one descriptor to another without blocking, recorded on the way.

A relay reads what the command wrote, counts, digests and keeps it, then passes it on. It reads again only when the reader of
our own stream took everything, so a slow reader slows the command down as a plain pipe would, and memory stays flat.

When that reader goes away, what the command wrote so far is still recorded, then the command's end of the pipe is closed:
its next write gets SIGPIPE or EPIPE, as behind a shell's pipe (`yes | head -1` ends).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import select
import selectors
import socket
import stat
import tempfile
import time
from typing import IO, Final, Literal, Protocol

from ledger.command.end import CapturedStream, OutputMode, Sink, StreamName

__all__ = ["PIPE_BYTES", "Outlet", "Recorder", "Relay", "duplicate", "open_outlet", "widen", "writable"]

PIPE_BYTES: Final = 256 * 1024
"""Size asked for our pipes and of one read."""

_SAFE_BYTES: Final = 4096
"""A pipe that polls as writable takes this much without blocking (PIPE_BUF, POSIX)."""

_SPOOL_BYTES: Final = 256 * 1024


class Taker(Protocol):
    """What a relay shows its bytes to before passing them on."""

    def take(self, chunk: bytes) -> None:
        """Record `chunk`."""


class Recorder:
    """Counts and digests one stream, and keeps its first `cap_bytes`."""

    def __init__(self, name: StreamName, mode: OutputMode, *, cap_bytes: int, sink: Sink | None) -> None:
        self.name: StreamName = name
        self.total_bytes = 0
        self._hash = hashlib.sha256()
        self._mode = mode
        self._cap = cap_bytes
        self._kept_bytes = 0
        self._error: str | None = None
        self._file: IO[bytes] | None = None
        if mode == "keep":
            self._file = (sink or _spool)(name)
            self._start = self._file.tell()

    def take(self, chunk: bytes) -> None:
        """Record `chunk`; a sink that fails ends the keeping, never the recording."""
        self.total_bytes += len(chunk)
        self._hash.update(chunk)
        room = self._cap - self._kept_bytes
        if self._file is None or self._error is not None or room <= 0:
            return
        part = chunk if len(chunk) <= room else chunk[:room]
        try:
            self._file.write(part)
        except (OSError, ValueError) as error:
            self._fail(error)
        else:
            self._kept_bytes += len(part)

    def _fail(self, error: Exception) -> None:
        self._error = f"kept output: {error}"
        self._kept_bytes = 0

    def end(self, *, undelivered_bytes: int, reader_gone: bool, left_open: bool) -> CapturedStream:
        """Return the record. After a failed sink nothing counts as kept, since a part may be missing inside."""
        if self._file is not None:
            try:
                self._file.flush()
                self._file.seek(self._start)
            except (OSError, ValueError) as error:
                self._fail(error)
        failed = self._error is not None
        if failed:
            self.discard()
        return CapturedStream(
            name=self.name,
            total_bytes=self.total_bytes,
            digest="sha256:" + self._hash.hexdigest(),
            kept=None if failed else self._file,
            kept_bytes=self._kept_bytes,
            truncated_bytes=self.total_bytes - self._kept_bytes if self._mode == "keep" else 0,
            undelivered_bytes=undelivered_bytes,
            reader_gone=reader_gone,
            left_open=left_open,
            keep_error=self._error,
        )

    def discard(self) -> None:
        """Close the file of the kept bytes, which nobody will get."""
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):
                self._file.close()


def _spool(_name: StreamName) -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)


class Outlet:
    """A descriptor of our own that can be written without blocking the loop, and without changing it for others.

    O_NONBLOCK belongs to the open file, which we share with our parent and our neighbours, so it is never set on a descriptor
    we were given. A pipe or terminal is opened anew through /proc; a socket is sent to with MSG_DONTWAIT; where neither works,
    a write follows a poll and is small. Regular files do not block.
    """

    def __init__(self, fd: int, kind: Literal["own", "polled", "file", "socket"]) -> None:
        self.fd = fd
        self._kind = kind
        self._socket = socket.socket(fileno=fd) if kind == "socket" else None

    def write(self, view: memoryview) -> int:
        """Return how many bytes were taken, 0 when the reader is not ready.

        Raises:
            OSError: the reader is gone, or the disk did not take the bytes.
        """
        try:
            if self._socket is not None:
                return self._socket.send(view, socket.MSG_DONTWAIT)
            if self._kind == "polled":
                if not writable(self.fd):
                    return 0
                view = view[:_SAFE_BYTES]
            return os.write(self.fd, view)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Close our descriptor; the one it was made from stays open."""
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self.fd)


def open_outlet(fd: int) -> Outlet | None:
    """Return an outlet to what `fd` is open on, or None when `fd` is closed."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return None
    if stat.S_ISFIFO(mode) or os.isatty(fd):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return Outlet(os.open(f"/proc/self/fd/{fd}", flags), "own")
        except OSError:
            return Outlet(duplicate(fd), "polled")
    return Outlet(duplicate(fd), "socket" if stat.S_ISSOCK(mode) else "file")


def duplicate(fd: int) -> int:
    """Return another descriptor for what `fd` is open on, above the standard ones, not inherited."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def writable(fd: int) -> bool:
    """Return whether a small write to `fd` would not block now."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def widen(fd: int) -> None:
    """Ask for a pipe of `PIPE_BYTES`; where that is refused the pipe works as it is."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


class Relay:
    """Carries bytes from `source`, which it owns, to `outlet`, which it owns too, past `taker`.

    `owned=False` leaves `source` open and in the mode it is: for a terminal that is not ours to close.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        source: int,
        outlet: Outlet | None,
        *,
        taker: Taker | None = None,
        owned: bool = True,
    ) -> None:
        self.done = False
        self.left_open = False
        self.reader_gone = False
        self.undelivered_bytes = 0
        self.active_ns = time.monotonic_ns()
        self._selector = selector
        self._source = source
        self._owned = owned
        self._outlet = outlet
        self._taker = taker
        self._pending: memoryview | None = None
        if owned:
            os.set_blocking(source, False)
        selector.register(source, selectors.EVENT_READ, self.pull)

    @property
    def blocked(self) -> bool:
        """Whether bytes wait for the reader of our own stream."""
        return self._pending is not None

    def _read(self) -> bytes | None:
        """Return bytes, b"" at the end, None when there is nothing now."""
        try:
            return os.read(self._source, PIPE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            # EIO is how a terminal whose other side is closed says that it ended.
            return b""

    def pull(self) -> None:
        """Read once and pass on what came."""
        if self.done or self._pending is not None:
            return
        chunk = self._read()
        if chunk is None:
            return
        if not chunk:
            self._finish()
            return
        self.active_ns = time.monotonic_ns()
        if self._taker is not None:
            self._taker.take(chunk)
        self._pass_on(memoryview(chunk))

    def _pass_on(self, view: memoryview) -> None:
        if self._outlet is None:
            self.undelivered_bytes += len(view)
            return
        try:
            while view:
                count = self._outlet.write(view)
                if not count:
                    break
                view = view[count:]
        except OSError:
            self._lose_reader(len(view))
            return
        if view and self._pending is None:
            self._selector.unregister(self._source)
            self._selector.register(self._outlet.fd, selectors.EVENT_WRITE, self._push)
        elif not view and self._pending is not None:
            self._selector.unregister(self._outlet.fd)
            self._selector.register(self._source, selectors.EVENT_READ, self.pull)
        self._pending = view or None

    def _push(self) -> None:
        if self._pending is not None:
            self._pass_on(self._pending)

    def _lose_reader(self, rest: int) -> None:
        """Record what the command wrote until now, at most one pipe full, and close its end."""
        self.reader_gone = True
        self._drop(rest)
        drained = 0
        # A source that is not ours may block; it also is nobody's output.
        while self._owned and drained < PIPE_BYTES and (chunk := self._read()):
            drained += len(chunk)
            self.undelivered_bytes += len(chunk)
            if self._taker is not None:
                self._taker.take(chunk)
        self._finish()

    def _drop(self, rest: int) -> None:
        """Stop passing on; `rest` bytes were recorded and not taken."""
        self.undelivered_bytes += rest
        if self._outlet is None:
            return
        if self._pending is not None:
            self._selector.unregister(self._outlet.fd)
            self._selector.register(self._source, selectors.EVENT_READ, self.pull)
            self._pending = None
        self._outlet.close()
        self._outlet = None

    def abandon(self) -> None:
        """Stop waiting for a reader that takes nothing; recording goes on."""
        if self._pending is not None:
            self._drop(len(self._pending))

    def stop(self) -> None:
        """Close although the other side may still be open."""
        if not self.done:
            self.left_open = True
            self._drop(len(self._pending) if self._pending is not None else 0)
            self._finish()

    def _finish(self) -> None:
        if self.done:
            return
        self.done = True
        self._drop(len(self._pending) if self._pending is not None else 0)
        self._selector.unregister(self._source)
        if self._owned:
            os.close(self._source)
