"""A notary's own ledger: what it sealed stands there before anybody receives it.

Each counter-seal and each cosignature is an `evaluation` by the notary's issuer: the subject is the receipt, or the checkpoint's
text; the document itself is an artifact. One commit takes many of them.

Source: docs/spec/notary.md, clauses 13, 20 and 33.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from ledger import canonical
from ledger.checkpoint import head_of, parse_checkpoint
from ledger.counterseal import CounterSeal, FullVerdict, open_counter_seal
from ledger.digest import digest, print_digest
from ledger.envelope import Envelope
from ledger.members import Artifact
from ledger.merkle import inclusion_proof
from ledger.note import parse_note
from ledger.receipt import Evaluation, Evaluator, parse_receipt
from ledger.recorder import common_of
from ledger.storage.journal import Rest, Stored, Tail, read_commits
from ledger.storage.ledger import PRODUCER, Ledger
from ledger.tlogproof import TlogProof, print_tlog_proof
from notary.seals import Row, head_name, seal_name

__all__ = ["CRITERIA", "Draft", "OwnLedger"]

_SEAL: Final = "counter-seal"
_COSIGNATURE: Final = "cosignature"
_VERDICT: Final = "verdict"
_METHOD: Final = "notary"

CRITERIA: Final = canonical.encode(
    {
        "schema": "receipt-ledger.criteria/v1",
        "checks": [
            {"id": "head.signed", "required": True, "statement": "The origin's log key signed the head."},
            {"id": "head.consistent", "required": True, "statement": "No head that is remembered contradicts it."},
            {"id": "entry.included", "required": False, "statement": "The entry stands under the head."},
            {"id": "evidence.verified", "required": False, "statement": "The evidence that was sent verifies."},
        ],
    }
)
"""What a notary asks of what it seals; the digest of these bytes stands in its evaluations, which are its word alone."""
_CRITERIA_DIGEST: Final = digest(CRITERIA)

_Answer = Literal["met", "not_met", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Draft:
    """Something that is sealed and not yet recorded: the document, what it is about, and the verdict in mode full."""

    document: bytes
    seal: CounterSeal | None
    """None for a cosigned note."""
    verdict: bytes | None = None


class OwnLedger:
    """The ledger of one notary, with how far it was read. One thread writes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.tail = Tail()

    @property
    def ledger(self) -> Ledger:
        """The ledger itself."""
        return self._ledger

    @property
    def log_key(self) -> str:
        """The log key that signs its heads now."""
        found: list[str] = []
        self._ledger.look(lambda view: found.append(view.keyring.log_key))
        return found[0]

    def catch_up(self, tail: Tail | None) -> Iterator[list[Row]]:
        """Yield what was sealed after `tail`, a commit at a time, having compared the journal with the register first.

        Raises:
            LedgerError: the ledger is damaged, cut, or its keys are not at hand.
        """
        self._ledger.look(lambda _: None)
        self.tail = tail or Tail()
        for commit in read_commits(self._ledger.folder, self.tail):
            if not isinstance(commit, Rest):
                yield [row for stored in commit.entries if (row := self._row_of(stored)) is not None]

    def record(self, drafts: Sequence[Draft]) -> list[Row]:
        """Return where each draft stands in the ledger, when all of them are durable.

        Raises:
            LedgerError: the ledger refused; none of them is to be given out.
        """
        ledger = self._ledger
        envelopes: list[Envelope] = [ledger.seal(self._evaluation(draft)) for draft in drafts]
        ledger.append_many(envelopes)
        placed: dict[str, Stored] = {}
        for commit in read_commits(ledger.folder, self.tail):
            if not isinstance(commit, Rest):
                placed.update((stored.entry.receipt, stored) for stored in commit.entries)
        return [_row(draft, placed[envelope.receipt_id]) for draft, envelope in zip(drafts, envelopes, strict=True)]

    def prove(self, rows: Sequence[Row]) -> list[bytes]:
        """Return the tlog-proofs of records under the newest head that was read."""
        note = self.tail.note
        head = head_of(note)
        read = cache(self._ledger.reader.hash_reader(head)) if rows else None
        return [
            print_tlog_proof(TlogProof(row.entry, inclusion_proof(row.entry, head.size, read), note, row.entry_bytes))
            for row in rows
            if read is not None
        ]

    def _evaluation(self, draft: Draft) -> Evaluation:
        store = self._ledger.artifacts
        name = _COSIGNATURE if draft.seal is None else _SEAL
        media_type = "text/plain" if draft.seal is None else "application/vnd.receipt-ledger.counter-seal+json"
        artifacts: tuple[Artifact, ...] = (
            store.stage_content(draft.document, media_type=media_type, name=name, salted=False),
        )
        if draft.verdict is not None:
            kept = store.stage_content(draft.verdict, media_type="application/json", name=_VERDICT, salted=False)
            artifacts = (*artifacts, kept)
        verdict = None if draft.seal is None else draft.seal.verdict
        subject = _text_digest(draft.document) if draft.seal is None else draft.seal.receipt
        return Evaluation(
            **common_of(self._ledger),
            subject=subject,
            criteria=_CRITERIA_DIGEST,
            evaluator=Evaluator(package=PRODUCER.name, method=_METHOD, run="unknown"),
            verdict=_conclusion(verdict),
            artifacts=artifacts,
        )

    def _row_of(self, stored: Stored) -> Row | None:
        """Return what an entry of this ledger says was sealed, None for any other receipt."""
        if b'"kind":"evaluation"' not in stored.envelope.payload:
            return None
        receipt = parse_receipt(stored.envelope.payload)
        if not isinstance(receipt, Evaluation) or receipt.evaluator.method != _METHOD:
            return None
        documents = {each.name: self._ledger.artifact(each) for each in receipt.artifacts}
        document = documents.get(_SEAL, documents.get(_COSIGNATURE))
        if document is None:
            return None
        seal = open_counter_seal(document)[0] if _SEAL in documents else None
        return _row(Draft(document, seal, documents.get(_VERDICT)), stored)


def _row(draft: Draft, stored: Stored) -> Row:
    place, document, seal = stored.entry.index, draft.document, draft.seal
    if seal is not None:
        name = seal_name(
            origin=seal.origin, receipt=seal.receipt, envelope=seal.envelope, index=seal.entry_index, mode=seal.mode
        )
        about = (seal.receipt, seal.origin, seal.size, seal.root)
    else:
        text = parse_note(document).text
        head = parse_checkpoint(text, extensions=True)
        name = head_name(text)
        about = (_text_digest(document), head.origin, head.size, print_digest(head.root))
    return Row(place, name, *about, document, stored.envelope_bytes, stored.entry_bytes, draft.verdict)


def _text_digest(note: bytes) -> str:
    return digest(parse_note(note).text.encode("utf-8"))


def _conclusion(verdict: FullVerdict | str | None) -> _Answer:
    """Return what the whole evaluation says: met, unless the evidence was sent and does not verify."""
    if not isinstance(verdict, FullVerdict) or verdict.exit == 0:
        return "met"
    return "inconclusive" if verdict.exit == 3 else "not_met"
