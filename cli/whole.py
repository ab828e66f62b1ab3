"""A whole ledger, judged with the user's trust and memory; where it stops and what was good is saved for the next time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

from cli.beside import counter_seals_of_ledger
from cli.conflict import path_between
from cli.effort import Effort
from cli.options import Shared
from cli.parallel import Fold, fold_segments, read
from cli.progress import progress
from cli.remember import keep, remember
from cli.rules import sources_of
from cli.saved import Kind, drop, load, save
from cli.trustfile import read_memory, read_trust
from cli.watch import InterruptedWorkError, Watch
from ledger.checkpoint import Head
from ledger.errors import LedgerError, NotFoundError, clip
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.frozen import read_frozen
from ledger.storage.journal import segment_bytes, segments
from ledger.storage.reader import Reader
from ledger.storage.search import holding
from verify.carried import check_stored, erasures_at, references_of
from verify.chain import Segment
from verify.continues import check_continues
from verify.ledger import LedgerFold
from verify.options import Options
from verify.report import Report, Verdict
from verify.state import Binding, LedgerState, binding

__all__ = ["JournalSnapshot", "judge_continues", "judge_ledger"]


class JournalSnapshot:
    """The journal of a folder as it was at one moment; can be gone through again, while others append.

    `files` holds first index and size in bytes of each segment.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = tuple((first, segment_bytes(folder, first)) for first in segments(folder))

    def __iter__(self) -> Iterator[Segment]:
        for first, size in self.files:
            yield read(self._folder, first, size)


def judge_ledger(folder: Path, options: Shared, asked: Options, effort: Effort = Effort()) -> Verdict:
    """Return the verdict on a whole ledger, and remember its head where it earned that.

    Raises:
        InterruptedWorkError: the user ended it; the state to go on from is saved.
    """
    origin = _origin(folder)
    reader = Reader(folder)
    memory = read_memory(options.places, origin) if origin else None
    trust, snapshot = read_trust(options), JournalSnapshot(folder)
    bound = binding(None if trust is None else trust.digest, asked)
    start, notes = _start(snapshot, folder, origin, options, bound, effort)
    fold = LedgerFold(asked, memory=memory, start=start, sources=sources_of(folder, trust))
    left = [each for each in snapshot.files if start is None or each > (start.segment, start.offset)]
    with Watch(effort.max_seconds) as watch, progress("verifying", sum(size for _, size in left)) as advance:

        def step(done: int) -> bool:
            advance(done)
            return not watch.ended

        whole = fold_segments(fold, Fold(folder, left, asked), jobs=effort.jobs, step=step)
    stopped = "" if whole else _stop(fold, origin, options, bound, interrupted=watch.interrupted)
    verdict = fold.judge(
        snapshot,
        trust=trust,
        memory=memory,
        consistency=lambda old, new: path_between(reader, old, new),
        subject=str(folder),
        stopped=stopped,
        artifacts=lambda report: _check_stored(report, folder, fold.chain.first, fold.chain.size),
        counter_seals=counter_seals_of_ledger(reader, folder, trust, asked),
    )
    if whole and origin:
        drop(options.places, origin, "stopped")
        good = fold.state(good=True) if verdict.exit == 0 else None
        if good is not None:
            save(options.places, origin, "good", good, bound)
    kept = (*notes, *_frozen(folder), *keep(verdict, memory, folder, options, asked))
    return remember(replace(verdict, notes=(*verdict.notes, *kept)), options, seen=memory, folder=folder)


def _check_stored(report: Report, folder: Path, start: int, stop: int) -> None:
    """Report on the stored artifacts that the entries of a ledger from `start` up to, not including, `stop` refer to."""

    def payloads(*needles: bytes) -> Iterator[tuple[int, bytes]]:
        for stored in holding(folder, *needles, start=start, stop=stop):
            yield stored.entry.index, stored.envelope.payload

    references = references_of(payloads(b'"artifacts":[', b'"document":{'))
    check_stored(
        report, references, erased_at=erasures_at(payloads(b'"kind":"erasure"')), look=ArtifactStore(folder).inspect
    )


def _start(
    snapshot: JournalSnapshot, folder: Path, origin: str | None, options: Shared, bound: Binding, effort: Effort
) -> tuple[LedgerState | None, tuple[str, ...]]:
    """Return the saved state to go on from, and notes that say why there is none where one was asked for."""
    if not effort.resume and not effort.since_last:
        return None, ()
    found: LedgerState | str = "the ledger does not say its origin"
    for kind, wanted in (("stopped", effort.resume), ("good", effort.since_last)):
        if wanted and origin and not isinstance(found, LedgerState):
            found = load(
                options.places,
                origin,
                cast("Kind", kind),
                bound=bound,
                files=snapshot.files,
                read=lambda first, size: read(folder, first, size),
            )
    if isinstance(found, LedgerState):
        return found, ()
    return None, (f"no earlier verification is gone on from, everything was read: {found}",)


def _stop(fold: LedgerFold, origin: str | None, options: Shared, bound: Binding, *, interrupted: bool) -> str:
    """Save where a verification stops; return what is said of it.

    Raises:
        InterruptedWorkError: the user ended it.
    """
    state = fold.state(good=False)
    if state is None or origin is None:
        problem: str | None = "what was read so far does not hold or does not end a commit"
    else:
        problem = save(options.places, origin, "stopped", state, bound)
    size = fold.chain.size
    said = f"stopped after entry {size - 1}; " + (
        "the same command with --resume goes on from there" if problem is None else f"it cannot be resumed: {problem}"
    )
    if interrupted:
        raise InterruptedWorkError(said)
    return said


def judge_continues(
    verdict: Verdict, folder: Path, old: Path, options: Shared, asked: Options
) -> tuple[Verdict, Verdict]:
    """Return the verdict on a ledger with what its header says of the older one in a folder, and the verdict on that."""
    older = judge_ledger(old, options, replace(asked, heads=()))
    try:
        continues = Reader(folder).header().continues
    except LedgerError:
        continues = None
    root = None
    if continues is not None and older.head is not None and continues.size <= older.head.size:
        root = Reader(old).root_at(continues.size)
    return check_continues(verdict, continues, older=older, root=root), older


def _frozen(folder: Path) -> tuple[str, ...]:
    """Return a note that says whether a folder is marked as frozen; the mark is not evidence."""
    found = read_frozen(folder)
    if found is None:
        return ()
    by = clip(found.continued_by) if found.continued_by else "another ledger"
    return (f"this folder is marked as frozen at size {found.size}: {by} continues it",)


def _origin(folder: Path) -> str | None:
    """Return the origin that a ledger's own bytes claim: good enough to look up what is remembered, and for nothing else."""
    reader = Reader(folder)
    for claim in (_header_claim, _head_claim):
        origin = claim(reader)
        if origin is not None:
            return origin
    return None


def _header_claim(reader: Reader) -> str | None:
    try:
        return reader.header().ledger
    except NotFoundError:
        raise
    except LedgerError:
        return None


def _head_claim(reader: Reader) -> str | None:
    try:
        head: Head = reader.head()
    except LedgerError:
        return None
    return head.origin
