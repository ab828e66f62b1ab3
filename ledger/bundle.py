"""Bundles: everything needed to judge one receipt without the ledger it came from.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bundle", "Item"]


@dataclass(frozen=True, slots=True)
class Item:
    """One entry with its envelope and its inclusion proof (hashes of 32 bytes, the leaf's sibling first)."""

    entry: bytes
    envelope: bytes
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Evidence for one receipt.

    `items` are sorted by index and hold the subject, the tree below it, the path from it up to the nearest sealed receipt,
    and the opening of its run. `keyring` is the chain of header and key entries up to the checkpoint. `checkpoint` is the
    signed note that all proofs end in.
    """

    subject: str
    items: tuple[Item, ...]
    keyring: tuple[Item, ...]
    checkpoint: bytes
