"""tlog-proofs: an entry under a head of the pinned log; each part exchanged is its own finding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledger.checkpoint import Head, sign_head
from ledger.merkle import leaf_hash
from ledger.note import parse_note, print_note, sign_cosignature
from ledger.tlogproof import TlogProof, print_tlog_proof
from tests.reference.build import Builder, party, small, test_key
from verify.options import Options
from verify.tlogproof import verify_tlog_proof

LEDGER = small()
PROOF = TlogProof(3, LEDGER.item(3).proof, LEDGER.notes[-1], LEDGER.rows[3].entry)


def judge(proof, *, trust="own", remembered=None, of=LEDGER, **options):
    return verify_tlog_proof(
        proof if isinstance(proof, bytes) else print_tlog_proof(proof),
        subject="file",
        trust=of.trust() if trust == "own" else trust,
        remembered=None if remembered is None else lambda _: remembered,
        options=Options(**options),
    )


def codes(verdict):
    return {check.code for check in verdict.findings} - {"head.first_seen"}


@pytest.mark.parametrize("index", range(14))
def test_each_entry_is_shown_and_its_receipt_named_and_said_not_to_be_there(index):
    row = LEDGER.rows[index]
    verdict = judge(replace(PROOF, index=index, proof=LEDGER.item(index).proof, extra=row.entry))
    assert (verdict.exit, verdict.subject, verdict.coverage.first) == (0, row.id, index)
    receipts = next(check for check in verdict.checks if check.name == "receipts")
    assert (receipts.status, receipts.asked) == ("not_checked", False)
    assert verdict.remember == LEDGER.notes[-1]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"index": 4}, "chain.index"),
        ({"index": 14}, "proof.malformed"),
        ({"proof": LEDGER.item(2).proof}, "proof.inclusion"),
        ({"proof": LEDGER.item(3).proof[:-1]}, "proof.malformed"),
        ({"proof": (*LEDGER.item(3).proof, bytes(32))}, "proof.malformed"),
        ({"extra": LEDGER.rows[2].entry}, "proof.inclusion"),
        ({"extra": LEDGER.rows[3].entry + b" "}, "entry.malformed"),
        ({"extra": LEDGER.rows[3].entry.replace(b"entry/v1", b"entry/v2")}, "proof.inclusion"),
        ({"checkpoint": LEDGER.notes[-2]}, "proof.inclusion"),
        ({"checkpoint": b"x"}, "head.malformed"),
        (
            {"checkpoint": LEDGER.notes[-1].replace(b"ledger.invalid/test\n", b"ledger.invalid/tess\n", 1)},
            "head.unsigned",
        ),
    ],
    ids=str,
)
def test_another_part_does_not_hold(change, code):
    verdict = judge(replace(PROOF, **change))
    assert (verdict.exit, code in codes(verdict), verdict.remember) == (1, True, None), verdict.findings


def test_a_root_that_nobody_signed_proves_nothing():
    """The proof of a tree of one leaf is empty: anybody can make it."""
    entry = LEDGER.rows[0].entry
    forged = sign_head(Head(LEDGER.origin, 1, leaf_hash(entry)), test_key("other-log"))
    verdict = judge(TlogProof(0, (), forged, entry))
    assert (verdict.exit, codes(verdict)) == (4, {"trust.log_key_mismatch", "check.unreachable"})
    honest = sign_head(Head(LEDGER.origin, 1, leaf_hash(entry)), test_key("log"))
    assert judge(TlogProof(0, (), honest, entry)).exit == 0


def test_a_signature_that_does_not_verify_is_not_a_stranger_s():
    note = parse_note(LEDGER.notes[-1])
    line = replace(note.signatures[0], signature=bytes(64))
    broken = print_note(replace(note, signatures=(line,)))
    verdict = judge(replace(PROOF, checkpoint=broken))
    assert (verdict.exit, "head.signature" in codes(verdict)) == (1, True)


def test_cosignatures_of_strangers_are_not_looked_at():
    note = parse_note(LEDGER.notes[-1])
    more = sign_cosignature(note.text, "witness.example", test_key("witness"), time_s=1)
    cosigned = print_note(replace(note, signatures=(more, *note.signatures)))
    assert judge(replace(PROOF, checkpoint=cosigned)).exit == 0


def test_a_proof_of_another_log_carries_no_entry_of_ours_and_is_unknown():
    verdict = judge(replace(PROOF, extra=None))
    assert (verdict.exit, "subject.unknown" in codes(verdict)) == (5, True)


def test_without_trust_it_holds_as_far_as_it_goes():
    verdict = judge(PROOF, trust=None)
    assert (verdict.exit, codes(verdict)) == (3, {"trust.log_key_unpinned", "check.unreachable"})


def test_a_log_key_that_was_rotated_cannot_be_followed_from_here():
    ledger = Builder()
    ledger.header()
    old = ledger.log
    ledger.key(party("log-2", "issuer"), old.key, role="log")
    both = ledger.commit(also=(old,))
    ledger.grant()
    new = ledger.commit()
    entry = ledger.rows[0].entry
    assert judge(TlogProof(0, ledger.item(0).proof, new, entry), of=ledger).exit == 4
    first = TlogProof(0, (leaf_hash(ledger.rows[1].entry),), both, entry)
    assert judge(first, of=ledger).exit == 0


def test_memory_is_compared_and_only_grows():
    older = replace(PROOF, index=0, proof=(), checkpoint=LEDGER.notes[0], extra=LEDGER.rows[0].entry)
    verdict = judge(older, remembered=LEDGER.notes[-1])
    assert (verdict.exit, verdict.remember) == (0, None)
    verdict = judge(PROOF, remembered=LEDGER.notes[0])
    assert (verdict.exit, verdict.remember, codes(verdict)) == (3, None, {"head.unreconciled"})
    fork = small(seed=5)
    verdict = judge(PROOF, remembered=fork.notes[-1])
    assert (verdict.exit, verdict.remember, codes(verdict)) == (1, None, {"head.forked"})
    stranger = small(log=test_key("other-log"))
    assert judge(PROOF, remembered=stranger.notes[-1]).exit == 3
