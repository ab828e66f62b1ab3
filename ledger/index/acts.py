"""Stored tables of runs and acts: what receipts of the receipt tree say."""

from __future__ import annotations

from typing import Final

from ledger.index.columns import Column, Shape, Stored
from ledger.index.record import DIGEST, INDEX, LEDGER, RANDOM, RECEIPT, RECORDED_AT, RUN, UTC

__all__ = ["CHARGE", "CHARGES", "LIMIT", "TABLES"]

_ACT: Final[Shape] = {
    "name": "VARCHAR",
    "tool": {"name": "VARCHAR", "version": "VARCHAR", "digest": "VARCHAR"},
    "access": "VARCHAR",
    "arguments": "JSON",
    "arguments_digest": "VARCHAR",
    "resource": "VARCHAR",
    "environment": "VARCHAR",
    "amount": {"meter": "VARCHAR", "value": "BIGINT"},
    "precondition": "VARCHAR",
}
_EFFECT: Final[Shape] = {"key": "VARCHAR", "attempt": "BIGINT"}
CHARGE: Final[Shape] = {
    "meter": "VARCHAR",
    "quoted": "VARCHAR",
    "reserved": "VARCHAR",
    "settled": "VARCHAR",
    "released": "VARCHAR",
    "payer": "VARCHAR",
    "basis": "VARCHAR",
}
LIMIT: Final[Shape] = {"meter": "VARCHAR", "limit": "BIGINT", "grace": "BIGINT", "soft": "BIGINT"}

_SALTED: Final = "list_filter(m.artifacts, lambda x: x.digest = r.act.arguments_digest)[1].salted"

_ACT_COLUMNS: Final = (
    Column("act", "VARCHAR", "What is done, a dotted name.", "name", "r.act.name"),
    Column("tool", "VARCHAR", "With what.", "name", "r.act.tool.name"),
    Column("tool_version", "VARCHAR", "Version of the tool, or `unknown`.", "text", "r.act.tool.version"),
    Column("tool_digest", "VARCHAR", "Digest of the tool's definition, or `unknown`.", DIGEST, "r.act.tool.digest"),
    Column("access", "VARCHAR", "What it does to the world.", "word", "r.act.access"),
    Column("resource", "VARCHAR", "To what, or `unknown`.", "name", "r.act.resource"),
    Column("environment", "VARCHAR", "Where, or `unknown`.", "name", "r.act.environment"),
    Column("amount_meter", "VARCHAR", "Meter of the amount that it moves.", "meter", "r.act.amount.meter"),
    Column("amount", "BIGINT", "The amount that it moves.", "by its meter", "r.act.amount.value"),
    Column("inline_arguments", "JSON", "Members of the arguments that stand in the receipt.", "JSON", "r.act.arguments"),
    Column("arguments_digest", "VARCHAR", "Digest of all arguments, or `unknown`.", DIGEST, "r.act.arguments_digest"),
    Column("precondition", "VARCHAR", "Digest of the state looked at.", DIGEST, "r.act.precondition"),
    Column("act_digest", "VARCHAR", "What approvals bind to.", DIGEST, "r.act_digest"),
    Column("effect", "VARCHAR", "Effect key.", "name", "r.effect.key"),
    Column("attempt", "BIGINT", "Attempt at the effect.", "from 1", "r.effect.attempt"),
    Column("policy", "VARCHAR", "Digest of the policy that decided.", DIGEST, "r.policy"),
    Column("rule", "VARCHAR", "The rule that decided.", "name", "r.rule"),
    Column("grant_id", "VARCHAR", "Grant that was looked at.", DIGEST, "r.grant"),
    Column("step", "VARCHAR", "Step of the run's runbook.", "name", "r.step"),
)  # fmt: skip


