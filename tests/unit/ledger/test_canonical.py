from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum

import pytest

from ledger import canonical
from ledger.errors import CanonicalError
from tests.reference import strict_json


class Word(StrEnum):
    ONE = "one"


class Text(str):
    __slots__ = ()


def refusal(function, *arguments, **named):
    with pytest.raises(CanonicalError) as refused:
        function(*arguments, **named)
    return refused.value


def test_members_are_sorted_and_nothing_is_spaced():
    assert (
        canonical.encode({"b": [1, {}], "a": "é\u2028\x7f", "": None})
        == '{"":null,"a":"é\u2028\x7f","b":[1,{}]}'.encode()
    )


def test_control_characters_have_one_escape_each():
    text = "".join(map(chr, range(0x20))) + '"\\/'
    expected = (
        r"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"
        r"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f\"\\/"
    )
    assert canonical.encode({"a": text}) == b'{"a":"' + expected.encode() + b'"}'


@pytest.mark.parametrize(
    ("value", "code", "where"),
    [
        ([], "canonical.top_level", "$"),
        ("a", "canonical.top_level", "$"),
        (None, "canonical.top_level", "$"),
        (OrderedDict(a=1), "canonical.top_level", "$"),
        ({"a": 1.0}, "canonical.fraction", "$.a"),
        ({"a": [0, float("nan")]}, "canonical.fraction", "$.a[1]"),
        ({"a": -0.0}, "canonical.fraction", "$.a"),
        ({"a": 2**53}, "canonical.integer_range", "$.a"),
        ({"a": {"b": -(2**53)}}, "canonical.integer_range", "$.a.b"),
        ({"a": 10**5000}, "canonical.integer_range", "$.a"),
        ({"a": (1, 2)}, "canonical.type", "$.a"),
        ({"a": b"x"}, "canonical.type", "$.a"),
        ({"a": {1, 2}}, "canonical.type", "$.a"),
        ({"a": Word.ONE}, "canonical.type", "$.a"),
        ({"a": Text("x")}, "canonical.type", "$.a"),
        ({"a": OrderedDict()}, "canonical.type", "$.a"),
        ({1: 1}, "canonical.name_type", "$"),
        ({"a": {False: 1}}, "canonical.name_type", "$.a"),
        ({"a": {Text("x"): 1}}, "canonical.name_type", "$.a"),
        ({"a": "\ud800"}, "canonical.surrogate", "$.a"),
        ({"\udc00": 1}, "canonical.surrogate", "$"),
        ({"\ue000": 1}, "canonical.name_range", "$"),
        ({"a": {"\U0001f600": 1}}, "canonical.name_range", "$.a"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(value, code, where):
    error = refusal(canonical.encode, value)
    assert (error.code, error.where) == (code, where)


def test_the_neighbours_of_what_is_refused_are_written():
    value = {"\ud7ff": "\U0010ffff\ue000", "n": [2**53 - 1, -(2**53) + 1, 0, True]}
    data = canonical.encode(value)
    assert canonical.decode(data) == value == strict_json.read(data)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a":1.0}', "canonical.fraction"),
        ('{"a":1.5}', "canonical.fraction"),
        ('{"a":[1,-0.0]}', "canonical.fraction"),
        ('{"a":1e2}', "canonical.fraction"),
        ('{"a":1e16}', "canonical.fraction"),
        ('{"a":-0}', "canonical.not_canonical"),
        ('{"a":9007199254740992}', "canonical.integer_range"),
        ('{"a":-9007199254740992}', "canonical.integer_range"),
        ('{"a":18446744073709551616}', "canonical.integer_range"),
        ('{"a":1,"a":1}', "canonical.duplicate_name"),
        ('{"a":1,"\\u0061":2}', "canonical.duplicate_name"),
        ('{"b":[{"a":1,"a":2}]}', "canonical.duplicate_name"),
        ('{"b":1,"a":2}', "canonical.not_canonical"),
        ('{"a": 1}', "canonical.not_canonical"),
        ('{"a":1}\n', "canonical.not_canonical"),
        (' {"a":1}', "canonical.not_canonical"),
        ('{"a":"\\u0061"}', "canonical.not_canonical"),
        ('{"a":"\\/"}', "canonical.not_canonical"),
        ('{"a":"\\u001F"}', "canonical.not_canonical"),
        ('{"a":"\\u000a"}', "canonical.not_canonical"),
        ('{"a":"\\u00e9"}', "canonical.not_canonical"),
        ('{"\ue000":1}', "canonical.name_range"),
        ('{"a":{"\U0001f600":1}}', "canonical.name_range"),
        ("[]", "canonical.top_level"),
        ("1", "canonical.top_level"),
        ('{"a":01}', "canonical.not_json"),
        ('{"a":+1}', "canonical.not_json"),
        ('{"a":NaN}', "canonical.not_json"),
        ('{"a":Infinity}', "canonical.not_json"),
        ('{"a":1e400}', "canonical.fraction"),
        ('{"a":"\\ud800"}', "canonical.not_json"),
        ('{"a":1}{"b":2}', "canonical.not_json"),
        ('\ufeff{"a":1}', "canonical.not_json"),
        ("", "canonical.not_json"),
        ('{"a":1', "canonical.not_json"),
        ('{"a":1,}', "canonical.not_json"),
    ],
)
def test_a_text_outside_the_profile_is_refused_for_its_reason(text, code):
    data = text.encode()
    assert refusal(canonical.decode, data).code == code
    assert not strict_json.accepts(data)


@pytest.mark.parametrize(
    "data", [b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\xaf"}', b'{"a":"\xe2\x82"}', b'{"a":1}\0']
)
def test_bytes_that_are_not_utf8_are_refused(data):
    assert refusal(canonical.decode, data).code == "canonical.not_json"


def nested(levels, opening=b"[", closing=b"]"):
    return b'{"a":' + opening * (levels - 1) + closing * (levels - 1) + b"}"


@pytest.mark.parametrize("limit", [2, 48, 64])
def test_depth_is_counted_before_anything_is_parsed(limit):
    assert canonical.decode(nested(limit), max_depth=limit)
    assert refusal(canonical.decode, nested(limit + 1), max_depth=limit).code == "canonical.too_deep"
    assert refusal(canonical.decode, b"[" * 1_000_000, max_depth=limit).code == "canonical.too_deep"
    assert refusal(canonical.decode, b'{"a":' * 1_000_000, max_depth=limit).code == "canonical.too_deep"


def test_brackets_inside_strings_are_no_depth():
    data = canonical.encode({"a": "[{" * 100 + '\\"' + "[" * 100, "b": '"[' * 70})
    assert canonical.decode(data, max_depth=1)
    assert refusal(canonical.decode, b'{"a":"\\"","b":[[]]}', max_depth=2).code == "canonical.too_deep"


def test_size_is_counted_before_anything_is_parsed():
    data = canonical.encode({"a": "x" * 100})
    assert canonical.decode(data, max_bytes=len(data))
    assert refusal(canonical.decode, data, max_bytes=len(data) - 1).code == "canonical.too_large"


def test_for_a_schema_only_fractions_are_left_open():
    assert canonical.decode_for_schema(b'{"a":1.5}') == {"a": 1.5}
    for data in (b'{"a":1.50}', b'{"a":1,"a":1}', b'{"a":9007199254740992}', '{"\ue000":1}'.encode()):
        with pytest.raises(CanonicalError):
            canonical.decode_for_schema(data)


def test_names_from_outside_are_escaped_and_cut_in_messages():
    error = refusal(canonical.encode, {"\u202e\x1b[31m" + "x" * 1_000: {"b": 1.5}})
    assert str(error).isprintable()
    assert str(error).isascii()
    assert len(str(error)) < 400


def test_a_cycle_ends_at_the_depth():
    value = {}
    value["a"] = value
    assert refusal(canonical.encode, value).code == "canonical.too_deep"
