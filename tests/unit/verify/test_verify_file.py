"""Files told apart by content and judged without a ledger: what each shows, and what is hidden or altered in it."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from ledger.bundle import CarriedSeal, LastEntry, parse_bundle, print_bundle
from ledger.consistency import print_consistency
from tests.reference.build import Builder, party, small, test_key
from tests.reference.proofs import CONTENT, carried, consistency_of, files, member_of, range_of, tiny
from verify.bundle import verify_bundle
from verify.file import kind_of, verify_file
from verify.options import Options

LEDGER = tiny()
TRUST = LEDGER.trust()
FILES = files(LEDGER)
SMALL = small()


def judge(data, *, trust=TRUST, remembered=None, **options):
    memory = None if remembered is None else {LEDGER.origin: remembered}.get
    return verify_file(data, subject="file", trust=trust, remembered=memory, options=Options(**options))


def codes(verdict):
    return {check.code for check in verdict.findings}


# Telling apart.


@pytest.mark.parametrize("name", FILES)
def test_each_kind_is_told_by_its_content_and_holds_under_the_trust_that_pins_it(name):
    assert kind_of(FILES[name]) == {"range": "bundle"}.get(name, name)
    verdict = judge(FILES[name])
    assert (verdict.exit, verdict.findings) == (0, tuple(c for c in verdict.findings if c.code == "head.first_seen"))
    assert verdict.notes[0] == f"file: judged as {kind_of(FILES[name])}"


@pytest.mark.parametrize("name", FILES)
def test_without_a_trust_file_each_is_not_established(name):
    verdict = judge(FILES[name], trust=None)
    assert (verdict.exit, verdict.remember) == (3, None)


@pytest.mark.parametrize("name", FILES)
def test_under_a_trust_that_names_another_key_each_is_not_trusted(name):
    other = Builder(log=test_key("other-log"), issuer=party("other-issuer", "issuer"))
    other.header()
    assert judge(FILES[name], trust=other.trust(header=False)).exit == 4


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"{}",
        b"[]",
        b"null",
        b"\x89PNG\r\n",
        b"\xff" * 100,
        b"c2sp.org/tlog-proof@v2\nindex 0\n\nnote",
        b'{"schema":"receipt-ledger.bundle/v2"}',
        b'{"schema":"receipt-ledger.verdict/v1"}',
        b'{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}',
        b"Dear all,\n\n\xe2\x80\x94 me AAAAAAA=\n",
        b"[" * 100_000,
        b'{"a":' * 10_000,
    ],
    ids=lambda data: repr(data[:30]),
)
def test_what_is_nothing_of_ours_is_unknown(data):
    verdict = judge(data)
    assert (verdict.exit, [check.code for check in verdict.checks]) == (5, ["subject.unknown"])


@pytest.mark.parametrize("name", ["bundle", "consistency", "dsse", "range"])
def test_what_is_ours_and_was_written_again_by_another_program_does_not_hold(name):
    again = json.dumps(json.loads(FILES[name]), indent=1).encode()
    assert judge(again).exit == 1


@pytest.mark.parametrize("name", ["bundle", "range", "consistency", "tlog-proof", "dsse", "head"])
def test_what_is_ours_and_is_cut_anywhere_does_not_hold_or_is_unknown(name):
    data = FILES[name]
    for length in range(0, len(data), max(1, len(data) // 200)):
        assert judge(data[:length]).exit in {1, 4, 5}, length


@pytest.mark.parametrize("name", ["bundle", "range", "consistency", "tlog-proof", "dsse", "head"])
def test_one_byte_changed_anywhere_is_never_exit_0_and_never_exit_3(name):
    data = FILES[name]
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 1 << (position * 5 % 8)
        verdict = judge(bytes(broken), remembered=LEDGER.notes[-1] if position % 2 else None)
        assert verdict.exit in {1, 4, 5}, (position, data[position - 20 : position + 20], verdict.findings)
        assert verdict.remember is None


def closed():
    """Return a ledger whose newest entry closes the run that its bundle proves, as right after `ledger run`."""
    ledger = Builder()
    ledger.header()
    ledger.opening()
    ledger.run()
    ledger.commit()
    return ledger


@pytest.mark.parametrize("subject", [2, 0])
def test_one_byte_changed_anywhere_in_a_bundle_of_the_newest_entry_or_of_the_header_is_never_exit_0_or_3(subject):
    ledger = closed()
    trust = ledger.trust()
    data = print_bundle(ledger.bundle(ledger.rows[subject].id))
    assert judge(data, trust=trust).exit == 0
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 1 << (position * 3 % 8)
        verdict = judge(bytes(broken), trust=trust)
        assert verdict.exit in {1, 4, 5}, (position, data[position - 20 : position + 20], verdict.findings)


@pytest.mark.slow
@pytest.mark.skipif("not config.getoption('-m')", reason="minutes; run with -m slow")
@pytest.mark.parametrize("name", ["bundle", "range", "consistency", "tlog-proof", "dsse", "head"])
def test_every_bit_flipped_is_never_exit_0_and_never_exit_3(name):
    data = FILES[name]
    for position in range(len(data)):
        for bit in range(8):
            broken = bytearray(data)
            broken[position] ^= 1 << bit
            assert judge(bytes(broken)).exit in {1, 4, 5}, (position, bit)


# Bundles.


def test_a_bundle_is_judged_as_the_evidence_of_a_ledger_is():
    for row in SMALL.rows:
        bundle = SMALL.bundle(row.id)
        for trust in (SMALL.trust(), None):
            ours = verify_bundle(bundle, trust=trust, memory=SMALL.notes[-1])
            file = verify_file(print_bundle(bundle), subject="b", trust=trust, remembered=lambda _: SMALL.notes[-1])
            assert replace(file, notes=file.notes[1:]) == ours


def with_later_key(**change):
    """Return a ledger in which the issuer's key is revoked after a grant, from before it."""
    ledger = Builder()
    ledger.header()
    ledger.grant()
    ledger.key(party("issuer-2", "issuer"), test_key("issuer").key, action="revoke", from_index=1)
    ledger.grant()
    ledger.commit()
    bundle = ledger.bundle(ledger.rows[1].id)
    return ledger, replace(bundle, **{name: make(ledger, bundle) for name, make in change.items()})


