"""`ledger verify`: judge a receipt, a ledger or a file, and exit with the verdict."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from cli.effort import Effort, usable_cores
from cli.judge import (
    judge_error,
    judge_range,
    judge_receipt,
)
from cli.options import JsonOption, LedgerOption, Shared, TrustOption, outside_ledgers, program_name, shared
from cli.published import is_published, judge_published
from cli.refs import resolve, whole_run
from cli.text import console, escape, print_json, say, short
from cli.trustfile import read_trust
from cli.watch import InterruptedWorkError
from ledger.bundle import parse_range
from ledger.checkpoint import head_of
from ledger.errors import DamagedError, LedgerError, NotFoundError, UnknownFormatError, clip
from ledger.keys import is_key_id
from ledger.note import NOTE_MAX_BYTES
from ledger.storage.reader import Reader
from verify.codes import CODES, worst
from verify.errors import TrustError
from verify.options import REQUIREMENTS, Options, parse_options
from verify.report import Check, Verdict

__all__ = ["print_verdict", "register"]

_REFERENCE = re.compile(r"latest|(?:sha256:)?[0-9a-f]{8,64}")
_UNPINNED = frozenset({"trust.log_key_unpinned", "trust.issuer_unpinned"})
_MARKS = {
    "ok": ("ok", "green"),
    "failed": ("FAILED", "bold red"),
    "not_checked": ("not checked", "yellow"),
    "absent": ("absent", "yellow"),
    "unreadable": ("unreadable", "red"),
}
_WORDS = {
    0: ("ok", "bold green", "everything asked for was established"),
    1: ("FAILED", "bold red", "the evidence does not hold"),
    3: (
        "NOT ESTABLISHED",
        "bold yellow",
        "it holds as far as it goes, but something asked for could not be established",
    ),
    4: ("NOT TRUSTED", "bold red", "the trust in use names another key, or too few notaries vouch for it"),
    5: ("ABSENT", "bold yellow", "the subject is not there, or nothing known"),
    6: ("RULE BROKEN", "bold magenta", "authentic, and the receipts show that a rule was broken"),
}


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(verify)


def verify(
    context: typer.Context,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="[TARGET]...",
            help="Receipt or run ids (8 digits are enough), latest, files, folders, - for standard input. Without any: the ledger.",
            show_default=False,
        ),
    ] = [],
    everything: Annotated[bool, typer.Option("--all", help="The whole ledger.")] = False,
    require: Annotated[
        list[str], typer.Option(metavar="|".join(REQUIREMENTS), help="Ask for more; repeatable.", show_default=False)
    ] = [],
    accept: Annotated[
        list[str],
        typer.Option(
            metavar="CODE",
            help="Ask for less: a code that shall not count; printed in the verdict.",
            show_default=False,
        ),
    ] = [],
    bytes_only: Annotated[
        bool, typer.Option("--bytes-only", help="Digests, links, ids and roots only: no schemas, seals or trees.")
    ] = False,
    every_head: Annotated[
        bool, typer.Option("--every-head", help="Check the signature of every head, not only the last.")
    ] = False,
    head: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="A signed head from elsewhere, which the ledger must contain; repeatable.",
            show_default=False,
        ),
    ] = [],
    continues: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The older ledger that this one says it continues; it is verified too.",
            show_default=False,
        ),
    ] = None,
    equivocation: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where a proof goes that two histories were signed. Without it: your state folder.",
            show_default=False,
            callback=outside_ledgers,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes for a ledger. Without it: one a core.", show_default=False),
    ] = None,
    max_seconds: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="S",
            help="Stop a ledger's verification after so long: exit 3, and --resume goes on.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the verification of this ledger stopped.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="last", help="Only what is new since this machine's last good verdict.", show_default=False
        ),
    ] = None,
    range_: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="A:B", help="Only the entries from A up to, not including, B.", show_default=False
        ),
    ] = None,
    notary: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A notary's document, judged alone; - for standard input.", show_default=False
        ),
    ] = None,
    notary_key: Annotated[
        list[Path],
        typer.Option(
            metavar="PEM",
            help="A public key to believe for --notary; repeatable. Without it: the notaries in the trust file.",
            show_default=False,
        ),
    ] = [],
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A policy under which the calls that a foreign document records are checked again.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        list[str],
        typer.Option(
            metavar="METER=AMOUNT",
            help="A budget under which what a foreign document says was used is checked again; repeatable.",
            show_default=False,
        ),
    ] = [],
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Verify a receipt, a ledger or a file.

    A verdict proves what was recorded, by which key, in which order, and that nothing this machine remembers was taken back.
    It does not prove that the recorder told the truth or recorded everything.
    """
    options = replace(shared(context, ledger, json=json, trust=trust), equivocation=equivocation)
    words = (*require, *(("every-head",) if every_head else ()))
    asked = parse_options(require=words, accept=tuple(accept), bytes_only=bytes_only)
    asked = replace(asked, heads=tuple(_read_head(path) for path in head))
    if policy is not None or budget:
        from cli.importing import checked_under  # noqa: PLC0415  what it loads would cost every other target

        under = checked_under(policy.read_bytes() if policy is not None else None, budget)
        asked = replace(asked, policy=under.policy, limits=under.limits)
    if since not in {None, "last"}:
        raise typer.BadParameter("takes the word last", param_hint="--since")
    effort = Effort(jobs or usable_cores(), max_seconds, resume, since_last=since is not None)
    if everything and targets:
        raise typer.BadParameter("--all goes without targets")
    if (notary is None and notary_key) or (
        notary is not None and (targets or everything or range_ or head or continues)
    ):
        raise typer.BadParameter("--notary FILE, with --notary-key or without, goes alone")
    read_trust(options)  # a trust file that must not be used ends the command, before any evidence is read
    _refuse_trust_from_data(options, targets)
    if notary is not None:
        from cli.sealed import judge_notary  # noqa: PLC0415  what it loads would cost every other target

        verdicts = [judge_notary(notary, notary_key, options, asked)]
    elif range_ is not None:
        plain = not (everything or continues or effort.resume or effort.since_last or effort.max_seconds)
        verdicts = [_judge_range(range_, targets, options, asked, plain=plain)]
    else:
        verdicts = [_judge(target, options, asked, effort) for target in targets] or [
            _judge_nearest(options, asked, effort)
        ]
    if continues is not None:
        folder = Path(targets[0]) if targets else options.folder()
        if len(targets) > 1 or not folder.is_dir():
            raise typer.BadParameter("goes with one ledger", param_hint="--continues")
        from cli.whole import judge_continues  # noqa: PLC0415  what it loads would cost every other target

        verdicts = list(judge_continues(verdicts[0], folder, continues, options, asked))
    verdicts = [_with_what_was_not_looked_at(verdict, asked) for verdict in verdicts]
    if options.json:
        values = [verdict.to_value() for verdict in verdicts]
        print_json(values[0] if len(values) == 1 else values)
    else:
        for number, verdict in enumerate(verdicts):
            if number:
                console().print()
            print_verdict(verdict)
            _print_way_on(verdict, options)
    raise typer.Exit(worst(verdict.exit for verdict in verdicts))


