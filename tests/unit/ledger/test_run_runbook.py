"""Runbooks while a run goes on: what is refused, and that a verifier agrees each time."""

from __future__ import annotations

import json
from contextlib import suppress
from shutil import rmtree

import pytest

from cli.rules import sources_of
from ledger import Blocked, Deviated, Ledger, Refused, Waiting
from ledger.arguments import ArgumentsError
from ledger.errors import AdmissionError
from ledger.opening_book import ROUTED
from ledger.receipt import parse_receipt
from ledger.rules.errors import RunbookError
from ledger.rules.runbook_report import free_text, report_of
from ledger.storage.places import Places
from ledger.words import Reason
from tests.reference.approvers import answer, person, trusting
from tests.reference.books import ELEMENTS, book, changed
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.rules import RuleSources

ANN, BOT = person("ann", 1), person("bot", 2)
TOOLS = ("db.read", "db.drop", "mail.send")


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state"))))


def rules(ledger, *people):
    sources = sources_of(ledger.folder, None)
    given = RuleSources(trusting(*people), sources.document_of, sources.arguments_of)
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None, sources=given)
    check = next(check for check in verdict.checks if check.name == "rules")
    return check.code or check.status


def receipts(ledger, kind):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [receipt for receipt in found if receipt.kind == kind]


def report(ledger, run, elements=None):
    envelope = book(elements)
    rows = [(stored.entry.receipt, parse_receipt(stored.envelope.payload)) for stored in ledger.entries()]
    found = report_of(run, rows, envelope)
    assert free_text(found, envelope) == ()
    return found


def begin(ledger, elements=None, **options):
    given = {
        "actor": "bot",
        "runbook": json.dumps(elements or ELEMENTS).encode(),
        "profile": "R2",
        "risk_ceiling": "irreversible",
        "allowlist": TOOLS,
        "adapter": ROUTED,
        "approvers": trusting(ANN),
    }
    return ledger.run("drain", **{**given, **options})


def reading(**members):
    return {
        "schema": "receipt-ledger.runbook/v1",
        "mode": "human-with-agent",
        "capabilities": ["db.read"],
        "steps": [{"id": "look", "tool": "db.read", "risk": "read-only", **members}, {"id": "done", "terminal": True}],
    }


def use(scope, tool, **options):
    with scope.call(tool, **options) as call:
        pass
    return call.intent


def count(run, rows=1):
    with run.step("count") as step:
        use(step, "db.read")
        step.observe({"rows": rows})
    return step.failed


def interrupted(scope, tool):
    use(scope, tool)
    raise KeyboardInterrupt


def failing(scope, tool):
    use(scope, tool)
    raise OSError("it failed")


def looked(step, observation):
    use(step, "db.read")
    step.observe(observation)


def overtaken(step, other):
    use(step, "db.read")
    with other.step(step.name) as again:
        again.observe({"rows": 1})
    step.observe({"rows": 1})


def drop(ledger, run, fail=False):
    """Ask at the gate, open it, and drop."""
    with pytest.raises(Waiting) as waiting, run.step("drop") as step:
        use(step, "db.drop")
    answer(ledger, waiting.value.request, ANN)
    with suppress(OSError), run.step("drop") as step:
        (failing if fail else use)(step, "db.drop")


def test_a_procedure_is_followed_to_its_terminal_by_what_is_due(ledger):
    taken = []
    with begin(ledger) as run:
        while (name := run.due()) is not None:
            taken.append(name)
            if name == "count":
                count(run)
            elif name == "drop":
                drop(ledger, run)
            else:
                with run.step(name) as step:
                    if name == "tell":
                        use(step, "mail.send")
    assert taken == ["count", "drop", "tell", "done"]
    assert (rules(ledger, ANN), receipts(ledger, "run")[0].status) == ("ok", "completed")
    found = report(ledger, run.id)
    assert (found["terminal"], found["incomplete"], found["deviations"]) == ("done", False, [])
    assert [each.step for each in receipts(ledger, "intent")] == ["count", "drop", "tell"]


# Starting.


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"profile": "R1"}, {"scope.profile"}),
        ({"allowlist": ()}, {"scope.not_allowlisted"}),
        ({"allowlist": None}, {"scope.not_allowlisted"}),
        ({"risk_ceiling": "write"}, {"scope.risk"}),
        (
            {"profile": "R0", "adapter": None, "allowlist": ("db.read",)},
            {"scope.profile", "scope.not_allowlisted", "scope.coverage"},
        ),
    ],
)
def test_a_runbook_that_may_not_start_is_refused_with_every_reason_and_recorded_as_a_closed_run(
    ledger, options, reasons
):
    given = {key: value for key, value in options.items() if value is not None or key != "adapter"}
    if "adapter" in options:
        from ledger.run import PYTHON

        given["adapter"] = PYTHON
    with pytest.raises(Refused) as refused:
        begin(ledger, **given)
    assert {each.reason.value for each in refused.value.refusals} == reasons
    assert [each.kind for each in map(parse, ledger.entries())][1:] == [
        "opening",
        *["decision"] * len(refused.value.refusals),
        "run",
    ]
    assert rules(ledger) == "ok"
    found = report(ledger, refused.value.run)
    assert {each["reason"] for each in found["refusals"]} == reasons
    assert (found["status"], found["incomplete"], found["deviations"]) == ("blocked", True, [])
    assert ledger.open_runs() == []


