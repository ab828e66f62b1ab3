"""People with a home each, who use the command line: an owner, an auditor, a thief.

    owner = Person(tmp_path / "owner")
    owner("init", folder)                       # what it printed, and how it ended
    owner.record(folder)                        # one run of one call, by the API

Commands run in this process: `main` with the person's HOME, its own standard output, nothing else of the caller's environment.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cli.main
from ledger import Ledger, Places

OWN_VARIABLES = ("HOME", "LEDGER_", "XDG_")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    exit: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def codes(self) -> set[str]:
        """Codes of the checks of a verdict that was printed as JSON."""
        return {check["code"] for check in self.json["checks"] if "code" in check}

    def check(self, name: str) -> dict[str, Any]:
        return next(check for check in self.json["checks"] if check["name"] == name)


@dataclass(frozen=True)
class Person:
    """Somebody with a home."""

    home: Path

    def __call__(self, *arguments: str | Path, cwd: Path | None = None) -> Done:
        """Run a command line."""
        self.home.mkdir(parents=True, exist_ok=True)
        with at_home(self.home, cwd or self.home):
            return run([str(each) for each in arguments])

    def verify(self, *arguments: str | Path) -> Done:
        """Run `ledger verify --json`."""
        return self("verify", "--json", *arguments)

    @property
    def places(self) -> Places:
        local = self.home / ".local"
        return Places(
            keys=local / "share/receipt-ledger/keys",
            state=local / "state/receipt-ledger",
            config=self.home / ".config/receipt-ledger",
        )

    def open(self, folder: Path) -> Ledger:
        return Ledger.open(folder, places=self.places)

    def record(self, folder: Path, name: str = "work", *, arguments: Any = None) -> str:
        """Record a run of one call and return its run id."""
        with self.open(folder) as ledger, ledger.run(name) as run:
            with run.call("deploy", access="write", arguments=arguments or {"to": "host"}) as call:
                call.result = "done"
            return run.id

    def trusts(self, *folders: Path) -> Person:
        """Pin ledgers as they are, and return this person."""
        for folder in folders:
            done = self("trust", "add", folder)
            assert done.exit == 0, done.err
        return self

    def forget(self) -> None:
        """Remove everything that this person's machine remembers: memory and register."""
        shutil.rmtree(self.places.state, ignore_errors=True)

    def forget_writing(self, ledger: Ledger) -> None:
        """Remove the register of one ledger."""
        self.places.register_file(ledger.origin).unlink()

    def memory(self, origin: str) -> bytes | None:
        path = self.places.memory_file(origin)
        return path.read_bytes() if path.exists() else None

    def takes_keys(self, other: Person, *, next_too: bool = False) -> Person:
        """Copy all private keys of somebody else, and return this person."""
        shutil.copytree(other.places.keys, self.places.keys, dirs_exist_ok=True)
        if not next_too:
            for folder in self.places.keys.iterdir():
                shutil.rmtree(folder / "next", ignore_errors=True)
        return self


@contextmanager
def at_home(home: Path, cwd: Path):
    """Give a home, and nothing else of the environment that our commands read."""
    before, where = dict(os.environ), Path.cwd()
    for name in list(os.environ):
        if name.startswith(OWN_VARIABLES):
            del os.environ[name]
    os.environ["HOME"] = str(home)
    os.chdir(cwd)
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(before)


def run(arguments: list[str]) -> Done:
    """Run the command line in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["ledger", *arguments], out, err
    code: Any = 0
    try:
        cli.main.main()
    except SystemExit as done:
        code = done.code or 0
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    return Done(int(code), *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]


def copy(folder: Path, to: Path) -> Path:
    """Return a copy of a ledger's folder, in the place of what was there."""
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(folder, to)
    return to


def journal(folder: Path) -> Path:
    """Return the path of a small ledger's only segment."""
    (path,) = (folder / "journal").iterdir()
    return path


def cut(folder: Path, *, lines: int | None = None, bytes_: int = 0) -> None:
    """Cut lines, or bytes, from the end of a journal, and remove what is derived from it."""
    path = journal(folder)
    data = path.read_bytes()
    if lines is not None:
        data = b"".join(line + b"\n" for line in data.split(b"\n")[:-1][:-lines])
    path.write_bytes(data[: len(data) - bytes_] if bytes_ else data)
    drop_derived(folder)


def drop_derived(folder: Path) -> None:
    for item in folder.iterdir():
        if item.name.startswith(("state.sqlite", "tiles", "ids", "index")):
            shutil.rmtree(item) if item.is_dir() else item.unlink()


def heads(folder: Path) -> list[int]:
    """Return the numbers of the head lines of a journal."""
    lines = journal(folder).read_bytes().split(b"\n")[:-1]
    return [number for number, line in enumerate(lines) if line.startswith(b'{"head"')]
