"""Files that are on the disk when a function says so.

- A new file is written beside its name, synced, then linked to the name: nobody ever sees half of it, nothing is overwritten.
- A name is durable only after its folder has been synced too.
- An error of the operating system becomes one `StorageError` with a code and, where a person can act, a hint.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterable
from io import BufferedReader
from pathlib import Path
from typing import Final

from ledger.errors import StorageError, clip

__all__ = [
    "append_all",
    "fsync_folder",
    "make_folder",
    "network_filesystem",
    "open_regular",
    "remove_temporaries",
    "replace",
    "storage_error",
    "sync",
    "temporary_beside",
    "write_new",
]

_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS `fsync` stops at the drive's cache; this goes through it."""

_NETWORK: Final = frozenset(
    [
        "9p",
        "afpfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.ceph",
        "fuse.ceph-fuse",
        "fuse.curlftpfs",
        "fuse.davfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.goofys",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
        "webdav",
    ]
)

_REASONS: Final[dict[int, tuple[str, str, str | None]]] = {
    errno.ENOSPC: ("storage.full", "the disk is full", "free some space on the disk of {path}, then try again"),
    errno.EDQUOT: ("storage.full", "the disk quota is used up", "free some of your quota on {path}, then try again"),
    errno.EFBIG: (
        "storage.full",
        "the file would be larger than allowed",
        "raise the limit (ulimit -f), then try again",
    ),
    errno.EROFS: ("storage.read_only", "the file system is read-only", "use a folder that can be written"),
    errno.EACCES: ("storage.read_only", "permission denied", "give this user the right to use {path}"),
    errno.EPERM: ("storage.read_only", "operation not permitted", "give this user the right to use {path}"),
    errno.ENOENT: ("storage.absent", "no such file or folder", None),
    errno.ENOTDIR: ("storage.absent", "a part of the path is not a folder", None),
    errno.EISDIR: ("storage.not_a_file", "is a folder, not a file", None),
    errno.ELOOP: ("storage.not_a_file", "is a symbolic link, or a loop of them", None),
    errno.EEXIST: ("storage.exists", "exists already", None),
    errno.EMFILE: ("storage.descriptors", "too many open files", "raise the limit (ulimit -n), then try again"),
    errno.ENFILE: ("storage.descriptors", "too many open files on this machine", None),
    errno.EIO: (
        "storage.io",
        "the disk reports an input/output error",
        "look at the health of the disk of {path} first",
    ),
}

_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def storage_error(error: OSError, path: Path | None) -> StorageError:
    """Return the error that says in plain words what the operating system refused, and for which path."""
    place = str(path) if path is not None else "the open file"
    known = _REASONS.get(error.errno or 0)
    if known is None:
        return StorageError(f"{place}: {error.strerror or clip(error)}", where=place)
    code, said, hint = known
    return StorageError(f"{place}: {said}", code=code, hint=hint and hint.format(path=place), where=place)


def sync(descriptor: int) -> None:
    """Return when the file's bytes and size are on the disk, through the drive's cache where the system lets us.

    Raises:
        OSError: they may not be.
    """
    if _FULL_SYNC is not None:
        # A file system that does not know this call still knows the ordinary one.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)


def fsync_folder(path: Path) -> None:
    """Return when the names in the folder are on the disk.

    Raises:
        StorageError: they may not be.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, path) from error


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Make the folder and those above it where absent, durably; `mode` (less the umask) is for each one made.

    Raises:
        StorageError: it cannot be made, or the name is taken by something else.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent, mode=mode)
    try:
        path.mkdir(mode=mode, exist_ok=True)
    except OSError as error:
        raise storage_error(error, path) from error
    fsync_folder(path.parent)


def append_all(descriptor: int, data: bytes, *, path: Path | None = None) -> None:
    """Write all of `data` at the descriptor's position, over as many writes as the system needs; nothing is synced.

    Raises:
        StorageError: some of it may have been written; the caller knows where it began and cuts back.
    """
    try:
        written = os.write(descriptor, data)
        if written == len(data):
            return
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        raise storage_error(error, path) from error


def open_regular(path: Path) -> BufferedReader:
    """Return the file opened for reading.

    Whoever gave us a folder may have put a pipe or a device in it, from which reading never ends: only a regular file is opened.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(descriptor, "rb")  # noqa: PTH123  the caller closes it


