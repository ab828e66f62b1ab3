"""Budgets re-proved: each breach, beside the lawful chain one step away."""

import pytest

from ledger.members import Charge, CurrencyAmount, Source
from ledger.receipt import Intent, Outcome, Resolution
from ledger.rules.breach import BREACH_CODES, DOUBT_CODES
from ledger.words import Basis
from tests.reference.rule_chain import Chain, charges


def spent(chain, run, reserved, settled=None, status="committed"):
    intent = chain.intent(run, reserved)
    chain.outcome(run, intent, settled, status, **({"reason": "act.not_executed"} if status == "failed" else {}))
    return intent


@pytest.mark.parametrize(("limit", "codes"), [(100, []), (99, ["budget.overspent"])])
def test_a_run_that_stays_within_its_limit_and_one_that_passes_it(limit, codes):
    chain = Chain()
    run = chain.opening({"usd_micro": limit})
    for _ in range(2):
        spent(chain, run, {"usd_micro": 50}, {"usd_micro": 50})
    chain.close(run)
    assert chain.codes() == codes
    if codes:
        assert (chain.replay.breach.index, chain.replay.breach.code) == (3, codes[0])
        assert "spent 50, reserved 0, limit 99" in chain.replay.breach.message


def test_what_an_ambiguous_act_reserved_stays_until_it_is_resolved():
    for resolved, codes in ((None, ["budget.overspent"]), ("happened", ["budget.overspent"]), ("did_not_happen", [])):
        chain = Chain()
        run = chain.opening({"usd_micro": 100})
        intent = spent(chain, run, {"usd_micro": 60}, status="ambiguous")
        if resolved is not None:
            chain.resolution(intent, resolved)
        spent(chain, run, {"usd_micro": 60})
        assert chain.codes() == codes


def test_what_a_resolution_says_that_it_cost_is_what_it_cost():
    chain = Chain()
    run = chain.opening({"usd_micro": 100})
    intent = spent(chain, run, {"usd_micro": 60}, status="ambiguous")
    chain.resolution(intent, "happened", {"usd_micro": 40})
    spent(chain, run, {"usd_micro": 60})
    assert chain.codes() == []


def test_an_act_after_an_overrun():
    for settled, codes in ((10, []), (11, ["budget.act_after_overrun"])):
        chain = Chain()
        run = chain.opening({"usd_micro": 100})
        spent(chain, run, {"usd_micro": 10}, {"usd_micro": settled})
        spent(chain, run, {"usd_micro": 0})
        assert chain.codes() == codes


def test_a_settle_past_the_limit_and_its_grace():
    for grace, codes in ((10, []), (9, ["budget.overspent"])):
        chain = Chain()
        run = chain.opening({"usd_micro": {"limit": 100, "grace": grace}})
        spent(chain, run, {"usd_micro": 100}, {"usd_micro": 110})
        chain.close(run)
        assert chain.codes() == codes


def test_a_price_that_nobody_said_is_a_breach_and_one_that_is_not_known_a_doubt():
    for reserved, codes in (
        ({"usd_micro": 0}, []),
        ({}, ["budget.unknown_price"]),
        ({"usd_micro": "unknown"}, ["budget.basis_unknown"]),
    ):
        chain = Chain()
        run = chain.opening({"usd_micro": 100})
        spent(chain, run, reserved)
        assert chain.codes() == codes
    assert chain.replay.breach is None
    assert chain.replay.doubts["budget.basis_unknown"].index == 1


def test_a_cost_that_is_not_known_afterwards_is_a_doubt_under_a_limit_only():
    for budget, codes in (({"usd_micro": 100}, ["budget.basis_unknown"]), ({"tool_calls": 9}, [])):
        chain = Chain()
        run = chain.opening(budget)
        spent(chain, run, {"usd_micro": 10}, {"usd_micro": "unknown"})
        assert chain.codes() == codes


