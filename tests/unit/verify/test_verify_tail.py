"""What follows the last head: a torn tail only if a crash during an append explains it, else damage."""

from __future__ import annotations

import pytest

from ledger.envelope import ENVELOPE_MAX_BYTES
from tests.reference.build import Builder
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.options import Options


def grown():
    """Return a ledger of two commits, and the bytes of a third: two entries and a head."""
    ledger = Builder()
    ledger.header()
    ledger.commit()
    ledger.grant()
    ledger.commit()
    whole = ledger.journal()
    ledger.grant()
    ledger.grant()
    ledger.commit()
    return ledger, whole, ledger.journal()[len(whole) :]


LEDGER, WHOLE, TAIL = grown()
FIRST, SECOND, HEAD = TAIL.splitlines(keepends=True)


def judge(data, **options):
    segments = (Segment("journal/0000000000000000.jsonl", 0, data),)
    return verify_ledger(segments, trust=LEDGER.trust(), memory=LEDGER.notes[1], options=Options(**options))


def outcome(data):
    """Return exit, entries covered, and the codes about the journal; bytes-only and everything must agree."""
    found = [
        (
            verdict.exit,
            verdict.coverage.count,
            [check.code for check in verdict.checks if check.name == "journal" and check.code],
        )
        for verdict in (judge(data), judge(data, bytes_only=True))
    ]
    assert found[0] == found[1]
    return found[0]


TORN = (0, 2, ["journal.torn_tail"])
DAMAGED = (1, 2, ["journal.damaged"])


def test_every_beginning_of_a_commit_is_a_torn_tail():
    for length in (*range(1, len(TAIL) - 120, 7), *range(len(TAIL) - 120, len(TAIL) - 1)):
        assert outcome(WHOLE + TAIL[:length]) == TORN, length


def test_a_last_head_line_that_lacks_only_its_lf_is_committed():
    assert outcome(WHOLE + TAIL[:-1]) == (0, 4, [])
    assert outcome(WHOLE + TAIL) == (0, 4, [])


@pytest.mark.parametrize("length", [0, 1, len(FIRST), len(FIRST) + 7, len(FIRST + SECOND), len(FIRST + SECOND) + 30])
def test_a_beginning_with_nuls_to_the_end_is_a_torn_tail(length):
    assert outcome(WHOLE + TAIL[:length] + b"\0" * 100) == TORN


def test_a_whole_entry_line_without_its_lf_is_a_torn_tail_and_one_that_does_not_continue_is_damage():
    assert outcome(WHOLE + FIRST + SECOND[:-1]) == TORN
    assert outcome(WHOLE + SECOND[:-1]) == DAMAGED
    assert outcome(WHOLE + FIRST + FIRST[:-1]) == DAMAGED


@pytest.mark.parametrize(
    "rest",
    [
        b"x",
        b"garbage that begins no line",
        b'{"entry":\0 ',
        b"\0\0 \0",
        TAIL[:-1] + b"x",
        TAIL[:-1] + b"\0",
        TAIL[:-1] + b" ",
        TAIL[:-1] + TAIL[:-1],
        FIRST[:-1] + b"x",
        FIRST[:-1] + b"}",
        FIRST[:-1] + SECOND[:10],
        FIRST + SECOND + HEAD[:-9] + b'"}',
        FIRST + HEAD[:-1],
        HEAD[:-1],
    ],
    ids=range(14),
)
def test_bytes_that_no_crash_leaves_are_damage(rest):
    assert outcome(WHOLE + rest) == DAMAGED


@pytest.mark.parametrize(
    "rest",
    [
        FIRST + HEAD,
        SECOND,
        FIRST + b"\n",
        FIRST + b"{}\n",
        FIRST + b'{"head":"x"}\n',
        FIRST + FIRST,
        FIRST.replace(b'"index":2', b'"index":3'),
        b"\0" * 10 + b"\n",
        FIRST + SECOND[:50] + b"\0" * 50 + b"\n" + HEAD,
    ],
    ids=range(9),
)
def test_a_whole_line_that_does_not_hold_is_never_a_torn_tail(rest):
    verdict = judge(WHOLE + rest)
    assert verdict.exit == 1
    assert "journal.torn_tail" not in {check.code for check in verdict.checks}


@pytest.mark.parametrize("bit", range(8))
def test_a_damaged_last_head_line_is_never_taken_for_a_torn_tail(bit):
    start = len(WHOLE) + len(FIRST) + len(SECOND)
    data = WHOLE + TAIL
    for offset in range(start, len(data)):
        broken = bytearray(data)
        broken[offset] ^= 1 << bit
        assert judge(bytes(broken), bytes_only=True).exit == 1, offset


def test_bytes_after_the_last_head_of_a_segment_that_another_follows_are_damage():
    segments = (Segment("a", 0, WHOLE + TAIL[:30]), Segment("b", 2, TAIL))
    verdict = verify_ledger(segments, trust=LEDGER.trust())
    assert (verdict.exit, verdict.findings[0].code) == (1, "journal.damaged")


def test_a_new_segment_may_be_empty_or_torn():
    for rest in (b"", TAIL[:40], FIRST + SECOND):
        segments = (Segment("a", 0, WHOLE), Segment("b", 2, rest))
        assert verify_ledger(segments, trust=LEDGER.trust()).exit == 0
    segments = (Segment("a", 0, WHOLE), Segment("b", 2, TAIL))
    assert verify_ledger(segments, trust=LEDGER.trust()).coverage.count == 4


def test_a_torn_tail_is_shorter_than_a_remembered_head_that_covers_it():
    verdict = verify_ledger((Segment("a", 0, WHOLE + TAIL[:50]),), trust=LEDGER.trust(), memory=LEDGER.notes[-1])
    assert (verdict.exit, "head.shorter" in {check.code for check in verdict.checks}) == (1, True)


def test_a_journal_without_any_head_holds_nothing():
    verdict = verify_ledger((Segment("a", 0, WHOLE[: WHOLE.index(b"\n") + 1]),), trust=LEDGER.trust())
    assert verdict.exit == 1
    assert {"head.missing", "coverage.empty"} <= {check.code for check in verdict.findings}


def test_bytes_longer_than_any_line_are_damage_and_are_not_read_one_by_one():
    line = b'{"entry":{"envelope":"' + b"a" * (ENVELOPE_MAX_BYTES + 1024)
    assert outcome(WHOLE + line[: ENVELOPE_MAX_BYTES + 1024])[0] == 0
    assert outcome(WHOLE + line)[0] == 1
