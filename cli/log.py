"""`ledger log`: runs, newest first, or the chain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.options import JsonOption, LedgerOption, shared
from cli.refs import runs_newest_first
from cli.text import console, print_json, short, styled, took
from ledger.errors import LedgerError
from ledger.receipt import Opening, Run, parse_receipt
from ledger.storage.journal import Stored
from ledger.storage.ledger import Ledger
from ledger.storage.reader import Reader

__all__ = ["STATUS_STYLES", "register"]

STATUS_STYLES = {
    "completed": "green",
    "committed": "green",
    "open": "yellow",
    "failed": "red",
    "ambiguous": "bold magenta",
    "blocked": "yellow",
    "denied": "yellow",
    "interrupted": "magenta",
}


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(log)


def log(
    context: typer.Context,
    entries: Annotated[bool, typer.Option("--entries", help="Show the chain, entry by entry.")] = False,
    after: Annotated[
        int | None,
        typer.Option(metavar="INDEX", min=0, max=2**53, help="Only entries after this index.", show_default=False),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("-n", "--number", metavar="N", min=0, max=2**53, help="At most N rows.", show_default=False),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """List runs, newest first; with --entries the chain, oldest first."""
    options = shared(context, ledger, json=json)
    reader = Ledger.open(options.folder(), places=options.places).reader
    rows = _entries(reader, after) if entries else _runs(reader, after)
    chosen = list(islice(rows, number))
    if options.json:
        print_json(chosen)
    elif entries:
        _print(chosen, ("index", "receipt", "kind", "run", "recorded_at"))
    else:
        agents = ("agent",) if console().width >= 100 and any(row["agent"] != "unknown" for row in chosen) else ()
        _print(chosen, ("run", "name", "status", "opened_at", "took", *agents, "receipt"))


def _runs(reader: Reader, after: int | None) -> Iterator[dict[str, Any]]:
    for opening_entry, closing_entry in runs_newest_first(reader):
        if after is not None and opening_entry.entry.index <= after:
            return
        yield run_row(opening_entry, closing_entry)


def run_row(opening_entry: Stored, closing_entry: Stored | None) -> dict[str, Any]:
    """Return what is listed of a run: its closing receipt where it is closed, else its opening."""
    opening = parse_receipt(opening_entry.envelope.payload)
    assert isinstance(opening, Opening)  # noqa: S101  asked for by kind
    closing = parse_receipt(closing_entry.envelope.payload) if closing_entry is not None else None
    shown = (closing_entry or opening_entry).entry
    row: dict[str, Any] = {
        "index": shown.index,
        "receipt": shown.receipt,
        "kind": "run" if closing is not None else "opening",
        "run": opening_entry.entry.receipt,
        "recorded_at": shown.recorded_at,
        "name": opening.name,
        "status": closing.status if isinstance(closing, Run) else "open",
        "opened_at": opening.issued_at,
        "agent": opening.actor.agent,
        "user": opening.actor.user,
    }
    if isinstance(closing, Run):
        row["duration_ms"] = closing.duration_ms
        if closing.reason is not None:
            row["reason"] = closing.reason
    if opening.correlation:
        row["correlation"] = opening.correlation
    if opening.parent_opening is not None:
        row["parent"] = opening.parent_opening
    return row


def _entries(reader: Reader, after: int | None) -> Iterator[dict[str, Any]]:
    for stored in reader.entries(0 if after is None else after + 1):
        row: dict[str, Any] = {
            "index": stored.entry.index,
            "receipt": stored.entry.receipt,
            "kind": "unknown",
            "recorded_at": stored.entry.recorded_at,
            "sealed": stored.envelope.seal is not None,
        }
        try:
            receipt = parse_receipt(stored.envelope.payload)
        except LedgerError as error:
            row["error"] = error.code
        else:
            row["kind"] = receipt.kind
            run = stored.entry.receipt if isinstance(receipt, Opening) else getattr(receipt, "run", None)
            if run is not None:
                row["run"] = run
        yield row


def _print(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        free = column in ("name", "agent")  # where a terminal is narrow these give way, never an id
        table.add_column(
            column,
            no_wrap=not free,
            overflow="fold" if free else "ellipsis",
            min_width=None if free else max(len(column), *(len(_cell(row, column)) for row in rows), 0),
            justify="right" if column in ("index", "took") else "left",
        )
    for row in rows:
        table.add_row(
            *(
                styled(_cell(row, column), STATUS_STYLES.get(str(row.get(column)), "") if column == "status" else "")
                for column in columns
            )
        )
    console().print(table, soft_wrap=False)


def _cell(row: dict[str, Any], column: str) -> str:
    value = row.get("duration_ms" if column == "took" else column, "")
    match column:
        case "run" | "receipt":
            return short(value) if value else ""
        case "took":
            return took(value) if isinstance(value, int) else ""
        case "opened_at" | "recorded_at":
            return str(value).replace("T", " ")[:19]
        case _:
            return str(value)
