"""Vectors of journals: what a cut, a swap, a crash or a forger leaves, and what a verifier says to each."""

from __future__ import annotations

from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import ISSUER, LOG, OTHER_ISSUER, OTHER_LOG, Book
from vectors.makers.shelf import Shelf

SPEC = ("docs/spec/journal.md", "docs/spec/entries.md", "docs/spec/heads.md", "docs/spec/trust.md")


def base() -> Book:
    """The ledger that most cases start from: six entries in four commits."""
    book = Book(label="journals")
    book.header()
    book.commit()
    book.opening()
    book.commit()
    outcome = book.outcome(book.intent())
    book.commit()
    book.close(outcome, book.decision())
    book.commit()
    return book


def make() -> File:
    out = File(
        "journals",
        SPEC,
        "entries swapped, removed, repeated; cut tails; forks; torn tails and damage; heads with another root, size, origin or link",
    )
    shelf = Shelf(out)
    book = base()
    trust = book.trust()

    def case(
        id_: str,
        comment: str,
        given: Any,
        code: str | None = None,
        flags: str = "",
        exit_: int | None = None,
        **more: Any,
    ) -> None:
        shelf.case(id_, comment, given, code, flags, exit_, **{"trust": trust, **more})

    lines = [line + b"\n" for line in book.lines]
    case("good", "A ledger of six entries in four commits.", book)
    _memory(case, book, lines)
    _lines(case, lines)
    _entries(case)
    _receipts(case)
    _decoys(case)
    _torn(case, book, lines)
    _heads(case, lines)
    _first(case)
    _segments(case, lines)
    _pins(case, book)
    return out


def _memory(case, book: Book, lines: list[bytes]) -> None:
    notes = book.notes
    cut = b"".join(lines[:7])
    case(
        "first-seen", "Nothing is remembered: that is said, and changes nothing.", book, "head.first_seen", "memory", 0
    )
    case("remembered", "The remembered head is this one.", book, memory=notes[-1])
    case("grown", "The remembered head is a beginning of this one.", book, memory=notes[1])
    case(
        "cut", "Cut at a commit, and the longer head is remembered.", cut, "head.shorter", "cut-tail", memory=notes[-1]
    )
    case(
        "cut-unseen",
        "The same cut, and nothing is remembered: the bytes alone cannot show it.",
        cut,
        "head.first_seen",
        "cut-tail",
        0,
    )
    case("cut-remembered-there", "The same cut, and the head there is remembered.", cut, memory=notes[2])
    fork = Book(label="journals")
    fork.header()
    fork.commit()
    fork.opening(name="another run")
    fork.commit()
    case("forked-same-size", "Another history of the remembered size.", fork, "head.forked", "fork", memory=notes[1])
    fork.close()
    fork.commit()
    case(
        "forked-longer",
        "Another history, longer than what is remembered.",
        fork,
        "head.forked",
        "fork",
        memory=notes[1],
    )
    case("forked-after", "The same history, where only what both begin with is remembered.", fork, memory=notes[0])
    stranger = kit.head_note(book.origin, 6, book.root, OTHER_LOG)
    case(
        "remembered-by-another-key",
        "What is remembered is not signed by a log key of this ledger: no accusation.",
        book,
        "head.unreconciled",
        "memory key",
        3,
        memory=stranger,
    )
    case("memory-required", "Memory is asked for, and empty.", book, "head.unseen", "memory", 3, require=("memory",))
    case("memory-required-there", "Memory is asked for, and there.", book, memory=notes[-1], require=("memory",))


