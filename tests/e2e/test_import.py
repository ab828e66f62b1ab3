"""`ledger import`: documents of AXLR and runx come in, are judged with their import, and add nothing a second time."""

from __future__ import annotations

import json
import signal
import sys
import time

import pytest

from ledger.digest import digest
from ledger.receipt import Import, parse_receipt
from tests.reference.people import Person
from tests.reference.runx_receipts import receipt as runx_receipt
from tests.reference.runx_receipts import text
from tests.reference.shell import User

POLICY = {
    "policy": {
        "level": "observe",
        "tools": {
            "allow": [{"name": "observability.query_logs"}, {"name": "local_read", "arguments": {"path": "logs/**"}}],
            "deny": [{"name": "local_exec"}],
        },
    }
}
USAGE = {
    "requests": 2,
    "prompt_tokens": 30,
    "cached_tokens": 20,
    "cache_write_tokens": 0,
    "completion_tokens": 9,
    "reasoning_tokens": 4,
    "cost_usd": 0.0021,
    "cost_requests": 1,
    "unmetered_requests": 1,
}


def result(*calls, status="completed", session="s1", **changes):
    return {
        "schema": "axlr.execution-result/v1",
        "status": status,
        "session_id": session,
        "sessions": [session],
        "answer": "",
        "tool_calls": list(calls),
        "usage": USAGE,
        "artifacts": [],
        **changes,
    }


def call(tool="observability.query_logs", status="completed", decision="auto_approve", call_id="c1"):
    return {"call_id": call_id, "tool": tool, "status": status, **({"decision": decision} if decision else {})}


def stream(found, *, end="completed"):
    events = [
        {"type": "session", "session_id": found["session_id"]},
        *({"type": "tool.requested", "call_id": each["call_id"], "tool": each["tool"]} for each in found["tool_calls"]),
        {"type": end},
        {"type": "result", "result": found},
    ]
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.fixture
def owner(tmp_path):
    """Somebody with a ledger of their own, whose commands run in this process."""
    person = Person(tmp_path / "home")
    assert person("init", tmp_path / "L").exit == 0
    return person


@pytest.fixture
def ledger(owner, tmp_path):
    return owner.open(tmp_path / "L")


def put(tmp_path, name, value):
    path = tmp_path / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def bring(owner, tmp_path, *arguments, exit_=0):
    done = owner("import", "-L", tmp_path / "L", "--json", *arguments)
    assert done.exit == exit_, done.err
    return json.loads(done.out)


def receipts(ledger, kind=None):
    found = [parse_receipt(stored.envelope.payload) for stored in ledger.entries()]
    return [each for each in found if kind is None or each.kind == kind]


def judged(owner, tmp_path, target):
    return owner("verify", "-L", tmp_path / "L", target)


def test_a_document_is_kept_as_it_came_and_says_its_facts_with_a_source(owner, ledger, tmp_path):
    data = json.dumps(result(call(), call("x", "failed", call_id="c2")), indent=3).encode()
    (row,) = bring(owner, tmp_path, put(tmp_path, "r.json", data))
    assert row["document"] == digest(data)
    assert (row["format"], row["kind"], row["native"]) == ("axlr", "result", {"status": "holds", "code": "completed"})
    (kept,) = receipts(ledger, "import")
    assert isinstance(kept, Import)
    assert (kept.mapping, kept.version, kept.native_status) == ("axlr/1", "axlr.execution-result/v1", "holds")
    assert kept.document.digest == digest(data)
    assert ledger.artifact(kept.document) == data
    said = [each for each in receipts(ledger) if each.kind in ("opening", "intent", "outcome", "run")]
    assert len(said) == 8
    assert {(each.source.document, each.source.import_) for each in said} == {(digest(data), row["import"])}
    outcomes = {each.intent: each for each in receipts(ledger, "outcome")}
    acts = {each.act.name: outcomes[ledger_id(ledger, each)] for each in receipts(ledger, "intent")}
    assert {name: each.status for name, each in acts.items()} == {
        "model.requests": "committed",
        "observability.query_logs": "committed",
        "x": "ambiguous",
    }
    assert {each.meter: each.settled for each in acts["model.requests"].charges[:-1]} == {
        "requests": 2, "prompt_tokens": 30, "cached_tokens": 20, "completion_tokens": 9, "reasoning_tokens": 4, "usd_micro": 2_100,
    }  # fmt: skip
    assert acts["model.requests"].charges[-1].settled == "unknown"
    assert owner("verify", tmp_path / "L").exit == 0


