"""Inputs of the checks of vectors: the shape of each, and what is answered.

Source: vectors/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from ledger import canonical
from ledger.errors import LedgerError, UnknownFormatError
from ledger.members import Act, Actor, Member
from verify.errors import TrustError

__all__ = [
    "INPUTS",
    "ActInput",
    "Answer",
    "Bytes",
    "Check",
    "ConsistencyInput",
    "Document",
    "FileInput",
    "HeadInput",
    "InclusionInput",
    "Leaves",
    "LedgerInput",
    "NoteInput",
    "PublishedInput",
    "Read",
    "SegmentInput",
    "SignatureInput",
    "Status",
    "Text",
    "TrustInput",
    "accepted",
    "refused",
]

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


# Inputs.

_Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(?:[a-z0-9-]+/)*[a-z0-9-]+\.bin$")]
"""A file of bytes that stands beside the vectors."""


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

    `older` is the ledger that it has to continue, absent where that is not asked. `documents` are the texts at hand that its
    receipts name by their SHA-256: policies, and arguments of acts.
    """

    segments: tuple[SegmentInput, ...] = Field(strict=False)
    trust: str | None = None
    memory: str | None = None
    require: tuple[str, ...] = Field(default=(), strict=False)
    older: tuple[SegmentInput, ...] | None = Field(default=None, strict=False)
    documents: tuple[str, ...] = Field(default=(), strict=False)


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
