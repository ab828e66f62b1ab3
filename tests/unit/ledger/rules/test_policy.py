"""Decisions of policies, one act at a time."""

import json

import pytest

from ledger.members import Act, Tool
from ledger.rules.policy import DENY_MISSING, Answer, Decision, decide, strictest
from ledger.rules.policy_file import read_policy
from ledger.words import Access, Reason

ALLOW, ASK, DENY = Answer


def policy(text):
    return read_policy((text if isinstance(text, str) else json.dumps(text)).encode()).policy


def act(tool, *, name=None, access="unknown", inline=None):
    return Act(
        name=name or tool,
        tool=Tool(name=tool, version="unknown", digest="unknown"),
        access=Access(access) if access != "unknown" else "unknown",
        arguments=inline,
        arguments_digest="unknown",
        resource="unknown",
        environment="unknown",
    )


def answer(document, tool, arguments=None, **members):
    return decide(policy(document), act(tool, **members), arguments).answer


def axlr(level, **tools):
    return {"policy": {"level": level, "tools": tools}} if tools else {"level": level}


def ours(**members):
    return {"schema": "receipt-ledger.policy/v1", "level": "act-within-policy", **members}


SEED = """{"policy": {"level": "observe", "tools": {"allow": [{"name": "observability.query_logs"},
  {"name": "local_read", "arguments": {"path": "logs/**"}}], "deny": [{"name": "local_exec"}]}}}"""


@pytest.mark.parametrize(
    ("tool", "arguments", "expected", "reason"),
    [
        ("observability.query_logs", {}, ALLOW, None),
        ("local_read", {"path": "logs/a/b.txt"}, ALLOW, None),
        ("local_read", {"path": "log/a"}, DENY, Reason.POLICY_NOT_LISTED),
        ("local_read", {"path": "logs/../secret"}, DENY, Reason.POLICY_NOT_LISTED),
        ("local_read", {}, DENY, Reason.POLICY_NOT_LISTED),
        ("local_read", {"path": ["logs/a"]}, DENY, Reason.POLICY_NOT_LISTED),
        ("local_list", {}, DENY, Reason.POLICY_NOT_LISTED),
        ("local_exec", {}, DENY, Reason.POLICY_DENIED),
    ],
)
def test_the_example_of_the_contract_decides_as_its_text_says(tool, arguments, expected, reason):
    found = decide(policy(SEED), act(tool), arguments)
    assert (found.answer, found.reason) == (expected, reason)


def test_the_published_policy_is_read(shared):
    data = (shared / "axlr/seed000__policy.example.json").read_bytes()
    assert read_policy(data).policy == policy(SEED)


READS = [
    *("local_read", "local_search", "local_list", "axlr_tools", "axlr_history", "axlr_skill", "axlr_session"),
    *("axlr_logs", "axlr_catalog", "axlr_repair_status", "axlr_recall", "axlr_judge"),
]


@pytest.mark.parametrize(
    ("level", "read", "write", "mcp"),
    [
        ("observe", ALLOW, DENY, DENY),
        ("propose", ALLOW, DENY, DENY),
        ("act-with-approval", ALLOW, ASK, ASK),
        ("act-within-policy", ALLOW, ALLOW, ALLOW),
    ],
)
def test_without_an_allow_list_the_level_alone_decides(level, read, write, mcp):
    for tool in READS:
        assert answer(axlr(level), tool) is read
    for tool in ("local_exec", "local_write", "axlr_call_tool"):
        assert answer(axlr(level), tool, {"path": "a.go"}) is write
    assert answer(axlr(level), "db.get") is mcp


@pytest.mark.parametrize(
    ("level", "expected"),
    [("observe", ALLOW), ("propose", ALLOW), ("act-with-approval", ASK), ("act-within-policy", ALLOW)],
)
def test_an_allow_list_vouches_that_the_mcp_tools_it_names_read(level, expected):
    assert answer(axlr(level, allow=[{"name": "db.*"}]), "db.get") is expected
    assert answer(axlr(level, allow=[{"name": "db.*"}]), "files.get") is DENY


