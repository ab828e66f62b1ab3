"""Stores and files of ctrlrun: our walk names the breaks that the real ctrlrun names, and ours are named beside them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ctrlrun = pytest.importorskip("ctrlrun", reason="needs the package ctrlrun")

from ledger.foreign.ctrlrun_store import open_store  # noqa: E402
from tests.reference.ctrlrun_app import App, copied, verdict_of_ctrlrun  # noqa: E402
from verify.file import verify_file  # noqa: E402
from verify.foreign import recognise, verdict_of  # noqa: E402
from verify.foreign.ctrlrun.reading import MAX_DEPTH, canonical_bytes  # noqa: E402
from verify.foreign.ctrlrun.store import judge_store  # noqa: E402
from verify.options import Options  # noqa: E402


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store and a sink of ten receipts, closed."""
    folder = tmp_path_factory.mktemp("app")
    app = App(folder, sinks=[ctrlrun.JSONLEventSink(folder)])
    app.everything()
    app.close()
    return folder


@pytest.fixture
def store(made, tmp_path):
    return copied(made / "state.db", tmp_path / "store")


def judged(path):
    with open_store(path) as opened:
        judgement = judge_store(opened)
    return verdict_of(judgement, subject="x", trust=None, options=Options())


def text_judged(text, subject="x"):
    return verify_file(text.encode("utf-8", "surrogatepass"), subject=subject, trust=None)


def codes(verdict):
    return {check.code for check in verdict.checks if check.code}


def breaks(verdict):
    places = [(each.name, re.fullmatch(r"seq (-?\d+)", each.where)) for each in verdict.native.findings]
    return [(name, int(place[1]) if place else None) for name, place in places]


def edit(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*([statement] if isinstance(statement, str) else statement))


def documents(path):
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT seq, json FROM receipts ORDER BY seq").fetchall()
    connection.close()
    return {seq: json.loads(text) for seq, text in rows}


