"""Ledgers of a wanted size, written straight from the formats: no fsync, no admission, lawful all the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ledger.checkpoint import Head, sign_head
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import Entry, print_entry
from ledger.envelope import Envelope, print_envelope, seal
from ledger.keys import PrivateKey, next_digest
from ledger.line import print_entry_line, print_head_line
from ledger.members import Act, Actor, Adapter, Charge, Issuer, Limit, NextKeys, Producer, Tool
from ledger.merkle import Frontier, leaf_hash
from ledger.receipt import Decision, Header, Intent, Opening, Outcome, Run, act_digest, print_receipt
from ledger.storage.journal import SEGMENT_MAX_BYTES, SEGMENT_MAX_ENTRIES
from ledger.words import Reason

ORIGIN = "ledger.invalid/bench"
TIME = "2026-11-30T09:15:00.123Z"
RUN_RECEIPTS = 50
"""Receipts of each run: its opening, 24 intents with their outcomes, its root."""

ISSUER = PrivateKey.from_seed(hashlib.sha256(b"bench issuer").digest())
LOG = PrivateKey.from_seed(hashlib.sha256(b"bench log").digest())

_COMMON = {
    "ledger": ORIGIN,
    "issuer": Issuer(name="bench", key=ISSUER.key),
    "issued_at": TIME,
    "producer": Producer(name="bench", version="1"),
}
_ACT = Act(
    name="refund",
    tool=Tool(name="payments", version="1.4.2", digest="unknown"),
    access="write",
    arguments={"amount": 500, "payment": "txn_2"},
    arguments_digest="unknown",
    resource="payment/txn_2",
    environment="production",
)
_ACTOR = Actor(agent="bot", user="ann", model="unknown")
_CHARGES = (
    Charge(meter="tool_calls", reserved=1, basis="measured"),
    Charge(meter="usd_micro", reserved=900, basis="quoted"),
)
_LIMITS = (Limit(meter="tool_calls", limit=1_000), Limit(meter="usd_micro", limit=1_000_000))
_SETTLED = (
    Charge(meter="tool_calls", settled=1, basis="measured"),
    Charge(meter="usd_micro", settled=850, basis="reported"),
)


def trust() -> bytes:
    """Return the trust file that pins these ledgers."""
    return (
        f'[[origin]]\nname = "{ORIGIN}"\nlog_key = "{LOG.key}"\n\n[[issuer]]\nname = "bench"\nkey = "{ISSUER.key}"\n'
    ).encode()


def _envelopes(*, sealed: bool, rich: bool, limited: bool = False) -> Iterator[Envelope]:
    number = 0

    def nonce() -> str:
        nonlocal number
        number += 1
        return f"{number:032x}"

    def put(receipt: object, *, always: bool = False) -> Envelope:
        payload = print_receipt(receipt)  # type: ignore[arg-type]
        return seal(payload, ISSUER) if always or sealed else Envelope(payload)

    following = next_digest(ISSUER.key)
    yield put(
        Header(
            **_COMMON,
            nonce=nonce(),
            format="receipt-ledger/v1",
            log_key=LOG.key,
            next=NextKeys(issuer=following, log=following),
        ),
        always=True,
    )
    # Printing a model costs more than everything else here, so the common kinds are made by replacing text.
    intent = print_receipt(
        Intent(
            **_COMMON,
            nonce="0" * 32,
            run=ZERO_DIGEST,
            act=_ACT,
            act_digest=ZERO_DIGEST,
            reserved=_CHARGES if rich else (),
        )
    )
    outcome = print_receipt(
        Outcome(
            **_COMMON,
            nonce="0" * 32,
            run=ZERO_DIGEST,
            intent=ZERO_DIGEST,
            status="committed",
            duration_ms=12,
            charges=_SETTLED if rich else (),
            children=(ZERO_DIGEST,),
        )
    )
    decision = print_receipt(
        Decision(
            **_COMMON,
            nonce="0" * 32,
            run=ZERO_DIGEST,
            act=_ACT,
            act_digest=ZERO_DIGEST,
            status="denied",
            reason=Reason.POLICY_DENIED,
            rule="no_refunds",
        )
    )
    unnamed = b'"act_digest":"' + ZERO_DIGEST.encode()
    while True:
        opening = put(
            Opening(
                **_COMMON,
                nonce=nonce(),
                name="nightly",
                actor=_ACTOR,
                adapter=Adapter(name="bench", version="1", coverage="reported-calls"),
                limits=_LIMITS if limited else (),
            ),
            always=True,
        )
        yield opening
        run = opening.receipt_id.encode()
        named = act_digest(_ACT, ledger=ORIGIN, run=opening.receipt_id, actor=_ACTOR, effect_key=None).encode()
        of_act = b'"act_digest":"' + named
        called, refused = (each.replace(unnamed, of_act) for each in (intent, decision))
        children = [opening.receipt_id]
        for number_ in range((RUN_RECEIPTS - 2) // 2):
            if rich and number_ == 0:
                for _ in range(2):
                    payload = refused.replace(b'"run":"' + ZERO_DIGEST.encode(), b'"run":"' + run).replace(
                        b"0" * 32 + b'","producer', nonce().encode() + b'","producer'
                    )
                    made = seal(payload, ISSUER) if sealed else Envelope(payload)
                    yield made
                    children.append(made.receipt_id)
                continue
            payload = called.replace(b'"run":"' + ZERO_DIGEST.encode(), b'"run":"' + run).replace(
                b"0" * 32 + b'","producer', nonce().encode() + b'","producer'
            )
            made = seal(payload, ISSUER) if sealed else Envelope(payload)
            yield made
            id_ = made.receipt_id.encode()
            payload = (
                outcome.replace(b'"run":"' + ZERO_DIGEST.encode(), b'"run":"' + run)
                .replace(b"0" * 32 + b'","producer', nonce().encode() + b'","producer')
                .replace(ZERO_DIGEST.encode(), id_)
            )
            made = seal(payload, ISSUER) if sealed else Envelope(payload)
            yield made
            children.append(made.receipt_id)
        yield put(
            Run(
                **_COMMON,
                nonce=nonce(),
                run=opening.receipt_id,
                status="completed",
                duration_ms=300,
                children=tuple(children),
            ),
            always=True,
        )


def write_ledger(
    folder: Path, receipts: int, per_commit: int, *, sealed: bool = False, rich: bool = False, limited: bool = False
) -> None:
    """Write the journal of a ledger of `receipts` receipts, `per_commit` under each head.

    Rich ones cost something and are refused; the runs of `limited` ones have limits, so that rules are replayed over all of them.
    """
    journal = folder / "journal"
    journal.mkdir(parents=True)
    frontier, previous, head_line = Frontier(), ZERO_DIGEST, ZERO_DIGEST
    segment, start, size = None, 0, 0
    index = 0
    lines: list[bytes] = []
    source = _envelopes(sealed=sealed, rich=rich, limited=limited)
    while index < receipts:
        envelope = next(source)
        data = print_envelope(envelope)
        entry = print_entry(Entry(digest(data), index, 0, previous, envelope.receipt_id, TIME))
        lines.append(print_entry_line(entry, data))
        frontier.append(leaf_hash(entry))
        previous = digest(entry)
        index += 1
        if index % per_commit and index < receipts:
            continue
        head = print_head_line(sign_head(Head(ORIGIN, index, frontier.root()), LOG), head_line)
        head_line = digest(head)
        if segment is None or index - len(lines) - start >= SEGMENT_MAX_ENTRIES or size >= SEGMENT_MAX_BYTES:
            if segment is not None:
                segment.close()
            start, size = index - len(lines), 0
            segment = (journal / f"{start:016d}.jsonl").open("wb")
        written = b"\n".join([*lines, head]) + b"\n"
        segment.write(written)
        size += len(written)
        lines = []
    if segment is not None:
        segment.close()
