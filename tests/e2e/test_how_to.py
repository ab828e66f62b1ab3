"""The pages of docs/how-to: their blocks are carried out in order, and what they show is what happens.

In a console block `$` starts a command; the lines below it are what it prints, on either stream, where `…` stands for anything, also
for lines. `# exit N` says how it ends. A python block is the file whose name stands in the line before it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "record-a-command",
    "budget",
    "hook",
    "runbook",
    "approve",
    "erase",
    "report",
    "ask-with-sql",
    "record-from-python",
    "recover-a-run",
    "verify-somebody-elses-ledger",
    "axlr",
    "ctrlrun",
    "runx",
    "notarize",
    "run-a-notary",
)
BLOCK = re.compile(
    r"(?:^`(?P<name>[a-z_]+\.py)`:\n\n)?^```(?P<kind>console|python)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
EXPORT = re.compile(r"export ([A-Z_]+)=(\S+)")


def commands(text):
    """Yield (command, exit, expected lines) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, *expected = part.rstrip("\n").split("\n")
        stated = re.search(r"   # exit (\d+)$", line)
        yield line, int(stated[1]) if stated else 0, expected


def pattern(expected):
    """Return the expression that the whole output matches."""
    lines = [
        "(?:.*\n)*"
        if line == "…"
        else re.sub(r"\s+", r"\\s+", ".*".join(map(re.escape, line.split("…"))).replace(r"\ ", " ")) + "\\s*\n"
        for line in expected
    ]
    return re.compile("".join(lines))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
    env |= {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "PYTHONPATH": str(ROOT)}
    folder = tmp_path / "work"
    folder.mkdir()
    text = (ROOT / "docs/how-to" / f"{page}.md").read_text(encoding="utf-8")
    done = 0
    for block in BLOCK.finditer(text):
        if block["kind"] == "python":
            (folder / block["name"]).write_text(block["text"], encoding="utf-8")
            continue
        for command, code, expected in commands(block["text"]):
            exported = EXPORT.fullmatch(command)
            if exported:
                env[exported[1]] = exported[2]
                continue
            ran = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=env, text=True, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            ended = ran.returncode if ran.returncode >= 0 else 128 - ran.returncode  # bash may exec its last command
            assert ended == code, f"$ {command}\n{ran.stdout}"
            if expected:
                assert pattern(expected).fullmatch(ran.stdout.rstrip("\n") + "\n"), f"$ {command}\n{ran.stdout}"
            done += 1
    assert done >= 5


def test_each_page_is_short_and_read_whole():
    for page in PAGES:
        text = (ROOT / "docs/how-to" / f"{page}.md").read_text(encoding="utf-8")
        assert text.count("```console") + text.count("```python") == len(BLOCK.findall(text)), page
        assert text.count("\n") <= 150, page
