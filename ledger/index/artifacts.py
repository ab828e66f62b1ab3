"""Artifacts looked up when somebody asks: their bytes are never kept in an index, so erasing them is enough.

A query whose plan reads the table of what was looked up has it filled first; every other query costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import duckdb
import orjson

from ledger import canonical
from ledger.digest import is_digest
from ledger.errors import LedgerError, NotFoundError
from ledger.storage.artifacts import SALT_BYTES, ArtifactStore

__all__ = ["LOOKED_UP", "is_asked", "look_up"]

LOOKED_UP: Final = "looked_up_artifacts"
_BATCH: Final = 1_000
_ROW: Final = '[{"ledger":"VARCHAR","digest":"VARCHAR","state":"VARCHAR","content":"JSON"}]'


def is_asked(
    connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement, values: Mapping[str, object] | Sequence[object]
) -> bool:
    """Return whether the plan of a statement reads what is looked up."""
    plans = connection.execute(f"EXPLAIN {statement.query}", values or None).fetchall()
    return any(LOOKED_UP in str(plan) for plan in plans)


def look_up(connection: duckdb.DuckDBPyConnection, folders: Mapping[str, Path]) -> None:
    """Look up every artifact that receipts mention: whether it is there, and its content where it is that of arguments.

    Args:
        connection: a session.
        folders: origin -> the ledger's folder.
    """
    connection.execute(f"DELETE FROM {LOOKED_UP}")
    mentioned = connection.execute("""
        SELECT a.ledger, a.digest, any_value(a.salted), bool_or(i.receipt IS NOT NULL), bool_or(e.digest IS NOT NULL)
        FROM stored.artifacts AS a
        LEFT JOIN stored.intents AS i ON i.ledger = a.ledger AND i."index" = a."index" AND i.arguments_digest = a.digest
        LEFT JOIN stored.removals AS e ON e.ledger = a.ledger AND e.digest = a.digest
        GROUP BY ALL
    """).fetchall()
    stores = {ledger: ArtifactStore(folder) for ledger, folder in folders.items()}
    for rows in _batches(_row(stores[ledger], ledger, *rest) for ledger, *rest in mentioned):
        connection.execute(
            f"INSERT INTO {LOOKED_UP} SELECT unnest(json_transform(?, '{_ROW}'), recursive := true)", [rows]
        )


def _batches(rows: Iterable[dict[str, object]]) -> Iterator[str]:
    each = iter(rows)
    while batch := list(islice(each, _BATCH)):
        yield orjson.dumps(batch).decode("utf-8")


def _row(store: ArtifactStore, ledger: str, digest: str, salted: bool, wanted: bool, erased: bool) -> dict[str, object]:  # noqa: FBT001
    """Return what is to be said of an artifact; `content` only where it is JSON in our own canonical form."""
    content: object = None
    try:
        stored = store.get(digest) if is_digest(digest) else b""
        state = "present"
        if wanted:
            content = canonical.decode(stored[SALT_BYTES if salted else 0 :])
    except NotFoundError:
        state = "erased" if erased else "absent"
    except LedgerError as error:
        state = "present" if error.code.startswith("canonical.") else "unreadable"
    except OSError:
        state = "unreadable"
    return {"ledger": ledger, "digest": digest, "state": state, "content": content}
