"""What acts take from budgets: worked out when a file of the index is made for those that were settled, and when asked for the others.

An act that is committed or failed, by its outcome or by a resolution, takes what it took; nothing that comes later changes that, so its
rows are kept. Acts that are open or ambiguous in their file are named in it, and worked out with whatever came since.

Source: docs/spec/rules/budgets.md.
"""

from __future__ import annotations

from typing import Final

from ledger.index.columns import Column, Table, View, by_index, literal
from ledger.index.record import DIGEST, LEDGER, RECORDED_AT, RUN, UTC
from ledger.rules.amounts import EDGE
from ledger.rules.effect import PROOFS_OF_NOTHING

__all__ = ["DERIVED", "METER", "ONCE", "SOURCES", "SPEND", "filled"]

METER: Final = Column("meter", "VARCHAR", "What is counted, with its unit in its name.", "meter")

_BEGAN: Final = Column("began", "BIGINT", "Position of the act's intent in the chain.", "from 0")
_ENDED: Final = Column("ended", "BIGINT", "Position of the receipt that settled it.", "from 0")
_HELD: Final = Column("held", "BIGINT", "What it set aside before acting.", "by its meter")
_SPENT: Final = Column("spent", "BIGINT", "What counts as spent.", "by its meter")
_RESERVED: Final = Column("reserved", "BIGINT", "What is still set aside.", "by its meter")
_UNKNOWN: Final = Column(
    "unknown", "BOOLEAN", "Whether nobody knows what it cost; it then counts as what was set aside."
)
_STATUS: Final = Column(
    "status", "VARCHAR", "`committed`, `failed`, `ambiguous` or `open`, a resolution taken into account.", "word"
)
_OVERRUN: Final = Column("overrun", "BOOLEAN", "Whether it cost more than it had set aside.")

_ENDED_ACTS: Final = Table(
    "ended_acts",
    "What acts took that are committed or failed, meter by meter.",
    (LEDGER, _BEGAN, _ENDED, RUN, RECORDED_AT, METER, _HELD, _SPENT, _UNKNOWN, _STATUS, _OVERRUN),
    public=False,
)
_OPEN_ACTS: Final = Table("open_acts", "Acts that are open or ambiguous in this file.", (LEDGER, _BEGAN), public=False)

DERIVED: Final = (_ENDED_ACTS, _OPEN_ACTS)
"""Tables that are worked out from those that are filled from receipts."""

SOURCES: Final = ("intents", "outcomes", "resolutions", "stated_charges")
"""Names of the tables that they are worked out from."""

_EDGE: Final = literal(EDGE.pattern)
_PROOFS: Final = ", ".join(literal(each) for each in sorted(PROOFS_OF_NOTHING))

_NEAR: Final = 8
ONCE: Final = f"""
    SELECT count(*) = 0 FROM (
        SELECT lag("index") OVER () > "index" OR lag("index", {_NEAR}) OVER () = "index"
               OR {" OR ".join(f"lag(mark, {back}) OVER () = mark" for back in range(1, _NEAR))} AS doubt
        FROM (SELECT "index", hash("index", meter) AS mark FROM stored.stated_charges WHERE stage <> 'usage')
    ) WHERE doubt
"""
"""The query for whether no receipt states a meter twice, told in one pass without a table of all: charges are looked at as they come.

Where positions never fall and no receipt has more than `_NEAR` charges, all of a receipt stand together, so one of the rows just
before is the same if there is one. The order in which they come decides nothing: any other order is a doubt, and doubts are added up.
"""


def _stated(stage: str, place: str, amount: str, *, once: bool, which: str = "true") -> str:
    """Return the query for the amount of each meter that a receipt of an act states; `place` is the receipt's position in `acts`."""
    rows = f"""
        SELECT a.ledger, a.began, c.meter, {amount} AS amount
        FROM stored.stated_charges AS c JOIN acts AS a ON a.ledger = c.ledger AND a.{place} = c."index"
        WHERE c.stage = '{stage}' AND c.meter NOT IN ('receipts', 'concurrency') AND {which}
    """
    if once:
        return f"SELECT *, amount IS NULL AS unknown FROM ({rows})"
    return f"""
        SELECT ledger, began, meter, CASE WHEN NOT bool_or(amount IS NULL) THEN sum(amount)::BIGINT END AS amount,
               bool_or(amount IS NULL) AS unknown
        FROM ({rows}) GROUP BY ALL
    """


