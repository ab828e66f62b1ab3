"""Tokens: shown once, kept as a digest, good for what they say and as long as they are not revoked; and how often they may ask."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notary.errors import NotaryError
from notary.limits import Rate
from notary.tokens import Scope, Tokens


def test_a_token_is_good_for_what_it_says(tmp_path):
    tokens = Tokens(tmp_path / "tokens.json")
    everything = tokens.check(tokens.issue())
    assert everything.scopes == set(Scope)
    assert everything.covers("any.example/origin")
    narrow = tokens.check(tokens.issue(scopes=[Scope.NOTARIZE], origins=["a.example/x"]))
    assert narrow.scopes == {Scope.NOTARIZE}
    assert narrow.covers("a.example/x")
    assert not narrow.covers("a.example/y")
    assert not narrow.covers("a.example/")


def test_no_token_is_kept(tmp_path):
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.issue()
    assert re.fullmatch(r"rln_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", token)
    kept = (tmp_path / "tokens.json").read_text()
    assert token[21:] not in kept
    assert (tmp_path / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert [each.id for each in tokens.listed()] == [token[4:20]]


def test_a_token_with_one_character_changed_is_unknown(tmp_path):
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.issue()
    assert tokens.check(token) is not None
    for at in range(len(token)):
        other = "A" if token[at] != "A" else "B"
        assert tokens.check(token[:at] + other + token[at + 1 :]) is None
    for wrong in ("", token[:-1], token + "A", token + "\n", " " + token, token.upper(), "rln_", "\udcff", "é" * 64):
        assert tokens.check(wrong) is None


def test_another_process_sees_new_and_revoked_tokens_at_once(tmp_path):
    path = tmp_path / "tokens.json"
    serving, operator = Tokens(path), Tokens(path)
    first, second = operator.issue(), operator.issue()
    assert serving.check(first) is not None
    operator.revoke(first[4:20])
    assert serving.check(first) is None
    assert serving.check(second) is not None
    with pytest.raises(NotaryError) as raised:
        operator.revoke(first[4:20])
    assert raised.value.code == "token.unknown"
    path.unlink()
    assert serving.check(second) is None


def test_a_token_file_that_is_not_one_lets_nobody_in(tmp_path):
    path = tmp_path / "tokens.json"
    tokens = Tokens(path)
    token = tokens.issue()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(NotaryError) as raised:
        tokens.check(token)
    assert raised.value.code == "notary.tokens"


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 50))
def test_nobody_asks_more_often_than_allowed(pauses_ms, burst, per_second):
    rate, now, allowed = Rate(per_second, burst), 0, []
    for pause in pauses_ms:
        now += pause
        if rate.take("one", at_ms=now) == 0:
            allowed.append(now)
    for begin, end in ((a, b) for a in range(len(allowed)) for b in range(a, len(allowed))):
        span_s = (allowed[end] - allowed[begin]) / 1000
        assert end - begin + 1 <= burst + per_second * span_s + 1e-6
    assert allowed[: min(burst, len(pauses_ms))]


def test_those_who_wait_as_long_as_they_are_told_are_let_through():
    rate = Rate(0.5, 1)
    assert rate.take("one", at_ms=0) == 0
    wait_s = rate.take("one", at_ms=1)
    assert wait_s == 2
    assert rate.take("one", at_ms=1 + wait_s * 1000) == 0
    assert rate.take("two", at_ms=1) == 0
