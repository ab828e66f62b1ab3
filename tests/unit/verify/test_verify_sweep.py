"""One bit flipped anywhere in a journal is never overlooked."""

from __future__ import annotations

import pytest

from tests.reference.build import Builder, small
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.options import Options

BYTES = Options(bytes_only=True)


def tiny():
    ledger = Builder()
    ledger.header()
    ledger.commit()
    ledger.opening()
    ledger.call()
    ledger.run()
    ledger.commit()
    return ledger


def flipped(data, offset, bit):
    broken = bytearray(data)
    broken[offset] ^= 1 << bit
    return (Segment("journal/0000000000000000.jsonl", 0, bytes(broken)),)


def sweep(ledger, bits, options):
    data, trust = ledger.journal(), ledger.trust()
    for offset in range(len(data)):
        for bit in bits(offset):
            for memory in (ledger.notes[-1], None):
                verdict = verify_ledger(flipped(data, offset, bit), trust=trust, memory=memory, options=options)
                assert verdict.exit == 1, (offset, bit, memory is None, verdict.findings)
                assert verdict.remember is None
                assert any(check.exit == 1 and (check.where or check.message) for check in verdict.findings)


def test_one_bit_of_each_byte_flipped_is_a_failure_whether_the_head_is_remembered_or_not():
    sweep(tiny(), lambda offset: (offset * 5 % 8,), Options())


def test_one_bit_of_each_byte_flipped_is_a_failure_of_the_bytes_alone():
    sweep(tiny(), lambda offset: (offset * 3 % 8,), BYTES)


@pytest.mark.slow
@pytest.mark.skipif("not config.getoption('-m')", reason="minutes; run with -m slow")
def test_every_bit_flipped_is_a_failure():
    sweep(small(), lambda offset: range(8), Options())


def test_a_byte_removed_or_doubled_anywhere_is_a_failure_on_a_machine_that_remembers_the_head():
    ledger = tiny()
    data, trust, memory = ledger.journal(), ledger.trust(), ledger.notes[-1]
    for offset in range(0, len(data), 3):
        for broken in (data[:offset] + data[offset + 1 :], data[: offset + 1] + data[offset:]):
            if broken in {data, data[:-1]}:
                continue
            segments = (Segment("journal/0000000000000000.jsonl", 0, broken),)
            assert verify_ledger(segments, trust=trust, memory=memory, options=BYTES).exit == 1, offset


def test_the_tail_cut_anywhere_is_a_failure_on_a_machine_that_remembers_the_head():
    ledger = tiny()
    data, trust, memory = ledger.journal(), ledger.trust(), ledger.notes[-1]
    for length in range(len(data)):
        segments = (Segment("journal/0000000000000000.jsonl", 0, data[:length]),)
        expected = 0 if length == len(data) - 1 else 1  # all but the last LF is a whole commit
        assert verify_ledger(segments, trust=trust, memory=memory, options=BYTES).exit == expected, length
