"""A connection to ask one or several indices: the views of the schema over their tables, read-only and locked down.

The connection is a database in memory that attaches each index read-only, so nothing that is asked can change one. Locked
down means: no files, no network, no extensions, no settings; and only statements that read are taken (`ledger.index.asking`).

Source: docs/reference/sql.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import duckdb

from ledger.errors import LedgerError, StorageError
from ledger.index.beside import create_tables
from ledger.index.columns import Column, View, literal, quoted
from ledger.index.files import mark_of, newer_of
from ledger.index.schema import DERIVED, PUBLIC, STATE, STORED, VIEWS

__all__ = ["Session", "Source", "half_of_memory", "lock", "open_session", "open_state", "unreadable"]

Session: TypeAlias = duckdb.DuckDBPyConnection
"""A connection to ask."""

_ATTEMPTS: Final = 3
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50}
_SETTINGS: Final = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "''",
}


@dataclass(frozen=True, slots=True)
class Source:
    """An index to ask, the origin of its ledger, and the ledger's folder, where artifacts are looked up."""

    path: Path
    ledger: str
    folder: Path


def open_session(
    sources: Sequence[Source],
    *,
    asked_at: str,
    unsafe: bool = False,
    writable: Sequence[Path] = (),
    threads: int = 0,
    views: Sequence[View] = (*VIEWS, *PUBLIC),
) -> Session:
    """Return a connection that sees the views of the schema over all sources.

    Args:
        sources: the indices; each ledger at most once.
        asked_at: the time that states are asked for, such as `2026-11-30 09:15:00.123`.
        unsafe: leave the connection open to files, network and settings; the indices stay read-only.
        writable: files that may be written all the same.
        threads: how many threads, 0 for one a core.
        views: those that are made; all of them take longer than many a question.

    Raises:
        LedgerError: two sources of one ledger.
        StorageError: `index.unreadable`: an index cannot be read; or its files do not belong together.
    """
    connection = duckdb.connect(":memory:")
    try:
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = {value}")
        if threads:
            connection.execute(f"SET threads = {threads}")
        connection.execute(f"SET memory_limit = '{half_of_memory(connection)} bytes'")
        _attach(connection, sources)
        create_tables(connection)
        _add_views(connection, asked_at, views)
        if not unsafe:
            lock(connection, writable)
    except BaseException:
        connection.close()
        raise
    return connection


def _attach(connection: Session, sources: Sequence[Source]) -> None:
    known = [each.ledger for each in sources]
    for name in known:
        if known.count(name) > 1:
            raise LedgerError(f"sql: {name} was named twice", code="usage.ledger_twice", hint="name each ledger once")
    try:
        attached = [_attach_files(connection, each.path, f"l{number}") for number, each in enumerate(sources)]
        _add_stored(connection, known, attached)
    except duckdb.Error as error:
        raise unreadable(error) from error


def _add_stored(connection: Session, known: Sequence[str], attached: Sequence[tuple[str, ...]]) -> None:
    connection.execute("CREATE SCHEMA stored")
    # Each row says its ledger; as one of few words that is a byte.
    connection.execute(f"CREATE TYPE stored.origin AS ENUM ({', '.join(literal(each) for each in known)})")
    for table in STATE:
        # The newest file says what all stand for.
        parts = " UNION ALL ".join(f"SELECT * FROM {names[-1]}.main.{table.name}" for names in attached)
        connection.execute(f"CREATE VIEW stored.{table.name} AS {parts}")
    for table in (*STORED, *DERIVED):
        parts = " UNION ALL ".join(
            f"SELECT {literal(ledger)}::stored.origin AS ledger, * FROM {name}.main.{table.name}"
            for ledger, names in zip(known, attached, strict=True)
            for name in names
        )
        connection.execute(f"CREATE VIEW stored.{table.name} AS {parts}")


def _attach_files(connection: Session, index: Path, name: str) -> tuple[str, ...]:
    """Attach the files of an index and return their names, the newest last; files that others put there meanwhile are waited for."""
    newer, newer_name = newer_of(index), f"{name}_newer"
    for left in reversed(range(_ATTEMPTS)):
        before = mark_of(index)
        names = [name]
        connection.execute(f"ATTACH {literal(str(index))} AS {name} (READ_ONLY)")
        follows: tuple[int, ...] | None = before
        try:
            if newer.exists():
                connection.execute(f"ATTACH {literal(str(newer))} AS {newer_name} (READ_ONLY)")
                names.append(newer_name)
                ((*parts,),) = connection.execute(f"SELECT * FROM {newer_name}.main.follows").fetchall()
                follows = tuple(parts)
            if follows == before == mark_of(index):
                return tuple(names)
        except duckdb.Error:
            # It may have been folded and be gone since we saw it.
            if not left:
                raise
        for each in names:
            connection.execute(f"DETACH {each}")
    raise StorageError(
        f"index: {str(newer)!r} does not follow {str(index)!r}",
        code="index.journal_changed",
        hint="make it anew with: ledger index --rebuild",
    )


def open_state(source: Source) -> Session:
    """Return a connection that sees what an index says of itself and nothing else, `index_state` and `checks`: that is soon made.

    Raises:
        StorageError: `index.unreadable`: the index cannot be read; or its files do not belong together.
    """
    connection = duckdb.connect(":memory:")
    try:
        _attach(connection, [source])
        names = {table.name for table in STATE}
        _add_views(connection, "1970-01-01", [each for each in PUBLIC if each.name in names])
        lock(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _add_views(connection: Session, asked_at: str, views: Sequence[View]) -> None:
    moment = f"TIMESTAMP '{asked_at}'"
    connection.execute(f"CREATE MACRO asked_at() AS {moment}")
    done = set()
    for view in views:
        if view.name in done:
            continue
        done.add(view.name)
        names = ", ".join(quoted(each.name) for each in view.columns)
        inner = view.select.replace("{asked_at}", moment)
        connection.execute(f"CREATE VIEW {view.name} AS SELECT {_typed(view.columns)} FROM ({inner}) AS v({names})")


def _typed(columns: Sequence[Column]) -> str:
    return ", ".join(f"CAST({quoted(each.name)} AS {each.type}) AS {quoted(each.name)}" for each in columns)


def lock(connection: Session, writable: Sequence[Path] = ()) -> None:
    """Close a connection to files but `writable`, to the network, extensions and settings; for good."""
    if writable:
        paths = ", ".join(literal(str(path.absolute())) for path in writable)
        connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def unreadable(error: duckdb.Error) -> StorageError:
    """Return what is said of an index whose bytes are not what was written."""
    return StorageError(
        f"index: it cannot be read: {str(error).splitlines()[0]}",
        code="index.unreadable",
        hint="make it anew with: ledger index --rebuild",
    )


def half_of_memory(connection: duckdb.DuckDBPyConnection) -> int:
    """Return half of the memory of the machine, or of what a group of processes is given, in bytes.

    Before a limit is set DuckDB has one of its own: four fifths of either.
    """
    ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    amount, unit = limit.split()
    return int(float(amount) * _UNITS[unit]) * 5 // 8
