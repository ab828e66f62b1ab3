"""Canonical JSON: one writer of ours, two of others, and a reader that checks the text byte by byte."""

from __future__ import annotations

import canonicaljson
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import canonical
from ledger.errors import CanonicalError
from tests.reference import strict_json

LIMIT = 2**53 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xD7FF), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-LIMIT, LIMIT) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=20
)
objects = st.dictionaries(names, values, max_size=5)
pieces = st.sampled_from(
    [
        *(bytes([byte]) for byte in b' \n\t"\\/{}[]:,.-+0123456789eEutfnabr\x00\x1f\x7f\xff'),
        b"1.0",
        b"-0",
        b"1e2",
        b"\\u0061",
        b"\\u001f",
        b"\\u001F",
        b"\\ud800",
        b"\xed\xa0\x80",
        b"\xee\x80\x80",
        b"\xf0\x9f\x98\x80",
        b"\xc0\xaf",
        b"\xef\xbb\xbf",
        b"9007199254740991",
        b"9007199254740992",
        b"NaN",
        b"null",
        b'"a":1,',
        b'"a":1,"a":1',
        b"",
    ]
)
edits = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2), pieces), min_size=1, max_size=3)


def decoded(data, **limits):
    try:
        return canonical.decode(data, **limits)
    except CanonicalError:
        return None


@given(objects)
def test_three_writers_give_the_same_bytes(value):
    data = canonical.encode(value)
    assert data == canonicaljson.encode_canonical_json(value) == rfc8785.dumps(value)


@given(objects)
def test_what_is_written_is_read_back_by_both_readers(value):
    data = canonical.encode(value)
    assert canonical.decode(data) == value == strict_json.read(data)


@given(objects, edits)
@example({"a": 1}, [(5, 1, b"1.0")])
@example({"a": 1}, [(5, 1, b"-0")])
@example({"a": 1}, [(0, 0, b"\xef\xbb\xbf")])
@example({"a": 1, "b": 2}, [(8, 1, b"a")])
def test_a_text_is_accepted_exactly_when_the_byte_by_byte_reader_accepts_it(value, changes):
    data = canonical.encode(value)
    for place, width, piece in changes:
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + width :]
    found = decoded(data)
    assert (found is not None) == strict_json.accepts(data)
    if found is not None:
        assert found == strict_json.read(data)
        assert canonical.encode(found) == data


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_arbitrary_bytes_are_accepted_exactly_when_the_byte_by_byte_reader_accepts_them(one, two):
    for data in (one, b'{"a":' + one + b"}", b'{"' + one + b'":"' + two + b'"}'):
        assert (decoded(data) is not None) == strict_json.accepts(data)


@given(st.floats(), objects)
def test_no_float_is_written(number, value):
    for place in ({"a": number}, {**value, "a": [1, {"b": number}]}):
        with pytest.raises(CanonicalError) as refused:
            canonical.encode(place)
        assert refused.value.code == "canonical.fraction"


@given(st.integers(0, 70), st.integers(0, 70), st.integers(1, 66), st.booleans())
def test_depth_is_counted_alike_by_writer_reader_and_oracle(objects_deep, arrays_deep, limit, brackets):
    inner = "[[{{" if brackets else 1
    for _ in range(arrays_deep):
        inner = [inner]
    for _ in range(objects_deep):
        inner = {"[": inner}
    value = {"a": inner}
    data = rfc8785.dumps(value)
    expected = 1 + objects_deep + arrays_deep <= limit
    assert (decoded(data, max_depth=limit) is not None) == strict_json.accepts(data, limit) == expected
    if expected:
        assert canonical.encode(value, max_depth=limit) == data
    else:
        with pytest.raises(CanonicalError) as refused:
            canonical.encode(value, max_depth=limit)
        assert refused.value.code == "canonical.too_deep"


@given(st.text(max_size=6), st.integers(-(2**70), 2**70))
def test_what_does_not_fit_is_refused_with_its_path_and_the_rest_is_written(text, number):
    value = {"a": [text, {"b": number}], f"name {text}": 0}
    fits = (
        not any(0xD800 <= ord(letter) <= 0xDFFF for letter in text)
        and all(ord(letter) <= 0xD7FF for letter in text)
        and abs(number) <= LIMIT
    )
    if fits:
        data = canonical.encode(value)
        assert data == canonicaljson.encode_canonical_json(value) == rfc8785.dumps(value)
    else:
        with pytest.raises(CanonicalError) as refused:
            canonical.encode(value)
        where = refused.value.where
        assert where == "$" or where.startswith("$.a[")
