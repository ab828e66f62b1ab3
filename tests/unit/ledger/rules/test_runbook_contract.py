"""The execution contract of Runbooks, one test a MUST and a never: refused where it is decided, a breach where it is forged."""

import json
import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from ledger.digest import digest
from ledger.receipt import Answer
from ledger.rules.breach import BREACH_CODES, DOUBT_CODES
from ledger.rules.deviation import Deviation
from ledger.rules.errors import RunbookError
from ledger.rules.profile import COVERAGE, Coverage, coverage_of
from ledger.rules.replay import Replay, ReplayState
from ledger.rules.runbook import parse_envelope, read_envelope
from ledger.rules.runbook_derive import derive
from ledger.rules.runbook_replay import ASSERT_ACT, STEP_ACT
from ledger.rules.runbook_report import free_text, report_of
from ledger.rules.runbook_start import refusals
from ledger.rules.step import Cursor, StepEnd, at_terminal, enter, leave, scope
from ledger.words import Profile, Reason, Risk
from tests.reference.books import ELEMENTS, BookChain, book, changed, envelope

ROOT = Path(__file__).resolve().parents[4]
EVERYTHING = {"db.read", "db.drop", "mail.send"}
SEES_ALL = COVERAGE["tool-call-hook"]


def start(found=None, **members):
    given = {
        "profile": Profile.R2,
        "coverage": SEES_ALL,
        "ceiling": Risk.IRREVERSIBLE,
        "allowlist": EVERYTHING,
        **members,
    }
    return [each.reason for each in refusals(found or book(), **given)]


def reading(**members):
    """A runbook that only reads, executed with a person."""
    return {
        "schema": "receipt-ledger.runbook/v1",
        "mode": "human-with-agent",
        "capabilities": ["db.read"],
        "steps": [{"id": "look", "tool": "db.read", "risk": "read-only"}, {"id": "done", "terminal": True}],
        **members,
    }


def at(step, ended=None, **members):
    cursor = Cursor(step=step, **members)
    return cursor if ended is None else leave(cursor, ended)


def refused(found):
    return found.deviation


# Claiming any profile.


def test_capabilities_are_checked_against_the_clients_own_allowlist_before_starting():
    assert start() == []
    assert start(allowlist=EVERYTHING - {"db.drop"}) == [Reason.NOT_ALLOWLISTED]
    assert start(allowlist=set()) == [Reason.NOT_ALLOWLISTED] * 3
    assert start(allowlist=set(), profile=Profile.R0)[:3] == [Reason.NOT_ALLOWLISTED] * 3


def test_every_reason_to_refuse_is_collected_up_front():
    found = book(changed("steps", 2, "tool", value=["mail.send", "shell"]))
    assert start(
        found, allowlist={"db.read"}, profile=Profile.R1, coverage=COVERAGE["mcp-proxy"], ceiling=Risk.WRITE
    ) == [
        Reason.NOT_ALLOWLISTED,
        Reason.NOT_ALLOWLISTED,
        Reason.PROFILE,
        Reason.COVERAGE,
        Reason.RISK,
        Reason.SCOPE_UNDECLARED_TOOL,
    ]


def test_a_run_that_had_to_be_refused_and_ran():
    made = BookChain(profile="R1")
    made.call("count", "db.read")
    assert made.codes() == ["runbook.not_refused"]
    made = BookChain(profile="R1")
    made.deny("count", "runbook", "scope.profile")
    made.finish("blocked", reason="scope.profile")
    assert made.codes() == []


def test_a_step_body_below_trust_t2_is_an_artifact_and_never_an_instruction():
    for trust, instructs in (("T0", False), ("T1", False), ("T2", True), ("T3", True)):
        step = book(changed("steps", 0, "trust", value=trust)).steps["count"]
        assert (step.instructs, step.body) == (instructs, digest(b"Count the rows."))
    unsaid = json.loads(json.dumps(ELEMENTS))
    del unsaid["steps"][0]["trust"]
    assert not book(unsaid).steps["count"].instructs


