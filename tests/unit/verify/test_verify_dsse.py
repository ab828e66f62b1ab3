"""DSSE envelopes: judged as the receipt's own envelope; another type or spelling is not."""

from __future__ import annotations

import json

import pytest

from ledger.dsse import print_dsse
from ledger.envelope import Envelope, Seal, pae, parse_envelope
from tests.reference.build import small, test_key
from verify.dsse import verify_dsse
from verify.options import Options
from verify.receipt import verify_receipt

LEDGER = small()
SEALED = [row for row in LEDGER.rows if b'"seals":[{' in row.envelope]


def judge(data, *, trust="own"):
    return verify_dsse(data, subject="file", trust=LEDGER.trust() if trust == "own" else trust, options=Options())


def codes(verdict):
    return {check.code for check in verdict.findings}


def signed(payload, type_, label="issuer"):
    key = test_key(label)
    return print_dsse(Envelope(payload, type_, Seal(key.key, key.sign(pae(type_, payload)))))


@pytest.mark.parametrize("row", SEALED, ids=lambda row: row.kind)
@pytest.mark.parametrize("trust", ["own", None])
def test_the_verdict_is_that_on_the_receipt_s_own_envelope(row, trust):
    own = LEDGER.trust() if trust else None
    verdict = judge(print_dsse(parse_envelope(row.envelope)), trust=own)
    assert verdict == verify_receipt(row.envelope, trust=own, subject=row.id)
    assert verdict.exit == (0 if trust else 3)


def test_a_seal_by_another_key_than_the_issuer_s_does_not_hold():
    payload = parse_envelope(SEALED[0].envelope).payload
    verdict = judge(signed(payload, "application/vnd.receipt-ledger.receipt+json", "other-issuer"))
    assert (verdict.exit, "seal.issuer" in codes(verdict)) == (1, True)


def test_another_payload_is_not_covered_by_the_seal():
    envelope = parse_envelope(SEALED[0].envelope)
    changed = Envelope(envelope.payload.replace(b"2026", b"2027"), envelope.payload_type, envelope.seal)
    verdict = judge(print_dsse(changed))
    assert (verdict.exit, "seal.invalid" in codes(verdict)) == (1, True)


def test_another_spelling_does_not_hold():
    value = json.loads(print_dsse(parse_envelope(SEALED[0].envelope)))
    verdict = judge(json.dumps(value).encode())
    assert (verdict.exit, codes(verdict)) == (1, {"envelope.malformed"})


@pytest.mark.parametrize("payload", [b"[]", b"text", b"1"])
def test_a_payload_that_is_no_object_does_not_hold(payload):
    assert judge(signed(payload, "application/vnd.receipt-ledger.receipt+json")).exit == 1


def test_another_type_is_unknown_where_its_signature_verifies_and_fails_where_it_does_not():
    data = signed(b'{"_type":"x"}', "application/vnd.in-toto+json")
    verdict = judge(data)
    assert (verdict.exit, codes(verdict)) == (3, {"format.unknown"})
    verdict = judge(data.replace(b"in-toto", b"in-tota"))
    assert (verdict.exit, "seal.invalid" in codes(verdict)) == (1, True)
    value = json.loads(data)
    value["signatures"][0]["keyid"] = "ml-dsa:" + "0" * 64
    verdict = judge(json.dumps(value, separators=(",", ":")).encode())
    assert (verdict.exit, codes(verdict)) == (3, {"format.unknown"})
