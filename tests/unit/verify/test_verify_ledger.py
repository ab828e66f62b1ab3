"""A whole ledger: what a good one shows, and each fault as its own finding at its place."""

from __future__ import annotations

import pytest

from ledger import canonical
from ledger.checkpoint import Head, sign_head
from ledger.digest import digest
from tests.reference.build import ORIGIN, Builder, party, small, test_key
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.options import Options, parse_options


def judge(ledger, *, memory=None, trust="own", **options):
    chosen = ledger.trust() if trust == "own" else trust
    return verify_ledger(ledger.segments(), trust=chosen, memory=memory, options=Options(**options))


def codes(verdict):
    return [check.code for check in verdict.findings]


def started():
    ledger = Builder()
    ledger.header()
    ledger.commit()
    return ledger


def test_a_good_ledger_is_ok_on_a_machine_that_pins_and_remembers_it():
    ledger = small()
    verdict = judge(ledger, memory=ledger.notes[-1])
    assert (verdict.exit, verdict.status, verdict.findings) == (0, "ok", ())
    assert (verdict.coverage.first, verdict.coverage.end, verdict.coverage.count) == (0, 14, 14)
    assert verdict.head.size == 14
    assert (verdict.covered.own_seal, verdict.covered.sealed_root, verdict.covered.signed_head) == (6, 8, 0)
    assert {check.name for check in verdict.checks} >= {"chain", "heads", "receipts", "seals", "trees", "memory"}


def test_first_sight_of_a_pinned_ledger_is_ok_says_so_and_remembers_the_head():
    ledger = small()
    verdict = judge(ledger)
    assert (verdict.exit, codes(verdict)) == (0, ["head.first_seen"])
    assert verdict.remember == ledger.notes[-1]


def test_a_stranger_s_ledger_is_not_established_and_not_remembered():
    verdict = judge(small(), trust=None)
    assert verdict.exit == 3
    assert codes(verdict)[:2] == ["trust.log_key_unpinned", "trust.issuer_unpinned"]
    assert verdict.remember is None


def test_bytes_only_says_that_it_did_not_look_at_receipts():
    ledger = small()
    verdict = judge(ledger, memory=ledger.notes[-1], bytes_only=True)
    assert verdict.exit == 0
    assert "bytes only" in verdict.notes[0]
    assert not {check.name for check in verdict.checks} & {"receipts", "seals", "trees", "attribution", "issuers"}


def test_nothing_is_never_ok():
    for segments in ((), (Segment("journal/0000000000000000.jsonl", 0, b""),)):
        verdict = verify_ledger(segments, trust=None)
        assert verdict.exit == 1
        assert {"head.missing", "coverage.empty"} <= set(codes(verdict))


def test_a_ledger_in_several_segments_is_one_chain():
    ledger = small()
    cut = ledger.journal().index(b'{"head"')
    cut = ledger.journal().index(b"\n", cut) + 1
    data = ledger.journal()
    parts = (Segment("a", 0, data[:cut]), Segment("b", 1, data[cut:]))
    assert verify_ledger(parts, trust=ledger.trust()).exit == 0
    for wrong in (parts[1:], parts[::-1], (parts[0], Segment("b", 2, data[cut:])), (parts[0], parts[0], parts[1])):
        assert verify_ledger(wrong, trust=ledger.trust()).exit == 1


def test_open_runs_are_listed_and_leave_the_exit_code_alone_unless_asked_to_be_closed():
    ledger = started()
    run = ledger.opening()
    ledger.call()
    ledger.commit()
    verdict = judge(ledger)
    assert verdict.exit == 0
    listed = [check for check in verdict.checks if check.code == "run.listed_open"]
    assert [check.where for check in listed] == [f"run {run}"]
    assert verdict.covered.signed_head == 2
    assert judge(ledger, closed=True).exit == 3
    ledger.run()
    ledger.commit()
    assert judge(ledger, closed=True).exit == 0


def test_a_clock_that_goes_back_is_an_anomaly_and_no_failure():
    ledger = started()
    ledger.grant(entry={"recorded_at": "2026-11-30T08:00:00.000Z"})
    ledger.commit()
    verdict = judge(ledger)
    assert verdict.exit == 0
    assert [(check.code, check.where) for check in verdict.checks if check.code == "time.step_back"] == [
        ("time.step_back", "entry 1")
    ]


