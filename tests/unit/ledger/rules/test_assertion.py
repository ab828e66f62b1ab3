"""Assertions: pass, fail, or unevaluable, and no guess between them."""

import pytest

from ledger.rules.assertion import PREDICATES, Finding, evaluate, parse_assertions, print_assertion
from ledger.rules.errors import RunbookError
from ledger.rules.shape import Shape

SHAPE = Shape("test", RunbookError)
OBSERVATION = {
    "exit_code": 0,
    "rows": 12,
    "name": "orders",
    "done": True,
    "none": None,
    "list": [1, "two", {"deep": 3}],
    "a/b": {"~": 7},
    "empty": "",
}


def found(at, predicate, *value, observation=OBSERVATION):
    stated = {"id": "x", "at": at, "is": predicate, **({"value": value[0]} if value else {})}
    (assertion,) = parse_assertions(SHAPE, [stated], "assert")
    assert print_assertion(assertion) == stated
    return evaluate(assertion, observation)


@pytest.mark.parametrize(
    ("at", "predicate", "value", "expected"),
    [
        ("/exit_code", "equals", 0, "pass"),
        ("/exit_code", "equals", 1, "fail"),
        ("/exit_code", "equals", "0", "unevaluable"),
        ("/exit_code", "equals", False, "unevaluable"),
        ("/gone", "equals", 0, "unevaluable"),
        ("/exit_code", "differs", 1, "pass"),
        ("/exit_code", "differs", 0, "fail"),
        ("/exit_code", "differs", "0", "unevaluable"),
        ("/rows", "at_least", 12, "pass"),
        ("/rows", "at_least", 13, "fail"),
        ("/name", "at_least", 1, "unevaluable"),
        ("/done", "at_least", 1, "unevaluable"),
        ("/rows", "at_most", 12, "pass"),
        ("/rows", "at_most", 11, "fail"),
        ("/list", "size_at_least", 3, "pass"),
        ("/list", "size_at_least", 4, "fail"),
        ("/rows", "size_at_least", 1, "unevaluable"),
        ("/empty", "size_at_most", 0, "pass"),
        ("/name", "size_at_most", 5, "fail"),
        ("/name", "matches", "ord*", "pass"),
        ("/name", "matches", "ord", "fail"),
        ("/rows", "matches", "*", "unevaluable"),
        ("/name", "one_of", ["orders", "items"], "pass"),
        ("/name", "one_of", ["items"], "fail"),
        ("/rows", "one_of", ["12"], "unevaluable"),
        ("/done", "one_of", [1, True], "pass"),
        ("/list/1", "equals", "two", "pass"),
        ("/list/2/deep", "equals", 3, "pass"),
        ("/list/3", "equals", 3, "unevaluable"),
        ("/list/01", "equals", "two", "unevaluable"),
        ("/list/-", "equals", "two", "unevaluable"),
        ("/a~1b/~0", "equals", 7, "pass"),
        ("/none", "equals", None, "pass"),
        ("/list/2", "equals", {"deep": True}, "fail"),
        ("/list/2", "equals", {"deep": 3}, "pass"),
    ],
)
def test_predicates(at, predicate, value, expected):
    assert found(at, predicate, value) == expected


@pytest.mark.parametrize(
    ("at", "exists"), [("/rows", True), ("/none", True), ("/gone", False), ("/rows/0", False), ("", True)]
)
def test_presence_is_judged_of_what_is_not_there_too(at, exists):
    assert found(at, "exists") == (Finding.PASS if exists else Finding.FAIL)
    assert found(at, "absent") == (Finding.FAIL if exists else Finding.PASS)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_without_an_observation_nothing_passes_and_nothing_fails(predicate):
    value = {"exists": (), "absent": (), "matches": ("x",), "one_of": ([1],)}.get(predicate, (1,))
    assert found("/rows", predicate, *value, observation=None) == Finding.UNEVALUABLE


def test_true_is_not_one_at_any_depth():
    assert found("/x", "equals", [[True]], observation={"x": [[1]]}) == Finding.FAIL


@pytest.mark.parametrize(
    "change",
    [
        {"is": "looks_good"},
        {"is": 3},
        {"at": "rows"},
        {"at": "/a~2"},
        {"at": "/a~"},
        {"value": True},
        {"value": "1"},
        {"note": "x"},
        {"id": ""},
        {"is": "exists"},
        {"is": "matches", "value": 1},
        {"is": "one_of", "value": []},
        {"is": "one_of", "value": "orders"},
    ],
)
def test_one_wrong_place_refuses_an_assertion(change):
    good = {"id": "x", "at": "/rows", "is": "at_least", "value": 1}
    assert parse_assertions(SHAPE, [good], "assert")
    with pytest.raises(RunbookError):
        parse_assertions(SHAPE, [good | change], "assert")


def test_a_value_that_is_missing_and_an_id_twice_are_refused():
    good = {"id": "x", "at": "/rows", "is": "at_least", "value": 1}
    with pytest.raises(RunbookError):
        parse_assertions(SHAPE, [{k: v for k, v in good.items() if k != "value"}], "assert")
    with pytest.raises(RunbookError):
        parse_assertions(SHAPE, [good, good], "assert")


def test_no_predicate_hands_the_question_to_a_model():
    """There is deliberately no model evaluator: the set is closed, and each predicate is a function of two values."""
    assert set(PREDICATES) == {
        "exists", "absent", "equals", "differs", "one_of", "at_least", "at_most", "size_at_least", "size_at_most",
        "matches",
    }  # fmt: skip