def test_requires_approval_is_honoured_with_a_decision_from_a_human_who_is_not_the_agent():
    for by, codes in (("ada", []), ("bot", ["approval.self"]), ("issuer", ["approval.self"])):
        made = BookChain()
        made.counted()
        request = made.waiting(made.run, act={"name": "db.drop"}, step="drop")
        made.call("drop", "db.drop", approvals=(made.approval(request, by=by),))
        assert made.codes() == codes, by


def test_a_gate_is_honoured_at_every_profile():
    elements = reading()
    elements["steps"][0]["requires_approval"] = True
    for profile in ("R0", "R1", "R2"):
        made = BookChain(book(elements), profile=profile)
        made.call("look", "db.read")
        assert made.codes() == ["approval.missing"], profile
        made = BookChain(book(elements), profile=profile)
        made.approved("look", "db.read")
        assert made.codes() == [], profile


def test_no_standing_approval_opens_a_gate():
    made = BookChain()
    made.counted()
    standing = made.approval(None, pattern="db.*", uses=10)
    made.call("drop", "db.drop", approvals=(standing,))
    assert made.codes() == ["approval.mismatch"]


def test_a_document_whose_minimum_exceeds_what_the_client_enforces_is_refused():
    for profile, reasons in ((Profile.R2, []), (Profile.R1, [Reason.PROFILE])):
        assert start(profile=profile) == reasons
    declared = book(reading(min_runtime_profile="R1"))
    assert start(declared, profile=Profile.R1) == []
    assert start(declared, profile=Profile.R0) == [Reason.PROFILE]


@pytest.mark.parametrize(("ended", "close", "codes"), [
    ("done", {}, []),
    ("stop", {}, []),
    (None, {}, ["runbook.terminal_not_reached"]),
    (None, {"status": "incomplete", "reason": "run.terminal_not_reached"}, []),
])  # fmt: skip
def test_a_run_stops_at_a_terminal_and_one_that_ended_anywhere_else_is_incomplete(ended, close, codes):
    made = BookChain()
    made.call("count", "db.read")
    made.observed("count", {"rows": 1})
    if ended == "done":
        made.end("count")
        made.dropped()
        made.told()
        made.end("done")
    elif ended == "stop":
        made.end("count", "failed")
        made.end("stop")
    made.finish(**close)
    assert made.codes() == codes
    report = report_of(made.run, made.receipts, made.envelope)
    assert report["incomplete"] is (ended is None)
    assert report.get("terminal") == ended


def test_nothing_is_entered_after_a_terminal():
    cursor = at("done", StepEnd.COMPLETED)
    assert at_terminal(book(), cursor)
    assert refused(enter(book(), cursor, "count")) is Deviation.OUT_OF_ORDER_STEP


# Claiming R1 or above.


def test_permissions_are_scoped_to_the_current_step_never_to_the_union():
    for step, tool, expected in (
        ("count", "db.read", None),
        ("count", "mail.send", Deviation.OUT_OF_SCOPE_TOOL),
        ("tell", "mail.send", None),
        ("tell", "db.read", Deviation.OUT_OF_SCOPE_TOOL),
        (None, "db.read", Deviation.OUT_OF_SCOPE_TOOL),
    ):
        found = scope(book(), at(step), tool)
        assert (found and found.deviation) == expected, (step, tool)


@pytest.mark.parametrize(("step", "tool", "codes"), [
    ("count", "db.read", []),
    ("count", "mail.send", ["runbook.out_of_scope_tool"]),
    ("count", "shell", ["runbook.undeclared_tool"]),
    (None, "db.read", ["runbook.out_of_scope_tool"]),
])  # fmt: skip
def test_a_step_that_used_another_steps_tool(step, tool, codes):
    made = BookChain()
    made.call(step, tool)
    assert made.codes() == codes


def test_between_steps_there_is_no_scope():
    made = BookChain()
    made.counted()
    made.call(None, "db.read")
    assert made.codes() == ["runbook.out_of_scope_tool"]


def test_a_run_below_is_scoped_by_the_step_of_the_run_above():
    for tool, codes in (("db.read", []), ("mail.send", ["runbook.out_of_scope_tool"])):
        made = BookChain()
        made.intent(made.run, act={"name": "db.read"}, step="count")
        child = made.opening(parent_opening=made.run)
        grandchild = made.opening(parent_opening=child)
        made.call(None, tool, run=grandchild)
        assert made.codes() == codes


