"""A published tree, judged from its files alone: the signed checkpoint, the hash tiles, the entries.

- Every entry has its layout, the next index, and names the entry before and the keyring entry in force; each receipt id stands once.
- Every hash tile that the checkpoint's size asks for is made again from the entries, up to the root, and compared byte for byte.
- The checkpoint is signed by the pinned log key and agrees with memory.
- No receipts are there: schemas, seals, receipt trees and issuers are not looked at, and the verdict says so. Where a key entry
  stands in the chain, nothing here says whether it replaced the log key: that cannot be established from the tree.

Memory is flat: the last hashes of each level, and eight bytes a receipt id.

Source: docs/spec/published.md.
"""

from __future__ import annotations

import re
from typing import Final

from ledger.checkpoint import Head, head_of, open_head
from ledger.errors import LedgerError, SignatureError, UnknownFormatError
from ledger.note import parse_note
from verify.headfile import check_cosigned
from verify.memory import Relation, open_remembered, reconcile
from verify.options import Options
from verify.pins import trust_used
from verify.report import Coverage, Report, Verdict
from verify.tiles import Read, TreeFold, bundles
from verify.trust import Trust

__all__ = ["Read", "verify_published"]

_NAMES: Final = ("checkpoint", "tiles", "chain", "ids", "keyring", "head signatures", "log key", "memory")
_NOT_HERE: Final = ("receipts", "seals", "trees", "issuers")
_MEMORY_CODES: Final = {
    Relation.FIRST_SEEN: "head.first_seen",
    Relation.SHORTER: "head.shorter",
    Relation.FORKED: "head.forked",
    Relation.UNRECONCILED: "head.unreconciled",
}
_RECEIPT = re.compile(rb'"receipt":"sha256:([0-9a-f]{64})","recorded_at":"')


def verify_published(
    read: Read,
    *,
    trust: Trust | None,
    memory: bytes | None = None,
    options: Options = Options(),  # noqa: B008  frozen
    subject: str = "published tree",
) -> Verdict:
    """Return the verdict on a published tree.

    Args:
        read: gives the tree's files.
        trust: whom to believe, None for nobody.
        memory: the note remembered for this origin, None where none is.
        options: what is asked for.
        subject: what the verdict calls the tree.
    """
    report = Report()
    report.expect(*_NAMES)
    for name in _NOT_HERE:
        report.skip(name, "check.not_asked", "a published tree holds no receipts", asked=False)
    report.notes.append(
        "a published tree holds no receipts: schemas, seals, receipt trees and issuers were not looked at"
    )
    head, note, remember, fold = None, _checkpoint(read, report), None, None
    if note is not None:
        head = head_of(note)
        fold = TreeFold(read, report, head, watch=_size_of(memory))
        whole = fold.run()
        _check_ids(read, report, fold)
        established = _check_log(report, trust, note, head, fold)
        if established and whole:
            remember = _check_memory(report, note, head, fold, memory, trust, options)
        else:
            why = "only a head verified under a pinned log key is compared and remembered"
            report.skip("memory", "check.unreachable", why, asked=options.memory)
    seen = 0 if fold is None else fold.size
    if seen == 0:
        report.find("coverage", "coverage.empty")
    rooted = head if fold is not None and fold.rooted else None
    time = check_cosigned(report, note or b"", rooted, trust=trust, options=options)
    _refuse_more(report, options)
    return Verdict(
        subject,
        report.checks(),
        Coverage(0, seen, seen),
        rooted,
        trust_used(trust),
        accepted=options.accept,
        notes=tuple(report.notes),
        remember=remember if report.exits() in {0, 3, 6} else None,
        time=time,
    )


def _checkpoint(read: Read, report: Report) -> bytes | None:
    """Return the checkpoint, None where it is not there or states no head."""
    try:
        note = read("checkpoint")
        if note is None:
            report.find("checkpoint", "head.missing", where="checkpoint")
            return None
        head_of(note)
    except LedgerError as error:
        report.find("checkpoint", "head.malformed", where="checkpoint", message=str(error))
        return None
    return note


def _size_of(memory: bytes | None) -> int | None:
    if memory is None:
        return None
    try:
        return head_of(memory).size
    except LedgerError:
        return None


def _check_ids(read: Read, report: Report, fold: TreeFold) -> None:
    """Report receipts that stand in the tree more than once."""
    suspects = fold.ids.suspects()
    if not suspects:
        return
    seen: dict[bytes, int] = {}
    again = Report()
    index = 0
    for entries in bundles(read, fold.size, again):
        for entry in entries:
            match = _RECEIPT.search(entry)
            id_ = b"" if match is None else bytes.fromhex(match[1].decode("ascii"))
            if id_[:8] in suspects:
                first = seen.setdefault(id_, index)
                if first != index:
                    message = f"receipt sha256:{id_.hex()} stands at entry {first} already"
                    report.find("ids", "receipt.repeated", where=f"entry {index}", message=message)
            index += 1
    if index < fold.size:
        report.skip("ids", "check.unreachable", "two ids begin alike and the files cannot be read again", asked=True)


