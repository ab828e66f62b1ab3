"""Rules re-proved over a ledger and over bundles: each dishonest recorder seals properly and breaks one rule."""

from __future__ import annotations

import io

import pytest

from ledger import canonical
from ledger.digest import digest
from tests.reference.build import Builder
from tests.reference.judged import apart, found, judge, split
from verify.bundle import verify_bundle
from verify.ledger import LedgerFold, verify_ledger
from verify.options import Options
from verify.resume import parse_state, print_state
from verify.rules import RuleSources, approvers_of
from verify.state import binding

ACT = {
    "name": "deploy",
    "tool": {"name": "shell", "version": "5", "digest": "unknown"},
    "access": "write",
    "arguments_digest": digest(b"arguments"),
    "resource": "host/1",
    "environment": "test",
}


def started():
    ledger = Builder()
    ledger.header()
    return ledger


def reserved(amount, meter="usd_micro"):
    return [{"meter": meter, "reserved": amount, "basis": "quoted"}]


def settled(amount, meter="usd_micro"):
    return [{"meter": meter, "settled": amount, "basis": "reported"}]


def limited(limit, *, amounts=(50, 50), close=True, **members):
    ledger = started()
    ledger.opening(limits=[{"meter": "usd_micro", "limit": limit}], **members)
    for amount in amounts:
        intent = ledger.intent(reserved=reserved(amount))
        ledger.outcome(intent, charges=settled(amount))
    if close:
        ledger.run()
    ledger.commit()
    return ledger


@pytest.mark.parametrize(("limit", "exit_", "codes"), [(100, 0, []), (99, 6, [("budget.overspent", "entry 4")])])
def test_a_run_that_reached_its_limit_and_one_that_passed_it(limit, exit_, codes):
    verdict = judge(limited(limit))
    assert (verdict.exit, found(verdict)) == (exit_, codes)
    check = next(check for check in verdict.checks if check.name == "rules")
    assert check.status == ("failed" if exit_ else "ok")


def test_an_overspent_run_is_named_while_it_is_open_too():
    assert found(judge(limited(99, close=False)))[0] == ("budget.overspent", "entry 4")


@pytest.mark.parametrize(("cost", "exit_"), [(50, 0), (51, 6)])
def test_an_act_after_an_overrun(cost, exit_):
    ledger = started()
    ledger.opening(limits=[{"meter": "usd_micro", "limit": 1_000}])
    ledger.outcome(ledger.intent(reserved=reserved(50)), charges=settled(cost))
    ledger.outcome(ledger.intent(reserved=reserved(0)))
    ledger.run()
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, found(verdict)) == (exit_, [("budget.act_after_overrun", "entry 4")] if exit_ else [])


@pytest.mark.parametrize(("took", "exit_"), [(1_005, 0), (1_006, 6)])
def test_a_run_that_ended_within_the_grace_of_its_time_limit_and_one_after_it(took, exit_):
    ledger = started()
    ledger.opening(limits=[{"meter": "duration_ms", "limit": 1_000, "grace": 5}])
    ledger.run(duration_ms=took)
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, found(verdict)) == (exit_, [("budget.over_time", "entry 2")] if exit_ else [])


def test_a_price_that_is_not_known_under_a_money_limit_is_exit_3_and_zero_is_said():
    for amount, exit_ in ((0, 0), ("unknown", 3)):
        ledger = started()
        ledger.opening(limits=[{"meter": "usd_micro", "limit": 100}])
        ledger.outcome(ledger.intent(reserved=reserved(amount)))
        ledger.run()
        ledger.commit()
        assert judge(ledger).exit == exit_


@pytest.mark.parametrize(("limit", "exit_"), [(100, 0), (101, 6)])
def test_a_child_run_draws_on_its_parent_and_only_narrows(limit, exit_):
    ledger = started()
    parent = ledger.opening(limits=[{"meter": "usd_micro", "limit": 100}])
    child = ledger.opening(parent=parent, limits=[{"meter": "usd_micro", "limit": limit}])
    ledger.run(child)
    ledger.run(parent)
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, found(verdict)) == (exit_, [("budget.widened", "entry 2")] if exit_ else [])


