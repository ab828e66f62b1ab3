"""A ledger that says to continue an older one, compared with that one.

The header's `continues {origin, size, root}` is the owner's word, sealed. With the older ledger at hand it is checked: the same
origin, and the root of its first `size` entries. What the older one held beyond that is not continued.

Source: docs/spec/journal.md, "Restore".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ledger.digest import print_digest
from ledger.errors import clip
from ledger.members import Continues
from verify.report import Check, Verdict

__all__ = ["check_continues"]

_NAME: Final = "continues"
_HEAD_CODES: Final = frozenset({"head.shorter", "head.first_seen", "head.unseen"})


def check_continues(verdict: Verdict, continues: Continues | None, *, older: Verdict, root: bytes | None) -> Verdict:
    """Return a verdict on the newer ledger that says whether it continues the older one.

    Args:
        verdict: on the newer ledger.
        continues: what its header says, None where it says nothing.
        older: the verdict on the older ledger. Being shorter than remembered does not stand in the way: it was restored.
        root: the root of the older ledger's first `continues.size` entries, None where it has fewer.
    """
    return replace(verdict, checks=(*verdict.checks, _check(verdict, continues, older, root)))


def _check(verdict: Verdict, continues: Continues | None, older: Verdict, root: bytes | None) -> Check:
    if verdict.exit == 1:
        return _unreachable("this ledger does not hold, so its header says nothing")
    if continues is None:
        return _failed("its header names no older ledger")
    if any(check.exit in {1, 4, 5} and check.code not in _HEAD_CODES for check in older.checks) or older.head is None:
        return _unreachable("the older ledger does not hold: see its own verdict")
    said = f"{clip(continues.origin)} at size {continues.size}"
    if older.head.origin != continues.origin:
        return _failed(f"it continues {said}, the older ledger is {clip(older.head.origin)}")
    if root is None:
        return _failed(f"it continues {said}, the older ledger has {older.head.size} entries")
    if print_digest(root) != continues.root:
        return _failed(f"it continues {said} with another root")
    return Check(_NAME, "ok")


def _failed(message: str) -> Check:
    return Check(_NAME, "failed", "continues.mismatch", None, message)


def _unreachable(message: str) -> Check:
    return Check(_NAME, "not_checked", "check.unreachable", None, message, 0)
