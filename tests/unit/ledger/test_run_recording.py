"""Runs, steps and calls: what is recorded, in which order, and what is refused before anything is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import Actor, CurrencyAmount, Ledger, LedgerError, Limit, NotExecuted, Tool
from ledger.arguments import ArgumentsError
from ledger.canonical import decode
from ledger.errors import AdmissionError, AlreadyClosedError, NotFoundError
from ledger.members import Artifact
from ledger.run import Run
from ledger.storage.admission import STEP_LEVELS
from ledger.words import OutcomeStatus, RunStatus
from tests.reference.check import Journal, Row, check_folder
from tests.reference.ledgers import bytes_of, ended, fork, grant, new_ledger, open_ledger, quick_folder, verdict


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with quick_folder(tmp_path) as folder:
        yield new_ledger(folder)


def read(ledger: Ledger) -> Journal:
    """Return what the journal says after both checkers agreed to it."""
    found = verdict(ledger)
    assert found.exit == 0, found.findings
    return check_folder(ledger.folder, signatures=False)


def kinds(ledger: Ledger) -> list[str]:
    return [row.receipt["kind"] for row in read(ledger).rows[1:]]


def artifact(ledger: Ledger, row: Row, name: str) -> bytes:
    (found,) = (each for each in row.receipt["artifacts"] if each["name"] == name)
    return ledger.artifact(Artifact.model_validate(found))


def stored_bytes(ledger: Ledger) -> bytes:
    """Return every byte of every file of the ledger's folder."""
    return b"".join(path.read_bytes() for path in ledger.folder.rglob("*") if path.is_file())


# What a run looks like.


def test_a_run_with_a_step_and_a_call_is_a_tree(ledger: Ledger) -> None:
    actor = Actor(agent="bot", user="ann", model="m1")
    with (
        ledger.run("nightly", actor=actor, correlation={"ticket": "T-1"}) as run,
        run.step("collect") as step,
        step.call("http.get", access="read", arguments={"url": "u"}) as call,
    ):
        call.result = {"status": 200}
    journal = read(ledger)
    assert [row.receipt["kind"] for row in journal.rows[1:]] == ["opening", "intent", "outcome", "step", "run"]
    opening, intent, outcome, step_row, closed = journal.rows[1:]
    assert opening.receipt["actor"] == {"agent": "bot", "user": "ann", "model": "m1"}
    assert opening.receipt["correlation"] == {"ticket": "T-1"}
    assert run.id == opening.id
    assert outcome.receipt["children"] == [intent.id]
    assert step_row.receipt["children"] == [outcome.id]
    assert closed.receipt["children"] == [opening.id, step_row.id]
    assert (closed.receipt["status"], outcome.receipt["status"], step_row.receipt["status"]) == (
        "completed",
        "committed",
        "completed",
    )
    assert decode(artifact(ledger, intent, "arguments")) == {"url": "u"}
    assert decode(artifact(ledger, outcome, "result")) == {"status": 200}


def test_an_actor_may_be_a_name_and_what_is_not_known_is_said_to_be_unknown(ledger: Ledger) -> None:
    with ledger.run("one", actor="bot"), ledger.run("two"):
        pass
    first, second = read(ledger).of("opening")
    assert first.receipt["actor"] == {"agent": "bot", "user": "unknown", "model": "unknown"}
    assert second.receipt["actor"]["agent"] == "unknown"


def test_a_call_inside_a_call_is_committed_by_it(ledger: Ledger) -> None:
    with ledger.run("work") as run, run.call("outer") as outer:
        with outer.call("inner"):
            pass
        with outer.step("part"):
            pass
    journal = read(ledger)
    inner, outer_row = journal.of("outcome")
    (step,) = journal.of("step")
    assert outer_row.receipt["children"] == [outer.intent, inner.id, step.id]


def test_a_child_run_is_committed_by_the_call_that_started_it(ledger: Ledger) -> None:
    with ledger.run("parent") as run, run.call("delegate") as call, call.run("child") as child, child.call("act"):
        pass
    journal = read(ledger)
    child_root, parent_root = journal.of("run")
    outcome = journal.of("outcome")[-1]
    assert outcome.receipt["children"] == [call.intent, child_root.id]
    assert parent_root.receipt["children"] == [run.id, outcome.id]
    opening = journal.of("opening")[1].receipt
    assert (opening["parent_opening"], opening["parent_intent"]) == (run.id, call.intent)


