"""Checks of vectors that end in a verdict: whole ledgers, files of evidence, published trees.

Source: vectors/README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.envelope import parse_envelope
from ledger.line import ENTRY_PREFIX, parse_entry_line
from ledger.members import Continues
from ledger.receipt import Header, Intent, parse_receipt
from ledger.rules.hold_replay import line_from
from verify.chain import Segment
from verify.continues import check_continues
from verify.file import verify_file
from verify.ledger import verify_ledger
from verify.options import parse_options
from verify.proof import RootFold, leaf_hash
from verify.published import verify_published
from verify.report import Verdict
from verify.rules import RuleSources, approvers_of
from verify.trust import Trust, parse_trust
from verify.vectorinputs import Answer, FileInput, LedgerInput, PublishedInput, Read, SegmentInput

__all__ = ["answer_file", "answer_ledger", "answer_published"]


def answer_ledger(given: LedgerInput, read: Read) -> Answer:
    """Return exit and codes of the verdict on a ledger."""
    options = parse_options(require=given.require)
    trust = _trust_of(given)
    segments = _segments(given.segments, read)
    sources = _sources(given.documents, trust, segments)
    verdict = verify_ledger(segments, trust=trust, memory=_memory_of(given), options=options, sources=sources)
    if given.older is not None:
        old = _segments(given.older, read)
        continues = _continued(segments)
        root = None if continues is None else _root_at(old, continues.size)
        verdict = check_continues(verdict, continues, older=verify_ledger(old, trust=trust, options=options), root=root)
    return _judged(verdict)


def _sources(documents: tuple[str, ...], trust: Trust | None, segments: tuple[Segment, ...]) -> RuleSources:
    """Return what rules are re-proved with besides what passes by: the texts at hand, by digest, and the ledger's receipts."""
    held = {digest(each): each for each in (text.encode("utf-8") for text in documents)}

    def arguments_of(intent: Intent) -> JsonObject | None:
        data = held.get(intent.act.arguments_digest)
        return None if data is None else canonical.decode(data)

    @cache
    def payloads() -> dict[str, bytes]:
        envelopes = (parse_envelope(parse_entry_line(line)[1]) for line in _entry_lines(segments))
        return {each.receipt_id: each.payload for each in envelopes}

    return RuleSources(approvers_of(trust), held.get, arguments_of, line_from(lambda id_: payloads().get(id_)))


def _segments(listed: tuple[SegmentInput, ...], read: Read) -> tuple[Segment, ...]:
    return tuple(
        Segment(f"journal/{found.first_index:016d}.jsonl", found.first_index, read(found.file)) for found in listed
    )


def _entry_lines(segments: tuple[Segment, ...]) -> Iterator[bytes]:
    for segment in segments:
        yield from (line for line in segment.data.split(b"\n") if line.startswith(ENTRY_PREFIX))


def _continued(segments: tuple[Segment, ...]) -> Continues | None:
    """Return what the header of a ledger says that it continues."""
    _, envelope = parse_entry_line(next(_entry_lines(segments)))
    header = parse_receipt(parse_envelope(envelope).payload)
    return header.continues if isinstance(header, Header) else None


def _root_at(segments: tuple[Segment, ...], size: int) -> bytes | None:
    """Return the root of the first `size` entries, None where there are fewer."""
    entries = [parse_entry_line(line)[0] for line in _entry_lines(segments)]
    if len(entries) < size:
        return None
    fold = RootFold()
    for entry in entries[:size]:
        fold.append(leaf_hash(entry))
    return fold.root()


def answer_file(given: FileInput, read: Read) -> Answer:
    """Return exit and codes of the verdict on a file of evidence."""
    memory = _memory_of(given)
    verdict = verify_file(
        read(given.file),
        subject="vector",
        trust=_trust_of(given),
        remembered=lambda _origin: memory,
        options=parse_options(require=given.require),
    )
    return _judged(verdict)


def answer_published(given: PublishedInput, read: Read) -> Answer:
    """Return exit and codes of the verdict on a published tree."""
    files = {found.path: found.file for found in given.files}
    verdict = verify_published(
        lambda path: read(files[path]) if path in files else None,
        trust=_trust_of(given),
        memory=_memory_of(given),
        options=parse_options(require=given.require),
    )
    return _judged(verdict)


def _trust_of(given: LedgerInput | FileInput | PublishedInput) -> Trust | None:
    if given.trust is None:
        return None
    return parse_trust(given.trust.encode("utf-8"), source="vector", allow_test_keys=True)


def _memory_of(given: LedgerInput | FileInput | PublishedInput) -> bytes | None:
    return None if given.memory is None else given.memory.encode("utf-8")


def _judged(verdict: Verdict) -> Answer:
    return Answer(verdict.exit, tuple(check.code for check in verdict.checks if check.code is not None))
