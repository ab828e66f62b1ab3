"""The witness rule, held against a slow oracle: which heads may follow which, with the status of every refusal."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import Head, sign_head
from ledger.keys import PrivateKey
from ledger.note import Note, NoteSignature, parse_note, print_note
from notary.errors import RefusedError
from notary.rules import Known, admit, check_entry, decide, log_line, open_shown, read_shown
from tests.reference.build import small, test_key
from tests.reference.rfc9162 import mth, path, proof

ORIGIN = "example.org/log"
KEY = PrivateKey.from_seed(sha256(b"a log key of these tests").digest())
OTHER = PrivateKey.from_seed(sha256(b"another log key of these tests").digest())


def leaves(history, size):
    """The first entries of a history: histories 0 and 1 agree on their first 5."""
    return [f"{0 if number < 5 else history} {number}".encode() for number in range(size)]


def shown(history, size, *, key=KEY, root=None):
    head = Head(ORIGIN, size, mth(leaves(history, size)) if root is None else root)
    return read_shown(sign_head(head, key), foreign=True)


def known_at(history, size):
    seen = shown(history, size)
    return Known(ORIGIN, ORIGIN, KEY.key, size, seen.head.root, seen.data) if size else admit(ORIGIN, KEY.key)


def expected_status(remembered, submitted, old, lines):
    """The table of the witness rule, read off the entries themselves."""
    if old > len(submitted):
        return 400
    if old != len(remembered):
        return 409
    if old == len(submitted):
        return 200 if remembered == submitted and not lines else 422
    if old == 0:
        return 422 if lines else 200
    return 200 if submitted[:old] == remembered and lines == proof(old, submitted) else 422


@given(
    st.integers(0, 1),
    st.integers(0, 9),
    st.integers(0, 1),
    st.integers(1, 9),
    st.integers(0, 9),
    st.sampled_from(["right", "none", "short", "long", "bit"]),
)
def test_a_head_is_remembered_where_the_entries_follow_and_only_there(history, size, other, new_size, old, how):
    remembered, submitted = leaves(history, size), leaves(other, new_size)
    lines = proof(old, submitted) if 0 < old <= new_size else []
    match how:
        case "none":
            lines = []
        case "short":
            lines = lines[:-1]
        case "long":
            lines = [*lines, b"\x01" * 32]
        case "bit":
            lines = [bytes([lines[0][0] ^ 1]) + lines[0][1:], *lines[1:]] if lines else lines
    before, now = known_at(history, size), shown(other, new_size)
    status = expected_status(remembered, submitted, old, lines)
    if status != 200:
        with pytest.raises(RefusedError) as raised:
            decide(before, now, old=old, proof=lines)
        assert (raised.value.status, raised.value.size) == (status, size if status == 409 else None)
        return
    after = decide(before, now, old=old, proof=lines)
    assert (after.size, after.root) == (new_size, mth(submitted))
    assert (after.origin, after.log_key) == (before.origin, before.log_key)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 12)), min_size=1, max_size=12))
def test_whatever_is_submitted_no_two_heads_that_were_let_through_disagree(steps):
    known = admit(ORIGIN, KEY.key)
    let_through = []
    for history, size in steps:
        submitted = leaves(history, size)
        lines = proof(known.size, submitted) if 0 < known.size <= size else []
        try:
            known = decide(known, shown(history, size), old=known.size, proof=lines)
        except RefusedError:
            continue
        let_through.append(submitted)
    for earlier, later in pairwise(let_through):
        assert later[: len(earlier)] == earlier


def test_a_proof_may_name_the_old_root_as_its_first_node_and_no_other():
    before, now = known_at(0, 4), shown(0, 7)
    lines = proof(4, leaves(0, 7))
    assert decide(before, now, old=4, proof=[before.root, *lines]).size == 7
    with pytest.raises(RefusedError) as raised:
        decide(before, now, old=4, proof=[bytes([before.root[0] ^ 1]) + before.root[1:], *lines])
    assert raised.value.status == 422


def test_size_0_has_the_root_of_nothing():
    nothing = sha256(b"").digest()
    assert decide(admit(ORIGIN, KEY.key), shown(0, 0), old=0, proof=()).size == 0
    other = shown(0, 0, root=bytes([nothing[0] ^ 1]) + nothing[1:])
    with pytest.raises(RefusedError) as raised:
        decide(admit(ORIGIN, KEY.key), other, old=0, proof=())
    assert raised.value.status == 422


def test_only_the_log_key_under_its_name_is_believed():
    known = admit(ORIGIN, KEY.key)
    signed = shown(0, 3)
    line = log_line(known, signed)
    open_shown(known, signed)
    forged = NoteSignature(line.name, line.key_id, bytes([line.signature[0] ^ 1]) + line.signature[1:])
    renamed = NoteSignature("example.org/other", line.key_id, line.signature)
    for wrong in (
        shown(0, 3, key=OTHER),
        read_shown(print_note(Note(signed.note.text, (forged,))), foreign=True),
        read_shown(print_note(Note(signed.note.text, (renamed,))), foreign=True),
        read_shown(print_note(Note(signed.note.text, (line, forged))), foreign=True),
    ):
        with pytest.raises(RefusedError) as raised:
            open_shown(known, wrong)
        assert (raised.value.status, raised.value.code) == (403, "witness.signature")
    with pytest.raises(RefusedError) as raised:
        open_shown(admit("example.org/elsewhere", KEY.key), signed)
    assert raised.value.status == 404


def test_a_signature_in_a_spelling_that_is_not_its_own_is_nobody_s():
    """Other tools let stray bits at the end of base64 through; here such a line is no signature, and the note no other note."""
    note = sign_head(Head(ORIGIN, 3, mth(leaves(0, 3))), KEY)
    assert note.endswith(b"=\n")
    stray = note[:-3] + bytes([note[-3] + 1]) + note[-2:]
    seen = read_shown(stray, foreign=True)
    assert seen.head == shown(0, 3).head
    with pytest.raises(RefusedError) as raised:
        open_shown(admit(ORIGIN, KEY.key), seen)
    assert (raised.value.status, raised.value.code) == (403, "witness.signature")
    open_shown(admit(ORIGIN, KEY.key), read_shown(note, foreign=True))
    for malformed, foreign in (
        (stray, False),
        (note[:-3] + b"!=\n", True),
        (note[:-2] + b"\n", True),
        (stray[:-1], True),
    ):
        with pytest.raises(RefusedError) as raised:
            read_shown(malformed, foreign=foreign)
        assert raised.value.status == 400


def test_extension_lines_are_for_heads_that_are_cosigned_not_for_ledgers():
    text = f"{ORIGIN}\n1\n{'A' * 43}=\nextension\n"
    note = print_note(Note(text, (NoteSignature(ORIGIN, b"1234", b"x" * 64),)))
    assert read_shown(note, foreign=True).note == parse_note(note)
    with pytest.raises(RefusedError) as raised:
        read_shown(note, foreign=False)
    assert (raised.value.status, raised.value.code) == (400, "head.extension")


@pytest.mark.parametrize(
    "key",
    [test_key("log").key, "ed25519:" + "00" * 32, "ed25519:" + "ff" * 32, "x25519:" + "11" * 32],
    ids=["published", "low order", "not canonical", "unknown"],
)
def test_a_key_that_anybody_may_have_is_not_admitted(key):
    with pytest.raises(RefusedError) as raised:
        admit(ORIGIN, key)
    assert (raised.value.status, raised.value.code) == (403, "origin.log_key")
    assert admit(ORIGIN, KEY.key).size == 0


def test_an_entry_stands_where_its_proof_leads_and_nowhere_else():
    built = small()
    entries = [row.entry for row in built.rows]
    head = Head("ledger.invalid/test", len(entries), mth(entries))
    for index, entry in enumerate(entries):
        assert check_entry(entry, path(index, entries), head).index == index
    good = path(3, entries)
    for entry, lines in (
        (entries[4], good),
        (entries[3], good[:-1]),
        (entries[3], [*good, b"\0" * 32]),
        (entries[3], [bytes([good[0][0] ^ 1]) + good[0][1:], *good[1:]]),
    ):
        with pytest.raises(RefusedError) as raised:
            check_entry(entry, lines, head)
        assert (raised.value.status, raised.value.code) == (422, "notarize.inclusion")
    for malformed in (b"{}", entries[3][:-1], entries[3].replace(b"entry/v1", b"entry/v2")):
        with pytest.raises(RefusedError) as raised:
            check_entry(malformed, good, head)
        assert raised.value.status == 400
