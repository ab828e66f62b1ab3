"""Authority while runs go on: grants are given, narrowed and revoked, and acts are held to them.

    root = give(ledger, "ops-lead", acts=["refund"], periods=[PeriodLimit(account="acme", meter="usd_micro", period="day", limit=5_000_000)])
    leaf = narrow(ledger, root, "bot", mandate="head of support", when={"amount": {"le": 5000}})
    revoke(ledger, leaf)

What is refused here is what the fold that re-proves it would find; nothing is recorded then.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from ledger import canonical
from ledger.attempts import read_place
from ledger.canonical import JsonObject, JsonValue
from ledger.envelope import Envelope
from ledger.errors import LedgerError, clip
from ledger.members import Act, Charge, Limit, PeriodLimit
from ledger.receipt import Grant, Opening
from ledger.recorder import Recorder, common_of, explain
from ledger.refusals import Blocked
from ledger.rules.amounts import COUNTED_METERS, DURATION, METERS, is_edge, is_money, refuse_limits
from ledger.rules.breach import Breach
from ledger.rules.budget import draw_of
from ledger.rules.errors import BudgetError, GrantError
from ledger.rules.grant import stands
from ledger.rules.grant_replay import GrantReplay
from ledger.rules.grant_terms import TERMS_SCHEMA, Duty, TermsDocument, parse_terms
from ledger.rules.instant import time_after
from ledger.rules.period import end_of
from ledger.storage.clock import now
from ledger.storage.ledger import Ledger
from ledger.storage.topics import GRANTED
from ledger.storage.writer import View
from ledger.words import Reason

__all__ = ["MARGIN_MS", "Authority", "admit_opening", "cover", "draw", "give", "limited_under", "narrow", "revoke"]

MARGIN_MS: Final = 1_000
"""How long a grant must still hold, so that it does when its use is recorded."""
_ALL: Final[WeakKeyDictionary[Ledger, Authority]] = WeakKeyDictionary()


class Authority:
    """The grants of a ledger, and what was spent under them, as far as this process asked. Used under the ledger's lock only."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._replay = GrantReplay(self._document)
        self._seen = -1
        """Index of the last receipt that was taken into account."""
        self._openings: set[str] = set()

    @classmethod
    def of(cls, ledger: Ledger) -> Authority:
        """Return the one of a ledger."""
        found = _ALL.get(ledger)
        if found is None:
            found = _ALL[ledger] = cls(ledger)
        return found

    def caught_up(self, view: View) -> GrantReplay:
        """Return the fold over all that bears on authority up to now.

        Raises:
            DamagedError: a receipt is not where the state says.
        """
        try:
            for place in view.state.about(GRANTED, after=self._seen):
                stored, receipt = read_place(self._ledger.reader, place)
                self._replay.see(place[0], stored.entry.receipt, receipt, now=stored.entry.recorded_at)
                self._seen = place[0]
        except BaseException:
            self._replay, self._seen, self._openings = GrantReplay(self._document), -1, set()
            raise
        return self._replay

    def opened(self, replay: GrantReplay, run: str, opening: Opening) -> None:
        """Take into account under which grant a run acts; its opening bears on nothing else."""
        if run not in self._openings:
            replay.see(-1, run, opening, now=opening.issued_at)
            self._openings.add(run)

    def _document(self, name: str) -> bytes | None:
        try:
            return self._ledger.artifacts.get(name)
        except (LedgerError, OSError):
            return None


def admit_opening(ledger: Ledger, opening: Opening, above: str | None, view: View) -> None:
    """Raise unless a run may act under the grant that its opening names; `above` is that of the run that starts it.

    Raises:
        Blocked: it does not stand, is for somebody else, or is not narrowed from the one above.
    """
    replay = Authority.of(ledger).caught_up(view)
    line = replay.line(opening.grant or "")
    found = stands(line, replay.revoked, now=time_after(now(), MARGIN_MS))
    if found is not None:
        raise Blocked(found.reason, f"grant: {found.message}")
    if line[0].grantee != opening.actor.agent:
        message = f"grant: it is for {line[0].grantee!r}, not for {opening.actor.agent!r}"
        raise Blocked(Reason.GRANT_MISSING, message)
    if above is not None and above not in {each.id for each in line}:
        raise Blocked(Reason.GRANT_MISSING, f"grant: it is not narrowed from {above[:15]}, that of the run above")


