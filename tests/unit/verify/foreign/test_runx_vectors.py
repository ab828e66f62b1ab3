"""runx on its own published data: every verdict is the one that is pinned there."""

import base64
import json
from pathlib import Path

import pytest

from ledger.digest import digest
from verify.foreign import FORMATS, format_of, recognise, verify_foreign
from verify.foreign.runx import judge_folder
from verify.foreign.runx.receipt import receipt_of
from verify.foreign.runx.receiptshape import RECEIPT
from verify.foreign.runx.single import judge_text
from verify.foreign.runx.stablejson import number_text, stable_bytes, stable_digest
from verify.foreign.runx.store import judge_set
from verify.foreign.runx.tree import Node, Rules, walk_tree
from verify.foreign.shape import Each, Shape
from verify.foreign.strict import ReadError, read
from verify.options import Options

NOBODY = {}.get


@pytest.fixture(scope="module")
def runx(shared) -> Path:
    return shared / "runx"


@pytest.fixture(scope="module")
def fixtures(runx) -> Path:
    return runx / "0.8.2" / "fixtures"


def receipts_in(value):
    if isinstance(value, dict):
        if value.get("schema") == "runx.receipt.v1":
            yield value
        for item in value.values():
            yield from receipts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from receipts_in(item)


def every_receipt(folder):
    """Every receipt of the data that is a real one: the placeholders of the tree oracle have no digests."""
    for path in sorted(folder.rglob("*.json")):
        if path.name == "oracle.json":
            continue
        try:
            value = read(path.read_bytes())
        except ReadError:
            assert path.parent.name == "malformed-json"
            continue
        for receipt in receipts_in(value):
            yield path, receipt


def test_canonical_text_and_digest_of_all_43_cases(fixtures):
    count = 0
    for name in ("runx-stable-json-v1.cases.json", "runx-stable-json-v1.numbers.cases.json"):
        for case in read((fixtures / "contracts" / "canonical-json" / name).read_bytes())["cases"]:
            data = stable_bytes(case["value"])
            assert data.decode() == case["expected_canonical_json"], case["name"]
            assert data.hex() == case["expected_utf8_hex"]
            assert stable_digest(case["value"]) == case["expected_sha256"]
            count += 1
    assert count == 43


def test_canonical_receipts_of_the_two_oracles(fixtures):
    path = fixtures / "contracts" / "canonical-json" / "runx-receipt-c14n-v1.oracles.json"
    cases = json.loads(path.read_bytes())["cases"]
    assert len(cases) == 2
    for case in cases:
        full = read(case["full_canonical_json"].encode())
        assert stable_bytes(full).decode() == case["full_canonical_json"]
        assert digest(stable_bytes(full)).removeprefix("sha256:") == case["full_sha256"].removeprefix("sha256:")
        body = {name: item for name, item in full.items() if name not in ("signature", "digest", "metadata")}
        assert stable_bytes(body).decode() == case["body_canonical_json"]
        assert receipt_of(full).digest_actual.removeprefix("sha256:") == case["body_sha256"].removeprefix("sha256:")


def test_numbers_are_written_as_the_rust_writer_does_where_javascript_differs(runx):
    rows = json.loads((runx / "numbers" / "stable-json-number-divergence.json").read_bytes())["rows"]
    assert sum(not row["agree"] for row in rows) > 5
    for row in rows:
        assert number_text(row["json_token"]) == row["runx_rust_predicted"], row


def test_the_six_verdicts_of_the_receipt_verify_corpus(fixtures):
    corpus = fixtures / "receipt-verify"
    pinned = json.loads((corpus / "verifier.json").read_bytes())
    keys = {pinned["kid"]: base64.b64decode(pinned["public_key_base64"])}
    cases = sorted(path.parent for path in corpus.glob("*/case.json"))
    assert len(cases) == 6
    for case in cases:
        mode = json.loads((case / "case.json").read_bytes())["signature_mode"]
        got = judge_text((case / "receipt.json").read_bytes(), keys.get, mode=mode).to_value()
        assert plain(got) == plain(json.loads((case / "expected.json").read_bytes())), case.name


def plain(verdict):
    """A verdict without the sentences, which are each program's own."""
    return {
        **verdict,
        "lineage": verdict["lineage"]["status"],
        "findings": [(finding["code"], finding["path"]) for finding in verdict["findings"]],
    }


def test_the_thirteen_cases_of_the_tree_oracle(fixtures):
    oracle = read((fixtures / "runtime" / "receipt-tree" / "oracle.json").read_bytes())
    nodes = {name: Node.of(receipt_of(value)) for name, value in oracle["receipts"].items()}
    assert len(oracle["cases"]) == 13
    for case in oracle["cases"]:
        config = case["config"]
        rules = Rules(config["max_depth"], config["max_breadth"], False, config["require_parent_links"])
        supplied = [nodes[name] for name in case["supplied_child_receipts"]]
        fails = set(case["resolver_error_receipt_ids"]).__contains__
        found = walk_tree(nodes[case["root_receipt"]], supplied, rules=rules, fails=fails)
        assert [{"code": each.code, "path": each.path} for each in found] == case["expected"]["findings"], case["name"]


