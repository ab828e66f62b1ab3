"""What is to be notarized and is not yet: kept for its user until a notary has answered.

    <state>/notarize/<sha256 of the origin>/<16 hex>.json

    {"attempts":1,"full":false,"kind":"receipt","last":"notary.unreachable","publish":false,"receipt":"sha256:...",
     "schema":"receipt-ledger.pending/v1","since":"2026-11-30T09:15:05.000Z","url":"https://notary.example.org"}

A line is written before anything is sent and removed after the answer is kept, so an interruption at any point loses nothing. It
names a receipt and no head: what is sent is made when it is sent, from the head of then. Tokens are never in it. It is the user's
own and not the ledger's: whoever can write to a ledger's folder must not say where a token goes.

Source: docs/spec/bundles.md, "Beside the ledger".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from ledger import canonical
from ledger.errors import LedgerError
from ledger.members import Digest, Member, Time
from ledger.storage import durable

__all__ = ["Pending", "Queue"]

_SCHEMA: Final = "receipt-ledger.pending/v1"
_MAX_ATTEMPTS: Final = 2**31


class _Line(Member):
    attempts: int
    full: bool
    kind: Literal["receipt", "head"]
    last: str
    publish: bool
    receipt: Digest | None = None
    since: Time
    url: str


_LINE: Final[TypeAdapter[_Line]] = TypeAdapter(_Line)


@dataclass(frozen=True, slots=True)
class Pending:
    """One thing that a notary is to see: a receipt, or the newest head where `receipt` is None.

    `since` is when it was first asked for, `attempts` how often it was sent, `last` the code of the last failure.
    """

    url: str
    receipt: str | None
    since: str
    full: bool = False
    publish: bool = False
    attempts: int = 0
    last: str = ""

    @property
    def name(self) -> str:
        """The file's name: what is asked for, not when or how often."""
        value: canonical.JsonObject = {
            "full": self.full,
            "publish": self.publish,
            "receipt": self.receipt or "",
            "url": self.url,
        }
        return sha256(canonical.encode(value)).hexdigest()[:16] + ".json"


class Queue:
    """What is pending for one ledger, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, pending: Pending) -> Pending:
        """Keep a line durably; one that asks for the same stays as it is and is returned.

        Raises:
            StorageError: it could not be kept.
        """
        durable.make_folder(self._folder)
        known = self._read(self._folder / pending.name)
        if known is not None:
            return known
        self._write(pending)
        return pending

    def all(self) -> list[Pending]:
        """Return what is pending, the oldest first; a line that cannot be read is left out."""
        if not self._folder.is_dir():
            return []
        found = (self._read(path) for path in sorted(self._folder.iterdir()))
        return sorted((each for each in found if each is not None), key=lambda each: (each.since, each.name))

    def failed(self, pending: Pending, code: str) -> Pending:
        """Say that a line was tried without success; return it as it is now."""
        after = replace(pending, attempts=min(pending.attempts + 1, _MAX_ATTEMPTS), last=code)
        self._write(after)
        return after

    def done(self, pending: Pending) -> None:
        """Remove a line: its answer is kept, or it was refused for good."""
        path = self._folder / pending.name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise durable.storage_error(error, path) from error

    def _write(self, pending: Pending) -> None:
        value: canonical.JsonObject = {
            "attempts": pending.attempts,
            "full": pending.full,
            "kind": "head" if pending.receipt is None else "receipt",
            "last": pending.last,
            "publish": pending.publish,
            "schema": _SCHEMA,
            "since": pending.since,
            "url": pending.url,
        }
        if pending.receipt is not None:
            value["receipt"] = pending.receipt
        durable.replace(self._folder / pending.name, canonical.encode(value), durable=True)

    def _read(self, path: Path) -> Pending | None:
        """Return the line in a file, None where it is none: what asks for nothing that is known stops nothing else."""
        try:
            value = canonical.decode(path.read_bytes())
            if path.suffix != ".json" or value.pop("schema", None) != _SCHEMA:
                return None
            line = _LINE.validate_python(value)
        except (OSError, LedgerError, ValidationError):
            return None
        return Pending(line.url, line.receipt, line.since, line.full, line.publish, line.attempts, line.last)
