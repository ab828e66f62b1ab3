"""A reader whose ledger has no state finds every receipt, says of those that are not there that they are not, and of new ones where."""

from __future__ import annotations

import pytest

from ledger.errors import NotFoundError
from ledger.storage.reader import Reader
from tests.reference.ledgers import grant, last_segment, new_ledger, open_ledger


def bare(folder, count):
    """Return a reader of a ledger of some grants without its state, and their ids in order."""
    with new_ledger(folder) as ledger:
        ids = [position.receipt for position in ledger.append_many([grant(ledger) for _ in range(count)])]
    (folder / "ledger/state.sqlite").unlink()
    return Reader(folder / "ledger"), ids


def test_every_receipt_is_found_and_none_that_is_not_there(tmp_path):
    reader, ids = bare(tmp_path, 40)
    assert [reader.get(id_).entry.index for id_ in reversed(ids)] == list(range(40, 0, -1))
    for id_ in ids:
        near = id_[:-1] + ("0" if id_[-1] != "0" else "1")
        with pytest.raises(NotFoundError):
            reader.get(near)


def test_a_receipt_that_came_after_the_journal_was_gone_through_is_found_too(tmp_path):
    reader, ids = bare(tmp_path, 20)
    for id_ in ids:
        reader.get(id_)
    with open_ledger(tmp_path) as ledger:
        envelope = grant(ledger)
        with pytest.raises(NotFoundError):
            reader.get(envelope.receipt_id)
        ledger.append(envelope)
    (tmp_path / "ledger/state.sqlite").unlink()
    assert reader.get(envelope.receipt_id).entry.index == 21


def test_an_entry_that_no_head_covers_is_not_in_the_ledger(tmp_path):
    reader, ids = bare(tmp_path, 1)
    with open_ledger(tmp_path) as ledger:
        late = ledger.append(grant(ledger)).receipt
    (tmp_path / "ledger/state.sqlite").unlink()
    segment = last_segment(ledger)
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-1]))
    for _ in range(20):
        assert reader.get(ids[0]).entry.index == 1
        with pytest.raises(NotFoundError):
            reader.get(late)
