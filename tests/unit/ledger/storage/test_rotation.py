"""Rotation and revocation by the owner: the receipt, the two log keys on its head, and key files that follow the journal."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from ledger.checkpoint import open_head
from ledger.envelope import seal
from ledger.errors import AdmissionError, KeyFileError, LedgerError
from ledger.keys import PrivateKey, next_digest
from ledger.members import Issuer, NextKeys
from ledger.note import parse_note
from ledger.receipt import Key, parse_receipt, print_receipt
from ledger.storage.clock import nonce, now
from ledger.storage.keyfile import create_key, read_key
from ledger.storage.ledger import PRODUCER
from ledger.storage.rotation import rotate
from tests.reference.check import check_folder
from tests.reference.ledgers import (
    bytes_of,
    closing,
    ended,
    fork,
    grant,
    new_ledger,
    open_ledger,
    opening,
    quick_folder,
    verdict,
)

ROLES = ("issuer", "log")


@pytest.fixture
def tmp_path(tmp_path):
    with quick_folder(tmp_path) as folder:
        yield folder


def keys_of(ledger):
    """Return the key ids in a ledger's key folder by the file's path."""
    folder = ledger.places.key_folder(ledger.origin)
    return {str(path.relative_to(folder)): read_key(path).key for path in folder.rglob("*.pem")}


def refused(error, code, call):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("role", ROLES)
def test_a_rotation_puts_the_committed_key_in_force_and_commits_a_new_one(tmp_path, role):
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    before = keys_of(ledger)
    done = rotate(ledger, role)
    after = keys_of(ledger)
    assert (done.key, done.retired) == (before[f"next/{role}.pem"], before[f"{role}.pem"])
    assert after[f"{role}.pem"] == done.key
    assert after[f"retired-{role}-0.pem"] == done.retired
    receipt = parse_receipt(ledger.get(done.receipt).envelope.payload)
    assert receipt.next == NextKeys(**{role: next_digest(after[f"next/{role}.pem"])})
    assert after[f"next/{role}.pem"] not in before.values()
    other = "log" if role == "issuer" else "issuer"
    assert {name: key for name, key in after.items() if other in name} == {
        name: key for name, key in before.items() if other in name
    }
    ledger.append(grant(ledger))
    assert verdict(ledger).exit == 0
    check_folder(ledger.folder)


def test_the_head_of_a_log_rotation_bears_both_keys_and_later_ones_the_new_key_alone(tmp_path):
    ledger = new_ledger(tmp_path)
    old = ledger.header.log_key
    done = rotate(ledger, "log")
    both = ledger.checkpoint()
    assert len(parse_note(both).signatures) == 2
    for key in (old, done.key):
        assert open_head(both, origin=ledger.origin, log_key=key).size == 2
    ledger.append(grant(ledger))
    later = ledger.checkpoint()
    assert open_head(later, origin=ledger.origin, log_key=done.key).size == 3
    refused(LedgerError, "note.unsigned", lambda: open_head(later, origin=ledger.origin, log_key=old))


def test_keys_rotate_again_and_again_and_a_ledger_verifies_from_the_first_ones(tmp_path):
    ledger = new_ledger(tmp_path)
    for number in range(6):
        rotate(ledger, ROLES[number % 2])
        ledger.append(grant(ledger))
    found = verdict(ledger)
    assert (found.exit, found.head.size) == (0, 13)
    assert len([name for name in keys_of(ledger) if name.startswith("retired")]) == 6


def test_a_process_that_is_open_follows_a_rotation_of_another(tmp_path):
    ledger, other = new_ledger(tmp_path), open_ledger(tmp_path)
    other.append(grant(other))
    for role in ROLES:
        rotate(ledger, role)
        # The very first receipt afterwards is under the keys in force.
        other.append(grant(other))
    assert verdict(ledger).exit == 0


def test_a_receipt_made_before_a_rotation_is_refused_after_it_and_makes_good_when_made_again(tmp_path):
    ledger = new_ledger(tmp_path)
    stale = grant(ledger)
    rotate(ledger, "issuer")
    before = bytes_of(ledger.folder)
    refused(AdmissionError, "key.retired", lambda: ledger.append(stale))
    assert bytes_of(ledger.folder) == before
    ledger.append(grant(ledger))


def test_an_issuer_key_stays_while_runs_are_open_under_it_and_a_log_key_does_not(tmp_path):
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    before = keys_of(ledger)
    error = refused(AdmissionError, "key.runs_open", lambda: rotate(ledger, "issuer"))
    assert run[7:19] in str(error)
    assert keys_of(ledger) == before
    rotate(ledger, "log")
    ledger.append(closing(ledger, run))
    rotate(ledger, "issuer")
    assert verdict(ledger).exit == 0


def test_a_revocation_names_its_index_and_one_that_is_ahead_is_refused(tmp_path):
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    ledger.append(grant(ledger))
    before = keys_of(ledger)
    refused(AdmissionError, "key.from_index", lambda: rotate(ledger, "issuer", revoke=True, from_index=4))
    assert keys_of(ledger) == before
    rotate(ledger, "issuer", revoke=True, from_index=3)
    assert verdict(ledger).exit == 0
    rotate(ledger, "log", revoke=True)
    rotate(ledger, "issuer", revoke=True, from_index=4)
    found = verdict(ledger)
    assert (found.exit, [check.code for check in found.findings if check.exit]) == (0, [])


def test_a_revocation_from_the_index_of_a_receipt_is_not_trusted_and_one_index_later_is(tmp_path):
    for number, exit_ in ((1, 4), (2, 0)):
        ledger = new_ledger(tmp_path / str(number))
        ledger.append(grant(ledger))
        rotate(ledger, "issuer", revoke=True, from_index=number)
        assert verdict(ledger).exit == exit_


def test_next_keys_kept_elsewhere_are_named_and_the_key_after_goes_there_too(tmp_path):
    ledger = new_ledger(tmp_path)
    folder = ledger.places.key_folder(ledger.origin)
    apart = tmp_path / "apart"
    shutil.move(folder / "next", apart)
    error = refused(KeyFileError, "keyfile.absent", lambda: rotate(ledger, "issuer"))
    assert "--next FILE" in error.hint
    done = rotate(ledger, "issuer", next_file=apart / "issuer.pem", after_file=apart / "after.pem")
    assert (done.next_file, done.key) == (apart / "after.pem", read_key(apart / "issuer.pem").key)
    assert not (folder / "next" / "issuer.pem").exists()
    done = rotate(ledger, "issuer", next_file=apart / "after.pem", delete_retired=True)
    assert done.retired_file is None
    assert sorted(keys_of(ledger)) == ["issuer.pem", "log.pem", "next/issuer.pem", "retired-issuer-0.pem"]
    assert verdict(ledger).exit == 0


def test_keys_under_a_passphrase_rotate_under_it(tmp_path):
    ledger = new_ledger(tmp_path, passphrase="secret")
    done = rotate(ledger, "log")
    ledger.append(grant(ledger))
    folder = ledger.places.key_folder(ledger.origin)
    assert read_key(folder / "log.pem", passphrase="secret").key == done.key
    assert b"ENCRYPTED" in (folder / "next" / "log.pem").read_bytes()
    assert verdict(ledger).exit == 0


@pytest.mark.parametrize("role", ROLES)
def test_a_key_that_was_not_committed_is_refused_and_nothing_moves(tmp_path, role):
    ledger = new_ledger(tmp_path)
    mine = tmp_path / "mine.pem"
    create_key(mine)
    before, files = bytes_of(ledger.folder), keys_of(ledger)
    refused(KeyFileError, "keyfile.not_committed", lambda: rotate(ledger, role, next_file=mine))
    other = ledger.places.key_folder(ledger.origin) / "next" / ("log.pem" if role == "issuer" else "issuer.pem")
    refused(KeyFileError, "keyfile.not_committed", lambda: rotate(ledger, role, next_file=other))
    assert (bytes_of(ledger.folder), keys_of(ledger)) == (before, files)


def key_receipt(ledger, key, retired, **members):
    value = {"action": "rotate", "role": "issuer", "next": NextKeys(), **members}
    return Key(
        ledger=ledger.origin,
        issuer=Issuer(name=ledger.header.issuer.name, key=key.key),
        issued_at=now(),
        nonce=nonce(),
        producer=PRODUCER,
        key=key.key,
        retired=retired,
        **value,
    )


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("key.not_in_force", {"retired": "ed25519:" + "11" * 32}),
        ("key.not_committed", {"own": True}),
        ("key.not_sealed_by_next", {"name": "somebody else"}),
        ("key.from_index", {"from_index": 0}),
    ],
)
def test_a_key_receipt_that_does_not_follow_is_refused_whoever_made_it(tmp_path, code, change):
    ledger = new_ledger(tmp_path)
    folder = ledger.places.key_folder(ledger.origin)
    key = PrivateKey.from_seed(os.urandom(32)) if change.pop("own", False) else read_key(folder / "next/issuer.pem")
    name = change.pop("name", None)
    retired = change.pop("retired", ledger.header.issuer.key)
    receipt = key_receipt(ledger, key, retired, **change)
    if name is not None:
        receipt = receipt.model_copy(update={"issuer": Issuer(name=name, key=key.key)})
    before = bytes_of(ledger.folder)
    refused(AdmissionError, code, lambda: ledger.append(seal(print_receipt(receipt), key)))
    assert bytes_of(ledger.folder) == before


@pytest.mark.parametrize(("which", "code"), [("issuer", "key.retired"), ("log", "key.returns")])
def test_a_key_that_was_or_is_in_force_never_comes_in_again_in_either_role(tmp_path, which, code):
    ledger = new_ledger(tmp_path)
    folder = ledger.places.key_folder(ledger.origin)
    first, next_, used = (read_key(folder / name) for name in ("issuer.pem", "next/issuer.pem", f"{which}.pem"))
    # It is committed as the next one, which nobody can see, and refused when it comes.
    bad = key_receipt(ledger, next_, first.key, next=NextKeys(issuer=next_digest(used.key)))
    ledger.append(seal(print_receipt(bad), next_))
    shutil.copy(folder / "next/issuer.pem", folder / "issuer.pem")
    reopened = open_ledger(tmp_path)
    back = key_receipt(reopened, used, next_.key)
    refused(AdmissionError, code, lambda: reopened.append(seal(print_receipt(back), used)))


def test_a_role_without_a_commitment_never_rotates_again(tmp_path):
    ledger = new_ledger(tmp_path)
    folder = ledger.places.key_folder(ledger.origin)
    next_ = read_key(folder / "next/issuer.pem")
    last = key_receipt(ledger, next_, ledger.header.issuer.key)
    ledger.append(seal(print_receipt(last), next_))
    shutil.move(folder / "next/issuer.pem", folder / "issuer.pem")
    refused(KeyFileError, "keyfile.not_committed", lambda: rotate(open_ledger(tmp_path), "issuer"))


def test_a_rotation_that_another_key_folder_began_is_not_followed(tmp_path):
    ledger = new_ledger(tmp_path)
    folder = ledger.places.key_folder(ledger.origin)
    shutil.copytree(folder, tmp_path / "owner")
    rotate(ledger, "issuer")
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "owner", folder)
    reopened = open_ledger(tmp_path)
    error = refused(KeyFileError, "keyfile.not_in_force", lambda: reopened.append(grant(reopened)))
    assert "somebody else holds the next keys" in error.hint


def crash_at(number):
    """End this process before its file operation of a number, counted from here."""
    left = number

    def hook(event, arguments):
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in {"os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate"}:
            left -= 1
            if left < 0:
                os._exit(137)

    sys.addaudithook(hook)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_rotation_that_ends_anywhere_is_finished_by_whoever_comes_next(tmp_path, role, elsewhere):
    ended_whole = False
    for number in range(200):
        place = tmp_path / str(number)
        ledger = new_ledger(place)
        folder = ledger.places.key_folder(ledger.origin)
        first = keys_of(ledger)
        options = {}
        if elsewhere:
            shutil.move(folder / "next", place / "apart")
            options = {"next_file": place / "apart" / f"{role}.pem", "after_file": place / "apart" / "after.pem"}
        ledger.close()

        def body(place=place, number=number, options=options):
            inner = open_ledger(place)
            crash_at(number)
            rotate(inner, role, **options)

        code = ended(fork(body))
        assert code in {0, 137}
        after = open_ledger(place)
        after.append(grant(after))
        rotated = first[f"next/{role}.pem"] == keys_of(after)[f"{role}.pem"]
        assert verdict(after).exit == 0
        check_folder(after.folder)
        again = _next_attempt(place, role, elsewhere=elsewhere, rotated=rotated)
        rotate(after, role, **again)
        after.append(grant(after))
        assert verdict(after).exit == 0
        # Nothing in force is lost, and no half-made file is left in its place.
        assert not [path for path in folder.rglob("*.tmp") if path.name.startswith(".") and path.suffix == ".pem"]
        if code == 0:
            ended_whole = True
            break
    assert ended_whole
    assert number > 10


def _next_attempt(place, role, *, elsewhere, rotated):
    if not elsewhere:
        return {}
    apart = place / "apart"
    return {"next_file": apart / "after.pem" if rotated else apart / f"{role}.pem"}