def _taken(chosen: str, *, once: bool) -> str:
    """Return the query for what acts take, meter by meter.

    An act draws what its intent reserves, one call where that says none. Its outcome settles it; an ambiguous one keeps what is set
    aside, and no less than it says, until the first resolution settles the act. What comes after it was settled settles nothing.

    Args:
        chosen: Which intents, as `i`, it is asked of.
        once: Whether no receipt states a meter twice, so that nothing has to be added up.
    """
    drawn = """CASE WHEN c.payer IS NOT NULL THEN 0
                    ELSE coalesce(c.reserved, CASE WHEN c.reserved_unknown THEN NULL ELSE c.quoted END) END"""
    says = "c.payer IS NULL AND (c.settled IS NOT NULL OR c.settled_unknown OR c.basis = 'unknown')"
    late = 'coalesce(v."index" < o."index", false)'
    return f"""
        WITH acts AS (
            SELECT i.ledger, i."index" AS began, i.run, i.recorded_at, v."index" AS resolution_at, v.happened,
                   CASE WHEN NOT {late} THEN o."index" END AS outcome_at, CASE WHEN NOT {late} THEN o.status END AS first,
                   o.status = 'failed' AND coalesce(o.reason, '') NOT IN ({_PROOFS}) AS unproven
            FROM stored.intents AS i
            LEFT JOIN stored.outcomes AS o ON o.ledger = i.ledger AND o.intent = i.receipt
            LEFT JOIN (
                SELECT * FROM stored.resolutions QUALIFY row_number() OVER (PARTITION BY ledger, intent ORDER BY "index") = 1
            ) AS v ON v.ledger = i.ledger AND v.intent = i.receipt AND (o."index" IS NULL OR o.status = 'ambiguous' OR {late})
            WHERE {chosen}
        ), drawn AS NOT MATERIALIZED ({_stated("reserved", "began", drawn, once=once)}
        ), said AS ({_stated("settled", "outcome_at", "c.settled", once=once, which=says)}
        ), resolved AS ({_stated("resolved", "resolution_at", "c.settled", once=False, which=says)}
        ), held AS (
            SELECT ledger, began, meter, unknown,
                   CASE WHEN unknown THEN 0 WHEN meter = 'tool_calls' AND amount = 0 THEN 1 ELSE amount END AS amount
            FROM drawn
            UNION ALL
            SELECT ledger, began, 'tool_calls', false, 1 FROM acts ANTI JOIN (SELECT * FROM drawn WHERE meter = 'tool_calls') USING (ledger, began)
        ), stated AS (
            SELECT coalesce(h.ledger, s.ledger) AS ledger, coalesce(h.began, s.began) AS began, coalesce(h.meter, s.meter) AS meter,
                   coalesce(h.amount, 0) AS held, coalesce(h.unknown, false) AS draw_unknown, s.amount AS said, s.unknown AS said_unknown
            FROM held AS h FULL JOIN said AS s ON s.ledger = h.ledger AND s.began = h.began AND s.meter = h.meter
        ), lines AS (
            SELECT coalesce(s.ledger, r.ledger) AS ledger, coalesce(s.began, r.began) AS began, coalesce(s.meter, r.meter) AS meter,
                   coalesce(s.held, 0) AS held, coalesce(s.draw_unknown, false) AS draw_unknown, s.said, s.said_unknown,
                   r.amount AS later, r.unknown AS later_unknown
            FROM stated AS s FULL JOIN resolved AS r ON r.ledger = s.ledger AND r.began = s.began AND r.meter = s.meter
        ), kept AS (
            SELECT a.*, l.meter, l.held, l.draw_unknown,
                   CASE WHEN first = 'ambiguous' AND said IS NOT NULL THEN greatest(held, said) ELSE held END AS kept,
                   CASE happened WHEN 'happened' THEN 'committed' WHEN 'did_not_happen' THEN 'failed' ELSE coalesce(first, 'open') END AS status,
                   CASE WHEN happened IS NULL THEN said ELSE later END AS amount,
                   CASE WHEN happened IS NULL THEN said_unknown ELSE later_unknown END AS amount_unknown
            FROM acts AS a JOIN lines AS l ON l.ledger = a.ledger AND l.began = a.began
        ), settled AS (
            -- One that is called failed without proof settles as if it was done (clause 17).
            SELECT *, status IN ('committed', 'failed') AS settles, status = 'failed' AND NOT (unproven AND happened IS NULL) AS undone FROM kept
        )
        SELECT ledger, began, coalesce(resolution_at, outcome_at, began) AS ended, run, recorded_at, meter, held::BIGINT AS held,
               (CASE WHEN NOT settles THEN 0
                     WHEN contains(meter, '->') AND regexp_full_match(meter, {_EDGE}) THEN greatest(kept, coalesce(amount, 0))
                     WHEN amount_unknown OR NOT undone THEN coalesce(amount, kept)
                     ELSE coalesce(amount, 0) END)::BIGINT AS spent,
               coalesce(amount_unknown, false) OR (draw_unknown AND amount_unknown IS NULL AND NOT undone) AS unknown,
               status, kept > held OR (settles AND coalesce(amount, 0) > kept) AS overrun,
               (CASE WHEN settles THEN 0 ELSE kept END)::BIGINT AS reserved, settles
        FROM settled
    """


