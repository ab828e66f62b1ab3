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
    "act.digest": "An intent or a decision states an act digest that is not that of its act, its run's actor and its effect key.",
    "act.arguments": "Arguments that stand inline in an intent are not those of its stored arguments.",
    "budget.overspent": "An act was admitted that passes a limit, or acts cost more than the limit and its grace.",
    "budget.unknown_price": "An act was admitted under a money limit without a price, or cost an amount in another currency.",
    "budget.act_after_overrun": "An act was admitted although an earlier one had cost more than was set aside for it.",
    "budget.over_time": "A run with a time limit ended after the limit and its grace.",
    "budget.attempts": "An edge was taken more often than its limit allows.",
    "budget.structure": "More receipts, child runs, levels or acts at once than a limit allows.",
    "budget.widened": "A child run's limit is wider than that of a run above it.",
    "budget.contradicted": "A refusal or a close gives amounts that are not those of the receipts before it, or an act used more than it settles.",
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
    "grant.missing": "An act, a run or a grant names a grant that does not stand before it, or none where it must.",
    "grant.other": "An act or a run is under a grant for somebody else, or one that is not narrowed from that of its run.",
    "grant.not_covered": "An act was admitted that its grant, or one above it, does not cover.",
    "grant.revoked": "An act, a run or a grant relies on a grant that was revoked before it.",
    "grant.expired": "An act, a run or a grant relies on a grant after its end.",
    "grant.widened": "A grant allows more than the one that it is narrowed from.",
    "grant.unmandated": "A grant hands over to another actor and names no mandate.",
    "grant.duties": "An act was admitted without the approvals, by different approvers in their roles, that its grant asks for.",
    "grant.overspent": "Acts under a grant cost more than it allows.",
    "grant.period_overspent": "Acts of an account cost more within a period than a grant allows.",
    "grant.contradicted": "A refusal gives amounts of a grant or an account that are not those of the receipts before it, or an act used more than it settles.",
    "runbook.other": "A run follows another document than the one that its policy envelope was derived from.",
    "runbook.not_refused": "Something ran under a runbook that had to be refused before it started.",
    "runbook.undeclared_tool": "An act used a tool that its runbook does not declare.",
    "runbook.out_of_scope_tool": "An act used a tool that its step does not declare.",
    "runbook.out_of_order_step": "A step was entered that the runbook does not contain, or not there.",
    "runbook.budget_exhausted": "A step was retried more often than its budget allows.",
    "runbook.terminal_not_reached": "A run is called completed and did not end at a terminal of its runbook.",
    "runbook.not_asserted": "A step is called completed, and nothing says that what it asserts is so.",
    "runbook.unrecorded": "An act deviates from a runbook that is only advice, and does not say so.",
    "runbook.contradicted": "A receipt says that a retry budget ran out, and it had not.",
    "evaluation.contradicted": "An evaluation gives another verdict than its answers, or other answers than its observation.",
    "hold.erased": "What a hold kept from being erased was erased.",
}
"""Code -> its meaning. Every one of them causes exit 6."""

DOUBT_CODES: Final = {
    "budget.basis_unknown": "What an act costs under a money limit is not known.",
    "budget.time_unknown": "A run with a time limit does not say how long it took.",
    "policy.absent": "The policy document is not there, so nothing can be decided under it.",
    "policy.unreadable": "The policy document cannot be read.",
    "policy.arguments_absent": "What the policy looks at in the arguments is not there.",
    "approval.unpinned": "The trust in use does not name the approver with this key and role.",
    "grant.terms_absent": "The terms of a grant are not there.",
    "grant.terms_unreadable": "The terms of a grant cannot be read.",
    "runbook.absent": "The policy envelope of a run is not there, so nothing can be decided under it.",
    "runbook.unreadable": "The policy envelope of a run cannot be read.",
    "evaluation.criteria_absent": "The criteria of an evaluation are not there.",
    "hold.receipt_absent": "Whether an erasure touches a run that is held cannot be told: a receipt that it names is not there.",
}
"""Code -> its meaning. None of them is a breach: what depends on it is not checked, exit 3 where it was asked for."""
