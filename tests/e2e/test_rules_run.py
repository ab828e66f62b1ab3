"""`ledger run` under a budget and a policy: what it holds, what it refuses to promise, and what a verifier says of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time

import pytest

PROGRAM = [sys.executable, "-c", "from cli.main import main; main()"]


class Shell:
    """A user with a folder of their own, who types commands as processes."""

    def __init__(self, home):
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
        self.environment = {**kept, "HOME": str(home), "NO_COLOR": "1"}

    def __call__(self, *words, **more):
        return subprocess.run(
            [*PROGRAM, "-L", "L", *words], cwd=self.home, env=self.environment, capture_output=True, text=True,
            check=False, **more,
        )  # fmt: skip

    def receipts(self):
        rows = json.loads(self("log", "--json").stdout)
        return [json.loads(self("show", row["receipt"], "--json").stdout) for row in rows]


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    assert shell("init").returncode == 0
    return shell


def size(shell):
    return len(json.loads(shell("log", "--json").stdout))


def test_a_time_limit_ends_the_command_says_so_and_holds(shell):
    start = time.monotonic()
    ended = shell("run", "--budget", "seconds=1", "--result", "r.json", "--", "sleep", "5")
    took = time.monotonic() - start
    assert ended.returncode == 124
    assert took < 4
    assert "duration_ms=1000" in ended.stderr
    result = json.loads((shell.home / "r.json").read_text())
    assert result["status"] == "limit"
    assert shell("verify", "--all").returncode == 0
    assert shell("verify", result["receipt"]).returncode == 0
    text = json.dumps(shell.receipts())
    assert '"duration_ms"' in text
    assert "budget.limit" in text


def test_a_command_that_ends_in_time_is_what_it_was(shell):
    assert shell("run", "--budget", "seconds=20", "--", "sh", "-c", "exit 3").returncode == 3
    assert shell("verify", "--all").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--budget", "usd=1"], "usd_micro"), (["--budget", "seconds=-1"], "seconds"), (["--budget", "fuel=1"], "fuel"),
     (["--budget", "seconds=1:grace=0"], "grace"), (["--budget", "receipts=9:soft=5"], "soft")],
)  # fmt: skip
def test_a_limit_that_cannot_be_held_here_is_refused_by_name_and_nothing_is_recorded(shell, words, said):
    before = size(shell)
    ended = shell("run", *words, "--", "sh", "-c", "touch ran")
    assert ended.returncode == 2
    assert said in ended.stderr
    assert not (shell.home / "ran").exists()
    assert size(shell) == before


OURS = {"schema": "receipt-ledger.policy/v1", "level": "act-within-policy"}


@pytest.mark.parametrize(
    ("policy", "said"),
    [({"policy": {"level": "observe", "surprise": 1}}, "surprise"),
     ({**OURS, "tools": {"deny": [{"name": "rm"}]}}, "rm"), ({**OURS, "always_ask": [{"name": "rm"}]}, "always_ask"),
     ({**OURS, "rules": [{"name": "large", "act": "refund", "then": "ask"}]}, "large")],
)  # fmt: skip
def test_a_policy_that_cannot_be_read_or_held_here_is_refused_by_name_and_nothing_is_recorded(shell, policy, said):
    (shell.home / "p.json").write_text(json.dumps(policy))
    before = size(shell)
    ended = shell("run", "--policy", "p.json", "--", "sh", "-c", "touch ran")
    assert ended.returncode == 2
    assert said in ended.stderr
    assert not (shell.home / "ran").exists()
    assert size(shell) == before


@pytest.mark.parametrize(
    "policy",
    [{**OURS, "level": "act-with-approval"}, {**OURS, "always_ask": [{"name": "sh"}]},
     {**OURS, "rules": [{"name": "large", "act": "*", "then": "ask"}]}],
)  # fmt: skip
def test_a_policy_that_asks_before_the_command_leaves_it_waiting(shell, policy):
    (shell.home / "p.json").write_text(json.dumps(policy))
    assert shell("run", "--policy", "p.json", "--", "sh", "-c", "touch ran").returncode == 125
    assert not (shell.home / "ran").exists()
    assert len(json.loads(shell("pending", "--json").stdout)) == 1
    assert shell("verify", "--all").returncode == 0


@pytest.mark.parametrize(("allowed", "code"), [("sh", 0), ("ls", 125)])
def test_a_command_that_the_policy_allows_runs_and_another_does_not(shell, allowed, code):
    (shell.home / "p.json").write_text(json.dumps({**OURS, "tools": {"allow": [{"name": allowed}]}}))
    assert shell("run", "--policy", "p.json", "--", "sh", "-c", "touch ran").returncode == code
    assert (shell.home / "ran").exists() is (code == 0)
    assert shell("verify", "--all").returncode == 0
    assert ("policy.not_listed" in json.dumps(shell.receipts())) is (code != 0)


@pytest.mark.parametrize(("inner", "code"), [("receipts=5", 0), ("receipts=21", 125)])
def test_a_run_inside_a_run_draws_on_it_and_only_narrows(shell, inner, code):
    nested = [*PROGRAM, "-L", "L", "run", "--budget", inner, "--", "true"]
    ended = shell("run", "--budget", "receipts=20", "--result", "r.json", "--", *nested)
    assert ended.returncode == code
    assert shell("verify", "--all").returncode == 0
    run = json.loads((shell.home / "r.json").read_text())["run"]
    found = json.loads(shell("budget", run, "--json").stdout)
    receipts = next(row for row in found["meters"] if row["meter"] == "receipts")
    assert (receipts["limit"], receipts["spent"], receipts["reserved"]) == (20, 8 if code == 0 else 4, 0)
    assert "receipts" in shell("budget", run).stdout


def test_the_time_of_a_run_is_shown_once_it_is_closed(shell):
    look = [*PROGRAM, "-L", "L", "budget", "latest", "--json"]
    ended = shell(
        "run", "--budget", "seconds=20", "--result", "r.json", "--", "sh", "-c", f"{shlex.join(look)} > open.json"
    )
    assert ended.returncode == 0
    result = json.loads((shell.home / "r.json").read_text())
    took = json.loads(shell("log", "--json").stdout)[0]["duration_ms"]
    found = [
        json.loads((shell.home / "open.json").read_text()),
        json.loads(shell("budget", result["run"], "--json").stdout),
    ]
    before, after = (next(row for row in each["meters"] if row["meter"] == "duration_ms") for each in found)
    assert (before["limit"], before["spent"], before["left"]) == (20_000, None, None)
    assert (after["limit"], after["spent"], after["left"]) == (20_000, took, 20_000 - took)
    assert str(took) in shell("budget", result["run"]).stdout
