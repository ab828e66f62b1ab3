"""An index whose bytes are not what was written, though nothing that the file system tells of it has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.index.stamp import marks_of, read_stamp, write_stamp
from tests.reference.people import Person

COUNT = ("sql", "--format", "csv", "SELECT count(*) AS n, sum(length(payload)) > 0 AS all FROM receipts")


@pytest.fixture
def owner(tmp_path):
    owner = Person(tmp_path / "owner")
    assert owner("init").exit == 0
    for _ in range(40):
        owner.record(owner.home / ".ledger")
    assert owner("index").exit == 0
    return owner


def rot(owner, at, *, name="index.duckdb"):
    """Flip a bit of an index, and have it believed to be as it was."""
    index = owner.home / ".ledger/index.duckdb"
    path = index.with_name(name)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    stamp = read_stamp(index, owner.places)
    write_stamp(index, owner.places, replace(stamp, index=marks_of(index)))
    return len(data)


@pytest.mark.parametrize("at", [3, 4_100, 20_000])
@pytest.mark.parametrize("words", [COUNT, ("index",), ("export", "parquet", "-o", "out")])
def test_an_index_that_cannot_be_opened_is_made_anew(owner, at, words):
    rot(owner, at)
    done = owner(*words)
    assert done.exit == 0, done.err
    if words == COUNT:
        assert done.out == "n,all\n161,true\n"


def test_no_bit_of_an_index_makes_another_answer(owner):
    size = rot(owner, 0)
    owner("index", "--rebuild")
    right, seen = owner(*COUNT), set()
    for at in range(12_288, size, size // 25):
        rot(owner, at)
        done = owner(*COUNT)
        seen.add(done.exit)
        if done.exit == 0:
            assert done.out == right.out
        else:
            assert (done.exit, done.out) == (2, "")
            assert "ledger index --rebuild" in done.err
            assert "fault of the program" not in done.err
        rot(owner, at)
    assert seen == {0, 2}


def test_an_index_that_cannot_be_gone_on_from_is_made_anew_when_the_ledger_grows(owner):
    rot(owner, 20_000)
    owner.record(owner.home / ".ledger")
    done = owner(*COUNT)
    assert (done.exit, done.out) == (0, "n,all\n165,true\n")


def test_a_folder_in_the_place_of_an_index_is_said(owner):
    (owner.home / ".ledger/index.newer.duckdb").mkdir()
    done = owner(*COUNT)
    assert (done.exit, "index.newer.duckdb" in done.err) == (2, True), done.err
