"""Proofs: `python tests/bench/bench_prove.py [--quick] [--receipts N]`; the floor is the same hashes from memory.

Prints what inclusion and consistency proofs cost from the tiles of a ledger, how many hashes they hold, and what `ledger prove`
costs as a process. Every proof is checked against the signed root by the verifier's own arithmetic.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from ledgers import LOG, trust, write_ledger

from ledger.checkpoint import head_of
from ledger.merkle import consistency_proof, inclusion_proof, root_of
from ledger.storage.evidence import gather, gather_proof
from ledger.storage.reader import Reader
from ledger.storage.register import Register
from ledger.storage.writer import Writer
from verify.proof import leaf_hash, verify_consistency, verify_inclusion

ROOT = Path(__file__).resolve().parents[2]


def catch_up(folder: Path, register: Path) -> None:
    """Make state and tiles as a writer leaves them."""

    def no_repair(_rest: object):
        raise AssertionError("the journal needs no repair")

    writer = Writer(folder, log_keys=lambda _before, _after: (LOG,), register=Register(register), seal_repair=no_repair)
    writer.look(lambda _: None)
    writer.close()


def said(name: str, seconds: list[float], target: str = "") -> None:
    """Print the middle and the slow end of what something took."""
    ordered = sorted(seconds)
    middle, slow = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    print(
        f"{name:<42} p50 {middle * 1e3:6.2f} ms   p95 {slow * 1e3:6.2f} ms{f'    (target <= {target})' if target else ''}"
    )


def proofs(folder: Path, rounds: int) -> None:
    """Print what proofs cost, made and checked one after the other at places drawn from a fixed seed."""
    reader, draw = Reader(folder), random.Random(11)
    head = reader.head()
    most = (head.size - 1).bit_length()
    size, root, hashes = head.size, head.root, 0
    cold, warm, consistency, floor, whole = [], [], [], [], []
    kept = reader.hash_reader(head)
    for _ in range(rounds):
        index = draw.randrange(size)
        stored = reader.at(index)
        start = time.perf_counter()
        proof = inclusion_proof(index, size, reader.hash_reader(head))
        cold.append(time.perf_counter() - start)
        start = time.perf_counter()
        again = inclusion_proof(index, size, kept)
        warm.append(time.perf_counter() - start)
        assert proof == again
        verify_inclusion(leaf=leaf_hash(stored.entry_bytes), index=index, size=size, proof=proof, root=root)
        hashes = max(hashes, len(proof))
        start = time.perf_counter()
        path = consistency_proof(index + 1, size, reader.hash_reader(head))
        consistency.append(time.perf_counter() - start)
        old_root = root_of(index + 1, kept)
        verify_consistency(old_size=index + 1, old_root=old_root, new_size=size, new_root=root, proof=path)
        start = time.perf_counter()
        _bare(most)
        floor.append(time.perf_counter() - start)
        start = time.perf_counter()
        made = gather_proof(reader, stored.entry.receipt)
        whole.append(time.perf_counter() - start)
        assert made.proof == proof
        assert head_of(made.checkpoint).root == root
        assert made.extra == stored.entry_bytes
    print(f"{size:,} receipts; {rounds} proofs, each checked against the signed root")
    said("floor: hashing the tiles a proof crosses", floor)
    said("inclusion proof, tiles read and led up", cold, "1")
    said("inclusion proof, one reader for many", warm)
    said("consistency proof, tiles read and led up", consistency, "1")
    said("tlog-proof with lookup, entry and head", whole)
    print(f"hashes of the longest inclusion proof: {hashes}    (target <= {most}, log2 of {size:,})")
    bundles = []
    for _ in range(rounds // 20):
        receipt = reader.at(draw.randrange(size)).entry.receipt
        start = time.perf_counter()
        gather(reader, receipt)
        bundles.append(time.perf_counter() - start)
    said("bundle with its tree and path", bundles)


def _bare(levels: int) -> None:
    """Hash what a proof cannot do without: each tile on the way up, whole, since only whole tiles can be led up."""
    data = bytes(64)
    for _ in range(255 * (levels // 8) + (1 << levels % 8)):
        sha256(b"\x01" + data).digest()


def processes(folder: Path, home: Path, turns: int) -> None:
    """Print what `ledger prove` costs as a process, beside loading the libraries that it uses."""
    for package in ("cli", "ledger", "notary", "verify"):
        compileall.compile_dir(ROOT / package, quiet=1)  # as whoever installs a wheel has it
    environment = {**os.environ, "HOME": str(home)}
    reader = Reader(folder)
    size = reader.head().size
    receipt = next(each.entry.receipt for each in reader.backwards(b'"kind":"run"'))
    ledger = [str(Path(sys.executable).with_name("ledger")), "-L", str(folder)]
    commands = {
        "ledger prove RUN (bundle)": [*ledger, "prove", receipt, "-o", str(home / "proof")],
        "ledger prove RUN --format tlog-proof": [
            *ledger,
            "prove",
            receipt,
            "--format",
            "tlog-proof",
            "-o",
            str(home / "p"),
        ],
        f"ledger prove --heads {size // 2}:{size}": [
            *ledger,
            "prove",
            "--heads",
            f"{size // 2}:{size}",
            "-o",
            str(home / "h"),
        ],
        "of which loading the libraries": [sys.executable, "-c", "import pydantic, typer, nacl.bindings, rich.console"],
    }
    best = dict.fromkeys(commands, 1e9)
    for _ in range(turns):
        for name, command in commands.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, env=environment, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best[name] = min(best[name], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    for name, seconds in best.items():
        print(f"{name:<42} {seconds:.2f} s of process time")
    done = subprocess.run(
        [ledger[0], "--trust", str(home / "trust.toml"), "verify", str(home / "proof"), str(home / "h")],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    print(f"both files verify by themselves: {done.stdout.count('everything asked for was established')} of 2")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--receipts", type=int, default=1_000_000)
    given = parser.parse_args()
    receipts = 50_000 if given.quick else given.receipts
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        home = base / "home"
        home.mkdir()
        (home / "trust.toml").write_bytes(trust())
        write_ledger(base / "ledger", receipts, 1_000)
        catch_up(base / "ledger", home / "register")
        proofs(base / "ledger", 200 if given.quick else 1_000)
        processes(base / "ledger", home, 3 if given.quick else 8)


if __name__ == "__main__":
    main()
