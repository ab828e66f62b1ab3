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
        ("verify", "--equivocation"), ("run", "--result"), ("keys", "new"),
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


@pytest.mark.parametrize(
    "words",
    [("report", "latest"), ("prove", "latest"), ("export", "otlp"), ("artifact", "latest/result")],
)
def test_a_dash_is_standard_output(owner, words):
    written = owner(*words, "-o", "-")
    assert (written.exit, bool(written.out)) == (0, True), written.err
    assert not (owner.home / "-").exists()


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_folder_is_no_file(owner, path):
    done = owner("prove", "latest", "-o", path)
    assert (done.exit, "is a folder, expected a file" in done.err) == (2, True), done.err


def test_a_loop_of_links_is_said(owner):
    (owner.home / "loop").symlink_to("loop")
    done = owner("report", "latest", "-o", "loop")
    assert (done.exit, "loop" in done.err, "fault of the program" in done.err) == (2, True, False), done.err


def test_the_key_after_the_next_is_not_laid_into_a_ledger(owner):
    done = owner("keys", "rotate", "--after", ".ledger/after.pem")
    assert (done.exit, (owner.home / ".ledger/after.pem").exists()) == (2, False)


def test_a_command_is_recorded_in_one_ledger(owner):
    assert owner("init", "other").exit == 0
    done = owner("-L", ".ledger", "-L", "other", "run", "--", "true")
    assert (done.exit, "got 2 ledgers, expected one" in done.err, "fault of the program" in done.err) == (
        125,
        True,
        False,
    )
