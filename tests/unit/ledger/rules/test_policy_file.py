"""Policy documents: what is read, and what refuses the file."""

import json

import pytest

from ledger import canonical
from ledger.digest import digest
from ledger.rules.errors import PolicyError
from ledger.rules.policy import Answer, Level
from ledger.rules.policy_file import parse_policy, read_policy

OURS = {
    "schema": "receipt-ledger.policy/v1",
    "level": "act-within-policy",
    "mode": "enforce",
    "access": {"read": ["db.get*"], "propose": []},
    "tools": {"allow": [{"name": "db.*"}], "deny": [{"name": "shell", "arguments": {"x": ""}}]},
    "rules": [
        {"name": "small", "act": "refund", "when": {"amount": {"ge": 1, "le": 5}}, "then": "allow"},
        {"name": "large", "act": "refund", "then": "ask", "roles": ["finance"], "needed": 2},
    ],
    "always_ask": [{"name": "git.push"}],
    "approval": {"roles": ["ops"], "needed": 1, "expires_ms": 900000},
}


def changed(*path, value=None, drop=False):
    """OURS with one place changed."""
    copy = json.loads(json.dumps(OURS))
    at = copy
    for step in path[:-1]:
        at = at[step]
    if drop:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(copy).encode()


def test_every_member_of_ours_is_read():
    policy = read_policy(json.dumps(OURS).encode()).policy
    assert (policy.level, policy.native, policy.observed) == (Level.ACT_WITHIN_POLICY, True, False)
    assert (policy.reads, policy.proposes, policy.roles, policy.needed, policy.expires_ms) == (
        ("db.get*",),
        (),
        ("ops",),
        1,
        900_000,
    )
    assert [rule.then for rule in policy.rules] == [Answer.ALLOW, Answer.ASK]
    assert [(each.argument, each.comparison, each.value) for each in policy.rules[0].when] == [
        ("amount", "ge", 1),
        ("amount", "le", 5),
    ]


def test_layout_changes_neither_the_kept_bytes_nor_the_digest():
    plain = read_policy(json.dumps(OURS).encode())
    laid_out = read_policy(json.dumps(OURS, indent=4).encode())
    assert plain == laid_out
    assert plain.data == canonical.encode(OURS)
    assert plain.digest == digest(plain.data)
    assert parse_policy(plain.data) == plain
    other = read_policy(changed("approval", "needed", value=2))
    assert other.digest != plain.digest


def test_a_kept_document_is_canonical_or_refused():
    kept = read_policy(json.dumps(OURS).encode()).data
    with pytest.raises(PolicyError):
        parse_policy(kept + b" ")
    with pytest.raises(PolicyError):
        parse_policy(json.dumps(OURS).encode())


def test_the_wrapper_of_an_axlr_policy_may_be_left_out():
    inner = b'{"level": "observe", "tools": {"allow": []}}'
    assert read_policy(inner).policy == read_policy(b'{"policy": ' + inner + b"}").policy
    assert read_policy(inner).policy.allow == ()
    assert read_policy(b'{"level": "observe"}').policy.allow is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "level: observe",
        "{}",
        '{"policy": {}}',
        '{"policy": null}',
        '{"level": "act"}',
        '{"level": "Observe"}',
        '{"level": null}',
        '{"level": "observe", "budget": {"usd": 1}}',
        '{"level": "observe", "Tools": {}}',
        '{"level": "observe", "tools": null, "x": 1}',
        '{"level": "observe", "tools": {"allow": null}}',
        '{"level": "observe", "tools": {"allow": {}}}',
        '{"level": "observe", "tools": {"ask": []}}',
        '{"level": "observe", "tools": {"allow": ["local_read"]}}',
        '{"level": "observe", "tools": {"allow": [{}]}}',
        '{"level": "observe", "tools": {"allow": [{"name": ""}]}}',
        '{"level": "observe", "tools": {"allow": [{"name": 1}]}}',
        '{"level": "observe", "tools": {"allow": [{"name": "a", "args": {}}]}}',
        '{"level": "observe", "tools": {"allow": [{"name": "a", "arguments": {"x": 1}}]}}',
        '{"level": "observe", "tools": {"allow": [{"name": "a", "arguments": []}]}}',
        '{"level": "observe", "level": "observe"}',
        '{"level": "observe", "tools": {"deny": [{"name": "a", "name": "b"}]}}',
        '{"policy": {"level": "observe"}, "policy": {"level": "observe"}}',
        '{"policy": {"level": "observe"}, "x": 1}',
        '{"level": "observe"} {}',
        '{"level": "observe",}',
        '\ufeff{"level": "observe"}',
        '{"level": "observe", "tools": {"deny": [{"name": "\\ud800"}]}}',
        '{"schema": "receipt-ledger.policy/v2", "level": "observe"}',
        '{"schema": "receipt-ledger.policy/v1"}',
        '{"schema": null, "level": "observe"}',
        "[" * 50_000,
        '{"a":' * 50_000,
    ],
)
def test_another_shape_refuses_the_file(text):
    with pytest.raises(PolicyError):
        read_policy(text.encode())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("x",), 1),
        (("mode",), "off"),
        (("access", "write"), []),
        (("access", "read"), "db.get"),
        (("access", "read"), ["a", "a"]),
        (("rules",), {}),
        (("rules", 0, "then"), "maybe"),
        (("rules", 0, "then"), 0),
        (("rules", 0, "else"), "deny"),
        (("rules", 0, "name"), ""),
        (("rules", 0, "name"), "large"),
        (("rules", 0, "when"), []),
        (("rules", 0, "when", "amount"), {}),
        (("rules", 0, "when", "amount", "in"), 1),
        (("rules", 0, "when", "amount", "eq"), 1.0),
        (("rules", 0, "when", "amount", "eq"), True),
        (("rules", 0, "when", "amount", "eq"), None),
        (("rules", 0, "when", "amount", "eq"), [1]),
        (("rules", 0, "when", "amount", "eq"), 2**53),
        (("rules", 0, "roles"), ["x"]),
        (("rules", 1, "needed"), 0),
        (("always_ask",), ["git.push"]),
        (("approval", "needed"), 0),
        (("approval", "needed"), True),
        (("approval", "expires_ms"), -1),
        (("approval", "quorum"), 1),
    ],
)
def test_one_wrong_place_in_ours_refuses_the_file(path, value):
    with pytest.raises(PolicyError):
        read_policy(changed(*path, value=value))


@pytest.mark.parametrize("path", [("level",), ("rules", 0, "name"), ("rules", 0, "act"), ("rules", 0, "then")])
def test_a_required_member_that_is_missing_refuses_the_file(path):
    with pytest.raises(PolicyError):
        read_policy(changed(*path, drop=True))


def test_bytes_that_are_no_utf8_or_too_many_are_refused():
    with pytest.raises(PolicyError):
        read_policy(b'{"level": "observe\xff"}')
    with pytest.raises(PolicyError):
        read_policy(b'{"level": "observe"}' + b" " * (1 << 20))
