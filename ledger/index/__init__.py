"""The index: verified receipts in DuckDB, to be asked in SQL. The only part of the project that loads duckdb."""
