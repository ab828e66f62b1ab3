"""A whole ledger, judged from the bytes of its journal.

Every entry, head, receipt, seal and tree; the pinned log key, header and issuers; agreement with memory. Bytes only, where
asked: digests, links, ids and every head's root from the fixed layout, without schemas, seals and trees, and said so.

Source: docs/reference/verdicts.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from ledger.checkpoint import Head, head_of
from ledger.errors import LedgerError
from ledger.line import ENTRY_PREFIX
from verify.chain import ChainFold, Segment
from verify.given import GIVEN, check_given
from verify.heads import HeadTotals
from verify.memory import Consistency, Relation, open_remembered, reconcile
from verify.options import Options
from verify.parallel import Part, join_receipts
from verify.pins import check_issuers, check_log, trust_used
from verify.receipts import ReceiptFold
from verify.report import Coverage, Covered, Report, TimeBounds, Verdict
from verify.rules import NAME, RuleFold, RuleSources, approvers_of
from verify.state import LedgerCounts, LedgerState, counts_of
from verify.trust import Trust

__all__ = ["LedgerFold", "verify_ledger"]

_NAMES: Final = ("journal", "chain", "ids", "keyring", "heads", "head signatures")
_FULL_NAMES: Final = ("receipts", "seals", "trees", "attribution", NAME)
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
    sources: RuleSources | None = None,
) -> Verdict:
    """Return the verdict on a ledger.

    Args:
        segments: the journal's files in order, as one snapshot; gone through twice where two ids begin alike.
        trust: whom to believe, None for nobody.
        memory: the note remembered for this origin, None where none is.
        options: what is asked for.
        consistency: gives proofs between two sizes of the ledger, where something can.
        subject: what the verdict calls the ledger.
        sources: what the rules are re-proved with besides; the approvers of `trust` alone where None.
    """
    fold = LedgerFold(options, memory=memory, sources=sources or RuleSources(approvers_of(trust)))
    for segment in segments:
        fold.feed(segment)
    return fold.judge(segments, trust=trust, memory=memory, consistency=consistency, subject=subject)


class LedgerFold:
    """Folds the segments of a ledger, each read or judged apart, into a verdict.

    Attributes:
        chain: the fold over entries and heads.
        watch: the size whose root is compared with memory.
    """

    def __init__(
        self,
        options: Options,
        *,
        memory: bytes | None = None,
        start: LedgerState | None = None,
        sources: RuleSources = RuleSources(),  # noqa: B008  frozen
    ) -> None:
        self._options = options
        self._start = start
        self._whole = start is None or not start.good
        self._report = report = Report() if start is None or start.good else Report.resume(start.report)
        report.expect(*_NAMES, *(() if options.bytes_only else _FULL_NAMES), "log key")
        report.expect(*(() if options.bytes_only else ("issuers",)), "memory", *((GIVEN,) if options.heads else ()))
        self._rules = RuleFold(sources)
        self._receipts = None if options.bytes_only else ReceiptFold(report, rules=self._rules)
        self._before = LedgerCounts()
        self.watch = _size_of(memory)
        self.chain = ChainFold(
            report,
            every_head=options.every_head,
            watch=self.watch,
            consume=None if self._receipts is None else self._receipts.take,
            start=None if start is None else start.point,
            offset=0 if start is None else start.offset,
        )
        self._files: list[tuple[int, int]] = []
        """First index and size in bytes of each segment so far."""
        self._offset = 0
        """Where in the segment that is fed next the first commit to fold begins."""
        if start is not None:
            self._resume(start)

    def _resume(self, start: LedgerState) -> None:
        self._files, self._offset = list(start.files), start.offset
        self.chain.heads.resume(start.totals if self._whole else HeadTotals(1, where=start.totals.where))
        if self._whole:
            self.chain.first = 0
        else:
            self._before = counts_of(start)
        if self._whole and start.watch == self.watch:
            self.chain.heads.watched_root = start.totals.watched_root
        self.chain.ids = start.ids
        if start.good:
            start.ids.mark_judged()
        if self._receipts is not None and start.receipts is not None:
            self._receipts.resume(start.receipts)

    @property
    def origin(self) -> str | None:
        """The ledger that the receipts so far name."""
        return None if self._receipts is None else self._receipts.origin

    def feed(self, segment: Segment) -> None:
        """Fold the next segment; the one that a state ends in is fed whole, if more follows in it."""
        offset, self._offset = self._offset, 0
        if offset and segment.first_index == self._files[-1][0]:
            self._files.pop()
        else:
            offset = 0
        self._files.append((segment.first_index, len(segment.data)))
        self.chain.feed(segment, offset=offset)

    def join(self, part: Part, first_index: int) -> bool:
        """Return whether a segment judged apart was joined; where not, nothing changed and it must be fed."""
        receipts, judged = self._receipts, part.receipts
        if self.chain.point() != part.start:
            return False
        if receipts is not None and (judged is None or not join_receipts(receipts, judged)):
            return False
        for each in part.informed:
            self._report.inform(each.name, each.code, where=each.where, message=each.message, count=each.count)
        self.chain.join(part.end, part.heads, part.ids, size_bytes=part.size_bytes)
        self._files.append((first_index, part.size_bytes))
        return True

    def state(self, *, good: bool) -> LedgerState | None:
        """Return the state to go on from, None where there is none.

        The entries so far must end a commit, and their head must hold.

        Args:
            good: whether the verdict on what was folded was good, and the next one is to be on what follows only.
        """
        point = self.chain.point()
        if point is None or self.chain.end == 0:
            return None
        return LedgerState(
            good,
            (*self._files[:-1], (self._files[-1][0], self.chain.end)),
            point,
            self.chain.heads.totals(),
            self.watch,
            self.chain.ids,
            () if good else self._report.state(),
            None if self._receipts is None else self._receipts.state(),
        )

    def judge(
        self,
        segments: Iterable[Segment],
        *,
        trust: Trust | None,
        memory: bytes | None = None,
        consistency: Consistency | None = None,
        subject: str = "ledger",
        stopped: str = "",
        artifacts: Callable[[Report], None] | None = None,
        counter_seals: Callable[[Report, Head, bytes, Sequence[str]], TimeBounds | None] | None = None,
    ) -> Verdict:
        """Return the verdict on what was folded; the fold is not used after it.

        Args:
            segments: the journal's files from the first one, for a second look at ids that begin alike.
            trust: whom to believe, None for nobody.
            memory: the note remembered for this origin, None where none is; as when the fold was made.
            consistency: gives proofs between two sizes of the ledger, where something can.
            subject: what the verdict calls the ledger.
            stopped: why the fold ended before the ledger did, empty where it did not.
            artifacts: reports on the artifacts that are stored beside the ledger, where they can be looked at.
            counter_seals: reports on what notaries gave, of a verified head, its note and all log keys; where any can be looked at.
        """
        report, chain, receipts, options = self._report, self.chain, self._receipts, self._options
        chain.finish()
        covered = Covered()
        if stopped:
            report.find("coverage", "coverage.time_ended", where=f"entry {chain.size}", message=stopped)
            report.ran("ids", len(chain.ids))
        else:
            report.ran("ids", len(chain.ids) - self._before.ids)
            _check_ids(report, chain, segments)
        if receipts is None:
            report.notes.append("bytes only: schemas, seals, trees and issuers were not looked at")
        else:
            self._rules.judge(report, self._before.ruled)
            covered = _finish_receipts(report, receipts, options, self._before, stopped=bool(stopped))
        remember = None
        if chain.heads.keyring is not None:
            pinned = check_log(report, trust, chain.heads.keyring)
            if receipts is not None:
                check_issuers(report, trust, chain.heads.keyring, receipts.issuers)
            if stopped:
                report.skip("memory", "coverage.time_ended", asked=options.memory)
                if options.heads:
                    report.skip(GIVEN, "coverage.time_ended", asked=True)
            else:
                remember = _check_memory(report, chain, memory, consistency, options, pinned=pinned)
                head = chain.heads.head if pinned and chain.heads.signed else None
                keys = chain.heads.keyring.log_keys
                check_given(report, options.heads, head=head, log_keys=keys, consistency=consistency)
        if self._start is not None:
            self._say_earlier(self._start)
        if chain.size == 0:
            report.find("coverage", "coverage.empty")
        if options.artifacts:
            _look_at_artifacts(report, artifacts, stopped=stopped)
        time = self._check_counter_seals(trust, counter_seals, stopped=stopped)
        return Verdict(
            subject,
            report.checks(),
            Coverage(chain.first, chain.size, chain.size - chain.first),
            chain.heads.head,
            trust_used(trust),
            covered,
            accepted=options.accept,
            notes=tuple(report.notes),
            remember=remember if report.exits() in {0, 3, 6} else None,
            time=time,
        )

    def _check_counter_seals(
        self,
        trust: Trust | None,
        look: Callable[[Report, Head, bytes, Sequence[str]], TimeBounds | None] | None,
        *,
        stopped: str,
    ) -> TimeBounds | None:
        report, heads = self._report, self.chain.heads
        required = max(self._options.counter_seals, 0 if trust is None else trust.quorum)
        if stopped and required:
            report.skip("counter-seals", "coverage.time_ended", asked=True)
        elif stopped:
            return None
        elif heads.head is None or heads.keyring is None or not heads.signed:
            if required:
                report.skip("counter-seals", "check.unreachable", asked=True)
        elif look is not None:
            return look(report, heads.head, heads.note, heads.keyring.log_keys)
        elif required:
            report.find("counter-seals", "trust.quorum", message="nothing of a notary is at hand")
        return None

    def _say_earlier(self, start: LedgerState) -> None:
        """Say that the entries before the state were not read again."""
        size = start.point.size
        if self._whole:
            message = f"entries 0 to {size - 1} were read by the run that stopped there, and not again"
        else:
            message = (
                f"entries 0 to {size - 1} had a good verdict under this trust; their root and last head were compared"
            )
        self._report.skip("earlier entries", "coverage.earlier", message, asked=False)
        if not self._whole and self.chain.size == size:
            # Nothing was judged, and that is never ok.
            self._report.find("coverage", "coverage.nothing_new", where=f"entry {size}")


def _look_at_artifacts(report: Report, artifacts: Callable[[Report], None] | None, *, stopped: str) -> None:
    if stopped:
        report.skip("artifacts", "coverage.time_ended", asked=True)
    elif artifacts is None:
        report.skip("artifacts", "check.unsupported", asked=True)
    else:
        artifacts(report)


def _size_of(memory: bytes | None) -> int | None:
    if memory is None:
        return None
    try:
        return head_of(memory).size
    except LedgerError:
        return None


def _finish_receipts(
    report: Report, receipts: ReceiptFold, options: Options, before: LedgerCounts, *, stopped: bool
) -> Covered:
    covered = receipts.covered()
    covered = replace(
        covered, own_seal=covered.own_seal - before.own_seals, sealed_root=covered.sealed_root - before.by_root
    )
    report.ran("receipts", receipts.receipts - before.receipts)
    report.ran("seals", covered.own_seal)
    report.ran("trees", receipts.trees.closed - before.closed_runs)
    if receipts.trees.unsettled:
        why = f"{receipts.trees.unsettled} questions stay open: receipts could not be read"
        report.skip("trees", "check.unreachable", why, asked=True)
    report.ran("attribution", covered.own_seal + covered.sealed_root)
    if stopped:
        return covered
    for id_, run in receipts.trees.runs.items():
        if options.closed:
            report.find("runs", "run.open", where=f"run {id_}", message=f"opened at entry {run.opening}")
        else:
            report.inform("runs", "run.listed_open", where=f"run {id_}", message=f"opened at entry {run.opening}")
    return covered


def _check_ids(report: Report, chain: ChainFold, segments: Iterable[Segment]) -> None:
    """Report receipts that stand in the ledger more than once."""
    suspects = chain.ids.suspects()
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
