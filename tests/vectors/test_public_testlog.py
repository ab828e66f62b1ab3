"""A whole public log at each size from 0 to 15: roots recomputed from its entries, heads verified with its key."""

from __future__ import annotations

import pytest

from ledger import merkle
from ledger.checkpoint import open_head
from ledger.errors import SignatureError
from ledger.keys import print_key_id
from ledger.note import check_note, parse_note, parse_vkey, print_note
from verify import proof as verifier

# The log's published key; its id stands on every signature line.
VKEY = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
LOG = "tlog-tiles/tessera-testlog/testdata/log"


def entries(bundle):
    found, at = [], 0
    while at < len(bundle):
        size = int.from_bytes(bundle[at : at + 2], "big")
        found.append(bundle[at + 2 : at + 2 + size])
        at += 2 + size
    assert at == len(bundle)
    return found


def test_every_size_is_there(shared):
    assert len(list((shared / LOG).glob("checkpoint.*"))) == 16
    assert len(list((shared / LOG / "tile/entries/000.p").iterdir())) == 15
    assert len(list((shared / LOG / "tile/0/000.p").iterdir())) == 15


@pytest.mark.parametrize("size", range(16))
def test_head_of_each_size_is_signed_and_has_the_root_of_its_entries(shared, size):
    log = shared / LOG
    data = (log / f"checkpoint.{size}").read_bytes()
    key = parse_vkey(VKEY)
    head = open_head(data, origin=key.name, log_key=print_key_id(key.public))
    assert head.size == size
    note = parse_note(data)
    assert print_note(note) == data
    assert check_note(note, [key]) == note.signatures
    with pytest.raises(SignatureError):
        open_head(
            data.replace(f"\n{size}\n".encode(), f"\n{size + 1}\n".encode()),
            origin=key.name,
            log_key=print_key_id(key.public),
        )
    leaves = entries((log / f"tile/entries/000.p/{size}").read_bytes()) if size else []
    assert len(leaves) == size
    hashes = [verifier.leaf_hash(leaf) for leaf in leaves]
    frontier, fold = merkle.Frontier(), verifier.RootFold()
    for hashed in hashes:
        frontier.append(hashed)
        fold.append(hashed)
    assert head.root == fold.root() == frontier.root() == merkle.root_of(size, merkle.tree_of(hashes))
    if size:
        assert (log / f"tile/0/000.p/{size}").read_bytes() == b"".join(hashes)


def test_each_head_extends_each_smaller_one(shared):
    log = shared / LOG
    key = parse_vkey(VKEY)
    heads = [
        open_head((log / f"checkpoint.{size}").read_bytes(), origin=key.name, log_key=print_key_id(key.public))
        for size in range(16)
    ]
    read = merkle.tree_of([merkle.leaf_hash(leaf) for leaf in entries((log / "tile/entries/000.p/15").read_bytes())])
    for new in heads[1:]:
        for old in heads[1 : new.size + 1]:
            verifier.verify_consistency(
                old_size=old.size,
                old_root=old.root,
                new_size=new.size,
                new_root=new.root,
                proof=merkle.consistency_proof(old.size, new.size, read),
            )
