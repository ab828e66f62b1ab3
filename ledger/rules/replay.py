"""All rules re-proved in one fold: what `verify` asks over the receipts of a ledger, in chain order.

    replay = Replay(approvers=..., document_of=..., arguments_of=...)
    for index, id_, receipt, recorded_at in chain:
        replay.see(index, id_, receipt, recorded_at=recorded_at)
    replay.breach   # the first receipt that a rule forbids, None if there is none

Source: docs/spec/rules/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ledger.canonical import JsonValue
from ledger.members import Actor
from ledger.receipt import Intent, Receipt
from ledger.rules.act_replay import ActReplay, read_once
from ledger.rules.approval import Approver, Need
from ledger.rules.approval_replay import ApprovalReplay, ApprovalsState
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.budget_replay import BudgetReplay, BudgetState
from ledger.rules.effect_replay import EffectReplay, EffectsState
from ledger.rules.evaluation_replay import EvaluationReplay
from ledger.rules.grant_replay import GrantReplay, GrantsState
from ledger.rules.hold_replay import HoldReplay, HoldsState, LineOf
from ledger.rules.instant import ms_of
from ledger.rules.needs import lacks, with_duties, with_gate
from ledger.rules.policy_replay import ArgumentsOf, DocumentOf, PolicyReplay
from ledger.rules.runbook_replay import RunbookReplay, RunbooksState

__all__ = ["Replay", "ReplayState"]


_OF_ACTS: Final = frozenset({"opening", "intent", "decision", "run"})
_OF_EFFECTS: Final = frozenset({"intent", "outcome", "resolution"})
_OF_BUDGETS: Final = frozenset({"opening", "intent", "outcome", "decision", "step", "run", "resolution"})
_OF_GRANTS: Final = frozenset({"grant", "approval", "opening", "intent", "outcome", "decision", "run", "resolution"})
_OF_RUNBOOKS: Final = frozenset({"opening", "intent", "step", "decision", "evaluation", "approval", "run"})
_ALONE: Final = frozenset({"evaluation", "hold", "erasure"})
"""Kinds that evaluations and holds are judged by."""
_SILENT: Final = frozenset(
    {"outcome", "step", "resolution", "grant", "evaluation", "import", "erasure", "hold", "repair"}
)
"""Kinds in which policies and approvals see nothing."""


def _no_document(_: str) -> bytes | None:
    return None


def _no_arguments(_: Intent) -> Mapping[str, JsonValue] | None:
    return None


def _no_line(_: str) -> tuple[str, ...] | None:
    return None


@dataclass(frozen=True, slots=True)
class ReplayState:
    """A replay at rest."""

    breach: Breach | None = None
    doubts: tuple[Doubt, ...] = ()
    budgets: BudgetState = field(default_factory=BudgetState)
    effects: EffectsState = field(default_factory=EffectsState)
    policies: Mapping[str, str] = field(default_factory=dict)
    approvals: ApprovalsState = field(default_factory=ApprovalsState)
    grants: GrantsState = field(default_factory=GrantsState)
    runbooks: RunbooksState = field(default_factory=RunbooksState)
    holds: HoldsState = field(default_factory=HoldsState)
    actors: Mapping[str, Actor] = field(default_factory=dict)


@dataclass(slots=True)
class Replay:
    """The rules of one ledger, folded over its receipts.

    Args:
        approvers: Whom trust names as approvers, by name.
        document_of: Digest -> bytes of a policy document.
        arguments_of: Intent -> all arguments of its act.
        line_of: Receipt id -> its run and those above it.
    """

    approvers: Mapping[str, Approver] = field(default_factory=dict)
    document_of: DocumentOf = _no_document
    arguments_of: ArgumentsOf = _no_arguments
    line_of: LineOf = _no_line
    breach: Breach | None = None
    """The first breach."""
    doubts: dict[str, Doubt] = field(default_factory=dict)
    """The first doubt of each code."""
    budgets: BudgetReplay = field(default_factory=BudgetReplay)
    effects: EffectReplay = field(default_factory=EffectReplay)
    acts: ActReplay = field(init=False)
    policies: PolicyReplay = field(init=False)
    approvals: ApprovalReplay = field(init=False)
    grants: GrantReplay = field(init=False)
    runbooks: RunbookReplay = field(init=False)
    evaluations: EvaluationReplay = field(init=False)
    holds: HoldReplay = field(init=False)

    def __post_init__(self) -> None:
        arguments_of = read_once(self.arguments_of)
        self.acts = ActReplay(arguments_of)
        self.policies = PolicyReplay(self.document_of, arguments_of)
        self.approvals = ApprovalReplay(self.approvers)
        self.grants = GrantReplay(self.document_of)
        self.runbooks = RunbookReplay(self.document_of, self.approvers)
        self.evaluations = EvaluationReplay(self.document_of)
        self.holds = HoldReplay(self.line_of)

    def see(self, index: int, id_: str, receipt: Receipt, *, recorded_at: str) -> list[Finding]:
        """Return what one receipt shows, and take it into account. Receipts come in chain order, each once."""
        kind = receipt.kind
        findings: list[Finding] = self.acts.see(index, id_, receipt) if kind in _OF_ACTS else []
        if kind not in _SILENT:
            judged = self.policies.see(index, id_, receipt)
            need = judged.need
            if isinstance(receipt, Intent) and receipt.would_have is None:
                need = self._with_soft_limit(receipt, need)
            if isinstance(receipt, Intent):
                need = self._with_authority(index, receipt, need, findings)
            findings += judged.findings
            findings += self.approvals.see(index, id_, receipt, now=recorded_at, need=need, known=judged.known)
        if kind in _OF_EFFECTS:
            findings += self.effects.see(index, id_, receipt, now_ms=ms_of(recorded_at))
        if kind in _OF_BUDGETS:
            findings += self.budgets.see(index, id_, receipt)
        if kind in _OF_GRANTS:
            findings += self.grants.see(index, id_, receipt, now=recorded_at)
        if kind in _OF_RUNBOOKS:
            findings += self.runbooks.see(index, id_, receipt, now=recorded_at)
        if kind in _ALONE:
            findings += self.evaluations.see(index, receipt) + self.holds.see(index, id_, receipt)
        for found in findings:
            if isinstance(found, Doubt):
                self.doubts.setdefault(found.code, found)
            elif self.breach is None:
                self.breach = found
        return findings

    def state(self) -> ReplayState:
        """Return the state to go on from."""
        return ReplayState(
            self.breach,
            tuple(self.doubts.values()),
            self.budgets.state(),
            self.effects.state(),
            self.policies.state(),
            self.approvals.state(),
            self.grants.state(),
            self.runbooks.state(),
            self.holds.state(),
            self.acts.state(),
        )

    def resume(self, state: ReplayState) -> None:
        """Go on from a state."""
        self.breach = state.breach
        self.doubts = {doubt.code: doubt for doubt in state.doubts}
        self.budgets.resume(state.budgets)
        self.effects.resume(state.effects)
        self.policies.resume(state.policies)
        self.approvals.resume(state.approvals)
        self.grants.resume(state.grants)
        self.runbooks.resume(state.runbooks)
        self.holds.resume(state.holds)
        self.acts.resume(state.actors)

    def _with_authority(self, index: int, intent: Intent, need: Need | None, findings: list[Finding]) -> Need | None:
        """Return what an act needs, with the gate of its step and the duties of its grant."""
        if self.runbooks.gate(intent.run, intent.step) is not None:
            need = with_gate(need, intent)
        duties = self.grants.duties(intent.grant) if intent.grant is not None else ()
        if lacks(need, duties, self.grants.voices(intent.approvals)):
            findings.append(Breach("approval.missing", index, "approvals: got too few in the roles of the policy"))
        return with_duties(need, intent, duties)

    def _with_soft_limit(self, intent: Intent, need: Need | None) -> Need | None:
        """Return what an act needs, with the approval that a soft limit asks for."""
        if self.budgets.soft_limit_passed(intent) is None:
            return need
        if need is not None:
            return replace(need, needed=max(1, need.needed))
        return Need(
            act_digest=intent.act_digest,
            act_name=intent.act.name,
            run=intent.run,
            precondition=intent.act.precondition,
            policy=intent.policy,
        )
