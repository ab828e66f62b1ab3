"""Whether one policy only narrows another: a run that goes on, or a run below another, may not be allowed more.

The answer is safe and not complete: yes means that no act is decided more leniently; no may only mean that it cannot be seen
from the two documents.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

from typing import Final

from ledger.rules.glob import is_literal, matches
from ledger.rules.policy import Answer, Level, Policy
from ledger.rules.tools import ToolRule, is_mcp_tool

__all__ = ["narrows"]

_NARROWER: Final = {
    Level.OBSERVE: {Level.OBSERVE},
    Level.PROPOSE: {Level.PROPOSE, Level.OBSERVE},
    # `propose` writes plans without asking and `observe` calls MCP tools without asking: neither is narrower than asking.
    Level.ACT_WITH_APPROVAL: {Level.ACT_WITH_APPROVAL},
    Level.ACT_WITHIN_POLICY: set(Level),
}


def narrows(old: Policy, new: Policy) -> bool:
    """Return whether the new policy is sure to decide no act more leniently than the old one."""
    return (
        old.native == new.native
        and new.level in _NARROWER[old.level]
        and set(new.deny) >= set(old.deny)
        and set(new.always_ask) >= set(old.always_ask)
        and set(new.reads) <= set(old.reads)
        # Fewer tools that propose may be more that read.
        and set(new.proposes) == set(old.proposes)
        and _narrows_allow(old, new)
        and _narrows_rules(old, new)
        and (new.observed <= old.observed)
        and new.roles == old.roles
        and new.needed >= old.needed
        and new.expires_ms <= old.expires_ms
    )


def _narrows_allow(old: Policy, new: Policy) -> bool:
    if new.allow is None:
        return old.allow is None
    if old.allow is not None:
        return all(any(_covers(wide, narrow) for wide in old.allow) for narrow in new.allow)
    # A list where there was none also vouches for the MCP tools that it names.
    vouches = (
        not new.native and new.level in (Level.OBSERVE, Level.PROPOSE) and old.level is not Level.ACT_WITHIN_POLICY
    )
    return not vouches or not any(is_mcp_tool(rule.name) for rule in new.allow)


def _covers(wide: ToolRule, narrow: ToolRule) -> bool:
    """Return whether every call that the narrow rule covers is sure to be covered by the wide one."""
    named = wide.name == narrow.name or (is_literal(narrow.name) and matches(wide.name, narrow.name))
    return named and set(wide.arguments) <= set(narrow.arguments)


def _narrows_rules(old: Policy, new: Policy) -> bool:
    """Return whether the new rules are the old ones behind rules that deny; rules where there were none only tighten."""
    if old.rules is None:
        # A rule that names its own roles could let others approve what asked before.
        return all(rule.roles is None for rule in new.rules or ())
    if new.rules is None or len(new.rules) < len(old.rules):
        return False
    added = len(new.rules) - len(old.rules)
    return new.rules[added:] == old.rules and all(rule.then is Answer.DENY for rule in new.rules[:added])
