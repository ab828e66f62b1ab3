"""Derived state of a ledger in SQLite: where each receipt lies, which runs are open, what in them is not yet committed.

`state.sqlite` is stamped with the tail it was made from, in the same transaction. A writer keeps what its last commits changed
in memory and saves now and then; another writer catches up from the journal, so nothing is decided on a stale state. Readers
treat every answer as a hint and check it against the journal.

Source: docs/spec/journal.md, "Derived files".
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import orjson

from ledger.storage.journal import Tail
from ledger.storage.rows import (
    Keyring,
    Pending,
    Place,
    RunState,
    keyring_of,
    pending_of,
    row_of,
    tail_of,
    value_of,
)

__all__ = ["State"]

_VERSION: Final = 4
_VARIABLES: Final = 500
_SAVE_AFTER_COMMITS: Final = 64
_SAVE_AFTER_CHANGES: Final = 8_192
_PLACES: Final = (
    "SELECT idx, segment, offset FROM ids WHERE {0} UNION SELECT idx, segment, offset FROM same_prefix WHERE {0}"
)
_SCHEMA: Final = """
CREATE TABLE stamp (one INTEGER PRIMARY KEY CHECK (one = 1), tail BLOB NOT NULL, keyring BLOB NOT NULL);
CREATE TABLE ids (prefix INTEGER PRIMARY KEY, idx INTEGER NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL);
CREATE TABLE same_prefix (prefix INTEGER NOT NULL, idx INTEGER PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL);
CREATE TABLE runs (
  id TEXT PRIMARY KEY, idx INTEGER NOT NULL, name TEXT NOT NULL, closed INTEGER, issuer_name TEXT NOT NULL,
  issuer_key TEXT NOT NULL, parent TEXT, parent_intent TEXT, root TEXT NOT NULL, level INTEGER NOT NULL,
  receipts INTEGER NOT NULL, unsettled INTEGER NOT NULL, open INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX open_runs ON runs (idx) WHERE closed IS NULL;
CREATE TABLE pending (
  id TEXT PRIMARY KEY, run TEXT NOT NULL, idx INTEGER NOT NULL, kind TEXT NOT NULL, height INTEGER NOT NULL,
  uncovered INTEGER NOT NULL, intent TEXT, attempts INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX pending_of_run ON pending (run, idx);
CREATE INDEX child_roots ON pending (intent, idx) WHERE intent IS NOT NULL;
CREATE TABLE topics (
  topic INTEGER NOT NULL, idx INTEGER NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL,
  PRIMARY KEY (topic, idx)) WITHOUT ROWID;
"""


@dataclass(slots=True)
class _Changes:
    """What changed since the state was saved."""

    runs: dict[str, RunState] = field(default_factory=dict)
    """Runs that were looked at; those in `dirty` are changed."""
    dirty: set[str] = field(default_factory=set)
    pending: dict[str, Pending] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    ids: dict[int, list[Place]] = field(default_factory=dict)
    topics: dict[int, list[Place]] = field(default_factory=dict)
    commits: int = 0

    def size(self) -> int:
        return len(self.dirty) + len(self.pending) + len(self.gone) + len(self.ids) + len(self.topics)


class State:
    """The derived state of one ledger folder: what was saved, and what changed since.

    A writer changes it under the lock, calls `advance` for each commit that is durable, and `load` after anything else: what is
    not saved is dropped then, and read from the journal again.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self._path = folder.absolute() / "state.sqlite"
        self.read_only: Final = read_only
        self._db: sqlite3.Connection | None = None
        self._changes = _Changes()
        self.in_use = threading.RLock()
        """Held by whoever uses the state: threads take turns, and a fork waits for its end."""
        _states.add(self)

    # The connection.

    def _connection(self) -> sqlite3.Connection:
        if self._db is not None:
            return self._db
        if self._path.exists() and not self._path.is_file():
            raise sqlite3.OperationalError("state: not a regular file")
        if self.read_only:
            # Reading writes nothing: without `immutable`, SQLite would make files beside the database.
            db = sqlite3.connect(
                f"{self._path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
            )
        else:
            db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            if db.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                _create(db)
        self._db = db
        return db

    def close(self) -> None:
        """Close the connection; it is opened again when it is needed."""
        if self._db is not None:
            self._db.close()
        self._db = None

    def leave_inherited(self) -> None:
        """Leave a connection that a fork brought along, in use by a thread that this process does not have.

        Closing it would release the locks of the parent.
        """
        if self._db is not None:
            _inherited.append(self._db)
            self._db, self.in_use = None, threading.RLock()

    def reset(self) -> None:
        """Forget everything, also a file that SQLite cannot read."""
        self.close()
        self._changes = _Changes()
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                self._path.with_name(self._path.name + suffix).unlink()
        self._connection()

    # Loading and saving.

    def load(self) -> tuple[Tail, Keyring] | None:
        """Drop what is not saved; return the tail and keys that the saved state was made from, None where it was never made.

        Raises:
            sqlite3.Error: the file is damaged or of another version.
        """
        self._changes = _Changes()
        row = self._connection().execute("SELECT tail, keyring FROM stamp").fetchone()
        return None if row is None else (tail_of(orjson.loads(row[0])), keyring_of(orjson.loads(row[1])))

    def advance(self, tail: Tail, keyring: Keyring) -> None:
        """Take what changed as that of a durable commit which leads to `tail`; save if much has come together."""
        save = self.is_due()
        self._changes.commits += 1
        if save:
            self.save(tail, keyring)

    def is_due(self) -> bool:
        """Return whether the next `advance` saves."""
        return self._changes.commits + 1 >= _SAVE_AFTER_COMMITS or self._changes.size() >= _SAVE_AFTER_CHANGES

    def unsaved(self) -> bool:
        """Return whether commits are not saved yet."""
        return self._changes.commits > 0

    def save(self, tail: Tail, keyring: Keyring) -> None:
        """Write what changed with the stamp of the tail that it leads to."""
        db, changes = self._connection(), self._changes
        try:
            db.execute("BEGIN IMMEDIATE")
            self._save_ids(db)
            db.executemany("DELETE FROM pending WHERE id = ?", [(id_,) for id_ in changes.gone])
            db.executemany(
                "INSERT OR REPLACE INTO pending VALUES (?,?,?,?,?,?,?,?)",
                [
                    (p.id, p.run, p.index, p.kind, p.height, p.uncovered, p.intent, p.attempts)
                    for p in changes.pending.values()
                ],
            )
            db.executemany(
                "INSERT OR REPLACE INTO topics VALUES (?,?,?,?)",
                [(topic, *place) for topic, places in changes.topics.items() for place in places],
            )
            db.executemany(
                "INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                [row_of(changes.runs[id_]) for id_ in changes.dirty],
            )
            stamp = (orjson.dumps(value_of(tail)), orjson.dumps(keyring))
            db.execute("INSERT OR REPLACE INTO stamp VALUES (1, ?, ?)", stamp)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._changes = _Changes()

    def _save_ids(self, db: sqlite3.Connection) -> None:
        rows = [(prefix, *places[0]) for prefix, places in self._changes.ids.items()]
        more = [(prefix, *place) for prefix, places in self._changes.ids.items() for place in places[1:]]
        if db.executemany("INSERT OR IGNORE INTO ids VALUES (?,?,?,?)", rows).rowcount != len(rows):
            held = "SELECT 1 FROM ids WHERE prefix = ? AND idx = ?"
            more += [row for row in rows if db.execute(held, row[:2]).fetchone() is None]
        db.executemany("INSERT OR REPLACE INTO same_prefix VALUES (?,?,?,?)", more)

    # Receipt ids.

    def add_id(self, raw: bytes, place: Place) -> None:
        """Keep where a receipt lies, by its digest."""
        self._changes.ids.setdefault(_prefix(raw), []).append(place)

    def add_topic(self, topic: str, place: Place) -> None:
        """Keep that a receipt bears on a topic."""
        self._changes.topics.setdefault(_topic(topic), []).append(place)

    def about(self, topic: str, after: int = -1) -> list[Place]:
        """Return the places of the receipts that bear on a topic, in chain order; some may bear on another one.

        Args:
            topic: The topic.
            after: Only those behind this index.
        """
        key = _topic(topic)
        query = "SELECT idx, segment, offset FROM topics WHERE topic = ? AND idx > ?"
        rows = self._connection().execute(query, (key, after)).fetchall()
        # What changed here may have been saved meanwhile by another process.
        return sorted({*rows, *(place for place in self._changes.topics.get(key, ()) if place[0] > after)})

    def places(self, raw: bytes) -> list[Place]:
        """Return the place of every receipt that shares the first eight bytes of a digest."""
        prefix = _prefix(raw)
        rows = self._connection().execute(_PLACES.format("prefix = ?1"), (prefix,)).fetchall()
        return rows + self._changes.ids.get(prefix, [])

    def sharing_prefix(self, raws: Sequence[bytes]) -> list[bytes]:
        """Return those of some digests whose first eight bytes a receipt of the ledger shares: few, and mostly none."""
        db, unsaved = self._connection(), self._changes.ids
        by_prefix: dict[int, list[bytes]] = {}
        for raw in raws:
            by_prefix.setdefault(_prefix(raw), []).append(raw)
        prefixes = list(by_prefix)
        held = {prefix for prefix in prefixes if prefix in unsaved}
        for start in range(0, len(prefixes), _VARIABLES):
            chunk = prefixes[start : start + _VARIABLES]
            marks = ",".join("?" * len(chunk))
            rows = db.execute(f"SELECT prefix FROM ids WHERE prefix IN ({marks})", chunk)  # noqa: S608  only marks
            held.update(prefix for (prefix,) in rows.fetchall())
        return [raw for prefix in held for raw in by_prefix[prefix]]

    def starting_with(self, digits: str, limit: int) -> list[Place]:
        """Return the places of saved receipts whose id starts with 1 to 16 hexadecimal digits."""
        low, high = (_prefix(bytes.fromhex(digits.ljust(16, pad))) for pad in "0f")
        query = _PLACES.format("prefix BETWEEN ?1 AND ?2") + " LIMIT ?3"
        rows: list[Place] = self._connection().execute(query, (low, high, limit)).fetchall()
        return rows

    # Runs and what waits in them.

    def run(self, id_: str) -> RunState | None:
        """Return a run by its id."""
        if id_ in self._changes.runs:
            return self._changes.runs[id_]
        row = self._connection().execute("SELECT * FROM runs WHERE id = ?", (id_,)).fetchone()
        if row is None:
            return None
        run = RunState(*row)
        self._changes.runs[id_] = run
        return run

    def put_run(self, run: RunState) -> None:
        """Keep a run that is new or changed."""
        self._changes.runs[run.id] = run
        self._changes.dirty.add(run.id)

    def open_runs(self) -> list[RunState]:
        """Return the runs that are not closed, oldest first."""
        rows = self._connection().execute("SELECT * FROM runs WHERE closed IS NULL").fetchall()
        found = {row[0]: RunState(*row) for row in rows}
        found |= self._changes.runs
        return sorted((run for run in found.values() if run.closed is None), key=lambda run: run.index)

    def pending(self, id_: str) -> Pending | None:
        """Return a receipt that nothing commits yet, by its id."""
        changes = self._changes
        if id_ in changes.pending:
            return changes.pending[id_]
        if id_ in changes.gone:
            return None
        row = self._connection().execute("SELECT * FROM pending WHERE id = ?", (id_,)).fetchone()
        return None if row is None else pending_of(row)

    def pending_of(self, run: str) -> list[Pending]:
        """Return what nothing commits yet in a run, in chain order."""
        rows = self._connection().execute("SELECT * FROM pending WHERE run = ?", (run,)).fetchall()
        return self._with_changes(rows, lambda pending: pending.run == run)

    def child_roots(self, intent: str) -> list[Pending]:
        """Return the roots of child runs that a call started and nothing commits yet, in chain order."""
        rows = self._connection().execute("SELECT * FROM pending WHERE intent = ?", (intent,)).fetchall()
        return self._with_changes(rows, lambda pending: pending.intent == intent)

    def _with_changes(self, rows: list[tuple[Any, ...]], wanted: Callable[[Pending], bool]) -> list[Pending]:
        changes = self._changes
        # What changed here may have been saved meanwhile by another process.
        found = {p.id: p for row in rows if (p := pending_of(row)).id not in changes.gone}
        found |= {pending.id: pending for pending in changes.pending.values() if wanted(pending)}
        return sorted(found.values(), key=lambda pending: pending.index)

    def add_pending(self, pending: Pending) -> None:
        """Keep a receipt that nothing commits yet."""
        self._changes.pending[pending.id] = pending

    def drop_pending(self, id_: str) -> None:
        """Forget a receipt that was committed just now."""
        self._changes.pending.pop(id_, None)
        # Also where it came after the last save: another process may have saved it meanwhile.
        self._changes.gone.add(id_)


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    if db.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute(f"DROP TABLE {name}")
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {_VERSION}")
    db.execute("COMMIT")


def _topic(text: str) -> int:
    return _prefix(sha256(text.encode("utf-8")).digest())


def _prefix(raw: bytes) -> int:
    """Return the first eight bytes of a digest as a signed integer that sorts as the bytes do."""
    return int.from_bytes(raw[:8], "big") - (1 << 63)


_FORK_WAIT_S: Final = 10.0
_states: Final[weakref.WeakSet[State]] = weakref.WeakSet()
_forking: Final = threading.RLock()
_paused: Final[list[State]] = []
_inherited: Final[list[sqlite3.Connection]] = []


def _before_fork() -> None:
    """Close every connection: SQLite cannot take one over a fork, where both sides would think they hold its locks."""
    _forking.acquire()
    # A writer may use a reader, never the other way round.
    for state in sorted(_states, key=lambda state: state.read_only):
        if state.in_use.acquire(timeout=_FORK_WAIT_S):
            _paused.append(state)
            state.close()


def _after_fork_in_parent() -> None:
    while _paused:
        _paused.pop().in_use.release()
    _forking.release()


def _after_fork_in_child() -> None:
    _after_fork_in_parent()
    for state in _states:
        state.leave_inherited()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
