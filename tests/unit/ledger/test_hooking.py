"""The hook: events of an agent client, recorded and held, by one process or by a new one for each event."""

from __future__ import annotations

import json

import pytest

from cli.rules import sources_of
from ledger import Ledger, Limit, canonical, give
from ledger.arguments import ArgumentsError
from ledger.hooking import HOOK, Hook, Moment, parse_event
from ledger.receipt import parse_receipt
from ledger.storage.places import Places
from tests.reference.approvers import answer, person, trusting
from tests.reference.books import ELEMENTS
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.rules import RuleSources

ANN = person("ann", 1)
POLICY = json.dumps(
    {
        "schema": "receipt-ledger.policy/v1",
        "level": "act-within-policy",
        "tools": {"deny": [{"name": "shell", "arguments": {"command": "rm*"}}]},
        "always_ask": [{"name": "pay"}],
    }
).encode()


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state"))))


class Client:
    """A scripted client; with `fresh`, each event goes to a new process's hook."""

    def __init__(self, ledger, *, fresh=False, **options):
        self.ledger, self.fresh = ledger, fresh
        self.options = {"actor": "bot", "adapter": HOOK, "approvers": trusting(ANN), **options}
        self.hook = Hook(ledger, self.options)

    def say(self, **members):
        if self.fresh:
            opened = Ledger.open(self.ledger.folder, places=self.ledger.places)
            self.hook = Hook(opened, self.options)
        return self.hook.take(parse_event(json.dumps({"session": "s", **members}).encode()))

    def before(self, name="shell", **members):
        return self.say(event="before", name=name, **members)

    def after(self, name="shell", **members):
        return self.say(event="after", name=name, **{"result": "done", **members})

    def end(self):
        return self.say(event="end")


def rules(ledger, *people):
    sources = sources_of(ledger.folder, None)
    given = RuleSources(trusting(*people), sources.document_of, sources.arguments_of)
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None, sources=given)
    check = next(check for check in verdict.checks if check.name == "rules")
    return check.code or check.status


def receipts(ledger, kind):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [receipt for receipt in found if receipt.kind == kind]


both = pytest.mark.parametrize("fresh", [False, True])


@both
def test_a_call_is_recorded_before_and_after_in_the_one_run_of_its_session(ledger, fresh):
    client = Client(ledger, fresh=fresh)
    assert client.before(arguments={"command": "ls"}).decision == "allow"
    assert len(receipts(ledger, "intent")) == 1
    assert client.after(arguments={"command": "ls"}, result={"files": 3}).decision == "recorded"
    closed = client.end()
    assert closed.decision == "closed"
    assert [each.status for each in receipts(ledger, "outcome")] == ["committed"]
    assert receipts(ledger, "opening")[0].adapter == HOOK
    assert [(each.status, len(each.children)) for each in receipts(ledger, "run")] == [("completed", 2)]
    assert (ledger.open_runs(), rules(ledger)) == ([], "ok")


@both
def test_a_call_that_the_policy_forbids_is_denied_before_it_runs(ledger, fresh):
    client = Client(ledger, fresh=fresh, policy=POLICY)
    denied = client.before(arguments={"command": "rm -r x"})
    assert (denied.decision, denied.reason, denied.stops) == ("deny", "policy.denied", True)
    assert json.loads(canonical.encode(denied.value()))["reason"] == "policy.denied"
    assert client.before(arguments={"command": "ls"}).decision == "allow"
    client.end()
    assert len(receipts(ledger, "intent")) == 1
    assert rules(ledger) == "ok"


@both
def test_a_call_that_waits_goes_on_once_a_person_said_yes(ledger, fresh):
    client = Client(ledger, fresh=fresh, policy=POLICY)
    waiting = client.before("pay", arguments={"to": "x"})
    assert (waiting.decision, waiting.stops) == ("wait", True)
    assert client.before("pay", arguments={"to": "x"}).receipt == waiting.receipt
    answer(ledger, waiting.receipt, ANN)
    assert client.before("pay", arguments={"to": "y"}).decision == "wait"
    assert client.before("pay", arguments={"to": "x"}).decision == "allow"
    client.after("pay", arguments={"to": "x"})
    client.end()
    assert rules(ledger, ANN) == "ok"


