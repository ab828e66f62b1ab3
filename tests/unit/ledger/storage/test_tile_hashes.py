"""Subtree hashes read from tiles of three levels, beside a tree that is kept whole in memory."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest

from ledger.errors import StorageError
from ledger.merkle import consistency_proof, inclusion_proof, root_of, tree_of
from ledger.storage.tiles import Tiles, TreeHashes
from tests.reference.rfc9162 import accepts_inclusion

SIZE = 2 * 65_536 + 3 * 256 + 77
LEAVES = [sha256(str(index).encode()).digest() for index in range(SIZE)]


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiles]:
    made = Tiles(tmp_path_factory.mktemp("tiles"))
    for start in range(0, SIZE, 5_000):
        made.write(start, LEAVES[start : start + 5_000])
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole():
    return tree_of(LEAVES)


def test_every_level_is_read_as_the_whole_tree_has_it(tiles, whole):
    read = TreeHashes(tiles, SIZE).read
    assert root_of(SIZE, read) == root_of(SIZE, whole)
    for level in range(SIZE.bit_length()):
        count = SIZE >> level
        for index in {0, count // 3, count // 2, count - 1}:
            assert read(level, index) == whole(level, index), (level, index)


def test_proofs_from_tiles_have_at_most_a_hash_a_level_and_are_right(tiles, whole):
    root = root_of(SIZE, whole)
    for index in (0, 1, 255, 256, 65_535, 65_536, 2 * 65_536 - 1, 2 * 65_536, SIZE - 1):
        proof = inclusion_proof(index, SIZE, TreeHashes(tiles, SIZE).read)
        assert len(proof) <= (SIZE - 1).bit_length()
        assert accepts_inclusion(index, SIZE, LEAVES[index], proof, root)
        assert not accepts_inclusion(index, SIZE, LEAVES[index], [proof[0][::-1], *proof[1:]], root)
    for old in (1, 256, 65_536, 65_537, SIZE - 1):
        assert consistency_proof(old, SIZE, TreeHashes(tiles, SIZE).read) == consistency_proof(old, SIZE, whole)


@pytest.mark.parametrize(
    ("level", "index"), [(0, SIZE), (1, SIZE // 2), (7, SIZE >> 7), (8, SIZE >> 8), (17, 1), (24, 0)]
)
def test_a_subtree_that_is_not_complete_under_the_size_is_refused(tiles, level, index):
    with pytest.raises(StorageError, match="no subtree"):
        TreeHashes(tiles, SIZE).read(level, index)


def test_a_tile_that_does_not_lead_up_is_refused_and_its_neighbours_are_not(tiles, tmp_path):
    made = Tiles(tmp_path)
    made.write(0, LEAVES)
    file = tmp_path / "tiles" / "0"
    data = bytearray(file.read_bytes())
    data[300 * 32] ^= 1
    file.write_bytes(data)
    read = TreeHashes(made, SIZE).read
    assert read(0, 255) == LEAVES[255]
    assert read(0, 512) == LEAVES[512]
    with pytest.raises(StorageError, match="does not lead to the root"):
        read(0, 301)
