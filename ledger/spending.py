"""Budgets while runs go on: what is spent and set aside, folded from the journal under its lock.

- Nothing is kept but in memory: a process that needs a run's budget folds its tree from the opening of the outermost run on,
  and after that what came since, whoever wrote it. So processes agree without telling each other anything.
- The fold is the one that re-proves budgets; deciding asks the same functions.

Source: docs/spec/rules/budgets.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from weakref import WeakKeyDictionary

from ledger.canonical import MAX_INTEGER
from ledger.envelope import parse_envelope
from ledger.errors import clip
from ledger.facts import read_facts
from ledger.line import parse_entry_line, print_entry_line
from ledger.members import Charge, CurrencyAmount, Limit
from ledger.receipt import Intent, Opening, Receipt, parse_receipt
from ledger.refusals import Blocked
from ledger.rules.amounts import COUNTED_METERS, DURATION, UNKNOWN, Draw, is_money, parse_budget, refuse_limits
from ledger.rules.budget import Budget, Refused, Reserved, count_closed, draw_of, reserve
from ledger.rules.budget_replay import BudgetReplay
from ledger.rules.errors import BudgetError
from ledger.storage.cursor import Cursor
from ledger.storage.ledger import Ledger, Position
from ledger.storage.reader import Reader
from ledger.words import Basis, Reason

__all__ = ["Spending", "budget_of", "charges_of", "charges_used", "limits_of", "root_of"]

_RESOLUTION: Final = b'"kind":"resolution"'
_FEW_RUNS: Final = 32
"""A tree of more runs parses every line instead of looking for the ids of its runs."""


def limits_of(limits: Iterable[Limit], budget: Mapping[str, int | str] | None) -> tuple[Limit, ...]:
    """Return the limits of a run: those given as such, and those of a mapping such as `{"usd": "0.50", "tool_calls": 60}`.

    Raises:
        BudgetError: another container, an amount that is no integer or decimal text, an unknown or repeated meter, two currencies.
    """
    if budget is not None and not isinstance(budget, Mapping):
        raise BudgetError(f"budget: got {clip(budget)}, expected a mapping of meters and amounts")
    try:
        found = tuple(limits)
    except TypeError as error:
        raise BudgetError(f"limits: got {clip(limits)}, expected a list of them") from error
    for each in found:
        if not isinstance(each, Limit):
            raise BudgetError(f"limits: got {clip(each)}, expected a Limit", hint='or budget={"usd": "0.50"}')
    words = []
    for name, amount in (budget or {}).items():
        if type(amount) is not int and type(amount) is not str:
            raise BudgetError(f"budget: {name!r}: got {amount!r}, expected an integer or decimal text such as '0.05'")
        words.append(f"{name}={amount}")
    found = (*found, *parse_budget(words))
    refuse_limits(found)
    return found


def charges_of(draw: Draw) -> tuple[Charge, ...]:
    """Return the charges of an intent that sets this aside."""
    return tuple(
        Charge(meter=meter, reserved=amount, basis=Basis.UNKNOWN if amount == UNKNOWN else Basis.QUOTED)  # type: ignore[arg-type]
        for meter, amount in draw.items()
    )


def charges_used(usage: Iterable[Charge], reserved: Iterable[Charge], limited: AbstractSet[str]) -> tuple[Charge, ...]:
    """Return what the usage of an act settles: its sum on each meter that was set aside or is limited.

    Under a money limit an amount of another currency is settled too: it cannot be counted, and that must be seen.
    A sum of which a part is not known is `unknown`, or the known part where that is more than was set aside.
    """
    held = {charge.meter: charge.reserved for charge in reserved}
    sums: dict[str, int] = {}
    basis: dict[str, Basis] = {}
    unknown: set[str] = set()
    for charge in usage:
        meter = charge.meter
        charged = meter in held or meter in limited or (is_money(meter) and any(map(is_money, limited)))
        if meter in COUNTED_METERS or meter == DURATION or not charged:
            continue
        known = charge.settled if isinstance(charge.settled, int) else None
        sums[meter] = min(sums.get(meter, 0) + (known or 0), MAX_INTEGER)
        if known is None:
            unknown.add(meter)
        if known is None or basis.get(meter) is Basis.UNKNOWN:
            basis[meter] = Basis.UNKNOWN
        else:
            basis[meter] = charge.basis
    settled: dict[str, int | Literal["unknown"]] = {**sums}
    for meter in unknown:
        amount = held.get(meter)
        if sums[meter] <= (amount if isinstance(amount, int) else 0):
            settled[meter] = "unknown"
    return tuple(Charge(meter=meter, settled=amount, basis=basis[meter]) for meter, amount in settled.items())


def root_of(reader: Reader, run: str) -> tuple[str, bool]:
    """Return the outermost run of the tree that a run is of, and whether it or any run above it has limits."""
    limited, at = False, run
    while True:
        opening = parse_receipt(reader.get(at).envelope.payload)
        if not isinstance(opening, Opening):
            return at, limited
        limited = limited or bool(opening.limits)
        if opening.parent_opening is None:
            return at, limited
        at = opening.parent_opening


@dataclass(slots=True)
class _Tree:
    """The fold over one tree of runs."""

    cursor: Cursor
    root: str
    replay: BudgetReplay = field(default_factory=BudgetReplay)
    runs: set[str] = field(default_factory=set)
    names: tuple[bytes, ...] = field(init=False)
    """The ids of its runs as they stand in lines."""
    next: int = 0
    """The index of the first entry that is not taken yet."""
    told: dict[int, tuple[str, Receipt]] = field(default_factory=dict)
    """What this process recorded itself after entries that are not taken yet, by index: it need not be read."""

    admitted: tuple[int, str, Reserved] | None = None
    """The act that was admitted last: the number of entries before it, its run, and what it sets aside."""
    limited: dict[str, frozenset[str]] = field(default_factory=dict)
    """The meters that are limited in a run or above it, which its opening fixed."""

    def __post_init__(self) -> None:
        self.names = (self.root.encode("ascii"),)

    def catch_up(self, size: int) -> None:
        """Take the entries up to, not including, `size`."""
        while self.next < size and (told := self.told.pop(self.next, None)) is not None:
            self._take(self.next, *told)
            self.next += 1
        if self.next < size:
            self.cursor.advance(size, self.see)
            self.told = {index: told for index, told in self.told.items() if index >= size}

    def tell(self, index: int, id_: str, receipt: Receipt) -> None:
        """Take a receipt of this process at once, or when the entries before it are taken."""
        if index == self.next:
            self._take(index, id_, receipt)
            self.next += 1
        else:
            self.told[index] = id_, receipt

    def _take(self, index: int, id_: str, receipt: Receipt) -> None:
        """Take a receipt of this process; what an act sets aside is not worked out again if nothing came in between."""
        admitted, self.admitted = self.admitted, None
        if admitted is not None and isinstance(receipt, Intent) and admitted[:2] == (index, receipt.run):
            self.replay.take(id_, admitted[1], admitted[2])
        else:
            self.replay.see(index, id_, receipt)

    def see(self, index: int, line: bytes) -> None:
        """Take an entry; those taken before and those of other trees are passed over."""
        if index < self.next:
            return
        self.next = index + 1
        told = self.told.pop(index, None)
        if told is not None:
            self._take(index, *told)
            return
        if len(self.runs) <= _FEW_RUNS and _RESOLUTION not in line and not any(name in line for name in self.names):
            return
        envelope = parse_envelope(parse_entry_line(line)[1])
        facts = read_facts(envelope.payload)
        if facts.kind == "opening":
            id_ = envelope.receipt_id
            if id_ != self.root and facts.parent_opening not in self.runs:
                return
            self.runs.add(id_)
            self.names = tuple(run.encode("ascii") for run in self.runs)
        elif facts.run not in self.runs and facts.kind != "resolution":
            return
        self.replay.see(index, envelope.receipt_id, facts.receipt or parse_receipt(envelope.payload))


_ALL: Final[WeakKeyDictionary[Ledger, Spending]] = WeakKeyDictionary()


class Spending:
    """The budgets of a ledger's open runs, as far as this process asked for them. Used under the ledger's lock only."""

    def __init__(self, ledger: Ledger) -> None:
        self._folder = ledger.folder
        self._reader = ledger.reader
        self._trees: dict[str, _Tree] = {}

    @classmethod
    def of(cls, ledger: Ledger) -> Spending:
        """Return the one of a ledger."""
        found = _ALL.get(ledger)
        if found is None:
            found = _ALL[ledger] = cls(ledger)
        return found

    def admit(
        self, root: str, run: str, charges: Iterable[Charge], *, size: int, elapsed_ms: int
    ) -> Reserved | Refused:
        """Return whether an act of a run is admitted, given the number of entries and how long the run has gone on."""
        replay = self._caught_up(root, size)
        budgets = replay.budgets_of(run)
        if budgets:
            own = replay.budget_of(run)
            line = own.lines.get(DURATION) if own is not None else None
            if line is not None and line.limit is not None and elapsed_ms >= line.limit:
                return _over_time(line.limit, elapsed_ms)
        found = reserve(budgets, draw_of(charges))
        if budgets and isinstance(found, Reserved):
            self._trees[root].admitted = size, run, found
        return found

    def admit_child(self, root: str, parent: str, intent: str | None, limits: Iterable[Limit], *, size: int) -> None:
        """Raise unless a run may start a child run with these limits.

        Raises:
            Blocked: a budget above does not let it.
        """
        refused = self._caught_up(root, size).child_refused(parent, intent, limits)
        if refused is not None:
            raise Blocked(refused.reason, refused.message, refused=refused)

    def limited(self, root: str, run: str, *, size: int) -> frozenset[str]:
        """Return the meters that are limited in a run or above it."""
        replay, known = self._caught_up(root, size), self._trees[root].limited
        if run not in known:
            lines = (line for budget in replay.budgets_of(run) for line in budget.lines.items())
            known[run] = frozenset(meter for meter, line in lines if line.limit is not None)
        return known[run]

    def totals(self, root: str, run: str, *, size: int) -> tuple[CurrencyAmount, ...]:
        """Return what a run with limits of its own spent, as its `run` says; nothing for others."""
        budget = self._caught_up(root, size).budget_of(run)
        return budget.totals() if budget is not None and budget.is_limited() else ()

    def forget(self, root: str) -> None:
        """Drop a tree whose outermost run is closed."""
        self._trees.pop(root, None)

    def tell(self, root: str, position: Position, receipt: Receipt) -> None:
        """Take what this process recorded in a tree of runs, so that it need not be read again; it must be durable.

        Where that fails the tree is dropped: whoever needs it next folds it from the journal, and says what is wrong.
        """
        tree = self._trees.get(root)
        if tree is None:
            return
        try:
            tree.tell(position.index, position.receipt, receipt)
        except BaseException as error:
            del self._trees[root]
            if not isinstance(error, Exception):
                raise

    def _caught_up(self, root: str, size: int) -> BudgetReplay:
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = _Tree(Cursor(self._folder, self._reader.get(root)), root)
        try:
            tree.catch_up(size)
        except BaseException:
            del self._trees[root]
            raise
        return tree.replay


def _over_time(limit: int, elapsed_ms: int) -> Refused:
    return Refused(Reason.LIMIT, DURATION, limit, elapsed_ms, 0, 0, 0)


def budget_of(reader: Reader, run: str) -> Budget:
    """Return the budget of a run as the journal has it, of one that is closed as it stood at its end.

    Raises:
        NotFoundError: no such run.
    """
    root, _ = root_of(reader, run)
    first = reader.get(root).entry.index
    tree = _Tree(Cursor(Path()), root)
    last, closed = Budget(), False
    for stored in reader.entries(first):
        tree.see(stored.entry.index, print_entry_line(stored.entry_bytes, stored.envelope_bytes))
        found = tree.replay.budget_of(run)
        if found is None and not closed and tree.runs:
            # The tree is forgotten at the close of its outermost run.
            closed = True
            last = count_closed((last,))[0] if run == root else last
        last = found or last
    return last
