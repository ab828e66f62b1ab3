"""Plumbing: the pipes, or the pty, between a command and our own descriptors, from before its start to its end."""

from __future__ import annotations

import os
import selectors

from ledger.command.end import CapturedStream, OutputMode, Sink, StreamName
from ledger.command.streams import Outlet, Recorder, Relay, duplicate, open_outlet, widen
from ledger.command.terminal import RawMode, StopKey, copy_size, open_pty

__all__ = ["Plumbing"]


class Plumbing:
    """What the command's standard streams are connected to.

    `child` are the descriptors that the command gets as its standard input, output and error, None for /dev/null. `session`
    says that it reads from its pty, which then must be its controlling terminal.
    """

    def __init__(
        self, selector: selectors.BaseSelector, *, output: OutputMode, cap_bytes: int, sink: Sink | None
    ) -> None:
        self.session = False
        self.child: tuple[int | None, int | None, int | None] = (None, None, None)
        self._selector = selector
        self._output: OutputMode = output
        self._cap_bytes = cap_bytes
        self._sink = sink
        self._waiting: list[tuple[Recorder, int, int]] = []
        self._child_ends: list[int] = []
        self._streams: list[tuple[Recorder, Relay]] = []
        self._pty: int | None = None
        self._terminal = -1
        self._raw: RawMode | None = None
        self._keyboard: Relay | None = None
        self._stop_key: StopKey | None = None
        self._drained_ns = 0

    def lay(self, stdin: int, stdout: int, stderr: int, *, pty: bool) -> None:
        """Make the pipes or the pty.

        Raises:
            OSError: there is none to be had.
        """
        inherited = _open_or_none(stdin)
        if self._output == "none":
            self.child = (inherited, _open_or_none(stdout), _open_or_none(stderr))
            return
        if pty:
            self.session = inherited is not None and os.isatty(inherited)
            master, slave = open_pty(stdout, interactive=self.session)
            self._add("output", master, slave, stdout)
            self._pty, self._terminal = master, stdout
            self.child = (slave if self.session else inherited, slave, slave)
            if self.session:
                self._raw = RawMode(stdin)
            return
        ends: list[int] = []
        names: tuple[tuple[StreamName, int], ...] = (("stdout", stdout), ("stderr", stderr))
        for name, fd in names:
            read_end, write_end = os.pipe()
            widen(read_end)
            self._add(name, read_end, write_end, fd)
            ends.append(write_end)
        self.child = (inherited, ends[0], ends[1])

    def _add(self, name: StreamName, source: int, child_end: int, target: int) -> None:
        self._child_ends.append(child_end)
        recorder = Recorder(name, self._output, cap_bytes=self._cap_bytes, sink=self._sink)
        self._waiting.append((recorder, source, target))

    def connect(self) -> None:
        """Close the command's ends, which it has by now, and carry bytes from here on."""
        self._close_child_ends()
        while self._waiting:
            recorder, source, target = self._waiting.pop(0)
            self._streams.append((recorder, Relay(self._selector, source, open_outlet(target), taker=recorder)))
        self.resume()

    def _close_child_ends(self) -> None:
        while self._child_ends:
            os.close(self._child_ends.pop())

    @property
    def done(self) -> bool:
        """Whether every stream was read to its end or closed."""
        return all(relay.done for _, relay in self._streams)

    # The terminal.

    def resume(self) -> None:
        """Take our terminal, if it is ours to take now, and give its size and its keys to the command's."""
        self.resize()
        if self._raw is None or self._pty is None or self.done or not self._raw.take():
            return
        if self._keyboard is None or self._keyboard.done:
            outlet = Outlet(duplicate(self._pty), "own")
            self._stop_key = self._stop_key or StopKey(self._pty)
            self._keyboard = Relay(self._selector, self._raw.fd, outlet, taker=self._stop_key, owned=False)

    def stop_typed(self, group: int) -> bool:
        """Return whether a key was typed since the last call that must stop the command's group and us."""
        return self._stop_key is not None and not self.done and self._stop_key.pressed(group)

    def suspend(self) -> None:
        """Give our terminal back for as long as we are stopped."""
        if self._keyboard is not None:
            self._keyboard.stop()
        if self._raw is not None:
            self._raw.give_back()

    def resize(self) -> None:
        """Give the command's terminal the size of ours; the kernel tells the session that owns it."""
        if self._pty is not None and not self.done:
            copy_size(self._terminal, self._pty)

    # The end.

    def abandon(self) -> None:
        """Stop waiting for readers that take nothing."""
        for _, relay in self._streams:
            relay.abandon()

    def settle(self, *, ended: bool) -> None:
        """Stop reading keys when the command ended or its pty was closed, which the keys' way into it would keep open."""
        if self._keyboard is not None and (ended or self.done):
            self._keyboard.stop()

    def drain(self, *, since_ns: int, step_ns: int, now_ns: int, silence_ns: int, most_ns: int) -> int | None:
        """Close the streams that something holds after the command ended at `since_ns`; return when to look again.

        A stream is closed after `silence_ns` without a byte, or when `most_ns` were spent here. `step_ns` passed since the
        last call; time in which our own reader was awaited does not count.
        """
        held = [relay for _, relay in self._streams if not relay.done and not relay.blocked]
        if not held:
            return None
        self._drained_ns += step_ns
        ends: list[int] = []
        for relay in held:
            silent_at = max(relay.active_ns, since_ns) + silence_ns
            if now_ns >= silent_at or self._drained_ns >= most_ns:
                relay.stop()
            else:
                ends.append(silent_at)
        return min(ends, default=None)

    def records(self) -> tuple[CapturedStream, ...]:
        """Return what was recorded; the files of the kept bytes are the caller's from here on."""
        streams = tuple(
            recorder.end(
                undelivered_bytes=relay.undelivered_bytes, reader_gone=relay.reader_gone, left_open=relay.left_open
            )
            for recorder, relay in self._streams
        )
        self._streams = []
        return streams

    def close(self) -> None:
        """Give everything back; what `records` did not return is lost."""
        self.suspend()
        self._close_child_ends()
        for recorder, source, _ in self._waiting:
            os.close(source)
            recorder.discard()
        for recorder, relay in self._streams:
            relay.stop()
            recorder.discard()
        self._waiting, self._streams = [], []


def _open_or_none(fd: int) -> int | None:
    try:
        os.fstat(fd)
    except OSError:
        return None
    return fd
