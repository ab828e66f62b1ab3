"""Many writers at once: processes, threads, forked workers, tasks. One chain, every receipt once."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger import Ledger
from tests.conftest import ROOT
from tests.reference.check import Journal, check_folder
from tests.reference.ledgers import (
    ended,
    fork,
    grant,
    new_ledger,
    open_ledger,
    places_of,
    quick_folder,
    verdict,
)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


def check_all(ledger: Ledger, said: list[str]) -> Journal:
    journal = check_folder(ledger.folder, signatures=False)
    assert len(said) == len(set(said))
    assert set(said) <= set(journal.ids)
    found = verdict(ledger, memory=places_of(ledger.folder.parent).register_file(ledger.origin).read_bytes())
    assert found.exit == 0, found.findings
    # The saved state is as right as one made anew.
    with open_ledger(ledger.folder.parent) as again:
        for id_ in journal.ids[:: max(1, len(journal.ids) // 50)]:
            stored = again.get(id_)
            assert again.append(stored.envelope).already
    return journal


def workers(count: int, work: Callable[[int, Callable[[str], object]], None]) -> list[str]:
    """Return what forked workers said; each must end well."""
    reader, writer = os.pipe()
    children = [
        fork(lambda number=number: work(number, lambda text: os.write(writer, text.encode() + b"\n")))  # type: ignore[misc]
        for number in range(count)
    ]
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read().split()
    assert [ended(child) for child in children] == [0] * count
    return said


def test_eight_processes_append_fifty_each(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    script = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.reference.ledgers import grant, open_ledger
ledger = open_ledger(Path(sys.argv[1]))
for _ in range(50):
    print(ledger.append(grant(ledger)).receipt)
"""
    command = [sys.executable, "-c", script, str(tmp_path), str(ROOT)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(8)]
    said = [line for process in processes for line in process.communicate()[0].decode().split()]
    assert [process.returncode for process in processes] == [0] * 8
    assert len(said) == 400
    assert len(check_all(ledger, said).rows) == 401


