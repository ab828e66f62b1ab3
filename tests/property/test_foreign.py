"""Foreign documents with any place changed to anything: they are judged and mapped, and nothing raises."""

from __future__ import annotations

import copy
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.runx_receipts import receipt
from verify.foreign import recognise, verify_foreign
from verify.foreign.mapping import Given, mapping_of
from verify.foreign.runx import judge_folder
from verify.options import Options

RESULT = {
    "schema": "axlr.execution-result/v1",
    "status": "needs_decision",
    "session_id": "s",
    "sessions": ["s"],
    "answer": "",
    "pending": {"call_id": "c2", "tool": "local_exec", "arguments": {"args": ["a", 1]}},
    "tool_calls": [
        {"call_id": "c1", "tool": "local_read", "decision": "approve", "status": "completed"},
        {"call_id": "c2", "tool": "local_exec", "status": "pending"},
    ],
    "usage": {
        "requests": 1,
        "prompt_tokens": 1,
        "cached_tokens": 0,
        "cache_write_tokens": 0,
        "completion_tokens": 1,
        "reasoning_tokens": 0,
        "cost_usd": 0.1,
        "cost_requests": 1,
        "unmetered_requests": 0,
    },
    "artifacts": [],
}
STREAM = [
    {"type": "session", "session_id": "s"},
    {"type": "tool.requested", "call_id": "c1", "tool": "local_read", "arguments": {"path": "x"}},
    {"type": "decision.required"},
    {"type": "result", "result": RESULT},
]
JOURNAL = [
    {"session_id": "s", "operation_id": "o", "sequence": 1, "time": "t", "type": "turn.started", "payload": {}},
    {"session_id": "s", "sequence": 2, "time": "t", "type": "approval.required", "payload": {"result": RESULT}},
]
SESSION = {"id": "s", "model": "m", "status": "idle", "revision": 1, "result": RESULT, "policy": {"level": "observe"}}
CHILD = receipt("leaf", local=True)
ROOT = receipt("root", [CHILD], local=True)
RESUME = {
    "answers": {"a": {"request_digest": "sha256:" + "0" * 64, "value": 1}},
    "approvals": {"b": {"request_digest": "sha256:" + "0" * 64, "approved": True}},
    "standing_approvals": [{"edits": {"paths": ["a"]}}],
}
EVALUATION = {"schema": "runx.verdict.v1", "evaluator": {"package": "p", "method": "m", "run": "r"}}
POLICY = json.dumps(
    {"level": "observe", "tools": {"allow": [{"name": "local_read", "arguments": {"path": "logs/**"}}]}}
)
OPTIONS = Options(policy=POLICY.encode())

EXAMPLES = settings.default.max_examples
few = settings(max_examples=EXAMPLES if EXAMPLES > 1_000 else min(EXAMPLES, 100))
"""A document is large: what the deep profile asks for is done there alone."""

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["x" * 300, "sha256:" + "0" * 64, "\x00", "a\u2028b", "runx:receipt:", "completed", "-0"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.builds(lambda: [[[[]]]]),
)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


@st.composite
def changed(draw, value):
    """The value with one to three places replaced, removed or added to."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(value))))
        if not path:
            continue
        at = value
        for step in path[:-1]:
            at = at[step]
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove":
            del at[path[-1]]
        elif action == "add" and isinstance(at, dict):
            at[draw(st.text(max_size=5))] = draw(odd)
        else:
            at[path[-1]] = draw(odd)
    return value


def judged(data):
    """Judge and map a document; return the exit code, None where it is not recognised."""
    found = recognise(data)
    verdict = verify_foreign(data, subject="x", trust=None, options=OPTIONS)
    assert (found is None) == (verdict is None)
    if found is None:
        return None
    mapping_of(found.format).facts([Given("sha256:" + "0" * 64, data, found)], lambda *_: None)
    assert verdict.to_json()
    return verdict.exit


def lines(events):
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@few
@given(st.one_of(*(changed(value) for value in (RESULT, SESSION, CHILD, ROOT, RESUME, EVALUATION))))
def test_a_changed_document_is_judged_and_never_ok(value):
    assert judged(json.dumps(value).encode()) in (None, 1, 3, 5, 6)


@few
@given(st.one_of(changed(STREAM), changed(JOURNAL), changed([ROOT, CHILD])), st.integers(0, 40))
def test_changed_lines_are_judged_and_never_ok(events, cut):
    data = lines(events) if isinstance(events, list) else b""
    assert judged(data[: len(data) - cut]) in (None, 1, 3, 5, 6)


@few
@given(changed(ROOT), changed(CHILD))
def test_a_changed_store_is_judged_and_never_ok(root, child):
    files = {"a.json": json.dumps(root).encode(), "b.json": json.dumps(child).encode(), "index.json": b"{}"}
    assert judge_folder(files, None).report.exits() in (1, 3, 5)


@few
@given(st.sampled_from([json.dumps(value).encode() for value in (RESULT, CHILD, RESUME)]), st.data())
def test_a_document_with_a_byte_changed_is_judged(data, draw):
    place = draw.draw(st.integers(0, len(data) - 1))
    byte = draw.draw(st.integers(0, 255))
    judged(data[:place] + bytes([byte]) + data[place + 1 :])
