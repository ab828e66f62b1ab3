"""Timestamp tokens hold for the bytes, the authority and the time that they are of, and for nothing a change away."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ledger.note import COSIGNATURE, Note, NoteSignature, parse_note
from tests.reference.authority import CODE, OPENSSL, STAMPING, Authority
from tests.reference.build import small
from verify.timestamp import judge_token, timestamped_bytes, token_problem
from verify.trust import TimestampPin, parse_trust, pin

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl makes the tokens, and is not installed")
BYTES = b"a signed head\n"


def trusting(*authorities: Authority):
    data = b""
    for number, each in enumerate(authorities):
        data = pin(data, timestamp=TimestampPin(name=f"tsa {number}", certificate=each.pem))
    return parse_trust(data, source="test")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.made(tmp_path_factory.mktemp("tsa") / "tsa")


@pytest.fixture(scope="module")
def token(authority):
    return authority.token(BYTES)


def test_a_token_proves_its_time_and_its_accuracy_at_the_later_end(authority, token):
    assert judge_token(token, BYTES, trusting(authority)).time == "2026-06-01T12:00:00.000Z"
    precise = authority.token(BYTES, "20260601120000.25Z", seconds=2)
    found = judge_token(precise, BYTES, trusting(authority))
    assert (found.code, found.name, found.time) == (None, "tsa 0", "2026-06-01T12:00:02.250Z")


def test_other_bytes_are_not_covered(authority, token):
    for other in (BYTES[:-1], BYTES + b"\n", b""):
        assert judge_token(token, other, trusting(authority)).code == "timestamp.invalid"


def test_no_bit_of_a_token_can_change(authority, token):
    trust = trusting(authority)
    for position in range(len(token)):
        for bit in (1, 16, 128):
            changed = token[:position] + bytes([token[position] ^ bit]) + token[position + 1 :]
            assert judge_token(changed, BYTES, trust).code in {"timestamp.invalid", "trust.timestamp_unpinned"}, (
                position
            )
    for changed in (token + b"\0", token[:-1], b"", b"\x30\x00", b"\x30\x80", token * 200):
        assert judge_token(changed, BYTES, trust).code == "timestamp.invalid"


def test_an_authority_that_nobody_pinned_is_no_authority(authority, token, tmp_path):
    other = Authority.made(tmp_path / "other", name="another")
    for trust in (None, parse_trust(b"", source="test"), trusting(other)):
        assert judge_token(token, BYTES, trust).code == "trust.timestamp_unpinned"
    assert judge_token(token, BYTES, trusting(other, authority)).name == "tsa 1"


def test_an_authority_of_the_same_name_is_another_one(authority, token, tmp_path):
    other = Authority.made(tmp_path / "other")
    assert judge_token(token, BYTES, trusting(other)).code == "timestamp.invalid"


def test_the_chain_is_valid_at_the_time_of_the_token_and_not_now(tmp_path):
    past = Authority.made(tmp_path / "past", years=(2020, 2021))
    trust = trusting(past)
    assert judge_token(past.token(BYTES, "20200601120000Z"), BYTES, trust).code is None
    for time in ("20191231235959Z", "20210101000001Z", "20260601120000Z"):
        assert judge_token(past.token(BYTES, time), BYTES, trust).code == "timestamp.invalid"


@pytest.mark.parametrize(
    "options",
    [{"usage": (CODE,)}, {"usage": ()}, {"critical": False}, {"usage": (STAMPING, CODE)}],
    ids=["for code", "for nothing", "not critical", "for code too"],
)
def test_a_certificate_for_other_things_stamps_nothing(tmp_path, options):
    other = Authority.made(tmp_path / "other", **options)
    assert judge_token(other.token(BYTES), BYTES, trusting(other)).code == "timestamp.invalid"


def test_a_token_names_the_certificate_of_its_signer(authority):
    assert judge_token(authority.token(BYTES, ess=False), BYTES, trusting(authority)).code == "timestamp.invalid"


def test_a_number_that_was_sent_is_repeated(authority, token):
    pinned = TimestampPin(name="tsa", certificate=authority.pem)
    assert token_problem(token, BYTES, pinned, nonce=7).code is None
    assert token_problem(token, BYTES, pinned, nonce=8).code == "timestamp.invalid"
    bare = authority.token(BYTES, nonce=None)
    assert token_problem(bare, BYTES, pinned, nonce=7).code == "timestamp.invalid"


def test_what_is_pinned_and_is_no_certificate_believes_nobody(token):
    pinned = TimestampPin(name="tsa", certificate="-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n")
    assert token_problem(token, BYTES, pinned).code == "trust.timestamp_unpinned"


def test_a_timestamp_covers_the_note_as_its_log_signed_it():
    note = parse_note(small().notes[-1])
    origin = small().origin
    covered = timestamped_bytes(note, origin)
    assert covered == small().notes[-1]
    more = NoteSignature("notary.example.org", bytes([COSIGNATURE] * 4), bytes(72))
    assert timestamped_bytes(Note(note.text, (more, *note.signatures)), origin) == covered


def test_published_tokens_are_judged_at_their_own_time(shared):
    rfc3161 = pytest.importorskip("rfc3161_client")
    folder = shared / "rfc3161/test/fixtures/sigstage"
    chain = x509.load_pem_x509_certificates((folder / "ts_chain.pem").read_bytes())
    (root,) = (each.public_bytes(Encoding.PEM).decode() for each in chain if each.issuer == each.subject)
    pinned = TimestampPin(name="published", certificate=root)

    def judged(name, message=b"hello"):
        response = rfc3161.decode_timestamp_response((folder / f"response-{name}.tsr").read_bytes())
        return token_problem(bytes(response.time_stamp_token()), message, pinned)

    assert (judged("sha256").code, judged("sha256").time[:4]) == (None, "2025")
    assert judged("sha256", b"hallo").code == "timestamp.invalid"
    for name in ("invalid-signature", "no-embedded-cert", "sha384", "sha512"):
        assert judged(name).code == "timestamp.invalid", name
