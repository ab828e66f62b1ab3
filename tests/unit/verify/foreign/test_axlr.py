"""AXLR results and streams by their contract: each accept with a reject beside it."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.amounts import parse_budget
from verify.foreign import recognise, verify_foreign
from verify.foreign.axlr.money import usd_micro
from verify.foreign.axlr.result import EXIT_CODES
from verify.foreign.strict import Number, read
from verify.options import Options

RESULT = {
    "schema": "axlr.execution-result/v1",
    "status": "completed",
    "session_id": "b",
    "sessions": ["a", "b"],
    "answer": "Done.",
    "tool_calls": [
        {"call_id": "read-1", "tool": "local_read", "decision": "auto_approve", "status": "completed"},
        {"call_id": "exec-1", "tool": "local_exec", "decision": "approve", "status": "uncertain"},
        {"call_id": "exec-2", "tool": "local_exec", "status": "forbidden"},
        {"call_id": "exec-3", "tool": "local_exec", "decision": "deny", "status": "denied"},
    ],
    "usage": {
        "requests": 3,
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "cache_write_tokens": 0,
        "completion_tokens": 5,
        "reasoning_tokens": 2,
        "cost_usd": 0.0021,
        "cost_requests": 2,
        "unmetered_requests": 1,
    },
    "artifacts": [],
}
POLICY = {
    "policy": {
        "level": "observe",
        "tools": {
            "allow": [{"name": "observability.query_logs"}, {"name": "local_read", "arguments": {"path": "logs/**"}}],
            "deny": [{"name": "local_exec"}],
        },
    }
}


def dump(value):
    return json.dumps(value, ensure_ascii=False).encode()


def changed(path, value, base=RESULT):
    found = copy.deepcopy(base)
    at = found
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return found


def judged(data, **options):
    data = data if isinstance(data, bytes) else dump(data)
    return verify_foreign(data, subject="x", trust=None, options=Options(**options))


def shown(verdict, name=None):
    return [(check.code, check.where) for check in verdict.findings if name is None or check.name == name]


def test_a_result_of_the_contract_holds_and_is_signed_by_nobody():
    found = judged(RESULT)
    assert (found.exit, found.native.status, found.native.code) == (3, "holds", "completed")
    assert shown(found) == [("foreign.unsigned", None)]
    assert judged(RESULT, accept=("foreign.unsigned",)).exit == 0


def test_the_exit_code_of_each_status_is_that_of_the_contract():
    assert EXIT_CODES == {"completed": 0, "needs_decision": 3, "interrupted": 1, "failed": 1}


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("extra",), 1, "extra"),
        (("usage", "extra"), 1, "usage.extra"),
        (("tool_calls", 0, "extra"), 1, "tool_calls[0].extra"),
        (("status",), "done", "status"),
        (("sessions",), "a", "sessions"),
        (("answer",), None, "answer"),
        (("usage", "requests"), -1, "usage.requests"),
        (("usage", "requests"), 1.0, "usage.requests"),
        (("usage", "requests"), 2**53, "usage.requests"),
        (("usage", "requests"), True, "usage.requests"),
        (("usage", "cost_usd"), "0.1", "usage.cost_usd"),
        (("usage", "cost_usd"), -0.1, "usage.cost_usd"),
        (("tool_calls", 0, "decision"), "yes", "tool_calls[0].decision"),
        (("tool_calls", 0, "status"), "running", "tool_calls[0].status"),
        (("pending",), {"call_id": "x", "tool": "y"}, "pending.arguments"),
    ],
)
def test_a_result_of_another_form_is_refused(path, value, where):
    found = judged(changed(path, value))
    assert (found.exit, found.native.status) == (1, "fails")
    assert shown(found, "form") == [("foreign.malformed", where)]


@pytest.mark.parametrize("name", list(RESULT))
def test_a_result_without_one_of_its_members_is_refused(name):
    found = {key: value for key, value in RESULT.items() if key != name}
    data = dump(found)
    assert (recognise(data) is None) if name == "schema" else judged(data).exit == 1


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("session_id",), "a", "session_id"),
        (("sessions",), ["b", "b"], "sessions"),
        (("sessions",), [], "session_id"),
        (("pending",), {"call_id": "exec-1", "tool": "local_exec", "arguments": {}}, "pending"),
        (("status",), "needs_decision", "pending"),
        (("error",), "why", "error"),
        (("tool_calls", 0, "decision"), "deny", "tool_calls[0].decision"),
        (("tool_calls", 0), {"call_id": "r", "tool": "t", "status": "completed"}, "tool_calls[0].decision"),
        (("tool_calls", 3, "decision"), "approve", "tool_calls[3].decision"),
        (("tool_calls", 1, "call_id"), "read-1", "tool_calls[1].call_id"),
        (("tool_calls", 2, "status"), "pending", "tool_calls[2].status"),
        (("usage", "unmetered_requests"), 0, "usage.requests"),
    ],
)
def test_a_result_that_contradicts_itself_does_not_hold(path, value, where):
    found = judged(changed(path, value))
    assert (found.exit, found.native.status, found.native.code) == (1, "fails", "contradiction")
    assert ("foreign.contradicted", where) in shown(found)


def test_a_result_of_a_later_version_is_unknown():
    found = judged({**RESULT, "schema": "axlr.execution-result/v2", "more": 1})
    assert (found.exit, found.native.status) == (3, "unverifiable")
    assert ("format.unknown", "schema") in shown(found)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (dump(RESULT).replace(b'"answer"', b'"answer": "a", "answer"'), "foreign.duplicate_name"),
        (dump(RESULT).replace(b"0.0021", b"NaN"), "foreign.malformed"),
        (dump(RESULT).replace(b"Done.", b"\\ud800"), "foreign.malformed"),
        (dump(RESULT).replace(b'"artifacts": []', b'"artifacts": ' + b"[" * 9_999 + b"]" * 9_999), "foreign.too_deep"),
        (dump(RESULT)[:-5], "foreign.malformed"),
    ],
)
def test_what_no_strict_reader_takes_is_a_finding(data, code):
    found = judged(data)
    assert (found.exit, found.native.status) == (1, "unreadable")
    assert shown(found, "form")[0][0] == code


@pytest.mark.parametrize(
    ("text", "amount", "exact"),
    [
        ("0.0021", 2_100, True),
        ("2.1e-3", 2_100, True),
        ("0", 0, True),
        ("-0.0", 0, True),
        ("1", 1_000_000, True),
        ("1E+2", 100_000_000, True),
        ("0.00213475", 2_135, False),
        ("0.0021000000000000003", 2_101, False),
        ("1e-60", 1, False),
        ("0.30000000000000004", 300_001, False),
        ("9007199254.740991", 2**53 - 1, True),
    ],
)
def test_money_is_taken_from_its_text_and_never_understated(text, amount, exact):
    found = usd_micro(read(f"[{text}]".encode())[0])
    assert (found.usd_micro, found.exact) == (amount, exact)


@pytest.mark.parametrize("text", ["-0.1", "9007199254.740992", "1e70", "1e9999"])
def test_money_that_is_no_amount_is_refused(text):
    assert usd_micro(read(f"[{text}]".encode())[0]) is None


@given(st.decimals(min_value=0, max_value=1_000_000, places=6))
def test_an_amount_of_six_decimals_is_exact(amount):
    found = usd_micro(Number(f"{amount:f}"))
    assert (found.usd_micro, found.exact) == (int(amount * 1_000_000), True)


def test_an_amount_that_is_rounded_is_told():
    found = judged(dump(RESULT).replace(b"0.0021", b"0.00213475"))
    assert [check.message for check in found.checks if check.code == "foreign.rounded"] == [
        "0.00213475 USD is 2135 micro-dollars, rounded up"
    ]


def lines(*events):
    return b"".join(dump(event) + b"\n" for event in events)


STREAM = (
    {"type": "session", "session_id": "a"},
    {"type": "reasoning", "text": "a\u2028b"},
    {"type": "tool.requested", "call_id": "read-1", "tool": "local_read", "arguments": {"path": "logs/a"}},
    {"type": "tool.completed", "call_id": "read-1"},
    {"type": "session.continued", "session_id": "b"},
    {"type": "text", "text": "Done."},
    {"type": "completed"},
    {"type": "result", "result": RESULT},
)


def test_a_stream_that_ends_with_its_result_holds():
    found = judged(lines(*STREAM))
    assert (found.exit, found.native.kind, found.native.status) == (3, "stream", "holds")
    assert found.coverage.count == 8


@pytest.mark.parametrize("kept", range(1, 8))
def test_a_stream_that_ends_before_its_result_is_interrupted(kept):
    found = judged(lines(*STREAM[:kept]))
    assert (found.exit, found.native.status, found.native.code) == (1, "fails", "no_result")
    assert ("foreign.incomplete", "end") in shown(found)


def test_a_stream_that_is_cut_in_a_line_is_broken():
    data = lines(*STREAM)
    for cut in (data[:-30], data[: len(lines(*STREAM[:3])) - 5]):
        found = judged(cut)
        assert (found.exit, found.native.code) == (1, "torn_line")


@pytest.mark.parametrize(
    ("events", "where"),
    [
        ((*STREAM, {"type": "text", "text": "more"}), "line 9"),
        ((*STREAM[:6], {"type": "failed"}, STREAM[7]), "result.status"),
        ((*STREAM[:6], {"type": "decision.required"}, STREAM[7]), "result.status"),
        ((*STREAM[:6], STREAM[7]), "end"),
        ((*STREAM[:3], {"type": "tool.completed", "call_id": "lost"}, *STREAM[4:]), "line 4"),
        ((*STREAM[:2], {**STREAM[2], "tool": "local_exec"}, *STREAM[3:]), "line 3"),
        ((*STREAM[:7], {**STREAM[7], "more": 1}), "line 8"),
    ],
)
def test_lines_and_result_that_differ_do_not_hold(events, where):
    found = judged(lines(*events))
    assert found.exit == 1
    assert where in [place for _, place in shown(found)]


def test_a_line_that_cannot_be_read_hides_no_other():
    data = lines(*STREAM[:5]) + b'{"type": "text", "type": "text"}\n' + b"\xff\n" + lines(*STREAM[5:])
    found = judged(data)
    assert found.exit == 1
    assert shown(found, "form") == [("foreign.duplicate_name", "line 6"), ("foreign.malformed", "line 7")]
    assert found.coverage.count == 8
    assert any("status completed" in note for note in found.notes)


def test_a_type_that_the_contract_does_not_name_is_unknown():
    found = judged(lines(*STREAM[:5], {"type": "heartbeat"}, *STREAM[5:]))
    assert found.exit == 3
    assert ("format.unknown", "line 6 'heartbeat'") in shown(found)


def journal(*events, start=1):
    return lines(
        *(
            {
                "session_id": "b",
                "operation_id": "op",
                "sequence": start + place,
                "time": "2026-10-01T00:00:00Z",
                "type": kind,
                "payload": payload,
            }
            for place, (kind, payload) in enumerate(events)
        )
    )


def test_a_journal_of_the_service_holds_by_its_numbers_and_its_result():
    events = [("turn.started", {}), ("text.delta", {"text": "x"}), ("turn.completed", {"result": RESULT})]
    good = judged(journal(*events))
    assert (good.exit, good.native.kind, good.native.status) == (3, "journal", "holds")
    assert judged(journal(*events[:2], ("turn.completed", RESULT))).native.status == "holds"
    later = judged(journal(*events, start=7))
    assert later.native.status == "holds"
    assert "it starts at event 7; the earlier ones are not here" in later.notes
    gap = judged(journal(*events[:1]) + journal(*events[1:], start=3))
    assert (gap.exit, gap.native.code) == (1, "out_of_order")
    other = judged(journal(*events[:2], ("operation.failed", {"result": RESULT})))
    assert other.exit == 1


def test_a_journal_without_a_result_goes_on():
    found = judged(journal(("turn.started", {})))
    assert (found.exit, found.native.status) == (3, "unverifiable")
    alone = judged(journal(("turn.completed", {"result": RESULT}), ("turn.interrupted", {"status": "interrupted"})))
    assert shown(alone) == [("run.open", None)]


def test_a_session_of_the_service_brings_its_policy():
    session = {"id": "b", "model": "p/m", "status": "idle", "revision": 1, "result": RESULT, **POLICY}
    found = judged(session)
    assert found.native.kind == "session"
    assert found.exit == 6
    assert ("policy.breach", "tool_calls[1] exec-1") in shown(found)
    assert judged({**session, "id": "other"}).exit == 1
    assert judged({**session, "result": None}).exit == 5
    assert judged({**session, "policy": {"level": "x"}}).exit == 3


def calls(*found, status="completed"):
    return {**RESULT, "status": status, "tool_calls": list(found)}


def call(tool, *, status="completed", decision="auto_approve", call_id="c"):
    return {"call_id": call_id, "tool": tool, "status": status, **({"decision": decision} if decision else {})}


@pytest.mark.parametrize(
    ("made", "code", "rule"),
    [
        (call("local_exec"), "policy.breach", "tools.deny[0]"),
        (call("local_exec", status="failed"), "policy.breach", "tools.deny[0]"),
        (call("local_exec", status="uncertain", decision="approve"), "policy.breach", "tools.deny[0]"),
        (call("local_write"), "policy.breach", "tools.allow"),
        (call("observability.delete"), "policy.breach", "tools.allow"),
        (call("local_read"), "policy.arguments_absent", "tools.allow"),
        (call("observability_query_logs"), "policy.arguments_absent", "tools.allow"),
    ],
)
def test_a_call_that_the_policy_forbids_names_the_rule(made, code, rule):
    found = judged(calls(made), policy=dump(POLICY))
    assert found.exit == (6 if code == "policy.breach" else 3)
    finding = next(check for check in found.findings if check.name == "policy")
    assert finding.code == code
    assert f"rule {rule}" in finding.message


@pytest.mark.parametrize(
    "made",
    [
        call("observability.query_logs"),
        call("local_exec", status="forbidden", decision=None),
        call("local_exec", status="denied", decision="deny"),
    ],
)
def test_a_call_that_the_policy_allows_or_refused_breaks_nothing(made):
    found = judged(calls(made), policy=dump(POLICY), accept=("foreign.unsigned",))
    assert found.exit == 0


def test_a_call_that_waits_or_was_called_forbidden_breaks_no_rule_and_is_told():
    waits = {
        **calls(call("local_exec", status="pending", decision=None), status="needs_decision"),
        "pending": {"call_id": "c", "tool": "local_exec", "arguments": {}},
    }
    for result in (waits, calls(call("observability.query_logs", status="forbidden", decision=None))):
        found = judged(result, policy=dump(POLICY), accept=("foreign.unsigned",))
        assert found.exit == 0
        assert [check.code for check in found.checks if check.name == "policy" and check.status != "ok"] == [
            "policy.breach"
        ]


def test_arguments_of_the_stream_decide_what_the_result_leaves_open():
    for path, exit_ in (("logs/a", 3), ("../etc", 6), (5, 6), (1.5, 6)):
        events = copy.deepcopy(STREAM)
        events[2]["arguments"]["path"] = path
        events[7]["result"]["tool_calls"] = RESULT["tool_calls"][:1]
        found = judged(lines(*events), policy=dump(POLICY))
        assert found.exit == exit_, path
        assert shown(found, "policy") == ([] if exit_ == 3 else [("policy.breach", "tool_calls[0] read-1")])


def test_a_level_that_asks_wants_a_persons_decision():
    asks = dump({"level": "act-with-approval", "tools": {"allow": [{"name": "deploy"}, {"name": "local_read"}]}})
    assert judged(calls(call("deploy", decision="approve")), policy=asks, accept=("foreign.unsigned",)).exit == 0
    found = judged(calls(call("deploy")), policy=asks)
    assert (found.exit, shown(found, "policy")) == (6, [("approval.missing", "tool_calls[0] c")])
    assert judged(calls(call("local_read")), policy=asks, accept=("foreign.unsigned",)).exit == 0


def test_a_plugin_that_a_rule_names_may_be_the_one_of_a_tool():
    policy = dump({"level": "observe", "tools": {"allow": [{"name": "observability/*"}]}})
    found = judged(calls(call("query_logs")), policy=policy)
    assert (found.exit, shown(found, "policy")) == (3, [("policy.arguments_absent", "tool_calls[0] c")])
    assert judged(calls(call("local_write")), policy=policy).exit == 6


def test_names_that_no_receipt_could_hold_are_decided_all_the_same():
    assert judged(calls(call("x" * 5_000)), policy=dump(POLICY)).exit == 6
    assert judged(calls(call("a\x00b")), policy=dump(POLICY)).exit == 6


def test_a_policy_that_cannot_be_read_decides_nothing():
    found = judged(RESULT, policy=b'{"level": "observe", "other": 1}')
    assert (found.exit, shown(found, "policy")[0][0]) == (3, "policy.unreadable")


def test_a_budget_is_checked_again():
    def spent(*words):
        return [code for code, _ in shown(judged(RESULT, limits=parse_budget(words)), "budget")]

    assert spent("requests=3", "prompt_tokens=10", "tool_calls=2") == []
    assert spent("requests=2") == ["budget.overspent"]
    assert spent("usd=0.002") == ["budget.overspent"]
    assert spent("usd=0.0021") == ["budget.basis_unknown"]  # one request reported no cost
    assert spent("seconds=90") == ["budget.time_unknown"]
    assert judged(RESULT, limits=parse_budget(["requests=2"])).exit == 6


@pytest.mark.parametrize(
    ("value", "exit_"),
    [
        (POLICY, 3),
        ({"policy": {"level": "observe", "other": 1}}, 1),
        ({"budget": {"seconds": 900, "requests": 20, "tool_calls": 60, "usd": 0.5}}, 3),
        ({"budget": {"usd": -1}}, 1),
        ({"budget": {"usd": 0.0000001}}, 1),
        ({"correlation": {"bot_id": "b", "trace_id": "t"}}, 3),
        ({"correlation": {"bot_id": 5}}, 1),
    ],
)
def test_the_small_objects_of_the_contract_are_read_strictly(value, exit_):
    assert judged(value).exit == exit_


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"type":"text"}',
        b'{"type":"session"}'[:-1],
        b'{"result":null}',
        b'{"id":1,"result":null}',
        b'{"policy":{}}',
        b'{"budget":{"other":1}}',
        b'{"type":"text","text":"x"}\n{"type":"other"}\n',
        b'{"type":"session"}\n{"type":"message"}\n',
    ],
)
def test_what_is_nothing_of_axlr_is_not_recognised(data):
    assert recognise(data) is None


def test_the_examples_of_the_contract(shared):
    folder = shared / "axlr"
    kinds = {path.name: recognise(path.read_bytes()) for path in folder.iterdir()}
    assert {found.kind for found in kinds.values() if found is not None} == {
        "result",
        "policy",
        "budget",
        "correlation",
        "journal",
    }
    result = (folder / "seed000__execution-result.v1.example.json").read_bytes()
    policy = (folder / "seed000__policy.example.json").read_bytes()
    assert judged(result).native.status == "holds"
    assert judged(result, policy=policy).exit == 3
    forbidden = json.loads(result)
    forbidden["tool_calls"].append(
        {"call_id": "exec-0", "tool": "local_exec", "decision": "auto_approve", "status": "completed"}
    )
    found = judged(forbidden, policy=policy)
    assert found.exit == 6
    assert "rule tools.deny[0]" in next(check.message for check in found.findings if check.code == "policy.breach")
