"""`ledger prove` and `ledger verify FILE` as a person types them: on another machine, without keys, after damage."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from ledger.bundle import parse_bundle
from ledger.tlogproof import parse_tlog_proof
from tests.conftest import ROOT

BIN = Path(sys.executable).parent
PAGE = ROOT / "docs/how-to/verify-without-us.md"
SCRIPT = ROOT / "docs/how-to/verify_bundle.py"
ORIGIN = "example.org/ledger/prove"
ISSUER = f"owner@{ORIGIN}"

FILL = """
import sys
from ledger import Ledger
from ledger.receipt import Grant
from ledger.storage.clock import nonce, now
from ledger.storage.ledger import PRODUCER
ledger = Ledger.open(sys.argv[1])
common = {"ledger": ledger.origin, "issuer": ledger.issuer, "producer": PRODUCER, "action": "given", "grantee": "bot"}
grants = (Grant(**common, acts=("read",), issued_at=now(), nonce=nonce()) for _ in range(900))
for number in range(5):
    ledger.append_many([ledger.seal(next(grants)) for _ in range(180)])
    with ledger.run(f"run {number}", actor="bot") as run:
        for call in range(10):
            with run.call(f"act {call}", access="read", arguments={"n": call}) as made:
                made.result = {"n": call}
"""


class Machine:
    """A user with a home of their own, in a folder of files that several may share."""

    def __init__(self, home: Path, work: Path) -> None:
        self.home, self.work, self.said = home, work, ""
        for folder in (home, work):
            folder.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
        path = f"{BIN}{os.pathsep}{kept.get('PATH', '')}"
        self.environment = {**kept, "HOME": str(home), "NO_COLOR": "1", "PATH": path}

    def run(self, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(words, cwd=self.work, env=self.environment, input=data, capture_output=True, check=False)

    def __call__(self, *words: str, code: int = 0, data: bytes = b"") -> bytes:
        ran = self.run("ledger", *words, data=data)
        self.said = ran.stderr.decode()
        assert ran.returncode == code, (words, ran.returncode, ran.stdout, ran.stderr)
        assert "Traceback" not in self.said
        return ran.stdout

    @property
    def trust(self) -> Path:
        return self.home / ".config/receipt-ledger/trust.toml"

    def keys(self) -> tuple[str, str]:
        """Return the log key and the issuer key that this user has pinned."""
        pins = {pin["role"]: pin["key"] for pin in json.loads(self("trust", "list", "--json"))["pins"]}
        return pins["origin"], pins["issuer"]


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    """Return the owner of a ledger of 1,000 receipts and more, `L` in the work folder."""
    folder = tmp_path_factory.mktemp("prove")
    machine = Machine(folder / "owner", folder / "work")
    machine("init", "L", "--origin", ORIGIN)
    (machine.work / "seen.note").write_bytes(machine("-L", "L", "head"))
    assert machine.run(sys.executable, "-c", FILL, "L").returncode == 0
    machine("-L", "L", "run", "--", "echo", "hello")
    assert size_of(machine) > 1_000
    return machine


@pytest.fixture
def stranger(owner, tmp_path):
    return Machine(tmp_path / "stranger", owner.work)


@pytest.fixture
def auditor(owner, tmp_path):
    """Return somebody with a home of their own who was given the owner's trust file."""
    machine = Machine(tmp_path / "auditor", owner.work)
    machine.trust.parent.mkdir(parents=True)
    shutil.copy(owner.trust, machine.trust)
    return machine


def size_of(machine):
    return json.loads(machine("-L", "L", "head", "--json"))["size"]


def prove(machine, *words, name):
    machine("-L", "L", "prove", *words, "-o", name)
    return (machine.work / name).read_bytes()


