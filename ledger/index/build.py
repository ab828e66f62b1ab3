"""Makes an index file: beside the old one, and renamed when it is whole.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import duckdb
import orjson

from ledger.errors import StorageError
from ledger.index.columns import typed
from ledger.index.load import Loader
from ledger.index.schema import STATE
from ledger.index.session import memory_bytes
from ledger.storage.durable import remove_temporaries, storage_error, temporary_beside

__all__ = ["Build", "Row"]

Row = dict[str, object]
"""Column -> value, of a table of the index."""

_SETTINGS: Final = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET temp_directory = ''",
    "SET wal_autocheckpoint = '1 TB'",
    "SET python_enable_replacements = false",
)


_MEMORY_BYTES: Final = 2 << 30
_COMMIT_BYTES: Final = 192 << 20
"""Bytes of journal after which what was loaded goes to the disk: until then it is held in memory."""


class Build:
    """An index under construction; leaving it without `finish` leaves nothing behind and the old one as it was."""

    def __init__(self, index: Path, *, going_on: bool, threads: int = 0) -> None:
        """Begin beside `index`, with what it holds where `going_on`; the caller keeps all others from building it.

        Raises:
            StorageError: the folder cannot be written, or the old index not be read.
        """
        self._index = index
        self._temporary = temporary_beside(index)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._uncommitted = 0
        try:
            index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_temporaries(index.parent, which=self._is_ours)
            if going_on:
                shutil.copyfile(index, self._temporary)
            self._connection = connection = duckdb.connect(str(self._temporary))
            for setting in _SETTINGS:
                connection.execute(setting)
            if threads:
                connection.execute(f"SET threads = {threads}")
            connection.execute(f"SET memory_limit = '{min(_MEMORY_BYTES, memory_bytes() // 2)} bytes'")
            connection.execute("BEGIN")
            if not going_on:
                for table in STATE:
                    connection.execute(table.create())
                Loader(connection, "").create()
        except (OSError, duckdb.Error) as error:
            self._abandon()
            raise _failed(error, index) from error

    def load(self, ledger: str, pieces: Iterable[bytes], *, start: int, leave_out: frozenset[int]) -> None:
        """Load whole commits of a ledger. See `Loader.load`.

        Raises:
            StorageError: the disk is full.
        """
        batch = list(pieces)
        try:
            Loader(self._open, ledger).load(batch, start=start, leave_out=leave_out)
            self._uncommitted += sum(map(len, batch))
            if self._uncommitted >= _COMMIT_BYTES:
                for statement in ("COMMIT", "CHECKPOINT", "BEGIN"):
                    self._open.execute(statement)
                self._uncommitted = 0
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
        """Return how many receipts are loaded."""
        (found,) = self._open.execute("SELECT count(*) FROM record").fetchall()
        return int(found[0])

    def finish(self) -> None:
        """Put the index in its place.

        Raises:
            StorageError: the disk refused; the old one is as it was.
        """
        try:
            self._open.execute("COMMIT")
            self._open.execute("CHECKPOINT")
            self._open.close()
            self._connection = None
            os.chmod(self._temporary, 0o600)  # noqa: PTH101
            self._temporary.replace(self._index)
        except (OSError, duckdb.Error) as error:
            raise _failed(error, self._index) from error

    @property
    def _open(self) -> duckdb.DuckDBPyConnection:
        assert self._connection is not None  # noqa: S101  not finished
        return self._connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._abandon()

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for path in (self._temporary, Path(f"{self._temporary}.wal")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _is_ours(self, path: Path) -> bool:
        """Return whether a file was on its way to this index, or is its log, when a build was killed."""
        return path.name.startswith(f".{self._index.name[:100]}.")


def _failed(error: Exception, index: Path) -> StorageError:
    if isinstance(error, OSError):
        return storage_error(error, index)
    return StorageError(f"index: {str(error).splitlines()[0]}", code="index.failed", where=str(index))
