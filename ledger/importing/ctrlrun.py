"""A receipt of ctrlrun in our words: one act that ran, or that was refused.

- `failed` means the same there and here. `observed` receipts are outcomes by what was executed; what was only proposed is left out.
- The first charge of a receipt is the one of the grant that decided it; those of the grants above it count the same amount again and
  stay in the document.

Source: docs/spec/words.md, "ctrlrun".
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from ledger.canonical import JsonObject
from ledger.importing.facts import CallFact, CallStatus, name_of
from ledger.members import Charge
from ledger.words import Basis, Reason

__all__ = ["MAPPING", "actor_of", "fact_of_receipt"]

MAPPING: Final = "ctrlrun/1"
_MAX_INLINE: Final = 16
_RULE: Final = re.compile(r"rule\[[0-9]+\]|decision")
_REASONS: Final = {
    "unknown_action": Reason.ACTION_UNKNOWN,
    "no_matching_rule": Reason.POLICY_NOT_LISTED,
    "policy_unapproved": Reason.POLICY_MISSING,
    "principal_expired": Reason.GRANT_EXPIRED,
    "scope_unavailable": Reason.COVERAGE,
    "out_of_scope": Reason.SCOPE_OUT_OF_SCOPE_TOOL,
    "budget_exhausted": Reason.LIMIT,
    "budget_unmeasurable": Reason.PRICE_UNKNOWN,
    "budget_unkeyed": Reason.PRICE_UNKNOWN,
    "authority_expired": Reason.GRANT_EXPIRED,
    "authority_escalation": Reason.GRANT_WIDENED,
    "authority_revoked": Reason.GRANT_REVOKED,
}
_BLOCKED: Final = (
    ("unknown outcome", Reason.EFFECT_AMBIGUOUS),
    ("already committed", Reason.EFFECT_COMMITTED),
    ("in progress", Reason.EFFECT_IN_PROGRESS),
    ("consumed", Reason.APPROVAL_CONSUMED),
    ("expired", Reason.APPROVAL_EXPIRED),
    ("approval", Reason.APPROVAL_MISMATCH),
    ("attempt", Reason.EFFECT_AMBIGUOUS),
)
"""What the text of a blocked receipt says: ctrlrun gives the cause in no other member."""
_STATUSES: Final[dict[str, CallStatus]] = {
    "committed": "committed",
    "failed": "failed",
    "ambiguous": "ambiguous",
    "denied": "denied",
    "blocked": "blocked",
}


def actor_of(document: dict[str, Any]) -> tuple[str, str]:
    """Return agent and user of the principal of a receipt."""
    principal = document.get("principal")
    if type(principal) is not dict:
        return "unknown", "unknown"
    return name_of(principal.get("agent")), name_of(principal.get("user"))


def fact_of_receipt(document: dict[str, Any], digest: str) -> CallFact | None:
    """Return a receipt as an act, None for one that says of nothing that it ran or was refused.

    Args:
        document: the receipt.
        digest: digest of the document that holds it.
    """
    status = _status_of(document)
    if status is None:
        return None
    reason = str(document.get("decision_reason"))
    arguments = document.get("arguments")
    known = arguments if type(arguments) is dict else {}
    return CallFact(
        name_of(document.get("action")),
        status,
        digest,
        reason=_reason_of(document, status, reason),
        rule=reason if _RULE.fullmatch(reason) else None,
        arguments=known,
        inline=_inline(known, document),
        resource=name_of(document.get("resource")),
        environment=name_of(document.get("environment")),
        effect=_effect_of(document),
        charges=_charges(document),
        duration_ms=_duration(document.get("started_at"), document.get("finished_at")),
    )


def _effect_of(document: dict[str, Any]) -> tuple[str, int] | None:
    key, attempt = document.get("effect_key"), document.get("attempt")
    return (key, attempt) if type(key) is str and key and type(attempt) is int and attempt > 0 else None


def _status_of(document: dict[str, Any]) -> CallStatus | None:
    word = document.get("execution") if document.get("result") == "observed" else document.get("result")
    return _STATUSES.get(word) if type(word) is str else None


def _reason_of(document: dict[str, Any], status: CallStatus, reason: str) -> Reason | None:
    match status:
        case "committed":
            return None
        case "failed":
            return Reason.NOT_EXECUTED
        case "ambiguous":
            return Reason.EXCEPTION
        case "blocked":
            said = str(document.get("error"))
            return next((word for mark, word in _BLOCKED if mark in said), Reason.APPROVAL_MISMATCH)
        case _:
            otherwise = Reason.GRANT_MISSING if "authority" in reason else Reason.POLICY_DENIED
            return _REASONS.get(reason, otherwise)


def _inline(arguments: JsonObject, document: dict[str, Any]) -> JsonObject:
    """Return members that SQL and rules need: what receipt it was, amounts, and the names that effect or resource are made of."""
    names = f"{document.get('effect_key')}\n{document.get('resource')}"
    found: JsonObject = {
        f"ctrlrun_{name}": document[name]
        for name in ("receipt_id", "seq", "approval_id", "approver", "authority_grant_id", "policy_hash")
        if type(document.get(name)) in (str, int)
    }
    for name, value in list(arguments.items())[:_MAX_INLINE]:
        if type(value) is int or (type(value) is str and 0 < len(value) <= 128 and value in names):
            found[name] = value
    return found


def _charges(document: dict[str, Any]) -> tuple[Charge, ...]:
    """Return what the deciding grant was charged; an observed receipt was charged nothing."""
    charges = document.get("budget_charges")
    if type(charges) is not list or document.get("result") == "observed":
        return ()
    settled = document.get("result") != "failed"
    found: dict[str, Charge] = {}
    for charge in charges:
        if type(charge) is not dict or charge.get("grant_id") != document.get("authority_grant_id"):
            continue
        metric, amount = name_of(charge.get("metric")), charge.get("amount")
        if type(amount) is int and 0 <= amount < 2**53:
            taken = {"settled": amount} if settled else {"released": amount}
            found[metric] = Charge.model_validate(
                {"meter": f"ctrlrun.{metric}"[:256], **taken, "basis": Basis.REPORTED}
            )
    return tuple(found.values())


def _duration(started: object, finished: object) -> int | None:
    try:
        span = datetime.fromisoformat(str(finished)) - datetime.fromisoformat(str(started))
    except (ValueError, TypeError):
        return None
    milliseconds = round(span.total_seconds() * 1_000)
    return milliseconds if 0 <= milliseconds < 2**53 else None
