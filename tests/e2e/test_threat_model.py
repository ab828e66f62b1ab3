"""The threat model, carried out: each row of docs/explanation/threat-model.md is a test here, with its codes and exits.

The attacker has a copy of what the row says and uses our own software or bytes made by hand; the verifier is somebody else with
a home, a trust file and, where the row says so, a memory of his own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ledger import canonical
from ledger.bundle import Bundle, parse_bundle, print_bundle
from ledger.checkpoint import Head, head_of, sign_head
from ledger.counterseal import open_counter_seal, seal_counter_seal
from ledger.digest import digest
from ledger.envelope import Envelope, seal
from ledger.equivocation import Equivocation, parse_equivocation, print_equivocation
from ledger.keys import PrivateKey, next_digest
from ledger.members import Issuer, NextKeys
from ledger.receipt import Header, Key, print_receipt
from ledger.storage.clock import nonce, now
from ledger.storage.keyfile import read_key
from ledger.storage.ledger import PRODUCER
from ledger.storage.rotation import rotate
from tests.reference.build import Builder, Party
from tests.reference.ledgers import grant
from tests.reference.notaries import Notary
from tests.reference.people import Done, Person, copy, cut, drop_derived, heads, journal
from verify.codes import CODES

PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/threat-model.md"
ROWS: dict[str, tuple[set[int], set[str]]] = {}


def attack(exits: str, codes: str = ""):
    """Declare the exits and codes that an attack leads to; the page must say the same."""

    def register(test):
        ROWS[test.__name__] = ({int(each) for each in exits.split()}, set(codes.split()))
        test.exits, test.codes = ROWS[test.__name__]
        return test

    return register


@pytest.fixture
def shows(request):
    """Return a check that a command ended with a declared exit, for declared codes and no other that counts."""
    declared, codes = ROWS[request.function.__name__]
    seen: set[int] = set()

    def check(done: Done, exit_: int, *expected: str) -> Done:
        assert exit_ in declared, "not declared"
        assert done.exit == exit_, (done.out, done.err)
        assert set(expected) <= codes, "not declared"
        counted = {code for code in done.codes if CODES[code].exit} if done.out.startswith("{") else set()
        caused = {code for code in counted if CODES[code].exit == exit_}
        assert set(expected) <= done.codes, (expected, done.codes)
        assert bool(caused) == (exit_ != 0), done.codes
        seen.add(exit_)
        return done

    yield check
    assert seen == declared, "an exit that the row declares was not shown"


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def auditor(tmp_path):
    return Person(tmp_path / "auditor")


@pytest.fixture
def thief(tmp_path):
    return Person(tmp_path / "thief")


@pytest.fixture
def folder(tmp_path, owner):
    """A ledger of one run, its owner's."""
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path)
    return path


def key(label: str) -> PrivateKey:
    """Return a key of nobody's: random, so that trust does not know it as published."""
    return PrivateKey.from_seed(os.urandom(32))


def builder(**options) -> Builder:
    """Return a ledger made by hand under keys of its own."""
    return Builder(**{"issuer": Party("issuer", key("issuer")), "log": key("log"), **options})


def laid(made: Builder, path: Path) -> Path:
    """Put a ledger made by hand into a folder."""
    (path / "journal").mkdir(parents=True)
    (path / "journal" / f"{0:016d}.jsonl").write_bytes(made.journal())
    return path


def lines_of(folder: Path) -> list[bytes]:
    return journal(folder).read_bytes().split(b"\n")[:-1]


def put(folder: Path, lines: list[bytes]) -> None:
    journal(folder).write_bytes(b"".join(line + b"\n" for line in lines))
    drop_derived(folder)


# Cut, altered, rolled back.


@attack("1")
def test_a_flipped_byte_of_the_journal(folder, auditor, shows):
    auditor.trusts(folder)
    data = journal(folder).read_bytes()
    for offset in range(0, len(data), 97):
        journal(folder).write_bytes(data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :])
        done = shows(auditor.verify(folder), 1)
        assert any(
            check["status"] == "failed" and ("where" in check or "message" in check) for check in done.json["checks"]
        )


@attack("1", "chain.index chain.previous")
def test_entries_removed_repeated_or_swapped(folder, auditor, shows):
    auditor.trusts(folder)
    lines = lines_of(folder)
    entries = [number for number, line in enumerate(lines) if line.startswith(b'{"entry"')]
    second, third = entries[1], entries[2]
    put(folder, lines[:second] + lines[second + 1 :])
    shows(auditor.verify(folder), 1, "chain.index", "chain.previous")
    put(folder, [*lines[: second + 1], lines[second], *lines[second + 1 :]])
    shows(auditor.verify(folder), 1, "chain.index")
    swapped = list(lines)
    swapped[second], swapped[third] = swapped[third], swapped[second]
    put(folder, swapped)
    shows(auditor.verify(folder), 1, "chain.index", "chain.previous")


