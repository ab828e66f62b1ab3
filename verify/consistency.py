"""A consistency file: both heads are signed by the log key in force at their size, and the newer one extends the older one.

The newer head is judged as that of a bundle of its keyring, so that keys, inclusion, trust and memory follow the one set of
rules. What is asked for is the heads; of issuers nothing is asked.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ledger.bundle import Bundle, Item
from ledger.checkpoint import Head, head_of, open_head
from ledger.consistency import ConsistencyFile, parse_consistency
from ledger.digest import ZERO_DIGEST
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError
from ledger.receipt import Header, Key, parse_receipt
from verify.bundle import verify_bundle
from verify.errors import ProofError
from verify.headfile import Remembered, skip_unsupported
from verify.keyring import Keyring
from verify.options import Options
from verify.pins import trust_used
from verify.proof import verify_consistency
from verify.report import Coverage, Report, Verdict
from verify.trust import Trust

__all__ = ["verify_consistency_file"]

_OF_HEADS: Final = frozenset(
    {"entries", "inclusion", "keyring", "heads", "head signatures", "log key", "memory", "counter-seals"}
)
"""Checks of a bundle that belong to its head."""


def verify_consistency_file(
    data: bytes, *, subject: str, trust: Trust | None, remembered: Remembered | None = None, options: Options
) -> Verdict:
    """Return the verdict on the bytes of a consistency file; the newer head is remembered where both hold."""
    report = Report()
    report.expect("consistency", "older head")
    try:
        found = parse_consistency(data)
        old, new = head_of(found.old), head_of(found.new)
    except LedgerError as error:
        report.find("subject", "bundle.malformed", message=str(error))
        return Verdict(subject, report.checks(), Coverage(0, 0, 0), None, trust_used(trust), accepted=options.accept)

    def joins(older: int, newer: int) -> Sequence[bytes]:
        if (older, newer) != (old.size, new.size):
            raise ProofError("consistency proof: it joins other sizes", code="proof.malformed")
        return found.proof

    verdict = verify_bundle(
        Bundle(_header_of(found), found.keyring, found.keyring, found.new, found.last),
        trust=trust,
        memory=None if remembered is None else remembered(new.origin),
        consistency=joins,
        options=Options(memory=options.memory, accept=options.accept, counter_seals=options.counter_seals),
    )
    _check_proof(report, old, new, found)
    _check_older(report, old, found)
    skip_unsupported(report, options, "a consistency file", counter_seals=False)
    checks = (*(check for check in verdict.checks if check.name in _OF_HEADS), *report.checks())
    judged = replace(
        verdict,
        subject=subject,
        checks=checks,
        coverage=Coverage(0, 0, 0),
        covered=Verdict(subject, (), Coverage(0, 0, 0)).covered,
        path=(),
        notes=(
            *verdict.notes,
            f"heads of sizes {old.size} and {new.size}: no receipt but those of the keyring was looked at",
        ),
    )
    return judged if judged.exit in {0, 3} else replace(judged, remember=None)


def _header_of(found: ConsistencyFile) -> str:
    try:
        return parse_entry(found.keyring[0].entry).receipt
    except (LedgerError, IndexError):
        return ZERO_DIGEST


def _check_proof(report: Report, old: Head, new: Head, found: ConsistencyFile) -> None:
    if old.origin != new.origin:
        report.find("consistency", "head.origin", message="the two heads are of two ledgers")
        return
    try:
        verify_consistency(
            old_size=old.size, old_root=old.root, new_size=new.size, new_root=new.root, proof=found.proof
        )
    except ProofError as error:
        report.find("consistency", error.code, message=str(error))
    else:
        report.ran("consistency")


def _check_older(report: Report, old: Head, found: ConsistencyFile) -> None:
    """Check the older head's signature under the log key in force at its size."""
    keyring = _keyring_at(found.keyring, old.size)
    if keyring is None:
        report.skip("older head", "check.unreachable", "the keyring does not lead to its log key", asked=True)
        return
    try:
        open_head(found.old, origin=keyring.origin, log_key=keyring.log_key)
    except LedgerError as error:
        codes = {"note.unsigned": "head.unsigned", "head.origin": "head.origin", "note.bad_signature": "head.signature"}
        report.find("older head", codes.get(error.code, "head.malformed"), message=str(error))
    else:
        report.ran("older head")


def _keyring_at(items: Sequence[Item], size: int) -> Keyring | None:
    """Return the keyring in force over the first `size` entries; whether it holds is reported where it is followed whole."""
    keyring: Keyring | None = None
    try:
        for item in items:
            entry = parse_entry(item.entry)
            if entry.index >= size:
                break
            receipt = parse_receipt(parse_envelope(item.envelope).payload)
            if isinstance(receipt, Header) and keyring is None:
                keyring = Keyring.start(receipt, entry.receipt)
            elif isinstance(receipt, Key) and keyring is not None:
                keyring.take(receipt, entry.index)
    except LedgerError:
        return None
    return keyring
