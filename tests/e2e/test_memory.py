"""What a verifier remembers, what is given to it, and what it keeps of heads that do not agree."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from ledger.checkpoint import Head, head_of, sign_head
from ledger.keys import PrivateKey
from tests.reference.ledgers import grant
from tests.reference.people import Person, copy, cut


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def auditor(tmp_path):
    return Person(tmp_path / "auditor")


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path)
    return path


def head_file(owner, folder, path):
    path.write_text(owner("-L", folder, "head").out)
    return path


def origin_of(owner, folder):
    return owner("-L", folder, "head", "--json").json["origin"]


def test_memory_grows_with_the_ledger_and_never_shrinks(folder, owner, auditor, tmp_path):
    origin = origin_of(owner, folder)
    backup = copy(folder, tmp_path / "backup")
    sizes = []
    for _ in range(3):
        assert auditor.trusts(folder).verify(folder).exit == 0
        sizes.append(head_of(auditor.memory(origin)).size)
        owner.record(folder)
    assert sizes == sorted(set(sizes))
    known = auditor.memory(origin)
    assert auditor.verify(backup).exit == 1
    assert auditor.memory(origin) == known


def test_nothing_is_remembered_of_a_stranger_s_ledger(folder, owner, auditor):
    assert auditor.verify(folder).exit == 3
    assert auditor.memory(origin_of(owner, folder)) is None


def test_required_memory_is_not_established_at_first_sight_and_is_afterwards(folder, auditor):
    auditor.trusts(folder)
    first = auditor.verify("--require", "memory", folder)
    assert (first.exit, "head.unseen" in first.codes) == (3, True)
    assert auditor.verify("--require", "memory", folder).exit == 0


def test_a_receipt_and_a_bundle_are_remembered_and_compared_too(folder, owner, auditor, tmp_path):
    auditor.trusts(folder)
    assert owner("-L", folder, "prove", "latest", "-o", tmp_path / "bundle.json").exit == 0
    assert auditor("verify", tmp_path / "bundle.json").exit == 0
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    assert auditor("-L", folder, "verify", "latest").exit == 0
    # The bundle is older now, and fine; a ledger of its size is shorter than what was seen.
    assert auditor("verify", tmp_path / "bundle.json").exit == 0
    assert auditor.verify(backup).codes >= {"head.shorter"}


def test_a_head_from_elsewhere_must_be_contained(folder, owner, auditor, tmp_path):
    auditor.trusts(folder)
    early = head_file(owner, folder, tmp_path / "early")
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    late = head_file(owner, folder, tmp_path / "late")
    done = auditor.verify(folder, "--head", early, "--head", late)
    assert (done.exit, done.check("given heads")["status"]) == (0, "ok")
    assert auditor("-L", folder, "verify", "latest", "--head", early).exit == 0
    # Who remembers nothing learns from the head that the copy was cut.
    other = Person(tmp_path / "other").trusts(folder)
    done = other.verify(backup, "--head", late)
    assert (done.exit, done.check("given heads")["code"]) == (1, "head.shorter")
    assert other.memory(origin_of(owner, folder)) is None


def test_a_head_of_another_key_or_ledger_is_unreconciled_and_something_else_is_no_head(
    folder, owner, auditor, tmp_path
):
    auditor.trusts(folder)
    assert owner("init", tmp_path / "another").exit == 0
    other = head_file(owner, tmp_path / "another", tmp_path / "other")
    false = tmp_path / "false"
    false.write_bytes(sign_head(Head(origin_of(owner, folder), 2, bytes(32)), PrivateKey.from_seed(os.urandom(32))))
    for given in (other, false):
        done = auditor.verify(folder, "--head", given)
        assert (done.exit, done.check("given heads")["code"]) == (3, "head.unreconciled")
    (tmp_path / "text").write_text("no head")
    assert auditor.verify(folder, "--head", tmp_path / "text").exit == 2
    assert auditor.verify(folder, "--head", tmp_path / "absent").exit == 2


def test_given_heads_do_not_count_for_a_stranger_s_ledger(folder, owner, auditor, tmp_path):
    done = auditor.verify(folder, "--head", head_file(owner, folder, tmp_path / "head"))
    assert (done.exit, done.check("given heads")["status"]) == (3, "not_checked")


@pytest.fixture
def second(folder, owner, tmp_path):
    """Another history of the ledger, which the log key signed."""
    backup = copy(folder, tmp_path / "second")
    owner.record(folder)
    thief = Person(tmp_path / "thief").takes_keys(owner)
    for _ in range(2):
        thief.record(backup, "lie")
    return backup


def test_a_fork_is_written_down_and_verifies_elsewhere_with_the_first_key_alone(
    folder, second, owner, auditor, tmp_path
):
    assert auditor.trusts(folder).verify(folder).exit == 0
    done = auditor.verify(second, "--equivocation", tmp_path / "proof.json")
    assert done.exit == 1
    assert str(tmp_path / "proof.json") in done.err
    log_key = owner("-L", folder, "keys", "show", "--json").json["log"]
    other = Person(tmp_path / "other")
    assert other("trust", "add", origin_of(owner, folder), "--role", "origin", "--key", log_key).exit == 0
    found = other.verify(tmp_path / "proof.json")
    assert (found.exit, found.codes) == (1, {"head.forked"})


def test_a_fork_is_written_down_by_a_receipt_and_by_a_bundle_of_equal_size(folder, owner, auditor, tmp_path):
    copy(folder, tmp_path / "second")
    owner.record(folder)
    Person(tmp_path / "thief").takes_keys(owner).record(tmp_path / "second", "lie")
    assert auditor.trusts(folder).verify(folder).exit == 0
    assert auditor("-L", tmp_path / "second", "verify", "latest").exit == 1
    assert owner("-L", tmp_path / "second", "prove", "latest", "-o", tmp_path / "bundle.json").exit == 0
    assert auditor.verify(tmp_path / "bundle.json").codes >= {"head.forked"}
    proofs = list((auditor.places.state / "equivocations").iterdir())
    assert proofs
    assert all(auditor.verify(proof).codes == {"head.forked"} for proof in proofs)


def test_a_fork_that_the_owner_makes_after_a_log_rotation_is_proved_through_the_keyring(
    folder, owner, auditor, tmp_path
):
    assert owner("-L", folder, "keys", "rotate", "--log").exit == 0
    backup = copy(folder, tmp_path / "second")
    owner.record(folder)
    assert auditor.trusts(folder).verify(folder).exit == 0
    thief = Person(tmp_path / "thief").takes_keys(owner)
    for _ in range(2):
        thief.record(backup, "lie")
    assert auditor.verify(backup, "--equivocation", tmp_path / "proof.json").exit == 1
    assert Person(tmp_path / "other").trusts(folder).verify(tmp_path / "proof.json").codes == {"head.forked"}


def test_a_head_that_nothing_joins_is_kept_and_accuses_nobody(folder, owner, auditor):
    origin = origin_of(owner, folder)
    assert auditor.trusts(folder).verify(folder).exit == 0
    memory = auditor.places.memory_file(origin)
    memory.write_bytes(sign_head(Head(origin, 1, bytes(32)), PrivateKey.from_seed(os.urandom(32))))
    done = auditor.verify(folder)
    assert (done.exit, "head.unreconciled" in done.codes) == (3, True)
    (kept,) = (auditor.places.state / "unreconciled").iterdir()
    assert kept.read_text() == owner("-L", folder, "head").out
    assert not (auditor.places.state / "equivocations").exists()


def test_a_state_folder_that_cannot_be_written_is_said_and_changes_nothing(folder, auditor):
    auditor.trusts(folder)
    auditor.places.state.parent.mkdir(parents=True, exist_ok=True)
    auditor.places.state.write_text("a file where the folder would be")
    done = auditor.verify(folder)
    assert done.exit == 0
    assert any("could not be remembered" in note for note in done.json["notes"])


def test_an_empty_memory_is_what_a_loss_of_power_leaves_and_counts_as_none(folder, owner, auditor):
    assert auditor.trusts(folder).verify(folder).exit == 0
    auditor.places.memory_file(origin_of(owner, folder)).write_bytes(b"\0" * 40)
    assert auditor.verify(folder).codes >= {"head.first_seen"}


def test_the_owner_s_register_is_memory_too(folder, owner):
    owner.record(folder)
    cut(folder, lines=2)
    done = owner.verify(folder)
    assert (done.exit, "head.shorter" in done.codes) == (1, True)


def test_an_accepted_first_sight_changes_nothing_and_a_fork_cannot_be_accepted(folder, second, auditor):
    assert auditor.trusts(folder).verify(folder).exit == 0
    assert auditor("verify", second, "--accept", "head.forked").exit == 2


@pytest.mark.parametrize(
    "words",
    [("verify", "latest"), ("verify", "--range", "0:3"), ("verify",), ("report", "latest", "-o", "r.html"), ("log", "--verify"), ("index",)],
)  # fmt: skip
def test_whoever_appends_while_their_ledger_is_judged_is_not_accused(tmp_path, monkeypatch, words):
    owner = Person(tmp_path / "owner")
    assert owner("init", "ledger").exit == 0
    owner.record(owner.home / "ledger")
    for module, name in (
        ("judge", "gather"),
        ("judge", "gather_range"),
        ("whole", "JournalSnapshot"),
        ("rebuilt", "journal_marks"),
    ):
        monkeypatch.setattr(f"cli.{module}.{name}", then_append(owner, getattr(import_module(f"cli.{module}"), name)))
    done = owner("-L", "ledger", *words)
    assert (done.exit, "head." in done.out.replace("head.first_seen", "")) == (0, False), done


def then_append(owner, function):
    """Return a function after which its owner has appended to the ledger."""

    def wrapped(*arguments, **options):
        found = function(*arguments, **options)
        with owner.open(owner.home / "ledger") as ledger:
            ledger.append(grant(ledger))
        return found

    return wrapped
