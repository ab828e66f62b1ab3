"""Signals to a process that runs a command: passed on once, waited for, and nothing left behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DRIVER = """
import json, os, signal, sys
from pathlib import Path
from ledger.command import run_command
options = json.loads(sys.argv[1])
for name in options.pop("ignore", []):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
for name in options.pop("default", []):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
report = options.pop("report")
end = run_command(sys.argv[2:], env=dict(os.environ), **options)
Path(report).write_text(json.dumps({
    "status": end.status, "exit_code": end.exit_code, "signal": end.signal, "received": end.received,
    "kept": {s.name: s.kept.read(s.kept_bytes).decode() for s in end.streams if s.kept},
    "streams": {s.name: [s.total_bytes, s.reader_gone, s.left_open] for s in end.streams},
    "default": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "shell_code": end.shell_code,
}))
sys.exit(end.shell_code)
"""

COUNT = """
import os, signal, sys, time
number = int(sys.argv[1])
seen = []
signal.signal(number, lambda *_: seen.append(1))
os.write(1, b"ready %d\\n" % os.getpid())
until = time.monotonic() + 30
while not seen and time.monotonic() < until:
    signal.sigtimedwait([], 0.05)
until = time.monotonic() + 0.3
while time.monotonic() < until:
    signal.sigtimedwait([], 0.05)
os.write(1, b"count %d\\n" % len(seen))
"""


class Driver:
    """Our process under test: it runs one command and writes how that ended."""

    def __init__(self, folder: Path, *argv: str, stdout: int = subprocess.PIPE, **options) -> None:
        self.report = folder / "report.json"
        arguments = json.dumps({"report": str(self.report), **options})
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, arguments, *argv],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            start_new_session=True,
        )

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> dict:
        assert self.process.stdout is None or self.process.stdout.read() is not None
        self.process.wait(20)
        return json.loads(self.report.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def ends_within(pid: int, seconds: float) -> bool:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_signal_reaches_the_command_once_and_its_end_is_waited_for(tmp_path, name):
    number = getattr(signal, name)
    with Driver(tmp_path, sys.executable, "-c", COUNT, str(int(number))) as driver:
        assert driver.line().startswith(b"ready")
        driver.process.send_signal(number)
        end = driver.end()
    assert end["kept"]["stdout"].splitlines()[1:] == ["count 1"]
    assert (end["status"], end["exit_code"], end["received"]) == ("exited", 0, [number])
    assert end["default"]
    assert driver.process.returncode == 0


def test_a_signal_to_our_whole_group_reaches_the_command_once(tmp_path):
    with Driver(tmp_path, sys.executable, "-c", COUNT, str(int(signal.SIGINT))) as driver:
        assert driver.line().startswith(b"ready")
        os.killpg(driver.process.pid, signal.SIGINT)
        assert driver.end()["kept"]["stdout"].splitlines()[1:] == ["count 1"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_command_that_a_passed_signal_ends_was_ended_by_that_signal(tmp_path, name):
    number = getattr(signal, name)
    with Driver(tmp_path, "sh", "-c", "ulimit -c 0; echo ready; while :; do sleep 0.02; done") as driver:
        assert driver.line() == b"ready\n"
        driver.process.send_signal(number)
        end = driver.end()
    assert (end["status"], end["signal"], end["shell_code"]) == ("signaled", number, 128 + number)


def test_an_ignored_signal_stays_ignored_here_and_in_the_command(tmp_path):
    script = "echo ready; read x < /proc/self/stat; grep SigIgn /proc/$$/status; sleep 0.3; exit 3"
    with Driver(tmp_path, "sh", "-c", script, ignore=["SIGHUP"]) as driver:
        assert driver.line() == b"ready\n"
        driver.process.send_signal(signal.SIGHUP)
        end = driver.end()
    assert (end["exit_code"], end["received"]) == (3, [])
    assert int(end["kept"]["stdout"].split()[-1], 16) & 1


def test_a_status_is_not_lost_where_ends_of_children_were_ignored(tmp_path):
    with Driver(tmp_path, "sh", "-c", "exit 6", ignore=["SIGCHLD"]) as driver:
        assert driver.end()["exit_code"] == 6


def test_a_reader_that_leaves_does_not_kill_us_even_where_sigpipe_would(tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with Driver(
        tmp_path, "sh", "-c", "echo out; echo err >&2; exit 4", stdout=write_end, default=["SIGPIPE"]
    ) as driver:
        os.close(write_end)
        end = driver.end()
    assert (end["exit_code"], end["kept"]) == (4, {"stdout": "out\n", "stderr": "err\n"})
    assert end["streams"]["stdout"][1]


def test_sigpipe_is_at_its_default_in_the_command(tmp_path):
    with Driver(tmp_path, "grep", "SigIgn", "/proc/self/status") as driver:
        ignored = int(driver.end()["kept"]["stdout"].split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))


def test_no_signal_is_blocked_in_the_command(tmp_path):
    with Driver(tmp_path, "grep", "SigBlk", "/proc/self/status") as driver:
        assert int(driver.end()["kept"]["stdout"].split()[1], 16) == 0


def test_a_command_does_not_hang_when_we_are_killed(tmp_path):
    with Driver(tmp_path, "sh", "-c", "echo $$; exec yes", output="digest") as driver:
        pid = int(driver.line())
        driver.process.kill()
        driver.process.wait()
        assert driver.process.stdout is not None
        driver.process.stdout.close()
        assert ends_within(pid, 10)
    assert not driver.report.exists()


def test_a_second_signal_stops_waiting_for_a_reader_after_the_command_ended(tmp_path):
    read_end, write_end = os.pipe()
    with Driver(
        tmp_path, "sh", "-c", "head -c 100000 /dev/zero; echo $$ >&2", stdout=write_end, output="digest"
    ) as driver:
        os.close(write_end)
        until = time.monotonic() + 20
        while driver.process.poll() is None and time.monotonic() < until:
            # The command ends at once; our process waits for a reader that never comes.
            if not ends_within(driver.process.pid, 0.2):
                driver.process.send_signal(signal.SIGTERM)
        end = driver.end()
    os.close(read_end)
    assert end["status"] == "exited"
    assert end["streams"]["stdout"][0] == 100_000


def test_a_billion_bytes_pass_in_flat_memory(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom ledger.command import run_command\n"
        "end = run_command(['head', '-c', '1000000000', '/dev/zero'], env=dict(os.environ))\n"
        "s = end.streams[0]\n"
        "peak = Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]\n"
        "print(s.total_bytes, s.kept_bytes, s.digest, peak, file=sys.stderr)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as driver:
        with subprocess.Popen(["wc", "-c"], stdin=driver.stdout, stdout=subprocess.PIPE) as counter:
            assert driver.stdout is not None
            driver.stdout.close()
            counted = counter.communicate()[0]
        assert driver.stderr is not None
        total, kept, digest, peak_kib = driver.stderr.read().split()
    assert int(counted) == int(total) == 1_000_000_000
    assert int(kept) == 16 * 1024 * 1024
    # sha256 of a billion zero bytes, from `head -c 1000000000 /dev/zero | sha256sum`.
    assert digest == b"sha256:bc17f06f9d9b5f6f79ca189a1772b1a3a38d6e40c45bec50f9c4f28144efddca"
    assert int(peak_kib) < 64 * 1024
