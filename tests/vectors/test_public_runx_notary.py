"""The documents of the hosted runx notary have the verdicts that are published for them, and no other one a change away."""

from __future__ import annotations

import base64
import json

import pytest

from ledger.keys import PrivateKey, print_base64
from verify.foreign.runx.notary import is_runx_notary, verify_runx_notary

SEED = bytes([0x47]) * 32
SPKI = bytes.fromhex("302a300506032b6570032100")


def pem(key: PrivateKey) -> bytes:
    return b"-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(SPKI + key.public) + b"\n-----END PUBLIC KEY-----\n"


def document(**changes) -> dict:
    """Return a document made here: signed over the sorted compact JSON of its payload, by a reference of the standard library."""
    key = PrivateKey.from_seed(SEED)
    payload = {
        "schema": "runx.hosted_notary_counter_seal_payload.v1",
        "binary_version": "runx-test",
        "digest": "sha256:" + "d" * 64,
        "issued_at": "2026-06-10T00:00:00Z",
        "mode": "full",
        "verdict_digest": "sha256:" + "e" * 64,
        **changes.pop("payload", {}),
    }
    signed = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    import hashlib

    seal = {
        "schema": "runx.hosted_notary_counter_seal.v1",
        "payload": payload,
        "digest": "sha256:" + hashlib.sha256(signed).hexdigest(),
        "signature": {"alg": "Ed25519", "value": print_base64(key.sign(signed))},
        **changes,
    }
    return {"notary_verification": {"counter_seal": {name: each for name, each in seal.items() if each is not None}}}


def codes(value: object, *keys: bytes) -> list[str]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return [found.code for found in verify_runx_notary(data, keys).findings]


@pytest.fixture(scope="module")
def key() -> bytes:
    return pem(PrivateKey.from_seed(SEED))


def test_every_published_document_has_its_verdict(shared):
    folder = shared / "runx/notary"
    expected = json.loads((folder / "EXPECTED.json").read_bytes())
    assert len(expected) == 8
    for name, case in expected.items():
        found = verify_runx_notary(
            (folder / f"{name}.json").read_bytes(), [(folder / case["trusted_key_file"]).read_bytes()]
        ).to_value()
        findings = found.pop("findings")
        wanted = dict(case["expected"])
        assert [each["code"] for each in findings] == wanted.pop("finding_codes"), name
        assert [each["path"] for each in findings] == wanted.pop("finding_paths"), name
        assert found == wanted, name


def test_no_bit_of_what_a_published_document_seals_can_change(shared):
    folder = shared / "runx/notary"
    trusted = [(folder / "trusted-notary.pem").read_bytes()]
    value = json.loads((folder / "02-valid-with-receipt-projection.json").read_bytes())
    assert codes(value, *trusted) == []
    seal = value["receipt"]["notary_verification"]["counter_seal"]
    for name, text in list(seal["payload"].items()):
        for position in range(0, len(text), 7):
            seal["payload"][name] = text[:position] + chr(ord(text[position]) ^ 1) + text[position + 1 :]
            assert codes(value, *trusted), (name, position)
        seal["payload"][name] = text
    assert codes(value, *trusted) == []


def test_one_trusted_key_of_several_is_enough_and_none_is_not(key):
    other = pem(PrivateKey.from_seed(bytes(32)))
    assert codes(document(), other, key) == []
    assert codes(document(), other) == ["counter_seal_signature_mismatch"]
    assert codes(document()) == ["notary_trusted_key_missing", "counter_seal_signature_mismatch"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"digest": None}, ["counter_seal_digest_missing"]),
        ({"payload_digest": 7}, ["counter_seal_payload_digest_invalid"]),
        ({"payload_digest": "sha256:" + "0" * 64}, ["counter_seal_payload_digest_mismatch"]),
        ({"schema": "runx.hosted_notary_counter_seal.v2"}, ["counter_seal_payload_invalid"]),
        ({"payload": {"mode": 1}}, ["counter_seal_payload_invalid"]),
        ({"payload": {"more": "members"}}, ["counter_seal_payload_invalid"]),
        ({"signature": None}, ["counter_seal_signature_missing"]),
        ({"signature": {"alg": "Ed25519"}}, ["counter_seal_signature_value_missing"]),
        ({"signature": {"alg": "Ed25519", "value": "base64:AA=="}}, ["counter_seal_signature_malformed"]),
        ({"signature": {"alg": "ed25519", "value": "AA=="}}, ["counter_seal_signature_algorithm_unsupported"]),
    ],
)
def test_each_part_that_is_missing_or_wrong_has_its_own_code(key, changes, expected):
    assert codes(document(**changes), key) == expected


def test_a_document_without_its_parts_says_which(key):
    assert codes({}, key) == ["notary_verification_missing"]
    assert codes({"notary_verification": {}}, key) == ["counter_seal_missing"]
    assert codes({"notary_verification": {"counter_seal": {}}}, key) == ["counter_seal_payload_missing"]
    assert codes(b"[1]", key) == ["notary_parse_error"]
    assert codes(b"[" * 100_000, key) == ["notary_parse_error"]
    assert codes(b"\xff", key) == ["notary_parse_error"]


def test_a_signature_is_read_in_four_spellings_and_no_looser_one(key):
    value = document()
    signature = value["notary_verification"]["counter_seal"]["signature"]
    standard = signature["value"]
    urlsafe = standard.replace("+", "-").replace("/", "_")
    for text in (standard, standard.rstrip("="), urlsafe, urlsafe.rstrip("="), "base64:" + urlsafe):
        signature["value"] = text
        assert codes(value, key) == [], text
    for text in (standard + "=", standard[:40] + "\n" + standard[40:], " " + standard, standard[:-3] + "B=="):
        signature["value"] = text
        assert codes(value, key) == ["counter_seal_signature_malformed"], text


def test_keys_that_are_no_ed25519_points_of_full_order_are_not_trusted(key):
    weak = b"-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(SPKI + bytes(32)) + b"\n-----END PUBLIC KEY-----\n"
    for bad in (weak, b"not a key", key.replace(b"PUBLIC", b"PRIVATE"), key[:-40]):
        assert codes(document(), bad)[0] == "notary_trusted_key_malformed"
    assert codes(document(), b" \n")[0] == "notary_trusted_key_missing_pem"


def test_a_receipt_beside_the_counter_seal_is_the_one_that_was_sealed(key):
    value = document()
    value["receipt"] = {"digest": "sha256:" + "d" * 64}
    assert codes(value, key) == []
    value["receipt"]["digest"] = "sha256:" + "d" * 63 + "c"
    assert codes(value, key) == ["notary_projection_binding_mismatch"]
    del value["receipt"]["digest"]
    assert codes(value, key) == ["notary_projection_binding_mismatch"]


def test_a_document_is_told_by_its_marks():
    assert is_runx_notary(json.dumps(document()).encode())
    assert not is_runx_notary(b"{}")
    assert not is_runx_notary(b"[")