# Faults of the chain.


def chain_fault(change):
    ledger = started()
    ledger.grant()
    ledger.grant(entry=change)
    ledger.grant()
    ledger.commit()
    return ledger


ZEROS = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"previous": ZEROS}, "chain.previous"),
        ({"index": 3}, "chain.index"),
        ({"keyring": 1}, "chain.keyring"),
        ({"envelope": ZEROS}, "entry.envelope_digest"),
        ({"receipt": ZEROS}, "entry.receipt_id"),
    ],
)
def test_each_member_of_an_entry_that_does_not_follow_is_its_own_finding(change, code):
    verdict = judge(chain_fault(change))
    assert verdict.exit == 1
    first = verdict.findings[0]
    assert first.code == code
    assert first.where.startswith(f"entry {change.get('index', 2)}, journal/0000000000000000.jsonl:4 (byte ")


@pytest.mark.parametrize("index", range(14))
def test_a_removed_entry_is_found(index):
    ledger = small()
    ledger.lines.remove(ledger.rows[index].line)
    verdict = judge(ledger, memory=ledger.notes[-1])
    assert verdict.exit == 1
    assert "chain.index" in codes(verdict) or "head.size" in codes(verdict)


@pytest.mark.parametrize("index", range(13))
def test_two_swapped_entries_are_found(index):
    ledger = small()
    one, other = (ledger.lines.index(ledger.rows[each].line) for each in (index, index + 1))
    ledger.lines[one], ledger.lines[other] = ledger.lines[other], ledger.lines[one]
    verdict = judge(ledger, memory=ledger.notes[-1])
    assert verdict.exit == 1
    assert "chain.index" in codes(verdict)


def test_a_first_entry_that_is_no_header_is_found():
    ledger = Builder()
    ledger.grant()
    ledger.commit()
    assert "chain.first_entry" in codes(judge(ledger, trust=None))
    second = started()
    second.header()
    second.commit()
    assert "chain.first_entry" in codes(judge(second))


# Faults of heads.


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"root": bytes(32)}, "head.root"),
        ({"size": 3}, "head.size"),
        ({"origin": "ledger.invalid/other"}, "head.origin"),
        ({"previous_head": ZEROS}, "head.link"),
        ({"key": test_key("other-log")}, "head.unsigned"),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_each_part_of_a_head_that_does_not_hold_is_its_own_finding(change, code, last):
    ledger = started()
    ledger.grant()
    ledger.commit(**change)
    if not last:
        ledger.grant()
        ledger.commit()
    verdict = judge(ledger)
    assert verdict.exit == 1
    assert verdict.findings[0].code == code
    assert verdict.findings[0].where.startswith("journal/0000000000000000.jsonl:4 (byte ")


def forged_signature(ledger):
    """Return the ledger's journal with the signature of its second head over another root, and links that follow."""
    note = sign_head(Head(ORIGIN, 2, bytes(32)), test_key("log"))
    return note[note.rindex(b" ") + 1 : -1]


def test_a_signature_in_the_middle_is_checked_only_where_every_head_is_asked_for():
    ledger = started()
    ledger.grant()
    good = ledger.commit()
    wrong = forged_signature(ledger)
    ledger.lines[-1] = ledger.lines[-1].replace(good[good.rindex(b" ") + 1 : -1], wrong)
    ledger._head_line = digest(ledger.lines[-1])
    assert (judge(ledger).exit, codes(judge(ledger))) == (1, ["head.signature"])
    ledger.grant()
    ledger.commit()
    assert judge(ledger).exit == 0
    verdict = judge(ledger, every_head=True)
    assert (verdict.exit, verdict.findings[0].code) == (1, "head.signature")


def test_a_head_that_ends_no_entries_is_found():
    ledger = started()
    ledger.commit()
    assert judge(ledger).findings[0].code == "head.empty"


