"""The register: the writer's memory of the newest head it wrote, outside the ledger's folder.

It is read under the ledger's lock before a commit is built and replaced after the journal's fsync. It is not synced itself:
after a loss of power it may be the one before, or empty, and both are weaker but never wrong. A journal that is shorter than
the register, or not consistent with it, is never appended to; that comparison is the caller's.

Source: docs/spec/journal.md, Register.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from ledger.errors import RegisterError, StorageError
from ledger.storage.durable import replace

__all__ = ["Register"]

_LIMIT_BYTES: Final = 64 * 1024
_SECTOR_BYTES: Final = 512


class Register:
    """The register of one origin at `path`; see `Places.register_file`."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes | None:
        """Return the newest note, None where there is none: no file, or one that a loss of power left empty.

        Raises:
            RegisterError: there is a file, and it cannot be read or is not the text of a note (`register.unreadable`).
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error.strerror or "cannot be opened") from error
        try:
            note = os.read(descriptor, _LIMIT_BYTES + 1)
        except OSError as error:
            raise self._unreadable(error.strerror or "cannot be read") from error
        finally:
            os.close(descriptor)
        # Names reach the disk before bytes do: an empty file, or one of NULs only, is what a loss of power leaves.
        if not note.strip(b"\0"):
            return None
        if len(note) > _LIMIT_BYTES:
            raise self._unreadable(f"is longer than {_LIMIT_BYTES} bytes")
        if b"\0" in note or not note.endswith(b"\n") or b"\n\n" not in note:
            raise self._unreadable("is not the text of a signed note")
        return note

    def write(self, note: bytes) -> bool:
        """Return whether `note` is now what `read` returns, for every process; False where the folder cannot be written.

        The caller says so to a person and goes on: the journal is durable, only the memory of it is not.
        """
        if self._write_over(note):
            return True
        with contextlib.suppress(OSError, StorageError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self.path, note, mode=0o600, durable=False)
            return True
        return False

    def _write_over(self, note: bytes) -> bool:
        """Return whether a note of the same length was overwritten in place.

        One write inside one disk sector is old or new for whoever reads and whenever power goes, as a rename is, and costs
        a tenth of it. Where the length differs, or the file has a second name, the file is replaced.
        """
        if len(note) > _SECTOR_BYTES:
            return False
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            if status.st_size != len(note) or status.st_nlink != 1 or not stat.S_ISREG(status.st_mode):
                return False
            return os.pwrite(descriptor, note, 0) == len(note)
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def _unreadable(self, reason: str) -> RegisterError:
        return RegisterError(
            f"register {self.path}: {reason}",
            code="register.unreadable",
            hint="verify the ledger against a head that somebody else holds, then move this file away by hand",
            where=str(self.path),
        )
