"""Commands at a terminal: keys, sizes, raw mode, foreground and job control, on ptys of this test."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DRIVER = """
import json, os, sys, threading
from pathlib import Path
from ledger.command import run_command
options = json.loads(sys.argv[1])
report = Path(options.pop("report"))
if options.pop("fail", False):
    def on_start(pid):
        raise RuntimeError("refused")
    options["on_start"] = on_start
if "stdout_to" in options:
    options["stdout"] = os.open(options.pop("stdout_to"), os.O_WRONLY | os.O_CREAT)
if "stdin_from" in options:
    options["stdin"] = os.open(options.pop("stdin_from"), os.O_RDONLY)
before = sorted(os.listdir("/proc/self/fd"))
end = run_command(sys.argv[2:], env=dict(os.environ), **options)
kept = {s.name: s.kept.read(s.kept_bytes).decode("latin-1") for s in end.streams if s.kept}
end.close()
try:
    tty = os.open("/dev/tty", os.O_RDWR)
    front = os.tcgetpgrp(tty) == os.getpgrp()
    os.close(tty)
except OSError:
    front = None
report.write_text(json.dumps({
    "status": end.status, "exit_code": end.exit_code, "signal": end.signal, "received": end.received, "kept": kept,
    "left_open": end.left_open, "front": front, "descriptors": sorted(os.listdir("/proc/self/fd")) == before,
}))
"""

SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def default():
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
job = subprocess.Popen(sys.argv[1:], process_group=0, preexec_fn=default)
os.tcsetpgrp(0, job.pid)
while True:
    _, status = os.waitpid(job.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        job.returncode = 0
        break
    os.write(1, b"[stopped]\\r\\n")
    input()
    os.tcsetpgrp(0, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
    os.write(1, b"[continued]\\r\\n")
os.write(1, b"[done]\\r\\n")
"""

COUNT = """
import os, signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
os.write(1, b"ready\\n")
until = time.monotonic() + 30
while not seen and time.monotonic() < until:
    signal.sigtimedwait([], 0.05)
until = time.monotonic() + 0.3
while time.monotonic() < until:
    signal.sigtimedwait([], 0.05)
os.write(1, b"count %d\\n" % len(seen))
"""


