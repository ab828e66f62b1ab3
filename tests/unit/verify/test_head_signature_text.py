"""What a signature by a key looks like on a head line: one text for its bytes, and the bits of the key id to the last."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from hypothesis import given
from hypothesis import strategies as st

from verify.heads import _signatures_of

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def text(data):
    return b2a_base64(data, newline=False)


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=64, max_size=64), st.integers(0, 31), st.integers(1, 15))
def test_it_is_the_base64_of_the_key_id_and_64_bytes_and_no_other_text(mark, signature, bit, more):
    expected = _signatures_of(mark)
    good = text(mark + signature)
    assert expected.fullmatch(good)
    other = (int.from_bytes(mark) ^ 1 << bit).to_bytes(4)
    assert not expected.fullmatch(text(other + signature))
    assert not expected.fullmatch(text(mark + signature[:-1]))
    assert not expected.fullmatch(text(mark + signature + b"\0"))
    # Bits behind the last byte: lax decoders take them for the same bytes.
    last = LETTERS.index(good[90]) & ~3 | more & 3
    lax = good[:90] + LETTERS[last : last + 1] + b"="
    assert a2b_base64(lax) == mark + signature
    assert bool(expected.fullmatch(lax)) == (lax == good)