def test_another_currency_under_a_money_limit():
    chain = Chain()
    run = chain.opening({"usd_micro": 100})
    spent(chain, run, {"usd_micro": 0, "eur_micro": 1})
    assert chain.codes() == ["budget.unknown_price"]


def test_more_attempts_of_an_edge_than_its_limit():
    for limit, codes in ((2, []), (1, ["budget.attempts"])):
        chain = Chain()
        run = chain.opening({"fetch->fetch": limit})
        for _ in range(2):
            spent(chain, run, {"fetch->fetch": 1})
        assert chain.codes() == codes


def test_acts_at_once_and_receipts():
    for limit, codes in ((2, []), (1, ["budget.structure"])):
        chain = Chain()
        run = chain.opening({"concurrency": limit})
        intents = [chain.intent(run) for _ in range(2)]
        for intent in intents:
            chain.outcome(run, intent)
        assert chain.codes() == codes
    for limit, codes in ((6, []), (5, ["budget.structure"])):
        chain = Chain()
        run = chain.opening({"receipts": limit})
        for _ in range(2):
            spent(chain, run, {})
        chain.close(run)
        assert chain.codes() == codes


def test_child_runs_draw_on_the_budget_of_their_parent():
    for limit, codes in ((100, []), (99, ["budget.overspent"])):
        chain = Chain()
        run = chain.opening({"usd_micro": limit})
        intent = chain.intent(run, {"usd_micro": 0})
        child = chain.opening({"usd_micro": 60}, parent_opening=run, parent_intent=intent)
        grandchild = chain.opening(parent_opening=child)
        spent(chain, grandchild, {"usd_micro": 50})
        chain.close(grandchild)
        chain.close(child)
        chain.outcome(run, intent)
        spent(chain, run, {"usd_micro": 50})
        assert chain.codes() == codes


def test_a_child_run_passes_its_own_limit_though_its_parent_has_enough():
    chain = Chain()
    run = chain.opening({"usd_micro": 100})
    child = chain.opening({"usd_micro": 10}, parent_opening=run)
    spent(chain, child, {"usd_micro": 11})
    assert chain.codes() == ["budget.overspent"]


def test_a_child_run_that_widens_a_limit():
    for limit, codes in ((100, []), (101, ["budget.widened"])):
        chain = Chain()
        run = chain.opening({"usd_micro": 100})
        chain.opening({"usd_micro": limit}, parent_opening=run)
        assert chain.codes() == codes


def test_depth_and_fanout():
    for depth, fanout, codes in ((2, 2, []), (1, 2, ["budget.structure"]), (2, 1, ["budget.structure"])):
        chain = Chain()
        run = chain.opening({"depth": depth, "fanout": fanout})
        intent = chain.intent(run)
        chain.opening(parent_opening=run, parent_intent=intent)
        child = chain.opening(parent_opening=run, parent_intent=intent)
        chain.opening(parent_opening=child)
        assert chain.codes() == codes


@pytest.mark.parametrize(
    ("took", "codes"), [(1_200, []), (1_201, ["budget.over_time"]), ("unknown", ["budget.time_unknown"])]
)
def test_a_time_limit_is_judged_at_the_close(took, codes):
    chain = Chain()
    run = chain.opening({"duration_ms": {"limit": 1_000, "grace": 200}})
    chain.close(run, took)
    assert chain.codes() == codes


def test_a_run_took_no_less_than_its_longest_act_whatever_it_says():
    chain = Chain()
    run = chain.opening({"duration_ms": 1_000})
    chain.outcome(run, chain.intent(run), duration_ms=1_001)
    chain.close(run, "unknown")
    assert chain.codes() == ["budget.over_time"]


def test_totals_that_are_not_what_the_receipts_say():
    for value, codes in ((7, []), (6, ["budget.contradicted"])):
        chain = Chain()
        run = chain.opening({"usd_micro": 10})
        spent(chain, run, {"usd_micro": 7})
        chain.close(run, totals=(CurrencyAmount(meter="usd_micro", value=value),))
        assert chain.codes() == codes


