"""Policies, approvals and effects re-proved: each breach, beside the lawful chain one step away."""

import json

import pytest

from ledger.members import Source
from ledger.rules.breach import BREACH_CODES
from ledger.rules.policy_file import read_policy
from ledger.rules.replay import Replay
from ledger.words import Reason
from tests.reference.rule_chain import Chain, approver, key

TRUST = dict([approver("ada", "ops"), approver("bob", "ops"), approver("bot", "ops"), approver("issuer", "ops")])


def ours(**members):
    document = {"schema": "receipt-ledger.policy/v1", "level": "act-within-policy", **members}
    return read_policy(json.dumps(document).encode())


ASKING = ours(rules=[{"name": "ask", "act": "refund", "then": "ask", "roles": ["ops"]}])
REFUNDS = ours(rules=[{"name": "small", "act": "refund", "when": {"amount": {"le": 5}}, "then": "allow"}])
PATHS = ours(tools={"deny": [{"name": "refund", "arguments": {"to": "x*"}}]})


def chain(*documents, arguments=None, trust=TRUST):
    found = {each.digest: each.data for each in documents}
    replay = Replay(approvers=trust, document_of=found.get, arguments_of=lambda _: arguments)
    made = Chain(replay)
    made.header()
    return made


# Policies.


@pytest.mark.parametrize(("amount", "codes"), [(5, []), (6, ["policy.breach"]), ("5", ["policy.breach"])])
def test_an_act_that_the_policy_forbids(amount, codes):
    made = chain(REFUNDS, arguments={"amount": amount})
    run = made.opening(policy=REFUNDS.digest)
    made.intent(run, act={"arguments": {"amount": amount}}, policy=REFUNDS.digest)
    assert made.codes() == codes


def test_an_act_decided_under_another_policy_or_under_none():
    for policy, codes in ((REFUNDS.digest, []), (ASKING.digest, ["policy.other"]), (None, ["policy.other"])):
        made = chain(REFUNDS, ASKING, arguments={"amount": 5})
        run = made.opening(policy=REFUNDS.digest)
        made.intent(run, act={"arguments": {"amount": 5}}, policy=policy)
        assert made.codes() == codes


def test_a_policy_that_is_not_there_or_cannot_be_read_is_a_doubt():
    made = chain()
    run = made.opening(policy=REFUNDS.digest)
    made.intent(run, policy=REFUNDS.digest)
    assert made.codes() == ["policy.absent"]
    replay = Replay(document_of=lambda _: b'{"level":"observe","x":1}')
    made = Chain(replay)
    run = made.opening(policy=REFUNDS.digest)
    made.intent(run, policy=REFUNDS.digest)
    assert made.codes() == ["policy.unreadable"]
    assert replay.breach is None


def test_arguments_that_are_gone_leave_open_only_what_hangs_on_them():
    for arguments, codes in (({"to": "y"}, []), ({"to": "xy"}, ["policy.breach"]), (None, ["policy.arguments_absent"])):
        made = chain(PATHS, arguments=arguments)
        run = made.opening(policy=PATHS.digest)
        made.intent(run, policy=PATHS.digest)
        assert made.codes() == codes
    made = chain(PATHS, arguments=None)
    run = made.opening(policy=PATHS.digest)
    made.intent(run, act={"name": "other"}, policy=PATHS.digest)
    made.intent(run, act={"arguments": {"to": "xy"}}, policy=PATHS.digest)
    assert made.codes() == ["policy.breach"]


def test_a_run_that_goes_on_under_a_wider_policy():
    wide, narrow = ours(), ours(tools={"deny": [{"name": "refund"}]})
    for first, second, codes in (
        (wide.digest, narrow.digest, []),
        (narrow.digest, wide.digest, ["policy.widened"]),
        (narrow.digest, None, ["policy.widened"]),
        (None, wide.digest, []),
    ):
        for link in ("continues", "parent_opening"):
            made = chain(wide, narrow)
            run = made.opening(policy=first)
            made.opening(policy=second, **{link: run})
            assert made.codes() == codes, link


def test_an_act_that_is_only_observed_says_what_would_have_been_decided():
    observing = ours(mode="observe", tools={"deny": [{"name": "refund"}]})
    for said, codes in (
        (("denied", Reason.POLICY_DENIED), []),
        (("waiting", Reason.POLICY_DENIED), ["policy.unrecorded"]),
        (("denied", Reason.POLICY_LEVEL), ["policy.unrecorded"]),
        (None, ["policy.unrecorded"]),
    ):
        made = chain(observing, arguments={})
        run = made.opening(policy=observing.digest)
        made.intent(run, policy=observing.digest, would_have=said)
        assert made.codes() == codes


