"""`ledger report`: one HTML file for people who look rather than read; it opens from disk and asks nothing of any network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from cli.options import JsonOption, LedgerOption, OutputOption, Shared, TrustOption, shared
from cli.text import escape, print_json, say, write_bytes

__all__ = ["register"]

_Format: TypeAlias = Literal["html", "runbook"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(report)


def report(
    context: typer.Context,
    reference: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run, 8 or more of its digits. Without it: latest.", show_default=False),
    ] = None,
    output: OutputOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="All runs opened since then: 2026-11-30, 2026-11-30T09:15Z, 24h.", show_default=False
        ),
    ] = None,
    format_: Annotated[
        _Format, typer.Option("--format", help="html: a page for a browser; runbook: JSON of a run under a runbook.")
    ] = "html",
    artifacts: Annotated[
        bool, typer.Option("--artifacts", help="Show the beginning of arguments and outputs that are text.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Write a report on a run, or on all runs since a moment.

    It exits with its verdict. The page shows the verdict with every check and what it does not prove, the run as a timeline,
    budgets, approvals, refusals and counter-seals. It is a picture of the evidence, not evidence: the evidence is the ledger, or
    a bundle of it.
    """
    from cli.report.command import Wanted, render  # noqa: PLC0415  what it loads would cost `ledger --help`

    options = shared(context, ledger, json=json, trust=trust)
    if reference is not None and since is not None:
        raise typer.BadParameter("RUN and --since do not go together")
    if format_ == "runbook":
        if since is not None:
            raise typer.BadParameter("--since does not go with the report of one run under a runbook")
        _of_runbook(reference, output, options)
        return
    if output is None and sys.stdout.isatty():
        raise typer.BadParameter("a page is for a browser: name a file with -o", param_hint="--output")
    made = render(Wanted(reference, since, format_, artifacts=artifacts), options)
    if output is None:
        write_bytes(made.data)
    else:
        output.write_bytes(made.data)
        if options.json:
            print_json(
                {
                    "file": str(output),
                    "status": made.status,
                    "exit": made.exit,
                    "runs": made.runs,
                    "size_bytes": len(made.data),
                }
            )
        else:
            say(
                f"wrote {escape(str(output))}: {made.runs} {'run' if made.runs == 1 else 'runs'}, {made.status.replace('_', ' ')}"
            )
    raise typer.Exit(made.exit)


def _of_runbook(reference: str | None, output: Path | None, options: Shared) -> None:
    """Write the report of a run under a runbook: JSON without free text, the same by whoever makes it."""
    from cli.refs import resolve_run  # noqa: PLC0415
    from cli.runbook import runbook_report  # noqa: PLC0415
    from ledger.canonical import encode  # noqa: PLC0415
    from ledger.storage.ledger import Ledger  # noqa: PLC0415

    folder = options.folder()
    with Ledger.open(folder, places=options.places) as opened:
        data = encode(runbook_report(folder, resolve_run(opened, reference or "latest"))) + b"\n"
    if output is None:
        write_bytes(data)
    else:
        output.write_bytes(data)
