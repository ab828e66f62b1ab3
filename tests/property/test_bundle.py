"""Malformed files of every kind: a verdict with a lawful exit code, never a traceback, and never a pass."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.bundle import parse_bundle, print_bundle
from ledger.consistency import parse_consistency, print_consistency
from ledger.dsse import parse_dsse, print_dsse
from ledger.errors import LedgerError
from ledger.tlogproof import TlogProof, parse_tlog_proof, print_tlog_proof
from tests.reference.proofs import files, tiny
from verify.codes import CODES
from verify.file import kind_of, verify_file
from verify.options import Options

LEDGER = tiny()
TRUST = LEDGER.trust()
FILES = files(LEDGER)
EXITS = {0, 1, 3, 4, 5, 6}
PAIRS = {
    "bundle": (parse_bundle, print_bundle),
    "range": (parse_bundle, print_bundle),
    "consistency": (parse_consistency, print_consistency),
    "tlog-proof": (parse_tlog_proof, print_tlog_proof),
    "dsse": (parse_dsse, print_dsse),
}
SHOWN = [name for name in FILES if name != "envelope"]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def judge(data, trust=TRUST):
    verdict = verify_file(data, subject="file", trust=trust, remembered=lambda _: LEDGER.notes[0], options=Options())
    assert verdict.exit in EXITS
    assert verdict.checks
    assert all(check.code is None or check.code in CODES for check in verdict.checks)
    canonical.decode(verdict.to_json())
    return verdict


@given(st.binary(max_size=400))
def test_any_bytes_have_a_verdict(data):
    assert judge(data).exit in {1, 5}


@given(st.sampled_from(SHOWN), st.data())
def test_a_file_with_bytes_cut_doubled_or_changed_never_passes(name, data):
    """spec/bundles.md, 30: one byte changed anywhere is never exit 0 and never exit 3; the same holds for longer damage."""
    whole = FILES[name]
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = data.draw(st.integers(start, min(len(whole), start + 200)))
    broken = whole[:start] + data.draw(st.binary(max_size=20)) + whole[stop:]
    if broken != whole:
        verdict = judge(broken)
        assert verdict.exit in {1, 4, 5}, verdict.findings
        assert verdict.remember is None


def _paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _paths(item, (*path, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _paths(item, (*path, position))


def _replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


@given(st.sampled_from(["bundle", "range", "consistency", "dsse", "envelope"]), st.data())
def test_a_document_with_one_value_exchanged_never_passes(name, data):
    value = json.loads(FILES[name])
    path = data.draw(st.sampled_from(list(_paths(value))))
    new = data.draw(json_values)
    changed = _replaced(value, path, new)
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    # True equals 1 and 1.0 in Python, and is another text.
    if text == FILES[name]:
        return
    assert judge(text).exit in {1, 3, 4, 5} if name == "envelope" else judge(text).exit in {1, 4, 5}, (path, new)


@given(st.sampled_from(["bundle", "range", "consistency"]), st.data())
def test_a_document_with_a_member_taken_out_or_put_in_never_passes(name, data):
    value = json.loads(FILES[name])
    objects = [path for path in _paths(value) if isinstance(_at(value, path), dict)]
    path = data.draw(st.sampled_from(objects))
    members = dict(_at(value, path))
    if data.draw(st.booleans()) and members:
        members.pop(data.draw(st.sampled_from(sorted(members))))
    else:
        members[data.draw(st.text(min_size=1, max_size=8))] = data.draw(st.integers(0, 5))
    changed = _replaced(value, path, members)
    if changed == value:
        return
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    verdict = judge(text)
    if path == () and set(value) - set(members) == {"artifacts"}:
        assert verdict.exit in {0, 3}  # artifacts may be left out: they are asked for where they have to be there
        return
    assert verdict.exit in {1, 4, 5}, (path, verdict.findings)


def _at(value, path):
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("name", PAIRS)
@given(data=st.data())
def test_whatever_is_accepted_prints_as_it_came(name, data):
    """spec/README.md, 4: print(parse(b)) == b for every accepted b."""
    parse, print_ = PAIRS[name]
    whole = FILES[name]
    start = data.draw(st.integers(0, len(whole) - 1))
    text = whole[:start] + data.draw(st.binary(max_size=3)) + whole[start + data.draw(st.integers(0, 3)) :]
    try:
        parsed = parse(text)
    except LedgerError:
        return
    assert print_(parsed) == text


@given(
    st.integers(0, 2**60),
    st.lists(st.binary(min_size=32, max_size=32), max_size=64),
    st.none() | st.binary(min_size=1, max_size=500),
)
def test_every_tlog_proof_prints_and_parses_to_itself(index, hashes, extra):
    proof = TlogProof(index, tuple(hashes), LEDGER.notes[-1], extra)
    assert parse_tlog_proof(print_tlog_proof(proof)) == proof
    judge(print_tlog_proof(proof))


@given(st.text(max_size=30), st.integers(0, 10**20), st.binary(max_size=40), st.text(max_size=60))
def test_notes_of_any_origin_size_and_root_have_a_verdict(origin, size, root, lines):
    text = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n\n{lines}"
    assert judge(text.encode("utf-8", "surrogatepass")).exit in {1, 3, 4, 5}


@given(json_values)
def test_any_json_has_a_kind(value):
    text = json.dumps(value).encode()
    assert kind_of(text) == "unknown"
    assert judge(text).exit == 5
