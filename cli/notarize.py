"""`ledger notarize`: have a receipt counter-sealed, or the newest head cosigned, by notaries; drain what waits for one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.contradiction import report_contradiction
from cli.options import JsonOption, LedgerOption, Shared, TrustOption, outside_ledgers, program_name, shared
from cli.refs import resolve, whole_run
from cli.text import escape, print_json, say, short
from cli.timestamp import Stamped, stamp
from cli.trustfile import read_trust
from cli.waiting import print_waiting, queue_of, waiting_value
from ledger.errors import DamagedError, LedgerError, NotFoundError, clip
from ledger.storage.clock import now
from ledger.storage.durable import replace
from ledger.storage.reader import Reader
from notary.ask import Cosigned, Sealed, ask_head, ask_receipt, is_contradiction
from notary.client import AnswerError, NotaryClient, UnreachableError, check_url
from notary.errors import RefusedError
from notary.queue import Pending, Queue
from verify.trust import Trust

__all__ = ["register"]

_TOKEN: Final = "LEDGER_NOTARY_TOKEN"  # noqa: S105  the name, not the token
_URL: Final = "LEDGER_NOTARY"
_WAITS: Final = frozenset({401, 403, 404, 425, 429})
"""Statuses after which a request stays: a token, an admission or time may change the answer."""
_PRECEDENCE: Final = (1, 5, 4, 2, 3, 0)


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of one line of the queue: what was kept, or why nothing was; `exit` is what the command ends with for it."""

    line: Pending
    exit: int
    found: Sealed | Cosigned | None = None
    said: str = ""
    contradicts: bool = False
    """Whether the notary says that it remembers more, or another history: its word, to be judged here."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(notarize)


def notarize(
    context: typer.Context,
    reference: Annotated[
        str | None,
        typer.Argument(metavar="[REF]", help="A receipt or run, or latest. Without one: latest.", show_default=False),
    ] = None,
    notary: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            help="Whom to ask; repeatable. Without it: LEDGER_NOTARY, else the notaries in your trust file.",
            show_default=False,
        ),
    ] = [],
    full: Annotated[
        bool, typer.Option("--full", help="Send the whole run, for the notary to verify it. Without it: digests only.")
    ] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Allow the notary to show it on a public page.")] = False,
    head: Annotated[bool, typer.Option("--head", help="The newest head, to be cosigned, and no receipt.")] = False,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Have the newest head timestamped by an authority (RFC 3161).", show_default=False
        ),
    ] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Send again what waits for a notary.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only list what waits, and for how long.")] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Send nothing: drop what waits, of REF and --notary where they are given.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the sealed document here as well.",
            show_default=False,
            callback=outside_ledgers,
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Have somebody else counter-seal a receipt, or cosign a head.

    A notary sees digests, sizes and the ledger's name, unless --full says more. Without an answer the request waits here and
    nothing is lost: `--pending` sends it again. The token is taken from LEDGER_NOTARY_TOKEN.
    """
    options = shared(context, ledger, json=json, trust=trust)
    _refuse_mixture(reference, head=head, pending=pending, list_=list_, full=full, publish=publish, output=output)
    if forget and (head or pending or list_ or full or publish or output is not None or timestamp is not None):
        raise typer.BadParameter("goes with REF and --notary only", param_hint="--forget")
    folder = options.folder()
    origin = Reader(folder).header().ledger
    queue = queue_of(options.places, origin)
    if list_:
        waiting = queue.all()
        if options.json:
            print_json(waiting_value(waiting))
        else:
            print_waiting(waiting, options)
        return
    if forget:
        _forget(queue, None if reference is None else _receipt(folder, reference), notary, options)
        return
    believed = read_trust(options)
    stamped = None if timestamp is None else stamp(folder, timestamp, believed)
    lines: list[Pending] = []
    if pending:
        lines = [each for each in queue.all() if not notary or each.url in {_plain(url) for url in notary}]
    elif timestamp is None or head or reference is not None or notary:
        receipt = None if head else _receipt(folder, reference or "latest")
        urls = _urls(notary, believed)
        lines = [queue.add(Pending(url, receipt, now(), full, publish)) for url in urls]
    tokens = _tokens(lines, named=bool(notary))
    done = [_send(each, folder, queue, tokens, believed) for each in lines]
    if output is not None:
        _write_documents(done, output)
    _print(done, stamped, queue, options, drained=pending)
    exits = [each.exit for each in done]
    contradicting = [each.line.url for each in done if each.contradicts]
    if contradicting:
        exits.append(report_contradiction(folder, origin, contradicting, options))
    raise typer.Exit(next(code for code in _PRECEDENCE if code in exits or code == 0))


