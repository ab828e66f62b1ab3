"""Options that every command shares, and what they come to when given before and after the command.

`ledger -L DIR --json verify` and `ledger verify -L DIR --json` mean the same; the one nearer to the command wins.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ledger.errors import NotFoundError, clip
from ledger.storage.places import Places

__all__ = [
    "JsonOption",
    "LedgerOption",
    "LedgersOption",
    "OutputOption",
    "Shared",
    "TrustOption",
    "file_or_output",
    "outer_of",
    "outside_ledgers",
    "program_name",
    "shared",
]


def outside_ledgers(value: Path | None) -> Path | None:
    """Return where a command is to write, for options: never into the folder of a ledger, whose files are its own.

    Raises:
        BadParameter: it lies in one.
    """
    if value is None:
        return None
    try:
        path = value.resolve()
    except (OSError, RuntimeError):
        return value  # a loop of links, which whoever writes there will say
    for folder in (path, *path.parents):
        if _is_ledger(folder):
            raise typer.BadParameter(
                f"{clip(str(value))} lies in the ledger {clip(str(folder))}, whose files are its own; write it elsewhere"
            )
    return value


def file_or_output(value: Path | None) -> Path | None:
    """Return the same for options without which a command writes to standard output, as `-` says too.

    Raises:
        BadParameter: it lies in the folder of a ledger, or is a folder.
    """
    if value is None or str(value) == "-":
        return None
    if value.is_dir():
        raise typer.BadParameter(f"{clip(str(value))} is a folder, expected a file")
    return outside_ledgers(value)


def _is_ledger(folder: Path) -> bool:
    from ledger.storage.journal import segments  # noqa: PLC0415  it would cost every start

    try:
        return bool(segments(folder))
    except (NotFoundError, OSError):
        return False


LedgerOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "-L",
        "--ledger",
        metavar="DIR",
        help="The ledger's folder. Without it: LEDGER_DIR, else the nearest .ledger upwards.",
        show_default=False,
    ),
]
LedgersOption: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        "-L",
        "--ledger",
        metavar="DIR",
        help="The ledger's folder; `sql` asks several. Without it: LEDGER_DIR, else the nearest .ledger upwards.",
        show_default=False,
    ),
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object or array.", show_default=False)
]
TrustOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--trust", metavar="FILE", help="Whom to believe. Without it: LEDGER_TRUST, else yours.", show_default=False
    ),
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write here, not on standard output.",
        show_default=False,
        callback=file_or_output,
    ),
]


@dataclass(frozen=True, slots=True)
class Shared:
    """What the shared options say."""

    ledger: Path | None = None
    json: bool = False
    trust: Path | None = None
    several: tuple[Path, ...] = ()
    """All ledgers that were named before the command, where these are more than one."""
    equivocation: Path | None = None
    """Where a proof of equivocation goes, None for the state folder."""
    user: Places | None = None
    """The user's folders where they are not the usual ones."""

    @property
    def places(self) -> Places:
        """The user's folders."""
        return self.user or Places.default()

    def folder(self) -> Path:
        """Return the folder of the ledger that is meant.

        Raises:
            NotFoundError: none was named and none is near.
        """
        if self.ledger is not None:
            return self.ledger
        if os.environ.get("LEDGER_DIR"):
            return Path(os.environ["LEDGER_DIR"])
        try:
            here = Path.cwd()
        except OSError as error:
            raise NotFoundError(
                "ledger: the working folder was removed", code="ledger.absent", hint="name the ledger with -L DIR"
            ) from error
        for folder in (here, *here.parents):
            if (folder / ".ledger" / "journal").is_dir():
                return folder / ".ledger"
        raise NotFoundError(
            "ledger: no .ledger here or in a folder above",
            code="ledger.absent",
            hint=f"make one with: {program_name()} init, or name one with -L DIR",
        )


def shared(
    context: typer.Context, ledger: Path | None = None, *, json: bool = False, trust: Path | None = None
) -> Shared:
    """Return the shared options of a command, with those given before it."""
    outer = outer_of(context)
    if ledger is None and outer.several:
        raise typer.BadParameter(
            f"got {len(outer.several)} ledgers, expected one: only `{program_name()} sql` asks several", param_hint="-L"
        )
    return Shared(ledger or outer.ledger, json or outer.json, trust or outer.trust, user=outer.user)


def outer_of(context: typer.Context) -> Shared:
    """Return the shared options that were given before the command; groups such as `ledger trust` pass them on."""
    return context.obj if isinstance(context.obj, Shared) else Shared()


def program_name() -> str:
    """Return the command as it was called: `ledger` or `receipt-ledger`."""
    name = Path(sys.argv[0]).name
    return name if name in ("ledger", "receipt-ledger") else "ledger"