def test_a_cosigned_head_is_a_good_head():
    ledger = started()
    ledger.grant()
    ledger.commit(also=(test_key("witness"),))
    assert judge(ledger).exit == 0


# Faults of receipts, seals and trees.


def run_with(build):
    ledger = started()
    build(ledger)
    ledger.commit()
    return ledger


def missing_child(ledger):
    ledger.opening()
    ledger.step(digest(b"nothing"))
    ledger.run()


def repeated_child(ledger):
    ledger.opening()
    call = ledger.call()
    ledger.step(call)
    ledger.step(call)
    ledger.run()


def child_twice_in_one(ledger):
    ledger.opening()
    call = ledger.call()
    ledger.step(call, call)
    ledger.run()


def left_out(ledger):
    run = ledger.opening()
    ledger.call()
    ledger.run(children=[run])


def after_close(ledger):
    run = ledger.opening()
    ledger.run()
    ledger.intent(run=run)


def closed_twice(ledger):
    run = ledger.opening()
    ledger.run()
    ledger.run(run, children=[run])


def opening_not_first(ledger):
    run = ledger.opening()
    call = ledger.call()
    ledger.run(children=[call, run])


def opening_in_a_step(ledger):
    run = ledger.opening()
    step = ledger.step(run)
    ledger.run(children=[step])


def intent_not_first(ledger):
    ledger.opening()
    intent = ledger.intent()
    refused = ledger.decision()
    ledger.outcome(intent, children=[refused, intent])
    ledger.run()


def outcome_of_a_decision(ledger):
    ledger.opening()
    refused = ledger.decision()
    ledger.outcome(refused)
    ledger.run()


def child_of_another_run(ledger):
    first = ledger.opening("one")
    call = ledger.call()
    ledger.opening("two")
    ledger.step(call)
    ledger.run()
    ledger.run(first)


def root_of_no_child_run(ledger):
    ledger.opening("one")
    other = ledger.run()
    ledger.opening("two")
    ledger.step(other)
    ledger.run()


def approval_committed(ledger):
    ledger.opening()
    ledger.step(ledger.approval())
    ledger.run()


def child_run_left_out(ledger):
    run = ledger.opening()
    child = ledger.opening("child", parent=run)
    ledger.run(child)
    ledger.current = run
    ledger.run(run, children=[run])


def never_opened(ledger):
    ledger.intent(run=digest(b"no run"))


def too_deep(ledger):
    ledger.opening()
    last = ledger.decision()
    for _ in range(64):
        last = ledger.step(last)
    ledger.run()


def too_many_children(ledger):
    ledger.opening()
    ledger.step(*(ledger.decision() for _ in range(10_001)))
    ledger.run()