def ledger_id(ledger, wanted):
    return next(stored.entry.receipt for stored in ledger.entries() if parse_receipt(stored.envelope.payload) == wanted)


def test_the_same_document_again_adds_nothing(owner, ledger, tmp_path):
    path = put(tmp_path, "r.json", result(call()))
    (first,) = bring(owner, tmp_path, path)
    size = ledger.head().size
    for arguments in ((path,), ("axlr", path), (put(tmp_path, "other.json", path.read_bytes()),), (path, path)):
        rows = bring(owner, tmp_path, *arguments)
        assert {(row["import"], row["already"]) for row in rows} == {(first["import"], True)}
    assert ledger.head().size == size
    bring(owner, tmp_path, put(tmp_path, "r.json", path.read_bytes() + b"\n"))
    assert ledger.head().size > size


def test_an_execution_that_goes_on_adds_only_what_is_new(owner, ledger, tmp_path):
    waiting = call("deploy", "pending", None, "c2")
    pending = {"call_id": "c2", "tool": "deploy", "arguments": {"to": "prod"}}
    before = result(call(), waiting, status="needs_decision", pending=pending)
    (first,) = bring(owner, tmp_path, put(tmp_path, "a.json", before))
    later = result(call(), call("deploy", "completed", "approve", "c2"), call("ls", call_id="c3"))
    later["usage"] = {**USAGE, "requests": 3, "cost_usd": 0.003, "cost_requests": 2}
    (second,) = bring(owner, tmp_path, put(tmp_path, "b.json", later))
    opening = next(each for each in receipts(ledger, "opening") if each.continues is not None)
    assert opening.continues == first["runs"][0]
    intents = [each for each in receipts(ledger, "intent") if each.run == second["runs"][0]]
    assert [each.act.name for each in intents] == ["model.requests", "deploy", "ls"]
    assert intents[1].rule == "approve"
    totals = [{each.meter: each.value for each in run.totals} for run in receipts(ledger, "run")]
    assert totals[1] == {"requests": 1, "usd_micro": 900}
    assert owner("verify", tmp_path / "L").exit == 0


def test_a_correlation_names_what_comes_with_it(owner, ledger, tmp_path):
    names = {"bot_id": "investigator", "trace_id": "trace-abc"}
    bring(
        owner,
        tmp_path,
        put(tmp_path, "r.json", result(call())),
        put(tmp_path, "correlation.json", {"correlation": names}),
    )
    (opening,) = receipts(ledger, "opening")
    assert opening.actor.agent == "investigator"
    assert opening.correlation == {**names, "axlr.session": "s1"}


def test_a_forbidden_call_inserted_by_hand_is_exit_6_naming_the_rule(owner, ledger, tmp_path):
    policy = put(tmp_path, "policy.json", POLICY)
    good = put(tmp_path, "good.json", result(call()))
    (row,) = bring(owner, tmp_path, "axlr", good, "--policy", policy)
    assert judged(owner, tmp_path, row["import"]).exit == 0
    forged = put(tmp_path, "forged.json", result(call(), call("local_exec", call_id="c2"), session="s2"))
    (row,) = bring(owner, tmp_path, "axlr", forged, "--policy", policy)
    for target in (row["import"], row["runs"][0]):
        done = judged(owner, tmp_path, target)
        assert done.exit == 6
        assert "policy.breach" in done.out
        assert "rule tools.deny[0]" in done.out
    assert owner("verify", forged, "--policy", policy).exit == 6
    assert owner("verify", good, "--policy", policy, "--accept", "foreign.unsigned").exit == 0
    # What came with the document is kept with it; it is no rule of this ledger.
    assert owner("verify", tmp_path / "L").exit == 0


def test_a_budget_that_held_is_checked_again(owner, ledger, tmp_path):
    (row,) = bring(owner, tmp_path, put(tmp_path, "r.json", result(call())), "--budget", "requests=1")
    assert judged(owner, tmp_path, row["import"]).exit == 6
    (row,) = bring(owner, tmp_path, put(tmp_path, "s.json", result(call(), session="s2")), "--budget", "requests=2")
    assert judged(owner, tmp_path, row["import"]).exit == 0


