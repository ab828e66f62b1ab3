"""The closed lists of words that receipts may hold.

Each list is one enumeration; docs/spec/words.md maps the words of other systems to these. A reason says why, in one dotted
word, where the status alone does not.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "CALL_REASONS",
    "SEALED_KINDS",
    "Access",
    "Basis",
    "Kind",
    "OutcomeStatus",
    "Period",
    "Profile",
    "Reason",
    "Risk",
    "RunStatus",
]


class Kind(StrEnum):
    """What a receipt says. `prune` is reserved and neither written nor accepted."""

    HEADER = "header"
    OPENING = "opening"
    INTENT = "intent"
    OUTCOME = "outcome"
    DECISION = "decision"
    STEP = "step"
    RUN = "run"
    APPROVAL = "approval"
    RESOLUTION = "resolution"
    GRANT = "grant"
    EVALUATION = "evaluation"
    KEY = "key"
    IMPORT = "import"
    ERASURE = "erasure"
    REPAIR = "repair"


SEALED_KINDS = frozenset(Kind) - {Kind.INTENT, Kind.OUTCOME, Kind.DECISION, Kind.STEP}
"""Kinds that carry their own seal always, whoever commits them."""

TREE_KINDS = frozenset({Kind.OPENING, Kind.INTENT, Kind.OUTCOME, Kind.DECISION, Kind.STEP, Kind.RUN})
"""Kinds that join the receipt tree of their run; all others stand alone and are linked, never committed."""


class Access(StrEnum):
    """What an act does to the world."""

    READ = "read"
    PROPOSE = "propose"
    WRITE = "write"


class Basis(StrEnum):
    """How an amount is known."""

    MEASURED = "measured"
    REPORTED = "reported"
    QUOTED = "quoted"
    UNKNOWN = "unknown"


class OutcomeStatus(StrEnum):
    """How an act ended. `failed` is proven not to have happened; `ambiguous` means that nobody knows."""

    COMMITTED = "committed"
    FAILED = "failed"
    AMBIGUOUS = "ambiguous"


class RunStatus(StrEnum):
    """How a run ended. A run that waits stays open. `needs_decision` seals imported AXLR executions only."""

    COMPLETED = "completed"
    FAILED = "failed"
    BLOCKED = "blocked"
    INTERRUPTED = "interrupted"
    DECLINED = "declined"
    SUPERSEDED = "superseded"
    KILLED = "killed"
    INCOMPLETE = "incomplete"
    NEEDS_DECISION = "needs_decision"


class Period(StrEnum):
    """How long a limit of an account counts, by UTC: a day, a week from Monday on, a month."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class Profile(StrEnum):
    """How much of a runbook is enforced; a later one enforces more."""

    R0 = "R0"
    R1 = "R1"
    R2 = "R2"


class Risk(StrEnum):
    """How much a step of a runbook can do harm; a later one more."""

    READ_ONLY = "read-only"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    IRREVERSIBLE = "irreversible"


class Reason(StrEnum):
    """Why: one closed list for outcomes, decisions, runs, erasures and repairs."""

    # How an act or a command ended.
    NOT_EXECUTED = "act.not_executed"
    EXCEPTION = "act.exception"
    CANCELLED = "act.cancelled"
    LEASE_EXPIRED = "act.lease_expired"
    RECORDER_LOST = "act.recorder_lost"
    OUTCOME_NOT_RECORDED = "act.outcome_not_recorded"
    COMMAND_NOT_FOUND = "command.not_found"
    COMMAND_NOT_EXECUTABLE = "command.not_executable"
    COMMAND_EXIT = "command.exit"
    COMMAND_SIGNAL = "command.signal"
    # How a run ended.
    RUN_EXCEPTION = "run.exception"
    RUN_CLOSED_LATER = "run.closed_later"
    RUN_SUPERSEDED = "run.superseded"
    HOST_CLOSED = "run.host_closed"
    TERMINAL_NOT_REACHED = "run.terminal_not_reached"
    # What a rule refused.
    LIMIT = "budget.limit"
    OVERRUN = "budget.overrun"
    PRICE_UNKNOWN = "budget.price_unknown"
    POLICY_DENIED = "policy.denied"
    POLICY_NOT_LISTED = "policy.not_listed"
    POLICY_LEVEL = "policy.level"
    POLICY_MISSING = "policy.missing"
    POLICY_UNREADABLE = "policy.unreadable"
    ACTION_UNKNOWN = "policy.action_unknown"
    APPROVAL_REQUIRED = "approval.required"
    APPROVAL_DENIED = "approval.denied"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_CONSUMED = "approval.consumed"
    APPROVAL_MISMATCH = "approval.mismatch"
    EFFECT_COMMITTED = "effect.committed"
    EFFECT_AMBIGUOUS = "effect.ambiguous"
    EFFECT_IN_PROGRESS = "effect.in_progress"
    GRANT_MISSING = "grant.missing"
    GRANT_EXPIRED = "grant.expired"
    GRANT_REVOKED = "grant.revoked"
    GRANT_WIDENED = "grant.widened"
    GRANT_NOT_COVERED = "grant.not_covered"
    GRANT_LIMIT = "grant.limit"
    GRANT_PERIOD = "grant.period"
    SCOPE_UNDECLARED_TOOL = "scope.undeclared_tool"
    SCOPE_OUT_OF_SCOPE_TOOL = "scope.out_of_scope_tool"
    SCOPE_OUT_OF_ORDER_STEP = "scope.out_of_order_step"
    COVERAGE = "scope.coverage"
    PROFILE = "scope.profile"
    RISK = "scope.risk"
    NOT_ALLOWLISTED = "scope.not_allowlisted"
    ASSERT_FAILED = "assert.failed"
    ASSERT_UNEVALUABLE = "assert.unevaluable"
    TREE_BOUND = "tree.bound"
    # Why something was erased or repaired.
    ERASURE_REQUEST = "erasure.request"
    ERASURE_RETENTION = "erasure.retention"
    ERASURE_SECRET = "erasure.secret"  # noqa: S105  a word, not a password
    ERASURE_LEGAL = "erasure.legal"
    TORN_TAIL = "repair.torn_tail"


CALL_REASONS = frozenset(
    {
        Reason.NOT_EXECUTED,
        Reason.EXCEPTION,
        Reason.CANCELLED,
        Reason.LEASE_EXPIRED,
        Reason.RECORDER_LOST,
        Reason.OUTCOME_NOT_RECORDED,
        Reason.COMMAND_NOT_FOUND,
        Reason.COMMAND_NOT_EXECUTABLE,
        Reason.COMMAND_EXIT,
        Reason.COMMAND_SIGNAL,
        Reason.LIMIT,
        Reason.OVERRUN,
    }
)
"""Reasons that an outcome may give."""
