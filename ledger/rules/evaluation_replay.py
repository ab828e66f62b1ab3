"""Evaluations re-proved: a verdict that its answers do not come to, and answers that the observation does not give.

Criteria and observations come from the caller, by digest. Where the criteria are not there, only what the answers themselves say is
compared.

Source: docs/spec/rules/evaluations.md.
"""

from __future__ import annotations

from ledger import canonical
from ledger.errors import CanonicalError
from ledger.receipt import Evaluation, Receipt
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.errors import EvaluationError
from ledger.rules.evaluation import ASSERTS, CriteriaSet, Verdict, answers_of, parse_criteria, verdict_of
from ledger.rules.policy_replay import DocumentOf

__all__ = ["EvaluationReplay"]


class EvaluationReplay:
    """Evaluations of one ledger; each is judged by itself."""

    def __init__(self, document_of: DocumentOf) -> None:
        self._document_of = document_of

    def see(self, index: int, receipt: Receipt) -> list[Finding]:
        """Return what one receipt shows."""
        if not isinstance(receipt, Evaluation) or receipt.source is not None or not receipt.answers:
            return []
        data = self._document_of(receipt.criteria)
        if data is None:
            wrong = _beyond(receipt)
            if wrong is not None:
                return [Breach("evaluation.contradicted", index, wrong)]
            return [Doubt("evaluation.criteria_absent", index, f"criteria {receipt.criteria[:15]}: are not there")]
        try:
            criteria = parse_criteria(data)
            found = verdict_of(criteria, receipt.answers)
        except EvaluationError as error:
            return [Breach("evaluation.contradicted", index, str(error))]
        if found.value != receipt.verdict:
            message = f"it says {receipt.verdict}, its answers come to {found}"
            return [Breach("evaluation.contradicted", index, message)]
        return self._asserted(index, receipt, criteria)

    def _asserted(self, index: int, evaluation: Evaluation, criteria: CriteriaSet) -> list[Finding]:
        """Evaluate the assertions of a set again, where the observation is at hand."""
        if (evaluation.evaluator.package, evaluation.evaluator.method) != ASSERTS:
            return []
        data = self._document_of(evaluation.subject)
        if data is None:
            return []
        try:
            observation = canonical.decode(data, max_bytes=1 << 30)
        except CanonicalError:
            observation = None
        expected = {each.criterion: each.answer for each in answers_of(criteria, observation)}
        for each in evaluation.answers:
            if expected[each.criterion] != each.answer:
                message = f"{each.criterion}: answered {each.answer}, the observation gives {expected[each.criterion]}"
                return [Breach("evaluation.contradicted", index, message)]
        return []


def _beyond(evaluation: Evaluation) -> str | None:
    """Return in what a verdict is beyond its own answers, whatever the criteria are; None if in nothing sure."""
    required = {each.answer for each in evaluation.answers if each.required}
    if "not_met" in required:
        least = Verdict.NOT_MET
    elif "inconclusive" in required:
        least = Verdict.INCONCLUSIVE
    else:
        # Any of its checks may be unanswered, and then it is inconclusive.
        return "it says not_met, and no answer does" if evaluation.verdict == "not_met" else None
    return None if evaluation.verdict == least.value else f"it says {evaluation.verdict}, its answers come to {least}"