def test_forked_workers_share_an_opened_ledger(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    first = ledger.append(grant(ledger)).receipt

    def work(_: int, say: Callable[[str], object]) -> None:
        for _ in range(50):
            say(ledger.append(grant(ledger)).receipt)

    said = workers(8, work)
    last = ledger.append(grant(ledger)).receipt
    assert len(check_all(ledger, [first, *said, last]).rows) == 403


def test_workers_go_on_while_their_parent_closes_and_opens(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    said_by_parent = []
    reader, writer = os.pipe()

    def work() -> None:
        os.close(reader)
        for number in range(40):
            os.write(writer, ledger.append(grant(ledger)).receipt.encode() + b"\n")
            if number % 7 == 6:
                ledger.close()
                gc.collect()

    children = [fork(work) for _ in range(4)]
    os.close(writer)
    for number in range(40):
        said_by_parent.append(ledger.append(grant(ledger)).receipt)
        if number % 3 == 2:
            ledger.close()
            gc.collect()
    with os.fdopen(reader) as stream:
        said = stream.read().split()
    assert [ended(child) for child in children] == [0] * 4
    assert len(check_all(ledger, said + said_by_parent).rows) == 201


def test_a_child_forked_while_threads_append_appends_as_well(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    stop = threading.Event()
    said: list[str] = []

    def append() -> None:
        while not stop.is_set():
            said.append(ledger.append(grant(ledger)).receipt)
            ledger.get(said[-1])

    threads = [threading.Thread(target=append) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        from_children = []
        for _ in range(6):
            from_children += workers(
                2, lambda _, say: [say(ledger.append(grant(ledger)).receipt) for _ in range(5)] and None
            )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(from_children) == 60
    assert len(check_all(ledger, said + from_children).rows) == 1 + len(said) + 60


def test_a_daemon_that_closed_every_descriptor_writes_to_the_ledger_and_to_nothing_else(tmp_path: Path) -> None:
    new_ledger(tmp_path)
    script = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.reference.ledgers import ended, fork, grant, open_ledger
folder = Path(sys.argv[1])
ledger = open_ledger(folder)
ledger.append_many([grant(ledger) for _ in range(250)])
def body():
    os.closerange(3, 256)
    own = [os.open(folder / f"own-{number}", os.O_RDWR | os.O_CREAT) for number in range(20)]
    for _ in range(10):
        ledger.append(grant(ledger))
    ledger.close()
    for descriptor in own:
        os.fstat(descriptor)
sys.exit(ended(fork(body)))
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path), str(ROOT)], check=True)
    ledger = open_ledger(tmp_path)
    assert ledger.head().size == 261
    assert [path.stat().st_size for path in tmp_path.glob("own-*")] == [0] * 20
    assert (ledger.folder / "lock").stat().st_size == 0
    check_all(ledger, [])


def test_threads_share_one_ledger(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    said: list[str] = []
    failed: list[BaseException] = []

    def append() -> None:
        try:
            for number in range(25):
                mine = [
                    each.receipt for each in ledger.append_many([grant(ledger) for _ in range(1 if number % 5 else 4)])
                ]
                assert ledger.get(mine[-1]).entry.receipt == mine[-1]
                said.extend(mine)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=append) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(check_all(ledger, said).rows) == 1 + 6 * (20 + 5 * 4)


def test_the_same_envelope_by_many_at_once_is_appended_once(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelopes = [grant(ledger) for _ in range(20)]

    def work(number: int, say: Callable[[str], object]) -> None:
        for envelope in envelopes[number:] + envelopes[:number]:
            position = ledger.append(envelope)
            if not position.already:
                say(position.receipt)

    said = workers(4, work)
    assert sorted(said) == sorted(envelope.receipt_id for envelope in envelopes)
    assert len(check_all(ledger, said).rows) == 21


def test_processes_attached_to_one_run_record_into_it_while_its_driver_closes_it_afterwards(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.run("shared")

    def work(number: int, say: Callable[[str], object]) -> None:
        attached = (ledger if number % 2 else open_ledger(tmp_path)).attach(run.id)
        for _ in range(5):
            with attached.step("piece") as step, step.call("act", arguments={"worker": number}) as call:
                call.result = {"worker": number}
            assert call.outcome is not None
            say(call.outcome.receipt)
            with attached, attached.call("more") as call:
                pass
            say(call.intent)

    said = workers(4, work)
    with run, run.call("own"):
        pass
    journal = check_all(ledger, said)
    assert len(journal.of("run")) == 1
    assert len(journal.of("step")) == 20
    assert len(journal.of("intent")) == len(journal.of("outcome")) == 41
    (closed,) = journal.of("run")
    # Children are committed in the order of the chain, the opening first.
    places = {row.id: row.index for row in journal.rows}
    order = [places[child] for child in closed.receipt["children"]]
    assert order == sorted(order)
    assert ledger.open_runs() == []


def test_a_state_saved_by_one_process_is_not_spoiled_by_another(tmp_path: Path) -> None:
    """One holds what it has not saved; another reads and saves in between; then the first one goes on."""
    one, other = new_ledger(tmp_path), open_ledger(tmp_path)
    run = one.run("work")
    call = run.call("act")
    call.__enter__()
    other.look(lambda view: None)
    other.close()
    call.__exit__(None, None, None)
    one.close()
    again = open_ledger(tmp_path)
    again.close_run(run.id)
    check_all(again, [])


def test_what_one_process_has_not_saved_and_another_has_counts_once(tmp_path: Path) -> None:
    one, other = new_ledger(tmp_path), open_ledger(tmp_path)
    run = one.run("work")
    one.close()
    run.call("lost").__enter__()
    with run.call("delegate") as call:
        child = call.run("child")
        child.close()
        other.look(lambda view: None)
        other.close()
    run.close()
    journal = check_all(one, [])
    assert len(journal.of("outcome")) == 2
    assert len(journal.of("run")) == 2


def test_threads_record_calls_of_one_run(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    failed: list[BaseException] = []
    with ledger.run("threads") as run, run.step("all") as step:

        def work() -> None:
            try:
                for _ in range(10):
                    with step.call("act", arguments={"a": 1}) as call:
                        call.result = b"done"
                        with call.call("inner"):
                            pass
            except BaseException as error:  # noqa: BLE001
                failed.append(error)

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    journal = check_all(ledger, [])
    assert len(journal.of("outcome")) == 100
    (step_row,) = journal.of("step")
    assert len(step_row.receipt["children"]) == 50


def test_tasks_record_calls_of_one_run(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)

    async def work(run: object, number: int) -> None:
        async with run.call("act", arguments={"number": number}) as call:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
            call.result = {"number": number}

    async def main() -> None:
        async with ledger.run("tasks") as run, run.step("all") as step:
            await asyncio.gather(*(work(step, number) for number in range(20)))
            await asyncio.gather(*(work(run, number) for number in range(5)))

    asyncio.run(main())
    journal = check_all(ledger, [])
    assert len(journal.of("outcome")) == 25
    assert [row.receipt["status"] for row in journal.of("outcome")] == ["committed"] * 25


def test_a_cancelled_task_leaves_an_ambiguous_outcome_and_no_open_intent(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)

    async def main(times: int) -> None:
        entered = asyncio.Event()

        async def work() -> None:
            async with ledger.run("tasks") as run, run.call("act"):
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(work())
        await entered.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    for times in (1, 2, 5):
        asyncio.run(main(times))
    journal = check_all(ledger, [])
    outcomes = [(row.receipt["status"], row.receipt["reason"]) for row in journal.of("outcome")]
    assert outcomes == [("ambiguous", "act.cancelled")] * 3
    assert [row.receipt["status"] for row in journal.of("run")] == ["interrupted"] * 3
    assert ledger.open_runs() == []
