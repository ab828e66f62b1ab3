"""Budgets while a run goes on: what is admitted, refused, settled and released, and that a verifier finds nothing against it."""

from __future__ import annotations

import multiprocessing

import pytest

from ledger import Blocked, Ledger, Limit, NotExecuted
from ledger.receipt import parse_receipt
from ledger.rules.budget_replay import BudgetReplay
from ledger.rules.errors import BudgetError
from ledger.spending import budget_of
from ledger.storage.places import Places
from verify.chain import Segment
from verify.ledger import verify_ledger


@pytest.fixture
def places(tmp_path):
    return Places(*(tmp_path / name for name in ("config", "data", "state")))


@pytest.fixture
def ledger(tmp_path, places):
    return Ledger.create(tmp_path / "ledger", places=places)


def rules(ledger):
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None)
    failed = [check for check in verdict.checks if check.status == "failed"]
    assert not failed
    return next(check for check in verdict.checks if check.name == "rules")


def receipts(ledger, kind):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [receipt for receipt in found if receipt.kind == kind]


def act(run, price=1_000, used=None):
    with run.call("ask", reserve={"usd_micro": price}) as call:
        if used is not None:
            call.use("usd_micro", used)


def test_an_act_that_reaches_the_limit_runs_and_the_next_one_does_not(ledger):
    ran = []

    def work():
        with ledger.run("work", budget={"usd_micro": 2_000}) as run:
            for number in range(3):
                with run.call("ask", reserve={"usd_micro": 1_000}):
                    ran.append(number)

    with pytest.raises(Blocked) as blocked:
        work()
    assert ran == [0, 1]
    assert blocked.value.code == "budget.limit"
    decision = receipts(ledger, "decision")[0]
    assert (decision.status, decision.reason) == ("blocked", "budget.limit")
    assert (decision.meter, decision.limit, decision.spent, decision.reserved, decision.asked) == (
        "usd_micro", 2_000, 2_000, 0, 1_000,
    )  # fmt: skip
    closed = receipts(ledger, "run")[0]
    assert (closed.status, closed.reason) == ("blocked", "budget.limit")
    assert {total.meter: total.value for total in closed.totals} == {"usd_micro": 2_000, "tool_calls": 2}
    assert rules(ledger).status == "ok"


def test_a_run_that_takes_the_refusal_goes_on(ledger):
    with ledger.run("work", budget={"usd_micro": 1_000}) as run:
        with pytest.raises(Blocked):
            act(run, 1_001)
        act(run, 1_000)
    assert receipts(ledger, "run")[0].status == "completed"
    assert rules(ledger).status == "ok"


def test_a_fold_that_fails_after_a_commit_is_made_again_and_what_was_recorded_stays(ledger):
    with ledger.run("work", budget={"usd_micro": 1_000}) as run:
        for name in ("take", "_settle"):
            act(run, 100)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(BudgetReplay, name, lambda *_: 1 / 0)
                with run.call("ask", reserve={"usd_micro": 100}):
                    pass
        act(run, 600)
        with pytest.raises(Blocked):
            act(run, 1)
        assert budget_of(ledger.reader, run.id).lines["usd_micro"].left == 0
    assert rules(ledger).status == "ok"


def test_what_was_not_used_and_what_did_not_happen_goes_back(ledger):
    with ledger.run("work", budget={"usd_micro": 1_000}) as run:
        act(run, 1_000, used=300)
        with pytest.raises(NotExecuted), run.call("ask", reserve={"usd_micro": 700}):
            raise NotExecuted("declined")
        act(run, 700)
        assert budget_of(ledger.reader, run.id).lines["usd_micro"].left == 0
    failed = next(each for each in receipts(ledger, "outcome") if each.status == "failed")
    assert [(each.meter, each.released) for each in failed.charges] == [("usd_micro", 700)]
    assert rules(ledger).status == "ok"


def test_an_ambiguous_act_keeps_what_it_set_aside(ledger):
    with ledger.run("work", budget={"usd_micro": 1_000}) as run:
        with pytest.raises(OSError, match="timeout"), run.call("ask", reserve={"usd_micro": 600}):
            raise OSError("timeout")
        with pytest.raises(Blocked) as blocked:
            act(run, 401)
        assert (blocked.value.refused.spent, blocked.value.refused.reserved) == (0, 600)
        act(run, 400)
    assert rules(ledger).status == "ok"


def test_an_act_that_costs_more_than_it_set_aside_blocks_the_next_one(ledger):
    with ledger.run("work", budget={"usd_micro": 10_000}) as run:
        act(run, 100, used=100)
        act(run, 100, used=101)
        with pytest.raises(Blocked) as blocked:
            act(run, 0)
    assert blocked.value.code == "budget.overrun"
    assert rules(ledger).status == "ok"


