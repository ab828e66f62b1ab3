"""A writer killed at random moments, while it appends and while it repairs: what it acknowledged is there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger import Ledger
from ledger.errors import DamagedError
from tests.conftest import ROOT
from tests.reference.check import check_folder, name_of
from tests.reference.ledgers import (
    ended,
    fork,
    grant,
    last_segment,
    many_intents,
    new_ledger,
    open_ledger,
    places_of,
    quick_folder,
    verdict,
)

ROUNDS = int(os.environ.get("LEDGER_CRASH_ROUNDS", "40"))

Say = Callable[[str], None]


def drive(folder: Path, say: Say) -> None:
    """Append until killed: single receipts, batches, calls of a run with artifacts; say each id that is acknowledged."""
    ledger = open_ledger(folder)
    run = ledger.run("crash")
    say(run.id)
    for number in range(200):
        if number % 5 == 4:
            for position in ledger.append_many([grant(ledger) for _ in range(7)]):
                say(position.receipt)
        elif number % 5 == 2:
            with run.call("act", arguments={"number": number}) as call:
                say(call.intent)
                call.result = b"x" * 3000
            assert call.outcome is not None
            say(call.outcome.receipt)
        else:
            say(ledger.append(grant(ledger)).receipt)
        if number % 50 == 49:
            ledger.close()


def repair(folder: Path, say: Say) -> None:
    ledger = open_ledger(folder)
    say("ready")
    say(ledger.append(grant(ledger)).receipt)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


def killed(work: Callable[[Path, Say], None], folder: Path, lines: int, extra: int) -> list[str]:
    """Return what a forked process said until it was killed: a little after its line number `lines`."""
    reader, writer = os.pipe()

    def body() -> None:
        os.close(reader)
        work(folder, lambda text: os.write(writer, text.encode() + b"\n") and None)

    child = fork(body)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = [stream.readline() for _ in range(lines)]
        for _ in range(extra):
            os.sched_yield()
        os.kill(child, signal.SIGKILL)
        said += stream.readlines()
    assert ended(child) in {-signal.SIGKILL, 0}
    # A line is written after the append returned, so a whole one is a promise.
    return [line.decode().strip() for line in said if line.startswith(b"sha256:") and line.endswith(b"\n")]


def check_all(ledger: Ledger, acknowledged: list[str]) -> None:
    journal = check_folder(ledger.folder, signatures=False)
    missing = set(acknowledged) - set(journal.ids)
    assert not missing, f"{len(missing)} acknowledged receipts are not there"
    kept = {
        (len(data), name_of(data))
        for data in (path.read_bytes() for path in (ledger.folder / "quarantine").glob("*.torn"))
    }
    said = {(row.receipt["cut_bytes"], row.receipt["cut_digest"]) for row in journal.of("repair")}
    assert kept == said
    assert list((ledger.folder / "quarantine").glob("*.pending")) == []
    for digest in (each["digest"] for row in journal.rows for each in row.receipt.get("artifacts", [])):
        assert name_of(ledger.artifacts.get(digest)) == digest


def test_a_writer_killed_at_random_moments_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    choose = random.Random(20261130)
    ledger = new_ledger(tmp_path)
    acknowledged: list[str] = []
    for _ in range(ROUNDS):
        lines, extra = choose.choice([0, 1, 2, 3, 5, 8, 13, 30, choose.randrange(200)]), choose.randrange(400)
        acknowledged += killed(drive, tmp_path, lines, extra)
        if choose.random() < 0.5:
            again = open_ledger(tmp_path)
            acknowledged.append(again.append(grant(again)).receipt)
            again.close()
    ledger = open_ledger(tmp_path)
    acknowledged.append(ledger.append(grant(ledger)).receipt)
    check_all(ledger, acknowledged)
    assert len(acknowledged) > ROUNDS
    found = verdict(ledger, memory=places_of(tmp_path).register_file(ledger.origin).read_bytes())
    assert found.exit == 0, found.findings
    for run in ledger.open_runs():
        ledger.close_run(run.id)
    check_all(ledger, acknowledged)
    assert verdict(ledger).exit == 0


def test_a_writer_killed_while_it_repairs_leaves_what_the_next_one_takes_up(tmp_path: Path) -> None:
    choose = random.Random(7)
    ledger = new_ledger(tmp_path)
    acknowledged = [each.receipt for each in ledger.append_many([grant(ledger) for _ in range(3)])]
    ledger.close()
    torn = []
    for number in range(ROUNDS // 2):
        again = open_ledger(tmp_path)
        acknowledged.append(again.append(grant(again)).receipt)
        path, register = last_segment(again), places_of(tmp_path).register_file(again.origin)
        start, note = path.stat().st_size, register.read_bytes()
        # An interrupted write leaves the beginning of a commit, and the register of the one before.
        again.append_many([grant(again), grant(again)])
        again.close()
        whole = path.read_bytes()
        path.write_bytes(whole[: choose.randrange(start + 1, len(whole) - 1)])
        register.write_bytes(note)
        torn.append(path.read_bytes()[start:])
        for state in again.folder.glob("state.sqlite*") if number % 2 else ():
            state.unlink()
        acknowledged += killed(repair, tmp_path, 1, choose.randrange(300))
    ledger = open_ledger(tmp_path)
    acknowledged.append(ledger.append(grant(ledger)).receipt)
    check_all(ledger, acknowledged)
    said = [(row.receipt["cut_bytes"], row.receipt["cut_digest"]) for row in check_folder(ledger.folder).of("repair")]
    assert sorted(said) == sorted((len(data), name_of(data)) for data in torn)
    assert verdict(ledger).exit == 0


def test_a_killed_driver_leaves_its_run_open_and_its_intent_unsettled(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    script = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.reference.ledgers import open_ledger
run = open_ledger(Path(sys.argv[1])).run("work")
with run.call("act") as call:
    print(run.id, call.intent, flush=True)
    os.kill(os.getpid(), 9)
"""
    process = subprocess.run([sys.executable, "-c", script, tmp_path, ROOT], stdout=subprocess.PIPE, check=False)
    assert process.returncode == -signal.SIGKILL
    said = process.stdout.decode().split()
    (run,) = ledger.open_runs()
    assert run.id == said[0]
    ledger.close_run(run.id)
    journal = check_folder(ledger.folder)
    (outcome,) = journal.of("outcome")
    assert outcome.receipt["intent"] == said[-1]
    assert (outcome.receipt["status"], outcome.receipt["reason"]) == ("ambiguous", "act.recorder_lost")
    (closed,) = journal.of("run")
    assert (closed.receipt["status"], closed.receipt["reason"]) == ("interrupted", "run.closed_later")
    assert ledger.open_runs() == []
    assert verdict(ledger).exit == 0


