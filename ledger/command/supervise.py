"""The supervisor: one loop over the command's streams, its end, our signals and the clock."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from ledger.command.end import CommandEnd, CommandError, CommandStatus, OutputMode, Sink
from ledger.command.plumbing import Plumbing
from ledger.command.process import Process
from ledger.command.signals import FORWARDED, SignalWatch, stop_group
from ledger.command.start import NotStarted, start
from ledger.command.terminal import Foreground

__all__ = ["DEFAULT_CAP_BYTES", "DRAIN_MS", "SILENCE_MS", "run_command"]

DEFAULT_CAP_BYTES: Final = 16 * 1024 * 1024

SILENCE_MS: Final = 200
"""After the end of the command, a stream that something still holds is closed when it was silent for so long."""

DRAIN_MS: Final = 2000
"""After the end of the command, a held stream is closed after so long even if it is not silent."""

_MS: Final = 1_000_000
_POLL_NS: Final = 20 * _MS
_POLL_STOP_NS: Final = 200 * _MS


def run_command(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    pty: bool = False,
    output: OutputMode = "keep",
    cap_bytes: int = DEFAULT_CAP_BYTES,
    limit_ms: int | None = None,
    grace_ms: int = 5000,
    on_start: Callable[[int], None] | None = None,
    stdin: int = 0,
    stdout: int = 1,
    stderr: int = 2,
    sink: Sink | None = None,
) -> CommandEnd:
    """Return how the command `argv` ended, after it ended and its streams were read.

    Its environment is exactly `env`; nothing of it is stripped here. `stdin`, `stdout` and `stderr` are our descriptors: the
    first is inherited by the command, the others get what it writes. One that is closed reads as /dev/null, and what was
    meant for it is recorded all the same. Text of our own that is still in a buffer must be flushed before.

    With `pty` the command writes to a pty with the modes and size of the terminal `stdout`, and there is one stream,
    `output`; it also reads from that pty if `stdin` is a terminal. With `output="none"` it gets our descriptors themselves,
    no pty, and there are no streams. Otherwise every byte is digested, and with `keep` the first `cap_bytes` of a stream go
    to the file that `sink` gives for it (a temporary one without), which the caller closes.

    After `limit_ms` from its start the command's process group gets SIGTERM and, `grace_ms` later, SIGKILL.

    SIGINT, SIGTERM, SIGHUP and SIGQUIT that we receive are passed on to the command's group; a stop by Ctrl-Z stops both.
    This needs the main thread; in another one the command just runs, and the interpreter's own handlers see the signals.

    `on_start` is called with the process id when the command has been executed. An exception from it, or any other, ends the
    command's group before it is raised further.

    Raises:
        CommandError: `limit_ms`, `grace_ms` or `cap_bytes` is negative, or `output` is unknown.
    """
    for name, number in (("limit", limit_ms), ("grace", grace_ms), ("cap", cap_bytes)):
        if number is not None and number < 0:
            raise CommandError(f"{name}: got {number}, expected 0 or more")
    if output not in get_args(OutputMode):
        raise CommandError(f"output: got {output!r}, expected keep, digest or none")
    begun_ns = time.monotonic_ns()
    with contextlib.ExitStack() as cleanup:
        selector = cleanup.enter_context(selectors.DefaultSelector())
        signals, foreground = SignalWatch(), Foreground()
        plumbing = Plumbing(selector, output=output, cap_bytes=cap_bytes, sink=sink)
        for part in (signals, foreground, plumbing):
            cleanup.callback(part.close)
        signals.open()
        try:
            plumbing.lay(stdin, stdout, stderr, pty=pty)
        except OSError as error:
            reason = NotStarted("not_started", f"command: no pipe or pty for its output: {error.strerror}")
            return _nothing_ran(reason, begun_ns)
        popen = start(argv, env=env, cwd=cwd, streams=plumbing.child, session=plumbing.session)
        if isinstance(popen, NotStarted):
            return _nothing_ran(popen, begun_ns)
        process = Process(popen)
        cleanup.callback(process.close)
        try:
            foreground.open()
            plumbing.connect()
            if on_start is not None:
                on_start(process.pid)
            loop = _Loop(selector, process, plumbing, signals, foreground, pty=pty)
            loop.run(limit_ms, grace_ms)
        except BaseException:
            process.destroy(grace_ms)
            raise
        return loop.end(begun_ns)


def _nothing_ran(why: NotStarted, begun_ns: int) -> CommandEnd:
    duration_ms = (time.monotonic_ns() - begun_ns) // _MS
    return CommandEnd(why.status, None, None, why.error, duration_ms, limit_hit=False)


class _Loop:
    """The loop, from the start of the process to its end and the end of its streams."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        process: Process,
        plumbing: Plumbing,
        signals: SignalWatch,
        foreground: Foreground,
        *,
        pty: bool,
    ) -> None:
        self._selector = selector
        self._process = process
        self._plumbing = plumbing
        self._signals = signals
        self._foreground = foreground
        self._pty = pty
        self._limit_at: int | None = None
        self._kill_at: int | None = None
        self._killed = False
        self._received: list[int] = []
        # A session of its own is stopped by key, at its terminal; only a group in our session is followed when it stops.
        self._follow_stops = foreground.exists and not plumbing.session

    def run(self, limit_ms: int | None, grace_ms: int) -> None:
        """Return when the process ended, its streams ended or were closed, and after a limit its group is gone."""
        now = time.monotonic_ns()
        grace_ns = grace_ms * _MS
        if limit_ms is not None:
            self._limit_at = now + limit_ms * _MS
        if self._signals.fd is not None:
            self._selector.register(self._signals.fd, selectors.EVENT_READ, self._on_signals)
        if self._process.end_fd is not None:
            self._selector.register(self._process.end_fd, selectors.EVENT_READ, self._on_end)
        while True:
            before, now = now, time.monotonic_ns()
            wake_at = self._tick(now, now - before, grace_ns)
            if wake_at is None and self._finished():
                return
            timeout_s = None if wake_at is None else max(0, wake_at - now) / 1e9
            for key, _ in self._selector.select(timeout_s):
                key.data()
            if self._process.ended_ns is None and self._plumbing.stop_typed(self._process.pid):
                self._on_stop_key()

    def _finished(self) -> bool:
        return self._process.ended_ns is not None and self._plumbing.done

    # Time.

    def _tick(self, now: int, step_ns: int, grace_ns: int) -> int | None:
        """Do what is due; return when something is due next, None when nothing is."""
        wakes: list[int] = []
        if self._process.ended_ns is None:
            wakes += self._tick_running(now, grace_ns)
        self._plumbing.settle(ended=self._process.ended_ns is not None)
        if self._process.ended_ns is not None:
            wakes += self._tick_ended(self._process.ended_ns, now, step_ns)
        if self._kill_at is not None and not self._killed:
            if now >= self._kill_at:
                self._kill()
            else:
                wakes.append(self._kill_at)
        return min(wakes, default=None)

    def _tick_running(self, now: int, grace_ns: int) -> list[int]:
        wakes: list[int] = []
        if self._process.end_fd is None:
            self._on_end()
            wakes.append(now + _POLL_NS)
        elif self._follow_stops and self._signals.fd is None:
            self._on_child()
            wakes.append(now + _POLL_STOP_NS)
        if self._limit_at is not None and self._kill_at is None:
            if now < self._limit_at:
                wakes.append(self._limit_at)
                return wakes
            self._process.reap()
            if self._process.ended_ns is None:
                self._kill_at = now + grace_ns
                self._process.signal(signal.SIGTERM)
                # A stopped process takes its SIGTERM only when continued.
                self._process.signal(signal.SIGCONT)
        return wakes

    def _tick_ended(self, ended_ns: int, now: int, step_ns: int) -> list[int]:
        wakes: list[int] = []
        look_at = self._plumbing.drain(
            since_ns=ended_ns, step_ns=step_ns, now_ns=now, silence_ns=SILENCE_MS * _MS, most_ns=DRAIN_MS * _MS
        )
        if look_at is not None:
            wakes.append(look_at)
        if self._kill_at is not None and not self._killed:
            if self._process.signal_rest(0):
                wakes.append(now + _POLL_NS)
            else:
                self._killed = True
        if self._killed:
            # The limit holds for us too: a reader that takes nothing is not waited for.
            self._plumbing.abandon()
        return wakes

    def _kill(self) -> None:
        self._killed = True
        if self._process.ended_ns is None:
            self._process.signal(signal.SIGKILL)
        else:
            self._process.signal_rest(signal.SIGKILL)

    # Events.

    def _on_end(self) -> None:
        self._process.reap()
        if self._process.ended_ns is not None and self._process.end_fd is not None:
            self._selector.unregister(self._process.end_fd)
            self._process.close()

    def _on_child(self) -> None:
        if self._follow_stops:
            stopped_by = self._process.reap(stops=True)
            if stopped_by is not None:
                self._on_stop(stopped_by)

    def _on_signals(self) -> None:
        for number in self._signals.read():
            match number:
                case signal.SIGCHLD:
                    self._on_child()
                case signal.SIGWINCH:
                    self._plumbing.resize()
                    if not self._plumbing.session:
                        self._process.signal(number)
                case signal.SIGTSTP if self._plumbing.session:
                    self._plumbing.suspend()
                    stop_group()
                    self._plumbing.resume()
                case signal.SIGCONT if self._plumbing.session:
                    self._plumbing.resume()
                case signal.SIGTSTP | signal.SIGCONT:
                    # A stop that we did not see yet would be answered by a SIGCONT, which discards this one.
                    self._on_child()
                    self._process.signal(number)
                case _ if number in FORWARDED:
                    self._received.append(number)
                    self._process.signal(number)
                    if self._process.ended_ns is not None:
                        self._plumbing.abandon()
                case _:
                    pass

    def _on_stop_key(self) -> None:
        """Stop a command that has a session of its own, and us, until our shell continues both."""
        self._process.signal(signal.SIGSTOP)
        self._plumbing.suspend()
        stop_group()
        self._plumbing.resume()
        self._process.signal(signal.SIGCONT)

    def _on_stop(self, number: int) -> None:
        """Follow the command into its stop, so that our shell sees it and can continue both."""
        wants_terminal = number in (signal.SIGTTIN, signal.SIGTTOU)
        if wants_terminal and self._foreground.lend(self._process.pid):
            self._process.signal(signal.SIGCONT)
            return
        if self._signals.fd is None:
            return
        lent = self._foreground.take_back()
        stop_group()
        received = self._signals.read()
        if signal.SIGCONT in received:
            if lent:
                self._foreground.lend(self._process.pid)
            self._process.signal(signal.SIGCONT)
        elif number != signal.SIGSTOP:
            # Our group is an orphan: nobody could continue it, so it was not stopped. The kernel's own rules for one.
            if wants_terminal:
                self._process.signal(signal.SIGHUP)
            self._process.signal(signal.SIGCONT)
        for other in received:
            if other in FORWARDED:
                self._received.append(other)
                self._process.signal(other)

    # The end.

    def end(self, begun_ns: int) -> CommandEnd:
        """Return how it ended."""
        process = self._process
        duration_ms = ((process.ended_ns or begun_ns) - begun_ns) // _MS
        exit_code = signal_number = None
        status: CommandStatus = "lost"
        if process.status is not None and os.WIFSIGNALED(process.status):
            status, signal_number = "signaled", os.WTERMSIG(process.status)
        elif process.status is not None:
            status, exit_code = "exited", os.WEXITSTATUS(process.status)
        limit_hit = self._kill_at is not None
        return CommandEnd(
            status="limit" if limit_hit else status,
            exit_code=exit_code,
            signal=signal_number,
            error="command: another waiter of this process took its exit status" if process.lost else None,
            duration_ms=duration_ms,
            limit_hit=limit_hit,
            streams=self._plumbing.records(),
            received=tuple(self._received),
        )
