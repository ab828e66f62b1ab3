"""Judging touches nothing: no disk, no network, no process, no clock; and it loads neither storage nor the prover."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

JUDGES = (
    "verify", "verify.bundle", "verify.chain", "verify.ledger", "verify.memory", "verify.proof", "verify.receipt",
    "verify.report", "verify.tree", "verify.trust",
)  # fmt: skip


def ran(program):
    """Run a program in a fresh interpreter; return what it prints as JSON."""
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_importing_the_verifier_loads_neither_storage_nor_the_prover_nor_a_database():
    loaded = ran(f"import sys, json, {', '.join(JUDGES)}; print(json.dumps(sorted(sys.modules)))")
    forbidden = (
        "duckdb",
        "ledger.storage",
        "ledger.run",
        "ledger.merkle",
        "cli",
        "notary",
        "typer",
        "sqlite3",
        "tomlkit",
    )
    assert not [
        name for name in loaded if name in forbidden or name.startswith(tuple(f"{each}." for each in forbidden))
    ]


PROGRAM = """
import json, sys
sys.path.insert(0, ".")
from dataclasses import replace
from tests.reference.build import Builder, small
from verify.bundle import verify_bundle
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.options import parse_options
from verify.receipt import verify_receipt
from verify.trust import parse_trust

ledger = small()
data, note, text = ledger.journal(), ledger.notes[-1], ledger.trust_file()
bundle = ledger.bundle(ledger.rows[3].id)
repeated = Builder()
repeated.header()
repeated.grant()
repeated.add("grant", payload=repeated.payload(1), seal=True)
repeated.commit()
events = []
watching = False

def hook(event, args):
    if watching and event.split(".")[0] in {IO}:
        events.append([event, repr(args)[:200]])

sys.addaudithook(hook)
watching = True
trust = parse_trust(text, source="x", allow_test_keys=True)
exits = []
for broken in (data, data[:-400], data[:5000] + data[5001:], b"", b"\\xff" * 100, data + b"torn"):
    for options in (parse_options(), parse_options(bytes_only=True), parse_options(require=("closed", "every-head"))):
        segments = (Segment("j", 0, broken),)
        exits.append(verify_ledger(segments, trust=trust, memory=note, options=options).to_json() != b"")
exits.append(verify_ledger(repeated.segments(), trust=None).exit)
for each in (bundle, replace(bundle, checkpoint=b"x"), replace(bundle, items=bundle.items[:1])):
    exits.append(verify_bundle(each, trust=trust, memory=note).exit)
for each in (ledger.rows[13].envelope, ledger.payload(2), b"x", b'{"payload":{'):
    exits.append(verify_receipt(each, trust=trust).exit)
watching = False
print(json.dumps({"events": events, "exits": exits}))
"""

IO = {
    "open", "os", "socket", "subprocess", "shutil", "tempfile", "glob", "urllib", "http", "sqlite3", "import", "ctypes",
    "fcntl", "mmap", "signal", "pathlib", "webbrowser", "ssl", "ftplib", "smtplib",
}  # fmt: skip


def test_judging_opens_imports_and_starts_nothing():
    found = ran(PROGRAM.replace("{IO}", repr(IO)))
    assert found["events"] == []
    assert found["exits"][-8:] == [1, 0, 1, 5, 0, 3, 5, 1]


def test_no_module_of_the_verifier_names_a_clock_randomness_or_a_file():
    forbidden = (
        "import os", "import time", "import random", "import secrets", "import socket", "import subprocess", "pathlib",
        "datetime", "urllib", "http.", "open(", "ledger.storage", "ledger.merkle", "ledger.run",
    )  # fmt: skip
    for path in sorted((ROOT / "verify").glob("*.py")):
        if path.name == "vectors.py":
            continue  # it runs the prover's vectors too
        text = path.read_text(encoding="utf-8")
        code = text.split('"""', 2)[2] if text.startswith(('"""', 'r"""')) else text
        assert not [word for word in forbidden if word in code.replace("ledger.merkle`", "")], path.name
