"""Figures for verifying: rates at 1, 50 and 1,000 receipts a commit, the floor of signatures, processes, lookup and memory.

    python tests/bench/bench_verify.py [--quick] [--receipts N]

Rates are of one process on one core, read from the process clock, with the journal in the page cache. Ours and the floor are
measured in turns, and the best turn of each counts, so that what else the machine does falls on both. `--receipts` is the size of
the long ledger: memory and lookup are measured on it, and memory is extrapolated to 10,000,000 by what a receipt costs; with
`--receipts 10000000` it is measured there (12 GB of disk, about an hour).
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from binascii import a2b_base64
from pathlib import Path

from nacl.bindings import crypto_sign_open

from cli.parallel import Fold, fold_segments
from ledger.envelope import pae, parse_envelope
from ledger.line import parse_entry_line, parse_head_line
from ledger.storage.register import Register
from ledger.storage.writer import Writer
from verify.chain import Segment
from verify.ledger import LedgerFold, verify_ledger
from verify.options import Options
from verify.trust import parse_trust

sys.path.insert(0, str(Path(__file__).parent))
from ledgers import ISSUER, LOG, trust, write_ledger

ROOT = Path(__file__).resolve().parents[2]
TRUST = parse_trust(trust(), source="bench")


class Journal:
    """The segments of a journal, read one at a time."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted((folder / "journal").iterdir())

    def __iter__(self):
        for path in self.files:
            yield Segment(path.name, int(path.stem), path.read_bytes())


def judged(folder: Path, options: Options):
    """Return what judges a ledger held in memory and says how many receipts that were."""
    segments = list(Journal(folder))

    def judge() -> int:
        verdict = verify_ledger(segments, trust=TRUST, options=options)
        if verdict.exit != 0:
            raise SystemExit(f"the ledger does not verify: {verdict.findings[:3]}")
        return verdict.coverage.count

    return judge


def bare_signatures(folder: Path):
    """Return what verifies all signatures of a ledger, seals and heads, by libsodium alone, and says how many they were."""
    signed = []
    for segment in Journal(folder):
        for line in segment.data.splitlines():
            if line.startswith(b'{"entry"'):
                envelope = parse_envelope(parse_entry_line(line)[1])
                signed.append((envelope.seal.signature + pae(envelope.payload_type, envelope.payload), ISSUER.public))
            else:
                text, _, lines = parse_head_line(line)[0].partition(b"\n\n")
                signed.append((a2b_base64(lines.split(b" ")[-1])[4:] + text + b"\n", LOG.public))

    def verify() -> int:
        for message, public in signed:
            crypto_sign_open(message, public)
        return len(signed)

    return verify


def best_rates(tasks, turns: int) -> dict[str, float]:
    """Return for each task how many things it did a second of processor time, in its best turn."""
    best = dict.fromkeys(tasks, 0.0)
    for _ in range(turns):
        for name, task in tasks.items():
            start = time.process_time()
            count = task()
            best[name] = max(best[name], count / (time.process_time() - start))
    return best


