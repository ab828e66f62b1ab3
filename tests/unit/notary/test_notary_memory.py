"""What a notary remembers: swapped only for what follows, kept whatever ends the process, and not to be replaced by an old copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from dataclasses import replace

import pytest

from notary.errors import NotaryError
from notary.memory import Memory, origin_hash
from notary.rules import Known

BLANK = Known("example.org/log", "example.org/log", "ed25519:" + "ab" * 32)


def at(size, root=b"r"):
    return replace(BLANK, size=size, root=root * 32, note=b"note %d" % size)


@pytest.fixture
def memory(tmp_path):
    made = Memory.create(tmp_path / "memory.sqlite", ledger="own")
    yield made
    made.close()


def test_what_is_remembered_is_found_again(memory, tmp_path):
    assert memory.known(BLANK.origin) is None
    assert memory.remember([(None, BLANK)])
    assert memory.remember([(BLANK, at(3))])
    for each in (memory, Memory(tmp_path / "memory.sqlite", ledger="own")):
        assert each.known(BLANK.origin) == at(3)
        assert each.known_by_hash(origin_hash(BLANK.origin)) == at(3)
        assert each.known_by_hash(origin_hash("other")) is None
        assert each.origins() == [at(3)]


@pytest.mark.parametrize(
    "before",
    [None, at(2), at(3, b"s"), replace(at(3), log_key="ed25519:" + "cd" * 32), replace(at(3), log_name="other")],
    ids=["nothing", "another size", "another root", "another key", "another name"],
)
def test_a_swap_from_what_is_not_there_changes_nothing(memory, before):
    assert memory.remember([(None, at(3))])
    other = replace(at(1), origin="example.org/second")
    assert not memory.remember([(None, other), (before, at(5))])
    assert memory.known(BLANK.origin) == at(3)
    assert memory.known(other.origin) is None
    assert memory.remember([(None, other), (at(3), at(5))])


def test_of_many_that_swap_from_the_same_head_one_wins(tmp_path):
    path = tmp_path / "memory.sqlite"
    Memory.create(path, ledger="own").close()
    opened = [Memory(path, ledger="own") for _ in range(8)]
    assert opened[0].remember([(None, at(1))])
    won = []

    def swap(number):
        if opened[number].remember([(at(1), at(2, bytes([number + 1])))]):
            won.append(number)

    threads = [threading.Thread(target=swap, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert opened[0].known(BLANK.origin) == at(2, bytes([won[0] + 1]))
    for each in opened:
        each.close()


def test_every_change_is_synced(memory):
    assert memory._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert memory._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_was_remembered_outlives_a_process_that_is_killed(memory, tmp_path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        own = Memory(tmp_path / "memory.sqlite", ledger="own")
        own.remember([(None, at(7))])
        os.write(writing, b"!")
        os.kill(os.getpid(), 9)
    assert os.read(reading, 1) == b"!"
    os.waitpid(child, 0)
    assert memory.known(BLANK.origin) == at(7)


def test_a_memory_that_is_not_there_is_not_made_anew(tmp_path):
    with pytest.raises(NotaryError) as raised:
        Memory(tmp_path / "memory.sqlite", ledger="own")
    assert raised.value.code == "notary.memory"
    assert not (tmp_path / "memory.sqlite").exists()
    Memory.create(tmp_path / "memory.sqlite", ledger="own").close()
    with pytest.raises(NotaryError):
        Memory.create(tmp_path / "memory.sqlite", ledger="own")


@pytest.mark.parametrize("how", ["another's", "text", "another database"])
def test_what_is_no_memory_of_this_notary_is_refused(tmp_path, how):
    path = tmp_path / "memory.sqlite"
    match how:
        case "another's":
            Memory.create(path, ledger="other").close()
        case "text":
            path.write_bytes(b"not a database" * 100)
        case _:
            sqlite3.connect(path).execute("CREATE TABLE about (format, ledger)").connection.close()
    kept = path.read_bytes()
    with pytest.raises(NotaryError):
        Memory(path, ledger="own")
    assert path.read_bytes() == kept


def test_a_disk_that_refuses_is_said_and_nothing_is_taken_for_remembered(memory, tmp_path):
    assert memory.remember([(None, at(1))])
    memory._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(NotaryError):
        memory.remember([(at(1), at(2))])
    memory._connection.execute("PRAGMA query_only = OFF")
    assert memory.known(BLANK.origin) == at(1)
    assert memory.remember([(at(1), at(2))])


def test_of_proofs_against_an_origin_the_first_stays(memory):
    hash_ = origin_hash("example.org/log")
    assert memory.equivocation(hash_) is None
    memory.keep_equivocation("example.org/log", b"first")
    memory.keep_equivocation("example.org/log", b"second")
    assert memory.equivocation(hash_) == b"first"
    assert memory.equivocation(origin_hash("other")) is None


def test_what_may_be_shown_is_said_for_each_origin(memory, tmp_path):
    memory.publish([("sha256:1", "a"), ("sha256:1", "a"), ("sha256:1", "b")])
    assert memory.published_in("sha256:1") == {"a", "b"}
    assert memory.published_in("sha256:2") == frozenset()
    shutil.copy(tmp_path / "memory.sqlite", tmp_path / "copy.sqlite")
