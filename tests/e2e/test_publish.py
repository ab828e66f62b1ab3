"""`ledger publish` and `ledger verify DIR` as a person types them: what is printed, what is written, how each ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LEDGER = str(Path(sys.executable).with_name("ledger"))
PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/publish.md"
ORIGIN = "example.org/ledger/e2e"


class Machine:
    """A user with a home of their own; commands run in a work folder that several may share."""

    def __init__(self, home: Path, work: Path) -> None:
        self.home, self.work = home, work
        for folder in (home, work):
            folder.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
        self.environment = {**kept, "HOME": str(home), "NO_COLOR": "1"}

    def __call__(self, *words: str, code: int = 0) -> str:
        ran = subprocess.run(
            [LEDGER, *words], cwd=self.work, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code, (words, ran.returncode, ran.stdout, ran.stderr)
        assert "Traceback" not in ran.stderr
        self.said = ran.stderr
        return ran.stdout

    @property
    def trust(self) -> Path:
        return self.home / ".config/receipt-ledger/trust.toml"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return the folder of an owner with a ledger that holds one run and was published."""
    folder = tmp_path_factory.mktemp("begun")
    machine = Machine(folder / "owner", folder / "work")
    machine("init", "--origin", ORIGIN)
    machine("run", "--", "true")
    shown = machine("publish", "site")
    assert f"origin     {ORIGIN}" in shown
    assert re.search(r"^new        \d+ entries in 2 files$", shown, re.MULTILINE)
    assert "ledger verify site" in machine.said
    return folder


@pytest.fixture
def owner(begun, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    return Machine(tmp_path / "owner", tmp_path / "work")


def found(verdict):
    return {check["name"]: check for check in verdict["checks"]}


def test_the_next_command_that_publishing_names_verifies_the_tree(owner):
    assert "ok  site: everything asked for was established" in owner("verify", "site")
    assert "nothing" in owner("publish", "site")


def test_json_of_a_publication_is_one_object_that_agrees_with_the_head(owner):
    first = json.loads(owner("publish", "fresh", "--json"))
    head = json.loads(owner("head", "--json"))
    assert {name: first[name] for name in ("origin", "size", "root")} == {
        name: head[name] for name in ("origin", "size", "root")
    }
    assert (first["folder"], first["before"], first["made"], first["collected"]) == ("fresh", 0, 2, 0)
    assert (owner.work / "fresh/checkpoint").read_text("utf-8") == head["note"]
    owner("run", "--", "true")
    second = json.loads(owner("--json", "publish", "fresh"))
    assert (second["before"], second["made"]) == (first["size"], 2)


def test_no_receipt_is_published(owner):
    owner("run", "--", "echo", "a-secret-word")
    owner("publish", "site")
    published = b"".join(path.read_bytes() for path in (owner.work / "site").rglob("*") if path.is_file())
    assert b"a-secret-word" not in published
    assert b"payload" not in published
    assert b"kind" not in published


def test_another_machine_verifies_a_copy_with_the_trust_file_alone(owner, tmp_path):
    other = Machine(tmp_path / "other", tmp_path / "elsewhere")
    shutil.copytree(owner.work / "site", other.work / "copy")
    verdict = json.loads(other("verify", "copy", "--json", code=3))
    assert found(verdict)["log key"]["code"] == "trust.log_key_unpinned"
    assert "ask the ledger's owner for it" in found(verdict)["log key"]["message"]
    verdict = json.loads(other("verify", "copy", "--trust", str(owner.trust), "--json"))
    assert verdict["exit"] == 0
    assert verdict["coverage"]["count"] == verdict["head"]["size"]
    for name in ("receipts", "seals", "trees", "issuers"):
        assert (found(verdict)[name]["status"], found(verdict)[name]["asked"]) == ("not_checked", False)
    assert any("no receipts" in note for note in verdict["notes"])


def test_a_machine_that_saw_more_of_the_ledger_says_that_the_tree_is_shorter(owner, tmp_path):
    other = Machine(tmp_path / "other", tmp_path / "elsewhere")
    shutil.copytree(owner.work / "site", other.work / "old")
    owner("run", "--", "true")
    owner("publish", "site")
    trust = ("--trust", str(owner.trust))
    for name in ("old", "new"):
        if name == "new":
            shutil.copytree(owner.work / "site", other.work / "new")
        other("verify", name, *trust)
    assert "head.shorter" in other("verify", "old", *trust, code=1)
    other("verify", "new", *trust)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda tree: next(tree.glob("tile/0/000.p/*")).unlink(), "tile.missing"),
        (lambda tree: next(tree.glob("tile/entries/000.p/*")).unlink(), "tile.missing"),
        (lambda tree: next(tree.glob("tile/0/000.p/*")).write_bytes(b"short"), "tile.malformed"),
        (lambda tree: (tree / "checkpoint").write_bytes(b""), "head.malformed"),
    ],
)
def test_a_damaged_tree_does_not_hold_and_the_place_is_named(owner, damage, code):
    damage(owner.work / "site")
    verdict = json.loads(owner("verify", "site", "--json", code=1))
    places = [check["where"] for check in verdict["checks"] if check.get("code") == code]
    assert places[0].startswith("tile/") == (code != "head.malformed")


def test_a_link_in_a_tree_is_not_followed(owner):
    tile = next((owner.work / "site").glob("tile/0/000.p/*"))
    tile.rename(owner.work / "moved")
    tile.symlink_to(owner.work / "moved")
    assert "tile.malformed" in owner("verify", "site", code=1)


def test_what_cannot_be_published_is_refused_with_a_reason(owner, tmp_path):
    owner("publish", code=2)
    owner("publish", ".", code=2)
    assert "receipts would be served" in owner.said
    owner("publish", ".ledger/public", code=2)
    (owner.work / "full").mkdir()
    (owner.work / "full/index.html").write_text("hello")
    owner("publish", "full", code=2)
    assert "neither empty nor a published tree" in owner.said
    stranger = Machine(tmp_path / "stranger", tmp_path / "nowhere")
    stranger("publish", "site", code=5)
    stranger("init")
    stranger("publish", str(owner.work / "other"))
    owner("publish", "other", code=2)
    assert "holds the tree of" in owner.said


def test_a_ledger_that_was_cut_does_not_take_back_what_it_published(owner):
    shutil.copytree(owner.work / ".ledger", owner.work / "backup")
    owner("run", "--", "true")
    owner("publish", "site")
    owner("publish", "site", "-L", "backup", code=1)
    assert "it was cut, or is an old copy" in owner.said
    owner("verify", "site")


def commands(page):
    for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                command, _, code = line[2:].partition("# exit ")
                yield command.split(), int(code or 0)


def test_the_commands_of_the_page_do_what_it_says(owner):
    (owner.work / "none.toml").write_text("")
    ran = 0
    for (program, *words), code in commands(PAGE):
        assert program == "ledger"
        owner(*words, code=code)
        ran += 1
    assert ran == 5
