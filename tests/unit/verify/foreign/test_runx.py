"""runx on receipts of our own making: each accept with a reject beside it."""

import base64
import copy
import json

import pytest

from ledger.digest import digest
from tests.reference.runx_receipts import KEY, KID, PUBLIC, canonical, commit, receipt, seal, text
from verify.foreign import recognise, verify_foreign
from verify.foreign.runx import judge_folder
from verify.foreign.runx.evaluation import decide, evaluator_misfits
from verify.foreign.runx.receipt import signature_bytes
from verify.foreign.runx.resume import bind, resume_misfits
from verify.foreign.runx.single import judge_text
from verify.foreign.runx.stablejson import stable_bytes
from verify.foreign.runx.store import judge_set, judge_store
from verify.foreign.runx.tree import MAX_RECEIPTS, Node, committed_once, walk_tree
from verify.foreign.strict import read
from verify.options import Options
from verify.trust import parse_trust

KEYS = {KID: PUBLIC}.get
TRUST = parse_trust(
    f'[[issuer]]\nname = "{KID}"\nkey = "ed25519:{PUBLIC.hex()}"\n'.encode(), source="test", allow_test_keys=True
)


def codes(data, key_of=KEYS):
    return [(each.code, each.path) for each in judge_text(data, key_of).findings]


def verdict(data, trust=TRUST):
    return verify_foreign(data, subject="x", trust=trust, options=Options())


def changed(path, value, *, reseal=True, **made):
    """A receipt with one place changed and, if asked, everything computed anew."""
    found = receipt(**made)
    at = found
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return seal(found) if reseal else found


def test_a_receipt_signed_by_a_key_that_is_vouched_for_holds():
    found = verdict(text(receipt()))
    assert (found.exit, found.native.status, found.native.code) == (0, "holds", "valid")
    assert verdict(text(receipt()), trust=None).exit == 3
    assert verdict(text(receipt(local=True))).exit == 3


@pytest.mark.parametrize("spelling", ["base64:{url}", "base64:{url}==", "base64:{std}", "base64:{std}=="])
def test_both_alphabets_of_a_signature_are_one_signature(spelling):
    found = receipt()
    raw = signature_bytes(found["signature"]["value"])
    std = base64.b64encode(raw).decode().rstrip("=")
    found["signature"]["value"] = spelling.format(url=std.replace("+", "-").replace("/", "_"), std=std)
    assert codes(text(found)) == []


@pytest.mark.parametrize(
    "value",
    ["base64:", "base64:AAAA", "base64:" + "A" * 86 + "!", "A" * 86, "base64:" + "é" * 86, "base64:" + "A" * 85 + "_="],
)
def test_what_is_no_signature_is_malformed(value):
    found = receipt()
    found["signature"]["value"] = value
    assert codes(text(found)) == [("signature_malformed", "signature.value")]


def test_the_signature_is_over_the_digest_of_the_body_and_not_the_one_claimed():
    other = receipt("other")
    found = receipt()
    found["digest"], found["signature"] = other["digest"], other["signature"]
    assert codes(text(found)) == [("seal_digest_mismatch", "digest"), ("signature_invalid", "signature.value")]


def test_a_key_speaks_only_as_the_issuer_that_it_is_pinned_for():
    found = receipt()
    assert codes(text(found), {KID: bytes(32)}.get) == [("signature_key_hash_mismatch", "issuer.public_key_sha256")]
    other = parse_trust(f'[[issuer]]\nname = "{KID}"\nkey = "ed25519:{"11" * 32}"\n'.encode(), source="t")
    assert verdict(text(found), trust=other).exit == 4
    limited = parse_trust(
        f'[[issuer]]\nname = "{KID}"\nkey = "ed25519:{PUBLIC.hex()}"\norigin = ["ledger.example/a"]\n'.encode(),
        source="t",
        allow_test_keys=True,
    )
    assert verdict(text(found), trust=limited).exit == 3


@pytest.mark.parametrize("type_", ["local", "verifier"])
def test_an_issuer_of_another_type_signs_with_no_key(type_):
    found = receipt()
    found["issuer"]["type"] = type_
    assert ("signature_unsupported_issuer", "issuer.type") in codes(text(found))


