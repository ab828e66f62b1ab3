"""`ledger run`, `resume` and `close`: a command recorded while it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cli.enforce import TimeLimit, budget_of_words, policy_of_file, time_limit_of
from cli.options import JsonOption, LedgerOption, Shared, TrustOption, outside_ledgers, program_name, shared
from cli.refs import resolve_run
from cli.text import error_console, escape, print_json, say, say_error, short
from cli.trustfile import read_trust
from ledger.arguments import Secrets
from ledger.canonical import encode
from ledger.command import DEFAULT_CAP_BYTES, CommandEnd, OutputMode, run_command, stripped_environment
from ledger.errors import AdmissionError, LedgerError, clip
from ledger.members import Actor, Adapter
from ledger.refusals import Blocked, Waiting
from ledger.rules.amounts import DURATION
from ledger.rules.errors import BudgetError, PolicyError
from ledger.run import Call, Run
from ledger.storage.durable import replace
from ledger.storage.ledger import Ledger
from ledger.storage.topics import waiting_in
from ledger.words import Basis, OutcomeStatus, Reason, RunStatus
from verify.rules import approvers_of

if TYPE_CHECKING:
    from cli.reader import Reader

__all__ = ["register"]

COULD_NOT_RECORD = 125
_GRACE_MS = 5_000
COMMAND = Adapter(name="command", version="1", coverage="one-process")
"""What `ledger run` sees: one process, its streams, its end. Not what the process does elsewhere."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    # The first word that is no option begins the command: what follows is the command's own.
    app.command(cls=_Recorder, context_settings={"allow_interspersed_args": False})(run)
    app.command(cls=_Recorder)(resume)
    app.command()(close)


class _Recorder(TyperCommand):
    """A command that runs another: no failure of ours is to be taken for an exit code of that one."""

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401  as it is declared
        try:
            return super().make_context(*args, **extra)
        except typer.Exit:
            raise
        except Exception as error:
            if hasattr(error, "exit_code"):  # a usage error
                error.exit_code = COULD_NOT_RECORD
            raise

    def invoke(self, *args: Any) -> Any:  # noqa: ANN401  as it is declared
        try:
            return super().invoke(*args)
        except (typer.Exit, typer.Abort):
            raise
        except typer.BadParameter as error:
            error.exit_code = COULD_NOT_RECORD
            raise
        except (BudgetError, PolicyError) as error:
            say_error(error)
            raise typer.Exit(2) from error  # what was asked for is refused; nothing was recorded
        except Exception as error:
            say_error(error)
            raise typer.Exit(COULD_NOT_RECORD) from error


Command = Annotated[list[str], typer.Argument(metavar="-- CMD [ARG]...", help="The command and its arguments.")]
OutputOption = Annotated[
    str, typer.Option(metavar="keep|digest|none", help="What to record of the command's output; keep: 16 MiB a stream.")
]
SecretOption = Annotated[
    list[str],
    typer.Option(
        "--secret-env", metavar="NAME", help="Cut this variable's value from all that is recorded.", show_default=False
    ),
]
ResultOption = Annotated[
    Path | None,
    typer.Option(
        "--result",
        metavar="FILE",
        help="Write run, receipt and status here as JSON.",
        show_default=False,
        callback=outside_ledgers,
    ),
]