@attack("1", "head.shorter")
def test_a_tail_cut_at_a_commit_where_memory_is(folder, auditor, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    cut(folder, lines=2)
    shows(auditor.verify(folder), 1, "head.shorter")


@attack("0", "head.first_seen")
def test_a_tail_cut_at_a_commit_where_nobody_remembers(folder, auditor, shows):
    auditor.trusts(folder)
    cut(folder, lines=2)
    shows(auditor.verify(folder), 0, "head.first_seen")


@attack("0 1", "journal.torn_tail head.shorter")
def test_a_tail_cut_inside_a_commit(folder, auditor, tmp_path, shows):
    cut(copy(folder, tmp_path / "torn"), bytes_=200)
    auditor.trusts(folder)
    shows(auditor.verify(tmp_path / "torn"), 0, "journal.torn_tail")
    assert auditor.verify(folder).exit == 0
    shows(auditor.verify(tmp_path / "torn"), 1, "head.shorter", "journal.torn_tail")


@attack("1", "head.shorter")
def test_a_last_commit_damaged_so_that_it_looks_torn(folder, owner, auditor, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    cut(folder, bytes_=200)
    shows(auditor.verify(folder), 1, "head.shorter")
    before = journal(folder).read_bytes()
    refused = owner("-L", folder, "append", empty(folder))
    assert (refused.exit, "register" in refused.err) == (1, True)
    assert journal(folder).read_bytes() == before


@attack("1", "head.shorter")
def test_an_old_backup_put_back_where_memory_is(folder, owner, auditor, tmp_path, shows):
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    assert auditor.trusts(folder).verify(folder).exit == 0
    copy(backup, folder)
    shows(auditor.verify(folder), 1, "head.shorter")


def empty(folder: Path) -> Path:
    """Return a file of one receipt that any owner may append: the header itself, again."""
    line = lines_of(folder)[0]
    path = folder.parent / "receipt.json"
    path.write_bytes(line[line.index(b'{"payload"') : -1] + b"\n")
    return path


@attack("1")
def test_an_old_backup_appended_to_on_the_machine_that_has_its_register(folder, owner, tmp_path):
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    copy(backup, folder)
    before = journal(folder).read_bytes()
    done = owner("-L", folder, "append", empty(folder))
    assert done.exit == 1
    assert "it was cut, or this is an old copy" in done.err
    assert "ledger restore" in done.err
    assert journal(folder).read_bytes() == before


@attack("1", "head.forked")
def test_an_old_backup_appended_to_after_its_register_was_deleted(folder, owner, auditor, tmp_path, shows):
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    assert auditor.trusts(folder).verify(folder).exit == 0
    copy(backup, folder)
    owner.forget()
    owner.record(folder)
    owner.record(folder)
    done = shows(auditor.verify(folder), 1, "head.forked")
    # The two signed heads and the path between them show it to anybody who pinned the origin.
    (proof,) = (auditor.places.state / "equivocations").iterdir()
    assert str(proof) in done.err
    other = Person(tmp_path / "other").trusts(folder)
    shows(other.verify(proof), 1, "head.forked")


@attack("0")
def test_derived_files_deleted_or_altered(folder, owner, auditor, shows):
    owner.record(folder)
    with owner.open(folder) as ledger:
        ledger.append(grant(ledger))
    auditor.trusts(folder)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "journal" not in path.parts):
        if path.name != "lock" and "artifacts" not in path.parts:
            path.write_bytes(b"\xff" * path.stat().st_size)
    shows(auditor.verify(folder), 0)
    drop_derived(folder)
    shows(auditor.verify(folder), 0)
    shows(auditor("-L", folder, "verify", "--json", "latest"), 0)
    owner.record(folder)
    shows(auditor.verify(folder), 0)


@attack("5", "artifact.absent")
def test_an_artifact_removed_without_an_erasure(folder, owner, auditor, tmp_path, shows):
    bundle = proved(folder, owner, tmp_path)
    bare = replace(bundle, artifacts=bundle.artifacts[1:])
    (tmp_path / "bare.json").write_bytes(print_bundle(bare))
    shows(auditor.trusts(folder).verify("--require", "artifacts", tmp_path / "bare.json"), 5, "artifact.absent")


@attack("1", "artifact.altered")
def test_the_bytes_of_an_artifact_exchanged(folder, owner, auditor, tmp_path, shows):
    bundle = proved(folder, owner, tmp_path)
    path = tmp_path / "bundle.json"
    first = next(each for each in bundle.artifacts if each.data)
    changed = type(first)(first.digest, first.data[:-1] + bytes([first.data[-1] ^ 1]))
    artifacts = tuple(changed if each is first else each for each in bundle.artifacts)
    path.write_bytes(print_bundle(replace(bundle, artifacts=artifacts)))
    shows(auditor.trusts(folder).verify(path), 1, "artifact.altered")


def proved(folder: Path, owner: Person, tmp_path: Path) -> Bundle:
    """Return the bundle of a ledger's latest run, with its artifacts."""
    done = owner("-L", folder, "prove", "latest", "--artifacts", "-o", tmp_path / "bundle.json")
    assert done.exit == 0, done.err
    return parse_bundle((tmp_path / "bundle.json").read_bytes())


@attack("0 1", "head.shorter")
def test_a_restored_backup_goes_on_under_an_origin_of_its_own(folder, owner, auditor, tmp_path, shows):
    backup = copy(folder, tmp_path / "backup")
    stranger = Person(tmp_path / "stranger")
    owner.record(folder)
    assert auditor.trusts(folder).verify(folder).exit == 0
    copy(backup, folder)
    assert owner("restore", folder, tmp_path / "new").exit == 0
    owner.record(tmp_path / "new")
    assert owner("-L", folder, "append", empty(folder)).exit == 2  # frozen
    shows(stranger.trusts(folder, tmp_path / "new").verify(tmp_path / "new"), 0)
    # Who has seen what the backup lacks is told that it is not continued.
    done = auditor.trusts(tmp_path / "new")("verify", tmp_path / "new", "--continues", folder, "--json")
    new, old = done.json
    assert {check["name"]: check["status"] for check in new["checks"]}["continues"] == "ok"
    assert (new["exit"], old["exit"], done.exit) == (0, 1, 1)
    assert "head.shorter" in {check.get("code") for check in old["checks"]}
    shows(auditor.verify(folder), 1, "head.shorter")


@attack("1 3", "continues.mismatch trust.log_key_unpinned")
def test_a_ledger_that_falsely_says_to_continue_another(folder, auditor, thief, tmp_path, shows):
    made = builder(origin="ledger.invalid/false")
    made.header(continues={"origin": origin_of(folder), "size": 2, "root": "sha256:" + "0" * 64})
    made.commit()
    false = laid(made, tmp_path / "false")
    shows(auditor.trusts(folder).verify(false), 3, "trust.log_key_unpinned")
    done = auditor.trusts(false)("verify", false, "--continues", folder, "--json")
    shows(Done(done.exit, canonical.encode(done.json[0]).decode(), done.err), 1, "continues.mismatch")


def origin_of(folder: Path) -> str:
    return head_of(note_of(folder)).origin


def note_of(folder: Path) -> bytes:
    return canonical.decode(lines_of(folder)[heads(folder)[-1]])["head"].encode()


# Forged.


@attack("4", "trust.log_key_mismatch")
def test_a_ledger_of_his_own_under_the_origin_of_another(folder, auditor, thief, tmp_path, shows):
    assert thief("init", tmp_path / "mine", "--origin", origin_of(folder)).exit == 0
    shows(auditor.trusts(folder).verify(tmp_path / "mine"), 4, "trust.log_key_mismatch")


@attack("3", "trust.log_key_unpinned trust.issuer_unpinned")
def test_a_ledger_of_his_own_under_an_origin_that_nobody_pinned(folder, auditor, thief, tmp_path, shows):
    assert thief("init", tmp_path / "mine").exit == 0
    thief.record(tmp_path / "mine")
    done = shows(auditor.trusts(folder).verify(tmp_path / "mine"), 3, "trust.log_key_unpinned", "trust.issuer_unpinned")
    assert all(check["status"] != "failed" for check in done.json["checks"])


@attack("3", "trust.log_key_unpinned")
def test_keys_or_a_trust_file_put_into_the_data(folder, auditor, thief, tmp_path, shows):
    assert thief("init", tmp_path / "mine").exit == 0
    for name in ("trust.toml", "journal.toml"):
        shutil.copy(thief.places.trust_file, tmp_path / "mine" / name)
    (tmp_path / "mine/.config/receipt-ledger").mkdir(parents=True)
    shutil.copy(thief.places.trust_file, tmp_path / "mine/.config/receipt-ledger/trust.toml")
    auditor.trusts(folder)
    shows(auditor("verify", "--json", ".", cwd=tmp_path / "mine"), 3, "trust.log_key_unpinned")


@attack("4", "trust.issuer_mismatch")
def test_a_receipt_sealed_under_the_name_of_another_issuer(auditor, tmp_path, shows):
    made = builder()
    made.header()
    made.grant(issuer=Party(made.issuer.name, key("another")))
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 4, "trust.issuer_mismatch")


