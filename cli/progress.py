"""Progress of long work: how far it is and how long it still takes, on standard error where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cli.text import error_console

__all__ = ["LONG_BYTES", "progress"]

LONG_BYTES: Final = 64 << 20
"""Bytes of a journal from which on its verification is worth a progress bar: a second or more."""


@contextmanager
def progress(what: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many bytes were done since the last time; it shows them where somebody looks."""
    console = error_console()
    if total_bytes < LONG_BYTES or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import (  # noqa: PLC0415  its import would cost every command
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=total_bytes)
        yield lambda done: bar.advance(task, done)
