"""Files about two heads: what is refused, and with which words and code."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ledger import canonical
from ledger.bundle import LastEntry
from ledger.consistency import ConsistencyFile, parse_consistency, print_consistency
from ledger.equivocation import Equivocation, parse_equivocation, print_equivocation
from ledger.errors import CanonicalError, FormatError

KINDS = {
    "consistency": (
        ConsistencyFile(b"the old\n", "the new \u2014\n".encode(), (bytes(32),), (), LastEntry(b"{}", ())),
        parse_consistency,
        print_consistency,
        "keyring, last, new, old, proof and schema",
        ("old", "new"),
    ),
    "equivocation": (
        Equivocation(b"the older\n", "the newer \u2014\n".encode(), (bytes(32),), ()),
        parse_equivocation,
        print_equivocation,
        "keyring, newer, older, path and schema",
        ("older", "newer"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_note_stands_under_its_own_name(kind):
    file, parse, print_, _, names = KINDS[kind]
    data = print_(file)
    value = json.loads(data)
    assert [value[name].encode() for name in names] == [getattr(file, name) for name in names]
    assert canonical.encode(value) == data
    assert parse(data) == file


@pytest.mark.parametrize("kind", KINDS)
def test_other_members_are_refused_with_the_names_of_those_expected(kind):
    file, parse, print_, members, names = KINDS[kind]
    value = json.loads(print_(file))
    changes = [{"more": 1}, {"schema": value["schema"][:-1] + "2"}, *({name: 1} for name in names)]
    broken = [{**value, **change} for change in changes]
    broken += [{name: found for name, found in value.items() if name != gone} for gone in value]
    for each in broken:
        with pytest.raises(FormatError) as raised:
            parse(canonical.encode(each))
        assert raised.value.code == f"{kind}.malformed"
        assert str(raised.value).startswith(f"{kind}: got members ")
        assert str(raised.value).endswith(f", expected {members}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_that_is_no_text_is_not_printed(kind):
    file, _, print_, _, names = KINDS[kind]
    for name in names:
        with pytest.raises(FormatError) as raised:
            print_(replace(file, **{name: b"\xff"}))
        assert (raised.value.code, str(raised.value)) == (
            f"{kind}.malformed",
            f"{kind}: got a note that is not UTF-8",
        )


@pytest.mark.parametrize("kind", KINDS)
def test_white_space_is_refused(kind):
    file, parse, print_, _, _ = KINDS[kind]
    with pytest.raises(CanonicalError):
        parse(print_(file).replace(b":", b": ", 1))
