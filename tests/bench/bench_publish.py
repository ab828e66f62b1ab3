"""Figures for publishing: a whole tree, 1,000 entries more, and the verdict on the tree, beside their floors.

    python tests/bench/bench_publish.py [--quick] [--receipts N]

Rates are of one process, by the wall clock for what waits for the disk and by the process clock for what computes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ledger.storage.publish import publish
from ledger.storage.published import PublishedTree
from verify.published import verify_published
from verify.trust import parse_trust

sys.path.insert(0, str(Path(__file__).parent))
from ledgers import trust, write_ledger

MORE = 1_000


def timed(work):
    """Return what `work` returns, its wall seconds and its processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - wall, time.process_time() - processor


def judged(tree: Path):
    verdict = verify_published(PublishedTree(tree), trust=parse_trust(trust(), source="bench"))
    if verdict.exit != 0:
        raise SystemExit(f"the tree does not verify: {verdict.findings[:3]}")
    return verdict


def floor_of_files(folder: Path, tree: Path) -> float:
    """Return the wall seconds that it takes to write files of the same sizes, one fsync each."""
    sizes = [path.stat().st_size for path in (tree / "tile").rglob("*") if path.is_file()]
    folder.mkdir()
    start = time.perf_counter()
    for number, size in enumerate(sizes):
        descriptor = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b"\0" * size)
        os.fsync(descriptor)
        os.close(descriptor)
    return time.perf_counter() - start


def peak(code: str) -> int:
    """Return the peak memory in bytes of a process that runs `code` with this file's functions."""
    program = (
        "import importlib.util as u, re; from pathlib import Path\n"
        f"spec = u.spec_from_file_location('bench', {str(Path(__file__))!r})\n"
        "bench = u.module_from_spec(spec); spec.loader.exec_module(bench)\n"
        # What `getrusage` says is carried over from the process that starts this one.
        f"{code}\nprint(re.search(r'VmHWM:\\s+([0-9]+)', Path('/proc/self/status').read_text())[1])"
    )
    return (
        int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout) * 1024
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="50,000 receipts instead of 1,000,000")
    parser.add_argument("--receipts", type=int)
    parser.add_argument("--folder", type=Path, help="keep the ledgers here, and use those that are there")
    arguments = parser.parse_args()
    receipts = arguments.receipts or (50_000 if arguments.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as temporary:
        kept = arguments.folder or Path(temporary)
        shorter, longer = kept / f"ledger-{receipts}", kept / f"ledger-{receipts + MORE}"
        for folder, size in ((shorter, receipts), (longer, receipts + MORE)):
            if not folder.exists():
                write_ledger(folder, size, 1_000)
        tree = Path(temporary) / "tree"
        whole, wall, processor = timed(lambda: publish(shorter, tree))
        floor = floor_of_files(Path(temporary) / "floor", tree)
        more, more_wall, _ = timed(lambda: publish(longer, tree))
        _, _, verify_processor = timed(lambda: judged(tree))
        written = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
        figures = {
            "receipts": receipts,
            "publish_s": round(wall, 2),
            "publish_receipts_per_s": round(receipts / wall),
            "publish_processor_s": round(processor, 2),
            "publish_files": whole.made,
            "floor_files_s": round(floor, 2),
            "more_s": round(more_wall, 3),
            "more_files": more.made,
            "more_collected": more.collected,
            "tree_bytes_per_receipt": round(written / (receipts + MORE)),
            "verify_receipts_per_s": round((receipts + MORE) / verify_processor),
            "publish_peak_bytes": peak(f"bench.publish(Path({str(shorter)!r}), Path({str(temporary)!r}) / 'again')"),
            "verify_peak_bytes": peak(f"bench.judged(Path({str(tree)!r}))"),
        }
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
