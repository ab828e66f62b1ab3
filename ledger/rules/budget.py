"""Budgets: what a run may spend, set aside before an act and settled after it.

- Nothing is admitted whose cost, added to what is spent and set aside, would pass a limit of its run or of a run above it.
- Under a money limit a price is said before anything runs; what is not known is refused, and zero is said.
- What an act sets aside stays set aside until it is known what happened.
- A settle above what was set aside is an overrun: it is counted, and the next act is refused.

    free  --reserve-->  reserved  --settle-->   spent
                           |      --release-->  free
                           +------ ambiguous: stays reserved until it is resolved

A `Budget` is one run's; a list of budgets goes from the run that acts to the outermost run. An act draws from all of them.

Source: docs/spec/rules/budgets.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self, TypeAlias

from ledger.canonical import MAX_INTEGER
from ledger.members import Charge, CurrencyAmount, Limit
from ledger.rules.amounts import COUNTED_METERS, DURATION, UNKNOWN, Draw, is_edge, is_money
from ledger.rules.effect import PROOFS_OF_NOTHING
from ledger.words import OutcomeStatus, Reason

__all__ = [
    "RECEIPTS_OF_AN_ACT",
    "RECEIPTS_OF_A_RUN",
    "Budget",
    "Hold",
    "Line",
    "Refused",
    "Reserved",
    "admit_child",
    "count_closed",
    "count_opened",
    "count_written",
    "draw_of",
    "hold",
    "kept_time",
    "reserve",
    "settle",
    "settled_of",
    "settles_as",
    "uncounted",
]

RECEIPTS_OF_AN_ACT: Final = 2
"""An intent and its outcome."""
RECEIPTS_OF_A_RUN: Final = 2
"""An opening and a `run`."""
Hold: TypeAlias = Mapping[str, int]
"""Meter -> what one act has set aside."""


class Line(NamedTuple):
    """One meter of a budget. `limit` is None for a meter that is only counted."""

    limit: int | None = None
    soft: int | None = None
    grace: int = 0
    spent: int = 0
    reserved: int = 0

    @property
    def left(self) -> int | None:
        """What may still be set aside; None without a limit, negative after an overrun."""
        return None if self.limit is None else self.limit - self.spent - self.reserved


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may spend and what it and the runs below it have spent."""

    lines: Mapping[str, Line] = field(default_factory=dict)
    overrun: str | None = None
    """The meter on which an act cost more than it had set aside: a limited one, or one of another currency than the limit's."""
    started_ms: int | None = None
    """When the run opened, on the clock of `now_ms`; None where it is not known."""
    currency: str | None = None
    """The money meter that is limited."""

    @classmethod
    def of(
        cls,
        limits: Iterable[Limit] = (),
        *,
        spent: Mapping[str, int] | None = None,
        reserved: Mapping[str, int] | None = None,
        overrun: str | None = None,
        started_ms: int | None = None,
    ) -> Self:
        """Return a budget from the limits of an opening and, where it goes on, what was spent and set aside before."""
        lines = {each.meter: Line(limit=each.limit, soft=each.soft, grace=each.grace or 0) for each in limits}
        for meter, amount in (spent or {}).items():
            lines[meter] = lines.get(meter, _FREE)._replace(spent=amount)
        for meter, amount in (reserved or {}).items():
            lines[meter] = lines.get(meter, _FREE)._replace(reserved=amount)
        currency = next((meter for meter, line in lines.items() if line.limit is not None and is_money(meter)), None)
        return cls(lines, overrun, started_ms, currency)

    def is_limited(self) -> bool:
        """Return whether any meter has a limit."""
        return any(line.limit is not None for line in self.lines.values())

    def is_limited_on(self, meter: str) -> bool:
        """Return whether a meter has a limit."""
        line = self.lines.get(meter)
        return line is not None and line.limit is not None

    def totals(self) -> tuple[CurrencyAmount, ...]:
        """Return what was spent, by meter in their order; meters counted otherwise and totals past 2^53-1 are left out."""
        return tuple(
            CurrencyAmount(meter=meter, value=line.spent)
            for meter, line in sorted(self.lines.items())
            if line.spent <= MAX_INTEGER
            and meter not in COUNTED_METERS
            and meter != DURATION
            and (line.spent or line.limit is not None)
        )

    def time_left_ms(self, now_ms: int) -> int | None:
        """Return how long the run may still take, None without a time limit or where it is not known when it opened."""
        line = self.lines.get(DURATION)
        if line is None or line.limit is None or self.started_ms is None:
            return None
        return line.limit - (now_ms - self.started_ms)


