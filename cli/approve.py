"""`ledger pending`, `approve` and `deny`: acts that wait, and the answers of people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import orjson
import typer

from cli.append import append_checked
from cli.options import JsonOption, LedgerOption, Shared, TrustOption, outside_ledgers, program_name, shared
from cli.refs import resolve, resolve_run
from cli.text import escape, print_json, say, short
from cli.trustfile import read_trust
from ledger.answering import Asked, answers_of, print_requests, read_requests, standing_approval
from ledger.consent import Request, kept_arguments, requests_of
from ledger.envelope import print_envelope, seal
from ledger.errors import AdmissionError, clip
from ledger.keys import PrivateKey
from ledger.members import Issuer
from ledger.receipt import Approval, Decision, parse_receipt, print_receipt
from ledger.recorder import opening_of
from ledger.rules.amounts import parse_span
from ledger.rules.approval import ApprovalState, Approver
from ledger.rules.instant import time_after
from ledger.storage.clock import now
from ledger.storage.durable import replace
from ledger.storage.keyfile import read_key
from ledger.storage.ledger import Ledger
from ledger.storage.writer import View
from verify.rules import approvers_of

__all__ = ["register"]

_EXPIRES: Final = "24h"
KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Your own private key.", show_default=False)
]
NameOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Your name. Without it: the one your trust file has for this key.", show_default=False
    ),
]
RoleOption = Annotated[
    str | None, typer.Option(metavar="ROLE", help="In which role, where the request names several.", show_default=False)
]
ExpiresOption = Annotated[str, typer.Option(metavar="TIME", help="How long a grant may be used, such as 15m or 24h.")]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the answers here, for `ledger append`.",
        show_default=False,
        callback=outside_ledgers,
    ),
]
RequestArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[REQ|FILE]", help="The request, or a file of `ledger pending --template`.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(pending)
    app.command()(approve)
    app.command()(deny)


def pending(
    context: typer.Context,
    reference: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="A run or a request; all runs without it.", show_default=False)
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print a file to answer with, on a machine without the ledger too.")
    ] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Print the receipt ids of the requests and nothing else.")] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Show the acts that wait, and what exactly would run."""
    options = shared(context, ledger, json=json, trust=trust)
    with Ledger.open(options.folder(), places=options.places) as opened:
        found = _waiting(opened, _approvers(options), reference)
        asked = [_asked(opened, each) for each in found]
    if template:
        if not asked:
            raise AdmissionError("pending: nothing waits, so there is no template", code="approval.nothing_waits")
        print_json(print_requests(asked))
    elif ids:
        for each in found:
            typer.echo(each.id)
    elif options.json:
        print_json([_shown(each, one) for each, one in zip(found, asked, strict=True)])
    elif not asked:
        typer.echo("nothing waits")
    else:
        for each, one in zip(found, asked, strict=True):
            _print_request(each, one)


def approve(
    context: typer.Context,
    request: RequestArgument = None,
    key: KeyOption = None,
    name: NameOption = None,
    role: RoleOption = None,
    expires: ExpiresOption = _EXPIRES,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="No request: acts whose name this covers, --uses times.", show_default=False
        ),
    ] = None,
    uses: Annotated[int, typer.Option(metavar="N", help="How many acts a standing approval covers.", min=1)] = 1,
    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="A standing approval holds in this run only.", show_default=False)
    ] = None,
    output: OutOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Approve an act that waits, or acts by a pattern.

    With your own key, never the ledger's.
    """
    options = shared(context, ledger, json=json, trust=trust)
    if pattern is None:
        _answer(options, request, "granted", key, name, role, expires, output)
        return
    if request is not None:
        raise typer.BadParameter("a standing approval answers no request", param_hint="--pattern")
    signer, issuer, roles = _signer(options, key, name)
    with Ledger.open(options.folder(), places=options.places) as opened:
        made = standing_approval(
            opened.origin,
            issuer,
            pattern=pattern,
            uses=uses,
            expires_at=_until(expires),
            role=role or next(iter(roles), "approver"),
            run=None if run is None else resolve_run(opened, run),
        )
        _deliver(options, opened, [made], signer, output)


def deny(
    context: typer.Context,
    request: RequestArgument = None,
    key: KeyOption = None,
    name: NameOption = None,
    role: RoleOption = None,
    output: OutOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Deny an act that waits.

    It stands above approvals until you replace it.
    """
    options = shared(context, ledger, json=json, trust=trust)
    _answer(options, request, "denied", key, name, role, _EXPIRES, output)


