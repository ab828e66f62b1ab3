"""Grants re-proved: each breach, beside the lawful chain one step away; sums of grants and of accounts by period."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ledger import receipt as kinds
from ledger.members import Charge, Limit, PeriodLimit
from ledger.rules.breach import BREACH_CODES, DOUBT_CODES
from ledger.rules.grant_terms import read_terms
from ledger.rules.replay import Replay, ReplayState
from ledger.words import Period
from tests.reference.rule_chain import Chain, approver
from tests.reference.rule_chain import charges as said

TRUST = dict([approver("ada", "finance"), approver("bob", "finance", "security"), approver("eve", "security")])


def terms(**members):
    return read_terms(json.dumps({"schema": "receipt-ledger.terms/v1", **members}).encode())


class Grants(Chain):
    """A chain that grants; its clock is given."""

    def __init__(self, *documents):
        self.clock = None
        found = {each.digest: each.data for each in documents}
        super().__init__(Replay(approvers=TRUST, document_of=found.get))
        self.header()

    @property
    def now(self):
        return self.clock or super().now

    def give(self, grantee="bot", acts=("refund",), action="given", **members):
        return self.add(kinds.Grant, action=action, grantee=grantee, acts=acts, **members)

    def narrow(self, parent, grantee="bot", acts=None, **members):
        return self.give(grantee, acts, "narrowed", parent=parent, **members)

    def revoke(self, grant):
        return self.add(kinds.Grant, action="revoked", grantee="bot", parent=grant)

    def found(self):
        assert {each.code for each in self.findings} <= {*BREACH_CODES, *DOUBT_CODES}
        return [(each.code, each.index) for each in self.findings]


def money(limit, account="acme", period="day", meter="usd_micro"):
    return (PeriodLimit(account=account, meter=meter, period=Period(period), limit=limit),)


def test_an_act_names_the_grant_that_covers_it():
    made = Grants()
    grant = made.give()
    run = made.opening(grant=grant)
    made.intent(run, grant=grant)
    assert made.codes() == []
    made.intent(run)
    assert made.codes() == ["grant.missing"]


def test_an_act_that_no_grant_covers():
    for acts, codes in ((("refund",), []), (("pay*",), ["grant.not_covered"]), ((), ["grant.not_covered"])):
        made = Grants()
        grant = made.give(acts=acts)
        made.intent(made.opening(grant=grant), grant=grant)
        assert made.codes() == codes


def test_an_act_under_the_grant_of_another_run_or_another_actor():
    made = Grants()
    mine, theirs = made.give(), made.give()
    run = made.opening(grant=mine)
    made.intent(run, grant=theirs)
    assert made.codes() == ["grant.other"]
    made = Grants()
    theirs = made.give("somebody")
    made.opening(grant=theirs)
    made.intent(made.opening(), grant=theirs)
    assert made.codes() == ["grant.other", "grant.other"]


def test_a_grant_that_does_not_stand_before():
    made = Grants()
    absent = "sha256:" + "0" * 64
    run = made.opening(grant=absent)
    made.intent(run, grant=absent)
    made.narrow(absent)
    made.narrow(None)
    made.revoke(absent)
    assert made.codes() == ["grant.missing"] * 5


def test_a_widened_delegation_is_a_breach_where_it_stands_and_gives_nothing():
    made = Grants()
    root = made.give()
    narrowed = made.narrow(root, acts=("refund", "pay"))
    assert made.found() == [("grant.widened", 2)]
    run = made.opening(grant=root)
    below = made.narrow(narrowed, acts=("refund",))
    assert made.codes() == ["grant.widened"] * 2
    for each in (narrowed, below):
        made.intent(run, grant=each)
    made.intent(run, grant=root)
    assert made.codes() == ["grant.widened"] * 4


def test_a_delegation_to_another_actor_names_the_mandate():
    for mandate, codes in (("head of support", []), (None, ["grant.unmandated"])):
        made = Grants()
        made.narrow(made.give("ann"), "bot", mandate=mandate)
        assert made.codes() == codes


def test_a_revoked_grant_used_after_its_revocation_by_position():
    made = Grants()
    root = made.give()
    leaf = made.narrow(root)
    run = made.opening(grant=root)
    made.intent(run, grant=leaf)
    made.revoke(root)
    assert made.codes() == []
    made.intent(run, grant=leaf)
    made.narrow(root)
    made.opening(grant=root)
    assert made.codes() == ["grant.revoked"] * 3


def test_the_revocation_of_a_leaf_leaves_its_root():
    made = Grants()
    root = made.give()
    leaf = made.narrow(root)
    run = made.opening(grant=root)
    made.revoke(leaf)
    made.intent(run, grant=root)
    assert made.codes() == []
    made.intent(run, grant=leaf)
    assert made.codes() == ["grant.revoked"]


def test_a_grant_after_its_end_by_the_recorders_clock():
    for minute, codes in ((0, []), (1, ["grant.expired"])):
        made = Grants()
        grant = made.give(expires_at="2026-11-30T12:01:00.000Z")
        run = made.opening(grant=grant)
        made.minute = minute
        made.intent(run, grant=grant)
        assert made.codes() == codes


def test_a_child_run_acts_under_the_grant_of_the_run_above_or_one_narrowed_from_it():
    for name, codes in (("root", []), ("leaf", []), ("other", ["grant.other"]), (None, ["grant.missing"])):
        made = Grants()
        root = made.give()
        grants = {"root": root, "leaf": made.narrow(root), "other": made.give(), None: None}
        run = made.opening(grant=root)
        made.opening(grant=grants[name], parent_opening=run)
        assert made.codes() == codes, name


def test_terms_hold_and_what_cannot_be_read_is_a_doubt():
    small = terms(when={"amount": {"le": 5}})
    for amount, codes in ((5, []), (6, ["grant.not_covered"])):
        made = Grants(small)
        grant = made.give(conditions=small.digest)
        made.intent(made.opening(grant=grant), grant=grant, act={"arguments": {"amount": amount}})
        assert made.codes() == codes
    made = Grants()
    grant = made.give(conditions=small.digest)
    made.intent(made.opening(grant=grant), grant=grant)
    assert made.codes() == ["grant.terms_absent"]


# Separation of duties.


TWO = terms(approvals=[{"role": "finance", "needed": 1}, {"role": "security", "needed": 1}])


@pytest.mark.parametrize(
    ("voices", "codes"),
    [
        ((("ada", "finance"), ("eve", "security")), []),
        ((("ada", "finance"), ("bob", "security")), []),
        ((("ada", "finance"), ("bob", "finance")), ["grant.duties"]),
        ((("ada", "finance"),), ["approval.missing", "grant.duties"]),
        ((), ["approval.missing", "grant.duties"]),
        ((("ada", "security"), ("eve", "security")), ["approval.mismatch", "grant.duties"]),
    ],
)
def test_duties_are_kept_apart(voices, codes):
    made = Grants(TWO)
    grant = made.give(conditions=TWO.digest)
    run = made.opening(grant=grant)
    request = made.waiting(run, grant=grant, roles=("finance", "security"), needed=2)
    approvals = tuple(made.approval(request, by=by, role=role) for by, role in voices)
    made.intent(run, grant=grant, approvals=approvals)
    assert made.codes() == codes


# Limits.


def spend(made, run, grant, amount, cost=None, status="committed"):
    intent = made.intent(run, {"usd_micro": amount}, grant=grant)
    made.outcome(run, intent, {} if cost is None else {"usd_micro": cost}, status)
    return intent


@pytest.mark.parametrize(("limit", "codes"), [(100, []), (99, ["grant.overspent"])])
def test_the_limit_of_a_grant_holds_across_runs(limit, codes):
    made = Grants()
    grant = made.give(limits=(Limit(meter="usd_micro", limit=limit),))
    for _ in range(2):
        run = made.opening(grant=grant)
        spend(made, run, grant, 50)
        made.close(run)
    assert made.codes() == codes


def test_what_is_narrowed_draws_on_all_above_it():
    for amount, codes in ((50, []), (51, ["grant.overspent"])):
        made = Grants()
        root = made.give(limits=(Limit(meter="usd_micro", limit=100),))
        left, right = (made.narrow(root, limits=(Limit(meter="usd_micro", limit=80),)) for _ in range(2))
        run = made.opening(grant=root)
        spend(made, run, left, 50)
        spend(made, run, right, amount)
        assert made.codes() == codes


def test_an_act_that_failed_gives_its_share_back_and_one_that_is_ambiguous_keeps_it():
    for status, codes in (("failed", []), ("ambiguous", ["grant.overspent"]), ("committed", ["grant.overspent"])):
        made = Grants()
        grant = made.give(limits=(Limit(meter="usd_micro", limit=50),))
        run = made.opening(grant=grant)
        first = made.intent(run, {"usd_micro": 50}, grant=grant)
        made.outcome(run, first, status=status, reason="act.not_executed" if status == "failed" else None)
        made.intent(run, {"usd_micro": 50}, grant=grant)
        assert made.codes() == codes
        if status == "ambiguous":
            made = Grants()
            grant = made.give(limits=(Limit(meter="usd_micro", limit=50),))
            run = made.opening(grant=grant)
            first = made.intent(run, {"usd_micro": 50}, grant=grant)
            made.outcome(run, first, status=status)
            made.resolution(first, "did_not_happen")
            made.intent(run, {"usd_micro": 50}, grant=grant)
            assert made.codes() == []


def test_a_price_that_nobody_said_and_one_that_turned_out_higher():
    made = Grants()
    grant = made.give(limits=(Limit(meter="usd_micro", limit=50),))
    run = made.opening(grant=grant)
    made.intent(run, grant=grant)
    assert made.codes() == ["budget.unknown_price"]
    spend(made, run, grant, 40, cost=51)
    assert made.codes() == ["budget.unknown_price", "grant.overspent"]


def test_a_refusal_gives_the_amounts_of_the_receipts_before_it():
    for spent, codes in ((50, []), (40, ["grant.contradicted"])):
        made = Grants()
        grant = made.give(limits=(Limit(meter="usd_micro", limit=60),), periods=money(55))
        run = made.opening(grant=grant)
        spend(made, run, grant, 50)
        given = {"grant": grant, "meter": "usd_micro", "spent": spent, "reserved": 0, "asked": 20, "status": "blocked"}
        made.waiting(run, reason="grant.limit", limit=60, **given)
        made.waiting(run, reason="grant.period", limit=55, **given)
        assert made.codes() == codes * 2


# Periods.


@pytest.mark.parametrize(
    ("period", "first", "second", "same"),
    [
        ("day", "2026-11-30T00:00:00.000Z", "2026-11-30T23:59:59.999Z", True),
        ("day", "2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z", False),
        ("day", "2028-02-28T23:59:59.999Z", "2028-02-29T00:00:00.000Z", False),
        ("day", "2028-02-29T00:00:00.000Z", "2028-02-29T23:59:59.999Z", True),
        ("month", "2028-02-01T00:00:00.000Z", "2028-02-29T23:59:59.999Z", True),
        ("month", "2028-02-29T23:59:59.999Z", "2028-03-01T00:00:00.000Z", False),
        ("week", "2026-11-29T23:59:59.999Z", "2026-11-30T00:00:00.000Z", False),
        ("week", "2028-02-28T00:00:00.000Z", "2028-03-05T23:59:59.999Z", True),
    ],
)
def test_the_limit_of_a_period_holds_across_runs_and_counts_anew_at_its_end(period, first, second, same):
    made = Grants()
    grant = made.give(periods=money(60, period=period))
    for clock in (first, second):
        made.clock = clock
        run = made.opening(grant=grant)
        spend(made, run, grant, 40)
        made.close(run)
    assert made.codes() == (["grant.period_overspent"] if same else [])


def test_grants_that_name_one_account_spend_from_it_together():
    for account, codes in (("acme", ["grant.period_overspent"]), ("other", [])):
        made = Grants()
        for name in ("acme", account):
            grant = made.give(periods=money(60, account=name))
            spend(made, made.opening(grant=grant), grant, 40)
        assert made.codes() == codes


def test_a_clock_that_steps_back_opens_no_earlier_period():
    made = Grants()
    grant = made.give(periods=money(60))
    run = made.opening(grant=grant)
    for clock, codes in (
        ("2026-11-30T23:59:59.000Z", []),
        ("2026-12-01T00:00:01.000Z", []),
        # Back before midnight: what is left of yesterday is not spent on today's clock.
        ("2026-11-30T23:59:59.500Z", ["grant.period_overspent"]),
    ):
        made.clock = clock
        spend(made, run, grant, 40)
        assert made.codes() == codes


def test_an_act_counts_in_the_period_in_which_it_was_admitted_whenever_it_ends():
    made = Grants()
    grant = made.give(periods=money(60))
    run = made.opening(grant=grant)
    made.clock = "2026-11-30T23:59:59.000Z"
    intent = made.intent(run, {"usd_micro": 40}, grant=grant)
    made.clock = "2026-12-01T00:00:01.000Z"
    made.outcome(run, intent, {"usd_micro": 60})
    spend(made, run, grant, 60)
    assert made.codes() == []


ticks = st.lists(st.tuples(st.integers(-40, 90), st.integers(0, 6), st.integers(0, 1)), max_size=25)


@given(st.sampled_from(Period), st.integers(0, 20), ticks)
def test_no_period_ever_holds_more_than_its_limit(period, limit, plan):
    """Against a model that adds up what was admitted, by the calendar, on a clock that steps both ways over a leap day."""
    made = Grants()
    grants = [made.give(periods=money(limit, period=period)) for _ in range(2)]
    runs = [made.opening(grant=grant) for grant in grants]
    clock, latest = datetime(2028, 2, 27, tzinfo=UTC), ""
    sums = defaultdict(int)
    for hours, amount, which in plan:
        clock += timedelta(hours=hours)
        made.clock = clock.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        latest = max(latest, made.clock)
        day = datetime.fromisoformat(latest)
        name = {"day": day.date(), "week": day.isocalendar()[:2], "month": (day.year, day.month)}[period]
        before = len(made.findings)
        spend(made, runs[which], grants[which], amount)
        assert (len(made.findings) > before) is (sums[name] + amount > limit)
        sums[name] += amount


# Going on from a state.


def test_a_fold_that_rests_between_any_two_receipts_finds_the_same():
    def play(rest):
        made = Grants(TWO)
        root = made.give("bot", ("refund", "pay"), limits=(Limit(meter="usd_micro", limit=90),), periods=money(60))
        leaf = made.narrow(root, conditions=TWO.digest)
        run = made.opening(grant=root)
        steps = (
            lambda: spend(made, run, root, 40),
            lambda: spend(made, run, root, 30),
            lambda: made.intent(run, {"usd_micro": 0}, grant=leaf),
            lambda: made.revoke(leaf),
            lambda: made.intent(run, {"usd_micro": 0}, grant=leaf),
            lambda: spend(made, run, root, 30),
        )
        for number, step in enumerate(steps):
            if number == rest:
                adapter = TypeAdapter(ReplayState)
                kept = adapter.dump_json(made.replay.state())
                made.replay = Replay(approvers=TRUST, document_of=made.replay.document_of)
                made.replay.resume(adapter.validate_json(kept))
            step()
        return made.found()

    whole = play(None)
    assert [code for code, _ in whole] == [
        "grant.period_overspent",
        *("approval.missing", "grant.period_overspent", "grant.duties"),
        *("approval.missing", "grant.revoked", "grant.period_overspent", "grant.duties"),
        "grant.overspent",
    ]
    assert all(play(rest) == whole for rest in range(6))


@pytest.mark.parametrize("limit", [{"limits": (Limit(meter="usd_micro", limit=100),)}, {"periods": money(100)}])
@pytest.mark.parametrize(
    ("charges", "usage", "code"),
    [
        ({"usd_micro": 5}, {"usd_micro": 5}, None),
        ({"usd_micro": 5}, {"usd_micro": 6}, "grant.contradicted"),
        ({"usd_micro": 5}, {"requests": 6}, None),
        ({}, {"usd_micro": 10}, None),
        ({}, {"usd_micro": 11}, "grant.contradicted"),
        ({"eur_micro": 0}, {}, None),
        ({"eur_micro": 1}, {}, "budget.unknown_price"),
        ({}, {"eur_micro": 1}, "budget.unknown_price"),
        ({"usd_micro": "unknown"}, {}, "budget.basis_unknown"),
        ({"requests": "unknown"}, {}, None),
    ],
)
def test_what_an_act_says_of_its_cost_is_held_against_the_limits_of_its_grant(limit, charges, usage, code):
    made = Grants()
    grant = made.give(**limit)
    run = made.opening(grant=grant)
    intent = made.intent(run, {"usd_micro": 10}, grant=grant)
    made.outcome(run, intent, charges, usage=said(usage, "settled"))
    assert made.codes() == ([] if code is None else [code])


def test_a_price_that_somebody_guessed_leaves_the_limit_of_a_grant_open():
    for basis, codes in (("quoted", []), ("unknown", ["budget.basis_unknown"])):
        made = Grants()
        grant = made.give(limits=(Limit(meter="usd_micro", limit=100),))
        run = made.opening(grant=grant)
        price = (Charge(meter="usd_micro", reserved=10, basis=basis),)
        made.add(kinds.Intent, **made.act(run), reserved=price, grant=grant)
        assert made.codes() == codes
