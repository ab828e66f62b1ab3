"""Views of what stands beside runs: the chain, approvals, effects, keys, seals, imports, what was erased, oddities."""

from __future__ import annotations

from typing import Final

from ledger.index.columns import Column, View
from ledger.index.record import DIGEST, INDEX, LEDGER, RECEIPT, RECORDED_AT, RUN, TABLES, UTC

__all__ = ["VIEWS"]

_RECORD: Final = {each.name: each for each in TABLES}["record"].columns
_CHAIN_ONLY: Final = ("envelope", "previous", "keyring")

VIEWS: Final = (
    View(
        "receipts",
        "Every receipt, whatever its kind.",
        tuple(each for each in _RECORD if each.name not in _CHAIN_ONLY),
        f"SELECT * EXCLUDE ({', '.join(_CHAIN_ONLY)}) FROM stored.record",
    ),
    View(
        "entries",
        "The chain: one row for each position.",
        (
            *(each for each in _RECORD if each.name in ("ledger", "index", "receipt", *_CHAIN_ONLY, "recorded_at")),
            Column("head_size", "BIGINT", "Size of the head that acknowledged it.", "entries"),
        ),
        """
        SELECT e.ledger, e."index", e.receipt, e.envelope, e.previous, e.keyring, e.recorded_at, h.size AS head_size
        FROM stored.record AS e ASOF LEFT JOIN stored.heads AS h ON h.ledger = e.ledger AND e."index" < h.size
        """,
    ),
    View(
        "artifacts",
        "Every mention of an artifact by a receipt. Whether the bytes are there is looked up when asked.",
        (
            *(each for each in {each.name: each for each in TABLES}["artifacts"].columns),
            Column("state", "VARCHAR", "`present`, `erased` where an erasure after this mention says so, `absent` or `unreadable`.", "word"),
        ),
        """
        SELECT a.*, CASE WHEN l.state = 'absent' AND e.ledger IS NOT NULL THEN 'erased' ELSE l.state END AS state
        FROM stored.artifacts AS a
        LEFT JOIN (SELECT ledger, digest, any_value(state) AS state FROM looked_up_artifacts GROUP BY ALL) AS l USING (ledger, digest)
        LEFT JOIN (SELECT ledger, digest, max("index") AS at FROM stored.removals GROUP BY ALL) AS e
            ON e.ledger = a.ledger AND e.digest = a.digest AND e.at > a."index"
        """,
    ),
    View(
        "approvals",
        "Requests for an approval and their answers: one row for each answer, and one for each request that has none.",
        (
            LEDGER,
            Column("request", "VARCHAR", "The waiting decision; NULL for a standing approval.", DIGEST),
            Column("approval", "VARCHAR", "The answer; NULL where none came.", DIGEST),
            RUN,
            Column("act", "VARCHAR", "What was asked for.", "name"),
            Column("act_digest", "VARCHAR", "What the answer binds to.", DIGEST),
            Column("pattern", "VARCHAR", "Acts that a standing approval covers.", "pattern"),
            Column("state", "VARCHAR", "`pending`, `granted`, `denied`, `expired` or `consumed`, at the time of asking.", "word"),
            Column("answer", "VARCHAR", "`granted` or `denied`.", "word"),
            Column("approver", "VARCHAR", "Who answered.", "name"),
            Column("approver_key", "VARCHAR", "Key that sealed the answer.", "key id"),
            Column("role", "VARCHAR", "Role in which it was answered.", "name"),
            Column("agent", "VARCHAR", "Agent of the run that asked.", "name"),
            Column("recorder", "VARCHAR", "Issuer of the request.", "name"),
            Column("recorder_key", "VARCHAR", "Key of that issuer.", "key id"),
            Column("requested_at", "TIMESTAMP", "When the request was recorded.", UTC),
            Column("answered_at", "TIMESTAMP", "When the answer was recorded.", UTC),
            Column("expires_at", "TIMESTAMP", "When the answer, else the request, stops holding.", UTC),
            Column("uses", "BIGINT", "How many acts may use it.", "count"),
            Column("used", "BIGINT", "How many did.", "count"),
            Column("used_by", "VARCHAR[]", "Intents that did.", DIGEST),
            Column("receipt", "VARCHAR", "The answer, else the request.", DIGEST),
            Column("source", "VARCHAR", "`live` or `imported`.", "word"),
        ),
        """
        WITH used AS (
            SELECT ledger, approval, count(*) AS used, list(receipt ORDER BY "index") AS used_by
            FROM (SELECT ledger, receipt, "index", unnest(approvals) AS approval FROM stored.intents WHERE len(approvals) > 0)
            GROUP BY ALL
        ), asked AS (
            SELECT d.*, k.issuer_key FROM stored.refusals AS d
            LEFT JOIN stored.record AS k ON k.ledger = d.ledger AND k."index" = d."index"
            WHERE d.status = 'waiting'
        )
        SELECT coalesce(a.ledger, d.ledger) AS ledger, coalesce(d.receipt, a.request) AS request, a.receipt AS approval,
               coalesce(a.run, d.run) AS run, d.act, coalesce(a.act_digest, d.act_digest) AS act_digest, a.pattern,
               CASE WHEN coalesce(u.used, 0) >= a.uses THEN 'consumed'
                    WHEN a.answer = 'denied' THEN 'denied'
                    WHEN coalesce(a.expires_at, d.expires_at) <= {asked_at} THEN 'expired'
                    WHEN a.answer = 'granted' THEN 'granted' ELSE 'pending' END AS state,
               a.answer, a.issuer AS approver, a.issuer_key AS approver_key, a.role, r.agent, d.issuer AS recorder,
               d.issuer_key AS recorder_key, d.recorded_at AS requested_at, a.recorded_at AS answered_at,
               coalesce(a.expires_at, d.expires_at) AS expires_at, a.uses, coalesce(u.used, 0) AS used,
               coalesce(u.used_by, []) AS used_by, coalesce(a.receipt, d.receipt) AS receipt, coalesce(a.source, d.source) AS source
        FROM stored.answers AS a FULL JOIN asked AS d ON d.ledger = a.ledger AND d.receipt = a.request
        LEFT JOIN used AS u ON u.ledger = a.ledger AND u.approval = a.receipt
        LEFT JOIN stored.openings AS r ON r.ledger = coalesce(a.ledger, d.ledger) AND r.receipt = coalesce(a.run, d.run)
        """,
    ),
    View(
        "effects",
        "Attempts at effects: one row for each intent that names an effect, or that became ambiguous or was resolved.",
        (
            LEDGER,
            Column("effect", "VARCHAR", "Effect key; NULL where the act names none.", "name"),
            Column("attempt", "BIGINT", "Which attempt at it.", "from 1"),
            Column("newest", "BOOLEAN", "Whether no later attempt at the effect was begun."),
            Column("state", "VARCHAR", "`in_progress`, `committed`, `failed` or `ambiguous`, at the time of asking.", "word"),
            Column("since", "TIMESTAMP", "When it came into this state.", UTC),
            RUN,
            Column("intent", "VARCHAR", "Intent of the attempt.", DIGEST),
            Column("act", "VARCHAR", "What was done.", "name"),
            Column("tool", "VARCHAR", "With what.", "name"),
            Column("agent", "VARCHAR", "Agent of the run.", "name"),
            Column("was_ambiguous", "BOOLEAN", "Whether nobody knew at some time: its outcome says so, or it was resolved."),
            Column("resolved_by", "VARCHAR", "Who settled it.", "name"),
            Column("resolved_at", "TIMESTAMP", "When.", UTC),
            Column("finding", "VARCHAR", "`happened` or `did_not_happen`.", "word"),
            Column("lease_ends", "TIMESTAMP", "When nobody may assume any longer that it still runs.", UTC),
            Column("receipt", "VARCHAR", "Receipt that says the state: resolution, outcome or intent.", DIGEST),
        ),
        """
        WITH tried AS (
            SELECT i.*, o.receipt AS outcome, o.status AS ended, o.recorded_at AS ended_at, v.receipt AS resolution, v.happened,
                   v.resolved_by, v.recorded_at AS resolved_at,
                   i.recorded_at + to_milliseconds(i.lease_ms) AS lease_ends, r.agent
            FROM stored.intents AS i
            LEFT JOIN stored.outcomes AS o ON o.ledger = i.ledger AND o.intent = i.receipt
            LEFT JOIN (
                SELECT * FROM stored.resolutions QUALIFY row_number() OVER (PARTITION BY ledger, intent ORDER BY "index") = 1
            ) AS v ON v.ledger = i.ledger AND v.intent = i.receipt
            LEFT JOIN stored.openings AS r ON r.ledger = i.ledger AND r.receipt = i.run
            WHERE i.effect IS NOT NULL OR o.status = 'ambiguous' OR v.receipt IS NOT NULL
        )
        SELECT ledger, effect, attempt,
               effect IS NULL OR "index" = max("index") OVER (PARTITION BY ledger, effect) AS newest,
               CASE WHEN happened = 'happened' THEN 'committed' WHEN happened = 'did_not_happen' THEN 'failed'
                    WHEN ended IS NOT NULL THEN ended WHEN lease_ends <= {asked_at} THEN 'ambiguous' ELSE 'in_progress' END AS state,
               CASE WHEN happened IS NOT NULL THEN resolved_at WHEN ended IS NOT NULL THEN ended_at
                    WHEN lease_ends <= {asked_at} THEN lease_ends ELSE recorded_at END AS since,
               run, receipt AS intent, act, tool, agent, coalesce(ended = 'ambiguous', false) OR resolution IS NOT NULL AS was_ambiguous,
               resolved_by, resolved_at, happened AS finding, lease_ends, coalesce(resolution, outcome, receipt) AS receipt
        FROM tried
        """,
    ),
    View(
        "keys",
        "Keys of the ledger over time: which key spoke for which role, from which entry to which.",
        (
            LEDGER,
            Column("role", "VARCHAR", "`issuer` or `log`.", "word"),
            Column("key", "VARCHAR", "The key.", "key id"),
            Column("action", "VARCHAR", "How it came into force: `first`, `rotate` or `revoke`.", "word"),
            Column("since_index", "BIGINT", "First entry that it speaks for.", "index"),
            Column("until_index", "BIGINT", "Last entry; NULL while in force.", "index"),
            Column("since", "TIMESTAMP", "When that was recorded.", UTC),
            Column("retired", "VARCHAR", "Key that it replaced.", "key id"),
            Column("revoked_from", "BIGINT", "First entry at which this key is no longer believed, where it was revoked.", "index"),
            RECEIPT,
        ),
        """
        WITH changes AS (
            SELECT ledger, unnest(CASE kind WHEN 'header' THEN [{'role': 'issuer', 'key': issuer_key}, {'role': 'log', 'key': log_key}]
                                            ELSE [{'role': role, 'key': "key"}] END, recursive := true),
                   coalesce(action, 'first') AS action, CASE kind WHEN 'header' THEN 0 ELSE "index" + 1 END AS since_index,
                   recorded_at, retired, from_index, receipt
            FROM (SELECT * RENAME (role AS stated_role, "key" AS stated_key), role, "key" FROM stored.key_changes)
        )
        SELECT c.ledger, c.role, c."key", c.action, c.since_index,
               lead(c.since_index) OVER (PARTITION BY c.ledger, c.role ORDER BY c.since_index) - 1 AS until_index, c.recorded_at AS since,
               c.retired, (SELECT min(v.from_index) FROM stored.key_changes AS v
                           WHERE v.ledger = c.ledger AND v.action = 'revoke' AND v.retired = c."key") AS revoked_from, c.receipt
        FROM changes AS c
        """,
    ),
    View(
        "seals",
        "Receipts under their own seal.",
        (
            LEDGER, INDEX, RECEIPT,
            Column("kind", "VARCHAR", "Kind of receipt.", "word"),
            RUN,
            Column("issuer", "VARCHAR", "Name that the key speaks for.", "name"),
            Column("seal_key", "VARCHAR", "Key of the seal.", "key id"),
            RECORDED_AT,
        ),
        'SELECT ledger, "index", receipt, kind, run, issuer, seal_key, recorded_at FROM stored.record WHERE seal_key IS NOT NULL',
    ),
    View(
        "holds",
        "Artifacts and runs that are held, which forbids erasing them.",
        (
            LEDGER, INDEX, RECEIPT,
            Column("since", "TIMESTAMP", "When the hold was placed.", UTC),
            Column("until", "TIMESTAMP", "When it was released; NULL while it holds.", UTC),
            Column("placed_by", "VARCHAR", "Who placed it.", "name"),
            Column("digest", "VARCHAR", "The artifact that is held; NULL for a run.", DIGEST),
            Column("held_run", "VARCHAR", "The run all of whose artifacts are held, and those of the runs below it.", DIGEST),
            Column("matter", "VARCHAR", "What it is held for.", "name"),
        ),
        """
        SELECT h.ledger, h."index", h.receipt, h.recorded_at AS since, e.recorded_at AS until, h.issuer AS placed_by, h.digest, h.held_run,
               h.matter
        FROM stored.placed_holds AS h
        LEFT JOIN (SELECT ledger, hold, min(recorded_at) AS recorded_at FROM stored.placed_holds WHERE action = 'released' GROUP BY ALL) AS e
            ON e.ledger = h.ledger AND e.hold = h.receipt
        WHERE h.action = 'placed'
        """,
    ),
    View(
        "counter_seals",
        "What notaries sealed of this ledger, as it lies beside it, where their seal holds.",
        (
            LEDGER,
            Column("receipt", "VARCHAR", "Receipt that was sealed.", DIGEST),
            Column("entry_index", "BIGINT", "Index of its entry.", "index"),
            Column("notary", "VARCHAR", "Name of the notary.", "name"),
            Column("notary_key", "VARCHAR", "Key of the counter-seal.", "key id"),
            Column("notary_pinned", "BOOLEAN", "Whether the trust in use names that key for that notary."),
            Column("fits", "BOOLEAN", "Whether receipt, envelope, index and head are those of this ledger."),
            Column("mode", "VARCHAR", "What the notary was shown: `digest_only` or `full`.", "word"),
            Column("verdict", "VARCHAR", "The notary's own verdict: `not_checked`, or the exit code.", "text"),
            Column("head_size", "BIGINT", "Size of the head that it was sealed under.", "entries"),
            Column("head_root", "VARCHAR", "Root of that head.", DIGEST),
            Column("issued_at", "TIMESTAMP", "When, by the notary's clock.", UTC),
        ),
        """
        SELECT c.ledger, c.receipt, c.entry_index, c.notary, c.notary_key, c.notary_pinned,
               coalesce(r.receipt = c.receipt AND r.envelope = c.envelope AND h.root = c.head_root, false) AS fits, c.mode, c.verdict,
               c.head_size, c.head_root, c.issued_at
        FROM looked_up_counter_seals AS c
        LEFT JOIN stored.record AS r ON r.ledger = c.ledger AND r."index" = c.entry_index
        LEFT JOIN stored.heads AS h ON h.ledger = c.ledger AND h.size = c.head_size
        """,
    ),
    View(
        "imports",
        "Foreign documents that came in, and how many receipts restate them.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT,
            Column("issuer", "VARCHAR", "Who brought it in.", "name"),
            Column("format", "VARCHAR", "Name of the foreign format.", "name"),
            Column("version", "VARCHAR", "Its version.", "text"),
            Column("document", "VARCHAR", "Digest of its bytes.", DIGEST),
            Column("name", "VARCHAR", "Name of the document.", "name"),
            Column("size_bytes", "BIGINT", "Its size.", "bytes"),
            Column("native_status", "VARCHAR", "Verdict by its own rules: `holds`, `fails`, `unverifiable`, `unreadable`.", "word"),
            Column("native_code", "VARCHAR", "That verdict in its own words.", "text"),
            Column("mapping", "VARCHAR", "Version of the mapping to our words.", "text"),
            Column("restated", "BIGINT", "Receipts that restate it.", "count"),
        ),
        """
        SELECT d.*, (SELECT count(*) FROM stored.record AS r
                     WHERE r.ledger = d.ledger AND r.source = 'imported' AND r.source_document = d.document) AS restated
        FROM stored.documents AS d
        """,
    ),
    View(
        "anomalies",
        "What is lawful and odd: look here first.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT,
            Column("anomaly", "VARCHAR", "`clock.back`, `clock.ahead`, `intent.unsettled`, `repair`.", "word"),
            Column("detail", "VARCHAR", "What was seen.", "text"),
        ),
        """
        SELECT ledger, "index", e.receipt, e.run, e.recorded_at, 'clock.back' AS anomaly,
               'recorded ' || (before - e.recorded_at) || ' before the entry above it' AS detail
        FROM (SELECT ledger, "index", recorded_at, lag(recorded_at) OVER (PARTITION BY ledger ORDER BY "index") AS before FROM stored.record) AS c
        JOIN stored.record AS e USING (ledger, "index")
        WHERE c.recorded_at < before
        UNION ALL
        SELECT ledger, "index", receipt, run, recorded_at, 'clock.ahead', 'issued ' || (issued_at - recorded_at) || ' after it was recorded'
        FROM stored.record WHERE issued_at > recorded_at + INTERVAL 5 SECOND
        UNION ALL
        SELECT i.ledger, i."index", i.receipt, i.run, i.recorded_at, 'intent.unsettled', 'its run was closed without an outcome'
        FROM stored.intents AS i JOIN stored.closings AS c ON c.ledger = i.ledger AND c.run = i.run
        ANTI JOIN stored.outcomes AS o ON o.ledger = i.ledger AND o.intent = i.receipt
        UNION ALL
        SELECT ledger, "index", receipt, NULL, recorded_at, 'repair', cut_bytes || ' bytes of a commit that never ended were set aside'
        FROM stored.repairs
        """,
    ),
)  # fmt: skip
