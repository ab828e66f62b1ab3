"""Globs against an independent matcher, and the laws of policies: narrowing, monotony of what is not seen."""

import json

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ledger.members import Act, Tool
from ledger.rules.glob import is_literal, matches
from ledger.rules.narrowing import narrows
from ledger.rules.policy import Answer, decide
from ledger.rules.policy_file import parse_policy, read_policy
from ledger.words import Access
from tests.reference.slow_rules import covers

patterns = st.text("ab/.*?\n", max_size=9)
texts = st.text("ab/.\n", max_size=9)
TOOLS = ["local_read", "local_write", "local_exec", "db.get", "db/x"]
tool_patterns = st.sampled_from([*TOOLS, "local_*", "db.*", "*", "**", "db/*", "?ocal_read"])
argument_patterns = st.dictionaries(
    st.sampled_from(["path", "x"]), st.sampled_from(["a", "*", "docs/**", "*.md"]), max_size=2
)
tool_rules = st.lists(
    st.builds(
        lambda name, found: {"name": name, "arguments": found} if found else {"name": name},
        tool_patterns,
        argument_patterns,
    ),
    max_size=3,
)
levels = st.sampled_from(["observe", "propose", "act-with-approval", "act-within-policy"])
conditions = st.dictionaries(
    st.just("n"), st.dictionaries(st.sampled_from(["eq", "ne", "lt", "ge"]), st.integers(0, 3), min_size=1), max_size=1
)


roles = st.lists(st.sampled_from(["ops", "finance"]), max_size=2, unique=True)


@st.composite
def rules(draw):
    made = draw(
        st.lists(
            st.fixed_dictionaries(
                {"act": tool_patterns, "then": st.sampled_from(["allow", "ask", "deny"])}, optional={"when": conditions}
            ).flatmap(
                lambda rule: st.fixed_dictionaries(
                    {name: st.just(value) for name, value in rule.items()},
                    optional={"roles": roles, "needed": st.integers(1, 3)} if rule["then"] == "ask" else {},
                )
            ),
            max_size=3,
        )
    )
    return [{"name": f"r{place}", **rule} for place, rule in enumerate(made)]


tools = st.fixed_dictionaries({}, optional={"allow": tool_rules, "deny": tool_rules})
foreign = st.fixed_dictionaries({"level": levels}, optional={"tools": tools})
native = st.fixed_dictionaries(
    {"schema": st.just("receipt-ledger.policy/v1"), "level": levels},
    optional={
        "tools": tools,
        "mode": st.sampled_from(["enforce", "observe"]),
        "access": st.fixed_dictionaries(
            {},
            optional={name: st.lists(tool_patterns, max_size=2, unique=True) for name in ("read", "propose")},
        ),
        "rules": rules(),
        "always_ask": tool_rules,
        "approval": st.fixed_dictionaries({}, optional={"needed": st.integers(1, 2), "roles": roles}),
    },
)
documents = st.one_of(foreign, native)
acts = st.builds(
    lambda tool, access, inline: Act(
        name=tool,
        tool=Tool(name=tool, version="1", digest="unknown"),
        access=access,
        arguments=inline,
        arguments_digest="unknown",
        resource="unknown",
        environment="unknown",
    ),
    st.sampled_from(TOOLS),
    st.sampled_from([*Access, "unknown"]),
    st.dictionaries(st.just("n"), st.one_of(st.integers(0, 3), st.text(max_size=1)), max_size=1),
)
arguments = st.dictionaries(
    st.sampled_from(["path", "x"]), st.sampled_from(["a", "b.md", "docs/a", "docs/../a", 1, ["a"]]), max_size=2
)


def of(document):
    return read_policy(json.dumps(document).encode()).policy


@given(patterns, texts)
def test_a_pattern_covers_what_the_slow_matcher_says(pattern, text):
    assert matches(pattern, text) == covers(pattern, text)


