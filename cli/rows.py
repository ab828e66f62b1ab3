"""Rows of an answer, printed: a table for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final
from uuid import UUID

import orjson
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from cli.text import console, escape, say, write_bytes
from ledger.index.asking import Answer

__all__ = ["plain_value", "print_csv", "print_table", "row_values"]

_SHOWN: Final = 1_000
_LARGEST: Final = 2**63
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "DOUBLE", "DECIMAL", "FLOAT")


def row_values(answer: Answer) -> Iterator[dict[str, object]]:
    """Yield each row as a JSON value."""
    names = _unique(answer.columns)
    for row in answer.rows:
        yield {name: plain_value(value, kind) for name, value, kind in zip(names, row, answer.types, strict=True)}


def plain_value(value: Any, kind: str = "") -> object:  # noqa: ANN401  a value of the database
    """Return a value as JSON has it: times as `2026-11-30T09:15:00.123Z`, JSON as itself, what is too large as text."""
    match value:
        case None | bool() | float():
            return value
        case int():
            return value if -_LARGEST <= value < _LARGEST else str(value)
        case str() if kind == "JSON":
            return orjson.loads(value)
        case str():
            return value
        case datetime():
            return f"{value.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
        case list() | tuple():
            return [plain_value(each) for each in value]
        case dict():
            return {str(name): plain_value(each) for name, each in value.items()}
        case bytes() | bytearray():
            return bytes(value).hex()
        case date() | time() | timedelta() | Decimal() | UUID():
            return str(value)
        case _:
            return str(value)


def print_csv(answer: Answer) -> int:
    """Print an answer as CSV with a header, lines ending in LF; return how many rows. What a terminal would obey is escaped there."""
    shown = sys.stdout.isatty()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    count = 0
    writer.writerow(answer.columns)
    for row in answer.rows:
        cells = [_cell(value, kind) for value, kind in zip(row, answer.types, strict=True)]
        writer.writerow([escape(each) for each in cells] if shown else cells)
        count += 1
        if text.tell() > 1 << 16:
            _flush(text)
    _flush(text)
    return count


def print_table(answer: Answer) -> int:
    """Print an answer as a table for a person, its first 1,000 rows; return how many rows it has."""
    rows = list(islice(answer.rows, _SHOWN))
    if answer.columns and sys.stdout.isatty():
        _print_folded(answer, rows)
    elif answer.columns:
        _print_aligned(answer, rows)
    more = sum(1 for _ in answer.rows)
    if more:
        say(f"{more:,} more rows; --format csv or json prints all")
    return len(rows) + more


def _print_folded(answer: Answer, rows: Sequence[tuple[Any, ...]]) -> None:
    """Print a table that fits a terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, kind in zip(answer.columns, answer.types, strict=True):
        table.add_column(Text(escape(name)), overflow="fold", justify="right" if kind.startswith(_NUMBERS) else "left")
    for row in rows:
        table.add_row(*(_styled(value, kind) for value, kind in zip(row, answer.types, strict=True)))
    console().print(table, soft_wrap=False)


def _print_aligned(answer: Answer, rows: Sequence[tuple[Any, ...]]) -> None:
    """Print a table whose lines are as long as they are, without the layout that a terminal needs: it takes most of the time."""
    lines = [[escape(name) for name in answer.columns]]
    lines += (
        ["NULL" if value is None else escape(_cell(value, kind)) for value, kind in zip(row, answer.types, strict=True)]
        for row in rows
    )
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    right = [kind.startswith(_NUMBERS) for kind in answer.types]
    text = io.StringIO()
    for line in lines:
        cells = (
            " " * (width - cell_len(cell)) + cell if number else cell + " " * (width - cell_len(cell))
            for cell, width, number in zip(line, widths, right, strict=True)
        )
        text.write("  ".join(cells).rstrip(" ") + "\n")
    _flush(text)


def _flush(text: io.StringIO) -> None:
    write_bytes(text.getvalue().encode("utf-8"))
    text.seek(0)
    text.truncate()


def _styled(value: Any, kind: str) -> Text:  # noqa: ANN401
    if value is None:
        return Text("NULL", style="dim")
    return Text(escape(_cell(value, kind)))


def _cell(value: Any, kind: str) -> str:  # noqa: ANN401
    """Return a value as text; nothing for NULL."""
    match plain_value(value, "" if kind == "JSON" else kind):
        case None:
            return ""
        case bool(found):
            return "true" if found else "false"
        case str(found):
            return found
        case list() | dict() as found:
            return orjson.dumps(found).decode("utf-8")
        case found:
            return str(found)


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names of columns, numbered where one stands twice, so that an object can hold all."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found