def _lines(case, lines: list[bytes]) -> None:
    # 0 header, 1 head, 2 opening, 3 head, 4 intent, 5 outcome, 6 head, 7 decision, 8 run, 9 head
    def with_(change: dict[int, bytes]) -> bytes:
        return b"".join(change.get(number, line) for number, line in enumerate(lines))

    case("swapped", "Two entries of one commit swapped.", with_({4: lines[5], 5: lines[4]}), "chain.index", "swapped")
    case(
        "swapped-commits",
        "Two commits swapped.",
        b"".join((*lines[:2], *lines[4:7], *lines[2:4], *lines[7:])),
        "chain.index",
        "swapped",
    )
    case("removed", "An entry removed.", with_({4: b""}), "chain.index", "removed")
    case("removed-last", "The last entry of the last commit removed.", with_({8: b""}), "head.size", "removed")
    case(
        "removed-commit",
        "A commit in the middle removed, with its head.",
        b"".join((*lines[:4], *lines[7:])),
        "chain.index",
        "removed",
    )
    case("removed-head", "A head in the middle removed.", with_({3: b""}), "head.link", "removed-head")
    case("repeated-line", "A line twice.", with_({4: lines[4] * 2}), "chain.index", "repeated")
    case("repeated-head", "A head line twice.", with_({6: lines[6] * 2}), "head.link", "repeated")
    case("previous-head", "The digest of the head line before, changed.", _previous_head(), "head.link", "head-link")
    case("altered-signature", "One bit of the signature of a head in the middle: the next head line names another.",
         _altered_signature(relink=False), "head.link", "bit-flip head-link")  # fmt: skip
    case("altered-signature-relinked", "The same, and the heads behind it linked again: signatures in the middle are looked at when asked for.",
         _altered_signature(relink=True), "head.first_seen", "bit-flip every-head", 0)  # fmt: skip
    case(
        "altered-signature-every-head",
        "Every head was asked for.",
        _altered_signature(relink=True),
        "head.signature",
        "bit-flip every-head",
        require=("every-head",),
    )
    case("every-head", "Every head was asked for, and holds.", b"".join(lines), require=("every-head",))
    case(
        "altered-receipt",
        "One bit of a receipt.",
        b"".join(lines).replace(b'"status":"committed"', b'"status":"bommitted"'),
        "entry.receipt_id",
        "bit-flip",
    )
    case(
        "altered-entry",
        "One bit of an entry's time.",
        with_({4: lines[4].replace(b'"recorded_at":"2026', b'"recorded_at":"2027', 1)}),
        "chain.previous",
        "bit-flip",
    )
    case(
        "altered-last-entry",
        "One bit of the last entry's time: only the root tells.",
        with_({8: lines[8].replace(b'"recorded_at":"2026', b'"recorded_at":"2027', 1)}),
        "head.root",
        "bit-flip root",
    )
    case("empty-line", "An empty line.", with_({4: b"\n" + lines[4]}), "line.malformed", "lax-lines")
    case("comment", "A comment.", with_({4: b"# note\n" + lines[4]}), "line.malformed", "lax-lines")
    case(
        "other-object",
        "A line that is an object of another kind.",
        with_({4: b"{}\n" + lines[4]}),
        "line.malformed",
        "lax-lines",
    )
    case("carriage-return", "CR LF for LF.", b"".join(lines).replace(b"\n", b"\r\n"), "line.malformed", "line-endings")
    case("byte-order-mark", "A byte order mark.", b"\xef\xbb\xbf" + b"".join(lines), "line.malformed", "bom")
    case("no-head", "Entries and no head.", lines[0], "head.missing", "missing-head")
    case("nothing", "No bytes at all: nothing is never ok.", b"", "head.missing", "empty")
    separator = Book(label="journals separator")
    separator.header()
    separator.opening(name="one\u2028run\u2029")
    separator.close()
    separator.commit()
    case("line-separator", "U+2028 in a name ends no line.", separator, flags="line-separator", trust=separator.trust())


def _previous_head() -> Book:
    book = Book(label="journals")
    book.header()
    book.commit()
    book.opening()
    book.commit(previous=kit.digest(b"another line"))
    return book


def _altered_signature(*, relink: bool) -> Book:
    book = base()
    lines: list[bytes] = []
    last = kit.ZERO
    heads = 0
    for line in book.lines:
        made = line
        if line.startswith(b'{"head"'):
            note = book.notes[heads]
            heads += 1
            if heads == 3:
                text, _, signature = note.partition("\n\n")
                key_id = kit.note_key_id(book.origin, LOG.public)
                note = (
                    text
                    + "\n\n"
                    + kit.signature_line(book.origin, key_id, kit.flip(LOG.sign((text + "\n").encode()), 5))
                )
                assert signature
            previous = last if relink or heads <= 3 else kit.digest(kit.head_line(book.notes[2], _previous_of(book, 2)))
            made = kit.head_line(note, previous)
            last = kit.digest(made)
        lines.append(made)
    book.lines = lines
    return book