def without_key(ledger, bundle):
    return bundle.keyring[:1]


def test_a_revocation_that_follows_is_seen():
    ledger, bundle = with_later_key()
    verdict = judge(print_bundle(bundle), trust=ledger.trust())
    assert (verdict.exit, "key.revoked" in codes(verdict)) == (4, True)


def test_a_revocation_that_follows_cannot_be_left_out():
    ledger, bundle = with_later_key(keyring=without_key)
    verdict = judge(print_bundle(bundle), trust=ledger.trust())
    assert (verdict.exit, "chain.keyring" in codes(verdict)) == (1, True)


def test_nor_by_showing_another_entry_as_the_last():
    ledger, bundle = with_later_key(
        keyring=without_key, last=lambda ledger, _: LastEntry(ledger.rows[1].entry, ledger.item(1).proof)
    )
    verdict = judge(print_bundle(bundle), trust=ledger.trust())
    assert (verdict.exit, "chain.index" in codes(verdict)) == (1, True)


def test_evidence_without_its_last_entry_is_not_established():
    bundle = replace(SMALL.bundle(SMALL.rows[3].id), last=None)
    verdict = verify_bundle(bundle, trust=SMALL.trust())
    shown = {item.entry for item in bundle.items}
    assert SMALL.rows[-1].entry in shown
    assert verdict.exit == 0
    open_ = replace(bundle, subject=SMALL.rows[12].id, items=(SMALL.item(12),))
    assert verify_bundle(replace(open_, last=SMALL.bundle(SMALL.rows[0].id).last), trust=SMALL.trust()).exit == 0
    verdict = verify_bundle(open_, trust=SMALL.trust())
    assert (verdict.exit, codes(verdict) - {"head.first_seen"}) == (3, {"check.unreachable"})


def committed_early(child):
    """Return a ledger with a step that commits `child` before the intent that follows it, and that intent's id."""
    ledger = Builder()
    ledger.header()
    opening = ledger.opening()
    step = ledger.step(child, seal=True)
    intent = ledger.intent()
    ledger.run(children=[opening, step])
    ledger.commit()
    return ledger, intent