KINDS = {
    "run.json": ("latest", "--artifacts"),
    "entry.tlog-proof": ("latest", "--format", "tlog-proof"),
    "sealed.dsse": ("--run", "latest", "--format", "dsse"),
    "range.json": ("--range", "0:1000"),
    "middle.json": ("--range", "500:503"),
    "joined.json": ("--heads", "seen.note:"),
    "sizes.json": ("--heads", "1:181"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_was_proved_of_a_thousand_receipts_verifies_elsewhere_with_the_trust_file_and_not_without(
    owner, auditor, stranger, name
):
    prove(owner, *KINDS[name], name=name)
    away = auditor.work / "L"
    hidden = away.rename(auditor.work / "gone")
    try:
        auditor("verify", name)
        stranger("verify", name, code=3)
        auditor("verify", "-", data=(auditor.work / name).read_bytes())
        verdict = json.loads(auditor("verify", name, "--json"))
        assert (verdict["exit"], verdict["status"]) == (0, "ok")
    finally:
        hidden.rename(away)


def test_no_proof_is_longer_than_the_logarithm_of_the_size(owner):
    bound = (size_of(owner) - 1).bit_length()
    bundle = parse_bundle(prove(owner, "--range", "0:1000", name="bound.json"))
    assert len(bundle.items) == 1_000
    assert max(len(item.proof) for item in (*bundle.items, *bundle.covers, *bundle.keyring)) <= bound
    assert len(parse_tlog_proof(prove(owner, "latest", "--format", "tlog-proof", name="bound.txt")).proof) <= bound


def test_what_is_proved_twice_is_the_same_file(owner):
    for name, words in (("run.json", KINDS["run.json"]), ("range.json", KINDS["range.json"])):
        assert prove(owner, *words, name=f"a-{name}") == prove(owner, *words, name=f"b-{name}")


def test_proving_needs_no_key_and_writes_nothing_into_the_ledger(owner, tmp_path):
    copy = tmp_path / "work" / "L"
    shutil.copytree(owner.work / "L", copy)
    keyless = Machine(tmp_path / "keyless", tmp_path / "work")
    shutil.copy(owner.work / "seen.note", keyless.work)

    def state():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in copy.rglob("*")}

    before = state()
    for words in (KINDS["run.json"], KINDS["range.json"], KINDS["joined.json"]):
        keyless("-L", "L", "prove", *words, "-o", "proof")
    assert state() == before
    assert not keyless.home.joinpath(".local").exists()


def test_a_bundle_carries_artifacts_on_request_and_they_are_checked_where_asked_for(owner, auditor):
    with_, without = prove(owner, "latest", "--artifacts", name="with.json"), prove(owner, "latest", name="bare.json")
    assert (len(parse_bundle(with_).artifacts), parse_bundle(without).artifacts) == (2, ())
    auditor("verify", "with.json", "--require", "artifacts")
    auditor("verify", "bare.json")
    auditor("verify", "bare.json", "--require", "artifacts", code=5)


def test_memory_grows_from_files_and_asks_for_a_proof_of_what_is_newer(owner, auditor):
    prove(owner, "latest", name="newest.json")
    auditor("verify", "seen.note")
    auditor("verify", "newest.json", code=3)
    prove(owner, "--heads", "seen.note:", name="join.json")
    auditor("verify", "join.json")
    auditor("verify", "newest.json", "--require", "memory")
    auditor("verify", "seen.note")


def test_the_dsse_envelope_verifies_with_another_library(owner):
    data = prove(owner, "--run", "latest", "--format", "dsse", name="their.json")
    _, issuer = owner.keys()
    key = SSlibKey(issuer, "ed25519", "ed25519", {"public": issuer.removeprefix("ed25519:")})
    assert list(Envelope.from_dict(json.loads(data)).verify([key], threshold=1)) == [issuer]


def test_a_receipt_without_a_seal_has_no_dsse_envelope_and_the_hint_names_one_that_has(owner):
    entries = json.loads(owner("-L", "L", "log", "--entries", "--json"))
    intent = next(entry["receipt"] for entry in entries if entry["kind"] == "intent")
    owner("-L", "L", "prove", intent, "--format", "dsse", code=2)
    hint = re.search(r"ledger (prove --run .*)", owner.said)[1]
    owner("-L", "L", *hint.split())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("00000000",), 5),
        (("--range", "5:5"), 5),
        (("--range", "0:99999"), 5),
        (("--range", "x"), 2),
        (("--range", "1:2", "--run", "latest"), 2),
        (("latest", "--range", "1:2"), 2),
        (("--range", "1:2", "--format", "dsse"), 2),
        (("--heads", "1:2", "--artifacts"), 2),
        (("--heads", "181:1"), 2),
        (("--heads", "nofile:"), 2),
        (("--heads", "99999:"), 5),
        (("--heads", "0:1"), 5),
        (("latest", "--format", "zip"), 2),
        (("not-a-reference",), 2),
        (("latest", "-o", "nowhere/file"), 2),
    ],
    ids=str,
)
def test_what_cannot_be_proved_is_said_and_nothing_is_written(owner, words, code):
    assert owner("-L", "L", "prove", *words, code=code) == b""
    assert owner.said


