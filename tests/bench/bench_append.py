"""Figures for appending: ours, the floor, and the ratio, from one run.

    python tests/bench/bench_append.py [--quick]

The floor of one durable append is one signature plus one append and fsync of the same bytes, on the same file system, measured
in turn with ours so that a drifting machine slows both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from ledger import Actor, Ledger, Places, Tool
from ledger.envelope import Envelope
from ledger.keys import PrivateKey
from ledger.members import Act
from ledger.receipt import Intent, act_digest, print_receipt
from ledger.run import Run
from ledger.storage.clock import nonce, now
from ledger.storage.ledger import PRODUCER

ACT = Act(
    name="refund",
    tool=Tool(name="payments", version="1.4.2", digest="unknown"),
    access="write",
    arguments={"amount": 500, "payment": "txn_2"},
    arguments_digest="unknown",
    resource="payment/txn_2",
    environment="production",
)


def intents(ledger: Ledger, run: Run, count: int) -> list[Envelope]:
    """Return unsealed intents of one run, built before anything is timed."""
    digest = act_digest(ACT, ledger=ledger.origin, run=run.id, actor=run.opening.actor, effect_key=None)
    issuer = ledger.issuer
    return [
        Envelope(
            print_receipt(
                Intent(
                    ledger=ledger.origin,
                    run=run.id,
                    issuer=issuer,
                    issued_at=now(),
                    nonce=nonce(),
                    producer=PRODUCER,
                    act=ACT,
                    act_digest=digest,
                )
            )
        )
        for _ in range(count)
    ]


def singles(folder: Path, count: int) -> None:
    """One receipt a commit, in turn with the floor."""
    ledger = Ledger.create(folder / "singles", places=Places.under(folder / "user"))
    run = Run.start(ledger, "bench", actor=Actor(agent="bench", user="unknown", model="unknown"))
    made = intents(ledger, run, count)
    before = (ledger.folder / "journal" / f"{0:016d}.jsonl").stat().st_size
    ledger.append(made[0])
    written = (ledger.folder / "journal" / f"{0:016d}.jsonl").stat().st_size - before
    payload = os.urandom(written)
    key = PrivateKey.from_seed(os.urandom(32))
    ours, floor, floor_sync = [], [], []
    descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for envelope in made[1:]:
        start = time.perf_counter()
        key.sign(payload[:200])
        middle = time.perf_counter()
        os.write(descriptor, payload)
        os.fsync(descriptor)
        end = time.perf_counter()
        ledger.append(envelope)
        ours.append(time.perf_counter() - end)
        floor.append(end - start)
        floor_sync.append(end - middle)
    os.close(descriptor)
    ledger.close()
    ratio = statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    print(f"one durable append ({written} bytes), {len(ours)} commits, medians")
    print(f"  floor  sign + append + fsync      {statistics.median(floor) * 1e6:9.0f} us")
    print(f"         of that append + fsync     {statistics.median(floor_sync) * 1e6:9.0f} us")
    print(f"  ours   append, acknowledged       {statistics.median(ours) * 1e6:9.0f} us")
    print(f"  ratio  pair by pair               {ratio:9.2f}    (target <= 2)")


def batches(folder: Path, size: int, rounds: int) -> None:
    """Many receipts a commit."""
    ledger = Ledger.create(folder / f"batches-{size}", places=Places.under(folder / "user"))
    rates = []
    for _ in range(rounds):
        run = Run.start(ledger, "bench")
        made = intents(ledger, run, size)
        start = time.perf_counter()
        ledger.append_many(made)
        rates.append(size / (time.perf_counter() - start))
    ledger.close()
    target = "    (target >= 30,000)" if size >= 1_000 else ""
    print(f"{size} receipts a commit, {rounds} commits: {statistics.median(rates):,.0f} receipts/s durable{target}")


def reopening(folder: Path, count: int) -> None:
    """Opening a ledger for append, state current."""
    path = folder / "reopen"
    ledger = Ledger.create(path, places=Places.under(folder / "user"))
    run = Run.start(ledger, "bench")
    left = count
    while left > 0:
        ledger.append_many(intents(ledger, run, min(left, 5_000)))
        left -= 5_000
        if left > 0:
            run.close()
            run = Run.start(ledger, "bench")
    ledger.close()
    opened = Ledger.open(path, places=Places.under(folder / "user"))
    start = time.perf_counter()
    opened.append_many([])
    opened.open_runs()
    print(
        f"open for append at {count:,} receipts: {(time.perf_counter() - start) * 1e3:.1f} ms    (target <= 100 at 1,000,000)"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        singles(folder, 101 if quick else 1_001)
        batches(folder, 50, 5 if quick else 40)
        batches(folder, 1_000, 3 if quick else 20)
        reopening(folder, 20_000 if quick else 200_000)


if __name__ == "__main__":
    main()