def _answer(
    options: Shared,
    request: str | None,
    word: Literal["granted", "denied"],
    key: Path | None,
    name: str | None,
    role: str | None,
    expires: str,
    output: Path | None,
) -> None:
    if request is None:
        raise typer.BadParameter(f"say which request; `{program_name()} pending` lists them", param_hint="REQ")
    signer, issuer, roles = _signer(options, key, name)
    path = Path(request)
    if path.is_file():
        asked = read_requests(path.read_bytes())
        made = answers_of(asked, issuer, role=role, roles=roles, answer=word, expires_at=_until(expires))
        if output is not None:
            _deliver(options, None, made, signer, output)
            return
        with Ledger.open(options.folder(), places=options.places) as opened:
            _deliver(options, opened, made, signer, output)
        return
    with Ledger.open(options.folder(), places=options.places) as opened:
        found = _waiting(opened, _approvers(options), request, every=True)
        one = [_asked(opened, each) for each in found]
        made = answers_of(one, issuer, role=role, roles=roles, answer=word, expires_at=_until(expires))
        _deliver(options, opened, made, signer, output)


def _deliver(
    options: Shared, opened: Ledger | None, made: Sequence[Approval], signer: PrivateKey, output: Path | None
) -> None:
    """Write the sealed answers to a file, or append them."""
    if not made:
        raise AdmissionError("approve: no request in the file has an answer", code="approval.nothing_answered")
    envelopes = [seal(print_receipt(each), signer) for each in made]
    if output is not None:
        replace(output, b"".join(print_envelope(each) + b"\n" for each in envelopes), durable=True)
        say(
            f"{len(made)} answered in {escape(str(output))}; bring it in with: {program_name()} append {escape(str(output))}"
        )
        return
    assert opened is not None  # noqa: S101  without an output file the ledger is at hand
    positions = append_checked(opened, envelopes, _approvers(options))
    if options.json:
        print_json([{"receipt": each.receipt, "index": each.index} for each in positions])
        return
    for position, each in zip(positions, made, strict=True):
        where = short(each.request) if each.request is not None else f"{each.pattern}, {each.uses} times"
        typer.echo(f"{each.answer} {escape(where)} until {each.expires_at}   {short(position.receipt)}")


def _waiting(
    opened: Ledger, approvers: dict[str, Approver], reference: str | None, *, every: bool = False
) -> list[Request]:
    """Return the requests that wait in all open runs, in one run, or the one that is named; with `every`, in whatever state."""
    wanted: str | None = None
    runs = [each.id for each in opened.open_runs()]
    if reference is not None:
        id_ = resolve(opened, reference)
        receipt = parse_receipt(opened.get(id_).envelope.payload)
        if isinstance(receipt, Decision):
            if receipt.status != "waiting":
                raise AdmissionError(
                    f"{short(id_)}: is {receipt.status}, and waits for nothing", code="approval.unknown"
                )
            wanted, runs = id_, [receipt.run]
        else:
            runs = [resolve_run(opened, reference)]
    found: list[Request] = []

    def look(view: View) -> None:
        for run in runs:
            opening = opening_of(opened, run)
            found.extend(
                requests_of(opened.reader, view.state, view.keyring, run, opening, approvers=approvers, now=now())
            )

    opened.look(look)
    if wanted is not None:
        return [each for each in found if each.id == wanted]
    return [each for each in found if every or each.state is ApprovalState.PENDING]