def _check_log(report: Report, trust: Trust | None, note: bytes, head: Head, fold: TreeFold) -> bool:
    """Report on the signature of the checkpoint by the pinned log key; return whether it and the key's force are established."""
    where = f"origin {head.origin}"
    pinned = None if trust is None else trust.origins.get(head.origin)
    if trust is None or pinned is None:
        if _names_origin(note, head.origin):
            report.skip("head signatures", "check.unreachable", "no log key is pinned for this origin", asked=True)
        else:
            report.find("head signatures", "head.unsigned", where="checkpoint")
        report.skip("keyring", "check.unreachable", "no log key is pinned for this origin", asked=True)
        for key, (role, name) in () if trust is None else trust.roles.items():
            if _signed_by(note, head.origin, key):
                message = f"its log key is pinned for {role} {name}"
                report.find("log key", "trust.log_key_mismatch", where=where, message=message)
                return False
        message = "a published tree does not hold its log key: ask the ledger's owner for it"
        report.find("log key", "trust.log_key_unpinned", where=where, message=message)
        return False
    if pinned.header is not None and fold.header and pinned.header != fold.header:
        message = f"got {fold.header}, expected {pinned.header}"
        report.find("log key", "trust.header_mismatch", where=where, message=message)
        return False
    report.ran("log key")
    moved = fold.keyring > 0
    if moved:
        message = f"a key entry stands at entry {fold.keyring}: its receipt, not in the tree, says whether the log key was replaced"
        report.skip("keyring", "check.unreachable", message, asked=True)
    else:
        report.ran("keyring")
    try:
        open_head(note, origin=head.origin, log_key=pinned.log_key)
    except UnknownFormatError as error:
        report.find("head signatures", "format.unknown", where="checkpoint", message=str(error))
        return False
    except SignatureError as error:
        _refuse_signature(report, note, head.origin, error, moved=moved)
        return False
    except LedgerError as error:
        report.find("head signatures", "head.malformed", where="checkpoint", message=str(error))
        return False
    report.ran("head signatures")
    return not moved


def _refuse_signature(report: Report, note: bytes, origin: str, error: SignatureError, *, moved: bool) -> None:
    if error.code != "note.unsigned":
        report.find("head signatures", "head.signature", where="checkpoint", message=str(error))
    elif moved:
        report.skip("head signatures", "check.unreachable", "it is not signed by the pinned log key", asked=True)
    elif _names_origin(note, origin):
        message = "the checkpoint is signed under this origin by another key"
        report.find("log key", "trust.log_key_mismatch", where=f"origin {origin}", message=message)
        report.skip("head signatures", "check.unreachable", "no line by the pinned log key", asked=True)
    else:
        report.find("head signatures", "head.unsigned", where="checkpoint", message=str(error))


def _names_origin(note: bytes, origin: str) -> bool:
    """Return whether a line of the note bears the log's own name."""
    return any(line.name == origin for line in parse_note(note).signatures)


def _signed_by(note: bytes, origin: str, key: str) -> bool:
    try:
        open_head(note, origin=origin, log_key=key)
    except LedgerError:
        return False
    return True


def _check_memory(
    report: Report,
    note: bytes,
    head: Head,
    fold: TreeFold,
    memory: bytes | None,
    trust: Trust | None,
    options: Options,
) -> bytes | None:
    """Report on agreement with memory; return the note to remember, if it changes."""
    pinned = None if trust is None else trust.origins.get(head.origin)
    if pinned is None:
        return None
    remembered = None
    if memory is not None:
        remembered = open_remembered(memory, origin=head.origin, log_keys=(pinned.log_key,))
        if remembered is None:
            why = "what is remembered is not a head of this ledger under its pinned log key"
            report.find("memory", "head.unreconciled", message=why)
            return None
    result = reconcile(note, head, remembered=remembered, whole=True, prefix_root=fold.watched_root)
    report.ran("memory")
    code = _MEMORY_CODES.get(result.relation)
    if code is not None:
        if code == "head.first_seen" and options.memory:
            code = "head.unseen"
        report.find("memory", code, message=result.message)
    return result.remember


def _refuse_more(report: Report, options: Options) -> None:
    """Say of what was asked for besides that a published tree cannot show it."""
    if options.closed:
        report.skip("runs", "check.unsupported", "a published tree holds no receipts", asked=True)
    if options.every_head:
        report.skip("heads", "check.unsupported", "a published tree holds its newest head only", asked=True)
    if options.artifacts:
        report.skip("artifacts", "check.unsupported", "a published tree holds no artifacts", asked=True)
