"""Repair of a torn tail: bytes of a commit that never ended are set aside, cut off, and said in a receipt.

The bytes go to `quarantine/<segment>-<offset>.pending`, durable before the journal is cut; when the `repair` receipt is in the
chain the name ends in `.torn`. A crash at any point leaves either the torn tail, or a pending file that the next commit takes up.

Source: docs/spec/journal.md, "Repair".
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ledger.errors import StorageError
from ledger.storage.durable import fsync_folder, storage_error, sync, write_new
from ledger.storage.journal import Rest, segment_path

__all__ = ["Repairs"]

_PENDING = re.compile(r"([0-9]{16})-([0-9]+)(?:-[0-9]+)?\.pending")


class Repairs:
    """The quarantine of one ledger folder."""

    def __init__(self, folder: Path) -> None:
        self._ledger = folder
        self._folder = folder / "quarantine"
        self._seen_ns = -1

    def cut(self, rest: Rest) -> None:
        """Set the bytes aside and cut the journal before them; where only the last LF is missing, write it.

        Raises:
            StorageError: the disk refused; the torn tail is still there, or the pending file is.
        """
        path = segment_path(self._ledger, rest.segment)
        try:
            if rest.data:
                self._keep(rest)
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_APPEND)
            try:
                if rest.data:
                    os.ftruncate(descriptor, rest.offset)
                else:
                    os.write(descriptor, b"\n")
                sync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise storage_error(error, path) from error

    def pending(self) -> list[Rest]:
        """Return what was cut, by whatever writer, and is not yet said in a receipt."""
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116  asked before every commit
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(error, self._folder) from error
        if changed_ns == self._seen_ns:
            return []
        found = [rest for _, rest in self._pending_files()]
        if not found:
            self._seen_ns = changed_ns
        return found

    def settle(self) -> None:
        """Mark everything pending as said in a receipt.

        Raises:
            StorageError: a name cannot be changed.
        """
        for path, _ in self._pending_files():
            try:
                path.rename(path.with_suffix(".torn"))
            except OSError as error:
                raise storage_error(error, path) from error

    def _keep(self, rest: Rest) -> None:
        self._folder.mkdir(exist_ok=True)
        fsync_folder(self._ledger)
        for attempt in range(1000):
            name = f"{rest.segment:016d}-{rest.offset}" + (f"-{attempt}" if attempt else "")
            if (self._folder / f"{name}.torn").exists():
                continue
            pending = self._folder / f"{name}.pending"
            if not pending.exists():
                write_new(pending, rest.data)
                return
            if pending.read_bytes() == rest.data:
                return
        raise StorageError("quarantine: a thousand torn tails at one place", hint="look at the disk")

    def _pending_files(self) -> list[tuple[Path, Rest]]:
        found = []
        for path in sorted(self._folder.glob("*.pending")) if self._folder.is_dir() else ():
            match = _PENDING.fullmatch(path.name)
            if match is not None:
                found.append((path, Rest(int(match[1]), int(match[2]), path.read_bytes())))
        return found