def rates(base: Path, *, quick: bool) -> None:
    """Print rates of one core beside the floor."""
    size = 500 if quick else 2_000
    shapes = {
        "sealed": (size // 2, 1, True),
        "1": (size, 1, False),
        "50": (2 * size, 50, False),
        "1000": (2 * size, 1_000, False),
    }
    for name, (count, per_commit, sealed) in shapes.items():
        write_ledger(base / name, count, per_commit, sealed=sealed)
    everything, only = Options(), Options(bytes_only=True)
    tasks = {"floor": bare_signatures(base / "sealed"), "sealed": judged(base / "sealed", Options(every_head=True))}
    for name in ("1", "50", "1000"):
        tasks[f"{name} bytes"] = judged(base / name, only)
        tasks[f"{name} all"] = judged(base / name, everything)
    best = best_rates(tasks, 4 if quick else 25)
    print(f"floor: {best['floor']:,.0f} bare verifications/s of the same signatures")
    for name, target_only, target_all in (("1", "80,000", ""), ("50", "", "45,000"), ("1000", "150,000", "45,000")):
        for kind, word, target in (("bytes", "bytes only", target_only), ("all", "everything", target_all)):
            said = f"    (target >= {target})" if target else ""
            print(f"{name:>5} a commit: {word} {best[f'{name} {kind}']:>9,.0f}/s{said}")
    ratio = 2 * best["sealed"] / best["floor"]
    print(f"every receipt sealed, every head: {best['sealed']:,.0f}/s, {ratio:.2f} of the floor    (target >= 0.8)")


def scaling(folder: Path, receipts: int) -> None:
    """Print how much sooner two processes are done than one."""
    files = [(int(path.stem), path.stat().st_size) for path in Journal(folder).files]
    best, work = {1: 1e9, 2: 1e9}, {1: 1e9, 2: 1e9}
    for _ in range(2):
        for jobs in (1, 2):
            start, before = time.perf_counter(), _processor_s()
            fold = LedgerFold(Options())
            fold_segments(fold, Fold(folder, files, Options()), jobs=jobs, step=lambda _: True)
            assert fold.judge(Journal(folder), trust=TRUST).exit == 0
            best[jobs] = min(best[jobs], time.perf_counter() - start)
            work[jobs] = min(work[jobs], _processor_s() - before)
    print(
        f"two processes: {receipts / best[1]:,.0f}/s -> {receipts / best[2]:,.0f}/s by the clock, {best[1] / best[2]:.2f} times;"
        f" by processor time up to {2 * work[1] / work[2]:.2f} times    (target >= 1.6)"
    )


def _processor_s() -> float:
    """Return the processor seconds of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_memory(folder: Path, home: Path, jobs: int) -> tuple[int, int]:
    """Return the peak memory in bytes of `ledger verify` on a ledger, and of its largest worker."""
    code = (
        "import resource, sys, cli.main\n"
        "try:\n    cli.main.main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print(*(resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)),"
        " file=sys.stderr)"
    )
    options = ["--trust", str(home / "trust.toml"), "verify", str(folder), "--json", "--jobs", str(jobs)]
    done = subprocess.run(
        [sys.executable, "-c", code, *options],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(home)},
    )
    own, workers = done.stderr.split()[-2:]
    return int(own), int(workers)


def memory(folder: Path, receipts: int, base: Path, home: Path) -> None:
    """Print peak memory, and what it comes to at 10,000,000 receipts by what a receipt costs."""
    small = receipts // 5
    write_ledger(base / "small", small, 1_000)
    before, _ = peak_memory(base / "small", home, 1)
    own, _ = peak_memory(folder, home, 1)
    each = max((own - before) / (receipts - small), 9.2)  # 8 bytes, what a growing buffer holds in reserve, closed runs
    said = (
        ""
        if receipts >= 10_000_000
        else f", so {(own + each * (10_000_000 - receipts)) / 1e6:.0f} MB at 10,000,000 by that"
    )
    print(
        f"peak memory at {receipts:,} receipts: {own / 1e6:.0f} MB, {each:.1f} bytes a receipt{said}    (target <= 200 at 10,000,000)"
    )
    own, worker = peak_memory(folder, home, 2)
    print(f"with two processes: {own / 1e6:.0f} MB, and {worker / 1e6:.0f} MB in the larger worker")


def lookup(folder: Path, receipts: int, home: Path) -> None:
    """Print what one receipt costs to verify in a long ledger whose state and tiles are current, and what opening it costs."""

    def writer() -> Writer:
        register = Register(home / "register")
        return Writer(folder, log_keys=lambda _before, _after: (LOG,), register=register, seal_repair=_no_repair)

    catching_up = writer()
    catching_up.look(lambda _: None)
    catching_up.close()
    opening = 1e9
    for _ in range(5):
        start = time.perf_counter()
        opened = writer()
        opened.look(lambda _: None)
        opening = min(opening, time.perf_counter() - start)
        opened.close()
    print(f"open for append at {receipts:,} receipts: {opening * 1e3:.1f} ms    (target <= 100 at 1,000,000)")
    for package in ("cli", "ledger", "notary", "verify"):
        compileall.compile_dir(ROOT / package, quiet=1)  # as whoever installs a wheel has it
    environment = {**os.environ, "HOME": str(home)}
    command = [str(Path(sys.executable).with_name("ledger")), "-L", str(folder), "--trust", str(home / "trust.toml")]
    rows = subprocess.run(
        [*command, "log", "-n", "2", "--json"], env=environment, check=True, capture_output=True, text=True
    )
    receipt = next(each["receipt"] for each in json.loads(rows.stdout) if each["kind"] == "run")
    best = {"verify": 1e9, "libraries": 1e9}
    libraries = [sys.executable, "-c", "import pydantic, typer, nacl.bindings, rich.console"]
    for _ in range(8):
        for name, arguments in (("verify", [*command, "verify", receipt]), ("libraries", libraries)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(arguments, env=environment, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best[name] = min(best[name], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(
        f"ledger verify ID at {receipts:,} receipts: {best['verify']:.2f} s of process time, of which {best['libraries']:.2f} for"
        " loading the libraries it uses    (target <= 0.5 at 1,000,000)"
    )


def _no_repair(_rest: object):
    raise AssertionError("the journal needs no repair")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--receipts", type=int, default=1_000_000)
    given = parser.parse_args()
    receipts = 50_000 if given.quick else given.receipts
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        rates(base / "rates", quick=given.quick)
        home = base / "home"
        home.mkdir()
        (home / "trust.toml").write_bytes(trust())
        write_ledger(base / "long", receipts, 1_000)
        scaling(base / "long", receipts)
        memory(base / "long", receipts, base, home)
        (home / ".local/state/receipt-ledger").rename(home / "forgotten")  # the small ledger has the same origin
        lookup(base / "long", receipts, home)


if __name__ == "__main__":
    main()