def test_a_local_signature_is_that_of_the_body_by_a_local_issuer():
    found = receipt(local=True)
    assert codes(text(found)) == []
    found["signature"]["value"] = "sig:" + digest(b"")
    assert codes(text(found)) == [("signature_invalid", "signature.value")]
    hosted = receipt()
    hosted["signature"]["value"] = "sig:" + hosted["digest"]
    assert codes(text(hosted)) == [("signature_invalid", "signature.value")]


def test_metadata_is_neither_addressed_nor_signed():
    found = receipt()
    found["metadata"] = {"seen": 1}
    assert codes(text(found)) == []


def test_the_lists_and_nulls_that_a_writer_puts_back_count_in_the_digest():
    found = receipt()
    del found["signals"], found["acts"][0]["artifact_refs"], found["authority"]["attenuation"]["subset_proof"]
    assert codes(text(found)) == []
    del found["acts"][0]["summary"]
    assert codes(text(found))[0] == ("receipt_parse_error", "acts[0].summary")


def test_a_shape_that_is_not_known_is_unknown_and_not_altered():
    found = receipt()
    found["outcome"] = "completed"
    unknown = verdict(text(found))
    assert (unknown.exit, unknown.native.status, unknown.native.code) == (3, "unverifiable", "receipt_parse_error")
    assert {check.code for check in unknown.findings} == {"format.unknown", "check.unreachable"}
    # One whose digest reproduces all the same is still of a shape that nobody knows.
    assert verdict(text(seal(found))).exit == 3


def test_no_byte_of_a_signed_receipt_can_change():
    data = canonical(receipt("root", [receipt("leaf")]))
    assert verdict(data).exit == 0
    for place, byte in enumerate(data):
        found = verdict(data[:place] + bytes([byte ^ 1]) + data[place + 1 :])
        assert found is None or found.exit != 0, place


def test_an_altered_receipt_of_the_known_shape_does_not_hold():
    found = changed(("seal", "summary"), "another", reseal=False)
    altered = verdict(text(found))
    assert altered.exit == 1
    assert {check.code for check in altered.findings} == {"foreign.altered", "foreign.signature"}


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (("decisions",), "selects", "decision_selected_act_missing"),
        (("acts", 0, "form"), "revision", "act_form_details_invalid"),
        (
            ("seal", "criteria"),
            [{"criterion_id": "c", "status": "verified", "evidence_refs": [], "verification_refs": []}],
            "seal_criterion_unbound",
        ),
        (
            ("acts", 0, "source_refs"),
            [{"type": "verification", "uri": "u", "proof_kind": "effect_evidence"}],
            "effect_grant_evidence_missing",
        ),
        (
            ("authority", "attenuation", "subset_proof"),
            {
                "parent_authority_ref": {"type": "grant", "uri": "g"},
                "comparison_algorithm": "a",
                "compared_terms": [],
                "result": "subset",
                "checked_at": "2026-05-18T00:00:00Z",
            },
            "authority_attenuation_invalid",
        ),
    ],
)
def test_a_receipt_that_makes_no_sense_is_told_though_it_is_signed(path, value, code):
    if value == "selects":
        value = [
            {
                "decision_id": "d",
                "choice": "open",
                "inputs": {"signal_refs": [], "target_ref": None, "opportunity_refs": [], "selection_ref": None},
                "proposed_intent": receipt()["acts"][0]["intent"],
                "selected_act_id": "act_other",
                "selected_harness_ref": None,
                "justification": {"summary": "s", "evidence_refs": []},
                "closure": None,
                "artifact_refs": [],
            }
        ]
    data = text(changed(path, value))
    assert [found for found, _ in codes(data)] == [code]
    assert verdict(data).exit == 1


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (b'"created_at"', b'"schema": "runx.receipt.v1", "created_at"', "foreign.duplicate_name"),
        (b'"signals": []', b'"signals": NaN', "foreign.malformed"),
        (b'"signals": []', b'"signals": ' + b"[" * 5_000 + b"]" * 5_000, "foreign.too_deep"),
        (b'"summary": "s"', b'"summary": "\\ud800"', "foreign.malformed"),
    ],
)
def test_what_no_strict_reader_takes_is_a_finding(before, after, code):
    data = text(receipt())
    broken = data.replace(before, after, 1)
    assert broken != data
    found = verdict(broken)
    assert (found.exit, found.native.status) == (1, "unreadable")
    assert found.findings[0].code == code


def nodes(*receipts):
    return [node for each in receipts for node in [Node.of(parsed(each))]]


def parsed(value):
    from verify.foreign.runx.receipt import receipt_of

    return receipt_of(value)


