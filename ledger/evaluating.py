"""Evaluations recorded: answers to a criteria set that the evaluator did not choose, about an exact subject.

    evaluate(ledger, subject, criteria, {"tests-pass": "met"}, package="review", method="by-hand", run=run.id)
    observe(ledger, criteria, {"rows": 12}, run=run.id)

The verdict follows from the answers, and the evaluator is named by whoever runs it. Only `observe`, which evaluates assertions and
asks nobody, speaks as the supervisor.

Source: docs/spec/rules/evaluations.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.errors import clip
from ledger.members import Artifact
from ledger.receipt import Answer, Evaluation, Evaluator
from ledger.recorder import common_of, explain
from ledger.rules.errors import EvaluationError
from ledger.rules.evaluation import ASSERTS, CriteriaSet, Verdict, answers_of, verdict_of
from ledger.storage.ledger import Ledger

__all__ = ["evaluate", "observe"]

_WORDS: Final = frozenset(Verdict)


def evaluate(
    ledger: Ledger,
    subject: str,
    criteria: CriteriaSet,
    answers: Mapping[str, str],
    *,
    package: str,
    method: str,
    run: str | None = None,
) -> tuple[str, Verdict]:
    """Return the receipt id of an evaluation and the verdict that its answers come to.

    Args:
        ledger: Where it stands.
        subject: Digest of what was judged.
        criteria: The set; it is kept.
        answers: Check -> `met`, `not_met` or `inconclusive`; what is left out is unanswered.
        package: What evaluated.
        method: How.
        run: The run that it evaluated in.

    Raises:
        EvaluationError: an answer to no check of the set, an unknown word, or an evaluator that speaks as the supervisor.
        ArgumentsError: a digest or a name outside its form.
    """
    if package == ASSERTS[0]:
        raise EvaluationError(
            f"evaluation: got package {clip(package)}, which names what evaluates assertions and nothing else",
            code="evaluation.evaluator",
        )
    required = {check.id: check.required for check in criteria.checks}
    for name, word in answers.items():
        if name not in required or word not in _WORDS:
            raise EvaluationError(
                f"evaluation: got {clip(name)} answered {clip(word)}, expected a check of the set and met, not_met or inconclusive"
            )
    given = tuple(
        Answer(criterion=name, required=required[name], answer=word)  # type: ignore[arg-type]  # looked at above
        for name, word in answers.items()
    )
    return _record(ledger, subject, criteria, given, Verdict(verdict_of(criteria, given)), (package, method), run, ())


def observe(
    ledger: Ledger, criteria: CriteriaSet, observation: JsonObject | None, *, run: str | None = None
) -> tuple[str, Verdict]:
    """Return the receipt id of the evaluation of a set's assertions over an observation, which is kept, and its verdict."""
    data = canonical.encode(observation) if observation is not None else b"null"
    answers = answers_of(criteria, observation)
    ledger.artifacts.stage(data)
    kept = Artifact(
        digest=digest(data), media_type="application/json", name="observation", size_bytes=len(data), salted=False
    )
    return _record(ledger, digest(data), criteria, answers, verdict_of(criteria, answers), ASSERTS, run, (kept,))


def _record(
    ledger: Ledger,
    subject: str,
    criteria: CriteriaSet,
    answers: tuple[Answer, ...],
    verdict: Verdict,
    evaluator: tuple[str, str],
    run: str | None,
    artifacts: tuple[Artifact, ...],
) -> tuple[str, Verdict]:
    kept = Artifact(
        digest=criteria.digest,
        media_type="application/json",
        name="criteria",
        size_bytes=len(criteria.data),
        salted=False,
    )
    try:
        receipt = Evaluation(
            **common_of(ledger),
            run=run,
            subject=subject,
            criteria=criteria.digest,
            evaluator=Evaluator(package=evaluator[0], method=evaluator[1], run=run or "unknown"),
            verdict=verdict.value,
            answers=answers,
            artifacts=(kept, *artifacts),
        )
    except ValidationError as error:
        raise explain("evaluation", error) from error
    ledger.artifacts.stage(criteria.data)
    return ledger.append(ledger.seal(receipt)).receipt, verdict
