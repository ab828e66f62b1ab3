"""`ledger notary`: make a notary, give out tokens, admit origins, serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from cli.options import JsonOption, TrustOption, shared
from cli.text import escape, print_json, say
from cli.trustfile import pin_ledger
from ledger.errors import LedgerError, clip
from ledger.keys import print_key_id
from ledger.note import ED25519, parse_vkey
from notary.folder import create, open_folder, print_pem
from notary.rules import Known, admit
from notary.tokens import Scope

__all__ = ["register"]

FolderArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", help="The notary's folder.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    notary = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run a notary for other people's ledgers.")
    notary.command("init")(init)
    notary.command("token")(token)
    notary.command("admit")(admit_)
    notary.command("serve")(serve)
    app.add_typer(notary, name="notary")


def init(
    context: typer.Context,
    folder: FolderArgument,
    name: Annotated[
        str | None,
        typer.Option(
            help="What it is called, for ever: on its seals and cosignatures. Default: a random one.",
            show_default=False,
        ),
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="Origin of its own ledger. Default: its name.", show_default=False)
    ] = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Make a notary: its keys, its own ledger, an empty memory."""
    options = shared(context, json=json, trust=trust)
    made = create(folder, name=name, origin=origin, places=options.places)
    with made.open_ledger() as own:
        pinned = pin_ledger(own.header, own.reader.at(0).entry.receipt, options.trust or options.places.trust_file)
    about, keys = made.about, options.places.key_folder(made.about.origin)
    if options.json:
        print_json(
            {
                "name": about.name, "folder": str(made.path), "origin": about.origin, "keys": str(keys),
                "seal_key": about.seal_key, "cosigner": about.cosigner_vkey, "trust": str(pinned),
            }
        )  # fmt: skip
        return
    typer.echo(f"notary    {escape(about.name)}\nfolder    {escape(str(made.path))}\nkeys      {escape(str(keys))}")
    typer.echo(f"pinned    {escape(str(pinned))}  (its own ledger)\nseal key  {about.seal_key}")
    typer.echo(f"cosigner  {escape(about.cosigner_vkey)}")
    typer.echo(print_pem(about.seal_key), nl=False)
    say("whoever is to believe its seals is given the seal key, by you")


def token(
    context: typer.Context,
    folder: FolderArgument,
    scope: Annotated[
        list[Scope],
        typer.Option(
            metavar="notarize|full|publish|admit", help="What it allows; all of them by default.", show_default=False
        ),
    ] = [],
    origin: Annotated[
        list[str], typer.Option(metavar="ORIGIN", help="The only origins that it is for.", show_default=False)
    ] = [],
    revoke: Annotated[
        str | None, typer.Option(metavar="ID", help="Forget a token instead, by its id.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List ids and scopes instead.")] = False,
    json: JsonOption = False,
) -> None:
    """Print a new token, once. Clients pass it in LEDGER_NOTARY_TOKEN."""
    options = shared(context, json=json)
    tokens = open_folder(folder, places=options.places).tokens()
    if revoke is not None:
        tokens.revoke(revoke)
        say(f"revoked {escape(revoke)}")
    elif list_:
        known = tokens.listed()
        if options.json:
            print_json([each.model_dump(mode="json", exclude={"digest"}) for each in known])
            return
        for each in known:
            origins = ", ".join(map(escape, each.origins)) or "every origin"
            typer.echo(f"{each.id}  {each.issued_at}  {','.join(each.scopes)}  {origins}")
    else:
        made = tokens.issue(scopes=scope, origins=origin)
        say(f"id {made[4:20]}; it is shown once and kept nowhere")
        if options.json:
            print_json({"token": made, "id": made[4:20]})
        else:
            typer.echo(made)


def admit_(
    context: typer.Context,
    folder: FolderArgument,
    origin: Annotated[str, typer.Argument(metavar="ORIGIN", help="The ledger or log, as the first line of its heads.")],
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Its log key: ed25519:…, or name+id+key as witnesses write it.")
    ],
) -> None:
    """Admit an origin with its log key, so that its heads are cosigned. Compare the key with its owner first."""
    options = shared(context)
    opened = open_folder(folder, places=options.places)
    known = _known(origin, key)
    memory = opened.open_memory()
    try:
        before = memory.known(origin)
        if before is None and not memory.remember([(None, known)]):
            before = memory.known(origin)
        if before is not None and (before.log_key, before.log_name) != (known.log_key, known.log_name):
            raise LedgerError(f"admit: {clip(origin)} is admitted with the key {before.log_key}", code="origin.log_key")
    finally:
        memory.close()
    typer.echo(f"origin   {escape(origin)}\nlog key  {known.log_key}")


def _known(origin: str, key: str) -> Known:
    if key.startswith("ed25519:"):
        return admit(origin, key)
    parsed = parse_vkey(key)
    if parsed.type != ED25519:
        raise LedgerError("admit: got a cosigner's key, expected a log's", code="origin.log_key")
    return admit(origin, print_key_id(parsed.public), log_name=parsed.name)


def serve(
    context: typer.Context,
    folder: FolderArgument,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8470,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain in PEM, for TLS.", show_default=False)
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key in PEM.", show_default=False)
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Allow plain HTTP off loopback: a proxy brings TLS.", show_default=False),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="A line for each request.", show_default=False)
    ] = False,
) -> None:
    """Serve until SIGTERM or SIGINT."""
    options = shared(context)
    opened = open_folder(folder, places=options.places)
    try:
        from notary.server import Listening, log_to_stderr  # noqa: PLC0415  an extra
        from notary.server import serve as run  # noqa: PLC0415
    except ImportError as error:
        raise LedgerError(
            f"serve: {error.name} is not installed",
            code="notary.extra",
            hint="pip install 'receipt-ledger[notary]'",
        ) from error
    log_to_stderr(verbose=verbose)
    listening = Listening(host, port, certificate, certificate_key, plain_http)
    run(opened, listening, started=lambda address: say(f"{escape(opened.about.name)} listens on {address}"))