def printed(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def hash_of(document):
    """The hash of a document, by the real ctrlrun."""
    return "sha256:" + hashlib.sha256(ctrlrun.canonical_bytes(document)).hexdigest()


def rewritten(path, changes, *, head=True):
    """Give documents new members and every later link, hash and the head what they then must be."""
    previous = None
    statements = []
    for seq, document in documents(path).items():
        document.update(changes.get(seq, {}))
        if previous is not None:
            document["prev_hash"] = previous
        previous = hash_of(document)
        statements.append(
            ("UPDATE receipts SET json = ?, hash = ?, prev_hash = ? WHERE seq = ?",
             (printed(document), previous, document["prev_hash"], seq))
        )  # fmt: skip
    if head:
        statements.append(("UPDATE receipt_chain SET hash = ?", (previous,)))
    edit(path, *statements)


def agrees(path):
    """Return our verdict, after holding it against ctrlrun's own."""
    ours, theirs = judged(path), verdict_of_ctrlrun(path)
    assert breaks(ours) == [(each.name, each.seq) for each in theirs.breaks]
    assert (ours.native.status == "holds") is theirs.ok
    assert ours.notes[1].startswith(f"{theirs.verified} of {theirs.chained} receipts verified")
    assert ours.native.found == len(theirs.breaks)
    return ours


def test_a_store_that_holds_is_not_established_for_it_is_unsigned(store):
    verdict = agrees(store)
    assert (verdict.exit, codes(verdict)) == (3, {"foreign.unsigned"})
    assert verdict.coverage.count == 10
    assert {check.name for check in verdict.checks if check.status == "ok"} == {
        "chain", "head", "documents", "action hashes", "places", "columns", "reconcile",
    }  # fmt: skip


TEXT = "UPDATE receipts SET json = {} WHERE seq = 5"
SEEN_BY_BOTH = {
    "a member": "UPDATE receipts SET json = replace(json, '\"amount\":2000', '\"amount\":2001') WHERE seq = 5",
    "the hash of a row": f"UPDATE receipts SET hash = 'sha256:{'0' * 64}' WHERE seq = 5",
    "no hash": "UPDATE receipts SET hash = NULL",
    "a hash that is a number": "UPDATE receipts SET hash = 5 WHERE seq = 5",
    "a hash that is a blob": "UPDATE receipts SET hash = x'00ff' WHERE seq = 5",
    "a row deleted": "DELETE FROM receipts WHERE seq = 5",
    "the first row deleted": "DELETE FROM receipts WHERE seq = 1",
    "the last row deleted": "DELETE FROM receipts WHERE seq = 10",
    "all rows deleted": "DELETE FROM receipts",
    "no place": "UPDATE receipts SET seq = NULL WHERE seq = 5",
    "no places at all": "UPDATE receipts SET seq = NULL",
    "a place far away": "UPDATE receipts SET seq = 99 WHERE seq = 10",
    "a negative place": "UPDATE receipts SET seq = -3 WHERE seq = 1",
    "no head": "DELETE FROM receipt_chain",
    "another head": "UPDATE receipt_chain SET seq = 99",
    "a head of another hash": f"UPDATE receipt_chain SET hash = 'sha256:{'0' * 64}'",
    "a head before the end": "UPDATE receipt_chain SET seq = 3",
    "not JSON": TEXT.format("'not json'"),
    "a number": TEXT.format("3"),
    "a null": TEXT.format("NULL"),
    "an empty text": TEXT.format("''"),
    "a text of a number": TEXT.format("'3'"),
    "a list": TEXT.format("'[]'"),
    "an empty object": TEXT.format("'{}'"),
    "a blob that is not JSON": TEXT.format("x'00ff'"),
    "a float": "UPDATE receipts SET json = replace(json, '\"amount\":2000', '\"amount\":2000.0') WHERE seq = 5",
    "NaN": "UPDATE receipts SET json = replace(json, '\"amount\":2000', '\"amount\":NaN') WHERE seq = 5",
    "half a surrogate pair": "UPDATE receipts SET json = replace(json, '\"n\"', '\"\\ud800\"') WHERE seq = 5",
    "an integer of 5,000 digits": f"UPDATE receipts SET json = replace(json, '2000', '{'9' * 5000}') WHERE seq = 5",
    "an integer of 30 digits": f"UPDATE receipts SET json = replace(json, '2000', '{'9' * 30}') WHERE seq = 5",
    "a word outside its list": "UPDATE receipts SET json = replace(json, '\"committed\"', '\"done\"') WHERE seq = 5",
    "a time that is none": "UPDATE receipts SET json = replace(json, '\"started_at\":\"2', '\"started_at\":\"x') WHERE seq = 5",
    "controls that are no list": "UPDATE receipts SET json = replace(json, '\"controls\":[]', '\"controls\":\"abc\"') WHERE seq = 5",
    "controls that are numbers": "UPDATE receipts SET json = replace(json, '\"controls\":[]', '\"controls\":[1]') WHERE seq = 5",
    "an agent without a name": "UPDATE receipts SET json = replace(json, '\"agent\":\"refund-agent\"', '\"agent\":\"\"') WHERE seq = 5",
    "a principal that is a text": "UPDATE receipts SET json = replace(json, '\"principal\":{', '\"principal\":\"x\",\"p\":{') WHERE seq = 5",
    "an unknown schema": "UPDATE receipts SET json = replace(json, 'receipt/v7', 'receipt/v99') WHERE seq = 5",
    "no schema": "UPDATE receipts SET json = replace(json, '\"schema\"', '\"schema2\"') WHERE seq = 5",
    "an older schema": "UPDATE receipts SET json = replace(json, 'receipt/v7', 'receipt/v3') WHERE seq = 5",
    "a further member": "UPDATE receipts SET json = replace(json, '{\"schema\"', '{\"x\":1,\"schema\"') WHERE seq = 5",
    "another place in the document": "UPDATE receipts SET json = replace(json, '\"seq\":5', '\"seq\":99') WHERE seq = 5",
    "another link": "UPDATE receipts SET json = replace(json, '\"prev_hash\":\"sha256:', '\"prev_hash\":\"sha257:') WHERE seq = 5",
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN_BY_BOTH)
def test_a_change_has_the_breaks_that_ctrlrun_names(store, name):
    edit(store, SEEN_BY_BOTH[name])
    assert agrees(store).exit == 1


def test_swapped_places_break_three_links(store):
    edit(
        store,
        "UPDATE receipts SET seq = 50 WHERE seq = 5",
        "UPDATE receipts SET seq = 5 WHERE seq = 6",
        "UPDATE receipts SET seq = 6 WHERE seq = 50",
    )
    verdict = agrees(store)
    assert breaks(verdict) == [("link_broken", 5), ("link_broken", 6), ("link_broken", 7)]
    assert "ctrlrun.place" in codes(verdict)


def test_the_same_document_in_another_text_holds(store):
    document = dict(reversed(documents(store)[5].items()))
    edit(store, ("UPDATE receipts SET json = ? WHERE seq = 5", (json.dumps(document, indent=2),)))
    assert codes(agrees(store)) == {"foreign.unsigned"}


# What ctrlrun's check does not see: it says ok to each of these, and we do not.


def test_a_name_that_stands_twice_is_ours(store):
    document = printed(documents(store)[5])
    edit(store, ("UPDATE receipts SET json = ? WHERE seq = 5", ('{"decision":"deny",' + document[1:],)))
    verdict = agrees(store)
    assert verdict.native.status == "holds"
    assert (verdict.exit, codes(verdict)) == (1, {"foreign.duplicate_name", "foreign.unsigned"})


def test_an_unknown_schema_under_a_new_hash_is_ours(store):
    rewritten(store, {9: {"schema": "ctrlrun.receipt/v99"}})
    verdict = agrees(store)
    assert verdict.native.status == "holds"
    assert (verdict.exit, codes(verdict)) == (3, {"format.unknown", "foreign.unsigned"})


def test_a_document_that_claims_another_place_under_a_new_hash_is_ours(store):
    rewritten(store, {5: {"seq": 99}})
    verdict = agrees(store)
    assert (verdict.native.status, verdict.exit) == ("holds", 1)
    assert codes(verdict) == {"ctrlrun.place", "foreign.unsigned"}


@pytest.mark.parametrize(
    ("member", "value"),
    [("resource", "payment:other"), ("arguments", {"amount": 1}), ("environment", "staging"), ("action", "x.y")],
)
def test_another_action_under_a_new_hash_does_not_have_its_action_hash(store, member, value):
    rewritten(store, {5: {member: value}})
    verdict = agrees(store)
    assert (verdict.native.status, verdict.exit) == ("holds", 1)
    assert codes(verdict) == {"ctrlrun.action_hash", "foreign.unsigned"}


def test_members_of_another_kind_under_a_new_hash_are_ours(store):
    rewritten(store, {5: {"attempt": 0}})
    verdict = agrees(store)
    assert (verdict.native.status, verdict.exit) == ("holds", 1)
    assert codes(verdict) == {"foreign.malformed", "foreign.unsigned"}


COLUMNS = {
    "receipt_id": "'ctr_x'", "action_id": "NULL", "effect_key": "'refund:other'", "result": "'denied'",
    "ts": "'2020-01-01T00:00:00+00:00'", "prev_hash": "'sha256:0'",
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_that_does_not_say_what_its_document_says_is_ours(store, column):
    edit(store, f"UPDATE receipts SET {column} = {COLUMNS[column]} WHERE seq = 5")
    verdict = agrees(store)
    assert (verdict.native.status, verdict.exit) == ("holds", 1)
    assert codes(verdict) == {"ctrlrun.column", "foreign.unsigned"}
    assert [check.where for check in verdict.checks if check.code == "ctrlrun.column"] == ["seq 5"]


def test_a_tail_cut_by_hand_with_its_head_put_right_is_seen_by_its_events(store):
    edit(
        store,
        "DELETE FROM receipts WHERE seq > 8",
        "UPDATE receipt_chain SET seq = 8, hash = (SELECT hash FROM receipts WHERE seq = 8)",
    )
    verdict = agrees(store)
    assert verdict.native.status == "holds"
    assert (verdict.exit, codes(verdict)) == (1, {"ctrlrun.no_receipt", "foreign.unsigned"})


def test_a_tail_cut_together_with_its_events_leaves_the_numbers_of_the_events(store):
    last = documents(store)[9]["action_id"]
    edit(
        store,
        "DELETE FROM receipts WHERE seq > 8",
        "UPDATE receipt_chain SET seq = 8, hash = (SELECT hash FROM receipts WHERE seq = 8)",
        ("DELETE FROM events WHERE event_id >= (SELECT min(event_id) FROM events WHERE action_id = ?)", (last,)),
    )
    verdict = agrees(store)
    assert verdict.native.status == "holds"
    assert (verdict.exit, codes(verdict)) == (3, {"ctrlrun.events_missing", "foreign.unsigned"})


def test_a_receipt_that_was_forged_at_the_end_has_no_event(store):
    forged = documents(store)[9] | {"seq": 11, "receipt_id": "ctr_" + "f" * 32, "action_id": "act_" + "e" * 32}
    connection = sqlite3.connect(store)
    forged["prev_hash"] = connection.execute("SELECT hash FROM receipt_chain").fetchone()[0]
    connection.close()
    columns = (
        forged["receipt_id"], forged["action_id"], forged["effect_key"], forged["result"], printed(forged),
        forged["finished_at"].replace("Z", "000+00:00"), 11, forged["prev_hash"], hash_of(forged),
    )  # fmt: skip
    edit(
        store,
        ("INSERT INTO receipts VALUES(?,?,?,?,?,?,?,?,?)", columns),
        ("UPDATE receipt_chain SET seq = 11, hash = ?", (hash_of(forged),)),
    )
    verdict = agrees(store)
    assert verdict.native.status == "holds"
    assert codes(verdict) == {"ctrlrun.no_event", "foreign.unsigned"}


def test_a_prune_that_nobody_did_is_ours(store):
    edit(
        store,
        "INSERT INTO prune_checkpoint SELECT 1, seq, hash, 'ctrlrun.receipt/v7', ts FROM receipts WHERE seq = 4",
        "DELETE FROM receipts WHERE seq <= 4",
    )
    verdict = agrees(store)
    assert verdict.native.status == "holds"
    assert (verdict.exit, codes(verdict)) == (1, {"ctrlrun.pruned", "ctrlrun.prune_unrecorded", "foreign.unsigned"})


def nested(levels):
    return '{"a":' * levels + "1" + "}" * levels


def test_what_nests_too_deep_is_a_finding_and_blinds_nothing_else(store):
    deep = printed(documents(store)[5]).replace('"n"', nested(5_000), 1)
    edit(store, ("UPDATE receipts SET json = ? WHERE seq = 5", (deep,)), SEEN_BY_BOTH["a member"].replace("= 5", "= 8"))
    edit(store, "UPDATE receipts SET json = replace(json, '900000', '900001') WHERE seq = 8")
    with pytest.raises(RecursionError):
        verdict_of_ctrlrun(store)
    verdict = judged(store)
    assert (verdict.exit, verdict.native.status, verdict.native.code) == (1, "unreadable", "too_deep")
    assert {"foreign.too_deep", "ctrlrun.content_altered"} <= codes(verdict)
    assert breaks(verdict) == [("content_altered", 8), ("link_broken", 9)]


def test_a_document_as_deep_as_is_read_is_hashed_like_any_other(store):
    arguments = json.loads(nested(MAX_DEPTH - 1))
    principal = ctrlrun.Principal("refund-agent", "ana@example.com")
    rewritten(store, {5: {"arguments": arguments, "action_hash": ctrlrun.Action(
        "stripe.refund", arguments, principal, resource="payment:txn_3").action_hash}})  # fmt: skip
    assert codes(agrees(store)) == {"foreign.unsigned"}
    edit(
        store,
        (
            "UPDATE receipts SET json = ? WHERE seq = 5",
            (printed(documents(store)[5]).replace("1" + "}" * 50, nested(3) + "}" * 50, 1),),
        ),
    )
    assert "foreign.too_deep" in codes(judged(store))


def test_a_place_that_is_no_number_ends_ctrlrun_and_not_us(store):
    edit(store, "UPDATE receipts SET seq = 'five' WHERE seq = 5")
    with pytest.raises(TypeError):
        verdict_of_ctrlrun(store)
    verdict = judged(store)
    assert (verdict.exit, verdict.native.status) == (1, "unreadable")
    assert "ctrlrun.column" in codes(verdict)


@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_few_changes_have_the_breaks_that_ctrlrun_names(made, tmp_path_factory, data):
    path = copied(made / "state.db", tmp_path_factory.mktemp("drawn"))
    seqs = st.integers(1, 10)
    changes = st.sampled_from(["delete", "swap", "unhash", "unplace", "flip", "head", "hash", "move"])
    for change in data.draw(st.lists(changes, min_size=1, max_size=4)):
        seq, other = data.draw(seqs), data.draw(seqs)
        with contextlib.suppress(sqlite3.IntegrityError):
            match change:
                case "delete":
                    edit(path, ("DELETE FROM receipts WHERE seq = ?", (seq,)))
                case "swap":
                    edit(
                        path,
                        ("UPDATE receipts SET seq = 1000 WHERE seq = ?", (seq,)),
                        ("UPDATE receipts SET seq = ? WHERE seq = ?", (seq, other)),
                        ("UPDATE receipts SET seq = ? WHERE seq = 1000", (other,)),
                    )
                case "unhash":
                    edit(path, ("UPDATE receipts SET hash = NULL WHERE seq = ?", (seq,)))
                case "unplace":
                    edit(path, ("UPDATE receipts SET seq = NULL WHERE seq = ?", (seq,)))
                case "hash":
                    edit(
                        path,
                        (
                            "UPDATE receipts SET hash = (SELECT hash FROM receipts WHERE seq = ?) WHERE seq = ?",
                            (other, seq),
                        ),
                    )
                case "head":
                    edit(
                        path,
                        (
                            "UPDATE receipt_chain SET seq = ?, hash = coalesce((SELECT hash FROM receipts WHERE seq = ?), '')",
                            (seq, other),
                        ),
                    )
                case "move":
                    edit(path, ("UPDATE receipts SET seq = seq + 5 WHERE seq = ?", (seq,)))
                case "flip":
                    connection = sqlite3.connect(path)
                    row = connection.execute("SELECT json FROM receipts WHERE seq = ?", (seq,)).fetchone()
                    connection.close()
                    if row is not None:
                        text = list(row[0])
                        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(
                            st.sampled_from('"{}[]:,0129ax\\-. \u2028')
                        )
                        edit(path, ("UPDATE receipts SET json = ? WHERE seq = ?", ("".join(text), seq)))
    agrees(path)


# Files.


def sink(made):
    return (made / "receipts.jsonl").read_text(encoding="utf-8")


def test_a_sink_file_holds_but_for_its_end(made):
    text = sink(made)
    assert "\u2028" in text
    verdict = text_judged(text)
    assert (verdict.exit, verdict.native.status, verdict.coverage.count) == (3, "holds", 10)
    assert codes(verdict) == {"foreign.end_unknown", "foreign.unsigned"}


def test_lines_of_a_sink_in_any_order_are_walked_by_place(made):
    lines = sink(made).split("\n")[:-1]
    verdict = text_judged("\n".join(reversed(lines)))
    assert (verdict.exit, verdict.native.status) == (3, "holds")


@pytest.mark.parametrize("line", range(10))
def test_a_line_that_is_cut_out_of_a_sink_is_missed_unless_it_was_the_last(made, line):
    lines = sink(made).split("\n")[:-1]
    verdict = text_judged("\n".join(lines[:line] + lines[line + 1 :]))
    assert verdict.exit == (3 if line == 9 else 1)
    expected = [] if line == 9 else [("missing", line + 1), ("link_broken", line + 2)]
    assert breaks(verdict) == expected


def test_a_line_that_stands_twice_is_repeated(made):
    text = sink(made)
    verdict = text_judged(text + text.split("\n")[3] + "\n")
    assert verdict.exit == 1
    assert "foreign.repeated" in codes(verdict)


BAD_LINES = {
    "a name twice": ('{"decision":"deny",', "foreign.duplicate_name"),
    "NaN": ('{"x":NaN,', "foreign.malformed"),
    "half a surrogate pair": ('{"x":"\\ud800",', "foreign.malformed"),
    "half a name": ('{"\\udc00":1,', "foreign.malformed"),
    "a deep list": ('{"x":' + "[" * 100_000 + "]" * 100_000 + ",", "foreign.too_deep"),
    "an open list": ('{"x":' + "[" * 100_000 + ",", "foreign.too_deep"),
    "a torn line": ("{", "foreign.malformed"),
}


@pytest.mark.parametrize("name", BAD_LINES)
@pytest.mark.parametrize("line", [0, 4, 9])
def test_one_bad_line_is_a_finding_and_the_rest_is_judged(made, name, line):
    start, code = BAD_LINES[name]
    lines = sink(made).split("\n")[:-1]
    lines[line] = start + lines[line][1:] if name != "a torn line" else lines[line][:400]
    verdict = text_judged("\n".join(lines))
    assert verdict.exit == 1
    assert code in codes(verdict)
    assert verdict.coverage.count == 10
    assert json.loads(verdict.to_json())["native"]["format"] == "ctrlrun"


def test_bytes_that_are_not_utf8_are_a_finding(made):
    data = sink(made).encode().replace(b'"txn_3"', b'"txn_\xff"', 1)
    verdict = verify_file(data, subject="x", trust=None)
    assert verdict.exit == 1
    assert "foreign.malformed" in codes(verdict)


def test_events_alone_prove_nothing_and_lost_numbers_are_named(made):
    text = (made / "events.jsonl").read_text(encoding="utf-8")
    verdict = text_judged(text)
    assert (verdict.exit, verdict.native.kind, codes(verdict)) == (3, "events", {"foreign.unchained"})
    lines = text.split("\n")
    assert "ctrlrun.events_missing" in codes(text_judged("\n".join(lines[:5] + lines[6:])))


def test_one_receipt_alone_stands_without_its_chain_whether_in_one_line_or_in_several(made):
    lines = sink(made).split("\n")
    for text in (lines[0], lines[4], json.dumps(json.loads(lines[4]), indent=2)):
        verdict = text_judged(text)
        assert (verdict.exit, verdict.native.kind, verdict.coverage.count) == (3, "receipt", 1)
        assert codes(verdict) == {"foreign.unchained", "foreign.unsigned"}
    changed = lines[4].replace('"amount":2000', '"amount":2001')
    assert codes(text_judged(changed)) >= {"ctrlrun.action_hash"}
    assert breaks(text_judged(lines[4] + "\n" + lines[5])) == [("missing", 1), ("link_broken", 5)]


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"schema":"ctrlrun.receipt/v7"}', '{"seq":1,"json":"{}"}', "ctrlrun.receipt/v7", '{"schema":5}',
     '{"type":"EXECUTION_COMMITTED"}', '{"json":{"schema":"ctrlrun.receipt/v7","receipt_id":1},"seq":1}'],
)  # fmt: skip
def test_what_shows_no_mark_is_nothing_of_ctrlrun(text):
    found = recognise(text.encode())
    assert found is None or found.format != "ctrlrun"


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_no_bytes_end_the_recogniser(data):
    recognise(data)
    recognise(b'{"schema":"ctrlrun.receipt/v7","receipt_id":' + data)