def parse(stored):
    return parse_receipt(stored.envelope.payload)


def test_the_policy_of_the_client_is_its_own_allowlist(ledger):
    def policy(**tools):
        return json.dumps({"schema": "receipt-ledger.policy/v1", "level": "act-within-policy", "tools": tools}).encode()

    options = {"allowlist": None, "profile": "R1"}
    with begin(ledger, reading(), policy=policy(allow=[{"name": "db.*"}]), **options) as run:
        assert run.due() == "look"
    with pytest.raises(Refused):
        begin(ledger, reading(), policy=policy(deny=[{"name": "db.read"}]), **options)


def test_a_runbook_that_cannot_be_read_records_nothing(ledger):
    before = ledger.head()
    for options in ({"runbook": b"{}"}, {"profile": "R9"}, {"risk_ceiling": "none"}, {"statement": b"{}"}):
        with pytest.raises(RunbookError):
            begin(ledger, **options)
    assert ledger.head() == before


# Scope.


@pytest.mark.parametrize(
    ("tool", "deviation"),
    [("mail.send", "out-of-scope-tool"), ("db.drop", "out-of-scope-tool"), ("sh", "undeclared-tool")],
)
def test_a_step_does_not_have_another_steps_tool(ledger, tool, deviation):
    with begin(ledger) as run, run.step("count") as step:
        use(step, "db.read")
        with pytest.raises(Deviated) as deviated:
            use(step, tool)
        step.observe({"rows": 1})
    assert deviated.value.deviation == deviation
    assert [each.reason for each in receipts(ledger, "decision")] == [deviated.value.reason]
    assert len(receipts(ledger, "intent")) == 1
    assert rules(ledger) == "ok"
    assert [each["class"] for each in report(ledger, run.id)["deviations"]] == [deviation, "terminal-not-reached"]


def test_outside_of_steps_no_tool_exists(ledger):
    with begin(ledger) as run, pytest.raises(Deviated):
        use(run, "db.read")
    assert rules(ledger) == "ok"


def test_a_run_that_a_call_starts_has_the_scope_of_the_step_above(ledger):
    with begin(ledger) as run, run.step("count") as step, step.call("db.read") as call:
        with call.run("inner", actor="bot") as inner:
            use(inner, "db.read")
            with pytest.raises(Deviated):
                use(inner, "mail.send")
        step.observe({"rows": 1})
    assert rules(ledger) == "ok"


def test_a_destructive_tool_does_not_run_before_its_gate(ledger):
    with begin(ledger) as run:
        count(run)
        with pytest.raises(Waiting), run.step("drop") as step:
            use(step, "db.drop")
        assert (run.due(), len(receipts(ledger, "intent"))) == ("drop", 1)
        with pytest.raises(Waiting), run.step("drop") as step:
            use(step, "db.drop")
        assert len(receipts(ledger, "decision")) == 1
    assert rules(ledger, ANN) == "ok"


def test_the_agent_does_not_open_its_own_gate(ledger):
    with begin(ledger, approvers=trusting(ANN, BOT)) as run:
        count(run)
        with pytest.raises(Waiting) as waiting, run.step("drop") as step:
            use(step, "db.drop")
        answer(ledger, waiting.value.request, BOT)
        with pytest.raises(Waiting), run.step("drop") as step:
            use(step, "db.drop")
    assert len(receipts(ledger, "intent")) == 1


# Order and retries.


def test_steps_are_entered_in_their_order_only(ledger):
    with begin(ledger) as run:
        for name in ("drop", "done", "nowhere"):
            with pytest.raises(Deviated) as deviated, run.step(name):
                pytest.fail("it was entered")
            assert deviated.value.deviation == "out-of-order-step"
        count(run)
        with pytest.raises(Deviated), run.step("count"):
            pytest.fail("it was entered")
    assert rules(ledger) == "ok"
    assert [each["class"] for each in report(ledger, run.id)["deviations"]][:4] == ["out-of-order-step"] * 4


def test_a_step_that_another_process_ended_is_not_ended_twice(ledger):
    with begin(ledger) as run:
        other = Ledger.open(ledger.folder, places=ledger.places).attach(run.id, approvers=trusting(ANN))
        with pytest.raises(AdmissionError) as ended, run.step("count") as step:
            overtaken(step, other)
        assert ended.value.code == "step.ended"
        assert run.due() == "drop"
    assert rules(ledger) == "ok"


def test_steps_of_a_runbook_do_not_nest(ledger):
    with begin(ledger) as run, run.step("count") as step:
        with pytest.raises(ArgumentsError):
            step.step("count")
        step.observe({"rows": 1})


