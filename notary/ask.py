"""Asking a notary: from a ledger's folder to an answer that was checked, and kept beside the ledger.

- What is sent is made from the newest head of the moment, whose segment is durable first.
- A 409 says which size the notary remembers: the proof is made from there. That it remembers more than this ledger has, or
  another history, is said and nothing is sent again.
- The keyring is sent where the notary does not know the log key; an origin is admitted where the token allows it.
- An answer is kept only after it was checked against what was asked: receipt, envelope, place, a head of this ledger, the seal.
  Whom to believe is left to the trust file; a name that is pinned with another key is refused.

Source: docs/spec/notary.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol, TypeVar

from ledger.bundle import Bundle
from ledger.checkpoint import Head, head_of
from ledger.counterseal import CounterSeal, print_root
from ledger.digest import digest
from ledger.entry import parse_entry
from ledger.errors import DamagedError, clip
from ledger.merkle import consistency_proof, inclusion_proof, root_of
from ledger.notarization import HeadRequest, Notarization, Request
from ledger.note import Note, NoteSignature, parse_note, print_note
from ledger.storage.counterseals import CounterSeals
from ledger.storage.durable import fsync_folder, storage_error, sync
from ledger.storage.evidence import gather
from ledger.storage.journal import Stored, segment_path, segments
from ledger.storage.reader import Reader
from notary.client import AnswerError, NotaryClient
from notary.errors import RefusedError
from notary.keyring import follow
from verify.cosignature import cosigners_of
from verify.counterseal import open_problem
from verify.sealed import record_problem
from verify.trust import Trust

__all__ = ["Cosigned", "Sealed", "ask_head", "ask_receipt", "is_contradiction"]

_ROUNDS: Final = 6
"""A notary that remembers a larger size each time is being sent newer heads by somebody else, too."""
_LACKS_KEYRING: Final = frozenset({"origin.log_key", "origin.unknown", "witness.signature", "notary.refused"})
"""Codes after which the keys are sent as well; a witness that is none of ours says none of them."""
_Given_co = TypeVar("_Given_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A counter-seal that was checked and kept; `path` is its sealed document, `pinned` whether trust names the notary."""

    seal: CounterSeal
    path: Path
    published: bool
    pinned: bool


@dataclass(frozen=True, slots=True)
class Cosigned:
    """A head that was cosigned and kept, by lines of these names; `pinned` are those whose line was verified."""

    head: Head
    path: Path
    names: tuple[str, ...]
    pinned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """The newest head with its keyring, and what proves heads and entries under it."""

    bundle: Bundle
    head: Head
    log_key: str
    reader: Reader

    def consistency(self, old: int) -> tuple[bytes, ...]:
        """Return the proof from an older size."""
        if not 0 < old < self.head.size:
            return ()
        return tuple(consistency_proof(old, self.head.size, cache(self.reader.hash_reader(self.head))))

    def request(self, old: int, *, keyring: bool) -> HeadRequest:
        """Return what is sent of the head, from the size that the notary is thought to remember."""
        checkpoint, proof = self.bundle.checkpoint, self.consistency(old)
        if not keyring:
            return HeadRequest(checkpoint, self.log_key, old, proof)
        return HeadRequest(checkpoint, self.log_key, old, proof, self.bundle.keyring, self.bundle.last)


def ask_receipt(
    client: NotaryClient, folder: Path, receipt: str, *, trust: Trust | None, full: bool = False, publish: bool = False
) -> Sealed:
    """Return the counter-seal of a receipt, checked and kept.

    Raises:
        UnreachableError: nothing is known of the request but that it may be sent again.
        RefusedError: the notary refuses it; `is_contradiction` says whether because of what it remembers.
        AnswerError: the answer is not one to this request, or is by another key than is pinned for that name.
    """
    reader = Reader(folder)
    stored = reader.get(receipt)
    shown = _show(folder, reader, receipt if full else None)
    read = cache(reader.hash_reader(shown.head))
    proof = tuple(inclusion_proof(stored.entry.index, shown.head.size, read))

    def send(old: int, *, keyring: bool) -> Notarization:
        evidence = shown.bundle if full else None
        head = shown.request(old, keyring=keyring)
        return client.notarize(
            Request(head, stored.entry_bytes, proof, "full" if full else "digest_only", publish, evidence)
        )

    answer = _agree(shown, send)
    seal = _check_answer(answer, stored, shown, full=full)
    code = "trust.notary_unpinned" if trust is None else trust.judge_notary(seal.notary, seal.key)
    if code == "trust.notary_mismatch":
        raise AnswerError(
            f"notary: {clip(seal.notary)} sealed with {seal.key}, which is not what is pinned for it", code=code
        )
    path = CounterSeals(folder).put(answer, receipt)
    return Sealed(seal, path, answer.published, code is None)


