"""Approvals while a run goes on: what waits, what an answer covers, and that a verifier agrees each time."""

from __future__ import annotations

import json

import pytest

from cli.rules import sources_of
from ledger import Blocked, Ledger, Limit, Waiting
from ledger.errors import AdmissionError
from ledger.receipt import parse_receipt
from ledger.rules.instant import time_after
from ledger.storage.clock import now
from ledger.storage.places import Places
from tests.reference.approvers import LATER, answer, person, stand, states, trusting
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.rules import RuleSources

ANN, BOB, EVE = person("ann", 1), person("bob", 2), person("eve", 3, ("guest",))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state"))))


def rules(ledger, *people):
    sources = sources_of(ledger.folder, None)
    given = RuleSources(trusting(*people), sources.document_of, sources.arguments_of)
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None, sources=given)
    check = next(check for check in verdict.checks if check.name == "rules")
    return check.code or check.status


def receipts(ledger, kind):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [receipt for receipt in found if receipt.kind == kind]


def asks(needed=1, roles=("ops",), **members):
    policy = {"schema": "receipt-ledger.policy/v1", "level": "act-with-approval", **members}
    return json.dumps({**policy, "approval": {"roles": list(roles), "needed": needed, "expires_ms": 60_000}}).encode()


def waits(run, name="pay", **options):
    with pytest.raises(Waiting) as waiting, run.call(name, access="write", **options):
        pytest.fail("it ran")
    return waiting.value.request


def runs(run, name="pay", **options):
    with run.call(name, access="write", **options) as call:
        pass
    return call.intent


def test_an_act_runs_once_its_approval_is_there_in_the_process_that_waited_and_in_another(ledger):
    with (
        pytest.raises(Waiting),
        ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run,
        run.call("pay", access="write", arguments={"to": "x"}),
    ):
        pytest.fail("it ran")
    assert [each.id for each in ledger.open_runs()] == [run.id]
    request = receipts(ledger, "decision")[0]
    assert (request.status, request.roles, request.needed) == ("waiting", ("ops",), 1)
    assert request.expires_at > request.issued_at
    id_ = next(iter(states(ledger, run.id, ANN)))
    given = answer(ledger, id_, ANN)
    with ledger.resume(run.id, approvers=trusting(ANN)) as again:
        runs(again, arguments={"to": "x"})
    assert receipts(ledger, "intent")[0].approvals == (given,)
    assert states(ledger, run.id, ANN) == {id_: "consumed"}
    assert rules(ledger, ANN) == "ok"


