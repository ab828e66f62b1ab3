"""Memory: every relation of two heads, over all small sizes, against proofs of a slow reference."""

from __future__ import annotations

import pytest

from ledger.checkpoint import Head, sign_head
from ledger.errors import LedgerError
from tests.reference import rfc9162
from tests.reference.build import ORIGIN, test_key
from verify.memory import Relation, open_remembered, proven_prefix, reconcile

LEAVES = [b"leaf %d" % number for number in range(20)]
OTHER = [b"other %d" % number for number in range(20)]


def head(leaves, size):
    return Head(ORIGIN, size, rfc9162.mth(leaves[:size]))


def source(leaves, *, first=False):
    """Return a source of proofs; with `first` in the form that always names its first node."""

    def proofs(old, new):
        proof = rfc9162.proof(old, leaves[:new])
        if first and old < new and old & (old - 1) == 0:
            return [rfc9162.mth(leaves[:old]), *proof]
        return proof

    return proofs


def relate(new, old, **evidence):
    result = reconcile(b"note", new, remembered=old, **{"whole": True, **evidence})
    return result.relation, result.remember


def test_nothing_remembered_is_first_seen_and_remembered():
    assert relate(head(LEAVES, 3), None) == (Relation.FIRST_SEEN, b"note")


def test_the_same_head_changes_nothing():
    assert relate(head(LEAVES, 3), head(LEAVES, 3)) == (Relation.SAME, None)


def test_another_root_of_the_same_size_is_forked():
    assert relate(head(OTHER, 3), head(LEAVES, 3)) == (Relation.FORKED, None)


@pytest.mark.parametrize("old", range(1, 19))
def test_a_head_that_grew_extends_with_a_proof_or_with_its_entries_and_is_unreconciled_without(old):
    for new in range(old + 1, 20):
        grown, before = head(LEAVES, new), head(LEAVES, old)
        assert relate(grown, before) == (Relation.UNRECONCILED, None)
        for first in (False, True):
            proofs = source(LEAVES, first=first)
            assert relate(grown, before, consistency=proofs) == (Relation.EXTENDS, b"note")
        assert relate(grown, before, prefix_root=before.root) == (Relation.EXTENDS, b"note")


@pytest.mark.parametrize("old", range(1, 19))
def test_a_fork_is_said_only_where_a_path_recomputes_the_new_root_and_another_old_one(old):
    for new in range(old + 1, 20):
        grown, before = head(OTHER, new), head(LEAVES, old)
        assert relate(grown, before, consistency=source(OTHER, first=True)) == (Relation.FORKED, None)
        assert relate(grown, before, prefix_root=rfc9162.mth(OTHER[:old])) == (Relation.FORKED, None)
        assert relate(grown, before, consistency=source(LEAVES, first=True)) == (Relation.UNRECONCILED, None)
        broken = [bytes(32)] * 3
        assert relate(grown, before, consistency=lambda a, b: broken)[0] is Relation.UNRECONCILED  # noqa: B023
        standard = relate(grown, before, consistency=source(OTHER))[0]
        # Where the first node is left out, nothing recomputes the new root.
        assert standard is (Relation.UNRECONCILED if old & (old - 1) == 0 else Relation.FORKED)


@pytest.mark.parametrize("new", range(1, 19))
def test_a_shorter_ledger_is_shorter_with_or_without_a_proof_and_forked_only_with_one(new):
    for old in range(new + 1, 20):
        cut, before = head(LEAVES, new), head(LEAVES, old)
        assert relate(cut, before) == (Relation.SHORTER, None)
        assert relate(cut, before, consistency=source(LEAVES)) == (Relation.SHORTER, None)
        fork = head(OTHER, new)
        assert relate(fork, before, consistency=source(LEAVES, first=True)) == (Relation.FORKED, None)


def test_a_bundle_s_older_head_is_fine_proven_or_not_and_never_remembered():
    old, new = head(LEAVES, 5), head(LEAVES, 12)
    assert relate(old, new, whole=False) == (Relation.OLDER_UNPROVEN, None)
    assert relate(old, new, whole=False, consistency=source(LEAVES)) == (Relation.OLDER, None)
    fork = head(OTHER, 5)
    assert relate(fork, new, whole=False, consistency=source(LEAVES)) == (Relation.FORKED, None)


def test_a_source_that_has_no_proof_proves_nothing():
    def none(old, new):
        raise LedgerError("no tiles")

    assert relate(head(LEAVES, 5), head(LEAVES, 3), consistency=none) == (Relation.UNRECONCILED, None)


def test_a_remembered_note_is_opened_only_under_a_log_key_of_its_origin():
    note = sign_head(head(LEAVES, 3), test_key("log"))
    keys = (test_key("log-2").key, test_key("log").key)
    assert open_remembered(note, origin=ORIGIN, log_keys=keys) == head(LEAVES, 3)
    assert open_remembered(note, origin=ORIGIN, log_keys=keys[:1]) is None
    assert open_remembered(note, origin="ledger.invalid/other", log_keys=keys) is None
    assert open_remembered(note[:-2] + b"\n", origin=ORIGIN, log_keys=keys) is None


@pytest.mark.parametrize("old", range(1, 19))
def test_a_constructive_path_shows_the_root_of_the_older_size_and_no_other_path_does(old):
    for new in range(old + 1, 20):
        root, path = rfc9162.mth(LEAVES[:new]), source(LEAVES, first=True)(old, new)
        assert proven_prefix(old, new, root, path) == rfc9162.mth(LEAVES[:old])
        assert proven_prefix(old, new, rfc9162.mth(OTHER[:new]), path) is None
        for broken in (path[1:], path[:-1], [*path, bytes(32)], [path[0][:31], *path[1:]], ()):
            assert proven_prefix(old, new, root, broken) is None
    assert proven_prefix(old, old, rfc9162.mth(LEAVES[:old]), [bytes(32)]) is None
