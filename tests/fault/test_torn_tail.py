"""The end of a journal, cut at every byte and flipped at every byte: a torn tail is set aside, damage is left alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from ledger import Ledger, LedgerError
from ledger.errors import DamagedError, RegisterError
from tests.reference.check import Journal, check_folder, name_of
from tests.reference.ledgers import (
    bytes_of,
    grant,
    last_segment,
    new_ledger,
    open_ledger,
    places_of,
    quick_folder,
    verdict,
)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


@dataclass
class Sample:
    """A ledger to copy and spoil: where its last commit begins, and what it holds before."""

    folder: Path
    start: int
    data: bytes
    before: Journal
    receipts: list[str]

    def copy(self, target: Path, journal: bytes, *, forget: bool = True, state: bool = True) -> Ledger:
        """Return a copy with this journal; `forget` takes the register away, as a loss of power may."""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        ledger = open_ledger(target)
        last_segment(ledger).write_bytes(journal)
        if forget:
            places_of(target).register_file(ledger.origin).unlink()
        if not state:
            for path in ledger.folder.glob("state.sqlite*"):
                path.unlink()
        return ledger


def make(folder: Path, last: int) -> Sample:
    ledger = new_ledger(folder)
    ledger.append_many([grant(ledger), grant(ledger)])
    before = check_folder(ledger.folder)
    path = last_segment(ledger)
    start = path.stat().st_size
    receipts = [each.receipt for each in ledger.append_many([grant(ledger) for _ in range(last)])]
    ledger.close()
    return Sample(folder, start, path.read_bytes(), before, receipts)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    with quick_folder(tmp_path_factory.mktemp("one")) as folder:
        yield make(folder, 1)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    with quick_folder(tmp_path_factory.mktemp("two")) as folder:
        yield make(folder, 2)


def check_recovered(ledger: Ledger, sample: Sample, torn: bytes) -> None:
    """Check a ledger after an append that had to repair: what was there, one repair receipt, the new receipt."""
    journal = check_folder(ledger.folder)
    kept = sample.before.ids
    assert journal.ids[: len(kept)] == kept
    (repair,) = journal.of("repair")
    assert repair.index == len(kept)
    assert repair.receipt["reason"] == "repair.torn_tail"
    assert repair.receipt["offset_bytes"] == sample.start
    assert repair.receipt["cut_bytes"] == len(torn)
    assert repair.receipt["cut_digest"] == name_of(torn)
    assert [path.read_bytes() for path in (ledger.folder / "quarantine").iterdir()] == [torn]
    assert [path.suffix for path in (ledger.folder / "quarantine").iterdir()] == [".torn"]


def cuts(sample: Sample) -> Iterator[int]:
    """Yield every length of the last commit that a crash can leave: something, and not the whole last line."""
    yield from range(sample.start + 1, len(sample.data) - 1)


def test_a_tail_cut_at_any_byte_is_set_aside_and_said_in_a_receipt(two: Sample, tmp_path: Path) -> None:
    for end in cuts(two):
        if (end - two.start) % 7 not in {0, 1} and two.data[end - 1 : end + 1].count(b"\n") == 0:
            continue  # every byte is cut at in the slow test below
        recover(two, tmp_path / "copy", two.data[:end], end)


@pytest.mark.slow
def test_a_tail_cut_at_every_byte_is_set_aside_and_said_in_a_receipt(two: Sample, tmp_path: Path) -> None:
    for end in cuts(two):
        recover(two, tmp_path / "copy", two.data[:end], end)


def recover(sample: Sample, target: Path, journal: bytes, end: int) -> None:
    ledger = sample.copy(target, journal, state=end % 2 == 0)
    assert [stored.entry.receipt for stored in ledger.entries()] == sample.before.ids
    envelope = grant(ledger)
    position = ledger.append(envelope)
    assert position.index == len(sample.before.rows) + 1, end
    check_recovered(ledger, sample, journal[sample.start :])


def test_nothing_at_all_of_the_last_commit_needs_no_repair(two: Sample, tmp_path: Path) -> None:
    ledger = two.copy(tmp_path / "copy", two.data[: two.start])
    assert ledger.append(grant(ledger)).index == 3
    assert not (ledger.folder / "quarantine").exists()
    check_folder(ledger.folder)


@pytest.mark.parametrize("nuls", [1, 511, 4096])
def test_nuls_after_a_torn_tail_are_part_of_it(one: Sample, tmp_path: Path, nuls: int) -> None:
    ends = {one.start, one.start + 1, one.start + 5, len(one.data) - 40, len(one.data) - 3}
    ends |= {at + off for at in range(one.start, len(one.data) - 1) if one.data[at] == 0x0A for off in (0, 1, 2, 9)}
    for end in sorted(ends):
        journal = one.data[:end] + b"\0" * nuls
        ledger = one.copy(tmp_path / "copy", journal)
        ledger.append(grant(ledger))
        check_recovered(ledger, one, journal[one.start :])


@pytest.mark.parametrize("state", [True, False])
def test_a_last_head_that_lacks_only_its_line_feed_is_committed(two: Sample, tmp_path: Path, *, state: bool) -> None:
    ledger = two.copy(tmp_path / "copy", two.data[:-1], forget=False, state=state)
    assert ledger.head().size == 5
    assert [stored.entry.index for stored in ledger.entries()] == [0, 1, 2, 3, 4]
    assert ledger.get(two.receipts[-1]).entry.index == 4
    assert verdict(ledger).exit == 0
    assert ledger.append(grant(ledger)).index == 5
    journal = check_folder(ledger.folder)
    assert journal.ids[3:5] == two.receipts
    assert journal.of("repair") == []
    assert last_segment(ledger).read_bytes().startswith(two.data)


def test_reading_and_verifying_a_torn_tail_changes_nothing(two: Sample, tmp_path: Path) -> None:
    ledger = two.copy(tmp_path / "copy", two.data[:-9])
    before = bytes_of(ledger.folder)
    assert ledger.head().size == 3
    assert len(list(ledger.entries())) == 3
    assert verdict(ledger).exit == 0
    assert bytes_of(ledger.folder) == before


def test_a_tail_is_torn_again_while_it_is_repaired(two: Sample, tmp_path: Path) -> None:
    """The repair's own commit is torn as well: each torn tail keeps its bytes, and each is said."""
    ledger = two.copy(tmp_path / "copy", two.data[:-5])
    ledger.append(grant(ledger))
    ledger.close()
    path = last_segment(ledger)
    data = path.read_bytes()
    repair_end = data.index(b"\n", data.index(b'{"head":', two.start)) + 1
    (quarantined,) = (ledger.folder / "quarantine").iterdir()
    quarantined.rename(quarantined.with_suffix(".pending"))
    for end in range(two.start + 1, repair_end - 1, 31):
        path.write_bytes(data[:end])
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(tmp_path / "copy", again)
        reopened = open_ledger(again)
        places_of(again).register_file(reopened.origin).unlink()
        reopened.append(grant(reopened))
        journal = check_folder(reopened.folder)
        said = {(row.receipt["cut_bytes"], row.receipt["cut_digest"]) for row in journal.of("repair")}
        kept = {
            (len(data), name_of(data)) for data in (p.read_bytes() for p in (reopened.folder / "quarantine").iterdir())
        }
        assert said == kept
        assert len(kept) == 2
        assert journal.ids[:3] == two.before.ids