@pytest.mark.parametrize(
    ("build", "code", "where"),
    [
        (missing_child, "tree.missing", "entry 2"),
        (repeated_child, "tree.repeated", "entry 5"),
        (child_twice_in_one, "tree.repeated", "entry 4"),
        (left_out, "tree.uncommitted", "entry 3"),
        (after_close, "tree.after_close", "entry 3"),
        (closed_twice, "tree.after_close", "entry 3"),
        (opening_not_first, "tree.order", "entry 4"),
        (opening_in_a_step, "tree.order", "entry 2"),
        (intent_not_first, "tree.order", "entry 4"),
        (outcome_of_a_decision, "tree.order", "entry 3"),
        (child_of_another_run, "tree.missing", "entry 5"),
        (root_of_no_child_run, "tree.missing", "entry 4"),
        (approval_committed, "tree.missing", "entry 3"),
        (child_run_left_out, "tree.uncommitted", "entry 3"),
        (never_opened, "run.unknown_opening", "entry 1"),
        (too_deep, "tree.too_deep", "entry 67"),
        (too_many_children, "receipt.malformed", "entry 10003"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_fault_of_a_tree_is_its_own_finding(build, code, where):
    verdict = judge(run_with(build))
    assert verdict.exit == 1
    first = verdict.findings[0]
    assert (first.code, first.where) == (code, where)


def test_the_deepest_and_the_longest_lawful_trees_are_good():
    def deep(ledger):
        ledger.opening()
        last = ledger.decision()
        for _ in range(63):
            last = ledger.step(last)
        ledger.run()

    assert judge(run_with(deep)).exit == 0

    def wide(ledger):
        ledger.opening()
        for _ in range(3):
            ledger.step(*(ledger.decision() for _ in range(9_999)))
        ledger.run()

    assert judge(run_with(wide)).exit == 0  # 1 + 3 * 10,000 + 1 receipts, the most there may be

    def wider(ledger):
        ledger.opening()
        for _ in range(3):
            ledger.step(*(ledger.decision() for _ in range(9_999)))
        ledger.decision()
        ledger.run()

    verdict = judge(run_with(wider))
    assert (verdict.exit, verdict.findings[0].code) == (1, "tree.too_many")


def test_a_resolution_may_follow_the_close_and_kinds_that_stand_alone_may_stand_anywhere():
    def build(ledger):
        run = ledger.opening()
        intent = ledger.intent()
        ledger.outcome(intent, status="ambiguous", reason="act.exception")
        ledger.run()
        ledger.resolution(intent, run=run)
        ledger.approval()
        ledger.grant()
        ledger.evaluation(run)
        ledger.erasure(digest(b"artifact"), intent)
        ledger.repair()
        ledger.import_()

    verdict = judge(run_with(build))
    assert verdict.exit == 0
    assert verdict.covered.own_seal == 10


OTHER = party("other-issuer", "other")


def root_of_another(ledger):
    ledger.opening()
    ledger.call()
    ledger.run(issuer=OTHER)


def same_name_other_key(ledger):
    ledger.opening()
    ledger.call()
    ledger.run(issuer=party("other-issuer", "issuer"))


def same_key_other_name(ledger):
    ledger.opening()
    ledger.call(issuer=party("issuer", "another"))
    ledger.run()


def step_of_another(ledger):
    ledger.opening()
    ledger.step(ledger.call(), issuer=OTHER, seal=True)
    ledger.run()


def two_levels_below(ledger):
    ledger.opening()
    ledger.step(ledger.step(ledger.decision(issuer=OTHER)))
    ledger.run()


@pytest.mark.parametrize(
    ("build", "where"),
    [
        (root_of_another, "entry 2"),
        (same_name_other_key, "entry 2"),
        (same_key_other_name, "entry 2"),
        (step_of_another, "entry 2"),
        (two_levels_below, "entry 2"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_unsealed_receipt_under_the_seal_of_another_issuer_is_borrowed(build, where):
    verdict = judge(run_with(build))
    assert verdict.exit == 1
    found = [check for check in verdict.findings if check.exit == 1]
    assert next((check.code, check.where) for check in found) == ("receipt.borrowed_issuer", where)
    assert {check.code for check in found} == {"receipt.borrowed_issuer"}


def test_a_sealed_receipt_of_another_issuer_stands_in_a_run_by_its_own_seal():
    def build(ledger):
        ledger.opening()
        inner = ledger.decision(issuer=OTHER)
        ledger.step(inner, issuer=OTHER, seal=True)
        ledger.run()

    verdict = judge(run_with(build))
    assert verdict.exit == 3
    assert [check.code for check in verdict.findings if check.exit] == ["trust.issuer_unpinned"]


ALWAYS = {
    "opening": lambda ledger, **how: ledger.opening(**how),
    "run": lambda ledger, **how: (ledger.opening(), ledger.run(**how)),
    "approval": lambda ledger, **how: ledger.approval(**how),
    "resolution": lambda ledger, **how: ledger.resolution(digest(b"i"), **how),
    "grant": lambda ledger, **how: ledger.grant(**how),
    "evaluation": lambda ledger, **how: ledger.evaluation(digest(b"s"), **how),
    "import": lambda ledger, **how: ledger.import_(**how),
    "erasure": lambda ledger, **how: ledger.erasure(digest(b"a"), digest(b"r"), **how),
    "hold": lambda ledger, **how: ledger.hold(digest(b"a"), **how),
    "repair": lambda ledger, **how: ledger.repair(**how),
    "key": lambda ledger, **how: ledger.key(party("issuer-2", "issuer"), ledger.issuer.key, **how),
}


@pytest.mark.parametrize("kind", sorted(ALWAYS))
@pytest.mark.parametrize(
    ("how", "code"),
    [({"seal": False}, "seal.absent"), ({"seal": test_key("other-issuer")}, "seal.issuer")],
)
def test_a_kind_that_is_always_sealed_fails_without_its_own_issuer_s_seal(kind, how, code):
    ledger = run_with(lambda found: ALWAYS[kind](found, **how))
    verdict = judge(ledger)
    assert verdict.exit == 1
    assert code in codes(verdict)


def test_a_header_without_its_seal_fails():
    ledger = Builder()
    ledger.header(seal=False)
    ledger.commit()
    assert "seal.absent" in codes(judge(ledger))


def test_a_seal_over_other_bytes_fails():
    ledger = started()
    other = ledger.grant()
    ledger.grant()
    first, second = (ledger.rows[each].envelope for each in (1, 2))
    cut = b'"signature":"'
    ledger.lines.pop()
    row = ledger.rows.pop()
    stolen = first[first.rindex(cut) :]
    forged = second[: second.rindex(cut)] + stolen
    ledger._previous = digest(ledger.rows[-1].entry)
    from ledger.envelope import parse_envelope
    from ledger.merkle import Frontier, leaf_hash

    ledger._frontier = Frontier()
    for each in ledger.rows:
        ledger._frontier.append(leaf_hash(each.entry))
    ledger._append(parse_envelope(forged), "grant", {})
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, verdict.findings[0].code, verdict.findings[0].where) == (1, "seal.invalid", "entry 2")
    assert row.id != other


def test_a_seal_that_is_not_needed_is_checked_all_the_same():
    ledger = run_with(lambda found: (found.opening(), found.decision(seal=test_key("other-issuer"))))
    assert "seal.issuer" in codes(judge(ledger))


def test_a_receipt_of_another_ledger_fails():
    ledger = run_with(lambda found: found.grant(ledger="ledger.invalid/other"))
    verdict = judge(ledger)
    assert (verdict.exit, verdict.findings[0].code) == (1, "receipt.foreign_ledger")


def test_the_same_receipt_twice_fails_and_names_both_places():
    ledger = started()
    id_ = ledger.grant()
    ledger.add("grant", payload=ledger.payload(1), seal=True)
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, verdict.findings[0].code, verdict.findings[0].where) == (1, "receipt.repeated", "entry 2")
    assert id_ in verdict.findings[0].message
    assert "entry 1" in verdict.findings[0].message
    assert judge(ledger, bytes_only=True).exit == 1


def test_an_opening_that_stands_twice_while_its_run_is_open_is_reopened():
    ledger = started()
    ledger.opening()
    ledger.add("opening", payload=ledger.payload(1), seal=True)
    ledger.commit()
    assert {"run.reopened", "receipt.repeated"} <= set(codes(judge(ledger)))


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b'{"a": 1}', "receipt.canonical"),
        (b'{"b":1,"a":1}', "receipt.canonical"),
        (b'{"a":1.5}', "receipt.malformed"),
        (b'{"a":1}', "receipt.malformed"),
        (b'{"kind":"prune","schema":"receipt-ledger.receipt/v1"}', "format.unknown"),
        (b'{"schema":"receipt-ledger.receipt/v2"}', "format.unknown"),
        (b'{"kind":"grant","schema":"receipt-ledger.receipt/v1"}', "receipt.malformed"),
    ],
)
def test_a_payload_that_is_no_receipt_is_found_and_an_unknown_one_is_not_called_altered(payload, code):
    ledger = run_with(lambda found: found.add("step", payload=payload))
    verdict = judge(ledger)
    assert (verdict.exit, verdict.findings[0].code) == (3 if code == "format.unknown" else 1, code)


def test_an_unknown_member_under_a_known_schema_is_refused():
    ledger = run_with(lambda found: found.grant(extra=1))
    assert judge(ledger).findings[0].code == "receipt.malformed"


def test_ids_that_begin_alike_in_bytes_that_cannot_be_read_again_are_not_passed():
    ledger = started()
    ledger.grant()
    ledger.add("grant", payload=ledger.payload(1), seal=True)
    ledger.commit()
    verdict = verify_ledger(iter(ledger.segments()), trust=ledger.trust())
    assert (verdict.exit, next(check.code for check in verdict.findings if check.name == "ids")) == (
        3,
        "check.unreachable",
    )
    good = small()
    assert verify_ledger(iter(good.segments()), trust=good.trust()).exit == 0


def test_a_run_of_more_receipts_than_a_tree_may_hold_is_found_once_and_followed_no_further():
    def build(ledger):
        run = ledger.opening()
        for _ in range(30_002):
            ledger.decision()
        ledger.uncommitted[run] = [run]
        ledger.run()

    verdict = judge(run_with(build))
    assert (verdict.exit, [check.code for check in verdict.findings if check.exit]) == (1, ["tree.too_many"])


# What a later version may have written.


def later_kind(ledger):
    run = ledger.opening()
    payload = canonical.encode({"kind": "later", "run": run, "schema": "receipt-ledger.receipt/v1"})
    later = ledger.add("step", payload=payload)
    ledger.decision()
    ledger.run(children=[run, later])


def later_type(ledger):
    ledger.opening()
    call = ledger.call()
    later = ledger.add("step", payload=b'{"children":[]}', payload_type="application/vnd.later+json", seal=True)
    ledger.step(call)
    ledger.step(later)
    ledger.run()


def later_entry(ledger):
    run = ledger.opening()
    later = ledger.decision(entry={"schema": "receipt-ledger.entry/v2"})
    ledger.run(children=[run, later])


@pytest.mark.parametrize("build", [later_kind, later_type, later_entry])
def test_what_is_unknown_is_not_established_and_nothing_is_called_altered_or_missing_for_it(build):
    verdict = judge(run_with(build))
    assert verdict.exit == 3, verdict.findings
    assert "format.unknown" in codes(verdict)
    assert {check.exit for check in verdict.findings} <= {0, 3}


def test_the_seal_of_an_unknown_receipt_is_checked_all_the_same():
    ledger = run_with(lambda found: found.add("step", payload=b'{"schema":"receipt-ledger.receipt/v9"}', seal=True))
    assert judge(ledger).exit == 3
    other = ledger.rows[0].envelope
    start = other.rindex(b'"signature":"') + 13
    from ledger.envelope import parse_envelope

    broken = Builder()
    broken.header()
    broken.commit()
    envelope = ledger.rows[1].envelope
    at = envelope.rindex(b'"signature":"') + 13
    broken._append(parse_envelope(envelope[:at] + other[start : start + 88] + envelope[at + 88 :]), "step", {})
    broken.commit()
    verdict = judge(broken)
    assert (verdict.exit, "seal.invalid" in codes(verdict)) == (1, True)


# Trust.


def test_an_approver_that_issues_as_well_is_asked_in_both_roles():
    ledger = run_with(lambda found: (found.approval(), found.grant(issuer=party("approver"))))
    verdict = judge(ledger)
    assert (verdict.exit, "trust.issuer_mismatch" in codes(verdict)) == (4, True)


def test_another_log_key_header_or_issuer_key_than_the_pinned_one_is_not_trusted():
    ledger = small()
    text = ledger.trust_file().decode()
    from verify.trust import parse_trust

    def with_(old, new):
        assert old in text
        return parse_trust(text.replace(old, new).encode(), source="t", allow_test_keys=True)

    other = test_key("other-issuer").key
    for old, new, code in (
        (f'log_key = "{ledger.log.key}"', f'log_key = "{other}"', "trust.log_key_mismatch"),
        (f'header = "{ledger.rows[0].id}"', f'header = "{ZEROS}"', "trust.header_mismatch"),
        (f'key = "{ledger.issuer.key}"', f'key = "{other}"', "trust.issuer_mismatch"),
        ('name = "issuer"', 'name = "somebody"', "trust.issuer_mismatch"),
    ):
        verdict = judge(ledger, trust=with_(old, new))
        assert (verdict.exit, code in codes(verdict), verdict.remember) == (4, True, None)


def test_a_log_key_that_is_pinned_for_something_else_is_not_trusted_for_a_ledger():
    ledger = small()
    from verify.trust import parse_trust

    text = f'[[notary]]\nname = "n"\nkey = "{ledger.log.key}"\n'.encode()
    verdict = judge(ledger, trust=parse_trust(text, source="t", allow_test_keys=True))
    assert (verdict.exit, "trust.log_key_mismatch" in codes(verdict), verdict.remember) == (4, True, None)


def test_an_issuer_pinned_for_other_origins_does_not_speak_here():
    ledger = small()
    from verify.trust import parse_trust

    text = ledger.trust_file().replace(b"[[approver]]", b'origin = ["ledger.invalid/elsewhere"]\n[[approver]]')
    verdict = judge(ledger, trust=parse_trust(text, source="t", allow_test_keys=True))
    assert (verdict.exit, "trust.issuer_mismatch" in codes(verdict)) == (4, True)


# Keys over time.


def rotated(**members):
    ledger = started()
    new = party("issuer-2", "issuer")
    old = members.pop("retired", ledger.issuer.key)
    ledger.opening()
    ledger.call()
    ledger.run()
    ledger.key(new, old, **members)
    ledger.grant()
    ledger.commit()
    return ledger


def test_a_rotated_issuer_is_believed_from_the_pinned_first_key():
    assert judge(rotated()).exit == 0


def test_the_commit_of_a_log_rotation_carries_the_line_of_the_retired_key_too():
    for also, exit_ in (((test_key("log"),), 0), ((), 1), ((test_key("other-log"),), 1)):
        ledger = started()
        ledger.key(party("log-2", "issuer"), ledger.log.key, role="log")
        ledger.commit(also=also)
        verdict = judge(ledger)
        assert (verdict.exit, "head.unsigned" in codes(verdict)) == (exit_, exit_ == 1)


def test_a_rotated_log_key_signs_from_the_next_head_on():
    ledger = started()
    ledger.key(party("log-2", "issuer"), ledger.log.key, role="log")
    ledger.commit(also=(test_key("log"),))
    ledger.grant()
    ledger.commit()
    assert judge(ledger).exit == 0
    ledger.grant()
    ledger.commit(key=test_key("log"))
    verdict = judge(ledger)
    assert (verdict.exit, verdict.findings[0].code) == (1, "head.unsigned")


@pytest.mark.parametrize(
    "members",
    [
        {"retired": test_key("other-issuer").key},
        {"issuer": party("issuer")},
        {"key": test_key("other-issuer").key},
        {"issuer": party("issuer-2", "somebody")},
        {"from_index": 1},
    ],
)
def test_a_rotation_that_does_not_follow_is_found(members):
    verdict = judge(rotated(**members))
    assert verdict.exit == 1
    assert "key.chain" in codes(verdict)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"log_key": "ed25519:" + "00" * 32}, "key.chain"),
        ({"log_key": "ed25519:" + "ff" * 32}, "key.chain"),
        ({"log_key": test_key("issuer").key}, "key.chain"),
        ({"log_key": "later:" + "00" * 32}, "format.unknown"),
        ({"format": "receipt-ledger/v2"}, "format.unknown"),
    ],
)
def test_a_header_with_keys_or_a_format_that_must_not_be_used_is_found(members, code):
    ledger = Builder()
    ledger.header(**members)
    ledger.commit()
    verdict = judge(ledger, trust=None)
    assert (verdict.exit, code in codes(verdict)) == (3 if code == "format.unknown" else 1, True)


