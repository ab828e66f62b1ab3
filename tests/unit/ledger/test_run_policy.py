"""Policies while a run goes on: what is denied, waits, or is only observed, and that a verifier agrees."""

from __future__ import annotations

import json

import pytest

from cli.rules import sources_of
from ledger import Blocked, Ledger
from ledger.receipt import parse_receipt
from ledger.rules.errors import PolicyError
from ledger.storage.places import Places
from verify.chain import Segment
from verify.ledger import verify_ledger


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state"))))


def rules(ledger):
    segments = [Segment(*each) for each in ledger.journal()]
    verdict = verify_ledger(segments, trust=None, sources=sources_of(ledger.folder, None))
    return next(check for check in verdict.checks if check.name == "rules")


def receipts(ledger, kind):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [receipt for receipt in found if receipt.kind == kind]


def ours(**members):
    return json.dumps({"schema": "receipt-ledger.policy/v1", "level": "act-within-policy", **members}).encode()


def test_a_denied_act_does_not_run_and_one_that_is_allowed_does(ledger):
    policy = ours(tools={"deny": [{"name": "shell", "arguments": {"command": "rm*"}}]})
    with ledger.run("work", policy=policy) as run:
        with pytest.raises(Blocked) as blocked, run.call("shell", arguments={"command": "rm -r x"}):
            pass
        with run.call("shell", arguments={"command": "ls"}):
            pass
    assert blocked.value.code == "policy.denied"
    decision = receipts(ledger, "decision")[0]
    assert (decision.status, decision.reason, decision.rule) == ("denied", "policy.denied", "tools.deny[0]")
    assert decision.policy == receipts(ledger, "intent")[0].policy == receipts(ledger, "opening")[0].policy
    assert rules(ledger).status == "ok"


def test_a_call_without_arguments_says_so_where_a_policy_looks_at_them(ledger):
    policy = ours(tools={"deny": [{"name": "shell", "arguments": {"command": "rm*"}}]})
    with ledger.run("work", policy=policy) as run, run.call("shell"):
        pass
    intent = receipts(ledger, "intent")[0]
    assert ledger.artifact(intent.artifacts[0]) == b"{}"
    assert rules(ledger).status == "ok"


def test_an_act_that_needs_an_approval_waits(ledger):
    policy = ours(level="act-with-approval", approval={"roles": ["ops"]})
    with ledger.run("work", policy=policy) as run, pytest.raises(Blocked), run.call("pay", access="write"):
        pass
    decision = receipts(ledger, "decision")[0]
    assert (decision.status, decision.roles, decision.needed) == ("waiting", ("ops",), 1)
    assert rules(ledger).status == "ok"


def test_a_policy_that_only_observes_says_what_it_would_have_done(ledger):
    with ledger.run("work", policy=ours(mode="observe", tools={"deny": [{"name": "pay"}]})) as run, run.call("pay"):
        pass
    said = receipts(ledger, "intent")[0].would_have
    assert (said.status, said.reason) == ("denied", "policy.denied")
    assert rules(ledger).status == "ok"


def test_a_child_run_is_under_the_policy_above_and_may_only_narrow_it(ledger):
    policy = ours(tools={"deny": [{"name": "pay"}]})
    with ledger.run("work", policy=policy) as run, run.call("plan") as call:
        with pytest.raises(PolicyError):
            call.run("wider", policy=ours())
        with call.run("inner") as inner, pytest.raises(Blocked), inner.call("pay"):
            pass
    assert rules(ledger).status == "ok"


@pytest.mark.parametrize("policy", [b"{", b'{"policy":{"level":"observe","surprise":1}}', ours(level="all")])
def test_a_document_that_is_no_policy_is_refused_before_anything_is_recorded(ledger, policy):
    before = ledger.head().size
    with pytest.raises(PolicyError):
        ledger.run("work", policy=policy)
    assert ledger.head().size == before
