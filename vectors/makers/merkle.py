"""Vectors of merkle roots and proofs."""

from __future__ import annotations

from vectors.makers import kit
from vectors.makers.case import File

ENTRIES = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    b"\x40\x41\x42\x43",
    b"\x50" * 8,
    b"\x60" * 16,
    b"entry 8",
    b"entry 9",
    b"entry 10",
    b"entry 11",
    b"entry 12",
]
BAD, ELSE, PARTED = "proof.malformed", "proof.inclusion", "proof.consistency"


def make() -> File:
    out = File(
        "merkle",
        ("docs/spec/merkle.md",),
        "missing domain prefixes, doubled leaves, proofs of the wrong length, sizes not compared",
    )
    _roots(out)
    _inclusion(out)
    _consistency(out)
    return out


def _roots(out: File) -> None:
    for size in range(len(ENTRIES) + 1):
        some = ENTRIES[:size]
        out.case("merkle.root", f"root-{size}", f"The root of {size} entries.", {"entries": [found.hex() for found in some]},
                 value=kit.root([kit.leaf(found) for found in some]).hex(), flags="domain-separation split")  # fmt: skip
    doubled = [*ENTRIES[:3], ENTRIES[2]]
    out.case("merkle.root", "root-doubled", "Three entries and the last once more: another root than that of three.",
             {"entries": [found.hex() for found in doubled]}, value=kit.root([kit.leaf(found) for found in doubled]).hex(),
             flags="doubled-leaf")  # fmt: skip
    pair = b"\x01" + kit.leaf(ENTRIES[0]) + kit.leaf(ENTRIES[1])
    out.case("merkle.root", "root-node-as-entry", "An entry that is what a node hashes: it is a leaf, and not that node.",
             {"entries": [pair.hex()]}, value=kit.leaf(pair).hex(), flags="domain-separation")  # fmt: skip