# Approvals.


def asked(made, **members):
    run = made.opening(policy=ASKING.digest)
    request = made.waiting(run, policy=ASKING.digest, roles=("ops",), needed=1, **members)
    return run, request


def used(made, run, *approvals, **members):
    return made.intent(run, policy=ASKING.digest, approvals=approvals, **members)


def test_an_act_with_its_approval_and_without():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    used(made, run, made.approval(request))
    assert made.codes() == []
    made = chain(ASKING, arguments={})
    run, _ = asked(made)
    used(made, run)
    assert made.codes() == ["approval.missing"]


def test_an_act_that_waited_and_ran_without_an_approval_though_no_policy_says_so():
    made = chain()
    run = made.opening()
    made.waiting(run)
    made.intent(run, act={"name": "other"})
    assert made.codes() == []
    made.intent(run)
    assert made.codes() == ["approval.missing"]


def test_an_approval_for_another_act_state_policy_or_run():
    for change, codes in (
        ({}, []),
        ({"act_digest": key("x").replace("ed25519", "sha256")}, ["approval.mismatch"]),
        ({"precondition": key("x").replace("ed25519", "sha256")}, ["approval.mismatch"]),
        ({"policy": REFUNDS.digest}, ["approval.mismatch"]),
        ({"run": None}, ["approval.mismatch"]),
        ({"role": "finance"}, ["approval.mismatch"]),
        ({"uses": 2}, ["approval.mismatch"]),
    ):
        made = chain(ASKING, arguments={})
        run, request = asked(made)
        used(made, run, made.approval(request, **change))
        assert made.codes() == codes, change


def test_a_changed_act_is_not_covered():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    used(made, run, made.approval(request), act={"resource": "other"})
    assert made.codes() == ["approval.mismatch"]


def test_an_approval_used_twice():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    approval = made.approval(request)
    used(made, run, approval)
    used(made, run, approval)
    assert made.codes() == ["approval.reused"]
    assert made.replay.breach.index == 5


def test_an_approval_after_its_time():
    for minute, codes in ((659, []), (660, ["approval.expired"])):
        made = chain(ASKING, arguments={})
        run, request = asked(made)
        approval = made.approval(request)
        made.minute = minute
        used(made, run, approval)
        assert made.codes() == codes
    for minute, codes in ((9, []), (10, ["approval.expired"])):
        made = chain(ASKING, arguments={})
        run, request = asked(made, expires_at="2026-11-30T12:10:00.000Z")
        made.minute = minute
        used(made, run, made.approval(request))
        assert made.codes() == codes


def test_an_approval_that_is_not_there_or_comes_later():
    made = chain(ASKING, arguments={})
    run, _ = asked(made)
    used(made, run, ASKING.digest)
    assert made.codes() == ["approval.unknown"]


def test_an_approval_that_its_approver_took_back():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    approval = made.approval(request)
    made.approval(request, answer="denied")
    used(made, run, approval)
    assert made.codes() == ["approval.replaced"]
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    made.approval(request, answer="denied")
    used(made, run, made.approval(request))
    assert made.codes() == []


def test_a_request_is_used_once_whoever_granted_it():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    first, second = made.approval(request), made.approval(request, by="bob")
    used(made, run, first)
    used(made, run, second)
    assert made.codes() == ["approval.reused"]


def test_an_act_that_another_approver_denies():
    for answer, codes in (("granted", []), ("denied", ["approval.denied"])):
        made = chain(ASKING, arguments={})
        run, request = asked(made)
        approval = made.approval(request)
        made.approval(request, by="bob", answer=answer)
        used(made, run, approval)
        assert made.codes() == codes
        made = chain(ASKING, arguments={})
        run, request = asked(made)
        made.approval(request, by="bob", answer=answer)
        used(made, run, made.approval(None, pattern="**"))
        assert made.codes() == codes


def test_what_a_request_asks_for_counts_where_no_policy_says_it():
    for names, codes in ((("ada", "bob"), []), (("ada",), ["approval.missing"])):
        made = chain()
        run = made.opening()
        request = made.waiting(run, roles=("ops",), needed=2)
        made.intent(run, approvals=[made.approval(request, by=name) for name in names])
        assert made.codes() == codes


