from __future__ import annotations

import pytest
from securesystemslib.dsse import Envelope as OtherEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from ledger import canonical
from ledger.digest import digest
from ledger.envelope import (
    ENVELOPE_MAX_BYTES,
    RECEIPT_TYPE,
    Envelope,
    Seal,
    pae,
    parse_envelope,
    print_envelope,
    seal,
    verify_seal,
)
from ledger.errors import LedgerError, SignatureError, UnknownFormatError
from ledger.keys import PrivateKey, print_base64

KEY, OTHER = PrivateKey.from_seed(bytes(32)), PrivateKey.from_seed(bytes([1]) * 32)
PAYLOAD = canonical.encode({"schema": "x", "text": '","payload_type":"a/b","seals":[]}'})
SEALED = seal(PAYLOAD, KEY)
DATA = print_envelope(SEALED)
BARE = b'{"payload":{},"payload_type":"a/b","seals":[]}'


def code(function, *arguments):
    with pytest.raises(LedgerError) as refused:
        function(*arguments)
    return refused.value.code


def test_an_envelope_prints_and_parses_with_and_without_a_seal():
    assert parse_envelope(DATA) == SEALED
    assert parse_envelope(BARE) == Envelope(b"{}", "a/b", None)
    assert print_envelope(parse_envelope(BARE)) == BARE
    assert canonical.encode(canonical.decode(DATA)) == DATA


def test_the_receipt_id_is_the_digest_of_the_payload_and_nothing_else():
    assert SEALED.receipt_id == Envelope(PAYLOAD).receipt_id == digest(PAYLOAD)


def test_the_payload_is_never_cut_at_a_text_inside_it():
    assert parse_envelope(DATA).payload == PAYLOAD


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        DATA[:-1],
        DATA + b"\n",
        b" " + DATA,
        DATA.replace(b'"seals":', b'"seals" :'),
        DATA.replace(b'"seals":[{', b'"seals":[ {'),
        BARE.replace(b'"seals":[]', b'"seals":null'),
        BARE.replace(b'"seals":[]', b'"seals":{}'),
        BARE.replace(b"a/b", b"A/b"),
        BARE.replace(b"a/b", b"a\\/b"),
        BARE.replace(b"a/b", b"ab"[:1]),
        BARE.replace(b',"seals":[]', b""),
        BARE.replace(b"]}", b'],"z":1}'),
        DATA.replace(b'"key":"ed25519', b'"key":"ED25519'),
        DATA.replace(b'"key":', b'"keyid":'),
        DATA[:-2] + b"," + DATA[DATA.index(b'"seals":[') + 9 :],
    ],
)
def test_another_layout_is_refused(data):
    assert code(parse_envelope, data) == "envelope.malformed"


@pytest.mark.parametrize("text", ["AB==", "A", "AA=", "AAA"])
def test_a_signature_has_one_spelling(text):
    data = DATA.replace(print_base64(SEALED.seal.signature).encode(), text.encode())
    assert data != DATA
    assert code(parse_envelope, data) == "base64.malformed"


def test_size_is_bounded():
    padding = ENVELOPE_MAX_BYTES - len(BARE) - len('"a":""')
    data = BARE.replace(b"{}", b'{"a":"' + b"x" * padding + b'"}')
    assert len(data) == ENVELOPE_MAX_BYTES
    assert parse_envelope(data)
    assert code(parse_envelope, data.replace(b"x", b"xx", 1)) == "envelope.too_large"


def test_a_seal_covers_type_and_payload():
    verify_seal(SEALED)
    signature = SEALED.seal.signature
    for changed in (
        Envelope(PAYLOAD + b" ", RECEIPT_TYPE, SEALED.seal),
        Envelope(PAYLOAD, RECEIPT_TYPE + "x", SEALED.seal),
        Envelope(PAYLOAD, RECEIPT_TYPE, Seal(OTHER.key, signature)),
        Envelope(PAYLOAD, RECEIPT_TYPE, Seal(KEY.key, signature[:-1] + bytes([signature[-1] ^ 1]))),
        Envelope(PAYLOAD, RECEIPT_TYPE, Seal(KEY.key, KEY.sign(PAYLOAD))),
    ):
        assert code(verify_seal, changed) == "signature.invalid"


def test_no_seal_is_not_a_good_seal():
    with pytest.raises(SignatureError) as refused:
        verify_seal(Envelope(PAYLOAD))
    assert refused.value.code == "seal.absent"
    assert code(verify_seal, Envelope(PAYLOAD, RECEIPT_TYPE, Seal(KEY.key, b""))) == "signature.malformed"


def test_a_seal_of_an_unknown_algorithm_is_unknown_not_wrong():
    data = DATA.replace(b'"ed25519:', b'"ml-dsa-44:')
    with pytest.raises(UnknownFormatError):
        verify_seal(parse_envelope(data))


def test_the_encoding_has_no_second_reading():
    assert pae("a", b"b") == b"DSSEv1 1 a 1 b"
    assert pae("a 1 b", b"") != pae("a", b"b 0 ")
    assert pae("é", b"") == "DSSEv1 2 é 0 ".encode()


def exported(payload):
    """The envelope as DSSE writes it, read by another library."""
    return OtherEnvelope.from_dict(
        {
            "payload": print_base64(payload),
            "payloadType": RECEIPT_TYPE,
            "signatures": [{"keyid": KEY.key, "sig": print_base64(SEALED.seal.signature)}],
        }
    )


def test_a_dsse_library_verifies_the_exported_seal():
    key = SSlibKey(KEY.key, "ed25519", "ed25519", {"public": KEY.public.hex()})
    assert set(exported(PAYLOAD).verify([key], 1)) == {KEY.key}
    with pytest.raises(VerificationError):
        exported(PAYLOAD.replace(b"x", b"y", 1)).verify([key], 1)
