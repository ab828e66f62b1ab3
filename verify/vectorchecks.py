"""Checks of vectors: what each asks for, the shape of its input, and the function of ours that answers it.

Each reader's value is printed again: a reader and its printer are inverses.

Source: vectors/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from pydantic import Field, StringConstraints, model_validator

from ledger import canonical
from ledger.checkpoint import Head, open_head, parse_checkpoint, print_checkpoint
from ledger.digest import digest, parse_digest, print_digest
from ledger.entry import parse_entry, print_entry
from ledger.envelope import parse_envelope, print_envelope, verify_seal
from ledger.errors import LedgerError, UnknownFormatError
from ledger.facts import facts_of, read_facts
from ledger.keys import (
    next_digest,
    parse_base64,
    parse_key_id,
    print_base64,
    print_key_id,
    refuse_weak_point,
    verify_signature,
)
from ledger.line import ENTRY_PREFIX, parse_entry_line, parse_head_line, print_entry_line, print_head_line
from ledger.members import Act, Actor, Continues, Member
from ledger.note import check_note, parse_note, parse_vkey, print_note, print_vkey
from ledger.receipt import Header, act_digest, parse_receipt, print_receipt, receipt_id
from verify.chain import Segment
from verify.continues import check_continues
from verify.errors import TrustError
from verify.file import verify_file
from verify.ledger import verify_ledger
from verify.options import parse_options
from verify.proof import RootFold, leaf_hash, verify_consistency, verify_inclusion
from verify.published import verify_published
from verify.report import Verdict
from verify.trust import Trust, parse_trust

__all__ = ["CHECKS", "INPUTS", "Answer", "Check", "Read", "Status", "accepted", "refused"]

Status: TypeAlias = Literal["ok", "failed", "refused", "not_established", "not_trusted", "absent", "rule_broken"]
Read: TypeAlias = Callable[[str], bytes]
"""Gives the bytes of a file that stands beside the vectors, by its name in an input."""

_STATUS: Final[Mapping[int, Status]] = {
    0: "ok",
    1: "failed",
    2: "refused",
    3: "not_established",
    4: "not_trusted",
    5: "absent",
    6: "rule_broken",
}


_Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(?:[a-z0-9-]+/)*[a-z0-9-]+\.bin$")]
"""A file of bytes that stands beside the vectors."""

# Inputs.


class Bytes(Member):
    """Bytes: as text in UTF-8, or in hexadecimal."""

    text: str | None = None
    hex: Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{2})*$")] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Bytes:
        if (self.text is None) == (self.hex is None):
            raise ValueError("expected text or hex")
        return self

    @property
    def data(self) -> bytes:
        """The bytes."""
        return bytes.fromhex(self.hex or "") if self.text is None else self.text.encode("utf-8")


class Document(Bytes):
    """A document in canonical JSON, and how deep it may be."""

    max_depth: int = canonical.MAX_DEPTH


class Text(Member):
    """One text."""

    text: str


class ActInput(Member):
    """What an act digest is over."""

    act: Act
    ledger: str
    run: str
    actor: Actor
    effect_key: str | None = None


class SignatureInput(Member):
    """A signature, in hexadecimal, by a key over a message."""

    key: str
    signature: str
    message: str


class NoteInput(Bytes):
    """A signed note and the known keys, as text."""

    keys: tuple[str, ...] = Field(strict=False)


class HeadInput(Bytes):
    """A signed head, and the origin and log key that are believed."""

    origin: str
    log_key: str


class Leaves(Member):
    """Entries, in hexadecimal."""

    entries: tuple[str, ...] = Field(strict=False)


class InclusionInput(Member):
    """An inclusion proof: the entry, the root and the hashes in hexadecimal."""

    entry: str
    index: int
    size: int
    proof: tuple[str, ...] = Field(strict=False)
    root: str


class ConsistencyInput(Member):
    """A consistency proof: roots and hashes in hexadecimal."""

    old_size: int
    old_root: str
    new_size: int
    new_root: str
    proof: tuple[str, ...] = Field(strict=False)


class SegmentInput(Member):
    """One segment of a journal: its first index, and the file that holds its bytes."""

    first_index: int
    file: Annotated[str, StringConstraints(pattern=r"^(?:[a-z0-9-]+/)*[a-z0-9-]+\.jsonl$")]


class LedgerInput(Member):
    """A whole ledger: its segments, the trust in use (TOML), the note remembered for its origin, and what is asked for besides.

    `older` is the ledger that it has to continue, absent where that is not asked.
    """

    segments: tuple[SegmentInput, ...] = Field(strict=False)
    trust: str | None = None
    memory: str | None = None
    require: tuple[str, ...] = Field(default=(), strict=False)
    older: tuple[SegmentInput, ...] | None = Field(default=None, strict=False)


class FileInput(Member):
    """A file of evidence, the trust in use (TOML), the note remembered for its origin, and what is asked for besides."""

    file: _Name
    trust: str | None = None
    memory: str | None = None
    require: tuple[str, ...] = Field(default=(), strict=False)


class TreeFileInput(Member):
    """One file of a published tree: its path below the root, and the file that holds its bytes."""

    path: str
    file: _Name


class PublishedInput(Member):
    """A published tree: its files, the trust in use (TOML), the note remembered for its origin, and what is asked for besides."""

    files: tuple[TreeFileInput, ...] = Field(strict=False)
    trust: str | None = None
    memory: str | None = None
    require: tuple[str, ...] = Field(default=(), strict=False)


class TrustInput(Bytes):
    """A trust file; `allow_test_keys` switches off the one rule that refuses the keys of these vectors."""

    allow_test_keys: bool


# Answers.


@dataclass(frozen=True, slots=True)
class Answer:
    """What an implementation says of an input: exit code, all codes that it found, and a value where the check gives one."""

    exit: int
    codes: tuple[str, ...] = ()
    value: Any = None

    @property
    def status(self) -> Status:
        """One word for the exit code."""
        return _STATUS[self.exit]


def accepted(value: canonical.JsonValue = None) -> Answer:
    """Return the answer to an input that is accepted."""
    return Answer(0, (), value)


def refused(error: LedgerError) -> Answer:
    """Return the answer to an input that a reader refused: 3 for what it does not know, 2 for a trust file, else 1."""
    if isinstance(error, UnknownFormatError):
        return Answer(3, (error.code,))
    return Answer(2 if isinstance(error, TrustError) else 1, (error.code,))


# Checks. Each reader's value is printed again: a reader and its printer are inverses.


def _canonical(given: Document, _read: Read) -> Answer:
    value = canonical.decode(given.data, max_depth=given.max_depth)
    return _same(canonical.encode(value, max_depth=given.max_depth), given.data)


def _canonical_write(given: Text, _read: Read) -> Answer:
    return accepted(canonical.encode(orjson.loads(given.text)).decode("utf-8"))


def _digest(given: Text, _read: Read) -> Answer:
    return _same(print_digest(parse_digest(given.text)).encode("utf-8"), given.text.encode("utf-8"))


def _digest_of(given: Bytes, _read: Read) -> Answer:
    return accepted(digest(given.data))


def _receipt(given: Bytes, _read: Read) -> Answer:
    # The verifier's fast reader and the whole one accept the same receipts.
    facts = read_facts(given.data)
    try:
        receipt = parse_receipt(given.data)
    except LedgerError:
        return Answer(1, ("vectors.readers_differ",))
    if facts._replace(receipt=None) != facts_of(receipt)._replace(receipt=None):
        return Answer(1, ("vectors.readers_differ",))
    again = _same(print_receipt(receipt), given.data)
    return again if again.exit else accepted({"id": receipt_id(given.data), "kind": receipt.kind})


def _act_digest(given: ActInput, _read: Read) -> Answer:
    return accepted(
        act_digest(given.act, ledger=given.ledger, run=given.run, actor=given.actor, effect_key=given.effect_key)
    )


def _envelope(given: Bytes, _read: Read) -> Answer:
    envelope = parse_envelope(given.data)
    again = _same(print_envelope(envelope), given.data)
    if again.exit:
        return again
    return accepted(
        {
            "receipt": envelope.receipt_id,
            "payload_type": envelope.payload_type,
            "seal": None if envelope.seal is None else envelope.seal.key,
        }
    )


def _seal(given: Bytes, _read: Read) -> Answer:
    verify_seal(parse_envelope(given.data))
    return accepted()


def _key(given: Text, _read: Read) -> Answer:
    return _same(print_key_id(parse_key_id(given.text)).encode("utf-8"), given.text.encode("utf-8"))


def _key_pin(given: Text, _read: Read) -> Answer:
    refuse_weak_point(given.text)
    return accepted()


def _key_next(given: Text, _read: Read) -> Answer:
    return accepted(next_digest(given.text))


def _base64(given: Text, _read: Read) -> Answer:
    data = parse_base64(given.text)
    again = _same(print_base64(data).encode("utf-8"), given.text.encode("utf-8"))
    return again if again.exit else accepted(data.hex())


def _signature(given: SignatureInput, _read: Read) -> Answer:
    verify_signature(given.key, bytes.fromhex(given.signature), bytes.fromhex(given.message))
    return accepted()


def _entry(given: Bytes, _read: Read) -> Answer:
    return _same(print_entry(parse_entry(given.data)), given.data)


def _entry_line(given: Bytes, _read: Read) -> Answer:
    entry, envelope = parse_entry_line(given.data)
    parse_entry(entry)
    parse_envelope(envelope)
    return _same(print_entry_line(entry, envelope), given.data)


def _head_line(given: Bytes, _read: Read) -> Answer:
    note, previous = parse_head_line(given.data)
    return _same(print_head_line(note, previous), given.data)


def _merkle_root(given: Leaves, _read: Read) -> Answer:
    fold = RootFold()
    for entry in given.entries:
        fold.append(leaf_hash(bytes.fromhex(entry)))
    return accepted(fold.root().hex())


def _inclusion(given: InclusionInput, _read: Read) -> Answer:
    verify_inclusion(
        leaf=leaf_hash(bytes.fromhex(given.entry)),
        index=given.index,
        size=given.size,
        proof=[bytes.fromhex(found) for found in given.proof],
        root=bytes.fromhex(given.root),
    )
    return accepted()


def _consistency(given: ConsistencyInput, _read: Read) -> Answer:
    verify_consistency(
        old_size=given.old_size,
        old_root=bytes.fromhex(given.old_root),
        new_size=given.new_size,
        new_root=bytes.fromhex(given.new_root),
        proof=[bytes.fromhex(found) for found in given.proof],
    )
    return accepted()


def _note(given: NoteInput, _read: Read) -> Answer:
    note = parse_note(given.data)
    again = _same(print_note(note), given.data)
    if again.exit:
        return again
    verified = check_note(note, [parse_vkey(text) for text in given.keys])
    return accepted([f"{found.name}+{found.key_id.hex()}" for found in verified])


def _note_key(given: Text, _read: Read) -> Answer:
    return _same(print_vkey(parse_vkey(given.text)).encode("utf-8"), given.text.encode("utf-8"))


def _checkpoint(given: Text, _read: Read) -> Answer:
    head = parse_checkpoint(given.text)
    again = _same(print_checkpoint(head).encode("utf-8"), given.text.encode("utf-8"))
    return again if again.exit else accepted(_head_value(head))


def _head(given: HeadInput, _read: Read) -> Answer:
    return accepted(_head_value(open_head(given.data, origin=given.origin, log_key=given.log_key)))


def _trust(given: TrustInput, _read: Read) -> Answer:
    parse_trust(given.data, source="vector", allow_test_keys=given.allow_test_keys)
    return accepted()


def _ledger(given: LedgerInput, read: Read) -> Answer:
    options = parse_options(require=given.require)
    trust = _trust_of(given)
    segments = _segments(given.segments, read)
    verdict = verify_ledger(segments, trust=trust, memory=_memory_of(given), options=options)
    if given.older is not None:
        old = _segments(given.older, read)
        continues = _continued(segments)
        root = None if continues is None else _root_at(old, continues.size)
        verdict = check_continues(verdict, continues, older=verify_ledger(old, trust=trust, options=options), root=root)
    return _judged(verdict)


def _segments(listed: tuple[SegmentInput, ...], read: Read) -> tuple[Segment, ...]:
    return tuple(
        Segment(f"journal/{found.first_index:016d}.jsonl", found.first_index, read(found.file)) for found in listed
    )


def _entry_lines(segments: tuple[Segment, ...]) -> Iterator[bytes]:
    for segment in segments:
        yield from (line for line in segment.data.split(b"\n") if line.startswith(ENTRY_PREFIX))


def _continued(segments: tuple[Segment, ...]) -> Continues | None:
    """Return what the header of a ledger says that it continues."""
    _, envelope = parse_entry_line(next(_entry_lines(segments)))
    header = parse_receipt(parse_envelope(envelope).payload)
    return header.continues if isinstance(header, Header) else None


def _root_at(segments: tuple[Segment, ...], size: int) -> bytes | None:
    """Return the root of the first `size` entries, None where there are fewer."""
    entries = [parse_entry_line(line)[0] for line in _entry_lines(segments)]
    if len(entries) < size:
        return None
    fold = RootFold()
    for entry in entries[:size]:
        fold.append(leaf_hash(entry))
    return fold.root()


def _file(given: FileInput, read: Read) -> Answer:
    memory = _memory_of(given)
    verdict = verify_file(
        read(given.file),
        subject="vector",
        trust=_trust_of(given),
        remembered=lambda _origin: memory,
        options=parse_options(require=given.require),
    )
    return _judged(verdict)


def _published(given: PublishedInput, read: Read) -> Answer:
    files = {found.path: found.file for found in given.files}
    verdict = verify_published(
        lambda path: read(files[path]) if path in files else None,
        trust=_trust_of(given),
        memory=_memory_of(given),
        options=parse_options(require=given.require),
    )
    return _judged(verdict)


def _trust_of(given: LedgerInput | FileInput | PublishedInput) -> Trust | None:
    if given.trust is None:
        return None
    return parse_trust(given.trust.encode("utf-8"), source="vector", allow_test_keys=True)


def _memory_of(given: LedgerInput | FileInput | PublishedInput) -> bytes | None:
    return None if given.memory is None else given.memory.encode("utf-8")


def _judged(verdict: Verdict) -> Answer:
    return Answer(verdict.exit, tuple(check.code for check in verdict.checks if check.code is not None))


def _head_value(head: Head) -> dict[str, Any]:
    return {"origin": head.origin, "size": head.size, "root": head.root.hex()}


def _same(printed: bytes, given: bytes) -> Answer:
    """Return acceptance if a reader's value prints as what was read, else the fault of our own that it is."""
    return accepted() if printed == given else Answer(1, ("vectors.not_inverse",))


