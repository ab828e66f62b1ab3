"""Ledgers at random: what an honest writer writes is ok, and any other bytes are not, as an independent check agrees."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.build import Builder
from tests.reference.check import check_folder
from verify.bundle import verify_bundle
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.options import Options
from verify.report import Verdict

ACTS = st.lists(
    st.sampled_from(["call", "intent", "refuse", "step", "seal step", "child", "close", "commit", "grant", "approve"]),
    max_size=30,
)


def written(acts, seed=0):
    """Return the ledger that an honest writer leaves after some acts; every run is closed at the end."""
    ledger = Builder(seed=seed)
    ledger.header()
    ledger.commit()
    done = 1
    runs: list[str] = []

    def loose():
        return [id_ for id_ in ledger.uncommitted[runs[-1]] if id_ != runs[-1]]

    for act in (*acts, *["close"] * (2 * len(acts))):
        if not runs and act not in {"commit", "grant", "approve", "close"}:
            runs.append(ledger.opening())
        ledger.current = runs[-1] if runs else ""
        match act:
            case "call":
                ledger.call()
            case "intent":
                ledger.intent()
            case "refuse":
                ledger.decision()
            case "step":
                ledger.step(*loose())
            case "seal step":
                ledger.step(*loose()[-2:], seal=True)
            case "child":
                runs.append(ledger.opening("child", parent=runs[-1]))
            case "close" if runs:
                ledger.run(runs.pop())
            case "grant":
                ledger.grant()
            case "approve":
                ledger.approval()
            case "commit" if len(ledger.rows) > done:
                ledger.commit()
                done = len(ledger.rows)
    if len(ledger.rows) > done:
        ledger.commit()
    return ledger


def judge(data, ledger, **options) -> Verdict:
    segments = (Segment("journal/0000000000000000.jsonl", 0, data),)
    return verify_ledger(segments, trust=ledger.trust(), memory=ledger.notes[-1], options=Options(**options))


@given(ACTS)
def test_what_an_honest_writer_writes_is_ok_whole_and_receipt_by_receipt(acts):
    ledger = written(acts)
    verdict = judge(ledger.journal(), ledger, closed=True, every_head=True)
    assert (verdict.exit, verdict.findings) == (0, ())
    assert verdict.covered.own_seal + verdict.covered.sealed_root == verdict.coverage.count == len(ledger.rows)
    assert judge(ledger.journal(), ledger, bytes_only=True).exit == 0
    row = ledger.rows[len(acts) % len(ledger.rows)]
    found = verify_bundle(ledger.bundle(row.id), trust=ledger.trust(), memory=ledger.notes[-1])
    assert (found.exit, found.findings) == (0, ())


@given(ACTS, st.data())
def test_any_change_of_the_lines_is_a_failure(acts, data):
    ledger = written(acts)
    lines = list(ledger.lines)
    first = data.draw(st.integers(0, len(lines) - 1))
    other = data.draw(st.integers(0, len(lines) - 1))
    match data.draw(st.sampled_from(["remove", "repeat", "swap", "move", "cut"])):
        case "remove":
            del lines[first]
        case "repeat":
            lines.insert(other, lines[first])
        case "swap":
            lines[first], lines[other] = lines[other], lines[first]
        case "move":
            lines.insert(other, lines.pop(first))
        case "cut":
            del lines[first:]
    changed = b"".join(line + b"\n" for line in lines)
    expected = 0 if changed == ledger.journal() else 1
    assert judge(changed, ledger).exit == expected
    assert judge(changed, ledger, bytes_only=True).exit == expected


@given(ACTS, ACTS)
def test_lines_of_another_ledger_of_the_same_keys_do_not_mix_in(acts, others):
    ledger, second = written(acts), written(others, seed=1)
    lines = list(ledger.lines)
    at = len(lines) * 2 // 3
    lines[at : at + 1] = second.lines[at : at + 1] or second.lines[-1:]
    changed = b"".join(line + b"\n" for line in lines)
    assert judge(changed, ledger).exit == (0 if changed == ledger.journal() else 1)


def accepted_by_the_check(content):
    """Return whether the independent check accepts a journal of one segment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "journal").mkdir()
        (folder / "journal" / "0000000000000000.jsonl").write_bytes(content)
        try:
            check_folder(folder)
        except (AssertionError, ValueError, LookupError, TypeError, AttributeError, InvalidSignature):
            return False
        return True


@given(ACTS, st.data())
def test_an_independent_check_accepts_and_refuses_the_same(acts, data):
    ledger = written(acts)
    journal = ledger.journal()
    offset = data.draw(st.integers(0, len(journal) - 2))
    broken = bytearray(journal)
    broken[offset] ^= data.draw(st.integers(1, 255))
    for content in (journal, bytes(broken)):
        assert (judge(content, ledger).exit == 0) is accepted_by_the_check(content)


@given(st.binary(max_size=400), st.integers(0, 3))
def test_bytes_at_random_end_in_a_verdict_and_never_in_a_traceback(noise, place):
    ledger = written(["call", "commit", "refuse"])
    data = ledger.journal()
    cut = data.index(b"\n", len(data) * place // 4) + 1 if place else 0
    for content in (noise, data[:cut] + noise + data[cut:], data[:cut] + noise):
        verdict = judge(content, ledger)
        assert verdict.exit == (0 if content == data else 1)
        assert verdict.to_json()
