"""Periods: days, weeks and months of UTC, against a count of days."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.period import end_of, start_of
from ledger.words import Period


@pytest.mark.parametrize(
    ("period", "time", "start", "end"),
    [
        ("day", "2026-11-30T23:59:59.999Z", "2026-11-30", "2026-12-01"),
        ("day", "2026-12-01T00:00:00.000Z", "2026-12-01", "2026-12-02"),
        ("day", "2028-02-28T12:00:00.000Z", "2028-02-28", "2028-02-29"),
        ("day", "2028-02-29T12:00:00.000Z", "2028-02-29", "2028-03-01"),
        ("month", "2028-02-29T23:59:59.999Z", "2028-02-01", "2028-03-01"),
        ("month", "2027-02-28T23:59:59.999Z", "2027-02-01", "2027-03-01"),
        ("month", "2100-02-28T23:59:59.999Z", "2100-02-01", "2100-03-01"),
        ("month", "2026-12-31T23:59:59.999Z", "2026-12-01", "2027-01-01"),
        ("month", "2026-01-31T00:00:00.000Z", "2026-01-01", "2026-02-01"),
        ("week", "2026-11-30T00:00:00.000Z", "2026-11-30", "2026-12-07"),
        ("week", "2026-11-29T23:59:59.999Z", "2026-11-23", "2026-11-30"),
        ("week", "2027-01-01T00:00:00.000Z", "2026-12-28", "2027-01-04"),
        ("week", "2028-03-01T00:00:00.000Z", "2028-02-28", "2028-03-06"),
    ],
)
def test_the_period_of_a_time_and_its_end(period, time, start, end):
    assert start_of(Period(period), time) == start
    assert end_of(Period(period), start) == f"{end}T00:00:00.000Z"


@given(st.sampled_from(Period), st.dates(date(1970, 1, 1), date(2400, 1, 1)))
def test_periods_follow_each_other_without_gap(period, day):
    """Counted day by day: a period begins where the one before ends, and every day of it names it."""
    first = start_of(period, f"{day}T12:00:00.000Z")
    end = end_of(period, first)
    assert first <= day.isoformat() < end[:10]
    assert start_of(period, end) == end[:10]
    before = (date.fromisoformat(end[:10]) - timedelta(days=1)).isoformat()
    assert start_of(period, f"{before}T23:59:59.999Z") == first
