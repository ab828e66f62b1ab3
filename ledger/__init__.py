"""Receipt ledger: evidence of what agents and automation did, that nobody has to be trusted for.

    from ledger import Ledger

    ledger = Ledger.open(".ledger")
    with ledger.run("nightly", actor="bot") as run, run.call("deploy", access="write") as call:
        call.result = deploy()

Names load when they are first used: `import verify` must not open a database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.errors import LedgerError
    from ledger.granting import give, narrow, revoke
    from ledger.members import Actor, CurrencyAmount, Limit, PeriodLimit, Tool
    from ledger.opening_book import Refused
    from ledger.oversight import Deviated
    from ledger.refusals import Blocked, Happened, Waiting
    from ledger.rules.template import Template
    from ledger.run import Call, NotExecuted, Run
    from ledger.storage.ledger import Ledger
    from ledger.storage.places import Places

__all__ = [
    "Actor",
    "Blocked",
    "Call",
    "CurrencyAmount",
    "Deviated",
    "Happened",
    "Ledger",
    "LedgerError",
    "Limit",
    "NotExecuted",
    "PeriodLimit",
    "Places",
    "Refused",
    "Run",
    "Template",
    "Tool",
    "Waiting",
    "give",
    "narrow",
    "revoke",
]

_HOMES = {
    "Actor": "ledger.members",
    "Blocked": "ledger.refusals",
    "Call": "ledger.run",
    "CurrencyAmount": "ledger.members",
    "Deviated": "ledger.oversight",
    "Happened": "ledger.refusals",
    "Ledger": "ledger.storage.ledger",
    "LedgerError": "ledger.errors",
    "Limit": "ledger.members",
    "NotExecuted": "ledger.run",
    "PeriodLimit": "ledger.members",
    "Places": "ledger.storage.places",
    "Refused": "ledger.opening_book",
    "Run": "ledger.run",
    "Template": "ledger.rules.template",
    "Tool": "ledger.members",
    "Waiting": "ledger.refusals",
    "give": "ledger.granting",
    "narrow": "ledger.granting",
    "revoke": "ledger.granting",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ledger' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
