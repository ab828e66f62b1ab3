"""A folder from a stranger may hold pipes, devices and files without end: reading it comes to an end, and says what it found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ledger.errors import DamagedError, LedgerError
from ledger.members import Actor
from ledger.storage.journal import segment_path
from ledger.storage.reader import Reader
from tests.reference.ledgers import new_ledger


def recorded(folder):
    """Return a ledger with one closed run of one call, and the run's id."""
    with new_ledger(folder) as ledger:
        with (
            ledger.run("work", actor=Actor(agent="a", user="b", model="c")) as run,
            run.call("c", access="read", arguments={"x": 1}) as call,
        ):
            call.result = {"y": 2}
        return ledger.folder, run.id


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def folder_(path):
    path.unlink()
    path.mkdir()


def loop(path):
    path.unlink()
    path.symlink_to(path.name)


def endless(path):
    path.write_bytes(b"")
    os.truncate(path, 1 << 40)


STRANGE = [pipe, device, folder_, loop]


@pytest.mark.parametrize("strange", [*STRANGE, endless])
def test_a_segment_that_is_no_file_or_too_large_is_damage(tmp_path, strange):
    folder, run = recorded(tmp_path)
    strange(segment_path(folder, 0))
    reader = Reader(folder)
    for ask in (reader.header, reader.note, lambda: reader.get(run), lambda: list(reader.entries())):
        with pytest.raises(DamagedError):
            ask()


def test_a_segment_as_large_as_may_be_without_a_line_is_read_to_its_end(tmp_path):
    folder, _ = recorded(tmp_path)
    path = segment_path(folder, 0)
    path.write_bytes(b"")
    os.truncate(path, 90 << 20)
    with pytest.raises(LedgerError):
        Reader(folder).header()


@pytest.mark.parametrize("name", ["state.sqlite", "tiles/0"])
@pytest.mark.parametrize("strange", STRANGE)
def test_a_derived_file_that_is_no_file_is_not_needed(tmp_path, name, strange):
    folder, run = recorded(tmp_path)
    strange(folder / name)
    reader = Reader(folder)
    assert reader.get(run).entry.receipt == run
    assert reader.hash_reader(reader.head()) is not None


@pytest.mark.parametrize("strange", STRANGE)
def test_a_pack_that_is_no_file_makes_its_artifacts_unreadable_and_nothing_else(tmp_path, strange):
    folder, run = recorded(tmp_path)
    for pack in (folder / "artifacts" / "packs").glob("*.pack"):
        strange(pack)
    with new_ledger_again(folder, tmp_path) as ledger:
        salt = ledger.get(run)
        assert salt.entry.receipt == run
        from ledger.receipt import parse_receipt

        with pytest.raises(LedgerError):
            ledger.artifact(parse_receipt(salt.envelope.payload).artifacts[0])


def new_ledger_again(folder: Path, base: Path):
    from ledger import Ledger
    from tests.reference.ledgers import places_of

    return Ledger.open(folder, places=places_of(base))
