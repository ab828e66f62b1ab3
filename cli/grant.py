"""`ledger grant`: give authority to act, narrow it, take it back, and see what stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer
from rich.table import Table

from cli.amounts import amount
from cli.options import JsonOption, LedgerOption, Shared, shared
from cli.refs import resolve
from cli.runbook import read_file
from cli.text import console, escape, print_json, say, short, styled
from ledger.errors import clip
from ledger.granted import Listed, grants_in
from ledger.granting import give, narrow, revoke
from ledger.members import Limit, PeriodLimit
from ledger.receipt import Grant, parse_receipt
from ledger.rules.amounts import parse_budget, parse_span
from ledger.rules.errors import BudgetError
from ledger.rules.grant_terms import TermsDocument, read_terms
from ledger.rules.instant import time_after
from ledger.storage.clock import now
from ledger.storage.ledger import Ledger
from ledger.words import Period

__all__ = ["register"]

GranteeArgument = Annotated[
    str, typer.Argument(metavar="AGENT", help="Who may act: the agent's name in the runs that act under it.")
]
ActOption = Annotated[
    list[str],
    typer.Option(
        "--act", metavar="PATTERN", help="Acts whose names this covers, such as 'db.*'; repeatable.", show_default=False
    ),
]
TermsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Conditions on arguments, and whose approvals an act needs.", show_default=False),
]
LimitOption = Annotated[
    list[str],
    typer.Option(
        "--limit",
        metavar="METER=N",
        help="What may be spent under it, such as usd=5.00; repeatable.",
        show_default=False,
    ),
]
PeriodOption = Annotated[
    list[str],
    typer.Option(
        "--period",
        metavar="ACCOUNT:PERIOD:METER=N",
        help="What an account may spend a day, week or month, such as acme:day:usd=5.00; repeatable.",
        show_default=False,
    ),
]
ExpiresOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="How long it holds, such as 24h or 30d; without it until revoked.", show_default=False
    ),
]
MandateOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The office that it comes from.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    grant = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help="Say who may do which acts, and take it back."
    )
    grant.command("give")(give_)
    grant.command("narrow")(narrow_)
    grant.command("revoke")(revoke_)
    grant.command("list")(list_)
    app.add_typer(grant, name="grant")


def give_(
    context: typer.Context,
    grantee: GranteeArgument,
    act: ActOption,
    terms: TermsOption = None,
    limit: LimitOption = [],
    period: PeriodOption = [],
    expires: ExpiresOption = None,
    mandate: MandateOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Give a grant: an agent may do these acts, within these limits.

    Runs name it when they begin: `grant=` in Python, `--grant` of `ledger hook`.
    """
    options = shared(context, ledger, json=json)
    bounds = _bounds_of(terms, limit, period, expires)
    with Ledger.open(options.folder(), places=options.places) as opened:
        made = give(opened, grantee, acts=act, mandate=mandate, **bounds)
        _print_made(options, opened, made)


