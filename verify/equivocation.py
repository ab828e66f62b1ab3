"""An equivocation file: whether it shows, to anybody who pinned the origin, that two histories of it were signed.

- Both notes must be valid under log keys of one origin, which the keyring leads to from the pinned one.
- A path must recompute the root of the newer head and show another root at the older size than the older head states.
- What shows that is `head.forked`, exit 1: the origin's evidence does not hold, whichever of the two histories is at hand.
- A note of a revoked log key, at or after the index from which it is believed no longer, accuses nobody: `key.revoked`.
- Two signed heads that nothing joins, and notes of unknown keys, are unreconciled: nobody is accused.

Source: docs/spec/trust.md, "Equivocation".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledger.bundle import Item
from ledger.checkpoint import Head, head_of, open_head
from ledger.digest import digest
from ledger.entry import Entry, parse_entry
from ledger.envelope import parse_envelope, verify_seal
from ledger.equivocation import EQUIVOCATION_SCHEMA, Equivocation, parse_equivocation
from ledger.errors import LedgerError, SignatureError, UnknownFormatError
from ledger.receipt import Header, Key, Receipt, parse_receipt
from verify.headfile import skip_unsupported
from verify.keyring import Keyring, header_problem
from verify.memory import proven_prefix
from verify.options import Options
from verify.pins import check_log, trust_used
from verify.proof import leaf_hash, verify_inclusion
from verify.report import Coverage, Report, Verdict
from verify.trust import Trust

__all__ = ["is_equivocation", "verify_equivocation"]

_MARK: Final = f'"schema":"{EQUIVOCATION_SCHEMA}"'.encode("ascii")
_NAMES: Final = ("subject", "heads", "keyring", "log key", "head signatures", "equivocation")


def is_equivocation(data: bytes) -> bool:
    """Return whether a file is to be judged as an equivocation file of ours."""
    return data.startswith(b"{") and data.rstrip().endswith(_MARK + b"}")


def verify_equivocation(
    data: bytes,
    *,
    trust: Trust | None,
    subject: str,
    options: Options = Options(),  # noqa: B008  frozen
) -> Verdict:
    """Return the verdict on the bytes of an equivocation file: `head.forked` where it shows what it says."""
    report = Report()
    report.expect(*_NAMES)
    found: Equivocation | None = None
    heads: tuple[Head, Head] | None = None
    try:
        found = parse_equivocation(data)
    except LedgerError as error:
        report.find("subject", "proof.malformed", message=str(error))
    else:
        report.ran("subject")
        heads = _read_heads(report, found)
    if found is not None and heads is not None:
        _judge(report, found, heads, trust)
    skip_unsupported(report, options, "an equivocation file")
    return Verdict(
        subject,
        report.checks(),
        Coverage(0, 0, 0),
        None if heads is None else heads[1],
        trust_used(trust),
        accepted=options.accept,
        notes=tuple(report.notes),
    )


def _read_heads(report: Report, found: Equivocation) -> tuple[Head, Head] | None:
    try:
        older, newer = head_of(found.older), head_of(found.newer)
    except LedgerError as error:
        report.find("heads", "head.malformed", message=str(error))
        return None
    if older.origin != newer.origin:
        report.find("heads", "head.origin", message="the two heads are of two origins")
        return None
    if not 1 <= older.size <= newer.size:
        report.find("heads", "proof.malformed", message=f"got an older head of size {older.size} and {newer.size}")
        return None
    report.ran("heads", 2)
    return older, newer


def _judge(report: Report, found: Equivocation, heads: tuple[Head, Head], trust: Trust | None) -> None:
    older, newer = heads
    keyring = _follow(report, found.keyring, newer)
    if keyring is None:
        return
    if keyring.origin != newer.origin:
        report.find("keyring", "head.origin", message="the keyring is of another origin than the heads")
        return
    pinned = check_log(report, trust, keyring)
    signed = [
        _check_signature(report, name, note, head, keyring)
        for name, note, head in (("older", found.older, older), ("newer", found.newer, newer))
    ]
    if not all(signed):
        report.skip("equivocation", "check.unreachable", "both heads must be signed by this origin", asked=True)
        return
    report.ran("head signatures", 2)
    shown = _shown(report, older, newer, found.path)
    if shown is None:
        return
    if not pinned:
        why = f"{shown}: it accuses nobody as long as the keys are not shown to be this origin's"
        report.skip("equivocation", "check.unreachable", why, asked=True)
        return
    report.find("equivocation", "head.forked", where=f"origin {newer.origin}", message=shown)
    report.notes.append("two histories were signed by log keys of this origin: by its owner, or by whoever held a key")


def _shown(report: Report, older: Head, newer: Head, path: Sequence[bytes]) -> str | None:
    """Return what the roots and the path show, None after saying that they show no equivocation."""
    if older.size == newer.size:
        if path or older.root == newer.root:
            report.find(
                "equivocation", "proof.consistency", message="the two heads are one, or a path joins equal sizes"
            )
            return None
        return f"two signed heads of size {newer.size} have different roots"
    if not path:
        report.find("equivocation", "head.unreconciled", message="no path: nothing shows how the two heads stand")
        return None
    prefix = proven_prefix(older.size, newer.size, newer.root, path)
    if prefix is None:
        report.find("equivocation", "proof.consistency", message="the path does not lead to the root of the newer head")
        return None
    if prefix == older.root:
        report.find("equivocation", "proof.consistency", message="the newer head begins with the older one: no fork")
        return None
    return f"the signed head of size {newer.size} does not begin with the signed head of size {older.size}"


def _check_signature(report: Report, name: str, note: bytes, head: Head, keyring: Keyring) -> bool:
    """Return whether a log key of the origin, not revoked at the head's place, signed a note; say so where none did."""
    revoked = False
    for key in keyring.log_keys:
        try:
            open_head(note, origin=keyring.origin, log_key=key)
        except UnknownFormatError:
            continue
        except LedgerError as error:
            if error.code == "note.unsigned":
                continue
            code = "head.signature" if error.code == "note.bad_signature" else "head.malformed"
            report.find("head signatures", code, where=name, message=str(error))
            return False
        if keyring.judge(key, head.size - 1) != "key.revoked":
            return True
        revoked = True
    if revoked:
        message = f"size {head.size}: its log key was revoked from an earlier index"
        report.find("head signatures", "key.revoked", where=name, message=message)
    else:
        message = "no line by a log key of this origin"
        report.find("head signatures", "head.unreconciled", where=name, message=message)
    return False