def run(
    context: typer.Context,
    command: Command,
    name: Annotated[
        str | None, typer.Option(help="What the run is called. Without it: the command's name.", show_default=False)
    ] = None,
    correlation: Annotated[
        list[str],
        typer.Option(
            "--correlation", metavar="K=V", help="A name of this work elsewhere; repeatable.", show_default=False
        ),
    ] = [],
    agent: Annotated[str, typer.Option(help="Which agent acts.")] = "unknown",
    user: Annotated[str, typer.Option(help="On whose behalf.")] = "unknown",
    model: Annotated[str, typer.Option(help="With which model.")] = "unknown",
    output: OutputOption = "keep",
    secret_env: SecretOption = [],
    budget: Annotated[
        list[str],
        typer.Option(
            "--budget",
            metavar="METER=N",
            help="A limit, such as seconds=90, 15m or receipts=40; repeatable.",
            show_default=False,
        ),
    ] = [],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", metavar="FILE", help="The policy that it runs under.", show_default=False),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--approve", help="Wait for a person's approval: nothing runs until it is there.")
    ] = False,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="axlr", help="Import what the command writes, as a system that is known.", show_default=False
        ),
    ] = None,
    result: ResultOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Run a command and record it: arguments, output, how it ended. Exits as the command does.

    It observes one process and does not confine it. 124 a limit ended it, 125 refused or could not be recorded, 126 and 127
    it could not start, 128+N a signal ended it.
    """
    options = shared(context, ledger, json=json, trust=trust)
    _write_result(result, _report())
    mode, names, secrets = _output(output), _correlation(correlation), _secrets(secret_env)
    limits, document = budget_of_words(budget), policy_of_file(policy, _name(command))
    reads = _reader(reader, command, mode)
    opened = Ledger.open(options.folder(), places=options.places)
    started = Run.start(
        opened,
        _name(command) if name is None else name,
        actor=Actor(agent=agent, user=user, model=model),
        correlation=names,
        adapter=COMMAND,
        limits=limits,
        policy=document,
        parent=_parent(opened),
        secrets=secrets.values,
        approvers=approvers_of(read_trust(options)),
    )
    _record(started, command, output=mode, secrets=secrets, result=result, options=options, ask=ask, reader=reads)


def resume(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="RUN", help="The open run.")],
    command: Command,
    output: OutputOption = "keep",
    secret_env: SecretOption = [],
    result: ResultOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Record one more command in an open run, then close it.

    For a run whose driver is gone: what was under way when it went is recorded as ambiguous.
    """
    options = shared(context, ledger, json=json, trust=trust)
    _write_result(result, _report())
    mode, secrets = _output(output), _secrets(secret_env)
    opened = Ledger.open(options.folder(), places=options.places)
    resumed = Run.resume(
        opened,
        resolve_run(opened, reference),
        secrets=secrets.values,
        approvers=approvers_of(read_trust(options)),
    )
    _record(resumed, command, output=mode, secrets=secrets, result=result, options=options, ask=asks(resumed))


