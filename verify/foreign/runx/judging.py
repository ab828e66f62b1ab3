"""The judgement on a document of runx, by its kind: what its own rules say, and what our report makes of it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from ledger.canonical import JsonObject
from ledger.errors import LedgerError, clip
from ledger.keys import parse_key_id
from verify.foreign import Judgement, Native, NativeFinding, NativeStatus, Recognised
from verify.foreign.runx.evaluation import evaluator_misfits
from verify.foreign.runx.judged import READ_CODES, report_receipt, report_set, status_of
from verify.foreign.runx.notary import verify_runx_notary
from verify.foreign.runx.receipt import KeyOf
from verify.foreign.runx.resume import resume_misfits
from verify.foreign.runx.single import judge_text
from verify.foreign.runx.store import SetVerdict, judge_set, judge_store
from verify.foreign.runx.tree import graph_locator
from verify.foreign.runx.verdictdoc import verdict_misfits
from verify.foreign.shape import Misfit
from verify.foreign.strict import ReadError, lines, read_object
from verify.report import MAX_FINDINGS, Coverage, Report
from verify.trust import Trust

__all__ = ["judge_document", "judge_folder", "judge_together", "keys_in"]

_PARTIAL: Final = frozenset({"ChildReceiptMissing"})
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")


def judge_document(data: bytes, found: Recognised, trust: Trust | None) -> Judgement:
    """Return the judgement on bytes that were recognised."""
    if found.kind == "receipts":
        files = {f"line {line.number}": line.data for line in lines(data)}
        return _judge_set(judge_set(files, keys_in(trust)), found)
    return _JUDGES.get(found.kind, _judge_other)(data, found, trust)


def judge_folder(files: Mapping[str, bytes], trust: Trust | None) -> Judgement:
    """Return the judgement on the files of a receipt store, by name."""
    verdict = judge_store(files, keys_in(trust))
    return _judge_set(verdict, Recognised("runx", "store", verdict.writer))


def judge_together(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return what is wrong with some of the receipts that came together and is not in any of them alone: name -> code.

    A child that did not come along is not missing.
    """
    verdict = judge_set(files, keys_in(None))
    held = {judged.receipt.id: name for name, judged in verdict.receipts.items() if judged.receipt is not None}
    found = {
        held[tree.root]: each.code for tree in verdict.trees for each in tree.findings if each.code not in _PARTIAL
    }
    ambiguous = {each.path for each in verdict.conflicts}
    found |= {
        name: "ambiguous"
        for name, judged in verdict.receipts.items()
        if judged.receipt is not None and judged.receipt.id in ambiguous
    }
    return found


def keys_in(trust: Trust | None) -> KeyOf:
    """Return the keys of issuers that trust names under their `kid`, for every ledger."""

    def key_of(kid: str) -> bytes | None:
        pinned = trust.issuers.get(kid) if trust is not None else None
        if pinned is None or pinned.origin is not None:
            return None
        try:
            return parse_key_id(pinned.key)
        except LedgerError:
            return None  # a key of another algorithm

    return key_of


def _judge_receipt(data: bytes, found: Recognised, trust: Trust | None) -> Judgement:
    verdict = judge_text(data, keys_in(trust))
    report = Report()
    report.expect("form", "digests", "signatures", "meaning")
    if verdict.receipt is None:
        return _unreadable(data, found, report, "receipt_parse_error")
    report_receipt(report, verdict, None)
    locator = graph_locator(verdict.receipt)
    if locator is not None:
        report.find("digests", "foreign.altered", where=locator.path, message=locator.message)
    if verdict.receipt.children:
        report.skip("trees", "check.not_asked", "one receipt does not show its tree", asked=False)
    findings = tuple(NativeFinding(each.code, each.path, each.message) for each in verdict.findings)
    return _judgement(found, status_of(verdict), findings, report, 1, ())


def _judge_set(verdict: SetVerdict, found: Recognised) -> Judgement:
    """Return the judgement on several receipts."""
    report = Report()
    status, findings = report_set(report, verdict)
    return _judgement(found, status, findings, report, len(verdict.receipts), ())