def test_retry_budgets_are_enforced_and_an_exhausted_one_aborts():
    cursor = at("drop", StepEnd.FAILED, taken={"drop->count": 2})
    found = enter(book(), cursor, "count")
    assert (refused(found), found.edge, found.limit, found.taken) == (Deviation.BUDGET_EXHAUSTED, "drop->count", 2, 2)
    assert refused(enter(book(), at("drop", StepEnd.FAILED, aborted=True), "stop")) is Deviation.OUT_OF_ORDER_STEP


@pytest.mark.parametrize(("retries", "codes"), [(2, []), (3, ["runbook.budget_exhausted"])])
def test_a_retry_beyond_its_budget(retries, codes):
    made = BookChain()
    made.counted()
    for _ in range(retries):
        made.dropped("failed")
        made.counted()
    assert made.codes() == codes


def test_what_follows_an_exhausted_budget():
    def exhausted(limit=2, taken=2):
        made = BookChain()
        made.counted()
        for _ in range(2):
            made.dropped("failed")
            made.counted()
        made.dropped("failed")
        made.deny_step("count", "budget.limit", status="blocked", meter="drop->count", limit=limit, spent=taken)
        return made

    made = exhausted()
    made.finish("incomplete", reason="run.terminal_not_reached")
    assert made.codes() == []
    made = exhausted()
    made.end("stop")
    assert made.codes() == ["runbook.out_of_order_step"]
    assert exhausted(taken=1).codes() == ["runbook.contradicted"]
    report = report_of(made.run, made.receipts, made.envelope)
    assert [each["class"] for each in report["deviations"]] == ["budget-exhausted"]
    assert {"edge": "drop->count", "limit": 2, "taken": 2} in report["retries"]


def test_an_invocation_that_the_step_does_not_declare_is_blocked_and_recorded_as_a_deviation():
    made = BookChain()
    made.call("count", "db.read")
    made.deny("count", "mail.send", "scope.out_of_scope_tool")
    made.deny("count", "shell", "scope.undeclared_tool")
    made.deny_step("nowhere", "scope.out_of_order_step")
    made.finish("incomplete", reason="run.terminal_not_reached")
    assert made.codes() == []
    report = report_of(made.run, made.receipts, made.envelope)
    assert [each["class"] for each in report["deviations"]] == [
        "out-of-scope-tool",
        "undeclared-tool",
        "out-of-order-step",
        "terminal-not-reached",
    ]


def test_the_five_classes_are_closed_and_undeclared_and_out_of_scope_stay_apart():
    assert {str(each) for each in Deviation} == {
        "undeclared-tool",
        "out-of-scope-tool",
        "out-of-order-step",
        "budget-exhausted",
        "terminal-not-reached",
    }


@pytest.mark.parametrize("step", ["drop", "tell", "done", "nowhere"])
def test_a_step_that_the_runbook_does_not_contain_or_not_there(step):
    assert refused(enter(book(), Cursor(), step)) is Deviation.OUT_OF_ORDER_STEP
    made = BookChain()
    made.end(step)
    assert made.codes() == ["runbook.out_of_order_step"]


def test_on_fail_is_where_a_step_that_failed_goes_and_next_where_one_goes_that_is_completed():
    for ended, step, ok in (
        (StepEnd.FAILED, "stop", True),
        (StepEnd.FAILED, "drop", False),
        (StepEnd.COMPLETED, "drop", True),
        (StepEnd.COMPLETED, "stop", False),
        (StepEnd.BLOCKED, "drop", False),
        (StepEnd.BLOCKED, "stop", False),
    ):
        found = enter(book(), at("count", ended), step)
        assert isinstance(found, Cursor) is ok, (ended, step)


def test_one_step_is_current_at_a_time():
    assert refused(enter(book(), at("count"), "count")) is Deviation.OUT_OF_ORDER_STEP
    made = BookChain()
    made.call("count", "db.read")
    made.call("tell", "mail.send")
    assert made.codes() == ["runbook.out_of_order_step"]


