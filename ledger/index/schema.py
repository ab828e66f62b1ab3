"""All tables and views of the index, in the order of the documentation."""

from __future__ import annotations

import re
from typing import Final

from ledger.digest import digest
from ledger.index import acts, record, spent, standing, state, viewbudgets, viewruns, viewstanding
from ledger.index.columns import Stored, Table, View

__all__ = ["DERIVED", "PUBLIC", "SCHEMA_DIGEST", "SCHEMA_VERSION", "STATE", "STORED", "VIEWS", "views_for"]

SCHEMA_VERSION: Final = 1
"""What a person is told; an index is told apart by `SCHEMA_DIGEST`."""

STORED: Final[tuple[Stored, ...]] = (*record.TABLES, *acts.TABLES, *standing.TABLES)
"""Filled from receipts."""

STATE: Final[tuple[Table, ...]] = state.TABLES
"""Written by whoever verified."""

DERIVED: Final[tuple[Table, ...]] = spent.DERIVED
"""Worked out from what is stored when a file is finished."""

_MAKING: Final = (
    *(each.create() for each in (*STORED, *STATE, *DERIVED)),
    *(each.insert() for each in STORED),
    spent.ONCE,
    *spent.filled("index", once=True),
    *spent.filled("index", once=False),
)
SCHEMA_DIGEST: Final = digest("\n".join(_MAKING).encode("utf-8"))
"""Changes with every change of a table and of what fills it: an index of another one is made anew."""

_FINDINGS: Final = View(
    "findings",
    "The checks that did not hold or could not be made; what they speak of is not indexed where they failed.",
    next(each for each in STATE if each.name == "checks").columns,
    "SELECT * FROM stored.checks WHERE status <> 'ok' AND asked",
)

VIEWS: Final[tuple[View, ...]] = (_FINDINGS, *viewruns.VIEWS, *viewbudgets.VIEWS, *viewstanding.VIEWS)
"""In an order in which each may use those before it."""


def _plain(table: Table) -> View:
    """Return a stored table as it is shown."""
    return View(table.name, table.says, table.columns, f"SELECT * FROM stored.{table.name}")


_ORDER: Final = (
    "index_state", "findings", "checks", "receipts", "entries", "heads", "runs", "run_tree", "calls", "steps", "edges", "decisions",
    "deviations", "limits", "policies", "charges", "spend", "budgets", "approvals", "effects", "evaluations", "grants", "artifacts",
    "removals", "holds", "keys", "seals", "counter_seals", "imports", "anomalies",
)  # fmt: skip
_ALL: Final = {each.name: each for each in (*(_plain(each) for each in (*STATE, *STORED) if each.public), *VIEWS)}
PUBLIC: Final[tuple[View, ...]] = tuple(_ALL[name] for name in _ORDER if name in _ALL)
"""What a query sees."""

_WORD: Final = re.compile(r"[a-z_]+")


def views_for(query: str) -> tuple[View, ...]:
    """Return the views that a query of ours needs, with those that they need themselves, and those that say what is verified.

    A word that is the name of a view counts as that view, so there may be some too many.
    """
    views = {view.name: view for view in (*VIEWS, *PUBLIC)}
    needed, texts = {table.name for table in STATE}, [query]
    while texts:
        found = set(_WORD.findall(texts.pop())) & views.keys() - needed
        needed |= found
        texts += [views[name].select for name in found]
    return tuple(view for name, view in views.items() if name in needed)
