"""The command line as a user types it: what is printed where, how each command ends, and how things are named."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from ledger import Ledger, Places
from ledger.canonical import encode
from ledger.checkpoint import head_of
from ledger.envelope import print_envelope
from ledger.receipt import Grant, print_receipt
from tests.reference.ledgers import common
from tests.reference.people import at_home, run
from tests.reference.shell import Ended, User, files_of

ID = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Owner(User):
    """A user whose work folder holds a ledger, and what making it printed."""

    made: Ended
    ran: Ended
    nested: Ended
    runs: list[dict[str, Any]]


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    """Return the owner of a ledger that holds a run which ended with exit 7, and one with a run inside."""
    user = User(tmp_path_factory.mktemp("owner"))
    return Owner(
        user.base,
        user("init", "L", "--origin", "example.org/l"),
        user("-L", "L", "run", "--correlation", "ticket=4711", "--agent", "bot", "--", "sh", "-c", "echo hi; exit 7"),
        user("-L", "L", "run", "--", "sh", "-c", "ledger run -- echo inner >&2"),
        user("-L", "L", "log", "--json").json,
    )


@pytest.fixture(scope="module")
def places(owner):
    local = owner.home / ".local"
    return Places(
        keys=local / "share/receipt-ledger/keys",
        state=local / "state/receipt-ledger",
        config=owner.home / ".config/receipt-ledger",
    )


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return User(tmp_path_factory.mktemp("stranger"))


def in_this_process(user, *arguments):
    """Run a command without starting a process, where many are to be run."""
    user.environment()  # makes the folders
    with at_home(user.home, user.work):
        return run([str(each) for each in arguments])


def test_init_prints_origin_keys_pin_and_the_next_command(owner):
    assert owner.made.exit == 0
    lines = dict(line.split(None, 1) for line in owner.made.out.splitlines())
    assert set(lines) == {"ledger", "origin", "keys", "pinned"}
    assert lines["origin"] == "example.org/l"
    assert lines["keys"].startswith(str(owner.home / ".local/share/receipt-ledger/keys/"))
    assert lines["pinned"].startswith(str(owner.home / ".config/receipt-ledger/trust.toml"))
    assert owner.made.err == "next:    ledger -L L run -- echo hello\n"
    assert not [path for path in (owner.work / "L").rglob("*") if "key" in path.name or path.suffix == ".pem"]
    again = owner("init", "L")
    assert (again.exit, again.out) == (2, "")
    made = owner("init", "--json", "J").json
    assert made["origin"].startswith("ledger.invalid/")
    assert len(made["origin"]) == len("ledger.invalid/") + 26


def test_a_command_that_fails_is_one_closed_run_that_verifies(owner):
    assert (owner.ran.exit, owner.ran.out, owner.ran.err) == (7, "hi\n", "")
    (row,) = [row for row in owner.runs if row["name"] == "sh" and row["status"] == "failed"]
    assert (row["kind"], row["reason"], row["agent"], row["correlation"]) == (
        "run",
        "command.exit",
        "bot",
        {"ticket": "4711"},
    )
    assert {"index", "receipt", "run", "recorded_at"} <= set(row)
    for id_ in (row["receipt"], row["run"]):
        verdict = owner("-L", "L", "verify", id_, "--json")
        assert (verdict.exit, verdict.json["status"], verdict.json["subject"]) == (0, "ok", row["receipt"])
    whole = owner("-L", "L", "verify", "--all", "--json")
    assert (whole.exit, whole.json["exit"], whole.json["coverage"]["count"]) == (0, 0, 13)
    assert whole.json["trust"]["source"].endswith("trust.toml")
    raw = owner("-L", "L", "show", row["receipt"], "--raw")
    assert "sha256:" + hashlib.sha256(raw.raw).hexdigest() == row["receipt"]
    assert owner("-L", "L", "artifact", row["receipt"] + "/stdout").raw == b"hi\n"
    stored = owner("-L", "L", "artifact", row["run"] + "/stdout", "--stored")
    named = owner("-L", "L", "artifact", row["run"] + "/stdout", "--json").json
    assert "sha256:" + hashlib.sha256(stored.raw).hexdigest() == named["digest"]
    by_digest = owner("-L", "L", "artifact", named["digest"][7:19], "-o", "out.txt")
    assert (by_digest.exit, by_digest.out, (owner.work / "out.txt").read_bytes()) == (0, "", b"hi\n")


def test_shared_options_work_before_and_after_the_command_and_the_nearer_one_wins(owner, tmp_path):
    shutil.copy(owner.home / ".config/receipt-ledger/trust.toml", owner.work / "mine.toml")
    (owner.work / "none.toml").write_bytes(b"")
    before = in_this_process(owner, "-L", "L", "--json", "--trust", "mine.toml", "verify")
    after = in_this_process(owner, "verify", "-L", "L", "--json", "--trust", "mine.toml")
    assert before == after
    assert (after.exit, after.json["trust"]["source"]) == (0, "mine.toml")
    assert in_this_process(owner, "--trust", "mine.toml", "verify", "--trust", "none.toml", "L").exit == 3
    assert (
        in_this_process(owner, "-L", "nowhere", "head", "-L", "L").out == in_this_process(owner, "-L", "L", "head").out
    )
    assert owner("verify", "L", env={"LEDGER_TRUST": str(owner.work / "none.toml")}).exit == 3


def test_the_ledger_is_the_one_named_else_that_of_the_environment_else_the_nearest_upwards(owner, tmp_path):
    deep = owner.work / "project/a/b"
    deep.mkdir(parents=True)
    assert owner("init", cwd=deep.parents[1]).exit == 0
    near, far = owner("head", cwd=deep), owner("-L", "L", "head")
    assert (near.exit, far.exit) == (0, 0)
    assert head_of(near.raw).origin.startswith("ledger.invalid/")
    assert head_of(far.raw).origin == "example.org/l"
    env = {"LEDGER_DIR": str(owner.work / "L")}
    assert owner("head", cwd=deep, env=env).out == far.out
    assert owner("-L", "../../.ledger", "head", cwd=deep, env=env).out == near.out
    nowhere = owner("log", "--json", cwd=tmp_path)
    assert (nowhere.exit, nowhere.out) == (5, "")
    assert "ledger init" in nowhere.err


def test_hints_print_the_command_as_it_was_called(owner, stranger, tmp_path):
    for name in ("ledger", "receipt-ledger"):
        lost = owner("log", name=name, cwd=tmp_path)
        assert f"make one with: {name} init" in lost.err
        other = "receipt-ledger" if name == "ledger" else "\tledger"
        assert other not in lost.err
        pin = stranger("verify", owner.work / "L", name=name)
        assert pin.exit == 3
        assert pin.err.splitlines()[-1] == f"  {name} trust add {owner.work / 'L'}"
    assert owner("--version", name="receipt-ledger").out.startswith("receipt-ledger ")


def test_a_copy_on_another_machine_is_exit_3_with_the_line_that_pins_it_and_0_after_it(owner, tmp_path):
    copy = tmp_path / "a copy, with 'quotes'"
    shutil.copytree(owner.work / "L", copy)
    before = files_of(copy)
    there = User(tmp_path / "there")
    first = there("verify", copy)
    assert first.exit == 3
    assert "trust.log_key_unpinned" in first.out
    assert "Compare with the ledger's owner" in first.err
    line = first.err.splitlines()[-1].strip()
    keys = owner("-L", "L", "keys", "show", "--json").json
    assert {keys["log"], keys["issuer"], keys["origin"]} <= set(first.err.split())
    subprocess.run(line, shell=True, check=True, env=there.environment(), cwd=there.work, stdout=subprocess.DEVNULL)
    assert there("verify", copy, "--json").codes >= {"head.first_seen"}
    second = there("verify", copy, "--json")
    assert (second.exit, "head.first_seen" in second.codes) == (0, False)
    for command in (["log"], ["log", "--entries"], ["tree"], ["show", "latest"], ["head"], ["verify", "latest"]):
        assert in_this_process(there, "-L", copy, *command).exit == 0
    assert files_of(copy) == before


def altered(folder, to):
    shutil.copytree(folder, to)
    path = to / "journal/0000000000000000.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"exit_code":7', b'"exit_code":0', 1))
    return to


def shorter(folder, to):
    shutil.copytree(folder, to)
    path = to / "journal/0000000000000000.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    return to


def test_every_verdict_exits_alike_in_text_and_as_json(owner, stranger, tmp_path):
    ledger = owner.work / "L"
    keys = owner("-L", "L", "keys", "show", "--json").json
    other = tmp_path / "other.toml"
    other.write_text(f'[[origin]]\nname = "example.org/l"\nlog_key = "{keys["next log"]}"\n')
    broken = tmp_path / "broken.toml"
    broken.write_text("[[origin")
    (tmp_path / "random").write_bytes(os.urandom(1000))
    (tmp_path / "empty").write_bytes(b"")
    row = owner.runs[-1]
    shutil.copytree(ledger, tmp_path / "vouching")
    shutil.copy(owner.home / ".config/receipt-ledger/trust.toml", tmp_path / "vouching")
    cases = [
        (owner, [ledger], 0),
        (owner, ["-L", ledger, row["run"][7:15]], 0),
        (owner, [altered(ledger, tmp_path / "altered")], 1),
        (owner, ["-L", tmp_path / "altered", row["run"]], 1),
        (owner, [shorter(ledger, tmp_path / "shorter")], 1),
        (owner, ["-L", tmp_path / "shorter", row["run"]], 1),
        (owner, [ledger, "--trust", broken], 2),
        (owner, [ledger, "--trust", tmp_path / "no.toml"], 2),
        (owner, [tmp_path / "vouching", "--trust", tmp_path / "vouching/trust.toml"], 2),
        (owner, ["-L", tmp_path / "vouching", "latest", "--trust", tmp_path / "vouching/trust.toml"], 2),
        (owner, [ledger, "--require", "nonsense"], 2),
        (stranger, [ledger], 3),
        (owner, [ledger, "--require", "counter-seal=2"], 4),
        (owner, [ledger, "--trust", other], 4),
        (owner, ["-L", ledger, "00000000"], 5),
        (owner, ["-L", ledger, "not-there.json"], 5),
        (owner, [tmp_path], 5),
        (owner, ["/dev/null"], 5),
        (owner, [tmp_path / "random"], 5),
        (owner, [tmp_path / "empty"], 5),
        (owner, [ledger / "journal/0000000000000000.jsonl"], 5),
        (owner, [ledger, tmp_path / "altered", "/dev/null"], 1),
    ]
    started: set[int] = set()
    for user, arguments, expected in cases:
        text = in_this_process(user, "verify", *arguments)
        first = expected not in started
        started.add(expected)
        value = user("--json", "verify", *arguments) if first else in_this_process(user, "--json", "verify", *arguments)
        assert (text.exit, value.exit) == (expected, expected), (arguments, text.out, text.err, value.out)
        assert "Traceback" not in text.err + value.err
        if expected == 2:
            assert (text.out, value.out) == ("", "")
            assert text.err
            continue
        found = value.json if isinstance(value.json, list) else [value.json]
        assert all(each["schema"] == "receipt-ledger.verdict/v1" for each in found)
        assert expected in {each["exit"] for each in found}
        if expected == 1:
            assert (
                any(
                    check.get("where") or check.get("message")
                    for check in found[-1]["checks"]
                    if check["status"] == "failed"
                )
                or len(found) > 1
            )


def test_a_journal_file_a_listing_and_a_bare_receipt_are_never_called_altered(owner):
    for name, arguments in (
        ("show.json", ["show", "latest", "--json"]),
        ("log.json", ["log", "--json"]),
        ("verdict.json", ["verify", "--json"]),
        ("raw.json", ["show", "latest", "--raw"]),
        ("envelope.json", ["show", "latest", "--envelope"]),
    ):
        (owner.work / name).write_bytes(owner("-L", "L", *arguments).raw)
    exits = {
        name: in_this_process(owner, "verify", name).exit
        for name in ("show.json", "log.json", "verdict.json", "raw.json", "envelope.json")
    }
    assert exits == {"show.json": 5, "log.json": 5, "verdict.json": 5, "raw.json": 3, "envelope.json": 0}
    assert owner("verify", "-", stdin=(owner.work / "envelope.json").read_bytes()).exit == 0


def test_short_prefixes_name_a_receipt_and_ambiguous_ones_are_listed(owner, places):
    folder = owner.work / "twins"
    with Ledger.create(folder, places=places) as ledger:
        grant = Grant(**common(ledger, action="given", grantee="bot", acts=("read",)))
        payload = print_receipt(grant)
        start = payload.index(b'"nonce":"') + len(b'"nonce":"')
        seen: dict[str, bytes] = {}
        for number in range(1_000_000):
            made = payload[:start] + b"%032x" % number + payload[start + 32 :]
            digits = hashlib.sha256(made).hexdigest()[:8]
            if digits in seen:
                break
            seen[digits] = made
        twins = [
            ledger.seal(grant.model_copy(update={"nonce": made[start : start + 32].decode()}))
            for made in (seen[digits], made)
        ]
    lines = b"".join(print_envelope(each) + b"\n" for each in twins)
    appended = owner("-L", "twins", "append", "-", "--json", stdin=lines)
    ids = [row["receipt"] for row in appended.json]
    assert [row["already"] for row in appended.json] == [False, False]
    assert {id_[7:15] for id_ in ids} == {digits}
    for command in (["show"], ["verify"], ["verify", "--json"], ["tree"]):
        both = owner("-L", "twins", *command, digits)
        assert (both.exit, both.out) == (2, "")
        assert sorted(ID.findall(both.err)) == sorted(ids)
    unlike = next(count for count in range(8, 64) if ids[0][7 : 7 + count] != ids[1][7 : 7 + count])
    assert owner("-L", "twins", "show", ids[0][7 : 7 + unlike], "--raw").raw == twins[0].payload
    assert owner("-L", "twins", "show", f"sha256:{digits[:7]}").exit == 2
    again = owner("-L", "twins", "append", "-", stdin=lines)
    assert (again.exit, again.out.count("already there")) == (0, 2)


def test_latest_is_the_newest_run_that_no_other_started(owner):
    assert owner.nested.exit == 0
    inner, outer = owner.runs[0], owner.runs[1]
    assert (inner["name"], inner["parent"]) == ("echo", outer["run"])
    assert owner("-L", "L", "show", "latest", "--json").json["receipt_id"] == outer["receipt"]
    tree = owner("-L", "L", "tree", "--json").json
    assert tree["receipt"] == outer["receipt"]
    assert "run echo" in json.dumps(tree)
    text = owner("-L", "L", "tree").out.splitlines()
    assert [line.lstrip("│└├─ ").split("  ")[0] for line in text] == ["run sh", "sh", "run echo", "echo"]


def test_log_is_an_array_newest_first_and_entries_are_the_chain_oldest_first(owner):
    assert [row["opened_at"] for row in owner.runs] == sorted((row["opened_at"] for row in owner.runs), reverse=True)
    entries = in_this_process(owner, "-L", "L", "log", "--entries", "--json").json
    assert [row["index"] for row in entries] == list(range(13))
    assert entries[0]["kind"] == "header"
    assert all({"index", "receipt", "kind", "recorded_at"} <= set(row) for row in entries)
    assert in_this_process(owner, "-L", "L", "log", "--entries", "--after", "10", "--json").json == entries[11:]
    first = in_this_process(owner, "-L", "L", "log", "-n", "1", "--json").json
    # Whether it is verified changes with every verdict.
    assert [{**row, "verified": False} for row in first] == owner.runs[:1]
    assert in_this_process(owner, "-L", "L", "log", "-n", "-1").exit == 2
    assert in_this_process(owner, "-L", "L", "log", "-n", "9" * 30).exit == 2


def test_only_results_are_on_standard_output(owner):
    assert (owner.nested.out, owner.nested.err) == ("", "inner\n")
    for arguments, code in (
        (["show", "zzzz"], 2),
        (["tree", "0" * 8], 5),
        (["artifact", "latest/none"], 5),
        (["frobnicate"], 2),
    ):
        refused = owner("-L", "L", *arguments)
        assert (refused.exit, refused.out) == (code, ""), refused
        assert refused.err
    assert owner("run", "--frobnicate").exit == 125
    assert owner("-L", "L", "verify", "latest").err == ""


def test_colours_are_for_terminals_and_can_be_turned_off(owner):
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
    assert "\x1b" not in owner("-L", "L", "verify").out
    assert colour.search(owner.in_terminal("-L", "L", "verify").out)
    assert not colour.search(owner.in_terminal("-L", "L", "verify", env={"NO_COLOR": "1"}).out)
    listed = re.sub(r"\x1b\[[0-9;]*m", "", owner.in_terminal("-L", "L", "log", columns=80).out).splitlines()
    assert all(len(line.rstrip()) <= 80 for line in listed)
    for row in owner.runs:
        assert any(row["run"][7:19] in line and row["receipt"][7:19] in line for line in listed)


def test_completion_is_offered_and_completes_commands(owner):
    script = owner("--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert (script.exit, "complete -o default -F _ledger_completion ledger" in script.out) == (0, True)
    done = owner(env={"_LEDGER_COMPLETE": "complete_bash", "COMP_WORDS": "ledger ver", "COMP_CWORD": "1"})
    assert done.out.split() == ["verify"]
    done = owner(
        name="receipt-ledger",
        env={"_RECEIPT_LEDGER_COMPLETE": "complete_bash", "COMP_WORDS": "receipt-ledger ar", "COMP_CWORD": "1"},
    )
    assert done.out.split() == ["artifact"]


def test_a_full_disk_behind_the_output_is_no_verdict_and_a_reader_who_leaves_is_no_error(owner):
    with open("/dev/full", "wb") as full:
        assert owner("-L", "L", "verify", stdout=full).exit == 2
        assert owner("-L", "L", "show", "latest", "--raw", stdout=full).exit == 2
    shell = [
        "bash",
        "-c",
        "set -o pipefail; ledger -L L verify --json | true; echo $?; ledger -L L frobnicate 2>&1 >/dev/null | true",
    ]
    done = subprocess.run(shell, cwd=owner.work, env=owner.environment(), capture_output=True, text=True, check=False)
    assert done.stdout.strip() in {"0", "141"}
    assert "Traceback" not in done.stderr
    assert done.returncode in {2, 120, 141}


def test_help_of_every_command_fits_a_terminal_and_names_the_exit_codes(owner):
    top = owner("--help")
    assert "Exit codes: 0 established" in top.out
    assert "..." not in top.out.replace("[ARGS]...", "")
    assert all(len(line) <= 80 for line in top.out.splitlines())


def test_a_trust_file_names_who_is_believed_and_nothing_else(owner, tmp_path):
    user = User(tmp_path)
    key = in_this_process(user, "keys", "new", "ann.pem")
    assert (key.exit, (user.work / "ann.pem").stat().st_mode & 0o777) == (0, 0o600)
    assert in_this_process(user, "keys", "new", "ann.pem").exit == 2
    added = in_this_process(
        user, "trust", "add", "ann", "--key", key.out.strip(), "--role", "approver", "--as", "release"
    )
    assert (added.exit, added.out) == (0, f"approver  {key.out.strip()}  ann\n")
    assert in_this_process(user, "trust", "add", "bob", "--key", key.out.strip()).exit == 2
    assert in_this_process(user, "trust", "add", "bob", "--key", "nonsense").exit == 2
    assert "expected a ledger's folder" in in_this_process(user, "trust", "add", "bob").err
    listed = in_this_process(user, "trust", "list", "--json").json
    assert [(pin["role"], pin["name"]) for pin in listed["pins"]] == [("approver", "ann")]
    assert in_this_process(user, "trust", "remove", "bob").exit == 2
    assert in_this_process(user, "trust", "remove", "ann").exit == 0
    assert in_this_process(user, "trust", "list", "--json").json["pins"] == []


def test_what_is_appended_elsewhere_is_refused_and_nothing_of_it_is_kept(owner):
    assert owner("init", "other").exit == 0
    envelope = owner("-L", "L", "show", "latest", "--envelope").raw
    head = owner("-L", "other", "head").out
    refused = owner("-L", "other", "append", "-", stdin=envelope + b"\n")
    assert (refused.exit, refused.out) == (2, "")
    assert owner("-L", "other", "append", "-", stdin=encode({"a": 1})).exit == 2
    assert owner("-L", "other", "append", "-", "--json").json == []
    assert owner("-L", "other", "head").out == head
