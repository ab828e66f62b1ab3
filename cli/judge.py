"""What the command line gives the verifier: evidence from disk, the user's trust and memory; and what it remembers after."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from cli.conflict import constructive_path, keep_conflict, keyring_of, with_heads
from cli.options import Shared
from cli.parallel import Fold, fold_segments
from cli.progress import progress
from cli.rules import sources_of
from cli.saved import Kind, drop, load, save
from cli.trustfile import read_memory, read_trust, write_memory
from cli.watch import InterruptedWorkError, Watch
from cli.worker import read
from ledger.bundle import BUNDLE_MAX_BYTES, Bundle, parse_bundle
from ledger.checkpoint import Head, head_of
from ledger.errors import DamagedError, FormatError, LedgerError, NotFoundError, UnknownFormatError, clip
from ledger.storage.evidence import gather, gather_range
from ledger.storage.frozen import read_frozen
from ledger.storage.journal import segment_bytes, segment_path, segments
from ledger.storage.reader import Reader
from verify.bundle import verify_bundle
from verify.chain import Segment
from verify.continues import check_continues
from verify.file import kind_of, verify_file
from verify.ledger import LedgerFold
from verify.options import Options
from verify.pins import trust_used
from verify.report import Check, CheckStatus, Coverage, Verdict
from verify.resume import Binding, LedgerState, binding

__all__ = [
    "FILE_MAX_BYTES",
    "Effort",
    "JournalSnapshot",
    "judge_continues",
    "judge_error",
    "judge_file",
    "judge_ledger",
    "judge_range",
    "judge_receipt",
]

FILE_MAX_BYTES: Final = BUNDLE_MAX_BYTES
"""A larger file is nothing of ours."""
_CONFLICTS: Final = frozenset({"head.forked", "head.unreconciled"})


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


@dataclass(frozen=True, slots=True)
class Effort:
    """How a whole ledger is gone through: processes, seconds, and what an earlier run on this machine may stand for.

    `resume` goes on where the last verification stopped; `since_last` judges only what is new since the last good verdict.
    """

    jobs: int = 1
    max_seconds: int | None = None
    resume: bool = False
    since_last: bool = False


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
        consistency=lambda old, new: _path(reader, old, new),
        subject=str(folder),
        stopped=stopped,
    )
    if whole and origin:
        drop(options.places, origin, "stopped")
        good = fold.state(good=True) if verdict.exit == 0 else None
        if good is not None:
            save(options.places, origin, "good", good, bound)
    kept = (*notes, *_frozen(folder), *_keep(verdict, memory, folder, options, asked))
    return _remember(replace(verdict, notes=(*verdict.notes, *kept)), options, seen=memory, folder=folder)


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


def judge_receipt(folder: Path, receipt: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on one receipt with its tree, judged as a bundle."""
    reader = Reader(folder)
    return _judge_bundle(folder, reader, gather(reader, receipt), options, asked)


def judge_range(folder: Path, span: tuple[int, int], options: Shared, asked: Options) -> Verdict:
    """Return the verdict on the entries from an index up to, not including, another one, judged as a bundle."""
    reader = Reader(folder)
    return _judge_bundle(folder, reader, gather_range(reader, *span), options, asked)


