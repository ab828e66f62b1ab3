"""`ledger log`: runs, newest first, or the chain; read from the end of the journal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.cells import cell_len, chop_cells
from rich.text import Text

from cli.amounts import amount, is_money
from cli.options import JsonOption, LedgerOption, Shared, TrustOption, shared
from cli.runs import Filter, payload_of, run_rows
from cli.text import console, escape, print_json, say, short, took, write_bytes
from cli.times import parse_moment
from cli.verified import verified_size
from ledger.checkpoint import head_of
from ledger.errors import DamagedError, LedgerError, clip
from ledger.storage.clock import now
from ledger.storage.journal import Stored, read_segment
from ledger.storage.search import holding, newest_note
from ledger.words import RunStatus

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
_SHOWN: Final = 100
"""Runs that a person sees unless more are asked for; `--json` gives all."""
_STATUSES: Final = frozenset({"open", *RunStatus})
_POLL_S: Final = 0.25
_ENTRY_COLUMNS: Final = ("index", "receipt", "kind", "run", "recorded_at")
_FREE: Final = frozenset({"name", "agent"})
_RIGHT: Final = frozenset({"index", "took", "cost", "refused"})
_NARROWEST: Final = 6
_FORMAT: Final = b'"format":"receipt-ledger/v1"'


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
        typer.Option(
            "-n",
            "--number",
            metavar="N",
            min=0,
            max=2**53,
            help="At most N rows. Without it: 100 runs, all with --json.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="Runs opened since then: 2026-11-30, 2026-11-30T09:15Z, 24h.", show_default=False
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="T", help="Runs opened before then.", show_default=False)] = None,
    status: Annotated[
        list[str], typer.Option(metavar="WORD", help="open, completed, failed, …; repeatable.", show_default=False)
    ] = [],
    correlation: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[=VALUE]", help="Runs that carry it; repeatable, all must be there.", show_default=False
        ),
    ] = [],
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Runs of that agent; * and ? match.", show_default=False)
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Runs with an act of that tool or name; * and ? match.", show_default=False),
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on, as runs open and close, until interrupted.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Judge each run that is listed, now; exit with the verdict that wins.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """List runs, newest first; with --entries the chain, oldest first.

    `verified` says whether a run lies in what had a good verdict on this machine, the last time that everything was judged; with
    --verify, what the verdict is now. `refused` counts acts that a rule, a person or a budget stopped.
    """  # fmt: skip
    options = shared(context, ledger, json=json, trust=trust)
    folder = options.folder()
    origin = _check_header(folder)
    wanted = _filter(after, since, until, status, correlation, agent, tool)
    if entries and (wanted != Filter(after) or verify):
        raise typer.BadParameter("goes without filters of runs and without --verify", param_hint="--entries")
    if follow and (verify or until is not None):
        raise typer.BadParameter("goes without --verify and --until", param_hint="--follow")
    size = head_of(newest_note(folder)).size
    if follow:
        _follow(folder, size, wanted, number, entries=entries, json=options.json)
    if entries:
        _print_entries(islice(_entries(folder, 0 if after is None else after + 1, size), number), json=options.json)
        return
    limit = number if number is not None or options.json else _SHOWN
    found = run_rows(folder, size, wanted)
    rows = list(islice(found, limit))
    worst = _mark_verified(rows, folder, origin, options, verify=verify)
    if options.json:
        print_json(rows)
    else:
        _print(rows, _columns(rows))
        if number is None and len(rows) == limit and next(found, None) is not None:
            say(f"the newest {limit} runs; more with -n N")
    raise typer.Exit(worst)


def _filter(
    after: int | None,
    since: str | None,
    until: str | None,
    status: list[str],
    correlation: list[str],
    agent: str | None,
    tool: str | None,
) -> Filter:
    for word in status:
        if word not in _STATUSES:
            raise typer.BadParameter(
                f"got {clip(word)}, expected one of {', '.join(sorted(_STATUSES))}", param_hint="--status"
            )
    moment = now()
    return Filter(
        after,
        None if since is None else parse_moment(since, now=moment),
        None if until is None else parse_moment(until, now=moment),
        frozenset(status),
        tuple(
            (name, value if equals else None) for name, equals, value in (each.partition("=") for each in correlation)
        ),
        agent,
        tool,
    )


def _check_header(folder: Path) -> str:
    """Return the origin that the ledger's first head claims, once its header is one of a format that is known.

    Raises:
        NotFoundError, DamagedError, UnknownFormatError: as reading a header does.
    """
    origin = head_of(newest_note(folder)).origin
    try:
        first = read_segment(folder, 0, 0, 1 << 16).partition(b"\n")[0]
    except OSError:
        first = b""
    if _FORMAT not in first or b'"kind":"header"' not in first:
        from ledger.storage.reader import Reader  # noqa: PLC0415  it loads what checks receipts, and says what is wrong

        return Reader(folder).header().ledger
    return origin


def _mark_verified(rows: list[dict[str, Any]], folder: Path, origin: str, options: Shared, *, verify: bool) -> int:
    """Say of each run whether it was verified, or judge it; return the exit code that wins."""
    if not verify:
        size = verified_size(folder, origin, options)
        for row in rows:
            row["verified"] = row["kind"] == "run" and row["index"] < size
        return 0
    from cli.judge import judge_error, judge_receipt  # noqa: PLC0415  listing alone loads no verifier
    from verify.codes import worst  # noqa: PLC0415
    from verify.options import Options  # noqa: PLC0415

    exits = []
    for row in rows:
        try:
            verdict = judge_receipt(folder, row["receipt"], options, Options())
        except LedgerError as error:
            verdict = judge_error(error, row["receipt"], options, Options())
        row["verified"], row["verdict"] = verdict.exit == 0, verdict.status
        exits.append(verdict.exit)
    return worst(exits)


# Following.


def _follow(folder: Path, size: int, wanted: Filter, number: int | None, *, entries: bool, json: bool) -> None:
    """Print what there is and then what comes, oldest first, one line each, until interrupted."""
    if entries:
        first = 0 if wanted.after is None else wanted.after + 1
        known = _entries(folder, max(first, size - number) if number is not None else first, size)
    else:
        known = iter(list(islice(run_rows(folder, size, wanted), _SHOWN if number is None else number))[::-1])
    line = _entry_line if entries else _run_line
    for row in known:
        _put(row, line, json=json)
    while True:
        newer = head_of(newest_note(folder)).size
        if newer < size:
            raise DamagedError(f"ledger: got {newer} entries, it had {size}: it was cut, or replaced by an old copy")
        if newer > size:
            for row in _entries(folder, size, newer) if entries else _news(folder, size, newer, wanted):
                _put(row, line, json=json)
            size = newer
        time.sleep(_POLL_S)


def _news(folder: Path, size: int, newer: int, wanted: Filter) -> Iterator[dict[str, Any]]:
    """Yield the rows of runs that opened or closed between two sizes, in that order."""
    touched = set()
    for stored in holding(folder, b'"kind":"opening"', b'"kind":"run"', start=size, stop=newer):
        value = payload_of(stored)
        if value.get("kind") in {"opening", "run"}:
            touched.add(stored.entry.receipt if value["kind"] == "opening" else str(value.get("run")))
    if touched:
        # The opening of a run that closes now may stand far back.
        yield from sorted(run_rows(folder, newer, wanted, only=touched), key=lambda row: int(row["index"]))


def _put(row: dict[str, Any], line: Callable[[dict[str, Any]], str], *, json: bool) -> None:
    if json:
        import orjson  # noqa: PLC0415

        write_bytes(orjson.dumps(row) + b"\n")
    else:
        console().print(line(row), soft_wrap=True)
        sys.stdout.flush()


def _run_line(row: dict[str, Any]) -> str:
    refused = f"  {row['refused']} refused" if row["refused"] else ""
    cost = _cell(row, "cost")
    parts = (
        _cell(row, "run"),
        _cell(row, "opened_at"),
        f"{row['status']:<11}",
        escape(row["name"]),
        _cell(row, "took"),
        cost,
    )
    return "  ".join(part for part in parts if part) + refused


def _entry_line(row: dict[str, Any]) -> str:
    return _entry_cells(escape(_cell(row, column)) for column in _ENTRY_COLUMNS)


def _entry_cells(cells: Iterable[str]) -> str:
    """Return a line of the chain; columns have fixed widths, since entries are printed as they are read."""
    index, *rest = cells
    return "  ".join((f"{index:>8}", *(f"{each:<12}" for each in rest))).rstrip()


# The chain.


def _entries(folder: Path, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Yield what is listed of each entry from index `start` up to, not including, `stop`.

    Raises:
        DamagedError: a line between them does not parse.
    """
    from ledger.storage.reader import Reader  # noqa: PLC0415  runs are listed without it

    for stored in Reader(folder).entries(start, stop):
        yield _entry_row(stored)


