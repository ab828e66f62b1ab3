"""Approvals: who may answer, what an answer binds to, and how often it is used."""

from dataclasses import replace

import pytest

from ledger.rules.approval import (
    Answer,
    ApprovalState,
    Approver,
    Ballot,
    Need,
    Rejected,
    Request,
    check_answer,
    check_approver,
    check_use,
    pick,
    state_of,
    take,
    use,
)
from ledger.words import Reason

NOON, ONE, TWO = "2026-11-30T12:00:00.000Z", "2026-11-30T13:00:00.000Z", "2026-11-30T14:00:00.000Z"
REQUEST = Request(
    id="r", run="run", act_digest="act", expires_at=ONE, precondition="state", policy="policy", roles=("ops",), needed=1
)
NEED = Need(act_digest="act", act_name="refund", run="run", precondition="state", policy="policy", roles=("ops",))
TRUST = {"ada": Approver("ka", ("ops",)), "bob": Approver("kb", ("ops", "finance")), "eve": Approver("ke", ())}


def answer(name="ada", *, granted=True, **members):
    given = {
        "id": f"{name}-{granted}",
        "name": name,
        "key": f"k{name[0]}",
        "role": "ops",
        "granted": granted,
        "expires_at": TWO,
        "request": "r",
        "run": "run",
        "act_digest": "act",
        "precondition": "state",
        "policy": "policy",
    }
    return Answer(**{**given, **members})


def standing(name="ada", **members):
    blank = {"request": None, "run": None, "act_digest": None, "precondition": None, "policy": None}
    return answer(name, **{**blank, "pattern": "refund*", "uses": 3, **members})


def ballot(*answers, request=REQUEST):
    found = Ballot(request)
    for each in answers:
        found = take(found, each)
        assert isinstance(found, Ballot)
    return found


def test_a_pinned_key_approves_under_its_name_and_in_its_role():
    assert check_approver(answer(), approvers=TRUST) is None
    for wrong, code in (
        (answer(key="kb"), "approval.unpinned"),
        (answer("mallory"), "approval.unpinned"),
        (answer("bob", key="ka"), "approval.unpinned"),
        (answer(role="finance"), "approval.mismatch"),
        (answer("eve"), "approval.mismatch"),
    ):
        assert check_approver(wrong, approvers=TRUST).code == code


@pytest.mark.parametrize("barred", [{"ada"}, {"ka"}])
def test_the_agent_the_issuer_and_the_log_never_approve_even_when_pinned(barred):
    assert check_approver(answer(), approvers=TRUST, barred=frozenset(barred)).code == "approval.self"


@pytest.mark.parametrize(
    "member",
    [
        {"request": "other"},
        {"run": "other"},
        {"run": None},
        {"act_digest": "other"},
        {"act_digest": None},
        {"precondition": "other"},
        {"precondition": None},
        {"policy": "other"},
        {"policy": None},
        {"role": "finance"},
        {"uses": 2},
        {"pattern": "*"},
    ],
)
def test_an_answer_that_names_anything_else_is_not_taken_as_a_whole(member):
    assert check_answer(REQUEST, answer(), now=NOON) is None
    rejected = check_answer(REQUEST, answer(**member), now=NOON)
    assert (rejected.reason, rejected.code) == (Reason.APPROVAL_MISMATCH, "approval.mismatch")


def test_an_answer_after_its_time_is_not_taken():
    before = "2026-11-30T12:59:59.999Z"
    assert check_answer(REQUEST, answer(), now=before) is None
    assert check_answer(REQUEST, answer(), now=ONE).reason is Reason.APPROVAL_EXPIRED
    assert check_answer(REQUEST, answer(expires_at=NOON), now=NOON).reason is Reason.APPROVAL_EXPIRED


def test_what_the_policy_forbids_cannot_be_approved_and_can_be_denied():
    assert check_answer(REQUEST, answer(), now=NOON, forbidden=True).reason is Reason.POLICY_DENIED
    assert check_answer(REQUEST, answer(granted=False), now=NOON, forbidden=True) is None


def test_the_states_of_a_request():
    assert state_of(ballot(), now=NOON) is ApprovalState.PENDING
    assert state_of(ballot(), now=ONE) is ApprovalState.EXPIRED
    assert state_of(ballot(answer()), now=NOON) is ApprovalState.GRANTED
    assert state_of(ballot(answer()), now=ONE) is ApprovalState.GRANTED
    assert state_of(ballot(answer()), now=TWO) is ApprovalState.EXPIRED
    assert state_of(ballot(answer(granted=False)), now=NOON) is ApprovalState.DENIED
    assert state_of(use(ballot(answer())), now=NOON) is ApprovalState.CONSUMED


