"""What a store of ctrlrun holds, as whoever opened it hands it over: rows, and nothing that touches a disk.

A row of `receipts` is a tuple of its nine columns; a column that the store does not have, or that is empty, is None. Texts are
bytes, so that text that is not UTF-8 can be looked at like any other. Rows of the other tables are few and are dicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeAlias

__all__ = ["RECEIPT_COLUMNS", "EffectRow", "EventRow", "ReceiptRow", "Row", "Tables", "integer", "text"]

RECEIPT_COLUMNS: Final = (
    "seq", "json", "hash", "receipt_id", "action_id", "effect_key", "result", "ts", "prev_hash",
)  # fmt: skip
"""Columns of `receipts`, in the order in which a row holds them."""

ReceiptRow: TypeAlias = tuple[Any, ...]
"""The nine columns of a row of `receipts`."""
EventRow: TypeAlias = tuple[Any, ...]
"""Number, type, action id and effect key of an event."""
EffectRow: TypeAlias = tuple[Any, ...]
"""Effect key, action id and who resolved it, of an effect."""
Row: TypeAlias = dict[str, Any]
"""A row of another table: name of a column -> what it holds."""


class Tables(Protocol):
    """A store, opened by somebody else for reading."""

    columns: frozenset[str]
    """Names of the columns that `receipts` has."""

    faults: list[str]
    """What could not be read, in words; more may come while rows are read."""

    def receipts(self) -> Iterator[ReceiptRow]:
        """Yield the rows of `receipts` in the order of `seq`, those without one first."""

    def events(self, *types: str) -> Iterator[EventRow]:
        """Yield number, type, action id and effect key of each event, or of those of some types, in the order of their numbers."""

    def event_types(self) -> Iterator[tuple[Any, ...]]:
        """Yield each type of events, how many there are of it, and the number of the last one."""

    def effects(self) -> Iterator[EffectRow]:
        """Yield effect key, action id and who resolved it, of each effect that is committed."""

    def has(self, table: str) -> bool:
        """Return whether there is a table of this name."""

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table in the order in which they were written; none where there is no such table."""


def text(value: object) -> str | None:
    """Return a column as text, what is not UTF-8 in it escaped; None where it is no text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str) else None


def integer(value: object) -> int | None:
    """Return a column as an integer, None where it is none."""
    return value if type(value) is int else None