def cover(recorder: Recorder, named: str, act: Act, view: View) -> tuple[Duty, ...]:
    """Return whose approvals an act needs under the grant that it is to name.

    Raises:
        Blocked: the grant does not stand, does not cover it, or its terms cannot be read.
    """
    authority = Authority.of(recorder.ledger)
    replay = authority.caught_up(view)
    authority.opened(replay, recorder.id, recorder.opening)
    soon = time_after(now(), MARGIN_MS)
    found = replay.decide(recorder.id, named, act, agent=recorder.opening.actor.agent, now=soon)
    if found is not None:
        raise Blocked(found.reason, f"grant: {found.message}")
    if replay.unread(named) is not None:
        raise Blocked(Reason.GRANT_NOT_COVERED, f"grant: terms in the line of {named[:15]} cannot be read")
    return replay.duties(named)


def draw(recorder: Recorder, named: str, charges: Iterable[Charge], view: View) -> None:
    """Raise unless the limits of a grant, those above it, and those of their accounts let an act draw what it says.

    Raises:
        Blocked: the limit, with its amounts.
    """
    found = Authority.of(recorder.ledger).caught_up(view).overdrawn(named, draw_of(charges), now=now())
    if found is None:
        return
    account, period, start = found.slot
    refused = found.refused
    if refused.reason is Reason.PRICE_UNKNOWN:
        raise Blocked(refused.reason, f"grant {found.owner[7:19]}: {refused.message}")
    if period is None:
        raise Blocked(Reason.GRANT_LIMIT, f"grant {found.owner[7:19]}: {refused.message}", refused=refused)
    message = f"account {account!r}, {period} of {start}, until {end_of(period, start)}: {refused.message}"
    raise Blocked(Reason.GRANT_PERIOD, message, refused=refused)


def limited_under(recorder: Recorder, named: str, view: View) -> frozenset[str]:
    """Return the meters that a grant or one above it limits."""
    line = Authority.of(recorder.ledger).caught_up(view).line(named)
    own = {limit.meter for grant in line for limit in grant.limits}
    return frozenset(own | {limit.meter for grant in line for limit in grant.periods})


def give(
    ledger: Ledger,
    grantee: str,
    *,
    acts: Sequence[str],
    when: JsonObject | None = None,
    approvals: Mapping[str, int] | None = None,
    terms: TermsDocument | None = None,
    limits: Iterable[Limit] = (),
    periods: Iterable[PeriodLimit] = (),
    expires_at: str | None = None,
    mandate: str | None = None,
) -> str:
    """Return the receipt id of a new grant, a root.

    Args:
        ledger: Where it stands.
        grantee: Who may act: the agent's name in the runs that act under it.
        acts: Patterns over the names of acts.
        when: Conditions on inline arguments, as in a policy's rule.
        approvals: Role -> how many approvers of it each act needs, all of them different.
        terms: Both, read from a file by `read_terms`, in their place.
        limits: What may be spent under it, on charged meters.
        periods: What accounts may spend under it a day, a week or a month.
        expires_at: When it stops holding.
        mandate: The office that it comes from.

    Raises:
        GrantError, BudgetError, ArgumentsError: outside its form; nothing was recorded.
    """
    terms = _terms(when, approvals, terms)
    return _record(
        ledger,
        terms,
        action="given",
        grantee=grantee,
        acts=tuple(acts),
        limits=_limits(limits),
        periods=_periods(periods),
        expires_at=expires_at,
        mandate=mandate,
    )


