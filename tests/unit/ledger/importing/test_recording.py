"""Facts recorded: whatever a foreign document says becomes receipts that the ledger takes and a verifier holds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import Ledger, Places
from ledger.digest import digest
from ledger.importing import recording
from ledger.importing.facts import CallFact, Facts, RunFact, StepFact, name_of
from ledger.importing.recording import Document, find_imports, record
from ledger.members import Charge, CurrencyAmount
from ledger.receipt import Opening, Outcome, Run, Step, parse_receipt
from ledger.words import Basis, Reason, RunStatus
from verify.chain import Segment
from verify.ledger import verify_ledger


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    base = tmp_path_factory.mktemp("importing")
    return Ledger.create(base / "L", places=Places(keys=base / "k", state=base / "s", config=base / "c"))


def document(data=b"{}"):
    return Document(data, "d.json", "application/json", "axlr", "v1", "holds", "valid", "axlr/1")


def receipts(ledger):
    return [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]


def holds(ledger):
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None)
    return {check.code for check in verdict.checks if check.exit == 1} == set()


names = st.text(max_size=300)
objects = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=5), st.floats()), max_size=3)


@st.composite
def calls(draw, of):
    return CallFact(
        draw(names),
        draw(st.sampled_from(["committed", "failed", "ambiguous", "denied", "blocked", "waiting"])),
        of,
        tool=draw(st.none() | names),
        reason=draw(st.none() | st.sampled_from([Reason.EXCEPTION, Reason.LIMIT])),
        rule=draw(st.none() | names),
        arguments=draw(st.none() | objects),
        inline=draw(objects),
        resource=draw(names),
        effect=draw(st.none() | st.tuples(names, st.integers(1, 3))),
        charges=(Charge(meter="usd_micro", settled=draw(st.integers(0, 9)), basis=Basis.REPORTED),),
        duration_ms=draw(st.none() | st.integers(0, 9)),
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_facts_are_recorded_and_hold(ledger, data):
    found = document(data.draw(st.binary(max_size=40)))
    members = data.draw(st.lists(calls(found.digest), max_size=3))
    step = StepFact(data.draw(names), "failed", found.digest, tuple(members))
    correlation = data.draw(st.dictionaries(names, names, max_size=2))
    run = RunFact(data.draw(names), RunStatus.FAILED, found.digest, (step, *members), correlation=correlation)
    before = ledger.head().size
    known = find_imports(ledger, [found.digest])
    done = record(ledger, [found], Facts((run,)))
    assert done.imports[found.digest].already == (found.digest in known)
    assert (ledger.head().size == before) == bool(known)


def test_what_was_recorded_of_any_facts_holds(ledger):
    assert ledger.head().size > 1
    assert holds(ledger)


def test_a_name_is_what_a_receipt_can_hold():
    assert name_of("a\x00b\x85c\u2028") == "abc\u2028"
    assert name_of("") == name_of(None) == name_of("\n\x7f") == "unknown"
    assert name_of("", "x") == "x"
    assert len(name_of("é" * 999)) == 256


def test_facts_of_a_document_that_is_there_are_not_said_again(ledger):
    first, second = document(b"first"), document(b"second")
    record(ledger, [first], Facts((RunFact("one", RunStatus.COMPLETED, first.digest),)))
    both = (CallFact("old", "committed", first.digest), CallFact("new", "committed", second.digest))
    step = StepFact("group", "completed", first.digest, both)
    record(ledger, [first, second], Facts((RunFact("two", RunStatus.COMPLETED, first.digest, (step,)),)))
    last = receipts(ledger)[-5:]
    assert [each.kind for each in last] == ["opening", "intent", "outcome", "step", "run"]
    assert last[1].act.name == "new"


def test_more_than_one_receipt_can_commit_is_folded(ledger, monkeypatch):
    monkeypatch.setattr(recording, "MAX_CHILDREN", 4)
    found = document(b"many")
    members = tuple(CallFact(f"c{place}", "blocked", found.digest) for place in range(11))
    record(ledger, [found], Facts((RunFact("wide", RunStatus.COMPLETED, found.digest, members),)))
    closing = receipts(ledger)[-1]
    assert isinstance(closing, Run)
    assert len(closing.children) <= 4
    assert [each.status for each in receipts(ledger)[-4:-1] if isinstance(each, Step)] != []
    assert holds(ledger)


def test_more_than_a_tree_can_hold_goes_on_in_runs_that_continue(ledger, monkeypatch):
    monkeypatch.setattr(recording, "_TREE", 9)
    found = document(b"large")
    members = tuple(CallFact(f"c{place}", "committed", found.digest) for place in range(7))
    totals = (CurrencyAmount(meter="requests", value=3),)
    run = RunFact("large", RunStatus.COMPLETED, found.digest, members, totals=totals)
    done = record(ledger, [found], Facts((run,)))
    openings = [each for each in receipts(ledger) if isinstance(each, Opening) and each.name == "large"]
    assert [each.continues for each in openings] == [None, *done.runs[:-1]]
    assert len(done.runs) == 3
    closings = [each for each in receipts(ledger) if isinstance(each, Run) and each.children[0] in done.runs]
    assert [bool(each.totals) for each in closings] == [False, False, True]
    assert holds(ledger)


def test_what_is_nested_deeper_than_a_tree_may_be_stands_in_the_deepest_step(ledger):
    found = document(b"deep")
    fact = CallFact("leaf", "committed", found.digest)
    for level in range(80):
        fact = StepFact(f"s{level}", "completed", found.digest, (fact,))
    record(ledger, [found], Facts((RunFact("deep", RunStatus.COMPLETED, found.digest, (fact,)),)))
    assert sum(isinstance(each, Step) and each.name.startswith("s") for each in receipts(ledger)) < 64
    assert holds(ledger)


def test_what_happens_inside_a_call_is_committed_by_its_outcome(ledger):
    found = document(b"inside")
    inner = RunFact("inner", RunStatus.BLOCKED, found.digest, (CallFact("x", "blocked", found.digest),))
    outer = CallFact("outer", "committed", found.digest, inside=(inner,))
    record(ledger, [found], Facts((RunFact("outer", RunStatus.COMPLETED, found.digest, (outer,)),)))
    outcome = next(each for each in reversed(receipts(ledger)) if isinstance(each, Outcome))
    assert len(outcome.children) == 2
    assert holds(ledger)


def test_a_large_import_spans_commits_and_its_bytes_are_kept_once(ledger, monkeypatch):
    monkeypatch.setattr(recording, "_COMMIT_ENTRIES", 5)
    found = document(b"x" * 300_000)
    members = tuple(CallFact(f"c{place}", "committed", found.digest) for place in range(20))
    done = record(ledger, [found], Facts((RunFact("long", RunStatus.COMPLETED, found.digest, members),)))
    assert done.receipts == 1 + 2 + 40
    assert ledger.artifacts.get(digest(found.data)) == found.data
    assert holds(ledger)
