"""What tables say of a ledger that holds every kind of receipt, and that each is declared, documented and asked about."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference import slow_spend
from reference.build import Builder, party
from reference.indexed import ASKED_AT, make_index, session_of

from ledger.digest import digest
from ledger.index.asking import QueryError, ask
from ledger.index.beside import Beside
from ledger.index.questions import QUESTIONS
from ledger.index.schema import PUBLIC, STORED, views_for
from ledger.index.session import Source, open_session
from ledger.words import Kind

ROOT = Path(__file__).resolve().parents[3]


class Story:
    """A ledger in which everything happens once; what matters of it by name."""

    def __init__(self) -> None:
        built = self.ledger = Builder(inline={"amount": 500})
        built.header()
        self.grant = built.grant(limits=[{"meter": "usd_micro", "limit": 100}])
        built.grant(action="revoked", parent=self.grant)
        limits = [
            {"meter": "tool_calls", "limit": 2, "soft": 1},
            {"meter": "duration_ms", "limit": 5, "grace": 1},
            {"meter": "depth", "limit": 3},
        ]
        self.run = built.opening(
            "work", limits=limits, policy=digest(b"policy"), grant=self.grant, correlation={"ticket": "T-1"}
        )
        self.waiting = built.decision(
            status="waiting", reason="approval.required", act_digest=digest(b"asked"), roles=["release"], needed=1,
            expires_at="2026-12-01T00:00:00.000Z",
        )  # fmt: skip
        self.answer = built.approval(request=self.waiting, run=self.run, act_digest=digest(b"asked"))
        self.standing = built.approval(pattern="deploy*", uses=2, expires_at="2026-12-02T00:00:00.000Z")
        self.approved = built.intent(act_digest=digest(b"asked"), approvals=[self.answer], rule="ask")
        built.outcome(self.approved)
        self.unapproved = built.intent(
            act_digest=digest(b"asked"), effect={"key": "refund:1", "attempt": 1}, lease_ms=1000,
            reserved=[{"meter": "usd_micro", "basis": "quoted", "reserved": 10}, {"meter": "tool_calls", "basis": "measured", "reserved": 1}],
        )  # fmt: skip
        built.outcome(
            self.unapproved, status="ambiguous", duration_ms="unknown", reason="act.exception", error="TimeoutError",
            usage=[{"meter": "prompt_tokens", "basis": "reported", "settled": 7}],
        )  # fmt: skip
        self.resolution = built.resolution(
            self.unapproved, charges=[{"meter": "usd_micro", "basis": "measured", "settled": 12}], effect={"key": "refund:1", "attempt": 1}
        )  # fmt: skip
        self.observed = built.intent(
            would_have={"status": "denied", "reason": "policy.denied"}, effect={"key": "x", "attempt": 1}, lease_ms=1
        )
        self.denied = built.decision(rule="no", reason="scope.out_of_scope_tool")
        self.blocked = built.decision(
            status="blocked", reason="budget.limit", meter="tool_calls", limit=2, spent=2, reserved=0, asked="unknown"
        )
        parent = built.current
        self.child = built.opening("below", parent=parent)
        built.call()
        self.child_root = built.run()
        built.current = parent
        artifact = {"digest": digest(b"a"), "media_type": "text/plain", "name": "out", "size_bytes": 1, "salted": False}
        self.step = built.step(artifacts=[artifact])
        self.root = built.run(
            reason="run.exception", status="failed", error="ValueError", totals=[{"meter": "tool_calls", "value": 3}]
        )
        self.evaluation = built.evaluation(
            self.root, verdict="not_met", answers=[{"criterion": "c", "required": True, "answer": "not_met"}]
        )
        self.imported = built.import_()
        built.opening("restated", source={"document": digest(b"doc"), "format": "axlr", "import": self.imported})
        self.open = built.current
        self.hold = built.hold(digest(b"b"), matter="case 1")
        built.add("hold", action="released", hold=self.hold)
        built.grant(periods=[{"account": "team", "meter": "usd_micro", "period": "month", "limit": 9}])
        self.erasure = built.erasure(digest(b"a"), self.step)
        built.repair()
        self.rotated = built.key(party("issuer-2"), built.issuer.key)
        built.commit()


@pytest.fixture(scope="module")
def story():
    return Story()


@pytest.fixture(scope="module")
def connection(story, tmp_path_factory):
    with session_of(tmp_path_factory.mktemp("index"), story.ledger) as found:
        yield found


def rows(connection, text, *values):
    return list(ask(connection, text, values).rows)


def test_every_kind_is_in_the_story_and_in_a_table_of_its_own(story, connection):
    assert {row.kind for row in story.ledger.rows} == {str(kind) for kind in Kind}
    taken = {kind for table in STORED for kind in table.kinds}
    assert taken == {str(kind) for kind in Kind}


@pytest.mark.parametrize("table", PUBLIC, ids=lambda table: table.name)
def test_a_table_has_the_columns_that_are_declared(connection, table):
    found = [(name, type_) for name, type_, *_ in rows(connection, f"DESCRIBE {table.name}")]
    assert found == [(each.name, each.type) for each in table.columns]
    assert all(each.says.endswith(".") and (each.says[0].isupper() or each.says[0] == "`") for each in table.columns)
    assert table.columns[0].name == "ledger"


def test_no_stored_table_is_larger_than_what_it_was_made_from(story, connection):
    (count,) = rows(connection, "SELECT count(*) FROM receipts")[0]
    assert count == len(story.ledger.rows)
    for table in ("runs", "run_tree"):
        assert rows(connection, f"SELECT count(*), count(DISTINCT run) FROM {table}") == [(3, 3)]
    intents = sum(row.kind == "intent" for row in story.ledger.rows)
    assert rows(connection, "SELECT count(*), count(DISTINCT intent) FROM calls") == [(intents, intents)]


def test_runs_say_when_and_how(story, connection):
    assert rows(connection, "SELECT name, status, open, reason, error, receipt, correlation ->> 'ticket' FROM runs ORDER BY opening_index") == [
        ("work", "failed", False, "run.exception", "ValueError", story.root, "T-1"),
        ("below", "completed", False, None, None, story.child_root, None),
        ("restated", "open", True, None, None, None, None),
    ]  # fmt: skip
    assert rows(connection, "SELECT depth, path, names FROM run_tree WHERE run = ?", story.child) == [
        (1, [story.run, story.child], "work / below")
    ]
    assert rows(connection, "SELECT source FROM runs WHERE run = ?", story.open) == [("imported",)]


def test_calls_say_who_did_what_and_by_which_approval(story, connection):
    found = rows(
        connection,
        "SELECT intent, status, approval, approval_needed, rule, arguments ->> 'amount' FROM calls WHERE run = ? ORDER BY index",
        story.run,
    )
    assert found == [
        (story.approved, "committed", story.answer, True, "ask", "500"),
        (story.unapproved, "ambiguous", None, True, None, "500"),
        (story.observed, "open", None, False, None, "500"),
    ]  # fmt: skip
    assert rows(connection, "SELECT DISTINCT actor, agent, user, model FROM calls") == [
        ("issuer", "builder", "unknown", "unknown")
    ]


def test_spend_and_budgets(story, connection):
    assert rows(connection, "SELECT meter, held, spent, reserved, unknown, overrun FROM spend WHERE intent = ? ORDER BY 1", story.unapproved) == [
        ("tool_calls", 1, 1, 0, False, False), ("usd_micro", 10, 12, 0, False, True),
    ]  # fmt: skip
    assert rows(connection, "SELECT meter, limit_amount, spent, reserved, left_amount FROM budgets WHERE run = ? AND limit_amount IS NOT NULL ORDER BY 1", story.run) == [
        ("depth", 3, None, 0, None), ("duration_ms", 5, 10, 0, -5), ("tool_calls", 2, 3, 1, -2),
    ]  # fmt: skip
    assert rows(connection, "SELECT stage, settled FROM charges WHERE meter = 'prompt_tokens'") == [("usage", 7)]


def test_limits_and_policies_say_when_they_were_in_force(story, connection):
    assert rows(connection, "SELECT holder, meter, until IS NOT NULL FROM limits ORDER BY ALL") == [
        ("grant", "usd_micro", False), ("grant", "usd_micro", True), ("run", "depth", True), ("run", "duration_ms", True), ("run", "tool_calls", True),
    ]  # fmt: skip
    assert rows(connection, "SELECT policy, run FROM policies") == [(digest(b"policy"), story.run)]


def test_approvals_say_who_answered_and_what_used_it(story, connection):
    found = rows(
        connection, "SELECT request, approval, state, approver, role, used, used_by FROM approvals ORDER BY answered_at"
    )
    assert found == [
        (story.waiting, story.answer, "consumed", "approver", "release", 1, [story.approved]),
        (None, story.standing, "expired", "approver", "release", 0, []),
    ]


@pytest.mark.parametrize(
    ("at", "state"), [("2026-11-30 23:59:59.999", "pending"), ("2026-12-01 00:00:00.000", "expired")]
)
def test_a_request_without_an_answer_expires_at_its_time(tmp_path, at, state):
    built = Builder()
    built.header()
    built.opening()
    built.decision(status="waiting", reason="approval.required", expires_at="2026-12-01T00:00:00.000Z")
    built.commit()
    with session_of(tmp_path, built, asked_at=at) as connection:
        assert rows(connection, "SELECT state, approval, run FROM approvals") == [(state, None, built.current)]


def test_effects_say_their_state_and_who_resolved_them(story, connection):
    found = rows(
        connection, "SELECT effect, state, was_ambiguous, resolved_by, finding, receipt FROM effects ORDER BY effect"
    )
    assert found == [
        ("refund:1", "committed", True, "ada", "happened", story.resolution),
        ("x", "ambiguous", False, None, None, story.observed),
    ]


def test_a_lease_that_has_not_run_out_is_in_progress(tmp_path, story):
    with session_of(tmp_path, story.ledger, asked_at="2026-11-30 09:00:00.000") as connection:
        assert rows(connection, "SELECT state FROM effects WHERE effect = 'x'") == [("in_progress",)]


def test_what_stands_alone(story, connection):
    assert rows(connection, "SELECT role, action, since_index, until_index FROM keys ORDER BY role, since_index") == [
        ("issuer", "first", 0, len(story.ledger.rows) - 1), ("issuer", "rotate", len(story.ledger.rows), None),
        ("log", "first", 0, None),
    ]  # fmt: skip
    assert rows(connection, "SELECT native_status, restated FROM imports") == [("holds", 1)]
    assert rows(connection, "SELECT verdict, json_array_length(answers) FROM evaluations") == [("not_met", 1)]
    assert rows(connection, "SELECT reason, receipts FROM removals") == [("erasure.request", [story.step])]
    assert rows(connection, "SELECT action FROM grants ORDER BY index") == [("given",), ("revoked",), ("given",)]
    assert rows(connection, "SELECT until IS NULL, matter FROM holds") == [(False, "case 1")]
    assert rows(connection, "SELECT account, period FROM limits WHERE account IS NOT NULL") == [("team", "month")]
    assert rows(connection, "SELECT name, status FROM steps") == [("step", "completed")]
    assert rows(connection, "SELECT anomaly FROM anomalies ORDER BY 1") == [("intent.unsettled",), ("repair",)]
    assert rows(connection, "SELECT deviation, what FROM deviations ORDER BY 1") == [
        ("policy.denied", "ran"), ("scope.out_of_scope_tool", "refused"),
    ]  # fmt: skip
    assert rows(connection, "SELECT name FROM artifacts ORDER BY index") == [("out",), ("d",)]
    sealed = rows(connection, "SELECT count(*) FROM seals")[0][0]
    assert sealed == rows(connection, "SELECT count(*) FROM receipts WHERE seal_key IS NOT NULL")[0][0] > 10


def test_nothing_is_left_of_what_has_no_limit_and_time_is_unknown_until_the_run_says_it(tmp_path):
    built = Builder()
    built.header()
    for duration in (None, 4_000, "unknown"):
        built.opening(limits=[{"meter": "duration_ms", "limit": 9_000}])
        built.outcome(built.intent())
        if duration is not None:
            built.run(duration_ms=duration)
    built.commit()
    query = "SELECT meter, limit_amount, spent, unknown, left_amount FROM budgets JOIN runs USING (ledger, run) ORDER BY meter, started"
    with session_of(tmp_path, built) as connection:
        assert rows(connection, query) == [
            ("duration_ms", 9_000, None, 0, None), ("duration_ms", 9_000, 4_000, 0, 5_000), ("duration_ms", 9_000, None, 1, None),
            ("receipts", None, 3, 0, None), ("receipts", None, 4, 0, None), ("receipts", None, 4, 0, None),
            ("tool_calls", None, 1, 0, None), ("tool_calls", None, 1, 0, None), ("tool_calls", None, 1, 0, None),
        ]  # fmt: skip


def test_clocks_that_went_back_or_ahead_are_odd_in_the_ledger_that_they_are_of(tmp_path):
    good, odd = Builder(), Builder(origin="other.example/odd")
    for ledger in (good, odd):
        ledger.header()
        ledger.opening()
    before = odd.rows[-1].index
    back = odd.grant(entry={"recorded_at": "2026-11-30T08:59:50.500Z"})
    odd.commit()
    good.grant()
    good.commit()
    with session_of(tmp_path, good, odd) as connection:
        found = rows(connection, 'SELECT ledger, anomaly, "index", receipt, detail FROM anomalies ORDER BY anomaly')
    assert [row[:4] for row in found] == [
        (odd.origin, "clock.ahead", before + 1, back),
        (odd.origin, "clock.back", before + 1, back),
    ]
    assert [row[4].partition(" ")[2] for row in found] == [
        "00:00:09.503 after it was recorded",
        "00:00:09.502 before the entry above it",
    ]


def test_the_chain_and_its_heads(story, connection):
    assert rows(connection, "SELECT size, entries FROM heads") == [(len(story.ledger.rows),) * 2]
    assert rows(connection, "SELECT count(*) FROM entries e JOIN entries n ON n.index = e.index + 1 JOIN receipts r ON r.index = e.index") == [
        (len(story.ledger.rows) - 1,)
    ]  # fmt: skip
    assert rows(connection, "SELECT DISTINCT head_size FROM entries") == [(len(story.ledger.rows),)]
    assert rows(connection, "SELECT DISTINCT typeof(recorded_at), recorded_at::DATE::VARCHAR FROM receipts") == [
        ("TIMESTAMP", "2026-11-30")
    ]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_answered(connection, name):
    answer = ask(connection, QUESTIONS[name].sql)
    assert answer.columns
    list(answer.rows)


def test_the_questions_that_find_something_find_it(story, connection):
    found = {name: rows(connection, each.sql) for name, each in QUESTIONS.items()}
    assert len(found) >= 20
    assert [(row[1], row[2], row[4]) for row in found["unapproved"]] == [("builder", "deploy", "ran without approval")]
    assert [row[3:6] for row in found["population"]] == [(3, 2, 1)]
    refused = {(row[3], row[4], row[5]) for row in found["refusals"]}
    assert refused == {("denied", "scope.out_of_scope_tool", 1), ("blocked", "budget.limit", 1)}
    assert {row[5] for row in found["ambiguous"]} == {"ada", None}
    assert ("builder", "2026-11", "usd_micro", 12, 0, 0, 1) in found["spend"]
    empty = {name for name, answer in found.items() if not answer}
    assert empty == {"amounts", "retries", "unused-approvals"} - {"unused-approvals"}


def test_several_ledgers_are_asked_in_one_query(tmp_path, story):
    other = Builder(origin="ledger.invalid/other", seed=1)
    other.header()
    other.opening("elsewhere")
    other.commit()
    with session_of(tmp_path, story.ledger, other) as connection:
        assert rows(connection, "SELECT ledger, count(*) FROM runs GROUP BY 1 ORDER BY 1") == [
            ("ledger.invalid/other", 1), ("ledger.invalid/test", 3),
        ]  # fmt: skip


def test_the_page_of_the_tables_says_what_is_declared():
    text = (ROOT / "docs/reference/sql.md").read_text(encoding="utf-8")
    for table in PUBLIC:
        assert f"### `{table.name}`" in text
        for column in table.columns:
            assert f"| `{column.name}` | {column.type} |" in text
    for question in QUESTIONS.values():
        assert question.sql in text


def test_a_resolution_of_an_act_that_had_ended_takes_from_no_meter(tmp_path):
    built = Builder()
    built.header()
    built.opening()
    intent = built.intent()
    built.outcome(intent)
    built.resolution(intent, charges=[{"meter": "usd_micro", "basis": "measured", "settled": 3}])
    built.commit()
    with session_of(tmp_path, built) as connection:
        assert rows(connection, "SELECT meter, spent FROM spend") == [("tool_calls", 1)]


def test_no_answer_depends_on_what_its_question_does_not_have_looked_up(tmp_path, story):
    with session_of(tmp_path, story.ledger, unsafe=True) as connection:
        before = {name: rows(connection, each.sql) for name, each in QUESTIONS.items()}
        connection.execute("""
            INSERT INTO looked_up_artifacts SELECT DISTINCT ledger, digest, 'erased', '"other"'::JSON FROM artifacts;
            INSERT INTO looked_up_artifacts SELECT DISTINCT ledger, arguments_digest, 'erased', '"other"'::JSON FROM calls;
            INSERT INTO looked_up_counter_seals BY NAME SELECT ledger, receipt, envelope, "index" AS entry_index, head_size FROM entries
        """)
        connection.execute(
            "UPDATE looked_up_counter_seals AS c SET head_root = h.root, notary = 'other' FROM heads AS h WHERE h.size = c.head_size"
        )
        assert rows(connection, "SELECT DISTINCT arguments FROM calls") == [('"other"',)]
        changed = {name for name, each in QUESTIONS.items() if rows(connection, each.sql) != before[name]}
    assert changed == {name for name, each in QUESTIONS.items() if each.beside}


def test_what_is_wrong_with_a_query_is_said_of_the_query_as_it_was_asked(connection):
    with pytest.raises(QueryError) as found:
        ask(connection, "SELECT nothing_like_it FROM calls", beside=Beside({}))
    assert "nothing_like_it" in str(found.value)
    assert "EXPLAIN" not in str(found.value)


def test_a_question_has_the_same_answer_where_only_what_it_needs_is_made(tmp_path, connection, story):
    source = Source(make_index(tmp_path / "index.duckdb", story.ledger), story.ledger.origin, tmp_path)
    for name, each in QUESTIONS.items():
        views = views_for(each.sql)
        with open_session([source], asked_at=ASKED_AT, threads=1, views=views) as small:
            assert rows(small, each.sql) == rows(connection, each.sql), name
            made = rows(small, "SELECT count(*) FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'")
            assert made == [(len(views),)], name
    assert max(len(views_for(each.sql)) for each in QUESTIONS.values()) < len(PUBLIC)


@pytest.mark.parametrize("name", [name for name, each in QUESTIONS.items() if not each.beside])
def test_a_question_that_needs_nothing_looked_up_opens_no_folder_of_a_ledger(connection, name):
    list(ask(connection, QUESTIONS[name].sql, beside=Beside({})).rows)


def test_a_question_over_views_that_were_replaced_is_looked_up_by_its_plan(tmp_path, story):
    origin = story.ledger.origin
    with session_of(tmp_path, story.ledger, unsafe=True) as connection:
        connection.execute("""
            CREATE OR REPLACE VIEW evaluations AS
            SELECT recorded_at, name AS evaluator_package, name AS evaluator_method, state AS verdict, digest AS subject, run, receipt
            FROM artifacts
        """)
        answer = ask(
            connection, QUESTIONS["evaluations"].sql, beside=Beside({origin: tmp_path / "nothing"}), unsafe=True
        )
        assert {row[3] for row in answer.rows} >= {"absent"}


def _totals(connection):
    found = rows(
        connection,
        "SELECT run, meter, sum(spent)::BIGINT, sum(reserved)::BIGINT, count_if(unknown), count_if(overrun) FROM spend GROUP BY ALL",
    )
    return {(run, meter): list(rest) for run, meter, *rest in found}


def _usd(amount, member="settled"):
    return {"meter": "usd_micro", "basis": "measured", member: amount}


@pytest.mark.parametrize("happened", ["happened", "did_not_happen"])
@pytest.mark.parametrize("later", [[], [_usd(4)], [_usd(12)], [_usd("unknown")]])
@pytest.mark.parametrize("status", ["ambiguous", "committed", "failed"])
@pytest.mark.parametrize("resolved", ["before", "after", "between"])
def test_what_settles_an_act_first_counts_and_an_overrun_stays_one(tmp_path, happened, later, status, resolved):
    built = Builder()
    built.header()
    built.opening(limits=[{"meter": "usd_micro", "limit": 100}])
    intent = built.intent(reserved=[_usd(5, "reserved")])
    said = {"charges": [_usd(9), {"meter": "requests", "basis": "measured", "settled": 1}], "status": status}
    if resolved == "before":
        built.resolution(intent, happened=happened, **({"charges": later} if later else {}))
    built.outcome(intent, **said)
    if resolved != "before":
        built.resolution(intent, happened=happened, **({"charges": later} if later else {}))
    if resolved == "between":
        built.resolution(intent, happened="happened", charges=[_usd(40)])
    built.commit()
    with session_of(tmp_path, built) as connection:
        assert _totals(connection) == slow_spend.spends(built.lines)
        over = {run: row[3] > 0 for (run, meter), row in slow_spend.spends(built.lines).items() if meter == "usd_micro"}
        assert dict(rows(connection, "SELECT run, overrun FROM budgets WHERE meter = 'usd_micro'")) == over


def test_a_sum_that_no_column_holds_stays_at_the_most_that_it_holds(tmp_path):
    built = Builder()
    built.header()
    built.opening(limits=[{"meter": "usd_micro", "limit": 1}])
    for _ in range(11):
        built.outcome(built.intent(), charges=[_usd(2**53 - 1)] * 100)
    built.commit()
    with session_of(tmp_path, built) as connection:
        spent, left = rows(connection, "SELECT spent, left_amount FROM budgets WHERE meter = 'usd_micro'")[0]
        assert (spent, left) == (2**63 - 1, 1 - 2**63)
        asked = [row[3] for row in rows(connection, QUESTIONS["spend"].sql) if row[2] == "usd_micro"]
        assert asked == [11 * 100 * (2**53 - 1)]


@pytest.mark.parametrize("between", [0, 1, 6, 7, 8, 20])
def test_a_meter_that_a_receipt_states_twice_is_added_up_however_far_apart(tmp_path, between):
    built = Builder()
    built.header()
    built.opening()
    others = [{"meter": f"a->b{number}", "basis": "measured", "settled": 1} for number in range(between)]
    for _ in range(12):
        built.outcome(built.intent(reserved=[_usd(3, "reserved"), _usd(4, "reserved")]), charges=[_usd(1)])
    built.outcome(built.intent(), charges=[_usd(5), *others, _usd(6)])
    built.commit()
    with session_of(tmp_path, built) as connection:
        assert _totals(connection) == slow_spend.spends(built.lines)


@pytest.mark.parametrize(
    "order", ['"index"', '"index" DESC', 'row_number() OVER (PARTITION BY "index", meter), "index"']
)
def test_charges_add_up_in_whatever_order_they_stand(tmp_path, order):
    built = Builder()
    built.header()
    built.opening()
    for _ in range(12):
        built.outcome(built.intent(), charges=[_usd(5), _usd(6)])
    built.commit()
    path = make_index(tmp_path / "index.duckdb", built)
    with duckdb.connect(str(path)) as index:
        index.execute(f"CREATE TABLE other AS SELECT * FROM stated_charges ORDER BY {order}")
        index.execute("DROP TABLE stated_charges")
        index.execute("ALTER TABLE other RENAME TO stated_charges")
    with open_session([Source(path, built.origin, tmp_path)], asked_at="2026-11-30 12:00:00.000") as connection:
        assert _totals(connection) == slow_spend.spends(built.lines)
