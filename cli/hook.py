"""`ledger hook`: the tool calls of an agent client, recorded and held from outside the agent."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from cli.options import JsonOption, LedgerOption, TrustOption, outside_ledgers, shared
from cli.refs import resolve
from cli.runbook import allowlist_of, read_file
from cli.trustfile import read_trust
from ledger import canonical
from ledger.errors import LedgerError
from ledger.hooking import HOOK, Hook, HookAnswer, parse_event
from ledger.members import Actor
from ledger.rules.amounts import parse_budget
from ledger.run_options import RunOptions
from ledger.storage.ledger import Ledger
from verify.rules import approvers_of

__all__ = ["register"]

STOP: Final = 2
"""Exit code that keeps an agent client from making the call."""
_LONGEST: Final = 64 << 20


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(hook)


def hook(
    context: typer.Context,
    session: Annotated[str, typer.Option(help="The session, where an event names none.")] = "default",
    agent: Annotated[str, typer.Option(help="Which agent acts.")] = "unknown",
    user: Annotated[str, typer.Option(help="On whose behalf.")] = "unknown",
    model: Annotated[str, typer.Option(help="With which model.")] = "unknown",
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The policy that calls are decided under.", show_default=False)
    ] = None,
    budget: Annotated[
        list[str],
        typer.Option(
            "--budget", metavar="METER=N", help="A limit, such as tool_calls=60; repeatable.", show_default=False
        ),
    ] = [],
    inline: Annotated[
        list[str],
        typer.Option(
            "--inline", metavar="NAME", help="An argument that rules look at; repeatable.", show_default=False
        ),
    ] = [],
    grant: Annotated[
        str | None,
        typer.Option(
            metavar="GRANT", help="The grant that the agent acts under; 8 digits are enough.", show_default=False
        ),
    ] = None,
    runbook: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The runbook, or its policy envelope.", show_default=False)
    ] = None,
    profile: Annotated[str, typer.Option(metavar="R0|R1|R2", help="How much of the runbook is enforced.")] = "R2",
    risk_ceiling: Annotated[str, typer.Option(metavar="RISK", help="The highest risk of a step that runs.")] = "write",
    allow: Annotated[
        list[str],
        typer.Option("--allow", metavar="TOOL", help="A tool that this client allows; repeatable.", show_default=False),
    ] = [],
    resident: Annotated[
        bool, typer.Option("--resident", help="Take events and answer them line by line until standard input ends.")
    ] = False,
    socket_path: Annotated[
        Path | None,
        typer.Option(
            "--socket", metavar="PATH", help="Take events at a socket.", show_default=False, callback=outside_ledgers
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Hold the tool calls of an agent client, an event each.

    An event is read from standard input before and after each call; exit 2 if the call must not be made.
    """
    options = shared(context, ledger, json=json, trust=trust)
    try:
        with Ledger.open(options.folder(), places=options.places) as opened:
            given = RunOptions(
                actor=Actor(agent=agent, user=user, model=model),
                adapter=HOOK,
                limits=parse_budget(budget),
                policy=None if policy is None else read_file(policy, "--policy"),
                grant=None if grant is None else resolve(opened, grant),
                runbook=None if runbook is None else read_file(runbook, "--runbook"),
                profile=profile,
                risk_ceiling=risk_ceiling,
                allowlist=allowlist_of(allow),
                approvers=approvers_of(read_trust(options)),
            )
            taking = Hook(opened, given, session=session, inline=tuple(inline))
            if socket_path is not None:
                _serve(taking, socket_path)
            elif resident:
                _lines(taking)
            else:
                _once(taking)
    except LedgerError as error:
        # Whatever keeps us from recording keeps the call from being made.
        _say(HookAnswer("deny", reason=error.code, message=str(error)))
        typer.echo(f"hook: {error}", err=True)
        raise typer.Exit(STOP) from error


def _once(taking: Hook) -> None:
    answer = taking.take(parse_event(sys.stdin.buffer.read(_LONGEST + 1)))
    _say(answer)
    if answer.stops:
        typer.echo(f"{answer.decision}: {answer.message or answer.reason}", err=True)
        raise typer.Exit(STOP)


def _lines(taking: Hook) -> None:
    for line in sys.stdin.buffer:
        if line.strip():
            _say(_answered(taking, line))


def _serve(taking: Hook, path: Path) -> None:
    """Answer each connection to a socket that only its owner may connect to, until the process is told to end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
        except OSError as error:
            raise LedgerError(f"--socket: {path}: {error.strerror}", code="hook.socket") from error
        finally:
            os.umask(before)
        try:
            listening.listen(64)
            typer.echo(f"taking events at {path}", err=True)
            while True:
                connection, _ = listening.accept()
                with connection:
                    connection.settimeout(10)
                    _answer_one(taking, connection)
        finally:
            path.unlink(missing_ok=True)


def _answer_one(taking: Hook, connection: socket.socket) -> None:
    data = bytearray()
    try:
        while chunk := connection.recv(65_536):
            data += chunk
            if len(data) > _LONGEST:
                return
        connection.sendall(_text(_answered(taking, bytes(data))))
    except OSError:
        return  # whoever asked left; what was recorded stays


def _answered(taking: Hook, data: bytes) -> HookAnswer:
    try:
        return taking.take(parse_event(data))
    except LedgerError as error:
        return HookAnswer("deny", reason=error.code, message=str(error))


def _say(answer: HookAnswer) -> None:
    sys.stdout.buffer.write(_text(answer))
    sys.stdout.buffer.flush()


def _text(answer: HookAnswer) -> bytes:
    return canonical.encode(answer.value()) + b"\n"