def _follow(report: Report, items: Sequence[Item], head: Head) -> Keyring | None:
    """Return the keys in force under the newer head, None after saying where the keyring does not hold."""
    keyring: Keyring | None = None
    before = 0
    for number, item in enumerate(items):
        try:
            entry, receipt = _read_item(item, head)
            keyring = _take(keyring, entry, receipt, before)
        except LedgerError as error:
            code = "format.unknown" if isinstance(error, UnknownFormatError) else error.code
            report.find("keyring", code, where=f"item {number}", message=str(error))
            return None
        before = entry.index
    if keyring is None:
        report.find("keyring", "chain.first_entry", message="there is no header")
        return None
    report.ran("keyring", len(items))
    return keyring


def _read_item(item: Item, head: Head) -> tuple[Entry, Receipt]:
    """Return an entry that stands under the head, and its receipt, sealed by its issuer."""
    try:
        entry = parse_entry(item.entry)
        envelope = parse_envelope(item.envelope)
        receipt = parse_receipt(envelope.payload)
    except UnknownFormatError:
        raise
    except LedgerError as error:
        raise LedgerError(str(error), code="entry.malformed") from error
    if digest(item.envelope) != entry.envelope:
        raise LedgerError("the envelope is not the one that the entry names", code="entry.envelope_digest")
    if envelope.receipt_id != entry.receipt:
        raise LedgerError("the receipt is not the one that the entry names", code="entry.receipt_id")
    verify_inclusion(leaf=leaf_hash(item.entry), index=entry.index, size=head.size, proof=item.proof, root=head.root)
    if envelope.seal is None or envelope.seal.key != receipt.issuer.key:
        raise LedgerError(f"entry {entry.index} is not sealed by its issuer", code="seal.issuer")
    try:
        verify_seal(envelope)
    except SignatureError as error:
        raise LedgerError(str(error), code="seal.invalid") from error
    return entry, receipt


def _take(keyring: Keyring | None, entry: Entry, receipt: Receipt, before: int) -> Keyring:
    """Return the keyring moved by one of its entries."""
    if keyring is None:
        if entry.index != 0 or not isinstance(receipt, Header):
            raise LedgerError(f"got {receipt.kind} at entry {entry.index}", code="chain.first_entry")
        problem = header_problem(receipt)
        if problem is not None:
            raise LedgerError(problem[1], code=problem[0])
        return Keyring.start(receipt, entry.receipt)
    if entry.index <= before or entry.keyring != before or not isinstance(receipt, Key):
        raise LedgerError(f"got {receipt.kind} at entry {entry.index} after entry {before}", code="chain.keyring")
    spoken = keyring.take(receipt, entry.index)
    if spoken is not None:
        raise LedgerError(spoken, code="key.chain")
    return keyring
