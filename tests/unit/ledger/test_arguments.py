"""Secrets and inline members, on their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.arguments import ArgumentsError, Secrets, content_of, inline_members, text_of

TEXTS = st.text(st.characters(max_codepoint=0xD7FF), min_size=4, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53 - 1), 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def test_a_secret_leaves_its_name() -> None:
    secrets = Secrets.of({"token": "hunter22"})
    assert secrets.cut_text("a hunter22 b hunter22") == "a [secret:token] b [secret:token]"
    assert secrets.cut_text("hunter2") == "hunter2"
    assert secrets.cut_bytes(b"\xff hunter22\0") == b"\xff [secret:token]\0"


def test_a_longer_secret_is_cut_before_one_inside_it() -> None:
    for values in ({"a": "abcd", "b": "abcdefgh"}, {"b": "abcdefgh", "a": "abcd"}):
        assert Secrets.of(values).cut_text("abcdefgh abcd") == "[secret:b] [secret:a]"


def test_names_of_members_are_cut_and_two_that_become_one_are_refused() -> None:
    secrets = Secrets.of({"a": "first", "b": "other"})
    assert secrets.cut_value({"first": "other", "x": ["first"]}) == {"[secret:a]": "[secret:b]", "x": ["[secret:a]"]}
    with pytest.raises(ArgumentsError):
        secrets.cut_value({"first": 1, "[secret:a]": 2})


@given(VALUES, TEXTS)
def test_no_text_holds_a_secret_after_the_cut(value: object, secret: str) -> None:
    secrets = Secrets.of({"n": secret})
    try:
        cut = secrets.cut_value({"in": [value, secret, {secret: f"{secret}{secret}"}]})  # type: ignore[list-item]
    except ArgumentsError:
        return
    assert not any(secret in text for text in texts(cut)) or secret in "[secret:n]"


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for name, item in value.items() for text in (name, *texts(item))]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_without_secrets_nothing_is_changed(value: dict[str, object]) -> None:
    assert Secrets().cut_value(value) == value  # type: ignore[arg-type]
    assert Secrets().content_of(value, "x") == (canonical.encode(value), "application/json")  # type: ignore[arg-type]


def test_a_named_member_is_replaced_whole_whatever_it_is() -> None:
    arguments = {"a": {"b": ["secret text", 123456]}, "c": None, "d": "secret text and 123456"}
    secrets = Secrets().with_members(("a", "c"), arguments)
    assert secrets.cut_arguments(arguments, ("a", "c")) == {  # type: ignore[arg-type]
        "a": "[secret:a]",
        "c": "[secret:c]",
        "d": "[secret:a] and [secret:a.1]",
    }
    with pytest.raises(ArgumentsError):
        Secrets().with_members(("x",), arguments)
    with pytest.raises(ArgumentsError):
        Secrets().with_members(("x",), None)


def test_inline_members_are_those_named_and_there() -> None:
    assert inline_members({"a": 1, "b": {"c": 2}}, ("b",)) == {"b": {"c": 2}}
    assert inline_members({"a": 1}, ()) is None
    assert inline_members(None, ()) is None
    for arguments in ({"a": 1}, None):
        with pytest.raises(ArgumentsError):
            inline_members(arguments, ("b",))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"a", (b"a", "application/octet-stream")),
        (bytearray(b"a"), (b"a", "application/octet-stream")),
        (memoryview(b"a"), (b"a", "application/octet-stream")),
        ("\N{EURO SIGN}", ("\N{EURO SIGN}".encode(), "text/plain")),
        ({"b": 1, "a": 2}, (b'{"a":2,"b":1}', "application/json")),
    ],
)
def test_content_is_bytes_a_text_or_an_object(value: object, expected: tuple[bytes, str]) -> None:
    assert content_of(value, "x") == expected


@pytest.mark.parametrize("value", [1, 1.5, None, [1], ("a",), {"a": 0.5}, {"a": {"b": float("inf")}}, "\udc80"])
def test_other_content_is_refused(value: object) -> None:
    with pytest.raises(ArgumentsError):
        content_of(value, "x")


def test_an_exception_that_cannot_say_what_it_is_says_nothing() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RecursionError

    assert text_of(None) == text_of(MuteError()) == text_of(ValueError()) == ""
    assert text_of(ValueError("x")) == "x"
