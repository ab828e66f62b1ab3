"""Batches are loaded by several threads and stand in the order of the chain all the same."""

from __future__ import annotations

import duckdb
import pytest

from ledger.errors import StorageError
from ledger.index.build import Build
from ledger.index.crew import Crew
from ledger.index.load import Loader
from tests.reference.build import Builder
from tests.reference.indexed import commits_of


def commits(count):
    """Return a ledger, and the journal's bytes of each of its commits with the index of its first entry."""
    builder = Builder()
    builder.header()
    builder.commit()
    for _ in range(count - 1):
        builder.opening()
        builder.outcome(builder.intent())
        builder.commit()
    return builder, commits_of(builder)


@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_rows_stand_in_the_order_of_the_chain_whoever_is_ready_first(memory):
    builder, pieces = commits(12)
    connection = duckdb.connect(":memory:")
    Loader(connection).create()
    crew = Crew(connection.cursor, memory=memory, threads=4)
    for start, data in pieces:
        crew.load([data], start=start, leave_out=frozenset())
    crew.wait()
    crew.stop()
    found = connection.execute('SELECT "index", receipt FROM record').fetchall()
    assert found == [(row.index, row.id) for row in builder.rows]
    assert connection.execute("SELECT size FROM heads").fetchall()[-1] == (len(builder.rows),)


def test_what_a_batch_fails_with_comes_out_and_nothing_after_it_is_committed():
    _, pieces = commits(6)
    connection = duckdb.connect(":memory:")
    Loader(connection).create()
    crew = Crew(connection.cursor, memory=1 << 30, threads=2)
    crew.load([pieces[0][1]], start=0, leave_out=frozenset())
    crew.load([b'{"entry": nothing}\n'], start=1, leave_out=frozenset())
    with pytest.raises(duckdb.Error):  # noqa: PT012  it comes out of either
        crew.load([pieces[2][1]], start=4, leave_out=frozenset())
        crew.wait()
    crew.stop()
    assert connection.execute("SELECT count(*) FROM record").fetchall() == [(1,)]


def test_a_build_that_fails_leaves_nothing_and_the_old_index_as_it_was(tmp_path):
    index = tmp_path / "index.duckdb"
    index.write_bytes(b"the old one")
    with pytest.raises(StorageError), Build(index, way="anew") as build:  # noqa: PT012  it comes out of either
        build.load([b'{"entry": nothing}\n'], start=0, leave_out=frozenset())
        build.count()
    assert [path.name for path in tmp_path.iterdir()] == ["index.duckdb"]
    assert index.read_bytes() == b"the old one"


def test_stopping_breaks_off_what_is_under_way():
    _, pieces = commits(12)
    connection = duckdb.connect(":memory:")
    Loader(connection).create()
    crew = Crew(connection.cursor, memory=1 << 30, threads=2)
    for start, data in pieces:
        crew.load([data], start=start, leave_out=frozenset())
    crew.stop()
    (count,) = connection.execute("SELECT count(*) FROM record").fetchone()
    assert count in {start for start, _ in pieces} | {1 + 3 * 11}
