"""Counter-seals in bundles: no byte of what a pinned notary sealed can change, and times are bounded as they were said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ledger.bundle import CarriedHead, CarriedSeal, parse_bundle, print_bundle
from ledger.checkpoint import head_of
from ledger.counterseal import CounterSeal, seal_counter_seal
from ledger.digest import digest
from ledger.merkle import consistency_proof, leaf_hash, root_of, tree_of
from ledger.note import Note, parse_note, print_note, sign_cosignature
from tests.reference.build import small, test_key
from verify.file import verify_file
from verify.options import parse_options
from verify.trust import parse_trust

LEDGER = small()
SEAL, COSIGNER = test_key("notary"), test_key("witness")
NAME = "notary.example.org"
SUBJECT = 13
SIZE = head_of(LEDGER.notes[-1]).size
READ = tree_of([leaf_hash(row.entry) for row in LEDGER.rows])
SIZES = [head_of(note).size for note in LEDGER.notes]


def trusting(*notaries, quorum=0):
    """Return the trust of the ledger with notaries pinned by (name, seal key, cosigner)."""
    pins = "".join(
        f'[[notary]]\nname = "{name}"\nkey = "{key.key}"\ncosigner = "{cosigner.key}"\n'
        for name, key, cosigner in notaries
    )
    origin = f'[[origin]]\nname = "{LEDGER.origin}"\nlog_key = "{LEDGER.log.key}"\n'
    issuer = f'[[issuer]]\nname = "{LEDGER.issuer.name}"\nkey = "{LEDGER.issuer.key}"\n'
    data = f"quorum = {quorum}\n{origin}{issuer}{pins}"
    return parse_trust(data.encode(), source="test", allow_test_keys=True)


TRUST = trusting((NAME, SEAL, COSIGNER))


def proof(size):
    return tuple(consistency_proof(size, SIZE, READ)) if size < SIZE else ()


def sealed(size=SIZE, index=SUBJECT, at="2026-11-30T10:00:00.000Z", key=SEAL, name=NAME, **changes):
    row = LEDGER.rows[index]
    seal = CounterSeal(
        notary=name, key=key.key, receipt=row.id, envelope=digest(row.envelope), origin=LEDGER.origin, entry_index=index,
        size=size, root="sha256:" + root_of(size, READ).hex(), mode="digest_only", verdict="not_checked", issued_at=at,
    )  # fmt: skip
    return CarriedSeal(proof(size), seal_counter_seal(seal.model_copy(update=changes), key))


def cosigned(note, at, key=COSIGNER, name=NAME):
    parsed = parse_note(note)
    time_s = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp())
    line = sign_cosignature(parsed.text, name, key, time_s=time_s)
    return print_note(Note(parsed.text, (*parsed.signatures, line)))


def head(number, at, **options):
    return CarriedHead(proof(SIZES[number]), cosigned(LEDGER.notes[number], at, **options))


def bundle(*carried, index=SUBJECT, checkpoint=None):
    made = LEDGER.bundle(LEDGER.rows[index].id)
    return print_bundle(replace(made, counter_seals=carried, checkpoint=checkpoint or made.checkpoint))


def judge(data, *, trust=TRUST, require=()):
    return verify_file(data, subject="x", trust=trust, options=parse_options(require=tuple(require)))


def test_no_byte_of_a_counter_seal_can_change():
    data = bundle(sealed(), sealed(SIZES[-2], index=1), head(-2, "2026-11-30T10:00:00"))
    assert judge(data).exit == 0
    start = data.index(b'"counter_seals"')
    end = data.index(b'"items"')
    name = (
        data.index(NAME.encode(), data.rindex(b"\xe2\x80\x94", 0, end)) if b"\xe2\x80\x94" in data[start:end] else end
    )
    line = range(data.rindex(b"\\n\xe2\x80\x94", start, end), name + len(NAME) + 8)
    for position in range(start, end, 7):
        changed = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        verdict = judge(changed)
        # The name and key id of a line say whose it is: a line of another key is not looked at.
        assert verdict.exit in ({0, 1} if position in line else {1}), (position, data[position - 20 : position + 20])


def test_a_seal_of_another_type_holds_or_not_whatever_it_means():
    document = sealed().document
    other = document.replace(b"counter-seal+json", b"counter-seal+cbor")
    verdict = judge(bundle(CarriedSeal((), other)))
    assert (verdict.exit, [c.code for c in verdict.findings if c.status == "failed"]) == (1, ["counterseal.signature"])


@pytest.mark.parametrize(
    ("carried", "not_before", "not_after"),
    [
        ([sealed()], None, "2026-11-30T10:00:00.000Z"),
        ([sealed(), head(-1, "2026-11-30T09:30:00")], None, "2026-11-30T09:30:00.000Z"),
        ([sealed(), head(0, "2026-11-30T09:30:00")], "2026-11-30T09:30:00.000Z", "2026-11-30T10:00:00.000Z"),
        ([head(0, "2026-11-30T09:30:00")], "2026-11-30T09:30:00.000Z", None),
        # What one notary was shown late says nothing against what another one saw before.
        ([sealed(), head(0, "2026-11-30T10:00:01")], None, "2026-11-30T10:00:00.000Z"),
        ([head(0, "2026-11-30T09:00:00"), head(1, "2026-11-30T09:10:00"), sealed()], "2026-11-30T09:10:00.000Z", "2026-11-30T10:00:00.000Z"),
    ],
)  # fmt: skip
def test_times_are_bounded_by_the_heads_that_hold_the_receipt_and_those_that_do_not(carried, not_before, not_after):
    verdict = judge(bundle(*carried))
    assert verdict.exit == 0
    bounds = verdict.time
    assert (bounds.not_before and bounds.not_before.time, bounds.not_after and bounds.not_after.time) == (
        not_before,
        not_after,
    )
    value = verdict.to_value()["time"]
    assert {name: each["time"] for name, each in value.items()} == {
        name: text for name, text in (("not_before", not_before), ("not_after", not_after)) if text
    }


def test_only_pinned_parties_bound_a_time():
    verdict = judge(bundle(sealed(), head(0, "2026-11-30T09:30:00")), trust=trusting())
    assert (verdict.exit, verdict.time) == (0, None)


@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_distinct_notaries_make_a_quorum_by_seals_and_cosignatures_alike(quorum):
    others = [
        ("b.example", test_key("approver"), test_key("other")),
        ("c.example", test_key("issuer-2"), test_key("log-2")),
    ]
    trust = trusting((NAME, SEAL, COSIGNER), *others, quorum=quorum)
    carried = [
        sealed(),
        sealed(SIZES[-2] if SIZES[-2] > SUBJECT else SIZE),
        head(-1, "2026-11-30T10:00:00"),
        sealed(key=others[0][1], name="b.example"),
        head(-1, "2026-11-30T10:00:00", key=others[1][2], name="c.example"),
    ]
    for count, chosen in ((1, carried[:3]), (2, carried[:4]), (3, carried)):
        verdict = judge(bundle(*chosen), trust=trust)
        assert verdict.exit == (0 if count >= quorum else 4), [c.code for c in verdict.findings]
    assert judge(bundle(*carried), trust=trust, require=["counter-seal=4"]).exit == 4


def test_what_was_asked_for_is_the_larger_of_the_two():
    trust = trusting((NAME, SEAL, COSIGNER), quorum=1)
    assert judge(bundle(), trust=trust).exit == 4
    assert judge(bundle(sealed()), trust=trust).exit == 0
    assert judge(bundle(sealed()), trust=trust, require=["counter-seal=2"]).exit == 4


def test_a_bundle_whose_head_cannot_be_read_has_no_counter_seals_that_were_judged():
    data = bundle(sealed(), checkpoint=b"x\n\n\xe2\x80\x94 x AAAAAAA=\n")
    verdict = judge(data, require=["counter-seal=1"])
    (check,) = [c for c in verdict.checks if c.name == "counter-seals"]
    assert (verdict.exit, check.status, check.code) == (1, "not_checked", "check.unreachable")


def test_more_seals_than_a_bundle_holds_are_refused():
    carried = sealed()
    assert parse_bundle(bundle(*[carried] * 100)).counter_seals == (carried,) * 100
