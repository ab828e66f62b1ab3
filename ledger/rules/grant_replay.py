"""Grants re-proved: a fold over receipts in chain order that finds a grant that widens, and an act that no grant covers.

Whether a grant stands, and in which period an act counts, is decided by the place of its receipt and by `recorded_at` of its
entry. The recorder asks the same fold before it admits an act.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ledger.members import Act, Charge
from ledger.receipt import Approval, Decision, Grant, Intent, Opening, Outcome, Receipt, Resolution, Run
from ledger.rules.amounts import UNKNOWN, Draw
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.budget import draw_of, settled_of, settles_as
from ledger.rules.delegation import check_delegation
from ledger.rules.errors import GrantError
from ledger.rules.grant import Grant as Given
from ledger.rules.grant import Uncovered, covers, duties_of, grant_of, line_of, stands
from ledger.rules.grant_purse import Overdrawn, Purses, PursesState
from ledger.rules.grant_terms import NO_TERMS, Duty, Terms, parse_terms, unfilled
from ledger.rules.policy_replay import DocumentOf
from ledger.rules.said import judge_reserved, judge_said, usage_of
from ledger.words import OutcomeStatus, Reason

__all__ = ["GrantReplay", "GrantsState", "RunUnder"]


@dataclass(frozen=True, slots=True)
class RunUnder:
    """What an open run acts under, and who acts in it."""

    grant: str | None
    agent: str


@dataclass(frozen=True, slots=True)
class GrantsState:
    """A fold over grants at rest."""

    grants: tuple[Given, ...] = ()
    revoked: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, RunUnder] = field(default_factory=dict)
    voices: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    purses: PursesState = field(default_factory=PursesState)


class GrantReplay:
    """Grants of one ledger, folded over its receipts."""

    def __init__(self, document_of: DocumentOf) -> None:
        self._document_of = document_of
        self.grants: dict[str, Given] = {}
        self.revoked: dict[str, int] = {}
        """Grant -> index of the first receipt that revokes it."""
        self.purses = Purses()
        self._unread: dict[str, str] = {}
        """Grant -> the code of the doubt about its terms."""
        self._runs: dict[str, RunUnder] = {}
        """Open run -> what it acts under."""
        self._voices: dict[str, tuple[str, str]] = {}
        """Approval -> key and role."""

    def state(self) -> GrantsState:
        """Return the state to go on from."""
        return GrantsState(
            tuple(self.grants.values()),
            dict(self.revoked),
            dict(self._unread),
            dict(self._runs),
            dict(self._voices),
            self.purses.state(),
        )

    def resume(self, state: GrantsState) -> None:
        """Go on from a state."""
        self.grants |= {each.id: each for each in state.grants}
        self.revoked |= state.revoked
        self._unread |= state.unread
        self._runs |= state.runs
        self._voices |= state.voices
        self.purses.resume(state.purses)

    def line(self, id_: str) -> tuple[Given, ...]:
        """Return a grant and those above it up to the root; nothing for one that is not known."""
        return line_of(self.grants, id_)

    def decide(self, run: str, named: str | None, act: Act, *, agent: str, now: str) -> Uncovered | None:
        """Return why an act of a run is not covered by the grant that it names, None if it is.

        Args:
            run: The run that acts.
            named: The grant that its intent is to name.
            act: The act.
            agent: Who acts.
            now: The recorder's clock.
        """
        found = self._runs.get(run)
        own = None if found is None else found.grant
        if named is None:
            return Uncovered(Reason.GRANT_MISSING, "grant.missing", "its run acts under a grant, and it names none")
        line = self.line(named)
        fallen = stands(line, self.revoked, now=now)
        if fallen is not None:
            return fallen
        if own is not None and own not in {each.id for each in line}:
            return Uncovered(
                Reason.GRANT_MISSING, "grant.other", f"{named[:15]} is not narrowed from {own[:15]}, that of its run"
            )
        return covers(line, act, agent=agent)

    def overdrawn(self, named: str, draw: Draw, *, now: str) -> Overdrawn | None:
        """Return the limit of a grant or an account that refuses an act, None if none does."""
        return self.purses.ask(self.line(named), draw, now=now)

    def duties(self, named: str) -> tuple[Duty, ...]:
        """Return whose approvals an act under a grant needs."""
        return duties_of(self.line(named))

    def voices(self, approvals: Iterable[str]) -> list[tuple[str, str]]:
        """Return key and role of those approvals that grant something."""
        return [self._voices[each] for each in approvals if each in self._voices]

    def unread(self, named: str) -> str | None:
        """Return the code of the doubt about the terms of a grant or one above it, None where all are read."""
        return next((self._unread[each.id] for each in self.line(named) if each.id in self._unread), None)

    def see(self, index: int, id_: str, receipt: Receipt, *, now: str) -> list[Finding]:
        """Return what one receipt shows, and take it into account; `now` is `recorded_at` of its entry."""
        match receipt:
            case Grant():
                return self._grant(index, id_, receipt, now)
            case Approval():
                if receipt.answer == "granted":
                    self._voices[id_] = (receipt.issuer.key, receipt.role)
            case Opening():
                return self._open(index, id_, receipt, now)
            case Intent():
                return self._intend(index, id_, receipt, now)
            case Outcome():
                status = settles_as(receipt.status, receipt.reason)
                return self._end(index, receipt.intent, status, receipt.charges, usage_of(receipt))
            case Resolution():
                happened = receipt.happened == "happened"
                status = OutcomeStatus.COMMITTED if happened else OutcomeStatus.FAILED
                return self._end(index, receipt.intent, status, receipt.charges)
            case Decision():
                return self._refuse(index, receipt, now)
            case Run():
                self._runs.pop(receipt.run, None)
            case _:
                pass
        return []

    def _grant(self, index: int, id_: str, receipt: Grant, now: str) -> list[Finding]:
        known = receipt.parent in self.grants
        if receipt.action == "revoked":
            if not known:
                return [Breach("grant.missing", index, "what it revokes does not stand before it")]
            self.revoked.setdefault(str(receipt.parent), index)
            return []
        terms = self._terms(id_, receipt.conditions)
        given = self.grants[id_] = grant_of(id_, receipt, terms, known=known)
        if given.rootless:
            return [Breach("grant.missing", index, "what it is narrowed from does not stand before it")]
        if given.parent is None:
            return []
        above = self.line(given.parent)
        wider = check_delegation(above, given)
        if wider is not None:
            self.grants[id_] = replace(given, wrong=wider.code)
        wrong = stands(above, self.revoked, now=now) or wider
        return [] if wrong is None else [Breach(wrong.code, index, wrong.message)]

    def _terms(self, id_: str, digest: str | None) -> Terms | None:
        if digest is None:
            return NO_TERMS
        data = self._document_of(digest)
        if data is None:
            self._unread[id_] = "grant.terms_absent"
            return None
        try:
            return parse_terms(data).terms
        except GrantError:
            self._unread[id_] = "grant.terms_unreadable"
            return None

    def _open(self, index: int, id_: str, opening: Opening, now: str) -> list[Finding]:
        above = self._runs.get(opening.parent_opening or "")
        bound = None if above is None else above.grant
        if opening.grant is None:
            # It still acts under the one above: what it does is judged by that.
            self._runs[id_] = RunUnder(bound, opening.actor.agent)
            if bound is None:
                return []
            return [Breach("grant.missing", index, "the run above acts under a grant, and this one names none")]
        self._runs[id_] = RunUnder(opening.grant, opening.actor.agent)
        line = self.line(opening.grant)
        wrong = stands(line, self.revoked, now=now)
        if wrong is not None:
            return [Breach(wrong.code, index, wrong.message)]
        if bound is not None and bound not in {each.id for each in line}:
            return [Breach("grant.other", index, f"it is not narrowed from {bound[:15]}, that of the run above")]
        if line[0].grantee != opening.actor.agent:
            return [Breach("grant.other", index, f"it is for {line[0].grantee!r}, not for {opening.actor.agent!r}")]
        return []

    def _intend(self, index: int, id_: str, intent: Intent, now: str) -> list[Finding]:
        run = self._runs.get(intent.run)
        if intent.grant is None and (run is None or run.grant is None):
            return []
        agent = "" if run is None else run.agent
        findings: list[Finding] = []
        wrong = self.decide(intent.run, intent.grant, intent.act, agent=agent, now=now)
        if wrong is not None:
            findings.append(Breach(wrong.code, index, wrong.message))
        named = intent.grant or (run.grant if run is not None else None) or ""
        line, draw = self.line(named), draw_of(intent.reserved)
        doubt = self.unread(named)
        if doubt is not None:
            findings.append(Doubt(doubt, index, f"terms of the line of {named[:15]}"))
        over = self.purses.ask(line, draw, now=now)
        if over is not None:
            findings.append(_judge(index, over, draw))
        missing = unfilled(duties_of(line), self.voices(intent.approvals))
        if missing is not None:
            findings.append(
                Breach("grant.duties", index, f"approvals: got too few in the role {missing.role!r}, by different keys")
            )
        self.purses.take(id_, line, draw, now=now)
        drawn = self.purses.drawn_by(id_)
        return findings if drawn is None else findings + judge_reserved(index, drawn[0], intent.reserved)

    def _end(
        self, index: int, intent: str, status: OutcomeStatus, charges: Sequence[Charge], usage: Sequence[Charge] = ()
    ) -> list[Finding]:
        drawn = self.purses.drawn_by(intent)
        if drawn is None:
            return []
        findings: list[Finding] = [
            Breach(_code(each.slot[1] is not None), index, f"{each.meter}: spent {each.spent}, limit {each.limit}")
            for each in self.purses.end(intent, status, settled_of(charges))
        ]
        return findings + judge_said(index, *drawn, status, charges, usage, contradicted="grant.contradicted")

    def _refuse(self, index: int, decision: Decision, now: str) -> list[Finding]:
        """Return what speaks against the amounts that a refusal by a grant's limit gives."""
        if decision.reason not in (Reason.GRANT_LIMIT, Reason.GRANT_PERIOD) or decision.meter is None:
            return []
        said = (decision.limit, decision.spent, decision.reserved)
        if said in self.purses.amounts(self.line(decision.grant or ""), decision.meter, now=now):
            return []
        return [Breach("grant.contradicted", index, f"{decision.meter}: refused with {said}")]


def _judge(index: int, over: Overdrawn, draw: Draw) -> Finding:
    refused = over.refused
    if refused.reason is Reason.PRICE_UNKNOWN and draw.get(refused.meter) == UNKNOWN:
        return Doubt("budget.basis_unknown", index, refused.message)
    code = "budget.unknown_price" if refused.reason is Reason.PRICE_UNKNOWN else _code(over.slot[1] is not None)
    return Breach(code, index, refused.message)


def _code(of_account: bool) -> str:  # noqa: FBT001  which of two words
    return "grant.period_overspent" if of_account else "grant.overspent"