def _judge_bundle(folder: Path, reader: Reader, bundle: Bundle, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a bundle made from a ledger that is at hand."""
    trust, memory = read_trust(options), read_memory(options.places, head_of(bundle.checkpoint).origin)

    def judge(note: bytes | None) -> Verdict:
        return verify_bundle(
            bundle,
            trust=trust,
            memory=note,
            consistency=lambda old, new: _path(reader, old, new),
            options=asked,
            whole_ledger=True,
        )

    verdict = with_heads(judge(memory), judge, asked)
    kept = _keep(verdict, memory, folder, options, asked)
    return _remember(replace(verdict, notes=(*verdict.notes, *kept)), options, seen=memory, folder=folder)


def judge_file(data: bytes, subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a file, judged without any ledger, and remember its head where it earned that."""
    trust = read_trust(options)
    seen: list[bytes | None] = [None]

    def remembered(origin: str) -> bytes | None:
        seen[0] = read_memory(options.places, origin)
        return seen[0]

    def judge(memory: Callable[[str], bytes | None]) -> Verdict:
        data_ = data if len(data) <= FILE_MAX_BYTES else b""
        return verify_file(data_, subject=subject, trust=trust, remembered=memory, options=asked)

    verdict = with_heads(judge(remembered), lambda note: judge(lambda _: note), asked)
    if any(check.code in _CONFLICTS for check in verdict.checks) and kind_of(data) == "bundle":
        others = [note for note in (*seen, *asked.heads) if note is not None]
        kept = keep_conflict(verdict, others, evidence=parse_bundle(data), reader=None, options=options)
        verdict = replace(verdict, notes=(*verdict.notes, *kept))
    return _remember(verdict, options, seen=seen[0])


def judge_error(error: LedgerError, subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict that an error while evidence was read comes to: it is absent, unknown, or not what its marks say.

    Raises:
        LedgerError: the error itself, where it says nothing about evidence.
    """
    match error:
        case NotFoundError():
            code, status = "subject.absent", "absent"
        case UnknownFormatError():
            code, status = "format.unknown", "not_checked"
        case DamagedError():
            code, status = "journal.damaged", "failed"
        case FormatError() if error.code != "reference.malformed":
            code, status = "line.malformed", "failed"
        case _:
            raise error
    check = Check("subject", cast("CheckStatus", status), code, error.where, str(error))
    return Verdict(subject, (check,), Coverage(0, 0, 0), None, trust_used(read_trust(options)), accepted=asked.accept)


def _path(reader: Reader, old: int, new: int) -> tuple[bytes, ...]:
    """Return the path between two sizes of a ledger in constructive form."""
    head = reader.head()
    if new > head.size:
        raise NotFoundError(f"ledger: got size {new}, it has {head.size}")
    return constructive_path(old, new, reader.hash_reader(head))


def _frozen(folder: Path) -> tuple[str, ...]:
    """Return a note that says whether a folder is marked as frozen; the mark is not evidence."""
    found = read_frozen(folder)
    if found is None:
        return ()
    by = clip(found.continued_by) if found.continued_by else "another ledger"
    return (f"this folder is marked as frozen at size {found.size}: {by} continues it",)


def _keep(verdict: Verdict, memory: bytes | None, folder: Path, options: Shared, asked: Options) -> tuple[str, ...]:
    """Return notes that say what was kept of heads that do not agree."""
    if all(check.code not in _CONFLICTS for check in verdict.checks):
        return ()
    reader = Reader(folder)
    others = [note for note in (memory, *asked.heads) if note is not None]
    try:
        evidence = keyring_of(reader)
    except (LedgerError, OSError) as error:
        return (f"the heads that do not agree could not be kept: {error}",)
    return keep_conflict(verdict, others, evidence=evidence, reader=reader, options=options, file=options.equivocation)


def _make_durable(folder: Path) -> str | None:
    """Return why the newest segment could not be made durable, None where it was, or where this disk cannot be written.

    The head to be remembered stands in it: a head that is remembered must not be lost by the ledger.
    """
    try:
        for path in (segment_path(folder, segments(folder)[-1]), folder / "journal"):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        return None if error.errno in {errno.EROFS, errno.EINVAL, errno.ENOTSUP} else str(error)
    return None


def _remember(verdict: Verdict, options: Shared, *, seen: bytes | None, folder: Path | None = None) -> Verdict:
    """Keep the head that the verdict says to remember; an unwritable folder is said, no more."""
    if verdict.remember is not None and verdict.head is not None:
        problem = None if folder is None else _make_durable(folder)
        if problem is None:
            problem = write_memory(options.places, verdict.head.origin, verdict.remember, seen=seen)
        if problem is not None:
            return replace(verdict, notes=(*verdict.notes, f"the head could not be remembered: {problem}"))
    return verdict


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
