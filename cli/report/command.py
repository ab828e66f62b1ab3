"""Makes a report from a ledger folder: judges, collects, builds, renders."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from typing import Final

from cli.beside import counter_seal_lines, counter_seals_of
from cli.kept import Kept
from cli.options import Shared, program_name
from cli.report.build import Builder
from cli.report.model import Page
from cli.report.page import render_page
from cli.reported import collect
from cli.times import parse_moment
from ledger.errors import LedgerError
from ledger.members import Artifact
from ledger.rules.breach import BREACH_CODES
from ledger.rules.budget import Budget
from ledger.storage.clock import now
from ledger.storage.ledger import Ledger
from ledger.version import VERSION
from verify.report import Verdict

__all__ = ["Made", "Wanted", "render"]

_ROOM: Final = 4_000
"""Lines of the timelines of one page: a browser lays them out at once."""
_TEXT_BYTES: Final = 4_000
_ENTRY: Final = re.compile(r"entry ([0-9]+)")
_TEXTS: Final = ("text/", "application/json")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is to be about and in which form; `artifacts` asks for the beginning of what is text."""

    reference: str | None
    since: str | None
    format: str
    artifacts: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A report: its bytes, how many runs it shows, and its verdict."""

    data: bytes
    runs: int
    status: str
    exit: int


def render(wanted: Wanted, options: Shared) -> Made:
    """Return a report.

    Raises:
        NotFoundError: no such run.
    """
    folder = options.folder()
    opened = Ledger.open(folder, places=options.places)
    made_at = now()
    at = shlex.join([program_name(), *(("-L", str(folder)) if options.ledger is not None else ())])
    found, verdict = collect(wanted.reference, wanted.since, options)
    if wanted.since is not None:
        title, commands = (
            f"Runs since {parse_moment(wanted.since, now=made_at)[:19].replace('T', ' ')} UTC",
            _ledger_commands(at),
        )
    else:
        title, commands = "", _run_commands(at, found.roots[0])
    builder = Builder(
        found,
        condition=cache(lambda digest, index: _kept(opened).condition(digest, index=index)),
        text=lambda each: _text(opened, each) if wanted.artifacts else None,
        budget=lambda run: _budget(opened, run),
        counter_seals=lambda id_: tuple(counter_seal_lines(counter_seals_of(folder, id_, opened.origin, options))),
        breaches=_breaches(verdict),
        room=_ROOM,
    )
    built = [builder.run(id_) for id_ in found.roots]
    runs = tuple(each for each in built if each is not None)
    page = Page(
        title or (runs[0].name if runs else "No run"),
        opened.origin,
        made_at,
        VERSION,
        verdict,
        runs,
        commands,
        left_out=len(found.roots) - len(runs),
    )
    return Made(render_page(page), len(runs), verdict.status, verdict.exit)


@cache
def _kept(opened: Ledger) -> Kept:
    return Kept(opened.folder)


def _breaches(verdict: Verdict) -> dict[int, str]:
    """Return the code of each broken rule by the index of the entry where it was found."""
    found: dict[int, str] = {}
    for check in verdict.checks:
        match = _ENTRY.match(check.where or "")
        if match is not None and check.code in BREACH_CODES:
            found.setdefault(int(match[1]), check.code or "")
    return found


def _budget(opened: Ledger, run: str) -> Budget | None:
    from ledger.spending import budget_of  # noqa: PLC0415  runs without limits need none of it

    try:
        return budget_of(opened.reader, run)
    except LedgerError:
        return None


def _text(opened: Ledger, artifact: Artifact) -> str | None:
    """Return the beginning of an artifact that is text and whole, else None."""
    if artifact.media_type == "application/octet-stream" or artifact.media_type.startswith(_TEXTS):
        try:
            return opened.artifact(artifact)[:_TEXT_BYTES].decode("utf-8", errors="replace")
        except LedgerError:
            return None
    return None


def _run_commands(at: str, run: str) -> tuple[tuple[str, str], ...]:
    return (
        ("Judge this run where its ledger is", f"{at} verify {run[7:19]}"),
        ("Write the evidence to a file that needs neither ledger nor network", f"{at} prove {run[7:19]} -o bundle.json"),
        ("Judge that file anywhere, by your own list of whom you trust", f"{program_name()} verify bundle.json --trust trust.toml"),
        ("See that a receipt's id is the SHA-256 of its bytes", f"{at} show {run[7:19]} --raw | sha256sum"),
    )  # fmt: skip


def _ledger_commands(at: str) -> tuple[tuple[str, str], ...]:
    return (
        ("Judge the whole ledger, and every artifact beside it", f"{at} verify --require artifacts"),
        ("Write the evidence of one run to a file", f"{at} prove --run RUN -o bundle.json"),
        ("Judge that file anywhere, by your own list of whom you trust", f"{program_name()} verify bundle.json --trust trust.toml"),
        ("Compare with a head that you kept", f"{at} verify --head FILE"),
    )  # fmt: skip