def test_an_answer_to_what_never_waited_covers_nothing():
    made = chain(ASKING, arguments={})
    run, _ = asked(made)
    used(made, run, made.approval(None, request=ASKING.digest))
    assert made.codes() == ["approval.unknown"]


def test_a_request_that_a_soft_limit_made_binds_nobody_once_there_is_room():
    made = chain()
    run = made.opening({"usd_micro": {"limit": 100, "soft": 50}})
    held = made.intent(run, {"usd_micro": 40}, act={"name": "other"})
    made.waiting(run, meter="usd_micro", limit=50, spent=0, reserved=40, asked=20)
    made.outcome(run, held, status="failed", reason="act.not_executed")
    made.intent(run, {"usd_micro": 20})
    assert made.codes() == []


def test_a_denial_after_the_use_changes_nothing():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    used(made, run, made.approval(request))
    made.approval(request, answer="denied")
    assert made.codes() == []


@pytest.mark.parametrize("name", ["bot", "issuer"])
def test_the_agent_and_the_issuer_approve_nothing_even_when_pinned(name):
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    used(made, run, made.approval(request, by=name))
    assert made.codes() == ["approval.self"]


def test_the_log_key_approves_nothing_even_when_pinned():
    made = chain(ASKING, arguments={}, trust=dict([approver("log", "ops")]))
    run, request = asked(made)
    used(made, run, made.approval(request, by="log"))
    assert made.codes() == ["approval.self"]


def test_an_approver_whom_trust_does_not_name_is_a_doubt():
    made = chain(ASKING, arguments={})
    run, request = asked(made)
    used(made, run, made.approval(request, by="mallory"))
    assert made.codes() == ["approval.unpinned"]
    assert made.replay.breach is None


def test_two_of_two_keys_and_one_key_twice():
    both = ours(rules=[{"name": "two", "act": "refund", "then": "ask", "roles": ["ops"], "needed": 2}])
    for names, codes in ((("ada", "bob"), []), (("ada",), ["approval.missing"]), (("ada", "ada"), ["approval.reused"])):
        made = chain(both, arguments={})
        run = made.opening(policy=both.digest)
        request = made.waiting(run, policy=both.digest, roles=("ops",), needed=2)
        approvals = [
            made.approval(request, by=name, expires_at=f"2026-11-30T2{n}:00:00.000Z") for n, name in enumerate(names)
        ]
        made.intent(run, policy=both.digest, approvals=approvals)
        assert made.codes() == codes


def test_a_standing_approval_by_pattern_and_count():
    for uses, pattern, codes in (
        (2, "ref*", []),
        (1, "ref*", ["approval.reused"]),
        (2, "pay*", ["approval.mismatch", "approval.mismatch"]),
    ):
        made = chain(ASKING, arguments={})
        run = made.opening(policy=ASKING.digest)
        approval = made.approval(None, pattern=pattern, uses=uses)
        used(made, run, approval)
        used(made, run, approval)
        assert made.codes() == codes


def test_what_always_asks_is_answered_by_no_standing_approval():
    always = ours(always_ask=[{"name": "refund"}])
    made = chain(always, arguments={})
    run = made.opening(policy=always.digest)
    made.intent(run, policy=always.digest, approvals=[made.approval(None, pattern="**")])
    assert made.codes() == ["approval.mismatch"]


# Effects.


def attempt(made, run, number, status=None, reason=None, *, key_="k", **members):
    intent = made.intent(run, effect=(key_, number), **members)
    if status is not None:
        made.outcome(run, intent, status=status, reason=reason)
    return intent


@pytest.mark.parametrize(
    ("status", "reason", "codes"),
    [
        ("failed", "act.not_executed", []),
        ("committed", None, ["effect.repeated"]),
        ("ambiguous", None, ["effect.retried_ambiguous"]),
        (None, None, ["effect.repeated"]),
    ],
)
def test_an_effect_is_attempted_again_after_a_failure_only(status, reason, codes):
    made = chain()
    run = made.opening()
    attempt(made, run, 1, status, reason)
    attempt(made, run, 2)
    assert made.codes() == codes
    other = chain()
    first, second = other.opening(), other.opening()
    attempt(other, first, 1, status, reason)
    attempt(other, second, 2)
    assert other.codes() == codes


