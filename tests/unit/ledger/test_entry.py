from __future__ import annotations

from dataclasses import replace

import pytest

from ledger import canonical
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import ENTRY_SCHEMA, Entry, parse_entry, print_entry
from ledger.errors import FormatError, UnknownFormatError

ENTRY = Entry(digest(b"envelope"), 7, 0, ZERO_DIGEST, digest(b"receipt"), "2026-11-30T09:15:00.123Z")
DATA = print_entry(ENTRY)


def test_an_entry_prints_and_parses_and_is_canonical_json():
    assert parse_entry(DATA) == ENTRY
    assert canonical.encode(canonical.decode(DATA)) == DATA
    assert canonical.decode(DATA)["schema"] == ENTRY_SCHEMA


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"index":7', b'"index":07'),
        (b'"index":7', b'"index":-7'),
        (b'"index":7', b'"index":7.0'),
        (b'"index":7', b'"index":"7"'),
        (b'"index":7', b'"index": 7'),
        (b'"index":7', b'"index":9007199254740992'),
        (b'"index":7', b'"index":9999999999999999'),
        (b'"index":7', b'"index":10000000000000000'),
        (b'"keyring":0', b'"keyring":9007199254740992'),
        (b'"keyring":0', b'"keyring":00'),
        (b'"keyring":0,', b""),
        (b"sha256:0", b"sha256:g"),
        (b"sha256:0", b"SHA256:0"),
        (b"sha256:0", b"sha256:"),
        (b"2026-11-30", b"2026-11-31"),
        (b"2026-11-30", b"2026-02-29"),
        (b"2026-11-30", b"2026-13-01"),
        (b"2026-11-30", b"0026-11-30"),
        (b"T09", b" 09"),
        (b"T09", b"T24"),
        (b":15:00", b":60:00"),
        (b":15:00", b":15:60"),
        (b".123Z", b".12Z"),
        (b".123Z", b".1234Z"),
        (b".123Z", b"Z"),
        (b".123Z", b".123z"),
        (b".123Z", b".123+00:00"),
        (b'"}', b'"}\n'),
        (b'"}', b'","z":1}'),
        (b'{"envelope"', b' {"envelope"'),
        (b'{"envelope"', b'{"Envelope"'),
    ],
)
def test_another_spelling_is_refused(old, new):
    assert DATA.count(old) >= 1
    with pytest.raises(FormatError) as refused:
        parse_entry(DATA.replace(old, new, 1))
    assert refused.value.code == "entry.malformed"


def test_the_bounds_themselves_are_read():
    for index in (0, 10**15, 2**53 - 1):
        entry = replace(ENTRY, index=index, keyring=index)
        assert parse_entry(print_entry(entry)) == entry
    leap = replace(ENTRY, recorded_at="2024-02-29T23:59:59.999Z")
    assert parse_entry(print_entry(leap)) == leap


def test_a_later_schema_is_unknown_not_malformed():
    with pytest.raises(UnknownFormatError) as refused:
        parse_entry(DATA.replace(b"entry/v1", b"entry/v2"))
    assert refused.value.code == "entry.unknown_schema"


@pytest.mark.parametrize("data", [b"", b"{}", DATA[:-1], DATA[1:], DATA * 2])
def test_a_part_of_an_entry_is_no_entry(data):
    with pytest.raises(FormatError):
        parse_entry(data)
