"""A range of entries from its bundle: each of them is there, in its place, linked to the one before, and attributed.

What a range cannot show: that the receipt trees it cuts through are whole, and what stands before and after it.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import Entry
from verify.branch import Branch, Leaf
from verify.options import Options
from verify.report import Covered, Report

__all__ = ["check_range"]


def check_range(
    report: Report,
    span: tuple[int, int],
    entries: Sequence[tuple[Entry, bytes]],
    *,
    leaves: Mapping[str, Leaf],
    unread: AbstractSet[str],
    options: Options,
) -> Covered:
    """Report on the entries of a range and return how their receipts are covered.

    Args:
        report: takes the findings.
        span: first index, and the index after the last.
        entries: the entries of the bundle whose digests and inclusion hold, with their bytes.
        leaves: receipts by id: those of the range, and those that cover some of them.
        unread: ids of receipts at hand that could not be read.
        options: what is asked for.
    """
    _check_places(report, span, [entry.index for entry, _ in entries])
    _check_links(report, entries)
    inside = [leaf for leaf in leaves.values() if span[0] <= leaf.index < span[1]]
    branch = Branch(leaves, unread, report)
    branch.check_edges(leaves.values())
    report.skip(
        "trees", "check.not_asked", "a range shows parts of receipt trees, not that they are whole", asked=False
    )
    if options.closed:
        report.skip("runs", "check.unsupported", "a range does not show whether its runs are closed", asked=True)
    return branch.attribute_each(inside)


def _check_places(report: Report, span: tuple[int, int], found: Sequence[int]) -> None:
    start, stop = span
    report.ran("subject", len(found))
    held = set(found)
    missing = next((index for index in range(start, stop) if index not in held), None)
    if missing is not None:
        code = "check.unreachable" if report.failed("entries", "inclusion", "heads") else "subject.absent"
        report.find("subject", code, where=f"entry {missing}", message="it is of the range and not at hand")
    for index in found:
        if not start <= index < stop:
            report.find(
                "subject", "chain.index", where=f"entry {index}", message=f"it is not of the range {start}:{stop}"
            )


def _check_links(report: Report, entries: Sequence[tuple[Entry, bytes]]) -> None:
    """Check that each entry names the one before it, where that is at hand."""
    report.ran("chain", 0)
    before = (-1, ZERO_DIGEST)
    for entry, data in entries:
        if before[0] == entry.index - 1:
            report.ran("chain")
            if entry.previous != before[1]:
                report.find("chain", "chain.previous", where=f"entry {entry.index}")
        before = entry.index, digest(data)
