"""Verifying a store of ctrlrun: our `verify` against ctrlrun's own `receipts --verify-chain`, on one store, in turns, in one run.

    python tests/bench/bench_ctrlrun.py [RECEIPTS]

The store is written by ctrlrun itself, through protected calls' receipts and their events. Both sides are whole commands, start and
end of a process included; the floor is that ours needs at most a fifth of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import ctrlrun
from ctrlrun.receipt import Event, EventType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.reference.ctrlrun_app import App  # noqa: E402

BIN = Path(sys.executable).parent
FLOOR = 5.0
ROUNDS = 3


def written(folder: Path, receipts: int) -> Path:
    """Return a store with as many receipts, each with the events of a call that committed."""
    app = App(folder)
    app.everything()
    store = app.store
    model = next(each for each in store.receipts() if each.seq == 1)
    connection = store._connection()
    connection.execute("PRAGMA synchronous=OFF")
    for number in range(receipts - 10):
        arguments = {"amount": 2000 + number % 40_000, "note": "n", "payment_id": f"txn_{number}"}
        action = ctrlrun.Action(
            "stripe.refund", arguments, model.principal, resource=f"payment:txn_{number}", environment=model.environment
        )
        for type_ in (EventType.ACTION_PROPOSED, EventType.EXECUTION_STARTED, EventType.EXECUTION_COMMITTED):
            store.append_event(Event(type_, action.action_id, model.started_at, {}, f"refund:txn_{number}"))
        store.put_receipt(
            replace(
                model,
                receipt_id=f"ctr_{number:032x}",
                action_id=action.action_id,
                action_hash=action.action_hash,
                resource=action.resource,
                arguments=arguments,
                effect_key=f"refund:txn_{number}",
            )
        )
    connection.execute(
        "INSERT OR IGNORE INTO effects SELECT effect_key, 'committed', action_id, 1, NULL, '{}', NULL, ts, ts, NULL FROM receipts WHERE result = 'committed' AND effect_key IS NOT NULL"
    )
    app.close()
    return app.path


def cost(command: list[str], cwd: Path, *, expected: int) -> float:
    """Return the process seconds that a command took, start and end included: what else the machine does falls on neither side."""
    env = {**os.environ, "HOME": str(cwd), "CTRLRUN_STATE": str(cwd / "state.db")}
    with (cwd / "out").open("wb") as out:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = (cwd / "out").read_bytes()[-400:]
    assert process.returncode == expected, f"{command}: exit {process.returncode}: {said!r}"
    return used.ru_utime + used.ru_stime


def main(receipts: int) -> None:
    """Write the store, measure both in turns, print the figures."""
    with tempfile.TemporaryDirectory(prefix="bench-ctrlrun-") as name:
        folder = Path(name)
        start = time.perf_counter()
        path = written(folder, receipts)
        print(
            f"store        {receipts:,} receipts, {path.stat().st_size >> 20} MiB, written in {time.perf_counter() - start:.0f} s"
        )
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(cost([str(BIN / "ctrlrun"), "receipts", "--verify-chain", "--json"], folder, expected=0))
            ours.append(cost([str(BIN / "ledger"), "verify", str(path), "--json"], folder, expected=3))
        own, other = median(ours), median(theirs)
        print(f"ctrlrun      {other:8.2f} s  {receipts / other:10,.0f} receipts/s")
        print(f"ledger       {own:8.2f} s  {receipts / own:10,.0f} receipts/s")
        print(f"ratio        {other / own:8.1f}    floor {FLOOR:.0f}   {'ok' if other / own >= FLOOR else 'BELOW'}")
        print(f"pairs        {', '.join(f'{b / a:.1f}' for a, b in zip(ours, theirs, strict=True))}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
