"""The ledger's lock: one writer at a time, over processes and threads.

- `flock` on a file that is never replaced; POSIX record locks do not exclude the threads of one process.
- A mutex for each lock file inside the process, which also sees a thread that asks for what it already holds.
- The file is opened anew for each hold. A forked child closes what it inherited and forgets the mutexes, so that it neither
  shares its parent's hold nor ends it.
- An interrupt may come between any two steps, here too. What is taken is noted before it is taken, and giving back is done twice
  over: the second time does what an interrupt kept the first from doing. At worst a descriptor without a lock stays open.

Source: docs/spec/journal.md, Lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from ledger.errors import LockError
from ledger.storage.durable import storage_error

__all__ = ["LedgerLock"]

_FIRST_WAIT_S: Final = 0.0005
_LONGEST_WAIT_S: Final = 0.01


_T = TypeVar("_T")


class _Mutex:
    """Excludes the threads of this process from one lock file; `owner` is the thread that has it.

    The lock itself knows which thread has it from the moment that it is taken, as `owner` does not.
    """

    __slots__ = ("lock", "owner")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.owner: int | None = None


class _Process:
    """What this process knows of its holds: made anew in a forked child."""

    __slots__ = ("descriptors", "guard", "mutexes", "pid")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.guard = threading.RLock()
        """Held while a descriptor is opened and noted, and while this process forks: a child knows of every one."""
        self.mutexes: dict[tuple[int, int], _Mutex] = {}
        self.descriptors: set[int] = set()


_process = _Process()


def _before_fork() -> None:
    _process.guard.acquire()


def _after_fork_in_parent() -> None:
    _process.guard.release()


def _after_fork_in_child() -> None:
    global _process  # noqa: PLW0603  a child starts with nothing held
    inherited = _process.descriptors
    _process = _Process()
    for descriptor in inherited:
        # Closing leaves the parent's lock alone, since the parent has the same open file; unlocking would not.
        try:
            os.close(descriptor)
        except OSError:
            continue


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class _Hold:
    """What one hold has taken so far, and what it gives back."""

    __slots__ = ("descriptor", "lock", "mutex", "process")

    def __init__(self, lock: LedgerLock) -> None:
        self.lock = lock
        self.process = _process
        self.descriptor: int | None = None
        self.mutex: _Mutex | None = None

    def give_back(self) -> None:
        """Give back what is taken still; called again, do what an interrupt kept the first call from doing."""
        if self.process is not _process or self.process.pid != os.getpid():
            # In a child forked inside the body the descriptor is closed and its number may be another file's by now.
            return
        if self.descriptor is not None:
            with suppress(OSError):
                # Explicitly: a child forked a moment ago may still have the same open file.
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            with _process.guard:
                descriptor, self.descriptor = self.descriptor, None
                _process.descriptors.discard(descriptor)
                os.close(descriptor)
        if self.mutex is not None:
            if self.lock.held:
                self.lock._holder = None  # noqa: SLF001  its other half
            with suppress(RuntimeError):  # this thread does not have it
                if self.mutex.owner == threading.get_ident():
                    self.mutex.owner = None
                self.mutex.lock.release()
            self.mutex = None


class LedgerLock:
    """The lock of one ledger; `path` is its `lock` file, made when first needed and never removed or replaced."""

    __slots__ = ("_holder", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._holder: tuple[int, int] | None = None

    @property
    def held(self) -> bool:
        """Whether the calling thread of this process holds the lock through this object."""
        return self._holder == (os.getpid(), threading.get_ident())

    @contextmanager
    def hold(self, timeout_s: float | None = None) -> Iterator[None]:
        """Hold the lock for the body of a `with`; without `timeout_s` (seconds) wait for as long as it takes.

        A child forked inside the body does not hold it.

        Raises:
            LockError: somebody else holds it after `timeout_s` (code `storage.locked`), this thread holds it already
                (`storage.lock_nested`), or the file system knows no such locks (`storage.lock_unsupported`).
            StorageError: the lock file cannot be opened for writing.
        """
        hold = _Hold(self)
        try:
            self._take(hold, timeout_s)
            yield
        finally:
            try:
                hold.give_back()
            finally:
                hold.give_back()

    def run(self, work: Callable[[], _T], timeout_s: float | None = None) -> _T:
        """Return what `work` returns, called while the lock is held, as by `hold`.

        An interrupt before the body of a `with` begins or after it ends leaves the lock held until the traceback is gone; here
        the lock is given back before anybody sees the interrupt.
        """
        hold = _Hold(self)
        try:
            self._take(hold, timeout_s)
            return work()
        finally:
            try:
                hold.give_back()
            finally:
                hold.give_back()

    def _take(self, hold: _Hold, timeout_s: float | None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            hold.descriptor = descriptor = self._open()
            self._enter(hold, descriptor, deadline)
            self._flock(descriptor, deadline)
            if self._still_there(descriptor):
                self._holder = (hold.process.pid, threading.get_ident())
                return
            hold.give_back()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with _process.guard:
                descriptor = os.open(self.path, flags, 0o644)
                _process.descriptors.add(descriptor)
        except OSError as error:
            raise storage_error(error, self.path) from error
        return descriptor

    def _enter(self, hold: _Hold, descriptor: int, deadline: float | None) -> None:
        status = os.fstat(descriptor)
        mutex = _process.mutexes.setdefault((status.st_dev, status.st_ino), _Mutex())
        me = threading.get_ident()
        if mutex.owner == me:
            raise LockError(
                f"{self.path}: this thread holds the lock already",
                code="storage.lock_nested",
                hint="do not append to a ledger inside another append to it",
            )
        hold.mutex = mutex
        if not mutex.lock.acquire(timeout=-1 if deadline is None else max(0.0, deadline - time.monotonic())):
            raise self._locked()
        mutex.owner = me

    def _flock(self, descriptor: int, deadline: float | None) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX if deadline is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                left_s = (deadline or 0.0) - time.monotonic()
                if left_s <= 0:
                    raise self._locked() from None
                time.sleep(min(wait_s, left_s))
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            except OSError as error:
                if error.errno in {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}:
                    raise LockError(
                        f"{self.path}: this file system does not lock files",
                        code="storage.lock_unsupported",
                        hint="keep the ledger on a local disk",
                    ) from error
                raise storage_error(error, self.path) from error
            else:
                return

    def _still_there(self, descriptor: int) -> bool:
        """Return whether the locked file is still the one under the name; another one would be another lock."""
        mine = os.fstat(descriptor)
        try:
            named = self.path.lstat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error, self.path) from error
        return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)

    def _locked(self) -> LockError:
        return LockError(
            f"{self.path}: another process or thread holds the lock",
            code="storage.locked",
            hint="wait for the other writer to end, then try again; never delete the lock file",
            where=str(self.path),
        )
