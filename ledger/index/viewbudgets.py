"""Views of limits, policies and what was spent. Source: docs/spec/rules/budgets.md."""

from __future__ import annotations

from typing import Final

from ledger.index.acts import CHARGES
from ledger.index.columns import Column, View, bounded, by_index
from ledger.index.record import DIGEST, INDEX, LEDGER, RECEIPT, RECORDED_AT, RUN, UTC
from ledger.index.spent import METER, SPEND
from ledger.index.viewruns import ACTOR

__all__ = ["VIEWS"]

_SPENT: Final = "coalesce(u.spent, CASE WHEN coalesce(l.meter, u.meter) <> 'duration_ms' THEN 0 END)"
"""Time goes on by itself: nobody knows how much is spent of it before the run says so. Of all else nothing was spent where nothing is said."""

VIEWS: Final = (
    View(
        "charges",
        "Every charge that a receipt states, as it states it. What counts against budgets is `spend`.",
        (
            LEDGER, RECEIPT, INDEX, RUN,
            Column("intent", "VARCHAR", "Intent of the act.", DIGEST),
            *(each for each in CHARGES if each.name not in ("ledger", "index")),
            RECORDED_AT,
        ),
        f"""
        SELECT c.ledger, r.receipt, c."index", r.run, coalesce(o.intent, v.intent, r.receipt) AS intent,
               c.* EXCLUDE (ledger, "index"), r.recorded_at
        FROM stored.stated_charges AS c JOIN stored.record AS r ON r.ledger = c.ledger AND r."index" = c."index"
        LEFT JOIN {by_index("outcomes", "intent")} AS o ON o.ledger = c.ledger AND o."index" = c."index"
        LEFT JOIN {by_index("resolutions", "intent")} AS v ON v.ledger = c.ledger AND v."index" = c."index"
        """,
    ),
    View(
        "limits",
        "Limits of runs and grants, and when they were in force.",
        (
            LEDGER,
            Column("holder", "VARCHAR", "`run` or `grant`.", "word"),
            Column("holder_id", "VARCHAR", "Run id or receipt id of the grant.", DIGEST),
            METER,
            Column("limit_amount", "BIGINT", "Nothing beyond this is admitted.", "by its meter"),
            Column("grace_amount", "BIGINT", "How far one act that was admitted may go beyond.", "by its meter"),
            Column("soft_amount", "BIGINT", "An act that passes this needs an approval.", "by its meter"),
            Column("account", "VARCHAR", "Account that grants spend from together; NULL where the limit is the holder's own.", "name"),
            Column("period", "VARCHAR", "`day`, `week` or `month`, of an account.", "word"),
            Column("since", "TIMESTAMP", "When it was recorded.", UTC),
            Column("until", "TIMESTAMP", "When its run closed, or its grant was revoked or expired; NULL where still in force.", UTC),
            RECEIPT,
        ),
        """
        SELECT l.ledger, CASE l.kind WHEN 'opening' THEN 'run' ELSE 'grant' END AS holder, l.receipt AS holder_id, l.meter,
               l.limit_amount, coalesce(l.grace_amount, 0) AS grace_amount, l.soft_amount, l.account, l.period, l.recorded_at AS since,
               CASE l.kind WHEN 'opening' THEN c.recorded_at
                           ELSE least(g.revoked_at, CASE WHEN g.expires_at <= {asked_at} THEN g.expires_at END) END AS until,
               l.receipt
        FROM (
            SELECT *, NULL AS account, NULL AS period FROM stored.stated_limits
            UNION ALL BY NAME
            SELECT ledger, "index", receipt, recorded_at, 'grant' AS kind, meter, limit_amount, account, period FROM stored.stated_periods
        ) AS l
        LEFT JOIN stored.closings AS c ON c.ledger = l.ledger AND c.run = l.receipt
        LEFT JOIN (
            SELECT g.ledger, g.receipt, g.expires_at, min(v.recorded_at) AS revoked_at
            FROM stored.grants AS g LEFT JOIN stored.grants AS v
                ON v.ledger = g.ledger AND v.parent = g.receipt AND v.action = 'revoked'
            GROUP BY ALL
        ) AS g ON g.ledger = l.ledger AND g.receipt = l.receipt
        """,
    ),
    View(
        "policies",
        "Which policy was in force in which run, and when.",
        (
            LEDGER,
            Column("policy", "VARCHAR", "Digest of the policy.", DIGEST),
            RUN,
            Column("since", "TIMESTAMP", "When the run opened.", UTC),
            Column("until", "TIMESTAMP", "When it closed; NULL while open.", UTC),
            *ACTOR,
            Column("receipt", "VARCHAR", "The run's opening.", DIGEST),
        ),
        """
        SELECT o.ledger, o.policy, o.receipt AS run, o.recorded_at AS since, c.recorded_at AS until, o.agent, o."user", o.model, o.receipt
        FROM stored.openings AS o LEFT JOIN stored.closings AS c ON c.ledger = o.ledger AND c.run = o.receipt
        WHERE o.policy IS NOT NULL
        """,
    ),
    SPEND,
    View(
        "budgets",
        "Limits of each run and what it and the runs below it spent; meters without a limit are there where something was spent.",
        (
            LEDGER, RUN,
            METER,
            Column("limit_amount", "BIGINT", "Nothing beyond this is admitted; NULL where the meter is not limited.", "by its meter"),
            Column("soft_amount", "BIGINT", "An act that passes this needs an approval.", "by its meter"),
            Column("grace_amount", "BIGINT", "How far one act may go beyond the limit.", "by its meter"),
            Column("spent", "BIGINT", "What was spent; NULL for `depth`, `fanout` and `concurrency`, which nothing adds up to, and for the time of a run that is open or does not say how long it took.", "by its meter"),
            Column("reserved", "BIGINT", "What is set aside.", "by its meter"),
            Column("unknown", "BIGINT", "Acts of which nobody knows what they cost on this meter.", "count"),
            Column("left_amount", "BIGINT", "Limit less spent and reserved; negative after an overrun, NULL without a limit and where `spent` is.", "by its meter"),
            Column("overrun", "BOOLEAN", "Whether an act cost more than it had set aside of this limited meter."),
            Column("receipt", "VARCHAR", "The run's opening, which states its limits.", DIGEST),
        ),
        f"""
        WITH above AS (SELECT ledger, run, unnest(path) AS holder FROM run_tree),
        used AS (
            SELECT a.ledger, a.holder AS run, s.meter, sum(s.spent) AS spent, sum(s.reserved) AS reserved, sum(s.unknown) AS unknown,
                   bool_or(s.overrun) AS overrun
            FROM (
                SELECT ledger, run, meter, sum(spent) AS spent, sum(reserved) AS reserved, count_if(unknown) AS unknown, bool_or(overrun) AS overrun
                FROM spend GROUP BY ALL
                UNION ALL
                SELECT ledger, run, 'receipts', count(*), 0, 0, false FROM stored.record
                WHERE kind IN ('opening', 'intent', 'outcome', 'decision', 'step', 'run') GROUP BY ALL
            ) AS s JOIN above AS a ON a.ledger = s.ledger AND a.run = s.run
            GROUP BY ALL
            UNION ALL
            SELECT ledger, run, 'duration_ms', duration_ms, 0, (duration_ms IS NULL)::BIGINT, false FROM stored.closings
        ), limited AS (SELECT ledger, receipt AS run, meter, limit_amount, soft_amount, grace_amount FROM stored.stated_limits WHERE kind = 'opening')
        SELECT coalesce(l.ledger, u.ledger) AS ledger, coalesce(l.run, u.run) AS run, coalesce(l.meter, u.meter) AS meter, l.limit_amount,
               l.soft_amount, l.grace_amount,
               CASE WHEN coalesce(l.meter, u.meter) NOT IN ('depth', 'fanout', 'concurrency') THEN {bounded(_SPENT)} END AS spent,
               {bounded("coalesce(u.reserved, 0)")} AS reserved, coalesce(u.unknown, 0)::BIGINT AS unknown,
               CASE WHEN coalesce(l.meter, u.meter) NOT IN ('depth', 'fanout', 'concurrency')
                    THEN {bounded(f"l.limit_amount - {_SPENT} - coalesce(u.reserved, 0)")} END AS left_amount,
               l.limit_amount IS NOT NULL AND coalesce(u.overrun, false) AS overrun, coalesce(l.run, u.run) AS receipt
        FROM limited AS l FULL JOIN used AS u ON u.ledger = l.ledger AND u.run = l.run AND u.meter = l.meter
        """,
    ),
)  # fmt: skip
