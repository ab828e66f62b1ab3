"""`ledger restore`: a backup goes on under an origin of its own, and the old one never again."""

from __future__ import annotations

import shutil

import pytest

from tests.reference.people import Person, copy, cut, heads, journal


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def old(tmp_path, owner):
    """A ledger whose backup was put back: the register has seen a run more."""
    path = tmp_path / "old"
    assert owner("init", path).exit == 0
    owner.record(path)
    backup = copy(path, tmp_path / "backup")
    owner.record(path)
    return copy(backup, path)


def test_a_restore_freezes_the_old_folder_and_pins_a_new_ledger_that_continues_it(old, owner, tmp_path):
    head = owner("-L", old, "head", "--json").json
    done = owner("restore", old, tmp_path / "new", "--json")
    assert done.exit == 0, done.err
    assert done.json["continues"] == {name: head[name] for name in ("origin", "size", "root")}
    assert done.json["origin"] != head["origin"]
    owner.record(tmp_path / "new")
    verdict = owner.verify(tmp_path / "new")
    assert verdict.exit == 0
    assert any(head["origin"] in note and str(head["size"]) in note for note in verdict.json["notes"])
    before = journal(old).read_bytes()
    refused = owner("-L", old, "run", "--", "true")
    assert (refused.exit, "frozen" in refused.err, done.json["origin"] in refused.err) == (125, True, True)
    assert journal(old).read_bytes() == before
    assert any("frozen" in note for note in owner.verify(old).json["notes"])
    # The new keys are its own.
    keys = [owner("-L", path, "keys", "show", "--json").json for path in (old, tmp_path / "new")]
    assert not set(keys[0].values()) & set(keys[1].values())


def test_a_ledger_that_is_whole_needs_no_restore(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    done = owner("restore", path, tmp_path / "new")
    assert (done.exit, "append to it" in done.err) == (2, True)
    assert not (path / "frozen").exists()
    assert not (tmp_path / "new").exists()


def test_on_a_machine_that_knows_nothing_of_it_a_whole_copy_is_restored(tmp_path, old, owner):
    other = Person(tmp_path / "other").trusts(old).takes_keys(owner, next_too=True)
    assert other("restore", old, tmp_path / "new").exit == 0


def test_a_ledger_without_its_keys_is_continued_too(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    shutil.rmtree(owner.places.keys)
    assert owner("restore", path, tmp_path / "new").exit == 0


def test_one_ledger_is_continued_once(old, owner, tmp_path):
    assert owner("restore", old, tmp_path / "new").exit == 0
    done = owner("restore", old, tmp_path / "second")
    assert (done.exit, "already" in done.err) == (2, True)
    assert not (tmp_path / "second").exists()


def test_a_restore_that_ended_half_way_goes_on(old, owner, tmp_path):
    taken = owner("restore", old, tmp_path / "new", "--origin", "not an origin")
    assert taken.exit == 2
    # The old folder is frozen already, and nothing continues it yet.
    assert (old / "frozen").exists()
    assert owner("restore", old, tmp_path / "new").exit == 0
    assert owner("verify", tmp_path / "new", "--continues", old).exit == 1  # the owner has seen more of the old one
    stranger = Person(tmp_path / "stranger").trusts(old, tmp_path / "new")
    assert stranger("verify", tmp_path / "new", "--continues", old).exit == 0


def test_a_place_that_is_taken_is_refused_before_anything_is_frozen(old, owner, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new/file").write_text("mine")
    assert owner("restore", old, tmp_path / "new").exit == 2
    assert not (old / "frozen").exists()


def test_a_ledger_that_does_not_hold_is_not_continued(old, owner, tmp_path):
    data = journal(old).read_bytes()
    journal(old).write_bytes(data.replace(b'"deploy"', b'"destroy"', 1))
    done = owner("restore", old, tmp_path / "new")
    assert (done.exit, "does not hold" in done.err) == (1, True)
    assert not (old / "frozen").exists()


def test_a_mark_that_cannot_be_read_still_freezes(old, owner):
    (old / "frozen").write_bytes(b"\xff")
    done = owner("-L", old, "run", "--", "true")
    assert (done.exit, "frozen" in done.err) == (125, True)


@pytest.mark.parametrize("change", ["cut", "other", "itself"])
def test_the_older_ledger_is_checked_against_what_the_header_says(old, owner, tmp_path, change):
    assert owner("restore", old, tmp_path / "new").exit == 0
    stranger = Person(tmp_path / "stranger").trusts(old, tmp_path / "new")
    given = old
    match change:
        case "cut":
            cut(old, lines=len(journal(old).read_bytes().split(b"\n")) - 2 - heads(old)[0])
        case "other":
            given = tmp_path / "another"
            assert owner("init", given).exit == 0
        case _:
            given = tmp_path / "new"
    done = stranger("verify", "--json", tmp_path / "new", "--continues", given)
    checks = {check["name"]: check for check in done.json[0]["checks"]}
    assert checks["continues"]["code"] == "continues.mismatch"
    assert done.exit == 1
