"""Artifacts: content-addressed bytes beside the chain, which can be erased without breaking it.

    artifacts/packs/<number>.pack        stored bytes below 256 KiB, see `ledger.storage.packs`
    artifacts/blobs/<64 hex>             all others, a file each, named by its digest

*Stored bytes* are what the digest is of: 32 bytes of salt and the content where salted, else the content. Small ones wait in
memory until `flush`, which a commit calls under the ledger's lock before the journal's fsync.

Source: docs/spec/artifacts.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

from ledger.digest import digest as digest_of
from ledger.digest import parse_digest
from ledger.errors import NotFoundError, StorageError
from ledger.members import Artifact
from ledger.storage.clock import random_bytes
from ledger.storage.durable import (
    append_all,
    fsync_folder,
    make_folder,
    open_regular,
    remove_temporaries,
    replace,
    storage_error,
    sync,
    temporary_beside,
    write_new,
)
from ledger.storage.packs import PACK_BYTES, Packs

__all__ = ["SALTED_BELOW_BYTES", "SALT_BYTES", "ArtifactStore", "Condition", "salted_bytes"]

SALT_BYTES: Final = 32
SALTED_BELOW_BYTES: Final = 1024 * 1024
"""Content of this size and more is stored as it is by default."""
_PACKED_BELOW_BYTES: Final = 256 * 1024
_CHUNK: Final = 1024 * 1024
_BLOB: Final = re.compile(r"[0-9a-f]{64}")
_STALE_NS: Final = 3600 * 10**9

Condition: TypeAlias = Literal["whole", "absent", "altered", "unreadable"]
"""What is there under a digest: its bytes, none, other bytes, or some that cannot be read."""


def salted_bytes(content: bytes, *, run_salt: bytes | None) -> bytes:
    """Return 32 bytes of salt followed by `content`.

    Within a run the salt is HMAC-SHA256(run salt, SHA-256 of the content), so that equal content has one digest in every
    process of the run; with None it is random.
    """
    if run_salt is None:
        return random_bytes(SALT_BYTES) + content
    return hmac.digest(run_salt, hashlib.sha256(content).digest(), "sha256") + content


class ArtifactStore:
    """The artifacts of the ledger in a folder; its `artifacts` folder, `folder` from here on, need not exist yet.

    Reading needs no lock and writes nothing. `flush` and `erase` are called under the ledger's lock.
    """

    __slots__ = ("_packs", "_pending", "_writing", "folder")

    def __init__(self, folder: Path, *, pack_bytes: int = PACK_BYTES) -> None:
        self.folder = folder = folder / "artifacts"
        self._packs = Packs(folder / "packs", pack_bytes=pack_bytes)
        # What the writer knows changes under the lock only; readers have a view of their own.
        self._writing = Packs(folder / "packs", pack_bytes=pack_bytes)
        self._pending: dict[str, bytes] = {}

    @property
    def pending(self) -> int:
        """How many staged artifacts wait for `flush`."""
        return len(self._pending)

    def stage(self, stored: bytes) -> str:
        """Return the digest of `stored`, which is durable after the next `flush` (large ones at once).

        Raises:
            StorageError: a large one cannot be written.
        """
        name = digest_of(stored)
        if len(stored) >= _PACKED_BELOW_BYTES:
            self._write_blob(name, stored)
        else:
            # Whether it is stored already is only known under the lock: another writer may yet take back what it wrote.
            self._pending[name] = stored
        return name

    def stage_content(
        self, content: bytes, *, media_type: str, name: str, run_salt: bytes | None = None, salted: bool | None = None
    ) -> Artifact:
        """Return the member that refers to `content`, staged; salted below 1 MiB unless `salted` says otherwise."""
        salts = len(content) < SALTED_BELOW_BYTES if salted is None else salted
        stored = salted_bytes(content, run_salt=run_salt) if salts else content
        return Artifact(
            digest=self.stage(stored), media_type=media_type, name=name, size_bytes=len(content), salted=salts
        )

    def stage_file(self, source: Path, *, media_type: str, name: str, run_salt: bytes | None = None) -> Artifact:
        """Return the member that refers to a file's content; a file of 1 MiB and more is copied in pieces, durably at once.

        Raises:
            StorageError: the file cannot be read, or the copy not written.
        """
        try:
            with source.open("rb") as file:
                chunks = iter(lambda: file.read(_CHUNK), b"")
                first = next(chunks, b"")
                if len(first) < SALTED_BELOW_BYTES:
                    return self.stage_content(first, media_type=media_type, name=name, run_salt=run_salt)
                digest, size_bytes = self._copy(itertools.chain((first,), chunks))
        except OSError as error:
            raise storage_error(error, source) from error
        return Artifact(digest=digest, media_type=media_type, name=name, size_bytes=size_bytes, salted=False)

    def flush(self) -> None:
        """Make everything staged durable, with at most one fsync (and one of the folder when a pack begins).

        The caller holds the ledger's lock.

        Raises:
            StorageError: what waited still waits.
        """
        batch = list(self._pending.items())
        if not batch:
            return
        self._writing.append([(bytes.fromhex(name[7:]), stored) for name, stored in batch])
        for name, _ in batch:
            self._pending.pop(name, None)

    def get(self, digest: str) -> bytes:
        """Return the stored bytes of `digest`, which they match.

        Raises:
            FormatError: not a digest.
            NotFoundError: there are none (`artifact.absent`).
            StorageError: there are some, and none that match (`artifact.altered`) or that can be read (`artifact.unreadable`).
        """
        key = parse_digest(digest)
        waiting = self._pending.get(digest)
        if waiting is not None:
            return waiting
        found = False
        for stored in self._candidates(digest, key):
            found = True
            if hashlib.sha256(stored).digest() == key:
                return stored
        raise _altered(digest) if found else _absent(digest)

    def content(self, ref: Artifact) -> bytes:
        """Return the content that a receipt's member refers to, without the salt.

        Raises:
            NotFoundError, StorageError: as `get`; and code `artifact.size` where it is not as long as the member says.
        """
        stored = self.get(ref.digest)
        salt_bytes = SALT_BYTES if ref.salted else 0
        if len(stored) - salt_bytes != ref.size_bytes:
            raise StorageError(
                f"artifact {ref.digest}: got {len(stored) - salt_bytes} bytes of content, expected {ref.size_bytes}",
                code="artifact.size",
                where=ref.digest,
            )
        return stored[salt_bytes:]

    def open(self, digest: str) -> BinaryIO:
        """Return a file of the stored bytes at their beginning, to be closed by the caller; they were hashed and match.

        A large one is read twice and never held in memory. Raises as `get`.
        """
        key = parse_digest(digest)
        try:
            file = open_regular(self._blob(digest))
        except FileNotFoundError:
            return io.BytesIO(self.get(digest))
        except OSError as error:
            raise _unreadable(digest, error.strerror or "cannot be opened") from error
        try:
            found = hashlib.file_digest(file, "sha256").digest()
            file.seek(0)
        except OSError as error:
            file.close()
            raise _unreadable(digest, error.strerror or "cannot be read") from error
        if found != key:
            file.close()
            return io.BytesIO(self.get(digest))
        return file

    def exists(self, digest: str) -> bool:
        """Return whether bytes are stored or staged under `digest`; whether they match it, only reading tells."""
        key = parse_digest(digest)
        return digest in self._pending or self._blob(digest).is_file() or bool(self._packs.find(key))

    def digests(self) -> Iterator[str]:
        """Yield the digest of everything stored, each once; what waits for `flush` is not stored yet."""
        seen: set[bytes] = set()
        for key in self._packs.keys():  # noqa: SIM118  not a mapping
            if key not in seen:
                seen.add(key)
                yield "sha256:" + key.hex()
        try:
            names = sorted(item.name for item in (self.folder / "blobs").iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, self.folder) from error
        for name in names:
            if _BLOB.fullmatch(name) and bytes.fromhex(name) not in seen:
                yield "sha256:" + name

    def erase(self, digest: str) -> bool:
        """Return whether there was something to erase; afterwards `get` says `artifact.absent`, durably.

        The caller holds the ledger's lock. What the disk itself keeps of freed blocks is beyond this.

        Raises:
            FormatError: not a digest.
            StorageError: it may still be there.
        """
        key = parse_digest(digest)
        waited = self._pending.pop(digest, None) is not None
        path = self._blob(digest)
        try:
            path.unlink()
            unlinked = True
        except FileNotFoundError:
            unlinked = False
        except OSError as error:
            raise storage_error(error, path) from error
        self._remove_copies(digest)
        if unlinked:
            fsync_folder(path.parent)
        return self._writing.erase(key) or unlinked or waited

    def _remove_copies(self, digest: str) -> None:
        """Remove what a crash may have left of large bytes on their way to their name: these, or any left for an hour."""
        folder = self.folder / "blobs"
        try:
            recent_ns = folder.stat().st_mtime_ns - _STALE_NS
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, folder) from error
        key = parse_digest(digest)

        def holds(path: Path) -> bool:
            try:
                if path.name.startswith(f".{key.hex()}.") or path.stat().st_mtime_ns < recent_ns:
                    return True
                with open_regular(path) as file:
                    return hashlib.file_digest(file, "sha256").digest() == key
            except FileNotFoundError:
                return False

        remove_temporaries(folder, which=holds)

    def inspect(self, digest: str) -> tuple[Condition, int]:
        """Return the condition of stored bytes and how many there are, 0 where they are not whole. Large ones are not held in memory."""
        try:
            with self.open(digest) as file:
                return "whole", file.seek(0, io.SEEK_END)
        except NotFoundError:
            return "absent", 0
        except StorageError as error:
            return ("altered" if error.code == "artifact.altered" else "unreadable"), 0

    def _blob(self, digest: str) -> Path:
        return self.folder / "blobs" / parse_digest(digest).hex()

    def _candidates(self, digest: str, key: bytes) -> Iterator[bytes]:
        try:
            with open_regular(self._blob(digest)) as file:
                yield file.read()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unreadable(digest, error.strerror or "cannot be read") from error
        try:
            yield from self._packs.find(key)
        except StorageError as error:
            raise _unreadable(digest, error.args[0]) from error

    def _write_blob(self, digest: str, stored: bytes) -> None:
        path = self._blob(digest)
        make_folder(path.parent)
        try:
            write_new(path, stored)
        except StorageError as error:
            if error.code != "storage.exists":
                raise
        else:
            return
        try:
            same = path.read_bytes() == stored
        except OSError as error:
            raise storage_error(error, path) from error
        if same:
            # Whoever wrote it may not have come to this.
            fsync_folder(path.parent)
        else:
            # A file that does not match its name is no reason not to store good bytes.
            replace(path, stored, durable=True)

    def _copy(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Return digest and size of all chunks together, written to a blob, durably."""
        blobs = self.folder / "blobs"
        make_folder(blobs)
        temporary = temporary_beside(blobs / "stage")
        hasher = hashlib.sha256()
        size_bytes = 0
        try:
            copy = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise storage_error(error, temporary) from error
        try:
            try:
                for chunk in chunks:
                    hasher.update(chunk)
                    size_bytes += len(chunk)
                    append_all(copy, chunk, path=temporary)
                sync(copy)
            finally:
                os.close(copy)
            digest = "sha256:" + hasher.hexdigest()
            # Whatever has this name now is the same bytes, or does not deserve it.
            temporary.replace(self._blob(digest))
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        fsync_folder(blobs)
        return digest, size_bytes


def _absent(digest: str) -> NotFoundError:
    return NotFoundError(f"artifact {digest}: absent", code="artifact.absent", where=digest)


def _altered(digest: str) -> StorageError:
    return StorageError(
        f"artifact {digest}: altered, its bytes have another digest", code="artifact.altered", where=digest
    )


def _unreadable(digest: str, reason: str) -> StorageError:
    return StorageError(f"artifact {digest}: unreadable, {reason}", code="artifact.unreadable", where=digest)
