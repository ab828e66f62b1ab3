"""A notary's document, judged alone with the keys that are given for it, or with those of the trust file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.options import Shared
from cli.trustfile import read_trust
from ledger.errors import LedgerError, clip
from verify.foreign.runx.notary import (
    DOCUMENT_MAX_BYTES,
    RunxNotaryVerdict,
    public_key_of,
    verify_runx_notary,
)
from verify.options import Options
from verify.report import Coverage, Native, NativeFinding, Report, Verdict
from verify.sealed import SEALED_MAX_BYTES, is_sealed_document, verify_sealed

__all__ = ["judge_notary"]

_KEY_MAX_BYTES: Final = 16 * 1024
_RUNX_CODES: Final = {
    "notary_parse_error": "subject.unknown",
    "notary_verification_missing": "subject.unknown",
    "counter_seal_digest_mismatch": "counterseal.signature",
    "counter_seal_payload_digest_mismatch": "counterseal.signature",
    "counter_seal_signature_mismatch": "counterseal.signature",
    "counter_seal_signature_algorithm_unsupported": "format.unknown",
    "notary_trusted_key_missing": "trust.notary_unpinned",
    "notary_embedded_key_untrusted": "trust.notary_mismatch",
    "notary_projection_binding_mismatch": "counterseal.subject",
}
"""What a finding of runx comes to here; every other one is of the form, `counterseal.malformed`."""


def judge_notary(document: str, keys: Sequence[Path], options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a notary's document: ours, or one of the hosted runx notary.

    Raises:
        LedgerError: `usage.notary_key` for a key file that holds no Ed25519 public key as PEM.
    """
    data = _read(document)
    pems = [_read_key(path) for path in keys]
    if not is_sealed_document(data):
        return _from_runx(verify_runx_notary(data, [pem for pem, _ in pems]), document, asked)
    trust = None if pems else read_trust(options)
    return verify_sealed(data, subject=document, trust=trust, keys=[key for _, key in pems], options=asked)


def _read(document: str) -> bytes:
    limit = max(SEALED_MAX_BYTES, DOCUMENT_MAX_BYTES) + 1
    if document == "-":
        return sys.stdin.buffer.read(limit)
    with Path(document).open("rb") as file:
        return file.read(limit)


def _read_key(path: Path) -> tuple[bytes, str]:
    """Return a PEM file and the key id of the key in it."""
    with path.open("rb") as file:
        pem = file.read(_KEY_MAX_BYTES)
    key = public_key_of(pem)
    if key is None:
        raise LedgerError(
            f"notary key {clip(str(path))}: no Ed25519 public key as PEM", code="usage.notary_key", where=str(path)
        )
    return pem, key


def _from_runx(found: RunxNotaryVerdict, document: str, asked: Options) -> Verdict:
    """Return runx's verdict as one of ours, with its own findings under their own names."""
    report = Report()
    report.expect("subject", "counter-seals")
    for each in found.findings:
        code = _RUNX_CODES.get(each.code, "counterseal.malformed")
        name = "subject" if code == "subject.unknown" else "counter-seals"
        report.find(name, code, where=each.path, message=f"{each.code}: {each.message}")
    if found.valid:
        report.ran("subject")
        report.ran("counter-seals")
    native = Native(
        "runx",
        "notary document",
        found.schema or "unknown",
        "holds" if found.valid else "fails",
        "valid" if found.valid else "invalid",
        tuple(NativeFinding(each.code, each.path, each.message) for each in found.findings),
        len(found.findings),
    )
    said = f"{document}: judged by runx's rules"
    if found.valid:
        said += f"; it seals {found.receipt} at {found.issued_at}, mode {found.mode}"
    return Verdict(
        document,
        report.checks(),
        Coverage(0, 1, 1) if found.receipt is not None else Coverage(0, 0, 0),
        accepted=asked.accept,
        notes=(said,),
        native=native,
    )
