"""What notaries gave, kept beside a ledger: never inside what is hashed, and no part of it is needed to verify without notaries.

    notary/seals/<receipt, 64 hex>-<16 hex>.json          the sealed document: a counter-seal's envelope, and nothing more
    notary/seals/<receipt, 64 hex>-<16 hex>.record.json   the envelope of the notary's own receipt about it
    notary/seals/<receipt, 64 hex>-<16 hex>.tlog-proof    the place of that receipt in the notary's own ledger
    notary/seals/<receipt, 64 hex>-<16 hex>.verdict.json  the notary's verdict, where it was sent the evidence
    notary/heads/<size, 16 digits>-<root, 16 hex>.note    a signed head with cosignatures, lines of several notaries together
    notary/heads/<size>-<root>.<16 hex>.tsr               a timestamp token (RFC 3161) over that head, as DER

The second number is the beginning of the SHA-256 of the file. The sealed document is written last: where it is, the rest is.

Source: docs/spec/bundles.md, "Beside the ledger".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from ledger.bundle import Bundle, CarriedHead, CarriedSeal, parse_range
from ledger.checkpoint import Head, head_of
from ledger.counterseal import COUNTER_SEAL_MAX_BYTES, CounterSeal, open_counter_seal
from ledger.errors import LedgerError, StorageError
from ledger.merkle import HashReader, consistency_proof
from ledger.notarization import Notarization
from ledger.note import NOTE_MAX_BYTES, Note, parse_note, print_note
from ledger.storage.durable import make_folder, open_regular, replace, write_new
from ledger.storage.lock import LedgerLock
from ledger.storage.reader import Reader

__all__ = ["NOTARY", "CounterSeals", "KeptHead", "attach", "carried_of_ledger", "cosigned"]

NOTARY: Final = "notary"
_SEAL = re.compile(r"([0-9a-f]{64})-[0-9a-f]{16}\.json")
_HEAD = re.compile(r"([0-9]{16})-[0-9a-f]{16}\.note")
_SAID = re.compile(
    rb'"key":"(?P<key>[^"]{1,128})","mode":"[^"]{1,16}","notary":"(?P<notary>[^"]{1,255})".*"size":(?P<size>[0-9]{1,16}),'
)
_DIGITS: Final = 16
TOKEN_MAX_BYTES: Final = 64 * 1024
"""Of a timestamp token."""
_MAX_CARRIED: Final = 64
"""Counter-seals and heads in one bundle, each."""


@dataclass(frozen=True, slots=True)
class KeptHead:
    """A head with cosignatures, its note, and the timestamp tokens over it."""

    head: Head
    note: bytes
    timestamps: tuple[bytes, ...]

    @property
    def signers(self) -> frozenset[tuple[str, bytes]]:
        """Name and key id of every line that is not the log's; one without a name stands for whoever timestamped it."""
        lines = {(each.name, each.key_id) for each in parse_note(self.note).signatures if each.name != self.head.origin}
        return frozenset(lines | ({("", b"")} if self.timestamps else set()))


