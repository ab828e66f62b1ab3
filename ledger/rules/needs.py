"""What approvals an act needs where several rules ask: its policy, the gate of its step, the duties of its grant.

Source: docs/spec/rules/approvals.md, clause 14; authority.md; runbooks.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ledger.receipt import Intent
from ledger.rules.approval import Need
from ledger.rules.grant_terms import Duty

__all__ = ["lacks", "need_for", "with_duties", "with_gate"]


def need_for(intent: Intent) -> Need:
    """Return the need of one approval by anybody who may approve."""
    return Need(
        act_digest=intent.act_digest,
        act_name=intent.act.name,
        run=intent.run,
        precondition=intent.act.precondition,
        policy=intent.policy,
    )


def with_gate(need: Need | None, intent: Intent) -> Need:
    """Return what an act needs at the gate of a step: what it needed before, one approval at least, and no standing one."""
    return replace(need or need_for(intent), standing=False)


def with_duties(need: Need | None, intent: Intent, duties: Sequence[Duty]) -> Need | None:
    """Return what an act needs with the duties of its grant: as many approvals as these have places, in their roles too."""
    if not duties:
        return need
    places, roles = sum(each.needed for each in duties), tuple(each.role for each in duties)
    if need is None:
        return replace(need_for(intent), roles=roles, needed=places)
    joined = tuple(dict.fromkeys((*need.roles, *roles))) if need.roles else ()
    return replace(need, roles=joined, needed=max(need.needed, places))


def lacks(need: Need | None, duties: Sequence[Duty], approvals: Collection[tuple[str, str]]) -> bool:
    """Return whether approvals (key, role) that fill duties are too few for what else the act needed, in its own roles."""
    if need is None or not need.roles or not duties or not approvals:
        return False
    return len({key for key, role in approvals if role in need.roles}) < need.needed
