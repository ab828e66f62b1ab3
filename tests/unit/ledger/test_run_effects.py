"""Effects while runs go on: attempts, leases, resolutions, results on record, and that a verifier agrees each time."""

from __future__ import annotations

import asyncio

import pytest

from ledger import Blocked, Happened, Ledger, NotExecuted, Template
from ledger.errors import AdmissionError, NotFoundError
from ledger.receipt import parse_receipt
from ledger.rules.errors import TemplateError
from ledger.rules.instant import ms_of, time_after
from ledger.storage import writer
from ledger.storage.places import Places
from ledger.words import OutcomeStatus
from verify.chain import Segment
from verify.ledger import verify_ledger


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state"))))


@pytest.fixture
def clock(monkeypatch):
    """Set the clock that receipts and entries are stamped by forward, by hand."""
    from ledger import deciding, recorder, resolving
    from ledger.storage import clock as real

    ahead = [0]

    def now():
        return time_after(real.now(), ahead[0])

    for module in (deciding, recorder, resolving, writer):
        monkeypatch.setattr(module, "now", now)

    def forward(ms):
        ahead[0] += ms

    return forward


def rules(ledger):
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None)
    check = next(check for check in verdict.checks if check.name == "rules")
    return check.code or check.status


def receipts(ledger, kind):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [receipt for receipt in found if receipt.kind == kind]


def crash(run, key="pay:1", **options):
    with pytest.raises(ZeroDivisionError), run.call("pay", effect_key=key, **options) as call:
        _ = 1 // 0
    return call.intent


def held(run, key="pay:1", **options):
    with pytest.raises(Blocked) as blocked, run.call("pay", effect_key=key, **options):
        pytest.fail("it ran")
    return blocked.value.code


def test_what_happened_comes_back_from_the_record_and_nothing_is_charged(ledger):
    ran = []

    def pay(call):
        ran.append(call.idempotency_token)
        call.use("usd_micro", 70)
        return {"receipt": 17}

    options = {"effect_key": "pay:1", "reserve": {"usd_micro": 100}}
    with ledger.run("first", budget={"usd_micro": 1_000}) as run:
        assert run.perform("pay", pay, **options) == {"receipt": 17}
        assert run.perform("pay", pay, **options) == {"receipt": 17}
    with ledger.run("second", budget={"usd_micro": 1_000}) as run:
        assert run.perform("pay", pay, **options) == {"receipt": 17}
        closing = run.close()
    assert len(ran) == 1
    totals = parse_receipt(ledger.get(closing.receipt).envelope.payload).totals
    assert [(each.meter, each.value) for each in totals] == [("usd_micro", 0)]
    assert [each.reason for each in receipts(ledger, "decision")] == ["effect.committed"] * 2
    assert rules(ledger) == "ok"


@pytest.mark.parametrize(
    "content", [b"\x00\xff", "text", {"a": [1, None]}, None], ids=["bytes", "text", "json", "none"]
)
def test_a_result_on_record_is_what_was_returned(ledger, content):
    with ledger.run("work") as run:
        for _ in range(2):
            assert run.perform("pay", lambda _: content, effect_key="pay:1") == content


def test_a_result_is_not_handed_to_another_tool(ledger):
    with ledger.run("work") as run:
        run.perform("pay", lambda _: "done", effect_key="pay:1")
        with pytest.raises(Blocked) as blocked:
            run.perform("pay", lambda _: "again", effect_key="pay:1", tool="other")
        assert not isinstance(blocked.value, Happened)
    assert rules(ledger) == "ok"


def test_an_act_inside_another_that_happened_already_is_not_taken_for_the_outer_one(ledger):
    with ledger.run("work") as run:
        run.perform("inner", lambda _: "inner", effect_key="in")

        def outer(call):
            with call.call("inner", effect_key="in"):
                pytest.fail("it ran")

        with pytest.raises(Happened):
            run.perform("outer", outer, effect_key="out")
    assert [each.status for each in receipts(ledger, "outcome")] == ["committed", "ambiguous"]


def test_only_proof_that_nothing_was_done_lets_it_be_tried_again(ledger):
    with ledger.run("work") as run:
        with pytest.raises(NotExecuted), run.call("pay", effect_key="pay:1"):
            raise NotExecuted
        crash(run)
        assert held(run) == "effect.ambiguous"
    assert [each.effect.attempt for each in receipts(ledger, "intent")] == [1, 2]
    assert rules(ledger) == "ok"


