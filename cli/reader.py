"""Readers: what `ledger run --reader NAME` makes of the output of a command whose output says what it did.

    ledger run --reader axlr -- axlr-tui --exec "..." --json

The command is recorded as always. Its output is imported besides, as `ledger import` would: the lines as they came, the verdict by
the rules of that system, and what they say as a run of its own, which names the command's run in its correlation.
What the output says of how the work ended goes before the exit code: a stream that ends before its result is `interrupted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.importing import checked_under, import_documents
from cli.incoming import Incoming, judge_incoming
from ledger.errors import LedgerError, clip
from ledger.storage.ledger import Ledger
from ledger.words import RunStatus
from verify.foreign import Recognised, format_of
from verify.options import Options
from verify.trust import Trust

__all__ = ["CORRELATION", "READERS", "Reader", "Said", "reader_of"]

READERS: Final = ("axlr",)
CORRELATION: Final = "ledger.run"
"""Correlation of an imported run that names the run of the command which wrote it."""
_ENDS: Final = {
    "completed": RunStatus.COMPLETED,
    "needs_decision": RunStatus.INCOMPLETE,
    "interrupted": RunStatus.INTERRUPTED,
    "failed": RunStatus.FAILED,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What the output said: how the work ended, None where it is not about that, and where it was imported."""

    status: RunStatus | None
    import_: str | None = None
    run: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the output of one command. `under` is the policy that the command itself was told."""

    name: str
    under: Options
    cap_bytes: int = 256 << 20
    """How much of its output is kept: a part of it would be a broken stream."""

    def read(self, opened: Ledger, output: bytes, *, run: str, trust: Trust | None) -> Said:
        """Return what the output said, after importing it. Never raises: the command ran, whatever it wrote."""
        found = format_of(self.name).recognise(output) or Recognised(self.name, "stream", "unknown")
        status = _status(output, found)
        if not output.strip():
            return Said(status, problem="it wrote nothing, so there is nothing to import")
        try:
            (judged,) = judge_incoming([Incoming("stdout", output, found)], trust, self.under)
            recorded, _, _ = import_documents(opened, [judged], self.under, correlation={CORRELATION: run})
        except LedgerError as error:
            return Said(status, problem=f"its output could not be imported: {error}")
        return Said(status, recorded.imports[judged.digest].receipt, recorded.runs[0] if recorded.runs else None)


def _status(output: bytes, found: Recognised) -> RunStatus:
    """Return how the output says that the work ended."""
    from verify.foreign.axlr.stream import read_stream  # noqa: PLC0415  only a reader needs it

    if found.kind != "stream":
        return RunStatus.INTERRUPTED
    stream = read_stream(output)
    said = stream.result.get("status") if stream.result is not None and not stream.torn else None
    return _ENDS.get(said, RunStatus.INTERRUPTED) if isinstance(said, str) else RunStatus.INTERRUPTED


def reader_of(name: str | None, command: Sequence[str]) -> Reader | None:
    """Return the reader of a name, with the policy file that the command names; None for none.

    Raises:
        LedgerError: no such reader, or a policy that cannot be read: nothing runs.
    """
    if name is None:
        return None
    if name not in READERS:
        raise LedgerError(f"--reader: got {clip(name)}, expected one of {', '.join(READERS)}", code="usage.reader")
    path = _policy_path(command)
    try:
        data = None if path is None else Path(path).read_bytes()
    except OSError as error:
        raise LedgerError(f"--reader: policy {clip(path)}: {error.strerror}", code="usage.reader") from error
    return Reader(name, checked_under(data, ()))


def _policy_path(command: Sequence[str]) -> str | None:
    """Return the file that a command of AXLR is told as its policy."""
    for place, word in enumerate(command):
        if word == "--policy" and place + 1 < len(command):
            return command[place + 1]
        if word.startswith("--policy="):
            return word.partition("=")[2]
    return None
