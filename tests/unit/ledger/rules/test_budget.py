"""Reserve, settle, release: one act at a time."""

import pytest

from ledger.canonical import MAX_INTEGER
from ledger.members import Charge, Limit
from ledger.rules.budget import (
    Budget,
    Refused,
    Reserved,
    admit_child,
    count_closed,
    count_opened,
    count_written,
    draw_of,
    kept_time,
    reserve,
    settle,
    settled_of,
)
from ledger.words import Basis, OutcomeStatus, Reason

COMMITTED, FAILED, AMBIGUOUS = OutcomeStatus


def budget(started_ms=None, **limits):
    return Budget.of([Limit(meter=meter, limit=limit) for meter, limit in limits.items()], started_ms=started_ms)


def spend(found, draw, status=COMMITTED, settled=None):
    made = reserve((found,), draw)
    assert isinstance(made, Reserved)
    (after,), kept = settle(made.budgets, made.hold, status, settled or {})
    return after, kept


def test_an_act_that_reaches_the_limit_is_admitted_and_one_more_unit_is_refused():
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 60})
    assert isinstance(reserve((found,), {"usd_micro": 40}), Reserved)
    refused = reserve((found,), {"usd_micro": 41})
    assert refused == Refused(Reason.LIMIT, "usd_micro", 100, 60, 0, 41, 0)


def test_what_is_reserved_counts_as_if_it_were_spent():
    made = reserve((budget(usd_micro=100),), {"usd_micro": 60})
    refused = reserve(made.budgets, {"usd_micro": 41})
    assert (refused.spent, refused.reserved, refused.asked) == (0, 60, 41)


def test_a_committed_act_without_a_price_costs_what_it_reserved_and_with_one_that():
    assert spend(budget(usd_micro=100), {"usd_micro": 60})[0].lines["usd_micro"].spent == 60
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 60}, settled={"usd_micro": 20})
    assert (found.lines["usd_micro"].spent, found.lines["usd_micro"].left) == (20, 80)


def test_a_failed_act_gives_everything_back_but_what_was_charged_nevertheless():
    found, kept = spend(budget(usd_micro=100, tool_calls=1), {"usd_micro": 60}, FAILED)
    assert (found.lines["usd_micro"].left, found.lines["tool_calls"].left, kept) == (100, 1, {})
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 60}, FAILED, {"usd_micro": 5})
    assert found.lines["usd_micro"].left == 95


def test_an_ambiguous_act_keeps_its_reservation_until_it_is_resolved():
    found, kept = spend(budget(usd_micro=100), {"usd_micro": 60}, AMBIGUOUS)
    assert isinstance(reserve((found,), {"usd_micro": 41}), Refused)
    assert kept["usd_micro"] == 60
    (undone,), nothing = settle((found,), kept, FAILED, {})
    assert (undone.lines["usd_micro"].left, nothing) == (100, {})
    (done,), _ = settle((found,), kept, COMMITTED, {"usd_micro": 10})
    assert done.lines["usd_micro"].left == 90


@pytest.mark.parametrize("status", [COMMITTED, FAILED, AMBIGUOUS])
def test_a_settle_above_the_reservation_is_an_overrun_that_blocks_the_next_act(status):
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 10}, status, {"usd_micro": 11})
    assert found.overrun == "usd_micro"
    assert reserve((found,), {"usd_micro": 0}).reason is Reason.OVERRUN
    assert admit_child((found,), siblings=0, limits=()).reason is Reason.OVERRUN
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 10}, status, {"usd_micro": 10})
    assert found.overrun is None


def test_an_overrun_of_a_meter_without_limit_blocks_nothing():
    found, _ = spend(budget(tool_calls=9), {"prompt_tokens": 1}, settled={"prompt_tokens": 50})
    assert found.overrun is None
    assert found.lines["prompt_tokens"].spent == 50