def test_a_child_run_of_another_process_is_committed_by_the_call_that_started_it(ledger: Ledger) -> None:
    with ledger.run("parent") as run, run.call("delegate") as call:
        names = run.environment(call)
        assert names["LEDGER_DIR"] == str(ledger.folder)
        parent, _, intent = names["LEDGER_RUN"].partition("/")

        def body() -> None:
            with open_ledger(ledger.folder.parent).run("child", parent=(parent, intent)) as child, child.call("act"):
                pass

        assert ended(fork(body)) == 0
    journal = read(ledger)
    child_root, _ = journal.of("run")
    assert journal.of("outcome")[-1].receipt["children"] == [call.intent, child_root.id]


def test_a_child_run_that_ends_after_its_call_is_committed_by_its_parent(ledger: Ledger) -> None:
    with ledger.run("parent") as run:
        with run.call("start") as call:
            child = call.run("child")
        child.close()
    journal = read(ledger)
    child_root, parent_root = journal.of("run")
    assert parent_root.receipt["children"] == [run.id, journal.of("outcome")[0].id, child_root.id]


def test_two_equal_calls_are_two_receipts_of_one_act(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        for _ in range(2):
            with run.call("pay", arguments={"amount": 5}):
                pass
    one, other = read(ledger).of("intent")
    assert one.id != other.id
    assert one.receipt["act_digest"] == other.receipt["act_digest"]
    assert one.receipt["artifacts"] == other.receipt["artifacts"]


def test_everything_that_a_call_can_say_is_recorded(ledger: Ledger) -> None:
    amount = CurrencyAmount(meter="usd_micro", value=1_500_000)
    tool = Tool(name="psp", version="2", digest="unknown")
    with (
        ledger.run("work", limits=[Limit(meter="usd_micro", limit=2_000_000)]) as run,
        run.call(
            "refund",
            tool=tool,
            access="write",
            arguments={"amount": 5, "note": "n"},
            inline=("amount",),
            resource="order/1",
            environment="production",
            amount=amount,
            precondition="sha256:" + "1" * 64,
            effect_key="refund-1",
            reserve={"usd_micro": 9},
        ) as call,
    ):
        call.use("prompt_tokens", 17)
        call.use("usd_micro", 9, basis="measured")
        reference = call.artifact(b"log", name="log", media_type="text/plain")
        call.end(OutcomeStatus.COMMITTED, exit_code=0)
    journal = read(ledger)
    (intent,), (outcome,) = journal.of("intent"), journal.of("outcome")
    act = intent.receipt["act"]
    assert act["arguments"] == {"amount": 5}
    assert (act["resource"], act["environment"], act["access"]) == ("order/1", "production", "write")
    assert (act["tool"]["version"], act["amount"]["value"]) == ("2", 1_500_000)
    assert intent.receipt["effect"] == {"key": "refund-1", "attempt": 1}
    assert [(each["meter"], each["settled"], each["basis"]) for each in outcome.receipt["usage"]] == [
        ("prompt_tokens", 17, "reported"),
        ("usd_micro", 9, "measured"),
    ]
    assert outcome.receipt["exit_code"] == 0
    assert ledger.artifact(reference) == b"log"
    assert journal.of("opening")[0].receipt["limits"] == [{"meter": "usd_micro", "limit": 2_000_000}]


# Order: durable before.


def seen_elsewhere(ledger: Ledger) -> list[str]:
    """Return the kinds that another process reads from the journal right now."""

    def body() -> None:
        (ledger.folder.parent / "seen").write_text(" ".join(row.receipt["kind"] for row in read(ledger).rows[1:]))

    assert ended(fork(body)) == 0
    return (ledger.folder.parent / "seen").read_text().split()


def test_each_receipt_is_in_the_journal_before_what_follows_it_can_happen(ledger: Ledger) -> None:
    run = ledger.run("work")
    assert seen_elsewhere(ledger) == ["opening"]
    with run:
        with run.step("one") as step:
            assert seen_elsewhere(ledger) == ["opening"]
            with step.call("act") as call:
                assert seen_elsewhere(ledger) == ["opening", "intent"]
                call.result = b"result"
            assert seen_elsewhere(ledger) == ["opening", "intent", "outcome"]
        assert seen_elsewhere(ledger) == ["opening", "intent", "outcome", "step"]
    assert seen_elsewhere(ledger) == ["opening", "intent", "outcome", "step", "run"]


def test_artifacts_are_on_the_disk_when_the_receipt_that_names_them_is(ledger: Ledger) -> None:
    with ledger.run("work") as run, run.call("act", arguments={"a": "findme-argument"}) as call:
        assert b"findme-argument" in stored_bytes(ledger)
        call.result = b"findme-result"
        assert b"findme-result" not in stored_bytes(ledger)
    assert b"findme-result" in stored_bytes(ledger)


# How it ended.


class OddError(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "status", "reason", "name"),
    [
        (ValueError("broken"), "ambiguous", "act.exception", "ValueError"),
        (NotExecuted("nothing was sent"), "failed", "act.not_executed", "NotExecuted"),
        (KeyboardInterrupt(), "ambiguous", "act.cancelled", "KeyboardInterrupt"),
        (SystemExit(3), "ambiguous", "act.cancelled", "SystemExit"),
        (asyncio.CancelledError(), "ambiguous", "act.cancelled", "CancelledError"),
        (GeneratorExit(), "ambiguous", "act.cancelled", "GeneratorExit"),
        (ArgumentsError("inner"), "ambiguous", "act.exception", "ArgumentsError"),
        (OddError(), "ambiguous", "act.exception", "OddError"),
        (type("X" * 300, (Exception,), {})(), "ambiguous", "act.exception", "X" * 256),
        (UnicodeError("\ud800"), "ambiguous", "act.exception", "UnicodeError"),
    ],
)
def test_an_exception_is_recorded_and_goes_on(
    ledger: Ledger, error: BaseException, status: str, reason: str, name: str
) -> None:
    with pytest.raises(type(error)) as caught, ledger.run("work") as run, run.step("one") as step, step.call("act"):
        raise error
    assert caught.value is error
    journal = read(ledger)
    (outcome,), (step_row,), (closed,) = journal.of("outcome"), journal.of("step"), journal.of("run")
    assert (outcome.receipt["status"], outcome.receipt["reason"], outcome.receipt["error"]) == (status, reason, name)
    assert step_row.receipt["status"] == "failed"
    expected = "failed" if isinstance(error, Exception) else "interrupted"
    assert (closed.receipt["status"], closed.receipt["error"]) == (expected, name)
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        assert artifact(ledger, outcome, "error") == b"broken"
        assert b"broken" not in b"".join(bytes_of(ledger.folder).values())