def test_a_caller_can_only_make_it_stricter_what_a_tool_does():
    vouched = axlr("observe", allow=[{"name": "db.get"}])
    assert answer(vouched, "db.get", access="read") is ALLOW
    assert answer(vouched, "db.get", access="write") is DENY
    assert answer(axlr("observe"), "local_exec", access="read") is DENY
    assert answer(axlr("observe"), "local_read", access="write") is DENY


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("plan.md", ALLOW),
        ("a/b.mdx", ALLOW),
        ("x.txt", ALLOW),
        ("x.rst", ALLOW),
        ("fix.diff", ALLOW),
        ("fix.patch", ALLOW),
        ("docs/run.sh", ALLOW),
        ("./docs/run.sh", ALLOW),
        ("main.go", DENY),
        ("md", DENY),
        ("plan.md.sh", DENY),
        ("docs/../main.go", DENY),
        ("docs\\..\\main.go", DENY),
        ("docs/", DENY),
        ("docs", DENY),
        ("mydocs/x", DENY),
        ("/docs/x", DENY),
        ("x.sh\x00.md", DENY),
        (["plan.md"], DENY),
    ],
)
def test_propose_writes_plans_and_diffs_only(path, expected):
    for tool in ("local_write", "local_edit"):
        assert answer(axlr("propose"), tool, {"path": path}) is expected
    assert answer(axlr("propose"), "local_exec", {"path": path}) is DENY
    assert answer(axlr("observe"), "local_write", {"path": path}) is DENY


def test_a_write_without_a_path_is_no_proposal():
    assert answer(axlr("propose"), "local_write", {}) is DENY


def test_deny_wins_over_allow_and_an_empty_allow_list_forbids_all():
    both = axlr("act-within-policy", allow=[{"name": "a"}], deny=[{"name": "a"}])
    assert answer(both, "a") is DENY
    assert answer(axlr("act-within-policy", allow=[]), "local_read") is DENY
    assert answer(axlr("act-within-policy", allow=[{"name": "**"}]), "local_read") is ALLOW


def test_a_rule_with_patterns_needs_every_named_argument():
    rule = [{"name": "local_exec", "arguments": {"program": "kubectl", "args": "*get*"}}]
    document = axlr("act-within-policy", allow=rule)
    assert answer(document, "local_exec", {"program": "kubectl", "args": ["get", "pods"]}) is ALLOW
    assert answer(document, "local_exec", {"program": "kubectl"}) is DENY
    assert answer(document, "local_exec", {"program": "kubectl", "args": ["delete"]}) is DENY
    assert answer(document, "local_exec", {"program": "kubectl2", "args": ["get"]}) is DENY
    denied = axlr("act-within-policy", deny=rule)
    assert answer(denied, "local_exec", {"program": "kubectl", "args": ["get", "pods"]}) is DENY
    assert answer(denied, "local_exec", {"program": "kubectl"}) is ALLOW


@pytest.mark.parametrize(
    ("value", "pattern"),
    [(7, "7"), (True, "true"), (None, "null"), (["a", 1], '["a",1]'), ({"b": 1, "a": 2}, '{"a":2,"b":1}'), ("7", "7")],
)
def test_patterns_are_over_the_value_as_text(value, pattern):
    document = axlr("act-within-policy", allow=[{"name": "t", "arguments": {"x": pattern}}])
    assert answer(document, "t", {"x": value}) is ALLOW
    assert answer(document, "t", {"x": f"{value}x"}) is DENY


def test_a_deny_of_a_path_also_covers_other_spellings_of_it():
    document = axlr("act-within-policy", deny=[{"name": "local_read", "arguments": {"path": "secret/**"}}])
    for path in ("secret/a", "./secret/a", "x/../secret/a", "secret//a", "secret/./a"):
        assert answer(document, "local_read", {"path": path}) is DENY
    assert answer(document, "local_read", {"path": "public/a"}) is ALLOW


