"""Vectors of what notaries give: counter-seals and cosigned heads in bundles, on heads, and sealed documents alone."""

from __future__ import annotations

import json
from typing import Any

from vectors.makers import kit
from vectors.makers.bundles import RUN, base
from vectors.makers.case import File
from vectors.makers.kit import NOTARY, OTHER_ISSUER, OTHER_LOG, WITNESS, Book
from vectors.makers.proofs import Files, bundle, copy, hashes, note_at, tlog_proof

TYPE = "application/vnd.receipt-ledger.counter-seal+json"
NAME = "notary.example"
AT = "2026-11-30T09:15:05.000Z"
SECONDS = 1796030105
SPEC = ("docs/spec/notary.md", "docs/spec/bundles.md", "docs/spec/trust.md")


def pinned(key: kit.Key = NOTARY, cosigner: kit.Key = WITNESS, name: str = NAME, quorum: int = 0) -> tuple[str, str]:
    """The lines of a trust file that pin a notary: those that stand first, and the rest."""
    first = f"quorum = {quorum}\n\n" if quorum else ""
    return first, f'\n[[notary]]\nname = "{name}"\nkey = "{key.id}"\ncosigner = "{cosigner.id}"\n'


def payload(book: Book, index: int = 6, size: int = 7, **changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "entry_index": index,
        "envelope": kit.digest(book.rows[index].envelope),
        "issued_at": AT,
        "key": NOTARY.id,
        "mode": "digest_only",
        "notary": NAME,
        "origin": book.origin,
        "receipt": book.rows[index].id,
        "root": "sha256:" + kit.root(book.leaves[:size]).hex(),
        "schema": "receipt-ledger.counter-seal/v1",
        "size": size,
        "verdict": "not_checked",
    }
    value.update(changes)
    return {name: found for name, found in value.items() if found is not None}


def document(book: Book, key: kit.Key = NOTARY, type_: str = TYPE, **changes: Any) -> bytes:
    return kit.sealed(kit.canonical(payload(book, **changes)), key, type_)


def carried(book: Book, given: bytes, size: int = 7, **changes: Any) -> dict[str, Any]:
    """An item of `counter_seals`."""
    proof = hashes(kit.consistency(size, book.leaves)) if size < book.size else []
    return {"consistency": proof, "seal": json.loads(given), **changes}


def cosigned(book: Book, size: int | None = None, key: kit.Key = WITNESS, name: str = NAME, **changes: Any) -> str:
    """A head with a cosignature."""
    note = note_at(book, size)
    text = changes.get("text", note[: note.index("\n\n") + 1])
    return note + kit.cosignature_line(text, name, key, SECONDS)


def make() -> File:
    out = File(
        "counter-seals",
        SPEC,
        "seals of other receipts, forks behind an old seal, keys that a document brings, one notary counted twice",
    )
    book = base()
    first, notary = pinned()
    files = Files(out, first + book.trust() + notary)
    _bundles(files, book)
    _heads(files, book)
    _documents(files, book)
    return out


