"""Null stands for no member: every member of every document that a person writes is refused with it, and may be absent where that is said."""

import json

import pytest

from ledger.answering import print_requests, read_requests
from ledger.errors import LedgerError
from ledger.members import Act, Actor
from ledger.receipt import act_digest
from ledger.rules.amounts import read_budget
from ledger.rules.evaluation import read_criteria
from ledger.rules.grant_terms import read_terms
from ledger.rules.policy_file import read_policy
from ledger.rules.runbook import read_envelope
from ledger.rules.runbook_derive import derive

DIGEST = "sha256:" + "0" * 64
RUN = "sha256:" + "1" * 64
ASSERTION = {"id": "rows", "at": "/rows", "is": "at_least", "value": 1}
ACTOR = {"agent": "bot", "user": "ann", "model": "unknown"}
ACT = {
    "name": "pay",
    "tool": {"name": "bank", "version": "1", "digest": "unknown"},
    "access": "write",
    "arguments": {"to": "x", "note": None},
    "arguments_digest": DIGEST,
    "resource": "unknown",
    "environment": "unknown",
    "amount": {"meter": "usd_micro", "value": 5},
    "precondition": DIGEST,
}
TOOLS = {"allow": [{"name": "db.*", "arguments": {"x": "*"}}], "deny": [{"name": "shell", "arguments": {"x": ""}}]}
DOCUMENTS = {
    "axlr-policy": (read_policy, {"level": "observe", "tools": TOOLS}),
    "wrapped-policy": (read_policy, {"policy": {"level": "observe", "tools": TOOLS}}),
    "policy": (
        read_policy,
        {
            "schema": "receipt-ledger.policy/v1",
            "level": "act-within-policy",
            "mode": "enforce",
            "access": {"read": ["db.get*"], "propose": ["x"]},
            "tools": TOOLS,
            "rules": [
                {
                    "name": "large",
                    "act": "refund",
                    "when": {"a": {"le": 5}},
                    "then": "ask",
                    "roles": ["ops"],
                    "needed": 2,
                }
            ],
            "always_ask": [{"name": "git.push", "arguments": {"args": "*"}}],
            "approval": {"roles": ["ops"], "needed": 1, "expires_ms": 900000},
        },
    ),
    "budget": (read_budget, {"seconds": 9, "usd": 1, "tool_calls": 2, "fetch->fetch": 3}),
    "wrapped-budget": (read_budget, {"budget": {"seconds": 9}}),
    "envelope": (
        read_envelope,
        {
            "schema": "receipt-ledger.runbook-envelope/v1",
            "document": DIGEST,
            "mode": "agent-autonomous",
            "allowlist": ["db.read"],
            "start": "count",
            "terminals": ["done"],
            "undeclared": [{"step": "count", "tool": "x"}],
            "budgets": {"count->done": 2},
            "min_runtime_profile": "R2",
            "steps": {
                "count": {
                    "tools": ["db.read"],
                    "gated": False,
                    "risk": "read-only",
                    "next": "done",
                    "on_fail": "done",
                    "expect": True,
                    "assert": [ASSERTION],
                    "body": DIGEST,
                    "trust": "T1",
                },
                "done": {"tools": [], "gated": False, "risk": "read-only"},
            },
        },
    ),
    "runbook": (
        derive,
        {
            "schema": "receipt-ledger.runbook/v1",
            "mode": "agent-autonomous",
            "capabilities": ["db.read"],
            "min_runtime_profile": "R2",
            "steps": [
                {
                    "id": "count",
                    "tool": ["db.read"],
                    "risk": "read-only",
                    "requires_approval": False,
                    "retry": {"count": 2},
                    "expect": "rows",
                    "assert": [ASSERTION],
                    "on_fail": "done",
                    "body": "count",
                    "trust": "T1",
                },
                {"id": "done", "terminal": True},
            ],
        },
    ),
    "criteria": (
        read_criteria,
        {
            "schema": "receipt-ledger.criteria/v1",
            "checks": [
                {"id": "rows", "required": True, "statement": "Rows.", "assert": {**ASSERTION}},
            ],
        },
    ),
    "terms": (
        read_terms,
        {
            "schema": "receipt-ledger.terms/v1",
            "when": {"amount": {"le": 5}},
            "approvals": [{"role": "ops", "needed": 1}],
        },
    ),
    "requests": (
        read_requests,
        {
            "schema": "receipt-ledger.requests/v1",
            "requests": [
                {
                    "ledger": "example.org/l",
                    "request": DIGEST,
                    "run": RUN,
                    "run_name": "work",
                    "actor": ACTOR,
                    "act": ACT,
                    "act_digest": "",
                    "arguments": {"to": "x", "note": None},
                    "effect_key": "pay:1",
                    "policy": DIGEST,
                    "rule": "large",
                    "meter": "usd_micro",
                    "roles": ["ops"],
                    "needed": 1,
                    "expires_at": "2026-11-30T09:15:00.123Z",
                    "answer": "granted",
                    "role": "ops",
                }
            ],
        },
    ),
}
BLANKS = {("requests", 0, "answer"), ("requests", 0, "role")}


