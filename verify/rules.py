"""Rules of a ledger, re-proved while its receipts pass by in chain order.

- A run without limits, policy, approvals, effects, grant and runbook costs a look at its facts: what nothing rules is not parsed.
- `RuleFold` replays, in order. `ApartRules` judges nothing: it hands over what an in-order fold may have to look at.
- The first breach is a finding, exit 6; what cannot be told is not checked, under the code of its first doubt.

Source: docs/spec/rules/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ledger.canonical import JsonValue
from ledger.facts import Facts, read_facts, receipt_of
from ledger.receipt import Intent, parse_receipt
from ledger.rules.approval import Approver
from ledger.rules.hold_replay import LineOf
from ledger.rules.replay import Replay, ReplayState
from verify.report import Report
from verify.rulerun import NAME, RuleRow
from verify.trust import Trust

__all__ = [
    "NAME",
    "ApartRules",
    "RuleFold",
    "RulePart",
    "RuleRow",
    "RuleSources",
    "RuleState",
    "approvers_of",
]

_SILENT: Final = frozenset({"outcome", "step"})
"""Kinds that say nothing where their run is not looked at."""
_ALWAYS: Final = frozenset({"header", "key", "approval", "resolution", "grant", "evaluation", "hold", "erasure"})
"""Kinds that are always looked at: few, and they bear on acts and artifacts anywhere in the ledger."""
_WHERE_RULED: Final = frozenset({"intent", "decision"})
"""Kinds that are looked at where they say that a rule bears on them: a refusal without amounts is answered by nothing."""


@dataclass(frozen=True, slots=True)
class RulePart:
    """What a stretch leaves to the fold before it: receipts to replay, and the openings of its runs that nothing rules yet."""

    rows: tuple[RuleRow, ...]
    openings: Mapping[str, RuleRow]


@dataclass(frozen=True, slots=True)
class RuleState:
    """A fold over rules at rest.

    The openings of open runs that no rule bears on so far, the runs whose receipts are all looked at, how many receipts were
    replayed, and what the replay came to.
    """

    openings: dict[str, RuleRow] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    seen: int = 0
    replay: ReplayState = field(default_factory=ReplayState)


@dataclass(frozen=True, slots=True)
class RuleSources:
    """What a replay reads besides what passes by: whom trust names as approvers, and documents, arguments and runs, where at hand."""

    approvers: Mapping[str, Approver] = field(default_factory=dict)
    document_of: Callable[[str], bytes | None] = lambda _: None
    arguments_of: Callable[[Intent], Mapping[str, JsonValue] | None] = lambda _: None
    line_of: LineOf = lambda _: None


def approvers_of(trust: Trust | None) -> dict[str, Approver]:
    """Return the approvers that trust names, by name."""
    pins = {} if trust is None else trust.approvers
    return {name: Approver(pin.key, pin.roles) for name, pin in pins.items()}


class _Sieve:
    """Picks the receipts that rules bear on, by their facts.

    Attributes:
        known: runs whose receipts are all looked at.
        openings: of open runs that nothing rules so far, by run.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.openings: dict[str, RuleRow] = {}

    def take(self, index: int, id_: str, facts: Facts, payload: bytes, time: bytes) -> None:
        """Take the next receipt."""
        kind, run = facts.kind, facts.run
        if run in self.known:
            self._replay(RuleRow(index, id_, payload, time), facts)
        elif kind in _SILENT:
            return
        elif kind in _WHERE_RULED:
            if facts.ruled:
                self._adopt(run)
                self._replay(RuleRow(index, id_, payload, time), facts)
        elif kind == "opening":
            row = RuleRow(index, id_, payload, time)
            if facts.ruled or self._inherits(facts):
                self.known.add(id_)
                self._replay(row, facts)
            else:
                self.openings[id_] = row
        elif kind == "run":
            self.openings.pop(run or "", None)
        elif kind in _ALWAYS:
            self._adopt(run)
            self._replay(RuleRow(index, id_, payload, time), facts)

    def _adopt(self, run: str | None) -> None:
        """Look at all of a run from now on: something in it is ruled, though its opening does not say so."""
        row = self.openings.pop(run or "", None)
        if row is not None and run is not None:
            self.known.add(run)
            self._replay(row, None)

    def _inherits(self, facts: Facts) -> bool:
        raise NotImplementedError

    def _replay(self, row: RuleRow, facts: Facts | None) -> None:
        raise NotImplementedError


class RuleFold(_Sieve):
    """Replays the rules of one ledger.

    Attributes:
        seen: how many receipts were replayed.
    """

    def __init__(self, sources: RuleSources) -> None:
        super().__init__()
        self._state = Replay(sources.approvers, sources.document_of, sources.arguments_of, sources.line_of)
        self.seen = 0

    def judge(self, report: Report, before: int = 0) -> None:
        """Report the first breach and the first doubt of each kind; `before` is how many receipts were replayed earlier."""
        report.ran(NAME, self.seen - before)
        breach = self._state.breach
        if breach is not None:
            report.find(NAME, breach.code, where=f"entry {breach.index}", message=breach.message)
        for doubt in self._state.doubts.values():
            report.find(NAME, doubt.code, where=f"entry {doubt.index}", message=doubt.message)

    def state(self) -> RuleState:
        """Return the state to go on from; it shares what it holds with the fold, which is not used after."""
        return RuleState(self.openings, frozenset(self.known), self.seen, self._state.state())

    def resume(self, state: RuleState) -> None:
        """Go on from a state."""
        self.openings, self.known, self.seen = dict(state.openings), set(state.known), state.seen
        self._state.resume(state.replay)

    def join(self, part: RulePart) -> None:
        """Take what a stretch left."""
        for row in part.rows:
            self.take(row.at, row.id_, read_facts(row.payload), row.payload, row.time)
        self.openings |= part.openings

    def _inherits(self, facts: Facts) -> bool:
        follows = facts.continues
        return facts.parent_opening in self.known or (follows is not None and self._state.policies.rules(follows))

    def _replay(self, row: RuleRow, facts: Facts | None) -> None:
        receipt = parse_receipt(row.payload) if facts is None else receipt_of(facts, row.payload)
        tree = self._state.budgets.tree(receipt.run) if receipt.kind == "run" else ()
        self._state.see(row.at, row.id_, receipt, recorded_at=row.time.decode("ascii") + "Z")
        self.known.difference_update(tree)
        self.seen += 1


class ApartRules(_Sieve):
    """Collects, of a stretch, what a fold that knows what stands before it may have to replay.

    That is more than what rules bear on: whatever belongs to a run that opened before the stretch, and runs that may inherit.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[RuleRow] = []

    def part(self) -> RulePart:
        """Return what the stretch leaves."""
        return RulePart(tuple(self._rows), self.openings)

    def take(self, index: int, id_: str, facts: Facts, payload: bytes, time: bytes) -> None:
        """Take the next receipt."""
        run = facts.run
        if run is not None and run not in self.openings and run not in self.known:
            self._rows.append(RuleRow(index, id_, payload, time))
        else:
            super().take(index, id_, facts, payload, time)

    def _inherits(self, facts: Facts) -> bool:
        parent = facts.parent_opening
        return (parent is not None and parent not in self.openings) or facts.continues is not None

    def _replay(self, row: RuleRow, facts: Facts | None) -> None:  # noqa: ARG002  parsed by the fold
        self._rows.append(row)
