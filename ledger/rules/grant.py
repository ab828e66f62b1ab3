"""Authority: who may do which acts, on what terms, within which limits, until when.

    given <--narrowed-- ... <--narrowed-- the grant that an act names

- An act is covered only if every grant from the one it names to the root covers it. How deep a grant stands is never recorded:
  it is walked.
- A grant that names no acts at its root, or an empty list anywhere, covers nothing.
- A grant that is revoked or has expired takes with it everything that was narrowed from it.
- A condition that cannot be compared does not hold.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger.members import Act, Limit, PeriodLimit
from ledger.receipt import Grant as GrantReceipt
from ledger.rules.condition import holds
from ledger.rules.glob import matches
from ledger.rules.grant_terms import NO_TERMS, Duty, Terms
from ledger.words import Reason

__all__ = ["MAX_LEVELS", "Grant", "Uncovered", "covers", "duties_of", "grant_of", "line_of", "stands"]

MAX_LEVELS: Final = 32
"""Grants from a leaf to its root at most."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant that was given or narrowed."""

    id: str
    grantee: str
    acts: tuple[str, ...] | None
    """Patterns over the names of acts; None: those of its parent."""
    parent: str | None = None
    terms: Terms | None = field(default_factory=lambda: NO_TERMS)
    """None where they are named and cannot be read: it covers nothing that is sure."""
    limits: tuple[Limit, ...] = ()
    periods: tuple[PeriodLimit, ...] = ()
    expires_at: str | None = None
    mandate: str | None = None
    rootless: bool = False
    """Whether it says that it narrows another and names none that stands before it."""
    wrong: str | None = None
    """The code of the breach that it is by itself: it is wider than what it is narrowed from, and covers nothing."""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """Why an act, a run or a delegation is not covered."""

    reason: Reason
    code: str
    """The code of the breach that admitting it would be."""
    message: str


def grant_of(id_: str, receipt: GrantReceipt, terms: Terms | None, *, known: bool) -> Grant:
    """Return the grant that a receipt gives; `known` says whether its parent stands before it."""
    return Grant(
        id=id_,
        grantee=receipt.grantee,
        acts=receipt.acts,
        parent=receipt.parent if known else None,
        terms=terms,
        limits=receipt.limits,
        periods=receipt.periods,
        expires_at=receipt.expires_at,
        mandate=receipt.mandate,
        rootless=not known and (receipt.parent is not None or receipt.action == "narrowed"),
    )


def line_of(grants: Mapping[str, Grant], id_: str) -> tuple[Grant, ...]:
    """Return a grant and those above it up to the root; nothing for one that is not known or stands too deep."""
    line: list[Grant] = []
    at: str | None = id_
    while at is not None:
        found = grants.get(at)
        if found is None or len(line) == MAX_LEVELS:
            return ()
        line.append(found)
        at = found.parent
    return tuple(line)


def stands(line: Sequence[Grant], revoked: Mapping[str, int], *, now: str) -> Uncovered | None:
    """Return why a grant, with those above it, does not stand at a time; None if it does.

    Args:
        line: The grant and those above it up to the root.
        revoked: Grant -> index of the first receipt that revokes it, of those before this place.
        now: The recorder's clock.
    """
    if not line or line[-1].rootless:
        return Uncovered(Reason.GRANT_MISSING, "grant.missing", "it, or one above it, does not stand before this")
    for each in line:
        if each.wrong is not None:
            return Uncovered(Reason.GRANT_WIDENED, each.wrong, f"{each.id[:15]} is wider than what it is narrowed from")
        if each.id in revoked:
            return Uncovered(
                Reason.GRANT_REVOKED, "grant.revoked", f"{each.id[:15]} was revoked at entry {revoked[each.id]}"
            )
        if each.expires_at is not None and now >= each.expires_at:
            return Uncovered(Reason.GRANT_EXPIRED, "grant.expired", f"{each.id[:15]} held until {each.expires_at}")
    return None


def covers(line: Sequence[Grant], act: Act, *, agent: str) -> Uncovered | None:
    """Return why a grant that stands does not cover an act, None if it does; terms that cannot be read are passed over.

    Args:
        line: The grant and those above it up to the root.
        act: The act; conditions look at its inline arguments.
        agent: Who acts.
    """
    if line[0].grantee != agent:
        return Uncovered(
            Reason.GRANT_MISSING, "grant.other", f"it is for {line[0].grantee!r}, and {agent!r} acts in this run"
        )
    inline = act.arguments or {}
    for each in line:
        patterns = () if each.acts is None and each.parent is None else each.acts
        if patterns is not None and not any(matches(pattern, act.name) for pattern in patterns):
            return _not_covered(each, f"no pattern of its acts covers {act.name!r}")
        for condition in (each.terms or NO_TERMS).when:
            if not holds(condition, inline, otherwise=False):
                return _not_covered(each, f"{condition.argument!r} is not {condition.comparison} {condition.value!r}")
    return None


def duties_of(line: Sequence[Grant]) -> tuple[Duty, ...]:
    """Return whose approvals an act needs: of each role the most that a grant of the line asks for."""
    needed: dict[str, int] = {}
    for each in line:
        for duty in (each.terms or NO_TERMS).duties:
            needed[duty.role] = max(duty.needed, needed.get(duty.role, 0))
    return tuple(Duty(role, count) for role, count in needed.items())


def _not_covered(grant: Grant, why: str) -> Uncovered:
    return Uncovered(Reason.GRANT_NOT_COVERED, "grant.not_covered", f"{grant.id[:15]}: {why}")
