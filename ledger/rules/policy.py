"""Policies: what a run may do with which tool, decided outside the model.

    policy and act --> tools.deny --> tools.allow --> level --> rules --> always_ask --> allow | ask | deny

- Every station can only tighten: the strictest answer wins; of equally strict ones the rule's is named.
- A deny wins over an allow; an allow list forbids what it does not name, an empty one everything.
- Whether a tool reads or writes is what the policy's lists say. A caller can only make it stricter.
- An act that no rule names, a policy that is missing and one that cannot be read are denied.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, Literal

from ledger.canonical import JsonValue
from ledger.members import Act
from ledger.rules.condition import Condition, holds
from ledger.rules.glob import matcher
from ledger.rules.tools import ToolRule, access_of, is_document, is_mcp_tool, stricter
from ledger.words import Access, Reason

__all__ = [
    "DENY_MISSING",
    "DENY_UNREADABLE",
    "Answer",
    "Decision",
    "Level",
    "Policy",
    "Rule",
    "Unseen",
    "decide",
    "strictest",
]

Unseen = Literal["absent", "favours", "hinders"]
"""What an argument that is not at hand is taken for: not there, as the most lenient decision needs it, or as the strictest does."""


class Answer(IntEnum):
    """What a policy answers; a greater one is stricter."""

    ALLOW = 0
    ASK = 1
    DENY = 2


class Level(StrEnum):
    """How far an execution may go by itself."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    ACT_WITH_APPROVAL = "act-with-approval"
    ACT_WITHIN_POLICY = "act-within-policy"


@dataclass(frozen=True, slots=True)
class Rule:
    """One of our rules: acts by name pattern, conditions on inline arguments, an answer."""

    name: str
    act: str
    then: Answer
    when: tuple[Condition, ...] = ()
    roles: tuple[str, ...] | None = None
    needed: int | None = None
    acts: Callable[[str], object] = field(init=False, compare=False, repr=False)
    """The pattern over acts, made ready."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "acts", matcher(self.act))


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, read. `native` tells ours from AXLR's, whose lists of its own tools are built in."""

    level: Level
    native: bool = False
    allow: tuple[ToolRule, ...] | None = None
    deny: tuple[ToolRule, ...] = ()
    reads: tuple[str, ...] = ()
    proposes: tuple[str, ...] = ()
    rules: tuple[Rule, ...] | None = None
    always_ask: tuple[ToolRule, ...] = ()
    observed: bool = False
    """Whether what it forbids is recorded and not enforced."""
    roles: tuple[str, ...] = ()
    """Roles of which an approval needs one; none: any approver."""
    needed: int = 1
    """How many approvals an act that asks needs, by as many keys."""
    expires_ms: int = 900_000
    """How long a request waits."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy decides: an answer, why, and by which of its rules."""

    answer: Answer
    reason: Reason | None = None
    rule: str | None = None
    roles: tuple[str, ...] = ()
    needed: int = 0
    expires_ms: int = 0
    standing: bool = True
    """Whether a standing approval may answer it; not where the policy always asks."""
    observed: bool = False

    @property
    def runs(self) -> bool:
        """Whether the act runs: it is allowed, or the policy only observes."""
        return self.answer is Answer.ALLOW or self.observed


DENY_MISSING: Final = Decision(Answer.DENY, Reason.POLICY_MISSING)
"""The decision where a policy is named and not there."""
DENY_UNREADABLE: Final = Decision(Answer.DENY, Reason.POLICY_UNREADABLE)
"""The decision where a policy, or the state that it needs, cannot be read."""


def decide(
    policy: Policy | None, act: Act, arguments: Mapping[str, JsonValue] | None, *, unseen: Unseen = "absent"
) -> Decision:
    """Return what a policy decides about an act.

    Args:
        policy: None denies.
        act: The act; conditions look at its inline arguments.
        arguments: All arguments as they are kept, secrets cut; patterns look at these.
        unseen: What an argument that is not in `arguments` is taken for. A recorder holds all arguments.
    """
    if policy is None:
        return DENY_MISSING
    names = (act.tool.name,) if act.tool.name == act.name else (act.tool.name, act.name)
    given = arguments or {}
    found = _by_tools(policy, act, names, given, unseen)
    if found.answer is not Answer.DENY and policy.rules is not None:
        found = strictest((_by_rules(policy, policy.rules, act), found))
    always = _always_ask(policy, names, given, unseen) if found.answer is not Answer.DENY else None
    if always is not None:
        found = strictest((found, always))
    return replace(found, observed=True) if policy.observed and found.answer is not Answer.ALLOW else found


