"""The index: verified receipts in DuckDB, to be asked in SQL. The only part of the project that loads duckdb.

    from ledger.index import connect

    connect("evidence").execute("SELECT agent, count(*) FROM calls GROUP BY agent").fetchall()

Source: docs/reference/sql.md, docs/explanation/index.md.
"""

from ledger.index.opened import connect

__all__ = ["connect"]
