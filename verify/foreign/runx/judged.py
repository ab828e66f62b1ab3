"""Receipts of runx in our report: one, or a set with its trees.

A receipt that nobody we trust signed is no fault of it (exit 3), however valid runx calls it; one of a shape that 0.8.2 does not
write is unknown where its digest cannot be reproduced (exit 3), and only one of the known shape is altered then (exit 1).
"""

from __future__ import annotations

from typing import Final

from ledger.errors import clip
from verify.foreign import NativeFinding, NativeStatus
from verify.foreign.runx.single import ReceiptVerdict
from verify.foreign.runx.store import SetVerdict
from verify.report import Report

__all__ = ["READ_CODES", "report_receipt", "report_set", "status_of"]

READ_CODES: Final = {"too_deep": "foreign.too_deep", "duplicate_name": "foreign.duplicate_name"}
"""Why a text was not read -> the code for it, where it has one of its own."""
_UNPINNED: Final = "signature_key_missing"
_OTHER_KEY: Final = "signature_key_hash_mismatch"
_MEANING: Final = frozenset(
    {
        "decision_selected_act_missing",
        "act_form_details_invalid",
        "seal_criterion_unbound",
        "authority_attenuation_invalid",
        "effect_grant_evidence_missing",
    }
)
_SET_CHECKS: Final = ("form", "digests", "signatures", "meaning", "files", "bodies", "trees")


def status_of(verdict: ReceiptVerdict) -> NativeStatus:
    """Return what runx says of a receipt, without calling one that nobody signed one that holds."""
    codes = {each.code for each in verdict.findings}
    if verdict.receipt is None:
        return "unreadable"
    if verdict.receipt.misfits:
        return "unverifiable"  # of a shape that the rules at hand are not about
    if codes - {_UNPINNED}:
        return "fails"
    return "unverifiable" if codes or verdict.mode == "local-development" else "holds"


def report_receipt(report: Report, verdict: ReceiptVerdict, where: str | None) -> None:
    """Say in our words what a receipt comes to."""
    receipt = verdict.receipt
    assert receipt is not None  # noqa: S101  told by the caller
    report.ran("form")
    report.ran("digests")
    report.ran("signatures")
    known = not receipt.misfits
    for misfit in receipt.misfits[:1]:
        message = f"{misfit.message}: no shape that runx 0.8.2 writes"
        report.find("form", "format.unknown", where=_at(where, misfit.path), message=message)
    altered = "foreign.altered" if known else "format.unknown"
    if receipt.digest_actual != receipt.digest:
        message = f"got {clip(receipt.digest)}, expected {receipt.digest_actual}"
        report.find("digests", altered, where=_at(where, "digest"), message=message)
    if receipt.id_actual != receipt.id:
        message = f"got {clip(receipt.id)}, expected {receipt.id_actual}"
        report.find("digests", altered, where=_at(where, "id"), message=message)
    _report_signature(report, verdict, where, known=known)
    if known:
        report.ran("meaning")
    for each in verdict.findings:
        if each.code in _MEANING:
            message = f"{each.code}: {each.message}"
            report.find("meaning", "foreign.contradicted", where=_at(where, each.path), message=message)


def _report_signature(report: Report, verdict: ReceiptVerdict, where: str | None, *, known: bool) -> None:
    receipt = verdict.receipt
    assert receipt is not None  # noqa: S101  told by the caller
    if verdict.signature == "valid" and verdict.mode == "local-development":
        message = "its signature is a mark of local development, made without a key"
        report.find("signatures", "foreign.unsigned", where=where, message=message)
        return
    for each in verdict.findings:
        if not each.code.startswith("signature_"):
            continue
        at = _at(where, each.path)
        if each.code == _UNPINNED:
            issuer = receipt.value.get("issuer")
            hash_ = issuer.get("public_key_sha256") if isinstance(issuer, dict) else None
            message = f"nobody is pinned as issuer {clip(receipt.kid)}; it names a key of {clip(hash_)}"
            report.find("signatures", "foreign.key_unpinned", where=at, message=message)
        elif each.code == _OTHER_KEY:
            message = f"issuer {clip(receipt.kid)} is pinned with another key"
            report.find("signatures", "trust.issuer_mismatch", where=at, message=message)
        else:
            code = "foreign.signature" if known else "format.unknown"
            report.find("signatures", code, where=at, message=f"{each.code}: {each.message}")


def report_set(report: Report, verdict: SetVerdict) -> tuple[NativeStatus, tuple[NativeFinding, ...]]:
    """Say in our words what several receipts come to; return what runx says."""
    report.expect(*_SET_CHECKS)
    findings: list[NativeFinding] = []
    for name, error in verdict.unreadable.items():
        report.find("form", READ_CODES.get(error.name, "foreign.malformed"), where=name, message=str(error))
        findings.append(NativeFinding("MalformedJson", name, str(error)))
    statuses: set[NativeStatus] = {"unreadable"} if verdict.unreadable else set()
    for name, judged in verdict.receipts.items():
        report_receipt(report, judged, name)
        statuses.add(status_of(judged))
        findings += [NativeFinding(each.code, _at(name, each.path), each.message) for each in judged.findings]
    report.ran("files", len(verdict.receipts))
    for each in verdict.files:
        asked = each.code == "IdFilenameMismatch"
        message = f"{each.code}: {each.message}"
        report.find("files", "foreign.contradicted", where=each.path, message=message, asked=asked)
        findings.append(NativeFinding(each.code, each.path, each.message))
    report.ran("bodies", len(verdict.receipts))
    for each in verdict.conflicts:
        report.find("bodies", "foreign.ambiguous", where=each.path, message=each.message)
    _report_trees(report, verdict, findings)
    if not verdict.receipts:
        report.find("form", "coverage.empty")
    if any(tree.findings for tree in verdict.trees):
        statuses.add("fails")
    order: tuple[NativeStatus, ...] = ("fails", "unreadable", "unverifiable", "holds")
    return next((each for each in order if each in statuses), "unreadable"), tuple(findings)


def _report_trees(report: Report, verdict: SetVerdict, findings: list[NativeFinding]) -> None:
    report.ran("trees", len(verdict.trees))
    for tree in verdict.trees:
        root = f"tree {tree.root[:19]}"
        for each in tree.findings:
            report.find("trees", "foreign.tree", where=f"{root} {each.path}", message=f"{each.code}: {each.message}")
            findings.append(NativeFinding(each.code, f"{root} {each.path}", each.message))
        for each in tree.beyond:
            where = f"{root} {each.path}"
            if each.code == "graph_locator":
                report.find("trees", "foreign.altered", where=where, message=each.message)
            elif verdict.writer == "0.12":
                report.find("trees", "foreign.tree", where=where, message=f"{each.code}: {each.message}")
            else:
                message = f"{each.code}: {each.message}; refused from 0.12 on"
                report.find("trees", "foreign.later_rule", where=where, message=message, asked=verdict.writer != "0.8")
        if tree.parent_missing is not None:
            report.notes.append(f"{root}: it names {tree.parent_missing[:19]} as its parent, which is not here")


def _at(where: str | None, path: str) -> str:
    return f"{where} {path}".strip() if where is not None else path