def files(*receipts):
    return {f"sha256-{each['id'][7:]}.json": text(each) for each in receipts}


def test_a_tree_of_three_levels_holds_and_one_whose_child_was_swapped_does_not():
    leaf, other = receipt("leaf"), receipt("other")
    middle = receipt("middle", [leaf, other])
    root = receipt("root", [middle])
    good = judge_set(files(root, middle, leaf, other), KEYS)
    assert [len(tree.receipts) for tree in good.trees] == [4]
    assert good.valid
    swapped = copy.deepcopy(leaf)
    swapped["lineage"]["children"] = [commit(other)]
    swapped = seal(swapped)
    assert swapped["id"] == leaf["id"]  # lineage is not part of the id
    bad = judge_set(files(root, middle, swapped, other), KEYS)
    assert "ChildReceiptDigestMismatch" in {each.code for tree in bad.trees for each in tree.findings}
    both = judge_set({**files(root, middle, leaf, other), "again.json": text(swapped)}, KEYS)
    assert [each.code for each in both.conflicts] == ["ambiguous"]
    assert "ChildReceiptAmbiguous" in {each.code for tree in both.trees for each in tree.findings}


def test_the_same_receipt_read_twice_is_one():
    found = receipt()
    assert judge_set({"a": text(found), "b": text(found)}, KEYS).conflicts == []


def test_the_graph_locator_shows_children_that_were_changed_under_one_id():
    leaf, other = receipt("leaf"), receipt("other")
    root = receipt("root", [leaf])
    root["lineage"]["children"] = [commit(other)]
    forged = seal(root)
    assert verdict(text(forged)).exit == 1
    assert verdict(text(receipt("root", [leaf]))).exit == 0
    assert verdict(text(receipt("root", [leaf], graph_locator=False))).exit == 0


def test_a_circle_is_found_and_the_walk_ends():
    a = Node("a", "sha256:a", True, [{"type": "receipt", "uri": "runx:receipt:b", "locator": "sha256:b"}], None)
    b = Node("b", "sha256:b", True, [{"type": "receipt", "uri": "runx:receipt:a", "locator": "sha256:a"}], None)
    assert [each.code for each in walk_tree(a, [b])] == ["ChildReceiptCycle"]


def chain(length):
    made = [Node("n0", "sha256:0", True, [], None)]
    for place in range(1, length):
        below = {"type": "receipt", "uri": f"runx:receipt:n{place - 1}", "locator": f"sha256:{place - 1}"}
        made.append(Node(f"n{place}", f"sha256:{place}", True, [below], None))
    return made[-1], made[:-1]


def test_a_tree_has_at_most_64_levels_below_its_root():
    assert walk_tree(*chain(65)) == ()
    assert committed_once(*chain(65)) == ()
    assert [each.code for each in walk_tree(*chain(66))] == ["ChildReceiptDepthLimit", "OrphanChildReceipt"]
    assert [each.code for each in committed_once(*chain(66))] == ["too_many_levels"]


def wide(count):
    reference = [{"type": "receipt", "uri": f"runx:receipt:n{place}", "locator": "sha256:x"} for place in range(count)]
    return Node("root", "sha256:r", True, reference, None), [
        Node(f"n{place}", "sha256:x", True, [], None) for place in range(count)
    ]


def test_a_receipt_has_at_most_1024_children_and_a_tree_of_012_at_most_30002_receipts():
    assert walk_tree(*wide(1_024)) == ()
    found = walk_tree(*wide(1_025))
    assert [each.code for each in found] == ["ChildReceiptBreadthLimit", "OrphanChildReceipt"]
    assert committed_once(*wide(MAX_RECEIPTS - 1)) == ()
    assert [each.code for each in committed_once(*wide(MAX_RECEIPTS))] == ["too_many_receipts"]


def test_a_receipt_that_two_parents_commit_is_refused_by_012_and_told_otherwise():
    leaf = receipt("leaf")
    left, right = receipt("left", [leaf]), receipt("right", [leaf])
    root = receipt("root", [left, right])
    stored = files(root, left, right, leaf)
    assert judge_set(stored, KEYS).valid
    later = judge_folder({**stored, "index.jsonl": b""}, TRUST)
    assert later.report.exits() == 1
    unknown = judge_folder(stored, TRUST)
    assert unknown.report.exits() == 3
    assert [check.code for check in unknown.report.checks() if check.status != "ok"] == ["foreign.later_rule"]
    entries = [
        {"receipt_id": json.loads(data)["id"], "file_name": name, "created_at": "x"} for name, data in stored.items()
    ]
    index = json.dumps({"schema": "runx.receipt_store_index.v1", "generated_at": "1", "entries": entries}).encode()
    assert judge_folder({**stored, "index.json": index}, TRUST).report.exits() == 0