def test_a_rule_covers_a_tool_by_its_own_name_or_by_that_of_the_act():
    denied = axlr("act-within-policy", deny=[{"name": "payments.*"}])
    assert answer(denied, "payments_refund", name="payments.refund") is DENY
    assert answer(denied, "payments.refund", name="refund") is DENY
    assert answer(denied, "payments_refund", name="refund") is ALLOW


REFUNDS = ours(
    rules=[
        {"name": "never", "act": "refund", "when": {"amount": {"gt": 100_000}}, "then": "deny"},
        {
            "name": "small",
            "act": "refund",
            "when": {"amount": {"le": 5_000}, "currency": {"eq": "EUR"}},
            "then": "allow",
        },
        {"name": "large", "act": "refund", "then": "ask", "roles": ["finance"], "needed": 2},
        {"name": "reads", "act": "get.*", "then": "allow"},
        {"name": "odd", "act": "odd", "when": {"n": {"ne": 1}}, "then": "allow"},
    ]
)


@pytest.mark.parametrize(
    ("inline", "rule"),
    [
        ({"amount": 5_000, "currency": "EUR"}, "small"),
        ({"amount": 5_001, "currency": "EUR"}, "large"),
        ({"amount": 5_000, "currency": "USD"}, "large"),
        ({"amount": 100_000, "currency": "EUR"}, "large"),
        ({"amount": 100_001, "currency": "EUR"}, "never"),
        ({"amount": "5000", "currency": "EUR"}, "never"),
        ({"amount": True, "currency": "EUR"}, "never"),
        ({"amount": None}, "never"),
        ({}, "never"),
    ],
)
def test_the_first_rule_that_matches_decides_and_what_cannot_be_compared_only_tightens(inline, rule):
    assert decide(policy(REFUNDS), act("refund", inline=inline), None).rule == rule


def test_six_comparisons_compare():
    table = {"eq": (5, 6), "ne": (6, 5), "lt": (4, 5), "le": (5, 6), "gt": (6, 5), "ge": (5, 4)}
    for comparison, (yes, no) in table.items():
        document = ours(rules=[{"name": "r", "act": "a", "when": {"n": {comparison: 5}}, "then": "allow"}])
        assert answer(document, "a", inline={"n": yes}) is ALLOW
        assert answer(document, "a", inline={"n": no}) is DENY
        texts = ours(rules=[{"name": "r", "act": "a", "when": {"n": {comparison: "5"}}, "then": "allow"}])
        assert answer(texts, "a", inline={"n": str(yes)}) is ALLOW
        assert answer(texts, "a", inline={"n": str(no)}) is DENY
        assert answer(texts, "a", inline={"n": yes}) is DENY


def test_a_rule_that_asks_says_by_whom_and_how_many():
    found = decide(policy(REFUNDS), act("refund", inline={"amount": 6_000}), None)
    assert (found.answer, found.reason, found.roles, found.needed) == (
        ASK,
        Reason.APPROVAL_REQUIRED,
        ("finance",),
        2,
    )


def test_an_unknown_action_and_one_without_a_matching_rule_are_denied_with_their_reason():
    unknown = decide(policy(REFUNDS), act("launch"), None)
    assert (unknown.answer, unknown.reason) == (DENY, Reason.ACTION_UNKNOWN)
    unmatched = decide(policy(REFUNDS), act("odd", inline={"n": 1}), None)
    assert (unmatched.answer, unmatched.reason) == (DENY, Reason.POLICY_NOT_LISTED)
    assert answer(ours(rules=[]), "anything") is DENY


def test_a_missing_policy_denies():
    assert decide(None, act("a"), None) is DENY_MISSING
    assert DENY_MISSING.answer is DENY