@attack("1", "receipt.borrowed_issuer")
def test_an_unsealed_receipt_of_another_committed_under_his_own_seal(auditor, tmp_path, shows):
    made, other = builder(), Party("other", key("other"))
    made.header()
    made.opening()
    made.intent(issuer=other)
    made.run()
    made.commit()
    path = laid(made, tmp_path / "made")
    auditor.trusts(path)
    assert auditor("trust", "add", other.name, "--key", other.key).exit == 0
    shows(auditor.verify(path), 1, "receipt.borrowed_issuer")


@attack("1", "seal.absent")
def test_the_seal_of_a_kind_that_is_always_sealed_left_out(auditor, tmp_path, shows):
    made = builder()
    made.header()
    made.grant(seal=False)
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 1, "seal.absent")


@attack("1", "tree.repeated tree.uncommitted tree.after_close")
@pytest.mark.parametrize("code", ["tree.repeated", "tree.uncommitted", "tree.after_close"])
def test_a_receipt_committed_twice_left_out_or_added_after_the_close(auditor, tmp_path, shows, code):
    made = builder()
    made.header()
    run = made.opening()
    call = made.call()
    match code:
        case "tree.repeated":
            step = made.step(call)
            made.run(children=[run, step, call])
        case "tree.uncommitted":
            made.run(children=[run])
        case _:
            made.run()
            made.current = run
            made.intent()
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 1, code)


@attack("1", "key.chain envelope.malformed")
def test_weak_keys_and_signatures_in_another_spelling(folder, auditor, tmp_path, shows):
    made = builder()
    made.header(log_key="ed25519:" + "00" * 32)
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.verify(path), 1, "key.chain")
    assert auditor("trust", "add", path).exit == 2
    # The last two characters of a signature hold four spare bits: another spelling of the same bytes is refused.
    auditor.trusts(folder)
    data = journal(folder).read_bytes()
    spelt = re.sub(rb'([A-Za-z0-9+/])=="\}\]', lambda found: bytes([found[1][0] + 1]) + b'=="}]', data, count=1)
    assert len(spelt) == len(data)
    assert spelt != data
    journal(folder).write_bytes(spelt)
    shows(auditor.verify(folder), 1, "envelope.malformed")


@attack("1", "receipt.canonical")
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"acts":', '"acts":["all"],"acts":'),
        lambda text: text.replace('"grantee":"bot"', '"grantee":1.0'),
        lambda text: text.replace('"bot"', '"b\\u006ft"'),
    ],
)
def test_json_that_two_parsers_read_differently(auditor, tmp_path, shows, change):
    made = builder()
    made.header()
    made.grant()
    text = made.payload(1).decode()
    assert change(text) != text
    made.grant(payload=change(text).encode())
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 1, "receipt.canonical")


@attack("1 5", "receipt.canonical subject.unknown")
def test_brackets_without_end_and_files_without_meaning(auditor, tmp_path, shows):
    made = builder()
    made.header()
    made.grant(payload=b'{"a":' + b"[" * 300_000 + b"]" * 300_000 + b"}")
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 1, "receipt.canonical")
    (tmp_path / "brackets").write_bytes(b"[" * 1_000_000)
    shows(auditor.verify(tmp_path / "brackets"), 5, "subject.unknown")


# Stolen keys.


@attack("0 4", "key.revoked")
def test_lies_sealed_with_a_stolen_issuer_key_until_it_is_revoked(folder, owner, auditor, thief, shows):
    auditor.trusts(folder)
    good = owner.record(folder)
    with owner.open(folder) as ledger:
        first_lie = ledger.head().size
    thief.takes_keys(owner).record(folder, "lie")
    shows(auditor.verify(folder), 0)
    assert owner("-L", folder, "keys", "revoke", "--from", first_lie).exit == 0
    owner.record(folder, "truth")
    shows(auditor.verify(folder), 4, "key.revoked")
    # What stood before stays good, and so does what came after.
    assert auditor("-L", folder, "verify", good).exit == 0
    assert auditor("-L", folder, "verify", "latest").exit == 0


