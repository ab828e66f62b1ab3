"""One receipt without its ledger: the bytes of an envelope, or of a receipt alone.

What can be shown: canonical form, schema, the seal and whether its issuer is pinned. Its place in a chain, its tree and its
ledger's head are not there; the verdict says so and does not ask for them.

Source: docs/reference/verdicts.md.
"""

from __future__ import annotations

from ledger.digest import digest
from ledger.envelope import RECEIPT_TYPE, Envelope, parse_envelope, verify_seal
from ledger.errors import FormatError, LedgerError, UnknownFormatError, clip
from ledger.facts import Facts
from ledger.words import SEALED_KINDS
from verify.issuers import role_of
from verify.options import Options
from verify.pins import judge_issuer, trust_used
from verify.reading import read_reported
from verify.report import Coverage, Covered, Report, Verdict
from verify.trust import Trust

__all__ = ["is_envelope", "is_receipt", "verify_receipt"]


def is_envelope(data: bytes) -> bool:
    """Return whether a file is to be judged as an envelope of ours."""
    return data.startswith(b'{"payload":{')


def is_receipt(data: bytes) -> bool:
    """Return whether a file is to be judged as a receipt of ours."""
    return data.startswith(b"{") and b'"schema":"receipt-ledger.receipt/' in data


def verify_receipt(
    data: bytes,
    *,
    trust: Trust | None,
    options: Options = Options(),  # noqa: B008  frozen
    subject: str | None = None,
) -> Verdict:
    """Return the verdict on the bytes of an envelope or of a receipt; other bytes are `subject.unknown`."""
    report = Report()
    report.expect("subject")
    covered = Covered()
    path: tuple[str, ...] = ()
    id_ = subject or digest(data)
    count = 0
    if is_envelope(data):
        report.ran("subject")
        try:
            envelope = parse_envelope(data)
        except FormatError as error:
            report.find("subject", "envelope.malformed", message=str(error))
        else:
            id_ = subject or envelope.receipt_id
            covered, path = _judge(envelope, report, trust)
            count = 1
    elif is_receipt(data):
        report.ran("subject")
        covered, path = _judge(Envelope(data), report, trust, bare=True)
        count = 1
    else:
        report.find("subject", "subject.unknown")
    report.skip("chain", "check.not_asked", "a receipt without its ledger has no place in a chain", asked=False)
    report.skip("memory", "check.not_asked", "a receipt without its ledger has no head", asked=options.memory)
    if options.closed:
        report.skip(
            "runs",
            "check.unsupported",
            "a receipt without its ledger does not say whether its run is closed",
            asked=True,
        )
    if options.counter_seals or (trust is not None and trust.quorum):
        report.find("counter-seals", "trust.quorum", message="a receipt alone shows no counter-seal")
    return Verdict(
        id_,
        report.checks(),
        Coverage(0, 0, count),
        None,
        trust_used(trust),
        covered,
        path,
        options.accept,
    )


def _judge(
    envelope: Envelope, report: Report, trust: Trust | None, *, bare: bool = False
) -> tuple[Covered, tuple[str, ...]]:
    """Judge an envelope; `bare` says that there is none, only the receipt, so that nothing is known of its seal."""
    report.expect("receipts", "seals", "attribution", "issuers")
    report.ran("receipts")
    facts = None
    if envelope.payload_type == RECEIPT_TYPE:
        facts = read_reported(envelope.payload, None, report)
    else:
        report.find("receipts", "format.unknown", message=f"payload type {clip(envelope.payload_type)}")
    if facts is None:
        # A seal holds or not whatever the receipt means.
        if envelope.seal is not None:
            report.ran("seals")
            _verify_seal(envelope, report)
        return Covered(), ()
    if not _check_seal(envelope, facts, report, bare=bare):
        return Covered(signed_head=1), ()
    report.ran("attribution")
    role = role_of(facts.kind)
    if role == "":
        report.skip("issuers", "check.unreachable", "only the keyring of its ledger says who may issue it", asked=True)
    else:
        report.ran("issuers")
        code = judge_issuer(trust, facts.name, facts.key, facts.ledger, role)
        if code is not None:
            report.find("issuers", code, where=f"issuer {facts.name}", message=f"key {facts.key}")
    return Covered(own_seal=1), (envelope.receipt_id,)


def _check_seal(envelope: Envelope, facts: Facts, report: Report, *, bare: bool) -> bool:
    """Return whether the receipt has its issuer's seal, after saying what is wrong with it."""
    if bare:
        report.skip("seals", "check.unreachable", "a receipt without its envelope shows no seal", asked=True)
    else:
        report.ran("seals")
    if envelope.seal is None:
        if facts.kind in SEALED_KINDS and not bare:
            report.find("seals", "seal.absent", message=f"a {facts.kind} without its seal")
        report.find(
            "attribution", "receipt.unattributed", message="it has no seal and is without the tree that covers it"
        )
        report.skip("issuers", "check.unreachable", "nobody is shown to have issued it", asked=True)
        return False
    if envelope.seal.key != facts.key:
        report.find("seals", "seal.issuer")
        return False
    return _verify_seal(envelope, report)


def _verify_seal(envelope: Envelope, report: Report) -> bool:
    try:
        verify_seal(envelope)
    except UnknownFormatError as error:
        report.find("seals", "format.unknown", message=str(error))
        return False
    except LedgerError as error:
        report.find("seals", "seal.invalid", message=str(error))
        return False
    return True
