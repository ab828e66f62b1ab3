"""Approvals while runs go on: which requests wait, who answered, and which approvals admit an act.

The answers are judged by the fold that re-proves them, over the few receipts that bear on one act.

Source: docs/spec/rules/approvals.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.attempts import read_place
from ledger.canonical import JsonObject
from ledger.envelope import Envelope
from ledger.errors import AdmissionError, AlreadyClosedError, LedgerError
from ledger.policing import decide_call
from ledger.receipt import Approval, Decision, Intent, Opening, parse_receipt
from ledger.recorder import opening_of
from ledger.rules.approval import (
    Answer,
    ApprovalState,
    Approver,
    Ballot,
    Need,
    Rejected,
    answer_of,
    check_answer,
    state_of,
    take,
)
from ledger.rules.approval_replay import ApprovalReplay, ApprovalsState
from ledger.rules.instant import time_after
from ledger.rules.policy import Answer as PolicyAnswer
from ledger.storage.clock import now
from ledger.storage.ledger import Ledger
from ledger.storage.reader import Reader
from ledger.storage.rows import Keyring, Place
from ledger.storage.state import State
from ledger.storage.topics import STANDING, answers_to, requests_for, used, waiting_in
from ledger.storage.writer import View

__all__ = ["Consent", "Request", "choose", "kept_arguments", "refuse_answers", "requests_of"]

_MARGIN_MS: Final = 1_000
"""How long an approval must still hold, so that it does when its use is recorded."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request and where it stands."""

    id: str
    index: int
    decision: Decision
    ballot: Ballot
    state: ApprovalState


@dataclass(frozen=True, slots=True)
class Consent:
    """What there is for an act that needs approvals: those that admit it, else where its newest request stands."""

    approvals: tuple[Answer, ...] | None
    request: str | None
    state: ApprovalState | None


def choose(
    reader: Reader,
    state: State,
    keyring: Keyring,
    opening: Opening,
    need: Need,
    *,
    approvers: Mapping[str, Approver],
    now: str,
) -> Consent:
    """Return the approvals that admit an act now, or where its newest request stands. Called under the lock.

    Raises:
        DamagedError: a receipt that bears on it is not where the state says.
    """
    requests = state.about(requests_for(need.run, need.act_digest))
    replay = _replayed(reader, state, keyring, {need.run: opening}, requests, approvers, standing=True)
    soon = time_after(now, _MARGIN_MS)
    chosen = replay.choose(need, now=soon)
    ballots = replay.ballots_for(need.run, need.act_digest)
    if not ballots:
        return Consent(chosen, None, None)
    if any(state_of(ballot, now=soon) is ApprovalState.DENIED for ballot in ballots):
        return Consent(None, ballots[-1].request.id, ApprovalState.DENIED)
    return Consent(chosen, ballots[-1].request.id, state_of(ballots[-1], now=soon))


def requests_of(
    reader: Reader,
    state: State,
    keyring: Keyring,
    run: str,
    opening: Opening,
    *,
    approvers: Mapping[str, Approver],
    now: str,
) -> Iterator[Request]:
    """Yield the requests of a run in chain order, each with where it stands. Called under the lock."""
    places = state.about(waiting_in(run))
    replay = _replayed(reader, state, keyring, {run: opening}, places, approvers, standing=False)
    for place in places:
        stored, receipt = read_place(reader, place)
        ballot = replay.ballot(stored.entry.receipt)
        if isinstance(receipt, Decision) and receipt.run == run and ballot is not None:
            yield Request(stored.entry.receipt, stored.entry.index, receipt, ballot, state_of(ballot, now=now))


def _replayed(
    reader: Reader,
    state: State,
    keyring: Keyring,
    openings: Mapping[str, Opening],
    requests: Iterable[Place],
    approvers: Mapping[str, Approver],
    *,
    standing: bool,
) -> ApprovalReplay:
    """Return the fold over some requests, the answers to them, standing approvals, and what was used of these."""
    replay = ApprovalReplay(approvers)
    barred = {
        run: tuple(sorted({opening.issuer.key, opening.issuer.name, opening.actor.agent}))
        for run, opening in openings.items()
    }
    keys = (keyring.issuer_key, keyring.log_key, *keyring.retired)
    replay.resume(ApprovalsState(keys=keys, barred=barred))
    places = set(requests)
    for place in tuple(places):
        places.update(state.about(answers_to(read_place(reader, place)[0].entry.receipt)))
    if standing:
        places.update(state.about(STANDING))
    approvals = []
    for place in sorted(places):
        stored, receipt = read_place(reader, place)
        if isinstance(receipt, Approval | Decision):
            id_ = stored.entry.receipt
            replay.see(stored.entry.index, id_, receipt, now=stored.entry.recorded_at, need=None, known=False)
            if isinstance(receipt, Approval):
                approvals.append(id_)
    for id_ in approvals:
        replay.spend(id_, len(state.about(used(id_))))
    return replay


def refuse_answers(
    ledger: Ledger, view: View, envelopes: Iterable[Envelope], *, approvers: Mapping[str, Approver]
) -> None:
    """Raise unless every answer among some envelopes may be taken; called under the lock, before any is appended.

    Raises:
        AdmissionError: an answer to no request, one for another act, state, policy or run, one that came too late, one to a
            request that is used, or a grant of what the policy forbids; none is to be appended.
    """
    for envelope in envelopes:
        receipt = parse_receipt(envelope.payload)
        if not isinstance(receipt, Approval) or receipt.request is None:
            continue
        answer, time = answer_of(envelope.receipt_id, receipt), now()
        decision = parse_receipt(ledger.get(receipt.request).envelope.payload)
        if not isinstance(decision, Decision) or decision.status != "waiting":
            raise AdmissionError(f"approval: {receipt.request[7:19]} is no request that waits", code="approval.unknown")
        run = view.state.run(decision.run)
        if run is None or run.closed is not None:
            raise AlreadyClosedError(
                f"approval: the run {decision.run[7:19]} of the request is closed",
                hint="what is closed takes no answers",
            )
        opening = opening_of(ledger, decision.run)
        found = requests_of(
            ledger.reader, view.state, view.keyring, decision.run, opening, approvers=approvers, now=time
        )
        ballot = next(each.ballot for each in found if each.id == receipt.request)
        wrong = check_answer(ballot.request, answer, now=time, forbidden=_is_forbidden(ledger, decision))
        taken = take(ballot, answer) if wrong is None else wrong
        if isinstance(taken, Rejected):
            raise AdmissionError(f"approval of {receipt.request[7:19]}: {taken.message}", code=taken.code)


def _is_forbidden(ledger: Ledger, decision: Decision) -> bool:
    """Return whether the policy of a request forbids its act, given the arguments that are kept."""
    if decision.policy is None:
        return False
    decided = decide_call(ledger, decision.policy, decision.act, kept_arguments(ledger, decision))
    return decided.answer is PolicyAnswer.DENY and not decided.observed


def kept_arguments(ledger: Ledger, receipt: Decision | Intent) -> JsonObject | None:
    """Return all arguments of an act as they are kept, None where they are not there."""
    for each in receipt.artifacts:
        if each.digest == receipt.act.arguments_digest:
            try:
                return canonical.decode(ledger.artifact(each), max_bytes=1 << 30)
            except (LedgerError, OSError):
                return None
    return None