def narrow(
    ledger: Ledger,
    parent: str,
    grantee: str,
    *,
    acts: Sequence[str] | None = None,
    when: JsonObject | None = None,
    approvals: Mapping[str, int] | None = None,
    terms: TermsDocument | None = None,
    limits: Iterable[Limit] = (),
    periods: Iterable[PeriodLimit] = (),
    expires_at: str | None = None,
    mandate: str | None = None,
) -> str:
    """Return the receipt id of a grant narrowed from another; what is not given is that of its parent.

    Raises:
        GrantError: it is wider, names no mandate for another grantee, or its parent does not stand; nothing was recorded.
        BudgetError, ArgumentsError: outside its form; nothing was recorded.
    """
    terms = _terms(when, approvals, terms)
    return _record(
        ledger,
        terms,
        action="narrowed",
        grantee=grantee,
        acts=None if acts is None else tuple(acts),
        limits=_limits(limits),
        periods=_periods(periods),
        expires_at=expires_at,
        mandate=mandate,
        parent=parent,
    )


def revoke(ledger: Ledger, grant: str) -> str:
    """Return the receipt id of the revocation of a grant: from here on nothing runs under it or what was narrowed from it.

    Raises:
        GrantError: no such grant.
    """
    found: list[str] = []
    ledger.look(
        lambda view: found.extend(each.grantee for each in Authority.of(ledger).caught_up(view).line(grant)[:1])
    )
    if not found:
        raise GrantError(f"grant {clip(grant)}: no such grant in this ledger", code="grant.missing")
    return _record(ledger, None, action="revoked", grantee=found[0], parent=grant)


def _record(ledger: Ledger, terms: TermsDocument | None, **members: object) -> str:
    """Return the id of a grant's receipt, appended if the fold finds nothing against it."""
    try:
        receipt = Grant(
            **common_of(ledger),
            conditions=None if terms is None else terms.digest,
            **members,  # type: ignore[arg-type]  # checked by the model
        )
    except ValidationError as error:
        raise explain("grant", error) from error
    if terms is not None:
        ledger.artifacts.stage(terms.data)

    def build(view: View) -> list[Envelope]:
        sealed = ledger.seal(receipt)
        replay = GrantReplay(lambda _: None if terms is None else terms.data)
        replay.resume(Authority.of(ledger).caught_up(view).state())
        for found in replay.see(view.size, sealed.receipt_id, receipt, now=time_after(now(), MARGIN_MS)):
            if isinstance(found, Breach):
                raise GrantError(f"grant: {found.message}", code=found.code)
        return [sealed]

    return ledger.commit(build)[-1].receipt


def _terms(
    when: JsonObject | None, approvals: Mapping[str, int] | None, read: TermsDocument | None
) -> TermsDocument | None:
    if when is None and approvals is None:
        return read
    if read is not None:
        raise GrantError("terms: got a document and conditions or approvals beside it, expected one of them")
    value: JsonObject = {"schema": TERMS_SCHEMA}
    if when is not None:
        value["when"] = when
    if approvals is not None:
        duties: list[JsonValue] = [{"role": role, "needed": needed} for role, needed in approvals.items()]
        value["approvals"] = duties
    return parse_terms(canonical.encode(value))


def _limits(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    found = tuple(limits)
    refuse_limits(found)
    for each in found:
        if each.soft is not None:
            raise BudgetError(f"grant: {each.meter}: got a soft limit, expected none in a grant")
        _refuse_meter(each.meter)
    return found


def _periods(periods: Iterable[PeriodLimit]) -> tuple[PeriodLimit, ...]:
    found = tuple(periods)
    names = [(each.account, each.meter, each.period) for each in found]
    if len(set(names)) != len(names):
        raise BudgetError("grant: got a limit of one account, meter and period twice", code="budget.repeated_meter")
    for each in found:
        _refuse_meter(each.meter)
    return found


def _refuse_meter(meter: str) -> None:
    known = meter in METERS or is_money(meter) or is_edge(meter)
    if not known or meter in COUNTED_METERS or meter == DURATION:
        raise BudgetError(f"grant: got meter {clip(meter)}, expected one that is charged", code="budget.unknown_meter")
