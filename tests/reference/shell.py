"""The installed commands as a user calls them: a process of their own, a home in a temporary folder, nothing of ours around them.

user = User(tmp_path)
user("init")                                   # ended: exit, out, err
user("run", "--", "true", name="receipt-ledger", cwd=folder, env={"LEDGER_DIR": "x"})
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
LIMIT_S = 120


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code and what it wrote."""

    exit: int
    raw: bytes
    raw_err: bytes

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8")

    @property
    def err(self) -> str:
        return self.raw_err.decode("utf-8")

    @property
    def json(self) -> Any:
        """The one JSON value, on one line."""
        assert self.raw.count(b"\n") == 1, self.out
        return json.loads(self.raw)

    @property
    def codes(self) -> set[str]:
        """Codes of a verdict's checks."""
        return {check["code"] for check in self.json["checks"] if "code" in check}


@dataclass(frozen=True)
class User:
    """Somebody with a home and a working folder, `home` and `work` below `base`."""

    base: Path

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def work(self) -> Path:
        return self.base / "work"

    def environment(self, **more: str) -> dict[str, str]:
        self.home.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(parents=True, exist_ok=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("LEDGER_", "XDG_", "PYTEST")) and name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}
        }
        return {**kept, "HOME": str(self.home), "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm-256color", **more}

    def __call__(
        self,
        *arguments: str | Path,
        name: str = "ledger",
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        **streams: Any,
    ) -> Ended:
        """Run a command to its end; `streams` are options of `subprocess.run`."""
        environment = self.environment(**(env or {}))
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "input": stdin, **streams}
        done = subprocess.run(
            [BIN / name, *map(str, arguments)],
            cwd=cwd or self.work,
            env=environment,
            timeout=LIMIT_S,
            check=False,
            **given,
        )
        return Ended(done.returncode, done.stdout or b"", done.stderr or b"")

    def start(
        self, *arguments: str | Path, env: dict[str, str] | None = None, **streams: Any
    ) -> subprocess.Popen[bytes]:
        """Start a command and do not wait."""
        return subprocess.Popen(
            [BIN / "ledger", *map(str, arguments)], cwd=self.work, env=self.environment(**(env or {})), **streams
        )

    def in_terminal(self, *arguments: str | Path, columns: int = 80, env: dict[str, str] | None = None) -> Ended:
        """Run a command with its three streams on one terminal, and return what the terminal got."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = self.start(*arguments, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            pass  # how a terminal says that its other side is closed
        finally:
            os.close(ours)
        return Ended(process.wait(LIMIT_S), seen.replace(b"\r\n", b"\n"), b"")


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