@both
def test_a_call_over_budget_is_denied(ledger, fresh):
    client = Client(ledger, fresh=fresh, limits=(Limit(meter="tool_calls", limit=2),))
    for _ in range(2):
        assert client.before().decision == "allow"
        client.after()
    denied = client.before()
    assert (denied.decision, denied.reason) == ("deny", "budget.limit")
    client.end()
    assert rules(ledger) == "ok"


def test_what_was_used_counts_against_what_was_set_aside(ledger):
    client = Client(ledger, limits=(Limit(meter="usd_micro", limit=100),))
    assert client.before().reason == "budget.price_unknown"
    assert client.before(reserve={"usd_micro": 80}).decision == "allow"
    client.after(usage={"usd_micro": 10})
    assert client.before(reserve={"usd_micro": 90}).decision == "allow"
    client.after()
    client.end()
    assert {each.meter: each.value for each in receipts(ledger, "run")[0].totals}["usd_micro"] == 100
    assert rules(ledger) == "ok"


@both
def test_what_was_used_under_the_limit_of_a_grant_alone_is_settled(ledger, fresh):
    grant = give(ledger, "bot", acts=["shell"], limits=[Limit(meter="requests", limit=100)])
    client = Client(ledger, fresh=fresh, grant=grant)
    assert client.before().decision == "allow"
    client.after(usage={"requests": 80})
    assert [(each.meter, each.settled) for each in receipts(ledger, "outcome")[0].charges] == [("requests", 80)]
    assert client.before(reserve={"requests": 21}).reason == "grant.limit"
    assert client.before(reserve={"requests": 20}).decision == "allow"
    client.after()
    client.end()
    assert rules(ledger) == "ok"


@both
def test_a_client_that_crashed_in_between_leaves_the_call_ambiguous(ledger, fresh):
    client = Client(ledger, fresh=fresh)
    client.before(arguments={"command": "first"})
    client.hook = Hook(ledger, client.options)
    client.before(arguments={"command": "second"})
    client.after(arguments={"command": "second"})
    client.end()
    assert [(each.status, each.reason) for each in receipts(ledger, "outcome")] == [
        ("committed", None),
        ("ambiguous", "act.recorder_lost"),
    ]
    assert len(receipts(ledger, "opening")) == 1


def test_an_error_that_a_tool_reports_is_ambiguous(ledger):
    client = Client(ledger)
    client.before()
    client.after(error="it broke", result=None)
    assert [(each.status, each.reason) for each in receipts(ledger, "outcome")] == [("ambiguous", "act.exception")]


def test_calls_that_overlap_are_told_apart_by_their_arguments(ledger):
    client = Client(ledger)
    first, second = (client.before(arguments={"n": n}).receipt for n in (1, 2))
    client.after(arguments={"n": 2})
    client.after(arguments={"n": 1})
    assert [each.intent for each in receipts(ledger, "outcome")] == [second, first]


def test_an_end_that_nothing_began_is_not_recorded(ledger):
    client = Client(ledger)
    assert client.end().decision == "ignored"
    lost = client.after()
    assert (lost.decision, lost.stops) == ("deny", True)
    assert receipts(ledger, "outcome") == []


def test_a_session_that_was_opened_under_less_than_is_asked_for_now_admits_nothing(ledger):
    client = Client(ledger)
    assert client.before().decision == "allow"
    client.after()
    limits = (Limit(meter="tool_calls", limit=9),)
    for options in (
        {"policy": POLICY},
        {"limits": limits},
        {"grant": "sha256:" + "0" * 64},
        {"runbook": json.dumps(ELEMENTS).encode()},
    ):
        other = Client(ledger, **options)
        denied = other.before()
        assert (denied.decision, "another" in denied.message) == ("deny", True)
    client.end()
    same = Client(ledger, fresh=True, policy=POLICY, limits=limits)
    assert [same.before(arguments={"n": n}).decision for n in range(2)] == ["allow", "allow"]


