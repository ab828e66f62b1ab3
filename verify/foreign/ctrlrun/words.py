"""The closed lists of ctrlrun: members of each receipt schema, words, names of breaks.

| schema | written by | members |
|---|---|---|
| `ctrlrun.receipt/v1` | 0.1, 0.2 | 19 |
| `ctrlrun.receipt/v2` | 0.3 to 0.5 | 21 |
| `ctrlrun.receipt/v3` | 0.6 | 26 |
| `ctrlrun.receipt/v4` | 0.7 | 28 |
| `ctrlrun.receipt/v5` | 0.8 | 30 |
| `ctrlrun.receipt/v6` | 0.9 | 33 |
| `ctrlrun.receipt/v7` | 0.10 to 0.12 | 34 |
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANCHOR_BREAKS",
    "CHAINED_SCHEMAS",
    "CHAIN_BREAKS",
    "DECISIONS",
    "EVENT_TYPES",
    "GENESIS",
    "MEMBERS",
    "PRUNE_ACTION",
    "RECEIPT_PREFIX",
    "RESULTS",
    "V1",
]

RECEIPT_PREFIX: Final = "ctrlrun.receipt/"
V1: Final = "ctrlrun.receipt/v1"
PRUNE_ACTION: Final = "ctrlrun.retention.prune"
"""The action under which a prune leaves receipts of its own."""
GENESIS: Final = "sha256:" + "0" * 64
"""What the first receipt of a chain names as the one before it."""

_OF_V1: Final = (
    "schema", "receipt_id", "action_id", "action", "action_hash", "principal", "resource", "arguments", "environment",
    "decision", "decision_reason", "approval_id", "approver", "effect_key", "attempt", "result", "error", "started_at",
    "finished_at",
)  # fmt: skip
_ADDED: Final = (
    ("execution", "would_have"),
    ("seq", "prev_hash", "policy_hash", "policy_version", "controls"),
    ("precondition_at_request", "precondition_at_recheck"),
    ("approvers", "authority_grant_id"),
    ("task", "scope_hash", "budget_charges"),
    ("hop",),
)


def _members() -> dict[str, frozenset[str]]:
    names = frozenset(_OF_V1)
    found = {V1: names}
    for version, added in enumerate(_ADDED, start=2):
        names |= frozenset(added)
        found[f"{RECEIPT_PREFIX}v{version}"] = names
    return found


MEMBERS: Final = _members()
"""Schema -> the names of its members: all of them, and no other."""
CHAINED_SCHEMAS: Final = frozenset(schema for schema, names in MEMBERS.items() if "seq" in names)
"""Schemas whose documents hold their place in the chain."""

DECISIONS: Final = frozenset({"allow", "approve", "deny"})
RESULTS: Final = frozenset({"committed", "failed", "ambiguous", "denied", "blocked", "observed"})

CHAIN_BREAKS: Final = ("content_altered", "hash_missing", "link_broken", "missing", "head_mismatch", "unchained")
ANCHOR_BREAKS: Final = ("anchor_broken", "anchor_missing", "anchor_repudiated")

EVENT_TYPES: Final = frozenset(
    {
        "ACTION_PROPOSED", "POLICY_EVALUATED", "APPROVAL_REQUESTED", "APPROVAL_GRANTED", "APPROVAL_DENIED",
        "APPROVAL_EXPIRED", "APPROVAL_INVALIDATED", "APPROVAL_CONSUMED", "EFFECT_RESERVED",
        "EFFECT_RESERVATION_REFUSED", "EXECUTION_STARTED", "EXECUTION_COMMITTED", "EXECUTION_FAILED",
        "EXECUTION_AMBIGUOUS", "EFFECT_RESOLVED", "ACTION_DENIED", "RECONCILIATION_STARTED",
        "RECONCILIATION_RESOLVED", "EXECUTION_SUSPENDED", "EXECUTION_RESUMED", "AUTHORITY_RESOLVED",
        "AUTHORITY_DENIED", "DELEGATION_CREATED", "DELEGATION_REVOKED", "DELEGATION_REJECTED", "CLOCK_SKEW_DETECTED",
    }
)  # fmt: skip