@pytest.mark.parametrize("reserve", [None, {"usd_micro": "unknown"}, {"eur_micro": 1}])
def test_a_price_that_is_not_known_in_the_currency_of_the_limit_is_refused_and_zero_is_said(ledger, reserve):
    with ledger.run("work", budget={"usd": "0.5"}) as run:
        with pytest.raises(Blocked) as blocked, run.call("ask", reserve=reserve):
            pass
        act(run, 0)
    assert blocked.value.code == "budget.price_unknown"
    assert rules(ledger).status == "ok"


@pytest.mark.parametrize(
    "budget",
    [{"usd_micro": -1}, {"usd_micro": 1.5}, {"usd_micro": True}, {"usd": "1e3"}, {"usd": 1, "eur": 1}, {"fuel": 1},
     {"usd_micro": 2**53}, {"usd_micro": float("nan")}],
)  # fmt: skip
def test_a_limit_outside_its_form_is_refused_before_anything_is_recorded(ledger, budget):
    before = ledger.head().size
    with pytest.raises(BudgetError):
        ledger.run("work", budget=budget)
    assert ledger.head().size == before


@pytest.mark.parametrize("reserve", [{"usd_micro": -1}, {"usd_micro": 0.5}, {"fuel": 1}, {"receipts": 1}])
def test_an_amount_outside_its_form_is_refused_before_anything_is_recorded(ledger, reserve):
    with ledger.run("work", budget={"usd_micro": 10}) as run:
        before = ledger.head().size
        with pytest.raises(BudgetError):
            run.call("ask", reserve=reserve)
        assert ledger.head().size == before


def test_a_child_run_draws_on_its_parent_and_only_narrows(ledger):
    with ledger.run("work", budget={"usd_micro": 1_000}) as run, run.call("plan", reserve={"usd_micro": 0}) as call:
        with pytest.raises(Blocked):
            call.run("wider", budget={"usd_micro": 1_001})
        with call.run("inner", budget={"usd_micro": 900}) as inner:
            act(inner, 600)
            with pytest.raises(Blocked) as own:
                act(inner, 301)
        with call.run("free") as free, pytest.raises(Blocked) as above:
            act(free, 401)
    assert (own.value.refused.limit, own.value.refused.spent) == (900, 600)
    assert (above.value.refused.limit, above.value.refused.spent) == (1_000, 600)
    assert rules(ledger).status == "ok"


def test_calls_and_receipts_are_counted(ledger):
    with ledger.run("work", budget={"tool_calls": 1}) as run:
        with run.call("one"):
            pass
        with pytest.raises(Blocked), run.call("two"):
            pass
    with ledger.run("work", budget={"receipts": 4}) as run:
        with run.call("one"):
            pass
        with pytest.raises(Blocked), run.call("two"):
            pass
    assert rules(ledger).status == "ok"


def test_a_soft_limit_waits_for_an_approval_that_nothing_gives_yet(ledger):
    with ledger.run("work", limits=[Limit(meter="usd_micro", limit=100, soft=50)]) as run:
        act(run, 50)
        with pytest.raises(Blocked) as blocked:
            act(run, 1)
    assert blocked.value.code == "approval.required"
    assert receipts(ledger, "decision")[0].status == "waiting"
    assert rules(ledger).status == "ok"


def test_a_run_past_its_time_admits_nothing(ledger):
    with ledger.run("work", budget={"duration_ms": 0}) as run, pytest.raises(Blocked) as blocked, run.call("one"):
        pass
    assert blocked.value.refused.meter == "duration_ms"


def test_a_run_that_another_process_left_goes_on_with_what_is_left(ledger, places):
    run = ledger.run("work", budget={"usd_micro": 1_000})
    act(run, 600)
    ledger.close()
    with Ledger.open(ledger.folder, places=places).resume(run.id) as again:
        with pytest.raises(Blocked):
            act(again, 401)
        act(again, 400)
    assert rules(ledger).status == "ok"


def test_an_effect_that_happened_never_runs_again_and_says_what_settled_it(ledger):
    with ledger.run("work") as run:
        with run.call("pay", effect_key="order-1") as first:
            pass
        with pytest.raises(Blocked) as blocked, run.call("pay", effect_key="order-1"):
            pass
    assert (blocked.value.code, blocked.value.settled_by) == ("effect.committed", first.outcome.receipt)
    assert receipts(ledger, "decision")[0].reason == "effect.committed"
    assert rules(ledger).status == "ok"


def test_an_effect_that_provably_did_not_happen_is_attempted_again_under_the_next_number(ledger):
    tokens = []
    with ledger.run("work") as run:
        call = run.call("pay", effect_key="order-1")
        with pytest.raises(NotExecuted), call:
            raise NotExecuted("declined")
        tokens.append(call.idempotency_token)
        with run.call("pay", effect_key="order-1") as call:
            tokens.append(call.idempotency_token)
    assert [each.effect.attempt for each in receipts(ledger, "intent")] == [1, 2]
    assert len(set(tokens)) == 2
    assert rules(ledger).status == "ok"