def test_a_policy_that_a_subject_is_nothing_for_is_not_taken_for_kept(owner, ledger, tmp_path):
    policy = put(tmp_path, "policy.json", POLICY)
    (row,) = bring(owner, tmp_path, put(tmp_path, "r.json", text(runx_receipt())))
    for target in (row["import"], tmp_path / "r.json", tmp_path / "L"):
        done = owner("verify", "-L", tmp_path / "L", "--json", target, "--policy", policy, "--budget", "requests=1")
        assert done.exit == 3
        assert "check.unsupported" in done.codes
    other = put(tmp_path, "s.json", text(runx_receipt("other")))
    assert owner("import", "-L", tmp_path / "L", other, "--policy", policy).exit == 2


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(result(call(decision="deny"))).encode(),
        json.dumps({**result(call()), "extra": 1}).encode(),
        json.dumps(result(call())).encode().replace(b'"answer"', b'"answer": 1, "answer"'),
        json.dumps(result(call())).encode()[:-9],
        text({**runx_receipt(), "created_at": "2026-05-19T00:00:00Z"}),
    ],
)
def test_a_bad_native_verdict_is_the_imports_and_not_the_ledgers(owner, ledger, tmp_path, data):
    (row,) = bring(owner, tmp_path, put(tmp_path, "bad.json", data))
    assert row["native"]["status"] in ("fails", "unreadable")
    done = judged(owner, tmp_path, row["import"])
    assert done.exit == 1
    assert "foreign.native_fails" in done.out
    assert owner("verify", tmp_path / "L").exit == 0
    assert ledger.artifacts.get(digest(data)) == data


def test_documents_that_are_altered_after_they_came_in_do_not_hold(owner, ledger, tmp_path):
    (row,) = bring(owner, tmp_path, put(tmp_path, "r.json", result(call())))
    assert judged(owner, tmp_path, row["import"]).exit == 0
    (pack,) = (tmp_path / "L" / "artifacts" / "packs").glob("*.pack")
    pack.write_bytes(pack.read_bytes().replace(b"query_logs", b"query_dogs"))
    assert judged(owner, tmp_path, row["import"]).exit == 1


def test_a_receipt_store_comes_in_with_its_trees(owner, ledger, tmp_path):
    leaf, failed = runx_receipt("read"), runx_receipt("write", disposition="failed")
    blocked = runx_receipt("deploy", disposition="blocked")
    middle = runx_receipt("inner", [failed, blocked])
    root = runx_receipt("outer", [leaf, middle])
    store = tmp_path / "store"
    store.mkdir()
    for each in (root, leaf, middle, failed, blocked):
        (store / f"sha256-{each['id'][7:]}.json").write_bytes(text(each))
    rows = bring(owner, tmp_path, "runx", store)
    assert len(rows) == 5
    assert {row["native"]["status"] for row in rows} == {"unverifiable"}
    (closing,) = receipts(ledger, "run")
    (step,) = receipts(ledger, "step")
    assert (closing.status, step.name, len(step.children)) == ("completed", "inner", 2)
    assert [each.status for each in receipts(ledger, "outcome")] == ["committed", "ambiguous"]
    (decision,) = receipts(ledger, "decision")
    assert (decision.act.name, decision.status) == ("deploy", "blocked")
    assert len({each.source.document for each in receipts(ledger) if each.source is not None}) == 5
    assert owner("verify", tmp_path / "L").exit == 0
    assert owner("verify", store).exit == 3
    (row,) = [row for row in rows if row["document"] == digest(text(root))]
    assert judged(owner, tmp_path, row["runs"][0]).exit == 0
    # A second time, and with one more receipt: only that one is new.
    other = runx_receipt("other")
    (store / f"sha256-{other['id'][7:]}.json").write_bytes(text(other))
    assert [row["already"] for row in bring(owner, tmp_path, store)].count(False) == 1
    assert len(receipts(ledger, "run")) == 2


