"""`ledger budget`: what a run may spend, has spent, has set aside, and has left."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.table import Table

from cli.options import JsonOption, LedgerOption, shared
from cli.refs import closing_of, resolve_run
from cli.text import console, print_json
from ledger.canonical import JsonObject
from ledger.receipt import Run, parse_receipt
from ledger.rules.amounts import DURATION
from ledger.rules.budget import Budget
from ledger.spending import budget_of
from ledger.storage.ledger import Ledger

__all__ = ["register"]

_COLUMNS: Final = ("meter", "limit", "spent", "reserved", "left")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(budget)


def budget(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="RUN", help="The run.")],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a run may spend and has left.

    Limits, what is spent, set aside and left, the runs inside it included.

    A run without a limit of its own is not counted; the run above it is.
    """
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    run = resolve_run(opened, reference)
    found, lasted = budget_of(opened.reader, run), _lasted(opened, run)
    if options.json:
        print_json({"run": run, "overrun": found.overrun, "meters": rows(found, lasted)})
        return
    if not found.is_limited():
        typer.echo("no limits")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for word in _COLUMNS:
        table.add_column(word, justify="left" if word == "meter" else "right")
    for row in rows(found, lasted):
        table.add_row(*("-" if row[word] is None else str(row[word]) for word in _COLUMNS))
    console().print(table)
    if found.overrun is not None:
        typer.echo(f"overrun: {found.overrun}; nothing more is admitted")


def rows(budget: Budget, lasted: int | None = None) -> list[JsonObject]:
    """Return the meters of a budget that are limited or were used, by name; `lasted` is the time that a closed run took, in ms."""
    # Time goes on by itself: nothing is spent of it in the ledger until the run is closed.
    found = {**budget.lines}
    if lasted is not None and DURATION in found:
        found[DURATION] = found[DURATION]._replace(spent=lasted)
    return [
        {"meter": meter, "limit": line.limit, "spent": None, "reserved": None, "left": None}
        if meter == DURATION and lasted is None
        else {"meter": meter, "limit": line.limit, "spent": line.spent, "reserved": line.reserved, "left": line.left}
        for meter, line in sorted(found.items())
        if line.limit is not None or line.spent or line.reserved
    ]


def _lasted(opened: Ledger, run: str) -> int | None:
    """Return how long a closed run took, in ms; None while it is open and where its receipt does not know."""
    closing = closing_of(opened.reader, run)
    receipt = None if closing is None else parse_receipt(closing.envelope.payload)
    return receipt.duration_ms if isinstance(receipt, Run) and isinstance(receipt.duration_ms, int) else None