def test_a_refusal_whose_amounts_are_not_what_the_receipts_say():
    for amounts, codes in (
        ((10, 7, 0, 4), []),
        ((10, 9, 0, 4), ["budget.contradicted"]),
        ((20, 7, 0, 4), ["budget.contradicted"]),
    ):
        chain = Chain()
        run = chain.opening({"usd_micro": 10})
        spent(chain, run, {"usd_micro": 7})
        limit, spent_, reserved, asked = amounts
        chain.waiting(
            run,
            status="blocked",
            reason="budget.limit",
            meter="usd_micro",
            limit=limit,
            spent=spent_,
            reserved=reserved,
            asked=asked,
        )
        assert chain.codes() == codes


def test_an_act_past_a_soft_limit_needs_an_approval():
    for reserved, codes in ((50, []), (51, ["approval.missing"])):
        chain = Chain()
        run = chain.opening({"usd_micro": {"limit": 100, "soft": 50}})
        spent(chain, run, {"usd_micro": reserved})
        assert chain.codes() == codes


def test_nothing_is_kept_of_a_tree_of_runs_that_is_closed():
    chain = Chain()
    run = chain.opening({"usd_micro": 10})
    child = chain.opening(parent_opening=run)
    intent = spent(chain, child, {"usd_micro": 1}, status="ambiguous")
    chain.close(child)
    assert chain.replay.budgets.budget_of(child) is not None
    chain.close(run)
    assert chain.replay.budgets.budget_of(run) is None
    assert chain.replay.budgets.budget_of(child) is None
    chain.resolution(intent, "happened")
    assert chain.codes() == []


def test_every_code_has_a_meaning_and_no_code_is_both():
    assert not set(BREACH_CODES) & set(DOUBT_CODES)
    assert all(meaning.endswith(".") for meaning in {**BREACH_CODES, **DOUBT_CODES}.values())


@pytest.mark.parametrize("basis", [Basis.REPORTED, Basis.UNKNOWN])
@pytest.mark.parametrize("place", ["reserved", "charges", "resolved", "usage"])
def test_an_amount_of_unknown_basis_is_a_doubt_under_a_limit_whatever_it_says(place, basis):
    for budget in ({"usd_micro": 100}, {"tool_calls": 9}):
        chain = Chain()
        run = chain.opening(budget)
        said = {where: charges({"usd_micro": 5}, "settled", basis) for where in ("charges", "usage") if where == place}
        held = charges({"usd_micro": 10}, "reserved", basis if place == "reserved" else None)
        intent = chain.add(Intent, **chain.act(run), reserved=held)
        ended = {"run": run, "intent": intent, "duration_ms": 0, "children": (intent,)}
        chain.add(Outcome, status="ambiguous" if place == "resolved" else "committed", **ended, **said)
        if place == "resolved":
            spent_then = charges({"usd_micro": 5}, "settled", basis)
            chain.add(Resolution, intent=intent, happened="happened", resolved_by="ada", charges=spent_then)
        doubtful = basis is Basis.UNKNOWN and "usd_micro" in budget
        assert chain.codes() == (["budget.basis_unknown"] if doubtful else [])


def test_an_unknown_amount_in_usage_is_a_doubt_under_a_limit_unless_it_is_restated_from_elsewhere():
    for source, codes in ((None, ["budget.basis_unknown"]), (Source(document="sha256:" + "0" * 64, format="axlr"), [])):
        chain = Chain()
        run = chain.opening({"usd_micro": 100})
        intent = chain.intent(run, {"usd_micro": 10})
        used = charges({"usd_micro": "unknown"}, "settled", Basis.REPORTED)
        chain.outcome(run, intent, {"usd_micro": 10}, usage=used, source=source)
        assert chain.codes() == codes


