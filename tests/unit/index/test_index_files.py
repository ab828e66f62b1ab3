"""An index of two files answers as one does, and a newer file is read with the one that it follows and with no other."""

from __future__ import annotations

import duckdb
import pytest

from ledger.errors import StorageError
from ledger.index.build import Build
from ledger.index.files import mark_of, newer_of, way_on
from ledger.index.schema import PUBLIC
from ledger.index.session import Source, half_of_memory, open_session, open_state
from tests.reference.build import Builder
from tests.reference.indexed import ASKED_AT, add, commits_of, state_of


def story():
    """Return a ledger of four commits, and the journal's bytes of each with the index of its first entry."""
    built = Builder()
    built.header()
    built.opening(limits=[{"meter": "usd_micro", "limit": 50}])
    built.commit()
    intent = built.intent(reserved=[{"meter": "usd_micro", "basis": "quoted", "reserved": 10}])
    built.commit()
    built.outcome(intent, charges=[{"meter": "usd_micro", "basis": "measured", "settled": 12}])
    built.commit()
    built.run()
    built.commit()
    return built, commits_of(built)


def answers(path, built):
    """Return all rows of all tables."""
    with open_session([Source(path, built.origin, path.parent)], asked_at=ASKED_AT, threads=1) as connection:
        return {view.name: connection.execute(f"SELECT * FROM {view.name} ORDER BY ALL").fetchall() for view in PUBLIC}


@pytest.fixture
def whole(tmp_path):
    built, pieces = story()
    path = tmp_path / "whole" / "index.duckdb"
    assert add(path, built, pieces, "anew") == len(built.rows)
    return answers(path, built)


def test_what_came_since_answers_as_if_it_had_been_there_at_once(tmp_path, whole):
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    add(path, built, pieces[:1], "anew")
    before = mark_of(path)
    assert add(path, built, pieces[1:2], "newer") == 3
    assert add(path, built, pieces[2:], "newer") == len(built.rows)
    assert mark_of(path) == before
    assert answers(path, built) == whole
    with open_state(Source(path, built.origin, tmp_path)) as connection:
        assert connection.execute("SELECT end_index FROM index_state").fetchall() == [(len(built.rows),)]


@pytest.mark.parametrize(("limit", "half"), [("64 MiB", 40 << 20), ("8 GiB", 5 << 30), ("1.5 TiB", 15 << 36)])
def test_half_of_what_the_processes_are_given_is_five_eighths_of_what_the_database_takes_by_itself(limit, half):
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{limit}'")
        assert half_of_memory(connection) == half


@pytest.mark.parametrize(("memory", "threads"), [(100 << 20, 1), (500 << 20, 2), (8 << 30, 4)])
def test_no_more_threads_are_begun_than_memory_is_there_for(tmp_path, whole, monkeypatch, memory, threads):
    monkeypatch.setattr("ledger.index.build.half_of_memory", lambda connection: memory)
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    with Build(path, way="anew", threads=4) as build:
        assert build._open.execute("SELECT current_setting('threads')").fetchall() == [(threads,)]
        for start, data in pieces:
            build.load([data], start=start, leave_out=frozenset())
        build.put_state(state_of(built.origin, len(built.rows)), [])
        build.finish()
    assert answers(path, built) == whole


def test_what_acts_took_is_worked_out_in_stretches_where_memory_is_small(tmp_path, whole, monkeypatch):
    monkeypatch.setattr("ledger.index.build._ENTRY_BYTES", 1 << 40)
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    add(path, built, pieces, "anew")
    assert answers(path, built) == whole


@pytest.mark.parametrize("way", ["folded", "anew"])
def test_a_newer_file_is_gone_once_it_is_in_the_first(tmp_path, whole, way):
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    add(path, built, pieces[:2], "anew")
    add(path, built, pieces[2:3], "newer")
    assert add(path, built, pieces[3:] if way == "folded" else pieces, way) == len(built.rows)
    assert [each.name for each in tmp_path.glob("*.duckdb")] == ["index.duckdb"]
    assert answers(path, built) == whole


def test_a_newer_file_that_follows_another_is_refused(tmp_path):
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    add(path, built, pieces[:1], "anew")
    add(path, built, pieces[1:], "newer")
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(StorageError, match="does not follow"):
        answers(path, built)


def test_a_build_beside_that_is_given_up_leaves_both_files_as_they_were(tmp_path):
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    add(path, built, pieces[:1], "anew")
    add(path, built, pieces[1:2], "newer")
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    for way in ("newer", "folded"):
        with Build(path, way=way) as build:
            build.load([pieces[2][1]], start=pieces[2][0], leave_out=frozenset())
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_what_a_build_that_was_killed_left_is_removed_by_the_next_whichever_file_it_was_of(tmp_path):
    built, pieces = story()
    path = tmp_path / "index.duckdb"
    add(path, built, pieces[:1], "anew")
    (tmp_path / ".index.newer.duckdb.0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / ".index.duckdb.0123456789abcdef.tmp.wal").write_bytes(b"its log")
    (tmp_path / ".other.duckdb.0123456789abcdef.tmp").write_bytes(b"another's")
    add(path, built, pieces[1:], "folded")
    assert {each.name for each in tmp_path.iterdir()} == {"index.duckdb", ".other.duckdb.0123456789abcdef.tmp"}


def test_what_is_small_is_folded_and_what_is_large_is_followed(tmp_path):
    path = tmp_path / "index.duckdb"
    path.write_bytes(b"")
    assert way_on(path, 1 << 20) == "folded"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    assert way_on(path, 1 << 20) == "newer"
    with newer_of(path).open("wb") as file:
        file.truncate(100 << 20)
    assert way_on(path, 28 << 20) == "newer"
    assert way_on(path, (28 << 20) + 1) == "folded"
