"""`ledger sql`: ask in SQL over verified receipts."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer
from rich.text import Text

from cli.asked import Footer, exit_of_answer, footers, parquet_members, read_values
from cli.indexing import bring_up_to_date, opened
from cli.options import JsonOption, LedgersOption, TrustOption, outer_of, outside_ledgers, shared
from cli.rows import print_csv, print_table, row_values
from cli.text import console, escape, print_json, say, say_error
from cli.trustfile import read_trust
from ledger.errors import clip
from ledger.index.asking import Answer, QueryTimeError, ask, within
from ledger.index.beside import Beside
from ledger.index.parquet import part_of, write_parquet
from ledger.index.questions import QUESTIONS
from ledger.index.schema import PUBLIC, VIEWS, views_for
from ledger.index.session import open_session
from ledger.storage.clock import now
from verify.report import accept_codes

__all__ = ["register"]

_Format: TypeAlias = Literal["table", "csv", "json", "parquet"]
_LONGEST_S: Final = 31_536_000


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(sql)


def sql(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="One SELECT; - for standard input.", show_default=False)
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("-q", "--question", metavar="NAME", help="Ask a question by its name.", show_default=False),
    ] = None,
    questions: Annotated[bool, typer.Option("--questions", help="List the questions that have a name.")] = False,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", metavar="FILE", help="Read the query from here.", show_default=False)
    ] = None,
    values: Annotated[
        list[str],
        typer.Option(
            "-p", "--param", metavar="NAME=VALUE", help="What $NAME stands for in it; repeatable.", show_default=False
        ),
    ] = [],
    format_: Annotated[_Format, typer.Option("--format", help="How rows are printed.")] = "table",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where Parquet is written.",
            show_default=False,
            callback=outside_ledgers,
        ),
    ] = None,
    prove: Annotated[
        Path | None,
        typer.Option(
            "--prove",
            metavar="DIR",
            help="Write a bundle into DIR for each receipt that the rows name in a column `receipt`.",
            show_default=False,
            callback=outside_ledgers,
        ),
    ] = None,
    fail_on_rows: Annotated[
        bool,
        typer.Option("--fail-on-rows", help="Exit 6 if there are rows: for queries that look for what must not be."),
    ] = False,
    timeout: Annotated[float, typer.Option(min=0, metavar="S", help="Stop after S seconds, 0 for never.")] = 60.0,
    accept: Annotated[
        list[str],
        typer.Option(
            metavar="CODE", help="A code of the verdict that shall not count for the exit.", show_default=False
        ),
    ] = [],
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Take any statement, reach files and network; the index stays as it is.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes that verify what is new.", show_default=False),
    ] = None,
    ledger: LedgersOption = [],
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Ask in SQL. What is new in the ledger is verified and indexed first; what fails is not there, and the exit says so.

    The tables are described in docs/reference/sql.md. Nothing can be written: no files, no network, no settings.
    """
    ledger = ledger or list(outer_of(context).several)
    options = shared(context, ledger[0] if ledger else None, json=json, trust=trust)
    accepted = accept_codes(accept)
    if not timeout <= _LONGEST_S:
        raise typer.BadParameter(f"got {timeout:g}, expected at most {_LONGEST_S:,} s", param_hint="--timeout")
    if questions:
        _list_questions(json=options.json)
        return
    text = _query(query, file, question)
    parameters = read_values(values)
    if (format_ == "parquet") != (output is not None):
        raise typer.BadParameter("goes with --format parquet, and that with it", param_hint="-o")
    if format_ == "parquet" and (prove is not None or options.json):
        raise typer.BadParameter("goes without --prove and --json", param_hint="--format parquet")
    current = [bring_up_to_date(folder, options, jobs=jobs) for folder in ledger or [options.folder()]]
    open_ = partial(
        open_session,
        asked_at=now().replace("T", " ").removesuffix("Z"),
        unsafe=unsafe,
        writable=() if output is None else (part_of(output),),
        views=views_for(text) if question is not None and not unsafe else (*VIEWS, *PUBLIC),
    )
    made, connection = opened(current, options, open_, jobs=jobs)
    for one in made:
        if one.problem is not None:
            say(f"the index will be made anew the next time: {escape(one.problem)}")
    sources = [one.source for one in made]
    folders = {each.ledger: each.folder for each in sources}
    trusted = read_trust(options)
    beside = Beside(folders, {} if trusted is None else {name: pin.key for name, pin in trusted.notaries.items()})
    try:
        with connection, within(connection, timeout):
            found = footers(connection, sources, accepted)
            if output is not None:
                count = write_parquet(
                    connection, text, parameters, output, members=parquet_members(found), beside=beside
                )
            else:
                answer = ask(connection, text, parameters, beside=beside, unsafe=unsafe)
                count = _print(answer, format_, found, folders, prove=prove, json=options.json)
    except QueryTimeError as error:
        say_error(error)
        raise typer.Exit(3) from error
    if not options.json:
        for each in found:
            each.say()
    raise typer.Exit(exit_of_answer(found, rows=fail_on_rows and count > 0))


def _query(query: str | None, file: Path | None, question: str | None) -> str:
    if sum(each is not None for each in (query, file, question)) != 1:
        raise typer.BadParameter("give a query, -f FILE or -q NAME")
    if question is not None:
        if question not in QUESTIONS:
            raise typer.BadParameter(f"got {clip(question)}, expected one of {', '.join(QUESTIONS)}", param_hint="-q")
        return QUESTIONS[question].sql
    try:
        if file is not None:
            return file.read_text(encoding="utf-8")
        if query == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        return str(query).encode("utf-8").decode("utf-8")  # the shell may have given us any bytes
    except UnicodeError as error:
        raise typer.BadParameter(
            "the query is not UTF-8" if file is None else f"{clip(str(file))} is not UTF-8"
        ) from error


def _list_questions(*, json: bool) -> None:
    if json:
        print_json([{"name": each.name, "asks": each.asks, "sql": each.sql} for each in QUESTIONS.values()])
        return
    width = max(map(len, QUESTIONS))
    for each in QUESTIONS.values():
        console().print(Text(f"{each.name:<{width}}  {each.asks}"))


def _print(
    answer: Answer, format_: _Format, found: list[Footer], folders: dict[str, Path], *, prove: Path | None, json: bool
) -> int:
    """Print an answer; return how many rows it has."""
    proved: list[str] = []
    if prove is not None:
        from cli.proved import prove_rows  # noqa: PLC0415  most questions want no proof

        answer, proved = prove_rows(answer, folders, prove)
    if json or format_ == "json":
        rows = list(row_values(answer))
        print_json({"rows": rows, "ledgers": [each.to_value() for each in found], "proofs": proved} if json else rows)
        return len(rows)
    return print_csv(answer) if format_ == "csv" else print_table(answer)
