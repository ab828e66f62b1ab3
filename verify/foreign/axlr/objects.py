"""The small objects of AXLR: budget, correlation, policy, and a session of the service that holds a result.

    {"budget":{"seconds":900,"requests":20,"tool_calls":60,"usd":0.5}}
    {"correlation":{"bot_id":"...","task_id":"...","execution_id":"...","trace_id":"..."}}

Budget and correlation are reserved by the contract and not accepted by AXLR yet; they are read as their examples have them.

Source: the runtime contract of AXLR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ledger.canonical import JsonObject
from verify.foreign.axlr.result import RESULT_SCHEMA
from verify.foreign.shape import TEXT, Misfit, Shape

__all__ = ["Session", "correlation_misfits", "is_session", "read_session", "wrapped_kind"]

_CORRELATION: Final = Shape(
    {"correlation*": Shape({"bot_id": TEXT, "task_id": TEXT, "execution_id": TEXT, "trace_id": TEXT})}
)
_WRAPPERS: Final = ("policy", "budget", "correlation")
_OF_SESSION: Final = frozenset({"id", "session_id"})


@dataclass(frozen=True, slots=True)
class Session:
    """A session as the service shows it: its result, None until a turn ends, and its policy where it has one."""

    id: str
    model: str | None
    result: JsonObject | None
    policy: JsonObject | None


def wrapped_kind(value: JsonObject) -> str | None:
    """Return which of the small objects this is, None for anything else."""
    if len(value) != 1:
        return None
    (name,) = value
    inner = value[name]
    if name not in _WRAPPERS or not isinstance(inner, dict):
        return None
    fits: Mapping[str, bool] = {
        "policy": "level" in inner,
        "budget": bool(inner) and inner.keys() <= {"seconds", "requests", "tool_calls", "usd"},
        "correlation": bool(inner) and inner.keys() <= {"bot_id", "task_id", "execution_id", "trace_id"},
    }
    return name if fits[name] else None


def is_session(value: JsonObject) -> bool:
    """Return whether an object is a session of the service that has, or will have, a result."""
    if "result" not in value or not _OF_SESSION & value.keys():
        return False
    result = value["result"]
    if result is None:
        return {"id", "model", "status", "revision"} <= value.keys()
    return isinstance(result, dict) and result.get("schema") == RESULT_SCHEMA


def read_session(value: JsonObject) -> Session:
    """Return the session that an object is; its other members are not laid down and not judged."""
    id_, model, policy = value.get("id", value.get("session_id")), value.get("model"), value.get("policy")
    return Session(
        id_ if isinstance(id_, str) else "",
        model if isinstance(model, str) else None,
        value["result"],
        policy if isinstance(policy, dict) else None,
    )


def correlation_misfits(value: JsonObject) -> tuple[Misfit, ...]:
    """Return what does not fit in a correlation."""
    return tuple(_CORRELATION(value, ""))
