"""What deciding costs beyond the append, in a long ledger: plain calls and ruled ones in turns, the median of each.

    python tests/bench/bench_decide.py [--receipts N] [--folder DIR]

The folder is one in memory by default, so that the disk's noise does not hide what deciding takes: what is compared is the
time of the processor. A turn is 20 calls of one kind: what other recorders append in between costs a limited run a look at it.
Each rule is measured alone and all together. What is decided when a call is entered, and what is settled when it ends, stand apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from ledger import Ledger, Places
from ledger.digest import digest
from ledger.envelope import Envelope
from ledger.keys import PrivateKey
from ledger.members import Act, Tool
from ledger.receipt import Intent, print_receipt
from ledger.recorder import common_of

POLICY = json.dumps(
    {
        "schema": "receipt-ledger.policy/v1",
        "level": "act-within-policy",
        "tools": {"deny": [{"name": "shell", "arguments": {"command": "rm*"}}], "allow": [{"name": "pay*"}]},
    }
).encode()
_BATCH = 8_000
_TURN = 20


def fill(ledger: Ledger, receipts: int) -> None:
    """Append intents of many runs, thousands a commit."""
    act = Act(
        name="refund",
        tool=Tool(name="payments", version="1.4.2", digest="unknown"),
        access="write",
        arguments={"amount": 500, "payment": "txn_2"},
        arguments_digest="unknown",
        resource="payment/txn_2",
        environment="production",
    )
    made = 0
    while made < receipts:
        run = ledger.run("fill")
        common = common_of(ledger)
        first = print_receipt(Intent(**{**common, "run": run.id}, act=act, act_digest=digest(b"act")))
        start = first.index(b'"nonce":"') + len(b'"nonce":"')
        ledger.append_many(
            [Envelope(first[:start] + b"%032x" % (made + number) + first[start + 32 :]) for number in range(_BATCH)]
        )
        made += _BATCH


def timed(calls: list, count: int) -> list[tuple[float, float]]:
    """Return the median times in microseconds that entering and leaving a call of each kind take, measured in turns of some calls."""
    took: list[list[tuple[float, float]]] = [[] for _ in calls]
    for start in range(0, count, _TURN):
        for each, times in zip(calls, took, strict=True):
            for number in range(start, start + _TURN):
                call = each(number)
                begun = time.process_time()
                call.__enter__()
                entered = time.process_time()
                call.__exit__(None, None, None)
                times.append(((entered - begun) * 1e6, (time.process_time() - entered) * 1e6))
    medians = [[statistics.median(each) for each in zip(*times, strict=True)] for times in took]
    return [(enter, leave) for enter, leave in medians]


def timed_signs() -> float:
    """Return the median time in microseconds of one signature: how fast this machine is just now."""
    key, took = PrivateKey.from_seed(bytes(32)), []
    for _ in range(2_000):
        begun = time.process_time()
        key.sign(b"floor")
        took.append((time.process_time() - begun) * 1e6)
    return statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--receipts", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        places = Places.under(Path(name) / "home")
        ledger = Ledger.create(Path(name) / "ledger", places=places)
        fill(ledger, given.receipts)
        plain = ledger.run("plain")
        budget = {"usd_micro": 10**12, "tool_calls": 10**9}
        limited, policed = ledger.run("limited", budget=budget), ledger.run("policed", policy=POLICY)
        every = ledger.run("every", budget=budget, policy=POLICY)
        price = {"usd_micro": 10}
        calls = [
            lambda number: plain.call("pay", arguments={"number": number}),
            lambda number: plain.call("pay", arguments={"number": number}, reserve=price),
            lambda number: limited.call("pay", arguments={"number": number}, reserve=price),
            lambda number: policed.call("pay", arguments={"number": number}),
            lambda number: plain.call("pay", arguments={"number": number}, effect_key=f"one:{number}"),
            lambda number: every.call("pay", arguments={"number": number}, reserve=price, effect_key=f"all:{number}"),
        ]
        bare, priced, *others = timed(calls, given.calls)
        size = ledger.head().size
        signs = timed_signs()
        print(
            f"{size} receipts, {given.calls} calls of each kind in turns; the intent's append alone: {bare[0]:.0f} µs, {priced[0]:.0f} with a price (p50)"
        )
        print(f"  one signature takes {signs:.0f} µs here and now (26 where the target was set)")
        words = (("budget", priced), ("policy", bare), ("effect", bare), ("all three", priced))
        for (word, append), (enter, leave) in zip(words, others, strict=True):
            print(
                f"  {word:<10} {enter - append[0]:6.0f} µs more than the append of the same receipt (p50; target 100),"
                f" {leave - append[1]:4.0f} µs more than its outcome's"
            )


if __name__ == "__main__":
    main()