def test_receipts_at_or_after_a_revocation_s_index_are_not_trusted_and_those_before_stay_good():
    # The revoked key's last receipt is the run at entry 4.
    assert judge(rotated(action="revoke", from_index=5)).exit == 0
    verdict = judge(rotated(action="revoke", from_index=4))
    assert (verdict.exit, [check.code for check in verdict.findings if check.exit]) == (4, ["key.revoked"])


def test_a_retired_key_that_seals_again_is_not_trusted():
    ledger = rotated()
    ledger.grant(issuer=party("issuer"))
    ledger.commit()
    verdict = judge(ledger)
    assert (verdict.exit, [check.code for check in verdict.findings if check.exit]) == (4, ["key.retired"])


# Memory.


def test_a_ledger_cut_at_any_commit_is_shorter_than_remembered():
    ledger = small()
    heads = [number for number, line in enumerate(ledger.lines) if line.startswith(b'{"head"')]
    for number in heads[:-1]:
        data = b"".join(line + b"\n" for line in ledger.lines[: number + 1])
        verdict = verify_ledger((Segment("j", 0, data),), trust=ledger.trust(), memory=ledger.notes[-1])
        assert (verdict.exit, verdict.findings[0].code) == (1, "head.shorter")
        assert verdict.remember is None
        assert verify_ledger((Segment("j", 0, data),), trust=ledger.trust()).exit == 0


