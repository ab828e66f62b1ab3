"""Digests, key ids, base64, envelopes, entries and lines: what is accepted prints as itself, what is printed is accepted."""

from __future__ import annotations

import base64
import json
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.digest import digest, is_digest, parse_digest, print_digest
from ledger.entry import Entry, parse_entry, print_entry
from ledger.envelope import Envelope, Seal, parse_envelope, print_envelope
from ledger.errors import LedgerError
from ledger.keys import is_key_id, parse_base64, parse_key_id, print_base64, print_key_id
from ledger.line import parse_entry_line, parse_head_line, print_entry_line, print_head_line
from tests.reference.signed_note import RefusedError, unbase64

digests = st.binary(min_size=32, max_size=32).map(print_digest)
key_ids = st.binary(min_size=32, max_size=32).map(print_key_id)
indices = st.integers(0, 2**53 - 1)
times = st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9999, 12, 31)).map(
    lambda moment: moment.isoformat(timespec="milliseconds") + "Z"
)
entries = st.builds(
    Entry, envelope=digests, index=indices, keyring=indices, previous=digests, receipt=digests, recorded_at=times
)
payloads = st.dictionaries(
    st.text('abc"\\{}[]:,é', max_size=4),
    st.integers(-9, 9) | st.text('abc"\\{}[]:,payload_type', max_size=30),
    max_size=4,
).map(canonical.encode)
types = st.text("abcdefghijklmnopqrstuvwxyz0123456789.+-/", min_size=3, max_size=40)
seals = st.builds(Seal, key_ids, st.binary(min_size=64, max_size=64))
envelopes = st.builds(Envelope, payloads, types, st.none() | seals)
changes = st.tuples(st.integers(0, 100_000), st.binary(max_size=2))


def changed(data, change):
    at, piece = change
    at %= len(data)
    return data[:at] + piece + data[at + 1 :]


def accepted(parse, data):
    try:
        return parse(data)
    except LedgerError:
        return None


@given(st.binary(max_size=100))
def test_a_digest_prints_and_parses(data):
    text = digest(data)
    assert print_digest(parse_digest(text)) == text
    assert is_digest(text)


@given(digests, st.integers(0, 70), st.characters())
def test_no_other_text_of_a_digest_is_accepted(text, at, letter):
    other = text[:at] + letter + text[at + 1 :]
    found = accepted(parse_digest, other)
    assert (found is not None) == is_digest(other)
    if found is not None:
        assert print_digest(found) == other
    assert not is_digest(text + letter)
    assert not is_digest(letter + text)


@given(key_ids, st.integers(0, 71), st.characters())
def test_no_other_text_of_a_key_id_is_accepted(text, at, letter):
    other = text[:at] + letter + text[at + 1 :]
    found = accepted(parse_key_id, other)
    if found is not None:
        assert print_key_id(found) == other
    assert not is_key_id(text + letter)


@given(st.binary(max_size=70))
def test_base64_prints_and_parses(data):
    assert parse_base64(print_base64(data)) == data
    assert print_base64(data) == base64.b64encode(data).decode()


@given(st.text("ABCDwxyz0189+/=-_ \n", max_size=12) | st.text(max_size=8))
def test_base64_is_accepted_exactly_when_the_bit_by_bit_reader_accepts_it(text):
    try:
        expected = unbase64(text.encode("utf-8", "surrogatepass"))
    except RefusedError:
        expected = None
    found = accepted(parse_base64, text)
    assert found == expected
    if found is not None:
        assert print_base64(found) == text


@given(entries)
def test_an_entry_prints_and_parses_and_is_canonical_json(entry):
    data = print_entry(entry)
    assert parse_entry(data) == entry
    members = {name: getattr(entry, name) for name in Entry.__slots__}
    assert canonical.decode(data) == {**members, "schema": "receipt-ledger.entry/v1"}


@given(entries, changes)
def test_a_changed_entry_is_refused_or_prints_as_itself(entry, change):
    data = changed(print_entry(entry), change)
    found = accepted(parse_entry, data)
    if found is not None:
        assert print_entry(found) == data
        assert canonical.decode(data)


@given(envelopes)
def test_an_envelope_prints_and_parses_and_is_canonical_json(envelope):
    data = print_envelope(envelope)
    assert parse_envelope(data) == envelope
    value = canonical.decode(data)
    assert canonical.encode(value["payload"]) == envelope.payload
    assert value["payload_type"] == envelope.payload_type
    assert len(value["seals"]) == (envelope.seal is not None)


@given(envelopes, changes)
def test_a_changed_envelope_is_refused_or_prints_as_itself(envelope, change):
    data = changed(print_envelope(envelope), change)
    found = accepted(parse_envelope, data)
    if found is not None:
        assert print_envelope(found) == data
        # The payload's own form is its reader's matter; around it nothing is left open.
        if accepted(canonical.decode, found.payload) is not None:
            assert json.loads(data)["payload_type"] == found.payload_type
            assert canonical.decode(data)


@given(entries.map(print_entry), envelopes.map(print_envelope))
def test_an_entry_line_gives_back_entry_and_envelope(entry, envelope):
    line = print_entry_line(entry, envelope)
    assert parse_entry_line(line) == (entry, envelope)
    assert canonical.decode(line) == {"entry": canonical.decode(entry), "envelope": canonical.decode(envelope)}


@given(entries.map(print_entry), envelopes.map(print_envelope), changes)
def test_a_changed_entry_line_is_refused_or_prints_as_itself(entry, envelope, change):
    data = changed(print_entry_line(entry, envelope), change)
    found = accepted(parse_entry_line, data)
    if found is not None:
        assert print_entry_line(*found) == data


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), digests, changes)
def test_a_head_line_prints_and_parses_and_no_change_prints_otherwise(note, previous, change):
    line = print_head_line(note.encode(), previous)
    assert parse_head_line(line) == (note.encode(), previous)
    found = accepted(parse_head_line, changed(line, change))
    if found is not None:
        assert print_head_line(*found) == changed(line, change)