def close(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="RUN", help="The open run.")],
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Close an open run from its record. What has no outcome becomes ambiguous."""
    options = shared(context, ledger, json=json)
    with Ledger.open(options.folder(), places=options.places) as opened:
        run_id = resolve_run(opened, reference)
        position = opened.close_run(run_id)
    if options.json:
        print_json({"run": run_id, "receipt": position.receipt, "index": position.index})
    else:
        typer.echo(position.receipt)


def _record(
    run: Run,
    command: Sequence[str],
    *,
    output: OutputMode,
    secrets: Secrets,
    result: Path | None,
    options: Shared,
    ask: bool,
    reader: Reader | None = None,
) -> None:
    """Run the command inside `run`, close it, say where it is recorded, and exit as the command did."""
    report = _report() | {"run": run.id}
    end: CommandEnd | None = None
    time = time_limit_of(run.opening.limits)
    try:
        # Should we be killed, this is what names the open run.
        _write_result(result, report)
        with run.call(
            _name(command),
            access="unknown",
            arguments={"argv": [_text(each) for each in command], "cwd": _working_folder()},
            environment="unknown",
            ask=() if ask else None,
        ) as call:
            end = run_command(
                command,
                env=_environment(run, call),
                # A reader takes what the command writes to a pipe, apart from its errors.
                pty=sys.stdout.isatty() and reader is None,
                output=output,
                cap_bytes=DEFAULT_CAP_BYTES if reader is None else reader.cap_bytes,
                limit_ms=None if time is None else time.left(run.elapsed_ms()),
                grace_ms=_GRACE_MS if time is None else time.kill_ms,
            )
            report |= {
                "status": end.status,
                "exit_code": end.exit_code,
                "signal": end.signal,
                "duration_ms": end.duration_ms,
            }
            if end.limit_hit and time is not None:
                _say_limit(call, time, run.elapsed_ms())
            written = _settle(call, end, secrets)
        status, reason = _run_status(end)
        if reader is not None and end.ran:
            status, reason = _read(run, reader, written, (status, reason), options, report)
        closed = run.close(status, reason=reason)
    except Waiting as waiting:
        _say_result(result, report | {"status": "waiting"})
        _say_waiting(run, waiting)
        raise typer.Exit(COULD_NOT_RECORD) from waiting
    except Blocked as blocked:
        run.close(RunStatus.BLOCKED, reason=blocked.reason)
        _say_result(result, report | {"status": "blocked"})
        raise
    except Exception:
        _say_result(result, report)
        if end is not None and end.ran:
            say(f"the command ran and ended ({end.status}), but that could not be recorded", style="bold red")
        say(f"its run is open; end it from its record with: {program_name()} close {short(run.id)}")
        raise
    report["receipt"] = closed.receipt
    _say_result(result, report)
    if end.error:
        say(escape(end.error), style="bold red")
    if options.json:
        error_console().print_json(data=report) if sys.stderr.isatty() else say(encode(report).decode())
    elif sys.stderr.isatty():
        say(f"recorded as {short(closed.receipt)}   {program_name()} verify {short(closed.receipt)}", style="dim")
    raise typer.Exit(end.shell_code)


def asks(run: Run) -> bool:
    """Return whether an act of an open run waited for an approval before: then no other act of it goes without one."""
    found: list[bool] = []
    run.ledger.look(lambda view: found.append(bool(view.state.about(waiting_in(run.id)))))
    return run.opening.policy is None and found[0]


def _say_waiting(run: Run, waiting: Waiting) -> None:
    request, name = short(waiting.request or ""), program_name()
    say(f"nothing ran: {escape(str(waiting))}", style="bold yellow")
    say(f"who may approve it: {name} approve {request} --key FILE")
    say(f"then go on with:    {name} resume {short(run.id)} -- CMD   (the same command, in the same folder)")


def _say_limit(call: Call, time: TimeLimit, elapsed_ms: int) -> None:
    """Record which limit ended the command."""
    call.use(DURATION, elapsed_ms, basis=Basis.MEASURED)
    call.artifact(f"{DURATION}: limit {time.limit}, ended after {elapsed_ms}", name="limit")
    say(f"the limit {DURATION}={time.limit} ended it after {elapsed_ms} ms", style="bold red")


def _environment(run: Run, call: Call) -> dict[str, str]:
    """Return the command's environment: ours without secrets, and what a nested `ledger run` needs to join this run."""
    kept = {name: os.environ[name] for name in ("LEDGER_KEYS",) if name in os.environ}  # a folder's name, no secret
    return {**stripped_environment(os.environ), **kept, **run.environment(call)}


def _reader(name: str | None, command: Sequence[str], mode: OutputMode) -> Reader | None:
    if name is None:
        return None
    if mode != "keep":
        raise AdmissionError("--reader: goes with --output keep", code="usage.reader")
    from cli.reader import reader_of  # noqa: PLC0415  what it loads would cost every other command

    return reader_of(name, command)


def _read(
    run: Run,
    reader: Reader,
    written: bytes,
    ended: tuple[RunStatus, Reason | None],
    options: Shared,
    report: dict[str, object],
) -> tuple[RunStatus, Reason | None]:
    """Return how the run ended by what the command wrote; where that says nothing, by how the command ended."""
    said = reader.read(run.ledger, written, run=run.id, trust=read_trust(options))
    report |= {"import": said.import_, "imported_run": said.run}
    if said.problem is not None:
        say(escape(said.problem), style="bold red")
    if ended[1] not in (None, Reason.COMMAND_EXIT) or said.status is None:
        return ended  # a signal or a limit says more than what it left behind
    return said.status, ended[1] if said.status is RunStatus.FAILED else None


