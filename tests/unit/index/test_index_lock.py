"""Whatever is asked, and whatever receipts hold: no files, no network, no settings, nothing written, and data stays data."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference.build import Builder
from reference.indexed import session_of

from ledger.errors import LedgerError
from ledger.index.asking import QueryError, QueryTimeError, ask, within
from ledger.index.beside import Beside
from ledger.index.parquet import part_of, write_parquet

REFUSED = (
    "COPY (SELECT 1) TO 'x.csv'",
    "COPY runs FROM 'x.csv'",
    "ATTACH 'y.db'",
    "ATTACH ':memory:' AS m",
    "DETACH l0",
    "USE l0",
    "CREATE TABLE t(a INT)",
    "CREATE TEMP TABLE t AS SELECT 1",
    "CREATE OR REPLACE VIEW runs AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "CREATE SECRET s (TYPE s3)",
    "DROP VIEW runs",
    "ALTER VIEW runs RENAME TO r",
    "INSERT INTO looked_up_artifacts VALUES ('a','b','c','1')",
    "UPDATE looked_up_artifacts SET state = 'present'",
    "DELETE FROM l0.main.record",
    "TRUNCATE l0.main.record",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs",
    "UPDATE EXTENSIONS",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET memory_limit",
    "SET VARIABLE x = 1",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CALL enable_logging()",
    "EXPORT DATABASE 'd'",
    "IMPORT DATABASE 'd'",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "SELECT 1; COPY (SELECT 1) TO 'x.csv'",
    "SELECT 1; SELECT 2",
    "",
    "-- nothing",
    "SELEC 1",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM 'x.csv'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM query('COPY (SELECT 1) TO ''x.csv''')",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
    "PIVOT (SELECT kind, receipt FROM receipts) ON kind USING count(*)",
    "SELECT * FROM runs WHERE name IN (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM builder",
    "EXPLAIN ANALYZE SELECT * FROM read_text('/etc/passwd')",
    "EXPLAIN SELECT * FROM read_text('/etc/passwd')",
    "SELECT getenv('HOME')",
)
TAKEN = (
    "SELECT 1",
    "FROM runs",
    "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
    "VALUES (1), (2)",
    "DESCRIBE runs",
    "SHOW TABLES",
    "SUMMARIZE runs",
    "EXPLAIN SELECT * FROM runs",
    "SELECT 1;",
    "SELECT 1 -- said",
    "PIVOT (SELECT kind, receipt FROM receipts) ON kind IN ('run') USING count(*)",
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    built = Builder()
    built.header()
    built.opening(name="'; DROP TABLE runs; --")
    built.call()
    built.commit()
    with session_of(tmp_path_factory.mktemp("index"), built) as found:
        yield found


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_more_than_read_is_refused(connection, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    builder = [1]  # noqa: F841  a name that a query could reach through this frame
    with pytest.raises(QueryError):
        list(ask(connection, text).rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", TAKEN)
def test_what_reads_is_taken(connection, text):
    assert list(ask(connection, text).rows)


def test_no_table_function_reads_a_file_or_changes_a_setting(connection):
    """All functions of the database that take one text are called with a path; none gives anything of it."""
    names = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'pragma', 'table_macro')"
    ).fetchall()
    assert len(names) > 30
    secret = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()[0]
    for (name,) in names:
        for arguments in ("'/etc/passwd'", "", "'x', '/etc/passwd'", "true"):
            try:
                rows = list(ask(connection, f"SELECT * FROM {name}({arguments}) LIMIT 10").rows)
            except QueryError:
                continue
            assert secret not in str(rows), name
    assert connection.execute("SELECT current_setting('enable_external_access')").fetchone() == (False,)
    assert connection.execute("SELECT current_setting('lock_configuration')").fetchone() == (True,)


def test_what_the_database_itself_is_told_behind_the_fence_is_refused_too(connection):
    for text in ("SET enable_external_access = true", "SET threads = 3", "INSTALL httpfs", "COPY (SELECT 1) TO 'x.csv'",
                 "DELETE FROM l0.main.record", "CREATE TABLE l0.main.t(a INT)", "ATTACH '/tmp/y.db' AS y"):  # fmt: skip
        with pytest.raises(duckdb.Error):
            connection.execute(text)


def test_what_receipts_hold_is_data(tmp_path):
    hostile = [
        "'; DROP TABLE runs; --",
        "$name",
        "?",
        "{asked_at}",
        "\u202e\u2066evil",
        "<script>",
        "x" * 256,
        "🜚",
        '"',
        "\\",
    ]
    built = Builder(inline={"amount": "1); ATTACH 'x'; --", "deep": {"a": [None, True, "\u0000"]}})
    built.header()
    for each in hostile:
        built.opening(name=each, correlation={"name": each})
        built.call()
        built.run()
    built.commit()
    with session_of(tmp_path, built) as connection:
        assert sorted(row[0] for row in ask(connection, "SELECT name FROM runs").rows) == sorted(hostile)
        assert list(ask(connection, "SELECT count(*) FROM runs WHERE name = $n", {"n": hostile[0]}).rows) == [(1,)]
        (value,) = next(ask(connection, "SELECT DISTINCT arguments ->> 'amount' FROM calls").rows)
        assert value == "1); ATTACH 'x'; --"
        assert list(
            ask(connection, "SELECT count(*) FROM receipts WHERE receipt <> 'sha256:' || sha256(payload)").rows
        ) == [(0,)]


def test_a_hostile_origin_is_data_too(tmp_path):
    built = Builder(origin="ledger.example/a';DROP(TABLE)*runs")
    built.header()
    built.commit()
    with session_of(tmp_path, built) as connection:
        assert list(ask(connection, "SELECT ledger FROM receipts").rows) == [(built.origin,)]


def test_a_query_that_takes_too_long_is_ended(connection):
    with pytest.raises(QueryTimeError), within(connection, 0.2):
        list(ask(connection, "SELECT count(*) FROM range(100000000) a, range(100000000) b").rows)
    assert list(ask(connection, "SELECT 1").rows) == [(1,)]


def test_parquet_goes_to_the_one_file_that_was_named(tmp_path):
    built = Builder()
    built.header()
    built.commit()
    output = tmp_path / "o'ut.parquet"
    with session_of(tmp_path, built, writable=(part_of(output),)) as connection:
        nothing = Beside({})
        with pytest.raises(QueryError):
            write_parquet(connection, "SELECT 1", {}, tmp_path / "other.parquet", members={}, beside=nothing)
        for text in ("SELECT 1) TO 'evil.csv' (FORMAT csv); --", "COPY (SELECT 1) TO 'x'", "SELECT 1) TO 'evil' --"):
            with pytest.raises(QueryError):
                write_parquet(connection, text, {}, output, members={}, beside=nothing)
        count = write_parquet(
            connection, "SELECT kind FROM receipts -- all", {}, output, members={"head": "it's"}, beside=nothing
        )
    assert count == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.duckdb", "o'ut.parquet"]
    assert duckdb.execute("SELECT kind FROM read_parquet(?)", [str(output)]).fetchall() == [("header",)]
    found = duckdb.execute("SELECT key, value FROM parquet_kv_metadata(?)", [str(output)]).fetchall()
    assert (b"head", b"it's") in found


def test_one_ledger_is_named_once(tmp_path):
    built = Builder()
    built.header()
    built.commit()
    with pytest.raises(LedgerError, match="twice"), session_of(tmp_path, built, built):
        pass
