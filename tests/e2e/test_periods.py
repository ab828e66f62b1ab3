"""Limits of an account by period, held by four processes at once, over midnight, a leap day and clocks that step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

from cli.rules import sources_of
from ledger import Ledger, PeriodLimit, give
from ledger.entry import parse_entry
from ledger.receipt import Intent, parse_receipt
from ledger.storage.places import Places
from ledger.words import Period
from verify.chain import Segment
from verify.ledger import verify_ledger

CLIENT = """
import json, sys, time
from types import SimpleNamespace
from pathlib import Path
from ledger import Blocked, Ledger
from ledger.storage import clock
from ledger.storage.places import Places

home, grants, starts = json.loads(sys.argv[1])
given = [0]
real = clock.time
clock.time = SimpleNamespace(
    time_ns=lambda: given[0], strftime=real.strftime, gmtime=real.gmtime, monotonic_ns=real.monotonic_ns
)
given[0] = starts[0]
home = Path(home)
ledger = Ledger.open(home / "ledger", places=Places(home / "config", home / "data", home / "state"))
for start in starts:
    given[0] = start
    with ledger.run("work", actor="bot", grant=grants[start % len(grants)]) as run:
        for _ in range(8):
            given[0] += 1_000_000
            try:
                with run.call("refund", reserve={"usd_micro": 10}):
                    pass
            except Blocked as blocked:
                assert blocked.reason == "grant.period", blocked
"""
LIMIT = 130
DAYS = ("2028-02-28", "2028-02-29", "2028-03-01")


def nanoseconds(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000


def test_four_processes_spend_no_more_than_an_account_may_in_any_day_of_a_clock_that_is_given(tmp_path):
    ledger = Ledger.create(
        tmp_path / "ledger", places=Places(*(tmp_path / name for name in ("config", "data", "state")))
    )
    limit = PeriodLimit(account="acme", meter="usd_micro", period=Period.DAY, limit=LIMIT)
    grants = [give(ledger, "bot", acts=["refund"], periods=[limit]) for _ in range(2)]
    clients = []
    for number in range(4):
        # Each process has a clock of its own, up to three seconds behind, and none waits for the others' days to end.
        starts = [
            nanoseconds(f"{day}T{time}") + (3 - number) * 1_000_000_001
            for day in DAYS
            for time in ("12:00:00", "23:59:50")
        ]
        words = json.dumps([str(tmp_path), grants, starts])
        clients.append(subprocess.Popen([sys.executable, "-c", CLIENT, words], stderr=subprocess.PIPE, text=True))
    for client in clients:
        _, said = client.communicate(timeout=120)
        assert client.returncode == 0, said
    spent, latest = Counter(), ""
    for stored in ledger.entries():
        if isinstance(parse_receipt(stored.envelope.payload), Intent):
            latest = max(latest, parse_entry(stored.entry_bytes).recorded_at[:10])
            spent[latest] += 10
    # Four clients would spend 640 a day. A day that one of them has begun is over for all.
    assert set(spent) <= set(DAYS)
    assert max(spent.values()) <= LIMIT
    assert spent[DAYS[-1]] == LIMIT
    segments = [Segment(*each) for each in ledger.journal()]
    verdict = verify_ledger(segments, trust=None, sources=sources_of(ledger.folder, None))
    assert next(check for check in verdict.checks if check.name == "rules").status == "ok"
