"""Views of runs and acts."""

from __future__ import annotations

from typing import Final

from ledger.index.columns import Column, View
from ledger.index.record import DIGEST, INDEX, LEDGER, RECEIPT, RECORDED_AT, RUN, UTC

__all__ = ["ACTOR", "VIEWS"]

ACTOR: Final = (
    Column("agent", "VARCHAR", "The program or agent of the run.", "name"),
    Column("user", "VARCHAR", "The person or account behind it, or `unknown`.", "name"),
    Column("model", "VARCHAR", "The model that decides, or `unknown`.", "name"),
)
_ACT: Final = (
    Column("act", "VARCHAR", "What is done, a dotted name.", "name"),
    Column("tool", "VARCHAR", "With what.", "name"),
    Column("tool_version", "VARCHAR", "Version of the tool, or `unknown`.", "text"),
    Column("access", "VARCHAR", "What it does to the world: `read`, `propose`, `write` or `unknown`.", "word"),
    Column("resource", "VARCHAR", "To what, or `unknown`.", "name"),
    Column("environment", "VARCHAR", "Where, or `unknown`.", "name"),
    Column("amount_meter", "VARCHAR", "Meter of the amount that it moves.", "meter"),
    Column("amount", "BIGINT", "The amount that it moves.", "by its meter"),
    Column("act_digest", "VARCHAR", "What approvals bind to.", DIGEST),
    Column("effect", "VARCHAR", "Effect key, where it names one.", "name"),
    Column("attempt", "BIGINT", "Which attempt at the effect.", "from 1"),
    Column("policy", "VARCHAR", "Policy that decided.", DIGEST),
    Column("rule", "VARCHAR", "Rule that decided.", "name"),
    Column("grant_id", "VARCHAR", "Grant that was looked at.", DIGEST),
    Column("step", "VARCHAR", "Step of the run's runbook that was current.", "name"),
)