def strictest(decisions: Iterable[Decision]) -> Decision:
    """Return the strictest of some decisions, the first of equally strict ones.

    Where several ask, the roles are those of the first that names any, and the number of approvals is the largest.
    """
    found = None
    for each in decisions:
        if found is None or each.answer > found.answer:
            found = each
        elif found.answer is each.answer is Answer.ASK:
            found = replace(
                found,
                roles=found.roles or each.roles,
                needed=max(found.needed, each.needed),
                standing=found.standing and each.standing,
            )
    if found is None:
        raise ValueError("no decisions")
    return found


def _by_tools(
    policy: Policy, act: Act, names: tuple[str, ...], arguments: Mapping[str, JsonValue], unseen: Unseen
) -> Decision:
    """Return what the lists of tools and the level say."""
    for place, rule in enumerate(policy.deny):
        if rule.covers(names, arguments, absent=unseen == "hinders", denies=True):
            return Decision(Answer.DENY, Reason.POLICY_DENIED, f"tools.deny[{place}]")
    listed = None
    if policy.allow is not None:
        for place, rule in enumerate(policy.allow):
            if rule.covers(names, arguments, absent=unseen == "favours"):
                listed = f"tools.allow[{place}]"
                break
        else:
            return Decision(Answer.DENY, Reason.POLICY_NOT_LISTED, "tools.allow")
    level = f"level:{policy.level}"
    access = _access(policy, act, listed, arguments, unseen)
    if policy.level is Level.ACT_WITHIN_POLICY or access is Access.READ:
        return Decision(Answer.ALLOW, rule=listed or level)
    if policy.level is Level.ACT_WITH_APPROVAL:
        return _asking(policy, level)
    if policy.level is Level.PROPOSE and access is Access.PROPOSE:
        return Decision(Answer.ALLOW, rule=listed or level)
    return Decision(Answer.DENY, Reason.POLICY_LEVEL, level)


def _access(
    policy: Policy,
    act: Act,
    listed: str | None,
    arguments: Mapping[str, JsonValue],
    unseen: Unseen,
) -> Access:
    """Return what an act does to the world: what the policy's lists say of its tool, or what the caller says if stricter."""
    tool = act.tool.name
    if policy.native:
        found = access_of(tool, policy.reads, policy.proposes)
    elif is_mcp_tool(tool):
        # An allow list vouches for the MCP tools that it names, as far as reading goes.
        vouched = listed is not None and policy.level in (Level.OBSERVE, Level.PROPOSE)
        found = Access.READ if vouched else Access.WRITE
    else:
        found = access_of(tool)
    # A caller that says `write` of a tool that may propose is believed; the path says what the built-in tools propose.
    found = stricter(found, act.access)
    if not policy.native and found is Access.WRITE and is_document(tool, arguments, absent=unseen == "favours"):
        return Access.PROPOSE
    return found


def _by_rules(policy: Policy, rules: tuple[Rule, ...], act: Act) -> Decision:
    """Return what the first rule that matches says; none that names the act, and none that matches, deny."""
    inline = act.arguments or {}
    named = False
    for rule in rules:
        if not rule.acts(act.name):
            continue
        named = True
        # What cannot be compared loosens nothing and tightens what it can.
        if all(holds(each, inline, otherwise=rule.then is not Answer.ALLOW) for each in rule.when):
            if rule.then is Answer.ASK:
                return _asking(policy, rule.name, rule.roles, rule.needed)
            denied = Reason.POLICY_DENIED if rule.then is Answer.DENY else None
            return Decision(rule.then, denied, rule.name)
    return Decision(Answer.DENY, Reason.POLICY_NOT_LISTED if named else Reason.ACTION_UNKNOWN, "rules")


def _always_ask(
    policy: Policy, names: tuple[str, ...], arguments: Mapping[str, JsonValue], unseen: Unseen
) -> Decision | None:
    for place, rule in enumerate(policy.always_ask):
        if rule.covers(names, arguments, absent=unseen == "hinders", denies=True):
            return replace(_asking(policy, f"always_ask[{place}]"), standing=False)
    return None


def _asking(policy: Policy, rule: str, roles: tuple[str, ...] | None = None, needed: int | None = None) -> Decision:
    return Decision(
        Answer.ASK,
        Reason.APPROVAL_REQUIRED,
        rule,
        policy.roles if roles is None else roles,
        policy.needed if needed is None else needed,
        policy.expires_ms,
    )
