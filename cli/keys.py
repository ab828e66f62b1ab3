"""`ledger keys` and `ledger trust`: the user's own keys, and whom the user believes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from cli.options import JsonOption, LedgerOption, Shared, TrustOption, outside_ledgers, shared
from cli.text import escape, print_json, say
from cli.trustfile import pin_ledger, read_trust
from ledger.errors import LedgerError, clip
from ledger.keys import is_key_id, print_key_id
from ledger.note import COSIGNATURE, parse_vkey
from ledger.storage.durable import replace
from ledger.storage.keyfile import create_key, read_ledger_keys, read_next_keys
from ledger.storage.keyfolder import is_rotating
from ledger.storage.ledger import Ledger
from ledger.storage.rotation import Role, Rotation, rotate
from verify.trust import ApproverPin, IssuerPin, NotaryPin, OriginPin, TimestampPin, pin, unpin

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make, show, rotate and revoke keys.")
    keys.command("new")(new)
    keys.command("show")(show)
    keys.command("rotate")(rotate_)
    keys.command("revoke")(revoke)
    app.add_typer(keys, name="keys")
    trust = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Say whom you believe.")
    trust.command("add")(add)
    trust.command("list")(list_)
    trust.command("remove")(remove)
    app.add_typer(trust, name="trust")


def new(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Where the private key goes (PKCS#8 PEM, mode 0600).", callback=outside_ledgers
        ),
    ],
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
    if is_rotating(folder):
        say("a rotation is under way or was interrupted: whoever appends next puts these files in their places")
    if options.json:
        print_json({"origin": opened.origin, "folder": str(folder), **found})
        return
    typer.echo(f"{'origin':<12} {escape(opened.origin)}\n{'folder':<12} {escape(str(folder))}")
    for name, key in found.items():
        typer.echo(f"{name:<12} {key}")


NextOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--next", metavar="FILE", help="The committed next key, where it is kept elsewhere.", show_default=False
    ),
]
AfterOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--after",
        metavar="FILE",
        help="Where the key after it goes. Without it: `next` in the key folder.",
        show_default=False,
        callback=outside_ledgers,
    ),
]
LogOption: TypeAlias = Annotated[bool, typer.Option("--log/--issuer", help="Whose key: the log's, or the issuer's.")]
DeleteOption: TypeAlias = Annotated[
    bool, typer.Option("--delete-retired", help="Delete the retired key's file.", show_default=False)
]


def rotate_(
    context: typer.Context,
    log: LogOption = False,
    next_file: NextOption = None,
    after: AfterOption = None,
    delete_retired: DeleteOption = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Put the committed next key in force and commit a new one after it. What the retired key sealed or signed stays good."""
    options = shared(context, ledger, json=json)
    with Ledger.open(options.folder(), places=options.places) as opened:
        done = rotate(opened, _role(log), next_file=next_file, after_file=after, delete_retired=delete_retired)
    _print_rotation(done, next_file, options)


def revoke(
    context: typer.Context,
    from_index: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="INDEX",
            min=0,
            help="First entry at which the key is no longer believed.",
            show_default=False,
        ),
    ] = None,
    log: LogOption = False,
    next_file: NextOption = None,
    after: AfterOption = None,
    delete_retired: DeleteOption = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Rotate, and say that the key in force until now was stolen: what it sealed from an entry on is believed no longer."""
    options = shared(context, ledger, json=json)
    with Ledger.open(options.folder(), places=options.places) as opened:
        done = rotate(
            opened,
            _role(log),
            revoke=True,
            from_index=from_index,
            next_file=next_file,
            after_file=after,
            delete_retired=delete_retired,
        )
    _print_rotation(done, next_file, options)


def _role(log: bool) -> Role:
    return "log" if log else "issuer"


def _print_rotation(done: Rotation, next_file: Path | None, options: Shared) -> None:
    retired_file = None if done.retired_file is None else str(done.retired_file)
    if options.json:
        print_json(
            {
                "index": done.index, "receipt": done.receipt, "role": done.role, "key": done.key, "retired": done.retired,
                "next_file": str(done.next_file), "retired_file": retired_file,
            }
        )  # fmt: skip
        return
    typer.echo(f"entry    {done.index}  {done.receipt}")
    typer.echo(f"{done.role:<8} {done.key}")
    typer.echo(f"retired  {done.retired}  {'deleted' if retired_file is None else escape(retired_file)}")
    typer.echo(f"next     {escape(str(done.next_file))}")
    say("keep the next key apart from this machine: whoever holds it and the key in use holds the ledger")
    if next_file is not None:
        say(f"{escape(str(next_file))} is in use now: what is kept apart in its place is the next key above")


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
        str, typer.Option(metavar="issuer|origin|approver|notary|timestamp", help="What the key is believed for.")
    ] = "issuer",
    approver_role: Annotated[
        list[str], typer.Option("--as", metavar="ROLE", help="A role of the approver.", show_default=False)
    ] = [],
    cosigner: Annotated[
        str | None,
        typer.Option(metavar="ed25519:…|NAME+…", help="The key with which a notary cosigns heads.", show_default=False),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The certificate (PEM) that a timestamp authority's chain ends in.", show_default=False
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Where `notarize` asks the notary or authority.", show_default=False)
    ] = None,
    trust: TrustOption = None,
) -> None:
    """Pin a ledger or a key. Compare what is pinned with its owner first: nothing in a ledger can vouch for itself."""
    options = shared(context, trust=trust)
    path = _trust_path(options)
    if role == "timestamp" and certificate is not None:
        found = TimestampPin(name=target, certificate=certificate.read_text(encoding="ascii"), url=url)
        _write_trust(path, pin(path.read_bytes() if path.exists() else b"", timestamp=found))
        typer.echo(f"{role:<9} {escape(target)}")
        return
    if role == "notary" and (key is not None or cosigner is not None):
        cosigner_key = None if cosigner is None else _cosigner(target, cosigner)
        notary = NotaryPin(name=target, key=key, cosigner=cosigner_key, url=url)
        _write_trust(path, pin(path.read_bytes() if path.exists() else b"", notary=notary))
        typer.echo(f"{role:<9} {key or cosigner_key}  {escape(target)}")
        return
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
        case _:
            expected = "issuer, origin, approver or notary, or timestamp with --certificate"
            raise typer.BadParameter(f"got {role!r}, expected {expected}", param_hint="--role")
    _write_trust(path, after)
    typer.echo(f"{role:<9} {key}  {escape(target)}")


def _cosigner(name: str, text: str) -> str:
    """Return the key id of a cosigner that is named by its key id, or as note tools write it, under the notary's name."""
    if is_key_id(text):
        return text
    found = parse_vkey(text)
    if found.name != name or found.type != COSIGNATURE:
        raise LedgerError(f"trust: got cosigner {clip(text)}, expected one of {clip(name)}", code="usage.trust")
    return print_key_id(found.public)


def _write_trust(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, data, mode=0o600, durable=True)


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
            if getattr(each, "log_key", None) or getattr(each, "key", None)
        ]
        + [
            {"role": "cosigner", "name": each.name, "key": each.cosigner}
            for each in found.notaries.values()
            if each.cosigner is not None
        ]
        + [{"role": "timestamp", "name": name, "key": "certificate"} for name in found.timestamps]
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