def _previous_of(book: Book, number: int) -> str:
    heads = [line for line in book.lines if line.startswith(b'{"head"')]
    return kit.digest(heads[number - 1]) if number else kit.ZERO


def _entries(case) -> None:
    """One member of the entry at index 2 given, all else as an honest writer has it."""

    def member(id_: str, comment: str, code: str, flags: str, exit_: int = 1, **change: Any) -> None:
        book = Book(label="journals")
        book.header()
        book.opening()
        members = {"run": book.run_id, "act": book.act(), "act_digest": book.act_digest()}
        book.add("intent", members, entry_members=change)
        book.close(book.rows[-1].id)
        book.commit()
        case(id_, comment, book, code, flags, exit_)

    member("entry-index", "An index too high.", "chain.index", "index", index=3)
    member("entry-index-same", "An index twice.", "chain.index", "index", index=1)
    member(
        "entry-previous", "The digest of another entry.", "chain.previous", "previous", previous=kit.digest(b"another")
    )
    member("entry-previous-zeros", "Zeros in the middle.", "chain.previous", "previous reset", previous=kit.ZERO)
    member("entry-keyring", "Another keyring.", "chain.keyring", "keyring", keyring=1)
    member(
        "entry-receipt", "The id of another receipt.", "entry.receipt_id", "receipt-id", receipt=kit.digest(b"another")
    )
    member(
        "entry-envelope",
        "The digest of another envelope.",
        "entry.envelope_digest",
        "envelope-digest",
        envelope=kit.digest(b"another"),
    )
    member(
        "entry-time",
        "A day that does not exist.",
        "entry.malformed",
        "calendar",
        recorded_at="2027-02-29T00:00:00.000Z",
    )
    member(
        "entry-clock-back",
        "A clock that goes back is said, and is no failure.",
        "time.step_back",
        "time",
        0,
        recorded_at="2020-01-01T00:00:00.000Z",
    )
    book = base()
    data = book.journal()
    third = book.rows[2].entry
    case(
        "entry-schema",
        "An entry of a later schema: not altered, not known.",
        _schema_v2(),
        "format.unknown",
        "unknown-format",
        3,
    )
    case(
        "entry-space",
        "A space in an entry.",
        data.replace(third, third.replace(b'"index":2,', b'"index": 2,')),
        "entry.malformed",
        "lax-whitespace",
    )
    case(
        "entry-leading-zero",
        "A leading zero in an entry.",
        data.replace(third, third.replace(b'"index":2,', b'"index":02,')),
        "entry.malformed",
        "leading-zero",
    )


def _schema_v2() -> Book:
    book = Book(label="journals")
    book.header()
    book.opening()
    book.commit()
    members = {"run": book.run_id, "name": "build", "status": "completed"}
    book.add("step", members, entry_members={"schema": "receipt-ledger.entry/v2"})
    book.commit()
    return book


