"""Vectors of equivocation files: what shows two signed histories, and what accuses nobody."""

from __future__ import annotations

import base64

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import ISSUER, LOG, LOG2, OTHER_LOG, Book
from vectors.makers.proofs import Files, copy, equivocation, items, pins

FORKED, JOINED, NOBODY = "head.forked", "proof.consistency", "head.unreconciled"


def history(name: str, grants: int = 6) -> Book:
    """A ledger with one header; what follows is told apart by a name."""
    book = Book(label="equivocations")
    book.header()
    book.commit()
    for _ in range(grants):
        book.add("grant", {"action": "given", "grantee": name})
        book.commit()
    return book


def make() -> File:
    out = File(
        "equivocations",
        ("docs/spec/trust.md", "docs/spec/bundles.md", "docs/spec/merkle.md"),
        "false accusations: heads without a path, paths that join, unknown and revoked keys; forks not seen",
    )
    one, other = history("ci"), history("cd")
    case = Files(out, one.trust()).case
    at = {int(note.split("\n")[1]): note for note in other.notes}
    good = equivocation(one, at[5], 5)
    case("forked", "Heads of five and seven entries, of two histories.", good, FORKED, "fork")
    case(
        "forked-power",
        "Of four entries: the first node stands in the path.",
        equivocation(one, at[4], 4),
        FORKED,
        "fork",
    )
    case("forked-same-size", "Two heads of seven entries.", equivocation(one, at[7], 7), FORKED, "fork")
    one_at = {int(note.split("\n")[1]): note for note in one.notes}
    case(
        "joined",
        "Heads of one history: the path joins them.",
        equivocation(one, one_at[5], 5),
        JOINED,
        "false-accusation",
    )
    case("joined-first", "The header alone, which both histories begin with.", equivocation(one, at[1], 1), JOINED, "false-accusation")  # fmt: skip
    case("same-head", "One head twice.", equivocation(one, one_at[7], 7), JOINED, "false-accusation")
    again = kit.head_note(one.origin, 7, one.root, OTHER_LOG, LOG)
    case("same-head-more-lines", "One head twice, once with a stranger's line.", copy(equivocation(one, again, 7)), JOINED, "false-accusation")  # fmt: skip
    case("no-path", "No path: nothing shows how the two stand.", copy(good, path=[]), NOBODY, "false-accusation", 3)
    path = good["path"]
    flipped = kit.b64(kit.flip(base64.b64decode(path[-1])))
    case(
        "path-bit", "One bit of the path.", copy(good, path=[*path[:-1], flipped]), JOINED, "bit-flip false-accusation"
    )
    first = kit.b64(kit.flip(base64.b64decode(path[0])))
    case("path-first-bit", "One bit of its first node.", copy(good, path=[first, *path[1:]]), JOINED, "bit-flip false-accusation")  # fmt: skip
    case("path-short", "A path without its last hash.", copy(good, path=path[:-1]), JOINED, "length false-accusation")
    without = equivocation(one, at[4], 4)
    case("path-no-first", "A path from four entries without its first node.", copy(without, path=without["path"][1:]), JOINED, "length false-accusation")  # fmt: skip
    case(
        "path-same-size",
        "A path between equal sizes.",
        copy(equivocation(one, at[7], 7), path=path[:1]),
        JOINED,
        "length",
    )
    size, root = 5, kit.root(other.leaves[:5])
    stranger = kit.head_note(one.origin, size, root, OTHER_LOG)
    case(
        "stranger",
        "The older head by a key of nobody's.",
        copy(good, older=stranger),
        NOBODY,
        "key false-accusation",
        3,
    )
    issuer = kit.head_note(one.origin, size, root, ISSUER)
    case("issuer", "The older head by the issuer.", copy(good, older=issuer), NOBODY, "key-role false-accusation", 3)
    ahead = kit.head_note(one.origin, size, root, LOG2)
    case("next-key", "The older head by the committed key, which never was in force.", copy(good, older=ahead), NOBODY, "early-key false-accusation", 3)  # fmt: skip
    text = kit.checkpoint(one.origin, size, root)
    key_id = kit.note_key_id(one.origin, LOG.public)
    bad = kit.signature_line(one.origin, key_id, kit.flip(LOG.sign(text.encode()), 5))
    case("signature", "One bit of the older head's signature.", copy(good, older=text + "\n" + bad), "head.signature", "bit-flip")  # fmt: skip
    case("stranger-first", "A stranger's line before the log's.", copy(good, older=kit.head_note(one.origin, size, root, OTHER_LOG, LOG)), FORKED, "first-signature")  # fmt: skip
    elsewhere = kit.head_note("ledger.example/other", size, root, LOG)
    case(
        "origins",
        "Heads of two origins by one key.",
        copy(good, older=elsewhere),
        "head.origin",
        "origin false-accusation",
    )
    case("swapped", "The two heads swapped.", copy(good, older=good["newer"], newer=good["older"]), "proof.malformed", "swapped")  # fmt: skip
    nothing = kit.head_note(one.origin, 0, kit.sha(b"x"), LOG)
    case("nothing", "A head of no entries with the root of something.", copy(good, older=nothing), "proof.malformed", "range false-accusation")  # fmt: skip
    case("trust-none", "No trust: the origin is nobody's.", good, "trust.log_key_unpinned", "trust", 3, trust=None)
    case("trust-other", "The origin is pinned with another key.", good, "trust.log_key_mismatch", "trust", 4, trust=pins(one, log=OTHER_LOG))  # fmt: skip
    case("keyring-empty", "No keyring.", copy(good, keyring=[]), "chain.first_entry", "keyring")
    foreign = copy(good, keyring=items(one, (0,), 5))
    case(
        "keyring-other-size",
        "A header with the proof for five entries; for seven there are three hashes too.",
        foreign,
        "proof.inclusion",
        "size",
    )
    swapped = copy(good, keyring=[{**good["keyring"][0], "proof": good["keyring"][0]["proof"][::-1]}])
    case("keyring-proof", "A header that is not under the newer head.", swapped, "proof.inclusion", "swapped")
    case("member", "A member that there is not.", copy(good, more=1), "proof.malformed", "unknown-member")
    case("line-feed", "An LF at its end.", kit.canonical(good) + b"\n", "proof.malformed", "lax-layout")
    case("schema-later", "A later version.", copy(good, schema="receipt-ledger.equivocation/v2"), "subject.unknown", "unknown-format", 5)  # fmt: skip
    case("closed", "An equivocation where a closed run is asked for: what does not hold wins.", good, FORKED, "precedence", require=("closed",))  # fmt: skip
    _revoked(case)
    return out


