"""Vectors of bundles: receipts, runs and ranges carried away, whole and one step from whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import APPROVER, ISSUER, ISSUER2, LOG, LOG2, OTHER_ISSUER, OTHER_LOG, Book
from vectors.makers.proofs import Files, bundle, copy, item, last, note_at, pins, proof

SPEC = ("docs/spec/bundles.md", "docs/spec/keys.md", "docs/spec/trees.md", "docs/spec/trust.md")
BAD = "bundle.malformed"
STORED = kit.sha(b"a salt") + b"what the tool printed\n"
"""Stored bytes of an artifact: 32 bytes of salt, then the content."""


def base() -> Book:
    """The ledger that most bundles are of: a closed run, a grant, an open run; ten entries in five commits."""
    book = Book(label="bundles")
    book.header()
    book.commit()
    book.opening(artifacts=[artifact()])
    outcome = book.outcome(book.intent())
    book.commit()
    step = book.step(outcome)
    book.close(step, book.decision())
    book.commit()
    book.add("grant", {"action": "given", "grantee": "ci"})
    book.opening()
    book.commit()
    book.intent()
    book.commit()
    return book


def artifact(size: int = len(STORED) - 32) -> dict[str, Any]:
    return {"digest": kit.digest(STORED), "media_type": "text/plain", "name": "log", "salted": True, "size_bytes": size}


def make() -> File:
    out = File(
        "bundles",
        SPEC,
        "hidden revocations, left out items, proofs of another size, unsigned heads, borrowed issuers, tampered artifacts",
    )
    book = base()
    files = Files(out, book.trust())
    _accept(files.case, book)
    _subject(files.case, book)
    _form(files.case, book)
    _inclusion(files.case, book)
    _head(files.case, book)
    _trust(files.case, book)
    _memory(files.case, book)
    _range(files.case, book)
    _artifacts(files.case, book)
    _ledgers(files)
    _keys(files)
    _log_keys(files)
    return out


RUN = (1, 2, 3, 4, 5, 6)
"""Entries of the closed run: opening, intent, outcome, step, decision, run."""


def _accept(case, book: Book) -> None:
    case("run", "A run: the subject is the receipt that closes it, the items its tree.", bundle(book, 6, RUN))
    case("sealed", "A grant, sealed, which stands alone.", bundle(book, 7, (7,)))
    case(
        "unsealed",
        "An outcome without seal: its tree, the step and the run above it, and its opening. The decision is not needed.",
        bundle(book, 3, (1, 2, 3, 4, 6)),
    )
    case("unsealed-intent", "An intent, three steps below its seal.", bundle(book, 2, (1, 2, 3, 4, 6)))
    case("header", "The header itself, which is keyring and item.", bundle(book, 0, (0,)))
    case("older-head", "Under an older head.", bundle(book, 6, RUN, size=7))
    case("closed", "A closed run, where that is asked for.", bundle(book, 6, RUN), require=("closed",))


def _subject(case, book: Book) -> None:
    good = bundle(book, 6, RUN)
    case("subject-absent", "Its subject is a receipt that is not there.", copy(good, subject=kit.digest(b"x")), "subject.absent", "subject", 5)  # fmt: skip
    case("subject-of-entry", "Its subject is the digest of an entry.", copy(good, subject=kit.digest(book.rows[6].entry)), "subject.absent", "subject", 5)  # fmt: skip
    case("subject-in-keyring", "Its subject stands in the keyring only.", copy(good, subject=book.rows[0].id), "subject.absent", "subject", 5)  # fmt: skip
    case("empty", "No items.", copy(good, items=[]), "coverage.empty", "subject nothing-verified", 5)
    for index, what in ((1, "opening"), (2, "intent"), (3, "outcome"), (5, "decision")):
        given = bundle(book, 6, (each for each in RUN if each != index))
        case(f"left-out-{what}", f"The {what} is left out.", given, "tree.missing", "left-out")
    case("left-out-path", "An unsealed outcome, and the step above it left out.", bundle(book, 3, (1, 2, 3, 6)), "receipt.unattributed", "left-out attribution", 3)  # fmt: skip
    case("left-out-seal", "And the run that seals it.", bundle(book, 3, (1, 2, 3, 4)), "receipt.unattributed", "left-out attribution", 3)  # fmt: skip
    case("open-run", "An open run: the subject is its opening.", bundle(book, 8, (8,)), "run.open", "open-run", 3)
    case("open-unsealed", "An intent of an open run: no seal covers it yet.", bundle(book, 9, (8, 9)), "receipt.unattributed", "attribution", 3)  # fmt: skip
    case("item-twice", "An item twice.", copy(good, items=[*good["items"][:2], *good["items"][1:]]), "chain.index", "repeated")  # fmt: skip
    swapped = [good["items"][1], good["items"][0], *good["items"][2:]]
    case("items-swapped", "Two items swapped.", copy(good, items=swapped), "chain.index", "swapped")
    case("counter-seal", "A counter-seal that is none.", copy(good, counter_seals=[{}]), BAD, "counter-seal")  # fmt: skip
    case("counter-seals-required", "A counter-seal is asked for, and none is there.", good, "trust.quorum", "counter-seal", 4, require=("counter-seal=1",))  # fmt: skip


def _form(case, book: Book) -> None:
    good = bundle(book, 7, (7,))
    text = kit.canonical(good)

    def bad(id_: str, comment: str, given: Any, flags: str) -> None:
        case(f"form-{id_}", comment, given, BAD, flags)

    bad("line-feed", "An LF at its end.", text + b"\n", "lax-layout")
    bad("space", "A space.", text.replace(b'"items":', b'"items": '), "lax-layout")
    order = json.dumps(dict(reversed(good.items())), separators=(",", ":"), ensure_ascii=False)
    bad("order", "Its members in another order.", order, "sort-order")
    bad("twice", "A member twice.", b'{"subject":"0:1",' + text[1:], "duplicate-name")
    bad("unknown", "A member that there is not.", copy(good, more=1), "unknown-member")
    for name in ("checkpoint", "items", "keyring", "last", "subject"):
        bad(f"no-{name}", f"No {name}.", copy(good, **{name: None}), "missing-member")
    for name in ("artifacts", "counter_seals", "covers"):
        bad(f"empty-{name.replace('_', '-')}", f"An empty list as {name}.", copy(good, **{name: []}), "empty-list")
    bad("covers", "Covers, in the bundle of a receipt.", copy(good, covers=[item(book, 8)]), "unknown-member")
    bad("subject", "A subject that is none.", copy(good, subject="7"), "lax-layout")
    bad("subject-zero", "A range with a leading zero.", copy(good, subject="07:8"), "leading-zero")
    bad("subject-nothing", "A range of nothing.", copy(good, subject="7:7"), "empty-list")
    bad("subject-upper", "A receipt id in upper case.", copy(good, subject="sha256:" + good["subject"][7:].upper()), "case-folding")  # fmt: skip
    whole = good["items"][0]
    bad("item-more", "An item with another member.", copy(good, items=[{**whole, "more": 1}]), "unknown-member")
    bad("item-entry-text", "An entry as text.", copy(good, items=[{**whole, "entry": "{}"}]), "types")
    first, *rest = whole["proof"]
    loose = first[:42] + chr(ord(first[42]) + 1) + "="
    bad("hash-loose", "Base64 with spare bits that are not zero.", copy(good, items=[{**whole, "proof": [loose, *rest]}]), "lax-base64")  # fmt: skip
    bad(
        "hash-short",
        "A hash of 31 bytes.",
        copy(good, items=[{**whole, "proof": [kit.b64(bytes(31)), *rest]}]),
        "length",
    )
    bad("hash-hex", "A hash in hexadecimal.", copy(good, items=[{**whole, "proof": ["00" * 32]}]), "encoding")
    bad("hashes-65", "A proof of 65 hashes.", copy(good, items=[{**whole, "proof": [first] * 65}]), "length")
    bad("cut", "Its last byte is gone.", text[:-1], "truncated")
    bad("not-utf-8", "A byte that is no UTF-8.", text.replace(b"grant", b"gra\xfft", 1), "utf-8")
    case("schema-later", "A later version: unknown as a whole.", copy(good, schema="receipt-ledger.bundle/v2"), "subject.unknown", "unknown-format", 5)  # fmt: skip


def _inclusion(case, book: Book) -> None:
    good = bundle(book, 6, RUN)

    def with_(number: int, **members: Any) -> dict[str, Any]:
        return copy(
            good, items=[{**each, **(members if at == number else {})} for at, each in enumerate(good["items"])]
        )

    hashes = good["items"][2]["proof"]
    flipped = kit.b64(kit.flip(kit.inclusion(3, book.leaves)[1]))
    case("proof-bit", "One bit of a proof.", with_(2, proof=[hashes[0], flipped, *hashes[2:]]), "proof.inclusion", "bit-flip")  # fmt: skip
    case("proof-short", "A proof without its last hash.", with_(2, proof=hashes[:-1]), "proof.malformed", "length")
    case("proof-long", "A proof with one hash more.", with_(2, proof=[*hashes, hashes[0]]), "proof.malformed", "length")
    case("proof-of-sibling", "The proof of another entry.", with_(2, proof=good["items"][1]["proof"]), "proof.inclusion", "index")  # fmt: skip
    case("proof-other-size", "A proof for nine entries under a head of ten; both have four hashes.", with_(2, proof=proof(book, 3, 9)), "proof.inclusion", "size")  # fmt: skip
    case(
        "proof-smaller-size", "A proof for seven entries.", with_(2, proof=proof(book, 3, 7)), "proof.malformed", "size"
    )
    entry, envelope = good["items"][2]["entry"], good["items"][2]["envelope"]
    case("entry-time", "Another time in an entry.", with_(2, entry={**entry, "recorded_at": "2026-11-30T09:00:00.999Z"}), "proof.inclusion", "altered")  # fmt: skip
    case("entry-index", "Another index in an entry.", with_(2, entry={**entry, "index": 2}), "proof.inclusion", "index")
    case("entry-member", "An entry with another member.", with_(2, entry={**entry, "more": 1}), "entry.malformed", "unknown-member")  # fmt: skip
    altered = {**envelope, "payload": {**envelope["payload"], "status": "failed"}}
    case(
        "envelope-altered",
        "Another status in an outcome.",
        with_(2, envelope=altered),
        "entry.envelope_digest",
        "altered",
    )
    again = kit.digest(kit.canonical(altered))
    case(
        "envelope-and-entry",
        "The same, and its entry made to fit: the root does not.",
        with_(
            2,
            envelope=altered,
            entry={**entry, "envelope": again, "receipt": kit.digest(kit.canonical(altered["payload"]))},
        ),
        "proof.inclusion",
        "altered",
    )
    case("envelope-of-another", "The envelope of another entry.", with_(2, envelope=good["items"][1]["envelope"]), "entry.envelope_digest", "swapped")  # fmt: skip
    run = good["items"][5]["envelope"]
    seal = run["seals"][0]
    raw = kit.b64(kit.flip(ISSUER.sign(kit.pae(book.rows[6].payload)), 9))
    case("seal-altered", "One bit of the seal.", with_(5, envelope={**run, "seals": [{**seal, "signature": raw}]}), "entry.envelope_digest", "bit-flip")  # fmt: skip
    case("seal-taken-off", "The seal taken off.", with_(5, envelope={**run, "seals": []}), "entry.envelope_digest", "skipped-seal")  # fmt: skip


def _head(case, book: Book) -> None:
    good = bundle(book, 6, RUN)
    note, size, root = book.notes[-1], book.size, book.root

    def head(id_: str, comment: str, given: str, code: str | None, flags: str) -> None:
        case(f"head-{id_}", comment, copy(good, checkpoint=given), code, flags)

    head("other-key", "The head signed by another key.", kit.head_note(book.origin, size, root, OTHER_LOG), "head.unsigned", "key")  # fmt: skip
    head("issuer-key", "The head signed by the issuer.", kit.head_note(book.origin, size, root, ISSUER), "head.unsigned", "key-role")  # fmt: skip
    text = kit.checkpoint(book.origin, size, root)
    key_id = kit.note_key_id(book.origin, LOG.public)
    bad = kit.signature_line(book.origin, key_id, kit.flip(LOG.sign(text.encode()), 5))
    head("signature", "One bit of the head's signature.", text + "\n" + bad, "head.signature", "bit-flip")
    head("good-bad", "A bad line of the log key behind a good one.", note + bad, "head.signature", "first-signature")
    head("stranger-first", "A line of another key first.", kit.head_note(book.origin, size, root, OTHER_LOG, LOG), None, "first-signature")  # fmt: skip
    moved = text + "\n" + note_at(book, 9).rpartition("\n\n")[2]
    head("signature-of-another", "The signature of the head before.", moved, "head.signature", "swapped")
    head("unsigned", "No signature.", text + "\n", "head.malformed", "unsigned")
    head("size", "The log signed this root with a size too high.", kit.head_note(book.origin, 11, root, LOG), "chain.index", "size")  # fmt: skip
    head("size-low", "And with a size too low.", kit.head_note(book.origin, 9, root, LOG), "chain.index", "size")
    head("root", "The log signed another root.", kit.head_note(book.origin, size, kit.flip(root), LOG), "proof.inclusion", "root")  # fmt: skip
    stranger = kit.checkpoint("ledger.example/other", size, root)
    named = stranger + "\n" + kit.note_line(stranger, book.origin, LOG)
    head("origin", "A head of another origin, signed under this one's name.", named, "head.origin", "origin")
    head("other-log", "A head of another origin, signed under its own.", kit.head_note("ledger.example/other", size, root, LOG), "head.unsigned", "origin")  # fmt: skip
    head("extension", "A signed extension line.", kit.head_note(book.origin, size, root, LOG, extensions=("more",)), "head.malformed", "extension")  # fmt: skip
    head("leading-zero", "A signed size with a leading zero.", kit.head_note(book.origin, "010", root, LOG), "head.malformed", "leading-zero")  # fmt: skip
    head("older", "The head before: the proofs are for another size.", note_at(book, 9), "proof.inclusion", "size")


def _trust(case, book: Book) -> None:
    good = bundle(book, 6, RUN)
    case("trust-none", "No trust: it holds as far as it goes.", good, "trust.log_key_unpinned", "trust", 3, trust=None)
    case("trust-empty", "A trust that names nobody.", good, "trust.issuer_unpinned", "trust", 3, trust="")
    case("trust-no-header", "A trust without the header's id.", good, trust=pins(book, header=None))
    case("trust-log-only", "A trust that names the log and no issuer.", good, "trust.issuer_unpinned", "trust", 3, trust=pins(book, issuer=None))  # fmt: skip
    case("trust-other-log", "The origin is pinned with another log key.", good, "trust.log_key_mismatch", "trust", 4, trust=pins(book, log=OTHER_LOG))  # fmt: skip
    case("trust-other-header", "The origin is pinned with another header.", good, "trust.header_mismatch", "trust", 4, trust=pins(book, header=kit.digest(b"x")))  # fmt: skip
    case("trust-other-issuer", "The issuer is pinned with another key.", good, "trust.issuer_mismatch", "trust", 4, trust=pins(book, issuer=OTHER_ISSUER))  # fmt: skip
    case("trust-other-name", "The issuer's key is pinned under another name.", good, "trust.issuer_mismatch", "trust issuer-name", 4, trust=pins(book, name="deploy"))  # fmt: skip
    altered = copy(good, subject=kit.digest(b"x"))
    case(
        "trust-absent-first",
        "Absent and not pinned: absent wins.",
        altered,
        "subject.absent",
        "precedence",
        5,
        trust=None,
    )


def _memory(case, book: Book) -> None:
    good = bundle(book, 6, RUN)
    case(
        "memory-first",
        "Nothing is remembered: that is said, and changes nothing.",
        good,
        "head.first_seen",
        "memory",
        0,
    )
    case("memory-same", "This head is remembered.", good, memory=book.notes[-1])
    case("memory-newer", "A newer head is remembered: a bundle may be older.", bundle(book, 6, RUN, size=7), memory=book.notes[-1])  # fmt: skip
    case("memory-older", "An older head is remembered, and no proof joins them.", good, "head.unreconciled", "memory", 3, memory=note_at(book, 7))  # fmt: skip
    fork = kit.head_note(book.origin, book.size, kit.sha(b"another"), LOG)
    case("memory-forked", "Another head of this size is remembered.", good, "head.forked", "fork", memory=fork)
    stranger = kit.head_note(book.origin, book.size, kit.sha(b"another"), OTHER_LOG)
    case("memory-stranger", "The same by a key that is not the log's: no accusation.", good, "head.unreconciled", "memory key", 3, memory=stranger)  # fmt: skip
    case("memory-required", "Memory is asked for, and empty.", good, "head.unseen", "memory", 3, require=("memory",))


def _range(case, book: Book) -> None:
    good = bundle(book, "1:4", (1, 2, 3), covers=(4, 6))
    case("range", "Three entries, and what covers the outcome among them.", good)
    case("range-ledger", "All ten entries; the intent of the open run has no seal yet.", bundle(book, "0:10", range(10)), "receipt.unattributed", "attribution", 3)  # fmt: skip
    case("range-closed", "The first seven entries.", bundle(book, "0:7", range(7)))
    case("range-item-missing", "An entry of the range is left out.", copy(good, items=[good["items"][0], good["items"][2]]), "subject.absent", "left-out", 5)  # fmt: skip
    case("range-first-missing", "The first one is left out.", copy(good, items=good["items"][1:]), "subject.absent", "left-out", 5)  # fmt: skip
    case("range-more", "An entry that is not of the range.", bundle(book, "1:4", (1, 2, 3, 7), covers=(4, 6)), "chain.index", "stray")  # fmt: skip
    case("range-covers-missing", "The run that covers the outcome is left out.", bundle(book, "1:4", (1, 2, 3), covers=(4,)), "receipt.unattributed", "left-out attribution", 3)  # fmt: skip
    case("range-require-closed", "A range does not show that its runs are closed.", good, "check.unsupported", "closed", 3, require=("closed",))  # fmt: skip
    case("range-beyond", "A range that reaches over the end of the ledger.", bundle(book, "7:11", (7, 8, 9)), "subject.absent", "range", 5)  # fmt: skip


def _artifacts(case, book: Book) -> None:
    name = kit.digest(STORED)
    good = bundle(book, 6, RUN, artifacts={name: STORED})
    case("artifact", "An artifact carried along.", good)
    case("artifact-required", "Artifacts are asked for, and there.", good, require=("artifacts",))
    case("artifact-bit", "One bit of its content.", bundle(book, 6, RUN, artifacts={name: kit.flip(STORED, 40)}), "artifact.altered", "bit-flip")  # fmt: skip
    case("artifact-salt", "One bit of its salt.", bundle(book, 6, RUN, artifacts={name: kit.flip(STORED, 3)}), "artifact.altered", "bit-flip")  # fmt: skip
    case("artifact-content", "Its content without the salt.", bundle(book, 6, RUN, artifacts={name: STORED[32:]}), "artifact.altered", "salt")  # fmt: skip
    case("artifact-absent", "Artifacts are asked for, and it is not there.", bundle(book, 6, RUN), "artifact.absent", "left-out", 5, require=("artifacts",))  # fmt: skip
    case("artifact-not-asked", "It is not there, and not asked for.", bundle(book, 6, RUN))
    other = kit.sha(b"stray")
    case("artifact-another", "Another one in its place.", bundle(book, 6, RUN, artifacts={kit.digest(other): other}), "artifact.absent", "swapped", 5, require=("artifacts",))  # fmt: skip
    two = bundle(book, 6, RUN, artifacts={name: STORED, kit.digest(other): other})
    case("artifacts-swapped", "Two artifacts, not sorted by digest.", copy(two, artifacts=two["artifacts"][::-1]), BAD, "sort-order")  # fmt: skip
    case("artifacts-twice", "An artifact twice.", copy(good, artifacts=good["artifacts"] * 2), BAD, "repeated")

    def erased(**members: Any) -> Book:
        made = Book(label="bundles erased")
        made.header()
        made.opening(artifacts=[artifact()])
        made.close()
        common = {"digest": name, "reason": "erasure.request", "receipts": [made.rows[1].id]}
        made.add("erasure", {**common, **members})
        made.commit()
        return made

    gone = erased()
    trust = gone.trust()
    case("artifact-erased", "It was erased, and the erasure is there: that is said.", bundle(gone, 2, (1, 2, 3)), "artifact.erased", "erasure", 0, trust=trust, require=("artifacts",))  # fmt: skip
    case("artifact-erasure-missing", "It was erased, and the erasure is left out.", bundle(gone, 2, (1, 2)), "artifact.absent", "erasure left-out", 5, trust=trust, require=("artifacts",))  # fmt: skip
    gone = erased(digest=kit.digest(b"another"))
    case("artifact-erased-another", "Another one was erased.", bundle(gone, 2, (1, 2, 3)), "artifact.absent", "erasure", 5, trust=gone.trust(), require=("artifacts",))  # fmt: skip
    wrong = Book(label="bundles size")
    wrong.header()
    wrong.opening(artifacts=[artifact(size=21)])
    wrong.close()
    wrong.commit()
    case("artifact-size", "The receipt names another size.", bundle(wrong, 2, (1, 2), artifacts={name: STORED}), "artifact.altered", "size", trust=wrong.trust())  # fmt: skip


def _ledgers(files: Files) -> None:
    """Ledgers whose signed head covers something unlawful: every proof holds."""

    def case(id_: str, comment: str, build: Callable[[Book], Any], code: str | None = None, flags: str = "", exit_: int | None = None,
             *, subject: str | int = -1) -> None:  # fmt: skip
        book = Book(label=f"bundles {id_}")
        book.header()
        build(book)
        book.commit()
        at = subject if isinstance(subject, str) else book.size + subject
        files.case(id_, comment, bundle(book, at, range(1, book.size)), code, flags, exit_, trust=book.trust())

    _lawless_trees(case)
    _lawless_seals(case)
    _lawless_receipts(case)
    _lawless_entries(case)


def _run(change: Callable[[Book], str]) -> Callable[[Book], Any]:
    """A run with what is made inside it."""

    def build(book: Book) -> None:
        book.opening()
        book.close(change(book))

    return build


def _lawless_trees(case) -> None:
    case("lawful", "The run that the next cases change.", _run(lambda book: book.outcome(book.intent())))
    borrowed = "receipt.borrowed_issuer"
    case("borrowed", "An outcome of another issuer, not sealed by it.", _run(lambda book: book.outcome(book.intent(), issuer=OTHER_ISSUER)), borrowed, "borrowed-issuer")  # fmt: skip
    case("borrowed-sealed", "An outcome of another issuer, sealed by it, over an intent of the first.", _run(lambda book: book.outcome(book.intent(), issuer=OTHER_ISSUER, seal=True)), borrowed, "borrowed-issuer nearest")  # fmt: skip
    case("not-borrowed", "Both of another issuer, the outcome sealed.", _run(lambda book: book.outcome(book.intent(issuer=OTHER_ISSUER), issuer=OTHER_ISSUER, seal=True)))  # fmt: skip
    case("repeated-child", "A child of two parents.", _run(lambda book: book.step(book.outcome(book.intent()), book.rows[-2].id)), "tree.repeated", "repeated-child")  # fmt: skip
    case("child-nowhere", "A child that is nowhere.", _run(lambda book: book.outcome(book.intent(), kit.digest(b"x"))), "tree.missing", "missing-child")  # fmt: skip
    case(
        "order",
        "An outcome that does not commit its intent first.",
        _run(_order),
        "tree.order",
        "order",
    )

    def child(book: Book) -> tuple[str, str, str]:
        outer = book.opening()
        intent = book.intent()
        book.opening(parent_opening=outer, parent_intent=intent)
        return outer, intent, book.close(book.outcome(book.intent()))

    def child_run(book: Book) -> None:
        outer, intent, root = child(book)
        book.close(book.outcome(intent, root, run=outer), run=outer)

    case("child-run", "A run with a child run in it.", child_run)

    def child_of_another(book: Book) -> None:
        _, _, root = child(book)
        book.opening()
        book.close(root)

    case("child-run-of-another", "A run that commits the root of another run's child.", child_of_another, "tree.missing", "foreign-child")  # fmt: skip


def _lawless_seals(case) -> None:
    def unsealed(book: Book) -> None:
        book.opening()
        book.close(seal=False)

    case("unsealed-run", "A run receipt without seal.", unsealed, "seal.absent", "skipped-seal")

    def by_another(book: Book) -> None:
        book.opening()
        book.close(seal=OTHER_ISSUER)

    case("seal-by-another", "A run receipt sealed by another key.", by_another, "seal.issuer", "skipped-seal key")

    def bad_seal(book: Book) -> None:
        book.opening()
        value = book.value(
            "run", {"run": book.run_id, "status": "completed", "duration_ms": 9, "children": [book.run_id]}
        )
        payload = kit.canonical(value)
        book.append("run", payload, kit.envelope(payload, ISSUER.id, kit.flip(ISSUER.sign(kit.pae(payload)), 40)))

    case(
        "seal-invalid", "A seal one bit away, which the entry names.", bad_seal, "seal.invalid", "skipped-seal bit-flip"
    )

    def bare(book: Book) -> None:
        book.opening()
        value = book.value(
            "run", {"run": book.run_id, "status": "completed", "duration_ms": 9, "children": [book.run_id]}
        )
        payload = kit.canonical(value)
        book.append("run", payload, kit.envelope(payload, ISSUER.id, ISSUER.sign(payload)))

    case("seal-bare", "A seal over the payload alone.", bare, "seal.invalid", "pae")


def _lawless_receipts(case) -> None:
    def other_ledger(book: Book) -> None:
        made = Book(label=book.label, origin="ledger.example/other")
        value = made.value("grant", {"action": "given", "grantee": "ci"})
        payload = kit.canonical(value)
        book.append("grant", payload, kit.sealed(payload, ISSUER))

    case("foreign", "A receipt of another ledger.", other_ledger, "receipt.foreign_ledger", "origin")
    case("malformed", "A grant without grantee.", lambda book: book.add("grant", {"action": "given"}), "receipt.malformed", "missing-member")  # fmt: skip
    case("later-kind", "A receipt of a later kind.", lambda book: book.add("grant", {"kind": "treaty"}), "format.unknown", "unknown-format", 3)  # fmt: skip
    case("later-type", "Another payload type.", lambda book: book.add("grant", {"action": "given", "grantee": "ci"}, type_="application/vnd.other+json"), "format.unknown", "unknown-format", 3)  # fmt: skip


def _lawless_entries(case) -> None:
    def named(**members: Any) -> Callable[[Book], Any]:
        def build(book: Book) -> None:
            book.add("grant", {"action": "given", "grantee": "ci"}, entry_members=members)

        return build

    case("entry-receipt", "An entry that names another receipt.", named(receipt=kit.digest(b"x")), "entry.receipt_id", "digest", subject="1:2")  # fmt: skip
    case("entry-keyring", "An entry that names another keyring entry.", named(keyring=1), "chain.keyring", "keyring")
    case(
        "approved", "An approval by a pinned approver.", lambda book: book.add("approval", _approval(), issuer=APPROVER)
    )

    def foreign_child(book: Book) -> None:
        book.opening()
        step = book.step()
        book.opening()
        book.close(step)

    case("range-foreign-child", "A range with a run that commits a step of another.", foreign_child, "tree.missing", "foreign-child", subject="1:5")  # fmt: skip

    def linked(book: Book) -> None:
        book.add("grant", {"action": "given", "grantee": "ci"})
        book.add("grant", {"action": "given", "grantee": "ci"}, entry_members={"previous": kit.ZERO})

    case("range-previous", "An entry of a range that does not name the one before.", linked, "chain.previous", "chain-link", subject="1:3")  # fmt: skip


def _order(book: Book) -> str:
    decision, intent = book.decision(), book.intent()
    return book.outcome(intent, children=[decision, intent])


def _approval() -> dict[str, Any]:
    return {
        "answer": "granted",
        "role": "release",
        "expires_at": "2027-01-01T00:00:00.000Z",
        "uses": 1,
        "act_digest": kit.digest(b"act"),
    }


def _keys(files: Files) -> None:
    """A run at 1 and 2, a key receipt at 3, a run at 4 and 5."""

    def ledger(label: str, *, after: kit.Key = ISSUER2, new: kit.Key = ISSUER2, **members: Any) -> Book:
        book = Book(label=f"bundles {label}")
        book.header()
        book.opening()
        book.close()
        book.commit()
        book.rotate(new, ISSUER, **members)
        book.commit()
        book.opening(issuer=after)
        book.close(issuer=after)
        book.commit()
        return book

    def case(id_: str, comment: str, given: dict[str, Any], book: Book, code: str | None = None, flags: str = "",
             exit_: int | None = None, **more: Any) -> None:  # fmt: skip
        files.case(id_, comment, given, code, flags, exit_, **{"trust": book.trust(), **more})

    book = ledger("rotated")
    case("rotated", "A run of the next key, behind the rotation.", bundle(book, 5, (4, 5)), book)
    case("rotated-before", "A run of the first key, before the rotation.", bundle(book, 2, (1, 2)), book)
    old = ledger("retired", after=ISSUER)
    case("retired", "A run of the retired key, behind the rotation.", bundle(old, 5, (4, 5)), old, "key.retired", "retired-key", 4)  # fmt: skip
    revoked = ledger("revoked", action="revoke", from_index=1)
    good = bundle(revoked, 2, (1, 2))
    case("revoked", "A run of a key that was revoked from before it.", good, revoked, "key.revoked", "revoked-key", 4)
    cut = good["keyring"][:1]
    case("revoked-hidden", "The revocation is left out of the keyring.", copy(good, keyring=cut), revoked, "chain.keyring", "hidden-revocation")  # fmt: skip
    case("revoked-hidden-last", "And the last entry replaced by one that does not know of it.", copy(good, keyring=cut, last=last(revoked, None, 2)), revoked, "chain.index", "hidden-revocation")  # fmt: skip
    forged = {**good["last"], "entry": {**good["last"]["entry"], "keyring": 0}}
    case("revoked-hidden-forged", "And the last entry made to name the header.", copy(good, keyring=cut, last=forged), revoked, "proof.inclusion", "hidden-revocation altered")  # fmt: skip
    case("revoked-head-before", "Under the head before the revocation: only memory shows what came later.", bundle(revoked, 2, (1, 2), size=3), revoked, memory=revoked.notes[-1])  # fmt: skip
    at_end = bundle(revoked, 2, (1, 2), size=4)
    case(
        "revoked-last", "Under the head that ends in the revocation.", at_end, revoked, "key.revoked", "revoked-key", 4
    )
    case("revoked-last-left-out", "And left out: that shows no more and no less than the head before.", copy(at_end, keyring=cut_at(at_end)), revoked, flags="hidden-revocation")  # fmt: skip
    case("last-bit", "One bit of the proof of the last entry.", copy(good, last=_flipped(good["last"], revoked)), revoked, "proof.inclusion", "bit-flip")  # fmt: skip
    hidden = bundle(book, 5, (4, 5))
    case("rotation-hidden", "The rotation is left out: the items name it.", copy(hidden, keyring=cut_at(hidden)), book, "chain.keyring", "hidden-rotation")  # fmt: skip
    case("keyring-empty", "No keyring.", copy(hidden, keyring=[]), book, "chain.first_entry", "keyring")  # fmt: skip
    case("keyring-no-header", "A keyring without its header.", copy(hidden, keyring=hidden["keyring"][1:]), book, "chain.keyring", "keyring")  # fmt: skip
    case("keyring-swapped", "A keyring out of order.", copy(hidden, keyring=hidden["keyring"][::-1]), book, "chain.keyring", "keyring swapped")  # fmt: skip
    case("keyring-more", "A run in the keyring.", copy(hidden, keyring=[*hidden["keyring"], item(book, 5)]), book, "key.chain", "keyring kind-confusion")  # fmt: skip
    other = ledger("uncommitted", new=OTHER_ISSUER, after=OTHER_ISSUER)
    case("uncommitted", "A rotation to a key that nobody committed.", bundle(other, 5, (4, 5)), other, "key.chain", "rotation commitment")  # fmt: skip
    thief = ledger("thief", issuer=ISSUER)
    case("thief", "A rotation sealed by the old key, as its thief could.", bundle(thief, 5, (4, 5)), thief, "key.chain", "rotation thief")  # fmt: skip


def cut_at(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The keyring of a bundle, cut behind its header."""
    return given["keyring"][:1]