def test_a_file_of_a_store_that_cannot_be_read_comes_in_and_hides_no_other(owner, ledger, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    good = runx_receipt("good")
    (store / f"sha256-{good['id'][7:]}.json").write_bytes(text(good))
    (store / f"sha256-{'0' * 64}.json").write_bytes(b"\xff{")
    (store / "effect-state.json").write_bytes(b"{}")
    rows = bring(owner, tmp_path, store)
    assert sorted(row["native"]["status"] for row in rows) == ["unreadable", "unverifiable"]
    (bad,) = [row for row in rows if row["native"]["status"] == "unreadable"]
    assert judged(owner, tmp_path, bad["import"]).exit == 1
    assert len(receipts(ledger, "run")) == 1


def test_one_id_with_two_bodies_is_ambiguous_together_and_one_after_the_other(owner, ledger, tmp_path):
    def body(child):
        return text(runx_receipt("graph", [runx_receipt(child)], graph_locator=False))

    first, second = put(tmp_path, "a.json", body("a")), put(tmp_path, "b.json", body("b"))
    assert json.loads(first.read_bytes())["id"] == json.loads(second.read_bytes())["id"]
    assert [row["native"]["code"] for row in bring(owner, tmp_path, first)] == ["signature_key_missing"]
    (row,) = bring(owner, tmp_path, second)
    assert row["native"] == {"status": "fails", "code": "ambiguous"}
    assert judged(owner, tmp_path, row["import"]).exit == 1
    assert len(receipts(ledger, "run")) == 1
    lines = put(tmp_path, "lines.jsonl", text(runx_receipt("new")) + b"\n" + body("c") + b"\n")
    (row,) = bring(owner, tmp_path, lines)
    assert row["native"] == {"status": "fails", "code": "ambiguous"}
    other = Person(tmp_path / "h2")
    assert other("init", tmp_path / "M").exit == 0
    done = other("import", "-L", tmp_path / "M", "--json", first, second)
    assert [row["native"]["code"] for row in json.loads(done.out)] == ["ambiguous", "ambiguous"]
    both = tmp_path / "both"
    both.mkdir()
    for path in (first, second):
        (both / path.name).write_bytes(path.read_bytes())
    done = owner("verify", both)
    assert done.exit == 1
    assert "foreign.ambiguous" in done.out
    assert receipts(other.open(tmp_path / "M"), "run") == []


def test_receipts_one_a_line_are_one_document_and_a_run_each(owner, ledger, tmp_path):
    lines = b"".join(text(runx_receipt(f"n{place}", local=True)) + b"\n" for place in range(50))
    (row,) = bring(owner, tmp_path, put(tmp_path, "all.jsonl", lines))
    assert (row["kind"], len(row["runs"])) == ("receipts", 50)
    assert ledger.head().size == 1 + 1 + 4 * 50
    assert owner("verify", tmp_path / "L").exit == 0
    size = ledger.head().size
    bring(owner, tmp_path, tmp_path / "all.jsonl")
    assert ledger.head().size == size


def test_what_is_nothing_that_is_known_is_refused_and_adds_nothing(owner, ledger, tmp_path):
    size = ledger.head().size
    for data in (b"", b"{}", b"hello\n", b"\xff\xfe"):
        assert owner("import", "-L", tmp_path / "L", put(tmp_path, "x", data)).exit == 5
    assert owner("import", "-L", tmp_path / "L", "runx", put(tmp_path, "x", result())).exit == 5
    assert owner("import", "-L", tmp_path / "L", tmp_path / "absent").exit == 5
    assert owner("import", "-L", tmp_path / "L", "axlr").exit == 2
    assert owner("import", "-L", tmp_path / "L", put(tmp_path, "x", result()), "--policy", tmp_path / "x").exit == 2
    assert ledger.head().size == size


def ledger_of(shell):
    return Person(shell.home).open(shell.work / ".ledger")


def statuses(shell):
    """Status of each run by its id, in the order in which they closed."""
    return {each.children[0]: each.status for each in receipts(ledger_of(shell), "run")}


def last(shell):
    return list(statuses(shell).values())[-1]


def verified(shell, target):
    return Person(shell.home)("verify", "-L", shell.work / ".ledger", target).exit


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Somebody whose commands are processes, with a ledger in the working folder."""
    user = User(tmp_path_factory.mktemp("shell"))
    assert user("init").exit == 0
    return user


@pytest.mark.parametrize(
    ("found", "end", "exit_"),
    [
        (result(call(), session="p1"), "completed", 0),
        (
            result(
                call("d", "pending", None),
                status="needs_decision",
                pending={"call_id": "c1", "tool": "d", "arguments": {}},
                session="p2",
            ),
            "decision.required",
            3,
        ),
        (result(call(), status="failed", error="why", session="p3"), "failed", 1),
    ],
)
def test_a_live_stream_is_passed_through_and_exits_as_axlr_does(shell, found, end, exit_):
    data = stream(found, end=end)
    done = shell("import", "axlr", "-", stdin=data)
    assert (done.exit, done.raw) == (exit_, data)
    assert "axlr stream" in done.err
    assert last(shell) == found["status"]


def test_a_live_stream_that_breaks_is_interrupted(shell):
    data = stream(result(call("ls"), session="q"))[:-40]
    done = shell("import", "-", stdin=data)
    assert (done.exit, done.raw) == (1, data)
    assert last(shell) == "interrupted"
    assert receipts(ledger_of(shell), "outcome")[-1].status == "ambiguous"
    again = shell("import", "axlr", "-", "--json", stdin=data)
    assert again.json[0]["already"]


def test_lines_are_passed_on_as_they_come_and_an_interrupt_does_not_lose_them(shell):
    import subprocess

    data = stream(result(call(), session="live"))
    first, rest = data.split(b"\n", 1)
    process = shell.start("import", "axlr", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(first + b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == first + b"\n"
    process.send_signal(signal.SIGINT)
    process.stdin.write(rest)
    process.stdin.close()
    assert process.stdout.read() == rest
    assert process.wait(30) == 0
    process.stdout.close()
    process.stderr.close()
    assert last(shell) == "completed"


PROGRAM = (
    "import sys; sys.stdout.write(open(sys.argv[1]).read()); sys.stderr.write('noise'); sys.exit(int(sys.argv[2]))"
)


def run_reader(shell, data, exit_, *more):
    path = shell.work / f"stream-{time.monotonic_ns()}.jsonl"
    path.write_bytes(data)
    said = shell.work / "said.json"
    done = shell(
        "run", "--reader", "axlr", "--result", said, "--", sys.executable, "-c", PROGRAM, path, str(exit_), *more
    )
    return done, json.loads(said.read_bytes())


def test_a_run_with_a_reader_is_sealed_with_the_stream_and_exits_as_the_command(shell):
    data = stream(result(call(), session="r1"))
    done, said = run_reader(shell, data, 0)
    assert (done.exit, done.raw, done.err) == (0, data, "noise")
    found = statuses(shell)
    assert (found[said["imported_run"]], found[said["run"]]) == ("completed", "completed")
    assert (verified(shell, said["run"]), verified(shell, said["import"])) == (0, 0)


def test_a_run_whose_stream_breaks_is_interrupted_whatever_the_exit_code(shell):
    data = stream(result(call(), session="r2"))[:-30]
    done, said = run_reader(shell, data, 0)
    assert done.exit == 0
    assert statuses(shell)[said["run"]] == "interrupted"
    assert statuses(shell)[said["imported_run"]] == "interrupted"
    assert verified(shell, said["import"]) == 1


def test_a_run_that_waits_for_a_decision_is_incomplete(shell):
    pending = {"call_id": "c1", "tool": "d", "arguments": {}}
    found = result(call("d", "pending", None), status="needs_decision", pending=pending, session="r3")
    done, said = run_reader(shell, stream(found, end="decision.required"), 3)
    assert done.exit == 3
    assert statuses(shell)[said["run"]] == "incomplete"
    assert statuses(shell)[said["imported_run"]] == "needs_decision"


def test_the_policy_that_the_command_was_told_is_checked_again(shell):
    policy = shell.work / "policy.json"
    policy.write_text(json.dumps(POLICY))
    data = stream(result(call("local_exec"), session="r4"))
    done, said = run_reader(shell, data, 0, "--policy", policy)
    assert done.exit == 0
    assert verified(shell, said["import"]) == 6
    refused = ("run", "-L", shell.work / ".ledger", "--reader", "axlr", "--", "true", "--policy", "none.json")
    assert Person(shell.home)(*refused).exit == 125


def test_a_command_that_writes_nothing_is_recorded_and_nothing_is_imported(shell):
    done, said = run_reader(shell, b"", 1)
    assert (done.exit, said["import"]) == (1, None)
    assert statuses(shell)[said["run"]] == "interrupted"
    person = Person(shell.home)
    for options in (("--reader", "other"), ("--reader", "axlr", "--output", "none")):
        assert person("run", "-L", shell.work / ".ledger", *options, "--", "true").exit == 125
