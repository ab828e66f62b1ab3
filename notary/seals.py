"""The index of what a notary sealed: derived from its own ledger, and made again where it is not what that says.

    seals.sqlite    rows: one for each counter-seal and cosignature in the ledger; tail: how far the ledger was read

It is written after the ledger's commit and not synced: a crash leaves it behind, and the next start reads the rest of the ledger.

Source: docs/spec/notary.md, clauses 13, 14 and 20.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger import canonical
from ledger.digest import digest
from ledger.errors import LedgerError
from ledger.merkle import Frontier
from ledger.storage.journal import Tail, read_segment
from notary.errors import NotaryError

__all__ = ["Row", "SealIndex", "head_name", "seal_name"]

_FORMAT: Final = 1
_TABLES: Final = """
CREATE TABLE rows (
    entry INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, receipt TEXT NOT NULL, origin TEXT NOT NULL,
    size INTEGER NOT NULL, root TEXT NOT NULL,
    document BLOB NOT NULL, record BLOB NOT NULL, entry_bytes BLOB NOT NULL, verdict BLOB
) STRICT;
CREATE INDEX by_receipt ON rows (receipt);
CREATE TABLE tail (saved BLOB NOT NULL) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was sealed, and where the notary's own ledger says so.

    `name` is what it is found by; `receipt` the receipt id, or the digest of a checkpoint's text; `size` and `root` the head;
    `document` the counter-seal or the cosigned note; `record` the envelope of the evaluation at index `entry`.
    """

    entry: int
    name: str
    receipt: str
    origin: str
    size: int
    root: str
    document: bytes
    record: bytes
    entry_bytes: bytes
    verdict: bytes | None = None


def seal_name(*, origin: str, receipt: str, envelope: str, index: int, mode: str) -> str:
    """Return the name of the one counter-seal that a receipt at a place has in a mode."""
    return f"seal {mode} {index} {receipt} {envelope} {origin}"


def head_name(text: str) -> str:
    """Return the name of the one cosignature that a checkpoint's text has."""
    return f"head {digest(text.encode('utf-8'))}"


class SealIndex:
    """The index of one notary; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        try:
            self._connection = self._open()
        except sqlite3.Error:
            self._remove()
            self._connection = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            self._connection.close()

    def reset(self) -> None:
        """Forget everything, to be read again from the ledger."""
        with self._guard:
            self._connection.close()
            self._remove()
            self._connection = self._open()

    def load_tail(self, ledger_folder: Path) -> Tail | None:
        """Return how far the ledger was read, None where the index does not stand on the journal as it is."""
        try:
            with self._guard:
                row = self._connection.execute("SELECT saved FROM tail").fetchone()
            if row is None:
                return None
            tail = _parse_tail(bytes(row[0]))
            last = read_segment(ledger_folder, tail.segment, tail.start, tail.offset - tail.start)
        except (sqlite3.Error, LedgerError, OSError, KeyError, TypeError, ValueError):
            return None
        return tail if digest(last) == tail.commit else None

    def add(self, rows: Sequence[Row], tail: Tail) -> None:
        """Add rows and note how far the ledger was read; of one name the first row stays."""
        with self._guard, self._connection as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (r.entry, r.name, r.receipt, r.origin, r.size, r.root, r.document, r.record, r.entry_bytes, r.verdict)
                    for r in rows
                ],
            )  # fmt: skip
            connection.execute("DELETE FROM tail")
            connection.execute("INSERT INTO tail VALUES (?)", (_print_tail(tail),))

    def find(self, name: str) -> Row | None:
        """Return the row of a name."""
        with self._guard:
            row = self._connection.execute("SELECT * FROM rows WHERE name = ?", (name,)).fetchone()
        return None if row is None else Row(*row)

    def of_receipt(self, receipt: str) -> list[Row]:
        """Return the counter-seals of a receipt, the oldest first."""
        with self._guard:
            rows = self._connection.execute(
                "SELECT * FROM rows WHERE receipt = ? AND name LIKE 'seal %' ORDER BY entry LIMIT 100", (receipt,)
            ).fetchall()
        return [Row(*row) for row in rows]

    def newest_heads(self) -> list[tuple[str, int, str]]:
        """Return origin, size and root of the largest head that was sealed of each origin."""
        with self._guard:
            return self._connection.execute("SELECT origin, max(size), root FROM rows GROUP BY origin").fetchall()

    def count(self) -> int:
        """Return how many things were sealed."""
        with self._guard:
            found: tuple[int] = self._connection.execute("SELECT count(*) FROM rows").fetchone()
        return found[0]

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        found: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
        if found[0] == 0:
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")
        elif found[0] != _FORMAT:
            connection.close()
            raise sqlite3.DatabaseError("another format")
        return connection

    def _remove(self) -> None:
        try:
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + suffix).unlink()
        except OSError as error:
            raise NotaryError(f"notary: {str(self._path)!r}: {error.strerror}", code="notary.index") from error


def _print_tail(tail: Tail) -> bytes:
    return canonical.encode(
        {
            "segment": tail.segment, "start": tail.start, "offset": tail.offset, "size": tail.size,
            "previous": tail.previous, "keyring": tail.keyring, "head_line": tail.head_line, "commit": tail.commit,
            "frontier": [found.hex() for found in tail.frontier.hashes], "note": tail.note.decode("utf-8"),
        }
    )  # fmt: skip


def _parse_tail(data: bytes) -> Tail:
    value = canonical.decode(data)
    return Tail(
        value["segment"],
        value["start"],
        value["offset"],
        value["size"],
        value["previous"],
        value["keyring"],
        Frontier.of(value["size"], [bytes.fromhex(found) for found in value["frontier"]]),
        value["head_line"],
        value["commit"],
        value["note"].encode("utf-8"),
    )