@dataclass(frozen=True, slots=True)
class Refused:
    """An act that is not admitted: nothing runs, and a `decision` holds these members."""

    reason: Reason
    meter: str
    limit: int
    spent: int
    reserved: int
    asked: int | str
    level: int
    """Which budget of the list refused: 0 is that of the run that acts."""

    @property
    def message(self) -> str:
        """What was refused and why, for a person."""
        where = "" if self.level == 0 else f" of the run {self.level} above"
        return (
            f"{self.meter}: asked {self.asked}, spent {self.spent}, reserved {self.reserved}, limit {self.limit}{where}"
        )


@dataclass(frozen=True, slots=True)
class Reserved:
    """An act that is admitted: the budgets after it, and what it set aside."""

    budgets: tuple[Budget, ...]
    hold: Hold
    asks: Refused | None = None
    """The soft limit that this act passes: it needs an approval, with these amounts. `limit` is the soft one."""


_FREE: Final = Line()


def draw_of(charges: Iterable[Charge]) -> dict[str, int | str]:
    """Return what the charges of an intent draw: those that somebody else pays are said, and draw nothing."""
    draw: dict[str, int | str] = {}
    for charge in charges:
        amount = charge.quoted if charge.reserved is None else charge.reserved
        if charge.payer is not None:
            draw.setdefault(charge.meter, 0)
        elif amount is None or amount == UNKNOWN or draw.get(charge.meter) == UNKNOWN:
            draw[charge.meter] = UNKNOWN
        else:
            draw[charge.meter] = int(draw.get(charge.meter, 0)) + int(amount)
    return draw


def settled_of(charges: Iterable[Charge]) -> dict[str, int | str]:
    """Return what the charges of an outcome or a resolution say that an act cost, by meter."""
    settled: dict[str, int | str] = {}
    for charge in charges:
        if charge.payer is not None or (charge.settled is None and charge.basis != UNKNOWN):
            continue
        if charge.settled is None or charge.settled == UNKNOWN or settled.get(charge.meter) == UNKNOWN:
            settled[charge.meter] = UNKNOWN
        else:
            settled[charge.meter] = int(settled.get(charge.meter, 0)) + int(charge.settled)
    return settled


def reserve(budgets: Sequence[Budget], draw: Draw, *, now_ms: int | None = None) -> Reserved | Refused:
    """Return the budgets with an act's draw set aside in each, or the first limit that refuses it; nearest run first.

    Args:
        budgets: Those of the run that acts, of its parent, and so on.
        draw: What the act says that it takes; a call, its two receipts and its place among acts at once are added.
        now_ms: The monotonic clock; None leaves time limits out.
    """
    asked = _asked(draw)
    asks = None
    for level, budget in enumerate(budgets):
        refused = _refuse(budget, asked, level, now_ms)
        if refused is not None:
            return refused
        asks = asks or _ask(budget, asked, level)
    return _hold(budgets, asked, asks)


def hold(budgets: Sequence[Budget], draw: Draw) -> Reserved:
    """Return the budgets with a draw set aside, whatever their limits say; what is unknown sets nothing aside."""
    return _hold(budgets, _asked(draw), None)


def _asked(draw: Draw) -> dict[str, int | str]:
    """Return a draw with what every act takes, said or not: a call, its two receipts, its place among acts at once."""
    asked = {**draw, "receipts": RECEIPTS_OF_AN_ACT, "concurrency": 1}
    if not asked.get("tool_calls"):
        asked["tool_calls"] = 1
    return asked


def _hold(budgets: Sequence[Budget], asked: Draw, asks: Refused | None) -> Reserved:
    held = {meter: int(amount) for meter, amount in asked.items() if amount != UNKNOWN}
    return Reserved(tuple(_moved(budget, held, {}) for budget in budgets), held, asks)


