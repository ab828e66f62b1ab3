"""Artifacts: those that a bundle carries, checked against their digests, and those that are stored beside a ledger at hand.

An artifact that is carried is always checked. That every one is there which the receipts refer to is checked where it is asked
for; one that an `erasure` at hand names is erased, which costs no proof. Run salts are neither carried nor asked for: they are
keys, with which guesses of other artifacts could be confirmed.

Of artifacts that are stored, whoever calls says what is there: whole, absent, altered or unreadable. Absent bytes are erased where an
`erasure` names them; whole ones remain where an `erasure` names them and no receipt that refers to them follows it.

Source: docs/spec/bundles.md, docs/spec/artifacts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ledger.bundle import CarriedArtifact
from ledger.digest import digest
from ledger.errors import LedgerError
from ledger.members import Artifact
from ledger.receipt import Erasure, Import, Opening, Receipt, parse_receipt
from verify.report import Report

__all__ = ["StoredLook", "check_artifacts", "check_stored", "erasures_at", "references_of"]

StoredLook: TypeAlias = Callable[[str], tuple[str, int]]
"""Returns of a digest `whole`, `absent`, `altered` or `unreadable`, and how many stored bytes are whole."""

_RUN_SALT = "run-salt"
_SALT_BYTES = 32
_CODES = {"absent": "artifact.absent", "altered": "artifact.altered", "unreadable": "artifact.unreadable"}


def check_artifacts(
    report: Report,
    carried: Sequence[CarriedArtifact],
    *,
    payloads: Iterable[tuple[int, bytes]],
    erasures: Iterable[tuple[int, bytes]],
    asked: bool,
) -> None:
    """Report on artifacts.

    Args:
        report: takes the findings.
        carried: the artifacts in the bundle.
        payloads: index and payload of each receipt whose artifacts belong to the subject.
        erasures: index and payload of the `erasure` receipts at hand whose seals hold.
        asked: whether every artifact has to be there.
    """
    if not carried and not asked:
        return
    report.ran("artifacts", 0)
    held = {}
    for each in carried:
        if digest(each.data) == each.digest:
            report.ran("artifacts")
            held[each.digest] = len(each.data)
        else:
            report.find("artifacts", "artifact.altered", where=each.digest)
    altered = {each.digest for each in carried} - held.keys()
    erased_at = erasures_at(erasures)
    named: set[str] = set()
    for index, reference in references_of(payloads):
        named.add(reference.digest)
        size = held.get(reference.digest)
        where = f"entry {index}"
        if size is not None:
            expected = reference.size_bytes + (_SALT_BYTES if reference.salted else 0)
            if size != expected:
                message = f"{reference.digest}: got {size} bytes, expected {expected}"
                report.find("artifacts", "artifact.altered", where=where, message=message)
        elif not asked or reference.digest in altered:
            continue
        elif index < erased_at.get(reference.digest, 0):
            report.inform("artifacts", "artifact.erased", where=where, message=reference.digest)
        else:
            report.find("artifacts", "artifact.absent", where=where, message=reference.digest)
    stray = len(held.keys() - named)
    if stray:
        report.notes.append(f"{stray} artifacts in the bundle that no receipt of its subject refers to")


def check_stored(
    report: Report, references: Iterable[tuple[int, Artifact]], *, erased_at: Mapping[str, int], look: StoredLook
) -> None:
    """Report on artifacts that are stored beside the ledger at hand.

    Args:
        report: takes the findings.
        references: the artifacts that belong to the subject, each with the index of the receipt that refers to it.
        erased_at: the index of the newest `erasure` of each artifact that was erased.
        look: says what is stored.
    """
    report.ran("artifacts", 0)
    last: dict[str, int] = {}
    for index, reference in references:
        where = f"entry {index}"
        condition, size = look(reference.digest)
        if reference.digest in erased_at:
            last[reference.digest] = max(index, last.get(reference.digest, 0))
        if condition == "whole":
            expected = reference.size_bytes + (_SALT_BYTES if reference.salted else 0)
            if size == expected:
                report.ran("artifacts")
            else:
                message = f"{reference.digest}: got {size} bytes, expected {expected}"
                report.find("artifacts", "artifact.altered", where=where, message=message)
        elif condition == "absent" and index < erased_at.get(reference.digest, 0):
            report.inform("artifacts", "artifact.erased", where=where, message=reference.digest)
        else:
            report.find("artifacts", _CODES[condition], where=where, message=reference.digest)
    for digest_, index in last.items():
        if index < erased_at[digest_] and look(digest_)[0] == "whole":
            report.find("artifacts", "artifact.remains", where=f"entry {index}", message=digest_)


def erasures_at(payloads: Iterable[tuple[int, bytes]]) -> dict[str, int]:
    """Return the index of the newest `erasure` of each artifact, from index and payload of receipts in any order."""
    found: dict[str, int] = {}
    for index, payload in payloads:
        receipt = _read(payload)
        if isinstance(receipt, Erasure):
            found[receipt.digest] = max(index, found.get(receipt.digest, 0))
    return found


def references_of(payloads: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Artifact]]:
    """Yield the artifacts that receipts refer to, each with the receipt's index; run salts are left out."""
    for index, payload in payloads:
        receipt = _read(payload)
        for reference in getattr(receipt, "artifacts", ()):
            if not (isinstance(receipt, Opening) and reference.name == _RUN_SALT):
                yield index, reference
        if isinstance(receipt, Import):
            yield index, receipt.document


def _read(payload: bytes) -> Receipt | None:
    """Return a receipt, None where it cannot be read: that was reported when it was."""
    try:
        return parse_receipt(payload)
    except LedgerError:
        return None
