"""Deciding calls while a run goes on: scope, grant, policy, approvals, effect, budgets, in this order, under the ledger's lock.

What an act uses up, its approvals, the attempt of its effect and what it sets aside, stands in one receipt, its intent. Where
the first rule refuses, a decision that says so stands there instead.

Source: docs/spec/rules/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ledger.attempts import admit_effect, known_of
from ledger.canonical import JsonObject
from ledger.consent import Consent, choose
from ledger.envelope import Envelope
from ledger.granting import cover, draw, limited_under
from ledger.members import Act, Artifact, Charge, Effect
from ledger.oversight import Oversight, bound_of
from ledger.policing import decide_call
from ledger.receipt import Decision, Intent, WouldHave
from ledger.recorder import Recorder
from ledger.refusals import Blocked, Waiting
from ledger.rules.approval import Answer as Approved
from ledger.rules.approval import ApprovalState, Approver, Need
from ledger.rules.budget import Refused
from ledger.rules.effect import DEFAULT_LEASE_MS
from ledger.rules.grant_terms import Duty, unfilled
from ledger.rules.instant import ms_of, time_after
from ledger.rules.needs import lacks, with_duties, with_gate
from ledger.rules.policy import Answer
from ledger.rules.policy import Decision as PolicyDecision
from ledger.rules.policy_replay import need_of
from ledger.spending import Spending
from ledger.storage.clock import now
from ledger.storage.writer import Position, View
from ledger.words import Reason

__all__ = ["Admitted", "Proposal", "propose"]

_ANY_ROLE: Final = ()
_DENYING: Final = frozenset(
    {
        Reason.SCOPE_UNDECLARED_TOOL,
        Reason.SCOPE_OUT_OF_SCOPE_TOOL,
        Reason.SCOPE_OUT_OF_ORDER_STEP,
        Reason.GRANT_MISSING,
        Reason.GRANT_EXPIRED,
        Reason.GRANT_REVOKED,
        Reason.GRANT_NOT_COVERED,
    }
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a call proposes to do."""

    act: Act
    act_digest: str
    arguments: JsonObject | None = None
    """All of them, secrets cut."""
    effect_key: str | None = None
    lease_ms: int = DEFAULT_LEASE_MS
    reserved: tuple[Charge, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    ask: tuple[str, ...] | None = None
    """Roles of which one must approve it, whatever its policy says; empty for any, None where nobody need."""
    step: str | None = None
    """The step of its run's runbook that it is in."""
    grant: str | None = None
    """The grant that it acts under, where that is not its run's."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run: the receipt id of its intent, its attempt of an effect, and the meters that are limited."""

    intent: str
    effect: Effect | None = None
    limited: frozenset[str] = frozenset()


def propose(
    recorder: Recorder, proposal: Proposal, *, approvers: Mapping[str, Approver], adopt: Callable[[str], None]
) -> Admitted:
    """Return a call that may run, once its intent is durable.

    Args:
        recorder: Where it is recorded.
        proposal: What it proposes.
        approvers: Whom trust names as approvers, by name.
        adopt: Takes the receipt id of the decision where there is one.

    Raises:
        Blocked: a policy, an approval, an effect or a limit does not admit it; the ledger says why.
        Waiting: it waits for an approval; once that is there, the same call goes on.
        Happened: its effect is committed.
    """
    return _Deciding(recorder, proposal, approvers).propose(adopt)


@dataclass(slots=True)
class _Deciding:
    recorder: Recorder
    proposal: Proposal
    approvers: Mapping[str, Approver]
    decided: PolicyDecision | None = None
    need: Need | None = None
    limited: frozenset[str] = field(default_factory=frozenset)
    duties: tuple[Duty, ...] = ()

    def propose(self, adopt: Callable[[str], None]) -> Admitted:
        recorder, proposal = self.recorder, self.proposal
        ledger, policy, bound = recorder.ledger, recorder.opening.policy, bound_of(recorder)
        if policy is not None:
            self.decided = decide_call(ledger, policy, proposal.act, proposal.arguments)
        decided = self.decided
        intent = Intent(
            **recorder.common(),
            act=proposal.act,
            act_digest=proposal.act_digest,
            reserved=proposal.reserved,
            artifacts=proposal.artifacts,
            step=proposal.step,
            grant=proposal.grant or bound.grant,
            policy=policy,
            rule=None if decided is None else decided.rule,
            would_have=_would_have(decided) if decided is not None and decided.runs else None,
        )
        ruled = policy is not None or bound.booked or intent.grant is not None
        if not ruled and not recorder.limited and proposal.effect_key is None and proposal.ask is None:
            return Admitted(ledger.append(ledger.envelope(intent)).receipt)
        blocked: Blocked | None = None
        admitted = intent

        def build(view: View) -> list[Envelope]:
            nonlocal blocked, admitted
            blocked = None
            try:
                admitted = self._admit(intent, view)
            except Blocked as found:
                blocked = found
                return [] if found.decision is not None else [ledger.envelope(self._decision(intent, found))]
            return [ledger.envelope(admitted)]

        def tell(positions: list[Position]) -> None:
            if recorder.limited and blocked is None:
                Spending.of(ledger).tell(recorder.root, positions[-1], admitted)

        positions = ledger.commit(build, tell)
        if blocked is None:
            return Admitted(positions[-1].receipt, admitted.effect, self.limited)
        if positions:
            blocked.decision = positions[-1].receipt
            adopt(blocked.decision)
        raise blocked

    def _admit(self, intent: Intent, view: View) -> Intent:
        """Return the intent with what it uses up, given what stands before it.

        Raises:
            Blocked: it is not admitted; where it names a decision, that stands in the ledger already.
        """
        recorder, proposal, decided = self.recorder, self.proposal, self.decided
        gated = False
        if bound_of(recorder).booked:
            said, gate = Oversight.of(recorder.ledger).admit(recorder, intent.act, intent.step, size=view.size)
            gated = gate is not None
            intent = intent.model_copy(update={"would_have": intent.would_have or said})
        if intent.grant is not None:
            self.duties = cover(recorder, intent.grant, intent.act, view)
        if decided is not None and not decided.runs and decided.answer is Answer.DENY:
            by = decided.rule or "default"
            raise Blocked(decided.reason or Reason.POLICY_DENIED, f"policy: the act is denied, by {by}")
        self.need = self._asked(intent)
        if gated:
            self.need = with_gate(self.need, intent)
        self.need = with_duties(self.need, intent, self.duties)
        if self.need is not None:
            intent = intent.model_copy(update={"approvals": self._approved(self.need, view)})
        if proposal.effect_key is not None:
            effect = self._attempt(proposal.effect_key, view)
            intent = intent.model_copy(update={"effect": effect, "lease_ms": proposal.lease_ms})
        if recorder.limited:
            soft = self._reserve(view)
            if soft is not None and not intent.approvals:
                self.need = _need(intent, _ANY_ROLE)
                intent = intent.model_copy(update={"approvals": self._approved(self.need, view, soft)})
        if intent.grant is not None:
            draw(recorder, intent.grant, proposal.reserved, view)
            self.limited |= limited_under(recorder, intent.grant, view)
        return intent

    def _asked(self, intent: Intent) -> Need | None:
        """Return the approvals that the policy or the caller asks for."""
        decided, ask = self.decided, self.proposal.ask
        if decided is not None and not decided.runs:
            return need_of(intent, decided)
        return None if ask is None else _need(intent, ask)

    def _chosen(self, need: Need, view: View) -> Consent:
        recorder = self.recorder
        return choose(
            recorder.ledger.reader,
            view.state,
            view.keyring,
            recorder.opening,
            need,
            approvers=self.approvers,
            now=now(),
        )

    def _approved(self, need: Need, view: View, soft: Refused | None = None) -> tuple[str, ...]:
        found, wanted = self._chosen(need, view), need
        while found.approvals is not None and self._leaves_unfilled(found.approvals, need):
            # Those chosen do not keep the duties apart; with more of them another choice may.
            wanted = replace(wanted, needed=len(found.approvals) + 1)
            found = replace(self._chosen(wanted, view), request=found.request)
        if found.approvals is not None:
            return tuple(each.id for each in found.approvals)
        if found.state is ApprovalState.DENIED:
            raise Blocked(Reason.APPROVAL_DENIED, f"approval: request {(found.request or '')[7:19]} is denied")
        why = "by a soft limit" if soft is not None else f"by {self.decided.rule or 'default'}" if self.decided else ""
        roles = f" of {' or '.join(need.roles)}" if need.roles else ""
        count = max(1, need.needed)
        message = f"the act needs {count} approval{'s' * (count > 1)}{roles} {why}".rstrip()
        open_ = found.state is ApprovalState.PENDING or (found.state is ApprovalState.GRANTED and wanted is not need)
        raise Waiting(message, refused=soft, request=found.request if open_ else None)

    def _leaves_unfilled(self, approvals: Sequence[Approved], need: Need) -> bool:
        """Return whether approvals leave a duty of the grant unfilled, or are too few for what else is asked."""
        voices = [(each.key, each.role) for each in approvals]
        asked = None if self.decided is None or self.decided.runs else replace(need, roles=self.decided.roles)
        if asked is not None and self.decided is not None:
            asked = replace(asked, needed=max(1, self.decided.needed))
        return unfilled(self.duties, voices) is not None or lacks(asked, self.duties, voices)

    def _attempt(self, key: str, view: View) -> Effect:
        known = known_of(self.recorder.ledger.reader, view.state, key)
        found = admit_effect(known, self.proposal.act, self.proposal.act_digest, key, now_ms=ms_of(now()))
        if isinstance(found, Blocked):
            raise found
        return Effect(key=key, attempt=found.attempt)

    def _reserve(self, view: View) -> Refused | None:
        """Return the soft limit that the act passes, None for none."""
        recorder = self.recorder
        spending = Spending.of(recorder.ledger)
        found = spending.admit(
            recorder.root,
            recorder.id,
            self.proposal.reserved,
            size=view.size,
            elapsed_ms=recorder.elapsed_ms(),
        )
        self.limited = spending.limited(recorder.root, recorder.id, size=view.size)
        if isinstance(found, Refused):
            raise Blocked(found.reason, found.message, refused=found)
        return found.asks

    def _decision(self, intent: Intent, blocked: Blocked) -> Decision:
        """Return the receipt that says why an act does not run."""
        decided, refused = self.decided, blocked.refused
        waits = isinstance(blocked, Waiting)
        by_policy = decided is not None and not decided.runs and (waits or blocked.reason is decided.reason)
        by_person = blocked.reason is Reason.APPROVAL_DENIED
        need = self.need if waits else None
        key = self.proposal.effect_key
        expires_ms = decided.expires_ms if decided is not None and by_policy and waits else 0
        return Decision(
            **self.recorder.common(),
            act=intent.act,
            act_digest=intent.act_digest,
            status="waiting" if waits else "denied" if by_policy or by_person or _denies(blocked) else "blocked",
            rule=intent.rule if by_policy else None,
            step=intent.step,
            policy=intent.policy,
            grant=intent.grant,
            reason=blocked.reason,
            effect=None if key is None else intent.effect or Effect(key=key, attempt=1),
            meter=None if refused is None else refused.meter,
            limit=None if refused is None else refused.limit,
            spent=None if refused is None else refused.spent,
            reserved=None if refused is None else refused.reserved,
            asked=None if refused is None else refused.asked,  # type: ignore[arg-type]  # an amount or `unknown`
            roles=() if need is None else need.roles,
            needed=None if need is None else max(1, need.needed),
            expires_at=time_after(now(), expires_ms) if expires_ms else None,
            artifacts=intent.artifacts,
        )


def _denies(blocked: Blocked) -> bool:
    """Return whether a rule said no: a runbook or a grant, and not the state of what they count."""
    return blocked.reason in _DENYING


def _need(intent: Intent, roles: tuple[str, ...]) -> Need:
    return Need(
        act_digest=intent.act_digest,
        act_name=intent.act.name,
        run=intent.run,
        precondition=intent.act.precondition,
        policy=intent.policy,
        roles=roles,
    )


def _would_have(decided: PolicyDecision) -> WouldHave | None:
    if decided.answer is Answer.ALLOW or decided.reason is None:
        return None
    return WouldHave(status="denied" if decided.answer is Answer.DENY else "waiting", reason=decided.reason)
