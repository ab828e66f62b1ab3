"""`ledger resolve`: a person settles an act of which nobody knows whether it happened."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption, LedgerOption, shared
from cli.refs import resolve as resolve_reference
from cli.text import escape, print_json, short
from ledger.errors import AdmissionError, LedgerError, NotFoundError, clip
from ledger.storage.ledger import Ledger

__all__ = ["register"]

_EVIDENCE_MAX_BYTES = 64 << 20


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(resolve)


def resolve(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="EFFECT", help="An effect key, or the receipt id of an intent.")],
    happened: Annotated[bool, typer.Option("--happened", help="It happened.")] = False,
    did_not_happen: Annotated[
        bool, typer.Option("--did-not-happen", help="It did not; it may be tried again.")
    ] = False,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who says so. Without it: your login.")] = None,
    evidence: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What it is said on; kept as an artifact.", show_default=False)
    ] = None,
    charge: Annotated[
        list[str],
        typer.Option("--charge", metavar="METER=N", help="What it cost; repeatable. Without it: what was set aside."),
    ] = [],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Settle an act of which nobody knows the end.

    Say whether it happened, so that it is neither repeated nor lost.
    """
    if happened == did_not_happen:
        raise typer.BadParameter("say one of both", param_hint="--happened, --did-not-happen")
    options = shared(context, ledger, json=json)
    content = None if evidence is None else _read(evidence)
    charges: dict[str, int | str] = {}
    for each in charge:
        meter, equals, amount = each.rpartition("=")
        if not equals or meter in charges:
            raise typer.BadParameter(f"got {clip(each)}, expected METER=N, each meter once", param_hint="--charge")
        charges[meter] = int(amount) if amount.isascii() and amount.isdigit() else amount
    with Ledger.open(options.folder(), places=options.places) as opened:
        position = opened.resolve(
            _named(opened, reference),
            happened=happened,
            resolved_by=by or getpass.getuser(),
            evidence=content,
            charges=charges or None,
        )
    if options.json:
        print_json({"receipt": position.receipt, "index": position.index, "happened": happened})
    else:
        typer.echo(f"{escape(reference)} {'happened' if happened else 'did not happen'}   {short(position.receipt)}")


def _named(opened: Ledger, reference: str) -> str:
    """Return the receipt id that a reference names; else it is an effect key."""
    try:
        return resolve_reference(opened, reference)
    except NotFoundError:
        return reference
    except LedgerError as error:
        if error.code == "reference.ambiguous":
            raise
        return reference


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_EVIDENCE_MAX_BYTES + 1)
    if len(data) > _EVIDENCE_MAX_BYTES:
        raise AdmissionError(f"--evidence: {clip(str(path))}: got more than {_EVIDENCE_MAX_BYTES} bytes")
    return data
