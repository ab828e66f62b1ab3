"""`ledger grant`: what is given stands until it is taken back, and an agent that comes in by the hook is held to it."""

from __future__ import annotations

import json

import pytest

from tests.reference.people import Person
from tests.reference.shell import User

TERMS = {"schema": "receipt-ledger.terms/v1", "when": {"amount": {"le": 300}}}


@pytest.fixture
def owner(tmp_path):
    owner = Person(tmp_path / "owner")
    assert owner("init").exit == 0
    return owner


def said(person, *words):
    """Return what a command that has to work says as JSON."""
    done = person("--json", *words)
    assert done.exit == 0, done.err
    return done.json


def give(person, *words):
    return said(person, "grant", "give", *words)


def narrow(person, *words):
    return said(person, "grant", "narrow", *words)


def states(person, *words):
    return {each["grant"]: each["state"] for each in said(person, "grant", "list", *words)}


def test_what_is_given_is_listed_with_its_terms_and_the_ledger_verifies(owner, tmp_path):
    (tmp_path / "terms.json").write_text(json.dumps(TERMS, indent=2))
    root = give(owner, "lead", "--act", "refund", "--act", "db.*", "--limit", "usd=5.00", "--period", "a:b:day:usd=1")
    terms = ("--terms", tmp_path / "terms.json", "--expires", "30d", "--mandate", "head of support")
    leaf = narrow(owner, root["grant"][7:19], "bot", "--act", "refund", *terms)
    assert (root["acts"], root["limits"]) == (["refund", "db.*"], [{"limit": 5_000_000, "meter": "usd_micro"}])
    assert root["periods"] == [{"account": "a:b", "limit": 1_000_000, "meter": "usd_micro", "period": "day"}]
    assert (leaf["parent"], leaf["mandate"], leaf["grantee"]) == (root["grant"], "head of support", "bot")
    assert leaf["expires_at"] > leaf["recorded_at"]
    assert said(owner, "grant", "list") == [root, leaf]
    text = owner("grant", "list").out
    assert "5.00 USD, 1.00 USD a day of a:b" in text
    assert root["grant"][7:19] in text.splitlines()[-1]
    assert owner("verify").exit == 0


def test_documents_that_receipts_name_are_written_by_their_digest(owner, tmp_path):
    (tmp_path / "terms.json").write_text(json.dumps(TERMS, indent=2))
    given = give(owner, "lead", "--act", "refund", "--terms", tmp_path / "terms.json")
    assert json.loads(owner("artifact", given["terms"]).out) == TERMS
    shown = said(owner, "artifact", given["terms"][7:17])
    assert (shown["digest"], shown["name"], shown["condition"]) == (given["terms"], "terms", "whole")
    held = said(owner, "hold", "add", given["terms"][7:17])
    assert held["digest"] == given["terms"]
    assert owner("erase", given["terms"], "--reason", "request").exit == 2
    assert owner("hold", "release", held["hold"]).exit == 0
    assert owner("erase", given["terms"][7:17], "--reason", "request").exit == 0
    gone = owner("artifact", given["terms"])
    assert (gone.exit, "erased by receipt" in gone.err) == (5, True), gone.err
    assert owner("artifact", given["grant"]).exit == 5
    assert owner("artifact", "sha256:" + "0" * 64).exit == 5


def test_what_is_revoked_takes_what_was_narrowed_from_it_along(owner):
    root = give(owner, "lead", "--act", "refund")["grant"]
    leaf = narrow(owner, root, "bot", "--mandate", "lead")["grant"]
    other = give(owner, "lead", "--act", "deploy")["grant"]
    assert said(owner, "grant", "revoke", root[7:17])["revoked"] == root
    assert states(owner) == {other: "stands"}
    assert states(owner, "--all") == {root: "revoked", leaf: "revoked", other: "stands"}
    assert owner("grant", "narrow", leaf, "bot", "--mandate", "lead").exit == 2
    assert said(owner, "grant", "revoke", other)["revoked"] == other
    assert owner("grant", "list").err == "no grant stands\n"


def test_what_is_wider_or_outside_its_form_is_refused_by_name_and_nothing_is_recorded(owner, tmp_path):
    root = give(owner, "lead", "--act", "refund", "--limit", "usd=5.00")["grant"]
    before = owner("head").out
    (tmp_path / "bad.json").write_text('{"schema": "receipt-ledger.terms/v1", "when": {"amount": {"about": 3}}}')
    for words, why in (
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
        (("give", "bot", "--act", "refund", "--period", "acme:day:usd=5:soft=1"), "ACCOUNT:PERIOD:METER=N"),
        (("give", "bot", "--act", "refund", "--expires", "soon"), "--expires"),
        (("give", "bot", "--act", "refund", "--terms", tmp_path / "bad.json"), "about"),
        (("give", "bot", "--act", "refund", "--terms", tmp_path / "none.json"), "No such file"),
        (("give", "bot"), "--act"),
    ):
        done = owner("grant", *words)
        assert (done.exit, why in done.err) == (2, True), (words, done.err)
    assert owner("grant", "revoke", "deadbeef00").exit == 5
    assert owner("grant", "revoke", said(owner, "log", "--entries")[0]["receipt"]).exit == 2
    assert owner("head").out == before


def test_an_agent_that_comes_in_by_the_hook_is_held_to_the_grant_that_is_named_by_its_first_digits(tmp_path):
    user = User(tmp_path)
    assert user("init").exit == 0
    grant = give(user, "bot", "--act", "Read")["grant"]

    def hook(tool):
        event = {"event": "before", "session": "s", "name": tool, "arguments": {}}
        return user("hook", "--agent", "bot", "--grant", grant[7:19], stdin=json.dumps(event).encode())

    assert hook("Read").exit == 0
    assert (hook("Bash").exit, hook("Bash").json["reason"]) == (2, "grant.not_covered")
    assert user("grant", "revoke", grant).exit == 0
    assert (hook("Read").exit, hook("Read").json["reason"]) == (2, "grant.revoked")


def test_a_ledger_that_is_somebody_elses_is_listed_and_not_written(owner, tmp_path):
    grant = give(owner, "bot", "--act", "refund")["grant"]
    folder = owner.home / ".ledger"
    before = sorted((path.name, path.stat().st_mtime_ns) for path in folder.rglob("*"))
    assert states(Person(tmp_path / "stranger"), "-L", folder) == {grant: "stands"}
    assert sorted((path.name, path.stat().st_mtime_ns) for path in folder.rglob("*")) == before
