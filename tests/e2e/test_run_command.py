"""`ledger run`, `resume` and `close`: a real command recorded while it runs, and what becomes of it when something is in the way."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time

import pytest

from tests.reference.people import at_home, run
from tests.reference.shell import LIMIT_S, User, files_of


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    user = User(tmp_path_factory.mktemp("owner"))
    assert user("init").exit == 0
    assert user("run", "--", "true").exit == 0
    return user


def look(user, *arguments):
    """Run a command that only reads, without starting a process."""
    with at_home(user.home, user.work):
        return run([str(each) for each in arguments])


def runs(user):
    return json.loads(look(user, "log", "--json").out)


def tree(user, reference="latest"):
    return json.loads(look(user, "tree", str(reference), "--json").out)


def call_of(user, reference="latest"):
    """Return the outcome of the one call of a run."""
    (id_,) = [child["receipt"] for child in tree(user, reference)["children"] if child["kind"] == "outcome"]
    return json.loads(look(user, "show", id_, "--json").out)["payload"]


def artifact(user, name, reference="latest"):
    return look(user, "artifact", f"{reference}/{name}").out.encode()


def wait_for(path, ready):
    """Return what a file says once it is ready."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        try:
            said = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if ready(said):
            return said
    raise AssertionError(f"{path} was not ready in time")


def test_streams_pass_through_byte_for_byte_and_are_kept(owner):
    data = bytes(range(256)) * 300
    (owner.work / "data").write_bytes(data)
    done = owner("run", "--", "sh", "-c", "cat; cat data >&2; exit 3", stdin=data)
    assert (done.exit, done.raw, done.raw_err) == (3, data, data)
    payload = call_of(owner)
    assert (payload["status"], payload["exit_code"], payload["reason"]) == ("committed", 3, "command.exit")
    assert {each["name"]: each["size_bytes"] for each in payload["artifacts"]} == {
        "stdout": len(data),
        "stderr": len(data),
    }
    assert owner("artifact", "latest/stderr").raw == data
    assert look(owner, "verify", "latest").exit == 0


@pytest.mark.parametrize(
    ("command", "code", "status", "reason"),
    [
        (["true"], 0, "committed", None),
        (["no-such-program"], 127, "failed", "command.not_found"),
        (["./plain"], 126, "failed", "command.not_executable"),
        (["sh", "-c", "kill -TERM $$"], 143, "ambiguous", "command.signal"),
        (["sh", "-c", "exit 125"], 125, "committed", "command.exit"),
    ],
)
def test_it_exits_as_the_command_does_and_the_receipt_says_how_that_was(owner, command, code, status, reason):
    (owner.work / "plain").write_bytes(b"not a program")
    (owner.work / "result").unlink(missing_ok=True)
    done = owner("run", "--result", "result", "--", *command)
    assert done.exit == code
    assert "Traceback" not in done.err
    payload = call_of(owner)
    assert (payload["status"], payload.get("reason")) == (status, reason)
    result = json.loads((owner.work / "result").read_bytes())
    newest = runs(owner)[0]
    assert (result["run"], result["receipt"]) == (newest["run"], newest["receipt"])
    if status == "committed":
        assert (result["status"], result["exit_code"]) == ("exited", code)


def test_what_is_refused_runs_nothing_and_the_result_says_so(owner, tmp_path):
    before = runs(owner)
    touch = ["--", "touch", "ran"]
    (owner.work / "result").write_text("of another run")
    refused = [
        owner("run", "--output", "nonsense", "--result", "result", *touch),
        owner("run", "--correlation", "nonsense", *touch),
        owner("run", "--secret-env", "NOT_SET", *touch),
        owner("run", "--agent", "", *touch),
        owner("run", "--result", "no/such/folder/result", *touch),
        owner("run", "--nonsense", *touch),
        owner("run"),
        owner("-L", "nowhere", "run", *touch),
        owner("resume", before[0]["run"], *touch),
        User(tmp_path)("-L", owner.work / ".ledger", "run", *touch),
    ]
    assert {(done.exit, done.out) for done in refused} == {(125, "")}
    assert all(done.err and "Traceback" not in done.err for done in refused)
    assert json.loads((owner.work / "result").read_bytes())["run"] is None
    assert not (owner.work / "ran").exists()
    assert runs(owner) == before


def test_output_is_kept_digested_or_neither(owner):
    for mode, artifacts in (("digest", []), ("none", [])):
        done = owner("run", "--output", mode, "--json", "--", "echo", "hi")
        assert (done.exit, done.out) == (0, "hi\n")
        assert json.loads(done.err)["status"] == "exited"
        payload = call_of(owner)
        assert [each["name"] for each in payload.get("artifacts", ()) if each.get("size_bytes")] == artifacts
        digest = "sha256:" + hashlib.sha256(b"hi\n").hexdigest()
        assert (digest in json.dumps(payload)) == (mode == "digest")


def test_a_named_secret_is_nowhere_in_the_record_and_nothing_of_the_environment_is(owner):
    secret, other = "correct horse battery", "of-the-environment-4711"
    env = {"TOKEN": secret, "OTHER": other}
    done = owner(
        "run", "--secret-env", "TOKEN", "--", "sh", "-c", 'echo "$TOKEN"; echo "$TOKEN" >&2; : "$0"', secret, env=env
    )
    assert (done.out, done.err) == (f"{secret}\n", f"{secret}\n")
    assert artifact(owner, "stdout") == artifact(owner, "stderr") == b"[secret:TOKEN]\n"
    assert json.loads(artifact(owner, "arguments"))["argv"][-1] == "[secret:TOKEN]"
    recorded = b"".join(files_of(owner.work / ".ledger").values())
    assert secret.encode() not in recorded
    assert other.encode() not in recorded


