"""What receipts say besides their name, status and time, as labels and values for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from cli.amounts import amount
from cli.text import short
from ledger.members import Charge
from ledger.receipt import Decision, Intent, Opening, Outcome, Run

__all__ = ["act_facts", "opening_facts", "outcome_facts"]

Facts = tuple[tuple[str, str], ...]

_COVERAGE: Final = {
    "reported-calls": "the steps and calls that the program itself reported, and nothing outside of them",
    "one-process": "one process: arguments, output and how it ended, not its files, network or environment",
}
"""Docs/reference/adapters.md in one sentence each."""


def opening_facts(opening: Opening, closing: Run | None, closing_id: str | None) -> Facts:
    """Return who acted, by what, under what, and how the run ended."""
    actor, adapter = opening.actor, opening.adapter
    runbook = opening.runbook
    return _there(
        ("Agent", actor.agent),
        ("User", actor.user),
        ("Model", actor.model),
        ("Recorded by", f"{adapter.name} {adapter.version}"),
        ("Which sees", _COVERAGE.get(adapter.coverage, adapter.coverage)),
        ("Issuer", opening.issuer.name),
        *((f"Correlation {name}", value) for name, value in sorted((opening.correlation or {}).items())),
        ("Program", _short(opening.program)),
        ("Document", _short(opening.document)),
        ("Policy", _short(opening.policy)),
        ("Grant", _short(opening.grant)),
        ("Runbook", "" if runbook is None else f"envelope {short(runbook.envelope)}, profile {runbook.profile}, up to risk {runbook.ceiling}"),
        ("Continues", _short(opening.continues)),
        ("Opened", opening.issued_at),
        ("Closed", "not yet" if closing is None else closing.issued_at),
        ("Reason", str(closing.reason) if closing is not None and closing.reason else ""),
        ("Error", closing.error if closing is not None else None),
        ("Close", closing_id),
    )  # fmt: skip


def act_facts(receipt: Intent | Decision) -> Facts:
    """Return what an act is, and by what it was allowed or refused."""
    act, effect = receipt.act, receipt.effect
    return _there(
        ("Tool", f"{act.tool.name} {'' if act.tool.version == 'unknown' else act.tool.version}".strip()),
        ("Access", act.access),
        ("On", "" if act.resource == "unknown" else act.resource),
        ("Environment", "" if act.environment == "unknown" else act.environment),
        ("Amount", "" if act.amount is None else amount(act.amount.meter, act.amount.value)),
        ("Arguments", "" if not act.arguments else orjson.dumps(act.arguments).decode()),
        ("Effect", "" if effect is None else f"{effect.key}, attempt {effect.attempt}"),
        ("Rule", receipt.rule),
        ("Policy", _short(receipt.policy)),
        ("Grant", _short(receipt.grant)),
        *(_of_intent(receipt) if isinstance(receipt, Intent) else _of_decision(receipt)),
    )


def outcome_facts(outcome: Outcome) -> Facts:
    """Return how a call ended and what it cost."""
    return _there(
        ("Reason", str(outcome.reason) if outcome.reason else ""),
        ("Error", outcome.error),
        ("Exit", "" if outcome.exit_code is None else str(outcome.exit_code)),
        ("Signal", "" if outcome.signal is None else str(outcome.signal)),
        ("Cost", _charges(outcome.charges)),
        ("Used", _charges(outcome.usage)),
    )


def _of_intent(intent: Intent) -> Facts:
    would = intent.would_have
    return _there(
        ("Step", intent.step),
        ("Approved by", ", ".join(short(each) for each in intent.approvals)),
        ("Set aside", ", ".join(amount(each.meter, each.reserved) for each in intent.reserved)),
        ("Would have been", "" if would is None else f"{would.status}, {would.reason}"),
    )


def _of_decision(decision: Decision) -> Facts:
    meter = decision.meter
    numbers = (
        ("limit", decision.limit),
        ("spent", decision.spent),
        ("set aside", decision.reserved),
        ("asked for", decision.asked),
    )
    said = ", ".join(f"{word} {amount(meter, value)}" for word, value in numbers if value is not None) if meter else ""
    return _there(
        ("Reason", str(decision.reason)),
        ("Budget", said),
        ("Waits for", f"{decision.needed or 1} of {', '.join(decision.roles)}" if decision.roles else ""),
        ("Until", decision.expires_at),
    )


def _charges(charges: Iterable[Charge]) -> str:
    said = []
    for each in charges:
        value = next((one for one in (each.settled, each.quoted, each.reserved) if one is not None), None)
        payer = f" paid by {each.payer}" if each.payer else ""
        said.append(f"{amount(each.meter, value)} ({each.basis}){payer}")
    return ", ".join(said)


def _short(digest: str | None) -> str:
    return short(digest) if digest else ""


def _there(*facts: tuple[str, str | None]) -> Facts:
    return tuple((label, value) for label, value in facts if value)
