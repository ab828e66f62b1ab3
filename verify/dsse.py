"""A DSSE envelope of a receipt: judged as the receipt's own envelope, which has the same type, payload and signature.

Of a payload type that is not ours, only the signature can be judged, and only where `keyid` is a key id of ours.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from ledger.dsse import parse_dsse
from ledger.envelope import RECEIPT_TYPE, Envelope, print_envelope, verify_seal
from ledger.errors import LedgerError, UnknownFormatError, clip
from verify.options import Options
from verify.pins import trust_used
from verify.receipt import is_envelope, verify_receipt
from verify.report import Coverage, Report, Verdict
from verify.trust import Trust

__all__ = ["verify_dsse"]


def verify_dsse(data: bytes, *, subject: str | None, trust: Trust | None, options: Options) -> Verdict:
    """Return the verdict on the bytes of a DSSE envelope in our spelling; others of our type do not hold."""
    report = Report()
    report.expect("subject")
    id_ = subject or "dsse"
    try:
        envelope = parse_dsse(data)
    except LedgerError as error:
        report.find("subject", "envelope.malformed", message=str(error))
    else:
        if envelope.payload_type == RECEIPT_TYPE:
            printed = print_envelope(envelope)
            if is_envelope(printed):
                return verify_receipt(printed, trust=trust, options=options, subject=envelope.receipt_id)
            report.find("subject", "envelope.malformed", message="the payload is no object")
        else:
            _judge_foreign(report, envelope)
    return Verdict(id_, report.checks(), Coverage(0, 0, 0), None, trust_used(trust), accepted=options.accept)


def _judge_foreign(report: Report, envelope: Envelope) -> None:
    report.ran("subject")
    report.find("receipts", "format.unknown", message=f"payload type {clip(envelope.payload_type)}")
    try:
        verify_seal(envelope)
    except UnknownFormatError as error:
        report.find("seals", "format.unknown", message=str(error))
    except LedgerError as error:
        report.find("seals", "seal.invalid", message=str(error))
    else:
        report.ran("seals")
