"""Evaluations of runx: `runx.verdict.v1` against a criteria set, decided by its one rule.

- Any required check `not_met` makes it `not_met`; else any that is left unanswered or `inconclusive` makes it `inconclusive`;
  only where every required check is `met` is it `met`.
- A verdict on another subject, or against another set, is refused: it answers nothing, which is not `inconclusive`.
- The runtime names the evaluator; one that names another refuses the verdict.

Only prose is known of these documents. Their `evaluator` is read; the names of the other members are not published, so nothing
else of a document is judged.

Source: the prose of runx 0.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ledger.canonical import JsonObject
from verify.foreign.shape import TEXT, Misfit, Shape

__all__ = ["CRITERIA_SCHEMA", "VERDICT_SCHEMA", "Decided", "decide", "evaluator_misfits"]

VERDICT_SCHEMA: Final = "runx.verdict.v1"
CRITERIA_SCHEMA: Final = "runx.criteria.v1"
Decided: TypeAlias = Literal["met", "not_met", "inconclusive", "refused"]
_EVALUATOR: Final = Shape({"package*": TEXT, "method*": TEXT, "run*": TEXT})


def evaluator_misfits(verdict: JsonObject) -> tuple[Misfit, ...]:
    """Return what does not fit in the evaluator of a verdict; a step need not state it."""
    return tuple(_EVALUATOR(verdict["evaluator"], "evaluator")) if "evaluator" in verdict else ()


def decide(
    answers: Mapping[str, str],
    required: Mapping[str, bool],
    *,
    subject: tuple[str, str],
    criteria: tuple[str, str],
) -> Decided:
    """Return what a verdict comes to.

    Args:
        answers: check -> `met`, `not_met` or `inconclusive`, as the verdict gives them.
        required: check -> whether the expected set requires it.
        subject: the verdict's, and the expected one.
        criteria: revision of the set that the verdict answers, and of the expected one.
    """
    if subject[0] != subject[1] or criteria[0] != criteria[1]:
        return "refused"
    asked = [answers.get(check) for check, needed in required.items() if needed]
    if "not_met" in asked:
        return "not_met"
    return "met" if all(answer == "met" for answer in asked) else "inconclusive"
