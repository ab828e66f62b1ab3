"""A SQLite store of ctrlrun, read as it lies there: nothing is written, locked or made beside it.

- Where nothing waits to be written back, the file is opened as one that cannot change, so SQLite makes no `-wal` and no `-shm`.
- Where a `-wal` or a `-journal` with content lies beside it, its last commits are there: a copy of both in a private folder is read,
  which SQLite recovers as it would the original.
- What changes while it is read is read again, and refused in the end: half of two states is no evidence.
- A store is untrusted: only plain tables are read, text comes as bytes, and what SQLite cannot read is a fault, not an end.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ledger.errors import StorageError, clip

__all__ = ["SQLITE_MAGIC", "CtrlrunStore", "open_bytes", "open_store", "read_bytes"]

SQLITE_MAGIC: Final = b"SQLite format 3\0"
_COLUMNS: Final = ("seq", "json", "hash", "receipt_id", "action_id", "effect_key", "result", "ts", "prev_hash")
_TABLES: Final = {
    "receipt_chain": "SELECT * FROM receipt_chain WHERE id = 1",
    "prune_checkpoint": "SELECT * FROM prune_checkpoint WHERE id = 1",
    "anchors": "SELECT * FROM anchors ORDER BY seq",
    "events": "SELECT * FROM events ORDER BY event_id",
    "effects": "SELECT * FROM effects ORDER BY created_at, effect_key",
    "approvals": "SELECT * FROM approvals ORDER BY created_at, approval_id",
    "delegations": "SELECT * FROM delegations ORDER BY created_at, delegation_id",
    "budget_ledger": "SELECT * FROM budget_ledger ORDER BY id",
    "holds": "SELECT * FROM holds ORDER BY placed_at, hold_id",
    "schema_version": "SELECT * FROM schema_version ORDER BY migration_id",
    "sqlite_sequence": "SELECT * FROM sqlite_sequence ORDER BY name",
}
_ATTEMPTS: Final = 5
_MAX_VALUE_BYTES: Final = 64 << 20


class CtrlrunStore:
    """The tables of an open store. `faults` says what could not be read; more may come while rows are read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.faults: list[str] = []
        self._tables = self._plain_tables()
        self.columns = frozenset(self._columns("receipts")) & set(_COLUMNS)

    def has(self, table: str) -> bool:
        """Return whether there is a table of this name."""
        return table in self._tables

    def receipts(self) -> Iterator[tuple[Any, ...]]:
        """Yield the nine columns of each row of `receipts` in the order of `seq`, those without one first; None where there is none.

        What is stored under `json` comes as bytes where it is text or a blob.
        """
        if not self.has("receipts"):
            return
        chosen = ", ".join(name if name in self.columns else "NULL" for name in _COLUMNS)
        order = "seq, rowid" if "seq" in self.columns else "rowid"
        yield from self._select("receipts", f"SELECT {chosen} FROM receipts ORDER BY {order}")  # noqa: S608  names of a fixed list

    def events(self, *types: str) -> Iterator[tuple[Any, ...]]:
        """Yield number, type, action id and effect key of each event, or of those of some types, in the order of their numbers."""
        if self.has("events"):
            among = f" WHERE type IN ({', '.join('?' * len(types))})" if types else ""
            query = f"SELECT event_id, type, action_id, effect_key FROM events{among} ORDER BY event_id"  # noqa: S608  only marks are put in
            yield from self._select("events", query, types)

    def event_types(self) -> Iterator[tuple[Any, ...]]:
        """Yield each type of events, how many there are of it, and the number of the last one."""
        if self.has("events"):
            yield from self._select("events", "SELECT type, count(*), max(event_id) FROM events GROUP BY type")

    def effects(self) -> Iterator[tuple[Any, ...]]:
        """Yield effect key, action id and who resolved it, of each effect that is committed."""
        if self.has("effects"):
            resolved = "resolved_by" if "resolved_by" in self._columns("effects") else "NULL"
            query = f"SELECT effect_key, action_id, {resolved} FROM effects WHERE state = 'committed'"  # noqa: S608  a name of two
            yield from self._select("effects", query)

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, text as bytes; none where there is no such table."""
        if not self.has(table):
            return
        names = self._columns(table)
        for row in self._select(table, _TABLES[table]):
            yield dict(zip(names, row, strict=False))

    def _select(self, table: str, query: str, values: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(query, values)
        except (sqlite3.Error, OverflowError) as error:
            self.faults.append(f"table {table}: {clip(str(error))[1:-1]}")

    def _plain_tables(self) -> frozenset[str]:
        """Return the names of tables that are tables: a view or a virtual table would run what its author chose."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        found = {row[0] for row in self._select("sqlite_master", query)}
        return frozenset(name.decode("ascii", "replace") for name in found) & ({"receipts"} | _TABLES.keys())

    def _columns(self, table: str) -> list[str]:
        if not self.has(table):
            return []
        rows = self._select(table, f"SELECT name FROM pragma_table_info('{table}')")  # noqa: S608  a name of a fixed list
        return [row[0].decode("ascii", "replace") for row in rows]


