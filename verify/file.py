"""A file of unknown kind: told apart by its content, never by its name, and judged by what its kind can show.

| kind | told by |
|---|---|
| bundle, consistency file, equivocation file, receipt | a JSON object whose `schema` says so |
| envelope | a JSON object with `payload`, `payload_type` and `seals` |
| counter-seal | an envelope of a notary's payload type, or a notary's whole answer |
| DSSE envelope | a JSON object with `payload`, `payloadType` and `signatures` |
| tlog-proof | its first line |
| head | a signed note whose text is a checkpoint |
| a document of another system | what `verify.foreign` recognises, where it is nothing of the above |

- A file that shows these marks and does not parse does not hold (exit 1); one that shows none is unknown (exit 5).
- A later version of a kind is unknown as a whole: nothing of it can be judged.
- No ledger, no network, no disk: trust and memory are arguments.

Source: docs/spec/bundles.md, docs/reference/verdicts.md.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, Literal, TypeAlias, assert_never

import orjson

from ledger import canonical
from ledger.bundle import BUNDLE_SCHEMA, parse_bundle
from ledger.checkpoint import head_of
from ledger.consistency import CONSISTENCY_SCHEMA
from ledger.dsse import parse_dsse
from ledger.equivocation import EQUIVOCATION_SCHEMA
from ledger.errors import LedgerError
from ledger.line import ENTRY_PREFIX
from ledger.tlogproof import TLOG_PROOF_LINE
from verify.bundle import verify_bundle
from verify.consistency import verify_consistency_file
from verify.dsse import verify_dsse
from verify.equivocation import verify_equivocation
from verify.headfile import Remembered, verify_head
from verify.options import Options
from verify.pins import trust_used
from verify.receipt import verify_receipt
from verify.report import Coverage, Report, Verdict
from verify.tlogproof import verify_tlog_proof
from verify.trust import Trust

__all__ = ["FileKind", "kind_of", "verify_file"]

FileKind: TypeAlias = Literal[
    "bundle",
    "consistency",
    "counter-seal",
    "dsse",
    "envelope",
    "equivocation",
    "head",
    "receipt",
    "tlog-proof",
    "unknown",
]

_RECEIPT_SCHEMA: Final = "receipt-ledger.receipt/"
_COUNTER_SEAL: Final = "application/vnd.receipt-ledger.counter-seal+json"
_NOTARIZATION: Final = "receipt-ledger.notarization/v1"
_DSSE_TYPE: Final = "application/vnd.receipt-ledger."
_BUNDLE_TAIL: Final = f'"schema":"{BUNDLE_SCHEMA}","subject":"'.encode("ascii")
_TAIL_BYTES: Final = 256
# Marks in a text that is not canonical JSON, so that damage in one place does not hide what the file was.
_SCHEMA = re.compile(rb'"schema"\s*:\s*"receipt-ledger\.(bundle|consistency|equivocation|receipt)/v1"')
_ENVELOPE = re.compile(rb'^\s*\{\s*"payload"\s*:\s*\{|"payload_type"\s*:\s*"application/vnd\.receipt-ledger\.')
_SEALED = re.compile(
    rb'"payload_type"\s*:\s*"application/vnd\.receipt-ledger\.counter-seal\+json"|"schema"\s*:\s*"receipt-ledger\.notarization/v1"'
)
_DSSE = re.compile(rb'"payloadType"\s*:\s*"application/vnd\.receipt-ledger\.')
_HEAD = re.compile(rb"[^\n]+\n(?:0|[1-9][0-9]{0,18})\n[A-Za-z0-9+/]{43}=\n")

_SCHEMA_KINDS: Final[dict[bytes, FileKind]] = {
    b"bundle": "bundle",
    b"consistency": "consistency",
    b"equivocation": "equivocation",
    b"receipt": "receipt",
}


def verify_file(
    data: bytes,
    *,
    subject: str,
    trust: Trust | None,
    remembered: Remembered | None = None,
    options: Options = Options(),  # noqa: B008  frozen
) -> Verdict:
    """Return the verdict on the bytes of a file.

    Args:
        data: the file.
        subject: what the verdict calls it where its content has no name of its own, such as its path.
        trust: whom to believe, None for nobody.
        remembered: gives the note remembered for an origin.
        options: what is asked for.
    """
    kind = kind_of(data)
    verdict = _judge(kind, data, subject, trust, remembered, options)
    return verdict if kind == "unknown" else replace(verdict, notes=(f"{subject}: judged as {kind}", *verdict.notes))


def _judge(
    kind: FileKind, data: bytes, subject: str, trust: Trust | None, remembered: Remembered | None, options: Options
) -> Verdict:
    match kind:
        case "bundle":
            try:
                bundle = parse_bundle(data)
            except LedgerError as error:
                return _refused(subject, "bundle.malformed", str(error), trust, options)
            memory = _memory_of(bundle.checkpoint, remembered)
            return verify_bundle(bundle, trust=trust, memory=memory, options=options)
        case "consistency":
            return verify_consistency_file(data, subject=subject, trust=trust, remembered=remembered, options=options)
        case "equivocation":
            return verify_equivocation(data, subject=subject, trust=trust, options=options)
        case "tlog-proof":
            return verify_tlog_proof(data, subject=subject, trust=trust, remembered=remembered, options=options)
        case "dsse":
            return verify_dsse(data, subject=subject, trust=trust, options=options)
        case "head":
            return verify_head(data, subject=subject, trust=trust, remembered=remembered, options=options)
        case "counter-seal":
            from verify.sealed import verify_sealed  # noqa: PLC0415  what it loads would cost every other file

            return verify_sealed(data, subject=subject, trust=trust, options=options)
        case "envelope" | "receipt":
            return verify_receipt(data, trust=trust, options=options)
        case "unknown":
            from verify.foreign import verify_foreign  # noqa: PLC0415  what it loads would cost every file of ours

            verdict = verify_foreign(data, subject=subject, trust=trust, options=options)
            return _refused(subject, "subject.unknown", "", trust, options) if verdict is None else verdict
        case _:
            assert_never(kind)


def kind_of(data: bytes) -> FileKind:
    """Return the kind that a file shows itself to be, whether it is well formed or not."""
    if data.startswith(TLOG_PROOF_LINE):
        return "tlog-proof"
    # The usual bundle is told without parsing it twice.
    if _BUNDLE_TAIL in data[-_TAIL_BYTES:] and data.startswith(b"{"):
        return "bundle"
    try:
        value = canonical.decode(data)
    except LedgerError:
        return _kind_of_text(data)
    return _kind_of_object(value, data)


def _kind_of_object(value: canonical.JsonObject, data: bytes) -> FileKind:
    schema = value.get("schema")
    if schema == BUNDLE_SCHEMA:
        return "bundle"
    if schema == CONSISTENCY_SCHEMA:
        return "consistency"
    if schema == EQUIVOCATION_SCHEMA:
        return "equivocation"
    if isinstance(schema, str) and schema.startswith(_RECEIPT_SCHEMA):
        return "receipt"
    if schema == _NOTARIZATION or value.get("payload_type") == _COUNTER_SEAL:
        return "counter-seal"
    if isinstance(value.get("payload"), dict) and {"payload_type", "seals"} & value.keys():
        return "envelope"
    type_ = value.get("payloadType")
    if isinstance(type_, str) and (type_.startswith(_DSSE_TYPE) or _is_dsse(data)):
        return "dsse"
    return "unknown"


def _is_dsse(data: bytes) -> bool:
    """Return whether bytes are a DSSE envelope in our spelling, whatever its payload."""
    try:
        parse_dsse(data)
    except LedgerError:
        return False
    return True


def _kind_of_text(data: bytes) -> FileKind:
    """Return the kind that bytes which are not canonical show, by what stands on top of them, else by their marks."""
    if data.startswith(ENTRY_PREFIX):
        return "unknown"  # a file of a journal is not a receipt for holding some: its ledger is what can be judged
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict) and "schema" in value:
        return _kind_of_object(value, data)
    found = _SCHEMA.search(data)
    if _SEALED.search(data) is not None:
        return "counter-seal"
    if _ENVELOPE.search(data) is not None:
        return "envelope"
    if _DSSE.search(data) is not None:
        return "dsse"
    if found is not None:
        return _SCHEMA_KINDS[found[1]]
    return "head" if _HEAD.match(data) is not None else "unknown"


def _memory_of(note: bytes, remembered: Remembered | None) -> bytes | None:
    """Return what is remembered for the origin that a note states; the verifier checks that it is the one of the keyring."""
    try:
        return None if remembered is None else remembered(head_of(note).origin)
    except LedgerError:
        return None


def _refused(subject: str, code: str, message: str, trust: Trust | None, options: Options) -> Verdict:
    report = Report()
    report.find("subject", code, message=message)
    return Verdict(subject, report.checks(), Coverage(0, 0, 0), None, trust_used(trust), accepted=options.accept)
