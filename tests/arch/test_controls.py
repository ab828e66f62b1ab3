"""The control map names commands, tables, columns and questions that exist."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "explanation/controls.md").read_text(encoding="utf-8")
SQL = (DOCS / "reference/sql.md").read_text(encoding="utf-8")
CLI = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
COMMANDS = set(re.findall(r"^## `ledger ([a-z]+(?: [a-z]+)?)", CLI, re.MULTILINE))
OPTIONS = set(re.findall(r"--[a-z-]+", CLI))
QUESTIONS = set(re.findall(r"^`([a-z-]+)`$", SQL, re.MULTILINE))
NAMES = set(re.findall(r"^(?:### |\| )`([a-z_]+)`", SQL, re.MULTILINE))
WORDS = {"blocked", "resolution"}
"""A status and a kind of receipt, which stand in rows."""


def quoted():
    return re.findall(r"`([^`]+)`", PAGE)


def test_every_command_and_option_exists():
    named = [text for text in quoted() if text.startswith("ledger ")]
    assert len(named) >= 12
    for text in named:
        words = text.split()[1:3]
        assert words[0] in COMMANDS or " ".join(words) in COMMANDS, text
        assert set(re.findall(r"--[a-z-]+", text)) <= OPTIONS, text


def test_every_question_exists():
    named = re.findall(r"--question ([a-z-]+)", PAGE)
    assert len(named) >= 8
    assert set(named) <= QUESTIONS


def test_every_table_and_column_exists():
    named = {text for text in quoted() if re.fullmatch(r"[a-z_]+", text)}
    assert len(named) >= 20
    assert named - WORDS <= NAMES


def test_every_control_that_was_asked_for_has_a_row():
    rows = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)[1:]
    for control in ("Art. 12", "Art. 14", "Art. 19", "Art. 26 (6)", "CC6.1", "CC7.2", "CC8.1"):
        assert any(control in row for row in rows), control