@pytest.mark.parametrize("draw", [{}, {"usd_micro": "unknown"}, {"usd_micro": 0, "eur_micro": 1}])
def test_a_price_that_is_not_known_is_refused_under_a_money_limit(draw):
    assert reserve((budget(usd_micro=100),), draw).reason is Reason.PRICE_UNKNOWN


def test_zero_that_is_said_is_a_price_and_without_a_money_limit_none_is_needed():
    assert isinstance(reserve((budget(usd_micro=0),), {"usd_micro": 0}), Reserved)
    assert isinstance(reserve((budget(usd_micro=0),), {"usd_micro": 0, "eur_micro": 0}), Reserved)
    assert isinstance(reserve((budget(tool_calls=1),), {"usd_micro": "unknown"}), Reserved)


def test_an_unknown_amount_of_any_limited_meter_is_refused():
    assert reserve((budget(prompt_tokens=9),), {"prompt_tokens": "unknown"}).reason is Reason.PRICE_UNKNOWN
    assert isinstance(reserve((budget(prompt_tokens=9),), {}), Reserved)


def test_every_act_takes_a_tool_call_whether_it_says_so_or_not():
    assert reserve((budget(tool_calls=0),), {}).meter == "tool_calls"
    assert reserve((budget(tool_calls=0),), {"tool_calls": 0}).meter == "tool_calls"
    assert reserve((budget(tool_calls=2),), {"tool_calls": 3}).asked == 3


def test_acts_at_once_are_limited_and_free_their_place_however_they_end():
    made = reserve((budget(concurrency=1),), {})
    assert reserve(made.budgets, {}).meter == "concurrency"
    for status in OutcomeStatus:
        after, _ = settle(made.budgets, made.hold, status, {})
        assert isinstance(reserve(after, {}), Reserved)


def test_receipts_keep_room_for_what_settles_and_closes():
    opened = count_opened((budget(receipts=5),))
    made = reserve(opened, {})
    assert made.budgets[0].lines["receipts"].left == 1
    assert reserve(made.budgets, {}).meter == "receipts"
    after, _ = settle(made.budgets, made.hold, FAILED, {})
    line = count_closed(count_written(after))[0].lines["receipts"]
    assert (line.spent, line.reserved) == (5, 0)


def test_an_act_draws_on_the_budgets_of_all_runs_above():
    made = reserve((budget(tool_calls=9), budget(), budget(tool_calls=1)), {})
    assert [each.lines["tool_calls"].reserved for each in made.budgets] == [1, 1, 1]
    refused = reserve(made.budgets, {})
    assert (refused.meter, refused.level, refused.limit) == ("tool_calls", 2, 1)


def test_a_child_run_may_narrow_a_limit_and_not_widen_it():
    above = (budget(tool_calls=5),)
    assert admit_child(above, siblings=0, limits=[Limit(meter="tool_calls", limit=5)]) is None
    assert admit_child(above, siblings=0, limits=[Limit(meter="tool_calls", limit=6)]).meter == "tool_calls"
    assert admit_child(above, siblings=0, limits=[Limit(meter="usd_micro", limit=6)]) is None
    money = (budget(usd_micro=5),)
    assert admit_child(money, siblings=0, limits=[Limit(meter="eur_micro", limit=1)]).meter == "eur_micro"


def test_depth_and_fanout_of_child_runs_are_limited():
    assert admit_child((budget(depth=1),), siblings=0, limits=()) is None
    assert admit_child((budget(), budget(depth=1)), siblings=0, limits=()).meter == "depth"
    assert admit_child((budget(fanout=2),), siblings=1, limits=()) is None
    assert admit_child((budget(fanout=2),), siblings=2, limits=()).meter == "fanout"
    assert admit_child((budget(receipts=1),), siblings=0, limits=()).meter == "receipts"


