"""Equivocation files: two signed heads of one origin that no history can both have, and what shows it.

    {"keyring":[<item>,...],"newer":"<signed note>","older":"<signed note>","path":["<base64 of 32 bytes>",...],
     "schema":"receipt-ledger.equivocation/v1"}                          (one line, no white space)

`older` is not larger than `newer`. Of equal size, the two roots differ and the path is empty. Else the path is the consistency
proof between the two sizes in the tree of `newer`, with its first node always present: it recomputes the root of `newer`, and
for the smaller size another root than the one that `older` states. The keyring is that of a bundle, its proofs end in `newer`.

`print_equivocation(parse_equivocation(b)) == b`.

Source: docs/spec/trust.md, "Equivocation".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.bundle import Item, join_items, parse_hashes, parse_items
from ledger.errors import FormatError, clip
from ledger.keys import print_base64

__all__ = ["EQUIVOCATION_SCHEMA", "Equivocation", "parse_equivocation", "print_equivocation"]

EQUIVOCATION_SCHEMA: Final = "receipt-ledger.equivocation/v1"

_MAX_BYTES: Final = 64 << 20
_MEMBERS: Final = frozenset({"keyring", "newer", "older", "path", "schema"})


@dataclass(frozen=True, slots=True)
class Equivocation:
    """Two signed notes, the path from the size of `older` to that of `newer`, and the keyring up to `newer`."""

    older: bytes
    newer: bytes
    path: tuple[bytes, ...]
    keyring: tuple[Item, ...]


def parse_equivocation(data: bytes) -> Equivocation:
    """Return the equivocation file whose bytes are `data`; nothing in it is verified.

    Raises:
        CanonicalError: not canonical JSON, or larger than 64 MiB.
        FormatError: `equivocation.malformed`, or `bundle.malformed` for its keyring and hashes.
    """
    value = canonical.decode(data, max_bytes=_MAX_BYTES)
    older, newer = value.get("older"), value.get("newer")
    if (
        value.keys() != _MEMBERS
        or value["schema"] != EQUIVOCATION_SCHEMA
        or not isinstance(older, str)
        or not isinstance(newer, str)
    ):
        raise FormatError(
            f"equivocation: got members {clip(sorted(value))}, expected keyring, newer, older, path and schema",
            code="equivocation.malformed",
        )
    return Equivocation(
        older.encode("utf-8"),
        newer.encode("utf-8"),
        parse_hashes(value["path"], "path"),
        parse_items(value["keyring"], "keyring"),
    )


def print_equivocation(found: Equivocation) -> bytes:
    """Return the canonical bytes of an equivocation file; the inverse of `parse_equivocation`.

    Raises:
        FormatError: what the format cannot hold.
    """
    try:
        notes = canonical.encode({"newer": found.newer.decode("utf-8"), "older": found.older.decode("utf-8")})
    except UnicodeDecodeError as error:
        raise FormatError("equivocation: got a note that is not UTF-8", code="equivocation.malformed") from error
    path = ",".join(f'"{print_base64(each)}"' for each in found.path)
    tail = f'"path":[{path}],"schema":"{EQUIVOCATION_SCHEMA}"'.encode("ascii")
    data = b'{"keyring":[%b],%b,%b}' % (join_items(found.keyring), notes[1:-1], tail)
    if parse_equivocation(data) != found:
        raise FormatError("equivocation: got parts that are not canonical", code="equivocation.malformed")
    return data
