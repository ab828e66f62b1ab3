"""Figures for the index: building and catching up beside DuckDB's bare `read_json` of the same journal, and the named questions.

    python tests/bench/bench_index.py [--receipts N] [--turns N]

Ours and DuckDB's are measured in turns in processes of their own, and the best of each counts. `read_json` is measured twice: rows
put into a database file as an index is (its types found by itself), and rows only counted. The journal is in the page cache.
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

sys.path.insert(0, str(Path(__file__).parent))
from ledgers import trust, write_ledger

from ledger.index.questions import QUESTIONS

MORE = 1_000
BARE = """
import duckdb, sys
connection = duckdb.connect(sys.argv[2])
connection.execute(sys.argv[3].replace("JOURNAL", f"read_json('{sys.argv[1]}/journal/*.jsonl', format = 'newline_delimited')"))
connection.execute("CHECKPOINT")
connection.close()
"""
VERIFY = """
import sys
from pathlib import Path
from cli.options import Shared
from cli.rebuilt import Snapshot, judge
from cli.trustfile import read_trust
folder = Path(sys.argv[1])
options = Shared(trust=Path(sys.argv[2]))
judged = judge(Snapshot.of(folder), "ledger.invalid/bench", options, read_trust(options), memory=None, start=None, jobs=int(sys.argv[3]))
assert judged.verdict.exit == 0, judged.verdict.findings
"""
LOAD = """
import sys
from pathlib import Path
from ledger.index.build import Build
from ledger.index.load import BATCH_BYTES
with Build(Path(sys.argv[2]), way="anew") as build:
    batch, size, start = [], 0, 0
    for path in sorted(Path(sys.argv[1], "journal").iterdir()):
        if not batch:
            start = int(path.stem)
        batch.append(path.read_bytes())
        size += len(batch[-1])
        if size >= BATCH_BYTES:
            build.load(batch, start=start, leave_out=frozenset())
            batch, size = [], 0
    if batch:
        build.load(batch, start=start, leave_out=frozenset())
    build.finish()
"""


def took(command: list[str], env: dict[str, str]) -> dict[str, float]:
    """Return wall seconds, processor seconds (children included) and MB at most of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2)}


def best(turns: list[dict[str, float]]) -> dict[str, float]:
    return min(turns, key=lambda each: each["wall_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receipts", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        env = {**os.environ, "HOME": str(base / "home"), "PYTHONPATH": str(root)}
        env = {name: value for name, value in env.items() if not name.startswith(("XDG_", "LEDGER_"))}
        trusted = base / "trust.toml"
        trusted.write_bytes(trust())
        folder, longer = base / "ledger", base / "longer"
        write_ledger(folder, asked.receipts, 50, rich=True)
        write_ledger(longer, asked.receipts + MORE, 50, rich=True)
        ledger = [sys.executable, "-c", "from cli.main import main; main()", "-L", str(folder), "--trust", str(trusted)]
        out = str(base / "out.duckdb")
        work = {
            "read_json_into_a_table": [BARE, str(folder), out, "CREATE TABLE t AS SELECT * FROM JOURNAL"],
            "read_json_counted": [BARE, str(folder), out, "SELECT count(*) FROM JOURNAL"],
            "load": [LOAD, str(folder), out],
            "verify": [VERIFY, str(folder), str(trusted), str(os.cpu_count())],
        }
        found: dict[str, list[dict[str, float]]] = {}
        for _ in range(asked.turns):
            for name, command in work.items():
                Path(out).unlink(missing_ok=True)
                found.setdefault(name, []).append(took([sys.executable, "-c", *command], env))
            found.setdefault("index", []).append(took([*ledger, "index", "--rebuild"], env))
        figures: dict[str, object] = {name: best(turns) for name, turns in found.items()}
        figures["receipts"] = asked.receipts
        figures["nothing_new"] = best([took([*ledger, "sql", "SELECT 1"], env) for _ in range(asked.turns)])
        figures["questions"] = {
            name: best([took([*ledger, "sql", "-q", name], env) for _ in range(2)])["wall_s"] for name in QUESTIONS
        }
        for path in sorted((longer / "journal").iterdir()):
            old = folder / "journal" / path.name
            size = old.stat().st_size if old.exists() else 0
            with old.open("ab") as file:
                file.write(path.read_bytes()[size:])
        figures["catch_up_1000"] = took([*ledger, "index"], env)
        count = subprocess.run([*ledger, "sql", "--format", "csv", "SELECT count(*) FROM receipts"], env=env, capture_output=True, check=True)  # fmt: skip
        assert count.stdout.split()[-1] == str(asked.receipts + MORE).encode(), count
        for name, files in (
            ("index_mb", (base / "home/.cache").rglob("*.duckdb")),
            ("journal_mb", folder.rglob("*.jsonl")),
        ):
            figures[name] = sum(path.stat().st_size for path in files) >> 20
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