@contextmanager
def open_store(path: Path) -> Iterator[CtrlrunStore]:
    """Open a store for reading, and check at the end that it did not change meanwhile.

    Raises:
        StorageError: `foreign.changing`: it changes while it is read. `foreign.unreadable`: it is no SQLite database.
    """
    before = _state(path)
    if _waiting(path):
        with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
            with _connect(_copy(path, Path(folder)), immutable=False) as store:
                yield store
            return
    with _connect(path, immutable=True) as store:
        yield store
    if _state(path) != before:
        raise StorageError(
            f"{clip(str(path))}: changed while it was read",
            code="foreign.changing",
            hint="verify a copy, or verify again when nothing writes",
        )


@contextmanager
def open_bytes(data: bytes) -> Iterator[CtrlrunStore]:
    """Open the bytes of a store in memory; no disk is touched.

    Raises:
        StorageError: `foreign.unreadable`: they are no SQLite database.
    """
    # What waits in a log is in no file by itself: bytes alone are read as those of a database without one.
    plain = data[:18] + b"\x01\x01" + data[20:]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        try:
            connection.deserialize(plain)
        except (sqlite3.Error, OverflowError) as error:
            raise _unreadable("a store", error) from error
        yield _opened(connection, "a store")


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a store with what waits beside it written back into them; the store is left as it is.

    Raises:
        StorageError: as `open_store`.
    """
    before = _state(path)
    if not _waiting(path):
        data = path.read_bytes()
        if _state(path) == before:
            return data
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        copy = _copy(path, Path(folder))
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error as error:
                raise _unreadable(str(path), error) from error
        return copy.read_bytes()


@contextmanager
def _connect(path: Path, *, immutable: bool) -> Iterator[CtrlrunStore]:
    uri = f"file:{quote(os.fspath(path.absolute()))}?mode={'ro&immutable=1' if immutable else 'rw'}"
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise _unreadable(str(path), error) from error
    with closing(connection):
        yield _opened(connection, str(path))


def _opened(connection: sqlite3.Connection, name: str) -> CtrlrunStore:
    connection.text_factory = bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    try:
        for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        raise _unreadable(name, error) from error
    return CtrlrunStore(connection)


def _unreadable(name: str, error: Exception) -> StorageError:
    return StorageError(f"{clip(name)}: {clip(str(error))[1:-1]}", code="foreign.unreadable")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _waiting(path: Path) -> bool:
    """Return whether commits wait beside the file to be written back into it, or to be undone."""
    return any(_size(_beside(path, suffix)) > 0 for suffix in ("-wal", "-journal"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _state(path: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what changes when a store does: size, time and identity of its files; the shared memory of readers is none of them."""
    found: list[tuple[int, int, int] | None] = []
    for each in (path, _beside(path, "-wal"), _beside(path, "-journal")):
        try:
            stat = each.stat()
            found.append((stat.st_size, stat.st_mtime_ns, stat.st_ino))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)


def _copy(path: Path, folder: Path) -> Path:
    """Return a copy of a store with what waits beside it, taken while neither changed."""
    copy = folder / "state.db"
    for _ in range(_ATTEMPTS):
        before = _state(path)
        for suffix in ("-wal", "-journal"):
            _beside(copy, suffix).unlink(missing_ok=True)
            if _size(_beside(path, suffix)):
                shutil.copyfile(_beside(path, suffix), _beside(copy, suffix))
        shutil.copyfile(path, copy)
        if _state(path) == before:
            return copy
    raise StorageError(
        f"{clip(str(path))}: changes while it is read",
        code="foreign.changing",
        hint="verify a copy, or verify again when nothing writes",
    )
