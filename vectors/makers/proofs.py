"""Plain writers of the files that carry evidence, by docs/spec/bundles.md, trust.md and C2SP tlog-tiles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import Book, b64

Value = dict[str, Any]


def hashes(found: Iterable[bytes]) -> list[str]:
    return [b64(each) for each in found]


def proof(book: Book, index: int, size: int | None = None) -> list[str]:
    """The inclusion proof of an entry among the first `size` of a book."""
    return hashes(kit.inclusion(index, book.leaves[:size]))


def item(book: Book, index: int, size: int | None = None) -> Value:
    row = book.rows[index]
    return {"entry": json.loads(row.entry), "envelope": json.loads(row.envelope), "proof": proof(book, index, size)}


def items(book: Book, indices: Iterable[int], size: int | None = None) -> list[Value]:
    return [item(book, index, size) for index in indices]


def last(book: Book, size: int | None = None, index: int | None = None) -> Value:
    at = (size or book.size) - 1 if index is None else index
    return {"entry": json.loads(book.rows[at].entry), "proof": proof(book, at, size)}


def keyring_of(book: Book, size: int | None = None) -> list[int]:
    return [index for index, row in enumerate(book.rows[:size]) if row.kind in {"header", "key"}]


def bundle(
    book: Book,
    subject: str | int,
    indices: Iterable[int],
    *,
    size: int | None = None,
    note: str | None = None,
    covers: Iterable[int] = (),
    artifacts: Mapping[str, bytes] | None = None,
) -> Value:
    """A bundle under the newest head of a book, or the head of a size that a commit ended at."""
    value: Value = {
        "checkpoint": note or note_at(book, size),
        "items": items(book, indices, size),
        "keyring": items(book, keyring_of(book, size), size),
        "last": last(book, size),
        "schema": "receipt-ledger.bundle/v1",
        "subject": book.rows[subject].id if isinstance(subject, int) else subject,
    }
    if beyond := items(book, covers, size):
        value["covers"] = beyond
    if artifacts:
        value["artifacts"] = [{"data": b64(artifacts[name]), "digest": name} for name in sorted(artifacts)]
    return value


def note_at(book: Book, size: int | None = None) -> str:
    """The head that ended a commit at a size, the newest where no size is given."""
    if size is None:
        return book.notes[-1]
    return next(note for note in book.notes if note.split("\n")[1] == str(size))


def consistency(book: Book, old: int, new: int | None = None) -> Value:
    size = new or book.size
    return {
        "keyring": items(book, keyring_of(book, size), size),
        "last": last(book, size),
        "new": note_at(book, size),
        "old": note_at(book, old),
        "proof": hashes(kit.consistency(old, book.leaves[:size])),
        "schema": "receipt-ledger.consistency/v1",
    }


def equivocation(newer: Book, older: str, size: int) -> Value:
    """Two heads: the newest of a book, and an older or equal one of another history; the path has its first node always."""
    path = kit.consistency(size, newer.leaves, whole=False) if size < newer.size else []
    return {
        "keyring": items(newer, keyring_of(newer)),
        "newer": newer.notes[-1],
        "older": older,
        "path": hashes(path),
        "schema": "receipt-ledger.equivocation/v1",
    }


def tlog_proof(book: Book, index: int, size: int | None = None, *, note: str | None = None) -> str:
    lines = "".join(f"{found}\n" for found in proof(book, index, size))
    extra = b64(book.rows[index].entry)
    return f"c2sp.org/tlog-proof@v1\nextra {extra}\nindex {index}\n{lines}\n{note or note_at(book, size)}"


def dsse(payload: bytes, key: kit.Key, type_: str = kit.RECEIPT_TYPE) -> str:
    signature = b64(key.sign(kit.pae(payload, type_)))
    return (
        f'{{"payload":"{b64(payload)}","payloadType":"{type_}",'
        f'"signatures":[{{"keyid":"{key.id}","sig":"{signature}"}}]}}'
    )


def copy(value: Value, **members: Any) -> Value:
    """A deep copy with other members; None takes one out."""
    made: Value = json.loads(json.dumps(value))
    made.update(members)
    return {name: found for name, found in made.items() if found is not None}


class Files:
    """Adds cases of the check `file` to a file of vectors: the bytes stand beside it."""

    def __init__(self, out: File, trust: str) -> None:
        self.out = out
        self.trust = trust

    def case(
        self,
        id_: str,
        comment: str,
        given: Value | bytes | str,
        code: str | None = None,
        flags: str = "",
        exit_: int | None = None,
        *,
        trust: str | None = "usual",
        memory: str | None = None,
        require: tuple[str, ...] = (),
    ) -> None:
        data = kit.canonical(given) if isinstance(given, dict) else given
        name = f"files/{self.out.name}-{id_}.bin"
        self.out.beside[name] = data.encode() if isinstance(data, str) else data
        input_: dict[str, object] = {"file": name}
        if trust is not None:
            input_["trust"] = self.trust if trust == "usual" else trust
        if memory is not None:
            input_["memory"] = memory
        if require:
            input_["require"] = list(require)
        self.out.case("file", id_, comment, input_, code=code, flags=flags, exit_=exit_)


def pins(
    book: Book,
    *,
    log: kit.Key = kit.LOG,
    header: str | None = "",
    issuer: kit.Key | None = kit.ISSUER,
    name: str = "build",
) -> str:
    """A trust file: an empty header stands for the book's own, None for none."""
    head = book.rows[0].id if header == "" else header
    text = f'[[origin]]\nname = "{book.origin}"\nlog_key = "{log.id}"\n'
    text += f'header = "{head}"\n' if head else ""
    return text + (f'\n[[issuer]]\nname = "{name}"\nkey = "{issuer.id}"\n' if issuer else "")
