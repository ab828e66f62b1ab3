"""Authority while a run goes on: what is refused, and that a verifier agrees each time."""

from __future__ import annotations

import pytest

from cli.rules import sources_of
from ledger import Blocked, Ledger, Limit, PeriodLimit, Waiting, give, narrow, revoke
from ledger.errors import AdmissionError
from ledger.receipt import parse_receipt
from ledger.rules.errors import BudgetError, GrantError
from ledger.rules.instant import time_after
from ledger.storage.clock import now
from ledger.storage.places import Places
from ledger.words import Period
from tests.reference.approvers import answer, person, trusting
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.rules import RuleSources

ADA, BOB, EVE = person("ada", 1, ("finance",)), person("bob", 2, ("finance",)), person("eve", 3, ("security",))


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


def pay(run, amount=None, name="refund", grant=None, **options):
    reserve = {} if amount is None else {"reserve": {"usd_micro": amount}}
    with run.call(name, grant=grant, **reserve, **options) as call:
        pass
    return call.intent


def refused(run, reason, *given, **options):
    with pytest.raises(Blocked) as blocked:
        pay(run, *given, **options)
    assert blocked.value.reason == reason
    return blocked.value


def acme(limit, period="day"):
    return [PeriodLimit(account="acme", meter="usd_micro", period=Period(period), limit=limit)]


def test_an_ambiguous_act_under_a_grant_is_resolved_once_and_gives_back_what_it_held(ledger):
    grant = give(ledger, "bot", acts=["refund"], limits=[Limit(meter="usd_micro", limit=100)])
    with ledger.run("r", actor="bot", grant=grant) as run:
        with pytest.raises(ZeroDivisionError), run.call("refund", reserve={"usd_micro": 100}) as call:
            _ = 1 // 0
        refused(run, "grant.limit", 1)
        ledger.resolve(call.intent, happened=False, resolved_by="ann")
        with pytest.raises(AdmissionError, match="resolved already"):
            ledger.resolve(call.intent, happened=False, resolved_by="ann")
        good = pay(run, 100)
        with pytest.raises(AdmissionError, match="committed"):
            ledger.resolve(good, happened=False, resolved_by="ann")
    assert rules(ledger) == "ok"


def test_an_act_that_its_grant_covers_names_it_and_one_that_it_does_not_is_denied(ledger):
    grant = give(ledger, "bot", acts=["refund"])
    with ledger.run("work", actor="bot", grant=grant) as run:
        pay(run)
        refused(run, "grant.not_covered", name="pay")
    assert receipts(ledger, "intent")[0].grant == grant
    decision = receipts(ledger, "decision")[0]
    assert (decision.status, decision.grant) == ("denied", grant)
    assert rules(ledger) == "ok"


def test_conditions_look_at_inline_arguments(ledger):
    grant = give(ledger, "bot", acts=["refund"], when={"amount": {"le": 5}})
    with ledger.run("work", actor="bot", grant=grant) as run:
        pay(run, arguments={"amount": 5}, inline=("amount",))
        refused(run, "grant.not_covered", arguments={"amount": 6}, inline=("amount",))
        refused(run, "grant.not_covered", arguments={"amount": 5})
    assert rules(ledger) == "ok"


def test_a_run_acts_under_a_grant_that_is_for_its_agent_and_stands(ledger):
    grant = give(ledger, "bot", acts=["refund"])
    size = ledger.head().size
    for members in ({"actor": "other", "grant": grant}, {"actor": "bot", "grant": "sha256:" + "0" * 64}):
        with pytest.raises(Blocked):
            ledger.run("work", **members)
    revoke(ledger, grant)
    with pytest.raises(Blocked) as blocked:
        ledger.run("work", actor="bot", grant=grant)
    assert (blocked.value.reason, ledger.head().size) == ("grant.revoked", size + 1)


def test_a_widened_delegation_is_refused_and_records_nothing(ledger):
    root = give(ledger, "bot", acts=["refund"], limits=[Limit(meter="usd_micro", limit=10)], periods=acme(10))
    size = ledger.head().size
    for members, code in (
        ({"acts": ["refund", "pay"]}, "grant.widened"),
        ({"limits": [Limit(meter="usd_micro", limit=11)]}, "grant.widened"),
        ({"periods": acme(11)}, "grant.widened"),
    ):
        with pytest.raises(GrantError) as wrong:
            narrow(ledger, root, "bot", **members)
        assert wrong.value.code == code
    with pytest.raises(GrantError) as wrong:
        narrow(ledger, root, "other")
    assert wrong.value.code == "grant.unmandated"
    assert ledger.head().size == size
    narrow(ledger, root, "other", acts=["refund"], limits=[Limit(meter="usd_micro", limit=10)], mandate="deputy")
    assert rules(ledger) == "ok"


@pytest.mark.parametrize(
    "members",
    [
        {"limits": [Limit(meter="duration_ms", limit=1)]},
        {"limits": [Limit(meter="receipts", limit=1)]},
        {"limits": [Limit(meter="usd_micro", limit=2, soft=1)]},
        {"limits": [Limit(meter="apples", limit=2)]},
        {"periods": [PeriodLimit(account="a", meter="depth", period=Period.DAY, limit=1)]},
        {"periods": [*acme(1), *acme(2)]},
    ],
)
def test_a_limit_that_no_grant_can_hold_is_refused(ledger, members):
    with pytest.raises(BudgetError):
        give(ledger, "bot", acts=["refund"], **members)


