"""Our own vectors: the files are what their script writes, and our code says what the specification demands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ledger.testkeys import PUBLISHED_TEST_KEYS
from vectors import generate
from vectors.makers.kit import KEYS
from verify.codes import CODES
from verify.vectors import CHECKS, INPUTS, parse_vectors, run_case

VECTORS = Path(generate.__file__).parent
FILES = sorted(VECTORS.glob("*.json"))
VERDICTS = ("ledger", "file", "published")
"""Checks whose codes are those of verdicts."""
CASES = [(path.stem, case) for path in FILES for case in parse_vectors(path.read_bytes()).cases]


def read(name):
    return (VECTORS / name).read_bytes()


@pytest.fixture(scope="module")
def generated():
    return generate.generated()


def test_the_script_writes_the_files_that_are_there_byte_for_byte(generated):
    assert generate.stale(generated) == []


def test_the_script_writes_the_same_bytes_twice(generated):
    assert generate.generated() == generated


def test_a_changed_missing_or_added_file_is_named(generated, tmp_path, monkeypatch):
    for name, data in generated.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(data)
    monkeypatch.setattr(generate, "VECTORS", tmp_path)
    assert generate.stale(generated) == []
    (tmp_path / "merkle.json").write_bytes(generated["merkle.json"] + b" ")
    (tmp_path / "notes.json").unlink()
    (tmp_path / "stray.json").write_bytes(b"{}")
    assert generate.stale(generated) == ["merkle.json", "notes.json", "stray.json"]


@pytest.mark.parametrize(("file", "case"), CASES, ids=[f"{file}:{case.id}" for file, case in CASES])
def test_our_code_says_what_the_specification_demands(file, case):
    result = run_case(case, read=read)
    assert result.passed, f"{case.comment} expected {case.expected}, got {result.answer} {result.fault}"


def test_every_check_has_a_case_to_accept_and_one_to_refuse():
    only_values = {"digest.of", "act-digest", "merkle.root"}
    for check in CHECKS:
        exits = {case.expected.exit for _, case in CASES if case.check == check}
        assert 0 in exits, check
        assert exits - {0} or check in only_values, check


def test_every_case_that_is_refused_says_which_bug_it_hunts():
    assert [case.id for _, case in CASES if case.expected.exit and not case.flags] == []


def test_ids_are_unique_in_their_file_and_comments_are_sentences():
    ids = [(file, case.id) for file, case in CASES]
    assert len(ids) == len(set(ids))
    for _, case in CASES:
        assert re.fullmatch(r"[a-z0-9-]+", case.id)
        assert case.comment.endswith(".")


def test_exit_codes_of_verdicts_are_those_of_the_table():
    for _, case in CASES:
        code = case.expected.code
        if case.check in VERDICTS and code is not None:
            assert case.expected.exit == CODES[code].exit, case.id


EXEMPT = {
    "tree.cyclic": "a receipt that names a descendant of itself would need a digest that holds itself",
    "tree.too_many": "a tree of 30,003 receipts is larger than all vectors together; longer lists are receipt.malformed before",
    "coverage.time_ended": "how far a verification comes in the time given is no property of the bytes",
    "coverage.nothing_new": "what an earlier run judged stands in the verifier's own state, which no case brings",
    "artifact.remains": "what is stored beside a ledger stands in no file of a case",
    "artifact.unreadable": "what is stored beside a ledger stands in no file of a case",
    "coverage.earlier": "what an earlier run judged stands in the verifier's own state, which no case brings",
    "counterseal.record": "a notary's record is an evaluation in its own ledger; answers that do not hold stand in the tests",
    "timestamp.invalid": "timestamps need X.509 and an extra; the tests have them from an authority of their own",
    "trust.timestamp_unpinned": "as timestamp.invalid",
    **dict.fromkeys(
        (code for code in CODES if code.startswith(("ctrlrun.", "foreign."))),
        "documents of other systems are judged in the tests",
    ),
}
"""Codes of verdicts that no vector yields, each with its reason."""


def test_every_code_of_a_verdict_is_yielded_by_a_vector_or_exempt_with_a_reason():
    yielded = {case.expected.code for _, case in CASES if case.check in VERDICTS}
    assert set(CODES) - yielded == set(EXEMPT)


def test_the_keys_of_the_vectors_are_published_and_refused():
    assert {key.id for key in KEYS} <= PUBLISHED_TEST_KEYS


def test_the_schemas_name_the_members_that_the_runner_reads():
    for check, model in INPUTS.items():
        schema = json.loads(read(f"schema/{check}.json"))
        fields = model.model_fields
        assert set(schema["properties"]) == set(fields), check
        required = {name for name, field in fields.items() if field.is_required()}
        assert set(schema["required"]) == required, check


def test_every_file_fits_its_schema():
    file_schema = json.loads(read("schema/vectors.json"))
    for path in FILES:
        document = json.loads(path.read_bytes())
        assert problems(file_schema, document) == [], path.name


def problems(schema, value, where="$"):
    """The part of JSON Schema that these schemas use, read plainly."""
    found = []
    if "$ref" in schema:
        return problems(json.loads(read(f"schema/{schema['$ref']}")), value, where)
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    if "type" in schema and (
        not isinstance(value, types[schema["type"]]) or (isinstance(value, bool) and schema["type"] == "integer")
    ):
        return [f"{where}: not {schema['type']}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: not {schema['const']}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: none of {schema['enum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where}: not {schema['pattern']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where}: below {schema['minimum']}")
    if isinstance(value, dict):
        found += [f"{where}: no {name}" for name in schema.get("required", ()) if name not in value]
        members = schema.get("properties", {})
        if schema.get("additionalProperties") is False:
            found += [f"{where}: {name} is not known" for name in value if name not in members]
        for name, inner in members.items():
            if name in value:
                found += problems(inner, value[name], f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += problems(schema["items"], item, f"{where}[{number}]")
    if "oneOf" in schema:
        fits = [not problems(part, value, where) for part in schema["oneOf"]]
        if sum(fits) != 1:
            found.append(f"{where}: fits {sum(fits)} of {len(fits)}")
    return found