def _refuse_mixture(
    reference: str | None, *, head: bool, pending: bool, list_: bool, full: bool, publish: bool, output: Path | None
) -> None:
    """Raise where options do not go together."""
    one = [
        name
        for name, given in (("REF", reference is not None), ("--head", head), ("--pending", pending), ("--list", list_))
        if given
    ]
    if len(one) > 1:
        raise typer.BadParameter(f"{' and '.join(one)} do not go together")
    if one and one != ["REF"] and (full or publish or output is not None):
        raise typer.BadParameter(f"{one[0]} goes without --full, --publish and --output")


def _receipt(folder: Path, reference: str) -> str:
    """Return the receipt that a reference names; of a run, the one that closes it and so commits all of it."""
    reader = Reader(folder)
    id_ = whole_run(reader, resolve(reader, reference))
    if b'"kind":"opening"' in reader.get(id_).envelope.payload:
        say("this run is open: its opening is sealed, and nothing that follows it")
    return id_


def _forget(queue: Queue, receipt: str | None, notary: Sequence[str], options: Shared) -> None:
    """Drop what waits, all of it or what is about a receipt or for a notary, and say what that was."""
    urls = {_plain(url) for url in notary}
    dropped = [each for each in queue.all() if (not urls or each.url in urls) and receipt in {None, each.receipt}]
    for each in dropped:
        queue.done(each)
    if options.json:
        print_json({"forgotten": waiting_value(dropped)["pending"]})
        return
    for each in dropped:
        what = "the newest head" if each.receipt is None else short(each.receipt)
        typer.echo(f"forgotten     {what}  at {escape(each.url)}")
    if not dropped:
        say("nothing waits for a notary")


def _plain(url: str) -> str:
    return str(check_url(url)).rstrip("/")


def _urls(given: Sequence[str], trust: Trust | None) -> list[str]:
    """Return whom to ask, each once."""
    named = list(given) or [url for url in (os.environ.get(_URL),) if url]
    pinned = () if trust is None else trust.notaries.values()
    urls = named or [each.url for each in pinned if each.url is not None]
    if not urls:
        raise LedgerError(
            "notarize: no notary is named",
            code="usage.notary",
            hint=f"name one with --notary URL or in {_URL}, or pin one with its url in your trust file",
        )
    return list(dict.fromkeys(_plain(url) for url in urls))


def _tokens(lines: Sequence[Pending], *, named: bool) -> dict[str, str]:
    """Return the token for each notary: one alone goes to the only notary that is asked; else each stands as URL=TOKEN.

    Raises:
        LedgerError: one token and several notaries: it would be shown to those that it is not for.
    """
    text = os.environ.get(_TOKEN, "").strip()
    urls = {each.url for each in lines}
    if not text or not urls:
        return {}
    if "://" in text:
        pairs = (each.partition("=") for each in text.split())
        return {_plain(url): token for url, _, token in pairs if url and token}
    if len(urls) > 1:
        raise LedgerError(
            f"notarize: one token for {len(urls)} notaries",
            code="usage.token",
            hint=f"give {_TOKEN} as URL=TOKEN URL=TOKEN …, or name one notary at a time with --notary"
            + ("" if named else " URL"),
        )
    return {urls.pop(): text}


def _send(line: Pending, folder: Path, queue: Queue, tokens: dict[str, str], trust: Trust | None) -> _Done:
    """Return what came of sending one line; it stays in the queue unless it is answered, or refused for good."""
    try:
        with NotaryClient(line.url, token=tokens.get(line.url)) as client:
            found: Sealed | Cosigned
            if line.receipt is None:
                found = ask_head(client, folder, trust=trust)
            else:
                found = ask_receipt(client, folder, line.receipt, trust=trust, full=line.full, publish=line.publish)
    except UnreachableError as error:
        return _Done(queue.failed(line, error.code), 3, said=str(error))
    except AnswerError as error:
        # What came is not kept; a notary that answers wrongly today may be asked again.
        exit_ = 4 if error.code.startswith("trust.") else 1
        return _Done(queue.failed(line, error.code), exit_, said=str(error))
    except RefusedError as error:
        contradicts = is_contradiction(error)
        if contradicts or error.status in _WAITS:
            line = queue.failed(line, error.code)
            return _Done(line, 3 if contradicts else 2, said=_explained(error), contradicts=contradicts)
        queue.done(line)
        return _Done(line, 2, said=_explained(error))
    except LedgerError as error:
        # One line that cannot be sent, such as one of a receipt that a restored ledger lacks, stops no other.
        exit_ = 1 if isinstance(error, DamagedError) else 5 if isinstance(error, NotFoundError) else 2
        return _Done(queue.failed(line, error.code), exit_, said=str(error))
    queue.done(line)
    return _Done(line, 0, found)


