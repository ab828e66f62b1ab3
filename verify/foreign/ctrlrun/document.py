"""One receipt document of ctrlrun: whether ctrlrun can read it back, and whether it is what its schema says.

ctrlrun's own reader takes a document of any schema with any further members; what it cannot build at all, it calls altered.
Whether members are those of the schema, hold what they must hold, and whether the action hash is that of the action, its check of
the chain does not ask. We do.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from ledger.errors import clip
from ledger.times import TIME_PATTERN
from verify.foreign.ctrlrun.hashes import action_hash_of
from verify.foreign.ctrlrun.shape import misshape_of
from verify.foreign.ctrlrun.words import DECISIONS, MEMBERS, PRUNE_ACTION, RESULTS

__all__ = ["faults_of", "refusal_of", "schema_of"]

_TIME: Final = re.compile(TIME_PATTERN)
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


def faults_of(value: dict[str, Any], *, plain: bool) -> list[tuple[str, str]]:
    """Return (code, message) of all that is wrong with a document under the schema that it names; without any ctrlrun reads it too.

    `plain` is that of its reading.
    """
    schema = schema_of(value)
    if schema not in MEMBERS:
        return [("format.unknown", f"schema {clip(schema)}: only its hash was checked")]
    misshape = misshape_of(value, schema)
    faults = [] if misshape is None else [("foreign.malformed", misshape)]
    try:
        found = action_hash_of(value, plain=plain)
        if found != value.get("action_hash") and value.get("action") == PRUNE_ACTION:
            # The receipt of how a prune ended keeps the hash under which it was proposed.
            arguments = value["arguments"] | {"stage": "proposed"}
            found = action_hash_of(value | {"arguments": arguments}, plain=plain)
    except (KeyError, TypeError):
        return faults  # said above
    if found != value.get("action_hash"):
        faults.append(("ctrlrun.action_hash", f"says {clip(value.get('action_hash'))}, its action has {found}"))
    return faults
