"""Long ledgers at the command line: processes, time limits, interrupts, what is new, ranges; on a ledger of many short segments."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
from pathlib import Path

import pytest

from cli.watch import Watch
from ledger.line import HEAD_PREFIX
from tests.reference.people import Person

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import ledgers as bench

RECEIPTS, PER_COMMIT, PER_SEGMENT = 3_000, 50, 250


def split(folder, source, receipts):
    """Write the journal of a ledger of one segment as one of many short ones, up to so many receipts."""
    (folder / "journal").mkdir(parents=True)
    block, first, index = [], 0, 0
    for line in source.splitlines(keepends=True):
        block.append(line)
        if not line.startswith(HEAD_PREFIX):
            index += 1
        elif index - first >= PER_SEGMENT or index >= receipts:
            (folder / "journal" / f"{first:016d}.jsonl").write_bytes(b"".join(block))
            block, first = [], index
        if index >= receipts and not block:
            return


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    bench.write_ledger(folder, RECEIPTS, PER_COMMIT)
    return (folder / "journal" / f"{0:016d}.jsonl").read_bytes()


@pytest.fixture
def folder(tmp_path, source):
    split(tmp_path / "ledger", source, RECEIPTS)
    return tmp_path / "ledger"


@pytest.fixture
def auditor(tmp_path):
    home = tmp_path / "home"
    (home / ".config/receipt-ledger").mkdir(parents=True)
    (home / ".config/receipt-ledger/trust.toml").write_bytes(bench.trust())
    return Person(home)


def segment(folder, number):
    return sorted((folder / "journal").iterdir())[number]


def states(auditor):
    return {path.suffix[1:]: path for path in (auditor.places.state / "verified").glob("*")}


def without(done, *names):
    value = done.json
    value["checks"] = [check for check in value["checks"] if check["name"] not in {"earlier entries", *names}]
    return value


# Processes.


def damage_nothing(folder):
    """Leave it as it is."""


def damage_byte(folder):
    path = segment(folder, 7)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def damage_order(folder):
    segment(folder, 4).rename(folder / "journal/kept")
    segment(folder, 5).rename(segment(folder, 4).with_name(f"{PER_SEGMENT * 4:016d}.jsonl"))


def damage_tail(folder):
    path = segment(folder, -1)
    path.write_bytes(path.read_bytes()[:-300])


def damage_middle(folder):
    path = segment(folder, 3)
    path.write_bytes(path.read_bytes()[:-300])


def damage_repeat(folder):
    lines = segment(folder, 6).read_bytes().splitlines(keepends=True)
    segment(folder, 6).write_bytes(b"".join((*lines, *lines[:3])))


DAMAGES = [
    (damage_nothing, 0), (damage_byte, 1), (damage_order, 1), (damage_tail, 0), (damage_middle, 1), (damage_repeat, 1),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "exit_"), DAMAGES, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("options", [(), ("--bytes-only",), ("--every-head",)], ids=" ".join)
def test_several_processes_print_the_verdict_of_one(folder, auditor, damage, exit_, options):
    damage(folder)
    one = auditor.verify(folder, "--jobs", "1", *options)
    auditor.forget()
    several = auditor.verify(folder, "--jobs", "3", *options)
    assert one.exit == several.exit == exit_, one.out
    assert one.out == several.out


def test_workers_that_cannot_start_cost_time_and_nothing_else(folder, auditor, monkeypatch):
    one = auditor.verify(folder, "--jobs", "1")
    auditor.forget()
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    several = auditor.verify(folder, "--jobs", "2")
    assert several.out == one.out
    assert several.exit == 0


def test_no_worker_outlives_the_command(folder, auditor):
    assert auditor.verify(folder, "--jobs", "3").exit == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


# Time.


def test_a_verification_that_ends_in_time_says_up_to_where_and_goes_on_from_there(folder, auditor):
    whole = auditor.verify(folder)
    auditor.forget()
    sizes = []
    for _ in range(100):
        done = auditor.verify(folder, "--max-seconds", "0", "--resume", "--jobs", "1")
        if done.exit != 3:
            break
        assert "coverage.time_ended" in done.codes
        assert done.json["coverage"]["from"] == 0
        assert done.json["head"]["size"] == done.json["coverage"]["to"]
        sizes.append(done.json["coverage"]["to"])
        assert auditor.memory(bench.ORIGIN) is None
    assert sizes == [PER_SEGMENT * number for number in range(1, RECEIPTS // PER_SEGMENT)]
    assert (done.exit, whole.exit) == (0, 0)
    assert without(done) == without(whole)
    assert done.check("earlier entries")["status"] == "not_checked"
    assert set(states(auditor)) == {"good"}


def test_without_resume_a_verification_begins_anew(folder, auditor):
    assert auditor.verify(folder, "--max-seconds", "0").exit == 3
    damage_byte(folder)
    first = segment(folder, 0)
    first.write_bytes(first.read_bytes().replace(b'"amount":500', b'"amount":501', 1))
    assert auditor.verify(folder).exit == 1


def test_a_saved_state_lies_with_the_user_and_is_closed_to_others(folder, auditor):
    before = sorted(folder.rglob("*"))
    auditor.verify(folder, "--max-seconds", "0")
    assert sorted(folder.rglob("*")) == before
    path = states(auditor)["stopped"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o666)
    done = auditor.verify(folder, "--resume")
    assert done.exit == 0
    assert any("somebody else may have written it" in note for note in done.json["notes"])


@pytest.mark.parametrize("what", ["trust", "options", "bytes", "cut", "segment", "state"])
def test_a_state_that_does_not_fit_is_dropped_and_said(folder, auditor, what):
    for _ in range(3):
        assert auditor.verify(folder, "--max-seconds", "0", "--resume", "--jobs", "1").exit == 3
    options, exit_ = [], 0
    match what:
        case "trust":
            path = auditor.home / ".config/receipt-ledger/trust.toml"
            path.write_bytes(path.read_bytes() + b"# changed\n")
        case "options":
            options = ["--every-head"]
        case "bytes":
            path = segment(folder, 2)
            data = path.read_bytes()
            at = data.rindex(b'{"entry"') + 60
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            exit_ = 1
        case "cut":
            path = segment(folder, 2)
            path.write_bytes(path.read_bytes()[:-1])
            exit_ = 1
        case "segment":
            segment(folder, 1).unlink()
            exit_ = 1
        case "state":
            path = states(auditor)["stopped"]
            path.write_bytes(path.read_bytes()[:-1])
    done = auditor.verify(folder, "--resume", *options)
    assert done.exit == exit_, done.out
    assert any(note.startswith("no earlier verification is gone on from") for note in done.json["notes"])
    assert "coverage.earlier" not in done.codes


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_leaves_a_state_to_go_on_from(folder, auditor):
    """Interrupts come at any moment, between opening a file and having it too; the process would end with that."""
    whole = auditor.verify(folder)
    auditor.forget()

    def alarm(*_):
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for tenths in range(1, 400):
            signal.setitimer(signal.ITIMER_REAL, tenths * 0.005)
            done = auditor("verify", folder, "--json", "--jobs", "1")
            signal.setitimer(signal.ITIMER_REAL, 0)
            if "stopped after entry" in done.err:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert done.exit == 130
    assert done.out == ""
    assert "--resume" in done.err
    assert "stopped" in states(auditor)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    done = auditor.verify(folder, "--resume")
    assert done.exit == 0
    assert without(done, "memory") == without(whole, "memory")
    assert "coverage.earlier" in done.codes


def test_the_second_interrupt_is_at_once():
    with Watch(None) as watch:
        assert not watch.ended
        signal.raise_signal(signal.SIGINT)
        assert watch.ended
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


# What is new.


def test_only_what_is_new_since_the_last_good_verdict_is_judged(tmp_path, source, auditor):
    split(tmp_path / "short", source, 1_000)
    folder = tmp_path / "ledger"
    shutil.copytree(tmp_path / "short", folder)
    assert auditor.verify(folder).exit == 0
    again = auditor.verify(folder, "--since", "last")
    assert again.exit == 3  # nothing was judged, and that is never ok
    assert again.json["coverage"] == {"from": 1_000, "to": 1_000, "count": 0}
    assert again.check("coverage")["code"] == "coverage.nothing_new"
    shutil.rmtree(folder)
    split(folder, source, RECEIPTS)
    done = auditor.verify(folder, "--since", "last")
    assert done.exit == 0
    assert done.json["coverage"] == {"from": 1_000, "to": RECEIPTS, "count": RECEIPTS - 1_000}
    assert done.check("receipts")["count"] == RECEIPTS - 1_000
    assert done.check("earlier entries")["asked"] is False
    assert done.json["head"]["size"] == RECEIPTS
    after = auditor.verify(folder, "--since", "last")
    assert after.json["coverage"]["from"] == RECEIPTS


def test_what_does_not_hold_among_what_is_new_is_found(tmp_path, source, auditor):
    split(tmp_path / "ledger", source, 1_000)
    assert auditor.verify(tmp_path / "ledger").exit == 0
    shutil.rmtree(tmp_path / "ledger")
    split(tmp_path / "ledger", source, RECEIPTS)
    damage_byte(tmp_path / "ledger")
    assert auditor.verify(tmp_path / "ledger", "--since", "last").exit == 1


def test_a_change_of_what_was_good_needs_another_root_and_is_found_where_anything_is_new(tmp_path, source, auditor):
    split(tmp_path / "ledger", source, 1_000)
    assert auditor.verify(tmp_path / "ledger").exit == 0
    shutil.rmtree(tmp_path / "ledger")
    other = tmp_path / "other"
    bench.write_ledger(other, RECEIPTS, 25)  # another history under the same keys
    split(tmp_path / "ledger", (other / "journal" / f"{0:016d}.jsonl").read_bytes(), RECEIPTS)
    done = auditor.verify(tmp_path / "ledger", "--since", "last")
    assert any("no earlier verification" in note for note in done.json["notes"])
    whole = auditor.verify(tmp_path / "ledger")
    assert done.exit == whole.exit


def test_a_verdict_that_is_not_good_is_not_remembered_as_good(folder, auditor, tmp_path):
    (auditor.home / ".config/receipt-ledger/trust.toml").unlink()
    assert auditor.verify(folder).exit == 3
    assert "good" not in states(auditor)
    done = auditor.verify(folder, "--since", "last")
    assert any("none is saved" in note for note in done.json["notes"])
    assert done.json["coverage"]["from"] == 0


# Ranges.


def test_a_range_is_judged_alone(folder, auditor):
    done = auditor.verify(folder, "--range", "300:340")
    assert done.exit == 0
    assert done.json["coverage"] == {"from": 300, "to": 340, "count": 40}
    assert done.check("inclusion")["status"] == "ok"
    assert done.check("chain")["count"] == 39
    assert done.check("trees") | {"message": ""} == {
        "name": "trees", "status": "not_checked", "code": "check.not_asked", "count": 0, "asked": False, "message": "",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["5:5", "9:3", "a:b", "1", ":", "-1:4", "1:2:3", "01:2"])
def test_what_is_no_range_is_usage(folder, auditor, text):
    assert auditor("verify", folder, f"--range={text}").exit == 2


def test_a_range_beyond_the_head_is_absent_and_a_changed_one_fails(folder, auditor):
    assert auditor.verify(folder, "--range", f"{RECEIPTS - 5}:{RECEIPTS + 1}").exit == 5
    path = segment(folder, 1)
    path.write_bytes(path.read_bytes().replace(b'"amount":500', b'"amount":501', 1))
    assert auditor.verify(folder, "--range", f"{PER_SEGMENT}:{PER_SEGMENT + 40}").exit == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--range", "0:2", "--all"),
        ("--range", "0:2", "--resume"),
        ("--since", "ever"),
        ("--jobs", "0"),
        ("--range", "0:2", "--since", "last"),
    ],
)
def test_what_does_not_go_together_is_usage(folder, auditor, options):
    assert auditor("-L", folder, "verify", *options).exit == 2


def test_text_and_json_exit_alike(folder, auditor):
    assert auditor.verify(folder).exit == 0
    for options in (("--max-seconds", "0"), ("--since", "last"), ("--range", "0:3")):
        assert auditor("verify", folder, *options).exit == auditor.verify(folder, *options).exit


def test_the_verdict_is_one_json_object_whatever_is_done_besides(folder, auditor):
    done = auditor.verify(folder, "--max-seconds", "0", "--jobs", "2")
    assert json.loads(done.out)["status"] == "not_established"
