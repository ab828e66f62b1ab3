"""The folder that is published into: files staged out of sight, made durable, moved to their names, the old ones collected.

    checkpoint   tile/...   .tmp/tile/...

`.tmp` is there from the first change to the last: where it is found, a publication never came to its end, and partial tiles may
be left to collect.

Source: docs/spec/published.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ledger.checkpoint import Head, head_of
from ledger.errors import DamagedError, LedgerError, StorageError
from ledger.note import NOTE_MAX_BYTES
from ledger.storage.durable import fsync_folder, make_folder, storage_error, sync
from ledger.storage.published import CHECKPOINT
from ledger.tiles import TILE_WIDTH, Edge, Tile, tiles_between

__all__ = ["Target", "sync_path"]

_STAGE: Final = ".tmp"
_BATCH: Final = 1_024
"""Files written before they are synced together."""
_THREADS: Final = 16
_PARTIAL = re.compile(r"([0-9]{3})\.p")


class Target:
    """The folder that is published into.

    Attributes:
        note: the checkpoint that stands there, empty where none does.
        unfinished: whether a publication before this one never came to its end.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stage = folder / _STAGE
        self._folders: set[Path] = set()
        """Folders that are known to be there."""
        self._unsynced: list[Path] = []
        self._begun = False
        """Whether files were given their names."""
        self.note = b""
        self.unfinished = self._stage.exists()

    def published(self) -> Head | None:
        """Return the head that is published, None where the folder holds nothing yet."""
        try:
            with (self._folder / CHECKPOINT).open("rb") as file:
                self.note = file.read(NOTE_MAX_BYTES + 1)
            return head_of(self.note)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storage_error(error, self._folder / CHECKPOINT) from error
        except LedgerError as error:
            raise StorageError(
                f"publish: {str(self._folder / CHECKPOINT)!r} is no checkpoint of ours: {error}", code="publish.in_use"
            ) from error
        others = {path.name for path in self._folder.iterdir()} - {_STAGE, "tile"}
        if others or (not self.unfinished and (self._folder / "tile").exists()):
            raise StorageError(
                f"publish: {str(self._folder)!r} is neither empty nor a published tree",
                code="publish.in_use",
                hint="name a new folder",
            )
        return None

    def edge(self, size: int) -> Edge | None:
        """Return the right edge of the published tree, None where its partial tiles are not there as they should."""
        hashes, bundle = [], b""
        level = 0
        try:
            while size >> 8 * level:
                width, index = (size >> 8 * level) & 255, size >> 8 * (level + 1)
                hashes.append((self._folder / Tile(level, index, width).path).read_bytes() if width else b"")
                if level == 0 and width:
                    bundle = (self._folder / Tile(None, index, width).path).read_bytes()
                level += 1
            return Edge.of(size, hashes, bundle)
        except (OSError, LedgerError):
            return None

    def start(self) -> None:
        """Make the stage anew: what stands in it was never published."""
        try:
            shutil.rmtree(self._stage, ignore_errors=True)
            self._stage.mkdir()
        except OSError as error:
            raise storage_error(error, self._stage) from error
        self._folders = {self._stage}
        self._unsynced.clear()
        fsync_folder(self._folder)

    def abandon(self) -> None:
        """Remove what was staged; the empty stage stays where partial tiles may be left to collect."""
        shutil.rmtree(self._stage, ignore_errors=True)
        if self.unfinished or self._begun:
            with contextlib.suppress(OSError):
                self._stage.mkdir()

    def stage(self, tile: Tile, data: bytes) -> None:
        """Keep the bytes of a tile under no name yet."""
        self._write(self._stage / tile.path, data)
        if len(self._unsynced) >= _BATCH:
            self._sync()

    def place(self, old: int, size: int) -> int:
        """Move the staged tiles that a tree of `size` has and one of `old` has not to their names; return how many.

        They are durable before they have a name, and their names are when this returns.
        """
        self._sync()
        self._begun = True
        made = 0
        touched: set[Path] = set()
        for tile in tiles_between(old, size):
            staged, path = self._stage / tile.path, self._folder / tile.path
            try:
                if path.parent not in touched:
                    make_folder(path.parent)
                    touched.add(path.parent)
                if not self._is_there(path, staged):
                    staged.replace(path)
                    made += 1
            except OSError as error:
                raise storage_error(error, path) from error
        # Also the folders above: those of a publication that was killed are there, and may not be on the disk.
        above = {parent for folder in touched for parent in folder.parents if self._folder in parent.parents}
        for folder in touched | above | {self._folder}:
            fsync_folder(folder)
        return made

    def put_checkpoint(self, note: bytes) -> None:
        """Replace the checkpoint; everything it asks for is durable."""
        if note == self.note:
            return
        staged = self._stage / CHECKPOINT
        self._write(staged, note)
        self._sync()
        try:
            staged.replace(self._folder / CHECKPOINT)
        except OSError as error:
            raise storage_error(error, self._folder / CHECKPOINT) from error
        fsync_folder(self._folder)

    def collect(self, old: int, size: int) -> int:
        """Remove the partial tiles whose full tile is there, and the stage; return how many folders of them there were."""
        if self.unfinished:
            found = list(self._all_partial())
        elif old == 0:
            found = []
        else:
            found = [self._folder / f"{tile.path}.p" for tile in tiles_between(old, size) if tile.width == TILE_WIDTH]
        collected = 0
        for folder in found:
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, folder) from error
            collected += 1
        shutil.rmtree(self._stage, ignore_errors=True)
        return collected

    def _all_partial(self) -> Iterator[Path]:
        """Yield every folder of partial tiles whose full tile is there."""
        for parent, folders, files in os.walk(self._folder / "tile"):
            whole = set(files)
            for name in folders:
                match = _PARTIAL.fullmatch(name)
                if match is not None and match[1] in whole:
                    yield Path(parent, name)

    def _is_there(self, path: Path, staged: Path) -> bool:
        """Return whether the file stands under its name already, from a publication that never came to its end."""
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            return False
        if found != staged.read_bytes():
            raise DamagedError(
                f"publish: {str(path)!r} has other bytes than this ledger",
                code="publish.differs",
                hint="published tiles never change: compare with another copy, or publish into a new folder",
                where=str(path),
            )
        return True

    def _write(self, path: Path, data: bytes) -> None:
        try:
            if path.parent not in self._folders:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(path.parent)
            with path.open("wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
        except OSError as error:
            raise storage_error(error, path) from error
        self._unsynced.append(path)

    def _sync(self) -> None:
        """Make the files written since the last time durable; many at once share the journal commits of the file system."""
        if len(self._unsynced) < _THREADS:
            for path in self._unsynced:
                sync_path(path)
        else:
            with ThreadPoolExecutor(_THREADS) as pool:
                for _ in pool.map(sync_path, self._unsynced):
                    pass
        self._unsynced.clear()


def sync_path(path: Path) -> None:
    """Return when a file or folder is on the disk.

    Raises:
        StorageError: it may not be.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, path) from error
