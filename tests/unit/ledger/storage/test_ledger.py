"""A ledger folder: made, opened, appended to, read; and everything that is refused, with nothing changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from ledger import Ledger, LedgerError
from ledger import receipt as kinds
from ledger.canonical import decode, encode
from ledger.envelope import RECEIPT_TYPE, Envelope, Seal, pae, print_envelope, seal
from ledger.errors import (
    AdmissionError,
    ConflictError,
    DamagedError,
    FormatError,
    KeyFileError,
    LockError,
    NotFoundError,
    SignatureError,
    StorageError,
    UnknownFormatError,
)
from ledger.keys import PrivateKey
from ledger.receipt import print_receipt
from ledger.storage.journal import COMMIT_MAX_ENTRIES
from ledger.storage.keyfile import write_key
from tests.reference.check import check_folder, name_of
from tests.reference.ledgers import (
    bytes_of,
    common,
    grant,
    intent,
    many_intents,
    new_ledger,
    open_ledger,
    opening,
    outcome,
    places_of,
    quick_folder,
    verdict,
)

STRANGER = PrivateKey.from_seed(sha256(b"stranger").digest())


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as folder:
        yield folder


def refused(ledger: Ledger, error: type[LedgerError], code: str, *envelopes: Envelope | bytes) -> None:
    """Check that a commit is refused and that not one byte of the folder changed."""
    before = bytes_of(ledger.folder)
    with pytest.raises(error) as caught:
        ledger.append_many(envelopes)
    assert caught.value.code == code
    assert bytes_of(ledger.folder) == before


# Made and opened.


def test_a_new_ledger_holds_its_header_and_nothing_else(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, origin="example.org/one", issuer="ada")
    journal = check_folder(ledger.folder)
    assert [row.receipt["kind"] for row in journal.rows] == ["header"]
    assert journal.rows[0].receipt["issuer"]["name"] == "ada"
    assert (ledger.head().origin, ledger.head().size) == ("example.org/one", 1)
    assert verdict(ledger).exit == 0


def test_a_ledger_is_the_same_after_it_was_opened_again(tmp_path: Path) -> None:
    first = new_ledger(tmp_path)
    position = first.append(grant(first))
    again = open_ledger(tmp_path)
    assert again.origin == first.origin
    assert again.head() == first.head()
    assert again.get(position.receipt).entry.index == position.index == 1
    assert again.append(grant(again)).index == 2
    assert first.append(grant(first)).index == 3
    assert len(check_folder(first.folder).rows) == 4


def test_no_private_key_and_no_memory_lies_in_the_folder(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    for path in ledger.folder.rglob("*"):
        assert not path.is_file() or b"PRIVATE KEY" not in path.read_bytes()
    assert places_of(tmp_path).register_file(ledger.origin).read_bytes() == ledger.checkpoint()


@pytest.mark.parametrize("made", ["file", "folder with a file"])
def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path, made: str) -> None:
    target = tmp_path / "ledger"
    if made == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine").write_text("mine")
    with pytest.raises(StorageError) as caught:
        new_ledger(tmp_path)
    assert caught.value.code == "storage.in_use"
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]
    assert made == "file" or [path.name for path in target.iterdir()] == ["mine"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    assert new_ledger(tmp_path).head().size == 1


def test_an_origin_that_this_machine_remembers_is_refused(tmp_path: Path) -> None:
    new_ledger(tmp_path, origin="example.org/one")
    with pytest.raises(StorageError) as caught:
        Ledger.create(tmp_path / "other", origin="example.org/one", places=places_of(tmp_path))
    assert caught.value.code == "storage.origin_known"
    assert not (tmp_path / "other").exists()


def test_an_origin_that_only_the_verifier_remembers_is_refused(tmp_path: Path) -> None:
    memory = places_of(tmp_path).memory_file("example.org/one")
    memory.parent.mkdir(parents=True)
    memory.write_bytes(b"a note")
    with pytest.raises(StorageError) as caught:
        new_ledger(tmp_path, origin="example.org/one")
    assert caught.value.code == "storage.origin_known"
    assert not (tmp_path / "ledger").exists()
    assert not places_of(tmp_path).keys.exists()


@pytest.mark.parametrize("origin", ["", "with space", "plus+plus", "line\nbreak", "ü", "x" * 256])
def test_an_origin_that_no_head_can_name_is_refused_before_anything_is_made(tmp_path: Path, origin: str) -> None:
    with pytest.raises(LedgerError):
        Ledger.create(tmp_path / "ledger", origin=origin or " ", places=places_of(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("issuer", ["line\nbreak", "x" * 257, "\x9b"])
def test_an_issuer_name_outside_its_form_is_refused_before_anything_is_made(tmp_path: Path, issuer: str) -> None:
    with pytest.raises(LedgerError):
        new_ledger(tmp_path, issuer=issuer)
    assert list(tmp_path.iterdir()) == []


def test_a_creation_that_fails_leaves_no_keys_behind_and_can_be_done_again(tmp_path: Path) -> None:
    # A file where a folder should be stops root as well as anybody.
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        Ledger.create(tmp_path / "file" / "ledger", origin="example.org/one", places=places_of(tmp_path))
    assert new_ledger(tmp_path, origin="example.org/one").head().size == 1


def test_a_folder_without_a_journal_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    with pytest.raises(NotFoundError) as caught:
        open_ledger(tmp_path)
    assert caught.value.code == "ledger.absent"
    assert list((tmp_path / "ledger").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"hello\n", b'{"entry":{}}\n'])
def test_a_journal_of_something_else_is_not_taken_for_an_empty_ledger(tmp_path: Path, content: bytes) -> None:
    journal = tmp_path / "ledger" / "journal"
    journal.mkdir(parents=True)
    (journal / f"{0:016d}.jsonl").write_bytes(content)
    with pytest.raises(DamagedError if content else NotFoundError):
        open_ledger(tmp_path)
    assert (journal / f"{0:016d}.jsonl").read_bytes() == content


def test_a_damaged_header_is_damage_and_not_absence(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    path = ledger.folder / "journal" / f"{0:016d}.jsonl"
    path.write_bytes(b"X" + path.read_bytes()[1:])
    with pytest.raises(DamagedError):
        open_ledger(tmp_path)


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    path = ledger.folder / "journal" / f"{0:016d}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"format":"receipt-ledger/v1"', b'"format":"receipt-ledger/v2"'))
    with pytest.raises(UnknownFormatError) as caught:
        open_ledger(tmp_path)
    assert caught.value.code == "format.unknown"


def test_a_newer_entry_schema_is_refused_by_name(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    path = ledger.folder / "journal" / f"{0:016d}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"receipt-ledger.entry/v1", b"receipt-ledger.entry/v2"))
    with pytest.raises(UnknownFormatError) as caught:
        open_ledger(tmp_path)
    assert caught.value.code == "entry.unknown_schema"


# Appended to.


def test_an_appended_receipt_is_read_back_as_it_went_in(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    position = ledger.append(envelope)
    stored = ledger.get(position.receipt)
    assert (position.receipt, position.index, position.already) == (name_of(envelope.payload), 1, False)
    assert stored.envelope == envelope
    assert stored.envelope_bytes == print_envelope(envelope)
    assert stored.entry.index == 1


def test_an_envelope_may_come_as_bytes(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    assert ledger.append(print_envelope(envelope)).receipt == envelope.receipt_id
    refused(ledger, FormatError, "envelope.malformed", print_envelope(envelope) + b"\n")


def test_a_batch_is_one_commit(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    positions = ledger.append_many([grant(ledger) for _ in range(5)])
    assert [each.index for each in positions] == [1, 2, 3, 4, 5]
    assert check_folder(ledger.folder).sizes == [1, 6]


def test_an_empty_batch_changes_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    before = bytes_of(ledger.folder)
    assert ledger.append_many([]) == []
    assert bytes_of(ledger.folder) == before


def test_the_same_envelope_again_keeps_its_place(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    first = ledger.append(envelope)
    before = bytes_of(ledger.folder)
    for each in (ledger, open_ledger(tmp_path)):
        again = each.append(envelope)
        assert (again.receipt, again.index, again.already) == (first.receipt, first.index, True)
    assert bytes_of(ledger.folder) == before


def test_a_batch_appends_only_what_is_new(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    old, new, more = grant(ledger), grant(ledger), grant(ledger)
    ledger.append(old)
    positions = ledger.append_many([new, old, more, new])
    assert [(each.index, each.already) for each in positions] == [(2, False), (1, True), (3, False), (2, True)]
    assert check_folder(ledger.folder).ids[1:] == [old.receipt_id, new.receipt_id, more.receipt_id]


def test_a_known_receipt_under_another_envelope_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    bare = intent(ledger, run)
    sealed = seal(bare.payload, ledger._secret().issuer)
    ledger.append(bare)
    refused(ledger, ConflictError, "receipt.conflict", sealed)
    refused(ledger, ConflictError, "receipt.conflict", grant(ledger), sealed)


def test_two_envelopes_of_one_receipt_in_one_batch_are_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    bare = intent(ledger, run)
    sealed = seal(bare.payload, ledger._secret().issuer)
    refused(ledger, ConflictError, "receipt.conflict", bare, sealed)
    refused(ledger, ConflictError, "receipt.conflict", sealed, bare)


def test_two_equal_acts_are_two_receipts(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    one, other = intent(ledger, run), intent(ledger, run)
    assert ledger.append(one).receipt != ledger.append(other).receipt


def changed(envelope: Envelope, **members: object) -> bytes:
    return encode({**decode(envelope.payload), **members})


def test_a_receipt_of_another_ledger_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    other = Ledger.create(tmp_path / "other", places=places_of(tmp_path))
    refused(ledger, AdmissionError, "receipt.foreign_ledger", grant(other))
    payload = changed(grant(ledger), ledger=ledger.origin + "x")
    refused(ledger, AdmissionError, "receipt.foreign_ledger", seal(payload, ledger._secret().issuer))


def test_a_kind_that_is_always_sealed_is_refused_without_its_seal(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    refused(ledger, SignatureError, "seal.absent", Envelope(envelope.payload))
    ledger.append(envelope)


def test_a_seal_by_another_key_than_the_issuers_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    refused(ledger, AdmissionError, "seal.issuer", seal(grant(ledger).payload, STRANGER))


def test_a_seal_with_one_bit_turned_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    assert envelope.seal is not None
    for byte in (0, 31, 32, 63):
        signature = bytearray(envelope.seal.signature)
        signature[byte] ^= 1
        wrong = Envelope(envelope.payload, RECEIPT_TYPE, Seal(envelope.seal.key, bytes(signature)))
        refused(ledger, SignatureError, "signature.invalid", wrong)


def test_a_seal_over_another_type_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    assert envelope.seal is not None
    signature = ledger._secret().issuer.sign(pae("text/plain", envelope.payload))
    refused(
        ledger,
        SignatureError,
        "signature.invalid",
        Envelope(envelope.payload, RECEIPT_TYPE, Seal(envelope.seal.key, signature)),
    )


def test_another_payload_type_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    other = seal(grant(ledger).payload, ledger._secret().issuer, payload_type="application/json")
    refused(ledger, UnknownFormatError, "envelope.unknown_type", other)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda payload: payload + b"\n",
        lambda payload: payload.replace(b'"action":', b'"action": '),
        lambda payload: payload.replace(b'{"action"', b'{"acts":["read"],"action"', 1).replace(
            b'"acts":["read"],"grantee"', b'"grantee"'
        ),
        lambda payload: payload.replace(b'"read"', b'"\\u0072ead"'),
        lambda payload: payload.replace(b'"read"', b'"\xff"'),
    ],
)
def test_bytes_that_are_not_canonical_are_refused(tmp_path: Path, spoil: object) -> None:
    ledger = new_ledger(tmp_path)
    good = grant(ledger).payload
    payload = spoil(good)  # type: ignore[operator]
    assert payload != good
    before = bytes_of(ledger.folder)
    with pytest.raises(FormatError):
        ledger.append(seal(payload, ledger._secret().issuer))
    assert bytes_of(ledger.folder) == before


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("kind", "prune", "receipt.unknown_kind"),
        ("kind", "visit", "receipt.unknown_kind"),
        ("schema", "receipt-ledger.receipt/v2", "receipt.unknown_schema"),
    ],
)
def test_what_this_version_does_not_know_is_refused(tmp_path: Path, member: str, value: str, code: str) -> None:
    ledger = new_ledger(tmp_path)
    payload = changed(grant(ledger), **{member: value})
    refused(ledger, UnknownFormatError, code, seal(payload, ledger._secret().issuer))


@pytest.mark.parametrize("members", [{"extra": 1}, {"nonce": "0" * 31}, {"expires_at": "2026-02-30T00:00:00.000Z"}])
def test_a_receipt_outside_its_schema_is_refused(tmp_path: Path, members: dict[str, object]) -> None:
    ledger = new_ledger(tmp_path)
    payload = changed(grant(ledger), **members)
    refused(ledger, FormatError, "receipt.malformed", seal(payload, ledger._secret().issuer))


def test_one_bad_receipt_in_a_batch_refuses_all_of_it(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    good = intent(ledger, run)
    refused(ledger, SignatureError, "seal.absent", good, Envelope(grant(ledger).payload))
    # Nothing of the refused batch stays in what the ledger knows.
    refused(ledger, AdmissionError, "tree.missing", outcome(ledger, run, good.receipt_id))
    assert not ledger.append(good).already
    ledger.append(outcome(ledger, run, good.receipt_id))


def test_a_second_header_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    again = changed(Envelope(print_receipt(ledger.header)), nonce="0" * 32)
    refused(ledger, AdmissionError, "chain.first_entry", seal(again, ledger._secret().issuer))


def test_a_key_receipt_that_was_not_promised_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    for role, retired in (("issuer", ledger.issuer.key), ("log", ledger.header.log_key)):
        stolen = kinds.Key(
            **{
                **common(ledger, action="rotate", role=role, key=STRANGER.key, retired=retired, next={}),
                "issuer": {"name": ledger.issuer.name, "key": STRANGER.key},
            }
        )
        before = bytes_of(ledger.folder)
        with pytest.raises(LedgerError):
            ledger.append(seal(print_receipt(stolen), STRANGER))
        assert bytes_of(ledger.folder) == before
    ledger.append(grant(ledger))


def test_a_commit_holds_8192_entries_and_not_one_more(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run = ledger.append(opening(ledger)).receipt
    batch = many_intents(ledger, run, COMMIT_MAX_ENTRIES + 1)
    refused(ledger, AdmissionError, "commit.too_large", *batch)
    ledger.append_many(batch[:-1])
    assert ledger.head().size == 2 + COMMIT_MAX_ENTRIES


def test_a_commit_over_16_mib_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    acts = tuple(f"{number:04d}" + "x" * 250 for number in range(1000))
    batch = [grant(ledger, conditions=name_of(b"%d" % number)) for number in range(2)]
    big = [
        ledger.seal(kinds.Grant(**common(ledger, action="given", grantee="bot", acts=acts))) for _ in range(66)
    ]  # 254 kB each
    refused(ledger, FormatError, "commit.too_large", *batch, *big)
    ledger.append_many([*batch, *big[:60]])
    assert check_folder(ledger.folder, signatures=False).sizes == [1, 63]


# Folders that are not what they should be.


def test_a_folder_that_holds_a_private_key_is_not_appended_to(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    write_key(ledger.folder / "issuer.pem", STRANGER)
    again = open_ledger(tmp_path)
    refused(again, KeyFileError, "keyfile.in_ledger", envelope)
    assert again.head().size == 1
    (ledger.folder / "issuer.pem").unlink()
    assert open_ledger(tmp_path).append(envelope).index == 1


def test_a_ledger_without_its_keys_is_read_but_not_appended_to(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    stranger = Ledger.open(ledger.folder, places=places_of(tmp_path / "stranger"))
    assert stranger.head() == ledger.head()
    refused(stranger, KeyFileError, "keyfile.absent", envelope)
    assert not (tmp_path / "stranger").exists()


def test_a_log_key_of_another_ledger_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    path = places_of(tmp_path).key_folder(ledger.origin) / "log.pem"
    path.unlink()
    write_key(path, STRANGER)
    refused(open_ledger(tmp_path), StorageError, "keyfile.not_in_force", envelope)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    envelope = grant(ledger)
    (places_of(tmp_path).key_folder(ledger.origin) / "issuer.pem").chmod(0o640)
    refused(open_ledger(tmp_path), KeyFileError, "keyfile.mode", envelope)


def test_a_ledger_that_was_marked_damaged_is_read_but_not_appended_to(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    (ledger.folder / "damaged").touch()
    refused(ledger, DamagedError, "journal.damaged", grant(ledger))
    assert ledger.head().size == 1


def test_an_append_inside_an_append_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)

    def build(_: object) -> list[Envelope]:
        ledger.append(grant(ledger))
        return []

    with pytest.raises(LockError) as caught:
        ledger.commit(build)
    assert caught.value.code == "storage.lock_nested"
    assert ledger.append(grant(ledger)).index == 1


def test_a_builder_that_fails_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)

    def build(_: object) -> list[Envelope]:
        raise KeyboardInterrupt

    before = bytes_of(ledger.folder)
    with pytest.raises(KeyboardInterrupt):
        ledger.commit(build)
    assert bytes_of(ledger.folder) == before
    assert ledger.append(grant(ledger)).index == 1


def test_a_closed_ledger_opens_again_when_it_is_used(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        first = ledger.append(grant(ledger)).receipt
    assert ledger.get(first).entry.index == 1
    assert ledger.append(grant(ledger)).index == 2
    ledger.close()
    ledger.close()


def test_a_folder_may_have_any_name_that_the_system_takes(tmp_path: Path) -> None:
    folder = tmp_path / "a b?c#d%41\nü"
    ledger = Ledger.create(folder, places=places_of(tmp_path))
    position = ledger.append(grant(ledger))
    again = Ledger.open(folder, places=places_of(tmp_path))
    assert again.get(position.receipt).entry.index == 1
    assert again.append(grant(again)).index == 2


def test_a_relative_folder_is_taken_from_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("ledger", places=places_of(tmp_path))
    os.chdir("/")
    assert ledger.append(grant(ledger)).index == 1


# Read.


def test_threads_read_one_ledger_at_once(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ids = [each.receipt for each in ledger.append_many([grant(ledger) for _ in range(20)])]
    ledger.close()
    found: list[str] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for id_ in ids:
                found.append(ledger.get(id_).entry.receipt)  # noqa: PERF401  each on its own
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(found) == sorted(ids * 4)


def test_a_receipt_is_found_by_what_its_id_begins_with(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ids = [each.receipt for each in ledger.append_many([grant(ledger) for _ in range(5)])]
    for each in (ledger, open_ledger(tmp_path)):
        for id_ in ids:
            assert each.find(id_) == each.find(id_[7:]) == each.find(id_[:15]) == each.find(id_[7:20]) == [id_]
        with pytest.raises(FormatError):
            each.find(ids[0][7:14])
        wrong = "0" * 8 if not ids[0][7:].startswith("0") else "f" * 8
        assert each.find(wrong) == []


def test_an_unknown_receipt_is_absent(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with pytest.raises(NotFoundError):
        ledger.get("sha256:" + "0" * 64)


def test_entries_are_given_by_index(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append_many([grant(ledger) for _ in range(9)])
    for start, stop in ((0, None), (0, 10), (3, 7), (9, 10), (5, 5), (7, 3), (10, None), (0, 99)):
        expected = list(range(10))[start:stop]
        assert [stored.entry.index for stored in ledger.entries(start, stop)] == expected
    assert ledger.reader.at(9).entry.index == 9
    for absent in (10, -1):
        with pytest.raises(NotFoundError):
            ledger.reader.at(absent)


def test_what_stands_after_the_last_head_is_not_read(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.append(grant(ledger))
    path = ledger.folder / "journal" / f"{0:016d}.jsonl"
    last = ledger.append_many([grant(ledger), grant(ledger)])[-1]
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b'{"head":')])
    for each in (ledger, open_ledger(tmp_path)):
        assert each.head().size == 2
        assert [stored.entry.index for stored in each.entries()] == [0, 1]
        with pytest.raises(NotFoundError):
            each.reader.at(2)
        with pytest.raises(NotFoundError):
            each.get(last.receipt)
        assert each.find(last.receipt) == []
