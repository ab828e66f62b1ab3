"""Text for people: escaping what evidence holds, short ids, colour only where it is seen.

Nothing from a ledger reaches a terminal raw: control and bidi characters are written as escapes, and markup is inert.
"""

from __future__ import annotations

import sys
import traceback
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from rich.console import Console
from rich.text import Text

from ledger.errors import LedgerError, clip

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = [
    "console",
    "error_console",
    "escape",
    "print_json",
    "say",
    "say_error",
    "short",
    "styled",
    "took",
    "write_bytes",
]

_ID_DIGITS = 12


@cache
def console() -> Console:
    """Return the console of standard output: colours in a terminal only, no line folding in a pipe."""
    return _console(stderr=False)


@cache
def error_console() -> Console:
    """Return the console of standard error."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # A terminal's lines are folded between words, so that an id stays whole; a pipe's lines are as long as they are.
    width = None if stream.isatty() else 1_000_000
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not stream.isatty(), width=width
    )


def escape(text: str, *, keep: str = "") -> str:
    """Return text in which control, bidi, format and unprintable characters are written as escapes, but those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in keep or (c.isprintable() and unicodedata.category(c) not in ("Cf", "Zl", "Zp")) else ascii(c)[1:-1]
        for c in text
    )


def short(id_: str) -> str:
    """Return the first digits of a digest, enough to name it in one ledger."""
    return id_.removeprefix("sha256:")[:_ID_DIGITS]


def say(text: str = "", style: str | None = None) -> None:
    """Print one line for a person on standard error."""
    error_console().print(Text(text, style=style or ""), soft_wrap=True)


def say_error(error: Exception) -> None:
    """Say on standard error why a command ended; an error that is not ours is a fault of the program, and said to be one."""
    if isinstance(error, LedgerError):
        say(escape(str(error)), style="bold red")
        if error.hint:
            say(f"  {escape(error.hint)}")
    elif isinstance(error, OSError):
        name = f": {str(Path(error.filename))!r}" if isinstance(error.filename, str) else ""
        say(escape(f"{error.strerror or error}{name}"), style="bold red")
    elif (problems := _problems_of(error)) is not None:
        for each in problems:
            where = ".".join(str(part) for part in each["loc"])
            say(escape(f"{where}: got {clip(each['input'])}: {each['msg']}"), style="bold red")
    else:
        say(escape("".join(traceback.format_exception(error)), keep="\n"))
        say("this is a fault of the program and says nothing about the evidence; please report it", style="bold red")


def _problems_of(error: Exception) -> list[ErrorDetails] | None:
    """Return what a validation of values found, None for any other error. Whoever never loaded the validator has none of its errors."""
    validator = sys.modules.get("pydantic")
    return error.errors(include_url=False) if validator and isinstance(error, validator.ValidationError) else None


def took(duration_ms: int) -> str:
    """Return a duration as people write it."""
    return f"{duration_ms:,} ms" if duration_ms < 10_000 else f"{duration_ms / 1000:,.1f} s"


def styled(text: str, style: str) -> Text:
    """Return escaped text in a style."""
    return Text(escape(text), style=style)


def print_json(value: object) -> None:
    """Print one JSON value on standard output, indented in a terminal, on one line in a pipe."""
    option = orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0
    write_bytes(orjson.dumps(value, option=option) + b"\n")


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
