from __future__ import annotations

import pytest

from ledger.errors import FormatError, LedgerError, SignatureError, UnknownFormatError
from ledger.keys import PrivateKey, print_base64
from ledger.note import (
    COSIGNATURE,
    ED25519,
    NOTE_MAX_BYTES,
    Note,
    NoteKey,
    NoteSignature,
    check_note,
    cosignature_time,
    cosigned_message,
    is_note_name,
    parse_note,
    parse_vkey,
    print_note,
    print_vkey,
    sign_cosignature,
    sign_note,
)
from tests.reference.signed_note import key_id

LOG, OTHER = PrivateKey.from_seed(bytes(range(32))), PrivateKey.from_seed(bytes(range(1, 33)))
TEXT = "example.org/log\n1\nAAAA\n"
LINE = sign_note(TEXT, "log", LOG)
KEY = NoteKey("log", ED25519, LOG.public)
GOOD = print_note(Note(TEXT, (LINE,)))


def code(function, *arguments):
    with pytest.raises(LedgerError) as refused:
        function(*arguments)
    return refused.value.code


def test_a_note_prints_as_it_was_and_verifies():
    note = parse_note(GOOD)
    assert print_note(note) == GOOD
    assert check_note(note, [KEY]) == (LINE,)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n\n",
        GOOD[:-1],
        GOOD + b"\n",
        GOOD + b"x",
        GOOD.replace(b"\n\n", b"\n"),
        GOOD.replace("\u2014".encode(), b"-"),
        GOOD.replace("\u2014 ".encode(), "\u2014".encode()),
        GOOD.replace("\u2014 ".encode(), "\u2014  ".encode()),
        GOOD.replace(b" log ", b" lo+g "),
        GOOD.replace(b" log ", " lo\u2003g ".encode()),
        GOOD.replace(b" log ", b"  "),
        GOOD.replace(b"AAAA", b"AA\tA"),
        GOOD.replace(b"AAAA", b"AA\rA"),
        GOOD.replace(b"AAAA", b"AA\x00A"),
        GOOD.replace(b"AAAA", b"AA\xffA"),
        GOOD.replace(b"AAAA", b"AA\xed\xa0\x80A"),
        b"\xef\xbb\xbf\n" + GOOD[:5],
        TEXT.encode() + b"\n" + "\u2014 log AAAAAA==\n".encode(),
    ],
)
def test_what_is_not_exactly_a_note_is_refused(data):
    assert code(parse_note, data) in {"note.malformed", "base64.malformed"}


@pytest.mark.parametrize(
    "encoded", ["AAAAAAB=", "AAAAAAA", "AAAAAAA==", "AAAA_AA=", "AAAA-AA=", "AAAA AAA", "AAAAAA=="]
)
def test_a_signature_has_one_spelling_and_at_least_one_byte(encoded):
    head = TEXT.encode() + b"\n" + "\u2014 log ".encode()
    assert parse_note(head + b"AAAAAAA=\n").signatures == (NoteSignature("log", bytes(4), bytes(1)),)
    assert code(parse_note, head + encoded.encode() + b"\n") in {"note.malformed", "base64.malformed"}


def test_the_text_may_hold_empty_lines_and_other_separators():
    text = "one\n\ntwo\u2028three\x85\n\n\n"
    line = sign_note(text, "log", LOG)
    note = parse_note(print_note(Note(text, (line,))))
    assert note.text == text
    assert check_note(note, [KEY]) == (line,)


def test_the_last_empty_line_ends_the_text():
    inner = GOOD.decode()
    line = sign_note(inner, "log", LOG)
    note = parse_note(print_note(Note(inner, (line,))))
    assert note.text == inner
    assert note.signatures == (line,)


def test_a_hundred_signatures_are_read_and_one_more_is_not():
    lines = tuple(NoteSignature(f"w{number}", bytes(4), bytes(64)) for number in range(99))
    note = Note(TEXT, (*lines, LINE))
    assert parse_note(print_note(note)) == note
    assert check_note(note, [KEY]) == (LINE,)
    data = print_note(note)
    assert code(parse_note, data + data[data.rindex("\u2014".encode()) :]) == "note.too_large"
    assert code(print_note, Note(TEXT, (*lines, LINE, LINE))) == "note.malformed"
    assert code(print_note, Note(TEXT, ())) == "note.malformed"