_NAMES: Final = ", ".join(each.name for each in _ENDED_ACTS.own)
_CHOSEN: Final = 'i."index" >= $start AND i."index" < $end'


def _not_in(file: str) -> str:
    """Return the condition that an intent `i` has not ended in a file."""
    return f'NOT EXISTS (FROM {file}.{_ENDED_ACTS.name} AS e WHERE e.began = i."index")'


def filled(file: str, *, once: bool) -> tuple[str, ...]:
    """Return the statements that fill the derived tables of a file from the intents at `$start` up to, not including, `$end`.

    `once` is what `ONCE` says of the file.
    """
    return (
        f"INSERT INTO {file}.{_ENDED_ACTS.name} SELECT {_NAMES} FROM ({_taken(_CHOSEN, once=once)}) WHERE settles",
        f'INSERT INTO {file}.{_OPEN_ACTS.name} SELECT "index" FROM stored.intents AS i WHERE {_CHOSEN} AND {_not_in(file)}',
    )


_STILL_OPEN: Final = f'EXISTS (FROM stored.{_OPEN_ACTS.name} AS a WHERE a.ledger = i.ledger AND a.began = i."index")'

SPEND: Final = View(
    "spend",
    "What each act takes from the budgets that it draws on, meter by meter, by the rules of `docs/spec/rules/budgets.md`.",
    (
        LEDGER, RUN,
        Column("intent", "VARCHAR", "Intent of the act.", DIGEST),
        METER, _HELD, _SPENT, _RESERVED, _UNKNOWN, _STATUS, _OVERRUN,
        Column("receipt", "VARCHAR", "Receipt that settled it last, else the intent.", DIGEST),
        Column("recorded_at", "TIMESTAMP", "When the intent was recorded.", UTC),
    ),
    f"""
        SELECT t.ledger, t.run, i.receipt AS intent, t.meter, t.held, t.spent, t.reserved, t.unknown, t.status, t.overrun,
               coalesce(v.receipt, o.receipt, i.receipt) AS receipt, t.recorded_at
        FROM (
            SELECT *, 0 AS reserved FROM stored.{_ENDED_ACTS.name}
            UNION ALL BY NAME
            SELECT * EXCLUDE (settles) FROM ({_taken(_STILL_OPEN, once=False)})
        ) AS t
        LEFT JOIN {by_index("intents", "receipt")} AS i ON i.ledger = t.ledger AND i."index" = t.began
        LEFT JOIN {by_index("outcomes", "receipt")} AS o ON o.ledger = t.ledger AND o."index" = t.ended
        LEFT JOIN {by_index("resolutions", "receipt")} AS v ON v.ledger = t.ledger AND v."index" = t.ended
    """,
)  # fmt: skip