def test_an_exception_that_was_caught_leaves_the_run_completed(ledger: Ledger) -> None:
    with ledger.run("work") as run, pytest.raises(ValueError, match="x"), run.call("act"):
        raise ValueError("x")
    assert read(ledger).of("run")[0].receipt["status"] == "completed"


def test_a_run_ends_with_the_status_that_was_set(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        run.status = RunStatus.BLOCKED
    with ledger.run("work") as run:
        first = run.close("declined")
        assert run.close() == first
    assert [row.receipt["status"] for row in read(ledger).of("run")] == ["blocked", "declined"]


@pytest.mark.parametrize("status", ["done", "", "Completed"])
def test_a_run_is_not_closed_with_a_word_that_is_not_one(ledger: Ledger, status: str) -> None:
    run = ledger.run("work")
    with pytest.raises(ArgumentsError):
        run.close(status or "?")
    run.close()
    assert kinds(ledger) == ["opening", "run"]


def test_nothing_follows_the_close(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        late = run.step("late")
    with pytest.raises(AlreadyClosedError), run.call("act"):
        raise AssertionError("it ran")
    with pytest.raises(AlreadyClosedError), late:
        pass
    with pytest.raises(AlreadyClosedError):
        ledger.close_run(run.id)
    for again in (ledger.attach, ledger.resume):
        with pytest.raises(AlreadyClosedError):
            again(run.id)
    assert kinds(ledger) == ["opening", "run"]


def test_a_child_of_a_closed_run_is_refused(ledger: Ledger) -> None:
    run = ledger.run("parent")
    run.close()
    with pytest.raises(AlreadyClosedError):
        ledger.run("child", parent=(run.id, None))


@pytest.mark.parametrize("id_", ["sha256:" + "0" * 64, "a grant"])
def test_only_a_run_is_attached_to(ledger: Ledger, id_: str) -> None:
    if id_ == "a grant":
        id_ = ledger.append(grant(ledger)).receipt
    for use in (ledger.attach, ledger.resume, ledger.close_run):
        with pytest.raises(NotFoundError):
            use(id_)


def test_a_run_is_resumed_and_closed_by_another_driver(ledger: Ledger) -> None:
    run = ledger.run("work", secrets={"token": "hunter22"})
    with run.call("first"):
        pass
    unsettled = run.call("lost")
    unsettled.__enter__()
    with ledger.resume(run.id, secrets={"token": "hunter22"}) as again, again.call("second") as call:
        call.result = "with hunter22"
    journal = read(ledger)
    statuses = {row.receipt["intent"]: row.receipt["status"] for row in journal.of("outcome")}
    assert statuses[unsettled.intent] == "ambiguous"
    (closed,) = journal.of("run")
    assert closed.receipt["status"] == "completed"
    assert closed.receipt["duration_ms"] == "unknown"
    assert b"hunter22" not in stored_bytes(ledger)


def test_closing_from_the_record_says_so(ledger: Ledger) -> None:
    run = ledger.run("work")
    ledger.close_run(run.id)
    (closed,) = read(ledger).of("run")
    assert closed.receipt["status"] == "interrupted"
    assert closed.receipt["reason"] == "run.closed_later"
    assert closed.receipt["duration_ms"] == "unknown"


def test_an_attached_run_is_left_open(ledger: Ledger) -> None:
    run = ledger.run("work")
    with ledger.attach(run.id) as attached, attached.call("act"):
        pass
    assert [each.id for each in ledger.open_runs()] == [run.id]
    run.close()
    assert kinds(ledger) == ["opening", "intent", "outcome", "run"]


def test_a_call_is_made_once(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        call = run.call("act")
        with call:
            pass
        with pytest.raises(ArgumentsError), call:
            raise AssertionError("it ran again")
    assert kinds(ledger) == ["opening", "intent", "outcome", "run"]


def test_async_blocks_record_as_others_do(ledger: Ledger) -> None:
    async def main() -> None:
        async with ledger.run("work") as run, run.step("one") as step, step.call("act") as call:
            call.result = "done"
        with pytest.raises(ValueError, match="x"):
            async with ledger.run("work") as run, run.call("act"):
                raise ValueError("x")

    asyncio.run(main())
    assert [row.receipt["status"] for row in read(ledger).of("outcome")] == ["committed", "ambiguous"]


# Refused before anything is recorded.


def refused(ledger: Ledger, run: Run, path: str, **options: Any) -> None:
    before = bytes_of(ledger.folder)
    with pytest.raises(LedgerError) as caught, run.call("act", **options):
        raise AssertionError("it ran")
    assert path in f"{caught.value} {caught.value.where}"
    assert bytes_of(ledger.folder) == before


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"a": {"b": [1, 1.5]}}, "$.a.b[1]"),
        ({"a": float("nan")}, "$.a"),
        ({"a": 2**53}, "$.a"),
        ({"a": ["x", {"b": "\ud800"}]}, "$.a[1].b"),
        ({"a": b"bytes"}, "$.a"),
        ({"a": (1, 2)}, "$.a"),
        ({"a": {1: 2}}, "$.a"),
        ({"a": {"\U0001f600": 1}}, "$.a"),
        ([1], "arguments"),
        ("text", "arguments"),
    ],
)
def test_arguments_outside_the_profile_are_refused_with_their_path(ledger: Ledger, arguments: Any, path: str) -> None:
    with ledger.run("work") as run:
        if isinstance(arguments, str):
            with pytest.raises(LedgerError), run.call("act", arguments=arguments, inline=("a",)):
                raise AssertionError("it ran")
        else:
            refused(ledger, run, path, arguments=arguments)
    assert kinds(ledger) == ["opening", "run"]