@given(st.binary(max_size=60), st.integers(0, 3000), st.integers(0, 40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_change_of_bytes_ends_the_reader_of_a_sink(made, inserted, at, cut):
    data = (made / "receipts.jsonl").read_bytes()[:3500]
    changed = data[:at] + inserted + data[at + cut :]
    verdict = verify_file(changed, subject="x", trust=None)
    assert verdict.exit in {1, 3, 5}
    assert verdict.to_json()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
@settings(deadline=None)
def test_canonical_bytes_are_those_of_ctrlrun(value):
    assert canonical_bytes(value) == ctrlrun.canonical_bytes(value)
    text = printed(value).encode()
    from verify.foreign.ctrlrun.reading import read

    reading = read(text)
    assert canonical_bytes(reading.value, plain=reading.plain) == ctrlrun.canonical_bytes(value)


@pytest.mark.parametrize(
    "value", [{"x": 1.0}, {1: 2}, {"x": {None: 1}}, {"x": b""}, {"x": {1}}, {"x": "\ud800"}, {"x": float("nan")}]
)
def test_what_ctrlrun_refuses_to_hash_has_no_canonical_bytes(value):
    with pytest.raises(ctrlrun.InvalidArgument):
        ctrlrun.canonical_bytes(value)
    assert canonical_bytes(value) is None


# The store as a file.


def test_a_store_that_is_open_elsewhere_is_read_with_its_last_commits_and_left_as_it_is(tmp_path):
    app = App(tmp_path / "live")
    app.everything()
    wal = Path(f"{app.path}-wal")
    assert wal.stat().st_size > 0
    before = {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in app.folder.iterdir()
        if "shm" not in each.name
    }
    assert judged(app.path).coverage.count == 10
    app.refund("txn_9")
    assert judged(app.path).coverage.count == 11
    assert judged(app.path).exit == 3
    app.close()
    assert before.keys() == {"state.db", "state.db-wal", "ctrlrun.yaml"}
    assert sorted(each.name for each in app.folder.iterdir()) == ["ctrlrun.yaml", "state.db"]


def test_a_store_with_a_damaged_page_is_a_finding(store):
    data = bytearray(store.read_bytes())
    pages = [at for at in range(4096, len(data), 4096) if b"ctrlrun.receipt/" in data[at : at + 4096]]
    for offset in pages[1:]:
        data[offset : offset + 64] = b"\xff" * 64
    store.write_bytes(data)
    verdict = judged(store)
    assert verdict.exit == 1
    assert "foreign.unreadable" in codes(verdict)


def test_a_view_in_place_of_a_table_is_not_run(store):
    edit(
        store,
        "ALTER TABLE receipts RENAME TO hidden",
        "CREATE VIEW receipts AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n",
    )
    verdict = judged(store)
    assert verdict.coverage.count == 0
    assert verdict.exit in {1, 5}


VALUES = [
    None, "", "x", "committed", "denied", 0, 1, -1, True, 1.5, [], [1], ["a"], [1.5], {}, {"a": 1.5}, {"a": {"b": [1.5]}}, {"a": 1},
    "sha256:" + "0" * 64, "ctr_" + "0" * 32, "act_" + "0" * 32, "apr_" + "0" * 32, "dlg_" + "0" * 32, "apr_" + "g" * 32,
    "2026-02-30T00:00:00.000Z", "2026-11-31T00:00:00.000Z", "2026-12-31T23:59:59.999Z", "2026-12-31T24:00:00.000Z", "2026-12-31",
    {"agent": "a", "user": None, "claims": {}, "issuer": None, "expires_at": None}, {"agent": ""}, json.loads('{"a":' * 20 + "1" + "}" * 20),
]  # fmt: skip


def test_what_is_told_fast_as_a_receipt_has_its_shape_and_holds_no_float(made):
    from verify.foreign.ctrlrun.shape import misshape_of
    from verify.foreign.ctrlrun.usual import holds_float, is_usual

    told = 0
    for line in sink(made).split("\n")[:-1]:
        document = json.loads(line)
        assert is_usual(document)
        assert not is_usual({name: value for name, value in document.items() if name != "hop"} | {"hop2": None})
        for name in document:
            for value in VALUES:
                changed = document | {name: value}
                if is_usual(changed):
                    told += 1
                    rest = changed | {each: document[each] for each in ("action_hash", "prev_hash")}
                    assert misshape_of(rest, "ctrlrun.receipt/v7") is None, (name, value)
                    assert not holds_float(changed)
        for name in document["principal"]:
            for value in VALUES:
                changed = document | {"principal": document["principal"] | {name: value}}
                if is_usual(changed):
                    told += 1
                    assert misshape_of(changed, "ctrlrun.receipt/v7") is None, (name, value)
    assert told > 100
