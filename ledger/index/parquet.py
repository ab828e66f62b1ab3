"""Rows of a query written as Parquet, with what they were verified against in the file's own metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from ledger.index.asking import QueryError, check_statement, one_line
from ledger.index.beside import Beside, look_up_asked
from ledger.index.session import Session

__all__ = ["write_parquet"]


def write_parquet(
    connection: Session,
    text: str,
    values: Mapping[str, object],
    output: Path,
    *,
    members: Mapping[str, str],
    beside: Beside,
) -> int:
    """Write the rows of a query as Parquet; return how many.

    Args:
        connection: a session that may write `output`.
        text: one statement that only reads.
        values: what stands for `$name`.
        output: the file, replaced where it is there.
        members: what is kept in the file's key-value metadata.
        beside: where artifacts and counter-seals are looked up if the query asks for them.

    Raises:
        QueryError: it is refused, or cannot be carried out.
    """
    statement = check_statement(connection, text)
    metadata = ", ".join(f"{_quoted(name)}: {_quoted(value)}" for name, value in members.items())
    query = statement.query.strip().rstrip(";")
    try:
        look_up_asked(connection, statement, values, beside)
        rows = connection.execute(
            f"COPY (\n{query}\n) TO {_quoted(str(output.absolute()))} "
            f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{metadata}}})",
            values or None,
        ).fetchall()
    except duckdb.Error as error:
        raise QueryError(f"sql: {one_line(error)}", code="sql.failed") from error
    return int(rows[0][0])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