def _entry_row(stored: Stored) -> dict[str, Any]:
    from ledger.receipt import Opening, parse_receipt  # noqa: PLC0415

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
        return row
    row["kind"] = receipt.kind
    run = stored.entry.receipt if isinstance(receipt, Opening) else getattr(receipt, "run", None)
    if run is not None:
        row["run"] = run
    return row


def _print_entries(rows: Iterator[dict[str, Any]], *, json: bool) -> None:
    if json:
        print_json(list(rows))
    elif sys.stdout.isatty():
        _print(list(rows), _ENTRY_COLUMNS)
    else:
        console().print(_entry_cells(_ENTRY_COLUMNS))
        for row in rows:
            console().print(_entry_line(row), soft_wrap=True)


# Tables.


def _columns(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns that there is room for: a narrow terminal shows what names a run and how it ended."""
    width = console().width
    more = []
    if width >= 100:
        more += ["refused"] if any(row["refused"] for row in rows) else []
        more += ["agent"] if any(row["agent"] != "unknown" for row in rows) else []
    if width >= 120:
        more += ["cost"] if any(_cell(row, "cost") for row in rows) else []
        more += ["verified"]
    return ("run", "name", "status", "opened_at", "took", *more, "receipt")


def _print(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Print rows as aligned columns; where a terminal is narrow, names and agents are folded, never an id."""
    table = [list(columns), *([escape(_cell(row, column)) for column in columns] for row in rows)]
    widths = [max(cell_len(line[at]) for line in table) for at in range(len(columns))]
    _fit(widths, [at for at, column in enumerate(columns) if column in _FREE], console().width)
    lines = []
    for number, line in enumerate(table):
        cells = [
            chop_cells(cell, width) or [""] if columns[at] in _FREE else [cell]
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for part in range(max(map(len, cells))):
            text = Text()
            for at, column in enumerate(columns):
                cell = cells[at][part] if part < len(cells[at]) else ""
                pad = " " * (widths[at] - cell_len(cell))
                style = "bold" if not number else STATUS_STYLES.get(cell, "") if column == "status" else ""
                gap = "  " if at else ""
                text.append(f"{gap}{pad if column in _RIGHT else ''}").append(cell, style).append(
                    "" if column in _RIGHT else pad
                )
            text.rstrip()
            lines.append(text)
    console().print(Text("\n").join(lines), soft_wrap=True)


def _fit(widths: list[int], free: list[int], room: int) -> None:
    """Narrow the free columns, the widest first, until a line fits."""
    over = sum(widths) + 2 * (len(widths) - 1) - room
    for at in sorted(free, key=lambda each: -widths[each]):
        narrower = max(widths[at] - max(over, 0), min(widths[at], _NARROWEST))
        over -= widths[at] - narrower
        widths[at] = narrower


def _cell(row: dict[str, Any], column: str) -> str:
    value = row.get({"took": "duration_ms", "cost": "totals"}.get(column, column), "")
    match column:
        case "run" | "receipt":
            return short(value) if value else ""
        case "took":
            return took(value) if isinstance(value, int) else ""
        case "cost":
            return ", ".join(_money(value)) if isinstance(value, list) else ""
        case "opened_at" | "recorded_at":
            return str(value).replace("T", " ")[:19]
        case "verified":
            return str(row.get("verdict", "yes" if value else "no")).replace("_", " ")
        case "refused":
            return str(value) if value else ""
        case _:
            return str(value)


def _money(totals: list[Any]) -> Iterator[str]:
    for each in totals:
        if isinstance(each, dict) and isinstance(each.get("meter"), str) and is_money(each["meter"]):
            yield amount(each["meter"], each.get("value"))
