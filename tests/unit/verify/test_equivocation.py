"""Equivocation files: what shows two histories, and everything else, over all small sizes and every byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import Head, sign_head
from ledger.equivocation import Equivocation, parse_equivocation, print_equivocation
from ledger.errors import LedgerError
from ledger.keys import next_digest
from ledger.merkle import leaf_hash
from tests.reference import rfc9162
from tests.reference.build import Builder, Party, test_key
from verify.equivocation import is_equivocation, verify_equivocation
from verify.file import kind_of, verify_file

OTHER = bytes(31) + b"\x01"


def history(size, *, log_rotates=False):
    ledger = Builder()
    ledger.header()
    ledger.commit()
    if log_rotates:
        old = ledger.log
        ledger.key(Party("issuer", test_key("log-2")), old.key, role="log")
        ledger.commit(also=(old,))
    while len(ledger.rows) < size:
        ledger.grant()
        ledger.commit()
    return ledger


def path_of(ledger, old, new):
    """Return the path in constructive form, from the slow reference."""
    leaves = [row.entry for row in ledger.rows[:new]]
    proof = tuple(rfc9162.proof(old, leaves))
    return (rfc9162.mth(leaves[:old]), *proof) if old & (old - 1) == 0 else proof


def forked(ledger, size, *, root=OTHER, key=None):
    """Return the file that shows a second history of a smaller or equal size."""
    new = len(ledger.rows)
    older = sign_head(Head(ledger.origin, size, root), key or test_key("log"))
    path = () if size == new else path_of(ledger, size, new)
    return Equivocation(older, ledger.notes[-1], path, ledger.bundle(ledger.rows[0].id).keyring)


def judge(file, ledger, *, trust="own"):
    data = file if isinstance(file, bytes) else print_equivocation(file)
    return verify_equivocation(data, trust=ledger.trust() if trust == "own" else trust, subject="file")


def codes(verdict):
    """Return what was found; checks that did not run for it are left out."""
    return {check.code for check in verdict.findings} - {"check.unreachable"}


@pytest.mark.parametrize("new", range(1, 14))
def test_two_signed_heads_that_no_history_has_both_of_are_a_fork_at_every_size(new):
    ledger = history(new)
    for old in range(1, new + 1):
        found = judge(forked(ledger, old), ledger)
        assert (found.exit, codes(found)) == (1, {"head.forked"}), old
        # One bit away: the root that the newer history has at that size.
        leaves = [row.entry for row in ledger.rows[:old]]
        found = judge(forked(ledger, old, root=rfc9162.mth(leaves)), ledger)
        assert (found.exit, codes(found)) == (1, {"proof.consistency"}), old


def test_a_path_is_whole_or_shows_nothing():
    ledger = history(11)
    for old in (3, 4, 8, 10):
        whole = forked(ledger, old)
        assert len(whole.path) > 1
        for path in (whole.path[1:], whole.path[:-1], (*whole.path, bytes(32)), (bytes(32), *whole.path)):
            found = judge(Equivocation(whole.older, whole.newer, path, whole.keyring), ledger)
            assert codes(found) == {"proof.consistency"}
        for number, node in enumerate(whole.path):
            flipped = bytes([node[0] ^ 1]) + node[1:]
            path = (*whole.path[:number], flipped, *whole.path[number + 1 :])
            found = judge(Equivocation(whole.older, whole.newer, path, whole.keyring), ledger)
            assert codes(found) == {"proof.consistency"}
        found = judge(Equivocation(whole.older, whole.newer, (), whole.keyring), ledger)
        assert (found.exit, codes(found)) == (3, {"head.unreconciled"})


def test_without_trust_nobody_is_accused_and_with_another_key_pinned_the_file_is_not_trusted():
    ledger = history(5)
    found = judge(forked(ledger, 3), ledger, trust=None)
    assert (found.exit, codes(found)) == (3, {"trust.log_key_unpinned"})
    other = Builder(log=test_key("other-log"))
    other.header()
    found = judge(forked(ledger, 3), ledger, trust=other.trust())
    assert (found.exit, "trust.log_key_mismatch" in codes(found)) == (4, True)


def test_heads_of_log_keys_before_and_after_a_rotation_are_judged_by_the_keyring():
    ledger = history(6, log_rotates=True)
    for key in (test_key("log"), test_key("log-2")):
        assert codes(judge(forked(ledger, 4, key=key), ledger)) == {"head.forked"}
    assert codes(judge(forked(ledger, 4, key=test_key("other-log")), ledger)) == {"head.unreconciled"}
    whole = forked(ledger, 4)
    bare = Equivocation(whole.older, whole.newer, whole.path, whole.keyring[:1])
    found = judge(bare, ledger)
    # The newer head is of the log key that the missing entry puts in force.
    assert (found.exit, codes(found)) == (3, {"head.unreconciled"})


def test_a_keyring_that_does_not_hold_shows_nothing():
    ledger = history(6, log_rotates=True)
    whole = forked(ledger, 4)
    header, rotation = whole.keyring
    for keyring, code in (
        ((), "chain.first_entry"),
        ((rotation,), "chain.first_entry"),
        ((header, header), "chain.keyring"),
        ((header, rotation, rotation), "chain.keyring"),
        ((type(header)(header.entry, rotation.envelope, header.proof), rotation), "entry.envelope_digest"),
        ((type(header)(header.entry, header.envelope, header.proof[:-1]), rotation), "proof.malformed"),
        ((type(header)(header.entry, header.envelope, header.proof[::-1]), rotation), "proof.inclusion"),
    ):
        found = judge(Equivocation(whole.older, whole.newer, whole.path, keyring), ledger)
        assert (found.exit, code in codes(found)) == (1, True), code


def test_a_rotation_that_nobody_committed_shows_nothing():
    ledger = Builder()
    ledger.header(next={"log": next_digest(test_key("log-2").key)})
    ledger.key(Party("issuer", test_key("other-log")), test_key("log").key, role="log")
    ledger.commit()
    found = judge(forked(ledger, 1, key=test_key("other-log")), ledger)
    assert codes(found) == {"key.chain"}


def test_heads_of_two_origins_or_in_the_wrong_order_show_nothing():
    ledger = history(5)
    whole = forked(ledger, 3)
    other = sign_head(Head("ledger.invalid/other", 3, OTHER), test_key("log"))
    assert codes(judge(Equivocation(other, whole.newer, whole.path, whole.keyring), ledger)) == {"head.origin"}
    assert codes(judge(Equivocation(whole.newer, whole.older, whole.path, whole.keyring), ledger)) == {
        "proof.malformed"
    }
    empty = sign_head(Head(ledger.origin, 0, OTHER), test_key("log"))
    assert codes(judge(Equivocation(empty, whole.newer, whole.path, whole.keyring), ledger)) == {"proof.malformed"}


def test_every_byte_of_a_file_matters_and_none_of_them_makes_another_accusation():
    ledger = history(3, log_rotates=True)
    data = print_equivocation(forked(ledger, 2))
    trust = ledger.trust()
    assert verify_equivocation(data, trust=trust, subject="file").exit == 1
    for offset in range(len(data)):
        changed = data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]
        found = verify_equivocation(changed, trust=trust, subject="file")
        assert found.exit in {1, 3, 4}, offset
        assert "head.forked" not in codes(found), offset
        # The verifier of files comes to no better word, whatever it takes the file for.
        assert verify_file(changed, subject="file", trust=trust).exit != 0, offset


def test_a_file_is_told_by_its_schema_and_prints_as_it_parses():
    data = print_equivocation(forked(history(3), 2))
    assert is_equivocation(data)
    assert kind_of(data) == "equivocation"
    assert not is_equivocation(data.replace(b"equivocation/v1", b"equivocation/v2"))
    assert print_equivocation(parse_equivocation(data)) == data


@given(st.binary(max_size=300))
def test_bytes_are_refused_or_print_as_they_parse(data):
    try:
        found = parse_equivocation(data)
    except LedgerError:
        assert verify_equivocation(data, trust=None, subject="file").exit == 1
    else:
        assert print_equivocation(found) == data


def test_leaves_of_the_builder_are_those_of_the_reference():
    ledger = history(3)
    assert [leaf_hash(row.entry) for row in ledger.rows] == [rfc9162.mth([row.entry]) for row in ledger.rows]