def test_what_comes_after_a_call_opens_no_session(ledger):
    client = Client(ledger, policy=POLICY)
    assert client.after().decision == "deny"
    assert client.say(event="step-end", step="x").decision == "deny"
    assert receipts(ledger, "opening") == []


def test_sessions_are_runs_of_their_own(ledger):
    client = Client(ledger)
    runs = {client.before(session=name).run for name in ("a", "b", "a")}
    assert len(runs) == 2
    client.say(event="end", session="a")
    assert [each.name for each in ledger.open_runs()] == ["session b"]


@both
def test_a_runbook_is_followed_by_the_steps_that_are_due(ledger, fresh):
    client = Client(
        ledger,
        fresh=fresh,
        runbook=json.dumps(ELEMENTS).encode(),
        profile="R2",
        risk_ceiling="destructive",
        allowlist=("db.read", "db.drop", "mail.send"),
    )
    denied = client.before("mail.send")
    assert (denied.decision, denied.reason) == ("deny", "scope.out_of_scope_tool")
    assert client.before("shell").reason == "scope.undeclared_tool"
    assert client.before("db.read").decision == "allow"
    client.after("db.read")
    assert client.before("db.drop", step="drop").reason == "scope.out_of_order_step"
    client.say(event="step-end", observation={"rows": 3})
    waiting = client.before("db.drop")
    assert waiting.decision == "wait"
    answer(ledger, waiting.receipt, ANN)
    assert client.before("db.drop").decision == "allow"
    client.after("db.drop")
    client.say(event="step-end")
    assert client.before("mail.send").decision == "allow"
    client.after("mail.send")
    client.say(event="step-end", step="tell")
    client.say(event="step-end", step="done")
    client.end()
    assert receipts(ledger, "run")[0].status == "completed"
    assert [each.name for each in receipts(ledger, "step")] == ["count", "drop", "tell", "done"]
    assert rules(ledger, ANN) == "ok"


def test_a_runbook_that_may_not_start_lets_nothing_run(ledger):
    client = Client(ledger, runbook=json.dumps(ELEMENTS).encode(), profile="R1", allowlist=())
    denied = client.before("db.read")
    assert (denied.decision, denied.reason) == ("deny", "scope.not_allowlisted")
    assert ledger.open_runs() == []


@pytest.mark.parametrize(
    ("text", "moment", "name"),
    [
        ('{"name": "x"}', "before", "x"),
        ('{"name": "x", "result": 1}', "after", "x"),
        ('{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}', "before", "Bash"),
        (
            '{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {}, "tool_response": {}}',
            "after",
            "Bash",
        ),
        ('{"hook_event_name": "SessionEnd", "session_id": "s"}', "end", ""),
        ('{"hook_event_name": "Notification", "message": "hi"}', "other", ""),
        ('{"event": "whatever"}', "other", ""),
    ],
)
def test_the_names_of_agent_clients_are_understood(text, moment, name):
    found = parse_event(text.encode())
    assert (found.moment, found.name) == (Moment(moment), name)


def test_a_number_that_receipts_do_not_hold_comes_as_its_text():
    found = parse_event(b'{"name":"x","arguments":{"a":0.5,"b":1e3,"c":9007199254740993,"d":-0,"e":12}}')
    assert found.arguments == {"a": "0.5", "b": "1e3", "c": "9007199254740993", "d": "-0", "e": 12}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"name":"x","name":"y"}',
        '{"name":3}',
        '{"name":"x","arguments":[]}',
        '{"name":"x","arguments":{"a":NaN}}',
        '{"name":"x","observation":3}',
        "{" * 100_000,
    ],
)
def test_what_is_no_event_is_refused(text):
    with pytest.raises(ArgumentsError):
        parse_event(text.encode())


def test_arguments_that_cannot_be_recorded_keep_the_call_from_running(ledger):
    client = Client(ledger)
    found = client.hook.take(parse_event(b'{"session":"s","name":"x","arguments":{"a":"\\ud800"}}'))
    assert found.decision == "deny"
    assert receipts(ledger, "intent") == []