class CounterSeals:
    """The folder `notary` of a ledger."""

    def __init__(self, folder: Path) -> None:
        self._seals = folder / NOTARY / "seals"
        self._heads = folder / NOTARY / "heads"

    def put(self, found: Notarization, receipt: str) -> Path:
        """Keep a notary's answer about a receipt durably; return where the sealed document lies. A newer proof replaces an older one.

        Raises:
            StorageError: it could not be kept.
        """
        make_folder(self._seals)
        stem = f"{receipt.removeprefix('sha256:')}-{_digits(found.counter_seal)}"
        _put(self._seals / f"{stem}.record.json", found.record)
        replace(self._seals / f"{stem}.tlog-proof", found.tlog_proof, durable=True)
        if found.verdict is not None:
            _put(self._seals / f"{stem}.verdict.json", found.verdict)
        path = self._seals / f"{stem}.json"
        _put(path, found.counter_seal)
        return path

    def of(self, receipt: str) -> list[tuple[Path, bytes]]:
        """Return path and bytes of the sealed documents about a receipt, as they lie."""
        return self._documents(f"{receipt.removeprefix('sha256:')}-")

    def all(self) -> list[tuple[Path, bytes]]:
        """Return path and bytes of all sealed documents."""
        return self._documents("")

    def _documents(self, prefix: str) -> list[tuple[Path, bytes]]:
        if not self._seals.is_dir():
            return []
        names = sorted(path.name for path in self._seals.iterdir() if path.name.startswith(prefix))
        paths = [self._seals / name for name in names if _SEAL.fullmatch(name)]
        return [(path, _bytes(path, COUNTER_SEAL_MAX_BYTES)) for path in paths]

    def put_head(self, note: bytes) -> Path:
        """Keep a signed head durably, its cosignatures beside those that were kept before; return where it lies.

        Raises:
            StorageError: it could not be kept.
        """
        make_folder(self._heads)
        path = self._heads / f"{_stem(head_of(note))}.note"
        # Two notaries may answer two processes at once.
        with LedgerLock(self._heads / "lock").hold():
            before = path.read_bytes() if path.exists() else None
            after = note if before is None else _joined(before, note)
            if after != before:
                replace(path, after, durable=True)
        return path

    def put_timestamp(self, note: bytes, token: bytes) -> Path:
        """Keep a timestamp token over a head durably; return where it lies."""
        self.put_head(note)
        path = self._heads / f"{_stem(head_of(note))}.{_digits(token)}.tsr"
        _put(path, token)
        return path

    def head(self, head: Head) -> KeptHead | None:
        """Return what was kept of one head, None where nothing was."""
        found = self._kept([f"{_stem(head)}.note"])
        return found[0] if found and found[0].head == head else None

    def newest(self) -> list[KeptHead]:
        """Return the heads that were kept last, at most 256, the smallest first; what is no head is left out."""
        return self._kept(self._names()[-4 * _MAX_CARRIED :])

    def around(self, first: int, last: int) -> list[KeptHead]:
        """Return heads of sizes up to `first` and above `last`, the smallest first: the nearest 64 of each, and the newest 64."""
        names = self._names()
        before = [name for name in names if int(name[:_DIGITS]) <= first]
        after = [name for name in names if int(name[:_DIGITS]) > last]
        chosen = (*before[-_MAX_CARRIED:], *after[:_MAX_CARRIED], *after[-_MAX_CARRIED:])
        return self._kept(list(dict.fromkeys(chosen)))

    def _names(self) -> list[str]:
        if not self._heads.is_dir():
            return []
        return sorted(path.name for path in self._heads.iterdir() if _HEAD.fullmatch(path.name))

    def _kept(self, names: Sequence[str]) -> list[KeptHead]:
        found = []
        for name in names:
            note = _bytes(self._heads / name, NOTE_MAX_BYTES)
            tokens = sorted(self._heads.glob(name.removesuffix(".note") + ".*.tsr"))
            try:
                found.append(KeptHead(head_of(note), note, tuple(_bytes(each, TOKEN_MAX_BYTES) for each in tokens)))
            except LedgerError:
                continue
        return found


def attach(bundle: Bundle, reader: Reader, folder: Path) -> Bundle:
    """Return a bundle with what notaries gave for its subject and for heads that bound it, each joined to its checkpoint."""
    kept = CounterSeals(folder)
    head = head_of(bundle.checkpoint)
    span = parse_range(bundle.subject)
    documents: list[bytes] = []
    if span is None:
        index = reader.get(bundle.subject).entry.index
        first, last = index, index
        documents = [document for _, document in kept.of(bundle.subject)][:_MAX_CARRIED]
    else:
        first, last = span[0], span[1] - 1
    read = cache(reader.hash_reader(head))
    chosen = _choose(kept.around(first, last), first, last, head)
    carried: tuple[CarriedSeal | CarriedHead, ...] = (
        *_carry_seals(documents, head, read),
        *_carry_heads(chosen, head, read),
    )
    return changed(bundle, checkpoint=cosigned(bundle.checkpoint, folder), counter_seals=carried)


def cosigned(note: bytes, folder: Path) -> bytes:
    """Return the note of a head with the cosignatures that were kept of it."""
    found = CounterSeals(folder).head(head_of(note))
    return note if found is None else _joined(note, found.note)


