"""Views of limits, policies and what was spent. Source: docs/spec/rules/budgets.md."""

from __future__ import annotations

from typing import Final

from ledger.index.acts import CHARGES
from ledger.index.columns import Column, View, literal
from ledger.index.record import DIGEST, INDEX, LEDGER, RECEIPT, RECORDED_AT, RUN, UTC
from ledger.index.viewruns import ACTOR
from ledger.rules.amounts import EDGE
from ledger.rules.effect import PROOFS_OF_NOTHING

__all__ = ["VIEWS"]

_EDGE: Final = literal(EDGE.pattern)
_PROOFS: Final = ", ".join(literal(each) for each in sorted(PROOFS_OF_NOTHING))
_METER: Final = Column("meter", "VARCHAR", "What is counted, with its unit in its name.", "meter")

_NEAR: Final = 8
_ONCE: Final = f"""
            SELECT count(*) = 0 AS each FROM (
                SELECT lag(ledger) OVER () > ledger OR (lag(ledger) OVER () = ledger AND lag("index") OVER () > "index")
                       OR (lag(ledger, {_NEAR}) OVER () = ledger AND lag("index", {_NEAR}) OVER () = "index")
                       OR {" OR ".join(f"lag(mark, {back}) OVER () = mark" for back in range(1, _NEAR))} AS doubt
                FROM (SELECT ledger, "index", hash(ledger, "index", meter) AS mark FROM stored.stated_charges WHERE stage <> 'usage')
            ) WHERE doubt"""
"""Whether no receipt states a meter twice, told in one pass without a table of all: charges are looked at as they come.

Where positions never fall and no receipt has more than `_NEAR` charges, all of a receipt stand together, so one of the rows just
before is the same if there is one. The order in which they come decides nothing: any other order is a doubt, and doubts are added up.
"""

