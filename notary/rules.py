"""The witness rule: what a notary may remember next, decided from what it remembers and what it is shown.

- A head is believed by the log key that is known of its origin, and by no other.
- Of each origin one head is remembered. The next one must be joined to it by a consistency proof; equal sizes have equal roots.
- A log key is replaced only through the keyring of a head that the proof joins to the remembered one.
- Nothing here remembers, signs, or reads a clock: whoever calls makes the result durable before anything is signed.

Each refusal names the HTTP status of C2SP tlog-witness.

Source: docs/spec/notary.md, "Witness rule".
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ledger.bundle import Item, LastEntry
from ledger.canonical import MAX_INTEGER
from ledger.checkpoint import Head, parse_checkpoint
from ledger.entry import Entry, parse_entry
from ledger.errors import LedgerError, UnknownFormatError, clip
from ledger.keys import parse_key_id, refuse_weak_point
from ledger.members import Origin
from ledger.note import ED25519, Note, NoteKey, NoteSignature, check_note, parse_note, print_note
from ledger.testkeys import PUBLISHED_TEST_KEYS
from notary.errors import RefusedError
from notary.keyring import follow
from verify.errors import ProofError
from verify.memory import proven_prefix
from verify.proof import EMPTY_ROOT, leaf_hash, verify_consistency, verify_inclusion

__all__ = [
    "Known",
    "Shown",
    "admit",
    "check_entry",
    "decide",
    "follow_log_key",
    "log_line",
    "open_shown",
    "read_shown",
]

_NO_ROOT: Final = b""
_ORIGIN: Final[TypeAdapter[str]] = TypeAdapter(Origin)


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of one origin: the key that signs its heads, and the newest head, size 0 and no root before the first.

    `log_name` is the name of the key on its notes, mostly the origin. `note` is the remembered head as it was signed.
    """

    origin: str
    log_name: str
    log_key: str
    size: int = 0
    root: bytes = _NO_ROOT
    note: bytes = b""


@dataclass(frozen=True, slots=True)
class Shown:
    """A checkpoint that was parsed: the note, its bytes and the head that it states. No signature was looked at."""

    note: Note
    data: bytes
    head: Head


def read_shown(data: bytes, *, foreign: bool) -> Shown:
    """Return the checkpoint whose signed note is `data`.

    A `foreign` one, of any log, may have any origin and extension lines, which a cosignature covers too. Signature lines in a
    spelling that is not theirs (base64 with stray bits, which other tools let through) are lines of nobody in it.

    Raises:
        RefusedError: 400, with the code of what is malformed.
    """
    try:
        note = _misspelt(data) if foreign else None
        note = note or parse_note(data)
        shown = Shown(note, data, parse_checkpoint(note.text, extensions=foreign))
    except LedgerError as error:
        raise RefusedError(str(error), status=400, code=error.code) from error
    if not foreign and not _is_origin(shown.head.origin):
        raise RefusedError(
            f"origin: got {clip(shown.head.origin)}, expected a ledger's", status=400, code="head.origin"
        )
    return shown


def _misspelt(data: bytes) -> Note | None:
    """Return a note without signatures where the base64 of some line has stray bits and all is well formed else; None otherwise."""
    text, _, lines = data.rpartition(b"\n\n")
    if not lines.endswith(b"\n"):
        return None
    mended = []
    for line in lines[:-1].split(b"\n"):
        start, space, encoded = line.rpartition(b" ")
        try:
            mended.append(start + space + b64encode(b64decode(encoded, validate=True)) + b"\n")
        except ValueError:
            return None
    whole = text + b"\n\n" + b"".join(mended)
    return None if whole == data else replace(parse_note(whole), signatures=())


def _is_origin(text: str) -> bool:
    try:
        _ORIGIN.validate_python(text)
    except ValidationError:
        return False
    return True


def admit(origin: str, log_key: str, *, log_name: str | None = None) -> Known:
    """Return what is remembered of an origin that was never seen, under a log key that may be known.

    Raises:
        RefusedError: 403, `origin.log_key`, for a key that nobody should believe: of low order, published, of an unknown algorithm.
    """
    try:
        refuse_weak_point(log_key)
    except LedgerError as error:
        raise RefusedError(str(error), status=403, code="origin.log_key") from error
    if log_key in PUBLISHED_TEST_KEYS:
        raise RefusedError(
            f"log key: the private half of {clip(log_key)} is published", status=403, code="origin.log_key"
        )
    return Known(origin, log_name or origin, log_key)


def log_line(known: Known, shown: Shown) -> NoteSignature:
    """Return the line by which the log key signed the checkpoint.

    Raises:
        RefusedError: 403, `witness.signature`.
    """
    try:
        return _verified_line(shown.note, known.log_name, known.log_key)
    except LedgerError as error:
        raise RefusedError(str(error), status=403, code="witness.signature") from error