def _revoked(case) -> None:
    def ledger(action: str, **members: int) -> Book:
        book = Book(label="equivocations revoked")
        book.header()
        book.add("grant", {"action": "given", "grantee": "ci"})
        book.commit()
        book.rotate(LOG2, LOG, role="log", action=action, **members)
        book.commit(LOG, LOG2)
        book.log = LOG2
        book.add("grant", {"action": "given", "grantee": "ci"})
        book.commit()
        return book

    fork = kit.sha(b"another history")

    def shown(book: Book, size: int, key: kit.Key) -> dict[str, object]:
        return equivocation(book, kit.head_note(book.origin, size, fork, key), size)

    book = ledger("rotate")
    case("rotated-old", "Another head of four entries by the retired log key.", shown(book, 4, LOG), FORKED, "fork retired-key", trust=book.trust())  # fmt: skip
    book = ledger("revoke", from_index=1)
    trust = book.trust()
    case("revoked-old", "The same by a key that was revoked from before: its thief could sign it.", shown(book, 4, LOG), "key.revoked", "false-accusation revoked-key", 4, trust=trust)  # fmt: skip
    case("revoked-edge", "Another head of one entry by it: from before it was revoked.", shown(book, 1, LOG), FORKED, "fork revoked-key", trust=trust)  # fmt: skip
    case("revoked-edge-2", "Another head of two entries by it: over an entry from which it is revoked.", shown(book, 2, LOG), "key.revoked", "false-accusation revoked-key", 4, trust=trust)  # fmt: skip
    case(
        "revoked-new", "Another head of four entries by the new key.", shown(book, 4, LOG2), FORKED, "fork", trust=trust
    )
    hidden = shown(book, 4, LOG2)
    hidden["keyring"] = items(book, (0,))
    case("revocation-hidden", "Its keyring without the revocation: the new key is not known.", hidden, NOBODY, "hidden-rotation", 3, trust=trust)  # fmt: skip