VIEWS: Final = (
    View(
        "charges",
        "Every charge that a receipt states, as it states it. What counts against budgets is `spend`.",
        (
            LEDGER, RECEIPT, INDEX, RUN,
            Column("intent", "VARCHAR", "Intent of the act.", DIGEST),
            *(each for each in CHARGES if each.name not in ("ledger", "index", "intent")),
            RECORDED_AT,
        ),
        """
        SELECT c.ledger, r.receipt, c."index", r.run, coalesce(c.intent, r.receipt) AS intent,
               c.* EXCLUDE (ledger, "index", intent), r.recorded_at
        FROM stored.stated_charges AS c JOIN stored.record AS r ON r.ledger = c.ledger AND r."index" = c."index"
        """,
    ),
    View(
        "limits",
        "Limits of runs and grants, and when they were in force.",
        (
            LEDGER,
            Column("holder", "VARCHAR", "`run` or `grant`.", "word"),
            Column("holder_id", "VARCHAR", "Run id or receipt id of the grant.", DIGEST),
            _METER,
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
    View(
        "spend",
        "What each act takes from the budgets that it draws on, meter by meter, by the rules of `docs/spec/rules/budgets.md`.",
        (
            LEDGER, RUN,
            Column("intent", "VARCHAR", "Intent of the act.", DIGEST),
            _METER,
            Column("held", "BIGINT", "What it set aside before acting.", "by its meter"),
            Column("spent", "BIGINT", "What counts as spent.", "by its meter"),
            Column("reserved", "BIGINT", "What is still set aside.", "by its meter"),
            Column("unknown", "BOOLEAN", "Whether nobody knows what it cost; it then counts as what was set aside."),
            Column("status", "VARCHAR", "`committed`, `failed`, `ambiguous` or `open`, a resolution taken into account.", "word"),
            Column("overrun", "BOOLEAN", "Whether it cost more than it had set aside."),
            Column("receipt", "VARCHAR", "Receipt that settled it last, else the intent.", DIGEST),
            Column("recorded_at", "TIMESTAMP", "When the intent was recorded.", UTC),
        ),
        f"""
        WITH ended AS (
            SELECT i.ledger, i."index" AS began, i.run, i.receipt AS intent, i.recorded_at, o."index" AS outcome_at, o.receipt AS outcome,
                   coalesce(o."index", i."index") AS act_at, o.status AS first,
                   o.status = 'failed' AND coalesce(o.reason, '') NOT IN ({_PROOFS}) AS unproven,
                   v."index" AS resolution_at, v.receipt AS resolution, v.happened
            FROM stored.intents AS i
            LEFT JOIN stored.outcomes AS o ON o.ledger = i.ledger AND o.intent = i.receipt
            LEFT JOIN (
                SELECT * FROM stored.resolutions QUALIFY row_number() OVER (PARTITION BY ledger, intent ORDER BY "index") = 1
            ) AS v ON v.ledger = i.ledger AND v.intent = i.receipt AND (o."index" IS NULL OR o.status = 'ambiguous' OR v."index" < o."index")
        ), once AS ({_ONCE}
        ), draws AS NOT MATERIALIZED (
            SELECT ledger, "index" AS began, meter,
                   CASE WHEN payer IS NULL THEN coalesce(reserved, CASE WHEN reserved_unknown THEN NULL ELSE quoted END) ELSE 0 END AS amount
            FROM stored.stated_charges WHERE stage = 'reserved'
        ), drawn AS NOT MATERIALIZED (
            SELECT ledger, began, meter, amount, amount IS NULL AS unknown FROM draws WHERE (SELECT each FROM once)
            UNION ALL
            SELECT ledger, began, meter, sum(amount)::BIGINT, bool_or(amount IS NULL) FROM draws WHERE NOT (SELECT each FROM once) GROUP BY ALL
        ), says AS NOT MATERIALIZED (
            SELECT ledger, "index", meter, settled, stage FROM stored.stated_charges
            WHERE stage IN ('settled', 'resolved') AND payer IS NULL AND (settled IS NOT NULL OR settled_unknown OR basis = 'unknown')
        ), said AS (
            SELECT ledger, "index" AS act_at, meter, settled AS amount, settled IS NULL AS unknown FROM says
            WHERE stage = 'settled' AND (SELECT each FROM once)
            UNION ALL
            SELECT ledger, "index", meter, CASE WHEN NOT bool_or(settled IS NULL) THEN sum(settled)::BIGINT END, bool_or(settled IS NULL)
            FROM says WHERE stage = 'settled' AND NOT (SELECT each FROM once) GROUP BY ALL
        ), resolved AS (
            SELECT e.ledger, e.act_at, s.meter, CASE WHEN NOT bool_or(s.settled IS NULL) THEN sum(s.settled)::BIGINT END AS amount,
                   bool_or(s.settled IS NULL) AS unknown
            FROM says AS s JOIN ended AS e ON e.ledger = s.ledger AND e.resolution_at = s."index" WHERE s.stage = 'resolved' GROUP BY ALL
        ), held AS (
            SELECT e.ledger, e.act_at, d.meter, d.unknown,
                   CASE WHEN d.unknown THEN 0 WHEN d.meter = 'tool_calls' AND d.amount = 0 THEN 1 ELSE d.amount END AS amount
            FROM drawn AS d JOIN ended AS e ON e.ledger = d.ledger AND e.began = d.began
            UNION ALL
            SELECT ledger, act_at, 'tool_calls', false, 1 FROM ended ANTI JOIN (SELECT * FROM draws WHERE meter = 'tool_calls') USING (ledger, began)
        ), meters AS (
            SELECT coalesce(t.ledger, h.ledger) AS ledger, coalesce(t.act_at, h.act_at) AS act_at, coalesce(t.meter, h.meter) AS meter,
                   coalesce(h.held, 0) AS held, coalesce(h.draw_unknown, false) AS draw_unknown, h.said,
                   coalesce(h.said_unknown, false) AS said_unknown, coalesce(h.settles, false) AS settles, t.amount AS later,
                   coalesce(t.unknown, false) AS later_unknown, t.meter IS NOT NULL AS resolves
            FROM (
                SELECT coalesce(h.ledger, s.ledger) AS ledger, coalesce(h.act_at, s.act_at) AS act_at, coalesce(h.meter, s.meter) AS meter,
                       h.amount AS held, h.unknown AS draw_unknown, s.amount AS said, s.unknown AS said_unknown, s.meter IS NOT NULL AS settles
                FROM held AS h FULL JOIN said AS s ON s.ledger = h.ledger AND s.act_at = h.act_at AND s.meter = h.meter
            ) AS h FULL JOIN resolved AS t ON t.ledger = h.ledger AND t.act_at = h.act_at AND t.meter = h.meter
        ), kept AS (
            SELECT e.*, m.meter, m.held, m.draw_unknown,
                   CASE WHEN first = 'ambiguous' AND said IS NOT NULL THEN greatest(held, said) ELSE held END AS kept,
                   CASE happened WHEN 'happened' THEN 'committed' WHEN 'did_not_happen' THEN 'failed' ELSE coalesce(first, 'open') END AS status,
                   CASE WHEN happened IS NULL THEN said ELSE later END AS amount,
                   CASE WHEN happened IS NULL THEN said_unknown ELSE later_unknown END AS amount_unknown,
                   CASE WHEN happened IS NULL THEN settles ELSE resolves END AS amount_said
            FROM ended AS e JOIN meters AS m ON m.ledger = e.ledger AND m.act_at = e.act_at
        )
        SELECT ledger, run, intent, meter, held::BIGINT AS held,
               (CASE WHEN status NOT IN ('committed', 'failed') THEN 0
                     WHEN contains(meter, '->') AND regexp_full_match(meter, {_EDGE}) THEN greatest(kept, coalesce(amount, 0))
                     WHEN status = 'committed' OR amount_unknown OR (unproven AND happened IS NULL) THEN coalesce(amount, kept)
                     ELSE coalesce(amount, 0) END)::BIGINT AS spent,
               (CASE WHEN status IN ('ambiguous', 'open') THEN kept ELSE 0 END)::BIGINT AS reserved,
               amount_unknown OR (draw_unknown AND NOT amount_said AND (status <> 'failed' OR (unproven AND happened IS NULL))) AS unknown,
               status, (CASE WHEN status IN ('ambiguous', 'open') THEN kept ELSE coalesce(amount, 0) END) > held AS overrun,
               coalesce(resolution, outcome, intent) AS receipt, recorded_at
        FROM kept WHERE meter NOT IN ('receipts', 'concurrency')
        """,
    ),
    View(
        "budgets",
        "Limits of each run and what it and the runs below it spent; meters without a limit are there where something was spent.",
        (
            LEDGER, RUN,
            _METER,
            Column("limit_amount", "BIGINT", "Nothing beyond this is admitted; NULL where the meter is not limited.", "by its meter"),
            Column("soft_amount", "BIGINT", "An act that passes this needs an approval.", "by its meter"),
            Column("grace_amount", "BIGINT", "How far one act may go beyond the limit.", "by its meter"),
            Column("spent", "BIGINT", "What was spent; NULL for `depth`, `fanout` and `concurrency`, which nothing adds up to.", "by its meter"),
            Column("reserved", "BIGINT", "What is set aside.", "by its meter"),
            Column("unknown", "BIGINT", "Acts of which nobody knows what they cost on this meter.", "count"),
            Column("left_amount", "BIGINT", "Limit less spent and reserved; negative after an overrun.", "by its meter"),
            Column("overrun", "BOOLEAN", "Whether an act cost more than it had set aside of this limited meter."),
            Column("receipt", "VARCHAR", "The run's opening, which states its limits.", DIGEST),
        ),
        """
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
               (CASE WHEN coalesce(l.meter, u.meter) IN ('depth', 'fanout', 'concurrency') THEN NULL ELSE coalesce(u.spent, 0) END)::BIGINT AS spent,
               coalesce(u.reserved, 0)::BIGINT AS reserved, coalesce(u.unknown, 0)::BIGINT AS unknown,
               (CASE WHEN coalesce(l.meter, u.meter) IN ('depth', 'fanout', 'concurrency') THEN NULL
                     ELSE l.limit_amount - coalesce(u.spent, 0) - coalesce(u.reserved, 0) END)::BIGINT AS left_amount,
               l.limit_amount IS NOT NULL AND coalesce(u.overrun, false) AS overrun, coalesce(l.run, u.run) AS receipt
        FROM limited AS l FULL JOIN used AS u ON u.ledger = l.ledger AND u.run = l.run AND u.meter = l.meter
        """,
    ),
)  # fmt: skip