def _receipts(case) -> None:
    def book_with(build) -> Book:
        book = Book(label="journals")
        book.header()
        book.opening()
        build(book)
        book.commit()
        return book

    def payload(change) -> Any:
        def build(book: Book) -> None:
            value = book.value("step", {"run": book.run_id, "name": "build", "status": "completed"})
            data = change(kit.canonical(value))
            book.close(book.append("step", data, kit.envelope(data)))

        return build

    case("receipt", "The step that the next cases change.", book_with(payload(lambda data: data)))
    case(
        "receipt-space",
        "A receipt that is not canonical, its digests right: no hash tells.",
        book_with(payload(lambda data: data.replace(b'"name":"build","nonce"', b'"name": "build","nonce"'))),
        "receipt.canonical",
        "lax-whitespace not-canonical",
    )
    case(
        "receipt-twice",
        "A receipt with a member twice, its digests right.",
        book_with(
            payload(lambda data: data.replace(b'"status":"completed"', b'"status":"completed","status":"failed"'))
        ),
        "receipt.canonical",
        "duplicate-names not-canonical",
    )
    case(
        "receipt-order",
        "A receipt with two members swapped, its digests right.",
        book_with(
            payload(
                lambda data: (
                    data[: -len(b',"status":"completed"}')].replace(
                        b'{"issued_at"', b'{"status":"completed","issued_at"', 1
                    )
                    + b"}"
                )
            )
        ),
        "receipt.canonical",
        "sort-order not-canonical",
    )
    case(
        "receipt-unknown-member",
        "A receipt with a member that its kind does not have.",
        book_with(payload(lambda data: data[:-1] + b',"zzz":1}')),
        "receipt.malformed",
        "unknown-member",
    )
    case(
        "receipt-fraction",
        "A receipt with a fraction.",
        book_with(payload(lambda data: data.replace(b'{"issued_at"', b'{"duration_ms":1.5,"issued_at"', 1))),
        "receipt.canonical",
        "numbers not-canonical",
    )
    case(
        "receipt-kind-later",
        "A kind of later: not altered, not known.",
        book_with(lambda book: book.add("settlement", {"run": book.run_id})),
        "format.unknown",
        "unknown-format",
        3,
    )
    case(
        "receipt-kind-prune",
        "The reserved kind.",
        book_with(lambda book: book.add("prune", {})),
        "format.unknown",
        "unknown-format",
        3,
    )
    case(
        "receipt-schema-later",
        "A receipt of a later schema.",
        book_with(lambda book: book.add("step", {"schema": "receipt-ledger.receipt/v2", "run": book.run_id})),
        "format.unknown",
        "unknown-format",
        3,
    )
    case(
        "receipt-type-later",
        "A payload of another type.",
        book_with(
            lambda book: book.add(
                "step", {"run": book.run_id, "name": "build", "status": "completed"}, type_="application/vnd.later+json"
            )
        ),
        "format.unknown",
        "unknown-format",
        3,
    )
    case(
        "receipt-foreign",
        "A receipt written for another ledger.",
        book_with(
            lambda book: book.add("grant", {"action": "given", "grantee": "ci", "ledger": "ledger.example/other"})
        ),
        "receipt.foreign_ledger",
        "foreign-ledger replay",
    )

    def repeated(book: Book) -> None:
        book.add("grant", {"action": "given", "grantee": "ci"})
        row = book.rows[-1]
        book.append("grant", row.payload, row.envelope)

    case("receipt-repeated", "A receipt twice, each entry right.", book_with(repeated), "receipt.repeated", "replay")

    def repeated_opening(book: Book) -> None:
        row = book.rows[-1]
        book.append("opening", row.payload, row.envelope)

    case("opening-repeated", "An opening twice.", book_with(repeated_opening), "receipt.repeated", "replay")

    def two_seals(book: Book) -> None:
        book.add("grant", {"action": "given", "grantee": "ci"})
        row = book.rows.pop()
        book.lines.pop()
        seal = row.envelope[row.envelope.rfind(b'{"key"') : -2]
        book.append("grant", row.payload, row.envelope[:-2] + b"," + seal + b"]}")

    case(
        "two-seals",
        "An envelope with two seals, its digest right.",
        book_with(two_seals),
        "envelope.malformed",
        "second-seal",
    )
    unsealed = Book(label="journals")
    unsealed.add("header", {"format": "receipt-ledger/v1", "log_key": LOG.id, "next": {}}, seal=False)
    unsealed.commit()
    case("header-unsealed", "A header without its seal.", unsealed, "seal.absent", "skipped-seal")


