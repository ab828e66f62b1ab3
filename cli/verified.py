"""How far a ledger had a good verdict on this machine, from what verifying saved; read without loading the verifier.

The answer is this user's own memory of what was judged, not a judgement of the bytes as they are now. It counts only while the head
that it ended with still stands where it stood, and under the trust in use.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from cli.options import Shared
from ledger import canonical
from ledger.checkpoint import head_of
from ledger.digest import digest
from ledger.errors import LedgerError
from ledger.line import parse_head_line
from ledger.storage.journal import read_segment
from ledger.version import VERSION

__all__ = ["verified_size"]

_LINE_MAX_BYTES: Final = 64 << 20
_CHUNK: Final = 1 << 20
_ASKED: Final = frozenset(
    digest(canonical.encode({"bytes_only": False, "every_head": every, "accept": []})) for every in (False, True)
)
"""What was asked for where the verdict was on everything."""


def verified_size(folder: Path, origin: str, options: Shared) -> int:
    """Return how many entries of a ledger had a good verdict here under the trust in use, 0 where nothing says so."""
    path = options.places.state / "verified" / f"{options.places.memory_file(origin).name}.good"
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o022:
                return 0
            state = _read(file)
        if state is None or not state["good"] or not _is_bound(state["binding"], options):
            return 0
        return _size(folder, state)
    except (OSError, LedgerError, KeyError, TypeError, ValueError):
        return 0


def _read(file: BinaryIO) -> dict[str, Any] | None:
    """Return the first line of a saved verification whose closing digest is that of its bytes."""
    line = file.readline(_LINE_MAX_BYTES)
    hasher, tail = hashlib.sha256(line), b""
    while chunk := file.read(_CHUNK):
        data = tail + chunk
        hasher.update(data[:-32])
        tail = data[-32:]
    if hasher.digest() != tail:
        return None
    value = orjson.loads(line)
    return value if isinstance(value, dict) else None


def _is_bound(bound: dict[str, Any], options: Shared) -> bool:
    """Return whether the verdict was by this version, on everything, and under the trust in use."""
    path = options.trust or options.places.trust_file
    trust = digest(path.read_bytes()) if path.exists() else None
    return bound["version"] == VERSION and bound["asked"] in _ASKED and bound.get("trust") == trust


def _size(folder: Path, state: dict[str, Any]) -> int:
    """Return the size of the head that the verdict ended with, 0 where it does not stand there any more."""
    line, (first, end) = state["head"]["line"].encode("utf-8"), state["files"][-1]
    length = len(line) + 1
    if read_segment(folder, first, end - length, length) != line + b"\n":
        return 0
    return head_of(parse_head_line(line)[0]).size
