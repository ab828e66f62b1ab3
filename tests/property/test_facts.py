"""The fast reading of receipts accepts nothing that the full one refuses, and says the same of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import receipt as kinds
from ledger.errors import LedgerError
from ledger.facts import facts_of, match_facts, read_facts
from ledger.members import Act, Actor, Adapter, Artifact, Charge, CurrencyAmount, Effect, Issuer, Limit, Producer, Tool
from ledger.receipt import parse_receipt, print_receipt
from ledger.words import CALL_REASONS, Access, Basis, OutcomeStatus, Reason, RunStatus

digests = st.integers(0, 2**256 - 1).map(lambda n: f"sha256:{n:064x}")
names = st.one_of(
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=12),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6),
)
counts = st.one_of(st.integers(0, 2**53 - 1), st.integers(0, 20))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


def some(model, /, **fields):
    """Build a model from strategies, leaving out at random those that may be absent."""
    optional = {k: v for k, v in fields.items() if k in model.model_fields and not model.model_fields[k].is_required()}
    required = {k: v for k, v in fields.items() if k not in optional}
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: model(**values))


common = {
    "ledger": st.sampled_from(["ledger.invalid/x", "example.org/ledger/prod-7"]),
    "issuer": some(Issuer, name=names, key=st.integers(0, 2**256 - 1).map(lambda n: f"ed25519:{n:064x}")),
    "issued_at": st.datetimes()
    .filter(lambda d: d.year >= 1000)
    .map(lambda d: d.strftime("%Y-%m-%dT%H:%M:%S.") + f"{d.microsecond // 1000:03d}Z"),
    "nonce": st.integers(0, 2**128 - 1).map(lambda n: f"{n:032x}"),
    "producer": some(Producer, name=names, version=names),
}
in_run = {**common, "run": digests}
artifacts = st.lists(
    some(
        Artifact,
        digest=digests,
        media_type=st.sampled_from(["text/plain", "application/json"]),
        name=names,
        size_bytes=counts,
        salted=st.booleans(),
        truncated_bytes=counts,
        full_digest=digests,
    ),
    max_size=2,
).map(tuple)
charges = st.lists(
    some(Charge, meter=names, settled=counts, payer=names, basis=st.sampled_from(Basis)), max_size=2
).map(tuple)
acts = some(
    Act,
    name=names,
    tool=some(Tool, name=names, version=names, digest=st.one_of(digests, st.just("unknown"))),
    access=st.one_of(st.sampled_from(Access), st.just("unknown")),
    arguments=st.dictionaries(st.text(max_size=3), json_values, max_size=3),
    arguments_digest=st.one_of(digests, st.just("unknown")),
    resource=names,
    environment=names,
    amount=some(CurrencyAmount, meter=names, value=counts),
    precondition=digests,
)
children = st.lists(digests, min_size=1, max_size=4).map(tuple)
receipts = st.one_of(
    some(
        kinds.Opening,
        **common,
        name=names,
        actor=some(Actor, agent=names, user=names, model=names),
        adapter=some(Adapter, name=names, version=names, coverage=names),
        limits=st.lists(
            some(Limit, meter=names, limit=counts, grace=counts), max_size=2, unique_by=lambda limit: limit.meter
        ).map(tuple),
        correlation=st.dictionaries(names, names, min_size=1, max_size=3),
        artifacts=artifacts,
        parent_opening=digests,
        parent_intent=digests,
    ),
    some(
        kinds.Intent,
        **in_run,
        act=acts,
        act_digest=digests,
        effect=some(Effect, key=names, attempt=st.integers(1, 2**53 - 1)),
        rule=names,
        approvals=st.lists(digests, max_size=2).map(tuple),
        artifacts=artifacts,
    ),
    some(
        kinds.Outcome,
        **in_run,
        intent=digests,
        status=st.sampled_from(OutcomeStatus),
        reason=st.sampled_from(sorted(CALL_REASONS)),
        exit_code=st.integers(0, 255),
        signal=st.integers(1, 127),
        duration_ms=counts,
        usage=charges,
        artifacts=artifacts,
        children=children,
    ),
    some(kinds.Step, **in_run, name=names, status=st.sampled_from(["completed", "failed"]), children=children),
    some(
        kinds.Run,
        **in_run,
        status=st.sampled_from(RunStatus),
        duration_ms=st.one_of(counts, st.just("unknown")),
        artifacts=artifacts,
        children=children,
    ),
    some(
        kinds.Decision, **in_run, act=acts, act_digest=digests, status=st.just("denied"), reason=st.sampled_from(Reason)
    ),
)


def printed(receipt):
    try:
        return print_receipt(receipt)
    except LedgerError:
        return None  # an inline name above U+D7FF or a number out of range


@given(receipts)
def test_what_the_fast_reading_says_is_what_the_full_one_says(receipt):
    payload = printed(receipt)
    if payload is None:
        return
    full = facts_of(parse_receipt(payload))
    fast = match_facts(payload)
    if fast is not None:
        assert fast == full._replace(receipt=None)
    assert read_facts(payload)[:8] == full[:8]


@given(receipts, st.data())
def test_no_change_of_bytes_gets_past_the_fast_reading_alone(receipt, data):
    payload = printed(receipt)
    if payload is None:
        return
    at = data.draw(st.integers(0, len(payload) - 1))
    new = data.draw(
        st.binary(min_size=0, max_size=2) | st.sampled_from([b'"', b"\\", b",", b"0", b"}", b" ", b"[]", b"null"])
    )
    changed = payload[:at] + new + payload[at + data.draw(st.integers(0, 2)) :]
    fast = match_facts(changed)
    if fast is not None:
        assert fast == facts_of(parse_receipt(changed))._replace(receipt=None)


def plain(kind: type, **members):
    base = {
        "ledger": "ledger.invalid/x",
        "issuer": Issuer(name="owner", key="ed25519:" + "a" * 64),
        "issued_at": "2026-11-30T09:15:00.123Z",
        "nonce": "0" * 32,
        "producer": Producer(name="p", version="1"),
    }
    return print_receipt(kind(**base, **members))


RUN = "sha256:" + "b" * 64
ACT = Act(
    name="refund",
    tool=Tool(name="t", version="1", digest="unknown"),
    access="write",
    arguments={"amount": 5, "z": "x"},
    arguments_digest=RUN,
    resource="r",
    environment="e",
)
PLAIN = {
    "opening": plain(
        kinds.Opening,
        name="n",
        actor=Actor(agent="a", user="u", model="m"),
        adapter=Adapter(name="a", version="1", coverage="c"),
        correlation={"ticket": "7", "trace": "t"},
    ),
    "intent": plain(kinds.Intent, run=RUN, act=ACT, act_digest=RUN),
    "outcome": plain(
        kinds.Outcome, run=RUN, intent=RUN, status="committed", exit_code=7, duration_ms=1, children=(RUN,)
    ),
    "step": plain(kinds.Step, run=RUN, name="s", status="completed", children=(RUN, RUN)),
    "run": plain(kinds.Run, run=RUN, status="completed", duration_ms="unknown", children=(RUN,)),
    "decision": plain(kinds.Decision, run=RUN, act=ACT, act_digest=RUN, status="denied", reason="policy.denied"),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_common_shapes_are_read_fast(kind):
    assert match_facts(PLAIN[kind]) is not None
    assert match_facts(PLAIN[kind]).kind == kind


@pytest.mark.parametrize("kind", PLAIN)
def test_every_flipped_bit_that_the_fast_reading_takes_the_full_one_takes(kind):
    payload = PLAIN[kind]
    taken = 0
    for at in range(len(payload)):
        for bit in range(8):
            changed = bytearray(payload)
            changed[at] ^= 1 << bit
            if match_facts(bytes(changed)) is not None:
                parse_receipt(bytes(changed))
                taken += 1
    assert taken > 100  # names and digits may differ; punctuation and members may not


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"amount":5,"z":"x"', b'"z":"x","amount":5'),
        (b'"amount":5,"z":"x"', b'"z":5,"z":"x"'),
        (b'"amount":5', b'"amount":5.0'),
        (b'"amount":5', b'"amount":-0'),
        (b'"amount":5', b'"amount":05'),
        (b'"access":"write"', b'"access":"wreak"'),
        (b"T09:15", b"T24:15"),
        (b"-11-30", b"-11-31"),
        (b'"name":"refund"', b'"name":""'),
        (b'"run":', b'"ruin":0,"run":'),
        (b'"kind":"intent",', b""),
    ],
)
def test_the_fast_reading_leaves_what_is_not_canonical_or_not_of_the_schema(old, new):
    changed = PLAIN["intent"].replace(old, new, 1)
    assert changed != PLAIN["intent"]
    assert match_facts(changed) is None
    with pytest.raises(LedgerError):
        read_facts(changed)
