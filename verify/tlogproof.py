"""A C2SP tlog-proof that carries an entry of ours: the entry stands at its index under a head that the log key signed.

The entry names the receipt by its id. The receipt itself, its seal and its tree are not in the file; the verdict says so.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from ledger.entry import Entry, parse_entry
from ledger.errors import LedgerError, UnknownFormatError
from ledger.tlogproof import TlogProof, parse_tlog_proof
from verify.errors import ProofError
from verify.headfile import Remembered, check_cosigned, check_head, skip_unsupported
from verify.options import Options
from verify.pins import trust_used
from verify.proof import leaf_hash, verify_inclusion
from verify.report import Coverage, Report, Verdict
from verify.trust import Trust

__all__ = ["verify_tlog_proof"]


def verify_tlog_proof(
    data: bytes, *, subject: str, trust: Trust | None, remembered: Remembered | None = None, options: Options
) -> Verdict:
    """Return the verdict on the bytes of a tlog-proof; its subject is the receipt that the entry names."""
    report = Report()
    report.expect("subject", "heads", "head signatures", "entries", "inclusion", "log key", "memory")
    head = remember = entry = time = None
    try:
        proof = parse_tlog_proof(data)
    except LedgerError as error:
        report.find("subject", "proof.malformed", message=str(error))
    else:
        entry = _read_entry(report, proof)
        head, remember = check_head(report, proof.checkpoint, trust=trust, remembered=remembered, options=options)
        if head is not None and proof.extra is not None:
            _check_inclusion(report, proof, proof.extra, size=head.size, root=head.root)
        time = check_cosigned(report, proof.checkpoint, head, trust=trust, options=options, last=proof.index)
    report.skip("receipts", "check.not_asked", "the receipt is not in the file, only its place", asked=False)
    skip_unsupported(report, options, "a tlog-proof", counter_seals=False)
    return Verdict(
        subject if entry is None else entry.receipt,
        report.checks(),
        Coverage(0, 0, 0) if entry is None else Coverage(entry.index, entry.index + 1, 1),
        head,
        trust_used(trust),
        accepted=options.accept,
        notes=tuple(report.notes),
        remember=remember if report.exits() in {0, 3} else None,
        time=time,
    )


def _read_entry(report: Report, proof: TlogProof) -> Entry | None:
    if proof.extra is None:
        report.find("subject", "subject.unknown", message="a tlog-proof without the entry that it is about")
        return None
    report.ran("subject")
    try:
        entry = parse_entry(proof.extra)
    except UnknownFormatError as error:
        # Its bytes still are a leaf, whatever they mean.
        report.find("entries", "format.unknown", message=str(error))
        return None
    except LedgerError as error:
        report.find("entries", "entry.malformed", message=str(error))
        return None
    report.ran("entries")
    if entry.index != proof.index:
        message = f"got index {proof.index}, its entry has {entry.index}"
        report.find("entries", "chain.index", where=f"entry {entry.index}", message=message)
    return entry


def _check_inclusion(report: Report, proof: TlogProof, entry: bytes, *, size: int, root: bytes) -> None:
    try:
        verify_inclusion(leaf=leaf_hash(entry), index=proof.index, size=size, proof=proof.proof, root=root)
    except ProofError as error:
        report.find("inclusion", error.code, where=f"entry {proof.index}", message=str(error))
    else:
        report.ran("inclusion")
