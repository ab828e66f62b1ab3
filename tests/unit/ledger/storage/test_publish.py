"""Publishing: the tree is that of the journal, only what is new is written, nothing published is taken back, no crash shows."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.checkpoint import head_of
from ledger.errors import DamagedError, FormatError, LockError, NotFoundError, RegisterError, StorageError
from ledger.storage.publish import Published, publish
from ledger.storage.published import PublishedTree, is_published
from ledger.tiles import parse_bundle, tiles_of
from tests.reference.build import Builder
from tests.reference.ledgers import ended, fork, grant, new_ledger, quick_folder
from tests.reference.rfc9162 import leaf, mth
from verify.published import verify_published


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


class Growing:
    """A ledger built byte by byte, and its folder as it is after each commit."""

    def __init__(self, folder: Path, *, origin: str = "ledger.invalid/test", seed: int = 0) -> None:
        self.folder = folder
        self.built = Builder(origin=origin, seed=seed)
        self.built.header()
        self.built.commit()
        self._save()

    def grow(self, size: int) -> Path:
        """Bring the ledger to `size` entries, by one commit, and return its folder."""
        while len(self.built.rows) < size:
            self.built.grant()
        self.built.commit()
        return self._save()

    def entries(self) -> list[bytes]:
        return [row.entry for row in self.built.rows]

    def _save(self) -> Path:
        (self.folder / "journal").mkdir(parents=True, exist_ok=True)
        (self.folder / "journal" / f"{0:016d}.jsonl").write_bytes(self.built.journal())
        return self.folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def names_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def check_tree(tree: Path, ledger: Growing) -> None:
    """Check that every file of a tree is what the entries ask for, by the words of the standard."""
    entries = ledger.entries()
    files = files_of(tree)
    assert files["checkpoint"] == ledger.built.notes[-1]
    for tile in tiles_of(len(entries)):
        data = files[tile.path]
        if tile.level is None:
            assert parse_bundle(data) == tuple(entries[tile.index * 256 :][: tile.width])
        elif tile.level == 0:
            assert data == b"".join(leaf(entry) for entry in entries[tile.index * 256 :][: tile.width])
        else:
            span = 256**tile.level
            first = tile.index * 256
            assert data == b"".join(mth(entries[item * span :][:span]) for item in range(first, first + tile.width))
    verdict = verify_published(PublishedTree(tree), trust=ledger.built.trust())
    assert verdict.exit == 0, verdict.findings


def needed(*sizes: int) -> set[str]:
    """Return the files of a tree that was published at these sizes: partial tiles stay until the full one is there."""
    names = {tile.path for size in sizes for tile in tiles_of(size)}
    return {"checkpoint"} | {name for name in names if ".p/" not in name or name.partition(".p/")[0] not in names}


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 600])
def test_a_tree_of_every_shape_is_what_the_journal_asks_for(tmp_path, size):
    ledger = Growing(tmp_path / "ledger")
    ledger.grow(size)
    done = publish(ledger.folder, tmp_path / "tree")
    assert done == Published(head_of(ledger.built.notes[-1]), 0, len(list(tiles_of(size))), 0)
    assert names_of(tmp_path / "tree") == needed(size)
    check_tree(tmp_path / "tree", ledger)


def test_only_what_is_new_is_written_and_partial_tiles_go_when_the_full_one_is_there(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    sizes = [1, 3, 200, 255, 256, 300, 301, 513, 1100]
    known: dict[str, os.stat_result] = {}
    for number, size in enumerate(sizes):
        ledger.grow(size)
        done = publish(ledger.folder, tree)
        assert (done.before, done.head.size) == (sizes[number - 1] if number else 0, size)
        assert names_of(tree) == needed(*sizes[: number + 1])
        check_tree(tree, ledger)
        now = {name: (tree / name).stat() for name in names_of(tree)}
        assert done.made == len(set(now) - set(known) - {"checkpoint"})
        for name in set(known) & set(now) - {"checkpoint"}:
            assert (known[name].st_ino, known[name].st_mtime_ns) == (now[name].st_ino, now[name].st_mtime_ns)
        known = now
    assert not any(path.name.endswith(".p") and not list(path.iterdir()) for path in tree.rglob("*.p"))


def test_a_tree_published_in_steps_is_the_one_published_at_once(tmp_path):
    ledger = Growing(tmp_path / "ledger")
    for size in (5, 260, 700):
        publish(ledger.grow(size), tmp_path / "steps")
    publish(ledger.folder, tmp_path / "once")
    steps, once = files_of(tmp_path / "steps"), files_of(tmp_path / "once")
    assert {name: steps[name] for name in once} == once


def test_publishing_again_writes_nothing(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(300), tree)
    before = {path: path.stat().st_mtime_ns for path in [tree, *tree.rglob("*")]}
    done = publish(ledger.folder, tree)
    assert (done.before, done.made, done.collected) == (300, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in [tree, *tree.rglob("*")]} == before


def test_nothing_is_written_into_the_ledger_s_folder(tmp_path):
    ledger = new_ledger(tmp_path)
    ledger.append_many([grant(ledger) for _ in range(3)])
    ledger.close()
    before = {path: path.stat().st_mtime_ns for path in [ledger.folder, *ledger.folder.rglob("*")]}
    publish(ledger.folder, tmp_path / "tree")
    assert {path: path.stat().st_mtime_ns for path in [ledger.folder, *ledger.folder.rglob("*")]} == before


def test_a_ledger_in_several_segments_with_a_torn_tail_is_published_up_to_its_head(tmp_path):
    built = Builder()
    built.header()
    for _ in range(9):
        built.grant()
    built.commit()
    first = built.journal()
    for _ in range(7):
        built.grant()
    built.commit()
    journal = tmp_path / "ledger" / "journal"
    journal.mkdir(parents=True)
    (journal / f"{0:016d}.jsonl").write_bytes(first)
    (journal / f"{10:016d}.jsonl").write_bytes(built.journal()[len(first) :] + built.lines[-2][:200])
    done = publish(tmp_path / "ledger", tmp_path / "tree")
    assert done.head.size == 17
    assert verify_published(PublishedTree(tmp_path / "tree"), trust=built.trust()).exit == 0


def test_a_writer_s_lock_is_waited_for(tmp_path):
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    ledger.close()
    with (ledger.folder / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader, writer = os.pipe()

        def body() -> None:
            publish(ledger.folder, tmp_path / "tree")
            os.write(writer, b"done")

        child = fork(body)
        os.set_blocking(reader, False)
        for _ in range(200):
            os.sched_yield()
            with pytest.raises(BlockingIOError):
                os.read(reader, 4)
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert ended(child) == 0
    assert os.read(reader, 4) == b"done"
    os.close(reader)
    os.close(writer)


def test_progress_ends_at_the_number_of_new_entries(tmp_path):
    ledger = Growing(tmp_path / "ledger")
    seen = []
    publish(ledger.grow(512), tmp_path / "tree", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(256, 512), (512, 512)]
    publish(ledger.grow(1024), tmp_path / "tree", progress=lambda done, total: seen.append((done, total)))
    assert seen[2:] == [(256, 512), (512, 512)]


# What is refused.


def refused(error, code, ledger, tree):
    """Check that a publication is refused and that not one byte of the tree changed."""
    before = files_of(tree) if tree.exists() else None
    with pytest.raises(error) as caught:
        publish(ledger, tree)
    assert caught.value.code == code
    if before is not None:
        assert files_of(tree) == before


def test_the_tree_of_another_origin_is_not_continued(tmp_path):
    one, two = Growing(tmp_path / "one"), Growing(tmp_path / "two", origin="ledger.invalid/other")
    publish(one.grow(5), tmp_path / "tree")
    refused(StorageError, "publish.origin", two.grow(9), tmp_path / "tree")


def test_a_tree_longer_than_the_ledger_is_not_cut(tmp_path):
    ledger = Growing(tmp_path / "ledger")
    shutil.copytree(ledger.grow(5), tmp_path / "old")
    publish(ledger.grow(9), tmp_path / "tree")
    refused(RegisterError, "publish.longer", tmp_path / "old", tmp_path / "tree")


@pytest.mark.parametrize("size", [5, 256, 300, 600])
def test_a_tree_that_is_no_beginning_of_the_ledger_is_not_continued(tmp_path, size):
    one, two = Growing(tmp_path / "one"), Growing(tmp_path / "two", seed=1)
    publish(one.grow(size), tmp_path / "tree")
    for longer in (size, size + 1, size + 300):
        refused(RegisterError, "publish.forked", two.grow(longer), tmp_path / "tree")
    publish(one.grow(size + 1), tmp_path / "tree")
    check_tree(tmp_path / "tree", one)


def test_a_ledger_whose_entries_do_not_lead_to_its_head_is_not_published(tmp_path):
    ledger = Growing(tmp_path / "ledger")
    publish(ledger.grow(5), tmp_path / "tree")
    ledger.grow(300)
    path = ledger.folder / "journal" / f"{0:016d}.jsonl"
    good = path.read_bytes()
    receipt = ledger.built.rows[290].id.encode()
    path.write_bytes(good.replace(b'"receipt":"' + receipt, b'"receipt":"' + receipt[:-1] + b"x"))
    refused(DamagedError, "head.root", ledger.folder, tmp_path / "tree")
    refused(DamagedError, "head.root", ledger.folder, tmp_path / "new")
    assert not list((tmp_path / "new").rglob("checkpoint"))
    path.write_bytes(good)
    publish(ledger.folder, tmp_path / "tree")
    check_tree(tmp_path / "tree", ledger)
    publish(ledger.folder, tmp_path / "new")
    assert names_of(tmp_path / "new") == needed(300)


def test_a_ledger_with_a_segment_missing_is_not_published(tmp_path):
    built = Builder()
    built.header()
    built.commit()
    first = built.journal()
    built.grant()
    built.commit()
    journal = tmp_path / "ledger" / "journal"
    journal.mkdir(parents=True)
    (journal / f"{0:016d}.jsonl").write_bytes(first)
    (journal / f"{2:016d}.jsonl").write_bytes(built.journal()[len(first) :])
    refused(DamagedError, "journal.damaged", tmp_path / "ledger", tmp_path / "tree")


def test_a_folder_that_holds_something_else_is_not_published_into(tmp_path):
    ledger = Growing(tmp_path / "ledger")
    ledger.grow(5)
    for name in ("index.html", "tile/0/000.p/5"):
        tree = tmp_path / name.partition("/")[0]
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_bytes(b"something else")
        refused(StorageError, "publish.in_use", ledger.folder, tree)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "checkpoint").write_bytes(b"not a checkpoint")
    refused(StorageError, "publish.in_use", ledger.folder, broken)


def test_other_files_beside_a_published_tree_are_left_alone(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(5), tree)
    (tree / "index.html").write_bytes(b"hello")
    publish(ledger.grow(300), tree)
    assert (tree / "index.html").read_bytes() == b"hello"
    check_tree(tree, ledger)


def test_a_ledger_is_not_published_into_itself_nor_around_itself(tmp_path):
    ledger = Growing(tmp_path / "site" / "ledger")
    ledger.grow(5)
    (tmp_path / "link").symlink_to(ledger.folder)
    other = Growing(tmp_path / "other")
    for target in (ledger.folder, ledger.folder / "public", tmp_path / "site", tmp_path / "link", other.folder):
        refused(StorageError, "publish.in_use", ledger.folder, target)


def test_where_there_is_no_ledger_there_is_nothing_to_publish(tmp_path):
    refused(NotFoundError, "ledger.absent", tmp_path / "nothing", tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_two_publications_into_one_folder_exclude_each_other(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(5), tree)
    descriptor = os.open(tree, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    refused(LockError, "storage.locked", ledger.grow(6), tree)
    os.close(descriptor)
    publish(ledger.folder, tree)


# Damage to what was published.


def test_a_partial_tile_that_was_lost_is_made_again_from_the_journal(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(600), tree)
    (tree / "tile/0/002.p/88").unlink()
    (tree / "tile/entries/001").unlink()
    done = publish(ledger.grow(700), tree)
    assert (done.before, done.head.size) == (600, 700)
    check_tree(tree, ledger)


def test_a_published_tile_with_other_bytes_is_never_written_over(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(600), tree)
    (tree / "tile/0/002.p/88").unlink()
    wrong = bytearray((tree / "tile/0/001").read_bytes())
    wrong[0] ^= 1
    (tree / "tile/0/001").write_bytes(wrong)
    refused(DamagedError, "publish.differs", ledger.grow(700), tree)


# Crashes.


def publish_until(step: int, folder: Path, tree: Path) -> bool:
    """Publish in a fork that is killed before its change number `step` to the disk; return whether it came to its end."""

    def body() -> None:
        left = step

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree"} or writes:
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.addaudithook(count)
        publish(folder, tree)

    return ended(fork(body)) == 0


@pytest.mark.parametrize(("old", "new"), [(0, 3), (3, 5), (250, 260), (600, 780)])
def test_a_publication_killed_at_any_step_shows_a_whole_tree_and_the_next_one_ends_it(tmp_path, old, new):
    ledger = Growing(tmp_path / "ledger")
    sizes = (old, new) if old else (new,)
    if old:
        publish(ledger.grow(old), tmp_path / "before")
    ledger.grow(new)
    step, complete = 0, False
    while not complete:
        tree = tmp_path / f"tree-{step}"
        if old:
            shutil.copytree(tmp_path / "before", tree)
        complete = publish_until(step, ledger.folder, tree)
        if (tree / "checkpoint").exists():
            verdict = verify_published(PublishedTree(tree), trust=ledger.built.trust())
            assert verdict.exit == 0, (step, verdict.findings)
            assert verdict.coverage.end in sizes
        else:
            assert not old
        publish(ledger.folder, tree)
        check_tree(tree, ledger)
        assert names_of(tree) == needed(*sizes)
        assert not (tree / ".tmp").exists()
        shutil.rmtree(tree)
        step += 1
    assert step > 8


def test_a_publication_killed_over_and_over_bloats_nothing(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(250), tree)
    sizes = [250]
    for step, size in enumerate(range(252, 300, 2), start=3):
        publish_until(step, ledger.grow(size), tree)
        sizes.append(size)
        assert verify_published(PublishedTree(tree), trust=ledger.built.trust()).exit == 0
    publish(ledger.grow(600), tree)
    check_tree(tree, ledger)
    assert names_of(tree) <= needed(*sizes, 600)
    assert not [name for name in names_of(tree) if name.startswith(("tile/0/000.p", "tile/0/001.p", ".tmp"))]


# Reading a tree.


def test_a_tree_is_read_by_paths_that_stay_in_it(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(3), tree)
    (tmp_path / "secret").write_bytes(b"outside")
    read = PublishedTree(tree)
    assert read("tile/0/000.p/3") == (tree / "tile/0/000.p/3").read_bytes()
    assert read("tile/0/000.p/2") is None
    assert read("tile/9/000") is None
    for path in ("../secret", "tile/../../secret", "/etc/passwd", "tile//0", "./checkpoint", "", "tile/0/\0"):
        with pytest.raises(FormatError) as caught:
            read(path)
        assert caught.value.code == "tile.path"


def test_a_link_a_folder_a_pipe_or_a_giant_is_no_file_of_a_tree(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(3), tree)
    read = PublishedTree(tree)
    target = tree / "tile/0/000.p/3"
    shutil.copytree(tree, tmp_path / "copy")
    kept = tmp_path / "copy" / "tile/0/000.p/3"

    def giant(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(1 << 40)

    for make in (lambda path: path.symlink_to(kept), Path.mkdir, os.mkfifo, giant):
        target.unlink()
        make(target)
        with pytest.raises(FormatError) as caught:
            read("tile/0/000.p/3")
        assert caught.value.code == "tile.file"
        verdict = verify_published(read, trust=ledger.built.trust())
        assert (verdict.exit, verdict.findings[0].where) == (1, "tile/0/000.p/3")
        if target.is_dir() and not target.is_symlink():
            target.rmdir()
            target.touch()
    target.unlink()
    shutil.rmtree(tree / "tile/0")
    (tree / "tile/0").symlink_to(tmp_path / "copy" / "tile/0")
    with pytest.raises(FormatError):
        read("tile/0/000.p/3")
    assert verify_published(read, trust=ledger.built.trust()).exit == 1


def test_a_published_tree_is_told_from_a_ledger_by_what_it_holds(tmp_path):
    ledger, tree = Growing(tmp_path / "ledger"), tmp_path / "tree"
    publish(ledger.grow(3), tree)
    assert is_published(tree)
    assert not is_published(ledger.folder)
    (tree / "journal").mkdir()
    assert not is_published(tree)
