"""What the command line gives the verifier: evidence from disk, the user's trust and memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from cli.beside import with_counter_seals
from cli.conflict import keep_conflict, path_between, with_heads
from cli.options import Shared
from cli.remember import CONFLICTS, keep, remember
from cli.trustfile import read_memory, read_trust
from ledger.bundle import BUNDLE_MAX_BYTES, Bundle, parse_bundle
from ledger.checkpoint import head_of
from ledger.errors import DamagedError, FormatError, LedgerError, NotFoundError, StorageError, UnknownFormatError
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.evidence import gather, gather_range
from ledger.storage.reader import Reader
from verify.bundle import verify_bundle
from verify.options import Options
from verify.pins import trust_used
from verify.report import Check, CheckStatus, Coverage, Verdict

if TYPE_CHECKING:
    from verify.rules import RuleSources

__all__ = [
    "FILE_MAX_BYTES",
    "judge_error",
    "judge_file",
    "judge_range",
    "judge_receipt",
]

FILE_MAX_BYTES: Final = BUNDLE_MAX_BYTES
"""A larger file is nothing of ours."""
_FOREIGN: Final = re.compile(rb'"kind":"import"|"source":\{')
"""Marks of a receipt that a foreign document stands behind."""


def judge_receipt(folder: Path, receipt: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on one receipt with its tree, judged as a bundle."""
    reader = Reader(folder)
    memory = _memory(reader, options)
    bundle = gather(reader, receipt, erasures=asked.artifacts)
    verdict = _judge_bundle(folder, reader, bundle, options, asked, memory)
    if not any(_FOREIGN.search(item.envelope) for item in bundle.items):
        return verdict
    from cli.imported import with_documents  # noqa: PLC0415  what it loads would cost every receipt of ours

    return with_documents(verdict, bundle, folder, read_trust(options), asked)


def judge_range(folder: Path, span: tuple[int, int], options: Shared, asked: Options) -> Verdict:
    """Return the verdict on the entries from an index up to, not including, another one, judged as a bundle."""
    reader = Reader(folder)
    memory = _memory(reader, options)
    bundle = gather_range(reader, *span, erasures=asked.artifacts)
    return _judge_bundle(folder, reader, bundle, options, asked, memory)


def _memory(reader: Reader, options: Shared) -> tuple[str, bytes | None]:
    """Return the origin of a ledger, and what is remembered of it.

    It is read before the evidence: whoever appends meanwhile makes what is read later longer than what was remembered, never shorter.
    """
    origin = reader.head().origin
    return origin, read_memory(options.places, origin)


def _judge_bundle(
    folder: Path, reader: Reader, bundle: Bundle, options: Shared, asked: Options, remembered: tuple[str, bytes | None]
) -> Verdict:
    """Return the verdict on a bundle made from a ledger that is at hand; `remembered` is of which origin, and what."""
    trust, (origin, memory) = read_trust(options), remembered
    if head_of(bundle.checkpoint).origin != origin:
        raise StorageError(
            f"ledger: {str(folder)!r} changed while it was read", code="journal.changed", hint="try again"
        )
    bundle = with_counter_seals(bundle, reader, folder)

    def judge(note: bytes | None) -> Verdict:
        return verify_bundle(
            bundle,
            trust=trust,
            memory=note,
            consistency=lambda old, new: path_between(reader, old, new),
            options=asked,
            whole_ledger=True,
            stored=ArtifactStore(folder).inspect if asked.artifacts else None,
            document_of=lambda name: _sources(folder).document_of(name),
            arguments_of=lambda intent: _sources(folder).arguments_of(intent),
        )

    verdict = with_heads(judge(memory), judge, asked)
    kept = keep(verdict, memory, folder, options, asked)
    return remember(replace(verdict, notes=(*verdict.notes, *kept)), options, seen=memory, folder=folder)


def _sources(folder: Path) -> RuleSources:
    """Return what rules are re-proved with besides receipts: asked for where a run has rules, and loaded then."""
    from cli.rules import sources_of  # noqa: PLC0415

    return sources_of(folder, None)


def judge_file(data: bytes, subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a file, judged without any ledger, and remember its head where it earned that."""
    from verify.file import kind_of, verify_file  # noqa: PLC0415  what it loads would cost every other target

    trust = read_trust(options)
    seen: list[bytes | None] = [None]

    def remembered(origin: str) -> bytes | None:
        seen[0] = read_memory(options.places, origin)
        return seen[0]

    def judge(memory: Callable[[str], bytes | None]) -> Verdict:
        return verify_file(data, subject=subject, trust=trust, remembered=memory, options=asked)

    verdict = with_heads(judge(remembered), lambda note: judge(lambda _: note), asked)
    if any(check.code in CONFLICTS for check in verdict.checks) and kind_of(data) == "bundle":
        others = [note for note in (*seen, *asked.heads) if note is not None]
        kept = keep_conflict(verdict, others, evidence=parse_bundle(data), reader=None, options=options)
        verdict = replace(verdict, notes=(*verdict.notes, *kept))
    return remember(verdict, options, seen=seen[0])


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
