from __future__ import annotations

from hashlib import sha256

import pytest

from ledger.checkpoint import Head, head_of, open_head, parse_checkpoint, print_checkpoint, sign_head
from ledger.errors import FormatError, LedgerError, UnknownFormatError
from ledger.keys import PrivateKey, print_base64
from ledger.note import Note, parse_note, print_note, sign_cosignature, sign_note

KEY, OTHER = PrivateKey.from_seed(bytes(32)), PrivateKey.from_seed(bytes([1]) * 32)
ORIGIN = "ledger.invalid/k3f7"
ROOT = sha256(b"root").digest()
HEAD = Head(ORIGIN, 8192, ROOT)
TEXT = f"{ORIGIN}\n8192\n{print_base64(ROOT)}\n"
NOTE = sign_head(HEAD, KEY)


def code(function, *arguments, **named):
    with pytest.raises(LedgerError) as refused:
        function(*arguments, **named)
    return refused.value.code


def opened(note, origin=ORIGIN, key=KEY.key):
    return open_head(note, origin=origin, log_key=key)


def signed(text, name=ORIGIN, key=KEY):
    return print_note(Note(text, (sign_note(text, name, key),)))


def test_a_head_prints_and_parses():
    assert print_checkpoint(HEAD) == TEXT
    assert parse_checkpoint(TEXT) == HEAD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        TEXT[:-1],
        TEXT + "\n",
        "\n" + TEXT,
        TEXT.replace("8192", ""),
        TEXT.replace("8192", "08192"),
        TEXT.replace("8192", "+8192"),
        TEXT.replace("8192", "-1"),
        TEXT.replace("8192", "8_192"),
        TEXT.replace("8192", " 8192"),
        TEXT.replace("8192", "8192 "),
        TEXT.replace("8192", "\u0668"),
        TEXT.replace("8192", "9223372036854775808"),
        TEXT.replace("\n8192\n", "\r\n8192\r\n"),
        TEXT.replace(ORIGIN, "a\tb"),
        TEXT.replace(print_base64(ROOT), print_base64(ROOT[:-1])),
        TEXT.replace(print_base64(ROOT), print_base64(ROOT + b"x")),
        TEXT.replace(print_base64(ROOT), ROOT.hex()),
        TEXT.replace(print_base64(ROOT), print_base64(ROOT).rstrip("=")),
    ],
)
def test_another_spelling_is_refused(text):
    assert code(parse_checkpoint, text) == "head.malformed"


def test_spare_bits_of_the_root_are_zero():
    text = f"o\n0\n{'A' * 43}=\n"
    assert parse_checkpoint(text) == Head("o", 0, bytes(32))
    assert code(parse_checkpoint, text.replace("A=", "B=")) == "base64.malformed"


def test_extension_lines_are_read_only_where_they_are_allowed():
    text = TEXT + "one\ntwo\n"
    assert code(parse_checkpoint, text) == "head.extension"
    assert parse_checkpoint(text, extensions=True) == HEAD
    for bad in (TEXT + "\n", TEXT + "one\n\n", TEXT + "\none\n", TEXT + "one", TEXT + "o\tne\n"):
        assert code(parse_checkpoint, bad, extensions=True) == "head.malformed"


@pytest.mark.parametrize("size", [0, 1, 2**53, 2**63 - 1])
def test_sizes_reach_to_63_bits(size):
    assert parse_checkpoint(print_checkpoint(Head(ORIGIN, size, ROOT))).size == size


@pytest.mark.parametrize(
    "head",
    [
        Head("", 1, ROOT),
        Head("a\n5", 1, ROOT),
        Head(f"a\n5\n{print_base64(ROOT)}", 1, ROOT),
        Head("a\ud800", 1, ROOT),
        Head("a", -1, ROOT),
        Head("a", 2**63, ROOT),
        Head("a", 1, ROOT[:-1]),
        Head("a", 1, b""),
    ],
)
def test_what_the_format_cannot_hold_is_not_printed(head):
    assert code(print_checkpoint, head) in {"head.malformed", "head.extension"}


def test_a_signed_head_opens_for_its_origin_and_key():
    assert opened(NOTE) == head_of(NOTE) == HEAD
    assert parse_note(NOTE).text == TEXT
    assert parse_note(NOTE).signatures[0].name == ORIGIN
    # Ed25519 is deterministic: the same head is the same note.
    assert sign_head(HEAD, KEY) == NOTE


def test_it_opens_for_no_other_key_or_origin():
    assert code(opened, NOTE, key=OTHER.key) == "note.unsigned"
    assert code(opened, NOTE, origin=ORIGIN + "x") == "note.unsigned"
    with pytest.raises(UnknownFormatError):
        opened(NOTE, key="ml-dsa-44:" + "0" * 64)


def test_no_bit_of_the_text_can_change():
    data = bytearray(NOTE)
    for at in range(len(TEXT)):
        data[at] ^= 1
        assert code(opened, bytes(data)) in {"note.bad_signature", "note.malformed", "note.unsigned"}
        data[at] ^= 1
    assert opened(bytes(data)) == HEAD


def test_the_origin_inside_is_compared_not_only_the_name_on_the_line():
    text = TEXT.replace(ORIGIN, "ledger.invalid/other")
    assert code(opened, signed(text)) == "head.origin"


def test_a_head_of_ours_has_no_extension_lines():
    assert code(opened, signed(TEXT + "more\n")) == "head.extension"
    assert code(head_of, signed(TEXT + "more\n")) == "head.extension"


def test_a_text_that_is_no_head_does_not_open():
    assert code(opened, signed("some text\n")) == "head.malformed"


def test_an_empty_ledger_has_one_root():
    empty = sha256(b"").digest()
    assert opened(sign_head(Head(ORIGIN, 0, empty), KEY)).size == 0
    assert code(opened, sign_head(Head(ORIGIN, 0, ROOT), KEY)) == "head.empty_root"


def test_lines_of_others_are_passed_over_and_may_come_first():
    line = sign_note(TEXT, ORIGIN, KEY)
    cosigned = sign_cosignature(TEXT, "notary.example", OTHER, time_s=1)
    assert opened(print_note(Note(TEXT, (cosigned, line)))) == HEAD
    assert code(opened, print_note(Note(TEXT, (cosigned,)))) == "note.unsigned"


def test_an_origin_that_cannot_name_a_key_is_not_signed():
    for origin in ("go.sum database tree", "a+b"):
        assert parse_checkpoint(print_checkpoint(Head(origin, 1, ROOT))).origin == origin
        with pytest.raises(FormatError):
            sign_head(Head(origin, 1, ROOT), KEY)
