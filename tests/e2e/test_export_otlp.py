"""`ledger export otlp`: what it writes is what OpenTelemetry's own messages take, and says what the receipts say."""

from __future__ import annotations

import base64
import json
from hashlib import sha256

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2

from ledger import Blocked
from ledger.receipt import Resolution
from tests.reference.ledgers import common
from tests.reference.people import Person

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    return path


def ids_as_base64(value):
    """Return a message in protobuf's own JSON mapping, which differs from OTLP's in that bytes are base64."""
    if isinstance(value, dict):
        return {
            name: base64.b64encode(bytes.fromhex(item)).decode()
            if name in {"traceId", "spanId", "parentSpanId"}
            else ids_as_base64(item)
            for name, item in value.items()
        }
    return [ids_as_base64(item) for item in value] if isinstance(value, list) else value


def exported(owner, folder, *arguments, exit_=0):
    """Return the spans by name, each as OpenTelemetry's message with its attributes as a dict, and those of the resources."""
    done = owner("-L", folder, "export", "otlp", *arguments)
    assert done.exit == exit_, done.err
    assert done.out.count("\n") == 1
    message = json_format.ParseDict(ids_as_base64(json.loads(done.out)), trace_pb2.TracesData())
    spans = [span for each in message.resource_spans for scope in each.scope_spans for span in scope.spans]
    assert len({span.span_id for span in spans}) == len(spans)
    for span in spans:
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert 1_700_000_000 * 10**9 < span.start_time_unix_nano <= span.end_time_unix_nano
    return {span.name: span for span in spans}, [attributes(each.resource) for each in message.resource_spans]


def attributes(holder):
    kinds = {"string_value", "int_value", "bool_value"}
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value"))
        for each in holder.attributes
        if each.value.WhichOneof("value") in kinds
    }


def busy_run(ledger, **options):
    with ledger.run("outer", actor="bot", budget={"usd": "1"}, **options) as run:
        with run.step("prepare") as step, step.call("look", tool="crm", access="read", reserve={"usd": "0.1"}) as call:
            call.use("usd_micro", 42)
        pay = run.call("pay", access="write", effect_key="pay:1", reserve={"usd": "0"})
        with pytest.raises(TimeoutError), pay:
            raise TimeoutError
        with pytest.raises(Blocked), run.call("too much", reserve={"usd": "9"}):
            pass
        with run.call("start", reserve={"usd": "0"}) as call, call.run("inner", actor="other") as inner:
            inner.perform("copy", lambda _: None, reserve={"usd": "0"})
    return run.id


def test_spans_say_what_the_receipts_say(owner, folder):
    with owner.open(folder) as ledger:
        run = busy_run(ledger)
        rows = {stored.entry.receipt: stored.entry.index for stored in ledger.entries()}
    spans, resources = exported(owner, folder, run)
    assert set(spans) == {"outer", "prepare", "look", "pay", "too much", "start", "inner", "copy"}
    assert {span.trace_id.hex() for span in spans.values()} == {run[7:39]}
    above = {
        name: next((n for n, s in spans.items() if s.span_id == span.parent_span_id), None)
        for name, span in spans.items()
    }
    assert above == {
        "outer": None, "prepare": "outer", "look": "prepare", "pay": "outer", "too much": "outer", "start": "outer",
        "inner": "start", "copy": "inner",
    }  # fmt: skip
    code = trace_pb2.Status
    assert {name: span.status.code for name, span in spans.items()} == {
        **dict.fromkeys(spans, code.STATUS_CODE_OK), "pay": code.STATUS_CODE_ERROR, "too much": code.STATUS_CODE_ERROR,
    }  # fmt: skip
    assert spans["pay"].status.message == "ambiguous: act.exception"
    assert spans["too much"].status.message == "blocked: budget.limit"
    assert [event.name for event in spans["pay"].events] == ["exception"]
    assert attributes(spans["pay"].events[0]) == {"exception.type": "TimeoutError"}
    look = attributes(spans["look"])
    assert (look["gen_ai.tool.name"], look["receipt_ledger.access"], look["receipt_ledger.cost.usd_micro"]) == (
        "crm",
        "read",
        42,
    )
    for span in spans.values():
        said = attributes(span)
        assert rows[said["receipt_ledger.receipt"]] == said["receipt_ledger.index"]
    head = owner("-L", folder, "log", "--entries", "--json").json
    assert {each["service.name"] for each in resources} == {"bot", "other"}
    assert {(each["receipt_ledger.verdict"], each["receipt_ledger.head.size"]) for each in resources} == {
        ("ok", len(head))
    }
    assert spans["outer"].start_time_unix_nano <= spans["prepare"].start_time_unix_nano
    assert spans["start"].start_time_unix_nano <= spans["inner"].start_time_unix_nano
    assert spans["inner"].end_time_unix_nano <= spans["outer"].end_time_unix_nano