def test_a_run_inside_a_run_is_its_child_and_is_committed_by_the_call_that_started_it(owner):
    inner = "ledger run -- sh -c 'ledger run -- echo deep; exit 5'"
    done = owner("run", "--", "sh", "-c", inner)
    assert (done.exit, done.out) == (5, "deep\n")
    deep, middle, outer = runs(owner)[:3]
    assert (deep["parent"], middle["parent"], "parent" in outer) == (middle["run"], outer["run"], False)
    top = tree(owner)
    (call,) = [child for child in top["children"] if child["kind"] == "outcome"]
    (child,) = [each for each in call["children"] if each["kind"] == "run"]
    assert (top["receipt"], child["receipt"]) == (outer["receipt"], middle["receipt"])
    assert look(owner, "verify", "latest").exit == 0


def test_a_run_whose_driver_was_killed_stays_open_and_is_closed_or_gone_on_with(owner):
    for name in ("closed", "resumed"):
        result = owner.work / f"{name}.json"
        driver = owner.start(
            "run", "--name", name, "--result", result.name, "--", "sh", "-c", "echo $$ > pid; exec sleep 600"
        )
        said = wait_for(result, lambda value: value["run"])
        wait_for(owner.work / "pid", lambda pid: pid)
        driver.kill()
        assert driver.wait(LIMIT_S) == -signal.SIGKILL
        os.kill(int((owner.work / "pid").read_text()), signal.SIGKILL)  # what a driver leaves behind goes on by itself
        (owner.work / "pid").unlink()
        assert (said["receipt"], said["status"]) == (None, None)
        newest = runs(owner)[0]
        assert (newest["run"], newest["status"]) == (said["run"], "open")
        open_ = json.loads(look(owner, "verify", said["run"], "--json").out)
        assert (open_["exit"], look(owner, "verify").exit, look(owner, "verify", "--require", "closed").exit) == (
            3,
            0,
            3,
        )
        assert "resume" in look(owner, "verify", said["run"]).err
    closed = owner("close", runs(owner)[1]["run"][7:19], "--json")
    assert (closed.exit, look(owner, "verify", closed.json["receipt"]).exit) == (0, 0)
    assert owner("close", closed.json["run"]).exit == 2
    resumed = owner("resume", "latest", "--output", "none", "--", "echo", "-n", "again")
    assert (resumed.exit, resumed.out) == (0, "again")
    children = tree(owner)["children"]
    assert [child.get("status") for child in children if child["kind"] == "outcome"] == ["ambiguous", "committed"]
    whole = json.loads(look(owner, "verify", "--require", "closed", "--json").out)
    assert whole["exit"] == 0


def test_an_interrupt_reaches_the_command_once_and_is_recorded(owner):
    ours = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"
    driver = owner.start("run", "--", "sh", "-c", ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert driver.stdout.readline() == b"ready\n"
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=LIMIT_S)
    assert (driver.returncode, out, b"Traceback" in err) == (9, b"caught\n", False)
    assert runs(owner)[0]["status"] == "failed"


def test_in_a_terminal_the_command_has_one_and_the_recorder_says_where_it_is_recorded(owner):
    seen = owner.in_terminal("run", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size", columns=97)
    assert (seen.exit, seen.out.splitlines()[0]) == (0, "40 97")
    newest = runs(owner)[0]
    assert f"ledger verify {newest['receipt'][7:19]}" in seen.out
    assert artifact(owner, "output").replace(b"\r", b"") == b"40 97\n"


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_stream_that_is_closed_is_never_a_file_of_the_ledger(owner, closed):
    shut = " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
    ran = subprocess.run(
        ["bash", "-c", f"exec ledger run -- sh -c 'cat; echo out; echo err >&2; exit 4' {shut}"],
        cwd=owner.work, env=owner.environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 4
    assert ran.stdout == (b"" if 1 in closed else b"out\n")
    verdict = json.loads(look(owner, "verify", "--json").out)
    assert (verdict["exit"], [each for each in verdict["checks"] if each.get("code") == "journal.torn_tail"]) == (0, [])
    assert artifact(owner, "stdout") == b"out\n"


def test_a_folder_that_cannot_be_written_is_read_and_verified_and_records_nothing(owner, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", owner.work / ".ledger", copy], check=True)
    (copy / "lock").unlink()
    (copy / "lock").mkdir()
    before = files_of(copy)
    assert owner("-L", copy, "run", "--", "touch", "ran").exit == 125
    assert not (owner.work / "ran").exists()
    assert look(owner, "-L", copy, "log").exit == look(owner, "-L", copy, "verify").exit == 0
    assert files_of(copy) == before


def test_a_file_that_may_not_grow_stops_the_run_before_it_starts(owner):
    limited = "ulimit -f 8; exec ledger run --result result -- touch ran"
    done = subprocess.run(
        ["bash", "-c", limited],
        cwd=owner.work,
        env=owner.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert (done.returncode, (owner.work / "ran").exists()) == (125, False)
    assert "Traceback" not in done.stderr
    assert owner("run", "--", "true").exit == 0
    assert look(owner, "verify").exit == 0