def _decoys(case) -> None:
    def inside(id_: str, comment: str, arguments: dict[str, Any]) -> None:
        book = Book(label="journals")
        book.header()
        book.opening()
        book.close(book.intent(act={**book.act(), "arguments": arguments}))
        book.commit()
        case(id_, comment, book, flags="first-match")

    inside("decoy-envelope", "Arguments that look like the middle of a line.", {"a": 1, "envelope": {"payload": {}}})
    inside(
        "decoy-type",
        "Arguments that look like the end of one.",
        {"a": {}, "payload_type": kit.RECEIPT_TYPE, "seals": []},
    )
    inside("decoy-kind", "Arguments with a member kind.", {"kind": "run"})
    inside("decoy-head", "Arguments that look like a head line.", {"head": "x", "previous_head": kit.ZERO})
    book = base()
    book.commit()
    case("empty-commit", "A head with no entries of its own, linked and signed.", book, "head.empty", "empty-commit")
    book = Book(label="journals")
    book.commit()
    book.header()
    book.commit()
    case("empty-first-commit", "A head of no entries first.", book, "head.empty", "empty-commit")


def _torn(case, book: Book, lines: list[bytes]) -> None:
    whole = b"".join(lines)
    more = base()
    more.opening(name="next")
    more.intent()
    opening, intent = (line + b"\n" for line in more.lines[-2:])
    more.commit()
    head = more.lines[-1]
    notes = book.notes
    torn, damaged = "journal.torn_tail", "journal.damaged"

    def ok(id_: str, comment: str, tail: bytes, **given: Any) -> None:
        case(f"torn-{id_}", comment, whole + tail, torn, "torn-tail", 0, **given)

    def damage(id_: str, comment: str, tail: bytes, flags: str = "", **given: Any) -> None:
        case(f"damage-{id_}", comment, whole + tail, damaged, f"torn-tail damage {flags}".strip(), **given)

    ok("byte", "One byte of a commit that never ended.", opening[:1])
    ok("half-line", "Half an entry line.", opening[:200])
    ok("no-line-feed", "An entry line but for its LF.", opening[:-1])
    ok("line", "A whole entry line and no head.", opening)
    ok("lines", "Two whole entry lines and no head.", opening + intent)
    ok("lines-half", "A whole entry line and half of the next.", opening + intent[:100])
    ok("half-head", "All entry lines and half of the head line.", opening + intent + head[:60])
    ok("head-but-last", "The head line but for its last byte.", opening + intent + head[:-1])
    ok("nuls", "NULs to the end, as some file systems leave them.", b"\0" * 512)
    ok("line-nuls", "A whole entry line, then NULs.", opening + b"\0" * 512)
    ok("half-line-nuls", "Half an entry line, then NULs.", opening[:200] + b"\0" * 64)
    ok("remembered", "A torn tail, and the head before it is remembered.", opening, memory=notes[-1])
    case(
        "last-line-feed",
        "The last head line lacks only its LF: committed.",
        whole[:-1],
        flags="torn-tail",
        memory=notes[-1],
    )
    case(
        "last-line-feed-next",
        "The same behind two entry lines.",
        whole + opening + intent + head,
        flags="torn-tail",
        memory=more.notes[-1],
    )
    case(
        "torn-acknowledged",
        "A torn tail where memory holds the head that stood there: no crash explains it.",
        whole + opening + intent + head[:60],
        "head.shorter",
        "torn-tail cut-tail",
        memory=more.notes[-1],
    )
    damage("text", "Other text.", b"hello")
    damage("text-line", "Other text and an LF.", b"hello\n")
    damage("half-line-line-feed", "Half an entry line that ends in LF.", opening[:200] + b"\n")
    damage("nuls-text", "NULs before other bytes.", b"\0" * 16 + opening)
    damage("nuls-line-feed", "NULs and an LF.", b"\0" * 16 + b"\n")
    damage("index", "A whole entry line that does not continue the index.", intent, "index")
    damage(
        "previous",
        "A whole entry line that does not continue the chain.",
        opening.replace(book_previous(more), kit.ZERO.encode()),
        "previous",
    )
    damage("index-no-line-feed", "The same without its LF.", intent[:-1], "index")
    damage("empty-line", "An empty line.", b"\n")
    altered = head.replace(kit.b64(more.root).encode(), kit.b64(kit.flip(more.root)).encode())
    damage("head", "A head line without its LF whose root is another.", opening + intent + altered, "root")
    signature = more.notes[-1].rpartition(" ")[2].strip()
    raw = kit.signature_line(
        "x",
        kit.note_key_id(book.origin, LOG.public),
        kit.flip(LOG.sign(more.notes[-1].partition("\n\n")[0].encode() + b"\n"), 9),
    )
    forged = head.replace(signature.encode(), raw.rpartition(" ")[2].strip().encode())
    damage(
        "head-signature",
        "A head line without its LF whose signature does not verify.",
        opening + intent + forged,
        "bit-flip",
    )
    damage("head-size", "A head line without its LF that does not cover what is before it.", opening + head, "size")
    damage("head-alone", "A head line without its LF and nothing before it.", head, "size")
    case(
        "head-line",
        "A whole head line whose root is another, with its LF.",
        whole + opening + intent + altered + b"\n",
        "head.root",
        "root damage",
    )


