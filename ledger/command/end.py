"""How a command ended and what it wrote: the values that `run_command` returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Final, Literal

from ledger.errors import LedgerError

__all__ = [
    "RAN",
    "CapturedStream",
    "CommandEnd",
    "CommandError",
    "CommandStatus",
    "OutputMode",
    "Sink",
    "StreamName",
]

CommandStatus = Literal["exited", "signaled", "limit", "lost", "not_found", "not_executable", "not_started"]
OutputMode = Literal["keep", "digest", "none"]
StreamName = Literal["stdout", "stderr", "output"]
Sink = Callable[[StreamName], IO[bytes]]
"""Gives the binary file, open for reading and writing, that the kept bytes of one stream go to."""

RAN: Final[frozenset[CommandStatus]] = frozenset({"exited", "signaled", "limit", "lost"})
"""The statuses that mean that the command was executed. After every other one nothing ran."""


class CommandError(LedgerError):
    """A call that makes no sense: a negative limit, an unknown output mode."""

    code = "command.usage"


@dataclass(frozen=True, slots=True)
class CapturedStream:
    """What was recorded of one stream.

    `total_bytes` and `digest` are of all bytes that were read from the command, `kept` holds the first `kept_bytes` of them
    and stands at its start; it is None when nothing was to be kept. `truncated_bytes` is what was to be kept and was not,
    because of the cap or of `keep_error`. `undelivered_bytes` were recorded but not taken by the reader of our own stream,
    `reader_gone` says that this reader left first. `left_open` says that something still held the stream when it was closed:
    what that wrote later is not recorded.
    """

    name: StreamName
    total_bytes: int
    digest: str
    kept: IO[bytes] | None
    kept_bytes: int
    truncated_bytes: int
    undelivered_bytes: int
    reader_gone: bool
    left_open: bool
    keep_error: str | None = None


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The end of one command.

    `exit_code` is set when it exited, `signal` when a signal ended it, both also under status `limit`. `lost` means that it
    ran and ended, but another waiter of this process took its status. `error` is set when nothing ran and when it was lost.
    `duration_ms` is monotonic time from before the start to the end of the process itself. `received` are the signals that
    this process received meanwhile, in order.
    """

    status: CommandStatus
    exit_code: int | None
    signal: int | None
    error: str | None
    duration_ms: int
    limit_hit: bool
    streams: tuple[CapturedStream, ...] = ()
    received: tuple[int, ...] = ()

    @property
    def ran(self) -> bool:
        """Whether the command was executed; False means that nothing of it ran."""
        return self.status in RAN

    @property
    def left_open(self) -> bool:
        """Whether a stream was still held by a descendant when recording stopped."""
        return any(stream.left_open for stream in self.streams)

    @property
    def shell_code(self) -> int:
        """The exit code that a shell, `timeout` or `env` would give: 0 to 255."""
        match self.status:
            case "limit":
                return 124
            case "not_found":
                return 127
            case "not_executable" | "not_started":
                return 126
            case "lost":
                return 125
            case "exited" | "signaled":
                return 128 + self.signal if self.signal is not None else self.exit_code or 0

    def close(self) -> None:
        """Close the files of the kept bytes."""
        for stream in self.streams:
            if stream.kept is not None:
                stream.kept.close()
