"""An interrupt may come wherever the interpreter looks for signals, in the middle of taking a lock and giving it back too.

A trace raises it at each such place in turn: where a function begins, after each call, and where a loop goes round.
"""

from __future__ import annotations

import dis
import fcntl
import gc
import os
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

import pytest

from ledger.storage import lock as lock_module
from ledger.storage.lock import LedgerLock

CHECKS = ("CALL", "RESUME", "JUMP_BACKWARD")


@cache
def looks_for_signals(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions before which the interpreter looks for signals.

    It looks at the end of the instruction before, under whose handlers the interrupt falls; a trace raises it one later. Where
    the two are under other handlers (the call that ends a `try`), that would be another program, and is left out.
    """
    steps = list(dis.get_instructions(code))
    entries = dis.Bytecode(code).exception_entries

    def handler(offset: int) -> int | None:
        return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)

    return frozenset(
        after.offset
        for step, after in pairwise(steps)
        if step.opname.startswith(CHECKS) and handler(step.offset) == handler(after.offset)
    )


class Interrupt:
    """Raises KeyboardInterrupt at one of the places; `passed` counts them."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.passed = 0

    def __call__(self, frame: FrameType, event: str, _: object):
        if frame.f_code.co_filename != lock_module.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in looks_for_signals(frame.f_code):
            if self.passed == self.at:
                self.passed += 1
                raise KeyboardInterrupt
            self.passed += 1
        return self


def is_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def run(path: Path, at: int) -> bool:
    """Run something under a lock with an interrupt at a place; return whether there is such a place."""
    lock = LedgerLock(path)
    interrupt = Interrupt(at)
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        try:
            lock.run(lambda: None)
        finally:
            sys.settrace(before)
    except KeyboardInterrupt:
        # Nothing waits for the traceback: what handles the interrupt may append at once.
        assert not lock.held, at
        assert is_free(path), at
        with LedgerLock(path).hold(timeout_s=0):
            assert not is_free(path)
    assert is_free(path), at
    return interrupt.passed > at


def test_an_interrupt_anywhere_gives_the_lock_back_before_anybody_sees_it(tmp_path: Path) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    at = 0
    while run(tmp_path / "lock", at):
        at += 1
    assert at > 30
    # A descriptor without a lock may stay open where it was not yet, or no longer, known.
    assert len(os.listdir("/proc/self/fd")) - open_before <= 6
    with LedgerLock(tmp_path / "lock").hold(timeout_s=0):
        pass


def test_an_interrupt_around_the_body_of_a_with_gives_the_lock_back_with_its_traceback(tmp_path: Path) -> None:
    at = 0
    while True:
        interrupt = Interrupt(at)
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            with LedgerLock(tmp_path / "lock").hold():
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        gc.collect()
        assert is_free(tmp_path / "lock"), at
        with LedgerLock(tmp_path / "lock").hold(timeout_s=0):
            pass
        if interrupt.passed <= at:
            break
        at += 1
    assert at > 30


def test_the_sweep_finds_a_lock_that_is_not_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_back, calls = lock_module._Hold.give_back, []

    def once(hold: lock_module._Hold) -> None:
        calls.append(hold)
        if len(calls) == 1 or calls[-1] is not calls[-2]:
            give_back(hold)  # the second call, which finishes what an interrupt cut short, does nothing

    monkeypatch.setattr(lock_module._Hold, "give_back", once)
    with pytest.raises(AssertionError):
        _ = [run(tmp_path / "lock", at) for at in range(200)]