def test_an_effect_whose_lease_ran_out_is_ambiguous():
    for minute, code in ((4, "effect.repeated"), (5, "effect.retried_ambiguous")):
        made = chain()
        run = made.opening()
        attempt(made, run, 1, lease_ms=300_000)
        made.minute = minute
        attempt(made, run, 2)
        assert made.codes() == [code]


def test_attempts_are_numbered_without_gap():
    for first, second, codes in (
        (1, 2, []),
        (2, 3, ["effect.attempt"]),
        (1, 3, ["effect.attempt"]),
        (1, 1, ["effect.attempt"]),
    ):
        made = chain()
        run = made.opening()
        attempt(made, run, first, "failed", "act.not_executed")
        attempt(made, run, second)
        assert made.codes() == codes


def test_a_resolution_frees_or_closes_an_effect():
    for happened, codes in (("did_not_happen", []), ("happened", ["effect.repeated"])):
        made = chain()
        run = made.opening()
        intent = attempt(made, run, 1, "ambiguous")
        made.resolution(intent, happened)
        attempt(made, run, 2)
        assert made.codes() == codes


def test_receipts_that_contradict_each_other_about_one_attempt():
    for status, happened, codes in (
        ("committed", "happened", []),
        ("committed", "did_not_happen", ["effect.contradicted"]),
        ("failed", "did_not_happen", []),
        ("failed", "happened", ["effect.contradicted"]),
    ):
        made = chain()
        run = made.opening()
        intent = attempt(made, run, 1, status, "act.not_executed" if status == "failed" else None)
        made.resolution(intent, happened)
        assert made.codes() == codes
        made = chain()
        run = made.opening()
        intent = attempt(made, run, 1, lease_ms=60_000)
        made.minute = 2
        made.resolution(intent, happened)
        made.outcome(run, intent, status=status, reason="act.not_executed" if status == "failed" else None)
        assert made.codes() == codes


def test_a_late_outcome_of_an_attempt_that_was_resolved_and_followed_by_another():
    for status, codes in (("ambiguous", []), ("failed", []), ("committed", ["effect.contradicted"])):
        made = chain()
        run = made.opening()
        first = attempt(made, run, 1, lease_ms=60_000)
        made.minute = 2
        made.resolution(first, "did_not_happen")
        attempt(made, run, 2, "committed")
        made.outcome(run, first, status=status, reason="act.not_executed" if status == "failed" else None)
        assert made.codes() == codes


def test_two_resolutions_that_differ():
    for second, codes in (("happened", []), ("did_not_happen", ["effect.contradicted"])):
        made = chain()
        run = made.opening()
        intent = attempt(made, run, 1, "ambiguous")
        made.resolution(intent, "happened")
        made.resolution(intent, second)
        assert made.codes() == codes


def test_an_effect_in_progress_is_not_resolved():
    made = chain()
    run = made.opening()
    made.resolution(attempt(made, run, 1, lease_ms=60_000), "happened")
    assert made.codes() == ["effect.resolved_settled"]


def test_a_failure_without_proof():
    for reason, codes in (
        ("act.not_executed", []),
        ("command.not_found", []),
        (None, ["effect.unproven_failure"]),
        ("act.exception", ["effect.unproven_failure"]),
    ):
        made = chain()
        run = made.opening()
        attempt(made, run, 1, "failed", reason)
        assert made.codes() == codes


def test_keys_of_an_imported_document_are_its_own():
    made = chain()
    run = made.opening()
    attempt(made, run, 1, "committed")
    source = Source(document=ASKING.digest, format="ctrlrun.receipt/v7")
    attempt(made, run, 1, source=source)
    assert made.codes() == []


def test_the_first_attempts_of_a_foreign_effect_may_stand_elsewhere_and_later_ones_are_counted_on():
    source = Source(document=ASKING.digest, format="ctrlrun.receipt/v7")
    for second, codes in ((3, []), (4, ["effect.attempt"])):
        made = chain()
        run = made.opening()
        attempt(made, run, 2, "failed", "act.not_executed", source=source)
        attempt(made, run, second, source=source)
        assert made.codes() == codes


def test_the_first_breach_is_the_one_that_is_named():
    made = chain()
    run = made.opening({"usd_micro": 1})
    made.intent(run, {"usd_micro": 2})
    made.intent(run, {"usd_micro": 2})
    assert len(made.findings) == 2
    assert made.replay.breach.index == 2
    assert made.replay.breach.code in BREACH_CODES
