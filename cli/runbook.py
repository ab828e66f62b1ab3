"""`ledger runbook`: whether a runbook may start here, and its policy envelope; and the report of a run under it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from cli.options import JsonOption, shared
from cli.text import escape, print_json, write_bytes
from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.errors import LedgerError, NotFoundError, clip
from ledger.receipt import Opening, Receipt, parse_receipt, run_of
from ledger.rules.errors import RunbookError
from ledger.rules.profile import ADAPTERS, Coverage, coverage_of
from ledger.rules.runbook import Envelope, parse_envelope, read_envelope
from ledger.rules.runbook_derive import RUNBOOK_SCHEMA, derive
from ledger.rules.runbook_report import report_of
from ledger.rules.runbook_start import Refusal, refusals
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.reader import Reader
from ledger.words import Profile, Risk

__all__ = ["allowlist_of", "read_file", "register", "runbook_report"]

REFUSED: Final = 6
"""Exit code where a rule says no."""
_LONGEST: Final = 1 << 20

group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Runbooks: check one, derive its envelope.")

FileArgument = Annotated[Path, typer.Argument(metavar="ENVELOPE", help="A policy envelope, or the runbook's elements.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="runbook")


@group.command()
def check(
    context: typer.Context,
    envelope: FileArgument,
    profile: Annotated[str, typer.Option(metavar="R0|R1|R2", help="How much of it the client enforces.")] = "R2",
    adapter: Annotated[
        str, typer.Option(metavar="NAME", help=f"What carries it out: {', '.join(sorted(ADAPTERS))}.")
    ] = "python",
    statement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The adapter's coverage statement, in place of its name.", show_default=False
        ),
    ] = None,
    risk_ceiling: Annotated[
        str | None, typer.Option(metavar="RISK", help="The highest risk that the client runs.", show_default=False)
    ] = None,
    allow: Annotated[
        list[str],
        typer.Option("--allow", metavar="TOOL", help="A tool that the client allows; repeatable.", show_default=False),
    ] = [],
    json: JsonOption = False,
) -> None:
    """Say every reason not to start a runbook here; exit 0 if there is none, 6 if there is one."""
    options = shared(context, json=json)
    book, ceiling = _envelope(envelope), risk_ceiling or Risk.IRREVERSIBLE.value
    if profile not in set(Profile) or ceiling not in set(Risk):
        raise RunbookError(
            f"runbook: got profile {clip(profile)}, ceiling {clip(ceiling)}, expected {', '.join(Profile)}"
        )
    found = refusals(
        book,
        profile=Profile(profile),
        coverage=_coverage(adapter, statement),
        ceiling=Risk(ceiling),
        allowlist=allowlist_of(allow),
    )
    unasked = [name for name, missing in (("allowlist", not allow), ("risk ceiling", risk_ceiling is None)) if missing]
    if options.json:
        print_json(
            {
                "envelope": book.digest,
                "document": book.document,
                "minimum": book.minimum.value,
                "starts": not found,
                "refusals": [_row(each) for each in found],
                "not_checked": unasked,
            }
        )
    else:
        _print(book, found, unasked)
    if found:
        raise typer.Exit(REFUSED)


@group.command()
def envelope(context: typer.Context, document: FileArgument) -> None:
    """Print the policy envelope of a runbook's elements: what it authorizes, derived from them alone."""
    shared(context)
    write_bytes(_envelope(document).data + b"\n")


def runbook_report(folder: Path, run: str) -> JsonObject:
    """Return the report of a run of a ledger's folder.

    Raises:
        NotFoundError: no such run.
        RunbookError: it is under no runbook, or its policy envelope is not there.
    """
    reader = Reader(folder)
    first = reader.get(run)
    opening = parse_receipt(first.envelope.payload)
    if not isinstance(opening, Opening):
        raise NotFoundError(
            f"run {run[:15]}: is a receipt of kind {opening.kind}, no opening", code="run.unknown_opening"
        )
    if opening.runbook is None:
        raise RunbookError(f"run {run[:15]}: follows no runbook", code="runbook.absent")
    try:
        data = ArtifactStore(folder).get(opening.runbook.envelope)
    except (LedgerError, OSError) as error:
        raise RunbookError(f"run {run[:15]}: its policy envelope is not there", code="runbook.absent") from error
    if digest(data) != opening.runbook.envelope:
        raise RunbookError(f"run {run[:15]}: its policy envelope was altered", code="artifact.altered")
    rows: list[tuple[str, Receipt]] = []
    for stored in reader.entries(first.entry.index):
        if run.encode() in stored.envelope.payload or stored.entry.receipt == run:
            receipt = parse_receipt(stored.envelope.payload)
            if run_of(receipt, stored.entry.receipt) == run:
                rows.append((stored.entry.receipt, receipt))
    return report_of(run, rows, parse_envelope(data))


def allowlist_of(allow: Sequence[str]) -> tuple[str, ...] | None:
    """Return the tools that a client allows, None where nothing was said."""
    return tuple(allow) or None


def read_file(path: Path, what: str) -> bytes:
    """Return the bytes of a document of at most 1 MiB.

    Raises:
        RunbookError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except OSError as error:
        raise RunbookError(f"{what}: {clip(str(path))}: {error.strerror}", code="file.unreadable") from error
    if len(data) > _LONGEST:
        raise RunbookError(f"{what}: {clip(str(path))}: got more than {_LONGEST} bytes", code="file.unreadable")
    return data


def _envelope(path: Path) -> Envelope:
    data = read_file(path, "runbook")
    return derive(data) if RUNBOOK_SCHEMA.encode() in data else read_envelope(data)


def _coverage(adapter: str, statement: Path | None) -> Coverage:
    if statement is not None:
        data = read_file(statement, "--statement")
        return coverage_of(digest(data), data)
    if adapter not in ADAPTERS:
        raise RunbookError(
            f"--adapter: got {clip(adapter)}, expected one of {', '.join(sorted(ADAPTERS))}",
            code="runbook.unknown_adapter",
            hint="another adapter publishes a statement of what it sees: --statement FILE",
        )
    return coverage_of(ADAPTERS[adapter])


def _row(each: Refusal) -> JsonObject:
    row: JsonObject = {"reason": each.reason.value, "message": each.message}
    if each.step is not None:
        row["step"] = each.step
    if each.tool is not None:
        row["tool"] = each.tool
    return row


def _print(book: Envelope, found: Sequence[Refusal], unasked: Sequence[str]) -> None:
    for each in found:
        typer.echo(f"refused  {each.reason.value}  {escape(each.message)}")
    for name in unasked:
        typer.echo(f"not checked  {name}: none was given")
    word = f"{len(found)} reason{'s' * (len(found) != 1)} not to start" if found else "may start"
    typer.echo(f"{word}; at least {book.minimum}, envelope {book.digest[7:19]}")