def test_a_diamond_of_many_levels_is_walked_once():
    level = [receipt("leaf")]
    found = list(level)
    for number in range(40):
        level = [receipt(f"a{number}", level), receipt(f"b{number}", level)]
        found += level
    assert walk_tree(Node.of(parsed(receipt("root", level))), nodes(*found)) == ()


def test_a_file_that_holds_another_receipt_than_its_name_says_does_not_hold():
    found = receipt()
    named = {"sha256-" + "0" * 64 + ".json": text(found)}
    assert [each.code for each in judge_store(named, KEYS).files] == ["IdFilenameMismatch"]
    assert judge_folder(named, TRUST).report.exits() == 1
    for colon in ("-", ":", "\uf03a"):
        assert judge_store({f"sha256{colon}{found['id'][7:]}.json": text(found)}, KEYS).files == []


def test_a_bad_file_in_a_store_hides_no_other():
    good, altered = receipt("good"), receipt("altered")
    altered["seal"]["summary"] = "x"
    stored = {"bad.json": b"{", "deep.json": b"[" * 9_999, **files(good, altered), "other.json": b'{"schema":"x"}'}
    found = judge_folder({**stored, "effect-state.json": b"not looked at", "notes.txt": b"{"}, TRUST)
    assert found.coverage.count == 2
    shown = {check.code for check in found.report.checks() if check.status != "ok"}
    assert shown == {
        "foreign.malformed",
        "foreign.too_deep",
        "foreign.altered",
        "foreign.signature",
        "foreign.contradicted",
    }


def test_an_index_that_differs_from_the_files_is_told_and_proves_nothing():
    stored = files(receipt())
    for index, code in (
        (b'{"entries":[]}', "ReceiptIndexStale"),
        (b'{"entries":3}', "MalformedIndex"),
        (b"{", "MalformedIndex"),
    ):
        verdict_ = judge_store({**stored, "index.json": index}, KEYS)
        assert [each.code for each in verdict_.files] == [code]
        assert judge_folder({**stored, "index.json": index}, TRUST).report.exits() == 0


def test_an_empty_store_is_never_ok():
    assert judge_folder({}, TRUST).report.exits() == 5


def test_receipts_one_a_line_are_judged_together():
    leaf = receipt("leaf")
    root = receipt("root", [leaf])
    data = text(root) + b"\n" + text(leaf) + b"\n"
    assert recognise(data).kind == "receipts"
    assert verdict(data).exit == 0
    assert verdict(text(root) + b"\n").exit == 0  # one alone does not show its tree
    cut = verdict(data[:-40] + b"\n")
    assert cut.exit == 1
    assert {check.code for check in cut.findings} >= {"foreign.malformed", "foreign.tree"}


DIGEST = digest(b"request")
RESUME = {
    "answers": {"summarize": {"request_digest": DIGEST, "value": {"result": {}}}},
    "approvals": {
        "deliver": {"request_digest": DIGEST, "approved": True, "reason": "yes"},
        "send/retry": {"request_digest": DIGEST, "value": {"retry": True}},
    },
}


def test_a_resume_document_is_bound_to_the_requests_that_it_answers():
    assert resume_misfits(RESUME) == ()
    waiting = {"summarize": DIGEST, "deliver": DIGEST, "send/retry": DIGEST}
    assert {each.result for each in bind(RESUME, waiting)} == {"answers"}
    other = bind(RESUME, {**waiting, "deliver": digest(b"another")})
    assert [each.result for each in other] == ["answers", "other_request", "answers"]
    assert [each.result for each in bind(RESUME, {"deliver": DIGEST})] == ["not_awaited", "answers", "not_awaited"]


