"""Bundles and consistency files as bytes: exact, canonical, bounded; what is one byte away is refused."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace

import pytest

from ledger import canonical
from ledger.bundle import (
    BUNDLE_MAX_ITEMS,
    Bundle,
    CarriedArtifact,
    CarriedHead,
    CarriedSeal,
    Item,
    LastEntry,
    parse_bundle,
    parse_range,
    print_bundle,
    print_range,
)
from ledger.consistency import ConsistencyFile, parse_consistency, print_consistency
from ledger.errors import CanonicalError, FormatError
from tests.reference.build import small

LEDGER = small()
BUNDLE = LEDGER.bundle(LEDGER.rows[13].id)
DATA = print_bundle(BUNDLE)


def edited(**members):
    """Return the canonical text of the bundle with members changed; None takes one out."""
    value = json.loads(DATA)
    value.update(members)
    return canonical.encode({name: found for name, found in value.items() if found is not None})


def artifact(data):
    return CarriedArtifact("sha256:" + hashlib.sha256(data).hexdigest(), data)


def test_a_bundle_is_the_canonical_text_of_its_parts():
    value = json.loads(DATA)
    assert json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == DATA
    assert sorted(value) == ["checkpoint", "items", "keyring", "last", "schema", "subject"]
    for item, row in zip(value["items"], LEDGER.rows[1:12], strict=False):
        text = json.dumps(item["entry"], sort_keys=True, separators=(",", ":"))
        assert text.encode() == row.entry
        assert [base64.b64decode(each) for each in item["proof"]] == list(LEDGER.item(row.index).proof)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"artifacts": tuple(sorted((artifact(b"a"), artifact(b"")), key=lambda each: each.digest))},
        {"counter_seals": (CarriedSeal((), LEDGER.rows[13].envelope), CarriedSeal((bytes(32),) * 2, b"{}"))},
        {"counter_seals": (CarriedHead((bytes(32),), b"a\n\n"), CarriedHead((), "\u2014".encode(), b"\x30\x00"))},
        {"subject": "3:5", "items": (LEDGER.item(3), LEDGER.item(4)), "covers": (LEDGER.item(13),)},
        {"items": ()},
    ],
    ids=lambda more: ",".join(more) or "plain",
)
def test_what_is_printed_parses_to_the_same(more):
    bundle = replace(BUNDLE, **more)
    data = print_bundle(bundle)
    assert parse_bundle(data) == bundle
    assert print_bundle(parse_bundle(data)) == data


def test_made_twice_it_is_the_same_file():
    again = small()
    assert print_bundle(again.bundle(again.rows[13].id)) == DATA


@pytest.mark.parametrize(
    "data", [b" " + DATA, DATA + b"\n", DATA.replace(b'":"', b'": "', 1), DATA[:-1], DATA[1:], b""]
)
def test_another_spelling_is_refused(data):
    with pytest.raises(CanonicalError):
        parse_bundle(data)


@pytest.mark.parametrize(
    "members",
    [
        {"extra": 1},
        {"last": None},
        {"keyring": None},
        {"schema": "receipt-ledger.bundle/v2"},
        {"schema": 1},
        {"subject": "sha256:" + "A" * 64},
        {"subject": "latest"},
        {"subject": "5:5"},
        {"subject": "05:6"},
        {"subject": 7},
        {"checkpoint": []},
        {"items": {}},
        {"items": [1]},
        {"items": [{"entry": {}, "envelope": {}}]},
        {"items": [{"entry": [], "envelope": {}, "proof": []}]},
        {"items": [{"entry": {}, "envelope": {}, "proof": "x"}]},
        {"items": [{"entry": {}, "envelope": {}, "proof": [], "more": 1}]},
        {"last": {"entry": {}}},
        {"last": {"entry": {}, "envelope": {}, "proof": []}},
        {"covers": []},
        {"artifacts": []},
        {"counter_seals": []},
        {"counter_seals": ["x"]},
        {"counter_seals": [{"seal": {}}]},
        {"counter_seals": [{"consistency": [], "seal": "x"}]},
        {"counter_seals": [{"consistency": [], "seal": {}, "note": "x"}]},
        {"counter_seals": [{"consistency": [], "seal": {}, "timestamp": ""}]},
        {"counter_seals": [{"consistency": ["x"], "seal": {}}]},
        {"counter_seals": [{"consistency": [], "note": {}}]},
        {"counter_seals": [{"consistency": [], "timestamp": ""}]},
        {"counter_seals": [{"consistency": [], "note": "x", "timestamp": None}]},
        {"counter_seals": [{"consistency": [], "note": "x", "timestamp": "YQ"}]},
        {"counter_seals": [{"consistency": [], "note": "x", "timestamp": 7}]},
        {"artifacts": [{"digest": "sha256:" + "0" * 64}]},
        {"artifacts": [{"digest": "sha256:0", "data": ""}]},
        {"artifacts": [{"digest": "sha256:" + "0" * 64, "data": 5}]},
        {"artifacts": [{"digest": "sha256:" + "0" * 64, "data": "YQ"}]},
        {"artifacts": [{"digest": "sha256:" + "0" * 64, "data": "YQ=="}] * 2},
    ],
    ids=str,
)
def test_another_shape_is_refused(members):
    with pytest.raises(FormatError):
        parse_bundle(edited(**members))


def test_covers_are_for_ranges_only():
    covers = json.loads(DATA)["items"][:1]
    assert parse_bundle(edited(covers=covers, subject="0:2")).covers == BUNDLE.items[:1]
    with pytest.raises(FormatError, match="covers"):
        parse_bundle(edited(covers=covers))


@pytest.mark.parametrize("text", ["", "a", "A" * 43, "A" * 43 + "B", "A" * 42 + "A==", "A" * 44, "-" * 43 + "="])
def test_a_hash_that_is_not_exact_base64_of_32_bytes_is_refused(text):
    items = [{"entry": {}, "envelope": {}, "proof": ["A" * 43 + "="]}]
    assert parse_bundle(edited(items=items)).items[0].proof == (bytes(32),)
    items[0]["proof"] = [text]
    with pytest.raises(FormatError):
        parse_bundle(edited(items=items))


def test_a_proof_of_65_hashes_and_an_item_too_many_are_refused():
    hash_ = "A" * 43 + "="
    item = {"entry": {}, "envelope": {}, "proof": [hash_] * 64}
    assert len(parse_bundle(edited(items=[item])).items[0].proof) == 64
    with pytest.raises(FormatError):
        parse_bundle(edited(items=[{**item, "proof": [hash_] * 65}]))
    bare = {"entry": {}, "envelope": {}, "proof": []}
    assert len(parse_bundle(edited(items=[bare] * BUNDLE_MAX_ITEMS, keyring=[])).items) == BUNDLE_MAX_ITEMS
    with pytest.raises(FormatError, match="at most"):
        parse_bundle(edited(items=[bare] * BUNDLE_MAX_ITEMS, keyring=[bare]))


def test_depth_of_64_is_read_and_of_65_refused():
    def nested(levels):
        value = 0
        for _ in range(levels):
            value = [value]
        return edited(items=[{"entry": {"a": value}, "envelope": {}, "proof": []}])

    parse_bundle(nested(60))  # the document, items, an item and its entry are four levels more
    with pytest.raises(CanonicalError):
        parse_bundle(nested(61))


def test_brackets_in_strings_are_no_depth():
    for text in ("[" * 100, '"[{' * 40, "\\" * 7 + "[" * 100, '\\"' * 9 + "{" * 80, "\n[" * 90, "\u2028" + "[" * 70):
        parse_bundle(edited(items=[{"entry": {text: text}, "envelope": {"a": [text, [text]]}, "proof": []}]))


@pytest.mark.parametrize(
    "broken",
    [
        replace(BUNDLE, last=None),
        replace(BUNDLE, checkpoint=b"\xff"),
        replace(BUNDLE, subject='x","subject":"y'),
        replace(BUNDLE, items=(Item(b"{ }", b"{}", ()),)),
        replace(BUNDLE, items=(Item(b'{"a":1},"b":{}', b"{}", ()),)),
        replace(BUNDLE, items=(Item(b"{}", b'{},"proof":[]', ()),)),
        replace(BUNDLE, items=(Item(b"{}", b'{"a":1.5}', ()),)),
        replace(BUNDLE, items=(Item(b"{}", b"{}", (bytes(31),)),)),
        replace(BUNDLE, last=LastEntry(b"[]", ())),
        replace(BUNDLE, artifacts=(CarriedArtifact("sha256:x", b""),)),
        replace(BUNDLE, artifacts=(artifact(b"a"), artifact(b"a"))),
        replace(BUNDLE, counter_seals=(CarriedSeal((), b"[]"),)),
        replace(BUNDLE, counter_seals=(CarriedSeal((), b'{},"more":{}'),)),
        replace(BUNDLE, counter_seals=(CarriedSeal((bytes(31),), b"{}"),)),
        replace(BUNDLE, counter_seals=(CarriedHead((), b"\xff"),)),
    ],
    ids=str,
)
def test_what_the_format_cannot_hold_is_not_printed(broken):
    with pytest.raises(FormatError):
        print_bundle(broken)


@pytest.mark.parametrize(
    ("text", "span"), [("0:1", (0, 1)), ("7:1000", (7, 1000)), ("0:9007199254740991", (0, 2**53 - 1))]
)
def test_a_range_prints_as_it_parses(text, span):
    assert parse_range(text) == span
    assert print_range(*span) == text


@pytest.mark.parametrize(
    "text", ["", "1", "1:", ":1", "1:1", "2:1", "00:1", "1:02", "-1:2", "1:2 ", "0:9007199254740992", "\u0660:\u0661"]
)
def test_what_is_no_range_is_none(text):
    assert parse_range(text) is None


# Consistency files.

FILE = ConsistencyFile(LEDGER.notes[0], LEDGER.notes[-1], (bytes(32),), BUNDLE.keyring, BUNDLE.last)


def test_a_consistency_file_prints_as_it_parses():
    data = print_consistency(FILE)
    assert parse_consistency(data) == FILE
    assert print_consistency(parse_consistency(data)) == data
    assert sorted(json.loads(data)) == ["keyring", "last", "new", "old", "proof", "schema"]


@pytest.mark.parametrize(
    "change", [{"new": 1}, {"old": None}, {"schema": "receipt-ledger.consistency/v2"}, {"more": 1}]
)
def test_a_consistency_file_of_another_shape_is_refused(change):
    value = {**json.loads(print_consistency(FILE)), **change}
    with pytest.raises(FormatError):
        parse_consistency(canonical.encode({name: found for name, found in value.items() if found is not None}))


def test_a_consistency_file_that_the_format_cannot_hold_is_not_printed():
    for broken in (replace(FILE, old=b"\xff"), replace(FILE, proof=(b"x",)), replace(FILE, last=LastEntry(b"{ }", ()))):
        with pytest.raises(FormatError):
            print_consistency(broken)


def test_a_bundle_is_a_value():
    assert Bundle("0:1", (), (), b"") == Bundle("0:1", (), (), b"")
