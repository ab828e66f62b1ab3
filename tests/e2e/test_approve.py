"""`ledger pending`, `approve`, `deny`, `resolve` as processes: answers made elsewhere, files that do not fit, what nobody knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-c", "from cli.main import main; main()"]


class Person:
    """Somebody with a home folder of their own, who types commands as processes."""

    def __init__(self, home):
        self.home = home
        home.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
        self.environment = {**kept, "HOME": str(home), "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}

    def __call__(self, *words, code=0):
        ran = subprocess.run(
            [*PROGRAM, *map(str, words)],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == code, (words, ran.stdout, ran.stderr)
        assert "Traceback" not in ran.stderr
        return ran.stdout or ran.stderr


@pytest.fixture
def owner(tmp_path):
    owner = Person(tmp_path / "owner")
    owner("init")
    return owner


@pytest.fixture
def ann(tmp_path, owner):
    ann = Person(tmp_path / "ann")
    ann.key = ann("keys", "new", "ann.pem").strip()
    owner("trust", "add", "ann", "--key", ann.key, "--role", "approver", "--as", "ops")
    return ann


def ask(owner, *command):
    owner("run", "--approve", "--", *(command or ("touch", "ran")), code=125)
    return json.loads(owner("pending", "--json"))[-1]


def test_an_answer_made_without_the_ledger_comes_in_by_append_and_the_run_goes_on(owner, ann):
    request = ask(owner)
    (ann.home / "requests.json").write_text(owner("pending", "--template"))
    assert not (owner.home / "ran").exists()
    ann("approve", "requests.json", "--key", "ann.pem", "--name", "ann", "--role", "ops", "-o", owner.home / "a.json")
    owner("append", "a.json")
    assert owner("pending").strip() == "nothing waits"
    owner("resume", request["run"], "--", "touch", "ran")
    assert (owner.home / "ran").exists()
    owner("verify")


def test_a_file_that_shows_another_act_than_its_digest_is_refused_whole(owner, ann):
    ask(owner)
    ask(owner, "touch", "other")
    document = json.loads(owner("pending", "--template"))
    assert len(document["requests"]) == 2
    document["requests"][1]["act"]["name"] = "rm"
    (ann.home / "requests.json").write_text(json.dumps(document))
    said = ann("approve", "requests.json", "--key", "ann.pem", "--name", "ann", "-o", "a.json", code=2)
    assert "nothing was answered" in said
    assert not (ann.home / "a.json").exists()


def test_answers_in_a_file_count_one_by_one_and_none_is_taken_where_one_does_not_fit(owner, ann):
    first, second = ask(owner), ask(owner, "touch", "other")
    document = json.loads(owner("pending", "--template"))
    document["requests"][1]["answer"] = "denied"
    (ann.home / "requests.json").write_text(json.dumps(document))
    ann("approve", "requests.json", "--key", "ann.pem", "--name", "ann", "--role", "ops", "-o", owner.home / "a.json")
    lines = (owner.home / "a.json").read_text().splitlines()
    assert len(lines) == 2
    owner("run", "--", "true")
    size = len(json.loads(owner("log", "--entries", "--json")))
    wrong = json.loads(lines[1])
    wrong["payload"]["act_digest"] = "sha256:" + "0" * 64
    (owner.home / "wrong.json").write_text(lines[0] + "\n" + json.dumps(wrong, separators=(",", ":")) + "\n")
    owner("append", "wrong.json", code=2)
    assert len(json.loads(owner("log", "--entries", "--json"))) == size
    owner("append", "a.json")
    owner("resume", first["run"], "--", "touch", "ran")
    owner("resume", second["run"], "--", "touch", "other", code=125)
    assert (owner.home / "ran").exists()
    assert not (owner.home / "other").exists()
    owner("verify")


def test_the_owner_cannot_approve_with_the_ledgers_own_key(owner, ann):
    request = ask(owner)
    keys = next((owner.home / ".local/share").rglob("issuer.pem"))
    owner("approve", request["request"], "--key", keys, "--name", "ann", "--role", "ops")
    owner("resume", request["run"], "--", "touch", "ran", code=125)
    assert not (owner.home / "ran").exists()


def test_a_standing_approval_lets_a_pattern_run_so_many_times(owner, ann):
    (owner.home / "key.pem").write_bytes((ann.home / "ann.pem").read_bytes())
    (owner.home / "key.pem").chmod(0o600)
    owner("approve", "--pattern", "tou*", "--uses", "1", "--expires", "1h", "--key", "key.pem")
    owner("run", "--approve", "--", "touch", "ran")
    owner("run", "--approve", "--", "touch", "more", code=125)
    assert (owner.home / "ran").exists()
    assert not (owner.home / "more").exists()
    owner("verify")


def test_a_policy_that_asks_holds_the_command_until_somebody_approves(owner, ann):
    (owner.home / "p.json").write_text(
        '{"schema":"receipt-ledger.policy/v1","level":"act-with-approval","approval":{"roles":["ops"]}}'
    )
    owner("run", "--policy", "p.json", "--", "touch", "ran", code=125)
    request = json.loads(owner("pending", "--json"))[0]
    assert (request["roles"], request["state"]) == (["ops"], "pending")
    (owner.home / "key.pem").write_bytes((ann.home / "ann.pem").read_bytes())
    (owner.home / "key.pem").chmod(0o600)
    owner("deny", request["request"], "--key", "key.pem")
    owner("resume", request["run"], "--", "touch", "ran", code=125)
    assert not (owner.home / "ran").exists()
    owner("verify")


def test_resolve_settles_by_key_and_says_what_it_cannot(owner):
    (owner.home / "crash.py").write_text(
        "import os\nfrom ledger import Ledger\n"
        "with Ledger.open('.ledger').run('w') as run, run.call('pay', effect_key='pay:1'):\n    os._exit(9)\n"
    )
    subprocess.run([sys.executable, "crash.py"], cwd=owner.home, env=owner.environment, check=False)
    assert "in progress" in owner("resolve", "pay:1", "--happened", code=2)
    owner("close", "latest")
    owner("resolve", "pay:1", "--happened", "--did-not-happen", code=2)
    owner("resolve", "pay:2", "--happened", code=5)
    (owner.home / "statement.txt").write_text("paid")
    owner("resolve", "pay:1", "--happened", "--by", "ann", "--evidence", "statement.txt")
    assert "nothing to resolve" in owner("resolve", "pay:1", "--did-not-happen", code=2)
    owner("verify")