def test_an_answer_that_was_taken_is_accepted_again_only_exactly():
    taken = {
        "summarize": (DIGEST, {"result": {}}),
        "deliver": (DIGEST, {"approved": True, "reason": "yes"}),
        "send/retry": (DIGEST, {"retry": True}),
    }
    assert {each.result for each in bind(RESUME, {}, taken=taken)} == {"repeats"}
    other = {**taken, "send/retry": (DIGEST, {"retry": False}), "deliver": (DIGEST, {"approved": False})}
    assert [each.result for each in bind(RESUME, {}, taken=other)] == ["repeats", "not_awaited", "not_awaited"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"close": {"outcome": "completed"}}, "close.outcome"),
        ({"close": {"outcome": "declined"}, "answers": {}}, "close"),
        ({"answers": {"a": {"value": 1}}}, "answers.a.request_digest"),
        ({"answers": {"a": {"request_digest": "sha256:1", "value": 1}}}, "answers.a.request_digest"),
        ({"answers": {"a": {"request_digest": DIGEST, "value": 1, "by": "x"}}}, "answers.a.by"),
        ({"approvals": {"a": {"request_digest": DIGEST, "approved": "yes"}}}, "approvals.a.approved"),
        ({"answers": {"a": {"request_digest": DIGEST, "approved": True}}}, "answers.a.approved"),
        ({"standing_approvals": [{"local": True, "edits": {"paths": [""]}}]}, "standing_approvals[0]"),
        ({"other": 1, "answers": {}}, "other"),
        ({"answers": []}, "answers"),
    ],
)
def test_a_resume_document_of_another_form_is_refused(value, path):
    assert path in [each.path for each in resume_misfits(value)]


def test_a_close_stands_alone():
    assert resume_misfits({"close": {"outcome": "superseded"}}) == ()
    assert resume_misfits({"schema": "runx.resume.v1", "close": {"outcome": "declined"}}) == ()


def test_a_resume_document_alone_is_told_to_be_unbound():
    found = verdict(text(RESUME))
    assert (found.exit, found.native.kind, found.native.status) == (3, "resume", "unverifiable")
    assert [check.code for check in found.findings] == ["foreign.unbound"]
    assert verdict(text({"schema": "runx.resume.v1", "answers": {"a": 1}})).exit == 1


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"a": "met", "b": "met"}, "met"),
        ({"a": "met", "b": "met", "c": "not_met"}, "met"),
        ({"a": "met", "b": "not_met"}, "not_met"),
        ({"a": "inconclusive", "b": "not_met"}, "not_met"),
        ({"a": "met", "b": "inconclusive"}, "inconclusive"),
        ({"a": "met"}, "inconclusive"),
    ],
)
def test_a_verdict_is_decided_by_one_rule(answers, expected):
    required = {"a": True, "b": True, "c": False}
    same = {"subject": ("s", "s"), "criteria": ("c", "c")}
    assert decide(answers, required, **same) == expected
    assert decide(answers, required, subject=("s", "t"), criteria=("c", "c")) == "refused"
    assert decide(answers, required, subject=("s", "s"), criteria=("c", "d")) == "refused"


def test_the_evaluator_of_a_verdict_is_read_and_nothing_else_is_judged():
    stated = {"schema": "runx.verdict.v1", "evaluator": {"package": "p", "method": "m", "run": "r"}, "more": 1}
    assert evaluator_misfits(stated) == ()
    assert verdict(text(stated)).exit == 3
    assert verdict(text({**stated, "evaluator": {"package": "p"}})).exit == 1


def test_a_verify_verdict_that_contradicts_itself_is_refused():
    good = judge_text(text(receipt()), KEYS).to_value()
    assert verdict(text(good)).exit == 3
    for path, value in ((("valid",), False), (("digest", "status"), "invalid"), (("signature", "status"), "invalid")):
        bad = copy.deepcopy(good)
        at = bad
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        assert verdict(text(bad)).exit == 1, path


def test_a_document_of_runx_that_nobody_knows_is_unknown_and_one_of_nobody_is_not_recognised():
    assert verdict(b'{"schema":"runx.other.v9"}').exit == 3
    for data in (b"", b"{}", b"[]", b'{"schema":"runx"}', b'"runx.receipt.v1"', b'{"close":1}', b"\xff"):
        assert recognise(data) is None, data


def test_stable_text_of_numbers_reads_back_as_the_same_number():
    for number in ("0.1", "1e-7", "123456.789e-3", "5e-324", "1.7976931348623157e308", "1e22", "-2.5E-10"):
        written = stable_bytes(read(f"[{number}]".encode())).decode()
        assert json.loads(written) == [float(number)]


def test_the_key_of_the_tests_is_the_one_of_the_reference():
    assert KEY.public_key().public_bytes_raw() == PUBLIC
