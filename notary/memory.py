"""What a notary remembers, durable before anything is signed.

    memory.sqlite    origins: log key and newest head of each; proofs of equivocation; what may be shown to the public

- `remember` is a compare-and-swap: it changes what is there only if that is what the decision was made from, all or nothing.
- A change is on the disk when a method returns (write-ahead log, synced at every commit).
- The file cannot be made again from anything else: a notary without it does not start.

Source: docs/spec/notary.md, "Witness rule".
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledger.digest import digest_bytes
from ledger.storage.durable import fsync_folder
from notary.errors import NotaryError
from notary.rules import Known

__all__ = ["Memory", "origin_hash"]

_FORMAT: Final = "receipt-ledger.notary-memory/v1"
_TABLES: Final = """
CREATE TABLE about (format TEXT NOT NULL, ledger TEXT NOT NULL) STRICT;
CREATE TABLE origins (
    origin TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, log_name TEXT NOT NULL, log_key TEXT NOT NULL,
    size INTEGER NOT NULL, root BLOB NOT NULL, note BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE equivocations (hash TEXT PRIMARY KEY, document BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE published (receipt TEXT NOT NULL, origin TEXT NOT NULL, PRIMARY KEY (receipt, origin)) STRICT, WITHOUT ROWID;
"""
_LOGGED: Final = "PRAGMA journal_mode = WAL"
_BUSY_MS: Final = 10_000


def origin_hash(origin: str) -> str:
    """Return the hexadecimal SHA-256 of an origin: its name in paths."""
    return digest_bytes(origin.encode("utf-8")).hex()


class Memory:
    """The memory of one notary; threads may share it, and processes open it each."""

    def __init__(self, path: Path, *, ledger: str) -> None:
        """Open what `create` made for the notary whose own ledger has the origin `ledger`.

        Raises:
            NotaryError: `notary.memory` where it is absent, no such file, or another notary's.
        """
        self._path = path
        self._guard = threading.Lock()
        if not path.is_file():
            raise NotaryError(
                f"notary: its memory {str(path)!r} is not there",
                code="notary.memory",
                hint="without it two histories could be cosigned: bring it back, or make a new notary with new keys",
            )
        try:
            self._connection = _connect(path)
            found = self._connection.execute("SELECT format, ledger FROM about").fetchall()
        except sqlite3.Error as error:
            raise NotaryError(f"notary: memory {str(path)!r}: {error}", code="notary.memory") from error
        if found != [(_FORMAT, ledger)]:
            self._connection.close()
            raise NotaryError(f"notary: memory {str(path)!r} is that of another notary", code="notary.memory")
        self._connection.execute(_LOGGED)

    @classmethod
    def create(cls, path: Path, *, ledger: str) -> Memory:
        """Return a new memory, which is empty.

        Raises:
            NotaryError: there is a file.
        """
        if path.exists():
            raise NotaryError(f"notary: memory {str(path)!r} exists already", code="notary.memory")
        try:
            connection = _connect(path)
            connection.execute(_LOGGED)
            connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
            with connection:
                connection.execute("INSERT INTO about VALUES (?, ?)", (_FORMAT, ledger))
            connection.close()
        except sqlite3.Error as error:
            raise NotaryError(f"notary: memory {str(path)!r}: {error}", code="notary.memory") from error
        path.chmod(0o600)
        fsync_folder(path.parent)
        return cls(path, ledger=ledger)

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            self._connection.close()

    # Heads.

    def known(self, origin: str) -> Known | None:
        """Return what is remembered of an origin, None where it was not admitted."""
        with self._using() as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM origins WHERE origin = ?", (origin,)).fetchone()  # noqa: S608
        return None if row is None else Known(*row)

    def known_by_hash(self, hash_: str) -> Known | None:
        """Return what is remembered of the origin with this hexadecimal SHA-256."""
        with self._using() as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM origins WHERE hash = ?", (hash_,)).fetchone()  # noqa: S608
        return None if row is None else Known(*row)

    def origins(self) -> list[Known]:
        """Return what is remembered of every origin, in order of their names."""
        with self._using() as connection:
            return [Known(*row) for row in connection.execute(f"SELECT {_COLUMNS} FROM origins ORDER BY origin")]  # noqa: S608

    def remember(self, changes: Sequence[tuple[Known | None, Known]]) -> bool:
        """Return whether memory holds what follows, durably; False, with nothing changed, where it did not hold what was before."""
        changes = [(before, after) for before, after in changes if before != after]
        if not changes:
            return True
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                done = all(_swap(connection, before, after) for before, after in changes)
            except BaseException:
                connection.rollback()
                raise
            if done:
                connection.commit()
            else:
                connection.rollback()
            return done

    # Equivocation.

    def keep_equivocation(self, origin: str, document: bytes) -> None:
        """Keep a proof of equivocation; the first one of an origin stays."""
        with self._using() as connection, connection:
            connection.execute("INSERT OR IGNORE INTO equivocations VALUES (?, ?)", (origin_hash(origin), document))

    def equivocation(self, hash_: str) -> bytes | None:
        """Return the proof of equivocation that is kept for the origin with this hash."""
        with self._using() as connection:
            row = connection.execute("SELECT document FROM equivocations WHERE hash = ?", (hash_,)).fetchone()
        return None if row is None else bytes(row[0])

    # What may be shown.

    def publish(self, entries: Sequence[tuple[str, str]]) -> None:
        """Let the public page show what was sealed of receipts, each by its id and origin."""
        with self._using() as connection, connection:
            connection.executemany("INSERT OR IGNORE INTO published VALUES (?, ?)", entries)

    def published_in(self, receipt: str) -> frozenset[str]:
        """Return the origins in which a receipt may be shown to the public."""
        with self._using() as connection:
            rows = connection.execute("SELECT origin FROM published WHERE receipt = ?", (receipt,)).fetchall()
        return frozenset(origin for (origin,) in rows)

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._guard:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise NotaryError(f"notary: memory {str(self._path)!r}: {error}", code="notary.memory") from error


_COLUMNS: Final = "origin, log_name, log_key, size, root, note"


def _swap(connection: sqlite3.Connection, before: Known | None, after: Known) -> bool:
    values = (after.log_name, after.log_key, after.size, after.root, after.note)
    if before is None:
        done = connection.execute(
            "INSERT OR IGNORE INTO origins (log_name, log_key, size, root, note, origin, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*values, after.origin, origin_hash(after.origin)),
        )
    else:
        done = connection.execute(
            "UPDATE origins SET log_name = ?, log_key = ?, size = ?, root = ?, note = ? "
            "WHERE origin = ? AND log_name = ? AND log_key = ? AND size = ? AND root = ?",
            (*values, before.origin, before.log_name, before.log_key, before.size, before.root),
        )
    return done.rowcount == 1


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000, check_same_thread=False)
    # Synced at every commit: what is remembered must outlive the machine before a signature leaves it.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    return connection