def places(value, at=()):
    """Every place below a document, those inside arguments of an act left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*at, name)
        if not (name == "arguments" and "note" in item):
            yield from places(item, (*at, name))


def document(name):
    read, value = DOCUMENTS[name]
    value = json.loads(json.dumps(value))
    for each in value.get("requests", ()):
        act, actor = Act.model_validate(each["act"]), Actor.model_validate(each["actor"])
        each["act_digest"] = act_digest(
            act, ledger=each["ledger"], run=each["run"], actor=actor, effect_key=each["effect_key"]
        )
    return read, value


def without(value, path, *replacement):
    """The document with a place put to another value, or left out."""
    at = value
    for step in path[:-1]:
        at = at[step]
    if replacement:
        at[path[-1]] = replacement[0]
    else:
        del at[path[-1]]
    return json.dumps(value).encode()


PLACES = [(name, path) for name, (_, value) in DOCUMENTS.items() for path in places(value)]
SAID = [f"{name}:{'.'.join(map(str, path))}" for name, path in PLACES]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_whole_document_is_read(name):
    read, value = document(name)
    assert read(json.dumps(value).encode())


@pytest.mark.parametrize(("name", "path"), PLACES, ids=SAID)
def test_null_in_any_place_refuses_the_document(name, path):
    read, value = document(name)
    data = without(value, path, None)
    if name == "requests" and path in BLANKS:
        assert getattr(read(data)[0], path[-1]) is None
        return
    with pytest.raises(LedgerError) as refused:
        read(data)
    assert refused.value.code.endswith((".malformed", ".unknown", ".unknown_member"))


OPTIONAL = [
    ("axlr-policy", ("tools",)),
    ("axlr-policy", ("tools", "allow")),
    ("axlr-policy", ("tools", "deny")),
    ("axlr-policy", ("tools", "allow", 0, "arguments")),
    *(("policy", (each,)) for each in ("mode", "access", "tools", "rules", "always_ask", "approval")),
    *(("policy", ("access", each)) for each in ("read", "propose")),
    *(("policy", ("rules", 0, each)) for each in ("when", "roles", "needed")),
    *(("policy", ("approval", each)) for each in ("roles", "needed", "expires_ms")),
    ("policy", ("always_ask", 0, "arguments")),
    *(("budget", (each,)) for each in ("seconds", "usd", "tool_calls", "fetch->fetch")),
    ("envelope", ("min_runtime_profile",)),
    *(("envelope", ("steps", "count", each)) for each in ("on_fail", "expect", "assert", "body", "trust")),
    ("runbook", ("min_runtime_profile",)),
    *(
        ("runbook", ("steps", 0, each))
        for each in ("tool", "risk", "requires_approval", "retry", "expect", "assert", "on_fail", "body", "trust")
    ),
    *(("criteria", ("checks", 0, each)) for each in ("statement", "assert")),
    *(("terms", each) for each in (("when",), ("approvals",), ("approvals", 0, "needed"))),
    *(
        ("requests", ("requests", 0, each))
        for each in ("arguments", "policy", "rule", "meter", "roles", "needed", "expires_at", "answer", "role")
    ),
]


@pytest.mark.parametrize(("name", "path"), OPTIONAL, ids=[f"{n}:{'.'.join(map(str, p))}" for n, p in OPTIONAL])
def test_what_is_optional_may_be_absent(name, path):
    read, value = document(name)
    assert (name, path) in PLACES
    assert read(without(value, path)) is not None


def test_the_file_of_requests_is_printed_without_nulls_but_blanks_and_is_read_again():
    read, value = document("requests")
    request = value["requests"][0]
    for name in ("policy", "rule", "meter", "expires_at", "answer", "role"):
        del request[name]
    asked = read(json.dumps(value).encode())
    printed = json.loads(json.dumps(print_requests(asked)))
    assert printed["requests"][0] == {**request, "answer": None, "role": None}
    assert read(json.dumps(printed).encode()) == asked


def test_a_value_that_an_assertion_compares_with_may_be_null():
    read, value = document("criteria")
    said = {"id": "x", "at": "/rows", "is": "equals", "value": None}
    assert read(without(value, ("checks", 0, "assert"), said)) is not None


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (read_policy, '{"level": "observe", "tools": null}', "policy: tools: got null, expected a value"),
        (read_policy, '{"level": "observe", "x": 1}', "policy: got member 'x', expected only level, tools"),
        (read_policy, '{"policy": []}', "policy: got [], expected an object"),
        (read_policy, "{}", "policy: got no member level"),
        (read_policy, '{"level": "observe", "tools": {"x": 1}}', "policy: tools: got member 'x'"),
        (
            read_policy,
            json.dumps({"level": "observe", "tools": {"deny": [{"name": "a", "arguments": {"x": "y" * 1001}}]}}),
            "expected a text of at most 1000 characters",
        ),
        (read_policy, '{"level": "observe", "tools": {"deny": [{"name": ""}]}}', "a text of 1 to 200 characters"),
    ],
)
def test_a_refusal_names_the_place_once_and_what_is_admitted(read, text, said):
    with pytest.raises(LedgerError) as refused:
        read(text.encode())
    assert said in str(refused.value)
