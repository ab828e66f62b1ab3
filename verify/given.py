"""Heads given by somebody else: a ledger must contain each of them, as it must contain the one remembered.

They are compared and not remembered: memory only grows by a head that a proof joins to it, which is the ledger's own.

Source: docs/spec/trust.md, "Memory".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledger.checkpoint import Head
from verify.memory import Consistency, Relation, open_remembered, reconcile
from verify.report import Report

__all__ = ["GIVEN", "check_given"]

GIVEN: Final = "given heads"
_CODES: Final = {
    Relation.SHORTER: "head.shorter",
    Relation.FORKED: "head.forked",
    Relation.UNRECONCILED: "head.unreconciled",
}


def check_given(
    report: Report,
    given: Sequence[bytes],
    *,
    head: Head | None,
    log_keys: Sequence[str],
    consistency: Consistency | None,
) -> None:
    """Report on each given note against the verified head of a whole ledger, None where no head earned that.

    Args:
        report: takes the findings, under the name `given heads`.
        given: signed notes.
        head: the ledger's head, verified under the pinned log key.
        log_keys: all log keys of the ledger so far.
        consistency: gives proofs between sizes of this ledger, where something can.
    """
    if given and head is None:
        report.skip(GIVEN, "check.unreachable", "only a head verified under a pinned log key is compared", asked=True)
        return
    for number, note in enumerate(given):
        where = f"head {number + 1}"
        assert head is not None  # noqa: S101  told above
        other = open_remembered(note, origin=head.origin, log_keys=log_keys)
        if other is None:
            message = "it is no head of this ledger under its log keys"
            report.find(GIVEN, "head.unreconciled", where=where, message=message)
            continue
        # What the ledger would be remembered by is not asked here, so that its own note is not needed.
        result = reconcile(b"", head, remembered=other, whole=True, consistency=consistency)
        report.ran(GIVEN)
        code = _CODES.get(result.relation)
        if code is not None:
            message = result.message.replace("remembered", "given")
            report.find(GIVEN, code, where=where, message=message)
