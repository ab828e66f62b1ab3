"""One command observed: its streams passed through live and recorded, its signals, its limit and its end.

Knows nothing of receipts. The rules:

- What the command writes reaches our own streams byte for byte and at once; what is recorded is what was read.
- "Nothing ran" and "it ran" are never confused: every status but four says that the program was never executed.
- A signal that we receive reaches the command exactly once, and our own handlers are put back afterwards.
- The command is waited for to its end; what it left behind is not. Nothing of ours stays: no descriptor, no zombie.
- It observes one process group and does not confine it: a descendant in a session of its own is out of reach.
"""

from ledger.command.end import (
    RAN,
    CapturedStream,
    CommandEnd,
    CommandError,
    CommandStatus,
    OutputMode,
    Sink,
    StreamName,
)
from ledger.command.start import stripped_environment
from ledger.command.supervise import DEFAULT_CAP_BYTES, run_command

__all__ = [
    "DEFAULT_CAP_BYTES",
    "RAN",
    "CapturedStream",
    "CommandEnd",
    "CommandError",
    "CommandStatus",
    "OutputMode",
    "Sink",
    "StreamName",
    "run_command",
    "stripped_environment",
]
