"""The verdict on one receipt, as `runx verify --receipt` gives it: `runx.verify_verdict.v1`.

Digest, content address, signature; lineage cannot be told from one receipt. Codes and paths are theirs, messages ours.

Source: runx 0.8.2, the receipt-verify corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ledger.canonical import JsonObject
from verify.foreign.runx.receipt import Finding, KeyOf, Mode, Receipt, SignatureState, parse_receipt
from verify.foreign.runx.semantics import semantic_findings
from verify.foreign.strict import ReadError

__all__ = ["VERDICT_SCHEMA", "ReceiptVerdict", "judge_receipt", "judge_text"]

VERDICT_SCHEMA: Final = "runx.verify_verdict.v1"


@dataclass(frozen=True, slots=True)
class ReceiptVerdict:
    """Their verdict on one receipt; `receipt` is None where it could not be read."""

    receipt: Receipt | None
    mode: Mode
    signature: SignatureState
    findings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_value(self) -> JsonObject:
        """Return the document `runx.verify_verdict.v1`."""
        receipt = self.receipt
        return {
            "schema": VERDICT_SCHEMA,
            "receipt_id": receipt.id if receipt is not None else None,
            "valid": self.valid,
            "digest": _compared(receipt.digest_actual, receipt.digest) if receipt is not None else _NOT_EVALUATED,
            "content_address": _compared(receipt.id_actual, receipt.id) if receipt is not None else _NOT_EVALUATED,
            "signature": {
                "mode": self.mode,
                "status": self.signature,
                "kid": receipt.kid if receipt is not None else None,
            },
            "lineage": {"status": "unverified", "message": "one receipt does not show its tree"},
            "findings": [
                {"code": finding.code, "path": finding.path, "message": finding.message} for finding in self.findings
            ],
        }


_NOT_EVALUATED: Final[JsonObject] = {"status": "not_evaluated", "expected": None, "actual": None}


def judge_text(data: bytes, key_of: KeyOf, *, mode: Mode = "local-development") -> ReceiptVerdict:
    """Return the verdict on the text of a receipt; `mode` is said of one that cannot be read."""
    try:
        receipt = parse_receipt(data)
    except ReadError as error:
        return ReceiptVerdict(None, mode, "not_evaluated", (Finding("receipt_parse_error", "$", str(error)),))
    return judge_receipt(receipt, key_of)


def judge_receipt(receipt: Receipt, key_of: KeyOf) -> ReceiptVerdict:
    """Return the verdict on a receipt. One of another shape is not read further by runx; its digests are computed all the same."""
    findings: list[Finding] = [
        Finding("receipt_parse_error", misfit.path or "$", misfit.message) for misfit in receipt.misfits[:1]
    ]
    if receipt.digest_actual != receipt.digest:
        findings.append(Finding("seal_digest_mismatch", "digest", "the digest is not that of the body"))
    elif receipt.id_actual != receipt.id:
        findings.append(Finding("content_address_mismatch", "id", "the id is not that of the body"))
    signature, found = receipt.signature(key_of)
    findings += found
    if not receipt.misfits:
        findings += semantic_findings(receipt.value)
    return ReceiptVerdict(receipt, receipt.mode, signature, tuple(findings))


def _compared(actual: str, claimed: str) -> JsonObject:
    return {"status": "valid" if actual == claimed else "invalid", "expected": actual, "actual": claimed}
