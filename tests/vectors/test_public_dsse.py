"""Public DSSE data: the pre-authentication encoding, and an envelope of the protocol's own example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from ledger.envelope import pae
from ledger.keys import parse_base64

PATH = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "dsse" / "dsse.json"
DSSE = json.loads(PATH.read_bytes()) if PATH.exists() else {"own_cases": []}


def test_every_case_is_there(shared):
    assert len(DSSE["own_cases"]) == 2
    assert len(DSSE["envelope"]["signatures"]) == 1


def test_the_example_of_the_protocol_encodes_as_published(shared):
    assert pae(DSSE["payloadType"], DSSE["payload"].encode()).decode() == DSSE["pae"]


@pytest.mark.parametrize("case", DSSE["own_cases"], ids=lambda case: case["why"])
def test_lengths_count_bytes(shared, case):
    assert pae(case["payloadType"], case["payload"].encode()).hex() == case["pae_hex"]


def test_the_signature_of_the_example_is_over_our_encoding(shared):
    envelope = DSSE["envelope"]
    point = DSSE["ecdsa_p256"]
    key = ec.EllipticCurvePublicNumbers(int(point["x"]), int(point["y"]), ec.SECP256R1()).public_key()
    raw = parse_base64(envelope["signatures"][0]["sig"])
    signature = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    payload = parse_base64(envelope["payload"])
    key.verify(signature, pae(envelope["payloadType"], payload), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        key.verify(signature, pae(envelope["payloadType"], payload + b"."), ec.ECDSA(hashes.SHA256()))