def test_asking_again_while_it_waits_records_nothing_more(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        first = waits(run)
        assert waits(run) == first
        assert len(receipts(ledger, "decision")) == 1


def test_a_changed_act_and_a_changed_state_need_an_approval_of_their_own(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        first = waits(run, arguments={"amount": 1})
        answer(ledger, first, ANN)
        assert waits(run, arguments={"amount": 2}) != first
        assert waits(run, arguments={"amount": 1}, precondition="sha256:" + "1" * 64) != first
        runs(run, arguments={"amount": 1})
    assert rules(ledger, ANN) == "ok"


def test_an_approval_covers_one_act_once(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        first = waits(run)
        answer(ledger, first, ANN)
        runs(run)
        second = waits(run)
        assert second != first
        with pytest.raises(AdmissionError) as used:
            answer(ledger, first, ANN, "denied")
        assert used.value.code == "approval.reused"
    assert rules(ledger, ANN) == "ok"


@pytest.mark.parametrize(
    ("by", "people"),
    [(EVE, (ANN, EVE)), (BOB, (ANN,)), (person("ann", 9), (ANN,))],
    ids=["another role", "nobody pinned", "another key"],
)
def test_an_answer_of_somebody_else_does_not_count(ledger, by, people):
    with ledger.run("work", policy=asks(), approvers=trusting(*people)) as run:
        request = waits(run)
        answer(ledger, request, by, role="ops")
        assert waits(run) == request
    assert rules(ledger, *people) == "ok"


def test_neither_the_agent_nor_the_runs_issuer_nor_the_log_approves_whatever_trust_says(ledger):
    keys = ledger._secret()
    owner = person(ledger.issuer.name, 1)
    owner = type(owner)(owner.name, keys.issuer)
    log = type(owner)("log", keys.log)
    agent = person("bot", 4)
    people = (owner, log, agent)
    with ledger.run("work", actor="bot", policy=asks(), approvers=trusting(*people)) as run:
        request = waits(run)
        for each in people:
            answer(ledger, request, each)
            assert waits(run) == request
    assert rules(ledger, *people) == "ok"


def test_two_of_three_are_two_keys(ledger):
    people = ANN, BOB, person("cid", 5)
    with ledger.run("work", policy=asks(2), approvers=trusting(*people)) as run:
        request = waits(run)
        answer(ledger, request, ANN)
        answer(ledger, request, ANN)
        assert waits(run) == request
        answer(ledger, request, BOB)
        runs(run)
    assert len(receipts(ledger, "intent")[0].approvals) == 2
    assert rules(ledger, *people) == "ok"


def test_a_denial_stands_until_its_own_approver_takes_it_back(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN, BOB)) as run:
        request = waits(run)
        answer(ledger, request, ANN, "denied")
        answer(ledger, request, BOB)
        with pytest.raises(Blocked) as denied, run.call("pay", access="write"):
            pytest.fail("it ran")
        assert denied.value.code == "approval.denied"
        answer(ledger, request, ANN)
        runs(run)
    assert [each.status for each in receipts(ledger, "decision")] == ["waiting", "denied"]
    assert rules(ledger, ANN, BOB) == "ok"


def test_what_has_expired_does_not_count_and_a_late_answer_is_refused(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        request = waits(run)
        with pytest.raises(AdmissionError) as late:
            answer(ledger, request, ANN, expires_at=now())
        assert late.value.code == "approval.expired"
        answer(ledger, request, ANN, expires_at=now(), checked=False)
        assert waits(run) == request
    assert rules(ledger, ANN) == "ok"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("act_digest", "sha256:" + "2" * 64),
        ("run", "sha256:" + "2" * 64),
        ("precondition", "sha256:" + "2" * 64),
        ("policy", "sha256:" + "2" * 64),
        ("uses", 2),
        ("pattern", "*"),
        ("role", "guest"),
    ],
)
def test_an_answer_that_names_anything_else_is_not_taken(ledger, member, value):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        request = waits(run)
        size = ledger.head().size
        with pytest.raises(AdmissionError) as refused:
            answer(ledger, request, ANN, changed={member: value})
        assert (refused.value.code, ledger.head().size) == ("approval.mismatch", size)
        answer(ledger, request, ANN, checked=False, changed={member: value})
        assert waits(run) == request
    assert rules(ledger, ANN) == "ok"


def test_an_answer_to_nothing_that_waits_is_refused(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        request = waits(run)
        with pytest.raises(AdmissionError) as refused:
            answer(ledger, request, ANN, changed={"request": run.id})
    assert refused.value.code == "approval.unknown"


def test_a_standing_approval_covers_so_many_acts_by_pattern_and_each_names_it(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        given = stand(ledger, ANN, "pay*", 2)
        runs(run, "pay_small")
        waits(run, "refund")
        runs(run, "pay_large")
        waits(run, "pay_small")
    assert [each.approvals for each in receipts(ledger, "intent")] == [(given,), (given,)]
    assert rules(ledger, ANN) == "ok"


def test_a_standing_approval_of_one_run_holds_in_no_other_and_what_is_always_asked_is_not_covered(ledger):
    with ledger.run("first", policy=asks(), approvers=trusting(ANN)) as first:
        stand(ledger, ANN, "*", 5, run=first.id)
        runs(first)
    always = asks(always_ask=[{"name": "wire"}])
    with ledger.run("second", policy=always, approvers=trusting(ANN)) as second:
        waits(second)
        stand(ledger, ANN, "*", 5)
        runs(second)
        waits(second, "wire")
    assert rules(ledger, ANN) == "ok"


def test_a_soft_limit_asks_and_the_hard_one_refuses_whatever_is_approved(ledger):
    limit = Limit(meter="usd_micro", limit=1_000, soft=500)
    with ledger.run("work", limits=[limit], approvers=trusting(ANN)) as run:
        runs(run, reserve={"usd_micro": 500})
        request = waits(run, "more", reserve={"usd_micro": 300})
        decision = receipts(ledger, "decision")[-1]
        assert (decision.meter, decision.limit, decision.spent, decision.reserved, decision.asked) == (
            "usd_micro",
            500,
            500,
            0,
            300,
        )
        answer(ledger, request, ANN)
        runs(run, "more", reserve={"usd_micro": 300})
        with pytest.raises(Blocked) as blocked, run.call("most", access="write", reserve={"usd_micro": 300}):
            pytest.fail("it ran")
        assert blocked.value.code == "budget.limit"
    assert rules(ledger, ANN) == "ok"


def test_the_caller_may_ask_without_a_policy(ledger):
    with ledger.run("work", approvers=trusting(ANN)) as run:
        request = waits(run, ask=["ops"])
        answer(ledger, request, ANN)
        runs(run, ask=["ops"])
    assert rules(ledger, ANN) == "ok"


def test_approval_effect_and_budget_are_used_up_together_or_not_at_all(ledger):
    with ledger.run("work", policy=asks(), budget={"usd_micro": 100}, approvers=trusting(ANN)) as run:
        request = waits(run, effect_key="pay:1", reserve={"usd_micro": 200})
        given = answer(ledger, request, ANN)
        # The limit refuses it: neither the approval nor the attempt is used.
        with (
            pytest.raises(Blocked) as blocked,
            run.call("pay", access="write", effect_key="pay:1", reserve={"usd_micro": 200}),
        ):
            pytest.fail("it ran")
        assert blocked.value.code == "budget.limit"
        assert states(ledger, run.id, ANN)[request] == "granted"
        # The act digest does not bind what is set aside, so the same act at a price that fits goes on.
        runs(run, effect_key="pay:1", reserve={"usd_micro": 100})
    intent = receipts(ledger, "intent")[0]
    assert (intent.approvals, intent.effect.attempt) == ((given,), 1)
    assert rules(ledger, ANN) == "ok"


def test_a_run_that_is_closed_takes_no_answers(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        request = waits(run)
    with pytest.raises(AdmissionError) as closed:
        answer(ledger, request, ANN)
    assert closed.value.code == "run.closed"
    assert rules(ledger, ANN) == "ok"


def test_an_approval_that_holds_for_less_than_a_second_more_is_not_used(ledger):
    with ledger.run("work", policy=asks(), approvers=trusting(ANN)) as run:
        request = waits(run)
        answer(ledger, request, ANN, expires_at=time_after(now(), 900))
        waits(run)
        answer(ledger, request, ANN, expires_at=LATER)
        runs(run)
    assert rules(ledger, ANN) == "ok"