@pytest.mark.parametrize(("attempts", "exit_"), [((1, 1), 6), ((1,), 0)])
def test_an_effect_that_was_committed_and_ran_again_in_another_run(attempts, exit_):
    ledger = started()
    for attempt in attempts:
        ledger.opening()
        ledger.outcome(ledger.intent(effect={"key": "refund:1", "attempt": attempt}))
        ledger.run()
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, found(verdict)) == (exit_, [("effect.repeated", "entry 6")] if exit_ else [])


def policy(level):
    data = canonical.encode({"policy": {"level": level}})
    return data, digest(data)


@pytest.mark.parametrize(("level", "exit_"), [("act-within-policy", 0), ("observe", 6)])
def test_an_act_under_a_policy_that_allows_it_and_one_that_forbids_it(level, exit_):
    data, name = policy(level)
    ledger = started()
    ledger.opening(policy=name)
    ledger.outcome(ledger.intent(policy=name))
    ledger.run()
    ledger.commit()
    verdict = judge(ledger, document_of={name: data}.get)
    assert (verdict.exit, found(verdict)) == (exit_, [("policy.breach", "entry 2")] if exit_ else [])
    absent = judge(ledger)
    assert (absent.exit, found(absent)) == (3, [("policy.absent", "entry 2")])


def test_an_act_decided_under_a_policy_that_its_run_does_not_have():
    ledger = started()
    ledger.opening()
    ledger.outcome(ledger.intent(policy=digest(b"another")))
    ledger.run()
    ledger.commit()
    assert found(judge(ledger)) == [("policy.other", "entry 2")]


def test_a_run_that_goes_on_without_the_policy_of_the_one_before():
    data, name = policy("observe")
    for members, codes in (({"policy": name}, []), ({}, [("policy.widened", "entry 3")])):
        ledger = started()
        first = ledger.opening(policy=name)
        ledger.run()
        ledger.opening(continues=first, **members)
        ledger.run()
        ledger.commit()
        assert found(judge(ledger, document_of={name: data}.get)) == codes


def test_an_approval_by_the_agent_of_the_run_itself_in_a_run_that_states_no_rule():
    for agent, exit_ in (("builder", 0), ("approver", 6)):
        ledger = started()
        run = ledger.opening(actor={"agent": agent, "user": "unknown", "model": "unknown"})
        request = ledger.decision(status="waiting", reason="approval.required", roles=["release"], needed=1, act=ACT)
        approval = ledger.approval(request=request, run=run, act_digest=ledger.act_digest(ACT))
        ledger.outcome(ledger.intent(act=ACT, approvals=[approval]))
        ledger.run()
        ledger.commit()
        verdict = judge(ledger)
        assert (verdict.exit, [check.code for check in verdict.findings]) == (
            exit_,
            ["approval.self"] if exit_ else [],
        )


def test_a_ledger_without_rules_says_that_there_was_nothing_to_look_at():
    ledger = started()
    ledger.opening()
    ledger.call()
    ledger.run()
    ledger.commit()
    verdict = judge(ledger)
    check = next(check for check in verdict.checks if check.name == "rules")
    # The header alone, whose keys never approve.
    assert (verdict.exit, check.status, check.count) == (0, "ok", 1)


@pytest.mark.parametrize(("limit", "exit_"), [(100, 0), (99, 6)])
@pytest.mark.parametrize("cut", range(1, 8))
def test_a_segment_judged_apart_gives_the_same_verdict_wherever_the_cut_is(limit, exit_, cut):
    ledger = started()
    ledger.commit()
    ledger.opening(limits=[{"meter": "usd_micro", "limit": limit}])
    ledger.commit()
    for _ in range(2):
        intent = ledger.intent(reserved=reserved(50))
        ledger.commit()
        ledger.outcome(intent, charges=settled(50))
        ledger.commit()
    ledger.run()
    ledger.commit()
    ledger.opening()
    ledger.commit()
    ledger.outcome(ledger.intent())
    ledger.run()
    ledger.commit()
    verdict, joined = apart(ledger, {cut})
    assert (joined, verdict.exit) == (1, exit_)
    assert verdict.checks == judge(ledger).checks


