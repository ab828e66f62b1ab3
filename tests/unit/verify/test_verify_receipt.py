"""A file that holds one envelope or one receipt: what can be shown of it without its ledger."""

from __future__ import annotations

import pytest

from ledger.envelope import Envelope, print_envelope
from tests.reference.build import Builder, party, small, test_key
from verify.options import Options
from verify.receipt import verify_receipt

LEDGER = small()


def codes(verdict):
    return [check.code for check in verdict.findings]


def test_a_sealed_envelope_of_a_pinned_issuer_is_ok_and_says_what_was_not_checked():
    row = LEDGER.rows[13]
    verdict = verify_receipt(row.envelope, trust=LEDGER.trust())
    assert (verdict.exit, verdict.subject, verdict.path, verdict.head) == (0, row.id, (row.id,), None)
    skipped = {check.name: check.asked for check in verdict.checks if check.status == "not_checked"}
    assert skipped == {"chain": False, "memory": False}


def test_a_stranger_s_envelope_is_not_established():
    assert (verify_receipt(LEDGER.rows[13].envelope, trust=None).exit) == 3


def test_an_unsealed_envelope_and_a_bare_receipt_are_unattributed():
    for data in (LEDGER.rows[2].envelope, LEDGER.payload(2)):
        verdict = verify_receipt(data, trust=LEDGER.trust())
        assert (verdict.exit, "receipt.unattributed" in codes(verdict)) == (3, True)


def test_a_receipt_of_a_kind_that_is_always_sealed_fails_in_an_envelope_without_seal_and_is_not_established_without_one():
    payload = LEDGER.payload(13)
    verdict = verify_receipt(print_envelope(Envelope(payload)), trust=LEDGER.trust())
    assert (verdict.exit, "seal.absent" in codes(verdict)) == (1, True)
    verdict = verify_receipt(payload, trust=LEDGER.trust())
    assert (verdict.exit, "seal.absent" in codes(verdict)) == (3, False)


def test_an_approval_is_asked_of_approvers_and_an_issuer_is_none():
    assert verify_receipt(LEDGER.rows[12].envelope, trust=LEDGER.trust()).exit == 0
    ledger = Builder()
    ledger.approval(issuer=party("issuer"))
    verdict = verify_receipt(ledger.rows[0].envelope, trust=LEDGER.trust())
    assert (verdict.exit, codes(verdict)) == (4, ["trust.issuer_mismatch"])


def test_a_key_receipt_alone_is_not_established():
    ledger = Builder()
    ledger.header()
    ledger.key(party("issuer-2", "issuer"), test_key("issuer").key)
    assert verify_receipt(ledger.rows[1].envelope, trust=LEDGER.trust()).exit == 3


@pytest.mark.parametrize("data", [b"", b"x", b"{}", b"[]", b'{"a":1}', b"\x89PNG", b"\xff" * 100, b"\xef\xbb\xbf{}"])
def test_bytes_that_are_nothing_of_ours_are_unknown(data):
    verdict = verify_receipt(data, trust=None)
    assert (verdict.exit, "subject.unknown" in codes(verdict)) == (5, True)


def test_one_bit_of_an_envelope_flipped_is_never_ok_and_never_merely_unestablished():
    envelope, trust = LEDGER.rows[13].envelope, LEDGER.trust()
    for offset in range(len(envelope)):
        broken = bytearray(envelope)
        broken[offset] ^= 1 << (offset % 8)
        assert verify_receipt(bytes(broken), trust=trust).exit in {1, 5}, offset


def test_what_is_asked_for_besides_is_not_passed():
    envelope, trust = LEDGER.rows[13].envelope, LEDGER.trust()
    assert verify_receipt(envelope, trust=trust, options=Options(closed=True)).exit == 3
    assert verify_receipt(envelope, trust=trust, options=Options(memory=True)).exit in {0, 3}