def temporary_beside(path: Path) -> Path:
    """Return a new hidden name in the folder of `path`, for a file on its way to that name."""
    return path.with_name(f".{path.name[:100]}.{os.urandom(8).hex()}.tmp")


def remove_temporaries(folder: Path, *, which: Callable[[Path], bool] = lambda _: True) -> None:
    """Remove what crashes left of files on their way to a name in a folder, where nobody writes one now; `which` chooses.

    What a database keeps beside such a file, under its name and a suffix, goes with it.

    Raises:
        StorageError: some may be left.
    """
    try:
        for path in (*folder.glob(".*.tmp"), *folder.glob(".*.tmp.*")):
            if which(path):
                path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file that did not exist, durably: it is complete under its name or not there.

    Raises:
        StorageError: not written; code `storage.exists` where the name is taken, whoever took it.
    """
    temporary = temporary_beside(path)
    try:
        _write(temporary, data, mode=mode, durable=True)
        _link_new(temporary, path)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    fsync_folder(path.parent)


def replace(path: Path, data: bytes, *, mode: int = 0o644, durable: bool) -> None:
    """Put a whole new file in the place of `path`; a reader sees the old one or the new one.

    Without `durable` nothing is synced: after a loss of power the old one, the new one or an empty one may be found.

    Raises:
        StorageError: the old file is as it was.
    """
    temporary = temporary_beside(path)
    try:
        _write(temporary, data, mode=mode, durable=durable)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise storage_error(error, path) from error
    except StorageError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        fsync_folder(path.parent)


def _write(path: Path, data: bytes, *, mode: int, durable: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        append_all(descriptor, data, path=path)
        if durable:
            sync(descriptor)
    finally:
        os.close(descriptor)


def _link_new(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # Without hard links the name is claimed first, so a crash in between leaves an empty file under it.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        temporary.replace(path)


def network_filesystem(path: Path) -> str | None:
    """Return the type of the network file system that holds `path` (`nfs4`, `cifs`, `fuse.sshfs`), None for a local one.

    None also where this machine does not say how its file systems are mounted.
    """
    try:
        mounts = parse_mounts(Path("/proc/self/mounts").read_text("utf-8", "surrogateescape"))
    except OSError:
        mounts = parse_mount_command(_mount_output())
    return network_type(mounts, os.path.realpath(path))


def _mount_output() -> str:
    import subprocess  # noqa: PLC0415  only where there is no /proc

    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "surrogateescape")


def parse_mounts(table: str) -> list[tuple[str, str]]:
    """Return mount point and type of each line of `/proc/self/mounts`, in order."""
    rows = [line.split(" ") for line in table.split("\n")]
    unescape = re.compile(r"\\([0-7]{3})")
    return [(unescape.sub(lambda match: chr(int(match[1], 8)), row[1]), row[2]) for row in rows if len(row) >= 4]


def parse_mount_command(table: str) -> list[tuple[str, str]]:
    """Return mount point and type of each line that `mount` prints on macOS and BSD: `what on /where (type, option)`."""
    found = re.finditer(r"^.+? on (/.*) \(([^,()]+)[^()]*\)$", table, re.MULTILINE)
    return [(match[1], match[2]) for match in found]


def network_type(mounts: Iterable[tuple[str, str]], path: str) -> str | None:
    """Return the type of the innermost mount that holds the absolute `path`, if it is a network file system."""
    best, kind = "", ""
    for point, its_kind in mounts:
        inside = point in ("/", path) or path.startswith(point + "/")
        # Of two mounts on one point the later hides the earlier.
        if inside and len(point) >= len(best):
            best, kind = point, its_kind
    # A sandbox may give its whole root over 9p: there the machine is the only user of it.
    if kind not in _NETWORK or (kind == "9p" and best == "/"):
        return None
    return kind