VIEWS: Final = (
    View(
        "runs",
        "One row for each run.",
        (
            LEDGER, RUN,
            Column("name", "VARCHAR", "What the run is called.", "name"),
            *ACTOR,
            Column("issuer", "VARCHAR", "Who recorded it.", "name"),
            Column("status", "VARCHAR", "How it ended; `open` while it has not.", "word"),
            Column("open", "BOOLEAN", "Whether nothing has closed it."),
            Column("reason", "VARCHAR", "Why it ended so.", "word"),
            Column("error", "VARCHAR", "Class of the exception that ended it.", "name"),
            Column("started", "TIMESTAMP", "When its opening was recorded.", UTC),
            Column("ended", "TIMESTAMP", "When its close was recorded.", UTC),
            Column("duration_ms", "BIGINT", "From opening to close by one clock; NULL where unknown.", "ms"),
            Column("parent", "VARCHAR", "Run that started it.", DIGEST),
            Column("parent_intent", "VARCHAR", "Intent of the call that started it.", DIGEST),
            Column("continues", "VARCHAR", "Closed run that it follows.", DIGEST),
            Column("policy", "VARCHAR", "Policy in force.", DIGEST),
            Column("grant_id", "VARCHAR", "Grant that it acts under.", DIGEST),
            Column("adapter", "VARCHAR", "What carried it out.", "name"),
            Column("adapter_version", "VARCHAR", "Version of that.", "text"),
            Column("coverage", "VARCHAR", "What the adapter can see.", "word or digest"),
            Column("correlation", "JSON", "Names that other systems have for it.", "JSON"),
            Column("program", "VARCHAR", "Program that ran.", DIGEST),
            Column("document", "VARCHAR", "Document that it followed.", DIGEST),
            Column("runbook", "VARCHAR", "Policy envelope of the runbook that it followed.", DIGEST),
            Column("runbook_profile", "VARCHAR", "How much of the runbook is enforced.", "word"),
            Column("runbook_ceiling", "VARCHAR", "Highest risk of a step that the client runs.", "word"),
            Column("receipt", "VARCHAR", "Receipt that closed it; NULL while open.", DIGEST),
            Column("opening_index", "BIGINT", "Index of its opening.", "index"),
            Column("closing_index", "BIGINT", "Index of its close.", "index"),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
        ),
        """
        SELECT o.ledger, o.receipt AS run, o.name, o.agent, o."user", o.model, o.issuer, coalesce(c.status, 'open') AS status,
               c.receipt IS NULL AS "open", c.reason, c.error, o.recorded_at AS started, c.recorded_at AS ended, c.duration_ms,
               o.parent, o.parent_intent, o.continues, o.policy, o.grant_id, o.adapter, o.adapter_version, o.coverage,
               o.correlation, o.program, o.document, o.runbook, o.runbook_profile, o.runbook_ceiling, c.receipt, o."index" AS opening_index, c."index" AS closing_index, o.source
        FROM stored.openings AS o LEFT JOIN stored.closings AS c ON c.ledger = o.ledger AND c.run = o.receipt
        """,
    ),
    View(
        "run_tree",
        "Runs below runs: one row for each run, with the way that leads to it.",
        (
            LEDGER, RUN,
            Column("root", "VARCHAR", "Outermost run above it; itself where none is.", DIGEST),
            Column("parent", "VARCHAR", "Run that started it.", DIGEST),
            Column("depth", "BIGINT", "Runs above it.", "from 0"),
            Column("path", "VARCHAR[]", "Run ids from the outermost down to it.", DIGEST),
            Column("names", "VARCHAR", "Names of these runs, parted by ` / `.", "text"),
        ),
        """
        WITH RECURSIVE below AS (
            SELECT o.ledger, o.receipt AS run, o.receipt AS root, o.parent, 0::BIGINT AS depth, [o.receipt] AS path, o.name AS names
            FROM stored.openings AS o LEFT JOIN stored.openings AS p ON p.ledger = o.ledger AND p.receipt = o.parent
            WHERE p.receipt IS NULL
            UNION ALL
            SELECT o.ledger, o.receipt, b.root, o.parent, b.depth + 1, list_append(b.path, o.receipt), b.names || ' / ' || o.name
            FROM stored.openings AS o JOIN below AS b ON b.ledger = o.ledger AND b.run = o.parent
        )
        SELECT * FROM below
        """,
    ),
    View(
        "calls",
        "One row for each act that was begun: an intent and the outcome that settled it. What a rule refused is in `decisions`.",
        (
            LEDGER, RUN,
            Column("intent", "VARCHAR", "Receipt of the intent.", DIGEST),
            Column("outcome", "VARCHAR", "Receipt of the outcome; NULL where none came.", DIGEST),
            INDEX,
            Column("actor", "VARCHAR", "Issuer that says it was done.", "name"),
            *ACTOR,
            *_ACT,
            Column("status", "VARCHAR", "`committed`, `failed` or `ambiguous`; `open` without an outcome.", "word"),
            Column("reason", "VARCHAR", "Why.", "word"),
            Column("error", "VARCHAR", "Class of the exception.", "name"),
            Column("exit_code", "INTEGER", "Exit status of a command.", "0 to 255"),
            Column("signal", "INTEGER", "Signal that ended a command.", "1 to 127"),
            Column("started", "TIMESTAMP", "When the intent was recorded.", UTC),
            Column("ended", "TIMESTAMP", "When the outcome was recorded.", UTC),
            Column("duration_ms", "BIGINT", "How long it took; NULL where unknown.", "ms"),
            Column("lease_ms", "BIGINT", "How long it might take before nobody may assume that it still runs.", "ms"),
            Column("approval", "VARCHAR", "First approval that it used.", DIGEST),
            Column("approvals", "VARCHAR[]", "All approvals that it used.", DIGEST),
            Column("approval_needed", "BOOLEAN", "Whether a request for this act waited in its run, or an observing policy would have asked."),
            Column("would_have", "VARCHAR", "What a policy that only observed would have decided.", "word"),
            Column("would_have_reason", "VARCHAR", "Why.", "word"),
            Column("arguments", "JSON", "All arguments where their artifact is there, else those that stand in the receipt.", "JSON"),
            Column("arguments_digest", "VARCHAR", "Digest of all arguments, or `unknown`.", DIGEST),
            Column("receipt", "VARCHAR", "Receipt that proves the row: the outcome, else the intent.", DIGEST),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
        ),
        """
        SELECT i.ledger, i.run, i.receipt AS intent, o.receipt AS outcome, i."index", i.issuer AS actor, r.agent, r."user", r.model,
               i.act, i.tool, i.tool_version, i.access, i.resource, i.environment, i.amount_meter, i.amount, i.act_digest, i.effect,
               i.attempt, i.policy, i.rule, i.grant_id, i.step, coalesce(o.status, 'open') AS status, o.reason, o.error, o.exit_code,
               o.signal, i.recorded_at AS started, o.recorded_at AS ended, o.duration_ms, i.lease_ms, i.approvals[1] AS approval,
               i.approvals, coalesce(i.would_have = 'waiting', false) OR w.run IS NOT NULL AS approval_needed, i.would_have,
               i.would_have_reason, coalesce(a.content, i.inline_arguments) AS arguments, i.arguments_digest, coalesce(o.receipt, i.receipt) AS receipt, i.source
        FROM stored.intents AS i
        LEFT JOIN stored.outcomes AS o ON o.ledger = i.ledger AND o.intent = i.receipt
        LEFT JOIN stored.openings AS r ON r.ledger = i.ledger AND r.receipt = i.run
        LEFT JOIN (SELECT DISTINCT ledger, run, act_digest FROM stored.refusals WHERE status = 'waiting') AS w
            ON w.ledger = i.ledger AND w.run = i.run AND w.act_digest = i.act_digest
        LEFT JOIN (SELECT ledger, digest, any_value(content) AS content FROM looked_up_artifacts GROUP BY ALL) AS a
            ON a.ledger = i.ledger AND a.digest = i.arguments_digest
        """,
    ),
    View(
        "decisions",
        "One row for each act that did not run: denied by a rule or a person, blocked by state, or waiting for an approval.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT, *ACTOR,
            Column("status", "VARCHAR", "`denied`, `blocked` or `waiting`.", "word"),
            Column("reason", "VARCHAR", "Why.", "word"),
            *_ACT,
            Column("meter", "VARCHAR", "Meter that was exhausted.", "meter"),
            Column("limit_amount", "BIGINT", "Its limit.", "by its meter"),
            Column("spent", "BIGINT", "What was spent of it.", "by its meter"),
            Column("reserved", "BIGINT", "What was set aside of it.", "by its meter"),
            Column("asked", "BIGINT", "What the act asked for; NULL where unknown.", "by its meter"),
            Column("roles", "VARCHAR[]", "Roles whose approval is waited for.", "names"),
            Column("needed", "BIGINT", "How many approvals are waited for.", "count"),
            Column("expires_at", "TIMESTAMP", "When the request stops waiting.", UTC),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
        ),
        """
        SELECT d.ledger, d."index", d.receipt, d.run, d.recorded_at, r.agent, r."user", r.model, d.status, d.reason, d.act, d.tool,
               d.tool_version, d.access, d.resource, d.environment, d.amount_meter, d.amount, d.act_digest, d.effect, d.attempt,
               d.policy, d.rule, d.grant_id, d.step, d.meter, d.limit_amount, d.spent, d.reserved, d.asked, d.roles, d.needed, d.expires_at,
               d.source
        FROM stored.refusals AS d LEFT JOIN stored.openings AS r ON r.ledger = d.ledger AND r.receipt = d.run
        """,
    ),
    View(
        "deviations",
        "Where what happened left the policy, the scope or the document: refused, or let run by a policy that only observed.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT, *ACTOR,
            Column("deviation", "VARCHAR", "The reason in one dotted word.", "word"),
            Column("what", "VARCHAR", "`refused`, `ran` or `ended`.", "word"),
            Column("act", "VARCHAR", "What was asked for; NULL of a run.", "name"),
            Column("tool", "VARCHAR", "With what; NULL of a run.", "name"),
            Column("rule", "VARCHAR", "Rule that decided.", "name"),
        ),
        """
        SELECT d.ledger, d."index", d.receipt, d.run, d.recorded_at, r.agent, r."user", r.model, d.deviation, d.what, d.act, d.tool,
               d.rule
        FROM (
            SELECT ledger, "index", receipt, run, recorded_at, reason AS deviation, 'refused' AS what, act, tool, rule
            FROM stored.refusals WHERE status <> 'waiting' AND (reason LIKE 'scope.%' OR reason LIKE 'policy.%' OR reason LIKE 'grant.%'
                                         OR (reason = 'budget.limit' AND meter LIKE '%->%'))
            UNION ALL
            SELECT ledger, "index", receipt, run, recorded_at, would_have_reason, 'ran', act, tool, rule
            FROM stored.intents WHERE would_have IS NOT NULL
            UNION ALL
            SELECT ledger, "index", receipt, run, recorded_at, reason, 'ended', NULL, NULL, NULL
            FROM stored.closings WHERE reason = 'run.terminal_not_reached'
        ) AS d LEFT JOIN stored.openings AS r ON r.ledger = d.ledger AND r.receipt = d.run
        """,
    ),
)  # fmt: skip
