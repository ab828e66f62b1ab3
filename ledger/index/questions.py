"""Questions that auditors ask, ready to run: `ledger sql --question NAME`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import Final

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question by name, as a person asks it, and in SQL. `reads` says how to read the answer, where that needs saying.

    `beside` says whether its answer needs what lies beside the journal looked up.
    """

    name: str
    asks: str
    sql: str
    reads: str = ""
    beside: bool = False


_ALL: Final = (
    Question(
        "verified",
        "Are these rows verified, to which head, and by which trust?",
        """
        SELECT ledger, status, head_size, head_root, end_index, left_out, log_pinned, issuers_pinned, memory, trust_source, trust_digest
        FROM index_state
        """,
        "Every row of every table stands under this head. `end_index` below `head_size`, or `left_out` above 0: see `findings`.",
    ),
    Question(
        "population",
        "Is the population complete: how many runs were started, closed and left open, in each quarter?",
        """
        SELECT ledger, year(started) AS year, quarter(started) AS quarter, count(*) AS started, count_if(NOT "open") AS closed,
               count_if("open") AS still_open, count_if("open" AND newest < asked_at() - INTERVAL 1 DAY) AS orphaned
        FROM runs JOIN (SELECT ledger, run, max(recorded_at) AS newest FROM receipts GROUP BY ALL) USING (ledger, run)
        GROUP BY ALL ORDER BY ALL
        """,
        "Orphaned: open, and silent for a day. Positions in the chain have no gaps, so no recorded run can be missing here.",
    ),
    Question(
        "who",
        "Who did each act?",
        """
        SELECT started, agent, user, model, actor, act, tool, resource, access, status, receipt
        FROM calls ORDER BY ledger, "index" LIMIT 1000
        """,
        "`actor` is the issuer whose seal covers the act; `agent`, `user` and `model` are what it says.",
    ),
    Question(
        "unapproved",
        "Which writes needed an approval and ran without one, and which were approved by whoever acted?",
        """
        SELECT c.started, c.agent, c.act, c.resource, 'ran without approval' AS finding, c.receipt
        FROM calls AS c WHERE c.access = 'write' AND c.approval_needed AND len(c.approvals) = 0
        UNION ALL
        SELECT c.started, c.agent, c.act, c.resource, 'approved by ' || a.approver, c.receipt
        FROM calls AS c JOIN approvals AS a ON a.ledger = c.ledger AND list_contains(c.approvals, a.approval)
        WHERE a.approver IN (c.agent, c.actor) OR a.approver_key = a.recorder_key
        ORDER BY 1
        """,
    ),
    Question(
        "spend",
        "What did each agent spend in each month, and of how much of it is the price unknown?",
        """
        SELECT agent, strftime(month, '%Y-%m') AS month, * EXCLUDE (agent, month) FROM (
            SELECT r.agent, date_trunc('month', s.recorded_at) AS month, s.meter, sum(s.spent) AS spent,
                   sum(s.reserved) AS still_reserved, count_if(s.unknown) AS acts_of_unknown_cost, count(*) AS acts
            FROM spend AS s JOIN runs AS r USING (ledger, run) GROUP BY ALL
        ) ORDER BY ALL
        """,
        "An act of unknown cost counts as what it had set aside; amounts of different meters are never added.",
    ),
    Question(
        "in-force",
        "Which limits and policies were in force, and when?",
        """
        SELECT since, until, holder, holder_id, meter || ' <= ' || limit_amount AS rule FROM limits
        UNION ALL
        SELECT since, until, 'run', run, 'policy ' || policy FROM policies
        ORDER BY since, holder_id, rule LIMIT 1000
        """,
    ),
    Question(
        "refusals",
        "What was refused, by tool, rule and agent?",
        """
        SELECT tool, rule, agent, status, reason, count(*) AS times, max(recorded_at) AS last, arg_max(receipt, "index") AS receipt
        FROM decisions WHERE status <> 'waiting' GROUP BY ALL ORDER BY times DESC, tool, agent
        """,
    ),
    Question(
        "ambiguous",
        "Of which effects does nobody know for over 24 hours, and who resolved the others?",
        """
        SELECT CASE WHEN resolved_by IS NULL THEN 'unknown since ' || since ELSE finding END AS answer, effect, act, tool, agent,
               resolved_by, resolved_at, receipt
        FROM effects
        WHERE resolved_by IS NOT NULL OR (state = 'ambiguous' AND since < asked_at() - INTERVAL 24 HOUR)
        ORDER BY resolved_by IS NOT NULL, since
        """,
    ),
    Question(
        "keys",
        "Which keys spoke, from when to when?",
        """
        SELECT ledger, role, key, action, since_index, until_index, since, revoked_from, receipt FROM keys ORDER BY ledger, role, since_index
        """,
    ),
    Question(
        "notarized",
        "Which closed runs has no notary sealed, and how long did the others wait?",
        """
        SELECT r.ended, r.agent, r.name, c.notary, c.issued_at - r.ended AS delay, r.receipt
        FROM runs AS r LEFT JOIN counter_seals AS c ON c.ledger = r.ledger AND c.receipt = r.receipt AND c.fits
        WHERE NOT r."open" ORDER BY c.notary IS NOT NULL, r.ended LIMIT 1000
        """,
        "Whether the notary's key is one that you believe stands in `counter_seals.notary_pinned`.",
        beside=True,
    ),
    Question(
        "erased",
        "What was erased, by whom, and why?",
        """
        SELECT recorded_at, erased_by, reason, digest, len(receipts) AS referring_receipts, receipt FROM removals ORDER BY recorded_at
        """,
    ),
    Question(
        "overspent",
        "Which budgets were passed, overrun or nearly used up?",
        """
        SELECT b.run, r.agent, b.meter, b.limit_amount, b.spent, b.reserved, b.left_amount, b.overrun, b.receipt
        FROM budgets AS b JOIN runs AS r USING (ledger, run)
        WHERE b.overrun OR b.left_amount < b.limit_amount / 10 ORDER BY b.left_amount
        """,
    ),
    Question(
        "approvers",
        "Who approved how much, and how fast?",
        """
        SELECT approver, role, count_if(answer = 'granted') AS granted, count_if(answer = 'denied') AS denied,
               count_if(approval IS NULL) AS waiting, median(answered_at - requested_at) AS median_wait
        FROM approvals GROUP BY ALL ORDER BY ALL
        """,
    ),
    Question(
        "unused-approvals",
        "Which approvals can still be used, or ran out unused?",
        """
        SELECT state, approver, role, coalesce(act, pattern) AS covers, uses, used, expires_at, receipt
        FROM approvals WHERE approval IS NOT NULL AND used < uses AND answer = 'granted' ORDER BY expires_at
        """,
    ),
    Question(
        "tools",
        "How do acts end, tool by tool?",
        """
        SELECT tool, tool_version, count(*) AS acts, count_if(status = 'committed') AS committed, count_if(status = 'failed') AS failed,
               count_if(status = 'ambiguous') AS ambiguous, count_if(status = 'open') AS unfinished,
               quantile_cont(duration_ms, 0.95)::BIGINT AS p95_ms
        FROM calls GROUP BY ALL ORDER BY acts DESC
        """,
    ),
    Question(
        "amounts",
        "What was moved, by agent and resource?",
        """
        SELECT agent, resource, amount_meter, sum(amount) AS moved, count(*) AS acts
        FROM calls WHERE amount IS NOT NULL AND status = 'committed' GROUP BY ALL ORDER BY moved DESC
        """,
    ),
    Question(
        "retries",
        "Which effects took more than one attempt?",
        """
        SELECT effect, count(*) AS attempts, list(state ORDER BY attempt) AS states, arg_max(receipt, attempt) AS receipt
        FROM effects WHERE effect IS NOT NULL GROUP BY ledger, effect HAVING count(*) > 1 ORDER BY attempts DESC
        """,
    ),
    Question(
        "run-tree",
        "Which runs started which?",
        """
        SELECT t.depth, repeat('  ', t.depth::INTEGER) || r.name AS name, r.agent, r.status, r.started, r.duration_ms, t.run
        FROM run_tree AS t JOIN runs AS r USING (ledger, run)
        WHERE t.root IN (SELECT root FROM run_tree WHERE depth > 0) ORDER BY t.ledger, t.path LIMIT 1000
        """,
    ),
    Question(
        "deviations",
        "Where did runs leave their policy, scope or document?",
        """
        SELECT recorded_at, agent, what, deviation, act, tool, rule, receipt FROM deviations ORDER BY ledger, "index"
        """,
    ),
    Question(
        "foreign",
        "Which foreign documents came in, and what do their own rules say of them?",
        """
        SELECT recorded_at, issuer, format, version, name, native_status, native_code, restated, receipt FROM imports ORDER BY recorded_at
        """,
    ),
    Question(
        "evaluations",
        "What did evaluators not find met?",
        """
        SELECT recorded_at, evaluator_package, evaluator_method, verdict, subject, run, receipt
        FROM evaluations WHERE verdict <> 'met' ORDER BY recorded_at
        """,
    ),
    Question(
        "odd",
        "What is lawful and odd: clocks that went back, intents that nothing settled, repairs?",
        """
        SELECT recorded_at, anomaly, detail, "index", receipt FROM anomalies ORDER BY ledger, "index" LIMIT 1000
        """,
    ),
)  # fmt: skip

QUESTIONS: Final = {each.name: replace(each, sql=cleandoc(each.sql.strip("\n")).rstrip()) for each in _ALL}
"""Name -> question, in the order of the documentation."""