def _asked(opened: Ledger, request: Request) -> Asked:
    decision, opening = request.decision, opening_of(opened, request.decision.run)
    return Asked(
        ledger=opened.origin,
        request=request.id,
        run=decision.run,
        run_name=opening.name,
        actor=opening.actor,
        act=decision.act,
        act_digest=decision.act_digest,
        arguments=kept_arguments(opened, decision),
        effect_key=decision.effect.key if decision.effect is not None else None,
        policy=decision.policy,
        rule=decision.rule,
        meter=decision.meter,
        roles=decision.roles,
        needed=max(1, decision.needed or 1),
        expires_at=decision.expires_at,
    )


def _shown(request: Request, asked: Asked) -> dict[str, object]:
    grants = sorted(each.name for each in request.ballot.answers.values() if each.granted)
    shown = asked.model_dump(mode="json", exclude={"answer", "role"})
    return {**shown, "state": str(request.state), "index": request.index, "granted_by": grants}


def _print_request(request: Request, asked: Asked) -> None:
    act = asked.act
    lines = [
        ("request", f"{asked.request}"),
        ("run", f"{short(asked.run)}  {asked.run_name}, agent {asked.actor.agent} for {asked.actor.user}"),
        ("act", f"{act.name}  (tool {act.tool.name} {act.tool.version}, {act.access})"),
    ]
    if act.resource != "unknown" or act.environment != "unknown":
        lines.append(("on", f"{act.resource}, environment {act.environment}"))
    if act.amount is not None:
        lines.append(("amount", f"{act.amount.value} {act.amount.meter}"))
    if asked.arguments is not None:
        lines.append(("arguments", orjson.dumps(asked.arguments, option=orjson.OPT_SORT_KEYS).decode()))
    elif act.arguments_digest != "unknown":
        lines.append(("arguments", f"not at hand, {act.arguments_digest}"))
    if asked.effect_key is not None:
        lines.append(("effect", asked.effect_key))
    why = asked.rule or (f"soft limit {asked.meter}" if asked.meter else "the caller")
    granted = sum(each.granted for each in request.ballot.answers.values())
    roles = f" of {' or '.join(asked.roles)}" if asked.roles else ""
    lines.append(("needs", f"{asked.needed} approval{'s' * (asked.needed > 1)}{roles}, has {granted}; asked by {why}"))
    if asked.expires_at is not None:
        lines.append(("until", asked.expires_at))
    for name, text in lines:
        typer.echo(f"{name:<10} {escape(text)}")
    typer.echo(f"{'answer':<10} {program_name()} approve {asked.request[7:19]} --key FILE\n")


def _signer(options: Shared, key: Path | None, name: str | None) -> tuple[PrivateKey, Issuer, tuple[str, ...]]:
    """Return the approver's key, who they are, and their roles as far as the trust in use names them."""
    if key is None:
        raise typer.BadParameter(
            f"say with which key you answer; make one with: {program_name()} keys new FILE", param_hint="--key"
        )
    signer = read_key(key)
    trust = read_trust(options)
    if name is None and trust is not None:
        name = next((each.name for each in trust.approvers.values() if each.key == signer.key), None)
    if name is None:
        raise AdmissionError(
            f"approve: trust names no approver with the key {clip(signer.key)}",
            code="approval.unnamed",
            hint=f"say who you are with --name; whoever runs the acts must trust you: {program_name()} trust add",
        )
    pinned = None if trust is None else trust.approvers.get(name)
    roles = pinned.roles if pinned is not None and pinned.key == signer.key else ()
    return signer, Issuer(name=name, key=signer.key), roles


def _approvers(options: Shared) -> dict[str, Approver]:
    return approvers_of(read_trust(options))


def _until(expires: str) -> str:
    return time_after(now(), parse_span(expires, "--expires"))
