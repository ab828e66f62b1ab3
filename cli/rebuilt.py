"""A ledger judged for its index: the verdict, how far its bytes hold, and the state to go on from the next time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from cli.beside import counter_seals_of_ledger
from cli.conflict import path_between
from cli.options import Shared
from cli.parallel import Fold, fold_segments, read
from cli.progress import progress
from cli.rules import sources_of
from cli.saved import save
from cli.watch import InterruptedWorkError, Watch
from ledger.digest import digest
from ledger.index.files import Mark
from ledger.index.stamp import journal_marks
from ledger.line import HEAD_PREFIX
from ledger.storage.reader import Reader
from verify.chain import Segment
from verify.ledger import LedgerFold
from verify.options import Options
from verify.parallel import Part
from verify.report import Verdict
from verify.rules import RuleSources
from verify.state import Binding, LedgerState, binding
from verify.trust import Trust

__all__ = ["Judged", "Snapshot", "judge"]

_ASKED: Final = Options()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The journal of a folder at one moment: the mark of each file, and how many bytes of it are whole commits.

    `rest` is whether bytes follow the last whole commit.
    """

    folder: Path
    marks: tuple[tuple[int, Mark], ...]
    files: tuple[tuple[int, int], ...]
    rest: bool

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the journal of a folder as it is now."""
        marks = journal_marks(folder)
        files = [(first, mark[0]) for first, mark in marks]
        rest = False
        if files:
            first, size = files.pop()
            end = _end_of_commits(read(folder, first, size).data)
            rest = end < size
            if end:
                files.append((first, end))
        return cls(folder, marks, tuple(files), rest)

    @property
    def asked(self) -> Options:
        """What is asked of the verifier."""
        return _ASKED

    def bound(self, trust: Trust | None) -> Binding:
        """Return what a saved state must be good for."""
        return binding(None if trust is None else trust.digest, _ASKED)

    def __iter__(self) -> Iterator[Segment]:
        for first, mark in self.marks:
            yield read(self.folder, first, mark[0])


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict, and what it stands on.

    `files` are first index and size of what was verified, `digests` the digest of each of them that was read, `size` the entries
    under the newest head, `state` the state to go on from, None where there is none, and `tail` the digest of the last file's
    bytes.
    """

    verdict: Verdict
    files: tuple[tuple[int, int], ...]
    digests: dict[int, bytes]
    size: int
    state: LedgerState | None
    tail: str


class _Fold(LedgerFold):
    """A fold that notes the digest of the bytes of each file that it took."""

    digests: dict[int, bytes]

    def feed(self, segment: Segment) -> None:
        """Fold the next segment."""
        self.digests[segment.first_index] = sha256(segment.data).digest()
        super().feed(segment)

    def join(self, part: Part, first_index: int) -> bool:
        """Return whether a segment judged apart was joined."""
        joined = super().join(part, first_index)
        if joined:
            self.digests[first_index] = part.digest
        return joined


def judge(
    snapshot: Snapshot,
    origin: str,
    options: Shared,
    trust: Trust | None,
    *,
    memory: bytes | None,
    start: LedgerState | None,
    jobs: int,
) -> Judged:
    """Return the verdict on a ledger with what its index needs; the state to go on from is saved.

    Raises:
        InterruptedWorkError: the user ended it.
    """
    sources = sources_of(snapshot.folder, trust)
    fold = _Fold(_ASKED, memory=memory, start=start, sources=sources)
    fold.digests = {}
    left = [each for each in snapshot.files if start is None or each > (start.segment, start.offset)]
    with Watch(None) as watch, progress("verifying", sum(size for _, size in left)) as advance:

        def step(done: int) -> bool:
            advance(done)
            return not watch.ended

        if not fold_segments(fold, Fold(snapshot.folder, left, _ASKED), jobs=jobs, step=step):
            raise InterruptedWorkError("stopped; nothing was indexed")
    files, digests = snapshot.files, dict(fold.digests)
    state = fold.state(good=False)
    size = fold.chain.size
    if state is not None and save(options.places, origin, "index", state, snapshot.bound(trust)) is not None:
        state = None
    if snapshot.rest:
        fold = _with_rest(snapshot, fold, memory, sources)
    tail = ""
    if state is not None:
        data = read(snapshot.folder, *files[-1]).data
        tail = digest(data)
    reader = Reader(snapshot.folder)
    verdict = fold.judge(
        snapshot,
        trust=trust,
        memory=memory,
        consistency=lambda old, new: path_between(reader, old, new),
        subject=str(snapshot.folder),
        counter_seals=counter_seals_of_ledger(reader, snapshot.folder, trust, _ASKED),
    )
    if fold.chain.size > size:
        # The last head lacks its LF only, so its commit counts; a writer will end the line.
        files = tuple((first, mark[0]) for first, mark in snapshot.marks)
        digests |= fold.digests
        size, state = fold.chain.size, None
    return Judged(verdict, files, digests, size, state, tail)


def _with_rest(snapshot: Snapshot, fold: _Fold, memory: bytes | None, sources: RuleSources) -> _Fold:
    """Return a fold that has judged what follows the last whole commit too: a commit that never ended, or damage."""
    state = fold.state(good=False)
    following = _Fold(_ASKED, memory=memory, start=state, sources=sources)
    following.digests = {}
    for first, mark in snapshot.marks[-1:] if state is not None else snapshot.marks:
        following.feed(read(snapshot.folder, first, mark[0]))
    return following


def _end_of_commits(data: bytes) -> int:
    """Return how many bytes there are up to the end of the last whole head line."""
    end = data.rfind(b"\n") + 1
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if data.startswith(HEAD_PREFIX, start):
            return end
        end = start
    return 0