def test_a_risk_ceiling_is_honoured():
    assert start(ceiling=Risk.DESTRUCTIVE) == []
    assert start(ceiling=Risk.WRITE) == [Reason.RISK]
    assert start(ceiling=Risk.READ_ONLY) == [Reason.RISK] * 2
    made = BookChain(ceiling="write")
    made.call("count", "db.read")
    assert made.codes() == ["runbook.not_refused"]


# R0.


def test_at_r0_nothing_is_enforced_and_what_deviates_says_so():
    for said, codes in (
        (("denied", Reason.SCOPE_UNDECLARED_TOOL), []),
        (("denied", Reason.SCOPE_OUT_OF_SCOPE_TOOL), ["runbook.unrecorded"]),
        (None, ["runbook.unrecorded"]),
    ):
        made = BookChain(book(reading()), profile="R0")
        made.call("look", "shell", would_have=said)
        assert made.codes() == codes
    report = report_of(made.run, made.receipts, made.envelope)
    assert report["profile"] == "R0"


# Claiming R2.


def test_a_run_report_contains_no_free_text():
    made = BookChain()
    made.call("count", "db.read")
    made.deny("count", "rm -rf / # please, it is fine", "scope.undeclared_tool")
    made.deny_step("a step, as the agent calls it", "scope.out_of_order_step")
    made.observed("count", {"rows": 1})
    made.end("count", reason=None)
    made.finish("incomplete", reason="run.terminal_not_reached", error="SomethingThatAnAgentNamed")
    report = report_of(made.run, made.receipts, made.envelope)
    assert free_text(report, made.envelope) == ()
    text = json.dumps(report)
    assert "please" not in text
    assert "agent calls" not in text
    assert "SomethingThat" not in text
    assert free_text({**report, "note": "all good"}, made.envelope) == ("all good",)


def test_a_report_says_what_was_done_and_is_the_same_by_whoever_makes_it():
    made = BookChain()
    made.whole()
    assert made.codes() == []
    report = report_of(made.run, made.receipts, made.envelope)
    assert (report["status"], report["terminal"], report["incomplete"]) == ("completed", "done", False)
    assert [(each["step"], each["attempt"], each["status"], each.get("verdict")) for each in report["steps"]] == [
        ("count", 1, "completed", "met"),
        ("drop", 1, "completed", None),
        ("tell", 1, "completed", None),
        ("done", 1, "completed", None),
    ]
    assert [(each["step"], each["answer"]) for each in report["gates"]] == [("drop", "granted")]
    assert report == report_of(made.run, made.receipts, parse_envelope(made.envelope.data))
    with pytest.raises(RunbookError):
        report_of(made.run, made.receipts, book(reading()))


@pytest.mark.parametrize(("observation", "verdict", "answer", "status", "codes"), [
    ({"rows": 1}, "met", "met", "completed", []),
    ({"rows": 0}, "not_met", "not_met", "completed", ["runbook.not_asserted"]),
    ({"rows": 0}, "not_met", "not_met", "failed", []),
    ({"rows": "1"}, "inconclusive", "inconclusive", "completed", ["runbook.not_asserted"]),
    ({"rows": "1"}, "inconclusive", "inconclusive", "blocked", []),
    ({"rows": 0}, "met", "met", "completed", ["evaluation.contradicted"]),
])  # fmt: skip
def test_assert_is_evaluated_and_never_expect(observation, verdict, answer, status, codes):
    made = BookChain()
    made.call("count", "db.read")
    answers = ({"criterion": "rows", "required": True, "answer": answer},)
    made.observed("count", observation, verdict=verdict, answers=tuple(Answer(**each) for each in answers))
    made.end("count", status)
    assert made.codes() == codes


def test_a_step_called_completed_without_any_evaluation():
    made = BookChain()
    made.call("count", "db.read")
    made.end("count")
    assert made.codes() == ["runbook.not_asserted"]


def test_an_evaluation_before_the_steps_first_act_or_of_an_earlier_attempt_proves_nothing():
    made = BookChain()
    made.observed("count", {"rows": 1})
    made.call("count", "db.read")
    made.end("count")
    assert made.codes() == ["runbook.not_asserted"]
    made = BookChain()
    made.counted()
    made.dropped("failed")
    made.call("count", "db.read")
    made.end("count")
    assert made.codes() == ["runbook.not_asserted"]


