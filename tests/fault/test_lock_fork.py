"""The lock over processes: forked in the middle of a hold, killed in the middle of a hold."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.errors import LockError
from ledger.storage.lock import LedgerLock


def spawn(body: Callable[[], None]) -> int:
    """Return the process id of a fork that runs `body`; it ends with 0 if `body` returns."""
    with warnings.catch_warnings():
        # Later Pythons warn of a fork beside threads, which is what these tests are about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:
        signal.alarm(60)
        body()
    except BaseException:  # noqa: BLE001  nothing may run on in the child
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended_well(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def is_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def is_refused(lock: LedgerLock, timeout_s: float = 0.02) -> bool:
    try:
        with lock.hold(timeout_s):
            return False
    except LockError as error:
        return error.code == "storage.locked"


def count(folder: Path, times: int) -> None:
    lock = LedgerLock(folder / "lock")
    for _ in range(times):
        with lock.hold():
            (folder / "counter").write_text(str(int((folder / "counter").read_text()) + 1))


def test_processes_take_turns(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=count, args=(tmp_path, 100)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 6
    assert (tmp_path / "counter").read_text() == "600"


def test_a_child_forked_by_the_holder_neither_holds_nor_releases(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")

    def body() -> None:
        assert not lock.held
        assert is_refused(lock)
        assert is_refused(LedgerLock(tmp_path / "lock"))

    with lock.hold():
        assert ended_well(spawn(body))
        assert lock.held
        assert not is_free(tmp_path / "lock")
    assert is_free(tmp_path / "lock")


def test_a_child_that_leaves_the_body_it_was_forked_in_does_not_end_the_parents_hold(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    parent = os.getpid()
    child = 0
    strangers = [os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)]
    with lock.hold():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            # These take the numbers of the descriptors that the child closed; leaving the body must not close them.
            strangers += [os.open(tmp_path / "other", os.O_RDWR) for _ in range(8)]
    if os.getpid() != parent:
        try:
            for descriptor in strangers:
                os.fstat(descriptor)
            # The parent has released or has not: either way this process can take its own hold afterwards.
            with lock.hold(60):
                os._exit(0 if lock.held else 1)
        finally:
            os._exit(1)
    assert ended_well(child)
    os.close(strangers[0])


def test_leaving_in_the_child_first_keeps_the_parents_hold(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")

    def leave(hold: object) -> None:
        hold.__exit__(None, None, None)  # type: ignore[attr-defined]

    hold = lock.hold()
    hold.__enter__()
    assert ended_well(spawn(lambda: leave(hold)))
    assert not is_free(tmp_path / "lock")
    assert lock.held
    hold.__exit__(None, None, None)
    assert is_free(tmp_path / "lock")


def test_a_child_forked_while_another_thread_holds_waits_for_the_parent_and_then_gets_it(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.hold():
            taken.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    reader, writer = os.pipe()

    def body() -> None:
        refused = is_refused(lock)
        os.write(writer, b"r" if refused else b"?")
        with lock.hold():
            assert lock.held

    child = spawn(body)
    assert os.read(reader, 1) == b"r"
    release.set()
    thread.join()
    assert ended_well(child)
    with lock.hold(60):
        assert lock.held
    os.close(reader)
    os.close(writer)


def test_a_killed_holder_frees_the_lock_though_its_child_lives_on(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    ready, told = os.pipe()
    waiting, end = os.pipe()

    def grandchild() -> None:
        os.close(end)
        os.write(told, b"g")
        os.read(waiting, 1)

    def holder() -> None:
        with lock.hold():
            spawn(grandchild)
            signal.pause()

    child = spawn(holder)
    assert os.read(ready, 1) == b"g"
    assert not is_free(tmp_path / "lock")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    # The grandchild is still there: it ends only when the pipe does.
    assert is_free(tmp_path / "lock")
    with lock.hold(timeout_s=0):
        assert lock.held
    for descriptor in (ready, told, waiting, end):
        os.close(descriptor)


def test_a_started_program_does_not_inherit_the_hold(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    reader, writer = os.pipe()
    with lock.hold():
        # `cat` waits for the pipe to close, so it outlives the hold.
        program = os.posix_spawnp("cat", ["cat"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
    assert is_free(tmp_path / "lock")
    os.close(reader)
    os.close(writer)
    os.waitpid(program, 0)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs the table of waiting locks")
def test_whoever_waits_on_a_file_that_was_replaced_takes_the_one_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    inode = os.fstat(descriptor).st_ino

    def body() -> None:
        os.close(descriptor)
        with LedgerLock(path).hold():
            assert not is_free(path)

    child = spawn(body)
    while not any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines()):
        os.sched_yield()
    path.unlink()
    path.touch()
    os.close(descriptor)
    assert ended_well(child)
