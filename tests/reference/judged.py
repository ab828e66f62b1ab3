"""Built ledgers judged: whole, or cut into segments that are judged apart."""

from __future__ import annotations

from verify.chain import Segment
from verify.ledger import LedgerFold, verify_ledger
from verify.options import Options
from verify.parallel import fold_part
from verify.rules import RuleSources, approvers_of


def judge(ledger, **sources):
    """Judge a built ledger under its own trust and newest head; `sources` are what rules are re-proved with besides."""
    given = RuleSources(approvers_of(ledger.trust()), **sources)
    return verify_ledger(ledger.segments(), trust=ledger.trust(), memory=ledger.notes[-1], sources=given)


def found(verdict):
    """Return code and place of what speaks against it."""
    return [(check.code, check.where) for check in verdict.findings]


def apart(ledger, cuts, **options):
    """Judge a ledger whose segments are judged apart and joined; say how many were."""
    lines = ledger.journal()
    fold = LedgerFold(Options(**options), memory=ledger.notes[-1], sources=RuleSources(approvers_of(ledger.trust())))
    segments, joined = split(lines, cuts), 0
    for segment in segments:
        start = fold.chain.point()
        part = None
        if start is not None and segment.first_index:
            part = fold_part(segment, start, origin=fold.origin, watch=fold.watch, options=Options(**options))
        if part is not None and fold.join(part, segment.first_index):
            joined += 1
        else:
            fold.feed(segment)
    return fold.judge(segments, trust=ledger.trust(), memory=ledger.notes[-1]), joined


def split(data, cuts):
    """Return the bytes of a journal as segments that end with the heads of these sizes."""
    segments, lines, first = [], [], 0
    index = 0
    for line in data.split(b"\n")[:-1]:
        lines.append(line)
        if line.startswith(b'{"entry":'):
            index += 1
        elif index in cuts:
            segments.append(Segment(f"journal/{first:016d}.jsonl", first, b"".join(each + b"\n" for each in lines)))
            lines, first = [], index
    if lines:
        segments.append(Segment(f"journal/{first:016d}.jsonl", first, b"".join(each + b"\n" for each in lines)))
    return segments
