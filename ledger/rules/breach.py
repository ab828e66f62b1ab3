"""What a replay of the rules finds: the receipts that show a broken rule, and those from which it cannot be told.

A replay folds receipts in chain order. It never raises for what a receipt says; it names the entry and goes on.

Source: docs/spec/rules/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["BREACH_CODES", "DOUBT_CODES", "Breach", "Doubt", "Finding"]


@dataclass(frozen=True, slots=True)
class Breach:
    """A receipt that a rule forbids: its code, the index of its entry, and what was found."""

    code: str
    index: int
    message: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """A receipt from which it cannot be told whether a rule was kept."""

    code: str
    index: int
    message: str


Finding: TypeAlias = Breach | Doubt

BREACH_CODES: Final = {
    "budget.overspent": "An act was admitted that passes a limit, or acts cost more than the limit and its grace.",
    "budget.unknown_price": "An act was admitted under a money limit without a price.",
    "budget.act_after_overrun": "An act was admitted although an earlier one had cost more than was set aside for it.",
    "budget.over_time": "A run with a time limit ended after the limit and its grace.",
    "budget.attempts": "An edge was taken more often than its limit allows.",
    "budget.structure": "More receipts, child runs, levels or acts at once than a limit allows.",
    "budget.widened": "A child run's limit is wider than that of a run above it.",
    "budget.contradicted": "A refusal or a close gives amounts that are not those of the receipts before it.",
    "policy.breach": "An act was admitted that the policy in force forbids.",
    "policy.other": "An act was decided under another policy than the one its run was opened under.",
    "policy.widened": "A run goes on, or a child run starts, under a policy that allows more than the one before.",
    "policy.unrecorded": "An act that a policy only observes does not say what the policy would have decided.",
    "approval.missing": "An act was admitted without the approvals that it needs.",
    "approval.mismatch": "An act uses an approval for another act, state, policy, role or run.",
    "approval.reused": "An act uses an approval whose uses are used up.",
    "approval.expired": "An act uses an approval, or an approval answers a request, after its time.",
    "approval.replaced": "An act uses an approval that the same approver had taken back.",
    "approval.denied": "An act uses an approval although a request for it is denied.",
    "approval.unknown": "An act uses an approval that does not stand before it.",
    "approval.self": "An approval is by the agent, the issuer of the run or the log.",
    "effect.repeated": "An effect was attempted again although it was committed or in progress.",
    "effect.retried_ambiguous": "An effect was attempted again although nobody knew whether it had happened.",
    "effect.attempt": "An attempt does not have the number that follows from those before it.",
    "effect.contradicted": "Receipts say of one attempt that it happened and that it did not.",
    "effect.resolved_settled": "A resolution settles an effect that was not ambiguous.",
    "effect.unproven_failure": "An effect is called failed without proof that nothing was done.",
}
"""Code -> its meaning. Every one of them causes exit 6."""

DOUBT_CODES: Final = {
    "budget.basis_unknown": "What an act costs under a money limit is not known.",
    "budget.time_unknown": "A run with a time limit does not say how long it took.",
    "policy.absent": "The policy document is not there, so nothing can be decided under it.",
    "policy.unreadable": "The policy document cannot be read.",
    "policy.arguments_absent": "What the policy looks at in the arguments is not there.",
    "approval.unpinned": "The trust in use does not name the approver with this key and role.",
}
"""Code -> its meaning. None of them is a breach: what depends on it is not checked, exit 3 where it was asked for."""
