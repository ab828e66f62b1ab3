"""`ledger keys rotate` and `revoke`, as a person uses them."""

from __future__ import annotations

import shutil

import pytest

from tests.reference.people import Person


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path)
    return path


def keys_of(owner, folder):
    return owner("-L", folder, "keys", "show", "--json").json


@pytest.mark.parametrize(("role", "option"), [("issuer", "--issuer"), ("log", "--log"), ("issuer", "")])
def test_a_rotation_prints_what_is_in_force_and_the_ledger_verifies(folder, owner, role, option):
    before = keys_of(owner, folder)
    done = owner("-L", folder, "keys", "rotate", "--json", *([option] if option else []))
    assert done.exit == 0, done.err
    assert (done.json["key"], done.json["retired"]) == (before[f"next {role}"], before[role])
    after = keys_of(owner, folder)
    assert after[role] == before[f"next {role}"]
    assert after[f"next {role}"] not in before.values()
    owner.record(folder)
    assert owner.verify(folder, "--every-head").exit == 0
    # An auditor who pinned the first keys long ago goes on.
    log = owner("-L", folder, "log", "--entries", "--json").json
    assert [row["kind"] for row in log].count("key") == 1


def test_the_text_says_where_the_next_key_is_and_to_keep_it_apart(folder, owner):
    done = owner("-L", folder, "keys", "rotate")
    assert done.exit == 0
    assert [line.split()[0] for line in done.out.splitlines()] == ["entry", "issuer", "retired", "next"]
    assert "keep the next key apart" in done.err


def test_an_auditor_who_pinned_the_first_keys_follows_every_rotation_and_remembers(folder, owner, tmp_path):
    auditor = Person(tmp_path / "auditor").trusts(folder)
    for option in ("--log", "--issuer", "--log"):
        assert auditor.verify(folder).exit == 0
        assert owner("-L", folder, "keys", "rotate", option).exit == 0
        run = owner.record(folder)
        assert auditor("-L", folder, "verify", run).exit == 0
    assert owner("-L", folder, "prove", run, "-o", tmp_path / "bundle.json").exit == 0
    assert auditor.verify("--require", "memory", tmp_path / "bundle.json").exit == 0
    assert Person(tmp_path / "other").trusts(folder).verify(tmp_path / "bundle.json").exit == 0


def test_a_revocation_from_an_index_is_not_trusted_from_there_on_and_good_before(folder, owner):
    first = owner.record(folder)
    size = owner("-L", folder, "head", "--json").json["size"]
    lie = owner.record(folder)
    done = owner("-L", folder, "keys", "revoke", "--from", size, "--json")
    assert done.exit == 0, done.err
    truth = owner.record(folder)
    assert [owner("-L", folder, "verify", run).exit for run in (first, lie, truth)] == [0, 4, 0]
    verdict = owner.verify(folder)
    assert (verdict.exit, "key.revoked" in verdict.codes) == (4, True)


def test_a_revocation_of_something_that_is_yet_to_come_is_refused(folder, owner):
    done = owner("-L", folder, "keys", "revoke", "--from", 1_000)
    assert (done.exit, done.out) == (2, "")
    assert "from_index" in done.err
    assert owner("-L", folder, "keys", "rotate").exit == 0


def test_a_run_that_is_open_keeps_the_issuer_key_and_the_hint_ends_it(folder, owner):
    with owner.open(folder) as ledger:
        run = ledger.run("long")
    done = owner("-L", folder, "keys", "rotate")
    assert (done.exit, "ledger close RUN" in done.err) == (2, True)
    assert owner("-L", folder, "keys", "rotate", "--log").exit == 0
    assert owner("-L", folder, "close", run.id).exit == 0
    assert owner("-L", folder, "keys", "rotate").exit == 0
    assert owner.verify(folder).exit == 0


def test_next_keys_on_another_medium_are_asked_for_and_named(folder, owner, tmp_path):
    keys = owner.places.key_folder(keys_of(owner, folder)["origin"])
    shutil.move(keys / "next", tmp_path / "stick")
    assert "not on this machine" in owner("-L", folder, "keys", "show").err
    done = owner("-L", folder, "keys", "rotate")
    assert (done.exit, "--next FILE" in done.err) == (2, True)
    stick = tmp_path / "stick"
    done = owner(
        "-L",
        folder,
        "keys",
        "rotate",
        "--next",
        stick / "issuer.pem",
        "--after",
        stick / "issuer-2.pem",
        "--delete-retired",
    )
    assert done.exit == 0, done.err
    assert "is in use now" in done.err
    assert sorted(path.name for path in keys.rglob("*.pem")) == ["issuer.pem", "log.pem"]
    assert owner("-L", folder, "keys", "rotate", "--next", stick / "issuer-2.pem").exit == 0
    owner.record(folder)
    assert owner.verify(folder).exit == 0


def test_somebody_without_keys_rotates_nothing(folder, owner, tmp_path):
    stranger = Person(tmp_path / "stranger")
    done = stranger("-L", folder, "keys", "rotate")
    assert (done.exit, "this user has none" in done.err) == (2, True)
