from __future__ import annotations

import hashlib

import pytest

from ledger.digest import ZERO_DIGEST, digest, digest_bytes, is_digest, parse_digest, print_digest
from ledger.errors import FormatError

GOOD = "sha256:" + "0123456789abcdef" * 4


def test_a_digest_is_sha256_in_lower_case_hex():
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_bytes(b"abc") == hashlib.sha256(b"abc").digest()
    assert parse_digest(digest(b"abc")) == digest_bytes(b"abc")


def test_the_zero_digest_is_a_digest():
    assert is_digest(ZERO_DIGEST)
    assert parse_digest(ZERO_DIGEST) == bytes(32)


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        " " + GOOD,
        GOOD[7:],
        GOOD.upper(),
        GOOD.replace("a", "A"),
        GOOD.replace("sha256", "SHA256"),
        GOOD.replace("sha256", "sha512"),
        GOOD.replace("0", "g"),
        GOOD.replace("01", " 1"),
        GOOD.replace("0", "\u0660"),
        GOOD.replace(":", "-"),
        "sha256:../../../../../../../../../../../../../../../../../../../../etc/passwd",
    ],
)
def test_another_spelling_is_refused(text):
    assert is_digest(GOOD)
    assert not is_digest(text)
    with pytest.raises(FormatError) as refused:
        parse_digest(text)
    assert refused.value.code == "digest.malformed"


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33)])
def test_only_32_bytes_print_as_a_digest(raw):
    assert print_digest(bytes(32)) == ZERO_DIGEST
    with pytest.raises(FormatError) as refused:
        print_digest(raw)
    assert refused.value.code == "digest.malformed"
