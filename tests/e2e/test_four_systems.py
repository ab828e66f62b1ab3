"""One ledger that holds all four systems, and one question over all of it."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress

from ledger import Blocked, Deviated
from ledger.opening_book import ROUTED
from ledger.receipt import parse_receipt
from ledger.words import OutcomeStatus
from tests.reference.people import Person
from tests.reference.runx_receipts import receipt, text

QUESTION = """
WITH cost AS (
    SELECT run, sum(settled) AS usd_micro FROM charges
    WHERE stage = 'settled' AND meter = 'usd_micro' GROUP BY run
), refused AS (
    SELECT run, count(*) AS refusals FROM decisions WHERE status <> 'waiting' GROUP BY run
), unknown AS (
    SELECT run, count(*) AS ambiguous FROM calls WHERE status = 'ambiguous' GROUP BY run
)
SELECT agent, coalesce(sum(usd_micro), 0)::BIGINT AS usd_micro, coalesce(sum(refusals), 0)::BIGINT AS refusals,
       coalesce(sum(ambiguous), 0)::BIGINT AS ambiguous
FROM runs LEFT JOIN cost USING (run) LEFT JOIN refused USING (run) LEFT JOIN unknown USING (run)
GROUP BY agent ORDER BY agent
"""
RESULT = {
    "schema": "axlr.execution-result/v1",
    "status": "completed",
    "session_id": "s",
    "sessions": ["s"],
    "answer": "",
    "tool_calls": [
        {"call_id": "a", "tool": "local_read", "decision": "auto_approve", "status": "completed"},
        {"call_id": "b", "tool": "local_exec", "status": "forbidden"},
        {"call_id": "c", "tool": "deploy", "decision": "approve", "status": "uncertain"},
    ],
    "usage": {
        "requests": 2,
        "prompt_tokens": 1,
        "cached_tokens": 0,
        "cache_write_tokens": 0,
        "completion_tokens": 1,
        "reasoning_tokens": 0,
        "cost_usd": 0.0021,
        "cost_requests": 2,
        "unmetered_requests": 0,
    },
    "artifacts": [],
}
RUNBOOK = {
    "schema": "receipt-ledger.runbook/v1",
    "mode": "human-with-agent",
    "capabilities": ["db.read"],
    "steps": [{"id": "look", "tool": "db.read", "risk": "read-only"}, {"id": "done", "terminal": True}],
}


def counted(ledger):
    """What the question asks, folded over the receipts one by one."""
    agents, cost, refusals, ambiguous = {}, Counter(), Counter(), Counter()
    for stored in ledger.entries():
        found = parse_receipt(stored.envelope.payload)
        if found.kind == "opening":
            agents[stored.entry.receipt] = found.actor.agent
        elif found.kind == "decision" and found.status != "waiting":
            refusals[agents[found.run]] += 1
        elif found.kind == "outcome":
            ambiguous[agents[found.run]] += found.status is OutcomeStatus.AMBIGUOUS
            settled = (each.settled for each in found.charges if each.meter == "usd_micro")
            cost[agents[found.run]] += sum(each for each in settled if isinstance(each, int))
    return {agent: (cost[agent], refusals[agent], ambiguous[agent]) for agent in agents.values()}


def test_cost_refusals_and_ambiguous_effects_by_agent_over_all_four_in_one_query(shared, tmp_path):
    owner = Person(tmp_path / "home")
    folder = tmp_path / "L"
    assert owner("init", folder).exit == 0
    axlr, correlation = tmp_path / "result.json", tmp_path / "correlation.json"
    axlr.write_text(json.dumps(RESULT))
    correlation.write_text('{"correlation": {"bot_id": "investigator"}}')
    assert owner("import", "-L", folder, axlr, correlation).exit == 0
    leaves = [receipt("write", disposition="failed"), receipt("deploy", disposition="blocked")]
    files = []
    for place, each in enumerate([receipt("release", leaves), *leaves]):
        files.append(tmp_path / f"{place}.json")
        files[-1].write_bytes(text(each))
    assert owner("import", "-L", folder, *files).exit == 0
    assert owner("import", "-L", folder, shared / "ctrlrun" / "rich-0.12.2" / "state.db").exit == 0
    with owner.open(folder) as ledger:
        options = {
            "runbook": json.dumps(RUNBOOK).encode(),
            "profile": "R1",
            "allowlist": ("db.read",),
            "adapter": ROUTED,
        }
        run = ledger.run("drain", actor="on-call", **options)
        with run, suppress(Deviated, Blocked), run.step("look") as step, step.call("db.drop"):
            raise AssertionError
        expected = counted(ledger)
    done = owner("sql", "-L", folder, "--json", QUESTION)
    assert done.exit == 0, done.err
    rows = {row["agent"]: (row["usd_micro"], row["refusals"], row["ambiguous"]) for row in json.loads(done.out)["rows"]}
    assert rows == expected
    assert rows["investigator"] == (2_100, 1, 1)
    assert rows["runx:principal:local_runtime"] == (0, 1, 1)
    assert rows["on-call"][1] == 1
    assert len(rows) >= 5
    assert owner("verify", folder).exit == 0