class Terminal:
    """A terminal with one process in it; the test is the person who types and reads."""

    def __init__(
        self, folder: Path, *argv: str, shell: bool = False, rows: int = 31, columns: int = 97, **options
    ) -> None:
        self.report = folder / "report.json"
        self.master, self.slave = os.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        self.seen = b""
        options = {"pty": True, **options, "report": str(self.report)}
        command = [sys.executable, "-c", DRIVER, json.dumps(options), *argv]
        if shell:
            command = [sys.executable, "-c", SHELL, *command]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.seen += os.read(self.master, 65536)
        return True

    def until(self, text: str, seconds: float = 20) -> str:
        """Return what the terminal showed up to the first match of `text`, and forget it."""
        end = time.monotonic() + seconds
        while (match := re.search(text.encode(), self.seen)) is None:
            if time.monotonic() > end:
                raise AssertionError(f"the terminal shows {self.seen!r}, expected {text!r}")
            self.read(0.1)
        shown, self.seen = self.seen[: match.end()], self.seen[match.end() :]
        return shown.decode("latin-1")

    def suspend(self) -> None:
        """Type Ctrl-Z until it is taken: the kernel drops one that meets the moment in which the foreground changes."""
        for _ in range(5):
            self.type(b"\x1a")
            with contextlib.suppress(AssertionError):
                self.until(r"\[stopped\]", 3)
                return
        raise AssertionError(f"not stopped, the terminal shows {self.seen!r}")

    def until_raw(self) -> None:
        """Wait until keys are passed on one by one."""
        until = time.monotonic() + 20
        while termios.tcgetattr(self.slave)[3] & termios.ICANON:
            assert time.monotonic() < until, "the terminal is not raw"
            self.read(0.02)

    def until_state(self, pid: int, letter: str) -> None:
        """Wait until a process is in a state, as proc(5) names it."""
        until = time.monotonic() + 20
        while (state := Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]) != letter:
            assert time.monotonic() < until, f"process {pid} is in state {state}, expected {letter}"
            self.read(0.02)

    def end(self) -> dict:
        until = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < until:
            self.read(0.05)
        while self.read(0):
            pass
        self.process.wait(1)
        assert termios.tcgetattr(self.slave) == self.modes
        return json.loads(self.report.read_text()) if self.report.exists() else {}

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def test_the_command_sees_a_terminal_of_our_size_on_all_three(tmp_path):
    with Terminal(tmp_path, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; tty; exit 5") as terminal:
        end = terminal.end()
    assert (end["status"], end["exit_code"], end["descriptors"]) == ("exited", 5, True)
    assert end["kept"]["output"].startswith("31 97\r\n/dev/pts/")
    assert terminal.seen.decode() == end["kept"]["output"]


def test_a_new_size_of_our_terminal_reaches_the_command(tmp_path):
    script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done"
    with Terminal(tmp_path, "sh", "-c", script) as terminal:
        terminal.until("ready")
        terminal.resize(12, 34)
        terminal.until("12 34")
        assert terminal.end()["exit_code"] == 0


def test_a_new_size_reaches_a_command_whose_input_is_no_terminal(tmp_path):
    script = "trap 'stty size <&1; exit 0' WINCH; echo ready; while :; do sleep 0.02; done"
    with Terminal(tmp_path, "sh", "-c", script, stdin_from="/dev/null") as terminal:
        terminal.until("ready")
        terminal.resize(12, 34)
        terminal.until("12 34")
        assert terminal.end()["exit_code"] == 0


def test_keys_reach_the_command_and_the_end_of_input_is_a_key(tmp_path):
    with Terminal(tmp_path, "sh", "-c", "read x; echo got $x; cat; echo bye") as terminal:
        terminal.type(b"hello\r")
        terminal.until("got hello")
        terminal.type(b"\x04")
        terminal.until("bye")
        assert terminal.end()["exit_code"] == 0


def test_a_control_c_at_the_pty_reaches_the_command_once(tmp_path):
    with Terminal(tmp_path, sys.executable, "-c", COUNT) as terminal:
        terminal.until("ready")
        terminal.type(b"\x03")
        terminal.until("count 1\r")
        end = terminal.end()
    assert (end["exit_code"], end["received"]) == (0, [])


@pytest.mark.parametrize("output", ["keep", "none"])
def test_a_control_c_reaches_a_command_in_the_background_once(tmp_path, output):
    options = {"pty": False, "output": output}
    with Terminal(tmp_path, sys.executable, "-c", COUNT, **options) as terminal:
        terminal.until("ready")
        terminal.type(b"\x03")
        terminal.until("count 1\r")
        end = terminal.end()
    assert (end["exit_code"], end["received"], end["front"]) == (0, [signal.SIGINT], True)


def test_a_control_c_reaches_a_command_that_was_lent_the_foreground_once(tmp_path):
    script = f"import os; os.write(1, b'name?'); os.read(0, 9)\n{COUNT}"
    with Terminal(tmp_path, sys.executable, "-c", script, pty=False) as terminal:
        terminal.until(r"name\?")
        terminal.type(b"me\n")
        terminal.until("ready")
        terminal.type(b"\x03")
        terminal.until("count 1\r")
        end = terminal.end()
    assert (end["exit_code"], end["received"], end["front"]) == (0, [], True)


def test_a_command_may_ask_at_the_terminal_though_its_output_goes_elsewhere(tmp_path):
    script = "stty -echo </dev/tty; echo password: >/dev/tty; read x </dev/tty; stty echo </dev/tty; echo got $x"
    options = {"pty": False, "stdout_to": str(tmp_path / "out"), "stdin_from": "/dev/null"}
    with Terminal(tmp_path, "sh", "-c", script, **options) as terminal:
        terminal.until("password:")
        terminal.type(b"secret\n")
        end = terminal.end()
    assert (end["exit_code"], end["kept"]["stdout"], end["front"]) == (0, "got secret\n", True)
    assert (tmp_path / "out").read_text() == "got secret\n"
    assert b"secret" not in terminal.seen


def test_input_that_is_no_terminal_is_inherited_and_the_output_is_processed_once(tmp_path):
    (tmp_path / "in").write_bytes(b"one\ntwo\n")
    with Terminal(tmp_path, "sh", "-c", "test -t 1 && cat", stdin_from=str(tmp_path / "in")) as terminal:
        end = terminal.end()
    assert (end["exit_code"], end["kept"]) == (0, {"output": "one\ntwo\n"})
    assert terminal.seen == b"one\r\ntwo\r\n"


def test_our_terminal_is_raw_while_the_command_runs_and_restored_when_it_is_killed(tmp_path):
    with Terminal(tmp_path, "sh", "-c", "echo ready; while :; do sleep 0.02; done") as terminal:
        terminal.until("ready")
        assert not termios.tcgetattr(terminal.slave)[3] & termios.ICANON
        terminal.process.send_signal(signal.SIGTERM)
        end = terminal.end()
    assert (end["status"], end["signal"], end["received"]) == ("signaled", signal.SIGTERM, [signal.SIGTERM])


def test_our_terminal_is_restored_after_an_exception(tmp_path):
    with Terminal(tmp_path, "sh", "-c", "while :; do sleep 0.02; done", fail=True) as terminal:
        terminal.end()
        assert b"RuntimeError: refused" in terminal.seen
        assert terminal.process.returncode == 1


def test_our_terminal_is_untouched_when_nothing_runs(tmp_path):
    with Terminal(tmp_path, "no-such-command") as terminal:
        end = terminal.end()
    assert (end["status"], end["descriptors"]) == ("not_found", True)


def test_the_limit_ends_a_stubborn_command_at_a_terminal(tmp_path):
    script = "trap '' TERM HUP; echo ready; while :; do sleep 0.02; done"
    with Terminal(tmp_path, "sh", "-c", script, limit_ms=200, grace_ms=200) as terminal:
        end = terminal.end()
    assert (end["status"], end["signal"]) == ("limit", signal.SIGKILL)


def test_quick_ends_at_a_terminal_lose_no_byte(tmp_path):
    for number in range(8):
        with Terminal(tmp_path, "sh", "-c", f"seq 1 {number * 300}; printf last") as terminal:
            end = terminal.end()
        expected = "".join(f"{line}\r\n" for line in range(1, number * 300 + 1)) + "last"
        assert end["kept"]["output"] == expected
        assert terminal.seen.decode() == expected


def test_bytes_that_are_no_text_pass_a_terminal(tmp_path):
    with Terminal(tmp_path, "printf", r"\377\376\000\033[1m\303\050") as terminal:
        end = terminal.end()
    assert end["kept"]["output"].encode("latin-1") == terminal.seen == b"\xff\xfe\x00\x1b[1m\xc3("


def test_a_descendant_that_holds_the_pty_does_not_hold_us(tmp_path):
    with Terminal(tmp_path, "sh", "-c", "trap '' HUP; sleep 3 & echo out") as terminal:
        end = terminal.end()
    assert (end["exit_code"], end["left_open"], end["kept"]["output"]) == (0, True, "out\r\n")


def test_a_terminal_that_goes_away_ends_the_command(tmp_path):
    script = "echo ready; while :; do echo x; sleep 0.02; done"
    with Terminal(tmp_path, "sh", "-c", script) as terminal:
        terminal.until("ready")
        os.close(terminal.slave)
        os.close(terminal.master)
        terminal.process.wait(20)
        terminal.master, terminal.slave = os.pipe()
    end = json.loads(terminal.report.read_text())
    assert (end["status"], end["signal"]) == ("signaled", signal.SIGHUP)


@pytest.mark.parametrize("output", ["keep", "none"])
def test_control_z_stops_us_with_the_command_and_the_shell_continues_both(tmp_path, output):
    script = "echo ready; read x </dev/tty; echo got $x; exit 6"
    options = {"pty": False, "output": output, "stdin_from": "/dev/null"}
    with Terminal(tmp_path, "sh", "-c", script, shell=True, **options) as terminal:
        terminal.until("ready")
        for _ in range(2):
            terminal.suspend()
            terminal.type(b"\n")
            terminal.until(r"\[continued\]")
        terminal.type(b"late\n")
        terminal.until("got late")
        terminal.until(r"\[done\]")
        end = terminal.end()
    assert (end["exit_code"], end["front"]) == (6, True)


def test_control_z_stops_us_with_a_command_at_our_keys_and_the_shell_continues_both(tmp_path):
    script = "echo pid $$; read x; echo got $x; exit 6"
    with Terminal(tmp_path, "sh", "-c", script, shell=True) as terminal:
        pid = int(re.findall(r"pid (\d+)", terminal.until(r"pid \d+\r"))[0])
        for _ in range(2):
            terminal.suspend()
            assert termios.tcgetattr(terminal.slave) == terminal.modes
            terminal.until_state(pid, "T")
            terminal.type(b"\n")
            terminal.until(r"\[continued\]")
            terminal.until_raw()
            terminal.until_state(pid, "S")
        terminal.type(b"late\r")
        terminal.until("got late")
        terminal.until(r"\[done\]")
        end = terminal.end()
    assert (end["exit_code"], end["front"], end["received"]) == (6, True, [])


def test_time_that_we_were_stopped_counts_against_the_limit(tmp_path):
    script = "echo pid $$; while :; do sleep 0.02; done"
    with Terminal(tmp_path, "sh", "-c", script, shell=True, limit_ms=10_000, grace_ms=5000) as terminal:
        pid = int(re.findall(r"pid (\d+)", terminal.until(r"pid \d+\r"))[0])
        terminal.suspend()  # which may take two tries of 3 s each
        until = time.monotonic() + 10.1
        while time.monotonic() < until:
            terminal.read(0.1)
        terminal.until_state(pid, "T")
        terminal.type(b"\n")
        terminal.until(r"\[done\]")
        end = terminal.end()
    assert (end["status"], end["signal"]) == ("limit", signal.SIGTERM)


@pytest.mark.parametrize(
    ("prepare", "keys", "got"),
    [
        ("trap '' TSTP", b"\x1a", ""),
        ("trap 'echo noticed' TSTP", b"\x1a", ""),
        ("stty -isig", b"\x1a", "\x1a"),
        ("stty susp undef", b"\x1a", "\x1a"),
        ("stty susp ^Y", b"\x1a", "\x1a"),
        ("true", b"\x16\x1a", "\x1a"),
    ],
)
def test_control_z_that_the_command_keeps_for_itself_stops_nothing(tmp_path, prepare, keys, got):
    # A signal that the shell handles would end its own `read`, but not that of another process.
    script = f'{prepare}; echo ready; x=$(head -n 1); echo "got<$x>"'
    with Terminal(tmp_path, "sh", "-c", script, shell=True) as terminal:
        terminal.until("ready")
        terminal.until_raw()
        terminal.type(keys)
        terminal.type(b"on\r")
        terminal.until(re.escape(f"got<{got}on>"))
        shown = terminal.until(r"\[done\]")
        end = terminal.end()
    assert end["exit_code"] == 0
    assert "[stopped]" not in shown


def test_a_stop_from_outside_gives_the_terminal_back_until_we_are_continued(tmp_path):
    with Terminal(tmp_path, "sh", "-c", "echo pid $PPID; read x; echo got $x", shell=True) as terminal:
        pid = int(re.findall(r"pid (\d+)", terminal.until(r"pid \d+\r"))[0])
        os.kill(pid, signal.SIGTSTP)
        terminal.until(r"\[stopped\]")
        assert termios.tcgetattr(terminal.slave) == terminal.modes
        terminal.type(b"\n")
        terminal.until_raw()
        terminal.type(b"more\r")
        terminal.until("got more")
        assert terminal.end()["exit_code"] == 0