def carried_of_ledger(
    reader: Reader, folder: Path, head: Head, note: bytes
) -> tuple[tuple[CarriedSeal | CarriedHead, ...], bytes]:
    """Return what notaries gave for a whole ledger, and the note of its head with their lines.

    That is the newest counter-seal of each notary, and the heads that each signed last.
    """
    kept = CounterSeals(folder)
    newest: dict[bytes, tuple[int, bytes]] = {}
    for _, document in kept.all():
        # Told by the look of it: there may be as many as runs, and the verifier judges those that are chosen.
        match = _SAID.search(document)
        who, size = (document, 0) if match is None else (match["key"] + match["notary"], int(match["size"]))
        if who not in newest or size > newest[who][0]:
            newest[who] = size, document
    read = cache(reader.hash_reader(head))
    documents = [document for _, document in sorted(newest.values())][-_MAX_CARRIED:]
    heads = _new_signers(reversed(kept.newest()))
    chosen = [each for each in heads if each.head != head or each.timestamps][:_MAX_CARRIED]
    return (*_carry_seals(documents, head, read), *_carry_heads(chosen, head, read)), cosigned(note, folder)


def _choose(heads: Sequence[KeptHead], first: int, last: int, head: Head) -> list[KeptHead]:
    """Return the heads that say most of a span: the earliest of each signer after it, the latest before it, and the newest of all."""
    after = _new_signers(each for each in heads if each.head.size > last)
    before = _new_signers(each for each in reversed(heads) if each.head.size <= first)
    newest = [heads[-1]] if heads and heads[-1] not in after and heads[-1].head.size > last else []
    # The lines of the checkpoint itself stand on it; a token over it needs an item of its own.
    return [each for each in (*reversed(before), *after, *newest) if each.head != head or each.timestamps][
        :_MAX_CARRIED
    ]


def _new_signers(heads: Iterator[KeptHead]) -> list[KeptHead]:
    """Return those heads that somebody signed who signed none before."""
    seen: set[tuple[str, bytes]] = set()
    found = []
    for each in heads:
        if not each.signers <= seen:
            found.append(each)
            seen |= each.signers
    return found


def _carry_seals(documents: Sequence[bytes], head: Head, read: HashReader) -> Iterator[CarriedSeal]:
    for document in documents:
        seal = _read(document)
        yield CarriedSeal(() if seal is None else _proof(seal.size, head, read), document)


def _carry_heads(heads: Sequence[KeptHead], head: Head, read: HashReader) -> Iterator[CarriedHead]:
    for each in heads:
        proof = _proof(each.head.size, head, read)
        for token in each.timestamps or (None,):
            yield CarriedHead(proof, each.note, token)


def _proof(size: int, head: Head, read: HashReader) -> tuple[bytes, ...]:
    """Return the consistency proof to a head; none where there can be none, and the verifier says what that means."""
    return tuple(consistency_proof(size, head.size, read)) if 1 <= size < head.size else ()


def _read(document: bytes) -> CounterSeal | None:
    try:
        return open_counter_seal(document)[0]
    except LedgerError:
        return None


def _joined(first: bytes, second: bytes) -> bytes:
    """Return one note with the lines of two over the same text, each line once."""
    one, two = parse_note(first), parse_note(second)
    more = tuple(line for line in two.signatures if line not in one.signatures)
    return print_note(Note(one.text, (*one.signatures, *more))) if one.text == two.text and more else first


def _stem(head: Head) -> str:
    return f"{head.size:016d}-{head.root.hex()[:_DIGITS]}"


def _digits(data: bytes) -> str:
    return sha256(data).hexdigest()[:_DIGITS]


def _bytes(path: Path, limit: int) -> bytes:
    """Return the bytes of a file, at most one more than may be; none where it cannot be read, and the verifier says what that is."""
    try:
        with open_regular(path) as file:
            return file.read(limit + 1)
    except OSError:
        return b""


def _put(path: Path, data: bytes) -> None:
    """Write a file that may be there already with the same bytes."""
    try:
        write_new(path, data)
    except StorageError as error:
        if error.code != "storage.exists" or path.read_bytes() != data:
            raise
