"""A signed head on its own: whose it is, whether the pinned log key signed it, and how it stands to the one remembered.

A head alone brings no keyring, so that only the pinned log key can be asked for; after a rotation of that key a bundle or a
consistency file shows the way to the new one.

Source: docs/spec/heads.md, docs/spec/trust.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ledger.checkpoint import Head, head_of, open_head
from ledger.errors import LedgerError
from ledger.note import parse_note
from verify.memory import Consistency, Relation, open_remembered, reconcile
from verify.options import Options
from verify.pins import trust_used
from verify.report import Coverage, Report, TimeBounds, Verdict
from verify.trust import Trust

__all__ = ["Remembered", "check_cosigned", "check_head", "check_memory", "skip_unsupported", "verify_head"]

Remembered: TypeAlias = Callable[[str], bytes | None]
"""Gives the note remembered for an origin, None where none is."""

_MEMORY_CODES: Final = {
    Relation.FIRST_SEEN: "head.first_seen",
    Relation.SHORTER: "head.shorter",
    Relation.FORKED: "head.forked",
    Relation.UNRECONCILED: "head.unreconciled",
}


def verify_head(
    note: bytes, *, subject: str, trust: Trust | None, remembered: Remembered | None = None, options: Options
) -> Verdict:
    """Return the verdict on a signed note that states a head."""
    report = Report()
    report.expect("heads", "head signatures", "log key", "memory")
    head, remember = check_head(report, note, trust=trust, remembered=remembered, options=options)
    time = check_cosigned(report, note, head, trust=trust, options=options)
    skip_unsupported(report, options, "a head", counter_seals=False)
    report.notes.append("a head alone: it commits to receipts and shows none")
    return Verdict(
        subject,
        report.checks(),
        Coverage(0, 0, 0),
        head,
        trust_used(trust),
        accepted=options.accept,
        notes=tuple(report.notes),
        remember=remember if report.exits() in {0, 3} else None,
        time=time,
    )


def check_head(
    report: Report, note: bytes, *, trust: Trust | None, remembered: Remembered | None, options: Options
) -> tuple[Head | None, bytes | None]:
    """Report on a signed note under the pinned log key; return its head and the note to remember, if that changes."""
    try:
        head = head_of(note)
        parsed = parse_note(note)
    except LedgerError as error:
        # Heads of ours have no extension lines: with them it is a checkpoint of another kind of log.
        code = "subject.unknown" if error.code == "head.extension" else "head.malformed"
        report.find("heads", code, message=str(error))
        return None, None
    report.ran("heads")
    why = "only a head verified under a pinned log key is compared and remembered"
    if all(line.name != head.origin for line in parsed.signatures):
        report.find("head signatures", "head.unsigned", message="no signature bears the name of its origin")
        report.skip("memory", "check.unreachable", why, asked=options.memory)
        return head, None
    pinned = None if trust is None else trust.origins.get(head.origin)
    if pinned is None:
        report.find("log key", "trust.log_key_unpinned", where=f"origin {head.origin}")
        report.skip("head signatures", "check.unreachable", "no key of this origin is known", asked=True)
        report.skip("memory", "check.unreachable", why, asked=options.memory)
        return head, None
    if not _check_signature(report, note, head, pinned.log_key):
        report.skip("memory", "check.unreachable", why, asked=options.memory)
        return head, None
    report.ran("head signatures")
    report.ran("log key")
    memory = None if remembered is None else remembered(head.origin)
    return head, check_memory(report, note, head, log_keys=(pinned.log_key,), memory=memory, options=options)


def _check_signature(report: Report, note: bytes, head: Head, log_key: str) -> bool:
    """Return whether the pinned log key signed a note, after saying what is wrong."""
    try:
        open_head(note, origin=head.origin, log_key=log_key)
    except LedgerError as error:
        if error.code != "note.unsigned":
            code = "head.signature" if error.code == "note.bad_signature" else "head.malformed"
            report.find("head signatures", code, message=str(error))
            return False
        message = f"no signature by {log_key}; if the log key was rotated, a bundle shows the way to the new one"
        report.find("log key", "trust.log_key_mismatch", where=f"origin {head.origin}", message=message)
        report.skip("head signatures", "check.unreachable", "no line is by a known key", asked=True)
        return False
    return True


def check_memory(
    report: Report,
    note: bytes,
    head: Head,
    *,
    log_keys: Sequence[str],
    memory: bytes | None,
    options: Options,
    consistency: Consistency | None = None,
    whole: bool = False,
) -> bytes | None:
    """Report on how a verified head stands to what is remembered; return the note to remember, if that changes."""
    known = None
    if memory is not None:
        known = open_remembered(memory, origin=head.origin, log_keys=log_keys)
        if known is None:
            why = "what is remembered is not a head of this ledger under its log keys"
            report.find("memory", "head.unreconciled", message=why)
            return None
    result = reconcile(note, head, remembered=known, whole=whole, consistency=consistency)
    report.ran("memory")
    if result.relation is Relation.OLDER_UNPROVEN:
        report.find("memory", "head.unreconciled", message=result.message, asked=options.memory)
    code = _MEMORY_CODES.get(result.relation)
    if code is not None:
        if code == "head.first_seen" and options.memory:
            code = "head.unseen"
        report.find("memory", code, message=result.message)
    return result.remember


def check_cosigned(
    report: Report,
    note: bytes,
    head: Head | None,
    *,
    trust: Trust | None,
    options: Options,
    last: int | None = None,
) -> TimeBounds | None:
    """Report on the cosignatures of a note; what counts covers the entry `last`, by default the last one under the head."""
    quorum = 0 if trust is None else trust.quorum
    if not options.counter_seals and (trust is None or not trust.notaries):
        return None
    if head is None:
        report.skip("counter-seals", "check.unreachable", asked=bool(options.counter_seals or quorum))
        return None
    # Whoever pins no notary does not load what judges them.
    from verify.counterseal import Subject, check_counter_seals  # noqa: PLC0415

    span = head.size - 1 if last is None else last
    subject = Subject(head, note, (), {}, -1, span)
    return check_counter_seals(report, (), subject=subject, trust=trust, required=options.counter_seals)


def skip_unsupported(report: Report, options: Options, kind: str, *, counter_seals: bool = True) -> None:
    """Report what was asked for and a file of this kind cannot show; counter-seals where it shows none either."""
    asked = {
        "runs": options.closed,
        "artifacts": options.artifacts,
        "counter-seals": counter_seals and options.counter_seals > 0,
    }
    for name, wanted in asked.items():
        if wanted:
            report.skip(name, "check.unsupported", f"{kind} does not show this", asked=True)
