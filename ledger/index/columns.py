"""What a table of the index is: its columns, what each means, in which unit, and where it comes from.

One declaration makes the table, fills it and documents it. A `Stored` table is filled from receipts as they are loaded; a
`View` is a question over stored tables, so it cannot disagree with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

__all__ = ["Column", "Row", "Shape", "Stored", "Table", "View", "bounded", "by_index", "literal", "quoted", "typed"]

Shape: TypeAlias = "str | dict[str, Shape] | list[Shape]"
"""The type of a JSON value: a type of DuckDB, or an object or list of shapes."""
Row: TypeAlias = dict[str, Any]
"""Column -> value, of a table of the index."""
_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type in DuckDB, what it says, and the unit or form of its values.

    `value` is the expression that fills it, for stored tables: over the staged columns, `m`, what is staged of every payload,
    and `r`, what the table reads of it besides.
    """

    name: str
    type: str
    says: str
    unit: str = ""
    value: str = ""
    compression: str = ""
    """How its blocks are compressed, where DuckDB is not to choose."""
    stored: bool = True
    """Whether it stands in the table; whoever attaches an index says what does not."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the index."""

    name: str
    says: str
    columns: tuple[Column, ...]
    public: bool = True

    @property
    def own(self) -> tuple[Column, ...]:
        """The columns that stand in the table."""
        return tuple(each for each in self.columns if each.stored)

    def create(self, *, anew: bool = False) -> str:
        """Return the statement that makes the table, in place of the one that is there where it is made anew."""
        columns = ", ".join(
            f"{quoted(each.name)} {each.type}" + (f" USING COMPRESSION {each.compression}" if each.compression else "")
            for each in self.own
        )
        return f"CREATE {'OR REPLACE ' if anew else ''}TABLE {self.name} ({columns})"


@dataclass(frozen=True, slots=True)
class Stored(Table):
    """A table that is filled from receipts.

    `kinds` are the kinds of receipts that it takes, all where it is empty. `shape` is what it reads of their payload, as `r`.
    `each` is a list over it, of which every item, as `item` at `position`, makes a row. `origin` is the staged table.
    """

    kinds: tuple[str, ...] = ()
    shape: Mapping[str, Shape] = field(default_factory=dict)
    each: str = ""
    holding: tuple[str, ...] = ()
    """Members, of which a payload must hold one for the table to take anything from it."""
    origin: str = "staged"

    def insert(self) -> str:
        """Return the statement that takes what is staged into the table."""
        values = ", ".join(each.value or f"s.{quoted(each.name)}" for each in self.own)
        transformed = f", {typed('payload', self.shape)} AS r" if self.shape else ""
        kinds = ", ".join(f"'{kind}'" for kind in self.kinds)
        chosen = [f"kind IN ({kinds})"] if kinds else []
        if self.holding:
            chosen.append("(" + " OR ".join(f"m.{member} IS NOT NULL" for member in self.holding) + ")")
        where = f" WHERE {' AND '.join(chosen)}" if chosen else ""
        rows = f"(SELECT *{transformed} FROM {self.origin}{where})"
        if self.each:
            rows = f"(SELECT *, unnest({self.each}) AS item, unnest(range(len({self.each}))) AS position FROM {rows})"
        return f"INSERT INTO {self.name} SELECT {values} FROM {rows} AS s"


@dataclass(frozen=True, slots=True)
class View:
    """A question over stored tables (`stored.<name>`) and other views; `asked_at` in its text is the time of asking."""

    name: str
    says: str
    columns: tuple[Column, ...]
    select: str
    public: bool = True


def typed(value: str, shape: Shape | Mapping[str, Shape] | Sequence[Mapping[str, Shape]]) -> str:
    """Return the expression that reads JSON text into a shape."""
    return f"json_transform({value}, '{json.dumps(shape)}')"


def by_index(table: str, column: str) -> str:
    """Return the query for a column of a stored table by position, of which each is there once at most.

    DuckDB sees that by the grouping: a left join with it costs nothing where nobody asks for the column.
    """
    return f'(SELECT ledger, "index", any_value({column}) AS {column} FROM stored.{table} GROUP BY ledger, "index")'


def bounded(sum_: str) -> str:
    """Return a sum as an integer column holds it: one that no column holds is the most, or the least, that it holds; NULL is NULL."""
    return f"CASE WHEN ({sum_}) IS NOT NULL THEN least(greatest({sum_}, -{_MOST}), {_MOST})::BIGINT END"


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return f'"{name}"'


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