@lru_cache(maxsize=256)
def _verified_line(note: Note, name: str, log_key: str) -> NoteSignature:
    """Return the line by a log key; many submissions at once bring the same head."""
    return check_note(note, (NoteKey(name, ED25519, parse_key_id(log_key)),))[0]


def open_shown(known: Known, shown: Shown) -> None:
    """Return if the checkpoint is of this origin and its log key signed it; raises as `log_line`."""
    if shown.head.origin != known.origin:
        raise RefusedError(f"origin: got {clip(shown.head.origin)}", status=404, code="origin.unknown")
    log_line(known, shown)


def decide(known: Known, shown: Shown, *, old: int, proof: Sequence[bytes]) -> Known:
    """Return what is to be remembered once the head of a checkpoint, signed by the known log key, is seen.

    The note that is remembered holds that key's line and no other.

    Raises:
        RefusedError: 403, 400, 409 or 422 by the table of the witness rule; nothing is to be remembered then.
    """
    head = shown.head
    note = print_note(Note(shown.note.text, (log_line(known, shown),)))
    if old > head.size:
        raise RefusedError(
            f"old: got {old}, above the checkpoint's size {head.size}", status=400, code="witness.old_size"
        )
    if old != known.size:
        raise RefusedError(
            f"old: got {old}, remembered is {known.size}", status=409, code="witness.size", size=known.size
        )
    if head.size == 0 and head.root != EMPTY_ROOT:
        raise _inconsistent("a root of nothing that is not that of nothing")
    if head.size == known.size and known.note:
        if head.root != known.root:
            raise _inconsistent(f"another root at size {head.size} is remembered")
        if proof:
            raise _inconsistent("proof lines between equal sizes")
        return replace(known, note=note)
    if known.size == 0:
        # Every tree extends the empty one, so there is nothing to prove.
        if proof:
            raise _inconsistent("proof lines from size 0")
    else:
        _check_proof(known, head, proof)
    return replace(known, size=head.size, root=head.root, note=note)


def follow_log_key(
    known: Known, shown: Shown, log_key: str, *, keyring: Sequence[Item], last: LastEntry | None
) -> Known:
    """Return what is known with the log key that the keyring under the checkpoint leads to.

    It holds only if `decide` joins the checkpoint to the remembered head as well: the caller asks both.

    Raises:
        RefusedError: 403, `origin.log_key`, where the key is another and nothing leads to it; 422, `notarize.keyring`, where the
            keyring does not hold.
    """
    if not keyring or last is None:
        if log_key != known.log_key:
            raise _unknown_key(known, log_key)
        return known
    try:
        found = follow(keyring, last, shown.head)
    except LedgerError as error:
        raise RefusedError(str(error), status=422, code="notarize.keyring") from error
    if found.origin != known.origin or log_key not in found.log_keys:
        raise _unknown_key(known, log_key)
    if log_key == known.log_key:
        return known
    # Anybody can write a header that names the known key and commits a key of his own after it: a remembered head tells.
    follows = known.log_key in found.log_keys and found.log_keys.index(log_key) > found.log_keys.index(known.log_key)
    if not follows or log_key != found.log_key or not known.size:
        raise _unknown_key(known, log_key)
    return replace(admit(known.origin, log_key), size=known.size, root=known.root, note=known.note)


def check_entry(entry_bytes: bytes, proof: Sequence[bytes], head: Head) -> Entry:
    """Return the entry that stands under a head.

    Raises:
        RefusedError: 400 for bytes that are no entry, 422, `notarize.inclusion`, where the proof does not lead to the root.
    """
    try:
        entry = parse_entry(entry_bytes)
    except UnknownFormatError as error:
        raise RefusedError(str(error), status=400, code=error.code) from error
    except LedgerError as error:
        raise RefusedError(str(error), status=400, code="entry.malformed") from error
    if not 1 <= head.size <= MAX_INTEGER:
        raise RefusedError(f"head: got size {head.size}", status=400, code="head.malformed")
    try:
        verify_inclusion(leaf=leaf_hash(entry_bytes), index=entry.index, size=head.size, proof=proof, root=head.root)
    except ProofError as error:
        raise RefusedError(str(error), status=422, code="notarize.inclusion") from error
    return entry


def _check_proof(known: Known, head: Head, proof: Sequence[bytes]) -> None:
    try:
        verify_consistency(
            old_size=known.size, old_root=known.root, new_size=head.size, new_root=head.root, proof=proof
        )
    except ProofError as error:
        # A proof may name its first node where that is the old root itself.
        if proven_prefix(known.size, head.size, head.root, proof) != known.root:
            raise _inconsistent(str(error)) from error


def _inconsistent(message: str) -> RefusedError:
    return RefusedError(message, status=422, code="witness.consistency")


def _unknown_key(known: Known, log_key: str) -> RefusedError:
    return RefusedError(
        f"log key: got {clip(log_key)}, known of this origin is {known.log_key}", status=403, code="origin.log_key"
    )
