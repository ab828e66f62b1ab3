"""A state folder that cannot be written: said on standard error, once a command, and nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.errors import UnrememberedWarning
from tests.reference.people import Person

LEDGER = Path(sys.executable).with_name("ledger")


def ran(person: Person, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
    command = [str(LEDGER), *(str(each) for each in arguments)]
    return subprocess.run(
        command, env={**environment, "HOME": str(person.home)}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def person(tmp_path):
    found = Person(tmp_path / "home")
    assert found("init", tmp_path / "ledger").exit == 0
    return found


def spoil(person: Person) -> None:
    """Put a link that leads nowhere where the register's folder was: there is nothing to read, and also root cannot write."""
    person.forget()
    person.places.state.mkdir(parents=True)
    (person.places.state / "heads").symlink_to(person.home / "nowhere" / "heads")


def test_a_command_that_appends_says_it_once_and_works(person, tmp_path):
    before = ran(person, "-L", tmp_path / "ledger", "run", "--", "true")
    assert (before.returncode, "remembered" in before.stderr) == (0, False)
    spoil(person)
    done = ran(person, "-L", tmp_path / "ledger", "run", "--", "true")
    assert done.returncode == 0
    assert done.stderr.count("could not be remembered") == 1
    assert "Warning" not in done.stderr
    assert ".py" not in done.stderr
    assert ran(person, "-L", tmp_path / "ledger", "verify").returncode == 0


def test_who_uses_the_api_is_warned_and_what_was_appended_is_there(person, tmp_path):
    spoil(person)
    with pytest.warns(UnrememberedWarning, match="could not be remembered"):
        run = person.record(tmp_path / "ledger")
    with person.open(tmp_path / "ledger") as ledger:
        assert ledger.get(run).entry.receipt == run