def _inclusion(out: File) -> None:
    def case(
        id_: str, comment: str, code: str | None = None, flags: str = "", *, index: int, size: int, **changed
    ) -> None:
        leaves = [kit.leaf(found) for found in ENTRIES[: max(size, 1)]]
        inside = min(max(index, 0), len(leaves) - 1)
        given = {
            "entry": ENTRIES[inside],
            "index": index,
            "size": size,
            "proof": kit.inclusion(inside, leaves),
            "root": kit.root(leaves),
            **changed,
        }
        out.case("merkle.inclusion", id_, comment, {
            "entry": given["entry"].hex(), "index": given["index"], "size": given["size"],
            "proof": [found.hex() for found in given["proof"]], "root": given["root"].hex(),
        }, code=code, flags=flags)  # fmt: skip

    for index, size in (
        (0, 1),
        (0, 2),
        (1, 2),
        (0, 3),
        (2, 3),
        (0, 4),
        (3, 4),
        (4, 5),
        (3, 7),
        (6, 7),
        (7, 8),
        (0, 13),
        (8, 13),
        (12, 13),
    ):
        case(f"inclusion-{index}-of-{size}", f"Entry {index} of {size}.", index=index, size=size)
    leaves = [kit.leaf(found) for found in ENTRIES[:7]]
    proof, root = kit.inclusion(3, leaves), kit.root(leaves)
    for number in range(3):
        changed = [*proof[:number], kit.flip(proof[number], 31), *proof[number + 1 :]]
        case(f"inclusion-bit-{number}", f"One bit of hash {number}.", ELSE, "bit-flip", index=3, size=7, proof=changed)
    case("inclusion-root-bit", "One bit of the root.", ELSE, "bit-flip", index=3, size=7, root=kit.flip(root))
    case("inclusion-entry-bit", "One bit of the entry.", ELSE, "bit-flip", index=3, size=7, entry=kit.flip(ENTRIES[3]))
    case(
        "inclusion-swapped", "Two hashes swapped.", ELSE, "order", index=3, size=7, proof=[proof[1], proof[0], proof[2]]
    )
    case(
        "inclusion-other-index",
        "The proof of entry 3 for entry 2.",
        ELSE,
        "index",
        index=2,
        size=7,
        proof=proof,
        entry=ENTRIES[3],
    )
    case("inclusion-more", "A hash too many.", BAD, "proof-length", index=3, size=7, proof=[*proof, root])
    case("inclusion-less", "A hash too few.", BAD, "proof-length", index=3, size=7, proof=proof[:-1])
    case("inclusion-none", "No hashes.", BAD, "proof-length", index=3, size=7, proof=[])
    case("inclusion-one-more", "A hash where a size of 1 has none.", BAD, "proof-length", index=0, size=1, proof=[root])
    case(
        "inclusion-root-is-leaf",
        "With no hashes only a leaf alone is its own root.",
        BAD,
        "proof-length",
        index=0,
        size=2,
        proof=[],
        root=leaves[0],
    )
    case("inclusion-outside", "An index that is the size.", BAD, "range", index=7, size=7, proof=proof)
    case(
        "inclusion-far-outside", "An index that is the index and the size.", BAD, "range", index=11, size=8, proof=proof
    )
    case("inclusion-minus", "An index below zero.", BAD, "range", index=-1, size=7, proof=proof)
    case("inclusion-size-0", "Nothing is in a tree of no entries.", BAD, "range", index=0, size=0, proof=[])
    case("inclusion-size", "A proof in 7 entries under the claim of 8: it holds, and only the size in the signed head tells.", flags="size", index=0,
         size=8, proof=kit.inclusion(0, leaves), root=root)  # fmt: skip
    case(
        "inclusion-size-less",
        "A size whose proof is shorter.",
        BAD,
        "size proof-length",
        index=3,
        size=4,
        proof=proof,
        root=root,
    )
    case(
        "inclusion-size-more",
        "A size whose proof is longer.",
        BAD,
        "size proof-length",
        index=3,
        size=13,
        proof=proof,
        root=root,
    )
    case("inclusion-31", "A hash of 31 bytes.", BAD, "length", index=3, size=7, proof=[proof[0][:-1], *proof[1:]])
    case("inclusion-33", "A hash of 33 bytes.", BAD, "length", index=3, size=7, proof=[proof[0] + b"\0", *proof[1:]])
    case("inclusion-root-31", "A root of 31 bytes.", BAD, "length", index=3, size=7, root=root[:-1])
    node_entry = kit.leaf(ENTRIES[0]) + kit.leaf(ENTRIES[1])
    case("inclusion-node-as-entry", "A node shown as an entry: only the prefixes tell it from one.", ELSE, "domain-separation", index=0, size=2,
         entry=node_entry, proof=[kit.node(leaves[2], leaves[3])], root=kit.root(leaves[:4]))  # fmt: skip
    bare = [kit.sha(found) for found in ENTRIES[:2]]
    case(
        "inclusion-no-prefix",
        "Hashes without prefixes.",
        ELSE,
        "domain-separation",
        index=0,
        size=2,
        proof=[bare[1]],
        root=kit.sha(bare[0] + bare[1]),
    )
    case("inclusion-leaf-prefix-missing", "Leaves without prefix, nodes with one.", ELSE, "domain-separation", index=0, size=2, proof=[bare[1]],
         root=kit.node(bare[0], bare[1]))  # fmt: skip
    case("inclusion-node-prefix-missing", "Leaves with a prefix, nodes without.", ELSE, "domain-separation", index=0, size=2, proof=[leaves[1]],
         root=kit.sha(leaves[0] + leaves[1]))  # fmt: skip