def test_an_ambiguous_effect_and_one_in_progress_refuse_every_attempt_of_any_run(ledger, places):
    with ledger.run("work") as run:
        with pytest.raises(OSError, match="timeout"), run.call("pay", effect_key="order-1"):
            raise OSError("timeout")
        with run.call("pay", effect_key="order-2"), Ledger.open(ledger.folder, places=places).run("other") as other:
            for key, code in (("order-1", "effect.ambiguous"), ("order-2", "effect.in_progress")):
                with pytest.raises(Blocked) as blocked, other.call("pay", effect_key=key):
                    pass
                assert blocked.value.code == code
    assert rules(ledger).status == "ok"


def test_an_effect_that_an_adapter_calls_failed_without_proof_is_ambiguous(ledger):
    with ledger.run("work") as run, run.call("pay", effect_key="order-1") as call:
        call.end("failed", reason="act.exception")
    assert receipts(ledger, "outcome")[0].status == "ambiguous"
    assert rules(ledger).status == "ok"


def _spend(folder, places, run, count, results):
    opened = Ledger.open(folder, places=places)
    attached = opened.attach(run)
    ran = refused = 0
    for _ in range(count):
        try:
            act(attached, 1_000)
            ran += 1
        except Blocked:
            refused += 1
    results.put((ran, refused))


