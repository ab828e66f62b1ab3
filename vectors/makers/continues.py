"""Vectors of ledgers that continue an older one: what the header says of it, held against it."""

from __future__ import annotations

from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import OTHER_LOG, Book
from vectors.makers.shelf import Shelf

OLDER = "ledger.example/older"


def make() -> File:
    out = File(
        "continues",
        ("docs/spec/journal.md", "docs/spec/receipts.md"),
        "what a header says of an older ledger believed, its origin, size or root not compared",
    )
    shelf = Shelf(out)
    older = Book(label="continues older", origin=OLDER, log=OTHER_LOG)
    older.header()
    older.commit()
    for _ in range(3):
        older.add("grant", {"action": "given", "grantee": "ci"})
        older.commit()

    def case(id_: str, comment: str, says: dict[str, Any] | None, given: Book | bytes = older, code: str | None = None,
             flags: str = "", exit_: int | None = None) -> None:  # fmt: skip
        book = Book(label="continues")
        book.header(**({} if says is None else {"continues": says}))
        book.commit()
        shelf.case(id_, comment, book, code, flags, exit_, trust=book.trust(), older=given)

    said = {"origin": OLDER, "size": 4, "root": "sha256:" + older.root.hex()}
    other = "sha256:" + kit.sha(b"another").hex()
    mismatch = "continues.mismatch"
    case("head", "It continues the last head of the older ledger.", said)
    part = {**said, "size": 3, "root": "sha256:" + kit.root(older.leaves[:3]).hex()}
    case("grown", "The older ledger went on after the head that is continued.", part)
    case("root", "Another root.", {**said, "root": other}, code=mismatch, flags="root")
    case("size", "The root of another size.", {**said, "size": 3}, code=mismatch, flags="size")
    case("size-high", "More entries than the older ledger has.", {**said, "size": 5}, code=mismatch, flags="size")
    case("origin", "Another origin.", {**said, "origin": "ledger.example/other"}, code=mismatch, flags="origin")
    case("nothing", "A header that continues nothing.", None, code=mismatch, flags="missing-member")
    altered = older.journal().replace(b'"grantee":"ci"', b'"grantee":"cd"', 1)
    case("older-altered", "The older ledger does not hold: nothing follows from it.", said, altered, "check.unreachable", "altered", 3)  # fmt: skip
    return out
