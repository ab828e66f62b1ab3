"""Vectors of keys over time: rotations, revocations, thieves, each a small ledger of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import ISSUER, ISSUER2, LOG, LOG2, OTHER_ISSUER, OTHER_LOG, Book
from vectors.makers.shelf import Shelf

SPEC = ("docs/spec/keys.md", "docs/spec/entries.md", "docs/spec/heads.md")
CHAIN = "key.chain"


def make() -> File:
    out = File(
        "rotations",
        SPEC,
        "uncommitted next keys, rotations by the old key, retired and revoked keys, hidden revocations, heads of the old log key",
    )
    shelf = Shelf(out)

    def case(
        id_: str,
        comment: str,
        build: Callable[[Book], Any],
        code: str | None = None,
        flags: str = "",
        exit_: int | None = None,
        **more: Any,
    ) -> None:
        book = Book(label=f"rotations {id_}")
        book.header()
        book.commit()
        build(book)
        shelf.case(id_, comment, book, code, flags, exit_, trust=book.trust(), **more)

    _issuer(case)
    _refused(case)
    _revoked(case)
    _log(case)
    return out


def run(book: Book, key: kit.Key) -> str:
    """A whole run sealed by a key, in one commit."""
    book.opening(issuer=key)
    id_ = book.close(issuer=key)
    book.commit()
    return id_


def _issuer(case) -> None:
    def good(book: Book) -> None:
        run(book, ISSUER)
        book.rotate(ISSUER2, ISSUER)
        book.commit()
        run(book, ISSUER2)

    case("issuer", "A rotation of the issuer's key, receipts before and after it; the trust pins the first key.", good)

    def old_after(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER)
        book.commit()
        run(book, ISSUER)

    case(
        "issuer-old-key-after",
        "A receipt sealed by the retired key behind its rotation.",
        old_after,
        "key.retired",
        "retired-key",
        4,
    )

    def new_before(book: Book) -> None:
        run(book, ISSUER2)
        book.rotate(ISSUER2, ISSUER)
        book.commit()

    case("issuer-new-key-before", "A receipt sealed by the next key before its rotation: that key is not in force yet.", new_before, "trust.issuer_mismatch", "early-key", 4)  # fmt: skip

    def late(book: Book) -> None:
        for _ in range(5):
            run(book, ISSUER)
        book.rotate(ISSUER2, ISSUER)
        book.opening(issuer=ISSUER2)
        book.close(issuer=ISSUER2)
        book.commit()

    case("late", "A rotation at index 11, and entries of its own commit behind it.", late)

    def decoy(book: Book) -> None:
        book.opening()
        act = {**book.act(), "arguments": {"kind": "key"}}
        book.close(book.intent(act=act))
        book.commit()

    case("decoy", "Arguments with a member kind that says key move no keyring.", decoy, flags="keyring kind-confusion")

    def hidden(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER)
        book.commit()
        book.keyring = 0
        run(book, ISSUER2)

    case("keyring-behind", "An entry behind a rotation that names the keyring before it, as if there were none.", hidden, "chain.keyring", "hidden-rotation keyring")  # fmt: skip


def _refused(case) -> None:
    def rotation(build: Callable[[Book], Any]) -> Callable[[Book], Any]:
        def made(book: Book) -> None:
            build(book)
            book.commit()

        return made

    flag = "rotation"
    case("next-key", "The rotation that the next cases change.", rotation(lambda book: book.rotate(ISSUER2, ISSUER)))
    case(
        "other-key",
        "To a key that nobody committed.",
        rotation(lambda book: book.rotate(OTHER_ISSUER, ISSUER)),
        CHAIN,
        f"{flag} commitment",
    )
    case("old-key-seals", "Issued and sealed by the retired key: its thief could do that.", rotation(lambda book: book.rotate(ISSUER2, ISSUER, issuer=ISSUER)), CHAIN, f"{flag} thief")  # fmt: skip
    case("old-key-seals-for-next", "Sealed by the retired key in the next key's name.", rotation(lambda book: book.rotate(ISSUER2, ISSUER, seal=ISSUER)), "seal.issuer", f"{flag} thief")  # fmt: skip
    case(
        "unsealed",
        "Without a seal.",
        rotation(lambda book: book.rotate(ISSUER2, ISSUER, seal=False)),
        "seal.absent",
        f"{flag} skipped-seal",
    )
    case(
        "other-name",
        "Under another name than the header's.",
        rotation(lambda book: book.rotate(ISSUER2, ISSUER, name="deploy")),
        CHAIN,
        f"{flag} issuer-name",
    )
    case(
        "retires-another",
        "It retires a key that is not in force.",
        rotation(lambda book: book.rotate(ISSUER2, OTHER_ISSUER)),
        CHAIN,
        flag,
    )
    case("log-commitment", "To the key that was committed for the other role.", rotation(lambda book: book.rotate(LOG2, ISSUER)), CHAIN, f"{flag} commitment key-role")  # fmt: skip
    case("rotate-from-index", "A rotation that says from which index on: only a revocation may.", rotation(lambda book: book.rotate(ISSUER2, ISSUER, from_index=0)), CHAIN, flag)  # fmt: skip
    case("revoke-ahead", "A revocation from an index that is yet to come.", rotation(lambda book: book.rotate(ISSUER2, ISSUER, action="revoke", from_index=9)), CHAIN, flag)  # fmt: skip

    def twice(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER)
        book.rotate(OTHER_ISSUER, ISSUER2)

    case(
        "no-commitment-left",
        "A second rotation where the first committed no next key.",
        rotation(twice),
        CHAIN,
        f"{flag} commitment",
    )

    def twice_committed(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER, next_key=OTHER_ISSUER)
        book.rotate(OTHER_ISSUER, ISSUER2, next_key=kit.NOTARY)

    case("two", "A second rotation where the first committed the key.", rotation(twice_committed))

    def returns(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER, next_key=ISSUER)
        book.rotate(ISSUER, ISSUER2)

    case("returns", "A retired key that returns.", rotation(returns), CHAIN, f"{flag} retired-key")

    def other_role(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER, next_key=LOG)
        book.rotate(LOG, ISSUER2)

    case(
        "log-key-as-issuer",
        "The log key in force as the next issuer key.",
        rotation(other_role),
        CHAIN,
        f"{flag} key-role",
    )

    def reused(book: Book) -> None:
        book.rotate(ISSUER2, ISSUER, next_key=OTHER_ISSUER)
        book.rotate(ISSUER2, ISSUER2)

    case(
        "commitment-used-up",
        "A commitment that was used up, used again.",
        rotation(reused),
        CHAIN,
        f"{flag} commitment",
    )


def _revoked(case) -> None:
    def revoke(book: Book, **members: Any) -> None:
        book.rotate(ISSUER2, ISSUER, action="revoke", **members)
        book.commit()

    def good(book: Book) -> None:
        run(book, ISSUER)
        revoke(book)
        run(book, ISSUER2)

    case("revoked", "A revocation from its own index on: what stands before it stays good.", good)

    def earlier(book: Book) -> None:
        run(book, ISSUER)
        run(book, ISSUER)
        revoke(book, from_index=3)

    case(
        "revoked-from-3",
        "From index 3 on: the second run, at 3 and 4, is not believed.",
        earlier,
        "key.revoked",
        "revoked-key",
        4,
    )

    def at_the_edge(book: Book) -> None:
        run(book, ISSUER)
        book.rotate(ISSUER2, ISSUER, action="revoke", from_index=3)
        book.commit()
        run(book, ISSUER2)

    case("revoked-from-3-edge", "From index 3 on: the run at 1 and 2 stays good.", at_the_edge)

    def one_before(book: Book) -> None:
        run(book, ISSUER)
        revoke(book, from_index=2)

    case(
        "revoked-from-2-edge",
        "From index 2 on: the close of the run is not believed.",
        one_before,
        "key.revoked",
        "revoked-key",
        4,
    )

    def everything(book: Book) -> None:
        revoke(book, from_index=0)

    case("revoked-from-0", "From index 0 on: not even the header.", everything, "key.revoked", "revoked-key", 4)

    def after(book: Book) -> None:
        revoke(book)
        run(book, ISSUER)

    case("revoked-after", "A receipt of the revoked key behind its revocation.", after, "key.revoked", "revoked-key", 4)


def _log(case) -> None:
    def rotate(book: Book, *keys: kit.Key, **members: Any) -> None:
        run(book, ISSUER)
        book.rotate(LOG2, LOG, role="log", **members)
        book.commit(*keys)

    def good(book: Book) -> None:
        rotate(book, LOG, LOG2)
        book.log = LOG2
        run(book, ISSUER)

    case("log", "A rotation of the log key: its commit bears both lines, later heads the new one.", good)
    case("log-every-head", "The same, every head looked at.", good, require=("every-head",))

    def old_head(book: Book) -> None:
        rotate(book, LOG, LOG2)
        run(book, ISSUER)

    case(
        "log-old-key-after",
        "A head of the retired log key behind its rotation.",
        old_head,
        "head.unsigned",
        "retired-key",
    )

    def old_only(book: Book) -> None:
        rotate(book, LOG)

    case(
        "log-old-key-only",
        "The commit of the rotation signed by the retired key alone.",
        old_only,
        "head.unsigned",
        "retired-key",
    )

    def other(book: Book) -> None:
        run(book, ISSUER)
        book.rotate(OTHER_LOG, LOG, role="log")
        book.commit(OTHER_LOG)

    case(
        "log-other-key",
        "To a log key that nobody committed: its head is not signed by the key in force.",
        other,
        CHAIN,
        "rotation commitment",
    )

    def early(book: Book) -> None:
        run(book, ISSUER)
        book.opening()
        book.close()
        book.commit(LOG2)

    case(
        "log-next-key-early",
        "A head signed by the committed next key before any rotation.",
        early,
        "head.unsigned",
        "early-key",
    )

    def by_issuer(book: Book) -> None:
        run(book, ISSUER)
        book.rotate(LOG2, LOG, role="log", issuer=ISSUER)
        book.commit(LOG, LOG2)

    case("log-by-issuer", "A rotation of the log key that the issuer's key seals.", by_issuer, CHAIN, "rotation thief")