def test_a_crash_before_a_new_segment_was_written_leaves_an_empty_file_that_is_used(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.run("bulk")
    ledger.append_many(many_intents(ledger, run.id, 8_192))
    size = ledger.head().size
    ledger.close()
    empty = ledger.folder / "journal" / f"{size:016d}.jsonl"
    empty.touch()
    for number in range(2):
        again = open_ledger(tmp_path)
        assert again.head().size == size + number
        position = again.append(grant(again))
        assert position.index == size + number
        assert again.get(position.receipt).segment == size
        again.close()
    assert check_folder(ledger.folder, signatures=False).segments == [0, size]


def test_a_torn_first_commit_of_a_new_segment_is_set_aside(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.run("bulk")
    ledger.append_many(many_intents(ledger, run.id, 8_192))
    size = ledger.head().size
    note = ledger.checkpoint()
    ledger.append(grant(ledger))
    ledger.close()
    path = last_segment(ledger)
    torn = path.read_bytes()[:-30]
    for keep in (torn, torn[:1]):
        path.write_bytes(keep)
        places_of(tmp_path).register_file(ledger.origin).write_bytes(note)
        again = open_ledger(tmp_path)
        assert again.head().size == size
        assert again.append(grant(again)).index == size + 1
        again.close()
        journal = check_folder(ledger.folder, signatures=False)
        (repair,) = journal.of("repair")
        assert (repair.receipt["segment"], repair.receipt["offset_bytes"], repair.receipt["cut_bytes"]) == (
            size,
            0,
            len(keep),
        )
        assert verdict(again).exit == 0


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    for _ in range(2):
        run = ledger.run("bulk")
        ledger.append_many(many_intents(ledger, run.id, 8_192))
    ledger.append(grant(ledger))
    ledger.close()
    second = ledger.folder / "journal" / f"{8_194:016d}.jsonl"
    data = second.read_bytes()
    second.unlink()
    again = open_ledger(tmp_path)
    with pytest.raises(DamagedError):
        list(again.entries())
    for state in again.folder.glob("state.sqlite*"):
        state.unlink()
    with pytest.raises(DamagedError):
        again.append(grant(again))
    second.write_bytes(data)
    assert open_ledger(tmp_path).append(grant(again)).index == 16_388
