"""Memory: how a head agrees with the newest one seen before, and what to remember next.

- Memory holds one note for each origin, verified under a pinned log key; nothing else is ever remembered.
- It only grows: a shorter, forked or unreconciled head never replaces what is remembered.
- A ledger shorter than remembered does not hold, whether it was cut or is an old copy: the bytes cannot say which.
- A bundle's older head is fine; of equal size it must be equal.
- A fork is said only of two signed heads of which one provably does not begin with the other. Else: unreconciled.

Source: docs/spec/heads.md, "Memory".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TypeAlias

from ledger.checkpoint import Head, open_head
from ledger.errors import LedgerError
from verify.errors import ProofError
from verify.proof import verify_consistency

__all__ = ["Consistency", "Memory", "Relation", "open_remembered", "proven_prefix", "reconcile"]

Consistency: TypeAlias = Callable[[int, int], Sequence[bytes]]
"""Gives the consistency proof from an older size to a newer one, with or without its first node where that is the old root."""


class Relation(StrEnum):
    """How a head stands to the remembered one."""

    FIRST_SEEN = "first_seen"
    SAME = "same"
    EXTENDS = "extends"
    OLDER = "older"
    """A bundle's head, proven to be a beginning of the remembered one."""
    OLDER_UNPROVEN = "older_unproven"
    """A bundle's head, smaller than the remembered one, with no proof that joins them."""
    SHORTER = "shorter"
    FORKED = "forked"
    UNRECONCILED = "unreconciled"


@dataclass(frozen=True, slots=True)
class Memory:
    """The relation, and the note to remember from now on; `remember` is None where memory stays as it is."""

    relation: Relation
    message: str
    remember: bytes | None = None


def open_remembered(note: bytes, *, origin: str, log_keys: Sequence[str]) -> Head | None:
    """Return the head of a remembered note, None if none of `log_keys` (key ids) of `origin` signed it."""
    for key in log_keys:
        try:
            return open_head(note, origin=origin, log_key=key)
        except LedgerError:
            continue
    return None


def reconcile(
    note: bytes,
    head: Head,
    *,
    remembered: Head | None,
    whole: bool,
    prefix_root: bytes | None = None,
    consistency: Consistency | None = None,
) -> Memory:
    """Return how `head` stands to `remembered`; both are verified heads of one origin.

    Args:
        note: the signed note of `head`.
        head: the head under judgement.
        remembered: the newest head seen before, if any.
        whole: whether the subject is the whole ledger, which must not be shorter than remembered.
        prefix_root: the root recomputed from the entries under `head` at the size of `remembered`, where they are at hand.
        consistency: gives consistency proofs, where something can.
    """
    if remembered is None:
        return Memory(Relation.FIRST_SEEN, "no head of this ledger was remembered", note)
    sizes = f"{head.size} entries, remembered {remembered.size}"
    if remembered.size == head.size:
        if remembered.root == head.root:
            return Memory(Relation.SAME, sizes)
        return Memory(Relation.FORKED, f"two signed heads of size {head.size} have different roots")
    if remembered.size < head.size:
        return _newer(note, head, remembered, sizes, prefix_root, consistency)
    joined = _join(head, remembered, consistency)
    if joined is False:
        return Memory(Relation.FORKED, f"{sizes}: the remembered head does not begin with this one")
    if whole:
        known = "it is a beginning of what was seen" if joined else "no proof tells a cut from another history"
        return Memory(Relation.SHORTER, f"{sizes}: {known}")
    if joined:
        return Memory(Relation.OLDER, sizes)
    return Memory(Relation.OLDER_UNPROVEN, f"{sizes}: no proof joins the two heads")


def _newer(
    note: bytes,
    head: Head,
    remembered: Head,
    sizes: str,
    prefix_root: bytes | None,
    consistency: Consistency | None,
) -> Memory:
    # The entries under a verified root are the strongest evidence: every tree of them has one prefix.
    joined = prefix_root == remembered.root if prefix_root is not None else _join(remembered, head, consistency)
    if remembered.size == 0:
        joined = True
    if joined:
        return Memory(Relation.EXTENDS, sizes, note)
    if joined is False:
        return Memory(Relation.FORKED, f"{sizes}: this head does not begin with the remembered one")
    return Memory(Relation.UNRECONCILED, f"{sizes}: no proof joins the two heads")


def proven_prefix(old_size: int, new_size: int, new_root: bytes, path: Sequence[bytes]) -> bytes | None:
    """Return the root at `old_size` that a path in constructive form shows under `new_root`, None where it shows none.

    The form is the consistency proof of RFC 9162, 2.1.4, with its first node always present.
    """
    if not 1 <= old_size < new_size or not path or any(len(found) != 32 for found in path):
        return None
    if old_size & (old_size - 1) == 0:
        prefix, proof = path[0], tuple(path[1:])
    else:
        found = _prefix_root(old_size, new_size, path)
        if found is None:
            return None
        prefix, proof = found, tuple(path)
    try:
        verify_consistency(old_size=old_size, old_root=prefix, new_size=new_size, new_root=new_root, proof=proof)
    except ProofError:
        return None
    return prefix


def _join(old: Head, new: Head, consistency: Consistency | None) -> bool | None:
    """Return True if proven consistent, False if proven not to be, None if nothing is proven."""
    if consistency is None or old.size == 0:
        return None
    try:
        proof = tuple(consistency(old.size, new.size))
    except LedgerError:
        return None
    try:
        verify_consistency(old_size=old.size, old_root=old.root, new_size=new.size, new_root=new.root, proof=proof)
    except ProofError:
        prefix = proven_prefix(old.size, new.size, new.root, proof)
        return None if prefix is None else prefix == old.root
    return True


def _prefix_root(old: int, new: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root at size `old`, not a power of two, that a consistency proof leads to."""
    number, last = old - 1, new - 1
    while number & 1:
        number >>= 1
        last >>= 1
    running = proof[0]
    for sibling in proof[1:]:
        if last == 0:
            return None
        if number & 1 or number == last:
            running = sha256(b"\x01" + sibling + running).digest()
            while number and not number & 1:
                number >>= 1
                last >>= 1
        number >>= 1
        last >>= 1
    return running