def _flipped(given: dict[str, Any], book: Book) -> dict[str, Any]:
    first, *rest = kit.inclusion(book.size - 1, book.leaves)
    return {**given, "proof": [kit.b64(kit.flip(first)), *(kit.b64(each) for each in rest)]}


def _log_keys(files: Files) -> None:
    book = Book(label="bundles log")
    book.header()
    book.opening()
    book.close()
    book.commit()
    book.rotate(LOG2, LOG, role="log")
    book.commit(LOG, LOG2)
    book.log = LOG2
    book.add("grant", {"action": "given", "grantee": "ci"})
    book.commit()
    good = bundle(book, 2, (1, 2))
    trust = book.trust()
    files.case("log-rotated", "Under a head of the next log key; the trust pins the first one and the header.", good, trust=trust)  # fmt: skip
    files.case("log-rotated-issuer", "The header is not pinned, its issuer is.", good, trust=book.trust(header=False))
    files.case("log-rotated-log-only", "Neither is: anybody could have written the header.", good, "trust.log_key_unpinned", "trust rotation", 3, trust=pins(book, header=None, issuer=None))  # fmt: skip
    old = kit.head_note(book.origin, book.size, book.root, LOG)
    files.case("log-retired", "Under a head of the retired log key.", copy(good, checkpoint=old), "head.unsigned", "retired-key", trust=trust)  # fmt: skip
    files.case("log-next-pinned", "The trust pins the next log key as if it were the first.", good, "trust.log_key_mismatch", "trust rotation", 4, trust=pins(book, log=LOG2))  # fmt: skip
    files.case("log-before", "Under the head before the rotation.", bundle(book, 2, (1, 2), size=3), trust=trust)