@pytest.mark.parametrize(
    ("correlation", "trace", "parent"),
    [
        ({"traceparent": f"00-{TRACE}-{PARENT}-01", "ticket": "x"}, TRACE, PARENT),
        ({"trace_id": TRACE}, TRACE, ""),
        ({"ticket": "OPS-1"}, sha256(b'{"ticket":"OPS-1"}').hexdigest()[:32], ""),
        ({"traceparent": f"00-{'0' * 32}-{PARENT}-01"}, None, ""),
        ({"traceparent": f"00-{TRACE.upper()}-{PARENT}-01"}, None, ""),
    ],
)
def test_a_trace_is_that_of_the_correlation(owner, folder, correlation, trace, parent):
    with owner.open(folder) as ledger, ledger.run("one", correlation=correlation):
        pass
    spans, _ = exported(owner, folder)
    expected = trace or sha256(json.dumps(correlation, separators=(",", ":")).encode()).hexdigest()[:32]
    assert (spans["one"].trace_id.hex(), spans["one"].parent_span_id.hex()) == (expected, parent)


def test_runs_of_one_correlation_are_one_trace_and_others_are_not(owner, folder):
    for name, correlation in (("a", {"t": "1"}), ("b", {"t": "1"}), ("c", {"t": "2"}), ("d", None)):
        with owner.open(folder) as ledger, ledger.run(name, correlation=correlation):
            pass
    spans, _ = exported(owner, folder, "--since", "1h")
    assert spans["a"].trace_id == spans["b"].trace_id
    assert len({span.trace_id for span in spans.values()}) == 3


def test_an_open_run_is_written_as_far_as_it_goes_and_says_that_it_is_open(owner, folder):
    ledger = owner.open(folder)
    run = ledger.run("open")
    with run.call("done"):
        pass
    run.call("going on").__enter__()
    spans, (resource,) = exported(owner, folder, run.id, exit_=3)
    assert spans["open"].status.code == spans["going on"].status.code == trace_pb2.Status.STATUS_CODE_UNSET
    assert attributes(spans["going on"])["receipt_ledger.status"] == "under way"
    assert resource["receipt_ledger.verdict"] == "not_established"


def test_a_resolution_is_said_of_the_call_that_it_settles(owner, folder):
    with owner.open(folder) as ledger:
        with ledger.run("work") as run, pytest.raises(TimeoutError), run.call("pay", effect_key="pay:1") as call:
            raise TimeoutError
        made = Resolution(
            **common(ledger), run=run.id, intent=call.intent, happened="did_not_happen", resolved_by="ann"
        )
        ledger.append(ledger.seal(made))
    spans, _ = exported(owner, folder)
    assert attributes(spans["pay"])["receipt_ledger.resolved"] == "did_not_happen"
    assert attributes(spans["pay"])["receipt_ledger.resolved_by"] == "ann"


def test_what_does_not_hold_is_not_written(owner, folder, tmp_path):
    run = owner.record(folder)
    (journal,) = (folder / "journal").iterdir()
    data = journal.read_bytes()
    at = data.index(b'"nonce":"', data.index(b'"kind":"intent"')) + 9
    journal.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    for arguments in ((run,), ("--since", "1d")):
        done = owner("-L", folder, "export", "otlp", *arguments, "-o", tmp_path / "spans.json")
        assert (done.exit, done.out) == (1, "")
        assert "nothing was written" in done.err
    assert not (tmp_path / "spans.json").exists()
