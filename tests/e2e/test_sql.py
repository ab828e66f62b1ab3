"""`ledger sql` and `ledger index` as processes: exits, outputs, proofs, several ledgers, and asking while others append."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference import ledgers
from reference.shell import Ended, User, files_of

from cli.main import main
from cli.text import console, error_console
from ledger import Ledger, Places
from ledger.index.schema import PUBLIC
from ledger.storage.journal import segment_path


@dataclass(frozen=True)
class Here:
    """The command line in this process: a process for each of many questions would cost most of the time of these tests."""

    user: User

    def __call__(self, *arguments, stdin=b""):
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        environment = self.user.environment()
        with pytest.MonkeyPatch.context() as patch:
            for name in os.environ.keys() - environment.keys():
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.chdir(self.user.work)
            for name, value in (("argv", ["ledger", *map(str, arguments)]), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            for each in (console, error_console):
                each.cache_clear()
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = ended.code or 0
            finally:
                for each in (console, error_console):
                    each.cache_clear()
        return Ended(code, *(each.detach().getvalue() for each in (out, err)))


COUNT = "SELECT count(*) FROM receipts"


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    someone = User(tmp_path_factory.mktemp("user"))
    for name in ("A", "B"):
        assert someone("init", name).exit == 0
    assert someone("-L", "A", "run", "--", "sh", "-c", "exit 3").exit == 3
    return Here(someone)


def test_the_installed_command_asks(user):
    asked = user.user("-L", "A", "sql", "--format", "csv", COUNT)
    assert (asked.exit, asked.out) == (0, "count_star()\n5\n")
    shown = user.user.in_terminal(
        "-L", "A", "sql", "SELECT act, exit_code FROM calls", env={"NO_COLOR": "1", "TERM": "dumb"}
    ).out
    assert shown.split()[:4] == ["act", "exit_code", "sh", "3"]
    assert "verified" in shown


def test_outputs_say_the_same(user):
    query = "SELECT act, exit_code, NULL AS nothing, started, receipt FROM calls"
    table = user("-L", "A", "sql", query)
    assert (table.exit, table.out.splitlines()[1].split()[:3]) == (0, ["sh", "3", "NULL"])
    assert "signer pinned" in table.err
    (row,) = csv.DictReader(io.StringIO(user("-L", "A", "sql", "--format", "csv", query).out))
    (value,) = user("-L", "A", "sql", "--format", "json", query).json
    assert {name: "" if each is None else str(each) for name, each in value.items()} == row
    assert value["started"].endswith("Z")
    whole = user("--json", "-L", "A", "sql", query).json
    assert whole["rows"] == [value]
    (said,) = whole["ledgers"]
    assert (said["status"], said["signer_pinned"], said["coverage"]["to"], said["behind"]) == ("ok", True, 5, 0)


def test_exit_codes(user, tmp_path):
    def ended(*arguments, **options):
        return user("-L", "A", "sql", *arguments, **options).exit

    assert ended("SELECT 1") == 0
    assert ended("--fail-on-rows", "SELECT 1 WHERE false") == 0
    assert ended("--fail-on-rows", "SELECT 1") == 6
    assert ended("SELEC 1") == 2
    assert ended("COPY (SELECT 1) TO 'x.csv'") == 2
    assert ended("--timeout", "0.3", "SELECT count(*) FROM range(100000000) a, range(100000000) b") == 3
    assert ended("-") == 2
    assert user("-L", "nowhere", "sql", "SELECT 1").exit == 5
    trust = tmp_path / "trust.toml"
    trust.write_text("")
    assert ended("--trust", trust, "SELECT 1") == 3
    accepted = ("--accept", "trust.log_key_unpinned", "--accept", "trust.issuer_unpinned")
    assert ended("--trust", trust, *accepted, "SELECT 1") == 0
    pinned = (user.user.home / ".config/receipt-ledger/trust.toml").read_text()
    key = next(line for line in pinned.splitlines() if line.startswith("log_key"))
    trust.write_text(pinned.replace(key, key[:-2] + ("0" if key[-2] != "0" else "1") + '"'))
    assert ended("--trust", trust, "SELECT 1") == 4
    assert not (user.user.work / "x.csv").exists()


def test_a_query_from_a_file_with_values(user):
    (user.user.work / "q.sql").write_text("SELECT count(*) AS n FROM runs WHERE status = $status", encoding="utf-8")
    for words, stdin in ((("-",), b"select '\xff'"), (("-f", "bytes.sql"), b"")):
        (user.user.work / "bytes.sql").write_bytes(b"select '\xff'")
        refused = user("-L", "A", "sql", *words, stdin=stdin)
        assert (refused.exit, "is not UTF-8" in refused.err) == (2, True), refused.err
    assert user("-L", "A", "sql", "-f", "q.sql", "-p", "status=failed", "--format", "json").json == [{"n": 1}]
    assert user("-L", "A", "sql", "-f", "q.sql", "-p", "status='; --", "--format", "json").json == [{"n": 0}]
    assert user("-L", "A", "sql", "-", stdin=b"SELECT 7").out.split() == ["7", "7"]


def test_proofs_verify_without_the_ledger(user, tmp_path):
    asked = user(
        "-L", "A", "sql", "--prove", tmp_path / "p", "SELECT receipt FROM calls UNION SELECT receipt FROM runs"
    )
    assert asked.exit == 0
    proofs = list((tmp_path / "p").iterdir())
    assert len(proofs) == 2
    assert user("verify", *proofs).exit == 0
    assert user("-L", "A", "sql", "--prove", tmp_path / "p", "SELECT 1 AS receipt").exit == 2
    assert user("-L", "A", "sql", "--prove", tmp_path / "p", "SELECT run FROM runs").exit == 2


def test_several_ledgers_in_one_query(user):
    both = user(
        "sql",
        "-L",
        "A",
        "-L",
        "B",
        "--format",
        "json",
        "SELECT ledger, count(*) AS n FROM receipts GROUP BY 1 ORDER BY n",
    )
    assert (both.exit, [row["n"] for row in both.json]) == (0, [1, 5])
    assert both.err.count("signer pinned") == 2
    before = user("-L", "A", "-L", "B", "sql", "--format", "json", "SELECT count(DISTINCT ledger) AS n FROM receipts")
    assert before.json == [{"n": 2}]
    refused = user("-L", "A", "-L", "B", "log")
    assert (refused.exit, "got 2 ledgers, expected one" in refused.err) == (2, True)
    assert user("-L", "A", "-L", "B", "log", "-L", "A").exit == 0
    assert user("sql", "-L", "A", "-L", "A", "SELECT 1").exit == 2


def test_parquet_carries_head_and_range(user):
    assert user("-L", "A", "sql", "--format", "parquet", "-o", "r.parquet", "SELECT * FROM receipts").exit == 0
    path = str(user.user.work / "r.parquet")
    assert duckdb.execute("SELECT count(*) FROM read_parquet(?)", [path]).fetchone() == (5,)
    found = dict(duckdb.execute("SELECT key, value FROM parquet_kv_metadata(?)", [path]).fetchall())
    assert (found[b"ledger.0.head_size"], found[b"ledger.0.end_index"]) == (b"5", b"5")


def test_a_flipped_byte_is_said_and_exits_1(user):
    assert user("init", "C").exit == 0
    assert user("-L", "C", "run", "--", "true").exit == 0
    assert user("-L", "C", "index").exit == 0
    path = segment_path(user.user.work / "C", 0)
    data = bytearray(path.read_bytes())
    data[data.rindex(b'"status"') + 12] ^= 1
    path.write_bytes(data)
    asked = user("-L", "C", "sql", "--format", "csv", COUNT)
    assert asked.exit == 1
    assert "DOES NOT HOLD" in asked.err
    assert int(asked.out.split()[-1]) < 5
    found = user("-L", "C", "sql", "--format", "csv", "SELECT code FROM findings")
    assert (found.exit, len(found.out.split()) > 1) == (1, True)


def test_a_folder_that_may_not_be_written_is_not(user):
    folder = user.user.work / "B"
    before = files_of(folder)
    stranger = Here(User(user.user.base / "stranger"))
    assert stranger("-L", folder, "sql", "SELECT 1").exit == 3
    assert {name for name in files_of(folder) if name not in before} <= set()


def test_asking_while_four_processes_append_loses_and_invents_nothing(tmp_path):
    ledger = ledgers.new_ledger(tmp_path)
    someone = User(tmp_path)

    def append():
        own = Ledger.open(ledger.folder, places=ledger.places)
        for _ in range(25):
            own.append(ledgers.grant(own))

    children = [ledgers.fork(append) for _ in range(4)]
    seen, ended, start = [], 0, time.monotonic()
    from cli.indexing import bring_up_to_date
    from cli.options import Shared
    from ledger.index.session import open_session

    while ended < 4 and time.monotonic() - start < 60:
        before = ledger.head().size
        source = bring_up_to_date(ledger.folder, Shared(user=ledger.places), jobs=1).source
        with open_session([source], asked_at="2026-12-24 00:00:00") as connection:
            (row,) = connection.execute("""
                SELECT count(*), max("index") + 1, any_value(s.head_size), any_value(s.status)
                FROM receipts AS r JOIN index_state AS s USING (ledger)
            """).fetchall()
        assert row[0] == row[1] == row[2] >= before
        assert row[3] == "not_established"  # the signer is not pinned, and nothing else is wrong
        seen.append(row[0])
        ended = sum(Path(f"/proc/{child}/stat").read_text().split()[2] == "Z" for child in children)
    assert [ledgers.ended(child) for child in children] == [0] * 4
    source = bring_up_to_date(ledger.folder, Shared(user=ledger.places), jobs=1).source
    with open_session([source], asked_at="2026-12-24 00:00:00") as connection:
        assert connection.execute(COUNT).fetchone() == (101,)
    assert seen == sorted(seen)
    assert someone  # the home of its own stays unused


def test_appending_while_a_query_runs_neither_waits_nor_shows(tmp_path):
    from cli.indexing import bring_up_to_date
    from cli.options import Shared
    from ledger.index.session import open_session

    ledger = ledgers.new_ledger(tmp_path)
    options = Shared(user=Places.under(tmp_path / "home"))
    source = bring_up_to_date(ledger.folder, options, jobs=1).source
    with open_session([source], asked_at="2026-12-24 00:00:00") as held:
        ledger.append(ledgers.grant(ledger))
        assert bring_up_to_date(ledger.folder, options, jobs=1).done == "caught up"
        assert held.execute(COUNT).fetchone() == (1,)
    with open_session([source], asked_at="2026-12-24 00:00:00") as fresh:
        assert fresh.execute(COUNT).fetchone() == (2,)


def test_index_says_what_it_did(user):
    assert user("-L", "B", "index", "--rebuild", "--json").json["done"] == "made"
    said = json.loads(user("-L", "B", "index", "--json").raw)
    assert (said["done"], said["state"]["head"]["size"]) == ("nothing", 1)
    (user.user.work / "B/index.duckdb").unlink()
    assert user("-L", "B", "sql", "--format", "csv", COUNT).out.split()[-1] == "1"


def test_tables_are_exported_with_their_head_and_again_over_the_old_files(user, tmp_path):
    for _ in range(2):
        assert user("-L", "A", "export", "parquet", "-o", tmp_path / "out").exit == 0
    names = {path.stem for path in (tmp_path / "out").iterdir()}
    assert names == {each.name for each in PUBLIC}
    path = str(tmp_path / "out/calls.parquet")
    assert duckdb.execute("SELECT act, exit_code FROM read_parquet(?)", [path]).fetchall() == [("sh", 3)]
    columns = {row[0] for row in duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall()}
    assert "arguments" not in columns
    found = dict(duckdb.execute("SELECT key, value FROM parquet_kv_metadata(?)", [path]).fetchall())
    assert (found[b"ledger.0.head_size"], found[b"ledger.0.signer_pinned"]) == (b"5", b"True")
    assert user("-L", "A", "export", "parquet", "-o", tmp_path / "one", "calls", "--arguments").exit == 0
    (shown,) = duckdb.execute("SELECT arguments FROM read_parquet(?)", [str(tmp_path / "one/calls.parquet")]).fetchone()
    assert json.loads(shown)["argv"] == ["sh", "-c", "exit 3"]
    assert user("-L", "A", "export", "parquet", "-o", tmp_path / "one", "nothing").exit == 2
