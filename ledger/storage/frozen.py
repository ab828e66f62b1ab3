"""Frozen folders: a ledger that is continued by another one is never appended to again.

`frozen` in a ledger's folder says since when and by whom. It stops writers; it is no evidence, since whoever can write to the
folder can make or remove it. What binds two ledgers is the `continues` in the newer one's header.

    {"continued_by":"ledger.invalid/...","origin":"...","root":"sha256:...","schema":"receipt-ledger.frozen/v1","size":7}

Source: docs/spec/journal.md, "Restore".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger import canonical
from ledger.checkpoint import Head
from ledger.digest import print_digest
from ledger.errors import LedgerError, StorageError, clip
from ledger.storage.durable import replace
from ledger.storage.lock import LedgerLock

__all__ = ["FROZEN", "Frozen", "freeze", "read_frozen"]

FROZEN: Final = "frozen"
_SCHEMA: Final = "receipt-ledger.frozen/v1"


@dataclass(frozen=True, slots=True)
class Frozen:
    """The head at which a ledger ends, and the origin that continues it, None while that one is being made."""

    origin: str
    size: int
    root: str
    continued_by: str | None


def freeze(folder: Path, head: Head, *, continued_by: str | None = None) -> None:
    """Mark a folder as frozen at a head, durably; a mark that is there is replaced.

    Raises:
        StorageError: the mark cannot be written, or the folder is frozen and continued by another origin already.
    """
    value: canonical.JsonObject = {
        "origin": head.origin,
        "root": print_digest(head.root),
        "schema": _SCHEMA,
        "size": head.size,
    }
    if continued_by is not None:
        value["continued_by"] = continued_by
    with LedgerLock(folder / "lock").hold():
        before = read_frozen(folder)
        if before is not None and before.continued_by not in (None, continued_by):
            raise StorageError(
                f"ledger: it is frozen, and {clip(before.continued_by)} continues it",
                code="ledger.frozen",
                hint="one ledger continues another: append to that one",
            )
        replace(folder / FROZEN, canonical.encode(value) + b"\n", durable=True)


def read_frozen(folder: Path) -> Frozen | None:
    """Return what a folder's mark says, None where there is none; a mark that cannot be read still freezes."""
    try:
        text = (folder / FROZEN).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Frozen("", 0, "", None)
    try:
        value = canonical.decode(text.rstrip(b"\n"))
    except LedgerError:
        return Frozen("", 0, "", None)
    origin, size, root, by = (value.get(name) for name in ("origin", "size", "root", "continued_by"))
    return Frozen(
        origin if isinstance(origin, str) else "",
        size if isinstance(size, int) else 0,
        root if isinstance(root, str) else "",
        by if isinstance(by, str) else None,
    )