def test_a_seal_over_a_receipt_that_follows_it_does_not_hold():
    _, intent = committed_early("sha256:" + "0" * 64)
    ledger, same = committed_early(intent)
    assert same == intent
    verdict = judge(print_bundle(ledger.bundle(intent)), trust=ledger.trust())
    assert (verdict.exit, "tree.missing" in codes(verdict)) == (1, True)


# Memory.


def test_a_head_is_remembered_from_a_bundle_that_holds_and_an_older_one_is_fine():
    assert judge(FILES["bundle"]).remember == LEDGER.notes[-1]
    assert judge(FILES["bundle"], remembered=LEDGER.notes[-1]).remember is None
    older = judge(print_consistency(consistency_of(LEDGER, 0, 1)), remembered=LEDGER.notes[-1])
    assert (older.exit, older.remember) == (0, None)


def test_a_newer_head_needs_a_proof_which_a_consistency_file_brings():
    newer = judge(FILES["bundle"], remembered=LEDGER.notes[0])
    assert (newer.exit, newer.remember, "head.unreconciled" in codes(newer)) == (3, None, True)
    joined = judge(FILES["consistency"], remembered=LEDGER.notes[0])
    assert (joined.exit, joined.remember) == (0, LEDGER.notes[-1])
    between = judge(FILES["consistency"], remembered=LEDGER.notes[1])
    assert (between.exit, between.remember) == (3, None)


def test_another_root_at_the_size_that_is_remembered_is_a_fork():
    fork = Builder(seed=1)
    fork.header()
    fork.opening()
    fork.call()
    fork.run()
    fork.grant()
    fork.commit()
    for name in ("bundle", "consistency", "tlog-proof", "head"):
        verdict = judge(FILES[name], remembered=fork.notes[-1])
        assert (verdict.exit, "head.forked" in codes(verdict), verdict.remember) == (1, True, None), name


@pytest.mark.parametrize("name", ["bundle", "consistency", "tlog-proof", "head", "range"])
def test_memory_that_is_asked_for_and_empty_is_not_established(name):
    verdict = judge(FILES[name], memory=True)
    assert (verdict.exit, "head.unseen" in codes(verdict)) == (3, True)
    assert judge(FILES[name], memory=True, remembered=LEDGER.notes[-1]).exit == 0


# Ranges.


@pytest.mark.parametrize("span", [(0, 14), (0, 1), (1, 14), (6, 12), (13, 14)])
def test_a_range_with_what_covers_it_holds(span):
    covers = range(span[1], 14)
    verdict = judge(print_bundle(range_of(SMALL, *span, *covers)), trust=SMALL.trust())
    assert verdict.exit == 0, verdict.findings
    assert (verdict.coverage.first, verdict.coverage.end, verdict.coverage.count) == (*span, span[1] - span[0])
    assert verdict.covered.own_seal + verdict.covered.sealed_root == span[1] - span[0]
    trees = next(check for check in verdict.checks if check.name == "trees")
    assert (trees.status, trees.asked) == ("not_checked", False)


def test_a_range_without_what_covers_it_is_not_attributed():
    verdict = judge(print_bundle(range_of(SMALL, 2, 4)), trust=SMALL.trust())
    assert (verdict.exit, codes(verdict) - {"head.first_seen"}) == (3, {"receipt.unattributed"})
    assert verdict.covered.signed_head == 2


def test_a_range_that_says_more_or_less_than_it_shows_does_not_hold():
    bundle = range_of(SMALL, 6, 12, 13)
    for subject, expected in (("6:13", 5), ("5:12", 5), ("6:11", 1), ("7:12", 1), ("6:99", 5)):
        verdict = judge(print_bundle(replace(bundle, subject=subject)), trust=SMALL.trust())
        assert verdict.exit == expected, subject
    hole = replace(bundle, items=bundle.items[:2] + bundle.items[3:])
    assert judge(print_bundle(hole), trust=SMALL.trust()).exit == 5
    turned = replace(bundle, items=bundle.items[::-1])
    assert judge(print_bundle(turned), trust=SMALL.trust()).exit == 1
    empty = replace(bundle, items=())
    assert judge(print_bundle(empty), trust=SMALL.trust()).exit == 5