def _with_what_was_not_looked_at(verdict: Verdict, asked: Options) -> Verdict:
    """Return a verdict that says so where a policy or a budget was given and the subject is nothing that it was checked against."""
    wanted = {"policy": asked.policy is not None, "budget": bool(asked.limits)}
    looked = {check.name.rpartition(" ")[2] for check in verdict.checks}
    message = "it was given, and this subject is nothing that records what it is about"
    missing = (
        Check(name, "not_checked", "check.unsupported", None, message, 0)
        for name, given in wanted.items()
        if given and name not in looked
    )
    return replace(verdict, checks=(*verdict.checks, *missing))


def _read_head(path: Path) -> bytes:
    """Return the signed note in a file.

    Raises:
        FormatError: it is none.
    """
    with path.open("rb") as file:
        note = file.read(NOTE_MAX_BYTES + 1)
    head_of(note)
    return note


def _judge_nearest(options: Shared, asked: Options, effort: Effort) -> Verdict:
    from cli.whole import judge_ledger  # noqa: PLC0415  what it loads would cost every other target

    folder = options.folder()
    try:
        return judge_ledger(folder, options, asked, effort)
    except InterruptedWorkError as error:
        _leave(error)
    except LedgerError as error:
        return judge_error(error, str(folder), options, asked)


def _judge_range(text: str, targets: list[str], options: Shared, asked: Options, *, plain: bool) -> Verdict:
    """Return the verdict on a range of the one ledger that is meant; `plain` says that nothing else was asked for."""
    span = parse_range(text)
    folder = Path(targets[0]) if targets else options.folder()
    if span is None:
        raise typer.BadParameter(f"got {clip(text)}, expected A:B", param_hint="--range")
    if not plain or len(targets) > 1 or not folder.is_dir() or is_published(folder):
        raise typer.BadParameter("goes with one ledger and alone", param_hint="--range")
    try:
        return judge_range(folder, span, options, asked)
    except LedgerError as error:
        return judge_error(error, str(folder), options, asked)