def _bundles(files: Files, book: Book) -> None:
    case, bare = files.case, bundle(book, 6, RUN)

    def one(id_: str, comment: str, seal: dict[str, Any], *rest: Any, **more: Any) -> None:
        case(id_, comment, copy(bare, counter_seals=[seal]), *rest, **more)

    good = carried(book, document(book))
    wanted = {"require": ("counter-seal=1",)}
    one("sealed", "The run is counter-sealed under an older head.", good, **wanted)
    one("sealed-newest", "And under the very head of the bundle.", carried(book, document(book, size=10), 10), **wanted)
    other = carried(book, document(book, index=1, size=7))
    one("sealed-beside", "The opening is sealed; the head it was seen under covers the run.", other, **wanted)
    _quorum, rest = pinned(quorum=1)
    case("quorum", "Trust asks for a notary, and none vouches.", bare, "trust.quorum", "quorum", 4, trust=_quorum + book.trust() + rest)  # fmt: skip
    one("quorum-kept", "And one does.", good, trust=_quorum + book.trust() + rest)
    case("required", "One is asked for, and none is there.", bare, "trust.quorum", "quorum", 4, require=("counter-seal=1",))  # fmt: skip
    twice = copy(bare, counter_seals=[good, carried(book, document(book, size=10), 10)])
    case("twice", "One notary, twice, where two are asked for.", twice, "trust.quorum", "quorum counted-twice", 4, require=("counter-seal=2",))  # fmt: skip
    one("too-early", "The head that was sealed does not cover the run.", carried(book, document(book, index=1, size=4), 4), "trust.quorum", "quorum", 4, **wanted)  # fmt: skip
    one("unpinned", "A notary that trust does not name, which is asked for.", good, "trust.quorum", "embedded-key", 4, trust=book.trust(), **wanted)  # fmt: skip
    one("unpinned-noted", "And where none is asked for.", good, trust=book.trust())
    first, rest = pinned(OTHER_LOG)
    one("mismatch", "Trust names the notary with another key.", good, "trust.notary_mismatch", "embedded-key", 4, trust=first + book.trust() + rest)  # fmt: skip
    first, rest = pinned(name="another.example")
    one("other-name", "Trust names the key under another name.", good, "trust.notary_mismatch", "embedded-key", 4, trust=first + book.trust() + rest)  # fmt: skip
    one("issuer", "Sealed by a pinned issuer.", carried(book, kit.sealed(kit.canonical(payload(book, key=OTHER_ISSUER.id)), OTHER_ISSUER, TYPE)), "trust.notary_mismatch", "embedded-key", 4)  # fmt: skip
    signed = document(book)
    flipped = signed.replace(b'"entry_index":6', b'"entry_index":5')
    one("altered", "Another place than was sealed.", carried(book, flipped), "counterseal.signature", "tampered")
    one("other-key", "Sealed by another key than it names.", carried(book, kit.sealed(kit.canonical(payload(book)), OTHER_LOG, TYPE)), "counterseal.signature", "embedded-key")  # fmt: skip
    one("receipt-type", "Sealed as a receipt is.", carried(book, document(book, type_=kit.RECEIPT_TYPE)), "format.unknown", "types", 3)  # fmt: skip
    one("later-schema", "A later version.", carried(book, document(book, schema="receipt-ledger.counter-seal/v2")), "format.unknown", "later-version", 3)  # fmt: skip
    for name, value in (
        ("mode", "digest-only"),
        ("size", 6),
        ("verdict", {}),
        ("notary", "a b"),
        ("root", None),
        ("more", 1),
    ):
        given = kit.sealed(kit.canonical(payload(book, **{name: value})), NOTARY, TYPE)
        one(f"malformed-{name}", f"Its {name} is not as it must be.", carried(book, given), "counterseal.malformed", "types")  # fmt: skip
    one("no-seal", "It has no seal.", carried(book, kit.envelope(kit.canonical(payload(book)), type_=TYPE)), "counterseal.signature", "unsigned")  # fmt: skip
    subject = "counterseal.subject"
    one("other-receipt", "Of a receipt that is not there.", carried(book, document(book, receipt=kit.digest(b"x"))), subject, "swapped")  # fmt: skip
    one("other-envelope", "Of the receipt in another envelope.", carried(book, document(book, envelope=kit.digest(b"x"))), subject, "swapped")  # fmt: skip
    one("other-place", "Of the receipt at another place.", carried(book, document(book, entry_index=5)), subject, "swapped")  # fmt: skip
    one("other-ledger", "Of another ledger.", carried(book, document(book, origin="ledger.invalid/other")), subject, "swapped")  # fmt: skip
    fork = "sha256:" + kit.root([*book.leaves[:6], kit.leaf(b"x")]).hex()
    one("fork", "Under a head that is no beginning of this one.", carried(book, document(book, root=fork)), "head.forked", "fork")  # fmt: skip
    one("fork-newest", "Under another head of this size.", carried(book, document(book, size=10, root=fork), 10), "head.forked", "fork")  # fmt: skip
    one("newer", "Under a head that is larger than this one.", carried(book, document(book, size=11), 11), "head.shorter", "cut")  # fmt: skip
    one("no-proof", "Without the proof.", {**good, "consistency": []}, "proof.consistency", "missing-proof")
    one("proof-too-long", "A proof where none is needed.", {**carried(book, document(book, size=10), 10), "consistency": good["consistency"]}, "proof.consistency", "lax-layout")  # fmt: skip
    one("form-members", "Neither a seal nor a note.", {"consistency": []}, "bundle.malformed", "missing-member")
    one("form-both", "Both.", {**good, "note": "x"}, "bundle.malformed", "unknown-member")
    _cosigned(files, book, bare)