def _amount(member: str, says: str) -> tuple[Column, Column]:
    """Return the columns of an amount that may be the word `unknown`: the integer, and whether it is that word."""
    return (
        Column(member, "BIGINT", f"{says} NULL where absent or unknown.", "by its meter", f"try_cast(item.{member} AS BIGINT)"),
        Column(f"{member}_unknown", "BOOLEAN", "Whether it is the word `unknown`.", "", f"coalesce(item.{member} = 'unknown', false)"),
    )  # fmt: skip


_COUNTED: Final = "CASE kind WHEN 'intent' THEN m.reserved ELSE m.charges END"
_STAGE: Final = f"""
    CASE WHEN position >= coalesce(len({_COUNTED}), 0) THEN 'usage'
         ELSE CASE kind WHEN 'intent' THEN 'reserved' WHEN 'outcome' THEN 'settled' ELSE 'resolved' END END
"""
"""Usage stands behind what counts."""

CHARGES: Final = (
    LEDGER,
    INDEX,
    Column("stage", "VARCHAR", "`reserved` before the act, `settled` by its outcome, `usage` that counts against nothing, `resolved` later.", "word", _STAGE),
    Column("meter", "VARCHAR", "What is counted, with its unit.", "meter", "item.meter"),
    *_amount("quoted", "What was expected."),
    *_amount("reserved", "What was set aside."),
    *_amount("settled", "What it was."),
    *_amount("released", "What went back."),
    Column("payer", "VARCHAR", "Who pays, where it is not the run.", "name", "item.payer"),
    Column("basis", "VARCHAR", "How the amount is known.", "word", "item.basis"),
)  # fmt: skip