def test_what_always_asks_asks_whatever_else_allows_and_never_loosens_a_deny():
    document = ours(
        always_ask=[{"name": "git", "arguments": {"args": "*--force*"}}], tools={"deny": [{"name": "git2"}]}
    )
    assert answer(document, "git", {"args": ["push", "--force"]}) is ASK
    assert answer(document, "git", {"args": ["push"]}) is ALLOW
    assert answer(ours(always_ask=[{"name": "**"}], tools={"deny": [{"name": "git"}]}), "git") is DENY


def test_what_always_asks_asks_for_no_fewer_approvals_and_no_standing_one_answers_it():
    document = ours(
        rules=[{"name": "one", "act": "git", "then": "ask", "roles": ["ops"], "needed": 1}],
        always_ask=[{"name": "git"}],
        approval={"roles": ["security"], "needed": 2},
    )
    found = decide(policy(document), act("git"), {})
    assert (found.rule, found.roles, found.needed, found.standing) == ("one", ("ops",), 2, False)


def test_our_lists_say_which_tools_read_and_one_in_no_list_writes():
    document = ours(level="observe", access={"read": ["db.get*"], "propose": ["plan.*"]})
    assert answer(document, "db.get_user") is ALLOW
    assert answer(document, "db.get_user", access="write") is DENY
    assert answer(document, "db.put", access="read") is DENY
    assert answer(document, "plan.write") is DENY
    assert answer(document, "local_read") is DENY
    proposing = ours(level="propose", access={"read": ["db.get*"], "propose": ["plan.*"]})
    assert answer(proposing, "plan.write") is ALLOW
    assert answer(proposing, "plan.write", access="write") is DENY
    asking = ours(level="act-with-approval", access={"read": ["db.get*"]})
    assert answer(asking, "db.get_user") is ALLOW
    assert answer(asking, "db.put") is ASK


def test_a_policy_that_only_observes_lets_run_and_says_what_it_would_have_done():
    found = decide(policy(ours(mode="observe", tools={"deny": [{"name": "a"}]})), act("a"), None)
    assert (found.answer, found.observed, found.runs) == (DENY, True, True)
    allowed = decide(policy(ours(mode="observe")), act("a"), None)
    assert (allowed.answer, allowed.observed, allowed.runs) == (ALLOW, False, True)
    enforced = decide(policy(ours(tools={"deny": [{"name": "a"}]})), act("a"), None)
    assert not enforced.runs


def test_the_strictest_of_decisions_stands_and_those_that_ask_are_joined():
    ask = Decision(ASK, Reason.APPROVAL_REQUIRED, "a", ("x",), 1)
    other = Decision(ASK, Reason.APPROVAL_REQUIRED, "b", ("x", "y"), 2)
    assert strictest((Decision(ALLOW), ask)).rule == "a"
    assert strictest((ask, Decision(DENY, Reason.POLICY_DENIED, "d"), other)).rule == "d"
    joined = strictest((ask, other))
    assert (joined.rule, joined.roles, joined.needed) == ("a", ("x",), 2)
    with pytest.raises(ValueError, match="no decisions"):
        strictest(())


def test_arguments_that_are_not_at_hand_are_taken_as_told():
    document = policy(axlr("act-within-policy", allow=[{"name": "t", "arguments": {"x": "a"}}]))
    assert decide(document, act("t"), {}, unseen="favours").answer is ALLOW
    assert decide(document, act("t"), {}, unseen="hinders").answer is DENY
    denied = policy(axlr("act-within-policy", deny=[{"name": "t", "arguments": {"x": "a"}}]))
    assert decide(denied, act("t"), {}, unseen="favours").answer is ALLOW
    assert decide(denied, act("t"), {}, unseen="hinders").answer is DENY
    assert decide(denied, act("t"), {"x": "b"}, unseen="hinders").answer is ALLOW
    proposed = policy(axlr("propose"))
    assert decide(proposed, act("local_write"), {}, unseen="favours").answer is ALLOW
    assert decide(proposed, act("local_write"), {}, unseen="hinders").answer is DENY
