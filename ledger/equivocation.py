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

from ledger.bundle import Item, join_hashes, join_items, parse_hashes, parse_items
from ledger.twoheads import TwoHeads

__all__ = ["EQUIVOCATION_SCHEMA", "Equivocation", "parse_equivocation", "print_equivocation"]

EQUIVOCATION_SCHEMA: Final = "receipt-ledger.equivocation/v1"

_LAYOUT: Final = TwoHeads(
    "equivocation",
    "equivocation.malformed",
    EQUIVOCATION_SCHEMA,
    ("keyring", "newer", "older", "path", "schema"),
    ("newer", "older"),
)


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
    value, newer, older = _LAYOUT.parse(data)
    return Equivocation(
        older,
        newer,
        parse_hashes(value["path"], "path"),
        parse_items(value["keyring"], "keyring"),
    )


def print_equivocation(found: Equivocation) -> bytes:
    """Return the canonical bytes of an equivocation file; the inverse of `parse_equivocation`.

    Raises:
        FormatError: what the format cannot hold.
    """
    data = b'{"keyring":[%b],%b,"path":[%b],"schema":"%b"}' % (
        join_items(found.keyring), _LAYOUT.print_notes(found.newer, found.older), join_hashes(found.path),
        EQUIVOCATION_SCHEMA.encode(),
    )  # fmt: skip
    if parse_equivocation(data) != found:
        raise _LAYOUT.malformed("parts that are not canonical")
    return data
