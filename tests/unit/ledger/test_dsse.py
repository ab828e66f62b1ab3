"""DSSE envelopes as bytes: another library verifies ours; another spelling is refused."""

from __future__ import annotations

import base64
import json

import pytest
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from ledger.dsse import parse_dsse, print_dsse
from ledger.envelope import RECEIPT_TYPE, Envelope, Seal, parse_envelope
from ledger.errors import FormatError
from tests.reference.build import small, test_key

LEDGER = small()
ENVELOPE = parse_envelope(LEDGER.rows[13].envelope)
DATA = print_dsse(ENVELOPE)


def their_key(key):
    return SSlibKey(key, "ed25519", "ed25519", {"public": key.removeprefix("ed25519:")})


def test_another_library_verifies_it_with_the_issuer_s_key():
    theirs = TheirEnvelope.from_dict(json.loads(DATA))
    assert theirs.payload == ENVELOPE.payload
    assert theirs.payload_type == RECEIPT_TYPE
    key = their_key(test_key("issuer").key)
    assert list(theirs.verify([key], threshold=1)) == [key.keyid]


def test_another_library_refuses_it_with_one_bit_changed_or_under_another_key():
    key = their_key(test_key("issuer").key)
    value = json.loads(DATA)
    payload = bytearray(ENVELOPE.payload)
    payload[10] ^= 1
    value["payload"] = base64.b64encode(payload).decode()
    with pytest.raises(VerificationError):
        TheirEnvelope.from_dict(value).verify([key], threshold=1)
    with pytest.raises(VerificationError):
        TheirEnvelope.from_dict(json.loads(DATA)).verify([their_key(test_key("log").key)], threshold=1)


@pytest.mark.parametrize("row", [row for row in LEDGER.rows if b'"seals":[{' in row.envelope], ids=lambda row: row.kind)
def test_a_sealed_envelope_prints_as_it_parses(row):
    envelope = parse_envelope(row.envelope)
    data = print_dsse(envelope)
    assert parse_dsse(data) == envelope
    assert print_dsse(parse_dsse(data)) == data


def test_an_unsealed_envelope_has_no_such_form():
    with pytest.raises(FormatError) as caught:
        print_dsse(parse_envelope(LEDGER.rows[2].envelope))
    assert caught.value.code == "dsse.unsealed"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"payload"', b'{ "payload"'),
        (b'"}]}', b'"}]}\n'),
        (b'"}]}', b'"},{"keyid":"ed25519:' + b"0" * 64 + b'","sig":"AAAA"}]}'),
        (b'"keyid":"ed25519:', b'"keyid":"ED25519:'),
        (b'"signatures":[{', b'"signatures":[[{'),
        (b',"payloadType":"', b',"payload":"YQ==","payloadType":"'),
    ],
)
def test_another_spelling_is_refused(old, new):
    assert DATA.count(old) == 1
    with pytest.raises(FormatError):
        parse_dsse(DATA.replace(old, new))


def test_base64_that_does_not_encode_back_is_refused():
    value = json.loads(DATA)
    url_safe = base64.urlsafe_b64encode(b"\xff\xfe" * 32).decode()
    for change in ({"payload": "YR=="}, {"payload": "Y"}, {"payload": url_safe}):
        text = json.dumps({**value, **change}, separators=(",", ":")).encode()
        with pytest.raises(FormatError):
            parse_dsse(text)


def test_what_the_form_cannot_hold_is_not_printed():
    seal = Seal(test_key("issuer").key, bytes(64))
    for broken in (
        Envelope(b"", RECEIPT_TYPE, seal),
        Envelope(b"{}", "A B", seal),
        Envelope(b"{}", RECEIPT_TYPE, Seal("x", b"y")),
    ):
        with pytest.raises(FormatError):
            print_dsse(broken)
