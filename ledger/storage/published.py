"""Reading a published tree: its files by their paths, through no symbolic link and out of the folder by no path.

Source: docs/spec/published.md.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from ledger.errors import FormatError, clip
from ledger.storage.durable import storage_error
from ledger.tiles import ENTRY_MAX_BYTES, TILE_WIDTH

__all__ = ["CHECKPOINT", "PublishedTree", "is_published"]

CHECKPOINT: Final = "checkpoint"
_MAX_BYTES: Final = TILE_WIDTH * (ENTRY_MAX_BYTES + 2)


def is_published(folder: Path) -> bool:
    """Return whether a folder looks like a published tree: a checkpoint and tiles, and no journal."""
    return (folder / CHECKPOINT).is_file() and (folder / "tile").is_dir() and not os.path.lexists(folder / "journal")


class PublishedTree:
    """Reads the files of a published tree by their paths; follows no symbolic link, leaves the folder by no path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, path: str) -> bytes | None:
        """Return the bytes of a file, None where there is none.

        Raises:
            FormatError: a symbolic link, a folder or a device, a file larger than any tile, or a path out of the tree.
        """
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise FormatError(f"path: got {clip(path)}, expected one inside the tree", code="tile.path", where=path)
        try:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                for part in parts[:-1]:
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    inner = os.open(part, flags, dir_fd=folder)
                    os.close(folder)
                    folder = inner
                return _read_plain(parts[-1], folder, path)
            finally:
                os.close(folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            # A link where a folder should be is "not a directory" here.
            if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
                raise FormatError(
                    f"{path}: a part of it is no plain file or folder", code="tile.file", where=path
                ) from error
            raise storage_error(error, self._folder / path) from error


def _read_plain(name: str, folder: int, path: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path}: no plain file", code="tile.file", where=path)
        if status.st_size > _MAX_BYTES:
            raise FormatError(
                f"{path}: got {status.st_size} bytes, more than a tile can have", code="tile.file", where=path
            )
        data = b""
        while block := os.read(descriptor, status.st_size + 1 - len(data)):
            data += block
        return data
    finally:
        os.close(descriptor)
