"""One receipt from its bundle: what a good one shows, and each thing hidden or altered as its own finding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger import Ledger, Places
from ledger.bundle import Bundle
from ledger.checkpoint import Head, sign_head
from ledger.digest import digest
from tests.reference import rfc9162
from tests.reference.build import ORIGIN, Builder, party, small, test_key
from verify.bundle import verify_bundle
from verify.options import Options

LEDGER = small()


def codes(verdict):
    return [check.code for check in verdict.findings]


def first(verdict):
    return next(check for check in verdict.findings if check.exit == verdict.exit)


def judge(bundle, *, trust="own", memory=None, of=LEDGER, consistency=None, **options):
    chosen = of.trust() if trust == "own" else trust
    return verify_bundle(bundle, trust=chosen, memory=memory, consistency=consistency, options=Options(**options))


@pytest.mark.parametrize("index", range(14))
def test_every_receipt_of_a_good_ledger_is_ok_from_its_bundle(index):
    verdict = judge(LEDGER.bundle(LEDGER.rows[index].id), memory=LEDGER.notes[-1])
    assert (verdict.exit, verdict.findings) == (0, ())
    assert verdict.subject == verdict.path[0] == LEDGER.rows[index].id
    assert verdict.path[-1] in {row.id for row in LEDGER.rows if b'"seals":[{' in row.envelope}
    chain = next(check for check in verdict.checks if check.name == "chain")
    assert (chain.status, chain.asked) == ("not_checked", False)


def test_the_path_leads_from_the_subject_up_to_the_nearest_seal():
    ids = [row.id for row in LEDGER.rows]
    verdict = judge(LEDGER.bundle(ids[2]))
    assert verdict.path == (ids[2], ids[3], ids[5], ids[13])


def notes_on_strays(verdict):
    return [note for note in verdict.notes if note.startswith("receipts beside the subject")]


def test_nothing_in_a_bundle_as_we_make_it_is_beside_its_subject(tmp_path):
    with Ledger.create(tmp_path / "ledger", places=Places.under(tmp_path / "home")) as ledger:
        with ledger.run("nightly") as run, run.step("night"), run.call("deploy", access="write"):
            pass
        with ledger.run("open") as run, run.step("night"), run.call("deploy", access="write"):
            for stored in ledger.entries():
                verdict = judge(ledger.evidence(stored.entry.receipt), trust=None)
                assert notes_on_strays(verdict) == []
                assert "check.unreachable" not in codes(verdict)


def test_receipts_beside_the_subject_are_checked_and_stated():
    bundle = LEDGER.bundle(LEDGER.rows[2].id)  # with all of its run
    verdict = judge(bundle)
    assert verdict.exit == 0
    assert notes_on_strays(verdict) == [
        "receipts beside the subject: 7, the first is entry 4; they are no part of the verdict"
    ]
    stray = next(item for item in bundle.items if b'"index":4,' in item.entry)
    broken = replace(stray, envelope=stray.envelope.replace(b'"nonce":"', b'"nonce":"f', 1))
    items = tuple(broken if item is stray else item for item in bundle.items)
    assert judge(replace(bundle, items=items)).exit == 1


def test_an_unsealed_subject_without_the_opening_of_its_run_is_not_established():
    ledger = opened()
    without = ledger.bundle(ledger.rows[2].id)
    kept = tuple(item for item in without.items if b'"kind":"opening"' not in item.envelope)
    assert len(kept) == len(without.items) - 1
    verdict = judge(replace(without, items=kept), of=ledger)
    assert (verdict.exit, "check.unreachable" in codes(verdict)) == (3, True)
    assert "check.unreachable" not in codes(judge(without, of=ledger))


def test_a_stranger_s_receipt_is_not_established():
    verdict = judge(LEDGER.bundle(LEDGER.rows[13].id), trust=None)
    assert (verdict.exit, verdict.remember) == (3, None)
    assert {"trust.log_key_unpinned", "trust.issuer_unpinned"} <= set(codes(verdict))


def opened():
    ledger = Builder()
    ledger.header()
    ledger.opening()
    ledger.call()
    ledger.commit()
    return ledger


def test_a_receipt_of_an_open_run_is_covered_by_the_head_only():
    ledger = opened()
    verdict = judge(ledger.bundle(ledger.rows[3].id), of=ledger)
    assert (verdict.exit, codes(verdict), verdict.path) == (3, ["receipt.unattributed", "head.first_seen"], ())
    assert verdict.covered.signed_head == 2


def test_an_open_run_as_the_subject_is_not_established_and_its_opening_is_still_good():
    ledger = opened()
    verdict = judge(ledger.bundle(ledger.rows[1].id, ledger.rows[1].id), of=ledger)
    assert (verdict.exit, first(verdict).code) == (3, "run.open")


def test_a_closed_run_is_asked_for_by_its_run_id():
    run = LEDGER.rows[1].id
    verdict = judge(LEDGER.bundle(run), closed=True)
    assert verdict.exit == 0
    assert next(check for check in verdict.checks if check.name == "trees").count == 12
    open_ = opened()
    verdict = judge(open_.bundle(open_.rows[2].id), of=open_, closed=True)
    assert {"run.open", "receipt.unattributed"} <= set(codes(verdict))


# What can be hidden.


def test_a_child_that_is_left_out_is_missing():
    root = LEDGER.rows[13].id
    for row in LEDGER.rows[1:12]:
        verdict = judge(LEDGER.bundle(root, leave_out=(row.id,)))
        assert (verdict.exit, "tree.missing" in codes(verdict)) == (1, True), row.kind


def test_the_path_above_that_is_left_out_makes_it_unattributed():
    call, step = LEDGER.rows[3].id, LEDGER.rows[5].id
    verdict = judge(LEDGER.bundle(call, leave_out=(step,)))
    assert (verdict.exit, first(verdict).code) == (3, "receipt.unattributed")


def test_a_subject_that_is_not_in_its_bundle_is_absent():
    verdict = judge(replace(LEDGER.bundle(LEDGER.rows[3].id), subject=digest(b"other")))
    assert (verdict.exit, first(verdict).code) == (5, "subject.absent")
    verdict = judge(Bundle(digest(b"x"), (), LEDGER.bundle(LEDGER.rows[3].id).keyring, LEDGER.notes[-1]))
    assert (verdict.exit, {"coverage.empty", "subject.absent"} <= set(codes(verdict))) == (5, True)


def rotated(**members):
    ledger = Builder()
    ledger.header()
    ledger.grant()
    ledger.key(party("issuer-2", "issuer"), test_key("issuer").key, **members)
    ledger.grant()
    ledger.commit()
    return ledger


def test_a_rotation_is_followed_from_the_header():
    ledger = rotated()
    for row in ledger.rows:
        assert judge(ledger.bundle(row.id), of=ledger).exit == 0


def test_a_key_entry_before_the_subject_cannot_be_hidden():
    ledger = rotated()
    bundle = ledger.bundle(ledger.rows[3].id)
    verdict = judge(replace(bundle, keyring=bundle.keyring[:1]), of=ledger)
    assert (verdict.exit, first(verdict).code) == (1, "chain.keyring")


def test_a_revocation_reaches_back_to_its_index():
    for from_index, exit_ in ((2, 0), (1, 4)):
        ledger = rotated(action="revoke", from_index=from_index)
        verdict = judge(ledger.bundle(ledger.rows[1].id), of=ledger)
        assert verdict.exit == exit_
        assert ("key.revoked" in codes(verdict)) is (exit_ == 4)


def test_a_keyring_without_its_header_or_out_of_order_is_refused():
    ledger = rotated()
    bundle = ledger.bundle(ledger.rows[1].id)
    for keyring in ((), bundle.keyring[1:], bundle.keyring[::-1], bundle.keyring[:1] * 2):
        verdict = judge(replace(bundle, keyring=keyring), of=ledger)
        assert verdict.exit == 1


# What can be altered.


def test_every_byte_of_every_part_is_covered():
    bundle = LEDGER.bundle(LEDGER.rows[10].id)
    trust, memory = LEDGER.trust(), LEDGER.notes[-1]

    def flip(data, offset):
        return data[:offset] + bytes([data[offset] ^ (1 << offset % 8)]) + data[offset + 1 :]

    def check(broken, *place):
        verdict = verify_bundle(broken, trust=trust, memory=memory)
        assert verdict.exit in {1, 5}, (place, verdict.findings)

    for part in ("items", "keyring"):
        items = getattr(bundle, part)
        for number, item in enumerate(items):
            for offset in range(0, len(item.entry), 3):
                check(with_(bundle, part, number, replace(item, entry=flip(item.entry, offset))), part, number, offset)
            for offset in range(0, len(item.envelope), 7):
                changed = replace(item, envelope=flip(item.envelope, offset))
                check(with_(bundle, part, number, changed), part, number, offset)
            for node in range(len(item.proof)):
                proof = (*item.proof[:node], flip(item.proof[node], 5), *item.proof[node + 1 :])
                check(with_(bundle, part, number, replace(item, proof=proof)), part, number, node)
            check(with_(bundle, part, number, replace(item, proof=(*item.proof, bytes(32)))), part, number)
            check(with_(bundle, part, number, replace(item, proof=item.proof[:-1])), part, number)
    for offset in range(len(bundle.checkpoint)):
        check(replace(bundle, checkpoint=flip(bundle.checkpoint, offset)), "checkpoint", offset)


def with_(bundle, part, number, item):
    items = getattr(bundle, part)
    return replace(bundle, **{part: (*items[:number], item, *items[number + 1 :])})


def test_items_out_of_order_or_twice_are_refused():
    bundle = LEDGER.bundle(LEDGER.rows[10].id)
    for items in (bundle.items[::-1], bundle.items + bundle.items[-1:]):
        assert judge(replace(bundle, items=items)).exit == 1


def test_a_root_that_nobody_signed_proves_nothing():
    bundle = LEDGER.bundle(LEDGER.rows[10].id)
    head = Head(ORIGIN, 14, LEDGER._frontier.root())
    verdict = judge(replace(bundle, checkpoint=sign_head(head, test_key("other-log"))))
    assert (verdict.exit, "head.unsigned" in codes(verdict)) == (1, True)


# Trees and seals, as in a ledger.


def run_with(build):
    ledger = Builder()
    ledger.header()
    build(ledger)
    ledger.commit()
    return ledger


def test_a_receipt_under_the_seal_of_another_issuer_is_borrowed():
    other = party("other-issuer", "other")
    ledger = run_with(lambda found: (found.opening(), found.call(), found.run(issuer=other)))
    for row in ledger.rows[2:]:
        verdict = judge(ledger.bundle(row.id), of=ledger)
        assert (verdict.exit, "receipt.borrowed_issuer" in codes(verdict)) == (1, True)


@pytest.mark.parametrize("how", [{"seal": False}, {"seal": test_key("other-issuer")}])
def test_a_root_without_its_issuer_s_seal_fails(how):
    ledger = run_with(lambda found: (found.opening(), found.call(), found.run(**how)))
    verdict = judge(ledger.bundle(ledger.rows[-1].id), of=ledger)
    assert verdict.exit == 1
    assert {"seal.absent", "seal.issuer"} & set(codes(verdict))


def twice(ledger):
    ledger.opening()
    call = ledger.call()
    ledger.step(call)
    ledger.step(call)
    ledger.run()


def opening_late(ledger):
    run = ledger.opening()
    call = ledger.call()
    ledger.run(children=[call, run])


def intent_late(ledger):
    ledger.opening()
    intent = ledger.intent()
    refused = ledger.decision()
    ledger.outcome(intent, children=[refused, intent])
    ledger.run()


def other_run(ledger):
    ledger.opening("one")
    call = ledger.call()
    ledger.opening("two")
    ledger.step(call)
    ledger.run()


def too_deep(ledger):
    ledger.opening()
    last = ledger.decision()
    for _ in range(64):
        last = ledger.step(last)
    ledger.run()


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (twice, "tree.repeated"),
        (opening_late, "tree.order"),
        (intent_late, "tree.order"),
        (other_run, "tree.missing"),
        (too_deep, "tree.too_deep"),
    ],
)
def test_each_fault_of_the_tree_below_is_its_own_finding(build, code):
    ledger = run_with(build)
    everything = tuple(row.id for row in ledger.rows[1:])
    verdict = judge(ledger.bundle(ledger.rows[-1].id, *everything), of=ledger)
    assert (verdict.exit, code in codes(verdict)) == (1, True)


def test_a_child_that_stands_after_its_parent_is_missing():
    ledger = Builder()
    ledger.header()
    run = ledger.opening()
    other = Builder(seed=0)
    other.header()
    other.opening()
    other.step(digest(b"placeholder"))
    later = other.decision()
    ledger.step(later)
    assert ledger.decision() == later
    ledger.run()
    ledger.commit()
    verdict = judge(ledger.bundle(ledger.rows[2].id, run, later), of=ledger)
    assert (verdict.exit, "tree.missing" in codes(verdict)) == (1, True)


# Memory.


def older():
    """Return a bundle into an older head of the small ledger, and a source of consistency proofs."""
    before = small()
    while len(before.rows) > 11:
        before.rows.pop()
    bundle = before.bundle(before.rows[10].id)
    bundle = replace(bundle, checkpoint=before.notes[2])
    leaves = [row.entry for row in LEDGER.rows]
    return bundle, lambda old, new: rfc9162.proof(old, leaves[:new])


def test_an_older_head_is_fine_and_proven_where_a_proof_is_at_hand():
    bundle, source = older()
    memory = LEDGER.notes[-1]
    assert judge(bundle, memory=memory).exit == 0
    found = [check for check in judge(bundle, memory=memory).checks if check.name == "memory"]
    assert [(check.status, check.asked) for check in found] == [("not_checked", False)]
    proven = judge(bundle, memory=memory, consistency=source)
    assert [check.status for check in proven.checks if check.name == "memory"] == ["ok"]
    assert proven.remember is None


def test_an_older_head_fails_where_the_evidence_comes_from_the_whole_ledger():
    bundle, source = older()
    for proof in (None, source):
        verdict = verify_bundle(
            bundle, trust=LEDGER.trust(), memory=LEDGER.notes[-1], consistency=proof, whole_ledger=True
        )
        assert (verdict.exit, verdict.remember) == (1, None)
        assert [check.code for check in verdict.findings] == ["head.shorter"]
    newest = LEDGER.bundle(LEDGER.rows[-1].id)
    assert verify_bundle(newest, trust=LEDGER.trust(), memory=LEDGER.notes[-1], whole_ledger=True).exit == 0


def test_an_older_head_is_not_established_where_memory_was_asked_for():
    bundle, source = older()
    for given, exit_ in ((None, 3), (source, 0)):
        verdict = verify_bundle(
            bundle, trust=LEDGER.trust(), memory=LEDGER.notes[-1], consistency=given, options=Options(memory=True)
        )
        assert verdict.exit == exit_


def test_a_newer_head_needs_a_proof_and_is_then_remembered():
    bundle = LEDGER.bundle(LEDGER.rows[10].id)
    leaves = [row.entry for row in LEDGER.rows]
    for note in LEDGER.notes[:-1]:
        verdict = judge(bundle, memory=note)
        assert (verdict.exit, codes(verdict), verdict.remember) == (3, ["head.unreconciled"], None)
        verdict = judge(bundle, memory=note, consistency=lambda old, new: rfc9162.proof(old, leaves[:new]))
        assert (verdict.exit, codes(verdict), verdict.remember) == (0, [], LEDGER.notes[-1])
    assert judge(bundle, memory=LEDGER.notes[-1]).remember is None


def test_another_root_of_the_remembered_size_is_forked():
    bundle = LEDGER.bundle(LEDGER.rows[10].id)
    verdict = judge(bundle, memory=sign_head(Head(ORIGIN, 14, bytes(32)), test_key("log")))
    assert (verdict.exit, codes(verdict)) == (1, ["head.forked"])