@pytest.mark.parametrize(("second", "exit_"), [("refund:2", 0), ("refund:1", 6)])
@pytest.mark.parametrize("cut", range(2, 9))
def test_effects_in_a_run_that_opened_before_a_segment_judged_apart(second, exit_, cut):
    ledger = started()
    ledger.commit()
    ledger.opening()
    ledger.commit()
    ledger.outcome(ledger.intent())
    ledger.commit()
    for key in ("refund:1", second):
        intent = ledger.intent(effect={"key": key, "attempt": 1})
        ledger.commit()
        ledger.outcome(intent)
        ledger.commit()
    ledger.run()
    ledger.commit()
    verdict, _ = apart(ledger, {1, cut})
    assert verdict.findings == judge(ledger).findings
    assert [check for check in verdict.checks if check.name == "rules"] == [
        check for check in judge(ledger).checks if check.name == "rules"
    ]
    assert verdict.exit == exit_


@pytest.mark.parametrize(("limit", "exit_"), [(100, 0), (99, 6)])
def test_the_bundle_of_a_whole_run_shows_that_it_passed_its_limit(limit, exit_):
    ledger = limited(limit)
    root = ledger.rows[-1].id
    verdict = verify_bundle(ledger.bundle(root), trust=ledger.trust(), memory=ledger.notes[-1])
    codes = [(check.code, check.where) for check in verdict.findings]
    assert (verdict.exit, codes) == (exit_, [("budget.overspent", "entry 4")] if exit_ else [])


def test_the_bundle_of_one_act_says_that_its_rules_were_not_looked_at():
    ledger = limited(99)
    outcome = ledger.rows[3].id
    verdict = verify_bundle(ledger.bundle(outcome), trust=ledger.trust(), memory=ledger.notes[-1])
    check = next(check for check in verdict.checks if check.name == "rules")
    assert (check.status, check.code, check.asked) == ("not_checked", "check.not_asked", False)


def test_the_bundle_of_a_run_with_an_effect_says_that_the_whole_ledger_shows_it():
    for members, words in (({"effect": {"key": "refund:1", "attempt": 1}}, "elsewhere"), ({}, "nothing to look at")):
        ledger = started()
        ledger.opening()
        ledger.outcome(ledger.intent(**members))
        ledger.run()
        ledger.commit()
        verdict = verify_bundle(ledger.bundle(ledger.rows[-1].id), trust=ledger.trust(), memory=ledger.notes[-1])
        check = next(check for check in verdict.checks if check.name == "rules")
        assert (check.status, check.asked) == ("not_checked", False)
        assert words in check.message


def test_a_history_rewritten_to_keep_its_limit_holds_for_who_remembers_nothing_and_not_for_who_does():
    broken, clean = limited(99), limited(100)
    assert judge(broken).exit == 6
    for memory, exit_, code in ((None, 0, "head.first_seen"), (broken.notes[-1], 1, "head.forked")):
        verdict = verify_ledger(clean.segments(), trust=clean.trust(), memory=memory)
        assert verdict.exit == exit_
        assert code in {check.code for check in verdict.checks}


def spent(limit):
    """Return a ledger, a commit for each receipt: a run with a limit whose acts have effects; one act of the last is ambiguous."""
    ledger = started()
    ledger.commit()
    ledger.opening(limits=[{"meter": "usd_micro", "limit": limit}])
    ledger.commit()
    for number in range(2):
        intent = ledger.intent(reserved=reserved(50), effect={"key": f"refund:{number}", "attempt": 1})
        ledger.commit()
        ledger.outcome(intent, charges=settled(50))
        ledger.commit()
    ledger.run()
    ledger.commit()
    ledger.opening()
    intent = ledger.intent(effect={"key": "refund:2", "attempt": 1})
    ledger.commit()
    ledger.outcome(intent, status="ambiguous")
    ledger.commit()
    return ledger


@pytest.mark.parametrize(
    ("limit", "key", "codes"),
    [
        (100, "refund:3", []),
        (99, "refund:3", ["budget.overspent"]),
        (100, "refund:0", ["effect.repeated"]),
        (100, "refund:2", ["effect.retried_ambiguous"]),
    ],
)
def test_what_rules_came_to_is_gone_on_from_after_every_commit(limit, key, codes):
    ledger = spent(limit)
    ledger.outcome(ledger.intent(effect={"key": key, "attempt": 1}))
    ledger.run()
    ledger.commit()
    whole = judge(ledger)
    assert [check.code for check in whole.findings] == codes
    segments = split(ledger.journal(), set(range(1, 20)))
    for count in range(1, len(segments)):
        fold = LedgerFold(Options(), memory=ledger.notes[-1], sources=RuleSources(approvers_of(ledger.trust())))
        for segment in segments[:count]:
            fold.feed(segment)
        bound = binding(None, Options())
        data = b"".join(print_state(fold.state(good=False), bound))
        state, _ = parse_state(io.BytesIO(data))
        assert b"".join(print_state(state, bound)) == data
        fold = LedgerFold(
            Options(), memory=ledger.notes[-1], start=state, sources=RuleSources(approvers_of(ledger.trust()))
        )
        for segment in segments[count:]:
            fold.feed(segment)
        found = fold.judge(segments, trust=ledger.trust(), memory=ledger.notes[-1])
        assert [check for check in found.checks if check.name != "earlier entries"] == list(whole.checks)


