"""What an import brought in, judged again where a verdict is about it: the document's bytes, by its own rules.

A receipt with a `source` restates a foreign document. Whoever verifies its import, or a run made of it, is told what that document
comes to; whoever verifies the whole ledger is not, since it is no fault of the ledger.

- That nothing in the document is signed, or by nobody we know, is no fault either: the import's own seal covers its bytes.
- The policy and the limits under which it was imported are kept beside it and hold here again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import orjson

from ledger.bundle import Bundle
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError, NotFoundError, clip
from ledger.members import Limit
from ledger.receipt import Import, Receipt, parse_receipt
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.reader import Reader
from verify.foreign import FORMATS, Judgement, format_of
from verify.options import Options
from verify.report import Check, Report, Verdict
from verify.trust import Trust

__all__ = ["with_documents"]

_MOST: Final = 10_000
"""Documents that are judged for one verdict."""
_COVERED: Final = frozenset(
    {"foreign.unsigned", "foreign.key_unpinned", "foreign.unbound", "foreign.unchained", "foreign.end_unknown"}
)
"""What the seal of an import makes up for: the bytes are those that came in."""
_CHECK: Final = "document"


def with_documents(verdict: Verdict, bundle: Bundle, folder: Path, trust: Trust | None, asked: Options) -> Verdict:
    """Return a verdict with what the foreign documents behind its receipts come to."""
    reader, store = Reader(folder), ArtifactStore(folder)
    checks: list[Check] = []
    native = verdict.native
    notes: list[str] = []
    for count, (id_, receipt) in enumerate(_imports(bundle, reader)):
        if count == _MOST:
            notes.append(f"only {_MOST} of its documents were judged again")
            break
        judgement, found = _judge(receipt, store, trust, asked)
        checks += found
        if judgement is not None:
            where = f"import {id_.removeprefix('sha256:')[:12]}"
            native = native or judgement.native
            checks += [_placed(check, where) for check in judgement.report.checks()]
            notes += [f"{where}: {note}" for note in judgement.notes] if count == 0 else []
    return replace(verdict, checks=(*verdict.checks, *_merged(checks)), native=native, notes=(*verdict.notes, *notes))


def _imports(bundle: Bundle, reader: Reader) -> Iterator[tuple[str, Import]]:
    """Yield the imports that the receipts of a bundle are, or that they restate, each once."""
    seen: set[str] = set()
    for item in bundle.items:
        envelope = parse_envelope(item.envelope)
        receipt = _parsed(envelope.payload)
        source = getattr(receipt, "source", None)
        id_ = envelope.receipt_id if isinstance(receipt, Import) else source.import_ if source is not None else None
        if id_ is None or id_ in seen:
            continue
        seen.add(id_)
        if not isinstance(receipt, Import):
            try:
                receipt = _parsed(reader.get(id_).envelope.payload)
            except LedgerError:
                continue  # what it names is not in this ledger: the source is a claim like any other
        if isinstance(receipt, Import):
            yield id_, receipt


def _parsed(payload: bytes) -> Receipt | None:
    try:
        return parse_receipt(payload)
    except LedgerError:
        return None  # for the other checks to say


def _judge(
    receipt: Import, store: ArtifactStore, trust: Trust | None, asked: Options
) -> tuple[Judgement | None, list[Check]]:
    """Return the judgement on the document of an import, and checks of ours about it."""
    report = Report()
    report.ran(_CHECK)
    judgement = None
    if receipt.native_status in ("fails", "unreadable"):
        message = f"it was imported as one that {receipt.native_status}: {receipt.native_code}"
        report.find(_CHECK, "foreign.native_fails", where=receipt.document.name, message=message)
    if receipt.format not in FORMATS:
        report.find(_CHECK, "format.unknown", where=receipt.document.name, message=f"format {clip(receipt.format)}")
        return None, list(report.checks())
    try:
        data = store.content(receipt.document)
        options = _beside(receipt, store, asked)
        format_ = format_of(receipt.format)
        found = format_.recognise(data)
        if found is None:
            report.find(
                _CHECK, "format.unknown", where=receipt.document.name, message="its bytes are nothing that is known"
            )
        else:
            judgement = format_.judge(data, found, trust=trust, options=options)
    except NotFoundError:
        message = "its bytes are not here, so only what was said when it came in is known"
        report.find(_CHECK, "artifact.absent", where=receipt.document.name, message=message, asked=asked.artifacts)
    except LedgerError as error:
        report.find(_CHECK, "artifact.altered", where=receipt.document.name, message=str(error))
    return judgement, list(report.checks())


def _beside(receipt: Import, store: ArtifactStore, asked: Options) -> Options:
    """Return the options with what came with a document; what is asked for now goes before it."""
    for artifact in receipt.artifacts:
        if artifact.name == "policy" and asked.policy is None:
            asked = replace(asked, policy=store.content(artifact))
        elif artifact.name == "limits" and not asked.limits:
            values = orjson.loads(store.content(artifact))["limits"]
            asked = replace(asked, limits=tuple(Limit.model_validate(value) for value in values))
    return asked


def _placed(check: Check, where: str) -> Check:
    place = where if check.where is None else f"{where} {check.where}"
    covered = check.code in _COVERED
    return replace(check, name=f"{_CHECK} {check.name}", where=place, asked=check.asked and not covered)


def _merged(checks: list[Check]) -> tuple[Check, ...]:
    """Return checks of many documents, those that passed and those that nobody asked for said once for each name."""
    once: dict[tuple[str, str | None, str], Check] = {}
    others: list[Check] = []
    for check in checks:
        if check.status != "ok" and check.asked:
            others.append(check)
            continue
        what = (check.name, check.code, check.message)
        before = once.get(what)
        where = check.where if before is None and check.code is not None else None if before is None else before.where
        once[what] = replace(check, where=where, count=check.count + (before.count if before else 0))
    failing = {check.name for check in others}
    return (*(check for check in once.values() if check.code is not None or check.name not in failing), *others)
