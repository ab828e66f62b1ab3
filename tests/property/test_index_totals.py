"""Totals in SQL equal an independent fold over the journal, on random ledgers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference import slow_spend
from reference.build import Builder
from reference.indexed import ASKED_AT, add, commits_of, session_of

from ledger.index.session import Source, open_session

METERS = ("tool_calls", "usd_micro", "requests", "a->b")
AMOUNT = st.one_of(st.integers(0, 9), st.just("unknown"))


@st.composite
def charges(draw, *members):
    found = []
    for _ in range(draw(st.integers(0, 3))):
        charge = {"meter": draw(st.sampled_from(METERS)), "basis": draw(st.sampled_from(["measured", "unknown"]))}
        for member in members:
            if draw(st.booleans()):
                charge[member] = draw(AMOUNT)
        if draw(st.integers(0, 5)) == 0:
            charge["payer"] = "somebody"
        found.append(charge)
    return found


def _given(name, items):
    return {name: items} if items else {}


@st.composite
def ledgers(draw):
    """Return a ledger whose runs call, start runs, fail, stay open, and are resolved later."""
    ledger = Builder()
    ledger.header()
    runs, intents, open_ = [], [], []
    commits = draw(st.booleans())
    for _ in range(draw(st.integers(1, 12))):
        step = draw(st.sampled_from(["open", "call", "call", "call", "intent", "end", "resolve", "refuse", "close"]))
        if step == "open" or not runs:
            parent = draw(st.sampled_from([None, *runs]))
            limits = draw(st.lists(st.sampled_from(METERS), unique=True, max_size=2))
            stated = [{"meter": each, "limit": draw(st.integers(0, 30))} for each in limits]
            runs.append(ledger.opening(parent=parent, **_given("limits", stated)))
            continue
        ledger.current = draw(st.sampled_from(runs))
        if step in ("call", "intent"):
            intents.append(ledger.intent(**_given("reserved", draw(charges("reserved", "quoted")))))
            open_.append((ledger.current, intents[-1]))
        if step in ("call", "end") and open_:
            # One that is under way may have been resolved meanwhile.
            ledger.current, intent = open_.pop(-1 if step == "call" else draw(st.integers(0, len(open_) - 1)))
            status = draw(st.sampled_from(["committed", "failed", "ambiguous"]))
            reason = draw(st.sampled_from([None, "act.not_executed", "act.exception"]))
            said = _given("charges", draw(charges("settled"))) | _given("reason", reason)
            ledger.outcome(intent, status=status, **said)
        elif step == "resolve" and intents:
            happened = draw(st.sampled_from(["happened", "did_not_happen"]))
            ledger.resolution(
                draw(st.sampled_from(intents)), happened=happened, **_given("charges", draw(charges("settled")))
            )
        elif step == "refuse":
            ledger.decision()
        if commits and draw(st.booleans()):
            ledger.commit()
    ledger.commit()
    return ledger


def _spends(connection):
    rows = connection.execute(
        "SELECT run, meter, sum(spent)::BIGINT, sum(reserved)::BIGINT, count_if(unknown), count_if(overrun) FROM spend GROUP BY ALL"
    ).fetchall()
    return {(run, meter): list(rest) for run, meter, *rest in rows}


@settings(suppress_health_check=list(HealthCheck), max_examples=20)
@given(ledgers(), st.data())
def test_what_acts_took_is_the_same_in_whatever_files_they_began_and_ended(ledger, data):
    pieces = commits_of(ledger)
    with tempfile.TemporaryDirectory() as folder:
        path, way = Path(folder) / "index.duckdb", "anew"
        while pieces:
            count = data.draw(st.integers(1, len(pieces)))
            add(path, ledger, pieces[:count], way)
            pieces = pieces[count:]
            way = data.draw(st.sampled_from(["newer", "folded"]))
        with open_session([Source(path, ledger.origin, Path(folder))], asked_at=ASKED_AT, threads=1) as connection:
            assert _spends(connection) == slow_spend.spends(ledger.lines)


@settings(suppress_health_check=list(HealthCheck), max_examples=20)
@given(ledgers())
def test_what_runs_spent_is_what_a_plain_fold_over_the_journal_finds(ledger):
    with tempfile.TemporaryDirectory() as folder, session_of(Path(folder), ledger) as connection:
        assert _spends(connection) == slow_spend.spends(ledger.lines)
        rows = connection.execute(
            "SELECT run, meter, spent, reserved FROM budgets WHERE meter NOT IN ('receipts', 'duration_ms')"
        ).fetchall()
        found = {(run, meter): list(rest) for run, meter, *rest in rows}
        expected = slow_spend.budgets(ledger.lines)
        assert {key: row for key, row in found.items() if row != [0, 0]} == {
            key: row for key, row in expected.items() if row != [0, 0]
        }


@settings(suppress_health_check=list(HealthCheck), max_examples=8)
@given(ledgers())
def test_every_receipt_is_there_with_its_bytes_and_its_children(ledger):
    with tempfile.TemporaryDirectory() as folder, session_of(Path(folder), ledger) as connection:
        found = connection.execute("SELECT receipt, kind, 'sha256:' || sha256(payload) FROM receipts ORDER BY index")
        assert found.fetchall() == [(row.id, row.kind, row.id) for row in ledger.rows]
        edges = connection.execute("SELECT parent, child FROM edges ORDER BY parent_index, position").fetchall()
        expected = [
            (id_, child)
            for id_, receipt in slow_spend.receipts_of(ledger.lines)
            for child in receipt.get("children", ())
        ]
        assert edges == expected