def _consistency(out: File) -> None:
    def case(
        id_: str, comment: str, code: str | None = None, flags: str = "", *, old: int, new: int, **changed
    ) -> None:
        leaves = [kit.leaf(found) for found in ENTRIES]
        proof = kit.consistency(old, leaves[:new]) if 0 < old <= new else []
        given = {
            "old_root": kit.root(leaves[: max(old, 0)]),
            "new_root": kit.root(leaves[:new]),
            "proof": proof,
            **changed,
        }
        out.case("merkle.consistency", id_, comment, {
            "old_size": old, "old_root": given["old_root"].hex(), "new_size": new, "new_root": given["new_root"].hex(),
            "proof": [found.hex() for found in given["proof"]],
        }, code=code, flags=flags)  # fmt: skip

    for old, new in (
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 3),
        (2, 4),
        (3, 4),
        (3, 5),
        (4, 5),
        (4, 7),
        (6, 7),
        (6, 8),
        (7, 8),
        (7, 13),
        (8, 13),
        (12, 13),
        (13, 13),
    ):
        case(f"consistency-{old}-to-{new}", f"From {old} to {new}.", old=old, new=new)
    leaves = [kit.leaf(found) for found in ENTRIES]
    proof = kit.consistency(6, leaves[:13])
    for number in range(len(proof)):
        changed = [*proof[:number], kit.flip(proof[number], 7), *proof[number + 1 :]]
        case(
            f"consistency-bit-{number}", f"One bit of hash {number}.", PARTED, "bit-flip", old=6, new=13, proof=changed
        )
    case(
        "consistency-old-root-bit",
        "One bit of the old root.",
        PARTED,
        "bit-flip",
        old=6,
        new=13,
        old_root=kit.flip(kit.root(leaves[:6])),
    )
    case(
        "consistency-new-root-bit",
        "One bit of the new root.",
        PARTED,
        "bit-flip",
        old=6,
        new=13,
        new_root=kit.flip(kit.root(leaves)),
    )
    case("consistency-power-old-root-bit", "One bit of the old root, where it stands in front of the proof.", PARTED, "bit-flip", old=4, new=7,
         old_root=kit.flip(kit.root(leaves[:4])))  # fmt: skip
    case(
        "consistency-roots-swapped",
        "The two roots swapped.",
        PARTED,
        "order",
        old=6,
        new=13,
        old_root=kit.root(leaves),
        new_root=kit.root(leaves[:6]),
    )
    case(
        "consistency-same-size",
        "One size with two roots.",
        PARTED,
        "size fork",
        old=4,
        new=4,
        new_root=kit.root(leaves[1:5]),
    )
    case(
        "consistency-same-size-hash",
        "One size, equal roots, and a hash too many.",
        BAD,
        "proof-length",
        old=4,
        new=4,
        proof=[leaves[0]],
    )
    case(
        "consistency-from-0",
        "From nothing: everything is consistent with nothing.",
        BAD,
        "range empty",
        old=0,
        new=4,
        proof=[],
    )
    case(
        "consistency-backwards", "To a smaller size.", BAD, "range", old=7, new=4, proof=kit.consistency(4, leaves[:7])
    )
    case("consistency-none", "No hashes between different sizes.", BAD, "proof-length", old=4, new=7, proof=[])
    case("consistency-none-same-root", "No hashes between different sizes, and equal roots.", BAD, "proof-length size", old=4, new=7, proof=[],
         new_root=kit.root(leaves[:4]))  # fmt: skip
    case("consistency-more", "A hash too many.", BAD, "proof-length", old=6, new=13, proof=[*proof, leaves[0]])
    case("consistency-less", "A hash too few.", BAD, "proof-length", old=6, new=13, proof=proof[:-1])
    case("consistency-power-first", "The root of 4 in front, where a proof leaves it out.", BAD, "proof-length power-of-two", old=4, new=7,
         proof=[kit.root(leaves[:4]), *kit.consistency(4, leaves[:7])])  # fmt: skip
    case("consistency-31", "A hash of 31 bytes.", BAD, "length", old=6, new=13, proof=[proof[0][:-1], *proof[1:]])
    rewritten = [*leaves[:2], kit.leaf(b"another entry"), *leaves[3:7]]
    case("consistency-rewritten", "A history whose third entry is another: its own proof does not lead to the old root.", PARTED, "fork rewritten-history",
         old=4, new=7, proof=kit.consistency(4, rewritten), new_root=kit.root(rewritten))  # fmt: skip
