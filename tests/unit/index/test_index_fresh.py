"""An index is made from verified bytes, caught up, and made anew where anything is not what it was."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reference import ledgers

from cli.asked import exit_of_answer, footers
from cli.indexing import bring_up_to_date
from cli.options import Shared
from cli.rebuilt import Snapshot
from cli.trustfile import pin_ledger
from ledger import Ledger
from ledger.errors import DamagedError, NotFoundError, StorageError
from ledger.index import connect
from ledger.index.session import open_session
from ledger.storage.places import Places
from verify.errors import TrustError


class Asked:
    """One look at a ledger through its index."""

    def __init__(self, ledger, places=None):
        options = Shared(user=places or ledger.places)
        self.indexed = bring_up_to_date(ledger.folder, options, jobs=1)
        self.done = self.indexed.done
        source = self.indexed.source
        with open_session([source], asked_at="2026-12-24 00:00:00") as connection:
            (self.footer,) = footers(connection, [source], ())
            self.exit = exit_of_answer([self.footer], rows=False)
            self.receipts = [
                row[0] for row in connection.execute("SELECT receipt FROM receipts ORDER BY index").fetchall()
            ]
            self.findings = connection.execute("SELECT code FROM findings").fetchall()


@pytest.fixture
def ledger(tmp_path):
    made = ledgers.new_ledger(tmp_path)
    pin_ledger(made.header, made.get(next(iter(made.entries())).entry.receipt).entry.receipt, made.places.trust_file)
    return made


def grants(ledger, count=3):
    ledger.append_many([ledgers.grant(ledger) for _ in range(count)])


def ids(ledger):
    return [each.entry.receipt for each in ledger.entries()]


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_an_index_is_made_once_then_only_caught_up(ledger):
    grants(ledger)
    first = Asked(ledger)
    assert (first.done, first.exit, first.receipts) == ("made", 0, ids(ledger))
    assert Asked(ledger).done == "nothing"
    grants(ledger, 5)
    later = Asked(ledger)
    assert (later.done, later.exit, later.receipts) == ("caught up", 0, ids(ledger))
    assert later.footer.head_size == later.footer.end_index == 9


def test_a_signer_who_is_not_pinned_is_exit_3_and_the_rows_are_there(tmp_path):
    ledger = ledgers.new_ledger(tmp_path)
    asked = Asked(ledger)
    assert asked.exit == 3
    assert not asked.footer.log_pinned
    assert asked.receipts == ids(ledger)


def test_a_broken_rule_hides_no_doubt_and_is_none(ledger):
    with ledger.run("work", budget={"usd": "0.01"}) as run, run.call("pay", reserve={"usd": "0.01"}) as call:
        call.use("usd_micro", 50_000)
    asked = Asked(ledger)
    assert (asked.footer.exit, asked.exit) == (6, 0)
    ledger.places.trust_file.unlink()
    asked = Asked(ledger)
    assert (asked.footer.exit, asked.footer.doubt, asked.exit) == (6, 3, 3)


def test_another_trust_is_another_verdict(ledger):
    assert Asked(ledger).exit == 0
    ledger.places.trust_file.unlink()
    assert (Asked(ledger).done, Asked(ledger).exit) == ("made", 3)


@pytest.mark.parametrize("harm", ["delete", "cut", "swap", "flip", "empty", "folder"])
def test_an_index_that_is_not_the_one_that_was_made_is_made_anew(ledger, tmp_path, harm):
    grants(ledger)
    path = Asked(ledger).indexed.source.path
    assert path == ledger.folder / "index.duckdb"
    if harm == "delete":
        path.unlink()
    elif harm == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif harm == "swap":
        other = ledgers.new_ledger(tmp_path / "other")
        shutil.copyfile(Asked(other).indexed.source.path, path)
    elif harm == "flip":
        flip(path, 5000)
    elif harm == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        path.mkdir()
    if harm == "folder":
        with pytest.raises(StorageError):
            Asked(ledger)
        return
    again = Asked(ledger)
    assert (again.done, again.exit, again.receipts) == ("made", 0, ids(ledger))


def test_an_index_of_another_version_is_made_anew(ledger, monkeypatch):
    Asked(ledger)
    monkeypatch.setattr("ledger.index.stamp._MADE_BY", "another")
    assert Asked(ledger).done == "made"


def test_a_journal_in_which_one_byte_changed_is_exit_1_and_what_stands_before_it_is_answered(ledger):
    grants(ledger)
    grants(ledger)
    expected = ids(ledger)
    Asked(ledger)
    path = ledgers.last_segment(ledger)
    data = path.read_bytes()
    flip(path, data.rindex(b'"grantee"') + 12)
    asked = Asked(ledger)
    assert asked.exit == 1
    assert asked.findings
    assert asked.receipts == expected[:4]
    flip(path, data.rindex(b'"grantee"') + 12)
    assert (Asked(ledger).exit, Asked(ledger).receipts) == (0, expected)


def test_a_byte_that_changed_in_the_first_entry_leaves_nothing_to_ask(ledger):
    grants(ledger)
    Asked(ledger)
    path = ledgers.last_segment(ledger)
    flip(path, path.read_bytes().index(b'"nonce":"') + 12)
    try:
        asked = Asked(ledger)
    except DamagedError:
        return
    assert (asked.exit, asked.receipts) == (1, [])


def test_a_byte_that_changed_while_the_journal_grew_is_found(ledger):
    grants(ledger)
    expected = ids(ledger)
    Asked(ledger)
    path = ledgers.last_segment(ledger)
    data = path.read_bytes()
    grants(ledger)
    flip(path, data.index(b'"grantee"') + 12)
    asked = Asked(ledger)
    assert asked.exit == 1
    assert asked.receipts == expected[:1]


def test_a_commit_that_never_ended_is_not_there_and_harms_nothing(ledger):
    grants(ledger)
    expected = ids(ledger)
    path = ledgers.last_segment(ledger)
    whole = path.read_bytes()
    grants(ledger, 1)
    path.write_bytes(path.read_bytes()[: len(whole) + 100])
    ledger.places.register_file(ledger.origin).unlink()
    asked = Asked(ledger)
    assert (asked.exit, asked.receipts) == (0, expected)


def test_bytes_that_no_crash_leaves_after_the_last_head_are_exit_1(ledger):
    grants(ledger)
    expected = ids(ledger)
    Asked(ledger)
    with ledgers.last_segment(ledger).open("ab") as file:
        file.write(b"garbage\n")
    asked = Asked(ledger)
    assert (asked.exit, asked.receipts) == (1, expected)


def test_a_last_head_without_its_line_feed_counts(ledger):
    grants(ledger)
    expected = ids(ledger)
    path = ledgers.last_segment(ledger)
    os.truncate(path, path.stat().st_size - 1)
    asked = Asked(ledger)
    assert (asked.exit, asked.receipts, asked.footer.end_index) == (0, expected, 4)


def test_a_journal_shorter_than_remembered_is_exit_1(ledger):
    grants(ledger)
    expected = ids(ledger)
    size = ledgers.last_segment(ledger).stat().st_size
    grants(ledger)
    Asked(ledger)
    os.truncate(ledgers.last_segment(ledger), size)
    asked = Asked(ledger)
    assert (asked.exit, asked.receipts) == (1, expected)
    assert ("head.shorter",) in asked.findings


def test_what_is_appended_between_the_look_at_the_journal_and_anything_else_accuses_nobody(ledger, monkeypatch):
    grants(ledger)
    expected = ids(ledger)
    of = Snapshot.of

    def then_append(folder):
        found = of(folder)
        grants(ledger, 1)
        return found

    monkeypatch.setattr("cli.refreshing.Snapshot.of", then_append)
    asked = Asked(ledger)
    assert (asked.exit, asked.receipts, asked.findings) == (0, expected, [])
    asked = Asked(ledger)
    assert (asked.exit, len(asked.receipts), asked.findings) == (0, len(expected) + 1, [])


def test_a_memory_that_nothing_was_compared_with_is_compared_by_the_next_one(ledger, monkeypatch):
    grants(ledger)
    path = ledgers.last_segment(ledger)
    before = path.read_bytes(), path.stat().st_mtime_ns
    of = Snapshot.of

    def then_append_and_cut(folder):
        found = of(folder)
        grants(ledger, 1)
        path.write_bytes(before[0])
        os.utime(path, ns=(before[1], before[1]))
        return found

    monkeypatch.setattr("cli.refreshing.Snapshot.of", then_append_and_cut)
    Asked(ledger)
    monkeypatch.setattr("cli.refreshing.Snapshot.of", of)
    asked = Asked(ledger)
    assert (asked.exit, ("head.shorter",) in asked.findings) == (1, True)


def test_a_receipt_that_fails_is_left_out_and_the_others_stay(tmp_path):
    from reference.build import Builder

    built = Builder()
    built.header()
    good = built.grant()
    built.grant(acts=None, unknown_member=1)
    after = built.grant()
    built.add("novelty", text="of a later version")
    built.commit()
    folder = tmp_path / "ledger"
    (folder / "journal").mkdir(parents=True)
    (folder / "journal/0000000000000000.jsonl").write_bytes(built.journal())
    asked = Asked(type("L", (), {"folder": folder, "places": Places.under(tmp_path / "home")}))
    assert asked.exit == 1
    assert asked.receipts == [built.rows[0].id, good, after]
    assert asked.footer.left_out == 2
    assert {code for (code,) in asked.findings} >= {"receipt.malformed", "format.unknown"}


def test_what_stands_twice_is_there_once(tmp_path):
    from reference.build import Builder

    built = Builder()
    built.header()
    built.grant(nonce="a" * 32, issued_at="2026-11-30T09:00:00.000Z")
    built.grant(nonce="a" * 32, issued_at="2026-11-30T09:00:00.000Z")
    built.commit()
    folder = tmp_path / "ledger"
    (folder / "journal").mkdir(parents=True)
    (folder / "journal/0000000000000000.jsonl").write_bytes(built.journal())
    asked = Asked(type("L", (), {"folder": folder, "places": Places.under(tmp_path / "home")}))
    assert asked.exit == 1
    assert asked.receipts == [row.id for row in built.rows[:2]]


def test_what_comes_a_second_time_after_the_index_was_made_is_found(tmp_path):
    from reference.build import Builder

    def grown(*nonces):
        built = Builder()
        built.header()
        for nonce in nonces:
            built.grant(nonce=nonce * 32, issued_at="2026-11-30T09:00:00.000Z")
            built.commit()
        return built

    folder = tmp_path / "ledger"
    journal = folder / "journal/0000000000000000.jsonl"
    journal.parent.mkdir(parents=True)
    asking = type("L", (), {"folder": folder, "places": Places.under(tmp_path / "home")})
    before, after = grown("a", "b"), grown("a", "b", "c", "a")
    journal.write_bytes(before.journal())
    assert Asked(asking).exit == 3
    assert after.journal().startswith(before.journal())
    with journal.open("ab") as file:
        file.write(after.journal()[len(before.journal()) :])
    asked = Asked(asking)
    assert asked.exit == 1
    assert ("receipt.repeated",) in asked.findings
    assert asked.receipts == [row.id for row in after.rows[:4]]


def test_a_strangers_folder_is_not_written_into(ledger, tmp_path):
    grants(ledger)
    before = sorted(ledger.folder.rglob("*"))
    stranger = Places.under(tmp_path / "stranger")
    asked = Asked(ledger, stranger)
    assert (asked.exit, asked.receipts) == (3, ids(ledger))
    assert sorted(ledger.folder.rglob("*")) == before
    assert asked.indexed.source.path.is_relative_to(tmp_path / "stranger")


def test_trust_that_lies_in_the_ledger_vouches_for_nothing(ledger):
    inside = ledger.folder / "trust.toml"
    inside.write_bytes(ledger.places.trust_file.read_bytes())
    with pytest.raises(TrustError, match="vouch"):
        bring_up_to_date(ledger.folder, Shared(trust=inside, user=ledger.places))


def test_what_a_stranger_put_into_the_folder_is_not_believed(ledger, tmp_path):
    grants(ledger)
    Asked(ledger)
    copy = tmp_path / "copy"
    shutil.copytree(ledger.folder, copy)
    there = Ledger.open(copy, places=ledger.places)
    assert Asked(there).done == "made"


def test_a_build_that_is_killed_leaves_the_old_index_and_nothing_else_for_long(ledger):
    grants(ledger)
    Asked(ledger)
    grants(ledger)

    def build():
        import ledger.index.build

        ledger.index.build.Build.finish = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        Asked(ledger_)

    ledger_ = ledger
    assert ledgers.ended(ledgers.fork(build)) == -signal.SIGKILL
    assert any(path.name.endswith(".tmp") for path in ledger.folder.iterdir())
    asked = Asked(ledger)
    assert (asked.exit, asked.receipts) == (0, ids(ledger))
    assert [path.name for path in ledger.folder.iterdir() if "index" in path.name] == ["index.duckdb"]


def test_connect_gives_what_was_made_and_nothing_that_is_not_ours(ledger):
    with pytest.raises(NotFoundError):
        connect(ledger.folder, places=ledger.places)
    grants(ledger)
    Asked(ledger)
    with connect(ledger.folder, places=ledger.places) as connection:
        assert connection.execute("SELECT head_size FROM index_state").fetchone() == (4,)
        with pytest.raises(Exception, match="disabled"):
            connection.execute("SELECT * FROM read_text('/etc/passwd')")
    grants(ledger)
    with connect(ledger.folder, places=ledger.places) as connection:
        assert connection.execute("SELECT end_index FROM index_state").fetchone() == (4,)
    flip(ledgers.last_segment(ledger), 50)
    ledgers.last_segment(ledger).rename(ledger.folder / "journal/0000000000000001.jsonl")
    with pytest.raises((StorageError, NotFoundError)):
        connect(ledger.folder, places=ledger.places)