def narrow_(
    context: typer.Context,
    parent: Annotated[
        str, typer.Argument(metavar="GRANT", help="The grant that it is narrowed from; 8 digits are enough.")
    ],
    grantee: GranteeArgument,
    act: ActOption = [],
    terms: TermsOption = None,
    limit: LimitOption = [],
    period: PeriodOption = [],
    expires: ExpiresOption = None,
    mandate: MandateOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Narrow a grant, for the same agent or for another one, which needs --mandate.

    What is not said here is as above; what is said may not be wider.
    """
    options = shared(context, ledger, json=json)
    bounds = _bounds_of(terms, limit, period, expires)
    with Ledger.open(options.folder(), places=options.places) as opened:
        made = narrow(opened, resolve(opened, parent), grantee, acts=act or None, mandate=mandate, **bounds)
        _print_made(options, opened, made)


def revoke_(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="GRANT", help="The grant; 8 digits are enough.")],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Revoke a grant: nothing runs any more under it, or under what was narrowed from it."""
    options = shared(context, ledger, json=json)
    with Ledger.open(options.folder(), places=options.places) as opened:
        grant = resolve(opened, reference)
        receipt = revoke(opened, grant)
        index = opened.get(receipt).entry.index
    if options.json:
        print_json({"revoked": grant, "index": index, "receipt": receipt})
        return
    typer.echo(f"entry    {index}\nreceipt  {receipt}\nrevoked  {grant}")


def list_(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Those under which nothing runs any more as well.")] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """List the grants under which something may run, oldest first."""
    options = shared(context, ledger, json=json)
    found = [each for each in grants_in(options.folder(), at=now()) if everything or each.fallen is None]
    if options.json:
        print_json([_value(each) for each in found])
        return
    if not found:
        say("no grant stands")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("grant", "for", "acts", "limits", "until", "from", *(("state",) if everything else ())):
        table.add_column(column, overflow="fold")
    for each in found:
        receipt = each.receipt
        cells = (
            short(each.stored.entry.receipt),
            receipt.grantee,
            "as above" if receipt.acts is None and receipt.parent else ", ".join(receipt.acts or ()),
            ", ".join(_limits_in_words(receipt)),
            (receipt.expires_at or "").replace("T", " ")[:19],
            short(receipt.parent) if receipt.parent else "",
            *((_state(each),) if everything else ()),
        )
        table.add_row(*(styled(cell, "") for cell in cells))
    console().print(table)


class _Bounds(TypedDict):
    """What bounds a grant besides the acts that it covers."""

    terms: TermsDocument | None
    limits: tuple[Limit, ...]
    periods: tuple[PeriodLimit, ...]
    expires_at: str | None


def _bounds_of(terms: Path | None, limits: Sequence[str], periods: Sequence[str], expires: str | None) -> _Bounds:
    return {
        "terms": None if terms is None else read_terms(read_file(terms, "--terms")),
        "limits": parse_budget(limits),
        "periods": _periods_of(periods),
        "expires_at": None if expires is None else time_after(now(), parse_span(expires, "--expires")),
    }


def _periods_of(words: Sequence[str]) -> tuple[PeriodLimit, ...]:
    """Return the limits of accounts that `--period` asks for.

    Raises:
        BudgetError: a word outside its form.
    """
    periods = []
    for word in words:
        account, _, rest = word.rpartition(":")
        account, _, name = account.rpartition(":")
        if not account or name not in list(Period) or "=" not in rest:
            raise BudgetError(
                f"--period: got {clip(word)}, expected ACCOUNT:PERIOD:METER=N, PERIOD one of {', '.join(Period)}",
                hint="for example: acme:day:usd=5.00",
            )
        (limit,) = parse_budget([rest])
        periods.append(PeriodLimit(account=account, meter=limit.meter, period=Period(name), limit=limit.limit))
    return tuple(periods)


def _print_made(options: Shared, opened: Ledger, made: str) -> None:
    stored = opened.get(made)
    receipt = parse_receipt(stored.envelope.payload)
    assert isinstance(receipt, Grant)  # noqa: S101  just made
    if options.json:
        print_json(_value(Listed(stored, receipt, None)))
        return
    typer.echo(f"entry    {stored.entry.index}\ngrant    {made}\nfor      {escape(receipt.grantee)}")
    if receipt.acts is not None:
        typer.echo(f"acts     {escape(', '.join(receipt.acts))}")
    for each in _limits_in_words(receipt):
        typer.echo(f"limit    {escape(each)}")
    if receipt.expires_at is not None:
        typer.echo(f"until    {receipt.expires_at}")


def _limits_in_words(receipt: Grant) -> list[str]:
    return [
        *(amount(each.meter, each.limit) for each in receipt.limits),
        *(f"{amount(each.meter, each.limit)} a {each.period} of {each.account}" for each in receipt.periods),
    ]


def _state(listed: Listed) -> str:
    return "stands" if listed.fallen is None else listed.fallen.code.removeprefix("grant.")


def _value(listed: Listed) -> dict[str, Any]:
    receipt, entry = listed.receipt, listed.stored.entry
    value: dict[str, Any] = {
        "grant": entry.receipt, "index": entry.index, "grantee": receipt.grantee, "recorded_at": entry.recorded_at,
        "state": _state(listed), "parent": receipt.parent, "mandate": receipt.mandate, "terms": receipt.conditions,
        "expires_at": receipt.expires_at,
        "acts": None if receipt.acts is None else list(receipt.acts),
        "limits": [each.model_dump(mode="json", exclude_none=True) for each in receipt.limits] or None,
        "periods": [each.model_dump(mode="json", exclude_none=True) for each in receipt.periods] or None,
    }  # fmt: skip
    return {name: item for name, item in value.items() if item is not None}
