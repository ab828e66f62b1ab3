"""The digests of ctrlrun: each over one object that names its own domain in `schema`, through its one canonical form.

| digest | object |
|---|---|
| action hash | `{arguments, environment, name, principal: {agent, user}, resource, schema: ctrlrun.action/v1}` |
| receipt hash | the document as it is stored, whatever its schema |
| policy hash | `{actions, authority, controls, environment, mode, schema: ctrlrun.policy/vN}`, parsed values and no text |
| precondition | `{schema: ctrlrun.precondition/v1, state}` |
| scope | `{schema: ctrlrun.scope/v1, scope}` |
| tool schema | `{schema: ctrlrun.upstream.tool_schema/v1, entry}` |
| idempotency token | `ledger.rules.effect.idempotency_token` |

Each returns None for a value that ctrlrun refuses to hash.
"""

from __future__ import annotations

from typing import Any, Final

from verify.foreign.ctrlrun.reading import canonical_bytes, sha256_of

__all__ = [
    "action_hash",
    "action_hash_of",
    "policy_hash",
    "precondition_hash",
    "scope_hash",
    "tool_schema_hash",
]

_ACTION: Final = "ctrlrun.action/v1"
_DEFAULT_ENVIRONMENT: Final = "production"


def action_hash(
    *,
    name: str,
    arguments: dict[str, Any],
    agent: str,
    user: str | None = None,
    resource: str | None = None,
    environment: str = _DEFAULT_ENVIRONMENT,
) -> str | None:
    """Return what an approval binds to: the act and who acts. Action ids, times, claims, task and hop are no part of it."""
    principal = {"agent": agent, "user": user}
    return _digest(_action(name, arguments, principal, resource, environment), plain=False)


def action_hash_of(receipt: dict[str, Any], *, plain: bool = False) -> str | None:
    """Return the action hash of the members of a receipt; `plain` as for `canonical_bytes`.

    Raises:
        KeyError, TypeError: it lacks a member that the hash is over.
    """
    principal = receipt["principal"]
    of = {"agent": principal["agent"], "user": principal["user"]}
    return _digest(
        _action(receipt["action"], receipt["arguments"], of, receipt["resource"], receipt["environment"]), plain=plain
    )


def _action(name: object, arguments: object, principal: object, resource: object, environment: object) -> Any:  # noqa: ANN401
    return {
        "arguments": arguments,
        "environment": environment,
        "name": name,
        "principal": principal,
        "resource": resource,
        "schema": _ACTION,
    }


def policy_hash(
    policy: dict[str, Any], *, authority: dict[str, Any] | None = None, environment: str | None = None
) -> str | None:
    """Return the digest of a policy's decision inputs; its `version` is a label and no part of it.

    Args:
        policy: the members of the policy file, parsed.
        authority: `{max_delegation_depth, grants, break_glass}` as ctrlrun resolves it, None where nothing grants. Releases
            differ in what they put into a grant (`break_glass` since 0.8, `tasks` and `budgets` since 0.9).
        environment: the one in force; without it the one of the file, else `production`.
    """
    named = policy.get("environment")
    found = environment or (named if isinstance(named, str) else _DEFAULT_ENVIRONMENT)
    return _digest(
        {
            "actions": policy.get("actions"),
            "authority": authority,
            "controls": policy.get("controls"),
            "environment": found,
            "mode": policy.get("mode", "enforce"),
            "schema": policy.get("schema"),
        },
        plain=False,
    )


def precondition_hash(state: dict[str, Any]) -> str | None:
    """Return the fingerprint of the state that an approval was asked for, or given, in."""
    return _digest({"schema": "ctrlrun.precondition/v1", "state": state}, plain=False)


def scope_hash(scope: dict[str, Any]) -> str | None:
    """Return the digest of a scope, as a provider returned it."""
    return _digest({"schema": "ctrlrun.scope/v1", "scope": scope}, plain=False)


def tool_schema_hash(entry: dict[str, Any]) -> str | None:
    """Return the digest of a whole tool entry as an MCP server advertises it."""
    return _digest({"schema": "ctrlrun.upstream.tool_schema/v1", "entry": entry}, plain=False)


def _digest(document: Any, *, plain: bool) -> str | None:  # noqa: ANN401  any JSON value
    canonical = canonical_bytes(document, plain=plain)
    return None if canonical is None else sha256_of(canonical)