Check: TypeAlias = Callable[[Any, Read], Answer]

INPUTS: Final[Mapping[str, type[Member]]] = {
    "canonical-json": Document,
    "canonical-json.write": Text,
    "digest": Text,
    "digest.of": Bytes,
    "receipt": Bytes,
    "act-digest": ActInput,
    "envelope": Bytes,
    "seal": Bytes,
    "key": Text,
    "key.pin": Text,
    "key.next": Text,
    "base64": Text,
    "signature": SignatureInput,
    "entry": Bytes,
    "line.entry": Bytes,
    "line.head": Bytes,
    "merkle.root": Leaves,
    "merkle.inclusion": InclusionInput,
    "merkle.consistency": ConsistencyInput,
    "note": NoteInput,
    "note.key": Text,
    "checkpoint": Text,
    "head": HeadInput,
    "trust": TrustInput,
    "ledger": LedgerInput,
    "file": FileInput,
    "published": PublishedInput,
}
"""Check -> the shape of its input."""

CHECKS: Final[Mapping[str, Check]] = {
    "canonical-json": _canonical,
    "canonical-json.write": _canonical_write,
    "digest": _digest,
    "digest.of": _digest_of,
    "receipt": _receipt,
    "act-digest": _act_digest,
    "envelope": _envelope,
    "seal": _seal,
    "key": _key,
    "key.pin": _key_pin,
    "key.next": _key_next,
    "base64": _base64,
    "signature": _signature,
    "entry": _entry,
    "line.entry": _entry_line,
    "line.head": _head_line,
    "merkle.root": _merkle_root,
    "merkle.inclusion": _inclusion,
    "merkle.consistency": _consistency,
    "note": _note,
    "note.key": _note_key,
    "checkpoint": _checkpoint,
    "head": _head,
    "trust": _trust,
    "ledger": _ledger,
    "file": _file,
    "published": _published,
}
"""Check -> the function of ours that answers it."""