def test_a_models_evaluation_never_satisfies_an_assert():
    made = BookChain()
    made.call("count", "db.read")
    made.observed("count", {"rows": 1}, evaluator={"package": "judge", "method": "model", "run": "unknown"})
    made.end("count")
    assert made.codes() == ["runbook.not_asserted"]


def test_a_step_with_only_prose_is_unevaluable_and_a_person_says():
    elements = changed("steps", 0, "assert", value=[])
    elements["steps"][0]["expect"] = "The rows are counted."
    for by, granted, codes in (
        (None, None, ["runbook.not_asserted"]),
        ("ada", "granted", []),
        ("ada", "denied", ["runbook.not_asserted"]),
        ("bot", "granted", ["runbook.not_asserted"]),
        ("issuer", "granted", ["runbook.not_asserted"]),
        ("eve", "granted", ["approval.unpinned"]),
    ):
        made = BookChain(book(elements))
        made.call("count", "db.read")
        request = made.ask("count")
        if by is not None:
            made.approval(request, by=by, answer=granted)
        made.end("count")
        assert made.codes() == codes, (by, granted)
    made = BookChain(book(elements))
    made.call("count", "db.read")
    made.end("count", "blocked", reason="assert.unevaluable")
    assert made.codes() == []


def test_a_person_does_not_turn_a_failed_assert_into_a_pass():
    made = BookChain()
    made.call("count", "db.read")
    made.observed(
        "count", {"rows": 0}, verdict="not_met", answers=(Answer(criterion="rows", required=True, answer="not_met"),)
    )
    made.approval(made.ask("count"))
    made.end("count")
    assert made.codes() == ["runbook.not_asserted"]


def test_prose_and_asserts_prove_nothing_below_r2():
    elements = reading()
    elements["steps"][0]["expect"] = "It looks right."
    for profile, codes in (("R1", []), ("R2", ["runbook.not_asserted"])):
        made = BookChain(book(elements), profile=profile)
        made.call("look", "db.read")
        made.end("look")
        assert made.codes() == codes


# Coverage bounds the profile.


@pytest.mark.parametrize(("word", "runs"), [
    ("mcp-proxy", False), ("tool-call-hook", True), ("in-loop", False), ("in-loop-routed", True), ("one-process", False),
    ("reported-calls", False), ("everything, honestly", False),
])  # fmt: skip
def test_destructive_work_must_not_run_under_an_adapter_that_cannot_observe_every_invocation(word, runs):
    found = coverage_of(word)
    assert start(coverage=found) == ([] if runs else [Reason.COVERAGE])
    assert found.complete is not bool(found.unseen)
    # However loudly the client claims R2.
    made = BookChain(coverage=word)
    made.call("count", "db.read")
    assert made.codes() == ([] if runs else ["runbook.not_refused"])


def test_work_that_can_be_taken_back_runs_under_an_adapter_that_is_blind():
    assert start(book(reading()), coverage=COVERAGE["one-process"], profile=Profile.R1) == []


def test_an_adapter_publishes_what_it_cannot_see_and_that_statement_decides():
    def statement(**members):
        value = {
            "schema": "receipt-ledger.coverage/v1",
            "adapter": "ours",
            "sees": ["tool-calls"],
            "unseen": [],
            **members,
        }
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        return digest(data), data

    assert coverage_of(*statement()) == Coverage(complete=True)
    assert coverage_of(*statement(unseen=["shell"])) == Coverage(complete=False, unseen=("shell",))
    assert not coverage_of(*statement(sees=[])).complete
    assert not coverage_of(statement()[0]).complete
    for wrong in ({"claim": "R2"}, {"schema": "x"}, {"unseen": "nothing"}):
        with pytest.raises(RunbookError):
            coverage_of(*statement(**wrong))


# The least profile.