def _cosigned(files: Files, book: Book, bare: dict[str, Any]) -> None:
    def one(id_: str, comment: str, size: int, note: str, *rest: Any, **more: Any) -> None:
        proof = hashes(kit.consistency(size, book.leaves)) if size < book.size else []
        files.case(id_, comment, copy(bare, counter_seals=[{"consistency": proof, "note": note}]), *rest, **more)

    wanted = {"require": ("counter-seal=1",)}
    one("cosigned", "An older head with a cosignature, which covers the run.", 7, cosigned(book, 7), **wanted)
    files.case("cosigned-checkpoint", "The head of the bundle itself is cosigned.", copy(bare, checkpoint=cosigned(book)), **wanted)  # fmt: skip
    one("cosigned-too-early", "It does not cover the run.", 4, cosigned(book, 4), "trust.quorum", "quorum", 4, **wanted)
    one("cosigned-altered", "The cosignature is over another text.", 7, cosigned(book, 7, text="x\n"), "cosignature.invalid", "tampered")  # fmt: skip
    one("cosigned-by-nobody", "The line is by a key that nobody pinned.", 7, cosigned(book, 7, OTHER_LOG), "trust.quorum", "embedded-key", 4, **wanted)  # fmt: skip
    one("cosigned-seal-key", "The line is by the key of the notary's seals.", 7, cosigned(book, 7, NOTARY), "trust.quorum", "types", 4, **wanted)  # fmt: skip
    one("cosigned-unsigned", "The log did not sign it.", 7, cosigned(book, 7).replace(note_at(book, 7).split("\n")[4] + "\n", ""), "head.unsigned", "unsigned")  # fmt: skip
    one("cosigned-no-note", "It is no note.", 7, "x", "counterseal.malformed", "lax-layout")
    elsewhere = Book(label="elsewhere", origin="ledger.invalid/elsewhere")
    elsewhere.header()
    elsewhere.commit()
    one("cosigned-elsewhere", "A head of another ledger.", 1, cosigned(elsewhere, 1), "counterseal.subject", "swapped")


def _heads(files: Files, book: Book) -> None:
    case, wanted = files.case, {"require": ("counter-seal=1",)}
    case("head", "A cosigned head.", cosigned(book), **wanted)
    case("head-bare", "A head that nobody cosigned.", note_at(book), "trust.quorum", "quorum", 4, **wanted)
    case("head-altered", "A cosignature over another text.", cosigned(book, text="x\n"), "cosignature.invalid", "tampered")  # fmt: skip
    case("tlog-proof", "A proof that ends in a cosigned head.", tlog_proof(book, 6, note=cosigned(book)), **wanted)
    case("tlog-proof-bare", "And in one that nobody cosigned.", tlog_proof(book, 6), "trust.quorum", "quorum", 4, **wanted)  # fmt: skip
    receipt = book.rows[6].envelope
    case("receipt", "A receipt alone shows no counter-seal.", receipt, "trust.quorum", "quorum", 4, **wanted)


def _documents(files: Files, book: Book) -> None:
    case, good = files.case, document(book)
    case("document", "A sealed document alone.", good)
    case("document-unpinned", "Of a notary that trust does not name.", good, "trust.notary_unpinned", "embedded-key", 3, trust=book.trust())  # fmt: skip
    first, rest = pinned(OTHER_LOG)
    case("document-mismatch", "Trust names it with another key.", good, "trust.notary_mismatch", "embedded-key", 4, trust=first + book.trust() + rest)  # fmt: skip
    case("document-line-feed", "An LF at its end.", good + b"\n", "counterseal.malformed", "lax-layout")
    case("document-altered", "A root of other digits.", good.replace(b'"root":"sha256:', b'"root":"sha256:00')[:-2] + b"]}", "counterseal.malformed", "tampered")  # fmt: skip
    flipped = good.replace(b'"entry_index":6', b'"entry_index":5')
    case("document-place", "Another place than was sealed.", flipped, "counterseal.signature", "tampered")
    case("document-two", "One document, where two notaries are asked for.", good, "trust.quorum", "quorum", 4, require=("counter-seal=2",))  # fmt: skip
