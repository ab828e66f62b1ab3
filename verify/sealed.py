"""A notary's document on its own: whose seal it is, and what it says, without the receipt and without the ledger.

Two of ours: the sealed document (a counter-seal's envelope), and a notary's whole answer, with its own record of that counter-seal
and the place of that record in its own ledger. The sealed document needs one key to check; the answer also the notary's log key.

Documents of the hosted runx notary are judged by runx's rules (docs/spec/runx-notary.md).

Source: docs/spec/notary.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledger import canonical
from ledger.checkpoint import Head, head_of, open_head
from ledger.counterseal import COUNTER_SEAL_TYPE, CounterSeal
from ledger.digest import digest
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope, verify_seal
from ledger.errors import LedgerError, clip
from ledger.notarization import NOTARIZATION_SCHEMA, Notarization, parse_notarization
from ledger.receipt import Evaluation, parse_receipt
from ledger.tlogproof import parse_tlog_proof
from verify.counterseal import COUNTER_SEALS, open_problem
from verify.headfile import skip_unsupported
from verify.options import Options
from verify.pins import trust_used
from verify.proof import leaf_hash, verify_inclusion
from verify.report import Coverage, Report, TimeBound, TimeBounds, Verdict
from verify.trust import Trust

__all__ = ["SEALED_MAX_BYTES", "is_sealed_document", "record_problem", "verify_sealed"]

SEALED_MAX_BYTES: Final = 16 << 20
_ARTIFACT: Final = "counter-seal"
_TYPE: Final = f'"payload_type":"{COUNTER_SEAL_TYPE}"'.encode("ascii")


def is_sealed_document(data: bytes) -> bool:
    """Return whether bytes show the marks of a sealed document or of a notary's answer, well formed or not."""
    return _TYPE in data[-1024:] or f'"schema":"{NOTARIZATION_SCHEMA}"'.encode("ascii") in data


def verify_sealed(
    data: bytes,
    *,
    subject: str,
    trust: Trust | None,
    keys: Sequence[str] = (),
    options: Options = Options(),  # noqa: B008  frozen
) -> Verdict:
    """Return the verdict on a notary's document.

    Args:
        data: the sealed document, or a notary's whole answer.
        subject: what the verdict calls it where it has no receipt to be called by.
        trust: whom to believe where no keys are given.
        keys: key ids of seal keys to believe, under whatever name; the trust file is not asked then.
        options: what is asked for.
    """
    report = Report()
    report.expect("subject", COUNTER_SEALS, "notary")
    answer, document = _read(report, data)
    seal, problem = (None, ("", "")) if document is None else open_problem(document)
    bounds = None
    if seal is None:
        if document is not None:
            report.find(COUNTER_SEALS, problem[0], message=problem[1])
    else:
        report.ran(COUNTER_SEALS)
        bounds = _judge_notary(report, seal, trust, keys)
    if answer is not None and seal is not None:
        report.expect("record", "log key")
        _judge_record(report, answer, seal, trust)
    required = max(options.counter_seals, 0 if trust is None or keys else trust.quorum)
    if required > 1:
        report.find(COUNTER_SEALS, "trust.quorum", message=f"one document is by one notary, {required} are asked for")
    skip_unsupported(report, options, "a notary's document", counter_seals=False)
    report.skip(
        "receipts", "check.not_asked", "the receipt is not in the file, only what was sealed of it", asked=False
    )
    head = None if seal is None else Head(seal.origin, seal.size, bytes.fromhex(seal.root.removeprefix("sha256:")))
    return Verdict(
        subject if seal is None else seal.receipt,
        report.checks(),
        Coverage(0, 0, 0) if seal is None else Coverage(seal.entry_index, seal.entry_index + 1, 1),
        head,
        trust_used(trust) if not keys else None,
        accepted=options.accept,
        notes=tuple(report.notes),
        time=bounds,
    )


