"""The pages about rules say what the code says, and every sentence of the sources is accounted for."""

import re
from pathlib import Path

import pytest

from ledger.rules.amounts import METERS
from ledger.rules.breach import BREACH_CODES, DOUBT_CODES
from ledger.rules.policy_file import read_policy
from ledger.rules.tools import AXLR_READS

ROOT = Path(__file__).resolve().parents[4]
RULES = ROOT / "docs/spec/rules"
SEED_RULES = ROOT / "docs/reference/seed-rules.md"
SEEDS = ROOT.parent / "shared/seeds"
NAMES = {
    "AXLR": "axlr-runtime-contract",
    "Runbooks": "runbooks-execution-contract-v1",
    "runx": "runx-reference",
    "ctrlrun": "ctrlrun-architecture",
}
STRONG = re.compile(r"\b(must|never|only|refus\w*)\b", re.IGNORECASE)


def strong_places(name):
    """Numbers of the lines of a source that hold one of the words; ctrlrun's is one line, so its sentences are counted."""
    text = (SEEDS / f"{NAMES[name]}.txt").read_text(encoding="utf-8")
    parts = re.split(r"(?<=[.?!])\s+", text) if name == "ctrlrun" else text.split("\n")
    return {number for number, part in enumerate(parts, 1) if STRONG.search(part)}


def rows():
    """Rows of the page: source, numbers, what is said, what is done about it."""
    found = []
    section = None
    for line in SEED_RULES.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif section in NAMES and re.match(r"\| [0-9]", line):
            places, says, done = (cell.strip() for cell in line.strip("|").split("|"))
            found.append((section, {int(number) for number in re.findall(r"[0-9]+", places)}, says, done))
    return found


def test_the_table_of_codes_is_that_of_the_code():
    text = (RULES / "README.md").read_text(encoding="utf-8")
    table = {
        (code, kind, meaning)
        for code, kind, meaning in re.findall(r"^\| `([a-z_.]+)` \| (\w+) \| (.*) \|$", text, re.MULTILINE)
    }
    assert table == {(code, "breach", meaning) for code, meaning in BREACH_CODES.items()} | {
        (code, "doubt", meaning) for code, meaning in DOUBT_CODES.items()
    }


def test_clauses_are_numbered_without_gap():
    for page in RULES.glob("*.md"):
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", page.read_text(encoding="utf-8"), re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1)), page.name


def test_the_policies_of_the_page_are_read():
    blocks = re.findall(r"```json\n(.*?)```", (RULES / "policy.md").read_text(encoding="utf-8"), re.DOTALL)
    foreign, native = (read_policy(block.encode()).policy for block in blocks)
    assert (foreign.native, native.native) == (False, True)


def test_meters_and_reading_tools_of_the_pages_are_those_of_the_code():
    text = (RULES / "budgets.md").read_text(encoding="utf-8").partition("## Limits")[0]
    assert set(re.findall(r"`([a-z_]+)`", text)) & METERS == METERS
    text = (RULES / "policy.md").read_text(encoding="utf-8")
    assert (
        set(re.findall(r"`(local_[a-z]+|axlr_[a-z_]+)`", text)) - {"local_", "axlr_", "local_write", "local_edit"}
        == AXLR_READS
    )


def test_every_test_that_the_page_of_the_sources_names_exists():
    named = [found for _, _, _, done in rows() for found in re.findall(r"`(tests/[a-z_/]+\.py)::(\w+)`", done)]
    assert len(named) > 40
    for path, name in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name}(" in text or f"\n{name} = " in text, f"{path}::{name}"


def test_every_row_names_a_test_or_a_reason():
    for source, places, says, done in rows():
        assert says, (source, places)
        assert done.startswith(("`tests/", "open: ", "not ours: ", "no rule: ")), (source, places, done)


@pytest.mark.parametrize("name", NAMES)
def test_every_sentence_of_a_source_with_a_strong_word_is_listed_once(name, shared):
    if not SEEDS.is_dir():
        pytest.skip("the sources are not beside the project")
    listed = [number for source, places, _, _ in rows() if source == name for number in sorted(places)]
    assert len(listed) == len(set(listed)), sorted(number for number in listed if listed.count(number) > 1)
    assert strong_places(name) - set(listed) == set()