TABLES: Final = (
    Stored(
        "openings",
        "First receipts of runs.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT,
            Column("issued_at", "TIMESTAMP", "The issuer's clock.", UTC),
            Column("issuer", "VARCHAR", "Who recorded it.", "name"),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
            Column("name", "VARCHAR", "What the run is called.", "name", "r.name"),
            Column("agent", "VARCHAR", "The program or agent.", "name", "r.actor.agent"),
            Column("user", "VARCHAR", "The person behind it.", "name", "r.actor.user"),
            Column("model", "VARCHAR", "The model that decides.", "name", "r.actor.model"),
            Column("adapter", "VARCHAR", "What carries it out.", "name", "r.adapter.name"),
            Column("adapter_version", "VARCHAR", "Its version.", "text", "r.adapter.version"),
            Column("coverage", "VARCHAR", "What it can see.", "word", "r.adapter.coverage"),
            Column("policy", "VARCHAR", "Policy in force.", DIGEST, "r.policy"),
            Column("grant_id", "VARCHAR", "Grant that it acts under.", DIGEST, "r.grant"),
            Column("correlation", "JSON", "Names of other systems for it.", "JSON", "r.correlation"),
            Column("program", "VARCHAR", "Program that runs.", DIGEST, "r.program"),
            Column("document", "VARCHAR", "Document that it follows.", DIGEST, "r.document"),
            Column("runbook", "VARCHAR", "Policy envelope of its runbook.", DIGEST, "r.runbook.envelope"),
            Column("runbook_profile", "VARCHAR", "How much of it is enforced.", "word", "r.runbook.profile"),
            Column("runbook_ceiling", "VARCHAR", "Highest risk that the client runs.", "word", "r.runbook.ceiling"),
            Column("continues", "VARCHAR", "Closed run that it follows.", DIGEST, "r.continues"),
            Column("parent", "VARCHAR", "Run that started it.", DIGEST, "r.parent_opening"),
            Column("parent_intent", "VARCHAR", "Intent of the call that started it.", DIGEST, "r.parent_intent"),
        ),
        kinds=("opening",),
        shape={
            "name": "VARCHAR",
            "actor": {"agent": "VARCHAR", "user": "VARCHAR", "model": "VARCHAR"},
            "adapter": {"name": "VARCHAR", "version": "VARCHAR", "coverage": "VARCHAR"},
            "policy": "VARCHAR", "grant": "VARCHAR", "correlation": "JSON", "program": "VARCHAR", "document": "VARCHAR",
            "runbook": {"envelope": "VARCHAR", "profile": "VARCHAR", "ceiling": "VARCHAR"}, "continues": "VARCHAR", "parent_opening": "VARCHAR", "parent_intent": "VARCHAR",
        },
        public=False,
    ),
    Stored(
        "closings",
        "Last receipts of runs.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT,
            Column("issued_at", "TIMESTAMP", "The issuer's clock.", UTC),
            Column("status", "VARCHAR", "How it ended.", "word", "r.status"),
            Column("reason", "VARCHAR", "Why.", "word", "r.reason"),
            Column("error", "VARCHAR", "Class of the exception.", "name", "r.error"),
            Column("duration_ms", "BIGINT", "From opening to close.", "ms", "try_cast(r.duration_ms AS BIGINT)"),
            Column("totals", "JSON", "What it says it spent.", "JSON", "r.totals"),
        ),
        kinds=("run",),
        shape={"status": "VARCHAR", "reason": "VARCHAR", "error": "VARCHAR", "duration_ms": "VARCHAR", "totals": "JSON"},
        public=False,
    ),
    Stored(
        "intents",
        "Acts about to be done.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT,
            Column("issuer", "VARCHAR", "Who recorded it.", "name"),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
            *_ACT_COLUMNS,
            Column("arguments_salted", "BOOLEAN", "Whether their artifact is salted; NULL where there is none.", "", _SALTED),
            Column("lease_ms", "BIGINT", "How long it may take.", "ms", "r.lease_ms"),
            Column("would_have", "VARCHAR", "What an observing policy would have decided.", "word", "r.would_have.status"),
            Column("would_have_reason", "VARCHAR", "Why.", "word", "r.would_have.reason"),
            Column("approvals", "VARCHAR[]", "Approvals that it uses up.", DIGEST, "coalesce(r.approvals, [])"),
        ),
        kinds=("intent",),
        shape={
            "act": _ACT, "act_digest": "VARCHAR", "effect": _EFFECT, "lease_ms": "BIGINT", "policy": "VARCHAR", "grant": "VARCHAR",
            "rule": "VARCHAR", "step": "VARCHAR", "would_have": {"status": "VARCHAR", "reason": "VARCHAR"}, "approvals": ["VARCHAR"],
        },
        public=False,
    ),
    Stored(
        "outcomes",
        "How acts ended.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT,
            Column("intent", "VARCHAR", "Intent that it settles.", DIGEST, "m.intent", RANDOM),
            Column("status", "VARCHAR", "How it ended.", "word", "r.status"),
            Column("reason", "VARCHAR", "Why.", "word", "r.reason"),
            Column("error", "VARCHAR", "Class of the exception.", "name", "r.error"),
            Column("exit_code", "INTEGER", "Exit status of a command.", "0 to 255", "r.exit_code"),
            Column("signal", "INTEGER", "Signal that ended a command.", "1 to 127", "r.signal"),
            Column("duration_ms", "BIGINT", "How long it took.", "ms", "try_cast(r.duration_ms AS BIGINT)"),
        ),
        kinds=("outcome",),
        shape={
            "status": "VARCHAR", "reason": "VARCHAR", "error": "VARCHAR", "exit_code": "INTEGER",
            "signal": "INTEGER", "duration_ms": "VARCHAR",
        },
        public=False,
    ),
    Stored(
        "refusals",
        "Decisions: nothing ran.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT,
            Column("issuer", "VARCHAR", "Who recorded it.", "name"),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
            Column("status", "VARCHAR", "`denied`, `blocked` or `waiting`.", "word", "r.status"),
            Column("reason", "VARCHAR", "Why.", "word", "r.reason"),
            *_ACT_COLUMNS,
            Column("meter", "VARCHAR", "Meter that was exhausted.", "meter", "r.meter"),
            Column("limit_amount", "BIGINT", "Its limit.", "by its meter", 'r."limit"'),
            Column("spent", "BIGINT", "What was spent of it.", "by its meter", "r.spent"),
            Column("reserved", "BIGINT", "What was set aside of it.", "by its meter", "r.reserved"),
            Column("asked", "BIGINT", "What the act asked for; NULL where unknown.", "by its meter", "try_cast(r.asked AS BIGINT)"),
            Column("roles", "VARCHAR[]", "Roles whose approval is waited for.", "names", "coalesce(r.roles, [])"),
            Column("needed", "BIGINT", "How many approvals are waited for.", "count", "r.needed"),
            Column("expires_at", "TIMESTAMP", "When the request stops waiting.", UTC, "r.expires_at"),
        ),
        kinds=("decision",),
        shape={
            "status": "VARCHAR", "reason": "VARCHAR", "act": _ACT, "act_digest": "VARCHAR", "effect": _EFFECT, "policy": "VARCHAR",
            "grant": "VARCHAR", "rule": "VARCHAR", "step": "VARCHAR", "meter": "VARCHAR", "limit": "BIGINT", "spent": "BIGINT", "reserved": "BIGINT",
            "asked": "VARCHAR", "roles": ["VARCHAR"], "needed": "BIGINT", "expires_at": "VARCHAR",
        },
        public=False,
    ),
    Stored(
        "stated_charges",
        "Charges, by the index of the receipt that states them.",
        CHARGES,
        kinds=("intent", "outcome", "resolution"),
        holding=("reserved", "charges", "usage"),
        each=f"CASE WHEN m.usage IS NULL THEN {_COUNTED} ELSE list_concat({_COUNTED}, m.usage) END",
        public=False,
    ),
    Stored(
        "steps",
        "Steps: what groups calls, by name.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT,
            Column("name", "VARCHAR", "What the step is called.", "name", "r.name"),
            Column("status", "VARCHAR", "`completed`, `failed`, `blocked` or `folded`.", "word", "r.status"),
            Column("reason", "VARCHAR", "Why.", "word", "r.reason"),
            Column("duration_ms", "BIGINT", "How long it took.", "ms", "r.duration_ms"),
        ),
        kinds=("step",),
        shape={"name": "VARCHAR", "status": "VARCHAR", "reason": "VARCHAR", "duration_ms": "BIGINT"},
    ),
    Stored(
        "stated_periods",
        "Limits of accounts by period, in grants.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT,
            Column("account", "VARCHAR", "Grants of one account spend together.", "name", "item.account"),
            Column("period", "VARCHAR", "`day`, `week` or `month`.", "word", "item.period"),
            Column("meter", "VARCHAR", "What is counted.", "meter", "item.meter"),
            Column("limit_amount", "BIGINT", "Nothing beyond this within a period.", "by its meter", 'item."limit"'),
        ),
        kinds=("grant",),
        shape={"periods": [{"account": "VARCHAR", "period": "VARCHAR", "meter": "VARCHAR", "limit": "BIGINT"}]},
        each="r.periods",
        public=False,
    ),
    Stored(
        "stated_limits",
        "Limits of openings and grants.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT,
            Column("kind", "VARCHAR", "`opening` or `grant`.", "word"),
            Column("meter", "VARCHAR", "What is counted.", "meter", "item.meter"),
            Column("limit_amount", "BIGINT", "Nothing beyond this.", "by its meter", 'item."limit"'),
            Column("grace_amount", "BIGINT", "How far one act may go beyond.", "by its meter", "item.grace"),
            Column("soft_amount", "BIGINT", "Beyond this an approval is needed.", "by its meter", "item.soft"),
        ),
        kinds=("opening", "grant"),
        holding=("limits",),
        each="m.limits",
        public=False,
    ),
)  # fmt: skip
