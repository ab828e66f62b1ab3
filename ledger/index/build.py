"""Makes a file of an index: beside the old one, and renamed when it is whole.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import duckdb
import orjson

from ledger.errors import StorageError
from ledger.index.columns import Row, literal, typed
from ledger.index.crew import Crew
from ledger.index.files import FOLLOWS, Way, mark_of, newer_of
from ledger.index.load import Loader
from ledger.index.schema import DERIVED, STATE, STORED
from ledger.index.session import half_of_memory
from ledger.index.spent import ONCE, SOURCES, filled
from ledger.storage.durable import remove_temporaries, storage_error, temporary_beside

__all__ = ["Build"]

_SETTINGS: Final = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET temp_directory = ''",
    "SET wal_autocheckpoint = '1 TB'",
    "SET python_enable_replacements = false",
)

_MEMORY_BYTES: Final = 2 << 30
_THREAD_BYTES: Final = 192 << 20
"""Memory without which a thread more is not begun."""
_SHARE: Final = 8
"""Of the memory, what the journal may take up that is loaded and not on the disk yet: it is held several times over."""
_ROW_GROUP: Final = 8_192
"""Rows that are compressed and written together: fewer than most batches bring, so the thread that loads one writes it as it is
loaded, where rows that do not fill a group are copied when they are committed and compressed by a checkpoint."""
_NAME: Final = "being_built"
_ENTRY_BYTES: Final = 2_048
"""Memory that an entry takes up while it is worked out what acts took, about."""


class Build:
    """An index under construction; leaving it without `finish` leaves nothing behind and the old one as it was."""

    def __init__(self, index: Path, *, way: Way, threads: int = 0) -> None:
        """Begin beside `index`, with what it holds but where it is made anew; the caller keeps all others from building it.

        Raises:
            StorageError: the folder cannot be written, or the old index not be read.
        """
        self._index = index
        self._way = way
        self._target = newer_of(index) if way == "newer" else index
        self._temporary = temporary_beside(self._target)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._crew: Crew | None = None
        self._memory = 0
        try:
            index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_temporaries(index.parent, which=self._is_ours)
            copies = way != "anew" and self._target.exists()
            if copies:
                shutil.copyfile(self._target, self._temporary)
            self._connection = connection = duckdb.connect(":memory:")
            for setting in _SETTINGS:
                connection.execute(setting)
            self._memory = memory = min(_MEMORY_BYTES, half_of_memory(connection))
            threads = min(threads or os.cpu_count() or 1, memory // _THREAD_BYTES or 1)
            connection.execute(f"SET threads = {threads}")
            connection.execute(f"SET memory_limit = '{memory} bytes'")
            # Nobody sees the file before it is whole, so no log is kept that would make it whole again.
            options = f"RECOVERY_MODE NO_WAL_WRITES, ROW_GROUP_SIZE {_ROW_GROUP}"
            connection.execute(f"ATTACH {literal(str(self._temporary))} AS {_NAME} ({options})")
            connection.execute(f"USE {_NAME}")
            self._crew = Crew(self._another, memory=memory // _SHARE, threads=threads)
            if not copies:
                for table in STATE:
                    connection.execute(table.create())
                Loader(connection).create()
            if way == "newer" and not copies:
                self._follow()
            elif way == "folded":
                self._fold()
        except (OSError, duckdb.Error) as error:
            self._abandon()
            raise _failed(error, index) from error

    def load(self, pieces: Iterable[bytes], *, start: int, leave_out: frozenset[int]) -> None:
        """Load whole commits of the ledger. See `Loader.load`.

        Raises:
            StorageError: the disk is full; that may be said of an earlier batch only now, or when the index is finished.
        """
        try:
            self._loading.load(list(pieces), start=start, leave_out=leave_out)
        except duckdb.Error as error:
            raise _failed(error, self._index) from error

    def put_state(self, state: Row, checks: Sequence[Row]) -> None:
        """Say what the index stands for, in place of what it said before."""
        for table, rows in zip(STATE, ([state], checks), strict=True):
            shape = [{each.name: each.type for each in table.columns}]
            self._open.execute(f"DELETE FROM {table.name}")
            self._open.execute(
                f"INSERT INTO {table.name} SELECT unnest({typed('?', shape)}, recursive := true)",
                [orjson.dumps(rows).decode("utf-8")],
            )

    def count(self) -> int:
        """Return how many receipts the index holds.

        Raises:
            StorageError: the disk is full.
        """
        try:
            self._loading.wait()
        except duckdb.Error as error:
            raise _failed(error, self._index) from error
        (found,) = self._open.execute("SELECT count(*) FROM record").fetchall()
        if self._way != "newer":
            return int(found[0])
        with self._attached(self._index) as name:
            (older,) = self._open.execute(f"SELECT count(*) FROM {name}.main.record").fetchall()
        return int(found[0]) + int(older[0])

    def finish(self) -> None:
        """Put the index in its place.

        Raises:
            StorageError: the disk refused; the old one is as it was.
        """
        try:
            self._loading.wait()
            self._loading.stop()
            self._derive()
            for statement in ("CHECKPOINT", "USE memory", f"DETACH {_NAME}"):
                self._open.execute(statement)
            self._open.close()
            self._connection = None
            os.chmod(self._temporary, 0o600)  # noqa: PTH101
            newer = newer_of(self._index)
            if self._way == "anew":
                newer.unlink(missing_ok=True)
            self._temporary.replace(self._target)
            if self._way == "folded":
                newer.unlink(missing_ok=True)
        except (OSError, duckdb.Error) as error:
            raise _failed(error, self._index) from error

    def _derive(self) -> None:
        """Work out what follows from the stored tables, a stretch of the chain at a time."""
        execute = self._open.execute
        for table in DERIVED:
            execute(table.create(anew=True))
        ((start, end),) = execute(
            'SELECT coalesce(min("index"), 0), coalesce(max("index") + 1, 0) FROM intents'
        ).fetchall()
        execute("CREATE SCHEMA memory.stored")
        for name in SOURCES:
            # All rows are of one ledger, whichever.
            execute(f"CREATE VIEW memory.stored.{name} AS SELECT false AS ledger, * FROM {_NAME}.main.{name}")
        execute("USE memory")
        ((once,),) = execute(ONCE).fetchall()
        stretches = [(start, end)]
        while stretches:
            first, last = stretches.pop()
            if last - first > max(1, self._memory // _ENTRY_BYTES):
                middle = (first + last) // 2
                stretches += [(middle, last), (first, middle)]
                continue
            for statement in filled(_NAME, once=once):
                execute(statement, {"start": first, "end": last})
        execute(f"USE {_NAME}")

    def _follow(self) -> None:
        """Say which file this one follows."""
        mark = mark_of(self._index)
        self._open.execute(FOLLOWS.create())
        self._open.execute("INSERT INTO follows VALUES (?, ?, ?, ?)", mark)

    def _fold(self) -> None:
        """Take in what came since."""
        newer = newer_of(self._index)
        if not newer.exists():
            return
        with self._attached(newer) as name:
            for table in STORED:
                self._open.execute(f"INSERT INTO {table.name} SELECT * FROM {name}.main.{table.name}")

    @contextlib.contextmanager
    def _attached(self, path: Path) -> Iterator[str]:
        """Attach another file, to be read."""
        self._open.execute(f"ATTACH {literal(str(path))} AS other (READ_ONLY)")
        try:
            yield "other"
        finally:
            self._open.execute("DETACH other")

    @property
    def _open(self) -> duckdb.DuckDBPyConnection:
        assert self._connection is not None  # noqa: S101  not finished
        return self._connection

    @property
    def _loading(self) -> Crew:
        assert self._crew is not None  # noqa: S101  not given up
        return self._crew

    def _another(self) -> duckdb.DuckDBPyConnection:
        """Return another connection to the index."""
        connection = self._open.cursor()
        connection.execute(f"USE {_NAME}")
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._abandon()

    def _abandon(self) -> None:
        if self._crew is not None:
            self._crew.stop()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for path in (self._temporary, Path(f"{self._temporary}.wal")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _is_ours(self, path: Path) -> bool:
        """Return whether a file was on its way to this index, or is its log, when a build was killed."""
        names = (self._index.name, newer_of(self._index).name)
        return any(path.name.startswith(f".{name[:100]}.") for name in names)


def _failed(error: Exception, index: Path) -> StorageError:
    if isinstance(error, OSError):
        return storage_error(error, Path(error.filename) if isinstance(error.filename, str) else index)
    return StorageError(f"index: {str(error).splitlines()[0]}", code="index.failed", where=str(index))
