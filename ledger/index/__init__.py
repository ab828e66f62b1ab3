"""The index: verified receipts in DuckDB, to be asked in SQL. The only part of the project that loads duckdb.

    from ledger.index import connect

    connect("evidence").execute("SELECT agent, count(*) FROM calls GROUP BY agent").fetchall()

Source: docs/reference/sql.md, docs/explanation/index.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.index.opened import connect

__all__ = ["connect"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ledger.index' has no attribute {name!r}")
    from ledger.index.opened import connect  # noqa: PLC0415  the parts of an index are used without it

    globals()[name] = connect
    return connect