def _judge_counter_seal(data: bytes, found: Recognised, trust: Trust | None) -> Judgement:
    keys = () if trust is None else (pin.key for pin in trust.notaries.values())
    pems = [_pem(key) for key in keys if key is not None]
    verdict = verify_runx_notary(data, [pem for pem in pems if pem])
    report = Report()
    report.expect("digests", "signatures")
    report.ran("digests")
    report.ran("signatures")
    for each in verdict.findings:
        if each.code in ("notary_trusted_key_missing", "notary_embedded_key_untrusted") or (
            each.code == "counter_seal_signature_mismatch" and verdict.trusted_key_count == 0
        ):
            report.find("signatures", "trust.notary_unpinned", where=each.path, message=f"{each.code}: {each.message}")
        else:
            name = "signatures" if "signature" in each.code else "digests"
            code = "foreign.signature" if name == "signatures" else "foreign.altered"
            report.find(name, code, where=each.path, message=f"{each.code}: {each.message}")
    fails = report.exits() == 1
    status: NativeStatus = "holds" if verdict.valid else "fails" if fails else "unverifiable"
    findings = tuple(NativeFinding(each.code, each.path, each.message) for each in verdict.findings)
    notes = () if verdict.receipt is None else (f"it seals the receipt digest {verdict.receipt}",)
    return _judgement(found, status, findings, report, 1, notes)


def _pem(key: str) -> bytes | None:
    try:
        body = base64.b64encode(_SPKI + parse_key_id(key))
    except LedgerError:
        return None
    return b"-----BEGIN PUBLIC KEY-----\n" + body + b"\n-----END PUBLIC KEY-----\n"


def _judge_by_shape(
    misfits_of: Callable[[JsonObject], tuple[Misfit, ...]], code: str, name: str, message: str
) -> Callable[[bytes, Recognised, Trust | None], Judgement]:
    """Return the judge of a document of which only the form can be told; `code` says what cannot be."""

    def judge(data: bytes, found: Recognised, _: Trust | None) -> Judgement:
        report = Report()
        report.expect("form")
        try:
            value = read_object(data)
        except ReadError:
            return _unreadable(data, found, report, "malformed")
        report.ran("form")
        misfits = misfits_of(value)
        for misfit in misfits:
            report.find("form", "foreign.malformed", where=misfit.path, message=misfit.message)
        report.find(name, code, message=message)
        findings = tuple(NativeFinding("refused", misfit.path, misfit.message) for misfit in misfits)
        return _judgement(found, "fails" if misfits else "unverifiable", findings, report, 1, ())

    return judge


def _judge_other(data: bytes, found: Recognised, _: Trust | None) -> Judgement:
    report = Report()
    try:
        read_object(data)
    except ReadError:
        return _unreadable(data, found, report, "malformed")
    report.find("form", "format.unknown", message=f"schema {clip(found.version)} is not known to this version")
    return _judgement(found, "unverifiable", (), report, 1, ())


def _unreadable(data: bytes, found: Recognised, report: Report, name: str) -> Judgement:
    try:
        read_object(data)
        error = ReadError("not_json", "not read")
    except ReadError as caught:
        error = caught
    report.find("form", READ_CODES.get(error.name, "foreign.malformed"), where=error.name, message=str(error))
    return _judgement(found, "unreadable", (NativeFinding(name, "$", str(error)),), report, 1, ())


def _judgement(
    found: Recognised,
    status: NativeStatus,
    findings: tuple[NativeFinding, ...],
    report: Report,
    count: int,
    notes: tuple[str, ...],
) -> Judgement:
    code = findings[0].name if findings else {"holds": "valid"}.get(status, "unsigned")
    native = Native("runx", found.kind, found.version, status, code, findings[:MAX_FINDINGS], len(findings))
    return Judgement(native, report, Coverage(0, count, count), notes)


_JUDGES: Final[Mapping[str, Callable[[bytes, Recognised, Trust | None], Judgement]]] = {
    "receipt": _judge_receipt,
    "counter-seal": _judge_counter_seal,
    "resume": _judge_by_shape(
        resume_misfits, "foreign.unbound", "requests", "the requests that it answers are not at hand"
    ),
    "verdict": _judge_by_shape(
        evaluator_misfits, "format.unknown", "answers", "the names of its other members are not published"
    ),
    "criteria": _judge_by_shape(
        lambda _: (), "format.unknown", "revision", "the names of its members are not published"
    ),
    "verify-verdict": _judge_by_shape(
        verdict_misfits, "foreign.unsigned", "signatures", "a verdict is a claim of whoever wrote it"
    ),
}