def test_a_ledger_that_grew_from_any_remembered_head_is_good_and_the_new_head_is_remembered():
    ledger = small()
    for note in ledger.notes[:-1]:
        verdict = judge(ledger, memory=note)
        assert (verdict.exit, verdict.findings, verdict.remember) == (0, (), ledger.notes[-1])
    assert judge(ledger, memory=ledger.notes[-1]).remember is None


@pytest.mark.parametrize("more", [0, 3])
def test_another_history_than_the_remembered_one_is_forked(more):
    first, second = Builder(), Builder(seed=1)
    for ledger in (first, second):
        ledger.header(nonce="00" * 16)
        ledger.commit()
        for _ in range(4):
            ledger.grant()
        ledger.commit()
    for _ in range(more):
        second.grant()
    if more:
        second.commit()
    assert first.rows[0].id == second.rows[0].id
    verdict = judge(second, memory=first.notes[-1])
    assert (verdict.exit, codes(verdict), verdict.remember) == (1, ["head.forked"], None)


def test_a_remembered_note_of_another_key_is_unreconciled_and_accuses_nobody():
    ledger = small()
    other = sign_head(Head(ORIGIN, 5, bytes(32)), test_key("other-log"))
    verdict = judge(ledger, memory=other)
    assert (verdict.exit, codes(verdict), verdict.remember) == (3, ["head.unreconciled"], None)


