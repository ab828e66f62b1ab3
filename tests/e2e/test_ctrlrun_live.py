"""The real ctrlrun at work beside a ledger: its receipts arrive as they happen, and what is cut from its store is missed."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ctrlrun = pytest.importorskip("ctrlrun", reason="needs the package ctrlrun")

from ctrlrun.anchor import make_anchor, verify_anchors  # noqa: E402
from ctrlrun.receipt import verify_chain  # noqa: E402

from ledger import Ledger, Places  # noqa: E402
from ledger.live.ctrlrun import CtrlrunSink, LedgerAnchors, received  # noqa: E402
from tests.reference.ctrlrun_app import App, copied, ctrlrun_command, verdict_of_ctrlrun  # noqa: E402
from tests.reference.people import Person, at_home  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def person(tmp_path):
    """Somebody with a ledger in `work/.ledger`."""
    work = tmp_path / "work"
    work.mkdir()
    owner = Person(tmp_path / "home")
    assert owner("init", work / ".ledger", cwd=work).exit == 0
    return owner


@pytest.fixture
def work(tmp_path, person):
    return tmp_path / "work"


@contextlib.contextmanager
def opened(person, work):
    with at_home(person.home, work), Ledger.open(work / ".ledger", places=Places.default()) as ledger:
        yield ledger


def cut(path, keep):
    """Cut the tail of a store by hand and put its head right, as one with the file can."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM receipts WHERE seq > ?", (keep,))
        connection.execute(
            "UPDATE receipt_chain SET seq = ?, hash = (SELECT hash FROM receipts WHERE seq = ?)", (keep, keep)
        )


def without_events(path, keep):
    """Cut also what else would tell: events, their number, and effects."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        there = "(SELECT action_id FROM receipts)"
        connection.execute(f"DELETE FROM events WHERE action_id NOT IN {there}")
        connection.execute(f"DELETE FROM effects WHERE action_id NOT IN {there}")
        rows = connection.execute("SELECT event_id FROM events ORDER BY event_id").fetchall()
        for number, (event_id,) in enumerate(rows, start=1):
            connection.execute("UPDATE events SET event_id = ? WHERE event_id = ?", (number, event_id))
        connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'events'", (len(rows),))


def codes(done):
    return {check["code"] for check in done.json["checks"] if "code" in check}


def test_receipts_arrive_as_they_happen_and_a_cut_tail_is_missed_where_ctrlrun_says_ok(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app", sinks=[CtrlrunSink(ledger)])
        for count, act in enumerate(
            (
                lambda: app.refund("txn_1"),
                lambda: app.refund("txn_2", 900_000),
                lambda: app.approved("txn_3", 200_000),
                lambda: app.refund("txn_4", fails_with=ctrlrun.NotExecuted("422")),
                lambda: app.refund("txn_4"),
                lambda: app.refund("txn_5", fails_with=TimeoutError("lost")),
            ),
            start=1,
        ):
            act()
            assert len(list(received(ledger.reader))) == count
        lines = [data.decode() for data, _ in received(ledger.reader)]
        app.close()
    with contextlib.closing(sqlite3.connect(app.path)) as connection:
        assert lines == [row[0] for row in connection.execute("SELECT json FROM receipts ORDER BY seq")]
    whole = person("verify", cwd=work)
    assert whole.exit == 0, whole.out
    store = person("verify", app.path, "--json", cwd=work)
    assert (store.exit, codes(store)) == (3, {"foreign.unsigned"})
    assert store.check("received")["count"] == 6

    cut(app.path, 4)
    without_events(app.path, 4)
    assert verdict_of_ctrlrun(app.path).ok
    said = ctrlrun_command(
        "receipts", "--verify-chain", cwd=app.folder, env={**os.environ, "CTRLRUN_STATE": str(app.path)}
    )
    assert (said.returncode, "the chain is intact" in said.stdout) == (0, True)
    store = person("verify", app.path, "--json", cwd=work)
    assert store.exit == 1
    assert codes(store) == {"ctrlrun.shorter", "foreign.unsigned"}
    assert store.json["native"]["status"] == "holds"
    assert [check["where"] for check in store.json["checks"] if check.get("code") == "ctrlrun.shorter"] == [
        "seq 5",
        "seq 6",
    ]
    alone = person("verify", app.path, "--json", cwd=person.home)
    assert (alone.exit, codes(alone)) == (3, {"foreign.unsigned"})


def test_a_store_rewritten_from_the_middle_does_not_hold_what_was_received(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app", sinks=[CtrlrunSink(ledger)])
        app.everything()
        app.close()
    import hashlib

    with contextlib.closing(sqlite3.connect(app.path)) as connection, connection:
        previous = None
        for seq, text in connection.execute("SELECT seq, json FROM receipts ORDER BY seq").fetchall():
            document = json.loads(text)
            document["decision_reason"] = "rule[9]" if seq == 5 else document["decision_reason"]
            document["prev_hash"] = previous or document["prev_hash"]
            previous = "sha256:" + hashlib.sha256(ctrlrun.canonical_bytes(document)).hexdigest()
            printed = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            connection.execute(
                "UPDATE receipts SET json = ?, hash = ?, prev_hash = ? WHERE seq = ?",
                (printed, previous, document["prev_hash"], seq),
            )
        connection.execute("UPDATE receipt_chain SET hash = ?", (previous,))
    assert verdict_of_ctrlrun(app.path).ok
    store = person("verify", app.path, "--json", cwd=work)
    assert (store.exit, codes(store)) == (1, {"ctrlrun.shorter", "foreign.unsigned"})


def test_another_store_is_not_held_to_what_this_one_sent(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app", sinks=[CtrlrunSink(ledger)])
        app.refund("txn_1")
        app.close()
    other = App(work / "other")
    other.refund("txn_1")
    other.close()
    store = person("verify", other.path, "--json", cwd=work)
    assert (store.exit, codes(store)) == (3, {"foreign.unsigned"})


PROGRAM = """
import os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from ledger import Ledger, Places
from ledger.live.ctrlrun import CtrlrunSink
from tests.reference.ctrlrun_app import App

