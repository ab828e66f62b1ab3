"""`ledger export parquet`: the tables of `ledger sql` as Parquet files, each with the verified head and range inside."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cli.asked import exit_of_answer, footers, parquet_members
from cli.indexing import bring_up_to_date, opened
from cli.options import JsonOption, LedgerOption, TrustOption, outside_ledgers, shared
from cli.text import escape, print_json, say
from cli.trustfile import read_trust
from ledger.errors import clip
from ledger.index.beside import Beside
from ledger.index.columns import quoted
from ledger.index.parquet import part_of, write_parquet
from ledger.index.schema import PUBLIC
from ledger.index.session import open_session
from ledger.storage.clock import now

__all__ = ["register"]

_CONTENT = {"calls": ("arguments",)}
"""Columns that hold what artifacts hold; a copy of it outlives an erasure."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("parquet")(parquet)


def parquet(
    context: typer.Context,
    tables: Annotated[
        list[str], typer.Argument(metavar="[TABLE]...", help="Tables; without any, all.", show_default=False)
    ] = [],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Write TABLE.parquet here.", callback=outside_ledgers)
    ] = Path("parquet"),
    arguments: Annotated[
        bool,
        typer.Option("--arguments", help="Write the arguments of calls too; erasing them will not reach the file."),
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Write tables as Parquet, for Spark, Trino, DuckDB and others; docs/reference/sql.md describes them.

    What is new in the ledger is verified first. Head, range and whether the signer is pinned stand in the metadata of each file.
    """
    options = shared(context, ledger, json=json, trust=trust)
    known = {each.name: each for each in PUBLIC}
    for name in tables:
        if name not in known:
            raise typer.BadParameter(f"got {clip(name)}, expected one of {', '.join(known)}", param_hint="TABLE")
    current = bring_up_to_date(options.folder(), options)
    output.mkdir(parents=True, exist_ok=True)
    files = {name: output / f"{name}.parquet" for name in dict.fromkeys(tables or known)}
    asked_at, writable = now().replace("T", " ").removesuffix("Z"), tuple(map(part_of, files.values()))
    open_ = partial(open_session, asked_at=asked_at, writable=writable)
    ((indexed,), connection) = opened([current], options, open_)
    source = indexed.source
    trusted = read_trust(options)
    beside = Beside(
        {source.ledger: source.folder},
        {} if trusted is None else {name: pin.key for name, pin in trusted.notaries.items()},
    )
    rows = {}
    with connection:
        found = footers(connection, [source], ())
        for name, file in files.items():
            hidden = () if arguments else _CONTENT.get(name, ())
            columns = ", ".join(quoted(each.name) for each in known[name].columns if each.name not in hidden)
            query = f"SELECT {columns} FROM {name}"  # noqa: S608  names that are declared
            rows[name] = write_parquet(connection, query, {}, file, members=parquet_members(found), beside=beside)
    if options.json:
        print_json(
            {"files": {name: str(file) for name, file in files.items()}, "rows": rows, "state": found[0].to_value()}
        )
    else:
        say(f"wrote {len(files)} tables, {sum(rows.values()):,} rows, into {escape(str(output))}")
        found[0].say()
    raise typer.Exit(exit_of_answer(found, rows=False))
