"""What a bundle carries beside entries: artifacts, checked against their digests, and counter-seals.

An artifact that is carried is always checked. That every one is there which the receipts refer to is checked where it is asked
for; one that an `erasure` at hand names is erased, which costs no proof. Run salts are neither carried nor asked for: they are
keys, with which guesses of other artifacts could be confirmed.

Source: docs/spec/bundles.md, docs/spec/artifacts.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ledger.bundle import CarriedArtifact
from ledger.digest import digest
from ledger.errors import LedgerError
from ledger.members import Artifact
from ledger.receipt import Erasure, Opening, Receipt, parse_receipt
from verify.report import Report

__all__ = ["check_artifacts"]

_RUN_SALT = "run-salt"
_SALT_BYTES = 32


def check_artifacts(
    report: Report,
    carried: Sequence[CarriedArtifact],
    *,
    payloads: Iterable[tuple[int, bytes]],
    erasures: Iterable[bytes],
    asked: bool,
) -> None:
    """Report on artifacts.

    Args:
        report: takes the findings.
        carried: the artifacts in the bundle.
        payloads: index and payload of each receipt whose artifacts belong to the subject.
        erasures: payloads of the `erasure` receipts at hand whose seals hold.
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
    erased = {receipt.digest for receipt in map(_read, erasures) if isinstance(receipt, Erasure)}
    named: set[str] = set()
    for index, reference in _references(payloads):
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
        elif reference.digest in erased:
            report.inform("artifacts", "artifact.erased", where=where, message=reference.digest)
        else:
            report.find("artifacts", "artifact.absent", where=where, message=reference.digest)
    stray = len(held.keys() - named)
    if stray:
        report.notes.append(f"{stray} artifacts in the bundle that no receipt of its subject refers to")


def _references(payloads: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Artifact]]:
    for index, payload in payloads:
        receipt = _read(payload)
        for reference in getattr(receipt, "artifacts", ()):
            if not (isinstance(receipt, Opening) and reference.name == _RUN_SALT):
                yield index, reference


def _read(payload: bytes) -> Receipt | None:
    """Return a receipt, None where it cannot be read: that was reported when it was."""
    try:
        return parse_receipt(payload)
    except LedgerError:
        return None