def ask_head(client: NotaryClient, folder: Path, *, trust: Trust | None) -> Cosigned:
    """Return the newest head as it was cosigned, checked and kept.

    Raises:
        UnreachableError, RefusedError, AnswerError: as `ask_receipt`.
    """
    reader = Reader(folder)
    shown = _show(folder, reader, None)
    note = parse_note(shown.bundle.checkpoint)

    def send(old: int, *, keyring: bool) -> tuple[NoteSignature, ...]:
        if keyring and client.has_token:
            return client.send_head(shown.request(old, keyring=True))
        return client.add_checkpoint(shown.bundle.checkpoint, old=old, proof=shown.consistency(old))

    lines = tuple(
        line for line in _agree(shown, send) if line not in note.signatures and line.name != shown.head.origin
    )
    if not lines:
        raise AnswerError("notary: the answer holds no cosignature")
    cosigned = Note(note.text, (*note.signatures, *lines))
    found = cosigners_of(cosigned, trust)
    if found.bad:
        raise AnswerError(
            f"notary: the cosignature of {clip(found.bad[0])} does not verify", code="cosignature.invalid"
        )
    path = CounterSeals(folder).put_head(print_note(cosigned))
    names = tuple(dict.fromkeys(line.name for line in lines))
    good = {each.notary for each in found.good}
    return Cosigned(shown.head, path, names, tuple(name for name in names if name in good))


def is_contradiction(error: RefusedError) -> bool:
    """Return whether a notary refused because it remembers more of this ledger, or another history of it."""
    return error.code in {"head.shorter", "head.forked", "witness.consistency"} or error.status == 422


class _Send(Protocol[_Given_co]):
    """Sends a request made for the size that the notary is thought to remember, with the keyring or without."""

    def __call__(self, old: int, *, keyring: bool) -> _Given_co: ...


def _agree(shown: _Shown, send: _Send[_Given_co]) -> _Given_co:
    """Return the answer to a request that is sent again with what the notary says it lacks."""
    old, keyring = 0, False
    for _ in range(_ROUNDS):
        try:
            return send(old, keyring=keyring)
        except RefusedError as error:
            if error.status == 409 and error.size is not None and error.size != old:
                old = _next_size(shown, error.size)
            elif not keyring and error.status in {403, 404} and error.code in _LACKS_KEYRING:
                keyring = True
            else:
                raise
    raise AnswerError("notary: it asked for another beginning each time")


def _next_size(shown: _Shown, size: int) -> int:
    """Return the size that a notary remembers, which must not be larger than what is at hand."""
    if size > shown.head.size:
        raise RefusedError(
            f"notary: it remembers {size} entries of this ledger, which has {shown.head.size}: it was cut, or is an old copy",
            status=409,
            code="head.shorter",
            size=size,
        )
    return size


def _show(folder: Path, reader: Reader, receipt: str | None) -> _Shown:
    """Return the newest head with its keyring, and with the evidence for a receipt; its segment is durable."""
    bundle = gather(reader, receipt or reader.at(0).entry.receipt)
    head = head_of(bundle.checkpoint)
    if bundle.last is None:
        raise DamagedError("ledger: it has no last entry", code="journal.damaged")
    log_key = follow(bundle.keyring, bundle.last, head).log_key
    _make_durable(folder)
    return _Shown(bundle, head, log_key, reader)


def _make_durable(folder: Path) -> None:
    """Make the newest segments durable: a head that somebody else remembers must not be lost by the ledger."""
    for first in segments(folder)[-2:]:
        path = segment_path(folder, first)
        try:
            with path.open("rb") as file:
                sync(file.fileno())
        except OSError as error:
            raise storage_error(error, path) from error
    fsync_folder(folder / "journal")


def _check_answer(answer: Notarization, stored: Stored, shown: _Shown, *, full: bool) -> CounterSeal:
    """Return the counter-seal of an answer to a request."""
    seal, problem = open_problem(answer.counter_seal)
    if seal is None:
        raise AnswerError(f"notary: its counter-seal does not hold: {problem[1]}", code=problem[0])
    entry = parse_entry(stored.entry_bytes)
    asked = (entry.receipt, entry.envelope, shown.head.origin, entry.index, "full" if full else "digest_only")
    if (seal.receipt, seal.envelope, seal.origin, seal.entry_index, seal.mode) != asked:
        raise AnswerError("notary: its counter-seal is about something else", code="counterseal.subject")
    read = cache(shown.reader.hash_reader(shown.head))
    # The same submission gives the same counter-seal, so the head that it names may be an older one.
    if seal.size > shown.head.size or print_root(root_of(seal.size, read)) != seal.root:
        raise AnswerError("notary: the head in its counter-seal is none of this ledger", code="counterseal.subject")
    record = record_problem(answer, seal)
    if record is not None:
        raise AnswerError(f"notary: {record}", code="counterseal.record")
    if full and (
        answer.verdict is None or isinstance(seal.verdict, str) or digest(answer.verdict) != seal.verdict.digest
    ):
        raise AnswerError(
            "notary: the verdict beside its counter-seal is not the one it names", code="counterseal.record"
        )
    return seal