def test_entries_of_a_range_that_are_not_linked_do_not_hold():
    ledger = Builder()
    ledger.header()
    ledger.grant()
    ledger.grant(entry={"previous": "sha256:" + "5" * 64})
    ledger.commit()
    verdict = judge(print_bundle(range_of(ledger, 1, 3)), trust=ledger.trust())
    assert (verdict.exit, codes(verdict) - {"head.first_seen"}) == (1, {"chain.previous"})
    assert judge(print_bundle(range_of(ledger, 2, 3)), trust=ledger.trust()).exit == 0


def test_a_range_cannot_show_that_runs_are_closed():
    verdict = judge(print_bundle(range_of(SMALL, 0, 14)), trust=SMALL.trust(), closed=True)
    assert (verdict.exit, "check.unsupported" in codes(verdict)) == (3, True)


def test_a_receipt_of_a_range_does_not_borrow_the_seal_of_another_issuer():
    ledger = Builder()
    ledger.header()
    ledger.opening()
    ledger.intent(issuer=party("other-issuer"))
    ledger.run()
    ledger.commit()
    verdict = judge(print_bundle(range_of(ledger, 2, 3, 3)), trust=ledger.trust())
    assert (verdict.exit, "receipt.borrowed_issuer" in codes(verdict)) == (1, True)


# Artifacts.


def with_artifacts(*artifacts, **change):
    return print_bundle(
        replace(
            parse_bundle(FILES["bundle"]), artifacts=tuple(sorted(artifacts, key=lambda each: each.digest)), **change
        )
    )


def test_artifacts_that_are_asked_for_and_there_are_checked():
    verdict = judge(FILES["bundle"], artifacts=True)
    assert verdict.exit == 0
    assert next(check for check in verdict.checks if check.name == "artifacts").count == 1


def test_an_artifact_that_is_not_there_is_absent_where_it_was_asked_for():
    assert judge(with_artifacts()).exit == 0
    verdict = judge(with_artifacts(), artifacts=True)
    assert (verdict.exit, codes(verdict) - {"head.first_seen"}) == (5, {"artifact.absent"})
    assert judge(with_artifacts(), artifacts=True, accept=("artifact.absent",)).exit == 0


@pytest.mark.parametrize("asked", [True, False])
def test_an_artifact_with_other_bytes_is_altered_whether_it_was_asked_for_or_not(asked):
    other = replace(carried(CONTENT), data=CONTENT[:-1] + b"?")
    verdict = judge(with_artifacts(other), artifacts=asked)
    assert (verdict.exit, codes(verdict) - {"head.first_seen"}) == (1, {"artifact.altered"})


def test_an_artifact_of_another_size_than_the_receipt_says_is_altered():
    ledger = Builder()
    ledger.header()
    ledger.grant()
    ledger.opening()
    ledger.outcome(ledger.intent(), artifacts=[{**member_of(CONTENT), "size_bytes": 5}])
    ledger.run()
    ledger.commit()
    bundle = replace(ledger.bundle(ledger.rows[-1].id), artifacts=(carried(CONTENT),))
    verdict = judge(print_bundle(bundle), trust=ledger.trust())
    assert (verdict.exit, "artifact.altered" in codes(verdict)) == (1, True)


def salted(erase=None):
    """Return a run whose artifact is salted, and whose opening keeps a run salt."""
    ledger = Builder()
    ledger.header()
    salt = {**member_of(b"s" * 32, "run-salt"), "media_type": "application/octet-stream"}
    ledger.opening(artifacts=[salt])
    stored = b"s" * 32 + CONTENT
    outcome = ledger.outcome(ledger.intent(), artifacts=[member_of(stored, salted=True)])
    root = ledger.run()
    if erase is not None:
        ledger.erasure("sha256:" + sha256(stored).hexdigest(), outcome, **erase)
    ledger.commit()
    return ledger, root, stored


def test_salt_counts_for_the_digest_and_not_for_the_size_and_a_run_salt_is_not_asked_for():
    ledger, root, stored = salted()
    bundle = replace(ledger.bundle(root), artifacts=(carried(stored),))
    assert judge(print_bundle(bundle), trust=ledger.trust(), artifacts=True).exit == 0


def test_an_erased_artifact_costs_no_proof():
    ledger, root, _ = salted(erase={})
    bundle = ledger.bundle(root)
    assert judge(print_bundle(bundle), trust=ledger.trust(), artifacts=True).exit == 5
    told = replace(bundle, items=(*bundle.items, ledger.item(len(ledger.rows) - 1)))
    verdict = judge(print_bundle(told), trust=ledger.trust(), artifacts=True)
    assert (verdict.exit, "artifact.erased" in {check.code for check in verdict.checks}) == (0, True)


