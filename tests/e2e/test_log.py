"""`ledger log`: which runs are listed, what is said of each, and that following shows what comes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import Blocked
from tests.bench.ledgers import write_ledger
from tests.reference.people import Person
from verify.options import Options
from verify.state import binding

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return Person(tmp_path_factory.mktemp("log") / "owner")


@pytest.fixture(scope="module")
def folder(owner):
    """A ledger of five runs, two of them open at the end, one inside another."""
    path = owner.home.parent / "ledger"
    assert owner("init", path).exit == 0
    with owner.open(path) as ledger:
        with (
            ledger.run("plain", actor="bot", correlation={"ticket": "A-1", "team": "ops"}) as run,
            run.call("look", tool="crm"),
        ):
            pass
        with ledger.run("costly", actor="bot", correlation={"ticket": "B-2"}, budget={"usd": "1"}) as run:
            with run.call("pay", reserve={"usd": "0.5"}) as call:
                call.use("usd_micro", 250_000)
            for _ in range(2):
                with pytest.raises(Blocked), run.call("pay more", reserve={"usd": "5"}):
                    pass
        with pytest.raises(RuntimeError), ledger.run("broken", actor="cron"):
            raise RuntimeError
        outer = ledger.run("outer", actor="cron")
        call = outer.call("start", tool="shell")
        call.__enter__()
        call.run("inner", actor="bot").__enter__()
    return path


def names(owner, folder, *arguments):
    done = owner("-L", folder, "log", "--json", *arguments)
    assert done.exit == 0, done.err
    return [row["name"] for row in done.json]


def test_every_run_is_listed_newest_first_with_its_cost_and_what_was_refused(owner, folder):
    rows = owner("-L", folder, "log", "--json").json
    assert [(row["name"], row["status"], row["refused"]) for row in rows] == [
        ("inner", "open", 0), ("outer", "open", 0), ("broken", "failed", 0), ("costly", "completed", 2), ("plain", "completed", 0),
    ]  # fmt: skip
    costly = rows[3]
    assert {"meter": "usd_micro", "value": 250_000} in costly["totals"]
    assert costly["correlation"] == {"ticket": "B-2"}
    assert rows[0]["parent"] == rows[1]["run"]
    text = owner("-L", folder, "log").out
    line = next(line for line in text.splitlines() if "costly" in line)
    assert line.split() == [
        costly["run"][7:19], "costly", "completed", *costly["opened_at"][:19].split("T"), *line.split()[5:7], "2", "bot",
        "0.25", "USD", "no", costly["receipt"][7:19],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [
        (("--status", "open"), ["inner", "outer"]),
        (("--status", "open", "--status", "failed"), ["inner", "outer", "broken"]),
        (("--agent", "bot"), ["inner", "costly", "plain"]),
        (("--agent", "b*", "--status", "completed"), ["costly", "plain"]),
        (("--agent", "b?"), []),
        (("--tool", "crm"), ["plain"]),
        (("--tool", "shell"), ["outer"]),
        (("--tool", "pay*"), ["costly"]),
        (("--tool", "pay more"), ["costly"]),
        (("--correlation", "ticket"), ["costly", "plain"]),
        (("--correlation", "ticket=A-1"), ["plain"]),
        (("--correlation", "ticket=A-1", "--correlation", "team=ops"), ["plain"]),
        (("--correlation", "ticket=A-1", "--correlation", "team=dev"), []),
        (("--since", "1h"), ["inner", "outer", "broken", "costly", "plain"]),
        (("--since", "2999-01-01"), []),
        (("--until", "2999-01-01"), ["inner", "outer", "broken", "costly", "plain"]),
        (("--until", "2026-01-01T00:00Z"), []),
        (("-n", "2"), ["inner", "outer"]),
        (("-n", "0"), []),
        (("--after", "1", "-n", "9"), ["inner", "outer", "broken", "costly"]),
    ],
)
def test_filters_let_through_what_they_say(owner, folder, arguments, listed):
    assert names(owner, folder, *arguments) == listed


def test_since_and_until_meet_at_the_moment_that_they_name(owner, folder):
    moment = owner("-L", folder, "log", "--json", "--status", "failed").json[0]["opened_at"]
    since, until = names(owner, folder, "--since", moment), names(owner, folder, "--until", moment)
    assert "broken" in since
    assert "broken" not in until
    assert since + until == names(owner, folder)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--status", "done"), "expected one of"),
        (("--since", "now"), "expected a day or moment"),
        (("--entries", "--agent", "x"), "goes without filters"),
        (("--entries", "--verify"), "goes without filters"),
        (("-f", "--verify"), "goes without --verify"),
    ],
)
def test_what_does_not_go_together_is_refused(owner, folder, arguments, said):
    done = owner("-L", folder, "log", *arguments)
    assert (done.exit, done.out) == (2, "")
    assert said in done.err


def test_verified_is_said_of_what_had_a_good_verdict_here_and_of_nothing_else(owner, tmp_path):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path, "old")

    def verified(*more, who=owner):
        return {row["name"]: row["verified"] for row in who("-L", path, "log", "--json", *more).json}

    assert verified() == {"old": False}
    assert owner("-L", path, "verify").exit == 0
    owner.record(path, "new")
    assert verified() == {"new": False, "old": True}
    assert [line.split()[-2] for line in owner("-L", path, "log").out.splitlines()[1:]] == ["no", "yes"]
    stranger = Person(tmp_path / "stranger")
    assert verified(who=stranger) == {"new": False, "old": False}
    # Under another trust, of another kind of verdict, or of a ledger whose end is another one, it does not count.
    other = tmp_path / "trust.toml"
    other.write_bytes(owner.places.trust_file.read_bytes() + b"\n")
    assert verified("--trust", other) == {"new": False, "old": False}
    (saved,) = (owner.places.state / "verified").glob("*.good")
    data = saved.read_bytes()
    for at in (30, len(data) // 2, len(data) - 1):
        saved.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert verified() == {"new": False, "old": False}, at
    saved.write_bytes(data)
    saved.chmod(0o666)
    assert verified() == {"new": False, "old": False}
    saved.chmod(0o600)
    assert verified() == {"new": False, "old": True}


def test_what_counts_as_asked_for_everything_is_what_verify_saves():
    from cli.verified import _ASKED  # the one secret that both keep

    assert {binding(None, Options(every_head=every)).asked for every in (False, True)} == set(_ASKED)
    assert binding(None, Options(bytes_only=True)).asked not in _ASKED


def test_verify_judges_each_run_and_the_exit_is_the_one_that_wins(owner, tmp_path):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    for name in ("first", "second"):
        owner.record(path, name)
    done = owner("-L", path, "log", "--verify", "--json")
    assert (done.exit, [row["verdict"] for row in done.json]) == (0, ["ok", "ok"])
    (journal,) = (path / "journal").iterdir()
    data = journal.read_bytes()
    at = data.rindex(b'"signature":"') + 20
    journal.write_bytes(data[:at] + (b"A" if data[at : at + 1] != b"A" else b"B") + data[at + 1 :])
    done = owner("-L", path, "log", "--verify", "--json")
    assert done.exit == 1
    assert done.json[0]["verdict"] == "failed"
    assert owner("-L", path, "log").exit == 0


def test_a_long_list_is_cut_for_people_and_says_so(owner, tmp_path):
    path = tmp_path / "big"
    write_ledger(path, 50 * 120 + 1, 1000)
    done = owner("-L", path, "log")
    assert len(done.out.splitlines()) == 101
    assert "the newest 100 runs; more with -n N" in done.err
    assert len(owner("-L", path, "log", "--json").json) == 120
    assert len(owner("-L", path, "log", "-n", "110").out.splitlines()) == 111
    assert "more with" not in owner("-L", path, "log", "-n", "110").err


# Following.


class Following:
    """A process that follows a ledger, read line by line."""

    def __init__(self, owner, *arguments):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_", "PYTEST"))}
        code = "import sys, cli.main; sys.argv[0] = 'ledger'; cli.main.main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], env={**env, "HOME": str(owner.home), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        self.rest = b""

    def line(self):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], 60)
            assert ready, "nothing came"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, self.process.stderr.read()
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_following_shows_runs_as_they_open_and_close(owner, tmp_path):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path, "before")
    with (
        Following(owner, "-L", path, "log", "-f") as text,
        Following(owner, "-L", path, "log", "-f", "--json", "--agent", "b*") as rows,
    ):
        assert "before" in text.line()
        with owner.open(path) as ledger:
            with ledger.run("now", actor="bot") as run:
                line = text.line()
                assert ("open" in line, "now" in line, run.id[7:19] in line) == (True, True, True)
                row = json.loads(rows.line())
                assert (row["name"], row["status"]) == ("now", "open")
            assert "completed" in text.line()
            assert json.loads(rows.line())["status"] == "completed"
            with ledger.run("other", actor="cron"):
                pass
            with ledger.run("bees", actor="bee"):
                pass
            assert json.loads(rows.line())["name"] == "bees"
        text.process.send_signal(signal.SIGINT)
        assert text.process.wait(60) == 130


def test_following_the_chain_shows_every_entry_once_and_a_ledger_that_is_cut_ends_it(owner, tmp_path):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    (journal,) = (path / "journal").iterdir()
    before = journal.read_bytes()
    with Following(owner, "-L", path, "log", "--entries", "-f", "--json") as rows:
        seen = [json.loads(rows.line())["index"]]
        owner.record(path)
        seen += [json.loads(rows.line())["index"] for _ in range(4)]
        assert seen == [0, 1, 2, 3, 4]
        journal.write_bytes(before)
        assert rows.process.wait(60) == 1
        assert b"it was cut" in rows.process.stderr.read()


# Trees.


def test_the_tree_of_an_open_run_shows_what_it_holds_so_far(owner, folder):
    done = owner("-L", folder, "tree", names_to_ids(owner, folder)["outer"])
    assert done.exit == 0
    assert [line.split("  ")[0].strip(" └─├│") for line in done.out.splitlines()] == [
        "opening outer",
        "intent start",
        "opening inner",
    ]


def names_to_ids(owner, folder):
    return {row["name"]: row["run"] for row in owner("-L", folder, "log", "--json").json}


def test_a_tree_says_what_each_act_cost_and_which_artifacts_are_gone(owner, tmp_path):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    with (
        owner.open(path) as ledger,
        ledger.run("costly", budget={"usd": "1"}) as run,
        run.call("pay", reserve={"usd": "0.5"}) as call,
    ):
        call.use("usd_micro", 250_000)
        call.artifact("x", name="kept")
        call.artifact("y", name="gone")
    assert owner("-L", path, "erase", "latest/gone", "--reason", "request").exit == 0
    out = owner("-L", path, "tree").out
    assert "0.25 USD" in out
    assert "[kept, gone erased]" in out


def test_the_chain_in_a_pipe_has_every_cell_under_its_column(owner, folder):
    rows = owner("-L", folder, "log", "--entries", "--json").json
    head, *lines = owner("-L", folder, "log", "--entries").out.splitlines()
    starts = {name: head.index(f" {name}") + 1 for name in ("receipt", "kind", "run", "recorded_at")}
    ends = dict(zip(starts, [*list(starts.values())[1:], None], strict=True))
    assert len(lines) == len(rows)
    assert {"run" in row for row in rows} == {True, False}
    for line, row in zip(lines, rows, strict=True):
        cells = {name: line[start : ends[name]].strip() for name, start in starts.items()}
        assert cells == {
            "receipt": row["receipt"][7:19],
            "kind": row["kind"],
            "run": row.get("run", "")[7:19],
            "recorded_at": row["recorded_at"].replace("T", " ")[:19],
        }


def test_a_tree_names_the_meter_and_the_limit_that_stopped_an_act(owner, folder):
    lines = owner("-L", folder, "tree", names_to_ids(owner, folder)["costly"]).out.splitlines()
    stopped = [line for line in lines if "pay more" in line]
    assert len(stopped) == 2
    for line in stopped:
        assert "budget.limit  usd_micro: limit 1.00 USD, spent 0.25 USD, reserved 0.00 USD, asked 5.00 USD" in line
