"""What is spent under grants and by accounts: limits that hold across runs, and periods of accounts that hold across clocks.

- An act draws on the limits of its grant, on those of every grant above, and on those of the accounts that they name.
- It counts in the period in which it was admitted, whenever it ends.
- An account's time never goes back: after an act of a later period no earlier one opens again, whatever a clock says.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ledger.members import Limit
from ledger.rules.amounts import Draw
from ledger.rules.budget import Budget, Hold, Line, Refused, hold, reserve, settle
from ledger.rules.grant import Grant
from ledger.rules.period import start_of
from ledger.words import OutcomeStatus, Period

__all__ = ["Overdrawn", "Passed", "Purses", "PursesState", "Slot"]

Slot: TypeAlias = tuple[str, Period | None, str]
"""A grant, None, and nothing; or an account, a period, and its first day."""
_NOTHING: Final = Budget()
_NO_LINE: Final = Line()


@dataclass(frozen=True, slots=True)
class Overdrawn:
    """A limit that refuses an act: the budget's refusal, and the account's period where it is one of those."""

    refused: Refused
    slot: Slot
    owner: str
    """The grant that sets the limit."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A limit that an act passed when it ended, since it cost more than was set aside."""

    slot: Slot
    meter: str
    spent: int
    limit: int


@dataclass(frozen=True, slots=True)
class PursesState:
    """Sums at rest."""

    sums: tuple[tuple[Slot, Budget], ...] = ()
    latest: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, tuple[tuple[tuple[Slot, tuple[Limit, ...]], ...], Hold]] = field(default_factory=dict)


@dataclass(slots=True)
class Purses:
    """Sums of grants and of accounts by period."""

    sums: dict[Slot, Budget] = field(default_factory=dict)
    latest: dict[str, str] = field(default_factory=dict)
    """Account -> the latest time at which an act of it was admitted."""
    held: dict[str, tuple[tuple[tuple[Slot, tuple[Limit, ...]], ...], Hold]] = field(default_factory=dict)
    """Intent -> what it draws on and what it has set aside."""

    def state(self) -> PursesState:
        """Return the state to go on from."""
        return PursesState(tuple(self.sums.items()), dict(self.latest), dict(self.held))

    def resume(self, state: PursesState) -> None:
        """Go on from a state."""
        self.sums |= dict(state.sums)
        self.latest |= state.latest
        self.held |= state.held

    def ask(self, line: Sequence[Grant], draw: Draw, *, now: str) -> Overdrawn | None:
        """Return the limit that refuses an act under a grant at a time, None if none does; nothing is changed."""
        drawn = self._drawn(line, now)
        budgets = [_limited(self.sums.get(slot, _NOTHING), limits) for slot, limits, _ in drawn]
        found = reserve(budgets, draw)
        if not isinstance(found, Refused):
            return None
        slot, _, owner = drawn[found.level]
        return Overdrawn(found, slot, owner)

    def take(self, intent: str, line: Sequence[Grant], draw: Draw, *, now: str) -> None:
        """Set aside what an act draws, whatever the limits say."""
        drawn = self._drawn(line, now)
        if not drawn:
            return
        taken = hold([self.sums.get(slot, _NOTHING) for slot, _, _ in drawn], draw)
        for (slot, _, _), budget in zip(drawn, taken.budgets, strict=True):
            self.sums[slot] = budget
            if slot[1] is not None:
                self.latest[slot[0]] = max(self.latest.get(slot[0], ""), now)
        self.held[intent] = (tuple((slot, limits) for slot, limits, _ in drawn), taken.hold)

    def drawn_by(self, intent: str) -> tuple[list[Budget], Hold] | None:
        """Return the sums that an act under way draws on, with their limits, and what it has set aside; None where it draws on none."""
        found = self.held.get(intent)
        if found is None:
            return None
        return [_limited(self.sums[slot], limits) for slot, limits in found[0]], found[1]

    def end(self, intent: str, status: OutcomeStatus, settled: Draw) -> tuple[Passed, ...]:
        """Settle what an act cost, and return the limits that it passed by it."""
        found = self.held.pop(intent, None)
        if found is None:
            return ()
        drawn, held = found
        passed: list[Passed] = []
        before = [self.sums[slot] for slot, _ in drawn]
        after, kept = settle(before, held, status, settled)
        for (slot, limits), old, new in zip(drawn, before, after, strict=True):
            self.sums[slot] = new
            for each in limits:
                line, earlier = new.lines.get(each.meter, _NO_LINE), old.lines.get(each.meter, _NO_LINE)
                total = line.spent + line.reserved
                if total > each.limit + (each.grace or 0) and total > earlier.spent + earlier.reserved:
                    passed.append(Passed(slot, each.meter, total, each.limit))
        if kept:
            self.held[intent] = (drawn, kept)
        return tuple(passed)

    def amounts(self, line: Sequence[Grant], meter: str, *, now: str) -> set[tuple[int, int, int]]:
        """Return the limit, spent and reserved that a refusal by this meter may give."""
        found = set()
        for slot, limits, _ in self._drawn(line, now):
            at = self.sums.get(slot, _NOTHING).lines.get(meter, _NO_LINE)
            found |= {(each.limit, at.spent, at.reserved) for each in limits if each.meter == meter}
        return found

    def time_of(self, account: str, now: str) -> str:
        """Return the time by which an account's period is decided: the recorder's clock, or a later one that it showed before."""
        return max(now, self.latest.get(account, ""))

    def _drawn(self, line: Sequence[Grant], now: str) -> list[tuple[Slot, tuple[Limit, ...], str]]:
        """Return the sums that an act draws on, nearest grant first, each with its limits and the grant that sets them."""
        found: list[tuple[Slot, tuple[Limit, ...], str]] = []
        for grant in line:
            if grant.limits:
                limits = tuple(each.model_copy(update={"soft": None}) for each in grant.limits)
                found.append(((grant.id, None, ""), limits, grant.id))
            for each in grant.periods:
                slot: Slot = (each.account, each.period, start_of(each.period, self.time_of(each.account, now)))
                found.append((slot, (Limit(meter=each.meter, limit=each.limit),), grant.id))
        # A sum is moved once for an act, however many limits it has.
        merged: dict[Slot, tuple[tuple[Limit, ...], str]] = {}
        for slot, limits, owner in found:
            kept, first = merged.get(slot, ((), owner))
            merged[slot] = (_least((*kept, *limits)), first)
        return [(slot, limits, owner) for slot, (limits, owner) in merged.items()]


def _least(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return the limits with the least of those on one meter."""
    found: dict[str, Limit] = {}
    for each in limits:
        before = found.get(each.meter)
        if before is None or each.limit + (each.grace or 0) < before.limit + (before.grace or 0):
            found[each.meter] = each
    return tuple(found.values())


def _limited(budget: Budget, limits: Iterable[Limit]) -> Budget:
    """Return sums as a budget with limits."""
    spent = {meter: line.spent for meter, line in budget.lines.items()}
    reserved = {meter: line.reserved for meter, line in budget.lines.items()}
    return Budget.of(limits, spent=spent, reserved=reserved)