def _refuse_trust_from_data(options: Shared, targets: list[str]) -> None:
    """Raise where the trust file lies in a ledger that is to be judged by it: nothing in a ledger can vouch for it."""
    path = (options.trust or options.places.trust_file).resolve()
    nearest = _folder(options)
    folders = [Path(target) for target in targets if Path(target).is_dir()]
    for folder in folders or ([] if nearest is None else [nearest]):
        if path.is_relative_to(folder.resolve()):
            raise TrustError(
                f"trust: {clip(str(path))} lies in the ledger that it would vouch for",
                code="trust.from_data",
                hint="keep whom you trust apart from the evidence",
            )


def _judge(target: str, options: Shared, asked: Options, effort: Effort) -> Verdict:
    try:
        return _judge_target(target, options, asked, effort)
    except InterruptedWorkError as error:
        _leave(error)
    except LedgerError as error:
        return judge_error(error, target, options, asked)


def _leave(error: InterruptedWorkError) -> NoReturn:
    """Exit as an interrupt does, after saying how to go on."""
    say(escape(str(error)))
    raise typer.Exit(130)


def _judge_target(target: str, options: Shared, asked: Options, effort: Effort) -> Verdict:
    if target == "-":
        from cli.foreign import judge_stream  # noqa: PLC0415  what it loads would cost every other target

        return judge_stream(sys.stdin.buffer, target, options, asked)
    path = Path(target)
    if path.is_dir():
        if is_published(path):
            return judge_published(path, options, asked)
        from cli.whole import judge_ledger  # noqa: PLC0415  what it loads would cost every other target

        if not (path / "journal").exists():
            from cli.incoming import judge_receipt_store  # noqa: PLC0415  the same

            verdict = judge_receipt_store(path, target, read_trust(options), asked)
            if verdict is not None:
                return verdict
        return judge_ledger(path, options, asked, effort)
    if path.exists():
        from cli.foreign import judge_path  # noqa: PLC0415  what it loads would cost every other target

        return judge_path(path, target, options, asked)
    if not _REFERENCE.fullmatch(target):
        raise NotFoundError(f"{clip(target)}: no such file or folder, and no receipt id or its first 8 digits")
    folder = options.folder()
    reader = Reader(folder)
    try:
        id_ = resolve(reader, target)
    except NotFoundError as error:
        _refuse_absence(folder, target, error)
        raise
    except UnknownFormatError as error:
        _refuse_unknown(folder, error)
        raise
    try:
        return _with_openness(folder, judge_receipt(folder, whole_run(reader, id_), options, asked))
    except NotFoundError as error:
        # The receipt is there; what leads from it to the head is not.
        raise DamagedError(str(error), where=error.where) from error
    except UnknownFormatError as error:
        _refuse_unknown(folder, error)
        raise


def _refuse_absence(folder: Path, target: str, error: NotFoundError) -> None:
    """Raise where the journal is not what it was: what is not found in an altered one need not be absent."""
    from ledger.storage.agreement import against_absence  # noqa: PLC0415  only what is not found needs it

    problem = None if target == "latest" else against_absence(folder, target.removeprefix("sha256:"))
    if problem is not None:
        raise DamagedError(f"{target}: not found in this journal, which was altered: {problem}") from error


def _refuse_unknown(folder: Path, error: UnknownFormatError) -> None:
    """Raise where the journal is not what it was: an entry of an altered one need not be of a later format."""
    from ledger.storage.agreement import against_unknown  # noqa: PLC0415  only later formats need it

    problem = against_unknown(folder)
    if problem is not None:
        raise DamagedError(f"{error}; and the journal was altered: {problem}", where=error.where) from error


def _with_openness(folder: Path, verdict: Verdict) -> Verdict:
    """Return a verdict with what speaks against it that a run is open: an altered receipt no longer closes its run."""
    where = next((check.where for check in verdict.checks if check.code == "run.open"), None)
    if where is None or verdict.exit == 1:
        return verdict
    from ledger.storage.agreement import against_openness  # noqa: PLC0415  only open runs need it

    problem = against_openness(folder, where.removeprefix("run "))
    if problem is None:
        return verdict
    message = f"what closed the run may be hidden: {problem}"
    return replace(verdict, checks=(*verdict.checks, Check("journal", "failed", "journal.damaged", where, message)))


