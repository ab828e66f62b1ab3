"""The receipts that a report or an export is about, and the verdict on all of them.

The verdict on a run covers what its close commits. Approvals, resolutions and what an open run holds stand beside that tree, so each
of them is judged as well: nothing is shown that no verdict looked at.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from cli.judge import judge_error, judge_receipt
from cli.options import Shared
from cli.refs import closing_of, resolve_run
from cli.report.collect import Collected, collect_run, collect_since
from cli.times import parse_moment
from ledger.errors import LedgerError
from ledger.receipt import children_of
from ledger.storage.clock import now
from ledger.storage.ledger import Ledger
from verify.options import Options
from verify.report import Check, Verdict

__all__ = ["collect"]

_EACH: Final = 50
"""Receipts beside the tree that are judged one by one; where there are more, the whole ledger is judged."""
_LINKED: Final = "linked receipts"


def collect(reference: str | None, since: str | None, options: Shared) -> tuple[Collected, Verdict]:
    """Return the receipts of a run, `latest` where None is named, or of all runs since a moment, and the verdict on them.

    Raises:
        NotFoundError: no such run.
        FormatError: `since` is no moment.
    """
    folder = options.folder()
    opened = Ledger.open(folder, places=options.places)
    if since is not None:
        return collect_since(opened.reader, parse_moment(since, now=now())), _judge_ledger(folder, options)
    run = resolve_run(opened, reference or "latest")
    found = collect_run(opened.reader, run)
    closing = closing_of(opened.reader, run)
    top = run if closing is None else closing.entry.receipt
    beside = sorted(found.receipts.keys() - _covered(found, top))
    if len(beside) > _EACH:
        verdict = _judge_ledger(folder, options)
        return found, verdict if closing is not None else _with_open(verdict, run)
    return found, _with_linked(_judge(folder, top, options), [_judge(folder, each, options) for each in beside])


def _covered(found: Collected, top: str) -> set[str]:
    """Return what a receipt commits, itself, and the opening of its run."""
    seen: set[str] = set()
    waiting = [top]
    while waiting:
        id_ = waiting.pop()
        receipt = found.get(id_)
        if id_ not in seen and receipt is not None:
            seen.add(id_)
            waiting.extend(children_of(receipt))
    return seen


def _with_linked(verdict: Verdict, linked: list[Verdict]) -> Verdict:
    """Return a verdict with those on receipts beside its tree: each finding once a code, with how many have it."""
    if not linked:
        return verdict
    first: dict[str, Check] = {}
    for each in linked:
        for check in each.checks:
            if check.exit and check.code is not None:
                known = first.get(check.code)
                where = (
                    f"receipt {each.subject[7:19]}"
                    if check.where is None
                    else f"{check.where}, receipt {each.subject[7:19]}"
                )
                first[check.code] = (
                    replace(check, name=_LINKED, where=where)
                    if known is None
                    else replace(known, count=known.count + 1)
                )
    good = sum(each.exit == 0 for each in linked)
    ok = (Check(_LINKED, "ok", count=good),) if good == len(linked) else ()
    return replace(verdict, checks=(*verdict.checks, *ok, *first.values()))


def _with_open(verdict: Verdict, run: str) -> Verdict:
    check = Check("runs", "not_checked", "run.open", f"run {run}", "The run is not closed.")
    return replace(verdict, checks=(*verdict.checks, check))


def _judge(folder: Path, receipt: str, options: Shared) -> Verdict:
    try:
        return judge_receipt(folder, receipt, options, Options())
    except LedgerError as error:
        return judge_error(error, receipt, options, Options())


def _judge_ledger(folder: Path, options: Shared) -> Verdict:
    from cli.whole import judge_ledger  # noqa: PLC0415  what it loads would cost a report on one run

    try:
        return judge_ledger(folder, options, Options())
    except LedgerError as error:
        return judge_error(error, str(folder), options, Options())
