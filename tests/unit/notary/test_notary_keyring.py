"""Log keys are followed through rotations that the remembered head's ledger made, and through no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.errors import LedgerError
from ledger.storage.keyfile import read_ledger_keys
from ledger.storage.rotation import rotate
from notary.errors import RefusedError
from notary.keyring import follow
from notary.rules import Known, admit, follow_log_key, read_shown
from tests.reference.ledgers import grant, new_ledger
from tests.reference.submissions import head_request


def log_key(ledger):
    return read_ledger_keys(ledger.places.key_folder(ledger.origin)).log.key


def known_of(ledger):
    shown = read_shown(ledger.checkpoint(), foreign=False)
    return Known(ledger.origin, ledger.origin, log_key(ledger), shown.head.size, shown.head.root, shown.data)


@pytest.fixture
def rotated(tmp_path):
    """Return a ledger whose log key was rotated after a head was remembered, and what was known then."""
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    known = known_of(ledger)
    rotate(ledger, "log")
    rotate(ledger, "issuer")
    ledger.append(grant(ledger))
    return ledger, known


def followed(ledger, known, **changes):
    asked = replace(head_request(ledger, keys=True), **changes)
    shown = read_shown(asked.checkpoint, foreign=False)
    return follow_log_key(known, shown, asked.log_key, keyring=asked.keyring, last=asked.last)


def test_a_rotated_log_key_is_followed_from_the_one_that_was_known(rotated):
    ledger, known = rotated
    after = followed(ledger, known)
    assert (known.log_key, after.log_key) == (ledger.header.log_key, log_key(ledger))
    assert known.log_key != after.log_key
    assert replace(after, log_key=known.log_key) == known


def test_without_a_keyring_no_other_key_is_believed(rotated):
    ledger, known = rotated
    with pytest.raises(RefusedError) as raised:
        followed(ledger, known, keyring=(), last=None)
    assert (raised.value.status, raised.value.code) == (403, "origin.log_key")
    assert followed(ledger, known, keyring=(), last=None, log_key=known.log_key) == known


def test_a_keyring_proves_nothing_where_no_head_is_remembered(rotated):
    ledger, known = rotated
    with pytest.raises(RefusedError) as raised:
        followed(ledger, admit(ledger.origin, known.log_key))
    assert (raised.value.status, raised.value.code) == (403, "origin.log_key")


def test_a_key_that_was_replaced_does_not_come_back(rotated):
    ledger, known = rotated
    newer = followed(ledger, known)
    with pytest.raises(RefusedError) as raised:
        followed(ledger, newer, log_key=known.log_key)
    assert (raised.value.status, raised.value.code) == (403, "origin.log_key")


@pytest.mark.parametrize("how", ["cut", "reordered", "of another", "last missing", "proof", "envelope"])
def test_a_keyring_that_hides_or_changes_something_does_not_hold(rotated, tmp_path, how):
    ledger, known = rotated
    asked = head_request(ledger, keys=True)
    keyring, last = asked.keyring, asked.last
    assert len(keyring) == 3
    other = new_ledger(tmp_path / "other")
    match how:
        case "cut":
            keyring = keyring[:-1]
        case "reordered":
            keyring = (keyring[0], keyring[2], keyring[1])
        case "of another":
            keyring = (head_request(other, keys=True).keyring[0], *keyring[1:])
        case "last missing":
            last = replace(last, entry=keyring[1].entry, proof=keyring[1].proof)
        case "proof":
            keyring = (replace(keyring[0], proof=keyring[0].proof[:-1]), *keyring[1:])
        case "envelope":
            keyring = (replace(keyring[0], envelope=keyring[1].envelope), *keyring[1:])
    with pytest.raises(RefusedError) as raised:
        followed(ledger, known, keyring=keyring, last=last)
    assert (raised.value.status, raised.value.code) == (422, "notarize.keyring")


def test_a_keyring_whose_newest_item_is_the_last_entry_holds(tmp_path):
    ledger = new_ledger(tmp_path)
    for _ in range(2):
        asked = head_request(ledger, keys=True)
        head = read_shown(asked.checkpoint, foreign=False).head
        assert follow(asked.keyring, asked.last, head).log_key == log_key(ledger)
        rotate(ledger, "log")
    with pytest.raises(LedgerError):
        follow(asked.keyring, asked.last, ledger.head())


def test_a_header_made_up_around_a_known_key_is_not_followed(rotated, tmp_path):
    """Whoever writes a ledger of the same origin can name the known key and commit his own: the tree must join."""
    ledger, known = rotated
    thief = new_ledger(tmp_path / "thief", origin=ledger.origin)
    rotate(thief, "log")
    with pytest.raises(RefusedError) as raised:
        followed(thief, known)
    assert (raised.value.status, raised.value.code) == (403, "origin.log_key")
