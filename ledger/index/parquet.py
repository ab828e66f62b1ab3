"""Rows of a query written as Parquet, with what they were verified against in the file's own metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from ledger.index.asking import QueryError, check_statement, one_line
from ledger.index.beside import Beside, look_up_asked
from ledger.index.session import Session

__all__ = ["part_of", "write_parquet"]


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
        connection: a session that may write `part_of(output)`.
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
    part = part_of(output)
    query = statement.query.strip().rstrip(";")
    try:
        look_up_asked(connection, statement, values, beside)
        rows = connection.execute(
            f"COPY (\n{query}\n) TO {_quoted(str(part))} "
            f"(FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {{{metadata}}})",
            values or None,
        ).fetchall()
        part.replace(output)
    except duckdb.Error as error:
        raise QueryError(f"sql: {one_line(error)}", code="sql.failed") from error
    finally:
        part.unlink(missing_ok=True)
    return int(rows[0][0])


def part_of(output: Path) -> Path:
    """Return the file that is written first, and has the name of `output` when it is whole."""
    return output.absolute().with_name(f".{output.name[:200]}.part")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
