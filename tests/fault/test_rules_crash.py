"""Recorders killed between intent and outcome, and many that spend one budget at once: no act twice, no unit too much."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ledger import Blocked, Happened, Ledger
from ledger.receipt import Decision, Intent, parse_receipt
from tests.reference.ledgers import ended, fork, new_ledger, open_ledger, quick_folder
from verify.chain import Segment
from verify.ledger import verify_ledger

ROUNDS = int(os.environ.get("LEDGER_KILL_ROUNDS", "25"))
REPEATS = int(os.environ.get("LEDGER_SPEND_REPEATS", "6"))
KEYS = [f"pay:{number}" for number in range(6)]


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


def rules(ledger: Ledger) -> tuple[str, str | None]:
    verdict = verify_ledger([Segment(*each) for each in ledger.journal()], trust=None)
    check = next(check for check in verdict.checks if check.name == "rules")
    return check.status, check.code


def world(folder: Path) -> Counter[str]:
    """Return how often each act happened, as the world knows it."""
    path = folder.parent / f"{folder.name}-world"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def act(folder: Path, key: str) -> None:
    """Do what an effect key stands for: one line, whole or not at all."""
    path = folder.parent / f"{folder.name}-world"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{key}\n".encode())
    os.close(descriptor)


def pay_all(folder: Path) -> None:
    """Pay what is not paid yet, one after the other."""
    ledger = open_ledger(folder)
    with ledger.run("pay") as run:
        for key in KEYS:
            try:
                with run.call("pay", effect_key=key, reserve={"usd_micro": 1}):
                    act(folder, key)
            except Blocked:
                continue


def kill_after(folder: Path, size: int, turns: int) -> None:
    """Kill a recorder once the journal has grown past a size in bytes, a few turns of the scheduler later."""
    child = fork(lambda: pay_all(folder))
    while sum(each.stat().st_size for each in (folder / "ledger/journal").iterdir()) < size:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return
    for _ in range(turns):
        os.sched_yield()
    os.kill(child, signal.SIGKILL)
    ended(child)


def test_a_recorder_killed_at_random_points_never_lets_an_effect_happen_twice(tmp_path: Path) -> None:
    choose = random.Random(20261130)
    codes: Counter[str] = Counter()
    for number in range(ROUNDS):
        folder = tmp_path / f"{number}"
        ledger = new_ledger(folder)
        start = sum(each.stat().st_size for each in (folder / "ledger/journal").iterdir())
        ledger.close()
        kill_after(folder, start + choose.randrange(1, 22_000), choose.choice([0, 0, 1, 3, 10, 40]))
        ledger = open_ledger(folder)
        lost = [each.id for each in ledger.open_runs()]
        for id_ in lost:
            ledger.close_run(id_)
        with ledger.run("after") as after:
            for key in KEYS:
                try:
                    with after.call("pay", effect_key=key):
                        act(folder, key)
                except Happened:
                    assert world(folder)[key] == 1
                except Blocked as blocked:
                    codes[blocked.code] += 1
                    happened = world(folder)[key] == 1
                    ledger.resolve(key, happened=happened, resolved_by="ann")
                    if not happened:
                        with after.call("pay", effect_key=key):
                            act(folder, key)
        assert world(folder) == dict.fromkeys(KEYS, 1)
        assert rules(ledger) == ("ok", None)
        ledger.close()
    assert set(codes) == {"effect.ambiguous"}
    assert codes.total() > ROUNDS // 10


def spend(folder: Path, run: str, count: int) -> None:
    attached = open_ledger(folder).attach(run)
    for _ in range(count):
        try:
            with attached.call("ask", reserve={"usd_micro": 1_000}) as call:
                call.use("usd_micro", 1_000)
        except Blocked:
            continue


def test_four_processes_of_fifty_calls_run_exactly_what_the_limit_admits_time_and_again(tmp_path: Path) -> None:
    for number in range(REPEATS):
        folder = tmp_path / f"{number}"
        ledger = new_ledger(folder)
        run = ledger.run("work", budget={"usd_micro": 100_000})
        ledger.close()
        children = [fork(partial(spend, folder, run.id, 50)) for _ in range(4)]
        assert [ended(child) for child in children] == [0] * 4
        run.close()
        found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
        assert sum(isinstance(each, Intent) for each in found) == 100
        assert sum(isinstance(each, Decision) for each in found) == 100
        assert rules(ledger) == ("ok", None)
        ledger.close()