def book_previous(more: Book) -> bytes:
    """The `previous` of the second but last entry of a book."""
    return kit.digest(more.rows[-3].entry).encode()


def _heads(case, lines: list[bytes]) -> None:
    def head(
        id_: str,
        comment: str,
        code: str | None,
        flags: str,
        exit_: int | None = None,
        *,
        again: bool = True,
        **given: Any,
    ) -> None:
        """A ledger whose second head is given; with `again`, an honest third one follows."""
        book = Book(label="journals")
        book.header()
        book.commit()
        book.opening()
        keys = given.pop("keys", ())
        book.commit(*keys, **given)
        if again:
            book.close()
            book.commit()
        case(id_, comment, book, code, flags, exit_)

    other = kit.sha(b"another root")
    head("head-root", "A signed head with another root, and honest ones behind it.", "head.root", "root", root_=other)
    head("head-root-last", "The last head with another root.", "head.root", "root", again=False, root_=other)
    head("head-size", "A signed head with a size too high.", "head.size", "size", size=3)
    head("head-size-last", "The last head with a size too low.", "head.size", "size", again=False, size=1)
    head(
        "head-origin",
        "A signed head of another origin.",
        "head.origin",
        "origin",
        again=False,
        origin="ledger.example/other",
    )
    head(
        "head-leading-zero",
        "A signed size with a leading zero.",
        "head.malformed",
        "leading-zero",
        again=False,
        size="02",
    )
    head("head-extension", "A signed extension line.", "head.malformed", "extension", again=False, extensions=("more",))
    head(
        "head-other-key", "The last head signed by another key.", "head.unsigned", "key", again=False, keys=(OTHER_LOG,)
    )
    head(
        "head-issuer-key",
        "The last head signed by the issuer.",
        "head.unsigned",
        "key-role",
        again=False,
        keys=(ISSUER,),
    )
    head(
        "head-other-key-middle",
        "A head in the middle signed by another key only.",
        "head.unsigned",
        "key",
        keys=(OTHER_LOG,),
    )
    head(
        "head-stranger-first",
        "A line of another key before the log's.",
        None,
        "first-signature",
        again=False,
        keys=(OTHER_LOG, LOG),
    )
    head("head-stranger-behind", "And behind.", None, "first-signature", again=False, keys=(LOG, OTHER_LOG))
    book = Book(label="journals")
    book.header()
    text = kit.checkpoint(book.origin, 1, book.root)
    key_id = kit.note_key_id(book.origin, LOG.public)
    bad = kit.signature_line(book.origin, key_id, kit.flip(LOG.sign(text.encode()), 5))
    book.commit(note=text + "\n" + bad)
    case("head-signature", "One bit of the signature of the last head.", book, "head.signature", "bit-flip")
    book = Book(label="journals")
    book.header()
    book.commit(note=text + "\n" + kit.note_line(text, book.origin, LOG) + bad)
    case("head-good-bad", "A bad line of the log key behind a good one.", book, "head.signature", "first-signature")
    book = Book(label="journals")
    book.header()
    book.commit(note="not a note")
    case("head-no-note", "A head line that holds no note.", book, "head.malformed", "lax-lines")
    first = b"".join(lines[:1]) + lines[1].replace(kit.ZERO.encode(), kit.digest(b"x").encode())
    case("head-first-link", "The first head line names something before it.", first, "head.link", "head-link")


