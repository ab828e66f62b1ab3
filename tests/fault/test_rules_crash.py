"""Recorders killed between intent and outcome, and many that spend one budget at once: no act twice, no unit too much."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from ledger import Blocked, Happened, Ledger
from ledger.receipt import Decision, Intent, parse_receipt
from tests.reference.ledgers import ended, fork, new_ledger, open_ledger, quick_folder
from verify.chain import Segment
from verify.ledger import verify_ledger

ROUNDS = int(os.environ.get("LEDGER_KILL_ROUNDS", "30"))
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


class Spot(NamedTuple):
    """Where a recorder says that it has come: in the call of a key, before or after its act. It may wait there to be killed."""

    key: str
    acted: bool
    waits: bool
    says: int

    def reached(self, key: str, *, acted: bool) -> None:
        if (key, acted) == (self.key, self.acted):
            os.write(self.says, b".")
            while self.waits:
                signal.pause()


def pay_all(folder: Path, spot: Spot) -> None:
    """Pay what is not paid yet, one after the other."""
    ledger = open_ledger(folder)
    with ledger.run("pay") as run:
        for key in KEYS:
            try:
                with run.call("pay", effect_key=key, reserve={"usd_micro": 1}):
                    spot.reached(key, acted=False)
                    act(folder, key)
                    spot.reached(key, acted=True)
            except Blocked:
                continue


def kill_in_call(folder: Path, choose: random.Random) -> bool:
    """Kill a recorder whose intent is durable, and return whether it was surely between that and the outcome.

    Most of them wait at the spot, before or after their act; the others go on, and are killed up to 2 ms later, wherever they are.
    """
    heard, says = os.pipe()
    spot = Spot(choose.choice(KEYS), choose.random() < 0.5, choose.random() < 0.75, says)
    later = choose.uniform(0, 2_000_000)
    child = fork(lambda: pay_all(folder, spot))
    os.close(says)
    assert os.read(heard, 1) == b"."
    os.close(heard)
    at = time.monotonic_ns() + later
    while not spot.waits and time.monotonic_ns() < at:
        os.sched_yield()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return spot.waits


def test_a_recorder_killed_at_random_points_never_lets_an_effect_happen_twice(tmp_path: Path) -> None:
    choose = random.Random(20261130)
    settled: Counter[bool] = Counter()
    codes = set()
    for number in range(ROUNDS):
        folder = tmp_path / f"{number}"
        new_ledger(folder).close()
        between, before = kill_in_call(folder, choose), settled.total()
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
                    codes.add(blocked.code)
                    happened = world(folder)[key] == 1
                    settled[happened] += 1
                    ledger.resolve(key, happened=happened, resolved_by="ann")
                    if not happened:
                        with after.call("pay", effect_key=key):
                            act(folder, key)
        assert settled.total() - before == 1 or (settled.total() == before and not between)
        assert world(folder) == dict.fromkeys(KEYS, 1)
        assert rules(ledger) == ("ok", None)
        ledger.close()
    assert codes == {"effect.ambiguous"}
    assert settled.total() >= ROUNDS * 2 // 3
    assert min(settled[True], settled[False]) > ROUNDS // 5


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
