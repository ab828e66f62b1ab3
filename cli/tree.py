"""`ledger tree`: what a receipt commits, down to the leaves."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from cli.amounts import amount
from cli.kept import Kept
from cli.log import STATUS_STYLES
from cli.options import JsonOption, LedgerOption, shared
from cli.refs import closing_of, resolve
from cli.text import console, escape, print_json, say, short, took
from ledger.errors import LedgerError, NotFoundError
from ledger.receipt import Decision, Intent, Opening, Outcome, Receipt, Run, Step, children_of, parse_receipt
from ledger.storage.ledger import Ledger

__all__ = ["print_tree", "register"]

_SHOWN_LEVELS = 100
"""Levels of a tree that are shown: more than a lawful one has."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(tree)


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
            say("this run is open: what it holds so far joins one tree when it is closed")
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
    children = _children(opened, id_, receipt)
    if not levels and children:
        branch.add(Text("deeper than a receipt tree may be", style="bold red"))
        return
    for child in children:
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


def _children(opened: Ledger, id_: str, receipt: Receipt) -> tuple[str, ...]:
    """Return what a receipt commits; of the opening of an open run, what the run holds and nothing commits yet."""
    if not isinstance(receipt, Opening) or closing_of(opened.reader, id_) is not None:
        return children_of(receipt)
    from cli.report.collect import collect_run  # noqa: PLC0415  closed runs need none of it

    found = collect_run(opened.reader, id_)
    committed = {child for _, each in found.receipts.values() if each is not None for child in children_of(each)}
    own = [
        each for each in found.by_run.get(id_, ()) if isinstance(found.get(each), Intent | Outcome | Decision | Step)
    ]
    closes = {each.run: name for name, (_, each) in found.receipts.items() if isinstance(each, Run)}
    below = [closes.get(child, child) for child in found.below.get(id_, ())]
    return tuple(each for each in (*own, *below) if each not in committed)


def _label(opened: Ledger, id_: str) -> Text:
    receipt = _load(opened, id_)
    text = Text()
    if isinstance(receipt, str):
        return text.append(f"{short(id_)} {receipt}", style="bold red")
    status = str(getattr(receipt, "status", ""))
    text.append(_name_of(opened, receipt, id_), style="bold")
    if status:
        text.append(f"  {status}", style=STATUS_STYLES.get(status, ""))
    for detail in _details(opened, id_, receipt):
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


@cache
def _kept(opened: Ledger) -> Kept:
    return Kept(opened.folder, store=opened.artifacts)


def _details(opened: Ledger, id_: str, receipt: Receipt) -> list[str]:
    found = []
    reason = getattr(receipt, "reason", None)
    if reason:
        found.append(str(reason))
    if isinstance(receipt, Decision) and receipt.meter is not None:
        found.extend(_limit(receipt, receipt.meter))
    if isinstance(receipt, Outcome):
        if receipt.exit_code is not None:
            found.append(f"exit {receipt.exit_code}")
        if receipt.signal is not None:
            found.append(f"signal {receipt.signal}")
    duration = getattr(receipt, "duration_ms", None)
    if isinstance(duration, int):
        found.append(took(duration))
    charges = receipt.charges if isinstance(receipt, Outcome) else ()
    found.extend(amount(each.meter, each.settled) for each in charges if each.settled is not None)
    if isinstance(receipt, Run):
        found.extend(amount(each.meter, each.value) for each in receipt.totals)
    kept = _kept(opened)
    names = [
        f"{escape(each.name)} {kept.quick(each.digest, lambda: opened.get(id_).entry.index)}".rstrip()
        for each in getattr(receipt, "artifacts", ())
        if each.name != "run-salt"
    ]
    if names:
        found.append("[" + ", ".join(names) + "]")
    return found


def _limit(decision: Decision, meter: str) -> list[str]:
    """Return what a decision says of the meter that stopped the act, or that made it wait."""
    if decision.limit is None:
        return [escape(meter)]
    said = [f"{escape(meter)}: limit {escape(amount(meter, decision.limit))}"]
    more = (("spent", decision.spent), ("reserved", decision.reserved), ("asked", decision.asked))
    said += [f"{word} {escape(amount(meter, value))}" for word, value in more if value is not None]
    return [", ".join(said)]


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
    children = [_tree_value(opened, child, seen, levels - 1) for child in _children(opened, id_, receipt)]
    if children:
        value["children"] = children
    return value
