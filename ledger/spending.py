"""Budgets while runs go on: what the runs of a ledger have spent and set aside, folded from its journal under its lock.

- Nothing is kept but in memory: a process that needs a run's budget folds its tree from the opening of the outermost run on,
  and after that what came since, whoever wrote it. So processes agree without telling each other anything.
- The fold is the one that re-proves budgets; deciding asks the same functions.

Source: docs/spec/rules/budgets.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from ledger.envelope import parse_envelope
from ledger.errors import AdmissionError, LedgerError
from ledger.facts import read_facts
from ledger.line import HEAD_PREFIX, parse_entry_line
from ledger.members import Charge, CurrencyAmount, Limit
from ledger.receipt import Opening, parse_receipt
from ledger.rules.amounts import DURATION, UNKNOWN, Draw, parse_budget, refuse_limits
from ledger.rules.budget import Budget, Refused, Reserved, draw_of, reserve
from ledger.rules.budget_replay import BudgetReplay
from ledger.rules.errors import BudgetError
from ledger.storage.journal import read_segment, segments
from ledger.storage.ledger import Ledger
from ledger.storage.reader import Reader
from ledger.words import Basis, Reason

__all__ = ["Blocked", "Spending", "budget_of", "charges_of", "limits_of", "root_of"]


class Blocked(AdmissionError):  # noqa: N818  what is blocked is no fault
    """An act that a limit did not admit: nothing ran, and a `decision` in the ledger says why; `refused` has its amounts."""

    code = "budget.refused"

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message, code=str(refused.reason))
        self.refused: Final = refused


def limits_of(limits: Iterable[Limit], budget: Mapping[str, int | str] | None) -> tuple[Limit, ...]:
    """Return the limits of a run: those given as such, and those of a mapping such as `{"usd": "0.50", "tool_calls": 60}`.

    Raises:
        BudgetError: an amount that is no integer or decimal text, an unknown or repeated meter, two currencies.
    """
    words = []
    for name, amount in (budget or {}).items():
        if type(amount) is not int and type(amount) is not str:
            raise BudgetError(f"budget: {name!r}: got {amount!r}, expected an integer or decimal text such as '0.05'")
        words.append(f"{name}={amount}")
    found = (*limits, *parse_budget(words))
    refuse_limits(found)
    return found


def charges_of(draw: Draw) -> tuple[Charge, ...]:
    """Return the charges of an intent that sets this aside."""
    return tuple(
        Charge(meter=meter, reserved=amount, basis=Basis.UNKNOWN if amount == UNKNOWN else Basis.QUOTED)  # type: ignore[arg-type]
        for meter, amount in draw.items()
    )


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
    """The fold over one tree of runs, and where in the journal it goes on."""

    segment: int
    offset: int
    index: int
    replay: BudgetReplay = field(default_factory=BudgetReplay)
    runs: set[str] = field(default_factory=set)


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
        """Return whether an act of a run is admitted, given the number of entries and how long the run has gone on.

        An act that passes a soft limit needs an approval, which nothing gives yet: it is refused with that reason.
        """
        replay = self._caught_up(root, size)
        budgets = replay.budgets_of(run)
        if budgets:
            own = replay.budget_of(run)
            line = own.lines.get(DURATION) if own is not None else None
            if line is not None and line.limit is not None and elapsed_ms >= line.limit:
                return _over_time(line.limit, elapsed_ms)
        found = reserve(budgets, draw_of(charges))
        return found.asks if isinstance(found, Reserved) and found.asks is not None else found

    def admit_child(self, root: str, parent: str, intent: str | None, limits: Iterable[Limit], *, size: int) -> None:
        """Raise unless a run may start a child run with these limits.

        Raises:
            Blocked: a budget above does not let it.
        """
        refused = self._caught_up(root, size).child_refused(parent, intent, limits)
        if refused is not None:
            raise Blocked(refused)

    def limited(self, root: str, run: str, *, size: int) -> frozenset[str]:
        """Return the meters that are limited in a run or above it."""
        budgets = self._caught_up(root, size).budgets_of(run)
        return frozenset(meter for budget in budgets for meter, line in budget.lines.items() if line.limit is not None)

    def totals(self, root: str, run: str, *, size: int) -> tuple[CurrencyAmount, ...]:
        """Return what a run with limits of its own spent, as its `run` says; nothing for others."""
        budget = self._caught_up(root, size).budget_of(run)
        return budget.totals() if budget is not None and budget.is_limited() else ()

    def forget(self, root: str) -> None:
        """Drop a tree whose outermost run is closed."""
        self._trees.pop(root, None)

    def _caught_up(self, root: str, size: int) -> BudgetReplay:
        tree = self._trees.get(root)
        if tree is None:
            stored = self._reader.get(root)
            tree = self._trees[root] = _Tree(stored.segment, stored.offset, stored.entry.index)
        try:
            self._fold(tree, root, size)
        except BaseException:
            del self._trees[root]
            raise
        return tree.replay

    def _fold(self, tree: _Tree, root: str, size: int) -> None:
        """Fold what came since; entries after `size` are not there yet."""
        while tree.index < size:
            data = read_segment(self._folder, tree.segment, tree.offset)
            for line in data.split(b"\n")[:-1]:
                if tree.index >= size:
                    return
                if not line.startswith(HEAD_PREFIX):
                    _see(tree, root, line)
                    tree.index += 1
                tree.offset += len(line) + 1
            if tree.index < size:
                following = [first for first in segments(self._folder) if first > tree.segment]
                if not following or following[0] != tree.index:
                    raise LedgerError(f"journal: entry {tree.index} is not where it should be", code="journal.damaged")
                tree.segment, tree.offset = following[0], 0


def _see(tree: _Tree, root: str, line: bytes) -> None:
    envelope = parse_envelope(parse_entry_line(line)[1])
    facts = read_facts(envelope.payload)
    if facts.kind == "opening":
        id_ = envelope.receipt_id
        if id_ != root and facts.parent_opening not in tree.runs:
            return
        tree.runs.add(id_)
    elif facts.run not in tree.runs and facts.kind != "resolution":
        return
    tree.replay.see(tree.index, envelope.receipt_id, facts.receipt or parse_receipt(envelope.payload))


def _over_time(limit: int, elapsed_ms: int) -> Refused:
    return Refused(Reason.LIMIT, DURATION, limit, elapsed_ms, 0, 0, 0)


def budget_of(reader: Reader, run: str) -> Budget:
    """Return the budget of a run as the journal has it, of one that is closed as it stood at its end.

    Raises:
        NotFoundError: no such run.
    """
    root, _ = root_of(reader, run)
    first = reader.get(root).entry.index
    tree = _Tree(0, 0, first)
    last = Budget()
    for stored in reader.entries(first):
        tree.index = stored.entry.index
        _see(tree, root, b'{"entry":' + stored.entry_bytes + b',"envelope":' + stored.envelope_bytes + b"}")
        last = tree.replay.budget_of(run) or last
    return last
