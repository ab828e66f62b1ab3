"""`ledger show`: one receipt, member by member."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from cli.artifact import artifacts_of
from cli.beside import counter_seal_lines, counter_seals_of
from cli.kept import Kept
from cli.options import JsonOption, LedgerOption, shared
from cli.refs import resolve
from cli.text import console, escape, print_json, write_bytes
from ledger import canonical
from ledger.errors import LedgerError
from ledger.receipt import parse_receipt
from ledger.storage.journal import Stored
from ledger.storage.ledger import Ledger

__all__ = ["register"]

Reference = Annotated[str, typer.Argument(metavar="REF", help="A receipt id, 8 or more of its digits, or latest.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(show)


def show(
    context: typer.Context,
    reference: Reference,
    raw: Annotated[
        bool, typer.Option("--raw", help="The receipt's bytes and nothing else: their SHA-256 is the id.")
    ] = False,
    envelope: Annotated[bool, typer.Option("--envelope", help="The envelope's bytes: payload, type, seal.")] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Show one receipt."""
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    stored = opened.get(resolve(opened, reference))
    if raw:
        write_bytes(stored.envelope.payload)
        return
    if envelope:
        write_bytes(stored.envelope_bytes)
        return
    value = canonical.decode(stored.envelope.payload)
    entry = canonical.decode(stored.entry_bytes)
    seal = stored.envelope.seal
    conditions = _conditions(opened, stored)
    counter_seals = counter_seals_of(opened.folder, stored.entry.receipt, opened.origin, options)
    if options.json:
        shown = {**entry, "receipt_id": stored.entry.receipt, "sealed_by": seal.key if seal else None, "payload": value}
        shown |= {"counter_seals": counter_seals} if counter_seals else {}
        print_json({**shown, "artifacts": conditions} if conditions else shown)
        return
    console().print(Text(f"receipt  {stored.entry.receipt}"))
    console().print(Text(f"entry    {stored.entry.index}, recorded {stored.entry.recorded_at}"))
    console().print(
        Text(f"seal     {'by its issuer, ' + seal.key if seal else 'none of its own: covered by what commits it'}")
    )
    for line in counter_seal_lines(counter_seals):
        console().print(Text(line))
    console().print()
    _print_members(value, "")
    for digest, condition in conditions.items():
        if condition != "whole":
            console().print(Text(f"\nartifact {digest}: {condition}", style="bold yellow"))


def _conditions(opened: Ledger, stored: Stored) -> dict[str, str]:
    """Return the condition of each artifact that the receipt refers to, by digest."""
    try:
        receipt = parse_receipt(stored.envelope.payload)
    except LedgerError:
        return {}
    kept = Kept(opened.folder)
    return {each.digest: kept.condition(each.digest, index=stored.entry.index) for each in artifacts_of(receipt)}


def _print_members(value: dict[str, Any], indent: str) -> None:
    """Print an object as aligned names and values, nested objects below their name."""
    width = max((len(name) for name in value), default=0)
    for name, item in value.items():
        label = f"{indent}{escape(name):<{width}}  "
        if isinstance(item, dict) and item:
            console().print(Text(label.rstrip(), style="bold"))
            _print_members(item, indent + "  ")
        elif isinstance(item, list) and item and all(isinstance(each, dict) for each in item):
            console().print(Text(label.rstrip(), style="bold"))
            for each in item:
                _print_members(each, indent + "  - ")
        else:
            several = isinstance(item, list) and len(item) > 1 and all(isinstance(each, str) for each in item)
            for number, each in enumerate(item if several else [item]):
                text = each if isinstance(each, str) else orjson.dumps(each).decode()
                console().print(Text().append(" " * len(label) if number else label, style="bold").append(escape(text)))
