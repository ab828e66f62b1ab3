"""Evaluations recorded: what they come to, who may speak as what, and that a verifier agrees."""

from __future__ import annotations

import json

import pytest

from cli.rules import sources_of
from ledger import Ledger
from ledger.arguments import ArgumentsError
from ledger.digest import digest
from ledger.evaluating import evaluate, observe
from ledger.receipt import parse_receipt
from ledger.rules.errors import EvaluationError
from ledger.rules.evaluation import decide, read_criteria
from ledger.storage.places import Places
from verify.chain import Segment
from verify.ledger import verify_ledger

SUBJECT = digest(b"subject")
CRITERIA = read_criteria(
    json.dumps(
        {
            "schema": "receipt-ledger.criteria/v1",
            "checks": [
                {"id": "tests", "required": True, "statement": "All tests pass."},
                {"id": "rows", "required": True, "assert": {"at": "/rows", "is": "at_least", "value": 1}},
            ],
        }
    ).encode()
)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state"))))


def rules(ledger):
    segments = [Segment(*each) for each in ledger.journal()]
    verdict = verify_ledger(segments, trust=None, sources=sources_of(ledger.folder, None))
    check = next(check for check in verdict.checks if check.name == "rules")
    return check.code or check.status


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ({"tests": "met", "rows": "met"}, "met"),
        ({"tests": "met"}, "inconclusive"),
        ({"tests": "met", "rows": "not_met"}, "not_met"),
    ],
)
def test_an_evaluation_names_its_evaluator_and_run_and_says_what_its_answers_come_to(ledger, answers, verdict):
    with ledger.run("review") as run:
        receipt, found = evaluate(ledger, SUBJECT, CRITERIA, answers, package="review", method="by-hand", run=run.id)
    kept = parse_receipt(ledger.get(receipt).envelope.payload)
    assert (found, kept.verdict) == (verdict, verdict)
    assert (kept.evaluator.package, kept.evaluator.method, kept.evaluator.run) == ("review", "by-hand", run.id)
    assert decide(kept, subject=SUBJECT, criteria=CRITERIA) == verdict
    assert rules(ledger) == "ok"


def test_assertions_are_evaluated_by_the_supervisor_and_a_check_without_one_is_inconclusive(ledger):
    receipt, found = observe(ledger, CRITERIA, {"rows": 0})
    kept = parse_receipt(ledger.get(receipt).envelope.payload)
    assert (found, kept.evaluator.method) == ("not_met", "assert")
    assert observe(ledger, CRITERIA, {"rows": 1})[1] == "inconclusive"
    assert observe(ledger, CRITERIA, None)[1] == "inconclusive"
    assert rules(ledger) == "ok"


@pytest.mark.parametrize(
    ("members", "answers", "error"),
    [
        ({"package": "receipt-ledger", "method": "assert"}, {"tests": "met"}, EvaluationError),
        ({"package": "receipt-ledger", "method": "model"}, {"tests": "met"}, EvaluationError),
        ({}, {"taste": "met"}, EvaluationError),
        ({}, {"tests": "looks good"}, EvaluationError),
        ({"run": "latest"}, {"tests": "met"}, ArgumentsError),
        ({"package": ""}, {"tests": "met"}, ArgumentsError),
    ],
)
def test_what_is_no_evaluation_is_not_recorded(ledger, members, answers, error):
    before = ledger.head()
    with pytest.raises(error):
        evaluate(ledger, SUBJECT, CRITERIA, answers, **{"package": "p", "method": "m", **members})
    assert ledger.head() == before
