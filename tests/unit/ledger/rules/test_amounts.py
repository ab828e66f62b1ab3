"""Limits and amounts as people write them."""

import json
import re

import pytest

from ledger.members import Limit
from ledger.rules.amounts import parse_budget, read_amounts, read_budget
from ledger.rules.errors import BudgetError


@pytest.mark.parametrize(
    ("word", "meter", "limit"),
    [
        ("seconds=90", "duration_ms", 90_000),
        ("seconds=1.5", "duration_ms", 1_500),
        ("15m", "duration_ms", 900_000),
        ("250ms", "duration_ms", 250),
        ("2h", "duration_ms", 7_200_000),
        ("duration_ms=1", "duration_ms", 1),
        ("duration_ms=2s", "duration_ms", 2_000),
        ("usd=0.50", "usd_micro", 500_000),
        ("usd=0.000001", "usd_micro", 1),
        ("eur=9007199254.740991", "eur_micro", 2**53 - 1),
        ("usd_micro=7", "usd_micro", 7),
        ("tool_calls=60", "tool_calls", 60),
        ("tool_calls=0", "tool_calls", 0),
        ("fetch->fetch=3", "fetch->fetch", 3),
        ("reasoning_tokens=9007199254740991", "reasoning_tokens", 2**53 - 1),
    ],
)
def test_a_word_of_a_budget_is_an_exact_integer(word, meter, limit):
    assert parse_budget([word]) == (Limit(meter=meter, limit=limit),)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "usd",
        "usd=",
        "=1",
        "usd=-1",
        "usd=+1",
        "usd=1e3",
        "usd=NaN",
        "usd=inf",
        "usd=.5",
        "usd=5.",
        "usd=00.5",
        "usd=0.0000001",
        "usd=0.0000000",
        "usd=1_0",
        "usd= 1",
        "usd=1\n",
        "usd=\u0661",
        "usd=9007199254.740992",
        "usd=" + "9" * 5_000,
        "seconds=0.0001",
        "0m",
        "01m",
        "15M",
        "15",
        "tool_calls=1.0",
        "tool_calls=9007199254740992",
        "tool_calls=15m",
        "Usd=1",
        "usx=1",
        "usd_cents=1",
        "calls=1",
        "->x=1",
        "a->=1",
        "a->b->c=1",
        "usd=1:soft=2",
        "usd=1:hard=1",
        "usd=1:soft",
        "usd=1:soft=1:soft=1",
        "duration_ms=9007199254740991:grace=1",
        "usd=1,usd_micro=1",
        "seconds=1,15m",
        "usd=1,eur=1",
    ],
)
def test_what_is_not_exactly_an_amount_of_a_known_meter_is_refused(word):
    with pytest.raises(BudgetError):
        parse_budget([word])


def test_soft_limit_and_grace_are_read_in_the_units_of_the_meter():
    assert parse_budget(["usd=0.50:soft=0.40", "seconds=90:grace=2"]) == (
        Limit(meter="usd_micro", limit=500_000, soft=400_000),
        Limit(meter="duration_ms", limit=90_000, grace=2_000),
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["usd=1", "eur=1"], "budget.mixed_currency"),
        (["usd=1", "usd=1"], "budget.repeated_meter"),
        (["calls=1"], "budget.unknown_meter"),
        (["usd=1e3"], "budget.amount"),
    ],
)
def test_each_kind_of_refusal_has_its_code(words, code):
    with pytest.raises(BudgetError) as caught:
        parse_budget(words)
    assert caught.value.code == code


def test_the_budget_of_the_axlr_contract_is_read_exactly():
    limits = read_budget(b'{"budget": {"seconds": 900, "requests": 20, "tool_calls": 60, "usd": 0.5}}')
    assert {each.meter: each.limit for each in limits} == {
        "duration_ms": 900_000,
        "requests": 20,
        "tool_calls": 60,
        "usd_micro": 500_000,
    }
    assert read_budget(b'{"usd": 0.1}')[0].limit == 100_000


def test_the_published_budget_example_is_read(shared):
    data = (shared / "axlr/seed000__budget.example.json").read_bytes()
    assert [each.meter for each in read_budget(data)] == [
        {"seconds": "duration_ms", "usd": "usd_micro"}.get(name, name) for name in json.loads(data)["budget"]
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"usd": "0.5"}',
        b'{"usd": true}',
        b'{"usd": null}',
        b'{"usd": NaN}',
        b'{"usd": Infinity}',
        b'{"usd": -1}',
        b'{"usd": -0}',
        b'{"usd": 1e2}',
        b'{"usd": 5e-1}',
        b'{"usd": 0.1234567}',
        b'{"usd": 1, "usd": 2}',
        b'{"seconds": 1, "duration_ms": 1}',
        b'{"usd": 1, "eur": 1}',
        b'{"budget": {"usd": 1}, "x": 1}',
        b'{"budget": [1]}',
        b'{"calls": 1}',
        b'{"usd": ' + b"9" * 5_000 + b"}",
        b'{"usd": 1}\xff',
        b"[" * 100_000,
    ],
)
def test_a_budget_file_of_another_shape_is_refused(data):
    with pytest.raises(BudgetError):
        read_budget(data)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("usd=" + "9" * 41, "expected at most 2^53-1 units"),
        ("tool_calls=" + "9" * 17, "expected at most 2^53-1 units"),
        ("usd=1." + "0" * 41, "expected at most 6 decimals"),
        ("usd=1e40", "expected a plain number"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_amount(word, said):
    with pytest.raises(BudgetError, match=re.escape(said)):
        parse_budget([word])


def test_charges_are_integers_decimal_texts_of_currencies_or_unknown():
    assert read_amounts({"usd": "0.05", "prompt_tokens": 7, "a->b": 1, "requests": "unknown"}) == {
        "usd_micro": 50_000,
        "prompt_tokens": 7,
        "a->b": 1,
        "requests": "unknown",
    }


@pytest.mark.parametrize(
    "amounts",
    [
        {"usd": 0.05},
        {"usd": 1},
        {"usd_micro": 1.0},
        {"usd_micro": float("nan")},
        {"usd_micro": True},
        {"usd_micro": -1},
        {"usd_micro": 2**53},
        {"usd_micro": "1"},
        {"usd_micro": None},
        {"usd_micro": 1, "usd": "1"},
        {"calls": 1},
        {"receipts": 1},
        {"concurrency": 1},
        {"duration_ms": 1},
    ],
)
def test_a_charge_of_another_form_is_refused(amounts):
    with pytest.raises(BudgetError):
        read_amounts(amounts)