def test_memory_that_is_no_note_is_unreconciled():
    verdict = judge(small(), memory=b"not a note")
    assert (verdict.exit, codes(verdict), verdict.remember) == (3, ["head.unreconciled"], None)


def test_memory_that_was_asked_for_and_holds_nothing_is_not_established():
    assert judge(small(), memory=None, closed=False).exit == 0
    verdict = verify_ledger(
        small().segments(), trust=small().trust(), memory=None, options=parse_options(require=("memory",))
    )
    assert (verdict.exit, codes(verdict)) == (3, ["head.unseen"])


# Options and the verdict itself.


def test_accepting_takes_a_code_out_of_the_exit_and_is_printed():
    ledger = small()
    options = parse_options(accept=("trust.log_key_unpinned", "trust.issuer_unpinned", "trust.approver_unpinned"))
    verdict = verify_ledger(ledger.segments(), trust=None, options=options)
    assert verdict.exit == 0
    assert canonical.decode(verdict.to_json())["accepted"] == sorted(options.accept)
    assert len(verdict.findings) >= 3


def test_what_this_version_cannot_check_is_not_passed():
    options = parse_options(require=("artifacts",))
    verdict = verify_ledger(small().segments(), trust=small().trust(), options=options)
    assert (verdict.exit, "check.unsupported" in codes(verdict)) == (3, True)


def test_notaries_that_are_asked_for_and_of_whom_nothing_is_at_hand_are_missed():
    options = parse_options(require=("counter-seal=2",))
    verdict = verify_ledger(small().segments(), trust=small().trust(), options=options)
    assert (verdict.exit, "trust.quorum" in codes(verdict)) == (4, True)


def test_findings_are_bounded_and_counted():
    ledger = started()
    for _ in range(250):
        ledger.intent(run=digest(b"no run"))
    ledger.commit()
    verdict = judge(ledger)
    found = [check for check in verdict.checks if check.name == "trees"]
    assert len(found) == 101
    assert (found[-1].count, found[-1].message, found[-1].code) == (150, "and 150 more", "run.unknown_opening")