def test_nested_arguments_without_end_are_refused(ledger: Ledger) -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(100_000):
        inner["a"] = {}
        inner = inner["a"]
    round_: dict[str, Any] = {}
    round_["a"] = round_
    with ledger.run("work", secrets={"token": "hunter22"}) as run:
        for arguments in (deep, round_):
            refused(ledger, run, "", arguments=arguments)
            with pytest.raises(LedgerError):
                run.artifact(arguments, name="deep")
            with pytest.raises(LedgerError), run.call("act") as call:
                call.result = arguments
    while deep:
        deep = deep.popitem()[1]
    assert [row.receipt["status"] for row in read(ledger).of("outcome")] == ["ambiguous"] * 2


@pytest.mark.parametrize(
    "options",
    [
        {"access": "admin"},
        {"access": ""},
        {"effect_key": ""},
        {"effect_key": "line\nbreak"},
        {"resource": ""},
        {"environment": "x" * 257},
        {"precondition": "sha256:0"},
        {"tool": "\x1b[31m"},
        {"amount": "5"},
        {"arguments": {"a": 1}, "inline": ("b",)},
        {"inline": ("b",)},
        {"arguments": {"a": 1}, "secrets": ("b",)},
        {"secrets": ("b",)},
    ],
)
def test_what_a_receipt_cannot_hold_is_refused_before_it_runs(ledger: Ledger, options: dict[str, Any]) -> None:
    with ledger.run("work") as run:
        refused(ledger, run, "", **options)
    assert kinds(ledger) == ["opening", "run"]


