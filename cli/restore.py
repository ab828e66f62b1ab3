"""`ledger restore`: go on after a backup was put back, under a new origin that continues the old one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption, Shared, TrustOption, program_name, shared
from cli.text import escape, print_json, say
from cli.trustfile import pin_ledger, read_trust
from cli.whole import JournalSnapshot
from ledger.checkpoint import Head, head_of
from ledger.digest import print_digest
from ledger.errors import DamagedError, KeyFileError, RegisterError, StorageError, clip
from ledger.members import Continues
from ledger.storage.frozen import freeze, read_frozen
from ledger.storage.ledger import Ledger
from ledger.storage.places import Places
from ledger.storage.reader import Reader
from ledger.storage.register import Register
from verify.ledger import verify_ledger

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(restore)


def restore(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The restored ledger's folder; it is frozen.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A folder that is absent or empty.")],
    origin: Annotated[
        str | None, typer.Option(help="The new ledger's name for ever. Without it: a random one.", show_default=False)
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(help="The name you sign under. Without it: owner@ORIGIN.", show_default=False)
    ] = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Freeze a restored ledger, and make a new one that continues it.

    An origin names one history. A backup that is shorter than what was signed since cannot go on under its origin: whoever saw
    the rest would see two histories. The new ledger has keys of its own; what the backup lacks is not continued.
    """
    options = shared(context, json=json, trust=trust)
    head = _check_old(old, options)
    _check_new(new)
    freeze(old, head)
    continues = Continues(origin=head.origin, size=head.size, root=print_digest(head.root))
    with Ledger.create(new, origin=origin, issuer=issuer, continues=continues, places=options.places) as made:
        header_id = made.reader.at(0).entry.receipt
        pinned = pin_ledger(made.header, header_id, options.trust or options.places.trust_file)
        freeze(old, head, continued_by=made.origin)
        keys = options.places.key_folder(made.origin)
    said = {
        "origin": made.origin, "folder": str(new), "header": header_id, "keys": str(keys), "trust": str(pinned),
        "continues": continues.model_dump(mode="json"), "frozen": str(old),
    }  # fmt: skip
    if options.json:
        print_json(said)
        return
    typer.echo(f"ledger     {escape(str(new))}\norigin     {escape(made.origin)}")
    typer.echo(f"continues  {escape(head.origin)} at size {head.size}\nfrozen     {escape(str(old))}")
    typer.echo(f"keys       {escape(str(keys))}  (yours alone; move its folder `next` to another place)")
    typer.echo(f"pinned     {escape(str(pinned))}")
    say("whoever trusts the old ledger has to be told of the new one, and can check that it continues it:")
    say(f"  {program_name()} verify {_quoted(new)} --continues {_quoted(old)}")


def _check_old(old: Path, options: Shared) -> Head:
    """Return the head that the restored ledger ends with.

    Raises:
        DamagedError: it does not hold.
        StorageError: it is continued already, or nothing keeps it from going on as it is.
    """
    reader = Reader(old)
    head = reader.head()
    frozen = read_frozen(old)
    if frozen is not None and frozen.continued_by is not None:
        raise StorageError(
            f"restore: {clip(frozen.continued_by)} continues {str(old)!r} already",
            code="ledger.frozen",
            hint="append to that one",
        )
    # Memory is not asked: that this copy is shorter than what was seen is why it is restored.
    verdict = verify_ledger(JournalSnapshot(old), trust=read_trust(options), subject=str(old))
    if verdict.exit not in {0, 3, 6} or verdict.head != head:
        raise DamagedError(
            f"restore: {str(old)!r} does not hold", hint=f"look at: {program_name()} verify {_quoted(old)}"
        )
    if frozen is None and _may_go_on(old, head, options.places):
        raise StorageError(
            f"restore: {str(old)!r} holds all that this machine wrote to it, and its keys are here",
            code="restore.not_needed",
            hint="append to it",
        )
    return head


def _may_go_on(old: Path, head: Head, places: Places) -> bool:
    """Return whether the register and the keys of this user let the old ledger go on."""
    note = Register(places.register_file(head.origin)).read()
    # Without a register nobody here knows what else was signed.
    if note is None or head_of(note).size > head.size:
        return False
    try:
        with Ledger.open(old, places=places) as opened:
            opened.look(lambda _: None)
    except (RegisterError, KeyFileError):
        return False
    return True


def _check_new(new: Path) -> None:
    if new.exists() and (not new.is_dir() or any(new.iterdir())):
        raise StorageError(
            f"restore: {str(new)!r} is not an empty folder", code="storage.in_use", hint="name a new folder"
        )


def _quoted(path: Path) -> str:
    return escape(shlex.quote(str(path)))