@pytest.mark.parametrize(("happened", "code"), [(True, "effect.committed"), (False, None)])
def test_a_resolution_settles_what_nobody_knows(ledger, happened, code):
    with ledger.run("work") as run:
        crash(run)
        ledger.resolve("pay:1", happened=happened, resolved_by="ann", evidence={"bank": "statement"})
        if code is None:
            with run.call("pay", effect_key="pay:1"):
                pass
        else:
            assert held(run) == code
    resolution = receipts(ledger, "resolution")[0]
    assert (resolution.resolved_by, resolution.happened) == ("ann", "happened" if happened else "did_not_happen")
    assert ledger.artifact(resolution.artifacts[0]) == b'{"bank":"statement"}'
    assert rules(ledger) == "ok"


def test_what_is_known_is_not_resolved(ledger):
    with ledger.run("work") as run:
        run.perform("pay", lambda _: "x", effect_key="done")
        intent = crash(run, "lost")
        for reference, error in (("done", AdmissionError), ("never", NotFoundError), (run.id, NotFoundError)):
            with pytest.raises(error):
                ledger.resolve(reference, happened=True, resolved_by="ann")
        ledger.resolve(intent, happened=True, resolved_by="ann")
        with pytest.raises(AdmissionError) as twice:
            ledger.resolve("lost", happened=False, resolved_by="ann")
        assert twice.value.code == "effect.settled"
        with run.call("pay", effect_key="now"), pytest.raises(AdmissionError) as under_way:
            ledger.resolve("now", happened=False, resolved_by="ann")
        assert under_way.value.code == "effect.in_progress"
    assert rules(ledger) == "ok"


def test_an_ambiguous_act_without_an_effect_gives_back_what_it_held_once_it_is_resolved(ledger):
    with ledger.run("work", budget={"usd_micro": 100}) as run:
        with pytest.raises(ZeroDivisionError), run.call("ask", reserve={"usd_micro": 100}) as call:
            _ = 1 // 0
        with pytest.raises(Blocked), run.call("ask", reserve={"usd_micro": 1}):
            pytest.fail("it ran")
        ledger.resolve(call.intent, happened=False, resolved_by="ann")
        with pytest.raises(AdmissionError):
            ledger.resolve(call.intent, happened=False, resolved_by="ann")
        with run.call("ask", reserve={"usd_micro": 100}) as good:
            pass
        with pytest.raises(AdmissionError):
            ledger.resolve(good.intent, happened=False, resolved_by="ann")
    assert rules(ledger) == "ok"


def test_a_lease_that_runs_out_makes_it_ambiguous_and_never_gives_the_key_back(ledger, clock):
    run = ledger.run("work")
    lost = run.call("pay", effect_key="pay:1", lease_ms=60_000)
    lost.__enter__()
    clock(59_000)
    assert held(run) == "effect.in_progress"
    clock(1_000)
    assert held(run) == "effect.ambiguous"
    lost.__exit__(None, None, None)  # late, and it says how it ended
    assert held(run) == "effect.committed"
    run.close()
    assert receipts(ledger, "intent")[0].lease_ms == 60_000
    assert rules(ledger) == "ok"


def test_the_default_lease_is_five_minutes(ledger, clock):
    run = ledger.run("work")
    run.call("pay", effect_key="pay:1").__enter__()
    clock(299_000)
    assert held(run) == "effect.in_progress"
    clock(1_001)
    assert held(run) == "effect.ambiguous"


def test_another_act_under_the_same_key_waits_until_the_first_is_settled(ledger):
    with ledger.run("work") as run, run.call("pay", effect_key="pay:1", arguments={"to": "x"}):
        assert held(run, arguments={"to": "y"}) == "effect.in_progress"
        assert held(run, arguments={"to": "x"}) == "effect.in_progress"
    assert rules(ledger) == "ok"


@pytest.mark.parametrize(
    ("answer", "expected", "resolutions"),
    [(True, "effect.committed", 1), (False, None, 1), (None, "effect.ambiguous", 0)],
)
def test_a_hook_that_asks_the_world_settles_it_or_changes_nothing(ledger, answer, expected, resolutions):
    asked = []

    def hook(known):
        asked.append((known.attempt, known.intent))
        return answer

    with ledger.run("work") as run:
        intent = crash(run)
        if expected is None:
            with run.call("pay", effect_key="pay:1", reconcile=hook):
                pass
        else:
            assert held(run, reconcile=hook) == expected
    assert asked == [(1, intent)]
    assert len(receipts(ledger, "resolution")) == resolutions
    assert rules(ledger) == "ok"