def _explained(error: RefusedError) -> str:
    """Return what a refusal says, and what helps."""
    hints = {
        401: f"give its token in {_TOKEN}",
        403: "ask its operator what the token allows, and which log key it knows of this ledger",
        404: "ask its operator to admit this ledger, or for a token that may",
        413: "send digests only, without --full",
        429: "it was asked too often: wait",
    }
    hint = hints.get(error.status)
    return f"{error}\n  {hint}" if hint else str(error)


def _write_documents(done: Sequence[_Done], output: Path) -> None:
    """Write the sealed document, and the proof of the notary's own record beside it."""
    found = [each.found for each in done if isinstance(each.found, Sealed)]
    if len(found) > 1:
        raise typer.BadParameter("takes the document of one notary", param_hint="--output")
    for each in found:
        replace(output, each.path.read_bytes(), durable=False)
        proof = each.path.with_suffix(".tlog-proof")
        replace(output.with_name(output.name + ".tlog-proof"), proof.read_bytes(), durable=False)


def _print(done: Sequence[_Done], stamped: Stamped | None, queue: Queue, options: Shared, *, drained: bool) -> None:
    waiting = queue.all()
    if options.json:
        value: dict[str, Any] = {
            "results": [_value(each) for each in done],
            "pending": waiting_value(waiting)["pending"],
        }
        if stamped is not None:
            value["timestamp"] = stamped.to_value()
        print_json(value)
        return
    if stamped is not None:
        typer.echo(f"timestamp     {stamped.time}  by {escape(stamped.authority)}  (size {stamped.size})")
        typer.echo(f"file          {escape(str(stamped.path))}")
    for each in done:
        match each.found:
            case Sealed():
                _print_sealed(each.found, each.line.url, options)
            case Cosigned():
                _print_cosigned(each.found)
            case None:
                say(escape(each.said, keep="\n"), style="bold red" if each.exit != 3 else "yellow")
    if drained and not done and not waiting:
        say("nothing waits for a notary")
    if waiting:
        print_waiting(waiting, options)


def _print_sealed(found: Sealed, url: str, options: Shared) -> None:
    seal = found.seal
    typer.echo(f"counter-seal  {short(seal.receipt)}  by {escape(seal.notary)} at {seal.issued_at}")
    typer.echo(f"              entry {seal.entry_index} of {escape(seal.origin)}, size {seal.size}, {seal.mode}")
    if not isinstance(seal.verdict, str):
        typer.echo(f"verdict       exit {seal.verdict.exit}, {seal.verdict.digest}")
    typer.echo(f"file          {escape(str(found.path))}")
    if found.published:
        typer.echo("published     yes")
    if not found.pinned:
        to = f" --trust {escape(str(options.trust))}" if options.trust is not None else ""
        say("\nnobody vouches for this notary's key yet. Compare it with the notary's operator, then pin it:")
        say(
            f"  {program_name()} trust add {escape(seal.notary)} --role notary --key {seal.key} --url {escape(url)}{to}"
        )


def _print_cosigned(found: Cosigned) -> None:
    names = ", ".join(escape(name) if name in found.pinned else f"{escape(name)} (not pinned)" for name in found.names)
    typer.echo(f"cosigned      size {found.head.size}  by {names}")
    typer.echo(f"file          {escape(str(found.path))}")


def _value(done: _Done) -> dict[str, Any]:
    line = done.line
    value: dict[str, Any] = {"notary": line.url, "exit": done.exit}
    match done.found:
        case Sealed() as found:
            seal = found.seal
            value |= {
                "receipt": seal.receipt, "by": seal.notary, "key": seal.key, "issued_at": seal.issued_at,
                "size": seal.size, "mode": seal.mode, "file": str(found.path), "published": found.published,
                "pinned": found.pinned,
            }  # fmt: skip
        case Cosigned() as found:
            value |= {
                "size": found.head.size, "by": list(found.names), "file": str(found.path), "pinned": list(found.pinned)
            }  # fmt: skip
        case None:
            value |= {"receipt": line.receipt} if line.receipt is not None else {"head": True}
            value["said"] = clip(done.said)
    return value
