"""Erasing artifacts and holding them: what the receipts say, what goes, what stays, and what is refused."""

from __future__ import annotations

import hashlib
import hmac
import os
import signal

import pytest

from ledger.errors import LedgerError, NotFoundError, StorageError
from ledger.receipt import Erasure, Opening, parse_receipt
from ledger.storage import erasing
from ledger.storage.erasure import erase, erasures_of, holds, place_hold, plan_erasure, release_hold
from ledger.words import Reason
from tests.reference.ledgers import bytes_of, ended, fork, new_ledger, open_ledger, opening, quick_folder, verdict

SECRET = "a secret that has to go"


@pytest.fixture
def tmp_path(tmp_path):
    with quick_folder(tmp_path) as folder:
        yield folder


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def recorded(ledger, *, result=SECRET, name="work"):
    """Return the run id of a closed run of one call, and the artifact of its result."""
    with ledger.run(name) as run:
        with run.call("act", arguments={"to": "host"}) as call:
            kept = call.artifact(result, name="result")
        id_ = run.id
    return id_, kept


def salt_of(ledger, run):
    receipt = parse_receipt(ledger.get(run).envelope.payload)
    assert isinstance(receipt, Opening)
    return receipt.artifacts[0].digest


def on_disk(ledger, text):
    """Return the files of a ledger's folder that hold a text."""
    needle = text.encode() if isinstance(text, str) else text
    return [path for path in sorted(ledger.folder.rglob("*")) if path.is_file() and needle in path.read_bytes()]


def refused(code, call, error=LedgerError):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def receipts(ledger, kind):
    found = [(stored, parse_receipt(stored.envelope.payload)) for stored in ledger.entries()]
    return [(stored, receipt) for stored, receipt in found if receipt.kind == kind]


@pytest.mark.parametrize("size", [0, 300_000, 2_000_000])
def test_the_bytes_are_gone_from_the_folder_and_a_receipt_says_by_whom_and_why(tmp_path, size):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger, result=SECRET * (1 + size // len(SECRET)))
    _, other = recorded(ledger, result="stays")
    assert on_disk(ledger, SECRET)
    (said, _) = erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET)
    assert on_disk(ledger, SECRET) == []
    refused("artifact.absent", lambda: ledger.artifact(kept), NotFoundError)
    assert ledger.artifact(other) == b"stays"
    receipt = parse_receipt(ledger.get(said.receipt).envelope.payload)
    (outcome, *_) = [stored for stored, each in receipts(ledger, "outcome") if kept in each.artifacts]
    assert isinstance(receipt, Erasure)
    assert (receipt.digest, receipt.reason) == (kept.digest, "erasure.secret")
    assert receipt.receipts == (outcome.entry.receipt,)
    assert ledger.get(said.receipt).envelope.seal.key == ledger.issuer.key
    assert verdict(ledger).exit == 0


def test_the_salt_of_a_closed_run_goes_with_it_so_that_no_guess_can_be_confirmed(tmp_path):
    ledger = new_ledger(tmp_path)
    run, kept = recorded(ledger)
    salt = ledger.artifacts.get(salt_of(ledger, run))
    guess = hmac.digest(salt, hashlib.sha256(SECRET.encode()).digest(), "sha256") + SECRET.encode()
    assert digest_of(guess) == kept.digest
    erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_REQUEST)
    assert on_disk(ledger, salt) == []
    said = erasures_of(ledger.folder)
    assert set(said) == {kept.digest, salt_of(ledger, run)}
    assert said[salt_of(ledger, run)][1].receipts == (run,)


def test_the_salt_of_an_open_run_stays_and_goes_when_the_artifact_is_erased_again(tmp_path):
    ledger = new_ledger(tmp_path)
    with ledger.run("work") as run:
        with run.call("act") as call:
            kept = call.artifact(SECRET, name="result")
        plan = plan_erasure(ledger, kept.digest)
        assert (plan.salts, plan.open_runs) == ((), (run.id,))
        assert len(erase(ledger, plan, reason=Reason.ERASURE_SECRET)) == 1
        assert on_disk(ledger, SECRET) == []
        with run.call("more", arguments={"it": "goes on"}):
            pass
    plan = plan_erasure(ledger, kept.digest)
    assert plan.settled
    assert len(erase(ledger, plan, reason=Reason.ERASURE_SECRET)) == 1
    assert set(erasures_of(ledger.folder)) == {kept.digest, salt_of(ledger, run.id)}
    assert not ledger.artifacts.exists(salt_of(ledger, run.id))
    assert erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET) == []