def test_a_note_of_another_ledger_is_not_joined(owner, tmp_path):
    other = Machine(tmp_path / "other", tmp_path / "there")
    other("init", "L")
    (owner.work / "other.note").write_bytes(other("-L", "L", "head"))
    owner("-L", "L", "prove", "--heads", "other.note:", code=2)
    assert "no head of this ledger" in owner.said


def test_what_was_written_is_described_as_json(owner):
    said = json.loads(owner("-L", "L", "prove", "latest", "-o", "said.json", "--json"))
    assert said["format"] == "bundle"
    assert said["size_bytes"] == (owner.work / "said.json").stat().st_size
    assert parse_bundle((owner.work / "said.json").read_bytes()).subject == said["subject"]


def test_a_stranger_is_told_how_to_pin_what_a_file_shows_and_it_works(owner, stranger):
    prove(owner, "latest", name="strange.json")
    stranger("verify", "strange.json", code=3)
    lines = re.findall(r"ledger (trust add .*)", stranger.said)
    assert len(lines) == 2
    for line in lines:
        stranger(*line.split())
    stranger("verify", "strange.json")


def test_a_flipped_bit_never_passes(owner, auditor):
    data = prove(owner, "latest", name="whole.json")
    broken = auditor.work / "broken.json"
    for position in range(7, len(data), len(data) // 4):
        broken.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        assert auditor.run("ledger", "verify", "broken.json").returncode in {1, 4, 5}, position


@pytest.mark.parametrize("data", [b"", b"\x00", b"{", b'{"schema":"receipt-ledger.bundle/v2"}', b"\xff\xfe"])
def test_what_is_nothing_of_ours_is_unknown(auditor, data):
    (auditor.work / "thing").write_bytes(data)
    auditor("verify", "thing", code=5)
    auditor("verify", "-", code=5, data=data)


# The verifier in one file.


def judge(machine, name, *pairs):
    ran = machine.run(sys.executable, "-I", str(SCRIPT), name, *pairs)
    assert not ran.stderr, ran.stderr
    return ran.returncode


def test_the_one_file_is_short_and_imports_nothing_of_ours():
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    found = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert found - set(sys.stdlib_module_names) == {"nacl"}


def test_the_one_file_tells_what_holds_from_what_does_not_and_from_whom(owner):
    log, issuer = owner.keys()
    given = f"{ORIGIN}={log}", f"{ISSUER}={issuer}"
    for name, words in (("one.json", ("latest", "--artifacts")), ("many.json", ("--range", "3:700"))):
        data = prove(owner, *words, name=name)
        assert judge(owner, name, *given) == 0
        assert judge(owner, name) == judge(owner, name, given[0]) == judge(owner, name, given[1]) == 3
        assert judge(owner, name, f"{ORIGIN}={issuer}", given[1]) == 4
        assert judge(owner, name, given[0], f"{ISSUER}={log}") == 4
        assert judge(owner, name, given[0], f"another={issuer}") == 4
        for position in range(5, len(data), len(data) // 3):
            (owner.work / "bad.json").write_bytes(data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :])
            assert judge(owner, "bad.json", *given) == 1
    assert judge(owner, "nofile") == judge(owner, "one.json", "x") == 2
    for data in (b"", b"{}", b"[" * 100_000, b'{"a":1.5}', b"\xff"):
        (owner.work / "bad.json").write_bytes(data)
        assert judge(owner, "bad.json", *given) == 1


def test_the_page_does_what_it_says(tmp_path):
    machine = Machine(tmp_path / "home", tmp_path / "work")
    shutil.copy(SCRIPT, machine.work)
    names: dict[str, str] = {}
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 7
    for block in blocks:
        for part in block.split("$ ")[1:]:
            command, _, expected = part.partition("\n")
            shown = command.replace("python ", f"{sys.executable} ", 1) if command.startswith("python ") else command
            environment = {**machine.environment, **names}
            ran = subprocess.run(
                ["bash", "-c", shown], cwd=machine.work, env=environment, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
            assert expected in ran.stdout, (command, ran.stdout)
            if command == "ledger trust list":
                rows = [line.split() for line in ran.stdout.splitlines()]
                for role, key, name in rows:
                    names |= {
                        "origin": {"ORIGIN": name, "LOG_KEY": key},
                        "issuer": {"ISSUER": name, "ISSUER_KEY": key},
                    }[role]
    stranger = Machine(tmp_path / "stranger", machine.work)
    stranger("verify", "run.json", code=3)
