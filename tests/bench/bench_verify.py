"""Figures for verifying: rates at 1, 50 and 1,000 receipts a commit, the floor of signatures, lookup and memory.

    python tests/bench/bench_verify.py [--quick] [--receipts N]

Each rate is of one process on one core, read from the process clock, with the journal in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ledger.keys import PrivateKey, verify_signature
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.options import Options
from verify.trust import parse_trust

sys.path.insert(0, str(Path(__file__).parent))
from ledgers import trust, write_ledger


class Journal:
    """The segments of a journal, read one at a time."""

    def __init__(self, folder: Path) -> None:
        self._files = sorted((folder / "journal").iterdir())

    def __iter__(self):
        for path in self._files:
            yield Segment(path.name, int(path.stem), path.read_bytes())


def rate(folder: Path, receipts: int, options: Options) -> float:
    """Return receipts judged a second of processor time."""
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        verdict = verify_ledger(Journal(folder), trust=parse_trust(trust(), source="bench"), options=options)
        best = max(best, receipts / (time.process_time() - start))
        if verdict.exit != 0:
            raise SystemExit(f"the ledger does not verify: {verdict.findings[:3]}")
    return best


def signature_floor() -> float:
    """Return bare libsodium verifications a second of processor time."""
    key = PrivateKey.from_seed(os.urandom(32))
    message = os.urandom(700)
    signature = key.sign(message)
    start = time.process_time()
    for _ in range(3_000):
        verify_signature(key.key, signature, message)
    return 3_000 / (time.process_time() - start)


def peak_memory(folder: Path) -> int:
    """Return the peak memory in bytes of a process that verifies the ledger."""
    code = (
        "import importlib.util as u, resource; from pathlib import Path\n"
        "spec = u.spec_from_file_location('bench', 'tests/bench/bench_verify.py')\n"
        "bench = u.module_from_spec(spec); spec.loader.exec_module(bench)\n"
        f"journal = bench.Journal(Path({str(folder)!r}))\n"
        "verdict = bench.verify_ledger(journal, trust=bench.parse_trust(bench.trust(), source='bench'))\n"
        "assert verdict.exit == 0; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def lookup(folder: Path, user: Path) -> float:
    """Return the processor seconds of a whole `ledger verify ID` process, its imports included."""
    environment = {**os.environ, "HOME": str(user)}
    command = [str(Path(sys.executable).with_name("ledger")), "-L", str(folder)]
    (user / "trust.toml").write_bytes(trust())
    row = subprocess.run(
        [*command, "log", "-n", "2", "--json"], env=environment, check=True, capture_output=True, text=True
    )
    receipt = next(each["receipt"] for each in json.loads(row.stdout) if each["kind"] == "run")
    best = 1e9
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, "--trust", str(user / "trust.toml"), "verify", receipt],
            env=environment,
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--receipts", type=int, default=100_000)
    given = parser.parse_args()
    receipts = 5_000 if given.quick else given.receipts
    floor = signature_floor()
    print(f"floor: {floor:,.0f} bare signature verifications/s")
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for per_commit, target_bytes, target_all in ((1, 80_000, 0), (50, 0, 45_000), (1_000, 150_000, 45_000)):
            count = min(receipts, 20_000) if per_commit == 1 else receipts
            folder = base / f"at-{per_commit}"
            write_ledger(folder, count, per_commit)
            only = rate(folder, count, Options(bytes_only=True))
            everything = rate(folder, count, Options())
            said = f"    (target >= {target_bytes:,})" if target_bytes else ""
            print(f"{per_commit:>5} a commit, {count:,} receipts: bytes only {only:>9,.0f}/s{said}")
            said = f"    (target >= {target_all:,})" if target_all else ""
            print(f"{'':>5}           {'':>{len(f'{count:,}')}}            everything {everything:>9,.0f}/s{said}")
        count = min(receipts, 10_000)
        folder = base / "sealed"
        write_ledger(folder, count, 1, sealed=True)
        every = rate(folder, count, Options(every_head=True))
        print(
            f"every receipt sealed, every head: {every:,.0f}/s, {2 * every / floor:.2f} of the floor    (target >= 0.8)"
        )
        folder = base / f"at-{1_000}"
        print(
            f"peak memory at {receipts:,} receipts: {peak_memory(folder) / 1e6:.0f} MB    (target <= 200 at 10,000,000)"
        )
        user = base / "user"
        user.mkdir()
        print(
            f"ledger verify ID at {receipts:,} receipts, no state: {lookup(folder, user):.2f} s of process time    (target <= 0.5 at 1,000,000)"
        )


if __name__ == "__main__":
    main()
