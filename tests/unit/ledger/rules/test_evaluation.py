"""Evaluations: criteria sets, what answers come to, and what is refused."""

import json
from itertools import product

import pytest

from ledger.digest import digest
from ledger.members import Issuer, Producer
from ledger.receipt import Answer, Evaluation, Evaluator
from ledger.rules.assertion import Assertion
from ledger.rules.breach import BREACH_CODES, DOUBT_CODES, Breach
from ledger.rules.errors import EvaluationError
from ledger.rules.evaluation import (
    ASSERTS,
    Verdict,
    answers_of,
    criteria_of,
    decide,
    parse_criteria,
    read_criteria,
    verdict_of,
)
from ledger.rules.evaluation_replay import EvaluationReplay

SUBJECT = digest(b"subject")
CHECKS = [
    {"id": "a", "required": True, "statement": "A."},
    {"id": "b", "required": True},
    {"id": "c", "required": False},
]


def criteria(checks=None):
    return read_criteria(json.dumps({"schema": "receipt-ledger.criteria/v1", "checks": checks or CHECKS}).encode())


def answers(**given):
    required = {"a": True, "b": True, "c": False}
    return tuple(Answer(criterion=name, required=required.get(name, True), answer=word) for name, word in given.items())


def evaluation(verdict="met", given=None, **members):
    common = {
        "ledger": "ledger.invalid/x",
        "issuer": Issuer(name="i", key="ed25519:" + "0" * 64),
        "issued_at": "2026-11-30T12:00:00.000Z",
        "nonce": "0" * 32,
        "producer": Producer(name="t", version="1"),
        "subject": SUBJECT,
        "criteria": criteria().digest,
        "evaluator": Evaluator(package="p", method="m", run="unknown"),
        "verdict": verdict,
        "answers": answers(a="met", b="met") if given is None else given,
    }
    return Evaluation(**{**common, **members})


def test_a_set_is_named_by_the_digest_of_what_it_holds():
    plain, laid_out = (
        criteria(),
        read_criteria(json.dumps({"checks": CHECKS, "schema": "receipt-ledger.criteria/v1"}, indent=2).encode()),
    )
    assert plain.digest == laid_out.digest == digest(plain.data)
    assert criteria([CHECKS[0]]).digest != plain.digest
    assert parse_criteria(plain.data) == plain


@pytest.mark.parametrize("a", ["met", "not_met", "inconclusive", None])
@pytest.mark.parametrize("b", ["met", "not_met", "inconclusive", None])
@pytest.mark.parametrize("c", ["met", "not_met", "inconclusive", None])
def test_answers_come_to_what_the_rule_says(a, b, c):
    """Any required check not met; else any unanswered or inconclusive; else met."""
    given = answers(**{name: word for name, word in (("a", a), ("b", b), ("c", c)) if word is not None})
    if a == "not_met" or b == "not_met":
        expected = Verdict.NOT_MET
    elif a != "met" or b != "met":
        expected = Verdict.INCONCLUSIVE
    else:
        expected = Verdict.MET
    assert verdict_of(criteria(), given) is expected
    assert decide(evaluation(expected.value, given), subject=SUBJECT, criteria=criteria()) is expected


def test_a_verdict_on_another_subject_or_by_another_set_is_refused_which_is_not_inconclusive():
    assert decide(evaluation(), subject=SUBJECT, criteria=criteria()) is Verdict.MET
    for members, code in (
        ({"subject": digest(b"other")}, "evaluation.other_subject"),
        ({"criteria": digest(b"other")}, "evaluation.other_set"),
        ({"given": answers(a="met", b="met", d="met")}, "evaluation.other_set"),
        ({"given": (Answer(criterion="a", required=False, answer="met"),)}, "evaluation.other_set"),
        ({"verdict": "inconclusive"}, "evaluation.contradicted"),
    ):
        with pytest.raises(EvaluationError) as refused:
            decide(evaluation(**members), subject=SUBJECT, criteria=criteria())
        assert refused.value.code == code


@pytest.mark.parametrize(
    "checks",
    [
        [{"id": "a", "required": False}],
        [{"id": "a"}],
        [{"id": "a", "required": 1}],
        [{"id": "a", "required": True}, {"id": "a", "required": True}],
        [{"id": "a", "required": True, "weight": 2}],
        [{"id": "a", "required": True, "assert": {"at": "/x", "is": "likes"}}],
    ],
)
def test_one_wrong_place_refuses_a_set(checks):
    with pytest.raises(EvaluationError):
        criteria(checks)


def test_assertions_answer_for_themselves_and_a_check_without_one_is_inconclusive():
    asserted = criteria_of([Assertion("rows", "/rows", "at_least", 2), Assertion("name", "/name", "equals", "x")])
    for observation, expected in (
        ({"rows": 2, "name": "x"}, Verdict.MET),
        ({"rows": 1, "name": "x"}, Verdict.NOT_MET),
        ({"rows": 2}, Verdict.INCONCLUSIVE),
        (None, Verdict.INCONCLUSIVE),
    ):
        assert verdict_of(asserted, answers_of(asserted, observation)) is expected
    assert {each.answer for each in answers_of(criteria(), {})} == {"inconclusive"}


# Re-proved.


def judged(receipt, **documents):
    found = EvaluationReplay(documents.get).see(7, receipt)
    assert all(each.code in (BREACH_CODES if isinstance(each, Breach) else DOUBT_CODES) for each in found)
    return [each.code for each in found]


@pytest.mark.parametrize(
    ("verdict", "given", "codes"),
    [
        ("met", {"a": "met", "b": "met"}, []),
        ("met", {"a": "met"}, ["evaluation.contradicted"]),
        ("met", {"a": "met", "b": "not_met"}, ["evaluation.contradicted"]),
        ("inconclusive", {"a": "met", "b": "not_met"}, ["evaluation.contradicted"]),
        ("not_met", {"a": "met", "b": "met"}, ["evaluation.contradicted"]),
        ("met", {"a": "met", "b": "met", "d": "met"}, ["evaluation.contradicted"]),
    ],
)
def test_a_verdict_that_its_answers_do_not_come_to(verdict, given, codes):
    found = criteria()
    assert judged(evaluation(verdict, answers(**given)), **{found.digest: found.data}) == codes


def test_without_the_criteria_only_what_is_sure_is_said():
    for a, verdict in product(("met", "not_met", "inconclusive"), ("met", "not_met", "inconclusive")):
        codes = judged(evaluation(verdict, answers(a=a)))
        sure = {"not_met": verdict != "not_met", "inconclusive": verdict != "inconclusive", "met": verdict == "not_met"}
        expected = "evaluation.contradicted" if sure[a] else "evaluation.criteria_absent"
        assert codes == [expected], (a, verdict)


def test_an_evaluation_without_answers_says_nothing_that_could_be_contradicted():
    assert judged(evaluation("met", ())) == []


def test_answers_of_the_supervisor_that_the_observation_does_not_give():
    asserted = criteria_of([Assertion("rows", "/rows", "at_least", 2)])
    own = Evaluator(package=ASSERTS[0], method=ASSERTS[1], run="unknown")
    for rows, codes in ((2, []), (1, ["evaluation.contradicted"])):
        observation = json.dumps({"rows": rows}, separators=(",", ":")).encode()
        receipt = evaluation(
            "met",
            (Answer(criterion="rows", required=True, answer="met"),),
            criteria=asserted.digest,
            evaluator=own,
            subject=digest(observation),
        )
        assert judged(receipt, **{asserted.digest: asserted.data, digest(observation): observation}) == codes
        assert judged(receipt, **{asserted.digest: asserted.data}) == []
