"""What the command line gives the verifier: evidence from disk, the user's trust and memory; and what it remembers after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from cli.options import Shared
from cli.trustfile import read_memory, read_trust, write_memory
from ledger.bundle import BUNDLE_MAX_BYTES
from ledger.checkpoint import Head, head_of
from ledger.errors import DamagedError, FormatError, LedgerError, NotFoundError, UnknownFormatError
from ledger.merkle import consistency_proof
from ledger.storage.evidence import gather
from ledger.storage.journal import read_segment, segment_path, segments
from ledger.storage.reader import Reader
from verify.bundle import verify_bundle
from verify.chain import Segment
from verify.file import verify_file
from verify.ledger import verify_ledger
from verify.options import Options
from verify.pins import trust_used
from verify.report import Check, CheckStatus, Coverage, Verdict

__all__ = ["FILE_MAX_BYTES", "JournalSnapshot", "judge_error", "judge_file", "judge_ledger", "judge_receipt"]

FILE_MAX_BYTES: Final = BUNDLE_MAX_BYTES
"""A larger file is nothing of ours."""


class JournalSnapshot:
    """The journal of a folder as it was at one moment; can be gone through again, while others append."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes = [(first, segment_path(folder, first).stat().st_size) for first in segments(folder)]

    def __iter__(self) -> Iterator[Segment]:
        for first, size in self._sizes:
            data = read_segment(self._folder, first, 0, size)
            yield Segment(f"journal/{first:016d}.jsonl", first, data)


def judge_ledger(folder: Path, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a whole ledger, and remember its head where it earned that."""
    origin = _origin(folder)
    verdict = verify_ledger(
        JournalSnapshot(folder),
        trust=read_trust(options),
        memory=read_memory(options.places, origin) if origin else None,
        options=asked,
        subject=str(folder),
    )
    return _remember(verdict, options)


def judge_receipt(folder: Path, receipt: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on one receipt with its tree, judged as a bundle."""
    reader = Reader(folder)
    bundle = gather(reader, receipt)
    head = head_of(bundle.checkpoint)

    def consistency(old: int, new: int) -> tuple[bytes, ...]:
        return consistency_proof(old, new, reader.hash_reader(head))

    verdict = verify_bundle(
        bundle,
        trust=read_trust(options),
        memory=read_memory(options.places, head.origin),
        consistency=consistency,
        options=asked,
    )
    return _remember(verdict, options)


def judge_file(data: bytes, subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a file, judged without any ledger, and remember its head where it earned that."""
    verdict = verify_file(
        data if len(data) <= FILE_MAX_BYTES else b"",
        subject=subject,
        trust=read_trust(options),
        remembered=lambda origin: read_memory(options.places, origin),
        options=asked,
    )
    return _remember(verdict, options)


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


def _remember(verdict: Verdict, options: Shared) -> Verdict:
    """Keep the head that the verdict says to remember; an unwritable folder is said, no more."""
    if verdict.remember is not None and verdict.head is not None:
        problem = write_memory(options.places, verdict.head.origin, verdict.remember)
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
