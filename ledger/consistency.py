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

from ledger import canonical
from ledger.bundle import Item, LastEntry, join_hashes, join_items, join_last, parse_hashes, parse_items, parse_last
from ledger.errors import FormatError, clip

__all__ = ["CONSISTENCY_SCHEMA", "ConsistencyFile", "parse_consistency", "print_consistency"]

CONSISTENCY_SCHEMA: Final = "receipt-ledger.consistency/v1"

_MAX_BYTES: Final = 64 << 20
_MEMBERS: Final = frozenset({"keyring", "last", "new", "old", "proof", "schema"})


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
    value = canonical.decode(data, max_bytes=_MAX_BYTES)
    old, new = value.get("old"), value.get("new")
    if (
        value.keys() != _MEMBERS
        or value["schema"] != CONSISTENCY_SCHEMA
        or not isinstance(old, str)
        or not isinstance(new, str)
    ):
        raise FormatError(
            f"consistency: got members {clip(sorted(value))}, expected keyring, last, new, old, proof and schema",
            code="consistency.malformed",
        )
    return ConsistencyFile(
        old.encode("utf-8"),
        new.encode("utf-8"),
        parse_hashes(value["proof"], "proof"),
        parse_items(value["keyring"], "keyring"),
        parse_last(value["last"]),
    )


def print_consistency(found: ConsistencyFile) -> bytes:
    """Return the canonical bytes of a consistency file; the inverse of `parse_consistency`.

    Raises:
        FormatError: what the format cannot hold.
    """
    try:
        notes = canonical.encode({"new": found.new.decode("utf-8"), "old": found.old.decode("utf-8")})
    except UnicodeDecodeError as error:
        raise FormatError("consistency: got a note that is not UTF-8", code="consistency.malformed") from error
    data = b'{"keyring":[%b],%b,%b,"proof":[%b],"schema":"%b"}' % (
        join_items(found.keyring), join_last(found.last), notes[1:-1], join_hashes(found.proof), CONSISTENCY_SCHEMA.encode()
    )  # fmt: skip
    if parse_consistency(data) != found:
        raise FormatError("consistency: got parts that are not canonical", code="consistency.malformed")
    return data