@pytest.mark.parametrize("name", ["", "line\nbreak", "x" * 257, "\x9b"])
def test_a_name_outside_its_form_is_refused_at_once(ledger: Ledger, name: str) -> None:
    before = ledger.head()
    with pytest.raises(LedgerError):
        ledger.run(name)
    with pytest.raises(LedgerError):
        ledger.run("work", actor=name or " \n")
    with pytest.raises(LedgerError):
        ledger.run("work", correlation={"ticket": name})
    assert ledger.head() == before
    with ledger.run("work") as run:
        for use in (lambda: run.step(name), lambda: run.call(name), lambda: run.artifact(b"", name=name)):
            with pytest.raises(LedgerError):
                use()
        with pytest.raises(LedgerError):
            run.artifact(b"", name="a", media_type=name or "text")
        with run.call("act") as call, pytest.raises(LedgerError):
            call.use(name, 1)
    assert kinds(ledger) == ["opening", "intent", "outcome", "run"]


def test_what_an_outcome_cannot_hold_is_refused_while_the_act_still_runs(ledger: Ledger) -> None:
    with ledger.run("work") as run, run.call("act") as call:
        for number in range(100):
            call.use(f"a->{number}", 1)
        for wrong in (
            lambda: call.use("requests", 1),
            lambda: call.use("requests", -1),
            lambda: call.use("requests", 1, basis="guessed"),
            lambda: call.end("done"),  # type: ignore[arg-type]
            lambda: call.end(OutcomeStatus.FAILED, exit_code=256),
            lambda: call.end(OutcomeStatus.FAILED, signal=0),
        ):
            with pytest.raises(ArgumentsError):
                wrong()
        with pytest.raises(ArgumentsError):
            call.result = 5  # type: ignore[assignment]
    (outcome,) = read(ledger).of("outcome")
    assert (outcome.receipt["status"], len(outcome.receipt["usage"])) == ("committed", 100)


def fill(add: Callable[[int], object]) -> int:
    """Return how often something can be added before it is refused."""
    for number in range(2_000):
        try:
            add(number)
        except ArgumentsError:
            return number
    return 2_000


