"""C2SP tlog-proofs as bytes: the published shape, and what is one byte away."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from ledger.errors import FormatError
from ledger.tlogproof import TlogProof, parse_tlog_proof, print_tlog_proof
from tests.reference.build import small

LEDGER = small()
PROOF = TlogProof(3, LEDGER.item(3).proof, LEDGER.notes[-1], LEDGER.rows[3].entry)
DATA = print_tlog_proof(PROOF)


def test_the_lines_are_those_of_the_specification():
    lines = DATA.split(b"\n")
    hashes = [base64.b64encode(each) for each in PROOF.proof]
    assert lines[0] == b"c2sp.org/tlog-proof@v1"
    assert lines[1] == b"extra " + base64.b64encode(PROOF.extra)
    assert lines[2] == b"index 3"
    assert lines[3 : 3 + len(hashes)] == hashes
    assert lines[3 + len(hashes)] == b""
    assert b"\n".join(lines[4 + len(hashes) :]) == PROOF.checkpoint


@pytest.mark.parametrize(
    "proof",
    [
        PROOF,
        replace(PROOF, extra=None),
        replace(PROOF, proof=()),
        replace(PROOF, index=0),
        replace(PROOF, index=10**18),
    ],
    ids=["plain", "no extra", "no hashes", "first", "far"],
)
def test_a_proof_prints_as_it_parses(proof):
    data = print_tlog_proof(proof)
    assert parse_tlog_proof(data) == proof
    assert print_tlog_proof(parse_tlog_proof(data)) == data


BARE = print_tlog_proof(TlogProof(1, (bytes(32),), b"note"))


def test_the_bare_form_is_read():
    assert BARE == b"c2sp.org/tlog-proof@v1\nindex 1\n" + b"A" * 43 + b"=\n\nnote"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"@v1", b"@v2"),
        (b"c2sp", b"C2SP"),
        (b"index 1", b"index 01"),
        (b"index 1", b"index -1"),
        (b"index 1", b"index  1"),
        (b"index 1", b"index 4_2"),
        (b"index 1\n", b""),
        (b"index 1\n", b"index 1\nindex 1\n"),
        (b"index 1\n", b"index 1\nextra YQ==\n"),
        (b"index 1\n", b"extra \nindex 1\n"),
        (b"index 1\n", b"extra YQ\nindex 1\n"),
        (b"index 1\n", b"extra YR==\nindex 1\n"),
        (b"A=\n", b"B=\n"),
        (b"A=\n", b"=\n"),
        (b"A=\n", b"AA\n"),
        (b"=\n", b"=\r\n"),
        (b"\n\nnote", b"\nnote"),
        (b"\n\nnote", b"\n\n\nnote"),
        (b"\n\nnote", b"\n\n"),
        (b"c2sp", b"\nc2sp"),
    ],
)
def test_one_byte_away_it_is_refused(old, new):
    assert BARE.count(old) == 1 or old in (b"=\n", b"A=\n")
    with pytest.raises(FormatError):
        parse_tlog_proof(BARE.replace(old, new, 1))


def test_64_hashes_are_read_and_65_refused():
    assert len(parse_tlog_proof(print_tlog_proof(replace(PROOF, proof=(bytes(32),) * 64))).proof) == 64
    with pytest.raises(FormatError):
        print_tlog_proof(replace(PROOF, proof=(bytes(32),) * 65))


def test_what_the_format_cannot_hold_is_not_printed():
    for broken in (replace(PROOF, index=-1), replace(PROOF, extra=b""), replace(PROOF, checkpoint=b"")):
        with pytest.raises(FormatError):
            print_tlog_proof(broken)
    with pytest.raises(FormatError):
        print_tlog_proof(replace(PROOF, extra=b"x" * (1 << 20)))
