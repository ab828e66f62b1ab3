"""Entries: one position in the chain, in one fixed byte layout.

    {"envelope":"sha256:...","index":7,"keyring":0,"previous":"sha256:...","receipt":"sha256:...",
     "recorded_at":"2026-11-30T09:15:00.123Z","schema":"receipt-ledger.entry/v1"}      (one line, no white space)

`previous` is the digest of the entry before, zeros at index 0. `keyring` is the index of the newest `header` or `key` entry
before this one (0 for entry 0 itself). `envelope` is the digest of the envelope's bytes. These bytes are the merkle leaf.

Source: docs/spec/entries.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ledger.canonical import MAX_INTEGER
from ledger.errors import FormatError, UnknownFormatError, clip
from ledger.times import TIME_PATTERN

__all__ = ["ENTRY_SCHEMA", "Entry", "parse_entry", "print_entry"]

ENTRY_SCHEMA: Final = "receipt-ledger.entry/v1"

_DIGEST = "sha256:[0-9a-f]{64}"
_INDEX = "0|[1-9][0-9]{0,15}"
_ENTRY = re.compile(
    (
        rf'\{{"envelope":"(?P<envelope>{_DIGEST})","index":(?P<index>{_INDEX}),"keyring":(?P<keyring>{_INDEX}),'
        rf'"previous":"(?P<previous>{_DIGEST})","receipt":"(?P<receipt>{_DIGEST})",'
        rf'"recorded_at":"(?P<recorded_at>{TIME_PATTERN[1:-1]})","schema":"(?P<schema>[a-z0-9./-]{{1,64}})"\}}'
    ).encode("ascii")
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One position in the chain; digests as text, indices counted from 0."""

    envelope: str
    index: int
    keyring: int
    previous: str
    receipt: str
    recorded_at: str


def parse_entry(data: bytes) -> Entry:
    """Return the entry whose bytes are `data`.

    Raises:
        FormatError: another layout, a leading zero, a day that does not exist.
        UnknownFormatError: the layout holds but the schema is not known to this version.
    """
    match = _ENTRY.fullmatch(data)
    if match is None:
        raise FormatError(f"entry: got {clip(data)}, expected the layout of {ENTRY_SCHEMA}", code="entry.malformed")
    envelope, index, keyring, previous, receipt, recorded_at, schema = match.groups()
    # Sixteen digits reach beyond the integers of canonical JSON.
    if max(len(index), len(keyring)) == 16 and max(int(index), int(keyring)) > MAX_INTEGER:
        raise FormatError(f"entry: got index {clip(index)}, expected at most 2^53-1", code="entry.malformed")
    if schema != b"receipt-ledger.entry/v1":
        raise UnknownFormatError(
            f"entry: schema {clip(schema)} is not known to this version", code="entry.unknown_schema"
        )
    return Entry(
        envelope.decode("ascii"),
        int(index),
        int(keyring),
        previous.decode("ascii"),
        receipt.decode("ascii"),
        recorded_at.decode("ascii"),
    )


def print_entry(entry: Entry) -> bytes:
    """Return the bytes of an entry; the inverse of `parse_entry`."""
    return (
        f'{{"envelope":"{entry.envelope}","index":{entry.index},"keyring":{entry.keyring},'
        f'"previous":"{entry.previous}","receipt":"{entry.receipt}",'
        f'"recorded_at":"{entry.recorded_at}","schema":"{ENTRY_SCHEMA}"}}'
    ).encode("ascii")
