"""Durable files: whole or not there, never overwritten, errors in plain words."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import StorageError
from ledger.storage import durable


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def test_a_new_file_holds_exactly_the_bytes_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    durable.write_new(tmp_path / "a", b"\x00\xffbytes\n", mode=0o600)
    assert (tmp_path / "a").read_bytes() == b"\x00\xffbytes\n"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("taken", ["file", "folder", "dangling link"])
def test_a_taken_name_is_refused_and_left_as_it_was(tmp_path: Path, taken: str) -> None:
    path = tmp_path / "a"
    match taken:
        case "file":
            path.write_bytes(b"old")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(tmp_path / "nowhere")
    before = path.lstat()
    with pytest.raises(StorageError) as caught:
        durable.write_new(path, b"new")
    assert caught.value.code == "storage.exists"
    assert path.lstat().st_ino == before.st_ino
    assert names(tmp_path) == ["a"]


def test_a_new_file_in_an_absent_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        durable.write_new(tmp_path / "no" / "a", b"x")
    assert caught.value.code == "storage.absent"


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_still_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    durable.write_new(tmp_path / "a", b"first")
    with pytest.raises(StorageError) as caught:
        durable.write_new(tmp_path / "a", b"second")
    assert caught.value.code == "storage.exists"
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("lasting", [True, False])
def test_replacing_puts_a_whole_new_file_in_the_place_of_the_old(tmp_path: Path, lasting: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a much longer old text")
    before = path.stat().st_ino
    durable.replace(path, b"new", mode=0o600, durable=lasting)
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino != before
    assert names(tmp_path) == ["a"]


def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StorageError) as caught:
            durable.replace(path, b"x" * 1001, durable=True)
        durable.replace(tmp_path / "fits", b"x" * 1000, durable=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.code == "storage.full"
    assert caught.value.hint is not None
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a", "fits"]


def test_appending_goes_on_after_short_writes(tmp_path: Path) -> None:
    # A pipe takes less than it is given as long as nobody reads, so the loop is what ends this.
    reader, writer = os.pipe()
    data = os.urandom(1_000_000)
    if os.fork() == 0:
        os.close(reader)
        durable.append_all(writer, data)
        os._exit(0)
    os.close(writer)
    got = b""
    while chunk := os.read(reader, 4096):
        got += chunk
    os.close(reader)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    assert got == data


def test_appending_what_the_limit_cuts_short_raises(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    descriptor = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StorageError) as caught:
            durable.append_all(descriptor, b"x" * 1500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
        os.close(descriptor)
    assert caught.value.code == "storage.full"
    assert (tmp_path / "a").stat().st_size == 1000


def test_folders_are_made_down_to_the_last_with_the_given_mode(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b", mode=0o700)
    durable.make_folder(tmp_path / "a" / "b", mode=0o700)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_a_folder_is_not_made_where_a_file_lies(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(StorageError):
            durable.make_folder(path)


def test_syncing_an_absent_folder_raises(tmp_path: Path) -> None:
    durable.fsync_folder(tmp_path)
    with pytest.raises(StorageError) as caught:
        durable.fsync_folder(tmp_path / "no")
    assert caught.value.code == "storage.absent"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "storage.full"),
        (errno.EDQUOT, "storage.full"),
        (errno.EROFS, "storage.read_only"),
        (errno.EACCES, "storage.read_only"),
        (errno.EPERM, "storage.read_only"),
        (errno.ENOENT, "storage.absent"),
        (errno.EIO, "storage.io"),
        (errno.ETXTBSY, "storage.error"),
    ],
)
def test_each_error_of_the_system_has_its_code_and_names_the_path(number: int, code: str) -> None:
    error = durable.storage_error(OSError(number, os.strerror(number)), Path("/some/place"))
    assert error.code == code
    assert str(error).startswith("/some/place: ")
    assert "{" not in (error.hint or "")


MOUNTS = r"""proc /proc proc rw,nosuid 0 0
/dev/sda1 / ext4 rw,relatime 0 0
server:/export /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local xfs rw 0 0
//box/share /mnt/my\040share cifs rw 0 0
me@host:/ /mnt/ssh fuse.sshfs rw,nosuid 0 0
C:\134 /mnt/c 9p rw,dirsync 0 0
tmpfs /over tmpfs rw 0 0
server:/x /over nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", None),
        ("/home", "nfs4"),
        ("/home/me/.ledger", "nfs4"),
        ("/homes", None),
        ("/home/local/x", None),
        ("/home/locals", "nfs4"),
        ("/mnt/my share/x", "cifs"),
        ("/mnt/my", None),
        ("/mnt/ssh/x", "fuse.sshfs"),
        ("/mnt/c/Users", "9p"),
        ("/over/x", "nfs"),
    ],
)
def test_the_innermost_and_last_mount_decides(path: str, kind: str | None) -> None:
    assert durable.network_type(durable.parse_mounts(MOUNTS), path) == kind


def test_a_sandbox_whose_whole_root_is_9p_is_local_and_one_on_nfs_is_not() -> None:
    assert durable.network_type([("/", "9p")], "/work") is None
    assert durable.network_type([("/", "nfs")], "/work") == "nfs"


def test_the_table_of_macos_is_read_too() -> None:
    table = (
        "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n"
        "//me@box/My%20Share on /Volumes/My Share (smbfs, nodev, nosuid, mounted by me)\n"
        "map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)\n"
    )
    mounts = durable.parse_mount_command(table)
    assert mounts == [("/", "apfs"), ("/Volumes/My Share", "smbfs"), ("/System/Volumes/Data/home", "autofs")]
    assert durable.network_type(mounts, "/Volumes/My Share/l") == "smbfs"
    assert durable.network_type(mounts, "/Users/me") is None


def test_the_folder_of_this_test_is_local(tmp_path: Path) -> None:
    assert durable.network_filesystem(tmp_path) is None
    assert durable.network_filesystem(tmp_path / "not" / "there") is None


@given(st.binary(max_size=5000))
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("w") / "a"
    durable.write_new(path, data)
    assert path.read_bytes() == data
