"""`ledger export`: what receipts say, in formats that other tools read. Each format is a module that registers its command."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

__all__ = ["register"]

_FORMATS: Final = {"otlp": "cli.otlp", "parquet": "cli.parquet"}
"""Format -> the module of its command; what a format needs is loaded when it is written."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    export = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Write what receipts say for other tools.")
    for module in _FORMATS.values():
        import_module(module).register(export)
    app.add_typer(export, name="export")
