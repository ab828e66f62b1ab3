"""Vectors of published trees: the files of a static server, whole and one file from whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import LOG, OTHER_LOG, Book
from vectors.makers.proofs import pins

Tree = dict[str, bytes]
HASH, ENTRIES = "tile/0/000.p/6", "tile/entries/000.p/6"
MANY = 258


def files_of(book: Book) -> Tree:
    """The files of a tree of at most 65,535 entries."""
    made: Tree = {"checkpoint": book.notes[-1].encode()}
    leaves = book.leaves
    for start in range(0, book.size, 256):
        rows = book.rows[start : start + 256]
        end = f"{start // 256:03d}" + ("" if len(rows) == 256 else f".p/{len(rows)}")
        made[f"tile/0/{end}"] = b"".join(leaves[start : start + 256])
        made[f"tile/entries/{end}"] = b"".join(len(row.entry).to_bytes(2, "big") + row.entry for row in rows)
    full = book.size // 256
    if full:
        made[f"tile/1/000.p/{full}"] = b"".join(kit.root(leaves[256 * at : 256 * (at + 1)]) for at in range(full))
    return made


def ledger(entries: int = 6, **change: Any) -> Book:
    """A header and grants; `change` holds entry members of the third entry."""
    book = Book(label="published")
    book.header()
    for number in range(1, entries):
        members = change if number == 2 else {}
        book.add("grant", {"action": "given", "grantee": "ci"}, entry_members=members)
    book.commit()
    return book


def make() -> File:
    out = File(
        "published",
        ("docs/spec/published.md", "docs/spec/merkle.md", "docs/spec/heads.md"),
        "tiles not compared with the entries, widths and lengths not checked, checkpoints of other trees",
    )
    shelf = _Shelf(out)
    book = ledger()
    tree, trust = files_of(book), book.trust()

    def case(id_: str, comment: str, given: Mapping[str, bytes | None], code: str | None = None, flags: str = "",
             exit_: int | None = None, **more: Any) -> None:  # fmt: skip
        shelf.case(id_, comment, {**tree, **given}, code, flags, exit_, **{"trust": trust, **more})

    case("tree", "A tree of six entries.", {})
    case("not-asked", "It holds no receipts, and that is said.", {}, "check.not_asked", "", 0)
    case("stray", "A file that belongs to no tree.", {"robots.txt": b"x"})
    _tiles(case, tree)
    _checkpoint(case, book)
    _entries(shelf)
    case("trust-none", "No trust.", {}, "trust.log_key_unpinned", "trust", 3, trust=None)
    case("trust-other-log", "The origin is pinned with another key.", {}, "trust.log_key_mismatch", "trust", 4, trust=pins(book, log=OTHER_LOG))  # fmt: skip
    case("trust-other-header", "The origin is pinned with another header.", {}, "trust.header_mismatch", "trust", 4, trust=pins(book, header=kit.digest(b"x")))  # fmt: skip
    case("memory", "This head is remembered.", {}, memory=book.notes[-1])
    grown = ledger(8)
    case("memory-longer", "A longer head is remembered.", {}, "head.shorter", "cut-tail", memory=grown.notes[-1])
    begin = kit.head_note(book.origin, 4, kit.root(book.leaves[:4]), LOG)
    case("memory-beginning", "Its beginning is remembered.", {}, memory=begin)
    other = kit.head_note(book.origin, 4, kit.sha(b"another"), LOG)
    case("memory-forked", "A head that it does not begin with is remembered.", {}, "head.forked", "fork", memory=other)
    _many(shelf)
    return out


def _tiles(case, tree: Tree) -> None:
    hashes, entries = tree[HASH], tree[ENTRIES]
    case("tile-missing", "The hash tile is not there.", {HASH: None}, "tile.missing", "missing-file")
    case("entries-missing", "The entries are not there.", {ENTRIES: None}, "tile.missing", "missing-file")
    bit = kit.flip(hashes, 70)
    case("tile-bit", "One bit of the hash tile.", {HASH: bit}, "tile.hash", "bit-flip")
    swapped = hashes[32:64] + hashes[:32] + hashes[64:]
    case("tile-swapped", "Two hashes swapped.", {HASH: swapped}, "tile.hash", "swapped")
    case("tile-short", "A hash tile one byte short.", {HASH: hashes[:-1]}, "tile.malformed", "width")
    case("tile-long", "A byte behind the hashes.", {HASH: hashes + b"\0"}, "tile.malformed", "width")
    case("tile-wide", "A hash behind the hashes.", {HASH: hashes + bytes(32)}, "tile.malformed", "width")
    case(
        "tile-five",
        "A tile of five hashes only.",
        {HASH: None, "tile/0/000.p/5": hashes[:160]},
        "tile.missing",
        "width",
    )
    case("tile-empty", "An empty hash tile.", {HASH: b""}, "tile.malformed", "width")
    case("entries-cut", "Entries that end inside the last one.", {ENTRIES: entries[:-1]}, "tile.malformed", "truncated")
    case("entries-more", "A byte behind the entries.", {ENTRIES: entries + b"\0"}, "tile.malformed", "extra-bytes")
    case("entries-empty-one", "An empty entry behind the entries.", {ENTRIES: entries + b"\0\0"}, "tile.malformed", "extra-bytes")  # fmt: skip
    first = 2 + int.from_bytes(entries[:2], "big")
    case("entries-five", "The first entry is left out.", {ENTRIES: entries[first:]}, "tile.malformed", "removed")
    case("entries-bit", "Another time in an entry.", {ENTRIES: entries.replace(b".002Z", b".009Z", 1)}, "tile.hash", "altered")  # fmt: skip
    both = entries.replace(b".012Z", b".019Z", 1)
    data, leaves = both, []
    while data:
        end = 2 + int.from_bytes(data[:2], "big")
        leaves.append(kit.leaf(data[2:end]))
        data = data[end:]
    case("entries-and-tile", "Another time in the last entry, and the hash tile made to fit.", {ENTRIES: both, HASH: b"".join(leaves)}, "head.root", "altered root")  # fmt: skip


def _checkpoint(case, book: Book) -> None:
    origin, size, root = book.origin, book.size, book.root

    def head(
        id_: str, comment: str, note: str | bytes | None, code: str | None, flags: str, exit_: int | None = None
    ) -> None:
        given = note.encode() if isinstance(note, str) else note
        case(f"checkpoint-{id_}", comment, {"checkpoint": given}, code, flags, exit_)

    head("missing", "No checkpoint.", None, "head.missing", "missing-file")
    head("empty", "An empty one.", b"", "head.malformed", "truncated")
    head("root", "The log signed another root.", kit.head_note(origin, size, kit.flip(root), LOG), "head.root", "root")
    head(
        "size", "A size too low: other tiles belong to it.", kit.head_note(origin, 5, root, LOG), "tile.missing", "size"
    )
    head("size-high", "A size too high.", kit.head_note(origin, 7, root, LOG), "tile.missing", "size")
    head("other-key", "Signed by another key under this origin.", kit.head_note(origin, size, root, OTHER_LOG), "trust.log_key_mismatch", "key", 4)  # fmt: skip
    head("stranger-first", "A line of another key first.", kit.head_note(origin, size, root, OTHER_LOG, LOG), None, "first-signature")  # fmt: skip
    text = kit.checkpoint(origin, size, root)
    line = kit.signature_line(origin, kit.note_key_id(origin, LOG.public), kit.flip(LOG.sign(text.encode()), 5))
    head("bit", "One bit of its signature.", text + "\n" + line, "head.signature", "bit-flip")
    head("good-bad", "A bad line of the log key behind the good one.", book.notes[-1] + line, "head.signature", "first-signature")  # fmt: skip
    stranger = text + "\n" + kit.note_line(text, "witness.example", OTHER_LOG)
    head("unsigned", "A line under another name only.", stranger, "head.unsigned", "unsigned")
    head("extension", "A signed extension line.", kit.head_note(origin, size, root, LOG, extensions=("more",)), "head.malformed", "extension")  # fmt: skip
    head("leading-zero", "A signed size with a leading zero.", kit.head_note(origin, "06", root, LOG), "head.malformed", "leading-zero")  # fmt: skip
    empty = kit.head_note(origin, 0, kit.sha(b""), LOG)
    head("nothing", "A signed head of no entries.", empty, "coverage.empty", "nothing-verified", 5)


def _entries(shelf: _Shelf) -> None:
    """Trees whose signed head covers an unlawful chain."""

    def case(id_: str, comment: str, code: str, flags: str, exit_: int | None = None, **change: Any) -> None:
        book = ledger(**change)
        shelf.case(f"entry-{id_}", comment, files_of(book), code, flags, exit_, trust=book.trust())

    case("index", "An entry with another index.", "chain.index", "index", index=3)
    case("previous", "An entry that does not name the one before.", "chain.previous", "chain-link", previous=kit.ZERO)
    case("layout", "An index with a leading zero.", "entry.malformed", "leading-zero", index="02")
    case(
        "later", "An entry of a later version.", "format.unknown", "unknown-format", 3, schema="receipt-ledger.entry/v2"
    )
    repeated = ledger(2).rows[1].id
    case("repeated", "A receipt id twice.", "receipt.repeated", "replay", receipt=repeated)
    clock = {"recorded_at": "2026-11-30T08:00:00.000Z"}
    case("clock-back", "A clock that went back.", "time.step_back", "", 0, **clock)
    book = ledger(3)
    book.rotate(kit.LOG2, LOG, role="log")
    book.log = kit.LOG2
    book.add("grant", {"action": "given", "grantee": "ci"})
    book.commit()
    shelf.case("rotated", "A key entry, whose receipt is not in the tree: what it did to the log key is not known.", files_of(book),
               "check.unreachable", "rotation", 3, trust=book.trust())  # fmt: skip


def _many(shelf: _Shelf) -> None:
    book = ledger(MANY)
    tree, trust = files_of(book), book.trust()

    def case(
        id_: str, comment: str, given: Mapping[str, bytes | None], code: str | None = None, flags: str = ""
    ) -> None:
        shelf.case(f"many-{id_}", comment, {**tree, **given}, code, flags, trust=trust)

    case("tree", "258 entries: a full tile, a partial one, and one of level 1.", {})
    hashes, above = tree["tile/0/000"], tree["tile/1/000.p/1"]
    case(
        "bit",
        "One bit of the last hash of the full tile.",
        {"tile/0/000": kit.flip(hashes, 8191)},
        "tile.hash",
        "bit-flip",
    )
    case(
        "above-bit", "One bit of the tile of level 1.", {"tile/1/000.p/1": kit.flip(above, 31)}, "tile.hash", "bit-flip"
    )
    case("above-missing", "No tile of level 1.", {"tile/1/000.p/1": None}, "tile.missing", "missing-file")
    case("above-short", "A tile of level 1 of 31 bytes.", {"tile/1/000.p/1": above[:31]}, "tile.malformed", "width")
    case("short", "The full tile one hash short.", {"tile/0/000": hashes[:-32]}, "tile.malformed", "width")
    case("partial-missing", "No partial hash tile.", {"tile/0/001.p/2": None}, "tile.missing", "missing-file")
    case("entries-missing", "No partial entries.", {"tile/entries/001.p/2": None}, "tile.missing", "missing-file")
    fewer = ledger(200)
    given = {**tree, "checkpoint": fewer.notes[-1].encode()}
    shelf.case("many-partial-gone", "An older checkpoint of 200 entries over full tiles: their beginning is what the partial ones were.",
               given, flags="partial-tile", trust=trust)  # fmt: skip
    wrong = {**given, "tile/0/000": kit.flip(hashes, 100)}
    shelf.case("many-partial-gone-bit", "And one bit of that beginning.", wrong, "tile.hash", "partial-tile bit-flip", trust=trust)  # fmt: skip


class _Shelf:
    """Adds cases of the check `published`; equal bytes of several trees are one file."""

    def __init__(self, out: File) -> None:
        self.out = out
        self.names: dict[bytes, str] = {}

    def case(self, id_: str, comment: str, given: Mapping[str, bytes | None], code: str | None = None, flags: str = "",
             exit_: int | None = None, *, trust: str | None, memory: str | None = None) -> None:  # fmt: skip
        listed = [
            {"path": path, "file": self._name(id_, path, data)}
            for path, data in sorted(given.items())
            if data is not None
        ]
        input_: dict[str, object] = {"files": listed}
        if trust is not None:
            input_["trust"] = trust
        if memory is not None:
            input_["memory"] = memory
        self.out.case("published", id_, comment, input_, code=code, flags=flags, exit_=exit_)

    def _name(self, id_: str, path: str, data: bytes) -> str:
        if data not in self.names:
            name = f"published/{id_}-{path.replace('/', '-').replace('.', '-')}.bin"
            self.names[data] = name
            self.out.beside[name] = data
        return self.names[data]