@attack("1", "head.root")
def test_a_lie_put_into_the_past_with_the_issuer_key_alone(folder, owner, auditor, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    stolen = read_key(owner.places.key_folder(origin_of(folder)) / "issuer.pem")
    lines = lines_of(folder)
    number = next(number for number, line in enumerate(lines) if b'"kind":"opening"' in line)
    line = lines[number]
    payload = line[line.index(b'{"payload":') + 11 : line.rindex(b',"payload_type"')].replace(b'"work"', b'"lie"')
    put(folder, [*lines[:number], *relinked(lines[number:], seal(payload, stolen))])
    shows(auditor.verify(folder), 1, "head.root")


def relinked(lines: list[bytes], envelope: Envelope) -> list[bytes]:
    """Return lines of which the first, an entry, holds another envelope; the heads are as they were: no log key is at hand."""
    from ledger.digest import digest
    from ledger.entry import Entry, parse_entry, print_entry
    from ledger.envelope import print_envelope
    from ledger.line import parse_entry_line, parse_head_line, print_entry_line, print_head_line

    found, previous, head = [], None, None
    for number, line in enumerate(lines):
        if line.startswith(b'{"head"'):
            note, before = parse_head_line(line)
            found.append(print_head_line(note, head or before))
            head = digest(found[-1])
            continue
        old = parse_entry(parse_entry_line(line)[0])
        printed = print_envelope(envelope) if number == 0 else parse_entry_line(line)[1]
        entry = Entry(
            digest(printed),
            old.index,
            old.keyring,
            previous or old.previous,
            envelope.receipt_id if number == 0 else old.receipt,
            old.recorded_at,
        )
        found.append(print_entry_line(print_entry(entry), printed))
        previous = digest(print_entry(entry))
    return found


@attack("1", "head.forked")
def test_a_second_history_signed_with_the_log_key(folder, owner, auditor, thief, tmp_path, shows):
    backup = copy(folder, tmp_path / "second")
    owner.record(folder)
    assert auditor.trusts(folder).verify(folder).exit == 0
    thief.takes_keys(owner).record(backup, "lie")
    shows(auditor.verify(backup), 1, "head.forked")
    (proof,) = (auditor.places.state / "equivocations").iterdir()
    shows(Person(tmp_path / "other").trusts(folder).verify(proof), 1, "head.forked")


@attack("0", "head.first_seen")
def test_a_second_history_shown_to_somebody_who_remembers_nothing(folder, owner, auditor, thief, tmp_path, shows):
    backup = copy(folder, tmp_path / "second")
    owner.record(folder)
    thief.takes_keys(owner).record(backup, "lie")
    shows(auditor.trusts(folder).verify(backup), 0, "head.first_seen")


@attack("1", "key.chain")
@pytest.mark.parametrize("role", ["issuer", "log"])
def test_a_thief_of_the_keys_in_use_rotates_first(folder, owner, auditor, thief, shows, role):
    auditor.trusts(folder)
    thief.takes_keys(owner)
    refused = thief("-L", folder, "keys", "rotate", f"--{role}")
    assert (refused.exit, "the next" in refused.err) == (2, True)
    # Not with another next key either.
    assert thief("keys", "new", thief.home / "mine.pem").exit == 0
    refused = thief("-L", folder, "keys", "rotate", f"--{role}", "--next", thief.home / "mine.pem")
    assert (refused.exit, "committed" in refused.err) == (2, True)
    # Nor by hand: the receipt does not follow from what was committed.
    mine, data = read_key(thief.home / "mine.pem"), journal(folder).read_bytes()
    with thief.open(folder) as ledger:
        stolen = ledger._secret()
        forged = Key(
            ledger=ledger.origin,
            issuer=Issuer(name=ledger.header.issuer.name, key=mine.key),
            issued_at=now(),
            nonce=nonce(),
            producer=PRODUCER,
            action="rotate",
            role=role,
            key=mine.key,
            retired=getattr(stolen, role).key,
            next=NextKeys(),
        )
        size = ledger.head().size
    log = (stolen.log, mine) if role == "log" else (stolen.log,)
    journal(folder).write_bytes(data + forged_commit(folder, seal(print_receipt(forged), mine), size, log))
    drop_derived(folder)
    shows(auditor.verify(folder), 1, "key.chain")


def forged_commit(folder: Path, envelope: Envelope, index: int, log: tuple[PrivateKey, ...]) -> bytes:
    """Return the lines of a commit of one receipt after the end of a ledger, right in everything but what the receipt says."""
    from ledger.digest import digest
    from ledger.entry import Entry, print_entry
    from ledger.envelope import print_envelope
    from ledger.line import parse_entry_line, print_entry_line, print_head_line
    from ledger.merkle import Frontier, leaf_hash

    entries = [parse_entry_line(line)[0] for line in lines_of(folder) if line.startswith(b'{"entry"')]
    printed = print_envelope(envelope)
    entry = print_entry(Entry(digest(printed), index, 0, digest(entries[-1]), envelope.receipt_id, now()))
    frontier = Frontier()
    for each in (*entries, entry):
        frontier.append(leaf_hash(each))
    note = sign_head(Head(origin_of(folder), index + 1, frontier.root()), *log)
    line = print_head_line(note, digest(lines_of(folder)[-1]))
    return print_entry_line(entry, printed) + b"\n" + line + b"\n"


@attack("0 1", "head.forked")
def test_a_thief_of_the_next_keys_too_rotates_first(folder, owner, auditor, thief, tmp_path, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    mine = copy(folder, tmp_path / "mine")
    thief.takes_keys(owner, next_too=True)
    assert thief("-L", folder, "keys", "rotate").exit == 0
    thief.record(folder, "lie")
    # He is the owner now, for everybody, and the owner is told when he appends.
    shows(auditor.verify(folder), 0)
    refused = owner("-L", folder, "append", empty(folder))
    assert (refused.exit, "somebody else holds the next keys" in refused.err) == (2, True)
    # An owner who rotates in a copy of his own makes a second history: who saw the first one has the proof of both.
    assert owner("-L", mine, "keys", "rotate").exit == 0
    for _ in range(3):
        owner.record(mine)
    done = shows(auditor.verify(mine), 1, "head.forked")
    assert "proof of equivocation" in done.out


@attack("1", "chain.keyring")
def test_a_revocation_hidden_from_what_follows_it(auditor, tmp_path, shows):
    made, new = builder(), Party("issuer", key("next"))
    made.header(next={"issuer": next_digest(new.key)})
    old = made.issuer
    made.commit()
    made.key(new, old.key, action="revoke", from_index=1)
    made.grant(issuer=old, entry={"keyring": 0})
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 1, "chain.keyring")
    # In a bundle from which the revocation is left out, the entry names it.
    honest = builder()
    honest.header(next={"issuer": next_digest(new.key)})
    old = honest.issuer
    honest.commit()
    honest.key(new, old.key, action="revoke", from_index=1)
    lie = honest.grant(issuer=old)
    honest.commit()
    whole = honest.bundle(lie)
    (tmp_path / "bundle.json").write_bytes(print_bundle(replace(whole, keyring=whole.keyring[:1])))
    path = laid(honest, tmp_path / "honest")
    shows(Person(tmp_path / "other").trusts(path).verify(tmp_path / "bundle.json"), 1, "chain.keyring")


@attack("1", "chain.keyring")
def test_a_revocation_that_comes_later_left_out_of_a_bundle(auditor, tmp_path, shows):
    made, new = builder(), Party("issuer", key("next"))
    made.header(next={"issuer": next_digest(new.key)})
    old = made.issuer
    lie = made.grant()
    made.key(new, old.key, action="revoke", from_index=1)
    made.grant()
    made.commit()
    path = laid(made, tmp_path / "made")
    whole = made.bundle(lie)
    (tmp_path / "whole.json").write_bytes(print_bundle(whole))
    (tmp_path / "cut.json").write_bytes(print_bundle(replace(whole, keyring=whole.keyring[:1])))
    auditor.trusts(path)
    assert auditor.verify(tmp_path / "whole.json").exit == 4
    shows(auditor.verify(tmp_path / "cut.json"), 1, "chain.keyring")


@attack("4", "key.retired")
def test_a_receipt_sealed_with_a_retired_issuer_key(folder, owner, auditor, thief, tmp_path, shows):
    made, new = builder(), Party("issuer", key("next"))
    made.header(next={"issuer": next_digest(new.key)})
    old = made.issuer
    made.commit()
    made.key(new, old.key)
    made.grant(issuer=old)
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 4, "key.retired")
    # Our own software appends no such receipt: the thief has the keys in use before the rotation.
    thief.takes_keys(owner)
    with owner.open(folder) as ledger:
        rotate(ledger, "issuer")
    refused = thief("-L", folder, "append", empty(folder))
    assert (refused.exit, "was not put in force from" in refused.err) == (2, True)


