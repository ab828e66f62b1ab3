"""`ledger demo`: a real run recorded, verified, and tampered with in copies."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli.options import Shared, program_name
from cli.text import console, escape, say, short
from cli.tree import print_tree
from cli.trustfile import pin_ledger
from cli.verify import print_verdict
from cli.whole import judge_ledger
from ledger.command import run_command, stripped_environment
from ledger.members import Actor
from ledger.run import Call, Run
from ledger.storage.ledger import Ledger
from ledger.storage.places import Places
from ledger.words import OutcomeStatus, Reason
from verify.options import Options

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(demo)


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder for you to look at.")] = False,
) -> None:
    """Record a real run, verify it, and tamper with copies of it.

    Three copies are altered, and what the verifier says to each is shown. All of it happens in a temporary folder; your trust, keys and memory are not touched.
    """
    folder = Path(tempfile.mkdtemp(prefix="ledger-demo-"))
    try:
        wrong = _demo(folder)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    _title("What this shows" if not wrong else "The verifier was wrong")
    say(
        "  A verdict proves what was recorded, by which key, in which order, and that nothing remembered was taken back."
    )
    say("  It does not prove that the recorder told the truth or recorded everything.")
    say(f"  next: {program_name()} init && {program_name()} run -- make test && {program_name()} verify")
    if keep:
        say(f"  left for you: {folder}")
    raise typer.Exit(wrong)


def _demo(folder: Path) -> int:
    places = Places.under(folder / "user")
    path = folder / "ledger"
    ledger = Ledger.create(path, origin="ledger.invalid/demo", places=places)
    pin_ledger(ledger.header, ledger.reader.at(0).entry.receipt, places.trust_file)
    options = Shared(ledger=path, trust=places.trust_file, user=places)
    _title(f"1. A real run, recorded in {folder}")
    run_id = _record(ledger, folder / "work")
    ledger.close()
    _title("2. What it left: a tree of receipts")
    print_tree(ledger, run_id)
    _title("3. The verdict on the ledger")
    verdict = judge_ledger(path, options, Options())
    print_verdict(verdict)
    wrong = int(verdict.exit != 0)
    _title("4. The same verifier, on tampered copies")
    attacks: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
        ("one byte of a receipt altered", _alter_byte),
        ("the last commit dropped", _drop_last_commit),
        ("two entries swapped", _swap_entries),
    )
    for name, attack in attacks:
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        journal = copy / "journal" / f"{0:016d}.jsonl"
        journal.write_bytes(attack(journal.read_bytes()))
        found = judge_ledger(copy, Shared(ledger=copy, trust=places.trust_file, user=places), Options())
        wrong |= int(found.exit != 1)
        console().print(Text(f"\n  {name}: exit {found.exit}", style="bold"))
        for check in [each for each in found.findings if each.status == "failed"][:2]:
            where = f" at {check.where}" if check.where else ""
            console().print(Text(f"    {check.code}{escape(where)}  {escape(check.message)}"))
    return wrong


def _record(ledger: Ledger, work: Path) -> str:
    """Run several real commands in nested steps, and return the run's id."""
    work.mkdir()
    actor = Actor(agent="demo", user=os.environ.get("USER") or "unknown", model="unknown")
    with ledger.run("word-count", actor=actor, correlation={"ticket": "DEMO-1"}) as run:
        with run.step("collect") as collect:
            with collect.step("write") as write:
                for name, text in (("a.txt", "receipts are small"), ("b.txt", "trees commit them")):
                    _command(run, write.call, ["sh", "-c", f"printf '%s\\n' '{text}' > {name}"], work)
            _command(run, collect.call, ["sha256sum", "a.txt", "b.txt"], work)
        with run.step("count") as count:
            _command(run, count.call, ["wc", "-w", "a.txt", "b.txt"], work)
            _command(
                run, count.call, [sys.executable, "-c", "print(sum(map(len, map(str.split, open('a.txt')))))"], work
            )
        _command(run, run.call, ["grep", "-c", "fraud", "a.txt", "b.txt"], work)
    return run.id


def _command(run: Run, call: Callable[..., Call], argv: list[str], cwd: Path) -> None:
    """Run a command as one recorded call, as `ledger run` does, and say what it was."""
    name = Path(argv[0]).name
    with (
        open(os.devnull, "wb") as nowhere,  # noqa: PTH123
        call(name, access="unknown", arguments={"argv": argv}, environment="demo") as made,
    ):
        end = run_command(
            argv,
            env={**stripped_environment(os.environ), **run.environment(made)},
            cwd=cwd,
            stdout=nowhere.fileno(),
            stderr=nowhere.fileno(),
        )
        for stream in end.streams:
            if stream.kept is not None and stream.total_bytes:
                stream.kept.seek(0)
                made.artifact(stream.kept.read(stream.kept_bytes), name=stream.name)
        end.close()
        made.end(
            OutcomeStatus.COMMITTED, reason=Reason.COMMAND_EXIT if end.exit_code else None, exit_code=end.exit_code
        )
    assert made.outcome is not None  # noqa: S101  set when the block is left
    console().print(Text(f"  {name:<10} exit {end.exit_code}   receipt {short(made.outcome.receipt)}"))


def _alter_byte(journal: bytes) -> bytes:
    """Turn one digit of a recorded exit code into another."""
    at = journal.index(b'"exit_code":1') + len(b'"exit_code":')
    return journal[:at] + b"0" + journal[at + 1 :]


def _drop_last_commit(journal: bytes) -> bytes:
    lines = journal.splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if line.startswith(b'{"head"')]
    return b"".join(lines[: heads[-2] + 1])


def _swap_entries(journal: bytes) -> bytes:
    lines = journal.splitlines(keepends=True)
    entries = [number for number, line in enumerate(lines) if line.startswith(b'{"entry"')]
    first, second = entries[2], entries[3]
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def _title(text: str) -> None:
    console().print(Text(f"\n{text}", style="bold"))