def test_the_same_decision_twice_counts_once():
    two = replace(REQUEST, needed=2)
    once = ballot(answer(), request=two)
    assert take(once, answer(id="again")) is once
    assert state_of(once, now=NOON) is ApprovalState.PENDING
    assert state_of(ballot(answer(), answer("bob"), request=two), now=NOON) is ApprovalState.GRANTED


def test_one_key_in_two_roles_counts_once():
    two = replace(REQUEST, roles=("ops", "finance"), needed=2)
    found = ballot(answer("bob"), answer("bob", id="x", role="finance"), request=two)
    assert state_of(found, now=NOON) is ApprovalState.PENDING


def test_a_new_answer_replaces_an_unused_one_and_a_used_one_never_changes():
    changed = ballot(answer(), answer(granted=False))
    assert state_of(changed, now=NOON) is ApprovalState.DENIED
    assert state_of(ballot(answer(granted=False), answer()), now=NOON) is ApprovalState.GRANTED
    used = use(ballot(answer()))
    for late in (answer(granted=False), answer("bob")):
        rejected = take(used, late)
        assert isinstance(rejected, Rejected)
        assert rejected.reason is Reason.APPROVAL_CONSUMED
    assert take(used, answer(id="again")) is used


def test_a_denial_stands_above_the_approvals_of_others():
    found = ballot(answer(), answer("bob", granted=False))
    assert state_of(found, now=NOON) is ApprovalState.DENIED
    assert pick(NEED, [found], [(standing(), 1)], now=NOON) is None


def test_an_approval_covers_the_act_it_was_given_for_and_no_other():
    assert check_use(NEED, answer(), now=NOON, left=1) is None
    for need in (
        replace(NEED, act_digest="other"),
        replace(NEED, precondition="other"),
        replace(NEED, policy="other"),
        replace(NEED, policy=None),
        replace(NEED, run="other"),
        replace(NEED, roles=("finance",)),
    ):
        assert check_use(need, answer(), now=NOON, left=1).code == "approval.mismatch"
    assert check_use(NEED, answer(), now=NOON, left=0).code == "approval.reused"
    assert check_use(NEED, answer(), now=TWO, left=1).code == "approval.expired"
    assert check_use(NEED, answer(granted=False), now=NOON, left=1).code == "approval.replaced"
    assert check_use(NEED, answer(), now=NOON, left=1, current=False).code == "approval.replaced"


def test_a_standing_approval_covers_by_pattern_count_and_time():
    assert check_use(NEED, standing(), now=NOON, left=3) is None
    assert check_use(NEED, standing(pattern="pay*"), now=NOON, left=3).code == "approval.mismatch"
    assert check_use(NEED, standing(pattern=None), now=NOON, left=3).code == "approval.mismatch"
    assert check_use(NEED, standing(), now=NOON, left=0).code == "approval.reused"
    assert check_use(NEED, standing(), now=TWO, left=3).code == "approval.expired"
    assert check_use(replace(NEED, standing=False), standing(), now=NOON, left=3).code == "approval.mismatch"


def test_a_standing_approval_binds_to_what_it_names():
    for member in ("run", "policy", "precondition", "act_digest"):
        assert check_use(NEED, standing(**{member: getattr(NEED, member)}), now=NOON, left=1) is None
        assert check_use(NEED, standing(**{member: "other"}), now=NOON, left=1).code == "approval.mismatch"


def test_an_act_is_admitted_by_as_many_keys_as_it_needs():
    two = replace(REQUEST, needed=2)
    need = replace(NEED, needed=2)
    assert pick(need, [ballot(answer(), request=two)], [], now=NOON) is None
    found = pick(need, [ballot(answer(), answer("bob"), request=two)], [], now=NOON)
    assert [each.name for each in found] == ["ada", "bob"]
    assert pick(need, [use(ballot(answer(), answer("bob"), request=two))], [], now=NOON) is None
    assert pick(need, [ballot(answer())], [], now=NOON) is None


def test_standing_approvals_are_picked_by_key_where_no_request_is_granted():
    assert [each.name for each in pick(NEED, [], [(standing(), 0), (standing("bob"), 1)], now=NOON)] == ["bob"]
    two = replace(NEED, needed=2)
    assert pick(two, [], [(standing(), 1), (standing(id="x"), 1)], now=NOON) is None
    assert len(pick(two, [], [(standing(), 1), (standing("bob"), 1)], now=NOON)) == 2
    granted = pick(NEED, [ballot(answer())], [(standing("bob"), 1)], now=NOON)
    assert [each.request for each in granted] == ["r"]
