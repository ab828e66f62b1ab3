"""Receipts as ctrlrun writes them, told fast: nearly every document is one, and `shape` judges the rest.

`is_usual` says yes only to what `misshape_of` finds nothing wrong with, the text of `action_hash` and `prev_hash` aside: whoever asks
compares both with what they must be. It holds no float and nests no deeper than `_LEVELS` below its arguments. A no says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from verify.foreign.ctrlrun.words import DECISIONS, MEMBERS, RECEIPT_PREFIX, RESULTS

__all__ = ["holds_float", "is_usual"]

_IDS: Final = re.compile(r"ctr_[0-9a-f]{32}act_[0-9a-f]{32}")
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
_COUNT: Final = len(MEMBERS[_SCHEMA])
"""With the schema, these and the later ones are all members, so a document of as many that has them has no other."""
_GET: Final[Callable[[dict[str, Any]], tuple[Any, ...]]] = itemgetter(*_NAMES)
_GET_LATER: Final[Callable[[dict[str, Any]], tuple[Any, ...]]] = itemgetter(*_LATER)
_PRINCIPAL: Final[Callable[[dict[str, Any]], tuple[Any, ...]]] = itemgetter(
    "agent", "user", "claims", "issuer", "expires_at"
)
_LEVELS: Final = 16
_NO_LATER: Final[tuple[Any, ...]] = (None, None, [], None, None, None, [], None)


def is_usual(value: dict[str, Any]) -> bool:
    """Return whether a document is surely a receipt of the newest schema, without a float anywhere."""
    if value.get("schema") != _SCHEMA or len(value) != _COUNT:
        return False
    try:
        members, later = _GET(value), _GET_LATER(value)
    except KeyError:
        return False
    (receipt_id, action_id, action_hash, prev_hash, action, environment, reason, principal, resource, arguments,
     decision, approval_id, approver, effect_key, attempt, result, execution, would_have, error, started_at,
     finished_at, seq, policy_hash, policy_version, controls) = members  # fmt: skip
    try:
        # Joining refuses what is no text, and one pattern looks at both; lengths are fixed, so neither can lend the other a character.
        if (
            _IDS.fullmatch(receipt_id + action_id) is None
            or len(receipt_id) != 36
            or _TIMES.fullmatch(started_at + finished_at) is None
            or len(started_at) != 24
        ):
            return False
    except TypeError:
        return False
    if not (
        type(action) is type(environment) is type(reason) is type(action_hash) is type(prev_hash) is str
        and action
        and environment
        and reason
        and type(attempt) is type(seq) is int
        and attempt > 0
        and seq > 0
        and type(decision) is type(result) is str
        and decision in DECISIONS
        and result in RESULTS
        and execution is would_have is None
        and controls == []
        and type(arguments) is dict
        and (resource is None or type(resource) is str)
        and (approver is None or type(approver) is str)
        and (effect_key is None or type(effect_key) is str)
        and (error is None or type(error) is str)
        and (policy_version is None or type(policy_version) is str)
    ):
        return False
    if policy_hash is not None and not (type(policy_hash) is str and _HASH.fullmatch(policy_hash)):
        return False
    if approval_id is not None and not (
        type(approval_id) is str and approval_id.startswith("apr_") and _ID.fullmatch(approval_id)
    ):
        return False
    return _is_principal(principal) and later == _NO_LATER and _is_plain(arguments, _LEVELS)


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


def _is_plain(value: Any, levels: int) -> bool:  # noqa: ANN401  any JSON value
    """Return whether a value holds no float and nests no deeper than some levels."""
    for each in value.values() if type(value) is dict else value:
        kind = type(each)
        if kind is str or kind is int:
            continue
        if kind is float or ((kind is dict or kind is list) and not (levels and _is_plain(each, levels - 1))):
            return False
    return True


def holds_float(value: Any) -> bool:  # noqa: ANN401  any JSON value of few levels
    """Return whether a float stands anywhere in a value."""
    items = value.values() if type(value) is dict else value if type(value) is list else (value,)
    for each in items:
        kind = type(each)
        if kind is float or ((kind is dict or kind is list) and holds_float(each)):
            return True
    return False
