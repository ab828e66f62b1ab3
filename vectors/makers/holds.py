"""Vectors of holds: small ledgers in which something is erased, by recorders that kept a hold and by some that did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import Book
from vectors.makers.shelf import Shelf

SPEC = ("docs/spec/artifacts.md",)
STORED, OTHER = kit.digest(b"stored bytes"), kit.digest(b"other stored bytes")
ERASED = "hold.erased"
MENTION = {
    "artifacts": [{"digest": STORED, "media_type": "text/plain", "name": "list", "size_bytes": 12, "salted": False}]
}
"""The member by which a receipt refers to the stored bytes."""


def make() -> File:
    out = File("holds", SPEC, "artifacts erased while a hold was in force, and after it had ended")
    shelf = Shelf(out)

    def rule(
        id_: str, comment: str, build: Callable[[Book], Any], code: str | None = None, exit_: int | None = None
    ) -> None:
        book = Book(label=f"holds {id_}")
        book.header()
        build(book)
        book.commit()
        exit_ = 6 if code is not None and exit_ is None else exit_
        shelf.case(id_, comment, book, code, "rules" if code else "", exit_, trust=book.trust())

    _of_artifacts(rule)
    _of_runs(rule)
    return out


def place(book: Book, **members: Any) -> str:
    return book.add("hold", {"action": "placed", **(members or {"digest": STORED})})


def release(book: Book, hold: str, **options: Any) -> str:
    return book.add("hold", {"action": "released", "hold": hold}, **options)


def erase(book: Book, *receipts: str, digest: str = STORED) -> str:
    return book.add("erasure", {"digest": digest, "reason": "erasure.request", "receipts": list(receipts)})


def _of_artifacts(rule) -> None:
    def then(*steps: Callable[[Book, dict[str, str]], Any]) -> Callable[[Book], None]:
        """A closed run that refers to the bytes, then these steps, each of which sees what those before it made, by its place."""

        def build(book: Book) -> None:
            book.opening()
            outcome = book.outcome(book.intent(), **MENTION)
            book.close(outcome)
            made = {"outcome": outcome}
            for step in steps:
                made["last"] = step(book, made) or made.get("last", "")

        return build

    def holds(book: Book, made: dict[str, str]) -> str:
        made["hold"] = place(book)
        return made["hold"]

    def releases(book: Book, made: dict[str, str]) -> str:
        return release(book, made["hold"])

    def erases(book: Book, made: dict[str, str]) -> str:
        return erase(book, made["outcome"])

    def another(book: Book, _: dict[str, str]) -> str:
        return place(book, digest=STORED, matter="case 2")

    def other_bytes(book: Book, _: dict[str, str]) -> str:
        return place(book, digest=OTHER)

    def not_theirs(book: Book, made: dict[str, str]) -> str:
        return release(book, made["hold"], issuer=kit.OTHER_ISSUER)

    def of_nothing(book: Book, _: dict[str, str]) -> str:
        return release(book, kit.digest(b"nowhere"))

    rule("erased", "Erased; nothing was held.", then(erases))
    rule("held-erased", "Erased while it was held.", then(holds, erases), ERASED)
    rule("released-erased", "Erased after the hold was released.", then(holds, releases, erases))
    rule("erased-held", "Held only after it was erased.", then(erases, holds))
    rule("erased-released", "The hold was released only after that.", then(holds, erases, releases), ERASED)
    rule("held-other", "Other bytes were held.", then(other_bytes, erases))
    rule("held-twice", "One of two holds was released.", then(holds, another, releases, erases), ERASED)
    rule(
        "released-by-another",
        "Another issuer than the one that placed it released it.",
        then(holds, not_theirs, erases),
        ERASED,
    )
    rule("released-nothing", "A release that names no hold.", then(holds, of_nothing, erases), ERASED)


def _of_runs(rule) -> None:
    def tree(which: str, named: str) -> Callable[[Book], None]:
        """A run with one below it, and a run beside them; `which` is held, and the erasure names an outcome of `named`."""

        def build(book: Book) -> None:
            runs, outcomes = {}, {}
            above = runs["above"] = book.opening()
            intent = book.intent(run=above)
            below = runs["below"] = book.opening(parent_opening=above, parent_intent=intent)
            outcomes["below"] = book.outcome(book.intent(run=below), run=below, **MENTION)
            closed = book.close(outcomes["below"], run=below)
            outcomes["above"] = book.outcome(intent, closed, run=above, **MENTION)
            book.close(outcomes["above"], run=above)
            beside = runs["beside"] = book.opening()
            outcomes["beside"] = book.outcome(book.intent(run=beside), run=beside, **MENTION)
            book.close(outcomes["beside"], run=beside)
            place(book, held_run=runs[which])
            erase(book, *([outcomes[named]] if named in outcomes else [kit.digest(named.encode())]))

        return build

    rule("run-held", "A receipt of the run that is held refers to it.", tree("above", "above"), ERASED)
    rule(
        "run-below-held", "A receipt of a run below the one that is held refers to it.", tree("above", "below"), ERASED
    )
    rule("run-above-not", "Only a receipt of the run above the one that is held refers to it.", tree("below", "above"))
    rule("run-beside", "Only a receipt of another run refers to it.", tree("above", "beside"))
    rule(
        "run-nowhere",
        "The erasure names a receipt that is not there.",
        tree("above", "nowhere"),
        "hold.receipt_absent",
        3,
    )
