"""`ledger artifact`: the content that a receipt keeps beside the chain; and how artifacts are named on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from cli.kept import Kept
from cli.options import JsonOption, LedgerOption, OutputOption, program_name, shared
from cli.refs import closing_of, resolve
from cli.text import print_json, short, write_bytes
from ledger.errors import DamagedError, FormatError, LedgerError, NotFoundError, StorageError, clip
from ledger.members import Artifact
from ledger.receipt import Import, Opening, Receipt, children_of, parse_receipt
from ledger.storage.ledger import Ledger
from ledger.storage.search import holding

__all__ = ["artifacts_of", "find_artifact", "register"]

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(artifact)


def artifact(
    context: typer.Context,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="A digest, or RECEIPT/NAME, such as latest/stdout.",
        ),
    ],
    output: OutputOption = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="The stored bytes with their salt: their SHA-256 is the digest.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Write the content of an artifact or document.

    Documents are the policies, terms, runbook envelopes and criteria that receipts name by digest.
    """
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    found = find_artifact(opened, reference)
    kept = Kept(opened.folder)
    if options.json:
        print_json({**found.model_dump(exclude_none=True), "condition": kept.condition(found.digest)})
        return
    try:
        data = opened.artifacts.get(found.digest) if stored else opened.artifact(found)
    except NotFoundError as error:
        if found.digest in kept.erasures:
            raise NotFoundError(f"artifact {found.digest}: {kept.why(found.digest)}", code="artifact.erased") from error
        raise
    except StorageError as error:
        if error.code in {"artifact.altered", "artifact.size"}:
            raise DamagedError(str(error), code=error.code, where=found.digest) from error
        raise
    if output is None:
        write_bytes(data)
    else:
        output.write_bytes(data)


def find_artifact(opened: Ledger, reference: str) -> Artifact:
    """Return the artifact, or document, that a digest, 8 or more of its digits, or RECEIPT/NAME names.

    Raises:
        NotFoundError: no receipt refers to such an artifact.
        LedgerError: `reference.ambiguous`: several, listed in its hint.
    """
    where, slash, name = reference.partition("/")
    if slash:
        return _named_artifact(opened, _resolve_whole(opened, where), where, name)
    match = _DIGEST.fullmatch(reference)
    if match is None:
        raise FormatError(
            f"artifact: got {clip(reference)}, expected a digest, at least 8 of its hex digits, or RECEIPT/NAME",
            code="reference.malformed",
        )
    found: dict[str, Artifact] = {}
    needle = f'"digest":"sha256:{match[1]}'.encode("ascii")
    for stored in holding(opened.folder, needle, stop=opened.head().size, newest_first=True):
        try:
            receipt = parse_receipt(stored.envelope.payload)
        except LedgerError:
            continue  # what it refers to cannot be read
        for each in artifacts_of(receipt):
            if each.digest.startswith(f"sha256:{match[1]}"):
                found.setdefault(each.digest, each)
    document = None if found else _document(opened, f"sha256:{match[1]}", reference)
    if document is not None:
        return document
    if not found:
        raise NotFoundError(
            f"artifact: no receipt refers to {reference}",
            hint=f"see the artifacts of a run with: {program_name()} tree REF",
        )
    if len(found) > 1:
        raise _ambiguous(reference, found)
    return next(iter(found.values()))


def _document(opened: Ledger, start: str, reference: str) -> Artifact | None:
    """Return the document whose digest begins like this as an artifact, None where no receipt names one.

    Raises:
        LedgerError: `reference.ambiguous`: several, listed in its hint.
    """
    found: dict[str, str] = {}
    for stored in holding(opened.folder, f'":"{start}'.encode("ascii"), stop=opened.head().size):
        try:
            receipt = parse_receipt(stored.envelope.payload)
        except LedgerError:
            continue
        found |= {each: name for name, each in _documents_of(receipt) if each.startswith(start)}
    if not found:
        return None
    if len(found) > 1:
        raise _ambiguous(reference, found)
    ((digest, name),) = found.items()
    _, size = opened.artifacts.inspect(digest)
    return Artifact(digest=digest, name=name, media_type="application/json", size_bytes=size, salted=False)


def _documents_of(receipt: Receipt) -> Iterator[tuple[str, str]]:
    """Yield name and digest of the documents of ours that a receipt names."""
    for name, member in (("policy", "policy"), ("terms", "conditions"), ("criteria", "criteria")):
        digest = getattr(receipt, member, None)
        if digest is not None:
            yield name, digest
    if isinstance(receipt, Opening) and receipt.runbook is not None:
        yield "runbook", receipt.runbook.envelope


def _ambiguous(reference: str, found: Iterable[str]) -> LedgerError:
    several = list(found)
    return LedgerError(
        f"{reference}: names {len(several)} artifacts", code="reference.ambiguous", hint=f"one of: {', '.join(several)}"
    )


def artifacts_of(receipt: Receipt) -> tuple[Artifact, ...]:
    """Return the artifacts that a receipt refers to."""
    document = (receipt.document,) if isinstance(receipt, Import) else ()
    return (*getattr(receipt, "artifacts", ()), *document)


def _resolve_whole(opened: Ledger, reference: str) -> str:
    """Return the receipt that a reference names; for a run that is closed, the receipt that closes it and so commits all of it."""
    id_ = resolve(opened, reference)
    if isinstance(parse_receipt(opened.get(id_).envelope.payload), Opening):
        closing = closing_of(opened.reader, id_)
        return id_ if closing is None else closing.entry.receipt
    return id_


def _named_artifact(opened: Ledger, id_: str, where: str, name: str) -> Artifact:
    """Return the artifact of that name that a receipt keeps; else the only one that a receipt below it keeps."""
    found: dict[str, Artifact] = {}
    waiting, seen = [id_], {id_}
    while waiting:
        at = waiting.pop()
        try:
            receipt = parse_receipt(opened.get(at).envelope.payload)
        except LedgerError:
            continue
        for each in artifacts_of(receipt):
            if each.name == name:
                if at == id_:
                    return each
                found[at] = each
        waiting.extend(child for child in children_of(receipt) if child not in seen)
        seen.update(children_of(receipt))
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise NotFoundError(
            f"artifact: {where} keeps none named {clip(name)}",
            hint=f"see what it keeps with: {program_name()} tree {where}",
        )
    raise LedgerError(
        f"artifact: {len(found)} receipts of {where} keep one named {clip(name)}",
        code="reference.ambiguous",
        hint="one of: " + ", ".join(f"{short(each)}/{name}" for each in sorted(found)),
    )
