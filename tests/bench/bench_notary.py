"""Notarizations a second, durable, beside the floor: the signatures and synced writes that nobody can save.

    python tests/bench/bench_notary.py [REQUESTS]

One service process, one client process, the machine's cores between them; every answer is checked to be 200. Two loads:
many ledgers whose head moves with every submission, and one ledger that hands in the receipts of one head.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ledger import Ledger
from ledger.envelope import pae, seal, verify_seal
from ledger.keys import PrivateKey
from ledger.storage.places import Places
from notary.folder import create
from tests.reference.ledgers import new_ledger
from tests.reference.submissions import body, serving

LEDGERS = 50


def small_run(ledger: Ledger) -> str:
    """Record a run of one call; return the id of the receipt that closes it."""
    run = ledger.run("bench", actor="bot")
    with run.call("pay", access="write") as call:
        call.result = "done"
    return run.close().receipt


def moving(folder: Path, count: int) -> list[list[bytes]]:
    """Return for each ledger the submissions of its runs, each under the head that its run ended with."""
    lanes = []
    for number in range(LEDGERS):
        ledger = new_ledger(folder / f"moving-{number}")
        old, lane = 0, []
        for _ in range(count // LEDGERS):
            lane.append(body(ledger, small_run(ledger), old=old))
            old = ledger.head().size
        ledger.close()
        lanes.append(lane)
    return lanes


def resting(folder: Path, count: int) -> list[list[bytes]]:
    """Return submissions of the runs of one ledger under its newest head, dealt out to as many connections."""
    ledger = new_ledger(folder / "resting")
    ids = [small_run(ledger) for _ in range(count)]
    size = ledger.head().size
    first = body(ledger, ids[0])
    bodies = [body(ledger, each, old=size) for each in ids[1:]]
    ledger.close()
    return [[first], *(bodies[lane::LEDGERS] for lane in range(LEDGERS))]


async def _lane(host: str, port: int, token: str, bodies: list[bytes], waits: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /v1/receipts/notarize HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    for each in bodies:
        began = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(each)}\r\n\r\n".encode() + each)
        answer = await reader.readuntil(b"\r\n\r\n")
        size = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        rest = await reader.readexactly(size)
        assert answer.startswith(b"HTTP/1.1 200"), (answer, rest)
        waits.append(time.perf_counter() - began)
    writer.close()


def _drive(url: str, token: str, lanes: list[list[bytes]], results: object) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    waits: list[float] = []

    async def run() -> None:
        await asyncio.gather(*(_lane(host, int(port), token, lane, waits) for lane in lanes if lane))

    began = time.perf_counter()
    asyncio.run(run())
    results.put((time.perf_counter() - began, sorted(waits)))  # type: ignore[attr-defined]


def load(name: str, url: str, token: str, lanes: list[list[bytes]]) -> None:
    if len(lanes) > LEDGERS:  # the first one is admitted before the others come
        drive(url, token, lanes[:1])
    seconds, waits = drive(url, token, lanes[-LEDGERS:])
    rate = len(waits) / seconds
    print(
        f"{name:<44}{rate:8,.0f}/s   p50 {1000 * waits[len(waits) // 2]:.0f} ms, p99 {1000 * waits[len(waits) * 99 // 100]:.0f} ms"
    )


def drive(url: str, token: str, lanes: list[list[bytes]]) -> tuple[float, list[float]]:
    results = multiprocessing.get_context("spawn").Queue()
    client = multiprocessing.get_context("spawn").Process(target=_drive, args=(url, token, lanes, results))
    client.start()
    found = results.get(timeout=600)
    client.join()
    return found


def rate_of(work: Callable[[], object], seconds: float = 1.0) -> float:
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        work()
        count += 1
    return count / (time.perf_counter() - began)


def floors(folder: Path) -> None:
    """Print what signing, verifying and syncing alone come to."""
    key = PrivateKey.from_seed(os.urandom(32))
    document = os.urandom(600)
    sealed = seal(document, key)
    sign, verify = rate_of(lambda: key.sign(document)), rate_of(lambda: verify_seal(sealed))
    crypto_s = 2 / sign + 2 / verify
    descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    block = os.urandom(3_000)

    def synced() -> None:
        os.write(descriptor, block)
        os.fdatasync(descriptor)

    sync = rate_of(synced)
    memory = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    memory.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)"
    )
    swap = rate_of(lambda: memory.execute("INSERT OR REPLACE INTO t VALUES (1, ?)", (block[:300],)))
    os.close(descriptor)
    memory.close()
    assert len(pae("a", b"b")) > 0
    print(
        f"floor: a sign {1e6 / sign:.0f} us, a verify {1e6 / verify:.0f} us, append and sync {1e6 / sync:.0f} us, swap in memory {1e6 / swap:.0f} us"
    )
    alone = crypto_s + 2 / sync + 1 / swap
    print(f"floor, one at a time: 2 signs, 2 verifies, 2 appends, 1 swap{'':<8}{1 / alone:8,.0f}/s")
    print(f"floor, syncs shared by all: 2 signs, 2 verifies on one core{'':<8}{1 / crypto_s:8,.0f}/s")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        notary = create(folder / "notary", places=Places.default({"LEDGER_KEYS": "", "HOME": name}))
        token = notary.tokens().issue()
        loads = (("every submission with a new head of 50 ledgers", moving), ("submissions under one head", resting))
        made = [(label, make(folder, count)) for label, make in loads]
        floors(folder)
        with serving(folder / "notary", Path(os.environ["HOME"])) as service:
            for label, lanes in made:
                load(label, service.url, token, lanes)


if __name__ == "__main__":
    main()