def test_a_retry_budget_that_runs_out_ends_the_procedure(ledger):
    with begin(ledger) as run:
        count(run)
        for _ in range(2):
            drop(ledger, run, fail=True)
            count(run)
        drop(ledger, run, fail=True)
        with pytest.raises(Deviated) as deviated, run.step("count"):
            pytest.fail("it was entered")
        assert (deviated.value.deviation, deviated.value.refused.limit) == ("budget-exhausted", 2)
        assert run.due() is None
        with pytest.raises(Deviated), run.step("stop"):
            pytest.fail("it was entered")
    assert rules(ledger, ANN) == "ok"
    closed = receipts(ledger, "run")[0]
    assert (closed.status, closed.reason) == ("incomplete", "run.terminal_not_reached")


def test_a_run_that_ends_off_a_terminal_is_incomplete_whatever_it_says(ledger):
    run = begin(ledger)
    count(run)
    run.close("completed")
    assert receipts(ledger, "run")[0].status == "incomplete"
    assert rules(ledger) == "ok"


def test_a_procedure_goes_on_in_another_process_where_it_stood(ledger):
    run = begin(ledger)
    with pytest.raises(KeyboardInterrupt), run.step("count") as step:
        interrupted(step, "db.read")
    other = Ledger.open(ledger.folder, places=ledger.places)
    with other.resume(run.id, approvers=trusting(ANN)) as run:
        assert run.due() == "stop"
        with pytest.raises(Deviated), run.step("count"):
            pytest.fail("it was entered")
        with run.step("stop"):
            pass
    assert receipts(ledger, "run")[0].status == "completed"
    assert rules(ledger) == "ok"


# Assertions.


def test_on_fail_is_routed_by_what_the_assertions_say(ledger):
    with begin(ledger) as run:
        assert count(run, rows=0) is Reason.ASSERT_FAILED
        assert run.due() == "stop"
        with run.step("stop"):
            pass
    assert receipts(ledger, "evaluation")[0].verdict == "not_met"
    assert [(each.name, each.status) for each in receipts(ledger, "step")] == [
        ("count", "failed"),
        ("stop", "completed"),
    ]
    assert rules(ledger) == "ok"
    assert report(ledger, run.id)["terminal"] == "stop"


@pytest.mark.parametrize("granted", [True, False])
def test_what_cannot_be_evaluated_halts_and_asks_a_person(ledger, granted):
    with begin(ledger) as run:
        with pytest.raises(Waiting) as waiting, run.step("count") as step:
            looked(step, {"lines": 1})
        assert run.due() == "count"
        with pytest.raises(Waiting):
            run.conclude("count")
        answer(ledger, waiting.value.request, ANN, "granted" if granted else "denied")
        assert run.conclude("count") is granted
        assert run.due() == ("drop" if granted else None)
    assert receipts(ledger, "evaluation")[0].verdict == "inconclusive"
    step = receipts(ledger, "step")[0]
    assert (step.status, step.reason) == (("completed", None) if granted else ("blocked", "assert.unevaluable"))
    assert rules(ledger, ANN) == "ok"


def test_a_step_with_only_prose_is_unevaluable(ledger):
    elements = reading(expect="The rows look right.")
    with begin(ledger, elements) as run:
        with pytest.raises(Waiting) as waiting, run.step("look") as step:
            use(step, "db.read")
        answer(ledger, waiting.value.request, ANN)
        assert run.conclude("look")
        with run.step("done"):
            pass
    assert rules(ledger, ANN) == "ok"


def test_nobody_is_asked_twice_and_nobody_who_was_not_asked_is_heard(ledger):
    with begin(ledger) as run, pytest.raises(ArgumentsError):
        run.conclude("count")


def test_the_text_of_a_step_is_kept_and_below_t2_no_instruction(ledger):
    for trust, instructs in (("T1", False), ("T2", True)):
        elements = changed("steps", 0, "trust", value=trust)
        with begin(ledger, elements) as run, run.step("count") as step:
            body = step.body("Count the rows.")
            with pytest.raises(RunbookError):
                step.body("Count the rows, and send them to me.")
            step.observe({"rows": 1})
        assert (body.text, body.instructs) == (b"Count the rows.", instructs)
        kept = receipts(ledger, "step")[-1].artifacts
        assert [each.name for each in kept] == ["step-body"]


# R0.


def test_at_r0_what_deviates_runs_and_says_so(ledger):
    with begin(ledger, reading(), profile="R0") as run:
        with run.step("look") as step:
            use(step, "db.read")
            use(step, "shell")
        with run.step("done"):
            pass
    said = [each.would_have and each.would_have.reason for each in receipts(ledger, "intent")]
    assert said == [None, "scope.undeclared_tool"]
    assert rules(ledger) == "ok"
    assert [each["class"] for each in report(ledger, run.id, reading())["deviations"]] == ["undeclared-tool"]


def test_an_envelope_that_is_gone_lets_nothing_run(ledger):
    run = begin(ledger)
    rmtree(ledger.folder / "artifacts")
    other = Ledger.open(ledger.folder, places=ledger.places)
    with other.resume(run.id) as again, pytest.raises(Blocked) as blocked:
        use(again, "db.read")
    assert (blocked.value.reason, receipts(ledger, "intent")) == ("policy.missing", [])
