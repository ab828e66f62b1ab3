"""Grants and delegations: what is covered, what stands, and what is wider."""

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.members import Act, Limit, PeriodLimit, Tool
from ledger.rules.delegation import check_delegation, lies_within
from ledger.rules.errors import GrantError
from ledger.rules.glob import matches
from ledger.rules.grant import MAX_LEVELS, Grant, covers, duties_of, line_of, stands
from ledger.rules.grant_terms import Duty, Terms, read_terms, unfilled
from ledger.words import Period, Reason

NOON = "2026-11-30T12:00:00.000Z"


def act(name="refund", **arguments):
    return Act(
        name=name,
        tool=Tool(name=name, version="1", digest="unknown"),
        access="unknown",
        arguments=arguments or None,
        arguments_digest="unknown",
        resource="unknown",
        environment="unknown",
    )


def terms(**members):
    return read_terms(json.dumps({"schema": "receipt-ledger.terms/v1", **members}).encode()).terms


def root(**members):
    return Grant(**{"id": "root", "grantee": "bot", "acts": ("refund", "db.*"), **members})


def leaf(**members):
    return Grant(**{"id": "leaf", "grantee": "bot", "acts": None, "parent": "root", **members})


def covered(*line, name="refund", agent="bot", **arguments):
    found = covers(line, act(name, **arguments), agent=agent)
    return None if found is None else (found.reason, found.code)


def test_an_act_that_a_pattern_covers_and_one_that_none_does():
    assert covered(root()) is None
    assert covered(root(), name="db.read") is None
    assert covered(root(), name="db/read") == (Reason.GRANT_NOT_COVERED, "grant.not_covered")
    assert covered(root(), name="refunds")[1] == "grant.not_covered"


def test_a_grant_is_for_its_grantee():
    assert covered(root(), agent="other") == (Reason.GRANT_MISSING, "grant.other")


def test_an_explicit_empty_list_covers_nothing_and_neither_does_a_root_that_names_no_acts():
    assert covered(root(acts=()))[1] == "grant.not_covered"
    assert covered(root(acts=None))[1] == "grant.not_covered"
    assert covered(leaf(acts=()), root())[1] == "grant.not_covered"
    assert covered(leaf(acts=None), root()) is None


def test_every_grant_of_the_line_has_to_cover_the_act():
    assert covered(leaf(acts=("db.*",)), root(acts=("refund",)), name="refund")[1] == "grant.not_covered"
    assert covered(leaf(acts=("refund",)), root(acts=("db.*",)), name="refund")[1] == "grant.not_covered"


def test_conditions_are_those_of_policies_and_what_cannot_be_compared_does_not_hold():
    given_ = root(terms=terms(when={"amount": {"le": 5}}))
    assert covered(given_, amount=5) is None
    for amount in (6, "5", True):
        assert covered(given_, amount=amount)[1] == "grant.not_covered"
    assert covered(given_)[1] == "grant.not_covered"


def test_a_condition_above_holds_below_though_the_delegation_names_none():
    assert covered(leaf(), root(terms=terms(when={"amount": {"le": 5}})), amount=6)[1] == "grant.not_covered"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schema": "receipt-ledger.terms/v2"},
        {"schema": "receipt-ledger.terms/v1", "depth": 1},
        {"schema": "receipt-ledger.terms/v1", "when": {"a": {}}},
        {"schema": "receipt-ledger.terms/v1", "when": {"a": {"like": 1}}},
        {"schema": "receipt-ledger.terms/v1", "when": {"a": {"eq": True}}},
        {"schema": "receipt-ledger.terms/v1", "approvals": [{"role": "x", "needed": 0}]},
        {"schema": "receipt-ledger.terms/v1", "approvals": [{"role": "x"}, {"role": "x"}]},
        {"schema": "receipt-ledger.terms/v1", "approvals": [{"role": "x", "needed": 60}, {"role": "y", "needed": 60}]},
    ],
)
def test_terms_of_another_shape_are_refused(document):
    with pytest.raises(GrantError):
        read_terms(json.dumps(document).encode())


# What stands.


def test_a_grant_stands_until_the_instant_of_its_end():
    given_ = root(expires_at="2026-11-30T12:00:00.001Z")
    assert stands((given_,), {}, now=NOON) is None
    assert stands((given_,), {}, now="2026-11-30T12:00:00.001Z").code == "grant.expired"
    assert stands((leaf(), given_), {}, now="2026-11-30T12:00:00.001Z").code == "grant.expired"


def test_a_revocation_takes_all_that_was_narrowed_with_it_and_nothing_above():
    assert stands((leaf(), root()), {"root": 3}, now=NOON).code == "grant.revoked"
    assert stands((leaf(), root()), {"leaf": 3}, now=NOON).code == "grant.revoked"
    assert stands((root(),), {"leaf": 3}, now=NOON) is None


def test_a_line_is_walked_and_one_that_is_broken_or_too_deep_is_nothing():
    grants = {"root": root(), "leaf": leaf()}
    assert [each.id for each in line_of(grants, "leaf")] == ["leaf", "root"]
    assert line_of({"leaf": leaf()}, "leaf") == ()
    assert stands((), {}, now=NOON).code == "grant.missing"
    assert stands((leaf(parent=None, rootless=True),), {}, now=NOON).code == "grant.missing"
    deep = {"0": root(id="0")} | {str(n): leaf(id=str(n), parent=str(n - 1)) for n in range(1, MAX_LEVELS + 1)}
    assert len(line_of(deep, str(MAX_LEVELS - 1))) == MAX_LEVELS
    assert line_of(deep, str(MAX_LEVELS)) == ()


# Delegations.