def print_verdict(verdict: Verdict) -> None:
    """Print a verdict for a person: each check on a line, findings with their place, the verdict last."""
    out = console()
    for check in verdict.checks:
        out.print(_check_line(check))
    for note in verdict.notes:
        out.print(Text(f"  note         {escape(note)}", style="dim"))
    word, style, meaning = _WORDS[verdict.exit]
    line = Text().append(word, style=style).append(f"  {escape(verdict.subject)}: {meaning}")
    if verdict.head is not None:
        line.append(f"\n{'':<4}{_extent(verdict)}", style="dim")
    if verdict.accepted:
        line.append(f"\n{'':<4}accepted, so not counted: {', '.join(verdict.accepted)}", style="yellow")
    out.print(line)


def _check_line(check: Check) -> Text:
    mark, style = _MARKS[check.status]
    if check.code is not None and (CODES[check.code].exit == 0 or not check.asked):
        mark, style = "note", "dim"
    line = Text("  ").append(f"{mark:<12} ", style=style).append(f"{check.name:<16} ")
    if check.status == "ok" and check.code is None:
        return line.append(f"{check.count:,}" if check.count != 1 or check.name.endswith("s") else "", style="dim")
    parts = [check.code or "", escape(check.where or "")]
    line.append("  ".join(part for part in parts if part), style=style)
    said = check.message or (CODES[check.code].meaning if check.code is not None else "")
    if check.count > 1:
        said += f" (and {check.count - 1:,} more)" if check.where else f" ({check.count:,})"
    return line.append(f"  {escape(said)}" if said else "")


def _extent(verdict: Verdict) -> str:
    head, covered = verdict.head, verdict.covered
    assert head is not None  # noqa: S101  asked by the caller
    ways = [
        f"{count:,} {how}"
        for count, how in (
            (covered.own_seal, "under their own seal"),
            (covered.sealed_root, "under a sealed root"),
            (covered.signed_head, "under the signed head only"),
        )
        if count
    ]
    number = verdict.coverage.count
    one, many = ("receipt", "receipts") if ways else ("entry", "entries")
    looked = f"{number:,} {one if number == 1 else many}{': ' if ways else ''}{', '.join(ways)}"
    return f"{looked}; head {escape(head.origin)} size {head.size:,} root {short('sha256:' + head.root.hex())}"


def _print_way_on(verdict: Verdict, options: Shared) -> None:
    """Say what a person can do about what could not be established."""
    codes = {check.code for check in verdict.findings}
    if codes & _UNPINNED:
        _print_pins(verdict, options)
    elif "run.open" in codes:
        (where, *others) = [check.where or "" for check in verdict.findings if check.code == "run.open"]
        run = "RUN" if others else short(where.removeprefix("run "))
        at = f"-L {_quoted(options.ledger)} " if options.ledger is not None else ""
        say("\nif what drove this run is gone, end it from its record, or go on with it:")
        say(f"  {program_name()} {at}close {run}\n  {program_name()} {at}resume {run} -- CMD …")
    elif "head.shorter" in codes:
        say("\nthis machine has seen more of this ledger. Ask its owner what became of the rest.")


def _print_pins(verdict: Verdict, options: Shared) -> None:
    """Print the keys of a stranger, and the lines that would pin them: of a ledger its header, of a file what it shows."""
    folder = Path(verdict.subject) if Path(verdict.subject).is_dir() else _folder(options)
    try:
        header = None if folder is None else Reader(folder).header()
    except LedgerError:
        header = None
    to = f" --trust {_quoted(options.trust)}" if options.trust is not None else ""
    ours = str(folder) == verdict.subject or (
        header is not None and verdict.head is not None and header.ledger == verdict.head.origin
    )
    shown: dict[str, str] = {}
    if header is not None and folder is not None and ours:
        keys = f"  origin     {escape(header.ledger)}\n  log key    {header.log_key}\n  issuer key {header.issuer.key}"
        shown[keys] = f"  {program_name()} trust add {_quoted(folder)}{to}"
    else:
        for check in verdict.findings:
            role, _, name = (check.where or "").partition(" ")
            key = check.message.rpartition(" ")[2]
            if check.code in _UNPINNED and is_key_id(key):
                line = f"  {program_name()} trust add {_quoted(name)} --role {role} --key {key}{to}"
                shown[f"  {role:<7} {escape(name)}\n  key     {key}"] = line
    if shown:
        say("\nnobody vouches for this signer yet. Compare with the ledger's owner, by another way than this copy:")
        say("\n".join(shown))
        say("then, if they are the same, pin them:")
        say("\n".join(shown.values()))


def _quoted(path: Path | str) -> str:
    return escape(shlex.quote(str(path)))


def _folder(options: Shared) -> Path | None:
    try:
        return options.folder()
    except NotFoundError:
        return None
