"""The command `ledger`: its groups of commands, and how errors become messages and exit codes."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer
import typer.core
import typer.main

from cli.options import JsonOption, LedgersOption, Shared, TrustOption
from cli.text import escape, say, say_error
from ledger.errors import DamagedError, NotFoundError, RegisterError, UnrememberedWarning
from ledger.version import VERSION

__all__ = ["app", "main"]

_HOMES: Final = {
    "init": "init",
    "head": "init",
    "run": "run",
    "resume": "run",
    "close": "run",
    "budget": "budget",
    "log": "log",
    "show": "show",
    "tree": "tree",
    "artifact": "artifact",
    "verify": "verify",
    "prove": "prove",
    "append": "append",
    "import": "importing",
    "pending": "approve",
    "approve": "approve",
    "deny": "approve",
    "resolve": "resolve",
    "keys": "keys",
    "trust": "keys",
    "evaluate": "evaluate",
    "runbook": "runbook",
    "grant": "grant",
    "hook": "hook",
    "erase": "erase",
    "hold": "hold",
    "notarize": "notarize",
    "notary": "notary",
    "report": "report",
    "export": "export",
    "sql": "sql",
    "index": "index",
    "restore": "restore",
    "publish": "publish",
    "vectors": "vectors",
    "demo": "demo",
}
"""Command -> the module of `cli` that registers it, in the order of `ledger --help`."""
_OBJECTS: Final = 200_000
"""New objects after which garbage is looked for."""


class _LateGroup(typer.core.TyperGroup):
    """Imports the module of a command when the command is called: none starts slower because of another."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002  typer's context, of its own vendored kind
        return list(_HOMES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        if cmd_name not in _HOMES:
            return None
        home = typer.Typer(rich_markup_mode=None)
        home.callback()(lambda: None)
        import_module(f"cli.{_HOMES[cmd_name]}").register(home)
        return typer.main.get_group(home).commands[cmd_name]


app = typer.Typer(
    name="ledger",
    cls=_LateGroup,
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
    ledger: LedgersOption = [],
    json: JsonOption = False,
    trust: TrustOption = None,
    _version_wanted: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = Shared(ledger[-1] if ledger else None, json, trust, tuple(ledger) if len(ledger) > 1 else ())


def exit_code_of(error: Exception) -> int:
    """Return the exit code of an error that ends a command. Source: docs/reference/verdicts.md."""
    if isinstance(error, DamagedError | RegisterError):
        return 1
    if isinstance(error, NotFoundError):
        return 5
    return 2


def main() -> None:
    """Run the command line and exit. Exit 1 is a verdict, so nothing else ends in it."""
    _open_standard_streams()
    warnings.showwarning = _say_warning
    # What is loaded at the start stays: looking for garbage in it, then and at the end, takes a tenth of a short command.
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    try:
        app()
    except SystemExit as ended:
        # This is how typer reports that the reader of our output left, and an interrupt: both with 1.
        if isinstance(ended.__context__, BrokenPipeError):
            _leave_as_reader_left()
        if isinstance(ended.__context__, typer.Abort):
            sys.exit(130)
        raise
    except BrokenPipeError:
        _leave_as_reader_left()
    except Exception as error:  # noqa: BLE001  a fault of ours must not look like one of the evidence
        try:
            say_error(error)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # nobody reads what we have to say
        sys.exit(exit_code_of(error))


_show_warning = warnings.showwarning


def _say_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:  # noqa: ANN401
    """Say a warning of ours as all else is said: without the line of our source that it came from."""
    if issubclass(category, UnrememberedWarning):
        say(escape(str(message)), style="yellow")
    else:
        _show_warning(message, category, *where, **more)


def _leave_as_reader_left() -> NoReturn:
    """Exit as after SIGPIPE: the reader of our output left, and what it did not read is not our error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(141)


def _open_standard_streams() -> None:
    """Open on the null device what we were started without.

    Else the next file of the ledger that is opened would be standard output, and a command would write into it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)  # takes the lowest that is free
            os.set_inheritable(descriptor, True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
