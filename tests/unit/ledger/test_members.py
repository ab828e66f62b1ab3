"""Models are built when they are first used: by one thread, without touching a file, and all of them before anything is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def printed(program):
    """Run a program in a fresh interpreter, where no model is built yet; return what it prints."""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


FIRST_USE = """
import sys
from threading import Barrier, Thread
from ledger.digest import ZERO_DIGEST
from ledger.errors import FormatError
from ledger.members import Issuer, Producer
from ledger.receipt import Repair, Step, parse_receipt, print_receipt

sys.setswitchinterval(1e-6)
assert not Step.__pydantic_complete__ and not Repair.__pydantic_complete__ and not Issuer.__pydantic_complete__
together, said = Barrier(8), []

def use(number):
    common = dict(ledger="a/b", issued_at="2026-11-30T09:15:00.123Z", nonce="0" * 32)
    together.wait()
    try:
        common |= dict(issuer=Issuer(name="n", key="ed25519:" + "0" * 64), producer=Producer(name="p", version="1"))
        payload = print_receipt(Step(**common, run=ZERO_DIGEST, name="s", status="completed"))
        assert print_receipt(parse_receipt(payload)) == payload
        try:
            parse_receipt(payload.replace(b'"kind":"step"', b'"kind":"repair"'))
        except FormatError as error:
            said.append(error.code)
    except Exception as error:
        said.append(repr(error))

threads = [Thread(target=use, args=(number,)) for number in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(*said)
"""


def test_threads_that_use_a_kind_first_and_at_once_all_get_it():
    assert printed(FIRST_USE) == ["receipt.malformed"] * 8


def test_whoever_writes_has_every_model_built():
    program = """
from ledger.storage import writer
from ledger.members import Member
waiting, names = [Member], []
while waiting:
    model = waiting.pop()
    waiting.extend(model.__subclasses__())
    names.append((model.__name__, model.__pydantic_complete__))
assert len(names) > 30
print(*(name for name, built in names if not built))
"""
    assert printed(program) == []


def test_whoever_only_reads_builds_what_it_reads():
    program = """
from ledger.receipt import parse_receipt
from ledger.members import Member
print(*(model.__name__ for model in (Member, *Member.__subclasses__()) if model.__pydantic_complete__))
"""
    assert printed(program) == ["Member"]
