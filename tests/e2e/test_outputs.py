"""What commands write goes anywhere but into the folder of a ledger."""

from __future__ import annotations

import pytest

from tests.reference.people import Person
from tests.reference.shell import files_of


@pytest.fixture
def owner(tmp_path):
    owner = Person(tmp_path / "owner")
    assert owner("init").exit == 0
    owner.record(owner.home / ".ledger")
    return owner


@pytest.mark.parametrize(
    "words",
    [
        ("sql", "SELECT 1", "--format", "parquet", "-o"), ("sql", "SELECT receipt FROM runs", "--prove"), ("report", "-o"),
        ("prove", "latest", "-o"), ("artifact", "latest/run-salt", "-o"), ("export", "otlp", "-o"), ("export", "parquet", "-o"),
        ("verify", "--equivocation"), ("run", "--result"),
    ],
)  # fmt: skip
def test_nothing_is_written_into_a_ledger(owner, tmp_path, words):
    more = ("--", "true") if words[0] == "run" else ()
    (tmp_path / "link").symlink_to(owner.home / ".ledger")
    owner("index")
    before = files_of(owner.home / ".ledger")
    for path in (
        ".ledger/journal/0000000000000000.jsonl",
        ".ledger/index.duckdb",
        ".ledger/new/file",
        tmp_path / "link/new",
    ):
        done = owner(*words, path, *more)
        assert (done.exit, "whose files are its own" in done.err) == (125 if words[0] == "run" else 2, True), (
            path,
            done,
        )
    assert files_of(owner.home / ".ledger") == before
    assert owner(*words, tmp_path / "elsewhere", *more).exit == 0
