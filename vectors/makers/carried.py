"""Vectors of the smaller files of evidence: tlog-proofs, DSSE envelopes, consistency files, heads, envelopes, and what is none."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.bundles import base
from vectors.makers.case import File
from vectors.makers.kit import ISSUER, LOG, LOG2, OTHER_ISSUER, OTHER_LOG, Book
from vectors.makers.proofs import Files, consistency, copy, dsse, note_at, pins, tlog_proof

FOREIGN = "application/vnd.in-toto+json"


def tlog_proofs() -> File:
    out = File(
        "tlog-proofs",
        ("docs/spec/bundles.md", "docs/spec/heads.md", "docs/spec/merkle.md"),
        "extra believed before the proof, indices not compared, proofs of another size, first signature taken",
    )
    book = base()
    case = Files(out, book.trust()).case
    good = tlog_proof(book, 3)
    case(
        "entry",
        "An entry in the middle. The receipt is not in the file, which is said.",
        good,
        "check.not_asked",
        "",
        0,
    )
    case("first", "The header's entry.", tlog_proof(book, 0))
    case("last", "The last entry.", tlog_proof(book, 9))
    case("older-head", "Under an older head.", tlog_proof(book, 3, 7))
    single = Book(label="tlog-proofs single")
    single.header()
    single.commit()
    case("alone", "The one entry of a ledger: no hashes.", tlog_proof(single, 0), trust=single.trust())
    bad = "proof.malformed"
    lines = good.split("\n")

    def with_(change: Callable[[list[str]], Any]) -> str:
        made = list(lines)
        change(made)
        return "\n".join(made)

    def put(number: int, text: str) -> str:
        return with_(lambda made: made.__setitem__(number, text))

    hashes = lines[3:7]
    flipped = kit.b64(kit.flip(base64.b64decode(hashes[1])))
    case("bit", "One bit of a hash.", put(4, flipped), "proof.inclusion", "bit-flip")
    case("short", "Its last hash is gone.", with_(lambda made: made.pop(6)), bad, "length")
    case("long", "One hash more.", with_(lambda made: made.insert(6, made[6])), bad, "length")
    case(
        "swapped", "Two hashes swapped.", with_(lambda made: made.insert(3, made.pop(4))), "proof.inclusion", "swapped"
    )
    case("other-size", "Hashes for nine entries under a head of ten.", tlog_proof(book, 3, 9, note=book.notes[-1]), "proof.inclusion", "size")  # fmt: skip
    case("smaller-size", "Hashes for seven entries.", tlog_proof(book, 3, 7, note=book.notes[-1]), bad, "size")
    case(
        "index",
        "Another index than the entry's own; the hashes fit neither.",
        put(2, "index 2"),
        "chain.index",
        "index",
    )
    beyond = put(2, "index 10")
    case("index-beyond", "An index that the head does not cover.", beyond, bad, "index")
    case("index-zero", "An index with a leading zero.", put(2, "index 03"), bad, "leading-zero")
    case("index-plus", "An index with a sign.", put(2, "index +3"), bad, "lax-layout")
    entry = book.rows[3].entry
    altered = entry.replace(b"09:00:00", b"09:00:01")
    case(
        "extra-altered", "Another time in the entry.", put(1, "extra " + kit.b64(altered)), "proof.inclusion", "altered"
    )
    more = put(1, "extra " + kit.b64(entry + b" "))
    case("extra-space", "A space behind the entry.", more, "entry.malformed", "lax-layout")
    case("extra-none", "No extra: what it is about is unknown.", with_(lambda made: made.pop(1)), "subject.unknown", "extra", 5)  # fmt: skip
    case(
        "extra-url", "Base64 in the alphabet of URLs.", put(1, "extra " + kit.b64(entry)[:-2] + "-_"), bad, "lax-base64"
    )
    later = entry.replace(b"receipt-ledger.entry/v1", b"receipt-ledger.entry/v2")
    case("extra-later", "An entry of a later version, which is not under the root.", put(1, "extra " + kit.b64(later)), "proof.inclusion", "unknown-format")  # fmt: skip
    case("first-line", "A later version of the format.", put(0, "c2sp.org/tlog-proof@v2"), "subject.unknown", "unknown-format", 5)  # fmt: skip
    case("no-empty-line", "No empty line before the note.", with_(lambda made: made.pop(7)), bad, "lax-layout")
    case("carriage-returns", "Lines that end in CR LF.", good.replace("\n", "\r\n"), "subject.unknown", "lax-layout", 5)
    case("no-note", "Without its note.", "\n".join(lines[:8]), bad, "truncated")
    case("note-cut", "The last LF is gone.", good[:-1], "head.malformed", "truncated")
    size, root = book.size, book.root
    case("other-key", "Signed by another key under the log's name.", tlog_proof(book, 3, note=kit.head_note(book.origin, size, root, OTHER_LOG)), "trust.log_key_mismatch", "key", 4)  # fmt: skip
    case("stranger-first", "A line of another key before the log's.", tlog_proof(book, 3, note=kit.head_note(book.origin, size, root, OTHER_LOG, LOG)), flags="first-signature")  # fmt: skip
    key_id = kit.note_key_id(book.origin, LOG.public)
    text = kit.checkpoint(book.origin, size, root)
    bad_line = kit.signature_line(book.origin, key_id, kit.flip(LOG.sign(text.encode()), 5))
    case("signature", "One bit of the signature.", tlog_proof(book, 3, note=text + "\n" + bad_line), "head.signature", "bit-flip")  # fmt: skip
    case(
        "good-bad",
        "A bad line of the log key behind the good one.",
        good + bad_line,
        "head.signature",
        "first-signature",
    )
    case("root", "The log signed another root.", tlog_proof(book, 3, note=kit.head_note(book.origin, size, kit.flip(root), LOG)), "proof.inclusion", "root")  # fmt: skip
    grown = kit.head_note(book.origin, 11, root, LOG)
    case(
        "head-size",
        "The last entry, and the log signed this root with a size too high.",
        tlog_proof(book, 9, note=grown),
        bad,
        "size",
    )
    cosigned = kit.cosignature_line(text, "witness.example", kit.WITNESS, 1_796_000_000)
    case("cosigned", "A witness's line behind the log's.", good + cosigned, flags="unknown-line")
    case("trust-none", "No trust.", good, "trust.log_key_unpinned", "trust", 3, trust=None)
    case("trust-other-log", "The origin is pinned with another key.", good, "trust.log_key_mismatch", "trust", 4, trust=pins(book, log=OTHER_LOG))  # fmt: skip
    fork = kit.head_note(book.origin, size, kit.sha(b"another"), LOG)
    case("memory-forked", "Another head of this size is remembered.", good, "head.forked", "fork", memory=fork)
    case(
        "memory-older", "An older head is remembered.", good, "head.unreconciled", "memory", 3, memory=note_at(book, 7)
    )
    case(
        "closed", "It does not show that a run is closed.", good, "check.unsupported", "closed", 3, require=("closed",)
    )
    return out


def envelopes() -> File:
    out = File(
        "dsse",
        ("docs/spec/bundles.md", "docs/spec/envelopes.md"),
        "other spellings, several signatures, first signature taken, types left out of what is signed",
    )
    book = base()
    case = Files(out, book.trust()).case
    payload = book.rows[6].payload
    good = dsse(payload, ISSUER)
    value = json.loads(good)
    bad = "envelope.malformed"

    def spelt(**members: Any) -> str:
        return json.dumps({**value, **members}, separators=(",", ":"))

    case("run", "A sealed run.", good)
    case("grant", "A sealed grant.", dsse(book.rows[7].payload, ISSUER))
    case("line-feed", "An LF at its end.", good + "\n", bad, "lax-layout")
    case("space", "A space.", good.replace('":"', '": "', 1), bad, "lax-layout")
    case("order", "Its members in another order.", json.dumps(dict(reversed(value.items())), separators=(",", ":")), bad, "sort-order")  # fmt: skip
    slashes = dsse(kit.canonical(book.value("grant", {"action": "given", "grantee": "?" * 8})), ISSUER)
    case("slashes", "A payload whose base64 has slashes.", slashes)
    case("url", "The same in the alphabet of URLs.", spelt(payload=_url(slashes), signatures=json.loads(slashes)["signatures"]), bad, "lax-base64")  # fmt: skip
    (signature,) = value["signatures"]
    case("two", "Its signature twice.", spelt(signatures=[signature, signature]), bad, "first-signature")
    other = json.loads(dsse(payload, OTHER_ISSUER))["signatures"][0]
    case("stranger-behind", "A signature of another key behind it.", spelt(signatures=[signature, other]), bad, "first-signature")  # fmt: skip
    case("none", "No signature.", spelt(signatures=[]), bad, "skipped-seal")
    case("no-keyid", "No key id.", spelt(signatures=[{"sig": signature["sig"]}]), bad, "missing-member")
    case("another", "Signed by another key than the issuer's.", dsse(payload, OTHER_ISSUER), "seal.issuer", "key")
    raw = kit.b64(kit.flip(ISSUER.sign(kit.pae(payload)), 7))
    case("bit", "One bit of the signature.", spelt(signatures=[{**signature, "sig": raw}]), "seal.invalid", "bit-flip")
    bare = kit.b64(ISSUER.sign(payload))
    case("bare", "A signature over the payload alone.", spelt(signatures=[{**signature, "sig": bare}]), "seal.invalid", "pae")  # fmt: skip
    typed = kit.b64(ISSUER.sign(kit.pae(payload, FOREIGN)))
    case("type-not-signed", "A signature over another type.", spelt(signatures=[{**signature, "sig": typed}]), "seal.invalid", "pae")  # fmt: skip
    altered = payload.replace(b'"status":"completed"', b'"status":"failed"')
    case("payload", "Another status in the payload.", spelt(payload=kit.b64(altered)), "seal.invalid", "altered")
    loose = dsse(payload.replace(b'"status":', b'"status": '), ISSUER)
    case("payload-space", "A space in the payload, signed.", loose, "receipt.canonical", "lax-layout")
    less = book.value("grant", {"action": "given"})
    case("payload-malformed", "A grant without grantee, signed.", dsse(kit.canonical(less), ISSUER), "receipt.malformed", "missing-member")  # fmt: skip
    case("foreign", "A payload type of others, signed.", dsse(b'{"_type":"x"}', ISSUER, FOREIGN), "format.unknown", "unknown-format", 3)  # fmt: skip
    foreign = json.loads(dsse(b'{"_type":"x"}', ISSUER, FOREIGN))
    foreign["signatures"][0]["sig"] = raw
    case("foreign-bit", "The same with a signature that does not hold.", json.dumps(foreign, separators=(",", ":")), "seal.invalid", "unknown-format bit-flip")  # fmt: skip
    unsealed = dsse(book.rows[3].payload, ISSUER)
    case("outcome", "An outcome that was sealed by itself.", unsealed)
    case("trust-none", "No trust.", good, "trust.issuer_unpinned", "trust", 3, trust=None)
    case("trust-other", "The issuer is pinned with another key.", good, "trust.issuer_mismatch", "trust", 4, trust=pins(book, issuer=OTHER_ISSUER))  # fmt: skip
    case(
        "closed", "It does not show that a run is closed.", good, "check.unsupported", "closed", 3, require=("closed",)
    )
    return out


def _url(text: str) -> str:
    """The payload of an envelope in the alphabet of URLs, which has to be another text."""
    standard: str = json.loads(text)["payload"]
    made = standard.replace("+", "-").replace("/", "_")
    assert made != standard
    return made


def heads() -> File:
    out = File(
        "consistency",
        ("docs/spec/bundles.md", "docs/spec/merkle.md", "docs/spec/trust.md"),
        "proofs of other sizes, one of two heads not looked at, hidden log keys, old roots not compared",
    )
    book = base()
    case = Files(out, book.trust()).case
    good = consistency(book, 7)
    bad = "bundle.malformed"
    case("extends", "From seven entries to ten.", good)
    case("power-of-two", "From four entries: the first node is left out of such a proof.", consistency(book, 4))
    case("from-one", "From one entry.", consistency(book, 1))
    case("same", "From a head to itself: no hashes.", consistency(book, 10))
    case("older", "From four entries to seven.", consistency(book, 4, 7))
    hashes = good["proof"]
    proof = "proof.consistency"
    flipped = kit.b64(kit.flip(base64.b64decode(hashes[0])))
    case("bit", "One bit of a hash.", copy(good, proof=[flipped, *hashes[1:]]), proof, "bit-flip")
    case("short", "Its last hash is gone.", copy(good, proof=hashes[:-1]), "proof.malformed", "length")
    case("long", "One hash more.", copy(good, proof=[*hashes, hashes[0]]), "proof.malformed", "length")
    case("none", "No hashes.", copy(good, proof=[]), "proof.malformed", "length")
    case(
        "swapped", "The two heads swapped.", copy(good, old=good["new"], new=good["old"]), "proof.malformed", "swapped"
    )
    case("same-hash", "A hash between equal heads.", copy(consistency(book, 10), proof=hashes[:1]), "proof.malformed", "length")  # fmt: skip
    origin = book.origin
    forged = kit.head_note(origin, 7, kit.sha(b"another"), LOG)
    case("forked", "The log signed another root for the older size: no proof joins them.", copy(good, old=forged), proof, "fork")  # fmt: skip
    shift = kit.head_note(origin, 6, kit.root(book.leaves[:7]), LOG)
    case(
        "old-size", "The log signed the older root with another size.", copy(good, old=shift), "proof.malformed", "size"
    )
    grown = kit.head_note(origin, 11, book.root, LOG)
    case("new-size", "And the newer root.", copy(good, new=grown), "chain.index", "size")
    for name, size in (("old", 7), ("new", 10)):
        root = kit.root(book.leaves[:size])
        other = kit.head_note(origin, size, root, OTHER_LOG)
        case(f"{name}-other-key", f"The {name} head signed by another key.", copy(good, **{name: other}), "head.unsigned", "key")  # fmt: skip
        text = kit.checkpoint(origin, size, root)
        line = kit.signature_line(origin, kit.note_key_id(origin, LOG.public), kit.flip(LOG.sign(text.encode()), 5))
        case(f"{name}-signature", f"One bit of the {name} head's signature.", copy(good, **{name: text + "\n" + line}), "head.signature", "bit-flip")  # fmt: skip
        both = kit.head_note(origin, size, root, OTHER_LOG, LOG)
        case(f"{name}-stranger-first", f"A line of another key first in the {name} head.", copy(good, **{name: both}), flags="first-signature")  # fmt: skip
        case(f"{name}-not-a-note", f"No note as the {name} head.", copy(good, **{name: "x"}), bad, "lax-layout")
    elsewhere = "ledger.example/other"
    case("origins", "The older head is of another ledger.", copy(good, old=kit.head_note(elsewhere, 7, kit.root(book.leaves[:7]), LOG)), "head.origin", "origin")  # fmt: skip
    nothing = kit.head_note(origin, 0, kit.sha(b""), LOG)
    case("from-nothing", "From a head of no entries: everything extends that.", copy(good, old=nothing, proof=[]), "proof.malformed", "range")  # fmt: skip
    for name in ("keyring", "last", "new", "old", "proof"):
        case(f"no-{name}", f"No {name}.", copy(good, **{name: None}), bad, "missing-member")
    case("unknown-member", "A member that there is not.", copy(good, more=1), bad, "unknown-member")
    case("line-feed", "An LF at its end.", kit.canonical(good) + b"\n", bad, "lax-layout")
    case("keyring-empty", "No keyring.", copy(good, keyring=[]), "chain.first_entry", "keyring")
    case("schema-later", "A later version.", copy(good, schema="receipt-ledger.consistency/v2"), "subject.unknown", "unknown-format", 5)  # fmt: skip
    case("trust-none", "No trust.", good, "trust.log_key_unpinned", "trust", 3, trust=None)
    case("trust-log-only", "Of issuers nothing is asked.", good, trust=pins(book, issuer=None))
    case("trust-other-log", "The origin is pinned with another key.", good, "trust.log_key_mismatch", "trust", 4, trust=pins(book, log=OTHER_LOG))  # fmt: skip
    case(
        "memory-old", "The older head is remembered: it joins both.", good, memory=note_at(book, 7), require=("memory",)
    )
    case("memory-new", "The newer one is.", good, memory=note_at(book, 10))
    case("memory-between", "A head of nine entries is remembered: it joins neither.", good, "head.unreconciled", "memory", 3, memory=note_at(book, 9))  # fmt: skip
    case("memory-forked", "Another head of seven entries is remembered.", good, "head.forked", "fork", memory=forged)
    _rotated(case)
    return out


def _rotated(case) -> None:
    book = Book(label="consistency rotated")
    book.header()
    book.commit()
    book.rotate(LOG2, LOG, role="log")
    book.commit(LOG, LOG2)
    book.log = LOG2
    book.add("grant", {"action": "given", "grantee": "ci"})
    book.commit()
    trust = book.trust()
    good = consistency(book, 1)
    case("log-rotated", "Over a rotation of the log key: each head by the key in force at its size.", good, trust=trust)
    new_only = kit.head_note(book.origin, 1, kit.root(book.leaves[:1]), LOG2)
    case("log-rotated-old", "The older head signed by the key that was not in force yet.", copy(good, old=new_only), "head.unsigned", "early-key", trust=trust)  # fmt: skip
    old_only = kit.head_note(book.origin, 3, book.root, LOG)
    case("log-rotated-new", "The newer head signed by the retired key.", copy(good, new=old_only), "head.unsigned", "retired-key", trust=trust)  # fmt: skip
    case("log-rotation-hidden", "The rotation is left out of the keyring.", copy(good, keyring=good["keyring"][:1], new=old_only), "chain.keyring", "hidden-rotation", trust=trust)  # fmt: skip


def kinds() -> File:
    out = File(
        "files",
        ("docs/spec/bundles.md", "docs/spec/heads.md", "docs/spec/envelopes.md"),
        "files told apart by name, damage that hides what a file was, heads and receipts believed for more than they show",
    )
    book = base()
    case = Files(out, book.trust()).case
    unknown = "subject.unknown"
    note = book.notes[-1]
    case("head", "A signed head.", note)
    case("head-none", "The same without trust.", note, "check.unreachable", "trust", 3, trust=None)
    case("head-other-log", "Its origin is pinned with another key.", note, "trust.log_key_mismatch", "trust", 4, trust=pins(book, log=OTHER_LOG))  # fmt: skip
    stranger = kit.head_note(book.origin, book.size, book.root, OTHER_LOG, LOG)
    case("head-stranger-first", "A line of another key first.", stranger, flags="first-signature")
    text = kit.checkpoint(book.origin, book.size, book.root)
    key_id = kit.note_key_id(book.origin, LOG.public)
    bad = kit.signature_line(book.origin, key_id, kit.flip(LOG.sign(text.encode()), 5))
    case("head-bit", "One bit of its signature.", text + "\n" + bad, "head.signature", "bit-flip")
    case(
        "head-good-bad",
        "A bad line of the log key behind the good one.",
        note + bad,
        "head.signature",
        "first-signature",
    )
    case("head-unsigned", "A checkpoint alone.", text, "head.malformed", "unsigned")
    moved = note.replace("\n10\n", "\n11\n")
    case("head-altered", "Another size.", moved, "head.signature", "altered")
    fork = kit.head_note(book.origin, book.size, kit.sha(b"another"), LOG)
    case("head-forked", "Another head of this size is remembered.", note, "head.forked", "fork", memory=fork)
    case("head-remembered", "This one is.", note, memory=note)
    case("envelope", "The envelope of a sealed run: its seal and its issuer.", book.rows[6].envelope)
    case("envelope-unsealed", "That of an outcome: what covers it is not there.", book.rows[3].envelope, "receipt.unattributed", "attribution", 3)  # fmt: skip
    altered = book.rows[6].envelope.replace(b'"status":"completed"', b'"status":"failed"')
    case("envelope-altered", "Another status.", altered, "seal.invalid", "altered")
    taken = kit.envelope(book.rows[6].payload)
    case("envelope-seal-taken-off", "A run without its seal.", taken, "seal.absent", "skipped-seal")
    case("envelope-by-another", "A run sealed by another key.", kit.sealed(book.rows[6].payload, OTHER_ISSUER), "seal.issuer", "key")  # fmt: skip
    case("envelope-cut", "Its last byte is gone.", book.rows[6].envelope[:-1], "envelope.malformed", "truncated")
    case("receipt", "A receipt alone: no seal is at hand.", book.rows[6].payload, "check.unreachable", "attribution", 3)
    case("receipt-space", "With a space.", book.rows[6].payload.replace(b'"kind":', b'"kind": '), "receipt.canonical", "lax-layout")  # fmt: skip
    case("nothing", "No bytes.", b"", unknown, "nothing-verified", 5)
    case("text", "Some text.", "hello\n", unknown, "unknown-format", 5)
    case("object", "An object of nobody's.", "{}", unknown, "unknown-format", 5)
    case("array", "An array.", "[1]", unknown, "unknown-format", 5)
    case("nuls", "NULs.", bytes(64), unknown, "unknown-format", 5)
    case("binary", "Bytes that are no text.", kit.sha(b"x"), unknown, "unknown-format utf-8", 5)
    case("journal", "A journal: its ledger is what can be judged.", book.journal(), unknown, "unknown-format", 5)
    case("trust", "A trust file.", book.trust(), unknown, "unknown-format", 5)
    sized = kit.canonical({"schema": "receipt-ledger.bundle/v1"})
    case("bundle-schema-only", "A bundle but for everything else.", sized, "bundle.malformed", "missing-member")
    return out