@pytest.mark.parametrize("place", ["charges", "usage"])
@pytest.mark.parametrize("amount", [0, 1, "unknown"])
def test_a_cost_in_another_currency_is_a_breach_under_a_money_limit_only(place, amount):
    for budget in ({"usd_micro": 100}, {"tool_calls": 9}):
        chain = Chain()
        run = chain.opening(budget)
        intent = chain.intent(run, {"usd_micro": 0})
        said = charges({"usd_micro": 0, "eur_micro": amount}, "settled", Basis.REPORTED)
        chain.add(
            Outcome, run=run, intent=intent, status="committed", duration_ms=0, children=(intent,), **{place: said}
        )
        spent(chain, run, {"usd_micro": 0})
        broken = ["budget.unknown_price", *(["budget.act_after_overrun"] if place == "charges" else [])]
        assert chain.codes() == (broken if amount and "usd_micro" in budget else [])


@pytest.mark.parametrize("end", ["failed", "settled", "resolved"])
def test_an_attempt_of_an_edge_counts_however_it_ended(end):
    for limit, codes in ((2, []), (1, ["budget.attempts"])):
        chain = Chain()
        run = chain.opening({"fetch->fetch": limit})
        for _ in range(2):
            intent = chain.intent(run, {"fetch->fetch": 1})
            if end == "failed":
                chain.outcome(run, intent, status="failed", reason="act.not_executed")
            elif end == "settled":
                chain.outcome(run, intent, {"fetch->fetch": 0})
            else:
                chain.outcome(run, intent, status="ambiguous")
                chain.resolution(intent, "did_not_happen")
        assert chain.codes() == codes


@pytest.mark.parametrize(
    ("settled", "status", "counted"),
    [({"usd_micro": 5}, "committed", 5), (None, "committed", 10), ({"usd_micro": 5}, "ambiguous", 10),
     (None, "failed", 0), ({"usd_micro": 7}, "failed", 7)],
)  # fmt: skip
def test_more_usage_of_a_limited_meter_than_the_act_settles_is_a_contradiction(settled, status, counted):
    for budget, used, codes in (
        ({"usd_micro": 100}, counted, []),
        ({"usd_micro": 100}, counted + 1, ["budget.contradicted"]),
        ({"usd_micro": 100}, 1_000_000_000, ["budget.contradicted"]),
        ({"tool_calls": 9}, 1_000_000_000, []),
    ):
        chain = Chain()
        run = chain.opening(budget)
        intent = chain.intent(run, {"usd_micro": 10})
        proof = {"reason": "act.not_executed"} if status == "failed" else {}
        usage = charges({"usd_micro": used}, "settled", Basis.REPORTED)
        chain.outcome(run, intent, settled, status, usage=usage, **proof)
        assert chain.codes() == codes


def test_usage_of_measured_meters_and_what_others_pay_is_no_contradiction():
    chain = Chain()
    run = chain.opening({"usd_micro": 100, "duration_ms": 5})
    paid = Charge(meter="usd_micro", settled=1_000, payer="ada", basis=Basis.REPORTED)
    for usage in (charges({"duration_ms": 9}, "settled", Basis.MEASURED), (paid,)):
        chain.outcome(run, chain.intent(run, {"usd_micro": 10}), {"usd_micro": 10}, usage=usage)
    assert chain.codes() == []


@pytest.mark.parametrize(
    ("reason", "effect", "codes"),
    [
        ("act.not_executed", None, []),
        ("command.not_found", None, []),
        ("act.exception", None, ["budget.overspent"]),
        (None, None, ["budget.overspent"]),
        ("act.not_executed", ("pay:1", 1), []),
        (None, ("pay:1", 1), ["effect.unproven_failure", "budget.overspent"]),
    ],
)
def test_a_failure_gives_back_what_it_proves_that_it_did_not_spend(reason, effect, codes):
    chain = Chain()
    run = chain.opening({"usd_micro": 100})
    intent = chain.intent(run, {"usd_micro": 60}, effect=effect)
    chain.outcome(run, intent, status="failed", reason=reason)
    spent(chain, run, {"usd_micro": 60})
    assert sorted(chain.codes()) == sorted(codes)