def wider(grant, *above):
    found = check_delegation(above or (ABOVE,), grant)
    return None if found is None else found.code


ABOVE = root(
    acts=("db.*", "refund"),
    limits=(Limit(meter="usd_micro", limit=10, grace=1),),
    periods=(PeriodLimit(account="acme", meter="usd_micro", period=Period.DAY, limit=5),),
    expires_at=NOON,
)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ({"acts": ("db.read", "refund")}, {"acts": ("db.read", "refunds")}),
        ({"acts": ("db.get*",)}, {"acts": ("db.**",)}),
        ({"acts": ()}, {"acts": ("*",)}),
        ({"limits": (Limit(meter="usd_micro", limit=10),)}, {"limits": (Limit(meter="usd_micro", limit=11),)}),
        (
            {"limits": (Limit(meter="usd_micro", limit=9, grace=2),)},
            {"limits": (Limit(meter="usd_micro", limit=9, grace=3),)},
        ),
        ({"limits": (Limit(meter="requests", limit=99),)}, {"limits": (Limit(meter="usd_micro", limit=99),)}),
        (
            {"periods": (PeriodLimit(account="acme", meter="usd_micro", period=Period.DAY, limit=5),)},
            {"periods": (PeriodLimit(account="acme", meter="usd_micro", period=Period.DAY, limit=6),)},
        ),
        ({"expires_at": NOON}, {"expires_at": "2026-11-30T12:00:00.001Z"}),
        ({"grantee": "bot"}, None),
    ],
)
def test_a_delegation_only_narrows(narrow, wide):
    assert wider(leaf(**narrow)) is None
    if wide is not None:
        assert wider(leaf(**wide)) == "grant.widened"


def test_a_delegation_is_compared_with_every_grant_above_it():
    tight = leaf(id="tight", acts=("refund",), limits=(Limit(meter="usd_micro", limit=3),))
    assert wider(leaf(acts=("db.read",)), tight, ABOVE) == "grant.widened"
    assert wider(leaf(limits=(Limit(meter="usd_micro", limit=4),)), tight, ABOVE) == "grant.widened"
    loose = leaf(id="loose", limits=(Limit(meter="requests", limit=3),))
    assert wider(leaf(limits=(Limit(meter="usd_micro", limit=11),)), loose, ABOVE) == "grant.widened"


def test_a_delegation_to_another_actor_names_the_mandate():
    assert wider(leaf(grantee="other")) == "grant.unmandated"
    assert wider(leaf(grantee="other", mandate="head of support")) is None


def test_a_delegation_beyond_the_deepest_level_is_refused():
    above = tuple(leaf(id=str(n)) for n in range(MAX_LEVELS - 1))
    assert wider(leaf(), *above, ABOVE) == "grant.widened"
    assert wider(leaf(), *above[1:], ABOVE) is None


def words(alphabet, longest):
    return ["".join(each) for size in range(longest + 1) for each in product(alphabet, repeat=size)]


def test_a_pattern_that_lies_within_another_covers_nothing_beyond_it():
    """All pairs of short patterns, against all short texts."""
    texts, patterns = words("ab/", 4), words("a/*?", 3)
    pairs = [(narrow, wide) for narrow, wide in product(patterns, patterns) if lies_within(narrow, wide)]
    assert len(pairs) > 300
    for narrow, wide in pairs:
        assert all(matches(wide, text) for text in texts if matches(narrow, text)), (narrow, wide)


def test_a_pattern_lies_within_itself_and_within_what_plainly_covers_it():
    for narrow, wide in (("a", "a"), ("a", "*"), ("a.*", "a.*"), ("a.b*", "a.*"), ("a/b*", "a**"), ("*", "**")):
        assert lies_within(narrow, wide), (narrow, wide)
    for narrow, wide in (("a/b*", "a*"), ("a**", "a*"), ("*", "a*"), ("b*", "a*"), ("a*", "*a")):
        assert not lies_within(narrow, wide), (narrow, wide)


# Separation of duties.


def test_duties_are_filled_by_different_keys_in_their_roles():
    duties = (Duty("finance"), Duty("security"))
    assert unfilled(duties, [("ada", "finance"), ("bob", "security")]) is None
    assert unfilled(duties, [("ada", "finance"), ("bob", "finance")]) == Duty("security")
    assert unfilled(duties, [("ada", "finance"), ("ada", "security")]) is not None
    # Whoever could fill both makes room for the one who can fill only one.
    assert unfilled(duties, [("ada", "finance"), ("ada", "security"), ("bob", "finance")]) is None
    assert unfilled((Duty("ops", 2),), [("ada", "ops"), ("ada", "ops")]) == Duty("ops", 2)
    assert unfilled((), []) is None


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=7),
    st.lists(st.sampled_from("xyz"), max_size=4),
)
def test_duties_are_filled_where_some_assignment_fills_them(approvals, places):
    """Against all assignments: one key a place, no key twice."""
    counts = {role: places.count(role) for role in dict.fromkeys(places)}
    duties = tuple(Duty(role, count) for role, count in counts.items())
    willing = [[key for key, role in set(approvals) if role == place] for place in places]
    possible = any(len(set(chosen)) == len(chosen) for chosen in product(*willing))
    assert (unfilled(duties, approvals) is None) is possible


def test_the_duties_of_a_line_are_the_most_that_any_grant_of_it_asks_for():
    above = root(terms=Terms(duties=(Duty("ops", 2), Duty("finance"))))
    assert set(duties_of((leaf(terms=Terms(duties=(Duty("ops"), Duty("security")))), above))) == {
        Duty("ops", 2),
        Duty("finance"),
        Duty("security"),
    }