@pytest.mark.parametrize(("elements", "minimum"), [
    (ELEMENTS, "R2"),
    (changed("steps", 1, "risk", value="irreversible"), "R2"),
    (changed("steps", 1, "risk", value="write"), "R1"),
    (reading(), "R0"),
    (reading(mode="human-only"), "R0"),
    (reading(mode="agent-autonomous"), "R1"),
    (reading(min_runtime_profile="R2"), "R2"),
    ({**ELEMENTS, "min_runtime_profile": "R0"}, "R2"),
])  # fmt: skip
def test_the_minimum_is_what_is_declared_and_no_less_than_what_the_work_implies(elements, minimum):
    assert book(elements).minimum == minimum


def test_agent_autonomous_at_r0_is_an_error():
    autonomous = book(reading(mode="agent-autonomous"))
    assert start(autonomous, profile=Profile.R0) == [Reason.PROFILE, Reason.PROFILE]
    assert start(autonomous, profile=Profile.R1) == []
    declared = book(reading(mode="agent-autonomous", min_runtime_profile="R0"))
    assert start(declared, profile=Profile.R1) == [Reason.PROFILE]


# The policy envelope.


def test_the_envelope_is_derived_and_the_same_by_whoever_derives_it():
    shuffled = json.dumps(ELEMENTS, indent=3, sort_keys=True).encode()
    assert derive(shuffled).data == derive(json.dumps(ELEMENTS).encode()).data == book().data
    assert book(changed("steps", 0, "body", value="Count them.")).digest != book().digest
    assert read_envelope(json.dumps(json.loads(book().data), indent=1).encode()).digest == book().digest


def test_each_element_of_the_document_has_its_field():
    found = json.loads(book().data)
    assert found["allowlist"] == ELEMENTS["capabilities"]
    assert {name: (step["tools"], step["gated"]) for name, step in found["steps"].items()} == {
        "count": (["db.read"], False),
        "drop": (["db.drop"], True),
        "tell": (["mail.send"], False),
        "done": ([], False),
        "stop": ([], False),
    }
    assert (found["budgets"], found["terminals"]) == ({"drop->count": 2, "tell->tell": 1}, ["done", "stop"])


def test_the_envelope_never_grants_what_the_document_does_not_declare():
    found = book(changed("steps", 2, "tool", value=["mail.send", "shell"]))
    assert found.undeclared == (("tell", "shell"),)
    assert found.steps["tell"].tools == ("mail.send",)
    assert refused(scope(found, at("tell"), "shell")) is Deviation.UNDECLARED_TOOL
    assert start(found) == [Reason.SCOPE_UNDECLARED_TOOL]
    forged = json.loads(book().data)["steps"]
    forged["tell"]["tools"].append("shell")
    with pytest.raises(RunbookError) as wrong:
        envelope(steps=forged)
    assert wrong.value.code == "runbook.widened"


def test_a_destructive_capability_is_never_in_scope_before_its_gate():
    forged = json.loads(book().data)["steps"]
    forged["drop"]["gated"] = False
    with pytest.raises(RunbookError) as wrong:
        envelope(steps=forged)
    assert wrong.value.code == "runbook.ungated"


def test_a_destructive_tool_before_its_gate_and_after_control_moved_on():
    made = BookChain()
    made.counted()
    made.call("drop", "db.drop")
    assert made.codes() == ["approval.missing"]
    for step in ("count", "tell", None):
        made = BookChain()
        request = made.waiting(made.run, act={"name": "db.drop"}, step="drop")
        approval = made.approval(request)
        if step != "count":
            made.counted()
        if step == "tell":
            made.dropped()
        made.call(step, "db.drop", approvals=(approval,))
        assert "runbook.out_of_scope_tool" in made.codes(), step


def test_a_run_under_another_document_than_its_envelope():
    made = BookChain(document=digest(b"another"))
    assert made.codes() == ["runbook.other"]


def test_an_envelope_that_is_not_what_its_document_comes_to():
    for steps, codes in ((None, []), ({"tools": ["db.read", "mail.send"]}, ["runbook.other"])):
        value = json.loads(book().data)
        if steps is not None:
            value["steps"]["count"].update(steps)
        forged = envelope(steps=value["steps"])
        made = BookChain(forged)
        assert made.codes() == []
        made.documents[forged.document] = json.dumps(ELEMENTS, sort_keys=True, separators=(",", ":")).encode()
        made.start()
        assert made.codes() == codes