@given(st.lists(st.one_of(st.sampled_from(["*", "**", "?"]), texts), max_size=6), st.data())
def test_a_text_made_from_a_pattern_is_covered_by_it(pieces, data):
    text = ""
    for piece in pieces:
        match piece:
            case "*":
                text += data.draw(st.text("ab", max_size=3))
            case "**":
                text += data.draw(st.text("ab/", max_size=3))
            case "?":
                text += data.draw(st.sampled_from("ab\n"))
            case _:
                text += piece
    assert matches("".join(pieces), text)


@given(st.text(), st.text())
def test_a_pattern_without_wildcards_covers_itself_alone(pattern, text):
    assume(is_literal(pattern))
    assert matches(pattern, pattern)
    assert matches(pattern, text) == (pattern == text)


def test_matching_takes_linear_time_whatever_the_text():
    # Minutes for a matcher that goes back and forth.
    for pattern in ("*a" * 20 + "b", "**a*b/c" * 8, "**a" * 20 + "b", "*a**" * 20 + "b"):
        assert not matches(pattern, "a" * 50_000)


@given(documents)
def test_a_document_is_read_the_same_however_it_is_laid_out(document):
    made = read_policy(json.dumps(document, indent=1).encode())
    assert made == parse_policy(made.data)


@given(documents, acts, arguments)
def test_unseen_arguments_frame_the_decision(document, act, given_):
    policy = of(document)
    for seen in ({}, {name: given_[name] for name in list(given_)[:1]}, given_):
        lenient, strict = (decide(policy, act, seen, unseen=how) for how in ("favours", "hinders"))
        assert lenient.answer <= decide(policy, act, given_).answer <= strict.answer


@st.composite
def pairs(draw):
    """A document, and one that differs from it in a place or two."""
    old = draw(documents)
    new = json.loads(json.dumps(old))
    strategy = native if "schema" in old else foreign
    other = draw(strategy)
    for name in draw(
        st.lists(st.sampled_from(["level", "tools", "access", "rules", "always_ask", "approval", "mode"]), max_size=2)
    ):
        if name in other:
            new[name] = other[name]
    change = draw(st.sampled_from(["none", "deny", "fewer", "narrower", "rules"]))
    found = new.setdefault("tools", {})
    if change == "deny":
        found["deny"] = [*found.get("deny", []), *draw(tool_rules)]
    elif change == "fewer" and found.get("allow"):
        found["allow"] = found["allow"][1:]
    elif change == "narrower":
        found["allow"] = [
            {**rule, "arguments": {"path": "a", **rule.get("arguments", {})}} for rule in found.get("allow", [])
        ]
    elif change == "rules" and "schema" in new:
        new["rules"] = [{"name": "first", "act": draw(tool_patterns), "then": "deny"}, *new.get("rules", [])]
    return old, new


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(pairs(), acts, arguments)
def test_a_policy_that_narrows_decides_nothing_more_leniently(pair, act, given_):
    before, after = map(of, pair)
    assume(narrows(before, after))
    first, second = decide(before, act, given_), decide(after, act, given_)
    assert first.runs >= second.runs
    if not first.observed:
        assert first.answer <= second.answer
    if first.answer is second.answer is Answer.ASK:
        assert second.needed >= first.needed
        assert first.standing >= second.standing
        assert not first.roles or set(second.roles) <= set(first.roles) != set() != set(second.roles)


@given(documents, st.data())
def test_taking_away_narrows(document, data):
    policy = of(document)
    assert narrows(policy, policy)
    tools_ = document.get("tools", {})
    less = {**document, "tools": {**tools_, "deny": [*tools_.get("deny", []), {"name": "more"}]}}
    assert narrows(policy, of(less))
    assert not narrows(of(less), policy) or {"name": "more"} in tools_.get("deny", [])
    if tools_.get("allow"):
        assert narrows(policy, of({**document, "tools": {**tools_, "allow": tools_["allow"][1:]}}))


@given(documents, acts, arguments)
def test_a_deny_rule_for_a_tool_denies_it_under_every_policy(document, act, given_):
    tools_ = document.get("tools", {})
    denied = {**document, "tools": {**tools_, "deny": [*tools_.get("deny", []), {"name": act.tool.name}]}}
    assert decide(of(denied), act, given_).answer is Answer.DENY
    assert decide(of({**document, "tools": {"allow": []}}), act, given_).answer is Answer.DENY
