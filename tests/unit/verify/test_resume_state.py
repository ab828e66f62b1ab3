"""States of verifications: what goes on from one ends as what never stopped, and no state stands for what was not seen."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger.errors import FormatError
from tests.reference.build import Builder, party
from verify.chain import Segment
from verify.ledger import LedgerFold, verify_ledger
from verify.options import Options
from verify.resume import parse_state, print_state
from verify.state import binding, unlike

ACTS = st.lists(
    st.sampled_from(
        ["open", "child", "call", "decision", "close", "commit", "grant", "rotate", "approve", "stray", "back"]
    ),
    max_size=30,
)
BOUND = binding(None, Options())


def written(acts, *, every=1):
    """Return a ledger and its segments, a new one after every so many heads."""
    ledger = Builder()
    ledger.header()
    runs, turn, cuts = [], 1, []

    def commit():
        if len(ledger.rows) > (cuts[-1][0] if cuts else 0):
            ledger.commit()
            cuts.append((len(ledger.rows), len(ledger.journal())))

    commit()
    for act in acts:
        ledger.current = runs[-1] if runs else ""
        match act:
            case "open":
                runs.append(ledger.opening())
            case "child" if runs:
                runs.append(ledger.opening("child", parent=runs[-1]))
            case "call" if runs:
                ledger.call()
            case "decision" if runs:
                ledger.decision()
            case "close" if runs:
                ledger.run(runs.pop())
            case "grant":
                ledger.grant()
            case "approve":
                ledger.approval()
            case "back":
                ledger.grant(entry={"recorded_at": "2026-11-30T08:00:00.000Z"})
            case "stray":
                ledger.decision(run="sha256:" + "0" * 64)
            case "rotate":
                turn += 1
                ledger.key(party(f"issuer-{turn}", "issuer"), ledger.issuer.key, next_=party(f"issuer-{turn + 1}").key)
            case "commit":
                commit()
    commit()
    segments, before = [], (0, 0)
    for cut in [*cuts[every - 1 :: every], *([cuts[-1]] if len(cuts) % every else [])]:
        name = f"journal/{before[0]:016d}.jsonl"
        segments.append(Segment(name, before[0], ledger.journal()[before[1] : cut[1]]))
        before = cut
    return ledger, segments


def through(state):
    """Return a state as it comes back from its bytes, which print again as they are."""
    data = b"".join(print_state(state, BOUND))
    found, bound = parse_state(io.BytesIO(data))
    assert bound == BOUND
    assert b"".join(print_state(found, bound)) == data
    return found


def stopped(segments, count, options=Options(), memory=None):  # noqa: B008
    fold = LedgerFold(options, memory=memory)
    for segment in segments[:count]:
        fold.feed(segment)
    return fold


def go_on(state, segments, ledger, options=Options(), memory=None):  # noqa: B008
    fold = LedgerFold(options, memory=memory, start=state)
    for segment in segments:
        if segment.first_index >= state.segment:
            fold.feed(segment)
    return fold.judge(segments, trust=ledger.trust(), memory=memory)


@given(ACTS, st.integers(1, 3), st.booleans(), st.booleans(), st.data())
def test_a_verification_that_stopped_and_went_on_ends_as_one_that_never_stopped(
    acts, every, bytes_only, every_head, data
):
    ledger, segments = written(acts, every=every)
    options = Options(bytes_only=bytes_only, every_head=every_head)
    memory = ledger.notes[data.draw(st.integers(0, len(ledger.notes) - 1))]
    whole = verify_ledger(segments, trust=ledger.trust(), memory=memory, options=options)
    state = stopped(segments, data.draw(st.integers(1, len(segments))), options, memory).state(good=False)
    assert state is not None
    found = go_on(through(state), segments, ledger, options, memory)
    earlier = [check for check in found.checks if check.name == "earlier entries"]
    assert [(check.status, check.code, check.asked) for check in earlier] == [
        ("not_checked", "coverage.earlier", False)
    ]
    assert replace(found, checks=tuple(check for check in found.checks if check not in earlier)) == whole


@given(ACTS, ACTS)
def test_what_is_new_since_a_good_verdict_is_judged_and_the_rest_is_compared(acts, more):
    acts = [act for act in acts if act != "stray"]
    ledger, segments = written(acts)
    fold = stopped(segments, len(segments))
    # A run that a rotation cuts through does not hold; a retired key that speaks is not trusted.
    assume(fold.judge(segments, trust=ledger.trust()).exit in {0, 4})
    state = through(fold.state(good=True))
    longer, grown = written([*acts, "commit", *more])
    assert longer.lines[: len(ledger.lines)] == ledger.lines
    found = go_on(state, grown, longer)
    whole = verify_ledger(grown, trust=longer.trust())
    assert found.coverage.first == len(ledger.rows)
    assert found.coverage.count == len(longer.rows) - len(ledger.rows)
    expected = whole.exit if found.coverage.count else whole.exit or 3  # nothing judged is never ok
    assert (found.exit, found.head) == (expected, whole.head)
    codes = {check.code for check in whole.checks if check.status == "failed"}
    assert {check.code for check in found.checks if check.status == "failed"} == codes


BASE = ["open", "call", "commit", "child", "decision", "commit", "close", "approve", "commit"]


def test_another_prefix_is_found_by_the_heads_that_follow():
    _, segments = written(BASE)
    fold = stopped(segments, len(segments))
    state = fold.state(good=True)
    assert state is not None
    longer, grown = written([*BASE, "grant", "commit"])
    assert go_on(through(state), grown, longer).exit == 0
    point = state.point
    hashes = point.head.fold.hashes
    for wrong in (
        replace(point, previous="0" * 64),
        replace(point, head=replace(point.head, line=point.head.line[:-2] + b'"}')),
        replace(point, head=replace(point.head, fold=replace(point.head.fold, hashes=(bytes(32), *hashes[1:])))),
        replace(point, keyring=1),
    ):
        if wrong != point:
            assert go_on(through(replace(state, point=wrong)), grown, longer).exit == 1


def test_an_id_that_stood_before_the_state_is_not_new():
    ledger, segments = written(BASE)
    state = stopped(segments, len(segments)).state(good=True)
    assert state is not None
    longer, _ = written(BASE)
    longer.add("approval", payload=longer.payload(next(row.index for row in longer.rows if row.kind == "approval")))
    longer.commit()
    last = Segment("last", len(ledger.rows), longer.journal()[len(ledger.journal()) :])
    found = go_on(through(state), [*segments, last], longer)
    assert [check.code for check in found.findings] == ["receipt.repeated"] + [
        check.code for check in found.findings[1:]
    ]
    assert found.exit == 1


def test_where_the_last_commit_is_not_the_one_of_the_state_the_state_is_not_like_the_segment():
    _, segments = written(BASE, every=2)
    state = stopped(segments, len(segments)).state(good=False)
    assert state is not None
    last = segments[-1]
    assert unlike(state, last) is None
    assert unlike(state, replace(last, data=last.data + b'{"entry":')) is None
    assert unlike(state, replace(last, data=last.data[:-1])) is not None
    assert unlike(state, replace(last, first_index=last.first_index + 1)) is not None
    lines = last.data.splitlines(keepends=True)
    for number in (len(lines) - 1, len(lines) - 2):
        entry = lines[number][: lines[number].index(b',"envelope":') if b',"envelope":' in lines[number] else None]
        for at in range(0, len(entry) - 1, 5):
            changed = bytearray(lines[number])
            changed[at] ^= 1
            data = b"".join((*lines[:number], bytes(changed), *lines[number + 1 :]))
            assert unlike(state, replace(last, data=data)) is not None, (number, at)


def test_no_state_is_left_inside_a_commit_or_after_what_does_not_hold():
    ledger, segments = written(BASE)
    fold = LedgerFold(Options())
    assert fold.state(good=False) is None
    fold.feed(segments[0])
    assert fold.state(good=False) is not None
    fold.feed(replace(segments[1], data=segments[1].data[:-1]))
    assert fold.state(good=False) is None
    ledger, segments = written(["grant", "commit"])
    fold = LedgerFold(Options())
    root = segments[1].data.replace(ledger.notes[1].split(b"\n")[2], b"A" * 43 + b"=")
    assert root != segments[1].data
    fold.feed(segments[0])
    fold.feed(replace(segments[1], data=root))
    assert fold.state(good=False) is None


def test_findings_before_the_stop_are_findings_after_it():
    ledger, segments = written(["stray", "commit", "grant", "commit", "grant", "commit"])
    state = stopped(segments, 2).state(good=False)
    assert state is not None
    found = go_on(through(state), segments, ledger)
    assert found.exit == 1
    assert "run.unknown_opening" in {check.code for check in found.checks}


@pytest.mark.parametrize("good", [False, True])
def test_every_byte_of_a_state_counts(good):
    _, segments = written(["open", "call", "commit", "grant"])
    state = stopped(segments, 2).state(good=good)
    assert state is not None
    data = b"".join(print_state(state, BOUND))
    line = data.index(b"\n")
    for at in [*range(0, line, 13), *range(line, len(data))]:
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(FormatError, match="state") as caught:
            parse_state(io.BytesIO(bytes(changed)))
        assert caught.value.code == "state.malformed"
    for cut in (data[:-1], data + b"\0", data[: line + 1], data[:line], b"", b"{}\n", b"\n"):
        with pytest.raises(FormatError, match="state"):
            parse_state(io.BytesIO(cut))


@given(st.binary(max_size=200))
def test_no_bytes_make_a_traceback(data):
    with pytest.raises(FormatError, match="state"):
        parse_state(io.BytesIO(data))


def test_a_state_is_bound_to_trust_and_to_what_was_asked():
    assert binding("sha256:" + "1" * 64, Options()) != BOUND
    assert binding(None, Options(bytes_only=True)) != BOUND
    assert binding(None, Options(every_head=True)) != BOUND
    assert binding(None, Options(accept=("run.open",))) != BOUND
    assert binding(None, Options()) == BOUND