def test_a_hook_is_not_asked_where_it_is_known(ledger):
    with ledger.run("work") as run:
        for _ in range(2):
            assert (
                run.perform("pay", lambda _: "x", effect_key="pay:1", reconcile=lambda _: pytest.fail("asked")) == "x"
            )


def test_keys_are_made_from_templates_that_are_checked_when_they_are_declared(ledger):
    with pytest.raises(TemplateError):
        Template.parse("refund:{payment}", parameters=("payment_id",))
    key = Template.parse("refund:{payment_id}", parameters=("payment_id",))
    with ledger.run("work") as run:
        with pytest.raises(TemplateError):
            run.call("refund", effect_key=key, arguments={"payment_id": ""})
        with run.call("refund", effect_key=key, arguments={"payment_id": "p1"}):
            pass
    assert receipts(ledger, "intent")[0].effect.key == "refund:p1"


def test_attempts_by_edge_are_held_by_a_limit_on_the_edge(ledger):
    with ledger.run("work", budget={"plan->build": 2}) as run:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError), run.call("build", edge="plan->build"):
                _ = 1 // 0
        with run.call("test", edge="build->test"):
            pass
        with pytest.raises(Blocked) as blocked, run.call("build", edge="plan->build"):
            pytest.fail("it ran")
    assert (blocked.value.refused.meter, blocked.value.refused.limit) == ("plan->build", 2)
    assert rules(ledger) == "ok"


def test_a_call_of_a_continued_run_is_never_failed_without_proof(ledger):
    run = ledger.run("work")
    run.call("pay", effect_key="pay:1").__enter__()
    with ledger.resume(run.id) as again:
        assert held(again) == "effect.in_progress"
    assert [each.status for each in receipts(ledger, "outcome")] == ["ambiguous"]
    with ledger.run("after") as after:
        assert held(after) == "effect.ambiguous"
    assert rules(ledger) == "ok"


def test_an_effect_is_found_by_its_key_after_the_state_was_made_again(ledger):
    with ledger.run("work") as run:
        run.perform("pay", lambda _: "x", effect_key="pay:1")
        crash(run, "pay:2")
    ledger.close()
    for name in ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm"):
        (ledger.folder / name).unlink(missing_ok=True)
    again = Ledger.open(ledger.folder, places=ledger.places)
    with again.run("after") as after:
        assert held(after, "pay:1") == "effect.committed"
        assert held(after, "pay:2") == "effect.ambiguous"


def cancelled(run, *ended):
    with run.call("pay", effect_key="pay:1") as call:
        for each in ended:
            call.end(each)
        raise asyncio.CancelledError


@pytest.mark.parametrize(("ended", "status"), [([OutcomeStatus.COMMITTED], "committed"), ([], "ambiguous")])
def test_a_cancel_is_recorded_beside_how_the_act_really_ended(ledger, ended, status):
    with ledger.run("work") as run:
        with pytest.raises(asyncio.CancelledError):
            cancelled(run, *ended)
        assert held(run) == f"effect.{status}"
    outcome = receipts(ledger, "outcome")[0]
    assert (outcome.status, outcome.error) == (status, "CancelledError")
    assert rules(ledger) == "ok"


def test_a_cancelled_call_that_only_reads_is_cancelled_and_holds_nothing_up(ledger):
    with ledger.run("work") as run:
        with pytest.raises(asyncio.CancelledError), run.call("look", access="read"):
            raise asyncio.CancelledError
        with run.call("look", access="read"):
            pass
    first, second = receipts(ledger, "outcome")
    assert (first.reason, first.error) == ("act.cancelled", "CancelledError")
    assert (second.status, second.reason, second.error) == ("committed", None, None)
    assert receipts(ledger, "intent")[0].effect is None
    assert rules(ledger) == "ok"


def test_the_lease_is_measured_by_the_times_of_entries(ledger, clock):
    with ledger.run("work") as run:
        clock(3_600_000)
        with run.call("pay", effect_key="pay:1"):
            pass
    entries = {stored.entry.receipt: stored.entry.recorded_at for stored in ledger.entries()}
    times = sorted(map(ms_of, entries.values()))
    assert times[-1] - times[0] >= 3_600_000
    assert rules(ledger) == "ok"
