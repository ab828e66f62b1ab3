"""`ledger import`: documents of other systems, kept as they came, judged by their own rules, and what they say as receipts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer

from cli.incoming import Incoming, judge_incoming, read_targets
from cli.options import JsonOption, LedgerOption, TrustOption, program_name, shared
from cli.text import escape, print_json, say, short
from cli.trustfile import read_trust
from ledger.importing.earlier import documents_naming, earlier_of
from ledger.importing.facts import Facts
from ledger.importing.recording import Document, Recorded, find_imports, record
from ledger.rules.amounts import parse_budget
from ledger.rules.policy_file import read_policy
from ledger.storage.ledger import Ledger
from verify.foreign import FORMATS
from verify.foreign.axlr.result import EXIT_CODES
from verify.foreign.mapping import Earlier, Given, mapping_of
from verify.options import Options

__all__ = ["checked_under", "import_documents", "register"]

_POLICY: Final = "policy"
_LIMITS: Final = "limits"
_JSON: Final = "application/json"
_LISTED: Final = 20
"""Documents, and runs, that are listed one by one."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("import")(import_)


def import_(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar=f"[{'|'.join(FORMATS)}] FILE...",
            help="Documents, receipt stores as folders, - for a stream on standard input. Without a format it is told by the content.",
            show_default=False,
        ),
    ],
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The policy that held, to check each recorded call again.", show_default=False
        ),
    ] = None,
    budget: Annotated[
        list[str],
        typer.Option(
            metavar="METER=AMOUNT", help="The budget that held, to check again; repeatable.", show_default=False
        ),
    ] = [],
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Take in documents of other systems and what they say.

    The bytes are kept as they came, with the verdict by their own rules. Importing a document again adds nothing. A document that does not hold is kept as well:
    `verify` of its import says so, and the ledger is none the worse for it.
    A stream of AXLR is passed through as it comes, and the exit is that of AXLR.
    """
    options = shared(context, ledger, json=json, trust=trust)
    format_, targets = (files[0], files[1:]) if files[0] in FORMATS and not Path(files[0]).exists() else (None, files)
    if not targets:
        raise typer.BadParameter("names no file", param_hint="FILE")
    asked = checked_under(policy.read_bytes() if policy is not None else None, budget)
    with Ledger.open(options.folder(), places=options.places) as opened:
        documents = read_targets(targets, format_, quiet=options.json)
        if (policy is not None or budget) and not any(_records_calls(each) for each in documents):
            raise typer.BadParameter(
                "none of the documents records calls that it is about", param_hint="--policy, --budget"
            )
        judged = judge_incoming(documents, read_trust(options), asked)
        recorded, facts, done = import_documents(opened, judged, asked)
    if options.json:
        print_json([_row(each, recorded) for each in done])
    else:
        _print(done, recorded, facts, to_stderr=targets == ["-"] and _is_stream(done))
    raise typer.Exit(_exit(done) if targets == ["-"] else 0)


def checked_under(policy: bytes | None, budget: Sequence[str]) -> Options:
    """Return the options under which documents are judged.

    Raises:
        PolicyError, BudgetError: the policy or the budget cannot be read.
    """
    if policy is not None:
        read_policy(policy)
    return Options(policy=policy, limits=parse_budget(budget))


def import_documents(
    opened: Ledger, documents: list[Incoming], asked: Options, *, correlation: Mapping[str, str] | None = None
) -> tuple[Recorded, Facts, list[Incoming]]:
    """Import judged documents as one; return where they stand, what was mapped, and the documents as they were judged at last.

    `correlation` goes to every run that is made of them.

    Raises:
        LedgerError: as `ledger.importing.recording.record`.
    """
    known = find_imports(opened, [each.digest for each in documents])
    done = _against_earlier(opened, documents, known)
    facts = _facts(opened, [each for each in done if each.digest not in known])
    if correlation:
        runs = tuple(replace(run, correlation={**run.correlation, **correlation}) for run in facts.runs)
        facts = replace(facts, runs=runs)
    beside: list[tuple[str, str, bytes]] = []
    if asked.policy is not None:
        beside.append((_POLICY, _JSON, asked.policy))
    if asked.limits:
        limits = [limit.model_dump(mode="json", exclude_none=True) for limit in asked.limits]
        beside.append((_LIMITS, _JSON, orjson.dumps({_LIMITS: limits})))
    kept = [_document(each, tuple(beside) if _records_calls(each) else ()) for each in done]
    return record(opened, kept, facts), facts, done


def _records_calls(each: Incoming) -> bool:
    """Return whether a policy and a budget of AXLR are about a document."""
    return each.found.format == "axlr" and each.found.kind in ("result", "stream", "journal", "session")


def _facts(opened: Ledger, documents: list[Incoming]) -> Facts:
    """Return what the documents say; of one that is ambiguous nobody can say what it does."""
    found = earlier_of(opened)

    def earlier(name: str, value: str) -> Earlier | None:
        run = found(name, value)
        return None if run is None else Earlier(*run)

    given: dict[str, list[Given]] = {}
    for each in documents:
        if each.native is None or each.native.code != "ambiguous":
            given.setdefault(each.found.format, []).append(Given(each.digest, each.data, each.found))
    said = [mapping_of(format_).facts(some, earlier) for format_, some in given.items()]
    return Facts(tuple(run for each in said for run in each.runs), tuple(note for each in said for note in each.notes))


def _against_earlier(opened: Ledger, documents: Sequence[Incoming], known: Collection[str]) -> list[Incoming]:
    """Return documents, each called ambiguous where the ledger holds another body under its id; those it holds stay as they are."""
    from verify.foreign.runx.store import receipts_in  # noqa: PLC0415  only receipts of runx have such ids

    receipts = {
        each.digest: receipts_in(each.data)
        for each in documents
        if each.found.format == "runx" and each.found.kind in ("receipt", "receipts") and each.digest not in known
    }
    ids = {receipt.id for found in receipts.values() for receipt in found}
    bodies = documents_naming(opened, ids)
    digests = {
        id_: {body.digest_actual for data in found for body in receipts_in(data) if body.id == id_}
        for id_, found in bodies.items()
    }

    def judged(each: Incoming) -> Incoming:
        if each.native is None or all(
            digests.get(receipt.id, set()) <= {receipt.digest_actual} for receipt in receipts.get(each.digest, ())
        ):
            return each
        return replace(each, native=replace(each.native, status="fails", code="ambiguous"))

    return [judged(each) for each in documents]


def _document(each: Incoming, beside: tuple[tuple[str, str, bytes], ...]) -> Document:
    native = each.native
    assert native is not None  # noqa: S101  judged before
    mapping = mapping_of(each.found.format).MAPPING
    return Document(
        each.data,
        each.name,
        each.media_type,
        each.found.format,
        each.found.version,
        native.status,
        native.code,
        mapping,
        beside,
    )


def _row(each: Incoming, recorded: Recorded) -> dict[str, Any]:
    position = recorded.imports[each.digest]
    native = each.native
    return {
        "name": each.name,
        "document": each.digest,
        "format": each.found.format,
        "kind": each.found.kind,
        "version": each.found.version,
        "native": {"status": native.status, "code": native.code} if native is not None else None,
        "import": position.receipt,
        "index": position.index,
        "already": position.already,
        "runs": list(recorded.runs),
    }


def _print(done: list[Incoming], recorded: Recorded, facts: Facts, *, to_stderr: bool) -> None:
    """Say for a person what was imported; of many documents, only those that do not hold one by one."""
    write = say if to_stderr else typer.echo
    bad = [each for each in done if each.native is not None and each.native.status in ("fails", "unreadable")]
    for each in done if len(done) <= _LISTED else bad[:_LISTED]:
        position = recorded.imports[each.digest]
        already = "  already there" if position.already else ""
        what = f"{each.found.format} {each.found.kind}"
        write(escape(f"{short(position.receipt)}  {what}  {each.name}: {_verdict(each)}{already}"))
    if len(done) > _LISTED:
        there = sum(position.already for position in recorded.imports.values())
        for verdict, count in Counter(_verdict(each) for each in done).most_common():
            write(escape(f"{count:,} documents: {verdict}"))
        if there:
            write(f"{there:,} of them already there")
    for run in recorded.runs[:_LISTED]:
        write(f"{short(run)}  run")
    if len(recorded.runs) > _LISTED:
        write(f"and {len(recorded.runs) - _LISTED:,} runs more")
    for note in facts.notes[:_LISTED]:
        say(escape(f"  {note}"))
    if bad:
        first = short(recorded.imports[bad[0].digest].receipt)
        say(f"what does not hold by its own rules is kept as well; look with: {program_name()} verify {first}")


def _verdict(each: Incoming) -> str:
    return f"{each.native.status}, {each.native.code}" if each.native is not None else ""


def _is_stream(done: list[Incoming]) -> bool:
    return len(done) == 1 and done[0].found.kind == "stream"


def _exit(done: list[Incoming]) -> int:
    """Return the exit code of the execution whose stream came in; 0 for anything else."""
    if not _is_stream(done):
        return 0
    native = done[0].native
    return EXIT_CODES.get(native.code, 1) if native is not None else 1
