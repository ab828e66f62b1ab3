"""Public Ed25519 data: CCTV's edge points and Wycheproof.

RFC 8032 leaves some verdicts open; ours are those of libsodium, for sealing, heads and counter-seals alike. Of CCTV's flags:

- `low_order_A`, `low_order_R`: refused. Some libraries accept them; a signature by such a key covers any message.
- `non_canonical_A`, `non_canonical_R`: refused, as RFC 8032 and FIPS 186-5 ask.
- `low_order_residue`: refused. RFC 8032 allows both: only the formula with the cofactor accepts them.
- `reencoded_k`: refused, with the non-canonical point that it always comes with.
- `low_order_component_A`, `low_order_component_R` alone: accepted, as by nearly all libraries. No list of points can tell.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ledger.errors import SignatureError
from ledger.keys import refuse_weak_point, verify_signature

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vectors"


def load(name, default):
    path = SHARED / name
    return json.loads(path.read_bytes()) if path.exists() else default


CCTV = load("ed25519/cctv/ed25519vectors.json", [])
WYCHEPROOF = [
    (group["publicKey"]["pk"], test)
    for group in load("ed25519/wycheproof/testvectors_v1/ed25519_test.json", {"testGroups": []})["testGroups"]
    for test in group["tests"]
]
ACCEPTED_FLAGS = {"low_order_component_A", "low_order_component_R"}


def verifies(key, signature, message):
    try:
        verify_signature("ed25519:" + key, signature, message)
    except SignatureError:
        return False
    return True


def pinnable(key):
    try:
        refuse_weak_point("ed25519:" + key)
    except SignatureError:
        return False
    return True


def test_every_case_is_there(shared):
    assert len(CCTV) == 914
    assert len(WYCHEPROOF) == 151
    assert sum(set(case["flags"] or []) <= ACCEPTED_FLAGS for case in CCTV) == 43
    assert Counter(test["result"] for _, test in WYCHEPROOF) == {"valid": 88, "invalid": 63}


@pytest.mark.parametrize("case", CCTV, ids=lambda case: str(case["number"]))
def test_cctv_case_is_judged_by_its_flags(shared, case):
    flags = set(case["flags"] or [])
    signature = bytes.fromhex(case["sig"])
    assert verifies(case["key"], signature, case["msg"].encode()) == (flags <= ACCEPTED_FLAGS)
    assert pinnable(case["key"]) == (not flags & {"low_order_A", "non_canonical_A"})
    # One bit of the scalar away.
    assert not verifies(case["key"], signature[:32] + bytes([signature[32] ^ 1]) + signature[33:], case["msg"].encode())


@pytest.mark.parametrize(
    ("key", "case"), WYCHEPROOF, ids=lambda part: str(part["tcId"]) if isinstance(part, dict) else ""
)
def test_wycheproof_case_is_judged_as_published(shared, key, case):
    assert verifies(key, bytes.fromhex(case["sig"]), bytes.fromhex(case["msg"])) == (case["result"] == "valid")