def test_more_artifacts_than_a_receipt_can_name_are_refused_one_by_one(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        with run.call("act", arguments={}) as call:
            names = ["x" * 256 + "", "\N{GREEK SMALL LETTER ALPHA}" * 256]
            assert fill(lambda number: call.artifact(b"%d" % number, name=names[number % 2])) < 1_000
            call.result = b"done"
        assert fill(lambda number: run.artifact(b"%d" % number, name="n")) == 998
    journal = read(ledger)
    assert 700 < len(journal.of("outcome")[0].receipt["artifacts"]) <= 1_000
    assert len(journal.of("run")[0].receipt["artifacts"]) == 998


def test_steps_and_calls_nest_as_deep_as_they_may_and_no_deeper(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        scopes: list[Any] = [run]
        for level in range(STEP_LEVELS):
            scope = scopes[-1].step("deeper") if level % 2 else scopes[-1].call("deeper")
            scopes.append(scope.__enter__())
        for use in (scopes[-1].step, scopes[-1].call):
            with pytest.raises(AdmissionError) as caught:
                use("too deep")
            assert caught.value.code == "tree.too_deep"
        for scope in reversed(scopes[1:]):
            scope.__exit__(None, None, None)
    assert kinds(ledger).count("step") == STEP_LEVELS // 2


def test_runs_nest_as_deep_as_they_may_each_as_deep_as_it_may(ledger: Ledger) -> None:
    scopes: list[Any] = [ledger.run("outermost")]
    runs = 1
    while True:
        for level in range(STEP_LEVELS):
            last = level == STEP_LEVELS - 1
            scopes.append((scopes[-1].call("deeper") if last else scopes[-1].step("deeper")).__enter__())
        try:
            scopes.append(scopes[-1].run("inner"))
        except AdmissionError as error:
            refused = error.code
            break
        runs += 1
    assert refused == "tree.too_deep"
    for scope in reversed(scopes):
        scope.__exit__(None, None, None)
    journal = read(ledger)
    assert runs == len(journal.of("run")) >= 4
    assert [row.receipt["status"] for row in journal.of("run")] == ["completed"] * runs


# Secrets.


def test_secrets_are_cut_from_everything_that_is_recorded(ledger: Ledger) -> None:
    secret = "hunter2-\N{GREEK SMALL LETTER ALPHA}"

    def work() -> None:
        with ledger.run("work", secrets={"token": secret}) as run:
            run.artifact({"nested": [secret, {secret: secret}]}, name="json")
            run.artifact(f"text {secret}".encode(), name="bytes")
            run.artifact(f"text {secret}", name="text")
            with run.call(
                "act",
                arguments={"header": f"Bearer {secret}", "deep": {"a": [secret]}, secret: 1, "pin": "998877"},
                inline=("header", "deep"),
                secrets=("pin",),
            ) as call:
                call.result = {"echo": f"{secret} 998877"}
                call.artifact(f"{secret} 998877", name="echo")
                with call.call("inner", arguments={"again": "998877"}) as inner:
                    inner.result = "998877"
                with call.run("child") as child, child.step("part") as step:
                    step.artifact(f"{secret} 998877", name="part")
                raise ValueError(f"refused {secret} and 998877")

    with pytest.raises(ValueError, match="hunter2"):
        work()
    everything = stored_bytes(ledger)
    assert secret.encode() not in everything
    assert b"hunter2" not in everything
    assert b"998877" not in everything
    journal = read(ledger)
    intent, outcome = journal.of("intent")[0], journal.of("outcome")[-1]
    assert intent.receipt["act"]["arguments"]["header"] == "Bearer [secret:token]"
    assert decode(artifact(ledger, intent, "arguments"))["pin"] == "[secret:pin]"
    assert artifact(ledger, outcome, "error") == b"refused [secret:token] and [secret:pin]"
    assert artifact(ledger, outcome, "echo") == b"[secret:token] [secret:pin]"


def test_the_parts_of_a_secret_argument_are_cut_from_results(ledger: Ledger) -> None:
    arguments = {"card": {"number": 4111111111111111, "names": ["Ada Lovelace"]}, "flag": True}
    with ledger.run("work") as run, run.call("pay", arguments=arguments, secrets=("card", "flag")) as call:
        call.result = "paid by Ada Lovelace with 4111111111111111, True"
    everything = stored_bytes(ledger)
    assert b"4111111111111111" not in everything
    assert b"Lovelace" not in everything
    (outcome,) = read(ledger).of("outcome")
    assert artifact(ledger, outcome, "result").endswith(b", True")


def test_a_secret_too_short_to_be_cut_is_refused_and_not_ignored(ledger: Ledger) -> None:
    before = ledger.head()
    for value in ("", "abc", 1234, None, b"bytes"):
        with pytest.raises(ArgumentsError):
            ledger.run("work", secrets={"pin": value})  # type: ignore[dict-item]
    assert ledger.head() == before


@pytest.mark.parametrize(
    "name", ["password", "Passwd", "api_key", "apiKey", "access_token", "Authorization", "client-secret", "cookie"]
)
def test_a_member_called_like_a_secret_is_refused_inline_and_kept_nowhere(ledger: Ledger, name: str) -> None:
    with ledger.run("work") as run:
        for arguments, inline in (({name: "findme-1"}, (name,)), ({"a": [{"b": {name: "findme-2"}}]}, ("a",))):
            refused(ledger, run, name, arguments=arguments, inline=inline)
        with run.call("act", arguments={name: "kept"}):
            pass
    assert b"findme" not in stored_bytes(ledger)


def test_arguments_of_a_refused_call_are_kept_nowhere(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        for options in ({"inline": ("b",)}, {"resource": ""}, {"effect_key": ""}):
            refused(ledger, run, "", arguments={"a": "findme"}, **options)
        with run.call("act"):
            pass
    assert b"findme" not in stored_bytes(ledger)


def test_a_secret_changes_no_digest(ledger: Ledger) -> None:
    with ledger.run("work") as run:
        for value in ("first-secret", "other-secret"):
            with run.call("act", arguments={"password": value, "a": 1}, secrets=("password",)):
                pass
    one, other = read(ledger).of("intent")
    assert one.receipt["act"]["arguments_digest"] == other.receipt["act"]["arguments_digest"]
    assert one.receipt["act_digest"] == other.receipt["act_digest"]
