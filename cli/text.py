"""Text for people: escaping what evidence holds, short ids, colour only where it is seen.

Nothing from a ledger reaches a terminal raw: control and bidi characters are written as escapes, and markup is inert.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache

import orjson
from rich.console import Console
from rich.text import Text

__all__ = ["console", "error_console", "escape", "print_json", "say", "short", "styled", "write_bytes"]

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
    width = None if stream.isatty() else 1_000_000
    return Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not stream.isatty(), width=width
    )


def escape(text: str) -> str:
    """Return text in which control, bidi, format and unprintable characters are written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c.isprintable() and unicodedata.category(c) not in ("Cf", "Zl", "Zp") else ascii(c)[1:-1] for c in text
    )


def short(id_: str) -> str:
    """Return the first digits of a digest, enough to name it in one ledger."""
    return id_.removeprefix("sha256:")[:_ID_DIGITS]


def say(text: str = "", style: str | None = None) -> None:
    """Print one line for a person on standard error."""
    error_console().print(Text(text, style=style or ""), soft_wrap=True)


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
