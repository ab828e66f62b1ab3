"""Consistency files: two signed heads of one ledger, and the proof that the newer one extends the older one.

    {"keyring":[<item>,...],"last":{"entry":{...},"proof":[...]},"new":"<signed note>","old":"<signed note>",
     "proof":["<base64 of 32 bytes>",...],"schema":"receipt-ledger.consistency/v1"}          (one line, no white space)

Keyring and last entry are those of a bundle, their proofs end in the newer head: they say which log key signs which head.
`print_consistency(parse_consistency(b)) == b`.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ledger.bundle import Item, LastEntry, join_hashes, join_items, join_last, parse_hashes, parse_items, parse_last
from ledger.twoheads import TwoHeads

__all__ = ["CONSISTENCY_SCHEMA", "ConsistencyFile", "parse_consistency", "print_consistency"]

CONSISTENCY_SCHEMA: Final = "receipt-ledger.consistency/v1"

_LAYOUT: Final = TwoHeads(
    "consistency",
    "consistency.malformed",
    CONSISTENCY_SCHEMA,
    ("keyring", "last", "new", "old", "proof", "schema"),
    ("new", "old"),
)


@dataclass(frozen=True, slots=True)
class ConsistencyFile:
    """Two signed notes, the consistency proof from `old` to `new` (RFC 9162, 2.1.4), and the keyring and last entry under `new`."""

    old: bytes
    new: bytes
    proof: tuple[bytes, ...]
    keyring: tuple[Item, ...]
    last: LastEntry


def parse_consistency(data: bytes) -> ConsistencyFile:
    """Return the consistency file whose bytes are `data`; nothing in it is verified.

    Raises:
        CanonicalError: not canonical JSON, or larger than 64 MiB.
        FormatError: `consistency.malformed`, or `bundle.malformed` for its keyring and hashes.
    """
    value, new, old = _LAYOUT.parse(data)
    return ConsistencyFile(
        old,
        new,
        parse_hashes(value["proof"], "proof"),
        parse_items(value["keyring"], "keyring"),
        parse_last(value["last"]),
    )


def print_consistency(found: ConsistencyFile) -> bytes:
    """Return the canonical bytes of a consistency file; the inverse of `parse_consistency`.

    Raises:
        FormatError: what the format cannot hold.
    """
    data = b'{"keyring":[%b],%b,%b,"proof":[%b],"schema":"%b"}' % (
        join_items(found.keyring), join_last(found.last), _LAYOUT.print_notes(found.new, found.old), join_hashes(found.proof),
        CONSISTENCY_SCHEMA.encode(),
    )  # fmt: skip
    if parse_consistency(data) != found:
        raise _LAYOUT.malformed("parts that are not canonical")
    return data