def _first(case) -> None:
    book = Book(label="journals")
    book.opening()
    book.close()
    book.commit()
    case("no-header", "Entry 0 is an opening.", book, "chain.first_entry", "first-entry")
    book = Book(label="journals")
    book.header()
    book.opening()
    book.close()
    book.keyring = 0
    book.header()
    book.commit()
    case("second-header", "A header at index 3.", book, "chain.first_entry", "first-entry")
    book = Book(label="journals")
    book.header(format="receipt-ledger/v2")
    book.commit()
    case(
        "format-later",
        "A ledger of a later format: not altered, not known.",
        book,
        "format.unknown",
        "unknown-format",
        3,
        trust=book.trust(),
    )
    book = Book(label="journals", issuer=OTHER_ISSUER)
    book.header()
    book.commit()
    case(
        "other-header",
        "A header by another issuer under the same origin and log key.",
        book,
        "trust.header_mismatch",
        "header",
        4,
    )
    # A point of low order as a key: a signature of this form holds for every text where such keys are let through.
    weak = bytes([1]) + bytes(31)
    holds_for_all = weak + bytes(32)
    book = Book(label="journals")
    book.header(log_key="ed25519:" + weak.hex())
    text = kit.checkpoint(book.origin, 1, book.root)
    book.commit(note=text + "\n" + kit.signature_line(book.origin, kit.note_key_id(book.origin, weak), holds_for_all))
    case(
        "weak-log-key",
        "A header whose log key is a point of low order.",
        book,
        "head.signature",
        "low-order",
        trust=None,
    )
    book = Book(label="journals")
    value = book.value("header", {"format": "receipt-ledger/v1", "log_key": LOG.id, "next": {}})
    payload = kit.canonical({**value, "issuer": {"name": "build", "key": "ed25519:" + weak.hex()}})
    book.append("header", payload, kit.envelope(payload, "ed25519:" + weak.hex(), holds_for_all))
    book.commit()
    case("weak-issuer-key", "A header whose issuer key is one.", book, "seal.invalid", "low-order", trust=None)


def _segments(case, lines: list[bytes]) -> None:
    # Commits end at 1, 2, 4 and 6 entries.
    first, second = b"".join(lines[:7]), b"".join(lines[7:])
    case("segments", "Two segments.", [(0, first), (4, second)])
    case("segment-missing", "The first segment missing.", [(4, second)], "journal.segment_missing", "segments")
    case(
        "segment-missing-middle",
        "A segment in the middle missing.",
        [(0, b"".join(lines[:4])), (4, second)],
        "journal.segment_missing",
        "segments",
    )
    case(
        "segment-name",
        "A segment under the name of another index.",
        [(0, first), (5, second)],
        "journal.segment_missing",
        "segments",
    )
    case(
        "segment-split-commit",
        "A commit that spans two segments.",
        [(0, b"".join(lines[:5])), (3, b"".join(lines[5:]))],
        "journal.damaged",
        "segments",
    )
    case(
        "segment-torn",
        "A torn tail before another segment.",
        [(0, first + b'{"entry":{'), (4, second)],
        "journal.damaged",
        "segments torn-tail",
    )
    case(
        "segment-order",
        "Two segments swapped.",
        [(4, second), (0, first)],
        "journal.segment_missing",
        "segments swapped",
    )
    case(
        "segment-empty-last",
        "A new segment without bytes, as a crash before its first commit leaves.",
        [(0, first), (4, b"")],
        flags="segments",
    )