def test_a_revoked_grant_admits_nothing_more(ledger):
    root = give(ledger, "bot", acts=["refund"])
    leaf = narrow(ledger, root, "bot")
    with ledger.run("work", actor="bot", grant=root) as run:
        pay(run, grant=leaf)
        revoke(ledger, leaf)
        refused(run, "grant.revoked", grant=leaf)
        pay(run)
        revoke(ledger, root)
        refused(run, "grant.revoked")
    with pytest.raises(GrantError):
        narrow(ledger, root, "bot")
    with pytest.raises(GrantError):
        revoke(ledger, "sha256:" + "0" * 64)
    assert rules(ledger) == "ok"


def test_a_grant_is_not_used_in_its_last_second_and_not_after_it(ledger):
    for ms, reason in ((60_000, None), (900, "grant.expired")):
        grant = give(ledger, "bot", acts=["refund"], expires_at=time_after(now(), 60_000))
        late = give(ledger, "bot", acts=["refund"], expires_at=time_after(now(), ms))
        with ledger.run("work", actor="bot", grant=grant) as run:
            pay(run)
        if reason is not None:
            with pytest.raises(Blocked) as blocked:
                ledger.run("work", actor="bot", grant=late)
            assert blocked.value.reason == reason
    assert rules(ledger) == "ok"


def test_another_grant_than_that_of_the_run_is_refused(ledger):
    mine, theirs = (give(ledger, "bot", acts=["refund"]) for _ in range(2))
    with ledger.run("work", actor="bot", grant=mine) as run:
        refused(run, "grant.missing", grant=theirs)
    with ledger.run("work", actor="other") as run:
        refused(run, "grant.missing", grant=theirs)
    assert rules(ledger) == "ok"


def test_a_child_run_acts_under_the_grant_of_its_parent(ledger):
    root = give(ledger, "bot", acts=["refund"])
    leaf = narrow(ledger, root, "bot", acts=[])
    other = give(ledger, "bot", acts=["refund"])
    with ledger.run("work", actor="bot", grant=root) as run, run.call("refund") as call:
        with call.run("inner", actor="bot") as inner:
            assert inner.opening.grant == root
            pay(inner)
        with call.run("narrower", actor="bot", grant=leaf) as inner:
            refused(inner, "grant.not_covered")
        with pytest.raises(Blocked):
            call.run("beside", actor="bot", grant=other)
    assert rules(ledger) == "ok"


# Limits.


def test_limits_of_grants_hold_across_runs_and_say_their_amounts(ledger):
    grant = give(ledger, "bot", acts=["refund"], limits=[Limit(meter="usd_micro", limit=100)])
    for _ in range(2):
        with ledger.run("work", actor="bot", grant=grant) as run:
            pay(run, 40)
    with ledger.run("work", actor="bot", grant=grant) as run:
        blocked = refused(run, "grant.limit", 21)
        refused(run, "budget.price_unknown")
        pay(run, 20)
    decision = receipts(ledger, "decision")[0]
    assert (decision.status, decision.meter, decision.limit, decision.spent, decision.asked) == (
        "blocked",
        "usd_micro",
        100,
        80,
        21,
    )
    assert blocked.refused is not None
    assert rules(ledger) == "ok"


def test_what_an_act_really_cost_counts_against_the_grant(ledger):
    grant = give(ledger, "bot", acts=["refund"], limits=[Limit(meter="usd_micro", limit=100)])
    with ledger.run("work", actor="bot", grant=grant) as run:
        with run.call("refund", reserve={"usd_micro": 60}) as call:
            call.use("usd_micro", 10)
        pay(run, 90)
    assert rules(ledger) == "ok"


def test_a_run_with_a_budget_of_its_own_is_held_to_both(ledger):
    grant = give(ledger, "bot", acts=["refund"], periods=acme(100))
    with ledger.run("work", actor="bot", grant=grant, budget={"usd": "0.00005"}) as run:
        pay(run, 40)
        refused(run, "budget.limit", 20)
    with ledger.run("work", actor="bot", grant=grant, budget={"usd": "0.0005"}) as run:
        refused(run, "grant.period", 61)
        pay(run, 60)
    assert rules(ledger) == "ok"


def test_grants_of_one_account_spend_together_and_another_process_knows(ledger):
    first, second = (give(ledger, "bot", acts=["refund"], periods=acme(100, "month")) for _ in range(2))
    with ledger.run("work", actor="bot", grant=first) as run:
        pay(run, 70)
    other = Ledger.open(ledger.folder, places=ledger.places)
    with other.run("work", actor="bot", grant=second) as run:
        blocked = refused(run, "grant.period", 31)
        pay(run, 30)
    assert "'acme', month of" in str(blocked)
    assert rules(ledger) == "ok"


# Separation of duties.


def test_an_act_runs_on_approvals_that_keep_the_duties_apart_whoever_answers_first(ledger):
    grant = give(ledger, "bot", acts=["refund"], approvals={"finance": 1, "security": 1})
    people = trusting(ADA, BOB, EVE)
    with ledger.run("work", actor="bot", grant=grant, approvers=people) as run:
        with pytest.raises(Waiting) as waiting:
            pay(run)
        request = waiting.value.request
        assert parse_receipt(ledger.get(request).envelope.payload).needed == 2
        for who in (ADA, BOB):
            answer(ledger, request, who)
            with pytest.raises(Waiting) as again:
                pay(run)
            assert again.value.request == request
        answer(ledger, request, EVE)
        pay(run)
        assert len(receipts(ledger, "decision")) == 1
    assert rules(ledger, ADA, BOB, EVE) == "ok"
