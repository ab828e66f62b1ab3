"""Delegations: a grant narrowed from another never allows more than that one.

- Acts, limits, limits of periods and the end may only shrink. Terms add up along the line, so a delegation cannot drop one.
- One to another actor names the mandate under which it is made.
- The answer about patterns is safe and not complete: a pattern is taken to lie within another if it is the same, or literal and
  covered by it, or the other's beginning and more.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ledger.rules.glob import is_literal, matches
from ledger.rules.grant import MAX_LEVELS, Grant, Uncovered
from ledger.words import Reason

__all__ = ["check_delegation", "lies_within"]


def check_delegation(above: Sequence[Grant], grant: Grant) -> Uncovered | None:
    """Return in what a grant is wider than the line that it is narrowed from, None if in nothing.

    Args:
        above: Its parent and those above that, up to the root.
        grant: The grant that is narrowed from the first of them.
    """
    if len(above) >= MAX_LEVELS:
        return _widened(f"got more than {MAX_LEVELS} levels")
    if grant.grantee != above[0].grantee and grant.mandate is None:
        return Uncovered(
            Reason.GRANT_WIDENED,
            "grant.unmandated",
            f"it hands over from {above[0].grantee!r} to {grant.grantee!r} and names no mandate",
        )
    # One list of acts rules the line: the nearest above that names any.
    wide = next((each.acts for each in above if each.acts is not None), ())
    for pattern in grant.acts or ():
        if not any(lies_within(pattern, each) for each in wide):
            return _widened(f"acts: {pattern!r} is not within those above")
    return _wider_limit(above, grant) or _wider_period(above, grant) or _later_end(above, grant)


def lies_within(narrow: str, wide: str) -> bool:
    """Return whether every text that the narrow pattern covers is sure to be covered by the wide one."""
    if wide in (narrow, "**"):
        return True
    if is_literal(narrow):
        return matches(wide, narrow)
    start = wide.rstrip("*")
    stars = wide[len(start) :]
    if not stars or not is_literal(start) or not narrow.startswith(start):
        return False
    rest = narrow[len(start) :]
    return len(stars) > 1 or not ("/" in rest or "**" in rest)


def _wider_limit(above: Sequence[Grant], grant: Grant) -> Uncovered | None:
    for own in grant.limits:
        for limit in (each for grant_above in above for each in grant_above.limits if each.meter == own.meter):
            if own.limit > limit.limit or own.limit + (own.grace or 0) > limit.limit + (limit.grace or 0):
                return _widened(f"{own.meter}: got limit {own.limit}, above it is {limit.limit}")
    return None


def _wider_period(above: Sequence[Grant], grant: Grant) -> Uncovered | None:
    for own in grant.periods:
        name = (own.account, own.meter, own.period)
        for limit in (each for grant_above in above for each in grant_above.periods):
            if (limit.account, limit.meter, limit.period) == name and own.limit > limit.limit:
                return _widened(f"{own.meter} a {own.period}: got limit {own.limit}, above it is {limit.limit}")
    return None


def _later_end(above: Iterable[Grant], grant: Grant) -> Uncovered | None:
    for each in above:
        if grant.expires_at is not None and each.expires_at is not None and grant.expires_at > each.expires_at:
            return _widened(f"it ends at {grant.expires_at}, above it at {each.expires_at}")
    return None


def _widened(message: str) -> Uncovered:
    return Uncovered(Reason.GRANT_WIDENED, "grant.widened", message)
