"""Artifacts under crashes, full disks and flipped bits: what was acknowledged stays, what is wrong is never returned."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest

from ledger.errors import NotFoundError, StorageError
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.lock import LedgerLock

KEPT = [b"the first", b"a second, which is longer\n", b"", b"line\nline\n"]
LOST = [b"never acknowledged", b"nor this\0"]


def sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def lines_of(pack: bytes) -> list[tuple[str, bytes]]:
    """Return the records of a pack; a plain reading of its format, which fails on anything else."""
    records = []
    while pack:
        header, _, pack = pack.partition(b"\n")
        digest, _, length = header.decode("ascii").partition(" ")
        data, end, pack = pack[: int(length)], pack[int(length) : int(length) + 1], pack[int(length) + 1 :]
        assert end == b"\n"
        assert sha(data) == digest
        records.append((digest, data))
    return records


def filled(folder: Path, *batches: list[bytes]) -> list[int]:
    """Return the size of the pack after each batch."""
    artifacts = ArtifactStore(folder)
    sizes = []
    for batch in batches:
        for item in batch:
            artifacts.stage(item)
        artifacts.flush()
        sizes.append((folder / "artifacts" / "packs" / "00000000.pack").stat().st_size)
    return sizes


@pytest.mark.parametrize("filler", ["nothing", "one NUL", "NULs to the size it would have had"])
def test_an_append_cut_short_at_any_byte_is_cut_off_and_costs_nothing(tmp_path: Path, filler: str) -> None:
    before, after = filled(tmp_path / "a", KEPT, LOST)
    whole = (tmp_path / "a" / "artifacts" / "packs" / "00000000.pack").read_bytes()
    for cut in range(before, after):
        folder = tmp_path / f"cut-{cut}"
        (folder / "artifacts" / "packs").mkdir(parents=True)
        pack = folder / "artifacts" / "packs" / "00000000.pack"
        nuls = {"nothing": 0, "one NUL": 1}.get(filler, after - cut)
        pack.write_bytes(whole[:cut] + bytes(nuls))
        reader = ArtifactStore(folder)
        assert [reader.get(sha(item)) for item in KEPT] == KEPT
        writer = ArtifactStore(folder)
        digest = writer.stage(b"afterwards")
        writer.flush()
        for artifacts in (reader, writer, ArtifactStore(folder)):
            assert [artifacts.get(sha(item)) for item in [*KEPT, b"afterwards"]] == [*KEPT, b"afterwards"]
        records = lines_of(pack.read_bytes())
        assert [data for _, data in records[: len(KEPT)]] == KEPT
        assert records[-1][0] == digest
        assert os.listdir(folder / "artifacts" / "packs") == ["00000000.pack"], cut
        shutil.rmtree(folder)


def is_good(artifacts: ArtifactStore, item: bytes) -> bool:
    """Return whether an artifact is returned; it is never returned wrong."""
    try:
        assert artifacts.get(sha(item)) == item
    except NotFoundError:
        return False
    except StorageError as error:
        if error.code != "artifact.altered":
            raise
        return False
    return True


def test_a_flipped_bit_is_never_returned_and_takes_nothing_else_along(tmp_path: Path) -> None:
    items = [KEPT[3], KEPT[2], LOST[1]]
    filled(tmp_path / "a", items)
    whole = (tmp_path / "a" / "artifacts" / "packs" / "00000000.pack").read_bytes()
    for position in range(len(whole)):
        folder = tmp_path / "flipped"
        (folder / "artifacts" / "packs").mkdir(parents=True)
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (position % 8)
        (folder / "artifacts" / "packs" / "00000000.pack").write_bytes(flipped)
        writer = ArtifactStore(folder)
        writer.stage(b"afterwards")
        writer.flush()
        for artifacts in (writer, ArtifactStore(folder)):
            # One record at most is hit.
            assert sum(is_good(artifacts, item) for item in items) >= len(items) - 1, position
            assert artifacts.get(sha(b"afterwards")) == b"afterwards"
        kept = b"".join(path.read_bytes() for path in sorted((folder / "artifacts" / "packs").glob("*.pack")))
        assert kept.startswith(bytes(flipped)), position
        shutil.rmtree(folder)


def test_a_full_disk_leaves_the_pack_as_it_was_and_the_batch_waiting(tmp_path: Path) -> None:
    (before,) = filled(tmp_path, KEPT)
    pack = tmp_path / "artifacts" / "packs" / "00000000.pack"
    content = pack.read_bytes()
    artifacts = ArtifactStore(tmp_path)
    digest = artifacts.stage(b"x" * 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before + 500, hard))
    try:
        with pytest.raises(StorageError) as caught:
            artifacts.flush()
        large = b"y" * 300_000
        with pytest.raises(StorageError):
            artifacts.stage(large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.code == "storage.full"
    assert pack.read_bytes() == content
    assert os.listdir(tmp_path / "artifacts" / "blobs") == []
    assert not ArtifactStore(tmp_path).exists(digest)
    assert artifacts.pending == 1
    artifacts.flush()
    assert ArtifactStore(tmp_path).get(digest) == b"x" * 1000


def test_a_sync_that_fails_takes_back_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, KEPT)
    pack = tmp_path / "artifacts" / "packs" / "00000000.pack"
    content = pack.read_bytes()
    artifacts = ArtifactStore(tmp_path)
    digest = artifacts.stage(b"x")
    real, calls = os.fsync, [0]

    def fail_once(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == 1:
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fail_once)
    with pytest.raises(StorageError) as caught:
        artifacts.flush()
    assert caught.value.code == "storage.io"
    assert pack.read_bytes() == content
    assert artifacts.pending == 1
    artifacts.flush()
    assert ArtifactStore(tmp_path).get(digest) == b"x"


def test_a_flush_costs_one_sync_and_a_new_pack_one_more_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = ArtifactStore(tmp_path)
    filled(tmp_path, KEPT)
    artifacts.stage(b"warm")
    artifacts.flush()
    real, synced = os.fsync, []

    def noted(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    for item in LOST:
        artifacts.stage(item)
    artifacts.flush()
    assert synced == [str(tmp_path / "artifacts" / "packs" / "00000000.pack")]
    synced.clear()
    artifacts.flush()
    assert synced == []
    for item in LOST:
        artifacts.stage(item)
    artifacts.flush()
    assert synced == []
    other = ArtifactStore(tmp_path / "new")
    other.stage(b"x")
    other.flush()
    assert synced[-2:] == [
        str(tmp_path / "new" / "artifacts" / "packs"),
        str(tmp_path / "new" / "artifacts" / "packs" / "00000000.pack"),
    ]


def test_bytes_that_another_process_wrote_are_synced_before_they_count_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, KEPT)
    fresh = ArtifactStore(tmp_path)
    fresh.stage(KEPT[0])
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    fresh.flush()
    assert len(synced) == 1


def test_killed_writers_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []
    for turn in range(12):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            artifacts = ArtifactStore(tmp_path / "a", pack_bytes=20_000)
            for i in range(100_000):
                data = b"turn %d item %d " % (turn, i) * (1 + i % 40)
                with LedgerLock(tmp_path / "lock").hold():
                    artifacts.stage(data)
                    artifacts.flush()
                os.write(writer, len(data).to_bytes(4, "big") + data)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            # The moment of the kill depends on the turn and on the scheduler, never on a clock.
            acknowledged += [pipe.read(int.from_bytes(pipe.read(4), "big")) for _ in range(3 + 7 * turn)]
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            while len(size := pipe.read(4)) == 4:
                data = pipe.read(int.from_bytes(size, "big"))
                if len(data) == int.from_bytes(size, "big"):
                    acknowledged.append(data)
        artifacts = ArtifactStore(tmp_path / "a")
        assert all(artifacts.get(sha(data)) == data for data in acknowledged)
    final = ArtifactStore(tmp_path / "a", pack_bytes=20_000)
    final.stage(b"end")
    final.flush()
    for path in sorted((tmp_path / "a" / "artifacts" / "packs").glob("*.pack")):
        lines_of(path.read_bytes())


def test_many_processes_write_into_the_same_packs(tmp_path: Path) -> None:
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                artifacts = ArtifactStore(tmp_path / "a", pack_bytes=5000)
                lock = LedgerLock(tmp_path / "lock")
                for i in range(60):
                    artifacts.stage(b"process %d item %d" % (number, i))
                    artifacts.stage(b"shared %d" % i)
                    with lock.hold():
                        artifacts.flush()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    expected = {b"process %d item %d" % (number, i) for number in range(4) for i in range(60)}
    expected |= {b"shared %d" % i for i in range(60)}
    records = []
    for path in sorted((tmp_path / "a" / "artifacts" / "packs").glob("*.pack")):
        records += lines_of(path.read_bytes())
    assert len(records) == len(expected)
    assert {data for _, data in records} == expected


def test_an_erasure_cut_short_leaves_the_old_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, KEPT)
    artifacts = ArtifactStore(tmp_path)
    content = (tmp_path / "artifacts" / "packs" / "00000000.pack").read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError) as caught:
        artifacts.erase(sha(KEPT[1]))
    monkeypatch.undo()
    assert caught.value.code == "storage.full"
    assert (tmp_path / "artifacts" / "packs" / "00000000.pack").read_bytes() == content
    assert os.listdir(tmp_path / "artifacts" / "packs") == ["00000000.pack"]
    assert artifacts.get(sha(KEPT[1])) == KEPT[1]
    assert artifacts.erase(sha(KEPT[1]))
    assert [data for _, data in lines_of((tmp_path / "artifacts" / "packs" / "00000000.pack").read_bytes())] == [
        KEPT[0],
        *KEPT[2:],
    ]
