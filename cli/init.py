"""`ledger init` and `ledger head`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.beside import with_cosignatures
from cli.options import JsonOption, LedgerOption, TrustOption, program_name, shared
from cli.text import escape, print_json, say
from cli.trustfile import pin_ledger
from ledger.errors import FormatError
from ledger.storage.ledger import Ledger

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(init)
    app.command()(head)


def init(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A folder that is absent or empty. [default: .ledger]")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="The ledger's name for ever, such as example.org/ledger/prod-7.", show_default=False),
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(help="The name you sign under. Without it: owner@ORIGIN.", show_default=False)
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Make a ledger, its keys, and pin it in your trust file."""
    options = shared(context, ledger, json=json, trust=trust)
    target = folder or options.ledger or Path(".ledger")
    if origin == "":
        raise FormatError("origin: got '', expected a name, or no --origin for one made at random")
    places = options.places
    made = Ledger.create(target, origin=origin, issuer=issuer, places=places)
    header_id = made.reader.at(0).entry.receipt
    pinned = pin_ledger(made.header, header_id, options.trust or places.trust_file)
    made.close()
    keys = places.key_folder(made.origin)
    if options.json:
        print_json(
            {"origin": made.origin, "folder": str(target), "header": header_id, "keys": str(keys), "trust": str(pinned)}
        )
        return
    typer.echo(f"ledger   {escape(str(target))}")
    typer.echo(f"origin   {escape(made.origin)}")
    typer.echo(f"keys     {escape(str(keys))}  (yours alone; move its folder `next` to another place)")
    typer.echo(f"pinned   {escape(str(pinned))}  (log key, issuer key, header {header_id[:19]}…)")
    at = "" if target == Path(".ledger") else f"-L {escape(shlex.quote(str(target)))} "
    say(f"next:    {program_name()} {at}run -- echo hello")


def head(context: typer.Context, ledger: LedgerOption = None, json: JsonOption = False) -> None:
    """Print the newest head: a signed note over all before it.

    Cosignatures of notaries that are kept of it are further lines.
    """
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    note = with_cosignatures(opened.checkpoint(), opened.folder)
    if options.json:
        now = opened.head()
        print_json(
            {"origin": now.origin, "size": now.size, "root": "sha256:" + now.root.hex(), "note": note.decode("utf-8")}
        )
    else:
        typer.echo(note.decode("utf-8"), nl=False)