def test_the_salt_of_an_open_run_itself_is_refused_and_that_of_a_closed_one_is_not(tmp_path):
    ledger = new_ledger(tmp_path)
    with ledger.run("work") as run:
        salt = salt_of(ledger, run.id)
        plan = plan_erasure(ledger, salt)
        refused("erasure.run_open", lambda: erase(ledger, plan, reason=Reason.ERASURE_LEGAL))
        assert ledger.artifacts.exists(salt)
    assert len(erase(ledger, plan_erasure(ledger, salt), reason=Reason.ERASURE_LEGAL)) == 1
    assert not ledger.artifacts.exists(salt)


def test_every_receipt_that_refers_to_the_same_bytes_is_named(tmp_path):
    ledger = new_ledger(tmp_path)
    large = "x" * 1_100_000  # not salted, so equal bytes of two runs are one artifact
    first, kept = recorded(ledger, result=large)
    second, again = recorded(ledger, result=large)
    assert kept.digest == again.digest
    plan = plan_erasure(ledger, kept.digest)
    assert [(each.kind, each.name, each.run) for each in plan.references] == [
        ("outcome", "result", first), ("outcome", "result", second)
    ]  # fmt: skip
    (said, *salts) = erase(ledger, plan, reason=Reason.ERASURE_RETENTION)
    assert parse_receipt(ledger.get(said.receipt).envelope.payload).receipts == tuple(
        each.receipt for each in plan.references
    )
    assert len(salts) == 2


def test_arguments_that_stand_inline_in_a_receipt_are_said_to_stay(tmp_path):
    ledger = new_ledger(tmp_path)
    with ledger.run("work") as run, run.call("act", arguments={"to": "host", "note": "n"}, inline=("to",)):
        pass
    (intent,) = [receipt for _, receipt in receipts(ledger, "intent")]
    plan = plan_erasure(ledger, intent.act.arguments_digest)
    assert [(each.kind, each.name, each.inline) for each in plan.references] == [("intent", "arguments", True)]
    erase(ledger, plan, reason=Reason.ERASURE_REQUEST)
    assert on_disk(ledger, '"note":"n"') == []
    assert len(on_disk(ledger, '"to":"host"')) == 1


def test_what_is_missing_is_not_said_to_be_erased(tmp_path):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger)
    ledger.artifacts.erase(kept.digest)
    plan = plan_erasure(ledger, kept.digest)
    before = bytes_of(ledger.folder)
    refused("artifact.absent", lambda: erase(ledger, plan, reason=Reason.ERASURE_REQUEST), NotFoundError)
    refused("artifact.absent", lambda: plan_erasure(ledger, digest_of(b"never")), NotFoundError)
    assert bytes_of(ledger.folder) == before


def test_bytes_that_nothing_refers_to_can_be_erased(tmp_path):
    ledger = new_ledger(tmp_path)
    ledger.artifacts.stage(SECRET.encode())
    ledger.artifacts.flush()
    plan = plan_erasure(ledger, digest_of(SECRET.encode()))
    assert plan.references == ()
    (said,) = erase(ledger, plan, reason=Reason.ERASURE_SECRET)
    assert parse_receipt(ledger.get(said.receipt).envelope.payload).receipts == ()
    assert on_disk(ledger, SECRET) == []


def test_a_receipt_that_comes_to_refer_to_it_meanwhile_stops_the_erasure(tmp_path):
    ledger = new_ledger(tmp_path)
    large = "x" * 1_100_000
    _, kept = recorded(ledger, result=large)
    plan = plan_erasure(ledger, kept.digest)
    recorded(open_ledger(tmp_path), result=large)
    size = ledger.head().size
    refused("erasure.references", lambda: erase(ledger, plan, reason=Reason.ERASURE_REQUEST))
    assert ledger.head().size == size
    assert ledger.artifact(kept) == large.encode()


