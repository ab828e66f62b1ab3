"""`run_command` away from terminals: what ran, what it wrote, how it ended."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ledger.command import CommandEnd, CommandError, run_command, stripped_environment
from ledger.command.streams import Outlet

ENV = {"PATH": os.environ["PATH"]}
CLOSED_FD = 987


def descriptors() -> set[str]:
    return {
        f"{fd}:{os.readlink(f'/proc/self/fd/{fd}')}"
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    }


@pytest.fixture(autouse=True)
def _nothing_stays():
    fds, handlers, wakeup = (
        descriptors(),
        {n: signal.getsignal(n) for n in signal.valid_signals()},
        signal.set_wakeup_fd(-1),
    )
    signal.set_wakeup_fd(wakeup)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    assert descriptors() == fds
    assert {n: signal.getsignal(n) for n in signal.valid_signals()} == handlers
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    now = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(now)
    assert now == wakeup


class Seen:
    """The end of a command, what was kept of each stream and what reached our own descriptors."""

    def __init__(self, end: CommandEnd, out: bytes, err: bytes) -> None:
        self.end = end
        self.out = out
        self.err = err
        self.kept = {s.name: s.kept.read(s.kept_bytes) if s.kept is not None else None for s in end.streams}
        self.stream = {s.name: s for s in end.streams}
        end.close()


def observe(*argv: str, feed: bytes = b"", **options) -> Seen:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as source:
        source.write(feed)
        source.seek(0)
        fds = {"stdin": source.fileno(), "stdout": out.fileno(), "stderr": err.fileno()}
        end = run_command(argv, **{"env": ENV, **fds, **options})
        out.seek(0)
        err.seek(0)
        return Seen(end, out.read(), err.read())


def gone(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


@contextmanager
def pipe():
    read_end, write_end = os.pipe()
    try:
        yield read_end, write_end
    finally:
        for fd in (read_end, write_end):
            with suppress(OSError):
                os.close(fd)


# What ran.


@pytest.mark.parametrize("code", [0, 1, 7, 124, 126, 127, 128, 255])
def test_an_exit_code_is_reported_as_it_is(code):
    end = observe("sh", "-c", f"exit {code}").end
    assert (end.status, end.exit_code, end.signal, end.shell_code, end.ran) == ("exited", code, None, code, True)


@pytest.mark.parametrize("number", [1, 2, 3, 6, 9, 13, 15])
def test_an_end_by_signal_is_not_an_exit(number):
    end = observe("sh", "-c", f"kill -{number} $$").end
    assert (end.status, end.exit_code, end.signal, end.shell_code) == ("signaled", None, number, 128 + number)


def _script(folder: Path, name: str, content: bytes, mode: int = 0o755) -> str:
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_a_name_that_no_folder_of_the_path_holds_is_not_found():
    end = observe("no-such-command-at-all").end
    assert (end.status, end.shell_code, end.exit_code, end.ran, end.streams) == ("not_found", 127, None, False, ())
    assert end.error == "command: 'no-such-command-at-all' was not found"


@pytest.mark.parametrize("name", ["", "/no/such/file", "./missing", "/etc/passwd/x", "x" * 300, "/" + "x" * 5000])
def test_a_path_that_leads_nowhere_is_not_found(name):
    assert observe(name).end.status == "not_found"


def test_a_path_through_a_dangling_link_is_not_found(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert observe(str(tmp_path / "link")).end.status == "not_found"


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        (b"#!/bin/sh\nexit 0\n", 0o644),
        (b"#!/no/such/interpreter\n", 0o755),
        (b"echo no first line\n", 0o755),
        (b"\x7fELF but not really one", 0o755),
        (b"", 0o755),
    ],
)
def test_a_file_that_is_there_and_cannot_be_executed_is_not_executable(tmp_path, content, mode):
    by_path = observe(_script(tmp_path, "tool", content, mode)).end
    by_name = observe("tool", env={"PATH": str(tmp_path)}).end
    for end in (by_path, by_name):
        assert (end.status, end.shell_code, end.ran) == ("not_executable", 126, False), end


def test_the_same_file_with_its_mode_and_first_line_runs(tmp_path):
    assert observe(_script(tmp_path, "tool", b"#!/bin/sh\nexit 9\n")).end.exit_code == 9
    assert observe("tool", env={"PATH": f"/nowhere:{tmp_path}:/bin"}).end.exit_code == 9
    assert observe("./tool", cwd=tmp_path).end.exit_code == 9
    assert observe("tool", cwd=tmp_path, env={"PATH": "."}).end.exit_code == 9


def test_a_file_open_for_writing_is_not_executable(tmp_path):
    path = Path(_script(tmp_path, "busy", Path("/bin/true").read_bytes()))
    with path.open("ab"):
        end = observe(str(path)).end
    assert end.status == "not_executable"
    assert observe(str(path)).end.exit_code == 0


def test_a_folder_is_not_executable_by_path_and_not_found_by_name(tmp_path):
    (tmp_path / "tool").mkdir()
    assert observe(str(tmp_path / "tool")).end.status == "not_executable"
    assert observe("tool", env={"PATH": str(tmp_path)}).end.status == "not_found"


def test_start_errors_say_that_nothing_ran(tmp_path):
    marker = tmp_path / "ran"
    file = _script(tmp_path, "file", b"")
    for options, argv in [
        ({}, ["sh", "-c", f"touch {marker}", "x" * 3_000_000]),
        ({"cwd": tmp_path / "missing"}, ["touch", str(marker)]),
        ({"cwd": Path(file)}, ["touch", str(marker)]),
        ({}, ["touch", str(marker), "nul\0inside"]),
        ({"env": {**ENV, "A=B": "x"}}, ["touch", str(marker)]),
        ({"env": {**ENV, "A": "\ud800"}}, ["touch", str(marker)]),
        ({}, []),
    ]:
        seen = observe(*argv, **options)
        assert (seen.end.status, seen.end.ran, seen.end.exit_code) == ("not_started", False, None)
        assert seen.end.error
        assert len(seen.end.error) < 300
        assert not marker.exists()
    assert observe("touch", str(marker)).end.status == "exited"
    assert marker.exists()


def test_a_program_that_has_the_name_of_its_folder_is_still_told_apart(tmp_path):
    assert observe(str(tmp_path), cwd=tmp_path).end.status == "not_executable"
    assert observe(str(tmp_path / "x"), cwd=tmp_path / "x").end.status == "not_started"


def test_arguments_environment_and_folder_reach_the_command_byte_for_byte(tmp_path):
    odd = os.fsdecode(b"\xff\xfe odd")
    seen = observe("sh", "-c", 'printf "%s|%s|%s" "$1" "$X" "$PWD"', "sh", odd, env={**ENV, "X": odd}, cwd=tmp_path)
    assert seen.out == b"|".join([b"\xff\xfe odd", b"\xff\xfe odd", os.fsencode(tmp_path)])


def test_the_environment_is_the_one_given_and_nothing_more():
    assert b"PATH" not in observe("/usr/bin/env", env={"ONLY": "this"}).out
    assert observe("/usr/bin/env", env={"ONLY": "this"}).out == b"ONLY=this\n"


def test_no_descriptor_of_ours_but_the_three_is_inherited():
    with tempfile.TemporaryFile() as extra:
        os.set_inheritable(extra.fileno(), True)
        assert sorted(observe("ls", "/proc/self/fd").out.split()) == [b"0", b"1", b"2", b"3"]


def test_the_command_leads_a_group_of_its_own():
    code = "import os; print(os.getpid() == os.getpgrp(), os.getsid(0))"
    assert observe(sys.executable, "-c", code).out == f"True {os.getsid(0)}\n".encode()


def test_on_start_gets_the_pid_of_what_was_executed():
    pids: list[int] = []
    seen = observe("sh", "-c", "echo $$", on_start=pids.append)
    assert seen.out == b"%d\n" % pids[0]
    assert gone(pids[0])


def test_on_start_is_not_called_when_nothing_ran():
    pids: list[int] = []
    assert observe("no-such-command", on_start=pids.append).end.status == "not_found"
    assert pids == []


def test_an_exception_of_on_start_ends_the_command_and_is_raised():
    pids: list[int] = []

    def refuse(pid: int) -> None:
        pids.append(pid)
        raise RuntimeError("cannot record")

    with pytest.raises(RuntimeError, match="cannot record"):
        observe("sh", "-c", "trap '' TERM; while :; do sleep 0.02; done", on_start=refuse, grace_ms=100)
    assert gone(pids[0])


def test_a_status_that_another_waiter_took_is_lost_and_not_a_success():
    end = observe("true", on_start=lambda pid: os.waitpid(pid, 0) and None).end
    assert (end.status, end.exit_code, end.signal, end.ran, end.shell_code) == ("lost", None, None, True, 125)


@pytest.mark.parametrize("options", [{"limit_ms": -1}, {"grace_ms": -1}, {"cap_bytes": -1}, {"output": "all"}])
def test_senseless_options_are_refused(options):
    with pytest.raises(CommandError):
        run_command(["true"], env=ENV, **options)


# What it wrote.


def test_streams_are_passed_through_and_kept_apart():
    seen = observe("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (seen.out, seen.err, seen.kept) == (b"out\n", b"err\n", {"stdout": b"out\n", "stderr": b"err\n"})
    assert seen.end.exit_code == 7


@pytest.mark.parametrize("body", [b"", b"x", bytes(range(256)) * 300, b"\xff\xc3\x28\xed\xa0\x80", b"\r\n\x00\x1a\x04"])
def test_any_bytes_are_passed_kept_and_digested_as_they_are(body):
    seen = observe("cat", feed=body)
    stream = seen.stream["stdout"]
    assert seen.out == seen.kept["stdout"] == body
    assert stream.digest == "sha256:" + hashlib.sha256(body).hexdigest()
    assert (stream.total_bytes, stream.kept_bytes, stream.truncated_bytes) == (len(body), len(body), 0)
    assert (stream.undelivered_bytes, stream.reader_gone, stream.left_open) == (0, False, False)


@pytest.mark.parametrize("cap", [0, 1, 9, 10, 11])
def test_the_cap_cuts_what_is_kept_and_nothing_else(cap):
    seen = observe("printf", "0123456789", cap_bytes=cap)
    stream = seen.stream["stdout"]
    assert seen.out == b"0123456789"
    assert seen.kept["stdout"] == b"0123456789"[:cap]
    assert (stream.total_bytes, stream.truncated_bytes) == (10, max(0, 10 - cap))
    assert stream.digest == "sha256:" + hashlib.sha256(b"0123456789").hexdigest()


def test_digest_mode_keeps_nothing():
    seen = observe("printf", "abc", output="digest")
    stream = seen.stream["stdout"]
    assert (seen.out, seen.kept["stdout"], stream.total_bytes, stream.truncated_bytes) == (b"abc", None, 3, 0)
    assert stream.digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()


def test_without_output_the_command_gets_our_own_descriptors():
    seen = observe("sh", "-c", "echo out; echo err >&2; cat", output="none", feed=b"in\n")
    assert (seen.out, seen.err, seen.end.streams) == (b"out\nin\n", b"err\n", ())


def test_kept_bytes_go_to_the_file_of_the_sink_after_what_stands_there(tmp_path):
    def sink(name):
        file = (tmp_path / name).open("w+b")
        file.write(b"salt")
        return file

    seen = observe("sh", "-c", "printf out; printf err >&2", sink=sink)
    assert seen.kept == {"stdout": b"out", "stderr": b"err"}
    assert (tmp_path / "stdout").read_bytes() == b"saltout"


def test_a_sink_without_room_is_said_and_loses_neither_command_nor_digest():
    body = os.urandom(300_000)

    def sink(_name):
        return Path("/dev/full").open("r+b", buffering=0)

    seen = observe("cat", feed=body, sink=sink)
    stream = seen.stream["stdout"]
    assert seen.out == body
    assert seen.kept["stdout"] is None
    assert stream.keep_error is not None
    assert (stream.kept_bytes, stream.truncated_bytes) == (0, len(body))
    assert stream.digest == "sha256:" + hashlib.sha256(body).hexdigest()


def test_much_output_on_both_streams_arrives_whole():
    code = "import os,sys,threading\nt=[threading.Thread(target=lambda f=f:[os.write(f,b'%d'%f*4096) for _ in range(2000)]) for f in (1,2)]\n[x.start() for x in t];[x.join() for x in t]"
    seen = observe(sys.executable, "-c", code, cap_bytes=1000)
    assert seen.out == b"1" * 8_192_000
    assert seen.err == b"2" * 8_192_000
    assert seen.kept == {"stdout": b"1" * 1000, "stderr": b"2" * 1000}


def test_quick_ends_lose_no_byte():
    for number in range(60):
        seen = observe("printf", f"line {number}")
        assert seen.out == seen.kept["stdout"] == f"line {number}".encode()


def test_standard_input_is_inherited_and_what_the_command_leaves_stays_there():
    with tempfile.TemporaryFile() as source:
        source.write(b"first\nsecond\n")
        source.seek(0)
        seen = observe(sys.executable, "-c", "import os; print(os.read(0, 6))", stdin=source.fileno())
        assert seen.out == b"b'first\\n'\n"
        assert source.read() == b"second\n"


def test_closed_descriptors_read_as_empty_and_are_recorded_all_the_same():
    end = run_command(
        ["sh", "-c", "cat; echo out; echo err >&2"], env=ENV, stdin=CLOSED_FD, stdout=CLOSED_FD, stderr=CLOSED_FD
    )
    seen = Seen(end, b"", b"")
    assert seen.kept == {"stdout": b"out\n", "stderr": b"err\n"}
    assert [s.undelivered_bytes for s in end.streams] == [4, 4]
    assert end.exit_code == 0


def test_output_is_passed_on_at_once():
    with pipe() as (read_end, write_end), pipe() as (answer_read, answer_write):
        ends: list[CommandEnd] = []
        script = "printf question; read x; echo $x"
        thread = threading.Thread(
            target=lambda: ends.append(run_command(["sh", "-c", script], env=ENV, stdin=answer_read, stdout=write_end))
        )
        thread.start()
        assert os.read(read_end, 100) == b"question"
        os.write(answer_write, b"answer\n")
        assert os.read(read_end, 100) == b"answer\n"
        thread.join(10)
        ends[0].close()


def test_another_thread_can_run_a_command_without_touching_signals():
    ends: list[Seen] = []
    threads = [threading.Thread(target=lambda: ends.append(observe("sh", "-c", "echo x; exit 3"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [(seen.end.exit_code, seen.out) for seen in ends] == [(3, b"x\n")] * 4


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_slow_reader_gets_every_byte_and_its_descriptor_stays_blocking(kind):
    if kind == "pipe":
        read_end, write_end = os.pipe()
    else:
        one, two = socket.socketpair()
        read_end, write_end = one.detach(), two.detach()
    ends: list[CommandEnd] = []

    def run() -> None:
        ends.append(run_command(["head", "-c", "3000000", "/dev/zero"], env=ENV, stdout=write_end, output="digest"))
        os.close(write_end)

    thread = threading.Thread(target=run)
    thread.start()
    got = 0
    while chunk := os.read(read_end, 1000):
        got += len(chunk)
        if got < 2000:
            assert os.get_blocking(write_end)
    thread.join(10)
    os.close(read_end)
    assert got == ends[0].streams[0].total_bytes == 3_000_000
    assert ends[0].streams[0].undelivered_bytes == 0


def test_a_pipe_that_cannot_be_opened_anew_is_written_without_blocking():
    with pipe() as (read_end, write_end):
        outlet = Outlet(os.dup(write_end), "polled")
        body = memoryview(bytes(range(256)) * 4000)
        sent, got = 0, b""
        while count := outlet.write(body[sent:]):
            sent += count
        assert 0 < sent < len(body)
        while len(got) < len(body):
            got += os.read(read_end, 65536)
            sent += outlet.write(body[sent:])
        outlet.close()
    assert got == body


def test_an_end_is_noticed_where_the_kernel_does_not_announce_it(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    seen = observe("sh", "-c", "echo x; sleep 0.1; exit 3")
    assert (seen.end.exit_code, seen.out) == (3, b"x\n")
    assert observe("sleep", "9", limit_ms=50).end.signal == signal.SIGTERM


def test_waiting_costs_no_processor_time():
    before = time.process_time()
    assert observe("sleep", "0.7").end.exit_code == 0
    assert time.process_time() - before < 0.2


# A reader that leaves.


def test_a_reader_that_left_ends_the_command_as_a_shell_would_and_what_it_wrote_is_recorded():
    with pipe() as (read_end, write_end):
        os.close(read_end)
        seen = observe("sh", "-c", "echo err >&2; exec yes", stdout=write_end)
    stream = seen.stream["stdout"]
    assert (seen.end.status, seen.end.signal, seen.end.shell_code) == ("signaled", signal.SIGPIPE, 141)
    assert stream.reader_gone
    assert stream.total_bytes == stream.undelivered_bytes > 0
    assert seen.kept["stdout"][:4] == b"y\ny\n"
    assert seen.kept["stderr"] == b"err\n"


def test_a_reader_that_left_a_short_output_changes_nothing_but_the_delivery():
    with pipe() as (read_end, write_end):
        os.close(read_end)
        seen = observe("sh", "-c", "echo out; exit 5", stdout=write_end)
    assert (seen.end.exit_code, seen.kept["stdout"]) == (5, b"out\n")
    assert seen.stream["stdout"].undelivered_bytes == 4


def test_a_full_disk_behind_our_output_is_a_reader_that_left():
    with open("/dev/full", "wb", buffering=0) as full:
        seen = observe("sh", "-c", "echo out; exit 5", stdout=full.fileno())
    assert (seen.end.exit_code, seen.kept["stdout"], seen.stream["stdout"].reader_gone) == (5, b"out\n", True)


# Limits and what is left behind.


def test_a_command_that_takes_its_term_ends_at_the_limit():
    seen = observe("sh", "-c", "trap 'echo bye; exit 3' TERM; while :; do sleep 0.01; done", limit_ms=100)
    end = seen.end
    assert (end.status, end.limit_hit, end.exit_code, end.signal, end.shell_code) == ("limit", True, 3, None, 124)
    assert seen.out == b"bye\n"
    assert 100 <= end.duration_ms < 3000


def test_a_command_that_ignores_its_term_is_killed_after_the_grace():
    end = observe("sh", "-c", "trap '' TERM; while :; do sleep 0.01; done", limit_ms=50, grace_ms=200).end
    assert (end.status, end.signal) == ("limit", signal.SIGKILL)
    assert 250 <= end.duration_ms < 3000


def test_a_command_that_is_quicker_than_its_limit_never_hit_it():
    end = observe("sh", "-c", "exit 4", limit_ms=60_000).end
    assert (end.status, end.limit_hit, end.exit_code) == ("exited", False, 4)


def test_the_limit_reaches_a_command_that_is_stopped():
    end = observe("sh", "-c", "kill -STOP $$", limit_ms=50, grace_ms=10_000).end
    assert (end.status, end.signal) == ("limit", signal.SIGTERM)


def test_the_limit_ends_the_whole_group_even_what_ignores_its_term():
    script = "(trap '' TERM; sh -c 'echo $PPID'; while :; do sleep 0.01; done) & wait"
    seen = observe("sh", "-c", script, limit_ms=300, grace_ms=300)
    assert seen.end.status == "limit"
    assert seen.end.signal == signal.SIGTERM
    assert gone(int(seen.out)) or "Z" in Path(f"/proc/{int(seen.out)}/stat").read_text()


def test_a_reader_that_takes_nothing_does_not_hold_up_the_limit():
    with pipe() as (_, write_end):
        seen = observe("yes", stdout=write_end, limit_ms=100, grace_ms=5000)
    stream = seen.stream["stdout"]
    assert (seen.end.status, seen.end.signal) == ("limit", signal.SIGTERM)
    assert stream.total_bytes > stream.undelivered_bytes > 0
    assert not stream.reader_gone


def test_what_a_descendant_holds_open_is_closed_after_a_silence_and_said():
    seen = observe("sh", "-c", "echo before; sleep 3 & exit 0")
    assert (seen.end.exit_code, seen.out, seen.kept["stdout"]) == (0, b"before\n", b"before\n")
    assert seen.end.left_open
    assert seen.end.duration_ms < 1000


def test_what_a_descendant_writes_shortly_after_the_end_is_still_recorded():
    seen = observe("sh", "-c", "(sleep 0.05; echo late) & exit 0")
    assert (seen.out, seen.end.left_open) == (b"late\n", False)


def test_a_descendant_that_never_is_silent_does_not_hold_us():
    seen = observe("sh", "-c", "(while echo x; do sleep 0.05; done) & exit 0", output="digest")
    assert (seen.end.exit_code, seen.end.left_open) == (0, True)


# Secrets.


def test_secrets_of_the_ledger_are_stripped_and_the_rest_stays():
    secret = [
        "LEDGER_KEYS",
        "LEDGER_NOTARY_TOKEN",
        "LEDGER_PASSPHRASE",
        "LEDGER_MY_SECRET_2",
        "LEDGER_DB_PASSWORD",
        "LEDGER_SIGNING_KEY",
        "ledger_token",
    ]
    plain = ["LEDGER_DIR", "LEDGER_RUN", "PATH", "AWS_SECRET", "MY_LEDGER_TOKEN", "HOME"]
    assert stripped_environment(dict.fromkeys(secret + plain, "v")) == dict.fromkeys(plain, "v")


def test_the_modes_of_files_we_write_to_are_unchanged(tmp_path):
    path = tmp_path / "out"
    with path.open("wb") as file:
        observe("echo", "x", stdout=file.fileno())
        assert os.get_blocking(file.fileno())
    assert stat.S_ISREG(path.stat().st_mode)
    assert path.read_bytes() == b"x\n"
