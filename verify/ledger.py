"""A whole ledger, judged from the bytes of its journal.

Every entry, head, receipt, seal and tree; the pinned log key, header and issuers; agreement with memory. Bytes only, where
asked: digests, links, ids and every head's root from the fixed layout, without schemas, seals and trees, and said so.

Source: docs/reference/verdicts.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ledger.checkpoint import head_of
from ledger.errors import LedgerError
from ledger.line import ENTRY_PREFIX
from verify.chain import ChainFold, Segment
from verify.given import GIVEN, check_given
from verify.memory import Consistency, Relation, open_remembered, reconcile
from verify.options import Options
from verify.pins import check_issuers, check_log, trust_used
from verify.receipts import ReceiptFold
from verify.report import Coverage, Covered, Report, Verdict
from verify.trust import Trust

__all__ = ["verify_ledger"]

_NAMES: Final = ("journal", "chain", "ids", "keyring", "heads", "head signatures")
_FULL_NAMES: Final = ("receipts", "seals", "trees", "attribution")
_RECEIPT = re.compile(rb'"receipt":"sha256:([0-9a-f]{64})","recorded_at":"')
_MEMORY_CODES: Final = {
    Relation.FIRST_SEEN: "head.first_seen",
    Relation.SHORTER: "head.shorter",
    Relation.FORKED: "head.forked",
    Relation.UNRECONCILED: "head.unreconciled",
}


def verify_ledger(
    segments: Iterable[Segment],
    *,
    trust: Trust | None,
    memory: bytes | None = None,
    options: Options = Options(),  # noqa: B008  frozen
    consistency: Consistency | None = None,
    subject: str = "ledger",
) -> Verdict:
    """Return the verdict on a ledger.

    Args:
        segments: the journal's files in order, as one snapshot; gone through twice where two ids begin alike.
        trust: whom to believe, None for nobody.
        memory: the note remembered for this origin, None where none is.
        options: what is asked for.
        consistency: gives proofs between two sizes of the ledger, where something can.
        subject: what the verdict calls the ledger.
    """
    report = Report()
    report.expect(*_NAMES)
    receipts = None if options.bytes_only else ReceiptFold(report)
    if receipts is not None:
        report.expect(*_FULL_NAMES)
    report.expect(
        "log key", *(() if receipts is None else ("issuers",)), "memory", *((GIVEN,) if options.heads else ())
    )
    chain = ChainFold(
        report,
        every_head=options.every_head,
        watch=_size_of(memory),
        consume=None if receipts is None else receipts.take,
    )
    for segment in segments:
        chain.feed(segment)
    chain.finish()
    _check_ids(report, chain, segments)
    covered = Covered()
    if receipts is None:
        report.notes.append("bytes only: schemas, seals, trees and issuers were not looked at")
    else:
        covered = _finish_receipts(report, receipts, options)
    remember = None
    if chain.heads.keyring is not None:
        pinned = check_log(report, trust, chain.heads.keyring)
        if receipts is not None:
            check_issuers(report, trust, chain.heads.keyring, receipts.issuers)
        remember = _check_memory(report, chain, memory, consistency, options, pinned=pinned)
        head = chain.heads.head if pinned and chain.heads.signed else None
        keys = chain.heads.keyring.log_keys
        check_given(report, options.heads, head=head, log_keys=keys, consistency=consistency)
    if chain.size == 0:
        report.find("coverage", "coverage.empty")
    if options.artifacts:
        report.skip("artifacts", "check.unsupported", asked=True)
    if options.counter_seals:
        report.skip("counter-seals", "check.unsupported", asked=True)
    return Verdict(
        subject,
        report.checks(),
        Coverage(0, chain.size, chain.size),
        chain.heads.head,
        trust_used(trust),
        covered,
        accepted=options.accept,
        notes=tuple(report.notes),
        remember=remember if report.exits() in {0, 3, 6} else None,
    )


def _size_of(memory: bytes | None) -> int | None:
    if memory is None:
        return None
    try:
        return head_of(memory).size
    except LedgerError:
        return None


def _finish_receipts(report: Report, receipts: ReceiptFold, options: Options) -> Covered:
    covered = receipts.covered()
    report.ran("receipts", receipts.receipts)
    report.ran("seals", receipts.own_seals)
    report.ran("trees", receipts.trees.closed)
    if receipts.trees.unsettled:
        why = f"{receipts.trees.unsettled} questions stay open: receipts could not be read"
        report.skip("trees", "check.unreachable", why, asked=True)
    report.ran("attribution", covered.own_seal + covered.sealed_root)
    for id_, run in receipts.trees.runs.items():
        if options.closed:
            report.find("runs", "run.open", where=f"run {id_}", message=f"opened at entry {run.opening}")
        else:
            report.inform("runs", "run.listed_open", where=f"run {id_}", message=f"opened at entry {run.opening}")
    return covered


def _check_ids(report: Report, chain: ChainFold, segments: Iterable[Segment]) -> None:
    """Report receipts that stand in the ledger more than once."""
    suspects = chain.ids.suspects()
    report.ran("ids", len(chain.ids))
    if not suspects:
        return
    if iter(segments) is segments:
        report.skip("ids", "check.unreachable", "two ids begin alike and the bytes cannot be read again", asked=True)
        return
    seen: dict[bytes, int] = {}
    index = 0
    for segment in segments:
        for line in segment.data.split(b"\n"):
            if index >= chain.size:
                return
            match = _RECEIPT.search(line) if line.startswith(ENTRY_PREFIX) else None
            if match is None:
                continue
            id_ = bytes.fromhex(match[1].decode("ascii"))
            if id_[:8] in suspects:
                first = seen.setdefault(id_, index)
                if first != index:
                    report.find(
                        "ids",
                        "receipt.repeated",
                        where=f"entry {index}",
                        message=f"receipt sha256:{id_.hex()} stands at entry {first} already",
                    )
            index += 1


def _check_memory(
    report: Report,
    chain: ChainFold,
    memory: bytes | None,
    consistency: Consistency | None,
    options: Options,
    *,
    pinned: bool,
) -> bytes | None:
    """Report on agreement with memory; return the note to remember, if it changes."""
    head, keyring = chain.heads.head, chain.heads.keyring
    if head is None or keyring is None or not chain.heads.signed or not pinned:
        why = "only a head verified under a pinned log key is compared and remembered"
        report.skip("memory", "check.unreachable", why, asked=options.memory)
        return None
    remembered = None
    if memory is not None:
        remembered = open_remembered(memory, origin=keyring.origin, log_keys=keyring.log_keys)
        if remembered is None:
            why = "what is remembered is not a head of this ledger under its log keys"
            report.find("memory", "head.unreconciled", message=why)
            return None
    result = reconcile(
        chain.heads.note,
        head,
        remembered=remembered,
        whole=True,
        prefix_root=chain.heads.watched_root,
        consistency=consistency,
    )
    report.ran("memory")
    code = _MEMORY_CODES.get(result.relation)
    if code is not None:
        if code == "head.first_seen" and options.memory:
            code = "head.unseen"
        report.find("memory", code, message=result.message)
    return result.remember