def settle(
    budgets: Sequence[Budget], held: Hold, status: OutcomeStatus, settled: Draw
) -> tuple[tuple[Budget, ...], Hold]:
    """Return the budgets after an act ended, and what it still holds.

    - `committed`: what is said is spent; what is not said, or is unknown, costs what was set aside.
    - `failed`: nothing was done, so all goes back but what is said to have been charged nevertheless.
    - `ambiguous`: all stays set aside, and no less than what is said; its place among acts at once is free.
    - An edge that was taken was taken, however the act ended: nothing of it goes back.

    A settle above what was set aside on a limited meter is an overrun of each budget that limits it, and one in another currency
    of each budget that limits money.
    """
    spent: dict[str, int] = {}
    kept: dict[str, int] = {}
    change: dict[str, int] = {}
    over: list[str] = []
    for meter in {**held, **settled}:
        before = held.get(meter, 0)
        said = settled.get(meter)
        known = None if said is None or said == UNKNOWN else int(said)
        costs = keeps = 0
        if meter == "receipts":
            costs = before
        elif meter == "concurrency":
            pass
        elif status is OutcomeStatus.AMBIGUOUS:
            keeps = kept[meter] = before if known is None else max(before, known)
        elif status is OutcomeStatus.COMMITTED and (known is None or not is_edge(meter)):
            costs = before if known is None else known
        elif is_edge(meter):
            costs = max(before, known or 0)
        else:
            costs = (before if said == UNKNOWN else 0) if known is None else known
        spent[meter], change[meter] = costs, keeps - before
        if costs + keeps > before:
            over.append(meter)
    return tuple(
        _overrun(_moved(budget, change, spent), (*sorted(over), *uncounted(budget, settled))) for budget in budgets
    ), kept


def settles_as(status: OutcomeStatus, reason: Reason | None) -> OutcomeStatus:
    """Return how an outcome settles: one that is called failed without proof that nothing was done as if it had been done."""
    unproven = status is OutcomeStatus.FAILED and reason not in PROOFS_OF_NOTHING
    return OutcomeStatus.COMMITTED if unproven else status


def uncounted(budget: Budget, amounts: Draw) -> tuple[str, ...]:
    """Return the money meters, in their order, of which an amount cannot be counted against the money limit of a budget."""
    if budget.currency is None:
        return ()
    found = [meter for meter in amounts if meter != budget.currency and amounts[meter] and is_money(meter)]
    return tuple(sorted(meter for meter in found if not budget.is_limited_on(meter)))


def admit_child(budgets: Sequence[Budget], *, siblings: int, limits: Iterable[Limit]) -> Refused | None:
    """Return what keeps a run from starting a child run with these limits, None if nothing does.

    A child run draws on every budget above it. A limit of its own may only narrow: one that is wider than the same limit above,
    or in another currency, is refused.

    Args:
        budgets: Those of the run that starts it, of its parent, and so on.
        siblings: How many child runs the same call, or the same run outside its calls, has started already.
        limits: Those of the child's opening.
    """
    own = {each.meter: each.limit for each in limits}
    for level, budget in enumerate(budgets):
        if budget.overrun is not None:
            return _refusal(Reason.OVERRUN, budget, budget.overrun, 0, level)
        for meter, spent in (("depth", level), ("fanout", siblings)):
            line = budget.lines.get(meter)
            if line is not None and line.limit is not None and spent + 1 > line.limit:
                return Refused(Reason.LIMIT, meter, line.limit, spent, 0, 1, level)
        line = budget.lines.get("receipts")
        if line is not None and line.left is not None and line.left < RECEIPTS_OF_A_RUN:
            return _refusal(Reason.LIMIT, budget, "receipts", RECEIPTS_OF_A_RUN, level)
        limited = {meter: line.limit for meter, line in budget.lines.items() if line.limit is not None}
        currency = next(filter(is_money, limited), None)
        for meter, limit in own.items():
            if (meter in limited and limit > limited[meter]) or (
                is_money(meter) and currency is not None and meter not in limited
            ):
                return _refusal(Reason.LIMIT, budget, meter, limit, level)
    return None


