"""The command `ledger`: its groups of commands, and how errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption, LedgerOption, Shared, TrustOption
from cli.text import escape, say
from ledger.errors import (
    DamagedError,
    LedgerError,
    NotFoundError,
    RegisterError,
)
from ledger.version import VERSION

__all__ = ["app", "main"]

app = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="Evidence of what agents and automation did, that nobody has to be trusted for.",
    epilog="Exit codes: 0 established, 1 does not hold, 2 usage, 3 holds as far as it goes, 4 not trusted, 5 absent, 6 a rule was broken.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"receipt-ledger {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
    _version_wanted: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = Shared(ledger, json, trust)


# The order here is the order of `ledger --help`.
for _module in ("init", "run", "log", "show", "verify", "append", "keys", "demo"):
    import_module(f"cli.{_module}").register(app)


def exit_code_of(error: LedgerError) -> int:
    """Return the exit code of an error that ends a command. Source: docs/reference/exit-codes.md."""
    if isinstance(error, DamagedError | RegisterError):
        return 1
    if isinstance(error, NotFoundError):
        return 5
    return 2


def main() -> None:
    """Run the command line and exit."""
    try:
        app()
    except LedgerError as error:
        say(f"{escape(str(error))}", style="bold red")
        if error.hint:
            say(f"  {escape(error.hint)}")
        sys.exit(exit_code_of(error))
    except BrokenPipeError:
        # The reader of our output left; what it did not read is not our error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        name = f" {str(Path(error.filename))!r}" if isinstance(error.filename, str) else ""
        say(f"{error.strerror or error}:{escape(name)}", style="bold red")
        sys.exit(2)
