"""Receipts as ctrlrun writes them, told fast: nearly every document is one, and `shape` judges the rest.

`is_usual` says yes only to what `misshape_of` finds nothing wrong with and what holds no float; a no says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from verify.foreign.ctrlrun.words import DECISIONS, MEMBERS, RECEIPT_PREFIX, RESULTS

__all__ = ["holds_float", "is_usual"]

_IDS: Final = re.compile(r"ctr_[0-9a-f]{32}act_[0-9a-f]{32}sha256:[0-9a-f]{64}sha256:[0-9a-f]{64}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
# The 29th of February is left to the slow look.
_DAY: Final = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_TIMES: Final = re.compile(rf"(?:[1-9][0-9]{{3}}-{_DAY}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){{2}}\.[0-9]{{3}}Z){{2}}")
_ID: Final = re.compile(r"[a-z]{3}_[0-9a-f]{32}")
_NAMES: Final = (
    "receipt_id", "action_id", "action_hash", "prev_hash", "action", "environment", "decision_reason", "principal",
    "resource", "arguments", "decision", "approval_id", "approver", "effect_key", "attempt", "result", "execution",
    "would_have", "error", "started_at", "finished_at", "seq", "policy_hash", "policy_version", "controls",
)  # fmt: skip
_LATER: Final = (
    "precondition_at_request", "precondition_at_recheck", "approvers", "authority_grant_id", "task", "scope_hash",
    "budget_charges", "hop",
)  # fmt: skip
_SCHEMA: Final = f"{RECEIPT_PREFIX}v7"
_MEMBERS: Final = MEMBERS[_SCHEMA]
_GET: Final[Callable[[dict[str, Any]], tuple[Any, ...]]] = itemgetter(*_NAMES)
_GET_LATER: Final[Callable[[dict[str, Any]], tuple[Any, ...]]] = itemgetter(*_LATER)
_PRINCIPAL: Final[Callable[[dict[str, Any]], tuple[Any, ...]]] = itemgetter(
    "agent", "user", "claims", "issuer", "expires_at"
)
_NO_LATER: Final[tuple[Any, ...]] = (None, None, [], None, None, None, [], None)


def is_usual(value: dict[str, Any]) -> bool:
    """Return whether a document is surely a receipt of the newest schema, without a float anywhere."""
    if value.get("schema") != _SCHEMA or value.keys() != _MEMBERS:
        return False
    (receipt_id, action_id, action_hash, prev_hash, action, environment, reason, principal, resource, arguments,
     decision, approval_id, approver, effect_key, attempt, result, execution, would_have, error, started_at,
     finished_at, seq, policy_hash, policy_version, controls) = _GET(value)  # fmt: skip
    try:
        # Joining refuses what is no text, and one pattern looks at all of them; lengths are fixed, so none can lend another a character.
        if (
            _IDS.fullmatch(receipt_id + action_id + action_hash + prev_hash) is None
            or len(receipt_id) != 36
            or len(action_id) != 36
            or len(action_hash) != 71
            or _TIMES.fullmatch(started_at + finished_at) is None
            or len(started_at) != 24
        ):
            return False
    except TypeError:
        return False
    texts = (action, environment, reason)
    if not (
        type(action) is type(environment) is type(reason) is str
        and all(texts)
        and type(attempt) is type(seq) is int
        and attempt > 0
        and seq > 0
        and type(decision) is type(result) is str
        and decision in DECISIONS
        and result in RESULTS
        and execution is would_have is None
        and controls == []
        and type(arguments) is dict
    ):
        return False
    for each in (resource, approver, effect_key, error, policy_version):
        if each is not None and type(each) is not str:
            return False
    if policy_hash is not None and not (type(policy_hash) is str and _HASH.fullmatch(policy_hash)):
        return False
    if approval_id is not None and not (
        type(approval_id) is str and approval_id.startswith("apr_") and _ID.fullmatch(approval_id)
    ):
        return False
    return _is_principal(principal) and _GET_LATER(value) == _NO_LATER and not holds_float(arguments)


def _is_principal(principal: object) -> bool:
    if type(principal) is not dict or len(principal) != 5:
        return False
    try:
        agent, user, claims, issuer, expires_at = _PRINCIPAL(principal)
    except KeyError:
        return False
    if not (type(agent) is str and agent and claims == {} and type(claims) is dict and issuer is expires_at is None):
        return False
    return user is None or (type(user) is str and user != "")


def holds_float(value: Any) -> bool:  # noqa: ANN401  any JSON value of few levels
    """Return whether a float stands anywhere in a value."""
    items = value.values() if type(value) is dict else value if type(value) is list else (value,)
    for each in items:
        kind = type(each)
        if kind is float or ((kind is dict or kind is list) and holds_float(each)):
            return True
    return False