def count_opened(budgets: Sequence[Budget]) -> tuple[Budget, ...]:
    """Return the budgets after a run opened, its own first: one receipt is written, and one is kept for its close."""
    return tuple(_moved(budget, {"receipts": 1}, {"receipts": 1}) for budget in budgets)


def count_closed(budgets: Sequence[Budget]) -> tuple[Budget, ...]:
    """Return the budgets after a run closed, its own first."""
    return tuple(_moved(budget, {"receipts": -1}, {"receipts": 1}) for budget in budgets)


def count_written(budgets: Sequence[Budget]) -> tuple[Budget, ...]:
    """Return the budgets after a decision or a step, which are written whatever the limit."""
    return tuple(_moved(budget, {}, {"receipts": 1}) for budget in budgets)


def kept_time(budget: Budget, duration_ms: int) -> bool:
    """Return whether a run that took this long kept its time limit; the limit held if the end came within its grace."""
    line = budget.lines.get(DURATION, _FREE)
    return line.limit is None or duration_ms <= line.limit + line.grace


def _refuse(budget: Budget, asked: Draw, level: int, now_ms: int | None) -> Refused | None:
    """Return why one budget does not admit a draw, None if it does."""
    lines, currency = budget.lines, budget.currency
    if budget.overrun is not None:
        return _refusal(Reason.OVERRUN, budget, budget.overrun, asked.get(budget.overrun, 0), level)
    if now_ms is not None and budget.started_ms is not None:
        limit = lines.get(DURATION, _FREE).limit
        if limit is not None and now_ms - budget.started_ms >= limit:
            return Refused(Reason.LIMIT, DURATION, limit, now_ms - budget.started_ms, 0, 0, level)
    if currency is not None and currency not in asked:
        return _refusal(Reason.PRICE_UNKNOWN, budget, currency, UNKNOWN, level)
    for meter, amount in asked.items():
        limit, _, _, spent, reserved = lines.get(meter, _FREE)
        if limit is None:
            # An amount of another currency cannot be counted against the limit.
            if currency is not None and amount and is_money(meter):
                return _refusal(Reason.PRICE_UNKNOWN, budget, meter, amount, level)
            limit = MAX_INTEGER
        elif amount == UNKNOWN:
            return _refusal(Reason.PRICE_UNKNOWN, budget, meter, UNKNOWN, level)
        if amount != UNKNOWN and spent + reserved + int(amount) > limit:
            return _refusal(Reason.LIMIT, budget, meter, amount, level)
    return None


def _ask(budget: Budget, asked: Draw, level: int) -> Refused | None:
    """Return the soft limit that a draw passes, None if it passes none."""
    for meter, amount in asked.items():
        line = budget.lines.get(meter)
        if line is None or line.soft is None or amount == UNKNOWN:
            continue
        if line.spent + line.reserved + int(amount) > line.soft:
            return Refused(Reason.APPROVAL_REQUIRED, meter, line.soft, line.spent, line.reserved, amount, level)
    return None


def _refusal(reason: Reason, budget: Budget, meter: str, asked: int | str, level: int) -> Refused:
    line = budget.lines.get(meter, _FREE)
    limit = MAX_INTEGER if line.limit is None else line.limit
    return Refused(reason, meter, limit, line.spent, line.reserved, asked, level)


def _moved(budget: Budget, reserved: Mapping[str, int], spent: Mapping[str, int]) -> Budget:
    """Return a budget with amounts added to what is reserved and spent."""
    lines = {**budget.lines}
    for meter in {**reserved, **spent} if spent else reserved:
        limit, soft, grace, before, held = lines.get(meter, _FREE)
        moved = (limit, soft, grace, before + spent.get(meter, 0), held + reserved.get(meter, 0))
        lines[meter] = tuple.__new__(Line, moved)  # as the class itself makes it, without the call between
    return Budget(lines, budget.overrun, budget.started_ms, budget.currency)


def _overrun(budget: Budget, meters: Iterable[str]) -> Budget:
    for meter in meters:
        foreign = budget.currency is not None and is_money(meter)
        if budget.overrun is None and (foreign or budget.is_limited_on(meter)):
            return replace(budget, overrun=meter)
    return budget
