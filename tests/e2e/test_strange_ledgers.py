"""Ledgers that no honest writer makes, through every command that reads: each comes to an end, escapes what it prints, and never says ok."""

from __future__ import annotations

import json
import os

import pytest

from ledger.digest import digest
from tests.reference.build import Builder, party
from tests.reference.people import Person

READING = (
    ["log"], ["log", "--entries"], ["log", "--json"], ["tree"], ["tree", "--json"], ["show", "latest"], ["head"],
    ["artifact", "latest/stdout"], ["artifact", digest(b"x")], ["verify"], ["verify", "--json"], ["verify", "latest"],
)  # fmt: skip
EVIL = "[bold red]x[/] :smile: \u202eabc\u2066 \u200b \u2028 \ufeff \U000e0041 [link=http://x]y[/link] [/]"


@pytest.fixture
def reader(tmp_path):
    return Person(tmp_path / "reader")


def laid(ledger, path):
    """Return the folder of a ledger that was built, with no derived file."""
    (path / "journal").mkdir(parents=True)
    (path / "journal/0000000000000000.jsonl").write_bytes(ledger.journal())
    return path


def started():
    ledger = Builder(origin="ledger.invalid/strange")
    ledger.header()
    ledger.commit()
    ledger.opening()
    return ledger


def read(reader, folder, *more):
    """Run every reading command; return how each ended. None says a word that a terminal would obey."""
    ended = {}
    for command in (*READING, *more):
        done = reader("-L", folder, *command)
        assert "Traceback" not in done.err, (command, done.err)
        if "--json" not in command:
            assert all(each.isprintable() or each == "\n" for each in done.out + done.err), command
        ended[" ".join(command)] = done
    return ended


def test_names_that_play_with_the_terminal_are_printed_as_escapes_and_never_obeyed(reader, tmp_path):
    ledger = started()
    run = ledger.opening(EVIL, actor={"agent": EVIL, "user": EVIL, "model": EVIL}, correlation={"k[red]": EVIL})
    act = {
        "name": EVIL, "tool": {"name": EVIL, "version": EVIL, "digest": "unknown"}, "access": "write",
        "arguments_digest": "unknown", "resource": EVIL, "environment": EVIL,
    }  # fmt: skip
    kept = {"digest": digest(b"x"), "media_type": "text/plain", "name": EVIL, "size_bytes": 1, "salted": False}
    intent = ledger.intent(act=act)
    outcome = ledger.outcome(intent, artifacts=[kept])
    ledger.step(outcome, name=EVIL)
    ledger.decision(act=act)
    ledger.run(run)
    ledger.grant(issuer=party("issuer", EVIL))
    ledger.commit()
    more = (["show", run], ["show", intent], ["show", outcome], ["tree", run], ["artifact", f"{outcome}/{EVIL}"])
    ended = read(reader, laid(ledger, tmp_path / "evil"), *more)
    assert "\\u202eabc" in ended["log"].out
    assert "[bold red]x[/] :smile: \\u202eabc" in ended[f"tree {run}"].out
    assert EVIL in json.loads(ended["log --json"].out)[0]["name"]
    assert {ended["verify"].exit, ended["verify latest"].exit} == {3}


def test_a_tree_whose_receipts_are_committed_twice_at_each_level_comes_to_an_end(reader, tmp_path):
    ledger = started()
    below = [ledger.call(), ledger.call()]
    for level in range(40):
        below = [ledger.step(*below, name=f"{level}a"), ledger.step(*below, name=f"{level}b")]
    ledger.run()
    ledger.commit()
    ended = read(reader, laid(ledger, tmp_path / "braid"))
    assert {ended["verify"].exit, ended["verify --json"].exit, ended["verify latest"].exit} == {1}
    assert "tree.repeated" in ended["verify"].out
    assert ended["tree"].out.count("committed above as well") == 2 * 40


def test_a_tree_that_is_far_too_deep_comes_to_an_end(reader, tmp_path):
    ledger = started()
    below = ledger.call()
    for level in range(300):
        below = ledger.step(below, name=str(level))
    ledger.run()
    ledger.commit()
    ended = read(reader, laid(ledger, tmp_path / "deep"))
    assert {ended["verify"].exit, ended["verify latest"].exit} == {1}
    assert "tree.too_deep" in ended["verify"].out
    assert "deeper than a receipt tree may be" in ended["tree"].out


def test_digests_that_look_like_paths_name_nothing(reader, tmp_path):
    ledger = started()
    ledger.outcome(ledger.intent(), payload=None)
    ledger.run()
    ledger.commit()
    folder = laid(ledger, tmp_path / "paths")
    for reference in (
        "../../etc/passwd",
        "/etc/passwd",
        "sha256:../../etc/passwd",
        "latest/../../etc/passwd",
        "",
        "/",
        "sha256:",
    ):
        done = reader("-L", folder, "artifact", reference)
        assert (done.exit in {2, 5}, done.out) == (True, ""), reference
        assert "root:" not in done.err


@pytest.mark.parametrize("name", ["fifo", "device", "sparse"])
def test_a_segment_from_which_reading_never_ends_is_damage(reader, tmp_path, name):
    ledger = started()
    ledger.run()
    ledger.commit()
    folder = laid(ledger, tmp_path / name)
    segment = folder / "journal/0000000000000000.jsonl"
    if name == "sparse":
        os.truncate(segment, 1 << 40)
    else:
        segment.unlink()
        os.mkfifo(segment) if name == "fifo" else segment.symlink_to("/dev/zero")
    ended = read(reader, folder)
    assert {done.exit for done in ended.values()} == {1}


def test_a_tail_longer_than_any_line_is_damage_for_the_verifier_and_for_the_writer(tmp_path):
    owner = Person(tmp_path / "owner")
    folder = tmp_path / "ledger"
    assert owner("init", folder).exit == 0
    segment = folder / "journal/0000000000000000.jsonl"
    with segment.open("ab") as file:
        file.write(b'{"entry":{"envelope":"' + b"a" * (2 << 20))
    before = segment.read_bytes()
    assert owner("verify", folder).exit == 1
    assert owner("-L", folder, "run", "--", "true").exit == 125
    assert segment.read_bytes() == before