@attack("1", "head.unsigned")
def test_a_head_signed_with_a_retired_log_key(auditor, tmp_path, shows):
    made, new = builder(), Party("issuer", key("next"))
    made.header(next={"log": next_digest(new.key)})
    made.commit()
    old = made.log
    made.key(new, old.key, role="log")
    made.commit(also=(old,))
    made.grant()
    made.commit(key=old)
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 1, "head.unsigned")


@attack("1 3 4", "head.unsigned trust.log_key_unpinned trust.header_mismatch")
def test_a_forged_header_names_the_pinned_log_key_and_rotates_away_from_it(folder, auditor, tmp_path, shows):
    """He has no key at all: the header is his, and so is the next log key that it commits."""
    lines = lines_of(folder)
    log_key = re.search(rb'"log_key":"(ed25519:[0-9a-f]{64})"', lines[0])[1].decode()
    made, new = builder(origin=origin_of(folder)), Party("issuer", key("next"))
    made.header(log_key=log_key, next={"log": next_digest(new.key)})
    made.key(new, log_key, role="log")
    lie = made.grant()
    made.commit(key=new.private)
    forged = laid(made, tmp_path / "forged")
    (tmp_path / "bundle.json").write_bytes(print_bundle(made.bundle(lie)))
    shows(auditor.trusts(folder).verify(forged), 1, "head.unsigned")
    shows(auditor.verify(tmp_path / "bundle.json"), 4, "trust.header_mismatch")
    # Who pinned the log key alone does not follow a header that nobody vouches for.
    other = Person(tmp_path / "other")
    assert other("trust", "add", origin_of(folder), "--role", "origin", "--key", log_key).exit == 0
    shows(other.verify(tmp_path / "bundle.json"), 3, "trust.log_key_unpinned")


