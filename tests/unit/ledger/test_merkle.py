from __future__ import annotations

import pytest

from ledger.errors import FormatError
from ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_of,
    subtree_hash,
    tree_of,
)

LEAVES = [leaf_hash(bytes([number])) for number in range(20)]
READ = tree_of(LEAVES)


def code(function, *arguments):
    with pytest.raises(FormatError) as refused:
        function(*arguments)
    return refused.value.code


def test_a_leaf_and_a_node_over_the_same_bytes_differ():
    assert leaf_hash(LEAVES[0] + LEAVES[1]) != node_hash(LEAVES[0], LEAVES[1])
    assert node_hash(LEAVES[0], LEAVES[1]) != node_hash(LEAVES[1], LEAVES[0])


def test_the_root_of_one_leaf_is_its_hash_and_that_of_none_is_fixed():
    assert root_of(0, READ) == Frontier().root() == EMPTY_ROOT
    assert root_of(1, READ) == LEAVES[0] != EMPTY_ROOT


def test_a_repeated_last_leaf_changes_the_root():
    three, four = Frontier(), Frontier()
    for leaf in LEAVES[:3]:
        three.append(leaf)
    for leaf in (*LEAVES[:3], LEAVES[2]):
        four.append(leaf)
    assert three.root() != four.root()


def test_a_frontier_goes_on_from_its_hashes_and_a_copy_grows_alone():
    frontier = Frontier()
    for leaf in LEAVES[:13]:
        frontier.append(leaf)
    resumed, copied = Frontier.of(13, tuple(frontier.hashes)), frontier.copy()
    for leaf in LEAVES[13:]:
        resumed.append(leaf)
        copied.append(leaf)
    assert resumed.root() == copied.root() == root_of(20, READ)
    assert frontier.size == 13
    assert frontier.root() == root_of(13, READ)


@pytest.mark.parametrize(
    ("size", "hashes"),
    [(-1, []), (0, [LEAVES[0]]), (3, [LEAVES[0]]), (3, LEAVES[:3]), (4, []), (1, [b"short"]), (1, [LEAVES[0] + b"x"])],
)
def test_a_frontier_takes_one_hash_for_each_bit_of_its_size(size, hashes):
    assert code(Frontier.of, size, hashes) == "proof.range"


@pytest.mark.parametrize(("index", "size"), [(0, 0), (-1, 3), (3, 3), (4, 3), (1, 1)])
def test_no_proof_is_made_of_a_leaf_outside_the_tree(index, size):
    assert code(inclusion_proof, index, size, READ) == "proof.range"


@pytest.mark.parametrize(("old", "new"), [(0, 0), (0, 5), (-1, 5), (6, 5)])
def test_no_proof_is_made_from_the_empty_tree_or_a_larger_one(old, new):
    assert code(consistency_proof, old, new, READ) == "proof.range"


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 2), (-4, 0), (1, 3), (4, 9), (2, 6)])
def test_a_range_that_is_no_part_of_the_tree_has_no_root(start, end):
    assert code(subtree_hash, start, end, READ) == "proof.range"


@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 20), (4, 8), (4, 7), (16, 20), (5, 6), (8, 14)])
def test_the_root_of_a_range_is_that_of_its_leaves_alone(start, end):
    alone = tree_of(LEAVES[start:end])
    assert subtree_hash(start, end, READ) == root_of(end - start, alone)


@pytest.mark.parametrize(("level", "index"), [(0, 20), (0, -1), (-1, 0), (5, 0), (4, 1), (2, 5)])
def test_a_tree_in_memory_reads_complete_subtrees_only(level, index):
    assert code(READ, level, index) == "proof.range"


def test_more_leaves_than_the_reader_has_are_not_made_up():
    assert code(root_of, 21, READ) == "proof.range"
    assert code(inclusion_proof, 0, 21, READ) == "proof.range"
    assert code(root_of, 1, tree_of([])) == "proof.range"


def test_a_proof_reads_no_more_than_twice_the_height():
    reads = []

    def counted(level, index):
        reads.append((level, index))
        return bytes(32)

    for index in (0, 1, 524_288, 999_998, 999_999):
        reads.clear()
        assert len(inclusion_proof(index, 1_000_000, counted)) <= 20
        assert len(reads) <= 40
