"""The single-file verifier of the how-to, which shares no code with ours, says of bundles what the vectors expect."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from vectors import generate
from verify.vectors import parse_vectors

VECTORS = Path(generate.__file__).parent
SCRIPT = VECTORS.parent / "docs" / "how-to" / "verify_bundle.py"
DIFFERS = {
    "malformed": (0, "it looks at no members of receipts"),
    "trust-other-header": (0, "it takes no header"),
    "artifact-size": (0, "it compares digests of artifacts and not what receipts say of their size"),
    "artifacts-swapped": (0, "it does not ask for the order of artifacts"),
    "artifacts-twice": (0, "it does not ask for the order of artifacts"),
    "form-covers": (3, "it does not tell covers in the bundle of a receipt from an open run"),
    "counter-seal": (3, "it judges no counter-seals, and says so of whatever stands there"),
    "later-kind": (1, "a subject that it cannot read does not hold"),
    "later-type": (1, "a subject that it cannot read does not hold"),
}
"""What it answers otherwise, and why. Memory and what is asked for besides are not given to it at all."""
CASES = {
    case.id: case
    for case in parse_vectors((VECTORS / "bundles.json").read_bytes()).cases
    if not case.input.get("memory") and not case.input.get("require")
}


def pairs(trust):
    value = tomllib.loads(trust or "")
    named = [(each["name"], each["log_key"]) for each in value.get("origin", ())]
    return dict(
        named + [(each["name"], each["key"]) for role in ("issuer", "approver") for each in value.get(role, ())]
    )


def judged(data, trust):
    spec = importlib.util.spec_from_file_location("verify_bundle", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    try:
        bundle = script.Bundle(data)
        bundle.follow(pairs(trust))
        bundle.cover()
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        script.findings[1].append(repr(error))
    return next((code for code in (1, 4, 3) if script.findings[code]), 0), script.findings


@pytest.mark.parametrize("name", CASES)
def test_the_single_file_verifier_answers_a_bundle_as_expected(name):
    case = CASES[name]
    # It knows no exit 5: what is not there, or is nothing that it knows, does not hold.
    expected = 1 if case.expected.exit == 5 else case.expected.exit
    expected, _ = DIFFERS.get(name, (expected, ""))
    code, findings = judged((VECTORS / case.input["file"]).read_bytes(), case.input.get("trust"))
    assert code == expected, findings


def test_what_it_answers_otherwise_are_cases_and_are_answered_otherwise():
    assert set(DIFFERS) <= set(CASES)
    assert [name for name, (code, _) in DIFFERS.items() if code == CASES[name].expected.exit] == []
