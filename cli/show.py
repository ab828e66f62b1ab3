"""`ledger show`, `tree` and `artifact`: one receipt, what it commits, what it keeps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.text import Text
from rich.tree import Tree

from cli.log import STATUS_STYLES
from cli.options import JsonOption, LedgerOption, program_name, shared
from cli.refs import closing_of, resolve
from cli.text import console, escape, print_json, say, short, took, write_bytes
from ledger import canonical
from ledger.errors import FormatError, LedgerError, NotFoundError, clip
from ledger.members import Artifact
from ledger.receipt import Decision, Intent, Opening, Outcome, Receipt, Run, Step, children_of, parse_receipt
from ledger.storage.ledger import Ledger

__all__ = ["print_tree", "register"]

_SHOWN_LEVELS = 100
"""Levels of a tree that are shown: more than a lawful one has."""
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")
Reference = Annotated[str, typer.Argument(metavar="REF", help="A receipt id, 8 or more of its digits, or latest.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(show)
    app.command()(tree)
    app.command()(artifact)


def show(
    context: typer.Context,
    reference: Reference,
    raw: Annotated[
        bool, typer.Option("--raw", help="The receipt's bytes and nothing else: their SHA-256 is the id.")
    ] = False,
    envelope: Annotated[bool, typer.Option("--envelope", help="The envelope's bytes: payload, type, seal.")] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Show one receipt."""
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    stored = opened.get(resolve(opened, reference))
    if raw:
        write_bytes(stored.envelope.payload)
        return
    if envelope:
        write_bytes(stored.envelope_bytes)
        return
    value = canonical.decode(stored.envelope.payload)
    entry = canonical.decode(stored.entry_bytes)
    seal = stored.envelope.seal
    if options.json:
        print_json(
            {**entry, "receipt_id": stored.entry.receipt, "sealed_by": seal.key if seal else None, "payload": value}
        )
        return
    console().print(Text(f"receipt  {stored.entry.receipt}"))
    console().print(Text(f"entry    {stored.entry.index}, recorded {stored.entry.recorded_at}"))
    console().print(
        Text(f"seal     {'by its issuer, ' + seal.key if seal else 'none of its own: covered by what commits it'}")
    )
    console().print()
    _print_members(value, "")


def _print_members(value: dict[str, Any], indent: str) -> None:
    """Print an object as aligned names and values, nested objects below their name."""
    width = max((len(name) for name in value), default=0)
    for name, item in value.items():
        label = f"{indent}{escape(name):<{width}}  "
        if isinstance(item, dict) and item:
            console().print(Text(label.rstrip(), style="bold"))
            _print_members(item, indent + "  ")
        elif isinstance(item, list) and item and all(isinstance(each, dict) for each in item):
            console().print(Text(label.rstrip(), style="bold"))
            for each in item:
                _print_members(each, indent + "  - ")
        else:
            several = isinstance(item, list) and len(item) > 1 and all(isinstance(each, str) for each in item)
            for number, each in enumerate(item if several else [item]):
                text = each if isinstance(each, str) else orjson.dumps(each).decode()
                console().print(Text().append(" " * len(label) if number else label, style="bold").append(escape(text)))


def tree(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="REF", help="A receipt or run.")] = "latest",
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a receipt commits, down to the leaves. A run's id shows the whole run."""
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    id_ = resolve(opened, reference)
    receipt = parse_receipt(opened.get(id_).envelope.payload)
    if isinstance(receipt, Opening):
        closing = closing_of(opened.reader, id_)
        if closing is None:
            say("this run is open: its receipts join a tree when it is closed")
        else:
            id_ = closing.entry.receipt
    if options.json:
        print_json(_tree_value(opened, id_, set(), _SHOWN_LEVELS))
    else:
        _print_tree(opened, id_)


def print_tree(opened: Ledger, run: str) -> None:
    """Print the tree of a closed run, by its run id."""
    closing = closing_of(opened.reader, run)
    _print_tree(opened, closing.entry.receipt if closing is not None else run)


def _print_tree(opened: Ledger, id_: str) -> None:
    top = Tree(_label(opened, id_), guide_style="dim")
    _grow(opened, id_, top, {id_}, _SHOWN_LEVELS)
    console().print(top)


def _load(opened: Ledger, id_: str) -> Receipt | str:
    """Return a receipt, or the word for why it cannot be shown."""
    try:
        return parse_receipt(opened.get(id_).envelope.payload)
    except NotFoundError:
        return "absent"
    except LedgerError as error:
        return error.code


def _grow(opened: Ledger, id_: str, branch: Tree, seen: set[str], levels: int) -> None:
    """Add what a receipt commits; what an unlawful tree commits twice is shown where it is met first."""
    receipt = _load(opened, id_)
    if isinstance(receipt, str):
        return
    if not levels and children_of(receipt):
        branch.add(Text("deeper than a receipt tree may be", style="bold red"))
        return
    for child in children_of(receipt):
        if isinstance(receipt, Outcome) and child == receipt.intent:
            continue  # shown with its outcome
        if isinstance(receipt, Run) and child == receipt.run:
            continue
        label = _label(opened, child)
        if child in seen:
            branch.add(label.append("  committed above as well", style="bold red"))
            continue
        seen.add(child)
        _grow(opened, child, branch.add(label), seen, levels - 1)


