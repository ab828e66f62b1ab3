"""Counter-seals and what goes to a notary as bytes: exact inverses, and no byte that can be changed unseen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.signer import Signature, SSlibKey

from ledger import canonical
from ledger.bundle import Item, LastEntry
from ledger.counterseal import (
    COUNTER_SEAL_TYPE,
    CounterSeal,
    FullVerdict,
    open_counter_seal,
    parse_counter_seal,
    print_counter_seal,
    seal_counter_seal,
)
from ledger.dsse import parse_dsse
from ledger.envelope import RECEIPT_TYPE, Envelope, pae, parse_envelope, print_envelope, seal
from ledger.errors import FormatError, LedgerError, SignatureError, UnknownFormatError
from ledger.notarization import (
    HeadRequest,
    Notarization,
    Request,
    parse_head_request,
    parse_notarization,
    parse_request,
    print_head_request,
    print_notarization,
    print_request,
)
from tests.reference.build import small, test_key

KEY = test_key("notary")
SEAL = CounterSeal(
    notary="notary.example.org",
    key=KEY.key,
    receipt="sha256:" + "1" * 64,
    envelope="sha256:" + "2" * 64,
    origin="ledger.example/spec",
    entry_index=4,
    size=6,
    root="sha256:" + "3" * 64,
    mode="digest_only",
    verdict="not_checked",
    issued_at="2026-11-30T09:15:05.000Z",
)
FULL = SEAL.model_copy(update={"mode": "full", "verdict": FullVerdict(digest="sha256:" + "4" * 64, exit=3)})
LEDGER = small()


@pytest.mark.parametrize("found", [SEAL, FULL], ids=["digest_only", "full"])
def test_a_counter_seal_prints_as_it_parses(found):
    payload = print_counter_seal(found)
    assert parse_counter_seal(payload) == found
    assert print_counter_seal(parse_counter_seal(payload)) == payload
    assert open_counter_seal(seal_counter_seal(found, KEY))[0] == found


def test_another_library_verifies_the_seal():
    envelope = parse_envelope(seal_counter_seal(SEAL, KEY))
    key = SSlibKey("any", "ed25519", "ed25519", {"public": KEY.key.removeprefix("ed25519:")})
    signature = envelope.seal.signature
    key.verify_signature(Signature("any", signature.hex()), pae(COUNTER_SEAL_TYPE, envelope.payload))


def test_every_byte_of_the_sealed_document_is_covered():
    document = seal_counter_seal(FULL, KEY)
    for at in range(len(document)):
        for flip in (1, 0x20, 0x80):
            changed = document[:at] + bytes([document[at] ^ flip]) + document[at + 1 :]
            with pytest.raises(LedgerError):
                assert open_counter_seal(changed) == open_counter_seal(document)
    for changed in (document + b"\n", b" " + document, document[:-1]):
        with pytest.raises(FormatError):
            open_counter_seal(changed)


def test_the_seal_is_by_the_key_that_the_payload_names():
    other = test_key("witness")
    with pytest.raises(SignatureError, match="expected"):
        seal_counter_seal(SEAL, other)
    document = print_envelope(seal(print_counter_seal(SEAL), other, payload_type=COUNTER_SEAL_TYPE))
    with pytest.raises(SignatureError) as raised:
        open_counter_seal(document)
    assert raised.value.code == "counterseal.key"
    with pytest.raises(SignatureError) as raised:
        open_counter_seal(print_envelope(Envelope(print_counter_seal(SEAL), COUNTER_SEAL_TYPE)))
    assert raised.value.code == "seal.absent"


def test_a_seal_of_a_receipt_is_none_of_a_notary():
    document = print_envelope(seal(print_counter_seal(SEAL), KEY, payload_type=RECEIPT_TYPE))
    with pytest.raises(UnknownFormatError) as raised:
        open_counter_seal(document)
    assert raised.value.code == "counterseal.unknown_type"
    signature = parse_envelope(document).seal
    swapped = Envelope(print_counter_seal(SEAL), COUNTER_SEAL_TYPE, signature)
    with pytest.raises(SignatureError) as raised:
        open_counter_seal(print_envelope(swapped))
    assert raised.value.code == "signature.invalid"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"schema": "receipt-ledger.counter-seal/v2"}, "counterseal.unknown_schema"),
        ({"schema": None}, "counterseal.malformed"),
        ({"schema": 1}, "counterseal.malformed"),
        ({"more": 1}, "counterseal.malformed"),
        ({"receipt": "sha256:" + "A" * 64}, "counterseal.malformed"),
        ({"size": 0}, "counterseal.malformed"),
        ({"entry_index": 6}, "counterseal.malformed"),
        ({"entry_index": -1}, "counterseal.malformed"),
        ({"entry_index": True}, "counterseal.malformed"),
        ({"mode": "full"}, "counterseal.malformed"),
        ({"mode": "other"}, "counterseal.malformed"),
        ({"verdict": {"digest": "sha256:" + "4" * 64, "exit": 0}}, "counterseal.malformed"),
        ({"verdict": None}, "counterseal.malformed"),
        ({"issued_at": "2026-11-31T09:15:05.000Z"}, "counterseal.malformed"),
        ({"notary": "two words"}, "counterseal.malformed"),
        ({"notary": "a+b"}, "counterseal.malformed"),
    ],
)
def test_a_payload_of_another_shape_is_refused(changes, code):
    value = canonical.decode(print_counter_seal(SEAL)) | changes
    data = canonical.encode({name: item for name, item in value.items() if item is not None})
    with pytest.raises(LedgerError) as raised:
        parse_counter_seal(data)
    assert raised.value.code == code
    last = canonical.encode(canonical.decode(print_counter_seal(SEAL)) | {"entry_index": 5})
    assert parse_counter_seal(last).entry_index == 5


def test_a_verdict_has_an_exit_that_verdicts_have():
    value = canonical.decode(print_counter_seal(FULL))
    for exit_, holds in ((2, False), (7, False), (True, False), (6, True)):
        data = canonical.encode(value | {"verdict": {"digest": "sha256:" + "4" * 64, "exit": exit_}})
        if holds:
            assert parse_counter_seal(data).verdict.exit == exit_
        else:
            with pytest.raises(FormatError):
                parse_counter_seal(data)


def item(index):
    row = LEDGER.rows[index]
    return Item(row.entry, row.envelope, (b"\1" * 32, b"\2" * 32))


hashes = st.lists(st.binary(min_size=32, max_size=32), max_size=5).map(tuple)
keyed = st.sampled_from([((), None), ((item(0),), LastEntry(LEDGER.rows[1].entry, (b"\3" * 32,)))])
heads = st.builds(
    lambda checkpoint, old, consistency, keys: HeadRequest(checkpoint, KEY.key, old, consistency, *keys),
    st.text(alphabet="ab\n— é", max_size=40).map(str.encode),
    st.integers(0, 2**53 - 1),
    hashes,
    keyed,
)
requests = st.builds(
    lambda head, proof, publish: Request(head, LEDGER.rows[3].entry, proof, publish=publish),
    heads,
    hashes,
    st.booleans(),
)


@given(requests)
def test_requests_print_as_they_parse(made):
    data = print_request(made)
    assert parse_request(data) == made
    assert print_request(parse_request(data)) == data
    head = print_head_request(made.head)
    assert parse_head_request(head) == made.head
    assert print_head_request(parse_head_request(head)) == head


REQUEST = Request(HeadRequest(b"note", KEY.key, 0, ()), LEDGER.rows[3].entry, (b"\1" * 32,))


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "receipt-ledger.notarize/v2"}, {"more": 1}, {"entry": "text"}, {"checkpoint": 1}, {"log_key": "key"},
        {"old": -1}, {"old": True}, {"old": "0"}, {"mode": "full"}, {"mode": "other"}, {"publish": 1}, {"publish": None},
        {"keyring": []}, {"last": {}}, {"keyring": [1]}, {"proof": ["AA=="]}, {"proof": "AA=="}, {"bundle": {}},
        {"consistency": ["A" * 43 + "="] * 64}, {"checkpoint": "x" * 70_000},
    ],
)  # fmt: skip
def test_a_request_of_another_shape_is_refused(changes):
    value = canonical.decode(print_request(REQUEST)) | changes
    with pytest.raises(FormatError):
        parse_request(canonical.encode(value))
    for name in canonical.decode(print_request(REQUEST)):
        short = {key: found for key, found in canonical.decode(print_request(REQUEST)).items() if key != name}
        with pytest.raises(FormatError):
            parse_request(canonical.encode(short))


def test_what_cannot_be_said_is_not_printed():
    for wrong in (
        replace(REQUEST, entry=b"{}{}"),
        replace(REQUEST, head=replace(REQUEST.head, checkpoint=b"\xff")),
        replace(REQUEST, head=replace(REQUEST.head, log_key="other")),
        replace(REQUEST, mode="full"),
    ):
        with pytest.raises(LedgerError):
            print_request(wrong)


@pytest.mark.parametrize("verdict", [None, b'{"exit":0}'])
def test_answers_print_as_they_parse(verdict):
    made = Notarization(seal_counter_seal(SEAL, KEY), LEDGER.rows[3].envelope, b"proof\n", True, verdict)
    data = print_notarization(made)
    assert parse_notarization(data) == made
    assert canonical.encode(canonical.decode(data)) == data
    for changes in ({"more": 1}, {"published": 1}, {"record": "text"}, {"tlog_proof": {}}, {"verdict": "ok"}):
        with pytest.raises(FormatError):
            parse_notarization(canonical.encode(canonical.decode(data) | changes))


def test_a_counter_seal_is_no_dsse_of_a_receipt():
    with pytest.raises(FormatError):
        parse_dsse(seal_counter_seal(SEAL, KEY))
