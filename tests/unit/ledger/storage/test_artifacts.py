"""Artifacts: bytes come back as they were, or not at all."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ledger.errors import FormatError, LedgerError, NotFoundError, StorageError
from ledger.storage.artifacts import ArtifactStore, salted_bytes
from ledger.storage.packindex import PackIndex, prefix, print_index
from ledger.storage.packs import Packs

SALT = bytes(range(100, 132))


def sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def store(folder: Path, *items: bytes, pack_bytes: int = 64 * 1024 * 1024) -> ArtifactStore:
    artifacts = ArtifactStore(folder, pack_bytes=pack_bytes)
    for item in items:
        artifacts.stage(item)
        artifacts.flush()
    return artifacts


@pytest.mark.parametrize("size", [0, 1, 1000, 256 * 1024 - 1, 256 * 1024, 1024 * 1024, 3_000_001])
def test_bytes_come_back_in_another_process(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    assert store(tmp_path, data).get(sha(data)) == data
    fresh = ArtifactStore(tmp_path)
    assert fresh.get(sha(data)) == data
    assert fresh.exists(sha(data))
    with fresh.open(sha(data)) as file:
        assert file.read() == data
    assert list(fresh.digests()) == [sha(data)]


def test_small_ones_share_a_pack_in_the_documented_form_and_large_ones_are_files(tmp_path: Path) -> None:
    large = b"L" * (256 * 1024)
    artifacts = ArtifactStore(tmp_path)
    for item in (b"one\n", b"", large):
        artifacts.stage(item)
    artifacts.flush()
    found = files(tmp_path)
    assert found["artifacts/packs/00000000.pack"] == f"{sha(b'one' + bytes([10]))} 4\none\n\n{sha(b'')} 0\n\n".encode()
    assert found[f"artifacts/blobs/{sha(large)[7:]}"] == large
    assert len(found) == 2
    said = subprocess.run(
        ["sha256sum", f"{tmp_path}/artifacts/blobs/{sha(large)[7:]}"], capture_output=True, check=True
    ).stdout
    assert said[:64].decode() == sha(large)[7:]


def test_nothing_small_is_written_before_flush_and_nothing_at_all_by_reading(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path / "a")
    digest = artifacts.stage(b"x")
    assert artifacts.get(digest) == b"x"
    assert artifacts.exists(digest)
    assert artifacts.pending == 1
    assert list(artifacts.digests()) == []
    assert not artifacts.exists(sha(b"y"))
    with pytest.raises(NotFoundError):
        artifacts.get(sha(b"y"))
    assert not (tmp_path / "a").exists()
    artifacts.flush()
    assert artifacts.pending == 0
    assert ArtifactStore(tmp_path / "a").exists(digest)


@pytest.mark.parametrize("size", [10, 300_000])
def test_what_is_stored_already_is_not_written_again(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    first = store(tmp_path, data, pack_bytes=100)
    for i in range(5):
        first.stage(b"other %d" % i)
        first.flush()
    before = files(tmp_path)
    for again in (first, ArtifactStore(tmp_path, pack_bytes=100)):
        again.stage(data)
        again.stage(data)
        again.stage(b"other 0")
        again.flush()
        assert {name: data for name, data in files(tmp_path).items() if not name.endswith(".idx")} == {
            name: data for name, data in before.items() if not name.endswith(".idx")
        }


def test_bytes_under_a_wrong_name_are_stored_again_where_they_belong(tmp_path: Path) -> None:
    small, large = b"small", b"L" * 300_000
    store(tmp_path, small, large)
    pack, blob = tmp_path / "artifacts" / "packs" / "00000000.pack", tmp_path / "artifacts" / "blobs" / sha(large)[7:]
    pack.write_bytes(pack.read_bytes().replace(b"small", b"smbll"))
    blob.write_bytes(large[:-1] + b"M")
    for item in (small, large):
        with pytest.raises(StorageError) as caught:
            ArtifactStore(tmp_path).get(sha(item))
        assert caught.value.code == "artifact.altered"
    again = store(tmp_path, small, large)
    for reader in (again, ArtifactStore(tmp_path)):
        assert reader.get(sha(small)) == small
        assert reader.get(sha(large)) == large


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        "sha256:../../../etc/passwd",
        "a" * 64,
        "sha256:" + "A" * 64,
        "sha256:" + "a" * 64 + "\n",
        "sha256:" + "a" * 63,
    ],
)
def test_what_is_no_digest_reaches_no_path(tmp_path: Path, text: str) -> None:
    artifacts = store(tmp_path, b"x")
    for ask in (artifacts.get, artifacts.open, artifacts.exists, artifacts.erase):
        with pytest.raises(FormatError) as caught:
            ask(text)
        assert caught.value.code == "digest.malformed"


def test_absent_and_unreadable_are_different_answers(tmp_path: Path) -> None:
    data = b"L" * 300_000
    artifacts = store(tmp_path, data)
    with pytest.raises(NotFoundError) as absent:
        artifacts.get(sha(b"never"))
    assert absent.value.code == "artifact.absent"
    blob = tmp_path / "artifacts" / "blobs" / sha(data)[7:]
    blob.unlink()
    blob.mkdir()
    for ask in (artifacts.get, artifacts.open):
        with pytest.raises(StorageError) as unreadable:
            ask(sha(data))
        assert unreadable.value.code == "artifact.unreadable"


def test_the_salt_is_32_bytes_and_within_a_run_follows_from_the_content() -> None:
    content = b"arguments"
    expected = hmac.new(SALT, hashlib.sha256(content).digest(), hashlib.sha256).digest()
    assert salted_bytes(content, run_salt=SALT) == expected + content
    assert salted_bytes(content, run_salt=SALT[:-1] + b"\0") != expected + content
    one, two = salted_bytes(content, run_salt=None), salted_bytes(content, run_salt=None)
    assert one != two
    assert one[32:] == two[32:] == content


@pytest.mark.parametrize(("size", "salted"), [(0, True), (5, True), (1024 * 1024 - 1, True), (1024 * 1024, False)])
def test_content_is_salted_below_one_mebibyte(tmp_path: Path, size: int, salted: bool) -> None:
    content = os.urandom(size)
    artifacts = ArtifactStore(tmp_path)
    ref = artifacts.stage_content(content, media_type="application/octet-stream", name="c", run_salt=SALT)
    artifacts.flush()
    assert (ref.salted, ref.size_bytes) == (salted, size)
    assert ref.digest == (sha(salted_bytes(content, run_salt=SALT)) if salted else sha(content))
    assert ArtifactStore(tmp_path).content(ref) == content


@pytest.mark.parametrize("by", [-1, 1])
def test_content_of_another_size_than_the_member_says_is_an_error(tmp_path: Path, by: int) -> None:
    artifacts = ArtifactStore(tmp_path)
    for salted in (True, False):
        ref = artifacts.stage_content(b"twelve bytes", media_type="text/plain", name="c", salted=salted)
        assert artifacts.content(ref) == b"twelve bytes"
        with pytest.raises(StorageError) as caught:
            artifacts.content(ref.model_copy(update={"size_bytes": 12 + by}))
        assert caught.value.code == "artifact.size"


@pytest.mark.parametrize("size", [0, 1000, 1024 * 1024 - 1, 1024 * 1024, 5_000_000])
def test_a_file_is_stored_whatever_its_size(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "source").write_bytes(content)
    artifacts = ArtifactStore(tmp_path / "a")
    for _ in range(2):
        ref = artifacts.stage_file(tmp_path / "source", media_type="text/plain", name="s", run_salt=SALT)
        artifacts.flush()
        assert ArtifactStore(tmp_path / "a").content(ref) == content
        assert ref.salted == (size < 1024 * 1024)
    assert len(list(artifacts.digests())) == 1
    assert not [name for name in files(tmp_path / "a") if name.endswith(".tmp")]


def test_a_file_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        ArtifactStore(tmp_path / "a").stage_file(tmp_path / "no", media_type="text/plain", name="s")
    assert caught.value.code == "storage.absent"


@pytest.mark.parametrize("pack_bytes", [64 * 1024 * 1024, 200])
def test_an_erased_artifact_is_absent_for_everybody_and_the_others_are_not(tmp_path: Path, pack_bytes: int) -> None:
    items = [b"item %d " % i + os.urandom(20) for i in range(8)] + [b"L" * 300_000]
    writer = store(tmp_path, *items, pack_bytes=pack_bytes)
    reader, other = ArtifactStore(tmp_path), ArtifactStore(tmp_path, pack_bytes=pack_bytes)
    other.stage(b"warm")
    other.flush()
    for item in items:
        assert reader.get(sha(item)) == item
    gone = [items[0], items[4], items[8]]
    for item in gone:
        assert writer.erase(sha(item))
        assert not writer.erase(sha(item))
    for artifacts in (writer, reader, other, ArtifactStore(tmp_path)):
        for item in items:
            assert artifacts.exists(sha(item)) == (item not in gone)
            if item in gone:
                with pytest.raises(NotFoundError):
                    artifacts.get(sha(item))
            else:
                assert artifacts.get(sha(item)) == item
    assert not any(item in data for item in gone for data in files(tmp_path).values())
    # Appending goes on in the pack that was written anew, by whoever knew the old one too.
    for artifacts in (other, writer):
        digest = artifacts.stage(os.urandom(30))
        artifacts.stage(items[0])
        artifacts.flush()
        assert reader.get(digest)
        assert reader.get(sha(items[0])) == items[0]


def test_an_artifact_that_only_waits_can_be_erased(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path)
    digest = artifacts.stage(b"x")
    assert artifacts.erase(digest)
    artifacts.flush()
    assert not artifacts.exists(digest)


def test_a_new_pack_begins_when_one_is_full_and_the_full_one_gets_an_index(tmp_path: Path) -> None:
    items = [os.urandom(50) for _ in range(12)]
    store(tmp_path, *items, pack_bytes=400)
    found = files(tmp_path)
    packs = [name for name in found if name.endswith(".pack")]
    assert packs == [f"artifacts/packs/{number:08d}.pack" for number in range(len(packs))]
    assert len(packs) > 2
    assert [name for name in found if name.endswith(".idx")] == [name[:-4] + "idx" for name in packs[:-1]]
    fresh = ArtifactStore(tmp_path)
    assert sorted(fresh.digests()) == sorted(sha(item) for item in items)
    assert all(fresh.get(sha(item)) == item for item in items)


@pytest.mark.parametrize(
    "harm", ["deleted", "empty", "garbage", "of another pack", "empty index", "shifted", "too far", "cut", "swapped"]
)
def test_an_index_is_only_a_hint(tmp_path: Path, harm: str) -> None:
    items = [os.urandom(50) for _ in range(12)]
    store(tmp_path, *items, pack_bytes=400)
    first, second = tmp_path / "artifacts" / "packs" / "00000000.idx", tmp_path / "artifacts" / "packs" / "00000001.idx"
    index = PackIndex.load(first)
    assert index is not None
    match harm:
        case "deleted":
            first.unlink()
        case "empty":
            first.write_bytes(b"")
        case "garbage":
            first.write_bytes(os.urandom(240))
        case "of another pack":
            first.write_bytes(second.read_bytes())
        case "empty index":
            first.write_bytes(print_index([], covers=index.covers))
        case "shifted":
            first.write_bytes(print_index([(row, start + 1) for row, start in index], covers=index.covers))
        case "too far":
            first.write_bytes(print_index(index, covers=2**40))
        case "cut":
            first.write_bytes(first.read_bytes()[:-1])
        case _:
            rows = list(index)
            swapped = [(rows[i - 1][0], rows[i][1]) for i in range(len(rows))]
            first.write_bytes(print_index(swapped, covers=index.covers))
    fresh = ArtifactStore(tmp_path, pack_bytes=400)
    assert [fresh.get(sha(item)) for item in items] == items
    assert not fresh.exists(sha(b"never"))
    assert sorted(fresh.digests()) == sorted(sha(item) for item in items)
    digest = fresh.stage(b"one more")
    fresh.flush()
    assert [ArtifactStore(tmp_path).get(name) for name in (digest, sha(items[0]))] == [b"one more", items[0]]


@given(
    st.dictionaries(st.binary(min_size=32, max_size=32), st.integers(0, 2**40), max_size=30),
    st.binary(min_size=32, max_size=32),
)
def test_an_index_finds_what_it_was_made_of_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, starts: dict[bytes, int], other: bytes
) -> None:
    path = tmp_path_factory.mktemp("i") / "x.idx"
    path.write_bytes(print_index([(prefix(key), start) for key, start in starts.items()], covers=77))
    index = PackIndex.load(path)
    assert index is not None
    assert (index.size, index.covers) == (len(starts), 77)
    assert all(index.find(key) == start for key, start in starts.items())
    assert index.find(other) == starts.get(other)


def test_the_index_of_a_pack_that_still_grows_covers_a_part_of_it(tmp_path: Path) -> None:
    keys = []
    for i in range(50):
        packs = Packs(tmp_path, index_bytes=1000)
        data = b"data %d" % i
        keys.append(hashlib.sha256(data).digest())
        packs.append([(keys[-1], data)])
    index = PackIndex.load(tmp_path / "00000000.idx")
    assert index is not None
    size = (tmp_path / "00000000.pack").stat().st_size
    assert 0 < size - index.covers < 1000 + 100
    assert list(Packs(tmp_path).keys()) == keys
    assert [Packs(tmp_path).find(key) for key in keys] == [[b"data %d" % i] for i in range(50)]


def test_a_reader_sees_what_another_object_appends(tmp_path: Path) -> None:
    writer, reader = ArtifactStore(tmp_path), ArtifactStore(tmp_path)
    for i in range(20):
        digest = writer.stage(b"%d" % i)
        assert not reader.exists(digest)
        writer.flush()
        assert reader.get(digest) == b"%d" % i


def test_two_writers_that_take_turns_do_not_write_over_each_other(tmp_path: Path) -> None:
    writers = [ArtifactStore(tmp_path, pack_bytes=500) for _ in range(3)]
    digests = []
    for i in range(60):
        digests.append(writers[i % 3].stage(b"item %d" % i))
        writers[i % 3].flush()
    assert [ArtifactStore(tmp_path).get(digest) for digest in digests] == [b"item %d" % i for i in range(60)]


def test_threads_read_while_another_writes(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path, pack_bytes=3000)
    known: list[str] = []
    wrong: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                for digest in list(known)[-20:]:
                    assert sha(artifacts.get(digest)) == digest
        except BaseException as error:  # noqa: BLE001  told to the test below
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(200):
        digest = artifacts.stage(b"item %d" % i * 10)
        artifacts.flush()
        known.append(digest)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_content_that_looks_like_a_record_is_content(tmp_path: Path) -> None:
    inner = b"inner"
    fake = b"\n%b 5\ninner\n" % sha(inner).encode()
    liar = b"\n%b 5\nother\n" % sha(b"never stored").encode()
    artifacts = store(tmp_path, fake, liar, b"after")
    for reader in (artifacts, ArtifactStore(tmp_path)):
        assert reader.get(sha(fake)) == fake
        assert reader.get(sha(b"after")) == b"after"
        assert not reader.exists(sha(b"never stored"))
        assert not reader.exists(sha(inner))


class StoreMachine(RuleBasedStateMachine):
    """A store against a set of bytes: whatever happens, it holds exactly what was flushed and not erased."""

    @initialize(pack_bytes=st.sampled_from([1, 150, 400, 64 * 1024 * 1024]))
    def begin(self, pack_bytes: int) -> None:
        import tempfile

        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.pack_bytes = pack_bytes
        self.stores = [ArtifactStore(self.folder, pack_bytes=pack_bytes) for _ in range(2)]
        self.stored: set[bytes] = set()

    @rule(items=st.lists(st.binary(max_size=60), max_size=3), which=st.integers(0, 1))
    def flush(self, items: list[bytes], which: int) -> None:
        for item in items:
            self.stores[which].stage(item)
        self.stores[which].flush()
        self.stored |= set(items)

    @rule(number=st.integers(0, 50), which=st.integers(0, 1))
    def erase(self, number: int, which: int) -> None:
        if self.stored:
            item = sorted(self.stored)[number % len(self.stored)]
            assert self.stores[which].erase(sha(item))
            self.stored.discard(item)

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.stores[which] = ArtifactStore(self.folder, pack_bytes=self.pack_bytes)

    @rule(item=st.binary(max_size=60), cut=st.integers(1, 200), nuls=st.integers(0, 100))
    def crash(self, item: bytes, cut: int, nuls: int) -> None:
        """Another process is killed in the middle of an append."""
        packs = sorted(self.folder.glob("packs/*.pack"))
        if packs and packs[-1].stat().st_size < self.pack_bytes:
            record = f"{sha(item)} {len(item)}\n".encode() + item + b"\n"
            with packs[-1].open("ab") as file:
                file.write(record[: min(cut, len(record) - 1)] + bytes(nuls))
            if sha(item) not in {sha(known) for known in self.stored} and self.stores[0].exists(sha(item)):
                # NULs may complete a record: then it is a stored one that nobody refers to.
                self.stored.add(item)

    @rule(gone=st.sampled_from(["00000000.idx", "00000001.idx"]))
    def lose_index(self, gone: str) -> None:
        (self.folder / "artifacts" / "packs" / gone).unlink(missing_ok=True)

    @invariant()
    def it_holds_what_was_stored(self) -> None:
        if not hasattr(self, "stores"):
            return
        for artifacts in self.stores:
            assert set(artifacts.digests()) == {sha(item) for item in self.stored}
            for item in self.stored:
                assert artifacts.get(sha(item)) == item
            assert not artifacts.exists(sha(b"never stored"))

    def teardown(self) -> None:
        if hasattr(self, "temporary"):
            self.temporary.cleanup()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(stateful_step_count=15, max_examples=min(settings().max_examples, 1000))


def test_every_error_of_the_store_has_a_dotted_code(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path)
    for ask in (lambda: artifacts.get("x"), lambda: artifacts.get(sha(b"x"))):
        with pytest.raises(LedgerError) as caught:
            ask()
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", caught.value.code)
