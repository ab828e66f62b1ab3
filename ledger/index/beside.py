"""What lies beside the journal, looked up when somebody asks: artifacts, and what notaries sealed.

The bytes of artifacts are never kept in an index, so erasing them is enough. A query whose plan reads one of these tables has it
filled first; every other query costs nothing.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import duckdb
import orjson

from ledger import canonical
from ledger.digest import is_digest
from ledger.errors import LedgerError, NotFoundError
from ledger.index.columns import Row
from ledger.index.questions import QUESTIONS
from ledger.storage.artifacts import SALT_BYTES, ArtifactStore

__all__ = ["ARTIFACTS", "COUNTER_SEALS", "Beside", "create_tables", "look_up", "look_up_asked"]

ARTIFACTS: Final = "looked_up_artifacts"
COUNTER_SEALS: Final = "looked_up_counter_seals"
_TABLES: Final = {
    ARTIFACTS: {"ledger": "VARCHAR", "digest": "VARCHAR", "state": "VARCHAR", "content": "JSON"},
    COUNTER_SEALS: {
        "ledger": "VARCHAR", "receipt": "VARCHAR", "envelope": "VARCHAR", "entry_index": "BIGINT", "head_size": "BIGINT",
        "head_root": "VARCHAR", "notary": "VARCHAR", "notary_key": "VARCHAR", "notary_pinned": "BOOLEAN", "mode": "VARCHAR",
        "verdict": "VARCHAR", "issued_at": "TIMESTAMP",
    },
}  # fmt: skip
_BATCH: Final = 1_000
_WITHOUT: Final = frozenset(each.sql for each in QUESTIONS.values() if not each.beside)


@dataclass(frozen=True, slots=True)
class Beside:
    """Where to look: origin -> the ledger's folder, and name -> key of the notaries that are believed."""

    folders: Mapping[str, Path]
    notaries: Mapping[str, str | None] = field(default_factory=dict)


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables, empty."""
    for name, columns in _TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{each} {type_}' for each, type_ in columns.items())})")


def look_up_asked(
    connection: duckdb.DuckDBPyConnection,
    statement: duckdb.Statement,
    values: Mapping[str, object] | Sequence[object],
    beside: Beside,
) -> None:
    """Look up what the plan of a statement reads; of a question with a name that is known without a plan."""
    if statement.query.strip() in _WITHOUT and _is_locked(connection):
        return
    try:
        plan = str(connection.execute(f"EXPLAIN {statement.query}", values or None).fetchall())
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        connection.execute(statement, values or None)  # it says what is wrong with it in its own words
        raise
    look_up(connection, beside, only=tuple(name for name in _TABLES if name in plan))


def _is_locked(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a session is locked, so that each name in it means what the schema says."""
    return connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]


def look_up(connection: duckdb.DuckDBPyConnection, beside: Beside, *, only: Sequence[str] = tuple(_TABLES)) -> None:
    """Fill tables anew with what is there now."""
    for name in only:
        rows = _artifacts(connection, beside) if name == ARTIFACTS else _counter_seals(beside)
        columns = _TABLES[name]
        shape = canonical.encode(dict(columns)).decode("utf-8")
        connection.execute(f"DELETE FROM {name}")
        names = ", ".join(f"x.{each}" for each in columns)
        for batch in _batches(rows):
            connection.execute(
                f"INSERT INTO {name} SELECT {names} FROM (SELECT unnest(json_transform(?, '[{shape}]')) AS x)", [batch]
            )


def _artifacts(connection: duckdb.DuckDBPyConnection, beside: Beside) -> Iterator[Row]:
    """Yield every artifact that receipts mention: whether it is there, and its content where it is that of arguments."""
    mentioned = connection.execute("""
        SELECT a.ledger, a.digest, any_value(a.salted), bool_or(i.receipt IS NOT NULL)
        FROM stored.artifacts AS a
        LEFT JOIN stored.intents AS i ON i.ledger = a.ledger AND i."index" = a."index" AND i.arguments_digest = a.digest
        GROUP BY ALL
    """).fetchall()
    stores = {ledger: ArtifactStore(folder) for ledger, folder in beside.folders.items()}
    for ledger, digest, salted, wanted in mentioned:
        yield _artifact(stores[ledger], ledger, digest, salted=salted, wanted=wanted)


def _artifact(store: ArtifactStore, ledger: str, digest: str, *, salted: bool, wanted: bool) -> Row:
    """Return what is to be said of an artifact; `content` only where it is canonical JSON."""
    content: object = None
    try:
        stored = store.get(digest) if is_digest(digest) else b""
        state = "present"
        if wanted:
            content = canonical.decode(stored[SALT_BYTES if salted else 0 :])
    except NotFoundError:
        state = "absent"
    except LedgerError as error:
        state = "present" if error.code.startswith("canonical.") else "unreadable"
    except OSError:
        state = "unreadable"
    return {"ledger": ledger, "digest": digest, "state": state, "content": content}


def _counter_seals(beside: Beside) -> Iterator[Row]:
    """Yield every counter-seal whose own seal holds; others are left out here, and the verifier says what they are."""
    from ledger.counterseal import open_counter_seal  # noqa: PLC0415  few questions ask for them
    from ledger.storage.counterseals import CounterSeals  # noqa: PLC0415

    for ledger, folder in beside.folders.items():
        for _, document in CounterSeals(folder).all():
            try:
                found, _ = open_counter_seal(document)
            except LedgerError:
                continue
            if found.origin != ledger:
                continue
            yield {
                "ledger": ledger,
                "receipt": found.receipt,
                "envelope": found.envelope,
                "entry_index": found.entry_index,
                "head_size": found.size,
                "head_root": found.root,
                "notary": found.notary,
                "notary_key": found.key,
                "notary_pinned": beside.notaries.get(found.notary) == found.key,
                "mode": str(found.mode),
                "verdict": found.verdict if isinstance(found.verdict, str) else f"exit {found.verdict.exit}",
                "issued_at": found.issued_at,
            }


def _batches(rows: Iterable[Row]) -> Iterator[str]:
    each = iter(rows)
    while batch := list(islice(each, _BATCH)):
        yield orjson.dumps(batch).decode("utf-8")
