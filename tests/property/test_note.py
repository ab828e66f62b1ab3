"""Notes, keys and heads: exact inverses, and the same verdict as a plain reading of the C2SP text on any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import Head, head_of, parse_checkpoint, print_checkpoint, sign_head
from ledger.errors import FormatError, LedgerError, SignatureError
from ledger.keys import PrivateKey
from ledger.note import (
    COSIGNATURE,
    ED25519,
    Note,
    NoteKey,
    NoteSignature,
    check_note,
    is_note_name,
    parse_note,
    parse_vkey,
    print_note,
    print_vkey,
    sign_note,
)
from tests.reference import signed_note

unicode_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="+"), min_size=1)
texts = st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=1).map(
    lambda lines: "\n".join(lines) + "\n"
)
signatures = st.builds(NoteSignature, names, st.binary(min_size=4, max_size=4), st.binary(min_size=1, max_size=90))
notes = st.builds(Note, texts, st.lists(signatures, min_size=1, max_size=4).map(tuple))
origins = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
heads = st.builds(Head, origins, st.integers(0, 2**63 - 1), st.binary(min_size=32, max_size=32))
edits = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.sampled_from([b"", b"\n", b" ", b"=", b"+", b"\xe2\x80\x94 ", b"\x00", b"A", b"\xff"]),
    ),
    max_size=3,
)


def mangled(data, changes):
    for place, piece in changes:
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + 1 :]
    return data


def oracle_note(data):
    try:
        text, lines = signed_note.read_note(data)
    except signed_note.RefusedError:
        return None
    return Note(text, tuple(NoteSignature(*line) for line in lines))


def ours(parse, data):
    try:
        return parse(data)
    except FormatError:
        return None


@given(notes)
def test_a_printed_note_parses_to_itself(note):
    data = print_note(note)
    assert parse_note(data) == note == oracle_note(data)


@given(notes, edits)
def test_a_note_is_accepted_exactly_when_the_plain_reading_accepts_it(note, changes):
    data = mangled(print_note(note), changes)
    found = ours(parse_note, data)
    assert found == oracle_note(data)
    if found is not None:
        assert print_note(found) == data


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_accepted_exactly_when_the_plain_reading_accepts_them(data):
    assert ours(parse_note, data) == oracle_note(data)


@given(unicode_text)
def test_a_name_is_accepted_exactly_when_the_plain_reading_accepts_it(name):
    assert is_note_name(name) == signed_note.name_ok(name)


@given(heads)
def test_a_printed_head_parses_to_itself(head):
    text = print_checkpoint(head)
    assert parse_checkpoint(text) == head
    assert signed_note.read_checkpoint(text) == (head.origin, head.size, head.root, [])


@given(heads, edits)
def test_a_head_is_accepted_exactly_when_the_plain_reading_accepts_it(head, changes):
    text = mangled(print_checkpoint(head).encode(), changes).decode("utf-8", "surrogateescape")
    try:
        text.encode()
        expected = signed_note.read_checkpoint(text)
    except (signed_note.RefusedError, UnicodeEncodeError):
        expected = None
    loose = ours(lambda given: parse_checkpoint(given, extensions=True), text)
    strict = ours(parse_checkpoint, text)
    assert (loose and (loose.origin, loose.size, loose.root)) == (expected and expected[:3])
    assert strict == (loose if expected and not expected[3] else None)
    if strict is not None:
        assert print_checkpoint(strict) == text


ascii_names = st.text("abcXYZ019./-_~!*,", min_size=1, max_size=40)


@given(ascii_names | names, st.integers(0, 2**63 - 1), st.binary(min_size=32, max_size=32), edits, st.data())
def test_a_signed_head_is_read_at_once_as_it_is_read_in_parts(origin, size, root, changes, data):
    note = sign_head(Head(origin, size, root), PrivateKey.from_seed(bytes(32)))
    assert head_of(note) == Head(origin, size, root)
    at = data.draw(st.integers(0, len(note) - 1))
    byte = data.draw(st.binary(min_size=1, max_size=1))
    for other in (mangled(note, changes), note[:at] + byte + note[at + 1 :], note[:at] + note[at + 1 :]):
        assert ours(head_of, other) == ours(lambda given: parse_checkpoint(parse_note(given).text), other)


@pytest.mark.parametrize("length", [1, 32])
def test_no_character_of_a_head_read_at_once_may_be_another_where_the_parts_refuse_it(length):
    note = sign_head(
        Head("o" * length, 10**length - 1 if length == 1 else 12, bytes(32)), PrivateKey.from_seed(bytes(32))
    )
    for at in range(len(note)):
        for byte in range(256):
            other = note[:at] + bytes([byte]) + note[at + 1 :]
            assert ours(head_of, other) == ours(lambda given: parse_checkpoint(parse_note(given).text), other)


keys = st.builds(NoteKey, names, st.sampled_from([ED25519, COSIGNATURE]), st.binary(min_size=32, max_size=32))


@given(keys)
def test_a_printed_key_parses_to_itself(key):
    assert parse_vkey(print_vkey(key)) == key
    assert key.key_id == signed_note.key_id(key.name, key.type, key.public)


@given(keys, st.data())
def test_no_key_survives_a_changed_character(key, data):
    text = print_vkey(key)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(exclude_categories=["Cs"]).filter(lambda letter: letter != text[at]))
    with pytest.raises(LedgerError):
        parse_vkey(text[:at] + other + text[at + 1 :])


@given(texts, names, st.binary(min_size=32, max_size=32), st.integers(0, 10_000), st.integers(0, 7))
def test_a_signed_text_verifies_and_not_with_one_bit_changed(text, name, seed, at, bit):
    key = PrivateKey.from_seed(seed)
    line = sign_note(text, name, key)
    known = NoteKey(name, ED25519, key.public)
    assert check_note(Note(text, (line,)), [known]) == (line,)
    signature = bytearray(line.signature)
    signature[at % 64] ^= 1 << bit
    for bad in (Note(text + "x\n", (line,)), Note(text, (NoteSignature(name, line.key_id, bytes(signature)),))):
        with pytest.raises(SignatureError) as refused:
            check_note(bad, [known])
        assert refused.value.code == "note.bad_signature"
