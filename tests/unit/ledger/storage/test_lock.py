"""The lock: one holder over threads and objects, never a silent deadlock."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from ledger.errors import LockError, StorageError
from ledger.storage.lock import LedgerLock


def free(path: Path) -> bool:
    """Return whether somebody who only knows `flock` gets the lock."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_the_lock_is_held_in_the_body_and_only_there(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    assert not lock.held
    with lock.hold():
        assert lock.held
        assert not free(tmp_path / "lock")
    assert not lock.held
    assert free(tmp_path / "lock")


def test_the_file_stays_the_same_over_many_holds(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    with lock.hold():
        before = (tmp_path / "lock").stat()
    for _ in range(10):
        with lock.hold():
            pass
    assert (tmp_path / "lock").stat().st_ino == before.st_ino


def test_an_error_in_the_body_gives_the_lock_back(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    with pytest.raises(ZeroDivisionError), lock.hold():
        raise ZeroDivisionError
    assert free(tmp_path / "lock")
    with lock.hold(timeout_s=0):
        assert lock.held


@pytest.mark.parametrize("other", ["same object", "same path", "through a linked folder", "under a second name"])
def test_asking_twice_in_one_thread_is_an_error_and_no_deadlock(tmp_path: Path, other: str) -> None:
    (tmp_path / "l").mkdir()
    path = tmp_path / "l" / "lock"
    lock = LedgerLock(path)
    with lock.hold():
        (tmp_path / "m").symlink_to(tmp_path / "l")
        os.link(path, tmp_path / "second")
        again = {
            "same object": lock,
            "same path": LedgerLock(path),
            "through a linked folder": LedgerLock(tmp_path / "m" / "lock"),
            "under a second name": LedgerLock(tmp_path / "second"),
        }[other]
        with pytest.raises(LockError) as caught, again.hold():
            pass
        assert caught.value.code == "storage.lock_nested"
        assert lock.held
        assert not free(path)
    with again.hold(timeout_s=0):
        assert again.held


def test_another_lock_may_be_held_at_the_same_time(tmp_path: Path) -> None:
    one, two = LedgerLock(tmp_path / "one"), LedgerLock(tmp_path / "two")
    with one.hold(), two.hold(timeout_s=0):
        assert one.held
        assert two.held


def test_another_thread_gets_a_clear_error_after_the_timeout(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    errors: list[LockError] = []

    def try_it(other: LedgerLock) -> None:
        assert not other.held
        try:
            with other.hold(timeout_s=0.02):
                raise AssertionError("two holders")
        except LockError as error:
            errors.append(error)

    with lock.hold():
        for other in (lock, LedgerLock(tmp_path / "lock")):
            thread = threading.Thread(target=try_it, args=(other,))
            thread.start()
            thread.join()
    assert [error.code for error in errors] == ["storage.locked"] * 2
    assert all(error.hint for error in errors)
    with lock.hold(timeout_s=0):
        pass


def test_a_holder_who_only_knows_flock_is_respected(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    lock = LedgerLock(tmp_path / "lock")
    with pytest.raises(LockError) as caught, lock.hold(timeout_s=0.02):
        pass
    assert caught.value.code == "storage.locked"
    os.close(descriptor)
    with lock.hold(timeout_s=0):
        pass


@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_threads_with_objects_of_their_own_take_turns(tmp_path: Path, timeout_s: float | None) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count() -> None:
        lock = LedgerLock(tmp_path / "lock")
        for _ in range(50):
            with lock.hold(timeout_s):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "300"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    lock = LedgerLock(tmp_path / "lock")
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        with lock.hold(), pytest.raises(LockError), lock.hold():
            pass
    assert len(os.listdir("/dev/fd")) == before


def test_a_lock_file_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    for path, code in {
        tmp_path / "no" / "lock": "storage.absent",
        tmp_path / "link": "storage.not_a_file",
        tmp_path / "folder": "storage.not_a_file",
    }.items():
        with pytest.raises(StorageError) as caught, LedgerLock(path).hold():
            pass
        assert caught.value.code == code
    assert not (tmp_path / "target").exists()
