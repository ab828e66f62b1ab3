"""Evaluations: a verdict on an exact subject by a fixed set of criteria that the evaluator did not choose.

    {"schema": "receipt-ledger.criteria/v1", "checks": [{"id": "tests-pass", "required": true, "statement": "All tests pass."}]}

- A criteria set is named by the digest of what it holds.
- Any required check that is not met: `not_met`. Else any that is unanswered or inconclusive: `inconclusive`. Else `met`.
- A verdict on another subject, or by another set, is refused. It answers nothing, which is not `inconclusive`.

Source: docs/spec/rules/evaluations.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject, JsonValue
from ledger.digest import digest
from ledger.receipt import Answer, Evaluation
from ledger.rules.assertion import Assertion, Finding, evaluate, parse_assertions, print_assertion
from ledger.rules.document import read_object
from ledger.rules.errors import EvaluationError
from ledger.rules.shape import Shape

__all__ = [
    "ASSERTS",
    "CRITERIA_SCHEMA",
    "Check",
    "CriteriaSet",
    "Verdict",
    "answers_of",
    "criteria_of",
    "decide",
    "parse_criteria",
    "read_criteria",
    "verdict_of",
]

CRITERIA_SCHEMA: Final = "receipt-ledger.criteria/v1"
ASSERTS: Final = ("receipt-ledger", "assert")
"""Package and method of the evaluator of assertions: the only one whose verdict satisfies an assertion."""
_SHAPE: Final = Shape("criteria", EvaluationError)
_LONGEST_STATEMENT: Final = 10_000


class Verdict(StrEnum):
    """What an evaluation comes to."""

    MET = "met"
    NOT_MET = "not_met"
    INCONCLUSIVE = "inconclusive"


_ANSWER_TO: Final = {
    Finding.PASS: Verdict.MET,
    Finding.FAIL: Verdict.NOT_MET,
    Finding.UNEVALUABLE: Verdict.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One criterion: what a person reads, or an assertion that is evaluated."""

    id: str
    required: bool = True
    statement: str | None = None
    assertion: Assertion | None = None


@dataclass(frozen=True, slots=True)
class CriteriaSet:
    """A set of criteria with the canonical bytes that are kept, and their digest, which names it."""

    checks: tuple[Check, ...]
    data: bytes
    digest: str


def read_criteria(data: bytes) -> CriteriaSet:
    """Return the criteria set of a file that a person wrote; white space and the order of members are free.

    Raises:
        EvaluationError: not JSON of this shape, or no check is required.
    """
    return parse_criteria(canonical.encode(read_object(data, "criteria", EvaluationError)))


def parse_criteria(data: bytes) -> CriteriaSet:
    """Return the criteria set whose canonical bytes are `data`.

    Raises:
        EvaluationError: not canonical, not of this shape, or no check is required.
    """
    return CriteriaSet(_checks_of(_SHAPE.canonical(data)), data, digest(data))


def criteria_of(assertions: Iterable[Assertion]) -> CriteriaSet:
    """Return the criteria set of a step's assertions; each is required."""
    checks: list[JsonValue] = [
        {"id": each.id, "required": True, "assert": {k: v for k, v in print_assertion(each).items() if k != "id"}}
        for each in assertions
    ]
    return parse_criteria(canonical.encode({"schema": CRITERIA_SCHEMA, "checks": checks}))


def answers_of(criteria: CriteriaSet, observation: Mapping[str, JsonValue] | None) -> tuple[Answer, ...]:
    """Return the answers that the assertions of a set give of an observation; a check without one is inconclusive."""
    return tuple(
        Answer(
            criterion=check.id,
            required=check.required,
            answer=(
                "inconclusive" if check.assertion is None else _ANSWER_TO[evaluate(check.assertion, observation)].value
            ),
        )
        for check in criteria.checks
    )


def verdict_of(criteria: CriteriaSet, answers: Iterable[Answer]) -> Verdict:
    """Return what answers to a criteria set come to.

    Raises:
        EvaluationError: an answer to no check of the set, or to one that the set requires otherwise.
    """
    given = {each.criterion: each for each in answers}
    known = {each.id: each for each in criteria.checks}
    for each in given.values():
        if each.criterion not in known or known[each.criterion].required is not each.required:
            raise EvaluationError(
                f"evaluation: answers {each.criterion!r}, which the set {criteria.digest[:15]} does not hold like this",
                code="evaluation.other_set",
            )
    required = [
        given[each.id].answer if each.id in given else "inconclusive" for each in criteria.checks if each.required
    ]
    if "not_met" in required:
        return Verdict.NOT_MET
    return Verdict.INCONCLUSIVE if "inconclusive" in required else Verdict.MET


def decide(evaluation: Evaluation, *, subject: str, criteria: CriteriaSet) -> Verdict:
    """Return what an evaluation says of the subject and by the set that a reader expects.

    Raises:
        EvaluationError: it judges another subject or by another set, or says another verdict than its answers come to: it is
            refused, and answers nothing.
    """
    if evaluation.subject != subject:
        raise EvaluationError(
            f"evaluation: subject: got {evaluation.subject}, expected {subject}", code="evaluation.other_subject"
        )
    if evaluation.criteria != criteria.digest:
        raise EvaluationError(
            f"evaluation: criteria: got {evaluation.criteria}, expected {criteria.digest}", code="evaluation.other_set"
        )
    found = verdict_of(criteria, evaluation.answers)
    if evaluation.verdict != found.value:
        raise EvaluationError(
            f"evaluation: it says {evaluation.verdict}, its answers come to {found}", code="evaluation.contradicted"
        )
    return found


def _checks_of(value: JsonObject) -> tuple[Check, ...]:
    if value.get("schema") != CRITERIA_SCHEMA:
        raise _SHAPE.refuse("schema", value.get("schema"), CRITERIA_SCHEMA, code="evaluation.unknown")
    found = _SHAPE.members(value, "criteria", required=("schema", "checks"))
    checks = tuple(
        _check(each, f"checks[{place}]") for place, each in enumerate(_SHAPE.items(found["checks"], "checks"))
    )
    if len({each.id for each in checks}) != len(checks):
        raise EvaluationError("criteria: checks: got an id twice")
    if not any(each.required for each in checks):
        raise EvaluationError("criteria: checks: got none that is required, expected one at least")
    return checks


def _check(value: object, where: str) -> Check:
    found = _SHAPE.members(value, where, required=("id", "required"), optional=("statement", "assert"))
    id_ = _SHAPE.text(found["id"], f"{where}.id")
    statement, assertion = found.get("statement"), None
    if statement is not None:
        statement = _SHAPE.text(statement, f"{where}.statement", longest=_LONGEST_STATEMENT)
    if "assert" in found:
        stated = {"id": id_, **_SHAPE.mapping(found["assert"], f"{where}.assert")}
        assertion = parse_assertions(_SHAPE, [stated], f"{where}.assert")[0]
    return Check(id_, _SHAPE.flag(found["required"], f"{where}.required"), statement, assertion)
