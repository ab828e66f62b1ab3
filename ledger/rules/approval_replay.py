"""Approvals re-proved: a fold over receipts in chain order that finds an act which ran on approvals that do not cover it.

Approvals that nobody uses are no finding, whatever they say. Times are measured by the recorder's clock, `recorded_at` of the
entries, and the requests and answers come before the acts that use them, by index.

Source: docs/spec/rules/approvals.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.receipt import Approval, Decision, Header, Intent, Key, Opening, Receipt, Run
from ledger.rules.approval import (
    Answer,
    ApprovalState,
    Approver,
    Ballot,
    Need,
    Rejected,
    answer_of,
    check_answer,
    check_approver,
    check_use,
    pick,
    request_of,
    state_of,
    take,
    use,
)
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.words import Reason

__all__ = ["ApprovalReplay", "ApprovalsState", "Kept"]


@dataclass(frozen=True, slots=True)
class Kept:
    """An approval of the chain: its answer, why it was not taken, and how many uses it has left."""

    answer: Answer
    fault: Rejected | None
    left: int


@dataclass(frozen=True, slots=True)
class ApprovalsState:
    """Approvals at rest.

    Keys of the ledger; who is barred, by open run; requests and their answers; requests by open run and act; those that a soft
    limit made; approvals.
    """

    keys: tuple[str, ...] = ()
    barred: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ballots: Mapping[str, Ballot] = field(default_factory=dict)
    requests: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    by_limit: tuple[str, ...] = ()
    kept: Mapping[str, Kept] = field(default_factory=dict)


class ApprovalReplay:
    """Requests and approvals of one ledger, folded over its receipts."""

    def __init__(self, approvers: Mapping[str, Approver]) -> None:
        self._approvers = approvers
        self._keys: set[str] = set()
        """Keys of the ledger itself: they never approve."""
        self._barred: dict[str, frozenset[str]] = {}
        """Open run -> names and keys that act in it or record it."""
        self._ballots: dict[str, Ballot] = {}
        self._requests: dict[str, dict[str, list[str]]] = {}
        """Open run -> act digest -> requests for it."""
        self._by_limit: set[str] = set()
        """Requests that a soft limit made."""
        self._kept: dict[str, Kept] = {}

    def state(self) -> ApprovalsState:
        """Return the state to go on from."""
        return ApprovalsState(
            tuple(sorted(self._keys)),
            {run: tuple(sorted(barred)) for run, barred in self._barred.items()},
            dict(self._ballots),
            {run: {act: tuple(ids) for act, ids in acts.items()} for run, acts in self._requests.items()},
            tuple(sorted(self._by_limit)),
            dict(self._kept),
        )

    def resume(self, state: ApprovalsState) -> None:
        """Go on from a state."""
        self._keys |= set(state.keys)
        self._barred |= {run: frozenset(barred) for run, barred in state.barred.items()}
        self._ballots |= state.ballots
        self._requests |= {run: {act: list(ids) for act, ids in acts.items()} for run, acts in state.requests.items()}
        self._by_limit |= set(state.by_limit)
        self._kept |= state.kept

    def see(self, index: int, id_: str, receipt: Receipt, *, now: str, need: Need | None, known: bool) -> list[Finding]:
        """Return what one receipt shows, and take it into account.

        Args:
            index: Of its entry.
            id_: Its receipt id.
            receipt: The receipt.
            now: `recorded_at` of its entry.
            need: For an intent, what its policy and its soft limits ask for; None for nothing.
            known: Whether `need` says all: its policy could be read and decided.
        """
        match receipt:
            case Header():
                self._keys |= {receipt.issuer.key, receipt.log_key}
            case Key():
                self._keys.add(receipt.key)
            case Opening():
                self._barred[id_] = frozenset({receipt.issuer.key, receipt.issuer.name, receipt.actor.agent})
            case Decision() if receipt.status == "waiting":
                self._ballots[id_] = Ballot(request_of(id_, receipt))
                self._requests.setdefault(receipt.run, {}).setdefault(receipt.act_digest, []).append(id_)
                if receipt.meter is not None:
                    self._by_limit.add(id_)
            case Approval():
                self._take(id_, receipt, now)
            case Intent():
                return self._intend(index, receipt, now, need, known=known)
            case Run():
                self._forget(receipt.run)
            case _:
                pass
        return []

    def ballot(self, request: str) -> Ballot | None:
        """Return a request with the answers that count: denials, and grants by approvers whom trust names."""
        found = self._ballots.get(request)
        if found is None:
            return None
        answers = {key: each for key, each in found.answers.items() if not each.granted or self._is_pinned(each)}
        return Ballot(found.request, answers, found.used)

    def ballots_for(self, run: str, act_digest: str) -> list[Ballot]:
        """Return the requests for an act of an open run, newest last, with the answers that count."""
        found = (self.ballot(id_) for id_ in self._requests.get(run, {}).get(act_digest, ()))
        return [each for each in found if each is not None]

    def choose(self, need: Need, *, now: str) -> tuple[Answer, ...] | None:
        """Return the approvals that admit an act, None if there are not enough."""
        standing = [
            (kept.answer, kept.left)
            for kept in self._kept.values()
            if kept.answer.standing and kept.fault is None and self._is_free(kept.answer, need)
        ]
        return pick(need, self.ballots_for(need.run, need.act_digest), standing, now=now)

    def spend(self, id_: str, uses: int) -> None:
        """Take into account that intents which are not seen use an approval."""
        kept = self._kept.get(id_)
        if kept is not None and uses:
            self._use(id_)
            self._kept[id_] = Kept(kept.answer, kept.fault, kept.left - uses)

    def _is_pinned(self, answer: Answer) -> bool:
        kept = self._kept.get(answer.id)
        return kept is not None and kept.fault is None

    def _is_free(self, answer: Answer, need: Need) -> bool:
        """Return whether a standing approval is by somebody who is not barred from the run."""
        barred = frozenset(self._keys) | self._barred.get(need.run, frozenset())
        return check_approver(answer, approvers=self._approvers, barred=barred) is None

    def _take(self, id_: str, approval: Approval, now: str) -> None:
        answer = answer_of(id_, approval)
        ballot = self._ballots.get(answer.request or "")
        barred = frozenset(self._keys) | self._barred.get(answer.run or "", frozenset())
        fault = check_approver(answer, approvers=self._approvers, barred=barred)
        if ballot is not None:
            wrong = check_answer(ballot.request, answer, now=now)
            taken = take(ballot, answer) if wrong is None else wrong
            if isinstance(taken, Rejected):
                fault = taken
            elif fault is None or fault.code == "approval.unpinned":
                # One that trust does not name counts until it is used: then nobody knows whether it may.
                self._ballots[ballot.request.id] = taken
        self._kept[id_] = Kept(answer, fault, answer.uses)

    def _intend(self, index: int, intent: Intent, now: str, need: Need | None, *, known: bool) -> list[Finding]:
        if not intent.approvals:
            asked = need is not None or (not known and self._waits(intent))
            return [Breach("approval.missing", index, "approvals: got none")] if asked else []
        need = need or self._need_of(intent)
        findings: list[Finding] = []
        keys: set[str] = set()
        for id_ in intent.approvals:
            kept = self._kept.get(id_)
            if kept is None:
                findings.append(Breach("approval.unknown", index, f"approval {id_[:15]}: does not stand before it"))
                continue
            found = self._judge(index, need, kept, now)
            if found is not None:
                findings.append(found)
            if not isinstance(found, Breach):
                if kept.answer.key in keys:
                    findings.append(Breach("approval.reused", index, f"approval {id_[:15]}: its key counts already"))
                keys.add(kept.answer.key)
        for id_ in dict.fromkeys(intent.approvals):
            self._use(id_)
        if len(keys) < need.needed and not any(isinstance(each, Breach) for each in findings):
            findings.append(Breach("approval.missing", index, f"approvals: got {len(keys)}, expected {need.needed}"))
        return findings

    def _judge(self, index: int, need: Need, kept: Kept, now: str) -> Finding | None:
        answer = kept.answer
        ballot = self._ballots.get(answer.request or "")
        if answer.request is not None and ballot is None:
            return Breach("approval.unknown", index, f"approval {answer.id[:15]}: answers no request before it")
        barred = frozenset(self._keys) | self._barred.get(need.run, frozenset())
        fault = check_approver(answer, approvers=self._approvers, barred=barred)
        if fault is None or fault.code == "approval.unpinned":
            current = ballot is None or ballot.answers.get(answer.key, answer).granted
            left = 0 if ballot is not None and ballot.used else kept.left
            wrong = kept.fault if kept.fault is not None and kept.fault.code != "approval.unpinned" else None
            wrong = wrong or check_use(need, answer, now=now, left=left, current=current)
            fault = wrong or self._denied(need, now) or fault
        if fault is None:
            return None
        kind = Doubt if fault.code == "approval.unpinned" else Breach
        return kind(fault.code, index, f"approval {answer.id[:15]}: {fault.message}")

    def _need_of(self, intent: Intent) -> Need:
        """Return what an act needs where its policy does not say: what the requests ask for that its approvals answer."""
        found = [self._kept[each].answer.request for each in intent.approvals if each in self._kept]
        requests = [self._ballots[each].request for each in found if each is not None and each in self._ballots]
        first = requests[0] if requests else None
        return Need(
            act_digest=intent.act_digest,
            act_name=intent.act.name,
            run=intent.run,
            precondition=intent.act.precondition,
            policy=intent.policy,
            roles=first.roles if first is not None else (),
            needed=max((request.needed for request in requests), default=1),
        )

    def _waits(self, intent: Intent) -> bool:
        """Return whether a rule asked for an approval of this very act before."""
        requests = self._requests.get(intent.run, {}).get(intent.act_digest, ())
        return any(id_ not in self._by_limit for id_ in requests)

    def _denied(self, need: Need, now: str) -> Rejected | None:
        """Return what speaks against every approval of an act: a request for it that somebody denies."""
        for id_ in self._requests.get(need.run, {}).get(need.act_digest, ()):
            if state_of(self._ballots[id_], now=now) is ApprovalState.DENIED:
                return Rejected(Reason.APPROVAL_DENIED, "approval.denied", f"request {id_[:15]} is denied")
        return None

    def _use(self, id_: str) -> None:
        kept = self._kept.get(id_)
        if kept is None:
            return
        self._kept[id_] = Kept(kept.answer, kept.fault, kept.left - 1)
        ballot = self._ballots.get(kept.answer.request or "")
        if ballot is not None and kept.answer.key in ballot.answers:
            self._ballots[ballot.request.id] = use(ballot)

    def _forget(self, run: str) -> None:
        for requests in self._requests.pop(run, {}).values():
            self._by_limit.difference_update(requests)
        self._barred.pop(run, None)
