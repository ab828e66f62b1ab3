"""One receipt document of ctrlrun: whether ctrlrun can read it back, and whether it is what its schema says.

ctrlrun's own reader takes a document of any schema with any further members; what it cannot build at all, it calls altered.
Whether members are those of the schema, hold what they must hold, and whether the action hash is that of the action, its check of
the chain does not ask. We do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from ledger.errors import clip
from ledger.members import TIME_PATTERN
from verify.foreign.ctrlrun.hashes import action_hash_of
from verify.foreign.ctrlrun.words import (
    CHAINED_SCHEMAS,
    DECISIONS,
    EXECUTIONS,
    MEMBERS,
    PRINCIPAL_MEMBERS,
    PRUNE_ACTION,
    RESULTS,
    V1,
)

__all__ = ["faults_of", "refusal_of", "schema_of"]

_IDS: Final = re.compile(r"(?:ctr|act)_[0-9a-f]{32}")
_APPROVAL: Final = re.compile(r"apr_[0-9a-f]{32}")
_HOP: Final = re.compile(r"dlg_[0-9a-f]{32}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TIME: Final = re.compile(TIME_PATTERN)
_TEXTS: Final = ("action", "environment", "decision_reason")
_TEXTS_OR_NULL: Final = ("resource", "approver", "effect_key", "error", "policy_version", "authority_grant_id", "task")
_DIGESTS_OR_NULL: Final = ("policy_hash", "precondition_at_request", "precondition_at_recheck", "scope_hash")
_BUILT: Final = (
    "receipt_id", "action_id", "action", "action_hash", "resource", "arguments", "environment", "decision_reason",
    "approval_id", "approver", "effect_key", "attempt", "error",
)  # fmt: skip


def schema_of(value: dict[str, Any]) -> str:
    """Return the schema that a document names, an empty text where it names none."""
    schema = value.get("schema")
    return schema if isinstance(schema, str) else ""


def refusal_of(value: object) -> str | None:
    """Return why ctrlrun cannot build a receipt from a document, None where it can; a schema or a further member is no reason."""
    if type(value) is not dict:
        return f"{type(value).__name__}, not an object"
    try:
        for name in _BUILT:
            value[name]
        _refuse_principal(value["principal"])
        if value["decision"] not in DECISIONS or value["result"] not in RESULTS:
            return "a word outside its list"
        for time in (value["started_at"], value["finished_at"]):
            if _TIME.fullmatch(time) is None:
                datetime.fromisoformat(time)
        if value.get("execution") is not None and value["execution"] not in RESULTS:
            return "a word outside its list"
        would_have = value.get("would_have")
        if would_have is not None and (would_have["decision"] not in DECISIONS or "reason" not in would_have):
            return "would_have holds a word outside its list"
        controls = value.get("controls")
        if controls is not None and not (type(controls) is list and all(type(each) is str for each in controls)):
            return "controls are no list of ids"
    except KeyError as error:
        return f"no member {clip(error.args[0])}"
    except (TypeError, ValueError, AttributeError) as error:
        return f"a member that does not read: {type(error).__name__}"
    return None


def _refuse_principal(principal: dict[str, Any]) -> None:
    """Raise ValueError, or what Python raises, where ctrlrun builds no principal."""
    expires_at = principal.get("expires_at")
    if not principal["agent"]:
        raise ValueError("agent")
    for name in ("user", "issuer"):
        if principal.get(name) is not None and not principal[name]:
            raise ValueError(name)
    principal["user"]
    if expires_at is not None and datetime.fromisoformat(expires_at).tzinfo is None:
        raise ValueError("expires_at")


def faults_of(value: dict[str, Any], *, plain: bool) -> Iterator[tuple[str, str]]:
    """Yield (code, message) of what is wrong with a document under the schema that it names."""
    schema = schema_of(value)
    members = MEMBERS.get(schema)
    if members is None:
        yield "format.unknown", f"schema {clip(schema)}: only its hash was checked"
        return
    if value.keys() != members:
        missing, more = sorted(members - value.keys()), sorted(value.keys() - members)
        parts = [f"without {', '.join(missing)}"] * bool(missing) + [f"with {clip(', '.join(more))}"] * bool(more)
        yield "foreign.malformed", f"{schema} {' and '.join(parts)}"
    wrong = _wrong_member(value, schema)
    if wrong is not None:
        yield "foreign.malformed", f"{schema}: {wrong}: got {clip(value.get(wrong))}"
    try:
        found = action_hash_of(value, plain=plain)
        if found != value.get("action_hash") and value.get("action") == PRUNE_ACTION:
            # The receipt of how a prune ended keeps the hash under which it was proposed.
            arguments = value["arguments"] | {"stage": "proposed"}
            found = action_hash_of(value | {"arguments": arguments}, plain=plain)
    except (KeyError, TypeError):
        return  # said above
    if found != value.get("action_hash"):
        yield "ctrlrun.action_hash", f"says {clip(value.get('action_hash'))}, its action has {found}"


def _wrong_member(value: dict[str, Any], schema: str) -> str | None:  # noqa: C901, PLR0911, PLR0912  a list of members
    """Return the first member that does not hold what its schema asks for, None where all do; absent ones are told apart before."""
    for name in ("receipt_id", "action_id"):
        each = value.get(name)
        if type(each) is not str or _IDS.fullmatch(each) is None:
            return name
    each = value.get("action_hash")
    if type(each) is not str or _DIGEST.fullmatch(each) is None:
        return "action_hash"
    for name in _TEXTS:
        if type(value.get(name)) is not str or not value[name]:
            return name
    for name in _TEXTS_OR_NULL:
        each = value.get(name)
        if each is not None and type(each) is not str:
            return name
    for name in _DIGESTS_OR_NULL:
        each = value.get(name)
        if each is not None and (type(each) is not str or _DIGEST.fullmatch(each) is None):
            return name
    for name, pattern in (("approval_id", _APPROVAL), ("hop", _HOP)):
        each = value.get(name)
        if each is not None and (type(each) is not str or pattern.fullmatch(each) is None):
            return name
    attempt = value.get("attempt")
    if type(attempt) is not int or attempt < 1:
        return "attempt"
    if type(value.get("arguments")) is not dict:
        return "arguments"
    if not _is_principal(value.get("principal"), schema):
        return "principal"
    for name, words in (("decision", DECISIONS), ("result", RESULTS)):
        if type(value.get(name)) is not str or value[name] not in words:
            return name
    for name in ("started_at", "finished_at"):
        each = value.get(name)
        if type(each) is not str or _TIME.fullmatch(each) is None:
            return name
    if schema != V1:
        execution = value.get("execution")
        observed = value["result"] == "observed"
        if execution is not None and not (type(execution) is str and execution in EXECUTIONS and observed):
            return "execution"
    if schema in CHAINED_SCHEMAS and (type(value.get("seq")) is not int or value["seq"] < 1):
        return "seq"
    return _wrong_list(value)


def _is_principal(principal: object, schema: str) -> bool:
    names = {"agent", "user"} if schema == V1 else PRINCIPAL_MEMBERS
    if type(principal) is not dict or principal.keys() != names:
        return False
    user = principal["user"]
    return type(principal["agent"]) is str and bool(principal["agent"]) and (user is None or type(user) is str)


def _wrong_list(value: dict[str, Any]) -> str | None:
    """Return the name of the first list that holds what it must not."""
    for name in ("controls", "approvers", "budget_charges"):
        if type(value.get(name, [])) is not list:
            return name
    for charge in value.get("budget_charges", ()):
        amount = charge.get("amount") if type(charge) is dict else None
        if type(amount) is not int or amount < 0:
            return "budget_charges"
    for approver in value.get("approvers", ()):
        if type(approver) is not dict or type(approver.get("agent")) is not str:
            return "approvers"
    return None
