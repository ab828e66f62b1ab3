from __future__ import annotations

import ast
from pathlib import Path

import pytest

import verify.proof
from ledger.errors import LedgerError
from ledger.merkle import consistency_proof, inclusion_proof, leaf_hash, root_of, tree_of
from verify.errors import ProofError
from verify.proof import EMPTY_ROOT, FoldState, RootFold, verify_consistency, verify_inclusion

LEAVES = [leaf_hash(bytes([number])) for number in range(12)]
READ = tree_of(LEAVES)


def root(size):
    return root_of(size, READ)


def code(function, **named):
    with pytest.raises(ProofError) as refused:
        function(**named)
    return refused.value.code


def test_the_verifier_shares_no_arithmetic_with_the_prover():
    imported = set()
    for name in ("proof", "errors"):
        tree = ast.parse(Path(verify.proof.__file__).with_name(f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    assert {name for name in imported if name.startswith("ledger")} == {"ledger.errors"}


def test_a_proof_error_is_an_error_of_ours():
    assert issubclass(ProofError, LedgerError)


INCLUSION = {"leaf": LEAVES[5], "index": 5, "size": 12, "proof": inclusion_proof(5, 12, READ), "root": root(12)}
CONSISTENCY = {
    "old_size": 7,
    "old_root": root(7),
    "new_size": 12,
    "new_root": root(12),
    "proof": consistency_proof(7, 12, READ),
}


def test_the_good_ones_pass():
    verify_inclusion(**INCLUSION)
    verify_consistency(**CONSISTENCY)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"leaf": LEAVES[4]}, "proof.inclusion"),
        ({"root": root(11)}, "proof.inclusion"),
        ({"index": 4}, "proof.inclusion"),
        ({"proof": INCLUSION["proof"][::-1]}, "proof.inclusion"),
        ({"index": -1}, "proof.malformed"),
        ({"index": 12}, "proof.malformed"),
        ({"size": 0}, "proof.malformed"),
        ({"size": 40}, "proof.malformed"),
        ({"proof": ()}, "proof.malformed"),
        ({"proof": INCLUSION["proof"][1:]}, "proof.malformed"),
        ({"proof": (*INCLUSION["proof"], root(12))}, "proof.malformed"),
        ({"proof": (INCLUSION["proof"][0][:-1], *INCLUSION["proof"][1:])}, "proof.malformed"),
        ({"leaf": b""}, "proof.malformed"),
        ({"root": b""}, "proof.malformed"),
    ],
)
def test_one_change_to_an_inclusion_proof_is_refused(change, expected):
    assert code(verify_inclusion, **{**INCLUSION, **change}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"old_root": root(6)}, "proof.consistency"),
        ({"new_root": root(11)}, "proof.consistency"),
        ({"proof": CONSISTENCY["proof"][::-1]}, "proof.consistency"),
        ({"old_size": 0, "old_root": EMPTY_ROOT, "proof": ()}, "proof.malformed"),
        ({"old_size": 0, "old_root": EMPTY_ROOT}, "proof.malformed"),
        ({"old_size": -1}, "proof.malformed"),
        ({"old_size": 13}, "proof.malformed"),
        ({"proof": ()}, "proof.malformed"),
        ({"proof": CONSISTENCY["proof"][1:]}, "proof.malformed"),
        ({"proof": (*CONSISTENCY["proof"], root(12))}, "proof.malformed"),
        ({"old_root": b""}, "proof.malformed"),
        ({"new_root": b""}, "proof.malformed"),
        ({"old_size": 12}, "proof.malformed"),
        ({"old_size": 12, "proof": ()}, "proof.consistency"),
        ({"old_size": 12, "old_root": root(12)}, "proof.malformed"),
    ],
)
def test_one_change_to_a_consistency_proof_is_refused(change, expected):
    assert code(verify_consistency, **{**CONSISTENCY, **change}) == expected


def test_equal_sizes_need_equal_roots_and_no_proof():
    verify_consistency(old_size=12, old_root=root(12), new_size=12, new_root=root(12), proof=())


def test_two_empty_trees_prove_nothing():
    both = {"old_size": 0, "old_root": EMPTY_ROOT, "new_size": 0, "new_root": EMPTY_ROOT}
    assert code(verify_consistency, **both, proof=()) == "proof.malformed"


def test_a_single_leaf_is_its_own_root_with_an_empty_proof():
    verify_inclusion(leaf=LEAVES[0], index=0, size=1, proof=(), root=LEAVES[0])
    assert code(verify_inclusion, leaf=LEAVES[0], index=0, size=1, proof=(), root=LEAVES[1]) == "proof.inclusion"
    # A node cannot pass for the leaf: lengths of the path are those of the size.
    assert code(verify_inclusion, leaf=root(12), index=0, size=12, proof=(), root=root(12)) == "proof.malformed"


def test_a_fold_goes_on_from_its_state():
    fold = RootFold()
    for leaf in LEAVES[:7]:
        fold.append(leaf)
    state = fold.snapshot()
    assert (state.start, state.size, len(state.hashes)) == (0, 7, 3)
    resumed = RootFold.resume(state)
    for leaf in LEAVES[7:]:
        resumed.append(leaf)
    assert resumed.root() == root(12)
    assert fold.root() == root(7)
    assert fold.snapshot() == state


@pytest.mark.parametrize("start", range(13))
@pytest.mark.parametrize("end", range(13))
def test_a_range_has_a_root_only_behind_the_fold_that_ends_there(start, end):
    if end < start:
        return
    before, after = RootFold(), RootFold(start)
    for leaf in LEAVES[:start]:
        before.append(leaf)
    for leaf in LEAVES[start:end]:
        after.append(leaf)
    if start:
        with pytest.raises(ProofError):
            after.root()
        with pytest.raises(ProofError):
            after.append_root(LEAVES[end - 1])
        with pytest.raises(ProofError):
            RootFold().join(after)
    state = after.snapshot()
    before.join(RootFold.resume(state))
    assert before.root() == root(end)
    assert before.size == end
    # Joining leaves the part as it was.
    assert after.snapshot() == state


@pytest.mark.parametrize(
    "state",
    [
        FoldState(0, 3, (LEAVES[0],)),
        FoldState(0, 3, (LEAVES[0], LEAVES[1], LEAVES[2])),
        FoldState(0, 0, (LEAVES[0],)),
        FoldState(1, 3, (LEAVES[0],)),
        FoldState(0, 1, (b"",)),
        FoldState(-1, 1, (LEAVES[0],)),
        FoldState(5, 3, (LEAVES[0],)),
        FoldState(5, 3, ()),
        FoldState(0, -1, ()),
    ],
)
def test_a_state_that_cannot_be_is_refused(state):
    assert code(RootFold.resume, state=state) == "proof.malformed"


def test_a_leaf_is_hashed_apart_from_a_node():
    assert verify.proof.leaf_hash(b"\x05") == LEAVES[5]
    assert verify.proof.leaf_hash(LEAVES[0] + LEAVES[1]) != root(2)


def test_no_range_starts_before_the_first_leaf():
    assert code(RootFold, start=-1) == "proof.malformed"


def test_a_changed_state_changes_the_root():
    fold = RootFold()
    for leaf in LEAVES[:7]:
        fold.append(leaf)
    state = fold.snapshot()
    other = RootFold.resume(FoldState(0, 7, (*state.hashes[:-1], LEAVES[0])))
    assert other.root() != fold.root()
