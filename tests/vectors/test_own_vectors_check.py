"""`ledger vectors check`: what passes, what fails, and that nothing passes by not being there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.vectors import register
from ledger.errors import FormatError, NotFoundError
from verify.vectors import INPUTS, Case, parse_answers, parse_vectors, run_case

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
FEW = ("digests", "merkle", "trees")


@pytest.fixture
def copy(tmp_path):
    for name in FEW:
        shutil.copy(VECTORS / f"{name}.json", tmp_path)
    (tmp_path / "journals").mkdir()
    for path in (VECTORS / "journals").glob("trees-*"):
        shutil.copy(path, tmp_path / "journals")
    return tmp_path


def run(*arguments):
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["vectors", "check", *map(str, arguments)])


def cases(folder, name):
    return parse_vectors((folder / f"{name}.json").read_bytes()).cases


def answers(folder):
    """The answers of a program that says what is expected, a line a case."""
    for name in FEW:
        for case in cases(folder, name):
            found = {"file": name, "id": case.id, "exit": case.expected.exit}
            if case.expected.code is not None:
                found["codes"] = [case.expected.code]
            if case.expected.value is not None:
                found["value"] = case.expected.value
            yield found


def written(path, found):
    path.write_text("".join(json.dumps(each) + "\n" for each in found))
    return path


def test_a_folder_of_vectors_passes(copy):
    result = run(copy)
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.output.splitlines()] == ["file", *FEW]


def test_json_says_the_same_as_one_object(copy):
    result = run(copy, "--json")
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert found["cases"] == found["passed"] == sum(row["cases"] for row in found["files"])
    assert found["failed"] == []


def test_a_case_that_is_answered_otherwise_fails_and_is_named(copy):
    path = copy / "digests.json"
    path.write_bytes(path.read_bytes().replace(b'"code": "digest.malformed"', b'"code": "digest.other"', 1))
    result = run(copy)
    assert result.exit_code == 1
    assert "digests:digest-upper" in result.output
    assert "digest.other" in result.output
    (failed,) = json.loads(run(copy, "--json").output)["failed"]
    assert (failed["id"], failed["got"]["codes"]) == ("digest-upper", ["digest.malformed"])


def test_a_folder_without_cases_is_absent_and_no_pass(tmp_path):
    assert isinstance(run(tmp_path).exception, NotFoundError)
    assert isinstance(run(tmp_path / "nowhere").exception, NotFoundError)


def test_a_file_that_is_no_file_of_vectors_is_refused(copy):
    (copy / "digests.json").write_bytes(b'{"cases":[]}')
    assert run(copy).exit_code != 0


def test_a_missing_journal_fails_its_case(copy):
    (copy / "journals" / "trees-good.jsonl").unlink()
    result = run(copy)
    assert result.exit_code == 1
    assert "trees:good" in result.output


def test_right_answers_of_another_program_pass(copy):
    assert run(copy, "--answers", written(copy / "answers", answers(copy))).exit_code == 0


@pytest.mark.parametrize("change", [{"exit": 0}, {"codes": []}, {"codes": ["digest.other"]}])
def test_one_wrong_answer_of_another_program_fails(copy, change):
    found = [{**each, **change} if each["id"] == "digest-upper" else each for each in answers(copy)]
    result = run(copy, "--answers", written(copy / "answers", found))
    assert result.exit_code == 1
    assert "digest-upper" in result.output


def test_a_wrong_value_fails(copy):
    found = [{**each, "value": "0" * 64} if each["id"] == "root-3" else each for each in answers(copy)]
    assert run(copy, "--answers", written(copy / "answers", found)).exit_code == 1


def test_a_case_that_is_not_answered_does_not_pass(copy):
    found = [each for each in answers(copy) if each["id"] != "root-3"]
    result = run(copy, "--answers", written(copy / "answers", found))
    assert result.exit_code == 1
    assert "not answered" in result.output


@pytest.mark.parametrize(
    "text",
    [
        b"x\n",
        b'{"file":"digests","id":"digest"}\n',
        b'{"file":"digests","id":"digest","exit":7}\n',
        b'{"file":"digests","id":"digest","exit":0,"more":1}\n',
        b'{"file":"digests","id":"digest","exit":0}\n{"file":"digests","id":"digest","exit":1}\n',
    ],
)
def test_answers_that_cannot_be_read_are_refused(text):
    with pytest.raises(FormatError):
        parse_answers(text)


def case(check, given):
    expected = {"status": "ok", "exit": 0}
    return Case(id="x", comment="X.", flags=(), check=check, input=given, expected=expected)


def test_a_check_that_is_not_known_does_not_pass():
    result = run_case(case("telepathy", {}), read=lambda name: b"")
    assert not result.passed
    assert "telepathy" in result.fault


@pytest.mark.parametrize("check", INPUTS)
def test_an_input_of_another_shape_does_not_pass(check):
    assert not run_case(case(check, {"stray": 1}), read=lambda name: b"").passed


@pytest.mark.parametrize("name", ["../secret.jsonl", "/etc/passwd", "journals/../x.jsonl", "a.jsonl\n", ""])
def test_a_file_outside_the_folder_is_never_asked_for(name):
    asked = []
    given = {"segments": [{"first_index": 0, "file": name}]}
    assert not run_case(case("ledger", given), read=lambda name: asked.append(name) or b"").passed
    assert asked == []
