"""What acts say of their cost, held against limits: what is not known, what cannot be counted, and more use than is settled.

Budgets of runs and limits of grants are judged alike.

Source: docs/spec/rules/budgets.md, clauses 28 to 30.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ledger.canonical import MAX_INTEGER
from ledger.members import Charge
from ledger.receipt import Outcome
from ledger.rules.amounts import COUNTED_METERS, DURATION, UNKNOWN, Draw
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.budget import Budget, Hold, settled_of, uncounted
from ledger.words import Basis, OutcomeStatus

__all__ = ["judge_reserved", "judge_said", "usage_of"]


def usage_of(outcome: Outcome) -> tuple[Charge, ...]:
    """Return what an outcome says was used, of meters that are charged; of one restated from elsewhere nothing is judged."""
    if outcome.source is not None:
        return ()
    return tuple(each for each in outcome.usage if each.meter != DURATION and each.meter not in COUNTED_METERS)


def judge_reserved(index: int, budgets: Sequence[Budget], reserved: Iterable[Charge]) -> list[Finding]:
    """Return what speaks against the charges of an intent: a price that somebody guessed."""
    guessed = (charge for charge in reserved if UNKNOWN not in (charge.reserved, charge.quoted))
    return _doubts(index, budgets, (charge.meter for charge in guessed if _is_open(charge)))


def judge_said(
    index: int,
    budgets: Sequence[Budget],
    held: Hold,
    status: OutcomeStatus,
    charges: Sequence[Charge],
    usage: Sequence[Charge],
    *,
    contradicted: str,
) -> list[Finding]:
    """Return what speaks against what an act that ended says of its cost.

    Args:
        index: Of the receipt that says it.
        budgets: Those that the act draws on.
        held: What it had set aside.
        status: How it settles.
        charges: What it says that it cost.
        usage: What it says that it used, as `usage_of` gives it.
        contradicted: The code of more use than is settled.
    """
    settled = settled_of(charges)
    findings: list[Finding] = []
    if usage:
        findings += [
            Breach(contradicted, index, f"{meter}: settled {counted}, used {used}")
            for meter, counted, used in _beyond(held, status, charges, usage)
            if any(budget.is_limited_on(meter) for budget in budgets)
        ]
    findings += _foreign(index, budgets, {**settled_of(usage), **settled} if usage else settled)
    findings += _doubts(index, budgets, [each.meter for each in (*charges, *usage) if _is_open(each)])
    return findings


def _is_open(charge: Charge) -> bool:
    """Return whether a charge that somebody must pay here says that its amount is not known, or not how it is known."""
    return charge.payer is None and (charge.basis is Basis.UNKNOWN or charge.settled == UNKNOWN)


def _doubts(index: int, budgets: Sequence[Budget], meters: Iterable[str]) -> list[Finding]:
    """Return a doubt for each of these meters that a budget limits."""
    return [
        Doubt("budget.basis_unknown", index, f"{meter}: what it cost is not known")
        for meter in dict.fromkeys(meters)
        if any(budget.is_limited_on(meter) for budget in budgets)
    ]


def _foreign(index: int, budgets: Sequence[Budget], amounts: Draw) -> list[Finding]:
    """Return a breach for each amount that cannot be counted against a money limit."""
    found = dict.fromkeys(meter for budget in budgets for meter in uncounted(budget, amounts))
    return [
        Breach("budget.unknown_price", index, f"{meter}: cost {amounts[meter]}, in no currency of the limit")
        for meter in found
    ]


def _beyond(
    held: Hold, status: OutcomeStatus, charges: Sequence[Charge], usage: Sequence[Charge]
) -> list[tuple[str, int, int]]:
    """Return each meter of which more was used than counts for the act: the meter, what counts, and what was used."""
    used: dict[str, int] = {}
    for each in usage:
        if each.payer is None and isinstance(each.settled, int):
            used[each.meter] = min(used.get(each.meter, 0) + each.settled, MAX_INTEGER)
    settled, found = settled_of(charges), []
    for meter, amount in used.items():
        said = settled.get(meter)
        kept = held.get(meter, 0)
        counted = said if isinstance(said, int) else 0 if said is None and status is OutcomeStatus.FAILED else kept
        if status is OutcomeStatus.AMBIGUOUS:
            counted = max(counted, kept)
        # What others pay counts against nothing, and is said.
        counted += sum(
            each.settled
            for each in charges
            if each.payer is not None and each.meter == meter and isinstance(each.settled, int)
        )
        if amount > counted:
            found.append((meter, counted, amount))
    return found
