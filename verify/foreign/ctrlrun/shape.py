"""The shape of each receipt schema of ctrlrun: its members, all of them and no other, and what each must hold."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from ledger.errors import clip
from ledger.members import Digest, Time
from verify.foreign.ctrlrun.words import CHAINED_SCHEMAS, MEMBERS, V1

__all__ = ["misshape_of"]

_CLOSED: Final = ConfigDict(strict=True, extra="forbid")
_Text = Annotated[str, StringConstraints(min_length=1)]
_Count = Annotated[int, Field(ge=1)]
_Id = r"^{}_[0-9a-f]{{32}}$"
_Decision = Literal["allow", "approve", "deny"]
_Execution = Literal["committed", "failed", "ambiguous"]


@with_config(_CLOSED)
class _Principal1(TypedDict):
    agent: _Text
    user: _Text | None


@with_config(_CLOSED)
class _Principal(TypedDict):
    agent: _Text
    user: _Text | None
    claims: dict[str, Any]
    issuer: _Text | None
    expires_at: Time | None


@with_config(_CLOSED)
class _WouldHave(TypedDict):
    decision: _Decision
    reason: str
    blocked_reason: str | None


@with_config(_CLOSED)
class _Approver(TypedDict):
    agent: _Text
    user: str | None
    issuer: str | None
    entitled: list[str]
    granted_at: str


@with_config(_CLOSED)
class _Charge(TypedDict):
    grant_id: _Text
    metric: _Text
    amount: int


_HOLD: Final[dict[str, Any]] = {
    "schema": str,
    "receipt_id": Annotated[str, StringConstraints(pattern=_Id.format("ctr"))],
    "action_id": Annotated[str, StringConstraints(pattern=_Id.format("act"))],
    "action": _Text,
    "action_hash": Digest,
    "principal": _Principal,
    "resource": str | None,
    "arguments": dict[str, Any],
    "environment": _Text,
    "decision": _Decision,
    "decision_reason": _Text,
    "approval_id": Annotated[str, StringConstraints(pattern=_Id.format("apr"))] | None,
    "approver": str | None,
    "effect_key": str | None,
    "attempt": _Count,
    "result": Literal["committed", "failed", "ambiguous", "denied", "blocked", "observed"],
    "execution": _Execution | None,
    "would_have": _WouldHave | None,
    "error": str | None,
    "started_at": Time,
    "finished_at": Time,
    "seq": _Count,
    "prev_hash": Digest,
    "policy_hash": Digest | None,
    "policy_version": str | None,
    "controls": list[str],
    "precondition_at_request": Digest | None,
    "precondition_at_recheck": Digest | None,
    "approvers": list[_Approver],
    "authority_grant_id": str | None,
    "task": str | None,
    "scope_hash": Digest | None,
    "budget_charges": list[_Charge],
    "hop": Annotated[str, StringConstraints(pattern=_Id.format("dlg"))] | None,
}


_typed_dict: Final[Any] = TypedDict
"""A dict type whose members are known at run time only."""


@cache
def _validator(schema: str) -> TypeAdapter[Any]:
    fields = {name: _HOLD[name] for name in MEMBERS[schema]}
    if schema == V1:
        fields["principal"] = _Principal1
    if schema not in CHAINED_SCHEMAS:
        fields.pop("seq", None)
    return TypeAdapter(with_config(_CLOSED)(_typed_dict("Receipt", fields)))


def misshape_of(value: dict[str, Any], schema: str) -> str | None:
    """Return what is wrong with a document under a schema that is known, None where it has its shape."""
    try:
        _validator(schema).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        return f"{schema}: {clip(where)[1:-1]}: {first['msg'].lower()}, got {clip(first.get('input'))}{more}"
    if value.get("execution") is not None and value["result"] != "observed":
        return f"{schema}: execution: stands beside a result that was not observed"
    return None
