"""A disk that refuses: full, too small a limit, read-only, no rights, a descriptor gone. Nothing acknowledged is lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import Ledger, NotExecuted
from ledger.envelope import Envelope
from ledger.errors import DamagedError, LedgerError, StorageError, UnrememberedWarning
from tests.reference.check import check_folder
from tests.reference.ledgers import (
    bytes_of,
    ended,
    fork,
    grant,
    last_segment,
    new_ledger,
    open_ledger,
    places_of,
    quick_folder,
    verdict,
)

ROOT_USER = os.getuid() == 0
NOBODY = 65534


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


@contextmanager
def file_limit(size_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: a write that would is short, the next one fails with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def refusal(ledger: Ledger, *envelopes: Envelope) -> str | None:
    """Return the code under which an append is refused, None where it is not."""
    try:
        ledger.append_many(envelopes or [grant(ledger)])
    except StorageError as error:
        return error.code
    return None


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, b"x" * 4096)
    except OSError:
        return
    finally:
        os.close(descriptor)


def test_a_short_write_is_cut_back_at_every_length(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append_many([grant(ledger) for _ in range(100)])
    path = last_segment(ledger)
    size, before, head = path.stat().st_size, path.read_bytes(), ledger.head()
    assert size > 100_000  # all other files stay below the limit

    def body() -> None:
        for more in (0, 1, 2, 9, 100, 700, 1_500, 2_000):
            for fresh in (False, True):
                writer = open_ledger(tmp_path) if fresh else ledger
                envelopes = [grant(writer), grant(writer)]
                with file_limit(size + more):
                    assert refusal(writer, *envelopes) == "storage.full", more
                assert path.read_bytes() == before, more
                assert writer.head() == head

    assert ended(fork(body)) == 0
    assert ledger.append(grant(ledger)).index == 101
    assert len(check_folder(ledger.folder).rows) == 102
    assert not (ledger.folder / "quarantine").exists()


def test_after_a_short_write_the_same_ledger_object_appends_again(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append_many([grant(ledger) for _ in range(30)])
    size = last_segment(ledger).stat().st_size

    def body() -> None:
        envelope = grant(ledger)
        for _ in range(3):
            with file_limit(size + 500), pytest.raises(StorageError):
                ledger.append(envelope)
        position = ledger.append(envelope)
        assert (position.index, position.already) == (31, False)
        assert ledger.append(envelope).already

    assert ended(fork(body)) == 0
    assert len(check_folder(ledger.folder).rows) == 32
    assert verdict(ledger).exit == 0


def test_an_intent_that_cannot_be_recorded_lets_nothing_run(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append_many([grant(ledger) for _ in range(30)])

    def body() -> None:
        run = ledger.run("work")
        size = last_segment(ledger).stat().st_size
        ran = []
        with file_limit(size + 300), pytest.raises(StorageError), run.call("act"):
            ran.append(1)
        assert ran == []
        run.close()

    assert ended(fork(body)) == 0
    journal = check_folder(ledger.folder)
    assert [row.receipt["kind"] for row in journal.rows[31:]] == ["opening", "run"]


def test_an_outcome_that_cannot_be_recorded_raises_and_is_ambiguous(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append_many([grant(ledger) for _ in range(30)])

    def body() -> None:
        run = ledger.run("work")
        call = run.call("act")
        call.__enter__()
        with file_limit(last_segment(ledger).stat().st_size + 300), pytest.raises(StorageError) as caught:
            call.__exit__(None, None, None)
        assert "ambiguous" in (caught.value.hint or "") or caught.value.hint
        run.close()

    assert ended(fork(body)) == 0
    (outcome,) = check_folder(ledger.folder).of("outcome")
    assert (outcome.receipt["status"], outcome.receipt["reason"]) == ("ambiguous", "act.recorder_lost")


def test_a_file_limit_below_what_is_there_refuses_creation_whole(tmp_path: Path) -> None:
    def body() -> None:
        with file_limit(400):
            try:
                new_ledger(tmp_path, origin="example.org/one")
            except LedgerError:
                return
        raise AssertionError("400 bytes were enough")

    assert ended(fork(body)) == 0
    assert not (tmp_path / "ledger").exists()
    assert new_ledger(tmp_path, origin="example.org/one").head().size == 1


@pytest.mark.skipif(not ROOT_USER, reason="mounting needs root")
def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as disk:
        ledger = Ledger.create(disk / "ledger", places=places_of(tmp_path))
        receipts: list[str] = []
        (disk / "filler").write_bytes(b"x" * 300_000)
        code = None
        while code is None:
            batch = [grant(ledger) for _ in range(10)]
            code = refusal(ledger, *batch)
            receipts += [each.receipt_id for each in batch if code is None]
        assert code == "storage.full"
        size = ledger.head().size
        assert size == 1 + len(receipts) > 1
        again = Ledger.open(disk / "ledger", places=places_of(tmp_path))
        envelopes = [grant(again) for _ in range(40)]
        with pytest.raises(StorageError) as caught:
            again.append_many(envelopes)
        assert caught.value.code in {"storage.full", "storage.state"}
        assert len(check_folder(ledger.folder).rows) == size
        (disk / "filler").unlink()
        assert again.append_many(envelopes)[0].index == size
        assert ledger.append(grant(ledger)).index == size + 40
        journal = check_folder(ledger.folder)
        assert receipts == journal.ids[1:size]
        assert verdict(ledger).exit == 0
        ledger.close()
        again.close()


@pytest.mark.skipif(not ROOT_USER, reason="mounting needs root")
def test_a_disk_that_is_full_while_a_tail_is_repaired_loses_no_byte_of_it(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as disk:
        ledger = Ledger.create(disk / "ledger", places=places_of(tmp_path))
        path, note = last_segment(ledger), ledger.checkpoint()
        start = path.stat().st_size
        ledger.append_many([grant(ledger) for _ in range(20)])
        ledger.close()
        torn = path.read_bytes()[start:-9]
        path.write_bytes(path.read_bytes()[:-9])
        places_of(tmp_path).register_file(ledger.origin).write_bytes(note)
        filler = disk / "filler"
        fill(filler)
        again = Ledger.open(disk / "ledger", places=places_of(tmp_path))
        envelope = grant(again)
        before = bytes_of(again.folder)
        for _ in range(2):
            with pytest.raises(StorageError):
                again.append(envelope)
            assert bytes_of(again.folder) == before
        # Room for the copy, and none for the receipt.
        os.truncate(filler, filler.stat().st_size - 4096 * 9)
        while refusal(again) is None:
            pass
        filler.unlink()
        again.append(envelope)
        (repair,) = check_folder(again.folder).of("repair")
        assert (repair.index, repair.receipt["cut_bytes"]) == (1, len(torn))
        assert [kept.read_bytes() for kept in (again.folder / "quarantine").iterdir()] == [torn]
        again.close()


@pytest.mark.skipif(not ROOT_USER, reason="mounting needs root")
def test_a_read_only_disk_is_read_and_verified_and_not_appended_to(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        ledger = Ledger.create(disk / "ledger", places=places_of(tmp_path))
        id_ = ledger.append(grant(ledger)).receipt
        envelope = grant(ledger)
        ledger.close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for each in (ledger, Ledger.open(disk / "ledger", places=places_of(tmp_path))):
            assert each.head().size == 2
            assert each.get(id_).entry.index == 1
            assert each.find(id_[:20]) == [id_]
            assert verdict(each).exit == 0
            with pytest.raises(StorageError) as caught:
                each.append(envelope)
            assert caught.value.code == "storage.read_only"
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert ledger.append(envelope).index == 2
        ledger.close()


@pytest.mark.skipif(not ROOT_USER, reason="needs root to give rights away")
def test_a_user_without_the_right_to_write_reads_and_cannot_append(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    id_ = ledger.append(grant(ledger)).receipt
    ledger.close()
    subprocess.run(["chmod", "-R", "a+rX", str(tmp_path)], check=True)
    # The keys are this user's in all respects, so that only the folder's rights are missing.
    for path in [*places_of(tmp_path).keys.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = {path: path.stat().st_mtime_ns for path in ledger.folder.rglob("*")}
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)

    def body() -> None:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        again = open_ledger(tmp_path)
        assert again.head().size == 2
        assert again.get(id_).entry.index == 1
        assert [stored.entry.index for stored in again.entries()] == [0, 1]
        assert again.evidence(id_).subject == id_
        with pytest.raises(StorageError) as caught:
            again.append(grant(again))
        assert caught.value.code == "storage.read_only", caught.value.code
        with pytest.raises(StorageError):
            Ledger.create(tmp_path / "other", places=places_of(tmp_path / "elsewhere"))
        with pytest.raises(StorageError):
            Ledger.create(tmp_path / "other", places=places_of(locked))

    assert ended(fork(body)) == 0
    assert {path: path.stat().st_mtime_ns for path in ledger.folder.rglob("*")} == before
    assert not (tmp_path / "other").exists()


@pytest.mark.skipif(not ROOT_USER, reason="needs root to give rights away")
def test_a_register_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.close()
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(tmp_path)], check=True)
    subprocess.run(["chown", "-R", "0:0", str(places_of(tmp_path).state)], check=True)
    subprocess.run(["chmod", "-R", "a+rX", str(places_of(tmp_path).state)], check=True)

    def body() -> None:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        again = open_ledger(tmp_path)
        with pytest.warns(UnrememberedWarning):
            assert again.append(grant(again)).index == 1
        for number in range(2):  # said once: another warning would be an error
            assert again.append(grant(again)).index == number + 2

    assert ended(fork(body)) == 0
    assert len(check_folder(ledger.folder).rows) == 4


def test_too_many_open_files_is_said_and_passes(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))

    def body() -> None:
        envelope = grant(ledger)
        ledger.close()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        opened = [os.dup(0) for _ in range(3)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened) + 1, limits[1]))
        with pytest.raises(LedgerError):
            ledger.append(envelope)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert ledger.append(envelope).index == 2

    assert ended(fork(body)) == 0
    assert len(check_folder(ledger.folder).rows) == 3


def test_a_journal_that_something_else_wrote_to_is_damage(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    with last_segment(ledger).open("ab") as file:
        file.write(b"stray bytes\n")
    before = bytes_of(ledger.folder)
    with pytest.raises(DamagedError):
        ledger.append(grant(ledger))
    assert bytes_of(ledger.folder) == before


def test_not_executed_is_what_a_full_disk_does_not_say(tmp_path: Path) -> None:
    """An error of the recorder inside a call says nothing about the act: it is ambiguous, not failed."""
    ledger = new_ledger(tmp_path)
    with ledger.run("work") as run:
        with pytest.raises(StorageError), run.call("act"):
            raise StorageError("full", code="storage.full")
        with pytest.raises(NotExecuted), run.call("act"):
            raise NotExecuted
    statuses = [row.receipt["status"] for row in check_folder(ledger.folder).of("outcome")]
    assert statuses == ["ambiguous", "failed"]
