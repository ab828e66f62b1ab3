"""The shapes of what the clock and the generator give; their values are nobody's to know."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from ledger.members import TIME_PATTERN
from ledger.storage import clock


def test_now_is_utc_in_milliseconds_whatever_the_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        before = datetime.now(UTC)
        text = clock.now()
        after = datetime.now(UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert re.fullmatch(TIME_PATTERN, text)
    assert before - timedelta(milliseconds=1) <= datetime.fromisoformat(text) <= after


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (999_999, "1970-01-01T00:00:00.000Z"),
        (1_000_000, "1970-01-01T00:00:00.001Z"),
        (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999Z"),
        (1_709_251_200_000_000_000, "2024-03-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_time_is_rounded_down(monkeypatch: pytest.MonkeyPatch, nanoseconds: int, text: str) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds)
    assert clock.now() == text


def test_a_nonce_is_32_hex_digits_and_never_the_same() -> None:
    seen = {clock.nonce() for _ in range(1000)}
    assert len(seen) == 1000
    assert all(re.fullmatch("[0-9a-f]{32}", item) for item in seen)


def test_a_default_origin_names_no_host() -> None:
    seen = {clock.default_origin() for _ in range(200)}
    assert len(seen) == 200
    assert all(re.fullmatch(r"ledger\.invalid/[a-z2-7]{26}", item) for item in seen)


def test_the_monotonic_clock_does_not_step_back() -> None:
    readings = [clock.monotonic_ms() for _ in range(1000)]
    assert readings == sorted(readings)


def test_a_forked_child_does_not_repeat_its_parents_randomness() -> None:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, clock.random_bytes(16))
        os._exit(0)
    os.close(writer)
    child = os.read(reader, 16)
    os.close(reader)
    os.wait()
    assert len(child) == 16
    assert child != clock.random_bytes(16)
