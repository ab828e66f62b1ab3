"""`ledger grant` as processes: what is given stands until it is taken back, and an agent that comes in by the hook is held to it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.test_approve import PROGRAM, Person

TERMS = {"schema": "receipt-ledger.terms/v1", "when": {"amount": {"le": 300}}}


@pytest.fixture
def owner(tmp_path):
    owner = Person(tmp_path / "owner")
    owner("init")
    return owner


def give(owner, *words):
    return json.loads(owner("--json", "grant", "give", *words))


def listed(owner, *words):
    return {each["grant"]: each for each in json.loads(owner("--json", "grant", "list", *words))}


def test_what_is_given_is_listed_with_its_terms_and_the_ledger_verifies(owner, tmp_path):
    (tmp_path / "terms.json").write_text(json.dumps(TERMS, indent=2))
    root = give(owner, "lead", "--act", "refund", "--act", "db.*", "--limit", "usd=5.00", "--period", "a:b:day:usd=1")
    leaf = json.loads(
        owner("--json", "grant", "narrow", root["grant"][7:19], "bot", "--act", "refund", "--mandate", "head of support",
              "--terms", tmp_path / "terms.json", "--expires", "30d")
    )  # fmt: skip
    assert (root["acts"], root["limits"]) == (["refund", "db.*"], [{"limit": 5_000_000, "meter": "usd_micro"}])
    assert root["periods"] == [{"account": "a:b", "limit": 1_000_000, "meter": "usd_micro", "period": "day"}]
    assert (leaf["parent"], leaf["mandate"], leaf["grantee"]) == (root["grant"], "head of support", "bot")
    assert leaf["expires_at"] > leaf["recorded_at"]
    assert json.loads(owner("artifact", leaf["terms"])) == TERMS
    shown = json.loads(owner("--json", "artifact", leaf["terms"][7:17]))
    assert (shown["digest"], shown["name"], shown["condition"]) == (leaf["terms"], "terms", "whole")
    owner("artifact", root["grant"], code=5)
    assert listed(owner) == {root["grant"]: root, leaf["grant"]: leaf}
    text = owner("grant", "list")
    assert "5.00 USD, 1.00 USD a day of a:b" in text
    assert root["grant"][7:19] in text.splitlines()[-1]
    owner("verify")


def test_what_is_revoked_takes_what_was_narrowed_from_it_along(owner):
    root = give(owner, "lead", "--act", "refund")["grant"]
    leaf = json.loads(owner("--json", "grant", "narrow", root, "bot", "--mandate", "lead"))["grant"]
    other = give(owner, "lead", "--act", "deploy")["grant"]
    made = json.loads(owner("--json", "grant", "revoke", root[7:17]))
    assert made["revoked"] == root
    assert set(listed(owner)) == {other}
    states = {id_: each["state"] for id_, each in listed(owner, "--all").items()}
    assert states == {root: "revoked", leaf: "revoked", other: "stands"}
    owner("grant", "narrow", leaf, "bot", "--mandate", "lead", code=2)


def test_what_is_wider_or_outside_its_form_is_refused_by_name_and_nothing_is_recorded(owner, tmp_path):
    root = give(owner, "lead", "--act", "refund", "--limit", "usd=5.00")["grant"]
    before = owner("head")
    (tmp_path / "bad.json").write_text('{"schema": "receipt-ledger.terms/v1", "when": {"amount": {"about": 3}}}')
    for words, said in (
        (("narrow", root, "lead", "--act", "*"), "is not within those above"),
        (("narrow", root, "lead", "--limit", "usd=6.00"), "usd_micro"),
        (("narrow", root, "bot"), "names no mandate"),
        (("narrow", root, "bot", "--mandate", ""), "mandate"),
        (("give", "", "--act", "refund"), "grantee"),
        (("give", "bot", "--act", "refund", "--limit", "15m"), "duration_ms"),
        (("give", "bot", "--act", "refund", "--limit", "usd=5:soft=1"), "soft"),
        (("give", "bot", "--act", "refund", "--limit", "usd=1", "--limit", "usd=2"), "usd"),
        (("give", "bot", "--act", "refund", "--period", "day:usd=5"), "ACCOUNT:PERIOD:METER=N"),
        (("give", "bot", "--act", "refund", "--period", "acme:year:usd=5"), "day, week, month"),
        (("give", "bot", "--act", "refund", "--period", "acme:day:usd=x"), "usd"),
        (("give", "bot", "--act", "refund", "--expires", "soon"), "--expires"),
        (("give", "bot", "--act", "refund", "--terms", tmp_path / "bad.json"), "about"),
        (("give", "bot", "--act", "refund", "--terms", tmp_path / "none.json"), "none.json"),
        (("give", "bot"), "--act"),
    ):
        assert said in owner("grant", *words, code=2), words
    owner("grant", "revoke", "deadbeef00", code=5)
    owner("grant", "revoke", json.loads(owner("--json", "log", "--entries"))[0]["receipt"], code=2)
    assert owner("head") == before


def test_an_agent_that_comes_in_by_the_hook_is_held_to_the_grant_that_is_named_by_its_first_digits(owner):
    grant = give(owner, "bot", "--act", "Read")["grant"]

    def hook(tool):
        event = {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "tool_name": tool,
            "tool_input": {},
            "tool_use_id": tool,
        }
        return subprocess.run(
            [*PROGRAM, "hook", "--agent", "bot", "--grant", grant[7:19]],
            cwd=owner.home, env=owner.environment, input=json.dumps(event), capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert hook("Read").returncode == 0
    refused = hook("Bash")
    assert refused.returncode == 2
    assert "grant.not_covered" in refused.stdout + refused.stderr
    owner("grant", "revoke", grant)
    assert hook("Read").returncode == 2


def test_a_ledger_that_is_somebody_elses_is_listed_and_not_written(owner, tmp_path):
    grant = give(owner, "bot", "--act", "refund")["grant"]
    stranger = Person(tmp_path / "stranger")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (owner.home / ".ledger").rglob("*"))
    assert set(listed(stranger, "-L", owner.home / ".ledger")) == {grant}
    assert sorted((path.name, path.stat().st_mtime_ns) for path in (owner.home / ".ledger").rglob("*")) == before
