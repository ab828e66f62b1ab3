"""Rules of one whole run, re-proved from its receipts alone.

Source: docs/spec/rules/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ledger.canonical import JsonValue
from ledger.receipt import Intent, Opening, Outcome, parse_receipt
from ledger.rules.act_replay import ActReplay, read_once
from ledger.rules.breach import Breach, Finding
from ledger.rules.budget_replay import BudgetReplay
from ledger.rules.policy_replay import ArgumentsOf, PolicyReplay
from ledger.rules.runbook_replay import RunbookReplay
from ledger.words import OutcomeStatus
from verify.report import Report

__all__ = ["NAME", "RuleRow", "replay_run"]

NAME: Final = "rules"
"""What the check is called."""
_EXPLICIT: Final = (b'"limits":[', b'"policy":"', b'"runbook":{')
_LINKED: Final = (b'"effect":{', b'"approvals":[', b'"grant":"', b'"status":"waiting"')
_WHOLE: Final = "what bears on its approvals, effects, grants and on runs above it stands elsewhere: the whole ledger shows whether they were kept"
_ELSEWHERE: Final = "runbook.not_asserted"
"""What evaluations and people say of a step stands outside its run's tree."""


class RuleRow(NamedTuple):
    """A receipt to replay: index of its entry (`at`), its id, its canonical bytes and `recorded_at` without the Z."""

    at: int
    id_: str
    payload: bytes
    time: bytes


def replay_run(
    report: Report,
    rows: Sequence[RuleRow],
    document_of: Callable[[str], bytes | None],
    arguments_of: Callable[[Intent], Mapping[str, JsonValue] | None] = lambda _: None,
) -> None:
    """Replay acts, budgets, policies and runbooks over the receipts of one whole run, in chain order, and report what they show.

    Approvals, evaluations, grants, effects and the budgets of runs above it stand elsewhere in the ledger, and so may the
    resolution of an act that was ambiguous: what depends on these is not judged.

    Args:
        report: takes the findings.
        rows: all receipts of the run and of the runs inside it.
        document_of: digest -> bytes of a policy or a policy envelope, where it is at hand.
        arguments_of: intent -> all arguments of its act, where they are at hand.
    """
    linked = any(each in row.payload for row in rows for each in _LINKED)
    if not any(each in row.payload for row in rows for each in _EXPLICIT):
        breach = _misnamed(rows, arguments_of) if linked else None
        if breach is not None:
            report.find(NAME, breach.code, where=f"entry {breach.index}", message=breach.message)
        elif linked:
            report.skip(NAME, "check.not_asked", _WHOLE, asked=False)
        else:
            report.ran(NAME, 0)
        return
    once = read_once(arguments_of)
    acts, budgets, policies = ActReplay(once), BudgetReplay(), PolicyReplay(document_of, once)
    runbooks = RunbookReplay(document_of)
    opened: set[str] = set()
    open_ended = nested = False
    seen: set[str] = set()
    for row in rows:
        receipt = parse_receipt(row.payload)
        if isinstance(receipt, Opening):
            nested = nested or (receipt.parent_opening is not None and receipt.parent_opening not in opened)
            opened.add(row.id_)
        open_ended = open_ended or (isinstance(receipt, Outcome) and receipt.status is OutcomeStatus.AMBIGUOUS)
        found: list[Finding] = acts.see(row.at, row.id_, receipt)
        found += policies.see(row.at, row.id_, receipt).findings
        found += budgets.see(row.at, row.id_, receipt)
        steps = runbooks.see(row.at, row.id_, receipt, now=row.time.decode("ascii") + "Z")
        found += [each for each in steps if each.code != _ELSEWHERE]
        for each in found:
            if nested and each.code == "budget.contradicted":
                continue  # it may speak of a budget above
            if each.code.startswith("budget.") and open_ended and isinstance(each, Breach):
                why = "how an ambiguous act was resolved is not among the receipts at hand"
                report.skip(NAME, "check.unreachable", why, asked=True)
                return
            if each.code not in seen:
                seen.add(each.code)
                report.find(NAME, each.code, where=f"entry {each.index}", message=each.message)
            if isinstance(each, Breach):
                return
    report.ran(NAME, len(rows))
    report.notes.append(f"rules: budgets, policies and runbooks of this run{f'; {_WHOLE}' if linked or nested else ''}")


def _misnamed(rows: Sequence[RuleRow], arguments_of: ArgumentsOf) -> Breach | None:
    """Return the first receipt whose act is not the one that it says, None if there is none."""
    acts = ActReplay(arguments_of)
    for row in rows:
        for each in acts.see(row.at, row.id_, parse_receipt(row.payload)):
            if isinstance(each, Breach):
                return each
    return None