def test_time_is_up_at_the_limit_and_not_a_millisecond_before():
    found = budget(started_ms=1_000, duration_ms=500)
    assert isinstance(reserve((found,), {}, now_ms=1_499), Reserved)
    refused = reserve((found,), {}, now_ms=1_500)
    assert (refused.meter, refused.spent) == ("duration_ms", 500)
    assert found.time_left_ms(1_499) == 1
    assert budget(duration_ms=5).time_left_ms(1) is None
    assert budget(started_ms=1).time_left_ms(1) is None


def test_a_time_limit_held_if_the_end_came_within_its_grace():
    found = Budget.of([Limit(meter="duration_ms", limit=1_000, grace=200)])
    assert kept_time(found, 1_200)
    assert not kept_time(found, 1_201)
    assert kept_time(Budget(), 10**9)


def test_a_soft_limit_asks_and_does_not_refuse():
    found = Budget.of([Limit(meter="usd_micro", limit=100, soft=50)])
    assert reserve((found,), {"usd_micro": 50}).asks is None
    asks = reserve((found,), {"usd_micro": 51}).asks
    assert (asks.reason, asks.meter, asks.limit, asks.asked) == (Reason.APPROVAL_REQUIRED, "usd_micro", 50, 51)


def test_attempts_by_edge_are_counted():
    found, _ = spend(Budget.of([Limit(meter="fetch->fetch", limit=1)]), {"fetch->fetch": 1})
    assert reserve((found,), {"fetch->fetch": 1}).meter == "fetch->fetch"
    assert isinstance(reserve((found,), {}), Reserved)


def test_a_sum_past_the_largest_integer_is_refused_without_any_limit():
    found, _ = spend(Budget(), {"usd_micro": MAX_INTEGER})
    assert reserve((found,), {"usd_micro": 1}).limit == MAX_INTEGER


def test_charges_of_receipts_draw_what_they_reserve_and_nothing_where_somebody_else_pays():
    charges = [
        Charge(meter="usd_micro", reserved=5, basis=Basis.QUOTED),
        Charge(meter="requests", quoted=2, basis=Basis.QUOTED),
        Charge(meter="prompt_tokens", basis=Basis.UNKNOWN),
        Charge(meter="eur_micro", reserved=9, payer="customer", basis=Basis.QUOTED),
    ]
    assert draw_of(charges) == {"usd_micro": 5, "requests": 2, "prompt_tokens": "unknown", "eur_micro": 0}


def test_charges_of_outcomes_settle_what_they_say():
    charges = [
        Charge(meter="usd_micro", settled=5, released=1, basis=Basis.MEASURED),
        Charge(meter="usd_micro", settled=2, basis=Basis.MEASURED),
        Charge(meter="requests", reserved=2, basis=Basis.QUOTED),
        Charge(meter="prompt_tokens", basis=Basis.UNKNOWN),
        Charge(meter="cached_tokens", settled=9, payer="customer", basis=Basis.MEASURED),
    ]
    assert settled_of(charges) == {"usd_micro": 7, "prompt_tokens": "unknown"}


def test_an_unknown_settle_costs_what_was_reserved():
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 60}, settled={"usd_micro": "unknown"})
    assert found.lines["usd_micro"].spent == 60
    found, _ = spend(budget(usd_micro=100), {"usd_micro": 60}, FAILED, {"usd_micro": "unknown"})
    assert found.lines["usd_micro"].spent == 60


def test_totals_hold_what_was_spent_and_no_counted_meter():
    found, _ = spend(budget(usd_micro=100, duration_ms=9), {"usd_micro": 60})
    assert {each.meter: each.value for each in found.totals()} == {"tool_calls": 1, "usd_micro": 60}


def test_a_budget_goes_on_from_what_was_spent_before():
    found = Budget.of(
        [Limit(meter="usd_micro", limit=100)], spent={"usd_micro": 50, "requests": 1}, reserved={"usd_micro": 30}
    )
    assert found.lines["usd_micro"].left == 20
    assert found.lines["requests"].left is None
    assert found.is_limited()
    assert not Budget().is_limited()
