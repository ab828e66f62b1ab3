from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger.errors import FormatError, LedgerError, SignatureError, UnknownFormatError
from ledger.keys import (
    PrivateKey,
    is_key_id,
    next_digest,
    parse_base64,
    parse_key_id,
    print_base64,
    print_key_id,
    refuse_weak_point,
    verify_signature,
)

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
KEY = PrivateKey.from_seed(SEED)
# RFC 8032, 7.1, test 1.
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)


def code(function, *arguments):
    with pytest.raises(LedgerError) as refused:
        function(*arguments)
    return refused.value.code


def test_the_first_vector_of_rfc8032_signs_and_verifies():
    assert KEY.key == "ed25519:" + PUBLIC
    assert KEY.public.hex() == PUBLIC
    assert KEY.sign(b"") == SIGNATURE
    verify_signature(KEY.key, SIGNATURE, b"")


def test_another_library_agrees_on_signing_and_verifying():
    other = Ed25519PrivateKey.from_private_bytes(SEED)
    assert other.sign(b"message") == KEY.sign(b"message")
    Ed25519PublicKey.from_public_bytes(KEY.public).verify(KEY.sign(b"x"), b"x")


def test_the_text_of_a_private_key_does_not_show_it():
    shown = repr(KEY) + str(KEY)
    assert PUBLIC in shown
    assert SEED.hex() not in shown
    assert repr(SEED) not in shown


@pytest.mark.parametrize("bit", range(0, 512, 7))
def test_no_bit_of_a_signature_can_change(bit):
    changed = bytearray(SIGNATURE)
    changed[bit // 8] ^= 1 << bit % 8
    assert code(verify_signature, KEY.key, bytes(changed), b"") == "signature.invalid"


def test_neither_message_nor_key_can_change():
    assert code(verify_signature, KEY.key, SIGNATURE, b"\0") == "signature.invalid"
    assert code(verify_signature, PrivateKey.from_seed(bytes(32)).key, SIGNATURE, b"") == "signature.invalid"


def test_a_scalar_plus_the_group_order_is_no_second_signature():
    scalar = int.from_bytes(SIGNATURE[32:], "little") + L
    assert scalar < 2**256
    assert code(verify_signature, KEY.key, SIGNATURE[:32] + scalar.to_bytes(32, "little"), b"") == "signature.invalid"


@pytest.mark.parametrize("length", [0, 63, 65, 128])
def test_a_signature_has_64_bytes(length):
    assert code(verify_signature, KEY.key, (SIGNATURE * 2)[:length], b"") == "signature.malformed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEY.key[:-1],
        KEY.key + "0",
        KEY.key + "\n",
        KEY.key.upper(),
        PUBLIC,
        ":" + PUBLIC,
        "Ed25519:" + PUBLIC,
        "9ed:" + PUBLIC,
        "ed25519 :" + PUBLIC,
        KEY.key.replace("d75a", "d7 5"),
    ],
)
def test_a_key_id_has_one_spelling(text):
    assert is_key_id(KEY.key)
    assert print_key_id(parse_key_id(KEY.key)) == KEY.key
    assert not is_key_id(text)
    assert code(parse_key_id, text) == "key.malformed"
    assert code(verify_signature, text, SIGNATURE, b"") == "key.malformed"


def test_a_key_of_another_algorithm_is_unknown_not_wrong():
    other = "ml-dsa-44:" + "0" * 64
    assert is_key_id(other)
    for function in (parse_key_id, next_digest, refuse_weak_point):
        with pytest.raises(UnknownFormatError) as refused:
            function(other)
        assert refused.value.code == "key.unknown_algorithm"
    with pytest.raises(UnknownFormatError):
        verify_signature(other, SIGNATURE, b"")


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33)])
def test_only_32_bytes_print_as_a_key_id(raw):
    with pytest.raises(FormatError):
        print_key_id(raw)


def test_the_commitment_to_a_next_key_is_the_digest_of_its_bytes():
    assert next_digest(KEY.key) == "sha256:" + hashlib.sha256(bytes.fromhex(PUBLIC)).hexdigest()


def root_of_minus_one():
    return pow(2, (P - 1) // 4, P)


def square_root(number):
    candidate = pow(number, (P + 3) // 8, P)
    if candidate * candidate % P != number % P:
        candidate = candidate * root_of_minus_one() % P
    return candidate if candidate * candidate % P == number % P else None


def add(one, two):
    """Addition on -x^2 + y^2 = 1 + d x^2 y^2 (RFC 8032, 5.1)."""
    (x1, y1), (x2, y2) = one, two
    product = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P
    return x, y


def times(number, point):
    total = (0, 1)
    for bit in f"{number:b}":
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def low_order_points():
    """The eight points of order 1, 2, 4 and 8: L times points of the curve, until all are seen."""
    found, y = set(), 2
    while len(found) < 8:
        x = square_root((y * y - 1) * pow(D * y * y + 1, -1, P) % P)
        if x is not None:
            torsion = times(L, (x, y))
            found |= {times(number, torsion) for number in range(8)}
        y += 1
    return found


def test_every_encoding_of_a_point_of_low_order_is_refused():
    points = low_order_points()
    assert all(times(8, point) == (0, 1) for point in points)
    encodings = set()
    for _, y in points:
        for number in (y, y + P):
            if number < 2**255:
                encodings |= {(number | sign << 255).to_bytes(32, "little") for sign in (0, 1)}
    assert len(encodings) == 14
    for encoding in encodings:
        assert code(refuse_weak_point, print_key_id(encoding)) in {"key.low_order", "key.not_canonical"}
        assert (
            code(verify_signature, print_key_id(encoding), encoding + bytes(32), b"any message") == "signature.invalid"
        )


@pytest.mark.parametrize("number", [P, P + 1, P + 3, 2**255 - 1])
def test_a_coordinate_that_is_not_reduced_is_refused(number):
    for sign in (0, 1):
        key = print_key_id((number | sign << 255).to_bytes(32, "little"))
        assert code(refuse_weak_point, key) == "key.not_canonical"


def test_an_ordinary_key_may_be_pinned_under_both_signs():
    refuse_weak_point(KEY.key)
    flipped = bytearray(KEY.public)
    flipped[31] ^= 0x80
    refuse_weak_point(print_key_id(bytes(flipped)))


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_base64_prints_and_parses(data):
    assert parse_base64(print_base64(data)) == data


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "AA",
        "AAA",
        "AA=",
        "A===",
        "AA==\n",
        "\nAA==",
        "AA==AA==",
        "AB==",
        "AAB=",
        "_A==",
        "A-==",
        "AA=A",
        "\u0391A==",
    ],
)
def test_base64_has_one_spelling(text):
    assert parse_base64("AA==") == b"\0"
    with pytest.raises(FormatError) as refused:
        parse_base64(text)
    assert refused.value.code == "base64.malformed"


def test_a_private_key_cannot_be_changed():
    with pytest.raises(AttributeError):
        KEY.seed = bytes(32)
    assert issubclass(SignatureError, LedgerError)
