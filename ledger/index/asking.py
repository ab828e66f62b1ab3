"""Asking a session: which statements are taken, under which time, with which values.

A session cannot reach files, network or settings whatever is asked (`ledger.index.session`). That only statements which read are
taken is a second fence: nothing is made in the session's own memory either.

Source: docs/reference/sql.md.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from ledger.errors import LedgerError, clip
from ledger.index.beside import Beside, look_up_asked
from ledger.index.session import unreadable

__all__ = ["Answer", "QueryError", "QueryTimeError", "ask", "check_statement", "one_line", "within"]

_READING: Final = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})
_CHUNK: Final = 2_048
_CORRUPT: Final = "Corrupt database file"


class QueryError(LedgerError):
    """A query that is refused or that the database cannot carry out."""

    code = "sql.refused"


class QueryTimeError(LedgerError):
    """The time of a query ended before it did."""

    code = "sql.time_ended"


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns of an answer with their types, and its rows as they come."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def check_statement(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """Return the one statement of a text, if it only reads.

    Raises:
        QueryError: none, several, one that does not parse or that does more than read.
    """
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise QueryError(f"sql: {one_line(error)}", code="sql.malformed") from error
    if len(statements) != 1:
        raise QueryError(f"sql: got {len(statements)} statements, expected one", code="sql.malformed")
    kind = _kind(statements[0])
    if kind not in _READING:
        raise QueryError(
            f"sql: got {'another statement' if kind is None else kind.name}, expected a query that only reads: {clip(text.strip())}",
            hint="--unsafe takes any statement; the index stays as it is",
        )
    return statements[0]


def ask(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    values: Mapping[str, object] | Sequence[object] = (),
    *,
    beside: Beside | None = None,
    unsafe: bool = False,
) -> Answer:
    """Return the answer to a query.

    Args:
        connection: a session.
        text: one statement.
        values: what stands for `$name`, or for `?` in order.
        beside: where artifacts and counter-seals are looked up if the query asks for them; None leaves them out.
        unsafe: take any statements; the answer is that of the last one.

    Raises:
        QueryError: it is refused, or cannot be carried out.
        StorageError: `index.unreadable`: what the index holds is not what was written; that may be said while rows are read.
    """
    try:
        if unsafe:
            statements = connection.extract_statements(text)
            for each in statements[:-1]:
                connection.execute(each)
            if not statements:
                raise QueryError("sql: got no statement", code="sql.malformed")
            statement = statements[-1]
        else:
            statement = check_statement(connection, text)
        if beside is not None and _kind(statement) == duckdb.StatementType.SELECT:
            look_up_asked(connection, statement, values, beside)
        connection.execute(statement, values or None)
        described = connection.description or []
    except duckdb.Error as error:
        raise _query_error(error) from error
    return Answer(
        tuple(str(each[0]) for each in described), tuple(str(each[1]) for each in described), _rows(connection)
    )


def _kind(statement: duckdb.Statement) -> duckdb.StatementType | None:
    """Return what a statement does, None where the client of the database has no word for it."""
    try:
        return statement.type
    except ValueError:
        return None


@contextmanager
def within(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what is asked inside after so many seconds, 0 for never.

    Raises:
        QueryTimeError: the time ended.
    """
    ended = threading.Event()

    def end() -> None:
        ended.set()
        connection.interrupt()

    timer = threading.Timer(seconds, end) if seconds else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    except (QueryError, duckdb.Error) as error:
        if ended.is_set():
            raise QueryTimeError(
                f"sql: the query did not end within {seconds:g} s", hint="give it more with --timeout"
            ) from error
        raise
    finally:
        if timer is not None:
            timer.cancel()


def _rows(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    try:
        while chunk := connection.fetchmany(_CHUNK):
            yield from chunk
    except duckdb.Error as error:
        raise _query_error(error) from error


def one_line(error: duckdb.Error) -> str:
    """Return what the database says of an error, on one line."""
    return " ".join(str(error).split())


def _query_error(error: duckdb.Error) -> LedgerError:
    if isinstance(error, duckdb.FatalException | duckdb.InternalException) or _CORRUPT in str(error):
        return unreadable(error)
    return QueryError(f"sql: {one_line(error)}", code="sql.failed")