def test_an_erasure_of_a_stranger_counts_for_his_verdict_only():
    ledger, root, _ = salted(erase={"issuer": party("other-issuer")})
    bundle = ledger.bundle(root)
    told = replace(bundle, items=(*bundle.items, ledger.item(len(ledger.rows) - 1)))
    assert judge(print_bundle(told), trust=ledger.trust(), artifacts=True).exit == 3


def test_artifacts_that_nothing_refers_to_are_said():
    verdict = judge(with_artifacts(carried(CONTENT), carried(b"more")))
    assert (verdict.exit, len(verdict.notes)) == (0, 2)


def test_a_counter_seal_that_is_none_is_not_passed_over():
    carried = CarriedSeal((), LEDGER.rows[4].envelope)
    verdict = judge(print_bundle(replace(parse_bundle(FILES["bundle"]), counter_seals=(carried,))))
    assert (verdict.exit, "format.unknown" in codes(verdict)) == (3, True)


# Consistency files.


def consistency(**change):
    return print_consistency(replace(consistency_of(LEDGER, 0), **change))


def test_a_consistency_file_shows_heads_and_no_receipts():
    verdict = judge(consistency())
    assert (verdict.exit, verdict.coverage.count, verdict.head.size) == (0, 0, 6)
    assert "no receipt" in verdict.notes[-1]
    assert judge(print_consistency(consistency_of(LEDGER, 0, 0))).exit == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"proof": ()}, "proof.malformed"),
        ({"old": LEDGER.notes[1]}, "proof.consistency"),
        ({"old": LEDGER.notes[2]}, "proof.malformed"),
        ({"old": SMALL.notes[0].replace(b"\n1\n", b"\n2\n")}, "proof.malformed"),
        ({"keyring": ()}, "chain.first_entry"),
        ({"old": b"x"}, "bundle.malformed"),
        ({"new": LEDGER.notes[1]}, "proof.inclusion"),
    ],
    ids=str,
)
def test_a_consistency_file_with_another_part_does_not_hold(change, code):
    verdict = judge(consistency(**change))
    assert (verdict.exit, code in codes(verdict), verdict.remember) == (1, True, None), verdict.findings


def test_the_older_head_of_another_history_is_not_joined():
    other = Builder(seed=7)
    other.header()
    other.commit()
    verdict = judge(consistency(old=other.notes[0]))
    assert (verdict.exit, "proof.consistency" in codes(verdict)) == (1, True)


def rotated():
    """Return a ledger whose log key rotates at index 1; its heads have sizes 1, 2, 3."""
    ledger = Builder()
    ledger.header()
    ledger.commit()
    old = ledger.log
    ledger.key(party("log-2", "issuer"), old.key, role="log", next_=test_key("log-3").key)
    ledger.commit(also=(old,))
    ledger.grant()
    ledger.commit()
    return ledger, old


def test_each_head_is_signed_by_the_log_key_in_force_at_its_size():
    ledger, old = rotated()
    for first in (0, 1):
        data = print_consistency(consistency_of(ledger, first))
        assert judge(data, trust=ledger.trust()).exit == 0
    ledger.commit(key=old)
    verdict = judge(print_consistency(consistency_of(ledger, 0)), trust=ledger.trust())
    assert (verdict.exit, "head.unsigned" in codes(verdict)) == (1, True)
    forged = replace(consistency_of(ledger, 2, 2), old=ledger.notes[-1])
    assert judge(print_consistency(consistency_of(ledger, 2, 2)), trust=ledger.trust()).exit == 0
    verdict = judge(print_consistency(forged), trust=ledger.trust())
    assert (verdict.exit, [c.name for c in verdict.checks if c.code == "head.unsigned"]) == (1, ["older head"])


@pytest.mark.parametrize("name", ["tlog-proof", "head", "consistency"])
@pytest.mark.parametrize("option", [{"closed": True}, {"artifacts": True}], ids=str)
def test_what_a_kind_cannot_show_and_is_asked_for_is_not_established(name, option):
    verdict = judge(FILES[name], **option)
    assert (verdict.exit, "check.unsupported" in codes(verdict)) == (3, True)
