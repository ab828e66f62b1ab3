"""What is erased although it is held is found, wherever a ledger is cut, stopped or judged apart."""

from __future__ import annotations

import io

import pytest

from ledger.digest import digest
from ledger.rules.hold_replay import line_from
from tests.reference.build import Builder
from tests.reference.judged import apart, found, judge, split
from verify.ledger import LedgerFold
from verify.options import Options
from verify.resume import parse_state, print_state
from verify.rules import RuleSources, approvers_of
from verify.state import binding

STORED = digest(b"stored")


def ledger_of(*, held=True, released=False, of_run=False, named="outcome"):
    """Return a ledger, a commit an entry: a run that refers to bytes, a hold, perhaps its release, the erasure."""
    ledger = Builder()
    ledger.header()
    ledger.commit()
    run = ledger.opening()
    ledger.commit()
    intent = ledger.intent()
    ledger.commit()
    made = {"outcome": ledger.outcome(intent), "nowhere": digest(b"nowhere")}
    ledger.commit()
    ledger.run()
    ledger.commit()
    if held:
        hold = ledger.add("hold", action="placed", held_run=run) if of_run else ledger.hold(STORED)
        ledger.commit()
        if released:
            ledger.add("hold", action="released", hold=hold)
            ledger.commit()
    ledger.erasure(STORED, made[named])
    ledger.commit()
    return ledger


def payloads(ledger):
    return {row.id: ledger.payload(row.index) for row in ledger.rows}


CASES = [
    ({"held": False}, []),
    ({}, [("hold.erased", "entry 6")]),
    ({"released": True}, []),
    ({"of_run": True}, [("hold.erased", "entry 6")]),
    ({"of_run": True, "released": True}, []),
]


@pytest.mark.parametrize(("members", "codes"), CASES)
def test_what_was_held_when_it_was_erased_is_exit_6(members, codes):
    ledger = ledger_of(**members)
    verdict = judge(ledger, line_of=line_from(payloads(ledger).get))
    assert (verdict.exit, found(verdict)) == (6 if codes else 0, codes)


@pytest.mark.parametrize(
    ("of_run", "codes"), [(False, [("hold.erased", "entry 6")]), (True, [("hold.receipt_absent", "entry 6")])]
)
def test_a_held_run_is_a_doubt_where_receipts_are_not_at_hand_and_a_held_digest_is_none(of_run, codes):
    verdict = judge(ledger_of(of_run=of_run))
    assert (verdict.exit, found(verdict)) == (3 if of_run else 6, codes)


def test_a_receipt_that_is_named_and_not_there_is_a_doubt_and_bytes_that_are_not_its_own_are_none_of_it():
    ledger = ledger_of(of_run=True, named="nowhere")
    held = payloads(ledger)
    for at_hand in (held, {**held, digest(b"nowhere"): held[ledger.rows[-2].id]}):
        verdict = judge(ledger, line_of=line_from(at_hand.get))
        assert (verdict.exit, found(verdict)) == (3, [("hold.receipt_absent", "entry 6")])


@pytest.mark.parametrize(("members", "codes"), CASES[:3])
@pytest.mark.parametrize("cut", range(1, 8))
def test_holds_are_known_wherever_a_segment_is_judged_apart(members, codes, cut):
    ledger = ledger_of(**members)
    verdict, _ = apart(ledger, {cut})
    assert (verdict.exit, found(verdict)) == (6 if codes else 0, codes)


@pytest.mark.parametrize(("members", "codes"), CASES)
def test_holds_are_known_after_a_stop_at_every_commit(members, codes):
    ledger = ledger_of(**members)
    sources = RuleSources(approvers_of(ledger.trust()), line_of=line_from(payloads(ledger).get))
    given = {"memory": ledger.notes[-1], "sources": sources}
    segments = split(ledger.journal(), set(range(1, 8)))
    for count in range(1, len(segments)):
        fold = LedgerFold(Options(), **given)
        for segment in segments[:count]:
            fold.feed(segment)
        bound = binding(None, Options())
        data = b"".join(print_state(fold.state(good=False), bound))
        state, _ = parse_state(io.BytesIO(data))
        assert b"".join(print_state(state, bound)) == data
        fold = LedgerFold(Options(), start=state, **given)
        for segment in segments[count:]:
            fold.feed(segment)
        verdict = fold.judge(segments, trust=ledger.trust(), memory=ledger.notes[-1])
        assert found(verdict) == codes


def test_a_line_ends_where_an_opening_is_not_in_the_ledger_and_is_none_where_that_cannot_be_told():
    ledger = Builder()
    ledger.header()
    above = ledger.opening()
    intent = ledger.intent()
    below = ledger.opening(parent=above, parent_intent=intent)
    step = ledger.intent(run=below)
    grant = ledger.grant()
    held = payloads(ledger)
    line_of = line_from(held.get)
    assert (line_of(step), line_of(below), line_of(above)) == ((below, above), (below, above), (above,))
    assert (line_of(grant), line_of(ledger.rows[0].id), line_of(digest(b"nowhere"))) == ((), (), None)
    del held[above]
    assert line_of(step) == (below, above)
    for other in (b"", held[step]):
        held[above] = other
        assert line_of(step) is None


def test_no_run_stands_too_deep_below_one_that_is_held():
    ledger = Builder()
    ledger.header()
    runs = [ledger.opening()]
    for _ in range(1_200):
        runs.append(ledger.opening(parent=runs[-1]))
    outcome = ledger.outcome(ledger.intent())
    line_of = line_from(payloads(ledger).get)
    assert line_of(outcome) == tuple(reversed(runs))
