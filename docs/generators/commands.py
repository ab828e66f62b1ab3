"""The page of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from cli.main import app

__all__ = ["page"]

_INTRO = """# Command line

Generated from the commands by `docs/generate.py`; `ledger COMMAND --help` says the same.

- `-L`, `--json` and `--trust` work before and after the command; the one nearer to the command wins.
- REF and TARGET: a receipt id, a run id, their first 8 digits or more (`sha256:` may be left out), or `latest`, the newest run that no
  other run started. TARGET may also be a file, a folder, or `-` for standard input. A prefix of several ids is refused, and they are listed.
- Results are on standard output, all else on standard error. Under `--json` the result is one JSON value on one line, and the exit
  code is the same.
- `receipt-ledger` is the same command under a name that no other package has.
- `ledger --install-completion` installs completion for bash, zsh and fish.

| exit | means |
|---|---|
| 0 | done; of `verify`: everything asked for was established |
| 1 | the evidence does not hold |
| 2 | usage, or the command could not run |
| 3 | it holds as far as it goes, but something asked for could not be established |
| 4 | not trusted: the trust in use names another key, or too few notaries vouch for it |
| 5 | what was asked for is not there, or a file recognised as nothing known |
| 6 | authentic, and the receipts show that a rule was broken |
| 130, 141 | interrupted; the reader of the output left |

`run` and `resume` exit as the command they record does, and with 124 where a limit ended it, 125 where it was refused or could not be
recorded, 126 where it could not be executed, 127 where it was not found, and 128+N where signal N ended it.
"""


_SHARED = frozenset({"--ledger", "--json", "--trust"})


def page() -> str:
    """Return the page."""
    group = typer.main.get_command(app)
    parts = [_INTRO, "## Options before every command\n\n" + _table(group)]
    for name, command in _walk(group, "ledger"):
        parts.append(_section(name, command))
    return "\n".join(parts)


def _walk(group: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  typer's own copy of click has no public types
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from _walk(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _section(name: str, command: Any) -> str:  # noqa: ANN401
    words = [_metavar(param) for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([name, *words])
    text = inspect.cleandoc(command.help or "")
    return f"## `{usage}`\n\n{text}\n\n{_table(command, without=_SHARED)}".rstrip("\n") + "\n"


def _metavar(param: Any) -> str:  # noqa: ANN401
    text = str(param.metavar or param.name.upper())
    return text if param.required or text.startswith("[") else f"[{text}]"


def _table(command: Any, without: frozenset[str] = frozenset()) -> str:  # noqa: ANN401
    rows = []
    for param in command.params:
        if getattr(param, "hidden", False) or without & set(param.opts):
            continue
        if param.param_type_name == "argument":
            names = f"`{_metavar(param)}`"
        else:
            value = "" if param.is_flag else f" {param.metavar or 'TEXT'}"
            names = ", ".join(f"`{each}{value}`" for each in (*param.opts, *param.secondary_opts))
        default = getattr(param, "default", None)
        shown = (
            f" Default: `{default}`."
            if isinstance(default, str | int) and not isinstance(default, bool) and default != ""
            else ""
        )
        rows.append(
            f"| {names.replace('|', chr(92) + '|')} | {(param.help or '').replace('|', chr(92) + '|')}{shown} |"
        )
    if not rows:
        return ""
    return "| option | means |\n|---|---|\n" + "\n".join(rows) + "\n"
