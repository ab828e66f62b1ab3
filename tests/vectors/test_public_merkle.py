"""Public merkle data: accept and reject probes, roots, and digests over every subtree up to 130 leaves."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path

import pytest

from ledger import merkle
from ledger.checkpoint import parse_checkpoint
from tests.reference import rfc9162
from verify import proof as verifier
from verify.errors import ProofError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vectors"
FOLDER = "merkle/transparency-dev"


def probes(kind):
    return sorted(path.relative_to(SHARED).as_posix() for path in (SHARED / FOLDER / kind).rglob("*.json"))


INCLUSION = probes("inclusion")
CONSISTENCY = probes("consistency")


def raw(text):
    return base64.b64decode(text or "", validate=True)


@pytest.fixture(scope="module")
def base(shared):
    return json.loads((shared / "merkle/rfc6962-base.json").read_bytes())


def test_every_probe_is_there(shared):
    assert len(INCLUSION) == 98
    assert len(CONSISTENCY) == 98
    accepted = [
        sum(not json.loads((shared / name).read_bytes())["wantErr"] for name in names)
        for names in (INCLUSION, CONSISTENCY)
    ]
    assert accepted == [6, 6]


@pytest.mark.parametrize("name", INCLUSION)
def test_inclusion_probe_is_judged_as_published(shared, name):
    case = json.loads((shared / name).read_bytes())
    arguments = {
        "leaf": raw(case["leafHash"]),
        "index": case["leafIdx"],
        "size": case["treeSize"],
        "proof": [raw(text) for text in case["proof"] or []],
        "root": raw(case["root"]),
    }
    if case["wantErr"]:
        with pytest.raises(ProofError):
            verifier.verify_inclusion(**arguments)
    else:
        verifier.verify_inclusion(**arguments)


@pytest.mark.parametrize("name", CONSISTENCY)
def test_consistency_probe_is_judged_as_published(shared, name):
    case = json.loads((shared / name).read_bytes())
    arguments = {
        "old_size": case["size1"],
        "new_size": case["size2"],
        "old_root": raw(case["root1"]),
        "new_root": raw(case["root2"]),
        "proof": [raw(text) for text in case["proof"] or []],
    }
    if case["wantErr"]:
        with pytest.raises(ProofError):
            verifier.verify_consistency(**arguments)
    else:
        verifier.verify_consistency(**arguments)


def test_hashes_of_leaf_and_node_are_the_published_ones(base):
    hashes = base["hashes"]
    assert merkle.EMPTY_ROOT.hex() == verifier.EMPTY_ROOT.hex() == hashes["empty_root"]
    assert merkle.leaf_hash(b"").hex() == verifier.leaf_hash(b"").hex() == hashes["empty_leaf"]
    assert merkle.leaf_hash(b"L123456").hex() == verifier.leaf_hash(b"L123456").hex() == hashes["leaf_L123456"]
    assert merkle.node_hash(b"N123", b"N456").hex() == hashes["node_N123_N456"]


def test_roots_are_the_published_ones(base):
    leaves = [merkle.leaf_hash(bytes.fromhex(text)) for text in base["leaves_hex"]]
    assert len(base["roots_hex"]) == len(leaves) + 1 == 9
    frontier, fold, read = merkle.Frontier(), verifier.RootFold(), merkle.tree_of(leaves)
    for size, expected in enumerate(base["roots_hex"]):
        assert merkle.root_of(size, read).hex() == frontier.root().hex() == fold.root().hex() == expected
        if size < len(leaves):
            frontier.append(leaves[size])
            fold.append(leaves[size])


def subtrees(most):
    """(start, end) of every valid subtree, as the published digests order them."""
    for end in range(most + 1):
        for start in range(end + 1):
            width = 1 << max(end - start - 1, 0).bit_length()
            if start == 0 or start == end or start % width == 0:
                yield start, end


LEAVES = [merkle.leaf_hash(bytes([number])) for number in range(130)]
READ = merkle.tree_of(LEAVES)


def from_(start):
    """A reader that counts from `start`, which must be a multiple of every subtree read."""

    def read(level, index):
        assert start % (1 << level) == 0
        return READ(level, index + (start >> level))

    return read


def test_digest_over_the_roots_of_all_subtrees_is_the_published_one(base):
    total = sha256()
    for start, end in subtrees(130):
        found = merkle.EMPTY_ROOT if start == end else merkle.subtree_hash(start, end, READ)
        total.update(b"[%d, %d) %s\n" % (start, end, found.hex().encode()))
    assert total.hexdigest() == base["accumulated"]["subtree_hash"]


def test_digest_over_all_inclusion_proofs_is_the_published_one(base):
    total = sha256()
    for start, end in subtrees(130):
        for index in range(start, end):
            proof = merkle.inclusion_proof(index - start, end - start, from_(start))
            total.update(b"%d [%d, %d)" % (index, start, end))
            total.update("".join(f" {found.hex()}" for found in proof).encode() + b"\n")
            root = merkle.subtree_hash(start, end, READ)
            verifier.verify_inclusion(leaf=LEAVES[index], index=index - start, size=end - start, proof=proof, root=root)
    assert total.hexdigest() == base["accumulated"]["subtree_inclusion"]


def subtree_proof(start, end, low, high, *, known):
    """Consistency of the subtree [start, end) with [low, high), by recursion; the prover's own are those with start 0."""
    if (start, end) == (low, high):
        return [] if known else [merkle.subtree_hash(low, high, READ)]
    middle = low + rfc9162.split(high - low)
    if end <= middle:
        return [*subtree_proof(start, end, low, middle, known=known), merkle.subtree_hash(middle, high, READ)]
    if start >= middle:
        return [*subtree_proof(start, end, middle, high, known=known), merkle.subtree_hash(low, middle, READ)]
    return [*subtree_proof(middle, end, middle, high, known=False), merkle.subtree_hash(low, middle, READ)]


def test_digest_over_all_consistency_proofs_is_the_published_one(base):
    total = sha256()
    for new in range(131):
        for start, end in subtrees(new):
            proof = [] if start == end else subtree_proof(start, end, 0, new, known=True)
            if start == 0 and end > 0:
                assert list(merkle.consistency_proof(end, new, READ)) == proof
            total.update(b"[%d, %d) %d" % (start, end, new))
            total.update("".join(f" {found.hex()}" for found in proof).encode() + b"\n")
    assert total.hexdigest() == base["accumulated"]["subtree_consistency"]


def test_record_hash_and_tree_text_of_go_are_read(base):
    go = base["go_tlog"]
    assert base64.b64encode(merkle.leaf_hash(b"hello world")).decode() == go["record_hash_hello_world_b64"]
    head = parse_checkpoint(go["format_tree"])
    assert (head.origin, head.size, head.root) == (
        "go.sum database tree",
        123456789012,
        merkle.leaf_hash(b"hello world"),
    )
