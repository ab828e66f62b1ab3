"""`ledger erase`: remove an artifact's bytes, and record who referred to it and why it went."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from cli.artifact import find_artifact
from cli.options import JsonOption, LedgerOption, program_name, shared
from cli.text import console, escape, print_json, say, short
from ledger.errors import LedgerError, NotFoundError, clip
from ledger.storage.erasure import Plan, erase, plan_erasure
from ledger.storage.ledger import Ledger
from ledger.words import Reason

__all__ = ["register"]

_REASONS: Final = {each.removeprefix("erasure."): each for each in Reason if each.startswith("erasure.")}
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN: Final = 20
"""Receipts that are listed for a person; `--json` lists all."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("erase")(erase_)


def erase_(
    context: typer.Context,
    reference: Annotated[
        str, typer.Argument(metavar="DIGEST", help="An artifact's digest, 8 or more of its digits, or RECEIPT/NAME.")
    ],
    reason: Annotated[str, typer.Option(metavar="|".join(_REASONS), help="Why; it is recorded.", show_default=False)],
    yes: Annotated[
        bool, typer.Option("--yes", help="Erase also where several receipts refer to the same bytes.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be erased.")] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Erase an artifact's bytes and record it; no proof breaks.

    The salt of its run goes with it where the run is closed, so that nobody can confirm a guess. What is held is not erased. Copies
    elsewhere, such as bundles that were made with artifacts and backups, are not reached; nor is what stands in receipts.
    """
    options = shared(context, ledger, json=json)
    why = _reason(reason)
    with Ledger.open(options.folder(), places=options.places) as opened:
        plan = plan_erasure(opened, _digest(opened, reference))
        several = len({each.receipt for each in plan.references}) > 1 and not plan.settled
        if dry_run or (several and not yes and not plan.holds):
            _print_plan(plan, json=options.json)
            if dry_run:
                return
            raise LedgerError(
                f"erase: {len({each.receipt for each in plan.references})} receipts refer to these bytes; nothing was erased",
                code="erasure.references",
                hint="if it is to go for all of them, repeat the command with --yes",
            )
        positions = erase(opened, plan, reason=why)
    said = {
        "digest": plan.digest, "reason": why, "erased": True, "recorded_before": plan.erased_by if plan.settled else None,
        "receipts": [{"receipt": each.receipt, "index": each.index} for each in positions],
        **_value(plan),
    }  # fmt: skip
    if options.json:
        print_json({name: value for name, value in said.items() if value is not None})
        return
    for position in positions:
        typer.echo(f"entry    {position.index}\nreceipt  {position.receipt}")
    if plan.settled:
        typer.echo(f"receipt  {plan.erased_by} said it before")
    typer.echo(f"erased   {plan.digest}")
    _say_left(plan)


def _reason(word: str) -> Reason:
    found = _REASONS.get(word.removeprefix("erasure."))
    if found is None:
        raise typer.BadParameter(f"got {clip(word)}, expected one of {', '.join(_REASONS)}", param_hint="--reason")
    return found


def _digest(opened: Ledger, reference: str) -> str:
    """Return the digest that is meant; a whole one may be of bytes that no receipt calls an artifact."""
    try:
        return find_artifact(opened, reference).digest
    except NotFoundError:
        if not _DIGEST.fullmatch(reference):
            raise
    if opened.reader.find(reference):
        raise NotFoundError(
            f"{reference}: is a receipt, which is never erased; what it keeps can be",
            hint=f"name an artifact: RECEIPT/NAME, listed by: {program_name()} tree {short(reference)}",
        )
    return reference


def _value(plan: Plan) -> dict[str, Any]:
    return {
        "condition": plan.condition,
        "referred_to_by": [
            {"receipt": each.receipt, "index": each.index, "kind": each.kind, "name": each.name, "inline": each.inline}
            for each in plan.references
        ],
        "salts": [salt for salt, _ in plan.salts],
        "open_runs": list(plan.open_runs),
        "holds": [each.receipt for each in plan.holds],
    }


def _print_plan(plan: Plan, *, json: bool) -> None:
    if json:
        print_json({"digest": plan.digest, "erased": False, **_value(plan)})
        return
    out = console()
    out.print(Text(f"artifact  {plan.digest}  {plan.condition}"))
    for each in plan.references[:_SHOWN]:
        name = f"  {escape(each.name)}" if each.name else ""
        out.print(Text(f"refers    {short(each.receipt)}  entry {each.index}  {escape(each.kind)}{name}"))
    if len(plan.references) > _SHOWN:
        out.print(Text(f"          and {len(plan.references) - _SHOWN} more; --json lists all"))
    for salt, run in plan.salts:
        out.print(Text(f"with it   {short(salt)}  the salt of run {short(run)}"))
    for held in plan.holds:
        matter = f"  {escape(held.matter)}" if held.matter else ""
        out.print(Text(f"held by   {short(held.receipt)}{matter}", style="bold yellow"))


def _say_left(plan: Plan) -> None:
    """Say what the erasure does not reach."""
    for run in plan.open_runs:
        say(
            f"run {short(run)} is open, so its salt stays: who has it can confirm a guess; erase again after the run is closed"
        )
    if any(each.inline for each in plan.references):
        receipts = ", ".join(short(each.receipt) for each in plan.references if each.inline)
        say(f"members of the arguments stand in {receipts} and stay there")
    if any(each.salted is False for each in plan.references) and all(
        each.name != "run-salt" for each in plan.references
    ):
        say("the bytes were not salted: who guesses them can confirm the guess by the digest")