def test_bytes_that_are_recorded_anew_are_there_again_and_can_be_erased_again(tmp_path):
    ledger = new_ledger(tmp_path)
    large = "x" * 1_100_000
    _, kept = recorded(ledger, result=large)
    erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_REQUEST)
    recorded(ledger, result=large)
    assert ledger.artifact(kept) == large.encode()
    plan = plan_erasure(ledger, kept.digest)
    assert not plan.settled
    erase(ledger, plan, reason=Reason.ERASURE_REQUEST)
    assert not ledger.artifacts.exists(kept.digest)


def test_an_erased_artifact_that_a_backup_brings_back_is_removed_without_another_receipt(tmp_path):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger)
    stored = ledger.artifacts.get(kept.digest)
    erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_REQUEST)
    ledger.artifacts.stage(stored)
    ledger.artifacts.flush()
    size = ledger.head().size
    plan = plan_erasure(ledger, kept.digest)
    assert (plan.settled, plan.condition) == (True, "whole")
    assert erase(ledger, plan, reason=Reason.ERASURE_REQUEST) == []
    assert ledger.head().size == size
    assert not ledger.artifacts.exists(kept.digest)


# Holds.


def test_what_is_held_is_not_erased_until_every_hold_is_released(tmp_path):
    ledger = new_ledger(tmp_path)
    run, kept = recorded(ledger)
    first = place_hold(ledger, digest=kept.digest, matter="case 17").receipt
    second = place_hold(ledger, run=run).receipt
    for hold in (first, second):
        plan = plan_erasure(ledger, kept.digest)
        before = bytes_of(ledger.folder)
        error = refused("erasure.held", lambda plan=plan: erase(ledger, plan, reason=Reason.ERASURE_REQUEST))
        assert hold[7:19] in str(error)
        assert bytes_of(ledger.folder) == before
        assert ledger.artifact(kept) == SECRET.encode()
        release_hold(ledger, hold)
    erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_REQUEST)
    assert on_disk(ledger, SECRET) == []
    assert [(each.matter, each.released is not None) for each in holds(ledger.folder)] == [
        ("case 17", True),
        (None, True),
    ]
    assert verdict(ledger).exit == 0


def test_a_hold_that_comes_after_the_plan_stops_the_erasure(tmp_path):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger)
    plan = plan_erasure(ledger, kept.digest)
    place_hold(open_ledger(tmp_path), digest=kept.digest)
    refused("erasure.held", lambda: erase(ledger, plan, reason=Reason.ERASURE_REQUEST))


def test_a_hold_on_a_run_covers_the_runs_below_it_and_no_other(tmp_path):
    ledger = new_ledger(tmp_path)
    outer = ledger.append(opening(ledger)).receipt
    inner = ledger.append(opening(ledger, parent_opening=outer)).receipt
    with ledger.attach(inner).call("act") as call:
        kept = call.artifact(SECRET, name="result")
    _, other = recorded(ledger)
    place_hold(ledger, run=outer)
    refused("erasure.held", lambda: erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_REQUEST))
    erase(ledger, plan_erasure(ledger, other.digest), reason=Reason.ERASURE_REQUEST)


def test_a_salt_that_is_held_keeps_the_artifacts_of_its_run(tmp_path):
    ledger = new_ledger(tmp_path)
    run, kept = recorded(ledger)
    place_hold(ledger, digest=salt_of(ledger, run))
    refused("erasure.held", lambda: erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_REQUEST))


def test_holds_of_nothing_and_releases_of_nothing_are_refused(tmp_path):
    ledger = new_ledger(tmp_path)
    run, kept = recorded(ledger)
    hold = place_hold(ledger, digest=kept.digest).receipt
    refused("artifact.absent", lambda: place_hold(ledger, digest=digest_of(b"never")), NotFoundError)
    refused("run.unknown_opening", lambda: place_hold(ledger, run=digest_of(b"never")), NotFoundError)
    refused("subject.absent", lambda: release_hold(ledger, run), NotFoundError)
    release_hold(ledger, hold)
    refused("hold.released", lambda: release_hold(ledger, hold))


# Crashes: the process is killed at each step of an erasure, and whoever comes next finishes it.


STEPS = ("before the mark", "after the mark", "after the receipt", "after the bytes")


