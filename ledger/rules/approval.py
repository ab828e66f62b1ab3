"""Approvals: answers of people to acts that wait, each for one act and one state, used once.

- An answer binds to the act's digest, the state that was looked at, the policy, the run and the request. One that names another
  is not taken.
- Only a key that trust names for a name and a role approves; never the agent, the run's issuer or the log.
- Approvals count by key: the same decision twice is one. A new answer of the same key replaces one that is not used; a used one
  never changes.
- A denial stands above approvals until its own approver replaces it. What the policy forbids cannot be approved.
- A standing approval covers acts by a name pattern, a number of times, until a time.

Times are the fixed UTC texts of receipts, which compare as texts.

Source: docs/spec/rules/approvals.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ledger.receipt import Approval, Decision
from ledger.rules.glob import matches
from ledger.words import Reason

__all__ = [
    "Answer",
    "ApprovalState",
    "Approver",
    "Ballot",
    "Need",
    "Rejected",
    "Request",
    "answer_of",
    "check_answer",
    "check_approver",
    "check_use",
    "pick",
    "request_of",
    "state_of",
    "take",
    "use",
]


class ApprovalState(StrEnum):
    """Where a request stands; derived, never stored in a receipt."""

    PENDING = "pending"
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    CONSUMED = "consumed"


@dataclass(frozen=True, slots=True)
class Approver:
    """Whom trust names: the key of a name, and its roles."""

    key: str
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """An act that waits: the members of a waiting `decision`."""

    id: str
    run: str
    act_digest: str
    expires_at: str | None
    precondition: str | None = None
    policy: str | None = None
    roles: tuple[str, ...] = ()
    needed: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: the members of an `approval`, and who gave it."""

    id: str
    name: str
    key: str
    role: str
    granted: bool
    expires_at: str
    uses: int = 1
    request: str | None = None
    """None for a standing approval."""
    run: str | None = None
    act_digest: str | None = None
    pattern: str | None = None
    precondition: str | None = None
    policy: str | None = None

    @property
    def standing(self) -> bool:
        """Whether it covers acts by pattern instead of one that waits."""
        return self.request is None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why an answer is not taken or does not cover an act."""

    reason: Reason
    code: str
    """The code of the breach that using it would be."""
    message: str


@dataclass(frozen=True, slots=True)
class Need:
    """What an act needs in order to run: the act, and how many approvals in which roles."""

    act_digest: str
    act_name: str
    run: str
    precondition: str | None = None
    policy: str | None = None
    roles: tuple[str, ...] = ()
    needed: int = 1
    standing: bool = True
    """Whether a standing approval counts."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """A request with the current answer of each key, and whether they are used."""

    request: Request
    answers: Mapping[str, Answer] = field(default_factory=dict)
    used: bool = False


def request_of(id_: str, decision: Decision) -> Request:
    """Return the request that a waiting decision is."""
    return Request(
        id=id_,
        run=decision.run,
        act_digest=decision.act_digest,
        expires_at=decision.expires_at,
        precondition=decision.act.precondition,
        policy=decision.policy,
        roles=decision.roles,
        needed=max(1, decision.needed or 1),
    )


def answer_of(id_: str, approval: Approval) -> Answer:
    """Return the answer that an approval is."""
    return Answer(
        id=id_,
        name=approval.issuer.name,
        key=approval.issuer.key,
        role=approval.role,
        granted=approval.answer == "granted",
        expires_at=approval.expires_at,
        uses=approval.uses,
        request=approval.request,
        run=approval.run,
        act_digest=approval.act_digest,
        pattern=approval.pattern,
        precondition=approval.precondition,
        policy=approval.policy,
    )


def check_approver(
    answer: Answer, *, approvers: Mapping[str, Approver], barred: frozenset[str] = frozenset()
) -> Rejected | None:
    """Return why somebody may not answer, None if they may.

    Args:
        answer: The answer.
        approvers: Whom trust names, by name.
        barred: Names and keys that never approve here: the agent, the run's issuer and its key, the log's key.
    """
    if answer.key in barred or answer.name in barred:
        return _mismatch("approval.self", f"approver: got {answer.name!r}, who acts in this run or records it")
    pinned = approvers.get(answer.name)
    if pinned is None or pinned.key != answer.key:
        return _mismatch("approval.unpinned", f"approver: trust does not name {answer.name!r} with this key")
    if answer.role not in pinned.roles:
        return _mismatch("approval.mismatch", f"approver: trust does not name {answer.name!r} as {answer.role!r}")
    return None


def check_answer(request: Request, answer: Answer, *, now: str, forbidden: bool = False) -> Rejected | None:
    """Return why an answer to a request is not taken, None if it is; who answers is checked by `check_approver`.

    Args:
        request: What waits.
        answer: What came.
        now: When it came.
        forbidden: Whether the policy forbids the act by now; a denial of it is still taken.
    """
    for member, got, expected in (
        ("request", answer.request, request.id),
        ("run", answer.run, request.run),
        ("act digest", answer.act_digest, request.act_digest),
        ("precondition", answer.precondition, request.precondition),
        ("policy", answer.policy, request.policy),
    ):
        if got != expected:
            return _mismatch("approval.mismatch", f"{member}: got {got}, expected {expected}")
    if answer.pattern is not None or answer.uses != 1:
        return _mismatch("approval.mismatch", "an answer to a request covers one act, once")
    if request.roles and answer.role not in request.roles:
        return _mismatch("approval.mismatch", f"role: got {answer.role!r}, expected {' or '.join(request.roles)}")
    if (request.expires_at is not None and now >= request.expires_at) or now >= answer.expires_at:
        return Rejected(Reason.APPROVAL_EXPIRED, "approval.expired", f"it came at {now}, after its time")
    if forbidden and answer.granted:
        return Rejected(Reason.POLICY_DENIED, "policy.breach", "the policy forbids the act, so nobody can approve it")
    return None


def take(ballot: Ballot, answer: Answer) -> Ballot | Rejected:
    """Return the ballot with an answer that was checked taken in; the same decision twice changes nothing."""
    before = ballot.answers.get(answer.key)
    if before is not None and replace(before, id=answer.id, expires_at=answer.expires_at) == answer:
        return ballot if ballot.used or before.expires_at >= answer.expires_at else _with(ballot, answer)
    if ballot.used:
        return Rejected(Reason.APPROVAL_CONSUMED, "approval.reused", "the request is used; its answers never change")
    return _with(ballot, answer)


def state_of(ballot: Ballot, *, now: str) -> ApprovalState:
    """Return where a request stands at a time."""
    if ballot.used:
        return ApprovalState.CONSUMED
    if any(not answer.granted for answer in ballot.answers.values()):
        return ApprovalState.DENIED
    if sum(now < answer.expires_at for answer in ballot.answers.values()) >= ballot.request.needed:
        return ApprovalState.GRANTED
    over = ballot.request.expires_at is not None and now >= ballot.request.expires_at
    return ApprovalState.EXPIRED if over else ApprovalState.PENDING


def use(ballot: Ballot) -> Ballot:
    """Return the ballot once an intent names its answers."""
    return replace(ballot, used=True)


def check_use(need: Need, answer: Answer, *, now: str, left: int, current: bool = True) -> Rejected | None:
    """Return why an approval does not cover an act, None if it does.

    Args:
        need: The act.
        answer: The approval.
        now: When the act is admitted.
        left: How many uses it has left.
        current: Whether its approver has not replaced it.
    """
    if not current or not answer.granted:
        return Rejected(Reason.APPROVAL_DENIED, "approval.replaced", "its approver denies the act")
    if left < 1:
        return Rejected(Reason.APPROVAL_CONSUMED, "approval.reused", "its uses are used up")
    if now >= answer.expires_at:
        return Rejected(Reason.APPROVAL_EXPIRED, "approval.expired", f"it held until {answer.expires_at}")
    if need.roles and answer.role not in need.roles:
        return _mismatch("approval.mismatch", f"role: got {answer.role!r}, expected {' or '.join(need.roles)}")
    covers = answer.pattern is not None and matches(answer.pattern, need.act_name)
    if answer.standing and not (covers and need.standing):
        return _mismatch("approval.mismatch", f"standing approval: does not cover {need.act_name!r}")
    for member, got, expected in (
        ("run", answer.run, need.run),
        ("act digest", answer.act_digest, need.act_digest),
        ("precondition", answer.precondition, need.precondition),
        ("policy", answer.policy, need.policy),
    ):
        # What a standing approval does not name it does not bind to.
        if got != expected and not (answer.standing and got is None):
            return _mismatch("approval.mismatch", f"{member}: got {got}, expected {expected}")
    return None


def pick(
    need: Need, ballots: Sequence[Ballot], standing: Sequence[tuple[Answer, int]], *, now: str
) -> tuple[Answer, ...] | None:
    """Return the approvals that admit an act, by as many different keys as it needs, None if there are not enough.

    A request for the act that is denied stands above everything else.

    Args:
        need: The act.
        ballots: Requests for it in its run, newest last.
        standing: Standing approvals and how many uses each has left. They are looked at last.
        now: When the act is to be admitted.
    """
    if any(state_of(ballot, now=now) is ApprovalState.DENIED for ballot in ballots):
        return None
    for ballot in reversed(ballots):
        if state_of(ballot, now=now) is ApprovalState.GRANTED:
            found = [each for each in ballot.answers.values() if check_use(need, each, now=now, left=1) is None]
            if len(found) >= need.needed:
                return tuple(found[: need.needed])
    chosen: dict[str, Answer] = {}
    for answer, left in standing:
        if answer.key not in chosen and check_use(need, answer, now=now, left=left) is None:
            chosen[answer.key] = answer
            if len(chosen) >= need.needed:
                return tuple(chosen.values())
    return None


def _with(ballot: Ballot, answer: Answer) -> Ballot:
    return Ballot(ballot.request, {**ballot.answers, answer.key: answer}, ballot.used)


def _mismatch(code: str, message: str) -> Rejected:
    return Rejected(Reason.APPROVAL_MISMATCH, code, message)
