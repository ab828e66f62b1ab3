"""`ledger prove`: write evidence that travels; it needs no private key and reads only."""

from __future__ import annotations

import re
from dataclasses import replace as replaced
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from cli.beside import printable, with_cosignatures, with_counter_seals
from cli.kept import Kept
from cli.options import JsonOption, LedgerOption, OutputOption, program_name, shared
from cli.refs import resolve, resolve_run, whole_run
from cli.text import escape, print_json, say, short, write_bytes
from ledger.bundle import Bundle, print_bundle
from ledger.checkpoint import head_of
from ledger.consistency import print_consistency
from ledger.dsse import print_dsse
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError, clip
from ledger.storage.durable import replace
from ledger.storage.evidence import gather, gather_consistency, gather_proof, gather_range, note_at
from ledger.storage.ledger import Ledger
from ledger.tlogproof import print_tlog_proof
from verify.carried import references_of

__all__ = ["register"]

_Format: TypeAlias = Literal["bundle", "tlog-proof", "dsse"]
_SIZES = re.compile(r"([0-9]{1,16}):([0-9]{1,16})")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(prove)


def prove(
    context: typer.Context,
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REF]", help="A receipt or run, 8 or more of its digits, or latest.", show_default=False
        ),
    ] = None,
    output: OutputOption = None,
    format_: Annotated[
        _Format,
        typer.Option(
            "--format",
            help="bundle: all that a verifier needs. tlog-proof: the place of one entry (C2SP). dsse: a sealed receipt alone.",
        ),
    ] = "bundle",
    artifacts: Annotated[bool, typer.Option("--artifacts", help="Put the artifacts in the bundle as well.")] = False,
    range_: Annotated[
        str | None,
        typer.Option("--range", metavar="A:B", help="The entries from A up to, not including, B.", show_default=False),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="The whole run that RUN is or is in.", show_default=False)
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(
            "--heads",
            metavar="OLD:NEW",
            help="That head NEW extends head OLD: sizes or files of notes; without NEW, the newest.",
            show_default=False,
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Write a proof that verifies without this ledger.

    `ledger verify FILE` judges it.
    """
    options = shared(context, ledger, json=json)
    named = [
        name for name, value in (("REF", reference), ("--range", range_), ("--run", run), ("--heads", heads)) if value
    ]
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} do not go together")
    if format_ != "bundle" and (range_ or heads or artifacts):
        raise typer.BadParameter(f"--format {format_} goes with one receipt and no artifacts")
    if heads and artifacts:
        raise typer.BadParameter("--heads goes without --artifacts")
    opened = Ledger.open(options.folder(), places=options.places)
    if heads is not None:
        old, new = _notes(opened, heads)
        data, subject, kind = print_consistency(gather_consistency(opened.reader, old, new)), heads, "consistency"
    else:
        data, subject = _proof(opened, reference or "latest", format_, range_, run, artifacts=artifacts)
        kind = format_
    if output is None:
        write_bytes(data)
        return
    replace(output, data, durable=False)
    if options.json:
        print_json({"file": str(output), "format": kind, "subject": subject, "size_bytes": len(data)})
    else:
        say(f"wrote {escape(str(output))}: {kind} of {escape(subject)}, {len(data):,} bytes")


def _proof(
    opened: Ledger, reference: str, format_: _Format, range_: str | None, run: str | None, *, artifacts: bool
) -> tuple[bytes, str]:
    """Return the bytes of a proof, and what it is about."""
    store = opened.artifacts if artifacts else None
    if range_ is not None:
        match = _SIZES.fullmatch(range_)
        if match is None:
            raise typer.BadParameter(f"got {clip(range_)}, expected A:B", param_hint="--range")
        return _bundled(opened, gather_range(opened.reader, int(match[1]), int(match[2]), artifacts=store), artifacts)
    id_ = resolve(opened, reference) if run is None else whole_run(opened.reader, resolve_run(opened, run))
    if format_ == "tlog-proof":
        proof = gather_proof(opened.reader, id_)
        return print_tlog_proof(replaced(proof, checkpoint=with_cosignatures(proof.checkpoint, opened.folder))), id_
    if format_ == "dsse":
        envelope = opened.get(id_).envelope
        if envelope.seal is None:
            raise LedgerError(
                "dsse: this receipt has no seal of its own, so nothing in it could be verified",
                code="dsse.unsealed",
                hint=f"the receipt that closes its run is sealed: {program_name()} prove --run {id_[7:19]} --format dsse",
            )
        return print_dsse(envelope), id_
    return _bundled(opened, gather(opened.reader, whole_run(opened.reader, id_), artifacts=store), artifacts)


def _bundled(opened: Ledger, bundle: Bundle, artifacts: bool) -> tuple[bytes, str]:
    """Return the bytes of a bundle and its subject; where artifacts were asked for, say which could not be put in and why."""
    if artifacts:
        carried = {each.digest for each in bundle.artifacts}
        kept = Kept(opened.folder)
        payloads = ((parse_entry(each.entry).index, parse_envelope(each.envelope).payload) for each in bundle.items)
        for digest in dict.fromkeys(each.digest for _, each in references_of(payloads) if each.digest not in carried):
            say(f"artifact {short(digest)} is not in the bundle: {kept.condition(digest)}")
    return print_bundle(printable(with_counter_seals(bundle, opened.reader, opened.folder))), bundle.subject


def _notes(opened: Ledger, heads: str) -> tuple[bytes, bytes]:
    """Return the two notes that OLD:NEW names; a name may hold colons, so each one is tried."""
    parts = heads.split(":")
    for cut in range(1, len(parts)):
        old, new = ":".join(parts[:cut]), ":".join(parts[cut:])
        if all(_is_head(each) for each in (old, new or "0")):
            return _note(opened, old), _note(opened, new) if new else opened.checkpoint()
    raise typer.BadParameter(f"got {clip(heads)}, expected OLD:NEW, sizes or files of notes", param_hint="--heads")


def _is_head(text: str) -> bool:
    return (text.isascii() and text.isdigit()) or Path(text).is_file()


def _note(opened: Ledger, text: str) -> bytes:
    if text.isdigit():
        return note_at(opened.folder, int(text))
    note = Path(text).read_bytes()
    head_of(note)
    return note