def test_every_real_receipt_reproduces_its_digest_its_id_and_its_shape(runx):
    count = 0
    for path, value in every_receipt(runx):
        receipt = receipt_of(value)
        assert receipt.misfits == (), path
        assert RECEIPT.filled(value) == value
        altered = path.parent.name == "tampered-body"
        assert (receipt.digest == receipt.digest_actual, receipt.id == receipt.id_actual) == (not altered, not altered)
        count += 1
    assert count > 25


def test_local_signatures_are_told_from_those_by_a_key(runx):
    for path, value in every_receipt(runx):
        receipt = receipt_of(value)
        state, findings = receipt.signature(NOBODY)
        if receipt.mode == "local-development":
            assert state == "valid", path
        else:
            assert [each.code for each in findings] == ["signature_key_missing"], path


def test_real_trees_hold_with_their_commitments_and_graph_locators(runx):
    folder = runx / "real-tree-postmortem" / "receipts"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    verdict = judge_set(files, NOBODY)
    assert sorted(len(tree.receipts) for tree in verdict.trees) == [1, 1, 1, 5, 6]
    assert all(not tree.findings and not tree.beyond for tree in verdict.trees)
    judgement = judge_folder(files, None)
    assert judgement.native.status == "unverifiable"
    assert {check.code for check in judgement.report.checks() if check.status != "ok"} == {"foreign.key_unpinned"}


def test_a_store_that_lacks_a_child_or_holds_it_altered_does_not_hold(runx):
    folder = runx / "real-tree-postmortem" / "receipts"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    child = "sha256-ee7be23d0336980f5caad710839bcf76663c1126b3ddfb72fb41c1191073ede8.json"
    missing = judge_set({name: data for name, data in files.items() if name != child}, NOBODY)
    assert [each.code for tree in missing.trees for each in tree.findings] == ["ChildReceiptMissing"]
    altered = judge_set({**files, child: files[child].replace(b"graph step", b"graph stap", 1)}, NOBODY)
    assert "ChildReceiptDigestMismatch" in [each.code for tree in altered.trees for each in tree.findings]


def test_one_id_with_two_bodies_is_ambiguous(runx):
    files = {path.name: path.read_bytes() for path in (runx / "same-id-two-bodies").iterdir()}
    verdict = judge_set(files, NOBODY)
    assert [each.code for each in verdict.conflicts] == ["ambiguous"]
    judgement = judge_folder(files, None)
    assert judgement.report.exits() == 1
    assert "foreign.ambiguous" in {check.code for check in judgement.report.checks()}
    one = dict([next(iter(files.items()))])
    assert judge_set(one, NOBODY).conflicts == []


def test_every_file_is_judged_without_an_error(runx):
    kinds = {}
    for path in sorted(runx.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        found = recognise(data)
        verdict = verify_foreign(data, subject=path.name, trust=None, options=Options())
        assert (found is None) == (verdict is None)
        if found is not None:
            assert found.format == "runx"
            kinds[found.kind] = kinds.get(found.kind, 0) + 1
            assert verdict.exit in (1, 3), path
    assert kinds["receipt"] > 25
    assert kinds["counter-seal"] >= 7
    assert kinds["verify-verdict"] == 6


def test_no_two_formats_recognise_the_same_file(shared):
    told = {}
    for folder in ("axlr", "ctrlrun", "runx"):
        for path in sorted((shared / folder).rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                found = [name for name in FORMATS if format_of(name).recognise(data) is not None]
                assert found in ([], [folder]), path
                told[folder] = told.get(folder, 0) + len(found)
    assert all(count > 4 for count in told.values())


def test_our_shape_of_a_receipt_is_that_of_the_published_schema(runx):
    schema = json.loads((runx / "0.8.2" / "schemas" / "receipt.schema.json").read_bytes())
    assert list(differences(RECEIPT, schema, "$")) == []


def differences(test, schema, path):
    """Where our shape and the schema name other members, or require others; what may be null may be left out."""
    for option in schema.get("anyOf", [schema]):
        if option.get("type") == "array":
            assert isinstance(test, Each), path
            yield from differences(test.test, option["items"], path + "[]")
        elif option.get("type") == "object" and "properties" in option:
            assert isinstance(test, Shape), path
            members, properties = test.members, option["properties"]
            if set(members) != set(properties) or option["additionalProperties"] is not False:
                yield path
            required = {name for name, member in members.items() if member.required}
            nullable = {name for name, member in members.items() if member.filling == "null"}
            if required - set(option.get("required", ())) or set(option.get("required", ())) - required - nullable:
                yield path
            for name in members.keys() & properties.keys():
                yield from differences(members[name].test, properties[name], f"{path}.{name}")