def test_an_envelope_that_is_not_there_or_cannot_be_read_is_a_doubt():
    made = BookChain()
    made.documents.clear()
    made.start()
    made.call("count", "shell")
    assert made.codes()[0] == "runbook.absent"
    made = BookChain()
    made.documents[made.envelope.digest] = b"{}"
    made.start()
    assert made.codes() == ["runbook.unreadable"]


@pytest.mark.parametrize(
    "members",
    [
        {"schema": "runbook-policy-envelope/v1"},
        {"document": "x"},
        {"mode": "agent"},
        {"allowlist": ["db.read", "db.read"]},
        {"start": "nowhere"},
        {"terminals": []},
        {"terminals": ["done"]},
        {"terminals": ["done", "stop", "tell"]},
        {"budgets": {"drop->nowhere": 1}},
        {"budgets": {"drop->count": 0}},
        {"budgets": {"drop->count": True}},
        {"undeclared": [{"step": "tell", "tool": "db.read"}]},
        {"undeclared": [{"step": "nowhere", "tool": "shell"}]},
        {"min_runtime_profile": "R3"},
        {"notes": "x"},
    ],
)
def test_one_wrong_place_refuses_an_envelope(members):
    assert envelope() == book()
    with pytest.raises(RunbookError):
        envelope(**members)


@pytest.mark.parametrize(
    ("step", "members"),
    [
        ("count", {"next": "nowhere"}),
        ("count", {"on_fail": "nowhere"}),
        ("count", {"gated": "yes"}),
        ("count", {"risk": "none"}),
        ("count", {"trust": "T"}),
        ("count", {"body": "text"}),
        ("count", {"assert": [{"id": "x", "at": "", "is": "looks-right"}]}),
        ("count", {"prompt": "be careful"}),
        ("done", {"next": "count"}),
    ],
)
def test_one_wrong_place_refuses_a_step(step, members):
    steps = json.loads(book().data)["steps"]
    steps[step].update(members)
    with pytest.raises(RunbookError):
        envelope(steps=steps)


def test_a_loop_without_a_retry_budget_is_refused():
    with pytest.raises(RunbookError) as wrong:
        book(changed("steps", 2, "on_fail", value="count"))
    assert wrong.value.code == "runbook.loop"
    budgeted = changed("steps", 2, "on_fail", value="count")
    budgeted["steps"][2]["retry"] = {"count": 1}
    assert book(budgeted).budgets["tell->count"] == 1


def test_a_fold_that_rests_between_any_two_receipts_finds_the_same():
    def play(rest):
        made = BookChain()
        steps = (
            lambda: made.call("count", "db.read"),
            lambda: made.observed("count", {"rows": 1}),
            lambda: made.end("count"),
            lambda: made.call("drop", "mail.send"),
            lambda: made.end("drop", "failed"),
            made.counted,
            lambda: made.dropped("failed"),
            made.counted,
            lambda: made.dropped("failed"),
            lambda: made.deny_step("count", "budget.limit", status="blocked", meter="drop->count", limit=2, spent=2),
            lambda: made.end("stop"),
            made.finish,
        )
        for number, step in enumerate(steps):
            if number == rest:
                adapter = TypeAdapter(ReplayState)
                kept = adapter.dump_json(made.replay.state())
                made.replay = Replay(approvers=made.replay.approvers, document_of=made.replay.document_of)
                made.replay.resume(adapter.validate_json(kept))
            step()
        return [(each.code, each.index) for each in made.findings]

    whole = play(None)
    assert [code for code, _ in whole] == [
        "approval.missing",
        "runbook.out_of_scope_tool",
        "runbook.out_of_order_step",
    ]
    assert all(play(rest) == whole for rest in range(12))


def test_every_code_of_runbooks_is_in_the_table():
    given = set()
    for path in ("runbook_replay", "evaluation_replay", "grant_replay", "grant", "delegation"):
        text = (ROOT / f"ledger/rules/{path}.py").read_text(encoding="utf-8")
        given |= set(re.findall(r'"((?:runbook|grant|evaluation)\.[a-z_]+)"', text))
    assert given - {STEP_ACT, ASSERT_ACT} <= {*BREACH_CODES, *DOUBT_CODES}
