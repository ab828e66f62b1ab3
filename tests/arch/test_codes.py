"""The table of codes is whole: every code that the verifier gives is in it, and every row is given somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from ledger.rules.breach import BREACH_CODES, DOUBT_CODES
from verify.codes import CODES, PRECEDENCE

ROOT = Path(__file__).resolve().parents[2]
LITERAL = re.compile(r'"([a-z]+\.[a-z_]+)"')
AREAS = {code.partition(".")[0] for code in CODES}

# Codes of errors, which say what a reader refused and never stand in a verdict.
ERRORS = {
    "proof.consistency", "note.unsigned", "note.bad_signature", "head.extension", "trust.malformed", "trust.key_twice", "trust.name_twice",
    "trust.test_key", "trust.conflict", "trust.absent", "report.misuse", "usage.require", "usage.accept",
}  # fmt: skip
# Words of other systems that have the form of a code.
FOREIGN_WORDS = {
    "approval.required", "approval.decision", "ctrlrun.chain", "ctrlrun.receipts", "ctrlrun.approval", "ctrlrun.delegation",
    "ctrlrun.resolution", "ctrlrun.effect",
}  # fmt: skip
# Rows for parts of the verifier that read artifacts or ledgers, which these modules do not.
ELSEWHERE = {"artifact.absent", "artifact.erased", "foreign.native_fails"}


def literals():
    found = {}
    for path in sorted((ROOT / "verify").rglob("*.py")):
        if path.name in {"codes.py", "vectors.py", "vectorchecks.py", "vectorinputs.py"}:
            continue
        for code in LITERAL.findall(path.read_text(encoding="utf-8")):
            if code.partition(".")[0] in AREAS:
                found.setdefault(code, path.name)
    return found


def test_every_code_in_the_source_is_in_the_table():
    unknown = {code: where for code, where in literals().items() if code not in {*CODES, *ERRORS, *FOREIGN_WORDS}}
    assert not unknown


def test_every_row_of_the_table_is_given_somewhere():
    assert set(CODES) - set(literals()) <= {*ELSEWHERE, *BREACH_CODES, *DOUBT_CODES}


def test_every_breach_of_a_rule_causes_exit_6_and_every_doubt_exit_3():
    for codes, exit_ in ((BREACH_CODES, 6), (DOUBT_CODES, 3)):
        assert {code: (CODES[code].exit, CODES[code].meaning) for code in codes} == {
            code: (exit_, meaning) for code, meaning in codes.items()
        }


def test_every_row_has_an_exit_of_the_list_and_one_sentence():
    for code, row in CODES.items():
        assert row.code == code
        assert row.exit in PRECEDENCE
        assert row.meaning.endswith(".")
        assert row.meaning[0].isupper()
        assert ". " not in row.meaning


def test_the_page_shows_the_table_row_by_row():
    page = (ROOT / "docs/reference/verdicts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (\d) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(row.code, str(row.exit), row.meaning) for row in CODES.values()]