def record_problem(answer: Notarization, seal: CounterSeal) -> str | None:
    """Return what speaks against a notary's own record of a counter-seal and its place, whoever signed the head that it ends in."""
    try:
        envelope = parse_envelope(answer.record)
        verify_seal(envelope)
        receipt = parse_receipt(envelope.payload)
        proof = parse_tlog_proof(answer.tlog_proof)
        entry = parse_entry(proof.extra or b"")
        head = head_of(proof.checkpoint)
        verify_inclusion(
            leaf=leaf_hash(proof.extra or b""), index=proof.index, size=head.size, proof=proof.proof, root=head.root
        )
    except LedgerError as error:
        return str(error)
    if not isinstance(receipt, Evaluation) or receipt.subject != seal.receipt:
        return "its record is no evaluation of this receipt"
    if [each.digest for each in receipt.artifacts if each.name == _ARTIFACT] != [digest(answer.counter_seal)]:
        return "its record does not name this counter-seal"
    if envelope.seal is None or envelope.seal.key != receipt.issuer.key:
        return "the seal of its record is by another key than its issuer's"
    if entry.envelope != digest(answer.record) or entry.index != proof.index or receipt.ledger != head.origin:
        return "the entry that is proven is not that of its record"
    return None


def _read(report: Report, data: bytes) -> tuple[Notarization | None, bytes | None]:
    """Return the whole answer, where it is one, and the sealed document."""
    try:
        value = canonical.decode(data, max_bytes=SEALED_MAX_BYTES)
        if value.get("schema") == NOTARIZATION_SCHEMA:
            answer = parse_notarization(data)
            report.ran("subject")
            return answer, answer.counter_seal
    except LedgerError as error:
        code = "counterseal.malformed" if is_sealed_document(data) else "subject.unknown"
        report.find("subject", code, message=str(error))
        return None, None
    if value.get("payload_type") != COUNTER_SEAL_TYPE:
        report.find("subject", "subject.unknown", message="neither a sealed document nor a notary's answer")
        return None, None
    report.ran("subject")
    return None, data


def _judge_notary(report: Report, seal: CounterSeal, trust: Trust | None, keys: Sequence[str]) -> TimeBounds | None:
    """Report on whether the notary is believed, and say what it says."""
    if keys:
        code = None if seal.key in keys else "trust.notary_mismatch"
    else:
        code = "trust.notary_unpinned" if trust is None else trust.judge_notary(seal.notary, seal.key)
    if code is not None:
        report.find("notary", code, where=f"notary {seal.notary}", message=f"key {seal.key}")
        return None
    report.ran("notary")
    report.notes.append(
        f"notary {clip(seal.notary)} at {seal.issued_at}: entry {seal.entry_index} of {clip(seal.origin)}, "
        f"size {seal.size}, {seal.mode}"
    )
    if not isinstance(seal.verdict, str):
        report.notes.append(f"it was sent the evidence and came to exit {seal.verdict.exit}")
    return TimeBounds(None, TimeBound(seal.issued_at, seal.notary, "counter-seal"))


def _judge_record(report: Report, answer: Notarization, seal: CounterSeal, trust: Trust | None) -> None:
    problem = record_problem(answer, seal)
    if problem is None and answer.verdict is not None and not isinstance(seal.verdict, str):
        problem = (
            None if digest(answer.verdict) == seal.verdict.digest else "the verdict is not the one that was sealed"
        )
    elif problem is None and answer.verdict is not None:
        problem = "a verdict beside a counter-seal that names none"
    if problem is not None:
        report.find("record", "counterseal.record", message=problem)
        return
    report.ran("record")
    note = parse_tlog_proof(answer.tlog_proof).checkpoint
    origin = head_of(note).origin
    pinned = None if trust is None else trust.origins.get(origin)
    if pinned is None:
        report.find("log key", "trust.log_key_unpinned", where=f"origin {origin}", message="of the notary's own ledger")
        return
    try:
        open_head(note, origin=origin, log_key=pinned.log_key)
    except LedgerError as error:
        report.find("log key", "trust.log_key_mismatch", where=f"origin {origin}", message=str(error))
    else:
        report.ran("log key")
