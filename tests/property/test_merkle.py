"""Prover and verifier against RFC 9162, 2.1, written out recursively, for every tree up to 130 leaves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import merkle
from tests.reference import rfc9162
from verify import proof as verifier
from verify.errors import ProofError

MOST = 130
LEAVES = [bytes([number]) for number in range(MOST)]
HASHES = [merkle.leaf_hash(data) for data in LEAVES]
READ = merkle.tree_of(HASHES)
ROOTS = [rfc9162.mth(LEAVES[:size]) for size in range(MOST + 1)]


def includes(leaf, index, size, proof, root):
    try:
        verifier.verify_inclusion(leaf=leaf, index=index, size=size, proof=proof, root=root)
    except ProofError:
        return False
    return True


def consistent(old, new, old_root, new_root, proof):
    try:
        verifier.verify_consistency(old_size=old, old_root=old_root, new_size=new, new_root=new_root, proof=proof)
    except ProofError:
        return False
    return True


def flip(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def damaged(proof):
    """Every way to hurt a proof by one hash: a bit, a hash less, a hash more, two swapped, a byte less."""
    for at in range(len(proof)):
        yield (*proof[:at], flip(proof[at], at * 37 % 256), *proof[at + 1 :])
        yield (*proof[:at], *proof[at + 1 :])
        yield (*proof[:at], proof[at][:-1], *proof[at + 1 :])
    for at in range(len(proof) + 1):
        yield (*proof[:at], bytes(32), *proof[at:])
    for at in range(len(proof) - 1):
        yield (*proof[:at], proof[at + 1], proof[at], *proof[at + 2 :])


@pytest.mark.parametrize("size", range(MOST + 1))
def test_roots_are_those_of_the_rfc(size):
    frontier, fold, stepped = merkle.Frontier(), verifier.RootFold(), verifier.RootFold()
    for hashed in HASHES[:size]:
        frontier.append(hashed)
        fold.append(hashed)
        assert stepped.append_root(hashed) == ROOTS[stepped.size]
        assert stepped.snapshot() == fold.snapshot()
    assert merkle.root_of(size, READ) == frontier.root() == fold.root() == ROOTS[size]
    assert frontier.size == fold.size == size
    assert merkle.Frontier.of(size, frontier.hashes).root() == ROOTS[size]
    assert verifier.RootFold.resume(fold.snapshot()).root() == ROOTS[size]


@pytest.mark.parametrize("size", range(1, MOST + 1))
def test_inclusion_proofs_are_those_of_the_rfc_and_the_verifier_accepts_them(size):
    for index in range(size):
        found = merkle.inclusion_proof(index, size, READ)
        assert list(found) == rfc9162.path(index, LEAVES[:size])
        assert includes(HASHES[index], index, size, found, ROOTS[size])


@pytest.mark.parametrize("new", range(1, MOST + 1))
def test_consistency_proofs_are_those_of_the_rfc_and_the_verifier_accepts_them(new):
    for old in range(1, new + 1):
        found = merkle.consistency_proof(old, new, READ)
        assert list(found) == rfc9162.proof(old, LEAVES[:new])
        assert consistent(old, new, ROOTS[old], ROOTS[new], found)


@pytest.mark.parametrize("size", [*range(1, 34), 63, 64, 65, 100, 127, 128, 129, 130])
def test_no_damaged_inclusion_proof_is_accepted(size):
    for index in range(size):
        good = merkle.inclusion_proof(index, size, READ)
        assert not any(includes(HASHES[index], index, size, bad, ROOTS[size]) for bad in damaged(good))
        assert not includes(flip(HASHES[index], index), index, size, good, ROOTS[size])
        assert not includes(HASHES[index], index, size, good, flip(ROOTS[size], index))
        assert not any(
            includes(HASHES[index], other, size, good, ROOTS[size]) for other in range(-1, size + 1) if other != index
        )


@pytest.mark.parametrize("new", [*range(1, 34), 63, 64, 65, 100, 127, 128, 129, 130])
def test_no_damaged_consistency_proof_is_accepted(new):
    for old in range(1, new + 1):
        good = merkle.consistency_proof(old, new, READ)
        assert not any(consistent(old, new, ROOTS[old], ROOTS[new], bad) for bad in damaged(good))
        assert not consistent(old, new, flip(ROOTS[old], new), ROOTS[new], good)
        assert not consistent(old, new, ROOTS[old], flip(ROOTS[new], old), good)
        if old != new:
            assert not consistent(old, new, ROOTS[new], ROOTS[old], good)
            assert not consistent(new, old, ROOTS[new], ROOTS[old], good)


@pytest.mark.parametrize("size", range(1, 41))
def test_under_another_size_the_verifier_agrees_with_the_recursion_of_the_rfc(size):
    # A proof does not always tell two sizes apart (index 0 of 3 and of 4 have paths of one shape): the size is bound by
    # the signed head, next to the root. So the oracle, not the test, says which are refused.
    for index in range(size):
        good = merkle.inclusion_proof(index, size, READ)
        for other in range(45):
            expected = rfc9162.accepts_inclusion(index, other, HASHES[index], good, ROOTS[size])
            assert includes(HASHES[index], index, other, good, ROOTS[size]) == expected
            assert not includes(HASHES[index], index, other, good, ROOTS[other]) or other == size


@pytest.mark.parametrize("new", range(1, 21))
def test_under_other_sizes_consistency_agrees_with_the_recursion_of_the_rfc(new):
    for old in range(1, new + 1):
        good = merkle.consistency_proof(old, new, READ)
        for m in range(24):
            for n in range(24):
                expected = rfc9162.accepts_consistency(m, n, ROOTS[old], ROOTS[new], good)
                assert consistent(m, n, ROOTS[old], ROOTS[new], good) == expected
                if (m, n) != (old, new):
                    assert not consistent(m, n, ROOTS[m], ROOTS[n], good) or m == n


hashes = st.sampled_from(HASHES[:6] + ROOTS[:12])


@given(st.integers(-1, 20), st.integers(-1, 20), hashes, hashes, st.lists(hashes, max_size=7))
def test_on_any_input_the_verifier_agrees_with_the_recursion_of_the_rfc(first, second, one, two, path):
    assert includes(one, first, second, path, two) == rfc9162.accepts_inclusion(first, second, one, path, two)
    assert consistent(first, second, one, two, path) == rfc9162.accepts_consistency(first, second, one, two, path)


@given(st.integers(0, 2**63 - 2), st.integers(1, 2**63 - 1))
def test_lengths_hold_for_sizes_nobody_can_build(index, size):
    index %= size
    depths = []

    def read(level, at):
        assert at << level < size
        depths.append(level)
        return level.to_bytes(4, "big") + at.to_bytes(28, "big")

    found = merkle.inclusion_proof(index, size, read)
    assert len(found) <= max(size - 1, 0).bit_length()
    root = rfc9162.root_from_path(index, size, HASHES[0], list(found))
    assert root is not None
    assert includes(HASHES[0], index, size, found, root)
    assert not includes(HASHES[0], index, size, found[:-1] if found else (root,), root)
    old = index + 1
    path = merkle.consistency_proof(old, size, read)
    roots = rfc9162.roots_from_proof(old, size, HASHES[0], list(path))
    assert roots is not None
    assert len(path) <= size.bit_length() + 1


@given(st.lists(st.integers(0, 200), max_size=6))
def test_ranges_folded_apart_and_joined_give_the_root_of_the_whole(cuts):
    leaves = [merkle.leaf_hash(number.to_bytes(2, "big")) for number in range(200)]
    edges = [0, *sorted(cuts), 200]
    folds = []
    for start, end in pairwise(edges):
        fold = verifier.RootFold(start)
        for hashed in leaves[start:end]:
            fold.append(hashed)
        folds.append(verifier.RootFold.resume(fold.snapshot()))
    # From the right: joining is associative.
    while len(folds) > 1:
        after = folds.pop()
        folds[-1].join(after)
    assert folds[0].root() == merkle.root_of(200, merkle.tree_of(leaves))
    assert folds[0].snapshot().size == 200
