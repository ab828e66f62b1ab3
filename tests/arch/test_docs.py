"""The pages of docs/ say what the code does: generated parts are fresh, examples parse, codes and links exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ledger.checkpoint import open_head
from ledger.digest import digest
from ledger.entry import parse_entry
from ledger.envelope import parse_envelope, verify_seal
from ledger.keys import PrivateKey, refuse_weak_point
from ledger.line import parse_entry_line, parse_head_line
from ledger.merkle import Frontier, leaf_hash
from ledger.receipt import act_digest, children_of, parse_receipt, print_receipt
from ledger.testkeys import PUBLISHED_TEST_KEYS
from ledger.words import Access, Basis, Kind, OutcomeStatus, Reason, RunStatus
from verify.codes import CODES
from verify.errors import ProofError, TrustError
from verify.proof import verify_consistency, verify_inclusion
from verify.trust import parse_trust

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SPEC = sorted((DOCS / "spec").glob("*.md"))
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def examples():
    sys.path.insert(0, str(DOCS))
    try:
        from generators import examples

        return examples
    finally:
        sys.path.remove(str(DOCS))


def test_generated_pages_and_blocks_are_fresh():
    ran = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{ran.stderr}run: python docs/generate.py"


def test_check_finds_a_page_that_differs_by_one_byte(tmp_path):
    copy = tmp_path / "docs"
    for page in [*DOCS.rglob("*.md"), *DOCS.rglob("*.json"), *DOCS.rglob("*.py")]:
        target = copy / page.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(page.read_bytes())
    schema = copy / "spec/schemas/intent.json"
    schema.write_bytes(schema.read_bytes() + b" ")
    ran = subprocess.run(
        [sys.executable, str(copy / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr == "stale: spec/schemas/intent.json\n"


def test_every_receipt_of_the_example_parses_and_prints_the_same_bytes(examples):
    for payload in examples.example().payloads:
        assert print_receipt(parse_receipt(payload)) == payload


def test_every_line_of_the_example_journal_parses_and_its_digests_agree(examples):
    made = examples.example()
    frontier = Frontier()
    previous = previous_head = "sha256:" + "0" * 64
    for index, line in enumerate(made.lines):
        entry_bytes, envelope_bytes = parse_entry_line(line)
        entry, envelope = parse_entry(entry_bytes), parse_envelope(envelope_bytes)
        assert (entry.index, entry.previous, entry.envelope) == (index, previous, digest(envelope_bytes))
        assert entry.receipt == envelope.receipt_id
        if envelope.seal is not None:
            verify_seal(envelope)
        previous = digest(entry_bytes)
        frontier.append(leaf_hash(entry_bytes))
        note, named = parse_head_line(made.head_lines[index])
        head = open_head(note, origin=examples.ORIGIN, log_key=examples.private_key("log").key)
        assert (head.size, head.root, named) == (index + 1, frontier.root(), previous_head)
        previous_head = digest(made.head_lines[index])


def test_the_example_proofs_hold_and_fail_one_bit_away(examples):
    leaves = examples.example().leaves
    root = examples.root_hash(leaves)
    proof = examples.inclusion(leaves, 3)
    verify_inclusion(leaf=leaves[3], index=3, size=len(leaves), proof=proof, root=root)
    first = examples.root_hash(leaves[:4])
    joined = examples.consistency(leaves, 4)
    verify_consistency(old_size=4, old_root=first, new_size=len(leaves), new_root=root, proof=joined)
    bad = [bytes([proof[0][0] ^ 1]) + proof[0][1:], *proof[1:]]
    with pytest.raises(ProofError):
        verify_inclusion(leaf=leaves[3], index=3, size=len(leaves), proof=bad, root=root)
    with pytest.raises(ProofError):
        verify_consistency(old_size=4, old_root=root, new_size=len(leaves), new_root=root, proof=joined)


def test_the_example_run_commits_every_receipt_of_it_once(examples):
    made = examples.example()
    parsed = {digest(payload): parse_receipt(payload) for payload in made.payloads}
    reached = [child for receipt in parsed.values() for child in children_of(receipt)]
    assert sorted(reached) == sorted(made.id_of(name) for name in ("opening", "intent", "outcome"))


def test_the_act_digest_of_the_example_is_that_of_the_code(examples):
    run = examples.example().id_of("opening")
    made = examples.example()
    opening = parse_receipt(made.payloads[1])
    intent = parse_receipt(made.payloads[2])
    found = act_digest(
        intent.act, ledger=examples.ORIGIN, run=run, actor=opening.actor, effect_key=examples.EFFECT["key"]
    )
    assert found == intent.act_digest


def test_keys_of_examples_are_refused_by_trust(examples):
    for name in examples.KEY_NAMES:
        key = examples.private_key(name).key
        refuse_weak_point(key)
        assert key in PUBLISHED_TEST_KEYS


def test_the_trust_file_of_the_page_is_read_with_test_keys_allowed_and_refused_without():
    text = (DOCS / "spec/trust.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1]
    assert tomllib.loads(block)["quorum"] == 1
    trust = parse_trust(block.encode("utf-8"), source="page", allow_test_keys=True)
    assert trust.issuers["refunds@ledger.example/spec"].key == PrivateKey.from_seed(_seed("issuer")).key
    with pytest.raises(TrustError, match="published"):
        parse_trust(block.encode("utf-8"), source="page")


def _seed(name: str) -> bytes:
    import hashlib

    return hashlib.sha256(f"receipt-ledger test key: {name}".encode()).digest()


def test_every_code_of_a_table_of_errors_stands_in_the_code():
    source = "".join(
        path.read_text(encoding="utf-8")
        for package in ("ledger", "verify", "notary", "cli")
        for path in (ROOT / package).rglob("*.py")
    )
    for page in SPEC:
        text = page.read_text(encoding="utf-8")
        for row in re.findall(r"^\|(.*)\|$", text.partition("## Errors\n")[2].partition("\n## ")[0], re.MULTILINE):
            for code in re.findall(r"`([a-z_]+\.[a-z_]+)`", row):
                made = code.rpartition("_")[0] + "_{"  # a code whose last word is filled in
                assert f'"{code}"' in source or f'f"{made}' in source, f"{page.name}: {code}"


def test_every_link_leads_to_a_page_and_every_anchor_to_a_heading():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), f"{page.relative_to(DOCS)}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert anchor in slugs, f"{page.relative_to(DOCS)}: {target}"


def test_clauses_of_each_page_are_numbered_without_gap():
    for page in SPEC:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1)), page.name


def test_the_index_of_the_specification_names_every_page():
    index = (DOCS / "spec/README.md").read_text(encoding="utf-8")
    assert {page.name for page in SPEC} - {"README.md"} <= set(re.findall(r"\]\(([a-z-]+\.md)\)", index))


def test_schemas_are_closed_and_name_draft_2020_12():
    for path in sorted((DOCS / "spec/schemas").glob("*.json")):
        schema = json.loads(path.read_bytes())  # a file of ours, not evidence
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["additionalProperties"] is False
        assert "schema" in schema["required"] or path.stem in {"envelope", "head-line"}
        schema.get("$defs", {}).pop("Json", None)  # inline arguments alone may hold null
        assert '"null"' not in json.dumps(schema), path.name


def test_the_lists_of_words_are_those_of_the_code():
    text = (DOCS / "spec/words.md").read_text(encoding="utf-8")
    lists = {
        "kind": Kind,
        "status of an outcome": OutcomeStatus,
        "status of a run": RunStatus,
        "access": [*Access, "unknown"],
        "basis of an amount": Basis,
    }
    for name, words in lists.items():
        row = re.search(rf"^\| {name} \| (.*) \|$", text, re.MULTILINE)[1]
        assert set(re.findall(r"`([a-z_]+)`", row)) - {"prune"} == {str(word) for word in words}, name


def test_every_reason_that_a_word_is_mapped_to_is_on_the_list():
    text = (DOCS / "spec/words.md").read_text(encoding="utf-8").partition("\n## AXLR")[2]
    for theirs, ours in re.findall(r"^\| (.*?) \| (.*?) \| .*\|$", text, re.MULTILINE):
        for word in re.findall(r"`([a-z]+\.[a-z_]+)`", ours):
            if not word.startswith(("opening.", "adapter.")):
                assert word in set(Reason), f"{theirs}: {word}"


def test_every_code_of_the_threat_model_has_the_exit_that_its_row_says():
    text = (DOCS / "explanation/threat-model.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    assert len(rows) > 30
    for _, attack, verdict, exits, _ in rows:
        for code in re.findall(r"`([a-z]+\.[a-z_]+)`", verdict):
            if code in CODES:
                assert str(CODES[code].exit) in exits, attack
            else:
                assert code.startswith("register."), code


def test_the_threat_model_names_tests_that_exist_or_none():
    text = (DOCS / "explanation/threat-model.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\|.*\| ([^|]*) \|$", text, re.MULTILINE):
        for name in re.findall(r"`(tests/[a-z_/]+\.py)(?:::(\w+))?`", row):
            path = ROOT / name[0]
            assert path.is_file(), name
            assert not name[1] or f"def {name[1]}(" in path.read_text(encoding="utf-8"), name


def test_every_page_that_code_names_exists():
    root = DOCS.parent
    named = set()
    for folder in ("ledger", "verify", "notary", "cli"):
        for path in (root / folder).rglob("*.py"):
            named |= set(re.findall(r"docs/[a-z0-9/-]+\.md", path.read_text(encoding="utf-8")))
    assert len(named) > 10
    assert [page for page in sorted(named) if not (root / page).is_file()] == []


def test_every_module_that_the_page_of_the_four_systems_names_exists():
    text = (DOCS / "reference/seeds.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:ledger|verify)(?:\.[a-z_]+)+)`", text)
    assert len(named) >= 6
    for module in named:
        path = ROOT / module.replace(".", "/")
        found = path.is_dir() or path.with_suffix(".py").exists()
        # The last part may be a name in the module before it.
        if not found:
            source = path.parent.with_suffix(".py").read_text(encoding="utf-8")
            found = re.search(rf"^def {path.name}\b", source, re.MULTILINE) is not None
        assert found, module


def test_every_system_of_the_words_has_its_concepts_listed():
    text = (DOCS / "reference/seeds.md").read_text(encoding="utf-8")
    for system in ("AXLR", "Runbooks", "runx", "ctrlrun"):
        rows = re.findall(r"^\| .* \|$", text.partition(f"\n## {system}\n")[2].partition("\n## ")[0], re.MULTILINE)
        assert len(rows) > 12, system
        assert all(row.count(" | ") == 2 or row.startswith("|---") for row in rows), system
