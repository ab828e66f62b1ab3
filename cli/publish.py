"""`ledger publish`: a tree of files for any static web server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cli.options import JsonOption, LedgerOption, program_name, shared
from cli.text import error_console, escape, print_json, say, short
from ledger.storage import publish as storage

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(publish)


def publish(
    context: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that is absent, empty, or published into before.")
    ],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Publish the ledger as a tree of static files.

    Any web server serves it (C2SP tlog-tiles). The tree holds the signed head, hashes and entries, and no receipt: it shows that receipts exist, in which order, and never
    what they say. A tree published before is brought up to date; only what is new is written.
    """
    options = shared(context, ledger, json=json)
    with _progress() as progress:
        done = storage.publish(options.folder(), target, progress=progress)
    head = done.head
    if options.json:
        print_json(
            {
                "folder": str(target),
                "origin": head.origin,
                "size": head.size,
                "root": "sha256:" + head.root.hex(),
                "before": done.before,
                "made": done.made,
                "collected": done.collected,
            }
        )
        return
    new = head.size - done.before
    typer.echo(f"published  {escape(str(target))}")
    typer.echo(f"origin     {escape(head.origin)}")
    typer.echo(f"size       {head.size:,}, root {short('sha256:' + head.root.hex())}")
    typer.echo(f"new        {new:,} entries in {done.made:,} files" if new else "new        nothing")
    say(f"next:      {program_name()} verify {escape(str(target))}")


@contextmanager
def _progress() -> Iterator[storage.Progress | None]:
    """Yield what draws a bar on standard error, None where it is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("publishing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True) as bars:
        task = bars.add_task("publishing", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