# Acts under the digest of another.


def approved(*changed):
    """Return a ledger of an approved act in a run without a policy; what ran may be another, under its digest."""
    ledger = started()
    ledger.commit()
    run = ledger.opening()
    ledger.commit()
    named = ledger.act_digest(ACT)
    request = ledger.decision(status="waiting", reason="approval.required", roles=["release"], needed=1, act=ACT)
    ledger.commit()
    approval = ledger.approval(request=request, run=run, act_digest=named)
    ledger.commit()
    ledger.outcome(ledger.intent(act={**ACT, **dict(changed)}, act_digest=named, approvals=[approval]))
    ledger.commit()
    ledger.run()
    ledger.commit()
    return ledger


OTHER = ("arguments_digest", digest(b"other arguments"))


@pytest.mark.parametrize(("changed", "codes"), [((), []), ((OTHER,), [("act.digest", "entry 4")])])
def test_an_act_under_the_digest_of_the_approved_one(changed, codes):
    ledger = approved(*changed)
    verdict = judge(ledger)
    assert (verdict.exit, found(verdict)) == (6 if codes else 0, codes)
    root = ledger.rows[-1].id
    bundle = verify_bundle(ledger.bundle(root), trust=ledger.trust(), memory=ledger.notes[-1])
    assert (bundle.exit, [(check.code, check.where) for check in bundle.findings]) == (6 if codes else 0, codes)


@pytest.mark.parametrize(("changed", "exit_"), [((), 0), ((OTHER,), 6)])
@pytest.mark.parametrize("cut", range(1, 6))
def test_an_actor_is_known_wherever_a_segment_is_judged_apart(changed, exit_, cut):
    ledger = approved(*changed)
    verdict, _ = apart(ledger, {cut})
    assert verdict.exit == exit_
    assert verdict.findings == judge(ledger).findings


@pytest.mark.parametrize(("changed", "codes"), [((), []), ((OTHER,), ["act.digest"])])
def test_an_actor_is_known_after_a_stop_at_every_commit(changed, codes):
    ledger = approved(*changed)
    segments = split(ledger.journal(), set(range(1, 7)))
    for count in range(1, len(segments)):
        given = {"memory": ledger.notes[-1], "sources": RuleSources(approvers_of(ledger.trust()))}
        fold = LedgerFold(Options(), **given)
        for segment in segments[:count]:
            fold.feed(segment)
        data = b"".join(print_state(fold.state(good=False), binding(None, Options())))
        fold = LedgerFold(Options(), start=parse_state(io.BytesIO(data))[0], **given)
        for segment in segments[count:]:
            fold.feed(segment)
        verdict = fold.judge(segments, trust=ledger.trust(), memory=ledger.notes[-1])
        assert [check.code for check in verdict.findings] == codes


@pytest.mark.parametrize(("inline", "codes"), [(5, []), (4, ["act.arguments"])])
def test_inline_arguments_that_a_policy_would_look_at_are_those_that_are_stored(inline, codes):
    data, name = policy("act-within-policy")
    ledger = started()
    ledger.opening(policy=name)
    ledger.outcome(ledger.intent(act={**ACT, "arguments": {"amount": inline}}, policy=name))
    root = ledger.run()
    ledger.commit()
    sources = {"document_of": {name: data}.get, "arguments_of": lambda _: {"amount": 5}}
    assert [check.code for check in judge(ledger, **sources).findings] == codes
    bundle = verify_bundle(ledger.bundle(root), trust=ledger.trust(), memory=ledger.notes[-1], **sources)
    assert [check.code for check in bundle.findings] == codes