def test_four_processes_spend_a_limit_to_the_last_unit_and_not_beyond(ledger, places):
    run = ledger.run("work", budget={"usd_micro": 100_000})
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    workers = [spawn.Process(target=_spend, args=(ledger.folder, places, run.id, 50, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    counts = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    run.close()
    assert (sum(ran for ran, _ in counts), sum(refused for _, refused in counts)) == (100, 100)
    assert len(receipts(ledger, "intent")) == len(receipts(ledger, "decision")) == 100
    assert rules(ledger).status == "ok"


@pytest.mark.parametrize(
    ("uses", "settled", "spent"),
    [
        ([5], 5, 5),
        (["unknown"], "unknown", 10),
        ([5, "unknown"], "unknown", 10),
        ([11, "unknown"], 11, 11),
    ],
)
def test_a_cost_that_is_not_known_is_settled_as_unknown_and_found_by_a_verifier(ledger, uses, settled, spent):
    with ledger.run("work", budget={"usd_micro": 100}) as run:
        with run.call("ask", reserve={"usd_micro": 10}) as call:
            for amount in uses:
                call.use("usd_micro", amount)
        assert budget_of(ledger.reader, run.id).lines["usd_micro"].spent == spent
    (charge,) = receipts(ledger, "outcome")[0].charges
    known = "unknown" not in uses
    assert (charge.settled, charge.basis) == (settled, "reported" if known else "unknown")
    assert (rules(ledger).status, rules(ledger).code) == (
        ("ok", None) if known else ("not_checked", "budget.basis_unknown")
    )


def test_a_cost_in_another_currency_is_refused_and_the_act_says_it_in_the_currency_of_the_limit(ledger):
    with ledger.run("work", budget={"usd_micro": 100}) as run, run.call("ask", reserve={"usd_micro": 10}) as call:
        call.use("eur_micro", 0)
        with pytest.raises(BudgetError, match=r"got .eur_micro., expected usd_micro"):
            call.use("eur_micro", 10**9)
        call.use("usd_micro", 7)
    assert [(each.meter, each.settled) for each in receipts(ledger, "outcome")[0].charges] == [
        ("eur_micro", 0),
        ("usd_micro", 7),
    ]
    assert rules(ledger).status == "ok"


@pytest.mark.parametrize("before", [0, 5])
def test_an_act_whose_cost_was_said_last_in_another_currency_is_of_unknown_cost(ledger, before):
    def pay():
        with run.call("ask", reserve={"usd_micro": 10}) as call:
            call.use("usd_micro", before)
            call.use("eur_micro", 1)

    with ledger.run("work", budget={"usd_micro": 100}) as run:
        with pytest.raises(BudgetError):
            pay()
        assert budget_of(ledger.reader, run.id).lines["usd_micro"].reserved == 10
    (outcome,) = receipts(ledger, "outcome")
    assert (outcome.status, outcome.charges[0].settled) == ("ambiguous", "unknown")
    assert (rules(ledger).status, rules(ledger).code) == ("not_checked", "budget.basis_unknown")


def test_a_cost_in_another_currency_that_is_settled_nevertheless_blocks_the_next_act(ledger):
    with ledger.run("work", budget={"usd_micro": 100}) as run:
        call = run.call("ask", reserve={"usd_micro": 10})
        call.use("eur_micro", 1)  # before it is known what is limited
        with call:
            pass
        with pytest.raises(Blocked) as blocked:
            act(run, 0)
    assert blocked.value.code == "budget.overrun"
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None)
    assert [check.code for check in verdict.checks if check.status == "failed"] == ["budget.unknown_price"]


def test_an_attempt_that_did_nothing_is_an_attempt(ledger):
    ran = []
    with ledger.run("work", budget={"build->build": 2}) as run:
        for number in range(2):
            ran.append(number)
            with pytest.raises(NotExecuted), run.call("build", edge="build->build", effect_key="build:1"):
                raise NotExecuted("declined")
        with pytest.raises(Blocked) as blocked, run.call("build", edge="build->build", effect_key="build:1"):
            ran.append(2)
        assert budget_of(ledger.reader, run.id).lines["build->build"].spent == 2
    assert (ran, blocked.value.refused.meter) == ([0, 1], "build->build")
    assert [(each.settled, each.released) for each in receipts(ledger, "outcome")[0].charges] == [(1, None)]
    assert rules(ledger).status == "ok"


def fail(run, used, error):
    with run.call("ask", reserve={"usd_micro": 10}) as call:
        call.use("usd_micro", used)
        raise error


def test_what_the_recorder_says_was_used_is_what_it_settles(ledger):
    with ledger.run("work", budget={"usd_micro": 1_000, "prompt_tokens": 100, "seconds": 60}) as run:
        with run.call("ask", reserve={"usd_micro": 10, "requests": 2}) as call:
            for meter, amount in (("usd_micro", 3), ("usd_micro", 4), ("prompt_tokens", 0), ("requests", 1)):
                call.use(meter, amount)
            call.use("duration_ms", 10**9)
            call.use("cached_tokens", 10**9)
        with pytest.raises(NotExecuted):
            fail(run, 10, NotExecuted("after the price was paid"))
        with pytest.raises(OSError, match="timeout"):
            fail(run, 5, OSError("timeout"))
    assert rules(ledger).status == "ok"


@pytest.mark.parametrize("meter", ["zz", "prompt_token", "usd", "receipts", "concurrency", "a->", 5, None])
def test_a_meter_that_nothing_can_be_used_of_is_refused_by_name_and_not_recorded(ledger, meter):
    with ledger.run("work", budget={"prompt_tokens": 9}) as run, run.call("ask") as call:
        with pytest.raises(BudgetError, match=str(meter)):
            call.use(meter, 1)
        call.use("prompt_tokens", 1)
    assert [each.meter for each in receipts(ledger, "outcome")[0].usage] == ["prompt_tokens"]


@pytest.mark.parametrize(
    "given",
    [{"budget": "usd=1"}, {"budget": ""}, {"budget": ["usd"]}, {"budget": {1: 1}}, {"limits": (1,)}, {"limits": 5}],
)
def test_limits_in_another_container_are_refused_before_anything_is_recorded(ledger, given):
    before = ledger.head().size
    with pytest.raises(BudgetError):
        ledger.run("work", **given)
    with ledger.run("work", limits=[Limit(meter="tool_calls", limit=1)], budget={"usd": "1"}):
        assert ledger.head().size == before + 1


@pytest.mark.parametrize(
    "given",
    [{"reserve": "usd=1"}, {"reserve": ""}, {"reserve": [1]}, {"reserve": {1: 1}}, {"edge": 5}, {"edge": "usd_micro"}],
)
def test_amounts_in_another_container_are_refused_before_anything_is_recorded(ledger, given):
    with ledger.run("work", budget={"usd_micro": 10}) as run:
        before = ledger.head().size
        with pytest.raises(BudgetError):
            run.call("ask", **given)
        assert ledger.head().size == before
        with run.call("ask", reserve={"usd_micro": 1}, edge="a->b"):
            assert ledger.head().size == before + 1


@pytest.mark.parametrize(
    ("reason", "status", "ran"),
    [(None, "ambiguous", 1), ("act.exception", "ambiguous", 1), ("act.not_executed", "failed", 3)],
)
def test_an_act_that_is_called_failed_gives_back_nothing_without_proof(ledger, reason, status, ran):
    done = []

    def pay(number):
        with run.call("pay", reserve={"usd_micro": 100}) as call:
            done.append(number)
            call.end("failed", reason=reason)

    with ledger.run("work", budget={"usd_micro": 100}) as run:
        for number in range(ran):
            pay(number)
        if ran == 1:
            with pytest.raises(Blocked, match="reserved 100, limit 100"):
                pay(ran)
    assert (len(done), receipts(ledger, "outcome")[0].status) == (ran, status)
    assert rules(ledger).status == "ok"