def _pins(case, book: Book) -> None:
    origin = f'[[origin]]\nname = "{book.origin}"\nlog_key = "{LOG.id}"\n'
    issuer = f'[[issuer]]\nname = "build"\nkey = "{ISSUER.id}"\n'
    case("trust-none", "No trust: it holds as far as it goes.", book, "trust.log_key_unpinned", "trust", 3, trust=None)
    case("trust-empty", "A trust that names nobody.", book, "trust.log_key_unpinned", "trust", 3, trust="")
    case("trust-no-header", "A trust without the header's id.", book, trust=origin + issuer)
    case(
        "trust-log-only",
        "A trust that names the log and no issuer.",
        book,
        "trust.issuer_unpinned",
        "trust",
        3,
        trust=origin,
    )
    case(
        "trust-issuer-only",
        "A trust that names the issuer and no log.",
        book,
        "trust.log_key_unpinned",
        "trust",
        3,
        trust=issuer,
    )
    case(
        "trust-log-mismatch",
        "The origin is pinned with another log key.",
        book,
        "trust.log_key_mismatch",
        "trust",
        4,
        trust=origin.replace(LOG.id, OTHER_LOG.id) + issuer,
    )
    case(
        "trust-header-mismatch",
        "The origin is pinned with another header.",
        book,
        "trust.header_mismatch",
        "trust",
        4,
        trust=origin + f'header = "{kit.digest(b"another")}"\n' + issuer,
    )
    case(
        "trust-issuer-mismatch",
        "The issuer's name is pinned with another key.",
        book,
        "trust.issuer_mismatch",
        "trust",
        4,
        trust=origin + issuer.replace(ISSUER.id, OTHER_ISSUER.id),
    )
    case(
        "trust-issuer-name",
        "The issuer's key is pinned under another name: it speaks under that name only.",
        book,
        "trust.issuer_mismatch",
        "trust issuer-name",
        4,
        trust=origin + issuer.replace("build", "deploy"),
    )
    case(
        "trust-issuer-role",
        "The issuer's key is pinned as an approver's.",
        book,
        "trust.issuer_mismatch",
        "trust key-role",
        4,
        trust=origin + issuer.replace("issuer", "approver"),
    )
    case(
        "trust-log-role",
        "The log key is pinned as an issuer's, and the origin is not.",
        book,
        "trust.log_key_mismatch",
        "trust key-role",
        4,
        trust=issuer + f'[[issuer]]\nname = "x"\nkey = "{LOG.id}"\n',
    )
    case(
        "trust-restricted",
        "The issuer speaks in this origin.",
        book,
        trust=origin + issuer + f'origin = ["{book.origin}"]\n',
    )
    case(
        "trust-restricted-elsewhere",
        "The issuer speaks in another origin only.",
        book,
        "trust.issuer_mismatch",
        "trust",
        4,
        trust=origin + issuer + 'origin = ["ledger.example/other"]\n',
    )
    approved = Book(label="journals approved")
    approved.header()
    members = {
        "answer": "granted",
        "role": "release",
        "expires_at": "2027-01-01T00:00:00.000Z",
        "uses": 1,
        "act_digest": kit.digest(b"act"),
    }
    approved.add("approval", members, issuer=kit.APPROVER)
    approved.commit()
    approver = f'[[approver]]\nname = "ada"\nkey = "{kit.APPROVER.id}"\nroles = ["release"]\n'
    case("trust-approver", "An approval by a pinned approver.", approved, trust=origin + issuer + approver)
    case(
        "trust-approver-unpinned",
        "An approval by nobody known.",
        approved,
        "trust.approver_unpinned",
        "trust",
        3,
        trust=origin + issuer,
    )
    case(
        "trust-approver-mismatch",
        "An approver pinned with another key.",
        approved,
        "trust.issuer_mismatch",
        "trust",
        4,
        trust=origin + issuer + approver.replace(kit.APPROVER.id, OTHER_ISSUER.id),
    )
    case(
        "trust-approver-as-issuer",
        "The approver is pinned as an issuer only.",
        approved,
        "trust.issuer_mismatch",
        "trust key-role",
        4,
        trust=origin + issuer + f'[[issuer]]\nname = "ada"\nkey = "{kit.APPROVER.id}"\n',
    )
    case(
        "trust-damage-first",
        "Not trusted and altered: what does not hold wins.",
        book.journal().replace(b'"status":"committed"', b'"status":"bommitted"'),
        "entry.receipt_id",
        "precedence",
        trust=None,
    )
