from __future__ import annotations

import pytest

from ledger import canonical
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import Entry, print_entry
from ledger.envelope import print_envelope, seal
from ledger.errors import FormatError, LedgerError
from ledger.keys import PrivateKey
from ledger.line import (
    ENTRY_PREFIX,
    HEAD_PREFIX,
    parse_entry_line,
    parse_head_line,
    print_entry_line,
    print_head_line,
)

KEY = PrivateKey.from_seed(bytes(32))
ENVELOPE = print_envelope(seal(canonical.encode({"a": ',"envelope":{"payload":{}}}', "b": {"entry": {}}}), KEY))
ENTRY = print_entry(Entry(digest(ENVELOPE), 1, 0, ZERO_DIGEST, digest(b"r"), "2026-11-30T09:15:00.123Z"))
LINE = print_entry_line(ENTRY, ENVELOPE)
NOTE = "ledger.invalid/x\n0\nroot\n\n\u2014 ledger.invalid/x AAAA\n".encode()
HEAD_LINE = print_head_line(NOTE, ZERO_DIGEST)


def test_an_entry_line_gives_back_its_two_parts():
    assert parse_entry_line(LINE) == (ENTRY, ENVELOPE)
    assert LINE.startswith(ENTRY_PREFIX)
    assert canonical.encode(canonical.decode(LINE)) == LINE


@pytest.mark.parametrize(
    "line",
    [
        b"",
        LINE[:-1],
        LINE + b"\n",
        LINE + b" ",
        b" " + LINE,
        LINE.replace(b'"entry"', b'"Entry"'),
        LINE.replace(b',"envelope":{"payload"', b', "envelope":{"payload"', 1).replace(b',"envelope":', b""),
        HEAD_LINE,
        ENTRY,
        ENVELOPE,
    ],
)
def test_another_layout_is_no_entry_line(line):
    with pytest.raises(FormatError) as refused:
        parse_entry_line(line)
    assert refused.value.code == "line.malformed"


def test_a_head_line_gives_back_note_and_link():
    assert parse_head_line(HEAD_LINE) == (NOTE, ZERO_DIGEST)
    assert HEAD_LINE.startswith(HEAD_PREFIX)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        HEAD_LINE[:-1],
        HEAD_LINE + b"\n",
        HEAD_LINE.replace(b'"head":', b'"head": '),
        HEAD_LINE.replace("\u2014".encode(), b"\\u2014"),
        HEAD_LINE.replace(ZERO_DIGEST.encode(), ZERO_DIGEST[:-1].encode()),
        HEAD_LINE.replace(ZERO_DIGEST.encode(), ZERO_DIGEST.upper().encode()),
        HEAD_LINE.replace(b'"previous_head"', b'"previous"'),
        canonical.encode({"head": "x"}),
        canonical.encode({"head": 1, "previous_head": ZERO_DIGEST}),
        canonical.encode({"head": "x", "previous_head": None}),
        canonical.encode({"head": "x", "previous_head": ZERO_DIGEST, "z": 1}),
        b'{"head":"x","head":"x","previous_head":"' + ZERO_DIGEST.encode() + b'"}',
        LINE,
    ],
)
def test_another_layout_is_no_head_line(line):
    with pytest.raises(LedgerError) as refused:
        parse_head_line(line)
    assert refused.value.code.partition(".")[0] in {"line", "canonical"}


def test_a_head_line_cannot_be_read_as_an_entry_line_nor_the_other_way():
    with pytest.raises(LedgerError):
        parse_entry_line(HEAD_LINE)
    with pytest.raises(LedgerError):
        parse_head_line(LINE)