def _label(opened: Ledger, id_: str) -> Text:
    receipt = _load(opened, id_)
    text = Text()
    if isinstance(receipt, str):
        return text.append(f"{short(id_)} {receipt}", style="bold red")
    status = str(getattr(receipt, "status", ""))
    text.append(_name_of(opened, receipt, id_), style="bold")
    if status:
        text.append(f"  {status}", style=STATUS_STYLES.get(status, ""))
    for detail in _details(receipt):
        text.append(f"  {detail}")
    return text.append(f"  {short(id_)}", style="dim")


def _name_of(opened: Ledger, receipt: Receipt, id_: str) -> str:
    match receipt:
        case Run():
            opening = _load(opened, receipt.run)
            return f"run {escape(opening.name)}" if isinstance(opening, Opening) else "run"
        case Outcome():
            intent = _load(opened, receipt.intent)
            return escape(intent.act.name) if isinstance(intent, Intent) else "outcome"
        case Step() | Opening():
            return f"{receipt.kind} {escape(receipt.name)}"
        case Intent() | Decision():
            return f"{receipt.kind} {escape(receipt.act.name)}"
        case _:
            return f"{receipt.kind} {short(id_)}"


def _details(receipt: Receipt) -> list[str]:
    found = []
    reason = getattr(receipt, "reason", None)
    if reason:
        found.append(str(reason))
    if isinstance(receipt, Outcome):
        if receipt.exit_code is not None:
            found.append(f"exit {receipt.exit_code}")
        if receipt.signal is not None:
            found.append(f"signal {receipt.signal}")
    duration = getattr(receipt, "duration_ms", None)
    if isinstance(duration, int):
        found.append(took(duration))
    kept = [each.name for each in getattr(receipt, "artifacts", ()) if each.name != "run-salt"]
    if kept:
        found.append("[" + ", ".join(escape(name) for name in kept) + "]")
    return found


def _tree_value(opened: Ledger, id_: str, seen: set[str], levels: int) -> dict[str, Any]:
    receipt = _load(opened, id_)
    if isinstance(receipt, str):
        return {"receipt": id_, "status": receipt}
    if id_ in seen or not levels:
        return {"receipt": id_, "kind": receipt.kind, "status": "repeated" if id_ in seen else "too_deep"}
    seen.add(id_)
    value: dict[str, Any] = {"receipt": id_, "kind": receipt.kind, "name": _name_of(opened, receipt, id_)}
    if hasattr(receipt, "status"):
        value["status"] = receipt.status
    children = [_tree_value(opened, child, seen, levels - 1) for child in children_of(receipt)]
    if children:
        value["children"] = children
    return value


def artifact(
    context: typer.Context,
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="An artifact's digest, or RECEIPT/NAME, such as latest/stdout.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here.", show_default=False)
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="The stored bytes with their salt: their SHA-256 is the digest.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Write the content of an artifact."""
    options = shared(context, ledger, json=json)
    opened = Ledger.open(options.folder(), places=options.places)
    found = _find_artifact(opened, reference)
    if options.json:
        print_json(found.model_dump(exclude_none=True))
        return
    data = opened.artifacts.get(found.digest) if stored else opened.artifact(found)
    if output is None:
        write_bytes(data)
    else:
        output.write_bytes(data)


def _find_artifact(opened: Ledger, reference: str) -> Artifact:
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
    for stored in opened.reader.backwards(f'"digest":"sha256:{match[1]}'.encode("ascii")):
        for each in _artifacts(parse_receipt(stored.envelope.payload)):
            if each.digest.startswith(f"sha256:{match[1]}"):
                found.setdefault(each.digest, each)
    if not found:
        raise NotFoundError(
            f"artifact: no receipt refers to {reference}",
            hint=f"see the artifacts of a run with: {program_name()} tree REF",
        )
    if len(found) > 1:
        raise LedgerError(
            f"{reference}: names {len(found)} artifacts", code="reference.ambiguous", hint=f"one of: {', '.join(found)}"
        )
    return next(iter(found.values()))


def _artifacts(receipt: Receipt) -> tuple[Artifact, ...]:
    return tuple(getattr(receipt, "artifacts", ()))


def _resolve_whole(opened: Ledger, reference: str) -> str:
    """Return the receipt that a reference names; for a run that is closed, the receipt that closes it and so commits all of it."""
    id_ = resolve(opened, reference)
    if isinstance(_load(opened, id_), Opening):
        closing = closing_of(opened.reader, id_)
        return id_ if closing is None else closing.entry.receipt
    return id_


def _named_artifact(opened: Ledger, id_: str, where: str, name: str) -> Artifact:
    """Return the artifact of that name that a receipt keeps; else the only one that a receipt below it keeps."""
    found: dict[str, Artifact] = {}
    waiting, seen = [id_], {id_}
    while waiting:
        at = waiting.pop()
        receipt = _load(opened, at)
        if isinstance(receipt, str):
            continue
        for each in _artifacts(receipt):
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