def test_a_note_of_64_kib_is_read_and_one_byte_more_is_not():
    text = "x" * (NOTE_MAX_BYTES - len(GOOD) + len(TEXT) - 1) + "\n"
    data = print_note(Note(text, (LINE,)))
    assert len(data) == NOTE_MAX_BYTES == 65_536
    assert parse_note(data).text == text
    assert code(parse_note, b"x" + data) == "note.too_large"
    assert code(print_note, Note("x" + text, (LINE,))) == "note.too_large"


@pytest.mark.parametrize(
    "note",
    [
        Note("no line feed", (LINE,)),
        Note("", (LINE,)),
        Note("tab\t\n", (LINE,)),
        Note("\ud800\n", (LINE,)),
        Note(TEXT, (NoteSignature("", bytes(4), bytes(64)),)),
        Note(TEXT, (NoteSignature("a b", bytes(4), bytes(64)),)),
        Note(TEXT, (NoteSignature("a\nb", bytes(4), bytes(64)),)),
        Note(TEXT, (NoteSignature("a\ud800", bytes(4), bytes(64)),)),
        Note(TEXT, (NoteSignature("a", bytes(3), bytes(64)),)),
        Note(TEXT, (NoteSignature("a", bytes(5), bytes(64)),)),
        Note(TEXT, (NoteSignature("a", bytes(4), b""),)),
    ],
)
def test_what_the_format_cannot_hold_is_not_printed(note):
    assert code(print_note, note) == "note.malformed"


@pytest.mark.parametrize("name", ["", " ", "a+b", "a b", "a\u00a0", "\u3000", "a\x1f", "a\x85", "\u2028"])
def test_a_name_with_spaces_or_plus_is_no_name(name):
    assert not is_note_name(name)
    assert is_note_name("example.org/\u00e9\u4e2d")


def test_the_line_is_chosen_by_name_and_key_id_not_by_place():
    stranger = sign_note(TEXT, "other", OTHER)
    same_name = sign_note(TEXT, "log", OTHER)
    note = Note(TEXT, (stranger, same_name, LINE))
    assert check_note(note, [KEY]) == (LINE,)
    assert check_note(note, [NoteKey("log", ED25519, OTHER.public)]) == (same_name,)
    assert check_note(note, [NoteKey("other", ED25519, OTHER.public), KEY]) == (stranger, LINE)


def test_a_line_under_a_borrowed_name_is_not_by_that_key():
    # OTHER signs under the log's name: its key id differs, so nothing is by a known key.
    assert code(check_note, Note(TEXT, (sign_note(TEXT, "log", OTHER),)), [KEY]) == "note.unsigned"
    assert code(check_note, Note(TEXT, (LINE,)), []) == "note.unsigned"
    # It states the log's key id as well: then the line counts as the log's, and it does not verify.
    forged = NoteSignature("log", KEY.key_id, OTHER.sign(TEXT.encode()))
    assert code(check_note, Note(TEXT, (forged,)), [KEY]) == "note.bad_signature"


def test_one_bad_line_of_a_known_key_rejects_the_note_even_beside_a_good_one():
    bad = NoteSignature("log", KEY.key_id, LINE.signature[:-1] + bytes([LINE.signature[-1] ^ 1]))
    witness = NoteKey("other", ED25519, OTHER.public)
    for lines in ((LINE, bad), (bad, LINE), (bad, sign_note(TEXT, "other", OTHER))):
        assert code(check_note, Note(TEXT, lines), [KEY, witness]) == "note.bad_signature"
    # The same line by a key that nobody asked about is passed over.
    assert check_note(Note(TEXT, (bad, sign_note(TEXT, "other", OTHER))), [witness])


def test_a_repeated_line_counts_once():
    assert check_note(Note(TEXT, (LINE, LINE)), [KEY]) == (LINE,)


def test_two_keys_of_one_name_and_id_are_refused():
    assert code(check_note, Note(TEXT, (LINE,)), [KEY, KEY]) == "note.ambiguous_key"


@pytest.mark.parametrize("length", [0, 1, 63, 65])
def test_a_signature_of_another_length_does_not_verify(length):
    line = NoteSignature("log", KEY.key_id, (LINE.signature + b"x")[:length] if length else b"")
    assert code(check_note, Note(TEXT, (line,)), [KEY]) == "note.bad_signature"