def killed_at(tmp_path, step, digest):
    def body():
        ledger = open_ledger(tmp_path)
        plan = plan_erasure(ledger, digest)
        die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        mark, finish, gone = erasing.Erasing.mark, erasing.Erasing.finish, type(ledger.artifacts).erase
        if step == "before the mark":
            erasing.Erasing.mark = die
        elif step == "after the mark":
            erasing.Erasing.mark = lambda self, sizes: (mark(self, sizes), die())
        elif step == "after the receipt":
            erasing.Erasing.finish = die
        else:
            type(ledger.artifacts).erase = lambda self, name: (gone(self, name), die())
        assert finish is not None
        erase(ledger, plan, reason=Reason.ERASURE_SECRET)

    assert ended(fork(body)) == -signal.SIGKILL


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("next_", ["append", "erase"])
def test_a_kill_leaves_the_bytes_without_a_receipt_or_a_receipt_whose_bytes_go(tmp_path, step, next_):
    ledger = new_ledger(tmp_path)
    run, kept = recorded(ledger)
    ledger.close()
    killed_at(tmp_path, step, kept.digest)
    ledger = open_ledger(tmp_path)
    said = kept.digest in erasures_of(ledger.folder)
    assert said == (step in STEPS[2:])
    if next_ == "append":
        recorded(ledger, result="other")
        assert ledger.artifacts.exists(kept.digest) == (not said)
        assert ledger.artifacts.exists(salt_of(ledger, run)) == (not said)
    else:
        erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET)
        assert len([1 for _, receipt in receipts(ledger, "erasure") if receipt.digest == kept.digest]) == 1
        assert on_disk(ledger, SECRET) == []
    assert not (ledger.folder / "artifacts" / "erasing").exists()
    assert verdict(ledger).exit == 0


def test_a_disk_that_refuses_keeps_the_mark_and_nothing_from_being_recorded(tmp_path, monkeypatch):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger)

    def refuse(self, digest):
        raise StorageError("no", code="storage.io")

    with monkeypatch.context() as patch:
        patch.setattr(type(ledger.artifacts), "erase", refuse)
        refused("storage.io", lambda: erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET))
        recorded(ledger, result="goes on")
        assert ledger.artifacts.exists(kept.digest)
    recorded(ledger, result="and on")
    assert not ledger.artifacts.exists(kept.digest)


def test_what_a_crash_left_of_a_rewriting_goes_with_the_next_erasure(tmp_path):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger)
    packs, blobs = ledger.folder / "artifacts" / "packs", ledger.folder / "artifacts" / "blobs"
    blobs.mkdir()
    (packs / ".00000000.pack.0123456789abcdef.tmp").write_bytes(ledger.artifacts.get(kept.digest))
    (blobs / ".stage.0123456789abcdef.tmp").write_bytes(ledger.artifacts.get(kept.digest))
    (blobs / ".stage.fedcba9876543210.tmp").write_bytes(b"of somebody who is writing now")
    erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET)
    assert on_disk(ledger, SECRET) == []
    assert [path.name for path in blobs.iterdir()] == [".stage.fedcba9876543210.tmp"]


def test_a_torn_record_of_the_erased_bytes_goes_too(tmp_path):
    ledger = new_ledger(tmp_path)
    _, kept = recorded(ledger)
    pack = ledger.folder / "artifacts" / "packs" / "00000001.pack"
    stored = ledger.artifacts.get(kept.digest)
    pack.write_bytes(f"{kept.digest} {len(stored)}\n".encode() + stored[:-3])
    erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET)
    assert on_disk(ledger, SECRET[:-3]) == []


def test_others_append_while_artifacts_are_erased_and_nothing_is_lost(tmp_path):
    ledger = new_ledger(tmp_path)
    made = [recorded(ledger, result=f"{SECRET} {number}") for number in range(6)]

    def body():
        other = open_ledger(tmp_path)
        for number in range(15):
            recorded(other, result=f"kept {number}", name="other")

    ledger.close()
    children = [fork(body) for _ in range(2)]
    for _, kept in made:
        erase(ledger, plan_erasure(ledger, kept.digest), reason=Reason.ERASURE_SECRET)
    assert [ended(child) for child in children] == [0, 0]
    assert on_disk(ledger, SECRET) == []
    kept = [each for _, receipt in receipts(ledger, "outcome") for each in receipt.artifacts if each.size_bytes < 10]
    assert len(kept) == 30
    assert all(ledger.artifact(each).startswith(b"kept ") for each in kept)
    assert verdict(ledger).exit == 0