def _settle(call: Call, end: CommandEnd, secrets: Secrets) -> bytes:
    """Put how the command ended into the call's outcome; return what is kept of what it wrote to standard output."""
    written = b""
    for stream in end.streams:
        if stream.kept is None:
            if stream.total_bytes:
                call.mention(stream.name, full_digest=stream.digest, total_bytes=stream.total_bytes)
            continue
        stream.kept.seek(0)
        kept = secrets.cut_bytes(stream.kept.read(stream.kept_bytes))
        written = kept if stream.name == "stdout" else written
        if stream.total_bytes:
            call.artifact(
                kept,
                name=stream.name,
                truncated_bytes=stream.truncated_bytes or None,
                full_digest=stream.digest if stream.truncated_bytes and not secrets.values else None,
            )
    end.close()
    if end.error is not None:
        call.artifact(secrets.cut_text(end.error), name="error")
    match end.status:
        case "exited":
            call.end(
                OutcomeStatus.COMMITTED, reason=Reason.COMMAND_EXIT if end.exit_code else None, exit_code=end.exit_code
            )
        case "signaled":
            call.end(OutcomeStatus.AMBIGUOUS, reason=Reason.COMMAND_SIGNAL, signal=end.signal)
        case "limit":
            call.end(OutcomeStatus.AMBIGUOUS, reason=Reason.LIMIT, exit_code=end.exit_code, signal=end.signal)
        case "lost":
            call.end(OutcomeStatus.AMBIGUOUS, reason=Reason.RECORDER_LOST)
        case "not_found":
            call.end(OutcomeStatus.FAILED, reason=Reason.COMMAND_NOT_FOUND)
        case "not_executable" | "not_started":
            call.end(OutcomeStatus.FAILED, reason=Reason.COMMAND_NOT_EXECUTABLE)
    return written


def _run_status(end: CommandEnd) -> tuple[RunStatus, Reason | None]:
    match end.status:
        case "exited":
            return (RunStatus.FAILED, Reason.COMMAND_EXIT) if end.exit_code else (RunStatus.COMPLETED, None)
        case "signaled":
            return RunStatus.INTERRUPTED, Reason.COMMAND_SIGNAL
        case "limit":
            return RunStatus.BLOCKED, Reason.LIMIT
        case "lost":
            return RunStatus.INTERRUPTED, Reason.RECORDER_LOST
        case "not_found":
            return RunStatus.FAILED, Reason.COMMAND_NOT_FOUND
        case "not_executable" | "not_started":
            return RunStatus.FAILED, Reason.COMMAND_NOT_EXECUTABLE


def _secrets(names: Sequence[str]) -> Secrets:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise AdmissionError(f"--secret-env: {missing[0]!r} is not set", code="arguments.refused")
    return Secrets({name: os.environ[name] for name in names})


def _correlation(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise AdmissionError(f"--correlation: got {clip(pair)}, expected K=V", code="usage.correlation")
        found[name] = value
    return found


def _parent(ledger: Ledger) -> tuple[str, str | None] | None:
    """Return the run that this command is started from, where it is one of this ledger and open."""
    run, _, intent = os.environ.get("LEDGER_RUN", "").partition("/")
    if not run or os.environ.get("LEDGER_DIR") != str(ledger.folder):
        return None
    return run, intent or None


def _output(word: str) -> OutputMode:
    match word:
        case "keep" | "digest" | "none":
            return word
        case _:
            raise AdmissionError(f"--output: got {clip(word)}, expected keep, digest or none", code="usage.output")


def _name(command: Sequence[str]) -> str:
    """Return what a command is called: the last part of its path, as a receipt may hold it."""
    return escape(_text(Path(command[0]).name))[:256] or "command"


def _text(argument: str) -> str:
    """Return an argument as text; bytes that are not UTF-8 are written as escapes, since receipts hold Unicode."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _working_folder() -> str:
    try:
        return _text(str(Path.cwd()))
    except OSError:
        return "unknown"  # it was removed under us


def _report() -> dict[str, object]:
    """Return what `--result` holds before anything is known: no run, and so nothing ran."""
    return {"run": None, "receipt": None, "status": None, "exit_code": None, "signal": None}


def _write_result(path: Path | None, report: dict[str, object]) -> None:
    """Write the result file, first of all before anything runs: where it cannot be written, nothing shall run."""
    if path is not None:
        replace(path, encode(dict(report)) + b"\n", durable=False)


def _say_result(path: Path | None, report: dict[str, object]) -> None:
    """Write the result file after the command ran: where that fails now, the exit code is still the command's."""
    try:
        _write_result(path, report)
    except LedgerError as error:
        say(f"--result: {escape(str(error))}", style="bold red")
