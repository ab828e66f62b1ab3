"""`ledger verify RUN` over a journal with one altered byte: never open, absent or of a later format where it was none of these."""

from __future__ import annotations

import shutil

import pytest

from ledger import Ledger
from tests.reference.people import Person, drop_derived, journal


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return an owner, the ledger, and the ids of a closed run, of the receipt that closes it, and of an open run."""
    base = tmp_path_factory.mktemp("altered")
    owner, folder = Person(base / "owner"), base / "ledger"
    assert owner("init", folder).exit == 0
    closed = owner.record(folder)
    with owner.open(folder) as ledger:
        closing = ledger.reader.parent_of(closed, after=ledger.get(closed).entry.index).entry.receipt
        with ledger.run("abandoned") as run:
            open_run = run.id
            saved = folder.with_name("saved")
            ledger._writer.close()
            shutil.copytree(folder, saved)
    return owner, saved, closed, closing, open_run


@pytest.fixture
def ledger(kept, tmp_path):
    owner, saved, *ids = kept
    owner.forget()
    shutil.copytree(saved, tmp_path / "ledger")
    return owner, tmp_path / "ledger", *ids


def flipped(folder, at: int) -> None:
    path = journal(folder)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("derived", [True, False], ids=["state at hand", "state removed"])
def test_a_flip_in_what_a_run_consists_of_is_1_and_elsewhere_0_or_1(ledger, derived):
    owner, folder, closed, _, _ = ledger
    if not derived:
        drop_derived(folder)
    whole = journal(folder).read_bytes()
    assert owner.verify("-L", folder, closed).exit == 0
    own, start = [], 0
    for line in whole.splitlines(keepends=True):
        if closed.encode() in line and line.startswith(b'{"entry"'):
            own += range(start, start + len(line) - 1)
        start += len(line)
    assert len(own) > 2_000
    for at in (*own[::37], *range(0, len(whole), 211)):
        flipped(folder, at)
        done = owner.verify("-L", folder, closed)
        assert done.exit == 1 or (done.exit == 0 and at not in own), (at, whole[max(0, at - 60) : at + 20], done.out)
        journal(folder).write_bytes(whole)


@pytest.mark.parametrize("derived", [True, False], ids=["state at hand", "state removed"])
@pytest.mark.parametrize("where", ["the closing receipt's run", "the closing receipt's first child", "its own id"])
def test_a_closed_run_whose_closing_is_hidden_is_altered_and_not_open(ledger, derived, where):
    owner, folder, closed, closing, _ = ledger
    if not derived:
        drop_derived(folder)
    data = journal(folder).read_bytes()
    line = data.index(b'"receipt":"' + closing.encode())
    at = {
        "the closing receipt's run": data.index(b'"run":"' + closed.encode(), line) + 30,
        "the closing receipt's first child": data.index(b'"children":["' + closed.encode(), line) + 30,
        "its own id": line + 30,
    }[where]
    flipped(folder, at)
    assert owner.verify("-L", folder, closed).exit == 1


@pytest.mark.parametrize("derived", [True, False], ids=["state at hand", "state removed"])
def test_a_receipt_whose_id_is_altered_is_not_absent(ledger, derived):
    owner, folder, _, closing, _ = ledger
    if not derived:
        drop_derived(folder)
    flipped(folder, journal(folder).read_bytes().index(b'"receipt":"' + closing.encode()) + 20)
    for reference in (closing, closing[7:17]):
        done = owner.verify("-L", folder, reference)
        assert done.exit == 1
        assert "altered" in done.check("subject")["message"]


@pytest.mark.parametrize("derived", [True, False], ids=["state at hand", "state removed"])
def test_what_is_open_or_absent_in_a_journal_that_holds_stays_so(ledger, derived):
    owner, folder, _, _, open_run = ledger
    if not derived:
        drop_derived(folder)
    done = owner.verify("-L", folder, open_run)
    assert (done.exit, "run.open" in done.codes) == (3, True)
    assert owner.verify("-L", folder, "sha256:" + "0" * 64).exit == 5
    assert owner.verify("-L", folder, "00000000").exit == 5


def test_a_state_behind_the_journal_speaks_of_what_it_knows_and_the_rest_is_read(ledger):
    owner, folder, closed, _, open_run = ledger
    shutil.copytree(folder, folder.with_name("older"))
    Ledger.open(folder, places=owner.places).close()
    later = owner.record(folder, "later")
    for name in ("state.sqlite",):
        shutil.copy2(folder.with_name("older") / name, folder / name)
    for path in folder.glob("state.sqlite-*"):
        path.unlink()
    assert owner.verify("-L", folder, later).exit == 0
    assert owner.verify("-L", folder, open_run).exit == 3
    data = journal(folder).read_bytes()
    flipped(folder, data.rindex(b'"run":"' + later.encode()) + 30)
    assert owner.verify("-L", folder, later).exit == 1
    assert owner.verify("-L", folder, closed).exit == 0
