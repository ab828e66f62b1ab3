"""Tiles: their paths, which of them a size needs, entry bundles, and the edge that makes them; against RFC 9162 and a public log."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import head_of
from ledger.errors import FormatError
from ledger.tiles import (
    Edge,
    Tile,
    parse_bundle,
    parse_tile_path,
    print_bundle,
    print_tile_path,
    tiles_between,
    tiles_of,
)
from tests.reference.rfc9162 import leaf, mth

LOG = "tlog-tiles/tessera-testlog/testdata/log"
PATHS = {
    "tile/0/000": Tile(0, 0),
    "tile/0/x001/x234/067": Tile(0, 1_234_067),
    "tile/63/999.p/255": Tile(63, 999, 255),
    "tile/entries/x001/000.p/1": Tile(None, 1000, 1),
    "tile/1/x999/999": Tile(1, 999_999),
    "tile/2/x001/x000/000": Tile(2, 1_000_000),
    "tile/0/x009/x223/x372/x036/x854/x775/807": Tile(0, 2**63 - 1),
}
TILES = st.builds(
    Tile, st.none() | st.integers(0, 63), st.integers(0, 2**63 - 1) | st.integers(0, 2000), st.integers(1, 256)
)


def entries_of(count, start=0):
    return [b"entry %d" % index for index in range(start, start + count)]


def tree(size):
    """Return path -> bytes of the tree of `size` entries."""
    edge = Edge()
    return {tile.path: data for tile, data in [*edge.extend(entries_of(size)), *edge.partial()]}


@pytest.mark.parametrize("path", PATHS)
def test_the_path_of_a_tile_is_that_of_the_standard(path):
    assert print_tile_path(PATHS[path]) == path == PATHS[path].path
    assert parse_tile_path(path) == PATHS[path]


@given(TILES)
def test_a_path_parses_to_the_tile_that_printed_it(tile):
    assert parse_tile_path(print_tile_path(tile)) == tile


@pytest.mark.parametrize(
    "path",
    [
        "", "checkpoint", "tile", "tile/0", "tile/0/", "tile//000", "/tile/0/000", "tile/0/000/", "tile/0/000\n",
        "tile/00/000", "tile/64/000", "tile/-1/000", "tile/x/000", "tile/Entries/000", "tile/ 0/000",
        "tile/0/0", "tile/0/00", "tile/0/0000", "tile/0/x000/001", "tile/0/001/002", "tile/0/x001", "tile/0/x001/x002",
        "tile/0/x01/002", "tile/0/X001/002", "tile/0/-01", "tile/0/+01", "tile/0/\u0660\u0660\u0660",
        "tile/0/000.p", "tile/0/000.p/", "tile/0/000.p/0", "tile/0/000.p/00", "tile/0/000.p/01", "tile/0/000.p/256",
        "tile/0/000.p/999", "tile/0/000.p/1000", "tile/0/000.p/1/2", "tile/0/x001.p/000", "tile/0/000.P/1",
        "tile/entries/../0/000", "tile/0/../../etc/passwd", "tile/./0/000", "tile/0/x009/x223/x372/x036/x854/x775/808",
        "tile/0/x001/x000/x000/x000/x000/x000/x000/000",
    ],
)  # fmt: skip
def test_what_is_one_character_away_from_a_path_is_refused(path):
    with pytest.raises(FormatError) as refused:
        parse_tile_path(path)
    assert refused.value.code == "tile.path"


@pytest.mark.parametrize(
    "tile", [Tile(64, 0), Tile(-1, 0), Tile(0, -1), Tile(0, 2**63), Tile(0, 0, 0), Tile(0, 0, 257)]
)
def test_a_tile_that_the_format_cannot_hold_has_no_path(tile):
    with pytest.raises(FormatError):
        print_tile_path(tile)


def test_the_sizes_of_the_standard_need_the_tiles_that_it_names():
    found = list(tiles_of(70_000))
    hashes = [tile for tile in found if tile.level is not None]
    assert [sum(tile.level == level and tile.width == 256 for tile in hashes) for level in range(4)] == [273, 1, 0, 0]
    assert [tile for tile in hashes if tile.width < 256] == [Tile(0, 273, 112), Tile(1, 1, 17), Tile(2, 0, 1)]
    assert len([tile for tile in found if tile.level is None]) == 274
    assert [tile.path for tile in tiles_of(256)] == ["tile/entries/000", "tile/0/000", "tile/1/000.p/1"]
    assert list(tiles_of(0)) == []


@given(st.integers(0, 200_000), st.integers(0, 3_000))
def test_what_is_new_between_two_sizes_is_what_the_older_has_not(old, more):
    before, after = set(tiles_of(old)), list(tiles_of(old + more))
    new = list(tiles_between(old, old + more))
    assert len(set(after)) == len(after)
    assert set(new) == set(after) - before
    assert len(new) == len(set(new))


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_a_bundle_parses_to_the_entries_that_it_was_printed_from(entries):
    data = print_bundle(entries)
    assert parse_bundle(data) == tuple(entries)
    assert data == b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


@given(st.binary(max_size=64))
def test_bytes_that_parse_as_a_bundle_print_the_same(data):
    try:
        entries = parse_bundle(data)
    except FormatError:
        return
    assert print_bundle(entries) == data


def test_a_bundle_ends_where_its_last_entry_ends():
    data = print_bundle([b"first", b"second"])
    for cut in range(1, len(data)):
        if cut == 7:
            assert parse_bundle(data[:cut]) == (b"first",)
            continue
        with pytest.raises(FormatError):
            parse_bundle(data[:cut])


def test_an_entry_has_at_most_65535_bytes():
    longest = b"x" * 65_535
    assert parse_bundle(print_bundle([longest])) == (longest,)
    with pytest.raises(FormatError):
        print_bundle([longest + b"x"])
    with pytest.raises(FormatError):
        list(Edge().extend([longest + b"x"]))


@pytest.mark.parametrize("size", [*range(131), 255, 256, 257, 511, 512, 513, 1000])
def test_the_edge_makes_the_tiles_that_a_size_needs_and_no_others(size):
    entries = entries_of(size)
    edge = Edge()
    made = dict([*edge.extend(entries), *edge.partial()])
    assert set(made) == set(tiles_of(size))
    assert edge.root() == mth(entries)
    for tile, data in made.items():
        first = tile.index * 256
        if tile.level is None:
            assert parse_bundle(data) == tuple(entries[first : first + tile.width])
            continue
        span = 256**tile.level
        items = [mth(entries[(first + item) * span : (first + item + 1) * span]) for item in range(tile.width)]
        assert data == b"".join(items)


@pytest.mark.slow
def test_the_third_level_holds_the_roots_of_65536_entries():
    size = 65_536 + 300
    entries = entries_of(size)
    edge = Edge()
    made = dict([*edge.extend(entries), *edge.partial()])
    assert set(made) == set(tiles_of(size))
    assert made[Tile(2, 0, 1)] == mth(entries[:65_536])
    assert made[Tile(1, 1, 1)] == mth(entries[65_536 : 65_536 + 256])
    assert made[Tile(0, 257, 44)] == b"".join(leaf(entry) for entry in entries[-44:])
    assert edge.root() == mth(entries)


@pytest.mark.parametrize(("old", "new"), [(0, 3), (1, 2), (3, 300), (255, 257), (256, 512), (300, 301), (511, 1030)])
def test_an_edge_read_from_partial_tiles_goes_on_as_the_one_that_wrote_them(old, new):
    edge = continued(old)
    assert edge.root() == mth(entries_of(old))
    made = {tile.path: data for tile, data in [*edge.extend(entries_of(new - old, old)), *edge.partial()]}
    assert tree(new).items() <= {**tree(old), **made}.items()
    assert edge.root() == mth(entries_of(new))


def continued(size):
    files = tree(size)
    hashes = []
    level = 0
    while size >> 8 * level:
        width, index = (size >> 8 * level) & 255, size >> 8 * (level + 1)
        hashes.append(files[Tile(level, index, width).path] if width else b"")
        level += 1
    bundle = files[Tile(None, size >> 8, size & 255).path] if size & 255 else b""
    return Edge.of(size, hashes, bundle)


def test_partial_tiles_of_another_width_or_other_entries_are_no_edge():
    hashes, bundle = tree(300)["tile/0/001.p/44"], tree(300)["tile/entries/001.p/44"]
    upper = tree(300)["tile/1/000.p/1"]
    assert Edge.of(300, [hashes, upper], bundle).root() == mth(entries_of(300))
    refused = [
        ([hashes, upper], bundle[:-1]),
        ([hashes, upper], bundle.replace(b"entry 299", b"entry 298")),
        ([hashes, upper], b""),
        ([hashes[:-32], upper], bundle),
        ([hashes + upper, upper], bundle),
        ([hashes], bundle),
        ([hashes, b""], bundle),
        ([], b""),
    ]
    for levels, entries in refused:
        with pytest.raises(FormatError):
            Edge.of(300, levels, entries)


@pytest.mark.parametrize("size", range(16))
def test_the_tiles_of_a_public_log_are_made_again_from_its_entries(shared, size):
    log = shared / LOG
    bundle = (log / f"tile/entries/000.p/{size}").read_bytes() if size else b""
    edge = Edge()
    made = dict([*edge.extend(parse_bundle(bundle)), *edge.partial()])
    assert set(made) == set(tiles_of(size))
    for tile, data in made.items():
        assert (log / tile.path).read_bytes() == data
    head = head_of((log / f"checkpoint.{size}").read_bytes())
    assert (head.size, head.root) == (size, edge.root())


def test_a_public_log_has_the_files_that_its_sizes_need_and_no_others(shared):
    log = shared / LOG
    found = {str(path.relative_to(log)) for path in (log / "tile").rglob("*") if path.is_file()}
    assert found == {tile.path for size in range(16) for tile in tiles_of(size)}
    assert {parse_tile_path(path).path for path in found} == found


def test_each_size_of_a_public_log_goes_on_from_the_one_before(shared):
    log = shared / LOG
    entries = parse_bundle((log / "tile/entries/000.p/15").read_bytes())
    for old, new in pairwise(range(1, 16)):
        edge = Edge.of(
            old, [(log / f"tile/0/000.p/{old}").read_bytes()], (log / f"tile/entries/000.p/{old}").read_bytes()
        )
        assert list(edge.extend(entries[old:new])) == []
        for tile, data in edge.partial():
            assert (log / tile.path).read_bytes() == data


def test_a_leaf_is_the_hash_of_a_zero_byte_and_the_entry():
    [(_, _), (tile, data)] = [*(edge := Edge()).extend([b"L123456"]), *edge.partial()]
    assert tile == Tile(0, 0, 1)
    assert (
        data
        == sha256(b"\x00L123456").digest()
        == bytes.fromhex("395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56")
    )
