"""Erasures under way: what a crash between an `erasure` receipt and the removal of the bytes leaves to be finished.

    artifacts/erasing/<64 hex>        an artifact's digest; the file holds the index from which on the `erasure` stands

- A mark is durable before the `erasure` receipt is appended, and goes when the bytes are gone.
- A mark whose receipt is not in the chain says that nothing was decided: it goes, and the bytes stay.
- Whoever commits next finishes what is marked, under the ledger's lock.

Source: docs/spec/artifacts.md, "Erasure".
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping

from ledger.digest import parse_digest
from ledger.errors import LedgerError
from ledger.receipt import Erasure, parse_receipt
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.durable import fsync_folder, make_folder, storage_error, write_new
from ledger.storage.journal import Stored

__all__ = ["Erasing"]

_MARK = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(rb"0|[1-9][0-9]{0,15}")


class Erasing:
    """The marks in one artifact store's folder. Everything here is called under the ledger's lock."""

    __slots__ = ("_folder", "_name", "_store")

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._folder = store.folder / "erasing"
        self._name = str(self._folder)

    def under_way(self) -> bool:
        """Return whether there may be something to finish; asked before every commit."""
        return os.path.exists(self._name)  # noqa: PTH110  a Path costs more than the system call

    def mark(self, sizes: Mapping[str, int]) -> None:
        """Note durably that artifacts are about to be erased: digest, and from which entry on the `erasure` stands.

        Raises:
            StorageError: some may be marked; nothing was removed.
        """
        make_folder(self._folder)
        for digest, size in sizes.items():
            path = self._folder / parse_digest(digest).hex()
            # One that is there is of an attempt that was finished or given up before, under the same lock.
            path.unlink(missing_ok=True)
            write_new(path, b"%d" % size)

    def finish(self, entries: Callable[[int], Iterable[Stored]]) -> list[str]:
        """Remove the bytes of everything marked whose `erasure` is in the chain; return what was erased.

        Args:
            entries: gives the committed entries from an index on.

        Raises:
            StorageError: what could not be removed is still marked.
        """
        marks = self._marks()
        if not marks:
            return []
        said = dict(_erasures(entries(min(marks.values()))))
        erased = sorted(digest for digest, size in marks.items() if said.get(digest, -1) >= size)
        for digest in marks:
            if digest in erased:
                self._store.erase(digest)
            (self._folder / digest[7:]).unlink(missing_ok=True)
        fsync_folder(self._folder)
        with contextlib.suppress(OSError):  # a stray file in it costs a look at every commit
            self._folder.rmdir()
        return erased

    def _marks(self) -> dict[str, int]:
        """Return digest and size of the ledger before the erasure, for each mark."""
        found = {}
        try:
            for path in self._folder.iterdir():
                if _MARK.fullmatch(path.name):
                    data = path.read_bytes()
                    found["sha256:" + path.name] = int(data) if _SIZE.fullmatch(data) else 0
                elif path.name.endswith(".tmp"):
                    path.unlink(missing_ok=True)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_error(error, self._folder) from error
        if not found:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
        return found


def _erasures(entries: Iterable[Stored]) -> Iterable[tuple[str, int]]:
    """Yield the digest that each `erasure` names and the index where it stands."""
    for stored in entries:
        if b'"kind":"erasure"' in stored.envelope.payload:
            with contextlib.suppress(LedgerError):
                receipt = parse_receipt(stored.envelope.payload)
                if isinstance(receipt, Erasure):
                    yield receipt.digest, stored.entry.index
