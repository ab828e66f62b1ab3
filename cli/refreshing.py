"""An index made or caught up: what it takes is verified first, with the user's trust and memory.

- Nothing is loaded that was not verified, and what is loaded are the bytes that were: the digest of each file is compared.
- What fails is not loaded; the verdict, and so the exit code, says that it failed.
- The new index is made beside the old one and renamed; nobody holds one open, so readers and writers never wait for each other.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cli.effort import usable_cores
from cli.indexed import ChangedError, Indexed, check_rows, note_digest, state_row, trust_digest
from cli.options import Shared
from cli.parallel import read
from cli.progress import progress
from cli.rebuilt import Judged, Snapshot, judge
from cli.remember import keep, remember
from cli.saved import load
from cli.sound import Sound, sound_part
from cli.trustfile import read_memory
from ledger.digest import digest
from ledger.errors import StorageError
from ledger.index.build import Build
from ledger.index.files import Way, way_on
from ledger.index.load import BATCH_BYTES
from ledger.index.session import Source
from ledger.index.stamp import Stamp, marks_of, read_stamp, write_stamp
from ledger.storage.journal import read_segment
from verify.codes import exit_of
from verify.report import Verdict
from verify.state import LedgerState
from verify.trust import Trust

__all__ = ["refresh"]


def refresh(source: Source, options: Shared, trust: Trust | None, *, jobs: int | None, rebuild: bool) -> Indexed:
    """Verify what is new and load it, from the beginning where there is nothing good to go on from; others are kept from it.

    Raises:
        ChangedError: the journal changed meanwhile; try again.
        StorageError: the index cannot be written.
    """
    # Before the journal: whoever appends meanwhile makes it longer than what was remembered, never shorter.
    memory = read_memory(options.places, source.ledger)
    snapshot = Snapshot.of(source.folder)
    start = None if rebuild else _resumable(source, snapshot, options, trust)
    judged = judge(snapshot, source.ledger, options, trust, memory=memory, start=start, jobs=jobs or usable_cores())
    sound: Sound | None = None
    if _leaves_out(judged.verdict):
        start, sound = None, sound_part(source.folder, snapshot.files)
    verdict = judged.verdict
    kept = keep(verdict, memory, source.folder, options, snapshot.asked)
    verdict = remember(replace(verdict, notes=(*verdict.notes, *kept)), options, seen=memory, folder=source.folder)
    size = judged.size if sound is None else sound.size
    first = 0 if start is None else start.point.size
    way: Way = "anew" if start is None else way_on(source.path, _more(judged, start))
    with Build(source.path, way=way) as build:
        left_out = frozenset[int]() if sound is None else sound.left_out
        total = sum(each for _, each in snapshot.files)
        with progress("indexing", total) as advance:
            for at, pieces in _batches(_pieces(source.folder, judged, start, sound), first):
                build.load(pieces, start=at, leave_out=left_out)
                advance(sum(map(len, pieces)))
        count = build.count()
        row = state_row(verdict, source, size=size, left_out=size - count)
        build.put_state(row, check_rows(verdict, source.ledger))
        build.finish()
    state = None if sound is not None else judged.state
    now = read_memory(options.places, source.ledger)
    # What came to be remembered meanwhile was compared with nothing, so the next one does that.
    compared = now if now in (memory, verdict.remember) else memory
    problem = _remember(source, options, trust, snapshot, state, judged.tail, compared)
    said = row, [(each.code, each.exit) for each in verdict.checks]
    return Indexed(source, "made" if start is None else "caught up", problem, said)


def _more(judged: Judged, start: LedgerState) -> int:
    """Return how many bytes of the journal are new."""
    return sum(size for at, size in judged.files if at >= start.segment) - start.offset


def _leaves_out(verdict: Verdict) -> bool:
    """Return whether something is not to be loaded: it fails, or this version does not know what it says."""
    return any(
        each.code is not None and (exit_of(each.code) in {1, 5} or each.code == "format.unknown")
        for each in verdict.checks
        if each.asked
    )


def _resumable(source: Source, snapshot: Snapshot, options: Shared, trust: Trust | None) -> LedgerState | None:
    """Return the state that verification goes on from, None where the index must be made from the beginning."""
    stamp, marks = read_stamp(source.path, options.places), snapshot.marks
    if stamp is None or not stamp.resumable or not stamp.is_for(source.path) or stamp.origin != source.ledger:
        return None
    if not stamp.begins(marks):
        return None
    first, mark = stamp.segments[-1]
    now = marks[len(stamp.segments) - 1][1]
    if now != mark and digest(read_segment(source.folder, first, 0, stamp.end)) != stamp.tail:
        return None
    found = load(
        options.places,
        source.ledger,
        "index",
        bound=snapshot.bound(trust),
        files=snapshot.files,
        read=lambda index, size: read(source.folder, index, size),
    )
    if isinstance(found, LedgerState) and (found.segment, found.offset) == (first, stamp.end):
        # What an index goes on from left nothing out, so no receipt stood twice.
        found.ids.mark_judged()
        return found
    return None


def _pieces(
    folder: Path, judged: Judged, start: LedgerState | None, sound: Sound | None
) -> Iterator[tuple[int, bytes]]:
    """Yield first index and bytes of each file that is new: whole commits, verified."""
    if sound is not None:
        yield from sound.pieces
        return
    for first, size in judged.files:
        if start is not None and (first, size) <= (start.segment, start.offset):
            continue
        data = read(folder, first, size).data
        if sha256(data).digest() != judged.digests[first]:
            raise ChangedError
        if start is not None and first == start.segment:
            yield start.point.size, data[start.offset :]
        else:
            yield first, data if data.endswith(b"\n") else data + b"\n"


def _batches(pieces: Iterator[tuple[int, bytes]], first: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield pieces that are loaded together, with the index of their first entry."""
    batch: list[bytes] = []
    at, size = first, 0
    for index, data in pieces:
        if size >= BATCH_BYTES:
            yield at, batch
            batch, size = [], 0
        if not batch:
            at = index
        batch.append(data)
        size += len(data)
    if batch:
        yield at, batch


def _remember(
    source: Source,
    options: Shared,
    trust: Trust | None,
    snapshot: Snapshot,
    state: LedgerState | None,
    tail: str,
    memory: bytes | None,
) -> str | None:
    """Remember what the index was made from, and under which memory; return why that was not possible."""
    marks = marks_of(source.path)
    if marks[0] is None:
        return "the index is gone already"
    stamp = Stamp(
        origin=source.ledger,
        trust=trust_digest(trust),
        memory=note_digest(memory),
        segments=snapshot.marks,
        end=0 if state is None else state.offset,
        tail=tail,
        resumable=state is not None and state.segment == snapshot.marks[-1][0],
        index=marks,
    )
    try:
        write_stamp(source.path, options.places, stamp)
    except (StorageError, OSError) as error:
        return str(error)
    return None
