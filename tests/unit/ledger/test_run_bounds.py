"""Large runs: lists that fold, thousands of unsettled intents, a tree filled to its bound. Each of them closes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ledger import Ledger
from ledger.envelope import Envelope
from ledger.errors import AdmissionError
from ledger.storage.admission import MAX_TREE
from tests.reference.check import Journal, check_folder
from tests.reference.ledgers import intent, many_intents, new_ledger, outcome, quick_folder, step, verdict


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with quick_folder(tmp_path) as folder:
        yield new_ledger(folder)


def many_steps(ledger: Ledger, run: str, count: int) -> list[Envelope]:
    """Return empty steps that differ in their nonce only."""
    payload = step(ledger, run).payload
    start = payload.index(b'"nonce":"') + len(b'"nonce":"')
    return [Envelope(payload[:start] + os.urandom(16).hex().encode() + payload[start + 32 :]) for _ in range(count)]


def append_while_let(ledger: Ledger, envelopes: Sequence[Envelope]) -> int:
    """Append as many as are let in, in ever smaller commits; return how many."""
    done, size = 0, 4_096
    while size and done < len(envelopes):
        try:
            ledger.append_many(envelopes[done : done + size])
        except AdmissionError as error:
            assert error.code == "tree.too_many"  # noqa: PT017
            size //= 2
        else:
            done = min(done + size, len(envelopes))
    return done


def closed(ledger: Ledger) -> Journal:
    """Return the journal after both checkers agreed to it, and to its only run being closed."""
    found = verdict(ledger)
    assert found.exit == 0, found.findings
    journal = check_folder(ledger.folder, signatures=False)
    assert len(journal.of("run")) == len(journal.of("opening"))
    return journal


def test_more_children_than_a_receipt_holds_fold_in_order(ledger: Ledger) -> None:
    run = ledger.run("wide")
    steps = many_steps(ledger, run.id, 10_050)
    for start in range(0, len(steps), 5_000):
        ledger.append_many(steps[start : start + 5_000])
    run.close()
    journal = closed(ledger)
    folded = journal.of("step")[-1]
    assert folded.receipt["status"] == "folded"
    ids = [each.receipt_id for each in steps]
    assert folded.receipt["children"] == ids[:10_000]
    assert journal.of("run")[0].receipt["children"] == [run.id, folded.id, *ids[10_000:]]


def test_as_many_children_as_a_receipt_holds_do_not_fold(ledger: Ledger) -> None:
    run = ledger.run("wide")
    steps = many_steps(ledger, run.id, 9_999)
    for start in range(0, len(steps), 5_000):
        ledger.append_many(steps[start : start + 5_000])
    run.close()
    assert len(closed(ledger).of("run")[0].receipt["children"]) == 10_000


def test_thousands_of_unsettled_intents_are_settled_in_several_commits(ledger: Ledger) -> None:
    run = ledger.run("lost")
    intents = many_intents(ledger, run.id, 8_300)
    ledger.append_many(intents[:4_200])
    ledger.append_many(intents[4_200:])
    ledger.close_run(run.id)
    journal = closed(ledger)
    assert len(journal.of("outcome")) == 8_300
    assert {row.receipt["status"] for row in journal.of("outcome")} == {"ambiguous"}
    assert len(journal.sizes) > 5


@pytest.mark.parametrize("what", ["steps", pytest.param("intents", marks=pytest.mark.slow)])
def test_a_tree_filled_to_its_bound_closes(ledger: Ledger, what: str) -> None:
    run = ledger.run("full")
    more = many_steps(ledger, run.id, MAX_TREE) if what == "steps" else many_intents(ledger, run.id, MAX_TREE)
    let_in = append_while_let(ledger, more)
    assert let_in == {"steps": MAX_TREE - 9, "intents": (MAX_TREE - 8) // 2}[what]
    with pytest.raises(AdmissionError) as caught, run.call("one more"):
        raise AssertionError("it ran")
    assert caught.value.code == "tree.too_many"
    assert "continues" in (caught.value.hint or "")
    run.close()
    journal = closed(ledger)
    assert len(journal.rows) - 1 <= MAX_TREE
    assert len(journal.of("run")) == 1


@pytest.mark.slow
def test_what_is_under_way_at_the_bound_is_recorded(ledger: Ledger) -> None:
    """Calls that were let in get their outcomes, whatever came in between; steps that do not fit leave what is in them."""
    run = ledger.run("full")
    outer = run.step("outer")
    outer.__enter__()
    calls = [outer.call("act") for _ in range(20)]
    for call in calls:
        call.__enter__()
    append_while_let(ledger, many_steps(ledger, run.id, MAX_TREE))
    for call in calls:
        call.result = b"done"
        call.__exit__(None, None, None)
    with pytest.raises(AdmissionError):
        outer.__exit__(None, None, None)
    run.close()
    journal = closed(ledger)
    assert [row.receipt["status"] for row in journal.of("outcome")] == ["committed"] * 20
    assert len(journal.rows) - 1 <= MAX_TREE


@pytest.mark.slow
def test_child_runs_at_the_bound_close_with_their_parent(ledger: Ledger) -> None:
    run = ledger.run("parent")
    with run.call("delegate") as call:
        children = [call.run("child") for _ in range(30)]
        append_while_let(ledger, many_steps(ledger, children[0].id, MAX_TREE))
        with pytest.raises(AdmissionError) as caught:
            call.run("one more")
        assert caught.value.code == "tree.too_many"
        for child in children:
            child.close()
    run.close()
    journal = closed(ledger)
    assert len(journal.of("run")) == 31
    assert len(journal.rows) - 1 <= MAX_TREE


def test_a_call_with_more_children_than_it_holds_folds_them(ledger: Ledger) -> None:
    run = ledger.run("wide")
    with run.call("outer") as call:
        many = many_intents(ledger, run.id, 10_020)
        for start in range(0, len(many), 6_000):
            ledger.append_many(many[start : start + 6_000])
        for each in many:
            call._adopt(each.receipt_id)
    run.close()
    journal = closed(ledger)
    last = journal.of("outcome")[-1]
    assert last.receipt["children"][0] == call.intent
    assert len(last.receipt["children"]) == 22
    assert journal.of("step")[0].receipt["status"] == "folded"


def test_a_resolution_may_follow_the_close_and_nothing_else_of_the_run(ledger: Ledger) -> None:
    from ledger import receipt as kinds
    from tests.reference.ledgers import common

    run = ledger.run("work")
    lost = ledger.append(intent(ledger, run.id))
    run.close()
    ledger.append(
        ledger.seal(
            kinds.Resolution(**common(ledger, run=run.id, intent=lost.receipt, happened="happened", resolved_by="ada"))
        )
    )
    for late in (intent(ledger, run.id), step(ledger, run.id), outcome(ledger, run.id, lost.receipt)):
        with pytest.raises(AdmissionError) as caught:
            ledger.append(late)
        assert caught.value.code == "run.closed"
    closed(ledger)
