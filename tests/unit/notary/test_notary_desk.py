"""The desk: one seal for one submission, whatever ends the process between; nothing given out that its ledger does not hold."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from ledger.checkpoint import head_of
from ledger.counterseal import open_counter_seal
from ledger.digest import digest
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope, verify_seal
from ledger.equivocation import parse_equivocation
from ledger.errors import LedgerError, RegisterError
from ledger.notarization import parse_notarization
from ledger.note import check_note, parse_note, parse_vkey
from ledger.receipt import parse_receipt
from ledger.storage.rotation import rotate
from ledger.tlogproof import parse_tlog_proof
from notary.desk import Desk, HeadAsk, MonitorAsk, ReceiptAsk
from notary.errors import NotaryError, RefusedError
from notary.evidence import judge
from notary.folder import create, open_folder
from notary.memory import origin_hash
from notary.rules import read_shown
from tests.reference.ledgers import (
    bytes_of,
    ended,
    fork,
    grant,
    new_ledger,
    open_ledger,
    places_of,
    quick_folder,
    verdict,
)
from tests.reference.submissions import head_request, request
from verify.equivocation import verify_equivocation
from verify.proof import leaf_hash, verify_inclusion
from verify.trust import OriginPin, parse_trust, pin


@pytest.fixture
def tmp_path(tmp_path):
    with quick_folder(tmp_path) as folder:
        yield folder


@pytest.fixture
def folder(tmp_path):
    return create(tmp_path / "notary", name="notary.example", places=places_of(tmp_path / "notary-home"))


@pytest.fixture
def ledger(tmp_path):
    made = new_ledger(tmp_path)
    made.append_many([grant(made) for _ in range(4)])
    return made


def receipts(ledger):
    return [stored.entry.receipt for stored in ledger.entries(1)]


def asks(ledger, receipt, *, admits=True, **options):
    asked = request(ledger, receipt, **options)
    judged = None if asked.bundle is None else judge(asked.bundle)
    found = None if judged is None else (judged.to_json(), judged.exit)
    return ReceiptAsk(asked, read_shown(asked.head.checkpoint, foreign=False), admits, found)


def heads(ledger, **options):
    asked = head_request(ledger, **options)
    shown = read_shown(asked.checkpoint, foreign=False)
    return HeadAsk(shown, asked.old, asked.consistency, asked.log_key, asked.keyring, asked.last, admits=True)


def sealed(outcome):
    assert isinstance(outcome, bytes), outcome
    return parse_notarization(outcome)


def refused(outcome):
    assert isinstance(outcome, RefusedError)
    return outcome.status, outcome.code


def test_a_seal_says_what_was_submitted_and_the_notary_s_ledger_proves_it(folder, ledger):
    desk = Desk(folder)
    wanted = ledger.get(receipts(ledger)[1])
    answer = sealed(desk.process([asks(ledger, wanted.entry.receipt)])[0])
    seal, _ = open_counter_seal(answer.counter_seal)
    head = ledger.head()
    assert (seal.notary, seal.key, seal.origin) == ("notary.example", folder.about.seal_key, ledger.origin)
    assert (seal.receipt, seal.envelope) == (wanted.entry.receipt, digest(wanted.envelope_bytes))
    assert (seal.entry_index, seal.size, seal.root) == (wanted.entry.index, head.size, "sha256:" + head.root.hex())
    assert (seal.mode, seal.verdict) == ("digest_only", "not_checked")
    # From the sealed document to the head of the notary's own ledger, step by step.
    record = parse_envelope(answer.record)
    verify_seal(record)
    told = parse_receipt(record.payload)
    assert (told.kind, told.subject, told.issuer.name) == ("evaluation", seal.receipt, "notary@notary.example")
    assert [(each.name, each.digest, each.salted) for each in told.artifacts] == [
        ("counter-seal", digest(answer.counter_seal), False)
    ]
    proof = parse_tlog_proof(answer.tlog_proof)
    entry = parse_entry(proof.extra)
    assert (entry.receipt, entry.envelope) == (record.receipt_id, digest(answer.record))
    own = head_of(proof.checkpoint)
    verify_inclusion(leaf=leaf_hash(proof.extra), index=proof.index, size=own.size, proof=proof.proof, root=own.root)
    desk.close()
    assert verdict(folder.open_ledger()).exit == 0


def test_one_submission_has_one_seal_in_one_batch_in_the_next_and_after_a_start(folder, ledger):
    desk = Desk(folder)
    one, two, *_ = receipts(ledger)
    first = asks(ledger, one)
    together = [sealed(each) for each in desk.process([first, asks(ledger, two), first])]
    assert together[0] == together[2]
    assert together[0].counter_seal != together[1].counter_seal
    again = sealed(desk.process([first])[0])
    assert (again.counter_seal, again.record) == (together[0].counter_seal, together[0].record)
    size = folder.open_ledger().head().size
    desk.close()
    for lost in ((), ("seals.sqlite",), ("seals.sqlite-wal", "seals.sqlite-shm")):
        for name in lost:
            (folder.path / name).unlink(missing_ok=True)
        desk = Desk(open_folder(folder.path, places=folder.places))
        later = sealed(desk.process([first])[0])
        assert (later.counter_seal, later.record) == (together[0].counter_seal, together[0].record)
        desk.close()
    assert folder.open_ledger().head().size == size == 3


def test_under_a_newer_head_the_first_seal_is_given_again_and_the_head_is_remembered(folder, ledger):
    desk = Desk(folder)
    one = receipts(ledger)[0]
    first = asks(ledger, one)
    before = sealed(desk.process([first])[0])
    old = ledger.head().size
    ledger.append(grant(ledger))
    after = sealed(desk.process([asks(ledger, one, old=old)])[0])
    assert after.counter_seal == before.counter_seal
    assert desk.memory.known(ledger.origin).size == ledger.head().size == old + 1
    # The very submission, whose head is not the newest any more, is still what it was.
    assert sealed(desk.process([first])[0]).counter_seal == before.counter_seal


def test_many_hand_in_receipts_of_one_head_at_once(folder, ledger):
    desk = Desk(folder)
    answers = desk.process([asks(ledger, each) for each in receipts(ledger)])
    assert len({sealed(each).counter_seal for each in answers}) == 4
    answers = desk.process([asks(ledger, each, mode="full") for each in receipts(ledger)])
    assert len({sealed(each).counter_seal for each in answers}) == 4


@pytest.mark.parametrize("index", [False, True], ids=["not indexed", "indexed"])
def test_what_was_recorded_and_not_answered_is_found_again(folder, ledger, index):
    """The process ends between the commit of its ledger and the answer."""
    first = asks(ledger, receipts(ledger)[0])

    def work():
        desk = Desk(folder)
        keep = desk.index.add if index else lambda rows, tail: None
        desk.index.add = lambda rows, tail: (keep(rows, tail), os._exit(7))
        desk.process([first])

    assert ended(fork(work)) == 7
    own = folder.open_ledger()
    assert own.head().size == 2
    desk = Desk(folder)
    answer = sealed(desk.process([first])[0])
    assert own.head().size == 2
    assert parse_tlog_proof(answer.tlog_proof).index == 1
    assert own.artifact(parse_receipt(own.reader.at(1).envelope.payload).artifacts[0]) == answer.counter_seal


def test_what_was_remembered_and_not_recorded_is_sealed_when_it_comes_again(folder, ledger):
    first = asks(ledger, receipts(ledger)[0])

    def work():
        desk = Desk(folder)
        desk._own.record = lambda drafts: os._exit(7)
        desk.process([first])

    assert ended(fork(work)) == 7
    desk = Desk(folder)
    assert desk.memory.known(ledger.origin).size == ledger.head().size
    assert desk.index.count() == 0
    sealed(desk.process([first])[0])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"old": 9}, (400, "witness.old_size")),
        ({"old": 3}, (409, "witness.size")),
        ({"consistency": (b"\1" * 32,)}, (422, "witness.consistency")),
        ({"log_key": "ed25519:" + "ab" * 32}, (403, "witness.signature")),
    ],
)
def test_a_refused_submission_is_not_remembered(folder, ledger, changes, expected):
    desk = Desk(folder)
    asked = asks(ledger, receipts(ledger)[0])
    asked = replace(asked, request=replace(asked.request, head=replace(asked.request.head, **changes)))
    assert refused(desk.process([asked])[0]) == expected
    assert desk.memory.origins() == []
    assert desk.index.count() == 0
    assert folder.open_ledger().head().size == 1


def test_an_origin_is_admitted_by_whoever_may_and_by_its_key(folder, ledger, tmp_path):
    desk = Desk(folder)
    one = receipts(ledger)[0]
    assert refused(desk.process([asks(ledger, one, admits=False)])[0]) == (404, "origin.unknown")
    sealed(desk.process([asks(ledger, one)])[0])
    thief = new_ledger(tmp_path / "thief", origin=ledger.origin)
    thief.append(grant(thief))
    for options in ({}, {"keys": True}):
        other = asks(thief, receipts(thief)[0], **options)
        assert refused(desk.process([other])[0]) == (403, "origin.log_key")
    known = desk.memory.known(ledger.origin)
    assert known.log_key == ledger.header.log_key


def test_an_entry_that_is_not_under_the_head_is_not_sealed(folder, ledger):
    desk = Desk(folder)
    one, two, *_ = receipts(ledger)
    asked = asks(ledger, one)
    other = replace(asked, request=replace(asked.request, entry=asks(ledger, two).request.entry))
    assert refused(desk.process([other])[0]) == (422, "notarize.inclusion")
    wrong = replace(asked, request=replace(asked.request, entry=b"{}"))
    assert refused(desk.process([wrong])[0]) == (400, "entry.malformed")
    full = asks(ledger, one, mode="full")
    swapped = replace(full, request=replace(full.request, bundle=asks(ledger, two, mode="full").request.bundle))
    assert refused(desk.process([swapped])[0]) == (422, "notarize.bundle")
    assert desk.memory.origins() == []


def test_rotations_are_followed_and_a_stranger_s_are_not(folder, ledger):
    desk = Desk(folder)
    one = receipts(ledger)[0]
    sealed(desk.process([asks(ledger, one)])[0])
    old = ledger.head().size
    rotate(ledger, "log")
    ledger.append(grant(ledger))
    newest = receipts(ledger)[-1]
    assert refused(desk.process([asks(ledger, newest, old=old)])[0]) == (403, "origin.log_key")
    sealed(desk.process([asks(ledger, newest, old=old, keys=True)])[0])
    known = desk.memory.known(ledger.origin)
    assert known.log_key != ledger.header.log_key
    assert known.size == ledger.head().size


def test_a_head_is_cosigned_once_and_recorded(folder, ledger):
    desk = Desk(folder)
    line, again = desk.process([heads(ledger), heads(ledger, old=ledger.head().size)])
    assert line == again
    monitored = desk.process([MonitorAsk(origin_hash(ledger.origin))])[0]
    note = parse_note(monitored)
    assert monitored.endswith(line)
    check_note(note, (parse_vkey(folder.about.cosigner_vkey),))
    assert note.text == parse_note(ledger.checkpoint()).text
    own = folder.open_ledger()
    told = parse_receipt(own.reader.at(1).envelope.payload)
    assert (told.kind, told.subject) == ("evaluation", digest(note.text.encode()))
    assert own.artifact(told.artifacts[0]) == monitored
    assert own.head().size == 2
    assert refused(desk.process([MonitorAsk(origin_hash("nobody"))])[0]) == (404, "origin.unknown")
    desk.close()
    assert Desk(folder).process([heads(ledger, old=ledger.head().size)]) == [line]


def test_a_head_seen_with_a_receipt_is_cosigned_for_whoever_monitors(folder, ledger):
    desk = Desk(folder)
    desk.process([asks(ledger, receipts(ledger)[0])])
    note = parse_note(desk.process([MonitorAsk(origin_hash(ledger.origin))])[0])
    assert len(note.signatures) == 2


def rewritten(ledger, tmp_path, keep):
    """Return a ledger of the same keys that goes on from an early copy of this one: what its owner could forge."""
    copy = tmp_path / "forged"
    shutil.copytree(tmp_path / "early", copy)
    (copy / "home/state/heads").mkdir(parents=True, exist_ok=True)
    for each in (copy / "home/state/heads").iterdir():
        each.unlink()
    forged = open_ledger(copy)
    forged.append_many([grant(forged) for _ in range(keep)])
    return forged


@pytest.fixture
def forked(tmp_path):
    """Return a ledger of 6 entries and one of the same origin and keys that goes another way after 3."""
    ledger = new_ledger(tmp_path / "true")
    ledger.append_many([grant(ledger) for _ in range(2)])
    ledger.close()
    shutil.copytree(tmp_path / "true", tmp_path / "early")
    ledger.append_many([grant(ledger) for _ in range(3)])
    return ledger, lambda count: rewritten(ledger, tmp_path, count)


def test_two_heads_of_one_size_are_a_proof_where_the_keys_come_along(folder, forked):
    ledger, forge = forked
    desk = Desk(folder)
    sealed(desk.process([asks(ledger, receipts(ledger)[0])])[0])
    forged = forge(3)
    size = ledger.head().size
    one = receipts(forged)[0]
    assert refused(desk.process([asks(forged, one, old=size)])[0]) == (422, "witness.consistency")
    assert desk.memory.equivocation(origin_hash(ledger.origin)) is None
    assert refused(desk.process([asks(forged, one, old=size, keys=True)])[0]) == (422, "witness.consistency")
    document = desk.memory.equivocation(origin_hash(ledger.origin))
    assert parse_equivocation(document).path == ()
    judged = verify_equivocation(document, trust=pinned(ledger), subject="test")
    assert judged.exit == 1
    assert "head.forked" in {each.code for each in judged.findings}
    assert desk.memory.known(ledger.origin).root == ledger.head().root


def test_a_larger_head_that_goes_another_way_is_a_proof_by_its_own_path(folder, forked):
    ledger, forge = forked
    desk = Desk(folder)
    sealed(desk.process([asks(ledger, receipts(ledger)[0])])[0])
    forged = forge(5)
    size = ledger.head().size
    assert size == 6
    assert refused(desk.process([asks(forged, receipts(forged)[0], old=size, keys=True)])[0])[0] == 422
    document = desk.memory.equivocation(origin_hash(ledger.origin))
    judged = verify_equivocation(document, trust=pinned(ledger), subject="test")
    assert judged.exit == 1
    assert "head.forked" in {each.code for each in judged.findings}


def test_a_proof_that_only_fails_accuses_nobody(folder, forked):
    ledger, _ = forked
    desk = Desk(folder)
    sealed(desk.process([asks(ledger, receipts(ledger)[0])])[0])
    old = ledger.head().size
    ledger.append_many([grant(ledger) for _ in range(3)])
    asked = asks(ledger, receipts(ledger)[0], old=old, keys=True)
    proof = asked.request.head.consistency
    for lines in ((), proof[:-1], (bytes([proof[0][0] ^ 1]) + proof[0][1:], *proof[1:]), proof[::-1]):
        wrong = replace(asked, request=replace(asked.request, head=replace(asked.request.head, consistency=lines)))
        assert refused(desk.process([wrong])[0]) == (422, "witness.consistency")
    assert desk.memory.equivocation(origin_hash(ledger.origin)) is None
    sealed(desk.process([asked])[0])


def pinned(ledger):
    header = ledger.reader.at(0).entry.receipt
    data = pin(b"", origin=OriginPin(name=ledger.origin, log_key=ledger.header.log_key, header=header))
    return parse_trust(data, source="test")


def test_a_ledger_that_was_cut_is_told_the_size_that_is_remembered(folder, forked):
    ledger, forge = forked
    desk = Desk(folder)
    sealed(desk.process([asks(ledger, receipts(ledger)[0])])[0])
    cut = forge(1)
    outcome = desk.process([asks(cut, receipts(cut)[-1], old=3)])[0]
    assert refused(outcome) == (409, "witness.size")
    assert outcome.size == 6


def test_evidence_that_is_sent_is_judged_and_the_verdict_sealed(folder, tmp_path):
    ledger = new_ledger(tmp_path)
    run = ledger.run("work", actor="bot")
    with run.call("pay", access="write") as call:
        call.result = "done"
    closed = run.close().receipt
    desk = Desk(folder)
    answer = sealed(desk.process([asks(ledger, closed, mode="full")])[0])
    seal, _ = open_counter_seal(answer.counter_seal)
    assert (seal.mode, seal.verdict.exit, seal.verdict.digest) == ("full", 0, digest(answer.verdict))
    opened = ledger.run("still open", actor="bot")
    size = ledger.head().size
    outcome = desk.process([asks(ledger, opened.id, mode="full", old=size - 1)])[0]
    seal, _ = open_counter_seal(sealed(outcome).counter_seal)
    assert seal.verdict.exit == 3
    told = parse_receipt(parse_envelope(sealed(outcome).record).payload)
    assert told.verdict == "inconclusive"
    desk.close()
    assert verdict(folder.open_ledger()).exit == 0


def test_evidence_with_a_changed_byte_is_sealed_as_what_it_is(folder, tmp_path):
    ledger = new_ledger(tmp_path)
    run = ledger.run("work", actor="bot")
    with run.call("pay", access="write") as call:
        call.result = "done"
    asked = request(ledger, run.close().receipt, mode="full")
    item = asked.bundle.items[1]
    other = replace(item, envelope=item.envelope.replace(b'"name":"pay"', b'"name":"buy"'))
    assert other != item
    bundle = replace(asked.bundle, items=(asked.bundle.items[0], other, *asked.bundle.items[2:]))
    judged = judge(bundle)
    assert judged.exit == 1
    ask = ReceiptAsk(
        replace(asked, bundle=bundle),
        read_shown(asked.head.checkpoint, foreign=False),
        admits=True,
        verdict=(judged.to_json(), judged.exit),
    )
    desk = Desk(folder)
    answer = sealed(desk.process([ask])[0])
    assert open_counter_seal(answer.counter_seal)[0].verdict.exit == 1
    assert parse_receipt(parse_envelope(answer.record).payload).verdict == "not_met"


def test_an_old_copy_of_its_memory_is_refused(folder, ledger, tmp_path):
    desk = Desk(folder)
    desk.process([asks(ledger, receipts(ledger)[0])])
    desk.close()
    shutil.copytree(folder.path, tmp_path / "old")
    old = ledger.head().size
    ledger.append(grant(ledger))
    desk = Desk(folder)
    sealed(desk.process([asks(ledger, receipts(ledger)[-1], old=old)])[0])
    desk.close()
    shutil.copy(tmp_path / "old/memory.sqlite", folder.path / "memory.sqlite")
    for index in ("kept", "lost"):
        if index == "lost":
            (folder.path / "seals.sqlite").unlink()
        with pytest.raises(NotaryError) as raised:
            Desk(folder)
        assert raised.value.code == "notary.memory_old"
    (folder.path / "memory.sqlite").unlink()
    with pytest.raises(NotaryError) as raised:
        Desk(folder)
    assert raised.value.code == "notary.memory"


def test_an_old_copy_of_its_ledger_is_refused(folder, ledger, tmp_path):
    shutil.copytree(folder.ledger_folder, tmp_path / "old")
    desk = Desk(folder)
    desk.process([asks(ledger, receipts(ledger)[0])])
    desk.close()
    shutil.rmtree(folder.ledger_folder)
    shutil.copytree(tmp_path / "old", folder.ledger_folder)
    with pytest.raises(RegisterError):
        Desk(folder)


def test_keys_that_are_not_its_own_are_refused(folder):
    keys = folder.places.key_folder(folder.about.origin)
    shutil.copy(keys / "cosigner.pem", keys / "seal.pem")
    with pytest.raises(NotaryError) as raised:
        Desk(folder)
    assert raised.value.code == "notary.keys"
    (keys / "seal.pem").unlink()
    with pytest.raises(LedgerError) as raised:
        Desk(folder)
    assert raised.value.code == "keyfile.absent"


def test_a_disk_that_refuses_gives_nothing_out_and_the_desk_goes_on(folder, ledger):
    desk = Desk(folder)
    first = asks(ledger, receipts(ledger)[0])
    sealed(desk.process([first])[0])
    before = bytes_of(folder.ledger_folder)
    (folder.ledger_folder / "damaged").touch()
    second = asks(ledger, receipts(ledger)[1])
    with pytest.raises(LedgerError):
        desk.process([second])
    assert bytes_of(folder.ledger_folder) == before
    (folder.ledger_folder / "damaged").unlink()
    sealed(desk.process([second])[0])
    desk.index._connection.execute("PRAGMA query_only = ON")
    third = asks(ledger, receipts(ledger)[2])
    answer = sealed(desk.process([third])[0])
    desk.index._connection.execute("PRAGMA query_only = OFF")
    assert sealed(desk.process([third])[0]).counter_seal == answer.counter_seal
    assert desk.index.count() == 3
