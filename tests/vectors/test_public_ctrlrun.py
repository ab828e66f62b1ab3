"""Stores, files and digests of released ctrlrun versions: each has the verdict of ctrlrun, and none ends a reader."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from pathlib import Path

import pytest

from ledger.foreign.ctrlrun_store import open_store
from ledger.rules.effect import idempotency_token
from verify.file import verify_file
from verify.foreign import verdict_of
from verify.foreign.ctrlrun import hashes
from verify.foreign.ctrlrun.reading import canonical_bytes, read
from verify.foreign.ctrlrun.store import judge_store
from verify.options import Options

ROOT = Path(__file__).resolve().parents[2].parent / "shared/vectors/ctrlrun"
pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="the public data is not beside the project")
SUMMARY = json.loads((ROOT / "tampers/SUMMARY.json").read_text()) if ROOT.is_dir() else []
STORES = sorted(ROOT.rglob("state.db")) if ROOT.is_dir() else []
FILES = sorted(path for path in ROOT.rglob("*") if path.is_file()) if ROOT.is_dir() else []


def judged(path):
    with open_store(path) as store:
        judgement = judge_store(store)
    return verdict_of(judgement, subject="x", trust=None, options=Options())


def judged_file(path):
    return verify_file(path.read_bytes(), subject="x", trust=None)


def breaks(verdict):
    places = [(each.name, re.fullmatch(r"seq (\d+)", each.where)) for each in verdict.native.findings]
    return [[name, int(place[1]) if place else None] for name, place in places]


def codes(verdict):
    return {check.code for check in verdict.checks if check.code}


@pytest.mark.parametrize("case", SUMMARY, ids=[each["case"] for each in SUMMARY])
def test_a_tampered_store_has_the_breaks_that_ctrlrun_names(case):
    verdict = judged(ROOT / "tampers" / case["case"] / "state.db")
    assert breaks(verdict) == case["breaks"]
    assert (verdict.native.status == "holds") is case["ok"]
    published = json.loads((ROOT / "tampers" / case["case"] / "verify-chain.0.12.2.json").read_text())
    assert published["verified"] == int(verdict.notes[1].split()[0])
    if not case["ok"]:
        assert verdict.exit == 1


@pytest.mark.parametrize("case", SUMMARY, ids=[each["case"] for each in SUMMARY])
def test_dumped_rows_have_the_same_breaks_but_for_the_head_that_they_lack(case):
    verdict = judged_file(ROOT / "tampers" / case["case"] / "table.receipts.jsonl")
    assert breaks(verdict) == [each for each in case["breaks"] if each[0] != "head_mismatch"]
    assert "foreign.end_unknown" in codes(verdict)


OURS = {
    "full_rewrite_from_seq5_incl_head": "ctrlrun.action_hash",
    "unknown_schema_rehashed_seq9_on": "format.unknown",
    "document_seq_99_at_5": "ctrlrun.place",
    "extra_key_in_v3_doc_seq1": "foreign.malformed",
    "intact": "ctrlrun.columns_of_others",
}


@pytest.mark.parametrize(("case", "code"), OURS.items())
def test_what_the_check_of_ctrlrun_misses_is_ours(case, code):
    verdict = judged(ROOT / "tampers" / case / "state.db")
    assert code in codes(verdict)
    assert all(each.name != code.partition(".")[2] for each in verdict.native.findings)


@pytest.mark.parametrize("release", ["0.2.0", "0.6.1", "0.9.0", "0.12.2"])
def test_a_store_of_each_release_holds_and_is_unsigned(release):
    verdict = judged(ROOT / "releases" / release / "state.db")
    assert verdict.exit == 3
    assert verdict.native.status == ("unverifiable" if release == "0.2.0" else "holds")
    assert codes(verdict) == {"foreign.unsigned"} | ({"ctrlrun.unchained"} if release == "0.2.0" else set())
    sink = judged_file(ROOT / "releases" / release / "receipts.jsonl")
    assert sink.exit == 3
    assert sink.coverage.count == verdict.coverage.count == 13


def test_one_chain_across_six_schemas_holds_but_for_its_two_rows_from_before_the_chain():
    verdict = judged(ROOT / "six-schema-chain/state.db")
    assert (verdict.exit, verdict.native.status, verdict.native.code) == (3, "unverifiable", "unchained")
    assert breaks(verdict) == [["unchained", None]]
    rows = judged_file(ROOT / "six-schema-chain/table.receipts.jsonl")
    assert breaks(rows) == [["unchained", None]]


def test_a_rich_store_of_grants_hops_budgets_and_observed_acts_holds():
    verdict = judged(ROOT / "rich-0.12.2/state.db")
    assert (verdict.exit, codes(verdict)) == (3, {"foreign.unsigned"})
    assert verdict.coverage.count == 15


def rebuilt(folder, path):
    """Return a store made of the dumped rows of its tables."""
    connection = sqlite3.connect(path)
    for table in folder.glob("table.*.jsonl"):
        name = table.name.split(".")[1]
        rows = [json.loads(line) for line in table.read_text().split("\n") if line]
        if rows:
            columns = list(rows[0])
            connection.execute(f"CREATE TABLE {name}({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {name} VALUES({marks})", [tuple(row.values()) for row in rows])
    connection.commit()
    connection.close()
    return path


def test_a_pruned_and_anchored_store_holds_across_its_prune(tmp_path):
    folder = ROOT / "anchor-prune-0.12.2"
    after = json.loads((folder / "verify-chain.after-prune.json").read_text())
    verdict = judged(rebuilt(folder, tmp_path / "state.db"))
    assert after["ok"]
    assert (verdict.native.status, verdict.native.findings) == ("holds", ())
    assert codes(verdict) == {"ctrlrun.anchor_unasked", "ctrlrun.pruned", "foreign.unsigned"}
    assert verdict.exit == 3


def test_a_prune_without_its_receipts_is_named_though_ctrlrun_believes_it(tmp_path):
    path = rebuilt(ROOT / "anchor-prune-0.12.2", tmp_path / "state.db")
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT seq, hash FROM receipts ORDER BY seq").fetchall()
        connection.execute("DELETE FROM receipts WHERE seq <= 5")
        connection.execute("UPDATE prune_checkpoint SET seq = 5, hash = ?", (dict(rows)[5],))
    connection.close()
    verdict = judged(path)
    assert verdict.native.status == "holds"
    assert {"ctrlrun.prune_unrecorded", "ctrlrun.anchor_broken"} <= codes(verdict)
    assert verdict.exit == 1


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_no_file_ends_the_reader(path):
    verdict = judged_file(path)
    assert verdict.exit in {1, 3, 5}
    assert json.loads(verdict.to_json())["exit"] == verdict.exit


@pytest.mark.parametrize("path", STORES, ids=[path.parent.name for path in STORES])
def test_reading_a_store_leaves_its_folder_as_it_is(path):
    before = {each.name: hashlib.sha256(each.read_bytes()).digest() for each in path.parent.iterdir()}
    judged(path)
    assert {each.name: hashlib.sha256(each.read_bytes()).digest() for each in path.parent.iterdir()} == before


def test_action_hashes_are_those_of_the_frozen_list():
    for case in json.loads((ROOT / "action_hash_vectors.json").read_text())["vectors"]:
        document = case["document"]
        found = hashes.action_hash(
            name=document["name"],
            arguments=document["arguments"],
            agent=document["principal"]["agent"],
            user=document["principal"]["user"],
            resource=document["resource"],
            environment=document["environment"],
        )
        assert found == case["expected"], case["name"]
        assert canonical_bytes(document).decode() == case["canonical"]


def test_idempotency_tokens_are_those_of_the_list():
    for case in json.loads((ROOT / "idempotency_token_vectors.json").read_text())["vectors"]:
        assert idempotency_token(case["effect_key"], case["attempt"]) == case["expected"]


def test_canonical_bytes_are_those_of_ctrlrun_and_refuse_what_it_refuses():
    seen = set()
    for case in json.loads((ROOT / "canonical_bytes_edge_vectors.json").read_text())["cases"]:
        text = case.get("json_text")
        if text is None:
            if not case["accepted"]:
                continue  # values of Python that no JSON holds; the unit tests make them
            text = case["canonical_utf8"]
        reading = read(text.encode("utf-8", "surrogatepass"))
        found = canonical_bytes(reading.value, plain=reading.plain) if reading.readable else None
        assert (found is not None) is case["accepted"], case["name"]
        if case["accepted"]:
            assert found.decode() == case["canonical_utf8"]
        seen.add(case["name"])
    assert len(seen) >= 20


def test_the_rows_of_the_chain_vectors_hash_and_link_as_they_say():
    vectors = json.loads((ROOT / "receipt_chain_vectors.json").read_text())
    for row in vectors["rows"]:
        reading = read(row["stored_json"].encode())
        found = canonical_bytes(reading.value, plain=reading.plain)
        assert found.decode() == row["canonical_utf8"]
        if row["hash_column"] is not None:
            assert "sha256:" + hashlib.sha256(found).hexdigest() == row["hash_column"]


def test_the_policy_hash_of_a_rich_policy_is_the_one_its_receipts_hold():
    yaml = pytest.importorskip("yaml")
    folder = ROOT / "rich-0.12.2"
    policy = yaml.safe_load((folder / "ctrlrun.yaml").read_text())
    authority = json.loads((folder / "policy_canonical_form.independent.json").read_text())["authority"]
    held = {json.loads(line)["policy_hash"] for line in (folder / "receipts.jsonl").read_text().split("\n") if line}
    assert hashes.policy_hash(policy, authority=authority) in held
    assert hashes.policy_hash(policy | {"mode": "observe"}, authority=authority) in held
    assert hashes.policy_hash(policy | {"version": "relabelled"}, authority=authority) in held
    assert hashes.policy_hash(policy, authority=None) not in held


def test_reading_a_store_in_a_folder_that_cannot_be_written_works():
    assert not os.access(ROOT, os.W_OK) or os.geteuid() == 0
    assert judged(ROOT / "releases/0.12.2/state.db").coverage.count == 13
