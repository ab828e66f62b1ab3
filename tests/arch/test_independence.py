"""The verifier of files works where storage, notary, command line and network do not exist."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.reference.proofs import files, tiny

LEDGER = tiny()
FILES = files(LEDGER)

PROGRAM = """
import builtins, importlib.abc, io, json, os, socket, sys

REFUSED = ("ledger.storage", "ledger.merkle", "ledger.run", "ledger.command", "notary", "cli", "duckdb", "sqlite3", "typer")

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in REFUSED):
            raise ImportError(f"refused: {name}")
        return None

sys.meta_path.insert(0, Refuse())

def no_network(*args, **kwargs):
    raise OSError("no network")

socket.socket = socket.create_connection = socket.getaddrinfo = no_network
data, trust_text = (bytes.fromhex(line) for line in sys.stdin.read().split("\\n")[:2])

from verify.file import verify_file
from verify.options import Options
from verify.trust import parse_trust

trust = parse_trust(trust_text, source="stdin", allow_test_keys=True) if trust_text else None
judging = False

def watch(event, arguments):
    # Python itself opens modules that are imported late; nothing else is opened, listed, run or connected.
    if judging and event.split(".")[0] in {"socket", "subprocess", "shutil", "sqlite3", "urllib", "tempfile"}:
        raise SystemExit(f"touched: {event} {arguments}")
    if judging and event in {"open", "os.listdir", "os.remove", "os.rename", "os.mkdir"}:
        name = str(arguments[0])
        if not name.endswith((".py", ".pyc", ".so")) and "site-packages" not in name and "lib/python" not in name:
            raise SystemExit(f"touched: {event} {arguments}")

sys.addaudithook(watch)
judging = True
verdict = verify_file(data, subject="file", trust=trust, options=Options(artifacts=bool(data.startswith(b'{"art'))))
judging = False
loaded = [name for name in sys.modules if name.split(".")[0] in {"ledger", "verify", "cli", "notary", "duckdb", "sqlite3"}]
print(json.dumps({"exit": verdict.exit, "loaded": loaded}))
"""


def run(program, data, trust):
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=f"{data.hex()}\n{trust.hex()}\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


@pytest.mark.parametrize("name", FILES)
def test_files_are_judged_without_storage_notary_command_line_and_network(name):
    said = json.loads(run(PROGRAM, FILES[name], LEDGER.trust_file()))
    assert said["exit"] == 0
    assert not [each for each in said["loaded"] if each.startswith(("ledger.storage", "notary", "cli", "duckdb"))]
    assert json.loads(run(PROGRAM, FILES[name], b""))["exit"] == 3
    middle = len(FILES[name]) // 2
    broken = FILES[name][:middle] + bytes([FILES[name][middle] ^ 1]) + FILES[name][middle + 1 :]
    assert json.loads(run(PROGRAM, broken, LEDGER.trust_file()))["exit"] in {1, 4}


@pytest.mark.parametrize("name", ["ledger.storage.ledger", "ledger.storage", "notary", "cli.main", "ledger.merkle"])
def test_the_blocker_blocks(name):
    with pytest.raises(AssertionError, match=f"refused: {name.removesuffix('.ledger').removesuffix('.main')}"):
        run(PROGRAM.replace("from verify.file import", f"import {name}\nfrom verify.file import"), b"x", b"")


def test_a_socket_and_a_file_are_noticed():
    for touch in ("import socket; socket.socket()", "open('/etc/hostname')", "import os; os.listdir('/')"):
        program = PROGRAM.replace("judging = True\n", f"judging = True\n{touch}\n")
        with pytest.raises(AssertionError, match=r"touched|no network"):
            run(program, b"x", b"")
