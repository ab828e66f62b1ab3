"""`ledger hold`: keep artifacts from being erased, and let them go again."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from cli.artifact import find_artifact
from cli.options import JsonOption, LedgerOption, shared
from cli.refs import resolve
from cli.text import console, print_json, say, short, styled
from ledger.errors import FormatError, LedgerError, NotFoundError, clip
from ledger.receipt import Opening, Run, parse_receipt
from ledger.rules.hold import Held
from ledger.storage.erasure import holds, place_hold, release_hold
from ledger.storage.ledger import Ledger

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    hold = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Keep artifacts from being erased.")
    hold.command("add")(add)
    hold.command("release")(release)
    hold.command("list")(list_)
    app.add_typer(hold, name="hold")


def add(
    context: typer.Context,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="An artifact's digest, RECEIPT/NAME, or a run: all its artifacts and those of runs below.",
        ),
    ],
    matter: Annotated[
        str | None, typer.Option(metavar="NAME", help="What it is held for, such as a case number.", show_default=False)
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Place a hold: nothing that it covers can be erased until it is released."""
    options = shared(context, ledger, json=json)
    _check_matter(matter)
    with Ledger.open(options.folder(), places=options.places) as opened:
        digest, run = _held(opened, reference)
        position = place_hold(opened, digest=digest, run=run, matter=matter)
    if options.json:
        said = {"hold": position.receipt, "index": position.index, "digest": digest, "run": run, "matter": matter}
        print_json({name: value for name, value in said.items() if value is not None})
        return
    typer.echo(
        f"entry    {position.index}\nhold     {position.receipt}\nholds    {digest or f'all artifacts of run {run}'}"
    )


def release(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="HOLD", help="The hold's receipt id; 8 digits are enough.")],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Release a hold. Whatever another hold covers stays held."""
    options = shared(context, ledger, json=json)
    with Ledger.open(options.folder(), places=options.places) as opened:
        hold = resolve(opened, reference)
        position = release_hold(opened, hold)
    if options.json:
        print_json({"released": hold, "index": position.index, "receipt": position.receipt})
        return
    typer.echo(f"entry    {position.index}\nreceipt  {position.receipt}\nreleased {hold}")


def list_(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Those that were released as well.")] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """List the holds in force, oldest first."""
    options = shared(context, ledger, json=json)
    found = [each for each in holds(options.folder()) if everything or each.released is None]
    if options.json:
        print_json([_value(each) for each in found])
        return
    if not found:
        say("no hold is in force")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("hold", "placed", "by", "holds", "matter", *(("released by",) if everything else ())):
        table.add_column(column, overflow="fold")
    for each in found:
        what = f"run {short(each.run)}" if each.run is not None else short(each.digest or "")
        cells = (short(each.receipt), each.placed_at.replace("T", " ")[:19], each.placed_by, what, each.matter or "")
        released = (short(each.released) if each.released else "",) if everything else ()
        table.add_row(*(styled(cell, "") for cell in (*cells, *released)))
    console().print(table)


def _held(opened: Ledger, reference: str) -> tuple[str | None, str | None]:
    """Return the digest of the artifact or the run id that is meant, and None for the other.

    Raises:
        NotFoundError: neither.
        LedgerError: `reference.ambiguous`: both, or several.
    """
    run = digest = None
    if "/" not in reference:
        try:
            id_ = resolve(opened, reference)
            receipt = parse_receipt(opened.get(id_).envelope.payload)
            run = id_ if isinstance(receipt, Opening) else receipt.run if isinstance(receipt, Run) else None
        except NotFoundError:
            if reference == "latest":
                raise
    try:
        digest = find_artifact(opened, reference).digest
    except (NotFoundError, FormatError):
        if run is None:
            raise
    if run is not None and digest is not None:
        raise LedgerError(
            f"{reference}: names a run and an artifact", code="reference.ambiguous", hint=f"one of: {run}, {digest}"
        )
    return digest, run


def _check_matter(matter: str | None) -> None:
    if matter is not None and not (0 < len(matter) <= 256 and matter.isprintable()):
        raise typer.BadParameter(f"got {clip(matter)}, expected 1 to 256 printable characters", param_hint="--matter")


def _value(held: Held) -> dict[str, Any]:
    value = {
        "hold": held.receipt, "digest": held.digest, "run": held.run, "matter": held.matter, "placed_by": held.placed_by,
        "placed_at": held.placed_at, "released_by": held.released,
    }  # fmt: skip
    return {name: item for name, item in value.items() if item is not None}
