"""Public JSON data: RFC 8785 examples, the cases of the profile, the number table and the JSON parsing suite."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from ledger import canonical
from ledger.digest import digest
from ledger.errors import CanonicalError
from tests.reference import strict_json

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vectors"


def cases(pattern):
    return sorted(path.relative_to(SHARED).as_posix() for path in SHARED.glob(pattern))


def load(name, default):
    path = SHARED / name
    return json.loads(path.read_bytes()) if path.exists() else default


PROFILE = load("jcs/profile-cases.json", {"accept": [], "reject_text": [], "reject_bytes_hex": []})
NUMBERS = load("jcs/rfc8785-appendix-b-numbers.json", [])
CYBERPHONE = cases("jcs/cyberphone/testdata/input/*.json")
PARSING = cases("json/jsontestsuite/*.json")


def refusal(data):
    """Code of the refusal, None if accepted; anything but a CanonicalError is a crash and fails the test."""
    try:
        canonical.decode(data)
    except CanonicalError as error:
        return error.code
    return None


def test_every_case_is_there(shared):
    assert len(CYBERPHONE) == 6
    assert [len(PROFILE[part]) for part in ("accept", "reject_text", "reject_bytes_hex")] == [10, 29, 6]
    assert len(NUMBERS) == 26
    assert len(PARSING) == 159
    assert [sum(f"/{kind}_" in name for name in PARSING) for kind in "nyi"] == [94, 48, 17]


# What of the RFC 8785 examples lies in the profile once it stands in an object, and why the others do not.
CYBERPHONE_REFUSED = {"values.json": "canonical.fraction", "weird.json": "canonical.name_range"}


@pytest.mark.parametrize("name", CYBERPHONE)
def test_canonical_output_of_rfc8785_is_accepted_where_the_profile_holds_it(shared, name):
    folder = shared / "jcs/cyberphone/testdata"
    file = Path(name).name
    output = (folder / "output" / file).read_bytes()
    assert output == bytes.fromhex((folder / "outhex" / file).with_suffix(".txt").read_text())
    if not output.startswith(b"{"):
        assert refusal(output) == "canonical.top_level"
        output = b'{"a":' + output + b"}"
    assert refusal(output) == CYBERPHONE_REFUSED.get(file)
    assert strict_json.accepts(output) == (file not in CYBERPHONE_REFUSED)
    if file not in CYBERPHONE_REFUSED:
        # The input of the example is another spelling of the same value.
        value = json.loads((folder / "input" / file).read_bytes(), parse_float=lambda text: int(float(text)))
        assert canonical.encode(value if type(value) is dict else {"a": value}) == output
    raw = (folder / "input" / file).read_bytes()
    assert (refusal(raw) is None) == strict_json.accepts(raw)


PROFILE_REFUSED = {
    "utf16-key-order": "canonical.name_range",
    "utf16-key-order-nested": "canonical.name_range",
    "rfc8785-keys": "canonical.name_range",
    "float-basic": "canonical.fraction",
}


@pytest.mark.parametrize("case", PROFILE["accept"], ids=lambda case: case["name"])
def test_canonical_bytes_are_accepted_where_the_profile_is_no_narrower(shared, case):
    data = bytes.fromhex(case["canonical_hex"])
    assert digest(data) == "sha256:" + case["sha256"]
    assert refusal(data) == PROFILE_REFUSED.get(case["name"])
    assert strict_json.accepts(data) == (case["name"] not in PROFILE_REFUSED)
    spelled = case["input"].encode()
    assert (refusal(spelled) is None) == strict_json.accepts(spelled) == (spelled == data and refusal(data) is None)
    value = json.loads(case["input"])
    if case["name"] in {*PROFILE_REFUSED, "float-integral"}:
        with pytest.raises(CanonicalError) as refused:
            canonical.encode(value)
        assert refused.value.code in {"canonical.name_range", "canonical.fraction"}
    else:
        assert canonical.encode(value) == data


@pytest.mark.parametrize("case", PROFILE["reject_text"], ids=lambda case: case["name"])
def test_text_outside_the_profile_is_refused(shared, case):
    data = case["input"].encode("utf-8", "surrogatepass")
    assert refusal(data) is not None
    assert not strict_json.accepts(data)
    if case["name"] in {"dup-key", "dup-key-escape-alias"}:
        assert refusal(data) == "canonical.duplicate_name"


@pytest.mark.parametrize("case", PROFILE["reject_bytes_hex"], ids=lambda case: case["name"])
def test_bytes_outside_the_profile_are_refused(shared, case):
    assert refusal(bytes.fromhex(case["hex"])) is not None
    assert not strict_json.accepts(bytes.fromhex(case["hex"]))


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case["ieee754_hex_be"])
def test_of_the_numbers_of_rfc8785_only_integers_in_range_are_read_and_no_float_is_written(shared, case):
    number = struct.unpack(">d", bytes.fromhex(case["ieee754_hex_be"]))[0]
    with pytest.raises(CanonicalError) as refused:
        canonical.encode({"n": number})
    assert refused.value.code == "canonical.fraction"
    text = case["expected"] if case["expected"] is not None else str(number)
    data = b'{"n":' + text.encode() + b"}"
    assert (refusal(data) is None) == strict_json.accepts(data) == (text == "0")


@pytest.mark.parametrize("name", PARSING)
def test_the_parsing_suite_is_judged_as_the_byte_by_byte_reader_judges_it(shared, name):
    data = (shared / name).read_bytes()
    for text in (data, b'{"a":' + data + b"}", b'{"a":' + data.strip() + b"}"):
        assert (refusal(text) is None) == strict_json.accepts(text)
    if Path(name).name.startswith("n_"):
        assert refusal(data) is not None


def test_the_parsing_suite_holds_texts_of_both_kinds_for_the_profile(shared):
    inside = [Path(name).name for name in PARSING if refusal((shared / name).read_bytes()) is None]
    wrapped = [name for name in PARSING if refusal(b'{"a":' + (shared / name).read_bytes().strip() + b"}") is None]
    assert inside == ["y_object_empty.json"]
    assert len(wrapped) == 22
