"""`ledger append`: receipts made elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption, LedgerOption, shared
from cli.text import print_json
from ledger.storage.ledger import Ledger

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(append)


def append(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="[FILE|-]", help="Envelopes, one a line; - is standard input.")
    ] = Path("-"),
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Append envelopes as one commit: all of them or none."""
    options = shared(context, ledger, json=json)
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    envelopes = [line for line in data.split(b"\n") if line]
    with Ledger.open(options.folder(), places=options.places) as opened:
        positions = opened.append_many(envelopes)
    if options.json:
        print_json([{"receipt": p.receipt, "index": p.index, "already": p.already} for p in positions])
        return
    for position in positions:
        typer.echo(f"{position.index}  {position.receipt}{'  already there' if position.already else ''}")