with Ledger.open(Path({ledger!r}), places=Places.default()) as ledger:
    app = App(Path({app!r}), sinks=[CtrlrunSink(ledger)])
    app.refund("txn_1")

    class Crash(dict):
        pass

    import ctrlrun
    @ctrlrun.protect("stripe.refund", effect="refund:{{payment_id}}", control=app.control)
    def crash(payment_id: str, amount: int):
        os._exit(9)
    with ctrlrun.context("refund-agent"):
        crash(payment_id="txn_2", amount=2000)
"""


def test_a_process_that_dies_in_an_act_leaves_a_store_that_verifies_and_an_effect_that_nobody_settled(person, work):
    program = PROGRAM.format(root=str(ROOT), ledger=str(work / ".ledger"), app=str(work / "app"))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
    ran = subprocess.run([sys.executable, "-c", program], env={**env, "HOME": str(person.home)}, cwd=work, check=False)
    assert ran.returncode == 9
    path = work / "app/state.db"
    store = person("verify", path, "--json", cwd=work)
    assert (store.exit, codes(store), store.json["coverage"]["count"]) == (3, {"foreign.unsigned"}, 1)
    assert person("verify", cwd=work).exit == 0
    with opened(person, work) as ledger:
        app = App(work / "app", sinks=[CtrlrunSink(ledger)])
        again = app.refund("txn_2")
        assert isinstance(again, ctrlrun.DuplicateEffect | ctrlrun.AmbiguousEffect)
        app.close()
    done = person("import", path, "--json", cwd=work)
    assert done.exit == 0, done.err
    assert person("verify", cwd=work).exit == 0


class Deaf(CtrlrunSink):
    """A sink whose ledger cannot be written for a while."""

    deaf = True

    def _flush(self):
        if self.deaf:
            raise OSError("no space left")
        super()._flush()


def test_what_could_not_be_recorded_waits_and_comes_with_the_next_receipt(person, work, caplog):
    caplog.set_level(logging.CRITICAL)
    with opened(person, work) as ledger:
        sink = Deaf(ledger)
        app = App(work / "app", sinks=[sink])
        app.refund("txn_1")
        app.refund("txn_2")
        assert (sink.waiting, len(list(received(ledger.reader)))) == (2, 0)
        sink.deaf = False
        app.refund("txn_3")
        assert (sink.waiting, len(list(received(ledger.reader)))) == (0, 3)
        app.close()


def test_catching_up_brings_what_a_crash_lost_and_nothing_twice(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app")
        app.everything()
        sink = CtrlrunSink(ledger)
        assert sink.catch_up(app.store) == 10
        assert sink.catch_up(app.store) == 0
        assert len(list(received(ledger.reader))) == 10
        app.close()
    assert person("verify", cwd=work).exit == 0


def test_anchors_of_this_ledger_let_ctrlrun_itself_catch_the_cut(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app")
        app.everything()
        anchors = LedgerAnchors(ledger)
        empty = verify_anchors(app.store, anchors)
        assert [each.name for each in empty.breaks] == ["anchor_missing"]
        first = make_anchor(app.store, anchors)
        assert verify_anchors(app.store, anchors).ok
        app.refund("txn_9")
        second = make_anchor(app.store, anchors)
        report = verify_anchors(app.store, anchors)
        assert (report.ok, report.checked) == (True, 2)
        assert anchors.latest() == (11, second.token)
        assert [each.seq for each in anchors.since(11)] == [11]
        assert second.at >= first.at
        app.close()
        cut(app.path, 8)
        store = ctrlrun.SQLiteStateStore(app.path)
        assert verify_chain(store).ok
        report = verify_anchors(store, anchors)
        assert {each.name for each in report.breaks} == {"anchor_broken"}
        store.close()
    verdict = person("verify", app.path, "--json", cwd=work)
    assert verdict.exit == 1
    assert "ctrlrun.anchor_broken" in codes(verdict)
    assert person("verify", cwd=work).exit == 0
    assert person("verify", first.token, cwd=work).exit == 0


def test_an_anchor_that_was_never_made_here_is_repudiated(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app")
        app.refund("txn_1")
        anchors = LedgerAnchors(ledger)
        made = make_anchor(app.store, anchors)
        assert anchors.check(made.seq, made.hash, made.token)
        assert not anchors.check(made.seq, "sha256:" + "0" * 64, made.token)
        assert not anchors.check(made.seq + 1, made.hash, made.token)
        assert not anchors.check(made.seq, made.hash, "sha256:" + "0" * 64)
        assert not LedgerAnchors(ledger, "another").check(made.seq, made.hash, made.token)
        assert not anchors.check(made.seq, made.hash, next(iter(ledger.entries())).entry.receipt)
        app.close()


def test_a_prune_is_anchored_here_and_the_store_verifies_across_it(person, work):
    from datetime import UTC, datetime, timedelta

    from ctrlrun.retention import prune

    with opened(person, work) as ledger:
        app = App(work / "app", sinks=[CtrlrunSink(ledger)])
        app.everything()
        anchors = LedgerAnchors(ledger)
        make_anchor(app.store, anchors)
        prune(app.store, through=3, older_than=timedelta(0), anchor=anchors, now=datetime.now(UTC))
        assert verify_anchors(app.store, anchors).ok
        app.close()
    verdict = person("verify", app.path, "--json", cwd=work)
    assert verdict.json["native"]["status"] == "holds"
    assert {"ctrlrun.pruned", "ctrlrun.prune_unrecorded"} <= codes(verdict)
    assert "ctrlrun.shorter" not in codes(verdict)


def test_what_ctrlrun_did_can_be_asked_for_by_agent(person, work):
    with opened(person, work) as ledger:
        app = App(work / "app", sinks=[CtrlrunSink(ledger)])
        app.everything()
        app.close()
    rows = person("log", "--json", cwd=work).json
    assert {row["agent"] for row in rows} == {"refund-agent"}
    assert len(rows) == 10
    tree = person("tree", rows[0]["run"], cwd=work)
    assert tree.exit == 0


def test_a_store_and_a_sink_imported_together_say_each_receipt_once(person, work):
    sink = ctrlrun.JSONLEventSink(work / "app")
    app = App(work / "app", sinks=[sink])
    app.everything()
    app.close()
    first = person("import", app.path, "--json", cwd=work)
    assert (first.exit, first.json[0]["native"]) == (0, {"status": "holds", "code": "ok"})
    size = len(person("log", "--entries", "--json", cwd=work).json)
    again = person("import", app.path, "--json", cwd=work)
    assert again.json[0]["already"]
    assert len(person("log", "--entries", "--json", cwd=work).json) == size
    lines = person("import", work / "app/receipts.jsonl", "--json", cwd=work)
    assert lines.exit == 0
    assert len(person("log", "--entries", "--json", cwd=work).json) == size + 1
    more = App(work / "app", sinks=[sink])
    more.refund("txn_77")
    more.close()
    grown = person("import", app.path, "--json", cwd=work)
    assert grown.exit == 0
    assert len(person("log", "--entries", "--json", cwd=work).json) == size + 1 + 5
    assert person("verify", cwd=work).exit == 0


def test_a_store_that_does_not_hold_is_reported_by_its_import_and_condemns_nothing(person, work, tmp_path):
    app = App(work / "app")
    app.everything()
    app.close()
    path = copied(app.path, tmp_path / "bad")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE receipts SET hash = NULL WHERE seq = 5")
    done = person("import", path, "--json", cwd=work)
    assert done.json[0]["native"] == {"status": "fails", "code": "hash_missing"}
    verdict = person("verify", done.json[0]["import"], "--json", cwd=work)
    assert (verdict.exit, verdict.json["native"]["code"]) == (1, "hash_missing")
    assert {"foreign.native_fails", "ctrlrun.hash_missing"} <= codes(verdict)
    assert person("verify", cwd=work).exit == 0


def test_a_database_of_something_else_is_nothing_that_is_known(person, work):
    for name, statement in (
        ("books.db", "CREATE TABLE receipts(id INTEGER, amount INTEGER)"),
        ("notes.db", "CREATE TABLE notes(id INTEGER)"),
    ):
        with contextlib.closing(sqlite3.connect(work / name)) as connection, connection:
            connection.execute(statement)
        assert person("verify", work / name, cwd=work).exit == 5
    (work / "torn.db").write_bytes(b"SQLite format 3\0" + b"x" * 50)
    assert person("verify", work / "torn.db", cwd=work).exit == 5


def test_a_store_that_is_cut_short_does_not_hold(person, work):
    app = App(work / "app")
    app.everything()
    app.close()
    data = app.path.read_bytes()
    for size in (len(data) - 4096, len(data) - 1):
        (work / "cut.db").write_bytes(data[:size])
        assert person("verify", work / "cut.db", cwd=work).exit == 1, size
