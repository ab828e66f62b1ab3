"""Strict reading of foreign JSON, and shapes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.foreign.shape import COUNT, INTEGER, TEXT, Shape, each
from verify.foreign.strict import Number, ReadError, lines, read


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("duplicate_name", b'{"a":1,"a":1}'),
        ("duplicate_name", b'{"a":{"b":1,"\\u0062":2}}'),
        ("not_json", b'{"a":NaN}'),
        ("not_json", b'{"a":-Infinity}'),
        ("not_json", b'{"a":01}'),
        ("not_json", b'{"a":1}x'),
        ("not_json", b"\xef\xbb\xbf{}"),
        ("not_json", b""),
        ("not_utf8", b'{"a":"\xff"}'),
        ("lone_surrogate", b'{"a":["\\ud800"]}'),
        ("lone_surrogate", b'{"\\udc00":1}'),
        ("too_deep", b"[" * 200_000),
        ("too_deep", b'{"a":' * 128 + b"1" + b"}" * 128),
        ("too_large", b" " * 300),
    ],
)
def test_what_a_lax_reader_settles_in_silence_is_refused_by_name(name, data):
    with pytest.raises(ReadError) as caught:
        read(data, max_bytes=256 if name == "too_large" else 1 << 20)
    assert caught.value.name == name


def test_what_is_beside_each_refusal_is_read():
    assert read(b'{"a":1,"b":1}') == {"a": 1, "b": 1}
    assert read(b'{"a":["\\ud83d\\ude00"]}') == {"a": ["😀"]}
    assert read(b'{"a":' * 127 + b"1" + b"}" * 127)
    assert read(b'{"a":"' + b"[" * 500 + b'"}') == {"a": "[" * 500}
    assert read(b'{"a":"\\"[[[' + b"[" * 500 + b'"}')


def test_numbers_keep_their_text():
    assert read(b"[1, -5, 1.0, 1e2, -0, 0.10, 123456789012345678901]") == [
        1, -5, Number("1.0"), Number("1e2"), Number("-0"), Number("0.10"), Number("123456789012345678901"),
    ]  # fmt: skip


def test_only_a_line_feed_parts_lines():
    data = '{"a":"x\u2028y\u0085z"}\r\n\n  \n{"b":1}'.encode()
    found = list(lines(data))
    assert [(line.number, line.ended) for line in found] == [(1, True), (4, False)]
    assert json.loads(found[0].data) == {"a": "x\u2028y\u0085z"}
    assert data[found[1].offset :] == b'{"b":1}'


ALPHABET = b'{}[]":,\\u0d8\n\xff1e-'


@given(st.lists(st.sampled_from(list(ALPHABET)), max_size=60).map(bytes))
def test_reading_gives_what_another_parser_gives_or_refuses_by_name(data):
    try:
        found = read(data)
    except ReadError as error:
        names = error.name
    else:
        assert plain(found) == json.loads(data)
        return
    assert names in {"not_json", "not_utf8", "duplicate_name", "lone_surrogate"}


def plain(value):
    if isinstance(value, Number):
        return json.loads(value.text)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


POINT = Shape({"x*": INTEGER, "y*": COUNT, "tags=[]": each(TEXT), "parent=null": TEXT, "label": TEXT})


def test_a_shape_names_each_place_that_does_not_fit():
    value = {"x": True, "z": 1, "tags": ["a", ""], "parent": None, "label": ""}
    assert [(each.path, each.unknown) for each in POINT(value, "")] == [
        ("z", True), ("x", False), ("y", False), ("tags[1]", False), ("label", False),
    ]  # fmt: skip
    assert list(POINT({"x": 1, "y": 0}, "")) == []
    assert POINT.filled({"x": 1, "y": 0}) == {"x": 1, "y": 0, "tags": [], "parent": None}
