"""Starting a command: it runs, or nothing ran and the reason is known.

Source: POSIX 2.8.2 (exit status 126 and 127).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ledger.errors import clip

__all__ = ["NotStarted", "start", "stripped_environment"]

_SECRET: Final = re.compile(r"LEDGER_.*(KEY|TOKEN|SECRET|PASS)", re.IGNORECASE)

_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})
_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ETXTBSY, errno.EISDIR, errno.EINVAL, errno.ELIBBAD}
)


def stripped_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` without the secrets of the ledger: every `LEDGER_` name that speaks of a key, token, secret or password."""
    return {name: value for name, value in env.items() if _SECRET.match(name) is None}


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Why nothing ran."""

    status: Literal["not_found", "not_executable", "not_started"]
    error: str


def _take_terminal() -> None:
    """Make standard output the controlling terminal; runs in the child, between fork and exec."""
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    streams: tuple[int | None, int | None, int | None],
    session: bool,
) -> subprocess.Popen[bytes] | NotStarted:
    """Return the process, which has been executed, or the reason why nothing ran.

    Its standard input, output and error are `streams`, /dev/null for None. It leads a process group of its own; with `session`
    also a session whose controlling terminal is its standard output. No other descriptor is inherited.
    """
    if not argv:
        return NotStarted("not_started", "command: got no arguments, expected a program")
    if cwd is not None and not (cwd.is_dir() and os.access(cwd, os.X_OK)):
        return NotStarted(
            "not_started", f"working directory: got {clip(str(cwd))}, expected a folder that can be entered"
        )
    if not argv[0]:
        return NotStarted("not_found", "command: got an empty name, expected a program")
    stdin, stdout, stderr = (subprocess.DEVNULL if fd is None else fd for fd in streams)
    try:
        return subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=session,
            process_group=None if session else 0,
            # Only a fork can set a controlling terminal; without it the start needs no copy of our memory.
            preexec_fn=_take_terminal if session else None,  # noqa: PLW1509
        )
    except OSError as error:
        return _explain(error, argv[0], env, cwd)
    except (ValueError, subprocess.SubprocessError) as error:
        return NotStarted("not_started", f"command: {clip(argv[0])} cannot be started: {error}")


def _explain(error: OSError, program: str, env: Mapping[str, str], cwd: Path | None) -> NotStarted:
    """Return what an error of the start means; all of them were raised before the program replaced the child."""
    shown, reason, code = clip(program), error.strerror or str(error), error.errno
    # The name of the file is given only by errors of the execution itself, not by those of the steps before it.
    if error.filename != program or code not in _MISSING | _REFUSED:
        return NotStarted("not_started", f"command: {shown} cannot be started: {reason}")
    named_by_path = "/" in program
    if not (named_by_path and code in _REFUSED) and not _exists(program, env, cwd):
        return NotStarted("not_found", f"command: {shown} was not found")
    if code in _MISSING:
        return NotStarted("not_executable", f"command: {shown} names an interpreter or loader that was not found")
    if code == errno.ENOEXEC:
        return NotStarted("not_executable", f"command: {shown} is neither a program nor a script with a #! line")
    return NotStarted("not_executable", f"command: {shown} cannot be executed: {reason}")


def _exists(program: str, env: Mapping[str, str], cwd: Path | None) -> bool:
    """Return whether the search for `program` meets a file; a folder counts only where it was named by path."""
    base = cwd if cwd is not None else Path()
    try:
        if "/" in program:
            return (base / program).exists()
        return any((base / folder / program).is_file() for folder in os.get_exec_path(env))
    except (OSError, ValueError):
        return False
