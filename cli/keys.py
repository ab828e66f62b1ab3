"""`ledger keys` and `ledger trust`: the user's own keys, and whom the user believes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption, LedgerOption, Shared, TrustOption, shared
from cli.text import escape, print_json, say
from cli.trustfile import pin_ledger, read_trust
from ledger.errors import LedgerError, clip
from ledger.storage.durable import replace
from ledger.storage.keyfile import create_key, read_ledger_keys, read_next_keys
from ledger.storage.ledger import Ledger
from verify.trust import ApproverPin, IssuerPin, NotaryPin, OriginPin, pin, unpin

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make and show keys.")
    keys.command("new")(new)
    keys.command("show")(show)
    app.add_typer(keys, name="keys")
    trust = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Say whom you believe.")
    trust.command("add")(add)
    trust.command("list")(list_)
    trust.command("remove")(remove)
    app.add_typer(trust, name="trust")


def new(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where the private key goes (PKCS#8 PEM, mode 0600).")],
) -> None:
    """Make a private key, for example an approver's; print its key id."""
    typer.echo(create_key(path).key)


def show(context: typer.Context, ledger: LedgerOption = None, json: JsonOption = False) -> None:
    """Show the public halves of this ledger's keys on this machine."""
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    folder = options.places.key_folder(opened.origin)
    mine = read_ledger_keys(folder)
    found = {"issuer": mine.issuer.key, "log": mine.log.key}
    try:
        following = read_next_keys(folder)
        found |= {"next issuer": following.issuer.key, "next log": following.log.key}
    except LedgerError as error:
        say(f"the next keys are not on this machine: {escape(str(error))}")
    if options.json:
        print_json({"origin": opened.origin, "folder": str(folder), **found})
        return
    typer.echo(f"{'origin':<12} {escape(opened.origin)}\n{'folder':<12} {escape(str(folder))}")
    for name, key in found.items():
        typer.echo(f"{name:<12} {key}")


def _trust_path(options: Shared) -> Path:
    return options.trust or options.places.trust_file


def add(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="LEDGER|NAME", help="A ledger's folder, whose header is pinned as it is; or a name with --key."
        ),
    ],
    key: Annotated[
        str | None, typer.Option(metavar="ed25519:…", help="The key that speaks under the name.", show_default=False)
    ] = None,
    role: Annotated[
        str, typer.Option(metavar="issuer|origin|approver|notary", help="What the key is believed for.")
    ] = "issuer",
    approver_role: Annotated[
        list[str], typer.Option("--as", metavar="ROLE", help="A role of the approver.", show_default=False)
    ] = [],
    trust: TrustOption = None,
) -> None:
    """Pin a ledger or a key. Compare what is pinned with its owner first: nothing in a ledger can vouch for itself."""
    options = shared(context, trust=trust)
    path = _trust_path(options)
    if key is None:
        if not (Path(target) / "journal").is_dir():
            raise LedgerError(
                f"trust: got {clip(target)}, expected a ledger's folder, or a name with --key", code="usage.trust"
            )
        opened = Ledger.open(Path(target), places=options.places)
        header_id = opened.reader.at(0).entry.receipt
        pin_ledger(opened.header, header_id, path)
        typer.echo(f"origin   {escape(opened.origin)}\nlog key  {opened.header.log_key}")
        typer.echo(
            f"issuer   {escape(opened.header.issuer.name)}\nkey      {opened.header.issuer.key}\nheader   {header_id}"
        )
        return
    before = path.read_bytes() if path.exists() else b""
    match role:
        case "issuer":
            after = pin(before, issuer=IssuerPin(name=target, key=key))
        case "origin":
            after = pin(before, origin=OriginPin(name=target, log_key=key))
        case "approver":
            after = pin(before, approver=ApproverPin(name=target, key=key, roles=tuple(approver_role)))
        case "notary":
            after = pin(before, notary=NotaryPin(name=target, key=key))
        case _:
            raise typer.BadParameter(f"got {role!r}, expected issuer, origin, approver or notary", param_hint="--role")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, after, mode=0o600, durable=True)
    typer.echo(f"{role:<9} {key}  {escape(target)}")


def list_(context: typer.Context, json: JsonOption = False, trust: TrustOption = None) -> None:
    """List whom you believe."""
    options = shared(context, json=json, trust=trust)
    found = read_trust(options)
    pins = (
        []
        if found is None
        else [
            {"role": role, "name": each.name, "key": getattr(each, "log_key", None) or getattr(each, "key", "")}
            for role, group in (
                ("origin", found.origins),
                ("issuer", found.issuers),
                ("approver", found.approvers),
                ("notary", found.notaries),
            )
            for each in group.values()
        ]
    )
    if options.json:
        print_json({"file": str(_trust_path(options)), "pins": pins})
        return
    say(f"{escape(str(_trust_path(options)))}{'' if found else ': no such file, so nobody is believed'}")
    for each in pins:
        typer.echo(f"{each['role']:<9} {each['key']}  {escape(str(each['name']))}")


def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The origin or name to believe no longer.")],
    trust: TrustOption = None,
) -> None:
    """Remove every pin of a name."""
    options = shared(context, trust=trust)
    path = _trust_path(options)
    replace(path, unpin(path.read_bytes(), name), mode=0o600, durable=True)
