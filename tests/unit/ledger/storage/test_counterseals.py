"""What lies beside a ledger from notaries: kept once, joined, chosen by what it says of a receipt."""

from __future__ import annotations

import threading

import pytest

from ledger import Ledger, Places
from ledger.bundle import CarriedHead
from ledger.checkpoint import head_of
from ledger.keys import PrivateKey
from ledger.note import Note, parse_note, print_note, sign_cosignature
from ledger.storage.counterseals import CounterSeals, attach, carried_of_ledger, cosigned
from ledger.storage.evidence import gather
from ledger.storage.reader import Reader

KEYS = {name: PrivateKey.from_seed(bytes([number]) * 32) for number, name in enumerate(("a.example", "b.example"), 1)}


def line(note: bytes, name: str, time_s: int = 1_796_030_100) -> bytes:
    parsed = parse_note(note)
    found = sign_cosignature(parsed.text, name, KEYS[name], time_s=time_s)
    return print_note(Note(parsed.text, (*parsed.signatures, found)))


@pytest.fixture
def folder(tmp_path):
    """A ledger of 40 runs, and the note after each."""
    with Ledger.create(tmp_path / "ledger", places=Places.under(tmp_path / "home")) as ledger:
        notes = []
        for number in range(40):
            with ledger.run(f"run {number}"):
                pass
            notes.append(ledger.checkpoint())
    return tmp_path / "ledger", notes


def names(note: bytes) -> list[str]:
    return [each.name for each in parse_note(note).signatures][1:]


def test_lines_of_several_notaries_stand_on_one_note_once_each(folder):
    path, notes = folder
    kept = CounterSeals(path)
    for name in ("a.example", "b.example", "a.example"):
        kept.put_head(line(notes[-1], name))
    assert names(cosigned(notes[-1], path)) == ["a.example", "b.example"]
    assert cosigned(notes[-2], path) == notes[-2]
    assert len(list((path / "notary/heads").glob("*.note"))) == 1


def test_lines_that_arrive_at_once_are_all_kept(folder):
    path, notes = folder
    made = [PrivateKey.from_seed(bytes([number]) * 32) for number in range(10, 22)]
    text = parse_note(notes[-1])
    lines = [sign_cosignature(text.text, f"{n}.example", key, time_s=n + 1) for n, key in enumerate(made)]
    threads = [
        threading.Thread(
            target=CounterSeals(path).put_head, args=(print_note(Note(text.text, (*text.signatures, each))),)
        )
        for each in lines
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(names(cosigned(notes[-1], path))) == sorted(each.name for each in lines)


def test_a_bundle_takes_the_earliest_head_of_each_notary_that_covers_it_and_the_latest_that_does_not(folder):
    path, notes = folder
    kept, reader = CounterSeals(path), Reader(path)
    sizes = [head_of(note).size for note in notes]
    for number, note in enumerate(notes[:-1]):
        kept.put_head(line(note, "a.example" if number % 2 else "b.example"))
    subject = reader.at(sizes[20] - 1).entry.receipt
    bundle = attach(gather(reader, subject), reader, path)
    chosen = [head_of(each.note).size for each in bundle.counter_seals if isinstance(each, CarriedHead)]
    # Before: the latest of each; after: the earliest of each; and the newest of all.
    assert chosen == [sizes[18], sizes[19], sizes[20], sizes[21], sizes[38]]
    assert all(names(each.note) for each in bundle.counter_seals)
    assert attach(gather(reader, subject), reader, path) == bundle


def test_a_notary_that_began_late_is_still_among_the_newest(folder, monkeypatch):
    path, notes = folder
    monkeypatch.setattr("ledger.storage.counterseals._MAX_CARRIED", 4)
    kept, reader = CounterSeals(path), Reader(path)
    for note in notes[:-1]:
        kept.put_head(line(note, "a.example"))
    kept.put_head(line(notes[-2], "b.example"))
    subject = reader.at(head_of(notes[0]).size - 1).entry.receipt
    bundle = attach(gather(reader, subject), reader, path)
    assert {name for each in bundle.counter_seals for name in names(each.note)} == set(KEYS)
    carried, note = carried_of_ledger(reader, path, head_of(notes[-1]), notes[-1])
    assert ({name for each in carried for name in names(each.note)}, note) == (set(KEYS), notes[-1])


def test_a_timestamp_over_the_newest_head_is_an_item_of_its_own(folder):
    path, notes = folder
    kept, reader = CounterSeals(path), Reader(path)
    kept.put_head(line(notes[-1], "a.example"))
    subject = reader.at(1).entry.receipt
    assert attach(gather(reader, subject), reader, path).counter_seals == ()
    for token in (b"one", b"two", b"one"):
        kept.put_timestamp(notes[-1], token)
    bundle = attach(gather(reader, subject), reader, path)
    assert sorted(each.timestamp for each in bundle.counter_seals) == [b"one", b"two"]
    assert names(bundle.checkpoint) == ["a.example"]