def test_a_cosignature_covers_time_and_text():
    key = NoteKey("witness", COSIGNATURE, OTHER.public)
    line = sign_cosignature(TEXT, "witness", OTHER, time_s=1_679_315_147)
    assert cosignature_time(line) == 1_679_315_147
    assert check_note(Note(TEXT, (LINE, line)), [key]) == (line,)
    later = NoteSignature(line.name, line.key_id, (1_679_315_148).to_bytes(8, "big") + line.signature[8:])
    assert code(check_note, Note(TEXT, (LINE, later)), [key]) == "note.bad_signature"
    assert code(check_note, Note(TEXT + "x\n", (LINE, line)), [key]) == "note.bad_signature"
    # A signature of the plain text by the same key is no cosignature.
    plain = NoteSignature(line.name, line.key_id, sign_note(TEXT, "witness", OTHER).signature)
    assert code(check_note, Note(TEXT, (plain,)), [key]) == "note.bad_signature"


@pytest.mark.parametrize("time_s", [0, 1, 2**63 - 1])
def test_the_bounds_of_time_are_signed_and_read(time_s):
    line = sign_cosignature(TEXT, "witness", OTHER, time_s=time_s)
    assert cosignature_time(line) == time_s
    assert check_note(Note(TEXT, (line,)), [NoteKey("witness", COSIGNATURE, OTHER.public)]) == (line,)


@pytest.mark.parametrize("length", [1, 64, 71, 73])
def test_a_cosignature_has_72_bytes(length):
    line = sign_cosignature(TEXT, "witness", OTHER, time_s=5)
    short = NoteSignature(line.name, line.key_id, (line.signature + b"x")[:length])
    assert code(cosignature_time, short) == "note.malformed"
    assert (
        code(check_note, Note(TEXT, (short,)), [NoteKey("witness", COSIGNATURE, OTHER.public)]) == "note.bad_signature"
    )


@pytest.mark.parametrize("time_s", [-1, 2**63])
def test_a_cosignature_has_a_time_that_can_be(time_s):
    with pytest.raises(FormatError):
        cosigned_message(TEXT, time_s=time_s)


def test_a_key_of_a_type_that_is_not_known_verifies_nothing():
    key = NoteKey("log", 0x06, LOG.public)
    line = NoteSignature("log", key.key_id, LINE.signature)
    with pytest.raises(UnknownFormatError) as refused:
        check_note(Note(TEXT, (line,)), [key])
    assert refused.value.code == "note.unknown_type"


def test_a_public_key_prints_as_it_was():
    text = print_vkey(KEY)
    assert parse_vkey(text) == KEY
    assert text == f"log+{key_id('log', 1, LOG.public).hex()}+{print_base64(bytes([1]) + LOG.public)}"


def vkey(name, raw, id_=None):
    return f"{name}+{id_ or key_id(name, raw[0], raw[1:]).hex()}+{print_base64(raw)}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (vkey("log", bytes([1]) + LOG.public[:-1]), "note.key_malformed"),
        (vkey("log", bytes([1]) + LOG.public + b"x"), "note.key_malformed"),
        (vkey("log", bytes([4])), "note.key_malformed"),
        (vkey("log", bytes([6]) + LOG.public), "note.unknown_type"),
        (vkey("log", bytes([1]) + LOG.public, "00000000"), "note.key_malformed"),
        (vkey("log", bytes([1]) + LOG.public, KEY.key_id.hex().upper()), "note.key_malformed"),
        (vkey("l g", bytes([1]) + LOG.public), "note.key_malformed"),
        (print_vkey(KEY) + "\n", "note.key_malformed"),
        (" " + print_vkey(KEY), "note.key_malformed"),
        (print_vkey(KEY)[3:], "note.key_malformed"),
        ("", "note.key_malformed"),
        ("log", "note.key_malformed"),
    ],
)
def test_a_public_key_has_one_spelling(text, expected):
    assert code(parse_vkey, text) == expected


def test_every_byte_of_a_public_key_one_higher_is_refused():
    for key in (KEY, NoteKey("example.org/witness", COSIGNATURE, OTHER.public)):
        text = print_vkey(key)
        for at in range(len(text)):
            code(parse_vkey, text[:at] + chr(ord(text[at]) + 1) + text[at + 1 :])


@pytest.mark.parametrize(
    "key", [NoteKey("a+b", ED25519, LOG.public), NoteKey("log", 9, LOG.public), NoteKey("log", ED25519, b"short")]
)
def test_a_key_that_the_format_cannot_hold_is_not_printed(key):
    assert code(print_vkey, key) == "note.key_malformed"


def test_a_weak_key_verifies_nothing():
    identity = bytes([1]) + bytes(31)
    key = NoteKey("log", ED25519, identity)
    line = NoteSignature("log", key.key_id, identity + bytes(32))
    with pytest.raises(SignatureError) as refused:
        check_note(Note(TEXT, (line,)), [key])
    assert refused.value.code == "note.bad_signature"