@attack("0 1", "head.forked")
def test_the_whole_machine_of_the_owner_rewrites_what_nobody_saw(folder, owner, auditor, thief, tmp_path, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    seen = copy(folder, tmp_path / "seen")
    owner.record(folder, "truth")
    witness = Person(tmp_path / "witness").trusts(folder)
    assert witness.verify(folder).exit == 0
    copy(seen, folder)
    thief.takes_keys(owner, next_too=True).record(folder, "lie")
    shows(auditor.verify(folder), 0)
    shows(witness.verify(folder), 1, "head.forked")


def spends(path: Path, cost: int, **keys) -> Path:
    """Lay a ledger of one run under a limit of 100, whose two acts cost 50 and something, all of it properly sealed."""
    made = builder(**keys)
    made.header()
    made.opening(limits=[{"meter": "usd_micro", "limit": 100}])
    for amount in (50, cost):
        intent = made.intent(reserved=[{"meter": "usd_micro", "reserved": amount, "basis": "quoted"}])
        made.outcome(intent, charges=[{"meter": "usd_micro", "settled": amount, "basis": "measured"}])
    made.run()
    made.commit()
    return laid(made, path)


@attack("6", "budget.overspent")
def test_a_recorder_that_lets_an_act_pass_a_limit_and_records_it_truly(auditor, tmp_path, shows):
    path = spends(tmp_path / "made", 51)
    shows(auditor.trusts(path).verify(path), 6, "budget.overspent")


@attack("6", "act.digest")
def test_an_act_recorded_under_the_digest_of_another_that_was_approved(auditor, tmp_path, shows):
    approver = Party("ann", key("ann"))
    tool = {"name": "shell", "version": "5", "digest": "unknown"}
    asked = {"name": "deploy", "tool": tool, "access": "write", "resource": "host/1", "environment": "test"}
    for name, ran in (("same", b"one host"), ("another", b"every host")):
        made = builder()
        made.header()
        run = made.opening()
        act = {**asked, "arguments_digest": digest(b"one host")}
        request = made.decision(status="waiting", reason="approval.required", roles=["release"], needed=1, act=act)
        named = made.act_digest(act)
        given = made.approval(issuer=approver, request=request, run=run, act_digest=named)
        made.outcome(made.intent(act={**act, "arguments_digest": digest(ran)}, act_digest=named, approvals=[given]))
        made.run()
        made.commit()
        path = laid(made, tmp_path / name)
        person = (Person(tmp_path / "first") if name == "same" else auditor).trusts(path)
        pin = person("trust", "add", "ann", "--key", approver.key, "--role", "approver", "--as", "release")
        assert pin.exit == 0, pin.err
        if name == "same":
            assert person.verify(path).exit == 0
        else:
            shows(person.verify(path), 6, "act.digest")


@attack("6", "hold.erased")
@pytest.mark.parametrize("what", ["artifact", "run"])
def test_an_erasure_in_spite_of_a_hold(auditor, tmp_path, shows, what):
    made = builder()
    made.header()
    run = made.opening()
    outcome = made.outcome(made.intent())
    made.run()
    placed = {"digest": digest(b"stored")} if what == "artifact" else {"held_run": run}
    made.add("hold", action="placed", **placed)
    made.commit()
    path = laid(made, tmp_path / "held")
    assert auditor.trusts(path).verify(path).exit == 0
    made.erasure(digest(b"stored"), outcome)
    made.commit()
    shutil.rmtree(path)
    shows(auditor.verify(laid(made, path)), 6, "hold.erased")


@attack("0 1", "head.forked")
def test_a_history_that_broke_a_rule_rewritten_into_one_that_kept_it(auditor, tmp_path, shows):
    keys = {"issuer": Party("issuer", key("issuer")), "log": key("log")}
    broken, kept = spends(tmp_path / "broken", 51, **keys), spends(tmp_path / "kept", 50, **keys)
    witness = Person(tmp_path / "witness").trusts(broken)
    assert witness.verify(broken).exit == 6
    shows(auditor.trusts(kept).verify(kept), 0)
    shows(witness.verify(kept), 1, "head.forked")


# The verifier's own side.


@attack("0 3", "head.first_seen head.unseen")
def test_memory_deleted(folder, auditor, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    auditor.forget()
    shows(auditor.verify("--require", "memory", folder), 3, "head.unseen")
    auditor.forget()
    shows(auditor.verify(folder), 0, "head.first_seen")


@attack("3", "head.unreconciled")
def test_memory_garbled(folder, auditor, thief, tmp_path, shows):
    assert auditor.trusts(folder).verify(folder).exit == 0
    memory = auditor.places.memory_file(origin_of(folder))
    for data in (b"nothing", sign_head(Head(origin_of(folder), 9, bytes(32)), key("other"))):
        memory.write_bytes(data)
        shows(auditor.verify(folder), 3, "head.unreconciled")
        assert memory.read_bytes() == data


@attack("3 4", "trust.log_key_unpinned trust.log_key_mismatch")
def test_memory_poisoned_by_a_key_that_is_not_pinned(folder, auditor, thief, tmp_path, shows):
    auditor.trusts(folder)
    assert thief("init", tmp_path / "mine").exit == 0
    shows(auditor.verify(tmp_path / "mine"), 3, "trust.log_key_unpinned")
    assert auditor.memory(origin_of(tmp_path / "mine")) is None
    far = sign_head(Head(origin_of(folder), 1_000_000, bytes(32)), key("thief"))
    (tmp_path / "far").write_bytes(far)
    shows(auditor.verify(tmp_path / "far"), 4, "trust.log_key_mismatch")
    assert auditor.memory(origin_of(folder)) is None
    assert auditor.verify(folder).exit == 0


@attack("1 3", "head.shorter head.unreconciled")
def test_memory_poisoned_by_the_log_key_with_a_head_far_ahead(folder, owner, auditor, tmp_path, shows):
    stolen = read_key(owner.places.key_folder(origin_of(folder)) / "log.pem")
    (tmp_path / "far").write_bytes(sign_head(Head(origin_of(folder), 1_000_000, bytes(32)), stolen))
    # Who remembers a true head does not take a head that nothing joins to it.
    assert auditor.trusts(folder).verify(folder).exit == 0
    known = auditor.memory(origin_of(folder))
    shows(auditor.verify(tmp_path / "far"), 3, "head.unreconciled")
    assert auditor.memory(origin_of(folder)) == known
    assert auditor.verify(folder).exit == 0
    # Who remembers nothing does, and refuses every true head from then on.
    other = Person(tmp_path / "other").trusts(folder)
    assert other.verify(tmp_path / "far").exit == 0
    shows(other.verify(folder), 1, "head.shorter")
    # A head that is only given is not remembered.
    third = Person(tmp_path / "third").trusts(folder)
    shows(third.verify(folder, "--head", tmp_path / "far"), 1, "head.shorter")
    assert third.verify(folder).exit == 0


@pytest.fixture
def equivocation(folder, owner, thief, tmp_path):
    """A proof of two histories of the ledger, of different sizes."""
    second = copy(folder, tmp_path / "second")
    owner.record(folder)
    thief.takes_keys(owner).record(second, "lie")
    thief.record(second, "lie")
    witness = Person(tmp_path / "witness").trusts(folder)
    assert witness.verify(folder).exit == 0
    assert witness.verify(second, "--equivocation", tmp_path / "proof.json").exit == 1
    return parse_equivocation((tmp_path / "proof.json").read_bytes())


def saved(tmp_path: Path, found: Equivocation) -> Path:
    path = tmp_path / "changed.json"
    path.write_bytes(print_equivocation(found))
    return path


@attack("1 3", "head.unreconciled proof.consistency")
def test_a_false_accusation_by_a_path_that_is_left_out_or_garbled(folder, auditor, equivocation, tmp_path, shows):
    whole = equivocation
    auditor.trusts(folder)
    assert auditor.verify(saved(tmp_path, whole)).codes == {"head.forked"}
    bare = Equivocation(whole.older, whole.newer, (), whole.keyring)
    shows(auditor.verify(saved(tmp_path, bare)), 3, "head.unreconciled")
    for path in (whole.path[1:], (bytes(32), *whole.path[1:]), (*whole.path, bytes(32)), whole.path[::-1]):
        done = shows(auditor.verify(saved(tmp_path, Equivocation(whole.older, whole.newer, path, whole.keyring))), 1)
        assert done.codes == {"proof.consistency"}
    # Two heads of one history are no fork either, whatever joins them.
    same = Equivocation(whole.newer, whole.newer, (), whole.keyring)
    assert shows(auditor.verify(saved(tmp_path, same)), 1).codes == {"proof.consistency"}


@attack("3", "head.unreconciled")
def test_a_false_accusation_with_a_note_of_a_key_of_his_own(folder, auditor, equivocation, tmp_path, shows):
    auditor.trusts(folder)
    older = sign_head(head_of(equivocation.older), key("thief"))
    false = Equivocation(older, equivocation.newer, equivocation.path, equivocation.keyring)
    shows(auditor.verify(saved(tmp_path, false)), 3, "head.unreconciled")


@attack("3", "trust.log_key_unpinned")
def test_an_accusation_of_an_origin_that_nobody_pinned(auditor, equivocation, tmp_path, shows):
    done = shows(auditor.verify(saved(tmp_path, equivocation)), 3, "trust.log_key_unpinned")
    assert "head.forked" not in done.codes


@attack("4", "key.revoked")
def test_an_accusation_by_a_log_key_that_was_revoked(auditor, tmp_path, shows):
    made, new = builder(), Party("issuer", key("next"))
    made.header(next={"log": next_digest(new.key)})
    made.commit()
    old = made.log
    made.grant()
    made.commit()
    made.key(new, old.key, role="log", action="revoke", from_index=2)
    made.commit(also=(old,))
    path = laid(made, tmp_path / "made")
    auditor.trusts(path)
    # The thief signs a head of the size at which the key was believed no longer.
    false = sign_head(Head(made.origin, 3, bytes(32)), old)
    file = Equivocation(false, made.notes[-1], (), made.bundle(made.rows[0].id).keyring)
    shows(auditor.verify(saved(tmp_path, file)), 4, "key.revoked")
    # One index before, it was believed, and two histories were signed.
    false = sign_head(Head(made.origin, 2, bytes(32)), old)
    from ledger.merkle import leaf_hash, root_of, tree_of

    read = tree_of([leaf_hash(row.entry) for row in made.rows])
    path_ = (root_of(2, read), leaf_hash(made.rows[2].entry))
    file = Equivocation(false, made.notes[-1], path_, made.bundle(made.rows[0].id).keyring)
    assert auditor.verify(saved(tmp_path, file)).codes == {"head.forked"}


@attack("0")
def test_a_thief_pins_himself(auditor, thief, tmp_path, shows):
    assert thief("init", tmp_path / "mine").exit == 0
    shutil.copytree(thief.home / ".config", auditor.home / ".config")
    shows(auditor.verify(tmp_path / "mine"), 0)


@attack("0")
def test_names_that_play_with_the_terminal(auditor, tmp_path, shows):
    made = builder()
    made.header()
    made.opening(name="safe\u202egnol")
    made.run()
    made.commit()
    path = laid(made, tmp_path / "made")
    shows(auditor.trusts(path).verify(path), 0)
    for command in (("log",), ("show", "latest"), ("tree", "latest"), ("verify",)):
        done = auditor("-L", path, *command)
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", done.out + done.err), command
    assert "\\u202e" in auditor("-L", path, "log").out


# Where a notary remembers.


@pytest.fixture(scope="module")
def notary(tmp_path_factory):
    return Notary.made(tmp_path_factory.mktemp("notary"))


@pytest.fixture(scope="module")
def service(notary):
    running = notary.served()
    yield running
    running.stop()


@pytest.fixture
def cosigned(notary, service, folder, owner, auditor, tmp_path):
    """Have the notary cosign the ledger at two runs, and return a file with the head that it gives to anybody who asks."""
    owner.record(folder)
    assert notary.asked_by(owner, service.url, "-L", folder, "notarize", "--head").exit == 0
    notary.pinned_by(auditor.trusts(folder))
    return what_it_remembers(service, folder, tmp_path / "cosigned")


def what_it_remembers(service, folder, path):
    with service.client() as client:
        got = client.get(f"/{hashlib.sha256(origin_of(folder).encode()).hexdigest()}/checkpoint")
    assert got.status_code == 200
    path.write_bytes(got.content)
    return path


def refused(notary, service, owner, folder):
    """Assert that the notary neither cosigns nor counter-seals what contradicts its memory."""
    receipt = owner.open(folder).reader.at(1).entry.receipt
    for what in (["--head"], [receipt]):
        assert notary.asked_by(owner, service.url, "-L", folder, "notarize", *what).exit in {1, 3}
    assert not list((folder / "notary").glob("heads/*")) or not list((folder / "notary").glob("seals/*"))


@attack("1", "head.shorter")
def test_a_tail_cut_below_a_head_that_a_notary_cosigned(
    notary, service, cosigned, folder, owner, auditor, tmp_path, shows
):
    old = copy(folder, tmp_path / "old")
    shutil.rmtree(old / "notary")
    cut(old, lines=2)
    shows(auditor.verify("--head", cosigned, old), 1, "head.shorter")
    refused(notary, service, owner, old)
    # Nor where the cosigned head itself was left beside it.
    shutil.copytree(folder / "notary", old / "notary", dirs_exist_ok=True)
    shows(auditor.verify(old), 1, "head.shorter")


@attack("1", "head.forked proof.consistency")
def test_a_history_rewritten_that_a_notary_cosigned(notary, service, cosigned, folder, owner, auditor, tmp_path, shows):
    second = copy(folder, tmp_path / "second")
    shutil.rmtree(second / "notary")
    cut(second, lines=6)
    owner.forget()
    for _ in range(3):
        owner.record(second, "another")
    shows(auditor.verify("--head", cosigned, second), 1, "head.forked")
    refused(notary, service, owner, second)
    shutil.copytree(folder / "notary", second / "notary", dirs_exist_ok=True)
    done = auditor.verify(second)
    shows(done, 1, *({"head.forked", "proof.consistency"} & done.codes))


@attack("1 4", "head.forked trust.log_key_mismatch trust.header_mismatch")
def test_all_deleted_and_started_anew_under_the_same_origin(
    notary, service, cosigned, folder, owner, auditor, tmp_path, shows
):
    origin = origin_of(folder)
    log = read_key(owner.places.key_folder(origin) / "log.pem")
    # With new keys.
    fresh = Person(tmp_path / "fresh")
    assert fresh("init", tmp_path / "anew", "--origin", origin).exit == 0
    fresh.record(tmp_path / "anew")
    shows(auditor.verify("--head", cosigned, tmp_path / "anew"), 4, "trust.log_key_mismatch")
    assert notary.asked_by(fresh, service.url, "-L", tmp_path / "anew", "notarize").exit == 2
    # With the old log key.
    made = builder(origin=origin, log=log)
    made.header()
    for _ in range(12):
        made.grant()
    made.commit()
    anew = laid(made, tmp_path / "again")
    shows(auditor.verify("--head", cosigned, anew), 4, "trust.header_mismatch")
    other = Person(tmp_path / "other")
    assert other("trust", "add", origin, "--role", "origin", "--key", log.key).exit == 0
    assert other("trust", "add", made.issuer.name, "--key", made.issuer.key).exit == 0
    shows(other.verify("--head", cosigned, anew), 1, "head.forked")
    refused(notary, service, owner, anew)


@attack("0 4", "trust.quorum")
def test_a_rewritten_ledger_shown_to_somebody_who_asks_for_notaries(
    notary, service, cosigned, folder, owner, auditor, tmp_path, shows
):
    shows(auditor.verify("--require", "counter-seal=1", folder), 0)
    auditor.forget()
    second = copy(folder, tmp_path / "second")
    shutil.rmtree(second / "notary")
    cut(second, lines=6)
    owner.forget()
    for _ in range(3):
        owner.record(second, "another")
    shows(auditor.verify("--require", "counter-seal=1", second), 4, "trust.quorum")
    auditor.forget()
    shows(auditor("-L", second, "verify", "--json", "--require", "counter-seal=1", "latest"), 4, "trust.quorum")


@attack("1", "proof.consistency head.forked counterseal.subject")
@pytest.mark.parametrize("parts", ["after", "before"])
def test_a_receipt_shown_inside_a_fork_with_an_old_counter_seal(
    notary, service, folder, owner, auditor, tmp_path, shows, parts
):
    notary.pinned_by(auditor.trusts(folder))
    receipt = owner("-L", folder, "log", "--json").json[0]["receipt"]
    # Its entry also stands in the fork that parts after it; in the one that parts before it, the receipt alone.
    second = copy(folder, tmp_path / "second")
    envelopes = [stored.envelope_bytes for stored in owner.open(folder).entries(1)]
    owner.record(folder)
    assert notary.asked_by(owner, service.url, "-L", folder, "notarize", receipt).exit == 0
    owner.forget()
    if parts == "before":
        put(second, lines_of(second)[:2])
        with owner.open(second) as ledger:
            ledger.append(grant(ledger))
            ledger.append_many(envelopes)
    for _ in range(2):
        owner.record(second, "another")
    shutil.copytree(folder / "notary", second / "notary")
    path = tmp_path / "bundle.json"
    assert owner("-L", second, "prove", receipt, "-o", path).exit == 0
    expected = "counterseal.subject" if parts == "before" else None
    for done in (auditor.verify(path), auditor("-L", second, "verify", "--json", receipt)):
        found = {expected} if expected else done.codes & {"proof.consistency", "head.forked"}
        assert found
        shows(done, 1, *found)
    # With the proof of the true history in its place.
    true = tmp_path / "true.json"
    assert owner("-L", folder, "prove", receipt, "-o", true).exit == 0
    carried = parse_bundle(true.read_bytes()).counter_seals
    path.write_bytes(print_bundle(replace(parse_bundle(path.read_bytes()), counter_seals=carried)))
    done = auditor.verify(path)
    found = {expected} if expected else done.codes & {"proof.consistency", "head.forked"}
    shows(done, 1, *found)


@attack("0 4", "trust.quorum")
def test_counter_seals_removed_from_beside_a_ledger(notary, service, folder, owner, auditor, shows):
    notary.pinned_by(auditor.trusts(folder))
    assert notary.asked_by(owner, service.url, "-L", folder, "notarize").exit == 0
    shows(auditor("-L", folder, "verify", "--json", "--require", "counter-seal=1", "latest"), 0)
    shutil.rmtree(folder / "notary")
    shows(auditor("-L", folder, "verify", "--json", "latest"), 0)
    shows(auditor("-L", folder, "verify", "--json", "--require", "counter-seal=1", "latest"), 4, "trust.quorum")


@attack("4", "trust.notary_mismatch trust.quorum")
def test_a_counter_seal_under_the_name_of_a_notary(notary, service, folder, owner, auditor, tmp_path, shows):
    notary.pinned_by(auditor.trusts(folder))
    done = document(notary, service, folder, owner)
    path, seal = done
    mine = key("mine")
    forged = seal_counter_seal(seal.model_copy(update={"key": mine.key}), mine)
    path.write_bytes(forged)
    shows(auditor("-L", folder, "verify", "--json", "latest"), 4, "trust.notary_mismatch")
    # Under a name that nobody pinned it is noted, and counts for nothing.
    path.write_bytes(seal_counter_seal(seal.model_copy(update={"key": mine.key, "notary": "mine.example"}), mine))
    assert auditor("-L", folder, "verify", "--json", "latest").exit == 0
    shows(auditor("-L", folder, "verify", "--json", "--require", "counter-seal=1", "latest"), 4, "trust.quorum")


@attack("1", "counterseal.subject counterseal.signature counterseal.malformed")
def test_a_counter_seal_moved_to_another_receipt_or_altered(notary, service, folder, owner, auditor, tmp_path, shows):
    notary.pinned_by(auditor.trusts(folder))
    path, seal = document(notary, service, folder, owner)
    good = path.read_bytes()
    other = owner("-L", folder, "log", "--json").json[0]["run"]
    path.with_name(other[7:] + path.name[64:]).write_bytes(good)
    assert owner("-L", folder, "prove", "latest", "-o", tmp_path / "bundle.json").exit == 0
    carried = parse_bundle((tmp_path / "bundle.json").read_bytes())
    moved = replace(
        carried,
        counter_seals=(
            replace(carried.counter_seals[0], document=good.replace(b'"entry_index":4', b'"entry_index":3')),
        ),
    )
    (tmp_path / "moved.json").write_bytes(print_bundle(moved))
    shows(auditor.verify(tmp_path / "moved.json"), 1, "counterseal.signature")
    owner.record(folder)
    assert owner("-L", folder, "prove", "latest", "-o", tmp_path / "second.json").exit == 0
    second = parse_bundle((tmp_path / "second.json").read_bytes())
    (tmp_path / "second.json").write_bytes(print_bundle(replace(second, counter_seals=carried.counter_seals)))
    shows(auditor.verify(tmp_path / "second.json"), 1, "counterseal.subject")
    path.write_bytes(good.replace(b'"mode":"digest_only"', b'"mode":"digest-only"'))
    shows(auditor("-L", folder, "verify", "--json", seal.receipt), 1, "counterseal.malformed")


def document(notary, service, folder, owner):
    """Have the latest run counter-sealed; return the file of the sealed document, and what it says."""
    done = notary.asked_by(owner, service.url, "--json", "-L", folder, "notarize")
    assert done.exit == 0, done.err
    path = Path(done.json["results"][0]["file"])
    return path, open_counter_seal(path.read_bytes())[0]


@attack("4", "trust.quorum")
def test_one_notary_of_two_that_lies_or_was_bought(notary, service, folder, owner, auditor, tmp_path, shows):
    other = Notary.made(tmp_path / "second", "second.example.org")
    other.pinned_by(notary.pinned_by(auditor.trusts(folder)))
    trust = auditor.places.trust_file
    trust.write_bytes(b"quorum = 2\n" + trust.read_bytes())
    assert notary.asked_by(owner, service.url, "-L", folder, "notarize").exit == 0
    assert notary.asked_by(owner, service.url, "-L", folder, "notarize", "--head").exit == 0
    shows(auditor("-L", folder, "verify", "--json", "latest"), 4, "trust.quorum")


# The page.


def test_every_row_of_the_page_is_carried_out_here_with_its_codes_and_exits_and_every_attack_is_a_row():
    text = PAGE.read_text(encoding="utf-8").partition("## Out of scope")[0]
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    named = {}
    for holder, what, verdict, exits, executed in rows:
        if holder.strip() == "attacker holds" or set(holder.strip()) <= {"-"}:
            continue
        test = re.fullmatch(r"`tests/e2e/test_threat_model\.py::(test_\w+)`", executed.strip())
        assert test is not None, what
        assert test[1] in ROWS, test[1]
        assert test[1] not in named, f"two rows name {test[1]}"
        codes = {code for code in re.findall(r"`([a-z_]+\.[a-z_]+)`", verdict) if code in CODES}
        named[test[1]] = ({int(each) for each in re.findall(r"[0-6]", exits.partition("(")[0])}, codes)
    assert named == ROWS


def test_headers_of_forged_ledgers_are_what_the_reader_takes_for_headers(tmp_path):
    """The builder's ledgers are real ones to our own reader, so that what is refused is refused for the attack."""
    made = builder()
    made.header()
    made.commit()
    assert isinstance(Person(tmp_path).open(laid(made, tmp_path / "made")).header, Header)
