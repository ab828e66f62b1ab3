"""`ledger index`: bring the index of a ledger up to date, or make it anew."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asked import exit_of_answer, footer_of, footers
from cli.indexing import bring_up_to_date, opened
from cli.options import JsonOption, LedgerOption, TrustOption, shared
from cli.text import escape, print_json, say
from ledger.index.session import open_state
from ledger.index.stamp import marks_of

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(index)


def index(
    context: typer.Context,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Verify everything again and make it anew.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes that verify.", show_default=False)
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Bring the index of `ledger sql` up to date.

    What is new is verified first.
    It is never needed to append or to verify, and can be deleted at any time.
    """
    options = shared(context, ledger, json=json, trust=trust)
    found = bring_up_to_date(options.folder(), options, jobs=jobs, rebuild=rebuild)
    if found.said is None:
        ((found,), connection) = opened([found], options, lambda sources: open_state(*sources), jobs=jobs)
        with connection:
            (footer,) = footers(connection, [found.source], ())
    else:
        row, checks = found.said
        footer = footer_of(found.source, row, checks)
    size = sum(mark[0] for mark in marks_of(found.source.path) if mark is not None)
    if options.json:
        print_json({"file": str(found.source.path), "size_bytes": size, "done": found.done, "state": footer.to_value()})
    else:
        words = {"nothing": "is up to date", "caught up": "was caught up", "made": "was made"}
        say(f"{escape(str(found.source.path))} {words[found.done]}, {size:,} bytes")
        footer.say()
    if found.problem is not None:
        say(f"it will be made anew the next time: {escape(found.problem)}")
    raise typer.Exit(exit_of_answer([footer], rows=False))
