"""Policy documents: AXLR's object and ours, read strictly.

    {"policy": {"level": "observe", "tools": {"allow": [{"name": "local_read", "arguments": {"path": "logs/**"}}]}}}

    {"schema": "receipt-ledger.policy/v1", "level": "act-within-policy", "mode": "enforce",
     "access": {"read": ["db.get*"], "propose": []},
     "tools": {"deny": [{"name": "shell"}]},
     "rules": [{"name": "small", "act": "refund", "when": {"amount": {"le": 5000}}, "then": "allow"},
               {"name": "large", "act": "refund", "then": "ask", "roles": ["finance"], "needed": 2}],
     "always_ask": [{"name": "git.push", "arguments": {"args": "*--force*"}}],
     "approval": {"roles": ["ops"], "needed": 1, "expires_ms": 900000}}

- An unknown member, a member twice, a value of another type and an empty name refuse the file.
- What is kept is the canonical text of the document, and its digest is the policy's: how a person laid it out changes nothing.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.errors import clip
from ledger.rules.condition import parse_conditions
from ledger.rules.document import read_object
from ledger.rules.errors import PolicyError
from ledger.rules.policy import Answer, Level, Policy, Rule
from ledger.rules.shape import LONGEST, Shape
from ledger.rules.tools import ToolRule

__all__ = ["POLICY_SCHEMA", "PolicyDocument", "parse_policy", "read_policy"]

POLICY_SCHEMA: Final = "receipt-ledger.policy/v1"
_SHAPE: Final = Shape("policy", PolicyError)
_ANSWERS: Final = {"allow": Answer.ALLOW, "ask": Answer.ASK, "deny": Answer.DENY}


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A policy with the canonical bytes that are kept, and their digest."""

    policy: Policy
    data: bytes
    digest: str


def read_policy(data: bytes) -> PolicyDocument:
    """Return the policy of a file that a person wrote; white space and the order of members are free.

    Raises:
        PolicyError: not JSON of this shape.
    """
    return parse_policy(canonical.encode(read_object(data, "policy", PolicyError)))


def parse_policy(data: bytes) -> PolicyDocument:
    """Return the policy whose canonical bytes are `data`: a document that was kept.

    Raises:
        PolicyError: not canonical, or not of this shape.
    """
    return PolicyDocument(_policy_of(_SHAPE.canonical(data)), data, digest(data))


def _policy_of(value: JsonObject) -> Policy:
    if "schema" in value:
        if value["schema"] != POLICY_SCHEMA:
            raise PolicyError(
                f"policy: schema {clip(value['schema'])} is not known to this version", code="policy.unknown"
            )
        return _native(value)
    inner = value["policy"] if set(value) == {"policy"} else value
    found = _SHAPE.members(inner, "policy", required=("level",), optional=("tools",))
    allow, deny = _tools(found)
    return Policy(level=_SHAPE.word(found["level"], "level", Level), allow=allow, deny=deny)


def _native(value: JsonObject) -> Policy:
    found = _SHAPE.members(
        value,
        "policy",
        required=("schema", "level"),
        optional=("mode", "access", "tools", "rules", "always_ask", "approval"),
    )
    mode = found.get("mode", "enforce")
    if mode not in ("enforce", "observe"):
        raise PolicyError(f"policy: mode: got {clip(mode)}, expected enforce or observe")
    access = _SHAPE.members(found.get("access", {}), "access", optional=("read", "propose"))
    allow, deny = _tools(found)
    approval = _SHAPE.members(found.get("approval", {}), "approval", optional=("roles", "needed", "expires_ms"))
    rules = None
    if "rules" in found:
        rules = tuple(
            _rule(each, f"rules[{place}]") for place, each in enumerate(_SHAPE.items(found["rules"], "rules"))
        )
        names = [rule.name for rule in rules]
        if len(set(names)) != len(names):
            raise PolicyError("policy: rules: got a name twice")
    return Policy(
        level=_SHAPE.word(found["level"], "level", Level),
        native=True,
        allow=allow,
        deny=deny,
        reads=_SHAPE.texts(access.get("read", []), "access.read"),
        proposes=_SHAPE.texts(access.get("propose", []), "access.propose"),
        rules=rules,
        always_ask=_tool_rules(found.get("always_ask", []), "always_ask"),
        observed=mode == "observe",
        roles=_SHAPE.texts(approval.get("roles", []), "approval.roles"),
        needed=_SHAPE.count(approval.get("needed", 1), "approval.needed", 100),
        expires_ms=_SHAPE.count(approval.get("expires_ms", 900_000), "approval.expires_ms", 366 * 86_400_000),
    )


def _rule(value: object, where: str) -> Rule:
    found = _SHAPE.members(value, where, required=("name", "act", "then"), optional=("when", "roles", "needed"))
    then = found["then"]
    if type(then) is not str or then not in _ANSWERS:
        raise PolicyError(f"policy: {where}.then: got {clip(then)}, expected allow, ask or deny")
    asks = _ANSWERS[then] is Answer.ASK
    if not asks and ("roles" in found or "needed" in found):
        raise PolicyError(f"policy: {where}: got roles or needed, which only a rule that asks has")
    return Rule(
        name=_SHAPE.text(found["name"], f"{where}.name"),
        act=_SHAPE.text(found["act"], f"{where}.act"),
        then=_ANSWERS[then],
        when=parse_conditions(_SHAPE, found.get("when", {}), f"{where}.when"),
        roles=_SHAPE.texts(found["roles"], f"{where}.roles") if "roles" in found else None,
        needed=_SHAPE.count(found["needed"], f"{where}.needed", 100) if "needed" in found else None,
    )


def _tools(document: JsonObject) -> tuple[tuple[ToolRule, ...] | None, tuple[ToolRule, ...]]:
    found = _SHAPE.members(document.get("tools", {}), "tools", optional=("allow", "deny"))
    allow = _tool_rules(found["allow"], "tools.allow") if "allow" in found else None
    return allow, _tool_rules(found.get("deny", []), "tools.deny")


def _tool_rules(value: object, where: str) -> tuple[ToolRule, ...]:
    rules = []
    for place, each in enumerate(_SHAPE.items(value, where)):
        at = f"{where}[{place}]"
        found = _SHAPE.members(each, at, required=("name",), optional=("arguments",))
        patterns = _SHAPE.mapping(found.get("arguments", {}), f"{at}.arguments")
        arguments = tuple(
            (name, _SHAPE.text(pattern, f"{at}.arguments", empty=True, longest=LONGEST))
            for name, pattern in sorted(patterns.items())
        )
        rules.append(ToolRule(_SHAPE.text(found["name"], f"{at}.name"), arguments))
    return tuple(rules)
