"""What is derived, and the register: removed, spoiled, older, of another ledger. Answers and proofs stay right."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import Ledger
from ledger.checkpoint import Head, head_of, sign_head
from ledger.digest import digest_bytes
from ledger.errors import RegisterError
from ledger.merkle import consistency_proof, inclusion_proof, leaf_hash
from ledger.storage.journal import Tail
from ledger.storage.rows import Keyring
from ledger.storage.state import State
from tests.reference.check import check_folder
from tests.reference.ledgers import (
    bytes_of,
    grant,
    many_intents,
    new_ledger,
    open_ledger,
    opening,
    outcome,
    places_of,
    quick_folder,
    verdict,
)
from tests.reference.rfc9162 import accepts_consistency, accepts_inclusion


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


def state_files(ledger: Ledger) -> list[Path]:
    return sorted(ledger.folder.glob("state.sqlite*"))


def fill(ledger: Ledger, count: int) -> list[str]:
    return [each.receipt for each in ledger.append_many([grant(ledger) for _ in range(count)])]


def check_answers(tmp_path: Path, ids: list[str]) -> None:
    """Check that what is known is found, appended once, and that new receipts go on."""
    ledger = open_ledger(tmp_path)
    for id_ in ids[:: max(1, len(ids) // 12)]:
        stored = ledger.get(id_)
        assert ledger.find(id_[7:19]) == [id_]
        assert ledger.append(stored.envelope).already
    size = ledger.head().size
    assert ledger.append(grant(ledger)).index == size
    ledger.close()
    assert len(check_folder(ledger.folder, signatures=False).rows) == size + 1


def spoil_nothing(ledger: Ledger) -> None:
    assert ledger


def remove(ledger: Ledger) -> None:
    for path in state_files(ledger):
        path.unlink()


def empty(ledger: Ledger) -> None:
    (ledger.folder / "state.sqlite").write_bytes(b"")


def cut(ledger: Ledger) -> None:
    os.truncate(ledger.folder / "state.sqlite", 5_000)


def scribble_head(ledger: Ledger) -> None:
    scribble(ledger, 0, 100)


def scribble_pages(ledger: Ledger) -> None:
    scribble(ledger, 4_096, 100_000)


def scribble(ledger: Ledger, start: int, count: int) -> None:
    path = ledger.folder / "state.sqlite"
    data = bytearray(path.read_bytes())
    end = min(len(data), start + count)
    data[start:end] = b"\xa5" * (end - start)
    path.write_bytes(data)


def no_database(ledger: Ledger) -> None:
    (ledger.folder / "state.sqlite").write_text("this is a note that somebody left here\n" * 300)


def other_tables(ledger: Ledger) -> None:
    remove(ledger)
    db = sqlite3.connect(ledger.folder / "state.sqlite")
    db.execute("CREATE TABLE stamp (other TEXT)")
    db.commit()
    db.close()


def other_version(ledger: Ledger) -> None:
    db = sqlite3.connect(ledger.folder / "state.sqlite")
    db.execute("PRAGMA user_version = 999")
    db.commit()
    db.close()


def bad_stamp(ledger: Ledger) -> None:
    db = sqlite3.connect(ledger.folder / "state.sqlite")
    db.execute("UPDATE stamp SET tail = '{}'")
    db.commit()
    db.close()


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_nothing,
        remove,
        empty,
        cut,
        scribble_head,
        scribble_pages,
        no_database,
        other_tables,
        other_version,
        bad_stamp,
    ],
)
@pytest.mark.parametrize("opened", [False, True])
def test_a_spoiled_state_is_made_again(tmp_path: Path, spoil: object, *, opened: bool) -> None:
    ledger = new_ledger(tmp_path)
    ids = fill(ledger, 90)
    ledger.close()
    held = open_ledger(tmp_path)
    if opened:
        held.look(lambda view: None)
        held.get(ids[0])
    spoil(ledger)  # type: ignore[operator]
    assert held.get(ids[-1]).entry.index == 90
    envelope = held.get(ids[5]).envelope
    assert held.append(envelope).already
    assert held.append(grant(held)).index == 91
    held.close()
    check_answers(tmp_path, ids)


def test_the_state_of_another_ledger_or_an_older_one_is_not_used(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 3)
    ledger.close()
    older = tmp_path / "older.sqlite"
    shutil.copy(ledger.folder / "state.sqlite", older)
    other = Ledger.create(tmp_path / "other", places=places_of(tmp_path))
    fill(other, 40)
    other.close()
    ids = fill(ledger, 40)
    run = ledger.append(opening(ledger)).receipt
    ledger.close()
    for source in (older, other.folder / "state.sqlite"):
        remove(ledger)
        shutil.copy(source, ledger.folder / "state.sqlite")
        assert open_ledger(tmp_path).get(ids[20]).entry.receipt == ids[20]
        again = open_ledger(tmp_path)
        assert [each.id for each in again.open_runs()] == [run]
        again.close()
        check_answers(tmp_path, ids)


def test_a_state_ahead_of_the_journal_is_not_used(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 3)
    path = ledger.folder / "journal" / f"{0:016d}.jsonl"
    size, note = path.stat().st_size, ledger.checkpoint()
    gone = fill(ledger, 3)
    ledger.close()
    os.truncate(path, size)
    register = places_of(tmp_path).register_file(ledger.origin)
    register.write_bytes(note)
    again = open_ledger(tmp_path)
    assert again.find(gone[0]) == []
    assert again.append(grant(again)).index == 4
    again.close()
    check_answers(tmp_path, [])


def test_receipts_whose_digests_begin_alike_are_told_apart(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.load()
    raws = [bytes(8) + bytes([number]) * 24 for number in range(4)]
    raws += [b"\xff" * 8 + bytes(24), bytes.fromhex("7fffffffffffffff") + bytes(24), b"\x80" + bytes(31)]
    for index, raw in enumerate(raws[:3]):
        state.add_id(raw, (index, 0, index * 100))
    state.save(Tail(), Keyring())
    for index, raw in enumerate(raws[3:], 3):
        state.add_id(raw, (index, 0, index * 100))
    for _ in range(2):
        alike = {(index, 0, index * 100) for index in range(4)}
        assert set(state.places(raws[0])) == set(state.places(raws[3])) == alike
        for index in (4, 5, 6):
            assert state.places(raws[index]) == [(index, 0, index * 100)]
        assert set(state.sharing_prefix([*raws, digest_bytes(b"other")])) == set(raws)
        state.save(Tail(), Keyring())
    found = {digits: {place[0] for place in state.starting_with(digits, 20)} for digits in ("0", "7", "8", "f")}
    assert found == {"0": {0, 1, 2, 3}, "7": {5}, "8": {6}, "f": {4}}
    state.close()


# Tiles and proofs.


def check_proofs(ledger: Ledger) -> None:
    """Check inclusion of every entry and some consistency proofs against the head, by the plain reading of the RFC."""
    head = ledger.head()
    read = ledger.reader.hash_reader(head)
    leaves = [leaf_hash(stored.entry_bytes) for stored in ledger.entries()]
    for index in {*range(0, head.size, 37), head.size - 1}:
        proof = inclusion_proof(index, head.size, read)
        assert accepts_inclusion(index, head.size, leaves[index], proof, head.root), index
    for old in {1, 2, head.size // 2, 256, 255, 257, head.size - 1} - {0}:
        if old < head.size:
            proof = consistency_proof(old, head.size, read)
            assert accepts_consistency(old, head.size, ledger.reader.root_at(old), head.root, proof), old
    some = list(ledger.entries())[:: max(1, head.size // 5)]
    for stored in some:
        bundle = ledger.evidence(stored.entry.receipt)
        sealed_to = head_of(bundle.checkpoint)
        for item in (*bundle.items, *bundle.keyring):
            index = next(each.entry.index for each in ledger.entries() if each.entry_bytes == item.entry)
            assert accepts_inclusion(index, sealed_to.size, leaf_hash(item.entry), item.proof, sealed_to.root)


@pytest.fixture(scope="module")
def tiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with quick_folder(tmp_path_factory.mktemp("tiled")) as folder:
        ledger = new_ledger(folder)
        for count in (1, 100, 154, 1, 300, 1, 30):
            fill(ledger, count)
        ledger.close()
        yield folder


@pytest.mark.parametrize(
    "spoil",
    ["nothing", "removed", "empty", "short", "leaf 0", "leaf 300", "last leaf", "level 1", "hole", "a file", "long"],
)
def test_proofs_are_right_whatever_the_tiles_say(tmp_path: Path, tiled: Path, spoil: str) -> None:
    shutil.copytree(tiled, tmp_path / "copy")
    ledger = open_ledger(tmp_path / "copy")
    tiles = ledger.folder / "tiles"
    level_0, level_1 = tiles / "0", tiles / "1"
    flip_at = {"leaf 0": 5, "leaf 300": 300 * 32, "last leaf": level_0.stat().st_size - 1}
    match spoil:
        case "removed":
            shutil.rmtree(tiles)
        case "empty":
            level_0.write_bytes(b"")
        case "short":
            os.truncate(level_0, 257 * 32 + 7)
        case "level 1":
            level_1.write_bytes(b"\1" * level_1.stat().st_size)
        case "hole":
            data = level_0.read_bytes()
            level_0.write_bytes(data[: 100 * 32] + bytes(20 * 32) + data[120 * 32 :])
        case "a file":
            shutil.rmtree(tiles)
            tiles.write_text("no folder")
        case "long":
            level_0.write_bytes(level_0.read_bytes() + b"\7" * 64)
        case "nothing":
            pass
        case _:
            data = bytearray(level_0.read_bytes())
            data[flip_at[spoil]] ^= 1
            level_0.write_bytes(data)
    before = bytes_of(ledger.folder)
    check_proofs(ledger)
    assert bytes_of(ledger.folder) == before
    # A writer mends what no longer leads to the root, and goes on.
    envelope = grant(ledger)
    assert ledger.append(envelope).index == 588
    ledger.close()
    check_proofs(open_ledger(tmp_path / "copy"))
    assert verdict(ledger).exit == 0


def test_removed_tiles_are_made_again_by_the_next_writer(tmp_path: Path, tiled: Path) -> None:
    shutil.copytree(tiled, tmp_path / "copy")
    ledger = open_ledger(tmp_path / "copy")
    expected = {path.name: path.read_bytes() for path in (ledger.folder / "tiles").iterdir()}
    shutil.rmtree(ledger.folder / "tiles")
    ledger.look(lambda view: None)
    assert {path.name: path.read_bytes() for path in (ledger.folder / "tiles").iterdir()} == expected


# The register.


def test_a_day_old_copy_is_not_appended_to(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 3)
    ledger.close()
    shutil.copytree(ledger.folder, tmp_path / "old")
    fill(ledger, 2)
    ledger.close()
    for state in (True, False):
        shutil.rmtree(ledger.folder)
        shutil.copytree(tmp_path / "old", ledger.folder)
        if not state:
            remove(ledger)
        again = open_ledger(tmp_path)
        before = bytes_of(again.folder)
        for _ in range(2):
            with pytest.raises(RegisterError) as caught:
                again.append(grant(again))
            assert caught.value.code == "register.shorter"
        assert bytes_of(again.folder) == before
        assert again.head().size == 4
        assert len(list(again.entries())) == 4


def test_a_ledger_that_was_open_when_an_old_copy_replaced_it_does_not_append(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 3)
    ledger.close()
    shutil.copytree(ledger.folder, tmp_path / "old")
    fill(ledger, 2)
    shutil.rmtree(ledger.folder)
    shutil.copytree(tmp_path / "old", ledger.folder)
    with pytest.raises(RegisterError) as caught:
        ledger.append(grant(ledger))
    assert caught.value.code == "register.shorter"


@pytest.mark.parametrize("ahead", [1, 5])
def test_a_copy_that_went_its_own_way_is_not_appended_to(tmp_path: Path, ahead: int) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 3)
    ledger.close()
    shutil.copytree(ledger.folder, tmp_path / "fork")
    register = places_of(tmp_path).register_file(ledger.origin)
    note = register.read_bytes()
    fill(ledger, 1)
    newest = register.read_bytes()
    # The copy is written to by a machine that knows the keys and not this register.
    register.write_bytes(note)
    copy = Ledger.open(tmp_path / "fork", places=places_of(tmp_path))
    fill(copy, ahead)
    copy.close()
    register.write_bytes(newest)
    for each in (copy, Ledger.open(tmp_path / "fork", places=places_of(tmp_path))):
        before = bytes_of(each.folder)
        with pytest.raises(RegisterError) as caught:
            each.append(grant(each))
        assert caught.value.code == "register.forked"
        assert bytes_of(each.folder) == before
    assert ledger.append(grant(ledger)).index == 5


@pytest.mark.parametrize("content", [None, b"", b"\0" * 300])
def test_a_register_that_is_absent_or_empty_stops_nothing(tmp_path: Path, content: bytes | None) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 2)
    ledger.close()
    register = places_of(tmp_path).register_file(ledger.origin)
    register.unlink() if content is None else register.write_bytes(content)
    again = open_ledger(tmp_path)
    assert again.append(grant(again)).index == 3
    assert register.read_bytes() == again.checkpoint()


@pytest.mark.parametrize("content", [b"x", b"a\nb\n\nc\n", b"ledger\n5\nAAAA\n\n\xe2\x80\x94 x y\n", b"\n\n"])
def test_a_register_that_is_no_note_is_refused(tmp_path: Path, content: bytes) -> None:
    ledger = new_ledger(tmp_path)
    fill(ledger, 2)
    places_of(tmp_path).register_file(ledger.origin).write_bytes(content)
    before = bytes_of(ledger.folder)
    for each in (ledger, open_ledger(tmp_path)):
        with pytest.raises(RegisterError) as caught:
            each.append(grant(each))
        assert caught.value.code == "register.unreadable"
    assert bytes_of(ledger.folder) == before


def test_a_register_of_another_ledger_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    other = Ledger.create(tmp_path / "other", places=places_of(tmp_path))
    places_of(tmp_path).register_file(ledger.origin).write_bytes(other.checkpoint())
    with pytest.raises(RegisterError):
        ledger.append(grant(ledger))


def test_a_register_behind_the_journal_is_caught_up(tmp_path: Path, tiled: Path) -> None:
    shutil.copytree(tiled, tmp_path / "copy")
    ledger = open_ledger(tmp_path / "copy")
    register = places_of(tmp_path / "copy").register_file(ledger.origin)
    log_key = ledger._secret().log
    for size in (1, 255, 256, 257, 300, 587):
        right = Head(ledger.origin, size, ledger.reader.root_at(size))
        register.write_bytes(sign_head(right, log_key))
        again = open_ledger(tmp_path / "copy")
        again.look(lambda view: None)
        wrong = Head(ledger.origin, size, bytes(32))
        register.write_bytes(sign_head(wrong, log_key))
        for each in (again, open_ledger(tmp_path / "copy")):
            with pytest.raises(RegisterError) as caught:
                each.append(grant(each))
            assert caught.value.code == "register.forked"
    register.write_bytes(sign_head(Head(ledger.origin, 256, ledger.reader.root_at(256)), log_key))
    # A spoiled tile is no other history.
    data = bytearray((ledger.folder / "tiles" / "0").read_bytes())
    data[200 * 32] ^= 1
    (ledger.folder / "tiles" / "0").write_bytes(data)
    (ledger.folder / "tiles" / "1").write_bytes(bytes(64))
    again = open_ledger(tmp_path / "copy")
    assert again.append(grant(again)).index == 588
    assert register.read_bytes() == again.checkpoint()


# Segments.


def test_a_segment_closes_at_8192_entries_and_reading_goes_across(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    intents = many_intents(ledger, run, 8_195)
    ledger.append_many(intents[:8_000])
    ledger.append_many(intents[8_000:8_189])  # 8,191 entries: one short
    ledger.append(intents[8_189])  # the last of the first segment
    ledger.append(intents[8_190])
    settled = ledger.append(outcome(ledger, run, intents[0].receipt_id))
    ledger.close()
    journal = check_folder(ledger.folder, signatures=False)
    assert journal.segments == [0, 8_192]
    again = open_ledger(tmp_path)
    assert [stored.entry.index for stored in again.entries(8_190, 8_194)] == [8_190, 8_191, 8_192, 8_193]
    assert [again.reader.at(index).segment for index in (0, 8_191, 8_192)] == [0, 0, 8_192]
    assert again.get(intents[8_190].receipt_id).entry.index == 8_192
    assert again.evidence(settled.receipt).subject == settled.receipt
    assert again.append(intents[8_191]).index == 8_194
    assert open_ledger(tmp_path).head().size == 8_195
    check_proofs_at(again, (0, 8_191, 8_192, 8_194))


def check_proofs_at(ledger: Ledger, indices: tuple[int, ...]) -> None:
    head = ledger.head()
    read = ledger.reader.hash_reader(head)
    for index in indices:
        leaf = leaf_hash(ledger.reader.at(index).entry_bytes)
        assert accepts_inclusion(index, head.size, leaf, inclusion_proof(index, head.size, read), head.root)


def test_a_segment_closes_at_64_mib(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    acts = tuple(f"{number:04d}" + "x" * 250 for number in range(1_000))
    for _ in range(6):
        ledger.append_many([grant(ledger, acts=acts) for _ in range(62)])  # 15.7 MB
    paths = sorted((ledger.folder / "journal").iterdir())
    assert [path.stat().st_size >= 64 << 20 for path in paths] == [True, False]
    assert check_folder(ledger.folder, signatures=False).segments == [0, 311]
    assert [stored.entry.index for stored in open_ledger(tmp_path).entries(309, 313)] == [309, 310, 311, 312]