def test_a_crash_between_the_cut_and_the_receipt_is_taken_up(two: Sample, tmp_path: Path) -> None:
    torn = two.data[two.start : -7]
    ledger = two.copy(tmp_path / "copy", two.data[: two.start])
    quarantine = ledger.folder / "quarantine"
    quarantine.mkdir()
    (quarantine / f"{0:016d}-{two.start}.pending").write_bytes(torn)
    ledger.append(grant(ledger))
    check_recovered(ledger, two, torn)


def test_a_crash_between_the_copy_and_the_cut_is_taken_up(two: Sample, tmp_path: Path) -> None:
    torn = two.data[two.start : -7]
    ledger = two.copy(tmp_path / "copy", two.data[:-7])
    quarantine = ledger.folder / "quarantine"
    quarantine.mkdir()
    (quarantine / f"{0:016d}-{two.start}.pending").write_bytes(torn)
    ledger.append(grant(ledger))
    check_recovered(ledger, two, torn)


def test_a_cut_made_by_a_writer_that_died_is_said_by_one_that_was_open_all_along(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    size = last_segment(ledger).stat().st_size
    quarantine = ledger.folder / "quarantine"
    quarantine.mkdir()
    (quarantine / f"{0:016d}-{size}.pending").write_bytes(b'{"en')
    ledger.append(grant(ledger))
    (repair,) = check_folder(ledger.folder).of("repair")
    assert (repair.index, repair.receipt["cut_bytes"]) == (2, 4)


def test_what_this_machine_acknowledged_is_never_taken_for_a_torn_tail(two: Sample, tmp_path: Path) -> None:
    for end in (*range(two.start, len(two.data) - 1, 97), len(two.data) - 2):
        ledger = two.copy(tmp_path / "copy", two.data[:end], forget=False, state=end % 2 == 0)
        before = bytes_of(ledger.folder)
        with pytest.raises(RegisterError) as caught:
            ledger.append(grant(ledger))
        assert caught.value.code == "register.shorter"
        assert bytes_of(ledger.folder) == before


def flips(sample: Sample, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield the journal with one bit of its last commit turned, at every `step`-th byte."""
    for at in range(sample.start, len(sample.data), step):
        bit = 1 << (at // step) % 8
        yield at, sample.data[:at] + bytes([sample.data[at] ^ bit]) + sample.data[at + 1 :]


def refuses(ledger: Ledger) -> bool:
    try:
        ledger.append(grant(ledger))
    except DamagedError:
        return True
    return False


def refuse_damage(sample: Sample, target: Path, step: int) -> None:
    for at, journal in flips(sample, step):
        ledger = sample.copy(target, journal, state=at % 3 != 0)
        before = bytes_of(ledger.folder)
        assert refuses(ledger), f"byte {at} of {len(sample.data)}: appended on top of damage"
        assert bytes_of(ledger.folder) == before, at


def test_a_bit_turned_in_the_last_commit_is_damage_and_nothing_is_moved(two: Sample, tmp_path: Path) -> None:
    refuse_damage(two, tmp_path / "copy", 11)


@pytest.mark.slow
def test_a_bit_turned_at_every_byte_of_the_last_commit_is_damage(two: Sample, tmp_path: Path) -> None:
    refuse_damage(two, tmp_path / "copy", 1)


def test_a_bit_turned_under_an_open_ledger_is_damage(two: Sample, tmp_path: Path) -> None:
    for at, journal in flips(two, 101):
        ledger = two.copy(tmp_path / "copy", two.data, forget=False)
        ledger.look(lambda view: None)
        last_segment(ledger).write_bytes(journal)
        assert refuses(ledger), at
        assert last_segment(ledger).read_bytes() == journal


@pytest.mark.parametrize(
    "tail",
    [
        b"\n",
        b"x",
        b"\0x",
        b"{",
        b"garbage\n",
        b'{"entry":{}}\n',
        b'{"head":"x","previous_head":"sha256:' + b"0" * 64 + b'"}',
        b'{"head":"x","previous_head":"sha256:' + b"0" * 64 + b'"}\n',
        b'{"head":"x","previous_head":"sha256:' + b"0" * 64 + b'"}\0\0',
    ],
)
def test_bytes_that_no_crash_leaves_are_damage(one: Sample, tmp_path: Path, tail: bytes) -> None:
    journal = one.data + tail
    ledger = one.copy(tmp_path / "copy", journal)
    if tail == b"{":
        # One brace is how a line begins.
        ledger.append(grant(ledger))
        assert len(check_folder(ledger.folder).of("repair")) == 1
        return
    with pytest.raises(DamagedError):
        ledger.append(grant(ledger))
    assert last_segment(ledger).read_bytes() == journal
    assert not (ledger.folder / "quarantine").exists()


def test_the_last_commit_again_after_itself_is_damage(one: Sample, tmp_path: Path) -> None:
    for tail in (one.data[one.start :], one.data[one.start :][:-5], one.data[one.data.rindex(b'{"head"') :]):
        journal = one.data + tail
        ledger = one.copy(tmp_path / "copy", journal)
        with pytest.raises(DamagedError):
            ledger.append(grant(ledger))
        assert last_segment(ledger).read_bytes() == journal


def test_a_whole_entry_without_line_feed_that_does_not_continue_the_chain_is_damage(
    one: Sample, tmp_path: Path
) -> None:
    line = one.data[one.start :].split(b"\n")[0]
    journal = one.data + line
    ledger = one.copy(tmp_path / "copy", journal)
    with pytest.raises(DamagedError):
        ledger.append(grant(ledger))
    assert last_segment(ledger).read_bytes() == journal
    assert verdict(ledger).exit == 1


def test_lines_swapped_inside_the_last_commit_are_damage(two: Sample, tmp_path: Path) -> None:
    first, second, head, _ = two.data[two.start :].split(b"\n")
    for lines in ((second, first, head), (first, head, second), (first, first, second, head), (second, head)):
        journal = two.data[: two.start] + b"\n".join(lines) + b"\n"
        ledger = two.copy(tmp_path / "copy", journal)
        with pytest.raises(DamagedError):
            ledger.append(grant(ledger))
        assert last_segment(ledger).read_bytes() == journal


def test_the_verifier_and_the_writer_agree_on_every_end(two: Sample, tmp_path: Path) -> None:
    """Where the writer goes on the verdict was ok, and where it refuses the verdict was not."""
    ends = [two.data[:end] for end in range(two.start, len(two.data) + 1, 41)]
    ends += [two.data[:end] + b"\0" * 3 for end in range(two.start, len(two.data) + 1, 173)]
    ends += [two.data[:-1], two.data[:-1] + b"\0", two.data[:-2], two.data + b"\0"]
    ends += [journal for _, journal in flips(two, 173)]
    for number, journal in enumerate(ends):
        ledger = two.copy(tmp_path / "copy", journal)
        found = verdict(ledger).exit
        try:
            ledger.append(grant(ledger))
        except DamagedError:
            assert found == 1, (number, sha256(journal).hexdigest())
        else:
            assert found == 0, (number, sha256(journal).hexdigest())
            assert verdict(ledger).exit == 0


def test_a_creation_that_never_ended_is_said_and_nothing_is_moved(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    ledger.close()
    data = last_segment(ledger).read_bytes()
    places_of(tmp_path).register_file(ledger.origin).unlink()
    for end in (data.index(b"\n"), data.index(b"\n") + 1, len(data) - 2):
        last_segment(ledger).write_bytes(data[:end])
        with pytest.raises(LedgerError) as caught:
            open_ledger(tmp_path).append(envelope)
        assert caught.value.code in {"ledger.absent", "journal.damaged"}
        assert last_segment(ledger).read_bytes() == data[:end]
        assert not (ledger.folder / "quarantine").exists()
