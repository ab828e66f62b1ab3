"""Stored tables of receipts that stand alone: they are linked, never committed."""

from __future__ import annotations

from typing import Final

from ledger.index.columns import Column, Stored
from ledger.index.record import DIGEST, INDEX, LEDGER, RECEIPT, RECORDED_AT, RUN, UTC

__all__ = ["TABLES"]

_ISSUER: Final = Column("issuer", "VARCHAR", "Who says it.", "name")
_ISSUER_KEY: Final = Column("issuer_key", "VARCHAR", "Key that sealed it.", "key id")
_SOURCE: Final = Column("source", "VARCHAR", "`live` or `imported`.", "word")

TABLES: Final = (
    Stored(
        "answers",
        "Approvals as their receipts state them.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT, _ISSUER, _ISSUER_KEY, _SOURCE,
            Column("request", "VARCHAR", "Waiting decision; NULL for a standing approval.", DIGEST, "r.request"),
            Column("answer", "VARCHAR", "`granted` or `denied`.", "word", "r.answer"),
            Column("role", "VARCHAR", "Role of the approver.", "name", "r.role"),
            Column("act_digest", "VARCHAR", "Act that it covers.", DIGEST, "r.act_digest"),
            Column("pattern", "VARCHAR", "Acts that a standing approval covers.", "pattern", "r.pattern"),
            Column("precondition", "VARCHAR", "State under which it holds.", DIGEST, "r.precondition"),
            Column("policy", "VARCHAR", "Policy under which it holds.", DIGEST, "r.policy"),
            Column("expires_at", "TIMESTAMP", "When it stops holding.", UTC, "r.expires_at"),
            Column("uses", "BIGINT", "How many acts may use it.", "count", "r.uses"),
        ),
        kinds=("approval",),
        shape={
            "request": "VARCHAR", "answer": "VARCHAR", "role": "VARCHAR", "act_digest": "VARCHAR", "pattern": "VARCHAR",
            "precondition": "VARCHAR", "policy": "VARCHAR", "expires_at": "VARCHAR", "uses": "BIGINT",
        },
        public=False,
    ),
    Stored(
        "resolutions",
        "How ambiguous effects were settled.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT, _ISSUER,
            Column("intent", "VARCHAR", "Intent that it settles.", DIGEST, "r.intent"),
            Column("effect", "VARCHAR", "Effect key.", "name", "r.effect.key"),
            Column("attempt", "BIGINT", "Attempt.", "from 1", "r.effect.attempt"),
            Column("happened", "VARCHAR", "`happened` or `did_not_happen`.", "word", "r.happened"),
            Column("resolved_by", "VARCHAR", "Who found it.", "name", "r.resolved_by"),
        ),
        kinds=("resolution",),
        shape={
            "intent": "VARCHAR", "effect": {"key": "VARCHAR", "attempt": "BIGINT"}, "happened": "VARCHAR", "resolved_by": "VARCHAR",
        },
        public=False,
    ),
    Stored(
        "grants",
        "Authority given, narrowed or revoked.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT, _ISSUER, _ISSUER_KEY, _SOURCE,
            Column("action", "VARCHAR", "`given`, `narrowed` or `revoked`.", "word", "r.action"),
            Column("grantee", "VARCHAR", "Who may act.", "name", "r.grantee"),
            Column("acts", "VARCHAR[]", "Name patterns of the acts; empty covers nothing, NULL does not say.", "patterns", "r.acts"),
            Column("conditions", "VARCHAR", "Conditions on arguments.", DIGEST, "r.conditions"),
            Column("expires_at", "TIMESTAMP", "When it stops holding.", UTC, "r.expires_at"),
            Column("parent", "VARCHAR", "Grant that this one narrows or revokes.", DIGEST, "r.parent"),
            Column("mandate", "VARCHAR", "Office that the authority comes from.", "name", "r.mandate"),
            Column("limits", "JSON", "What may be spent under it.", "JSON", "payload -> '$.limits'"),
        ),
        kinds=("grant",),
        shape={
            "action": "VARCHAR", "grantee": "VARCHAR", "acts": ["VARCHAR"], "conditions": "VARCHAR", "expires_at": "VARCHAR",
            "parent": "VARCHAR", "mandate": "VARCHAR",
        },
    ),
    Stored(
        "evaluations",
        "Verdicts of evaluators on subjects against criteria sets.",
        (
            LEDGER, INDEX, RECEIPT, RUN, RECORDED_AT, _ISSUER, _SOURCE,
            Column("subject", "VARCHAR", "What was judged.", DIGEST, "r.subject"),
            Column("criteria", "VARCHAR", "The criteria set.", DIGEST, "r.criteria"),
            Column("verdict", "VARCHAR", "`met`, `not_met` or `inconclusive`.", "word", "r.verdict"),
            Column("evaluator_package", "VARCHAR", "Package that holds the evaluator.", "name", "r.evaluator.package"),
            Column("evaluator_method", "VARCHAR", "Method that was called.", "name", "r.evaluator.method"),
            Column("evaluator_run", "VARCHAR", "Run that evaluated, or `unknown`.", DIGEST, "r.evaluator.run"),
            Column("answers", "JSON", "Answer to each criterion.", "JSON", "r.answers"),
        ),
        kinds=("evaluation",),
        shape={
            "subject": "VARCHAR", "criteria": "VARCHAR", "verdict": "VARCHAR",
            "evaluator": {"package": "VARCHAR", "method": "VARCHAR", "run": "VARCHAR"}, "answers": "JSON",
        },
    ),
    Stored(
        "key_changes",
        "The header, rotations and revocations.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT, _ISSUER, _ISSUER_KEY,
            Column("kind", "VARCHAR", "`header` or `key`.", "word"),
            Column("action", "VARCHAR", "`rotate` or `revoke`; NULL in a header.", "word", "r.action"),
            Column("role", "VARCHAR", "`issuer` or `log`.", "word", "r.role"),
            Column("key", "VARCHAR", "Key in force from the next entry on.", "key id", "r.key"),
            Column("log_key", "VARCHAR", "First log key, in a header.", "key id", "r.log_key"),
            Column("retired", "VARCHAR", "Key that it replaces.", "key id", "r.retired"),
            Column("from_index", "BIGINT", "First index at which the retired key is no longer believed.", "index", "r.from_index"),
        ),
        kinds=("header", "key"),
        shape={
            "action": "VARCHAR", "role": "VARCHAR", "key": "VARCHAR", "log_key": "VARCHAR", "retired": "VARCHAR",
            "from_index": "BIGINT",
        },
        public=False,
    ),
    Stored(
        "documents",
        "Foreign documents that came in.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT, _ISSUER,
            Column("format", "VARCHAR", "Name of the foreign format.", "name", "r.format"),
            Column("version", "VARCHAR", "Its version.", "text", "r.version"),
            Column("document", "VARCHAR", "Digest of its bytes.", DIGEST, "r.document.digest"),
            Column("name", "VARCHAR", "Name of the document.", "name", "r.document.name"),
            Column("size_bytes", "BIGINT", "Its size.", "bytes", "r.document.size_bytes"),
            Column("native_status", "VARCHAR", "Verdict by its own rules.", "word", "r.native_status"),
            Column("native_code", "VARCHAR", "That verdict in its own words.", "text", "r.native_code"),
            Column("mapping", "VARCHAR", "Version of the mapping to our words.", "text", "r.mapping"),
        ),
        kinds=("import",),
        shape={
            "format": "VARCHAR", "version": "VARCHAR", "native_status": "VARCHAR", "native_code": "VARCHAR", "mapping": "VARCHAR",
            "document": {"digest": "VARCHAR", "name": "VARCHAR", "size_bytes": "BIGINT"},
        },
        public=False,
    ),
    Stored(
        "removals",
        "What was erased.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT,
            Column("erased_by", "VARCHAR", "Who erased it.", "name", "issuer"),
            Column("digest", "VARCHAR", "The artifact.", DIGEST, "r.digest"),
            Column("reason", "VARCHAR", "Why.", "word", "r.reason"),
            Column("receipts", "VARCHAR[]", "Receipts that refer to it.", DIGEST, "r.receipts"),
        ),
        kinds=("erasure",),
        shape={"digest": "VARCHAR", "reason": "VARCHAR", "receipts": ["VARCHAR"]},
    ),
    Stored(
        "placed_holds",
        "Holds, and their ends.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT, _ISSUER,
            Column("action", "VARCHAR", "`placed` or `released`.", "word", "r.action"),
            Column("digest", "VARCHAR", "The artifact.", DIGEST, "r.digest"),
            Column("held_run", "VARCHAR", "The run.", DIGEST, "r.held_run"),
            Column("matter", "VARCHAR", "The matter.", "name", "r.matter"),
            Column("hold", "VARCHAR", "The hold that ends.", DIGEST, "r.hold"),
        ),
        kinds=("hold",),
        shape={"action": "VARCHAR", "digest": "VARCHAR", "held_run": "VARCHAR", "matter": "VARCHAR", "hold": "VARCHAR"},
        public=False,
    ),
    Stored(
        "repairs",
        "Commits that never ended and were set aside.",
        (
            LEDGER, INDEX, RECEIPT, RECORDED_AT,
            Column("reason", "VARCHAR", "Why.", "word", "r.reason"),
            Column("segment", "BIGINT", "First index of the file that was cut.", "index", "r.segment"),
            Column("offset_bytes", "BIGINT", "Where it was cut.", "bytes", "r.offset_bytes"),
            Column("cut_bytes", "BIGINT", "How much was set aside.", "bytes", "r.cut_bytes"),
        ),
        kinds=("repair",),
        shape={"reason": "VARCHAR", "segment": "BIGINT", "offset_bytes": "BIGINT", "cut_bytes": "BIGINT"},
        public=False,
    ),
)  # fmt: skip
