"""Before a runbook starts: every reason to refuse it, all at once, so that no half of a procedure is ever done.

Source: docs/spec/rules/runbooks.md, "Starting".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ledger.rules.profile import Coverage, Mode, at_least, exceeds, is_destructive
from ledger.rules.runbook import Envelope
from ledger.words import Profile, Reason, Risk

__all__ = ["Refusal", "refusals"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason not to start."""

    reason: Reason
    message: str
    step: str | None = None
    tool: str | None = None


def refusals(
    envelope: Envelope,
    *,
    profile: Profile,
    coverage: Coverage,
    ceiling: Risk,
    allowlist: Collection[str] | None,
) -> tuple[Refusal, ...]:
    """Return every reason not to start a run of a runbook, none if it may start.

    Args:
        envelope: What it authorizes.
        profile: How much of it the client enforces.
        coverage: What the adapter publishes that it sees.
        ceiling: The highest risk that the client runs.
        allowlist: The tools that the client itself allows; None where that is not at hand, and is judged by whoever has it.
    """
    found: list[Refusal] = []
    if allowlist is not None:
        found += [
            Refusal(Reason.NOT_ALLOWLISTED, f"tool {tool!r}: the client's own allowlist does not hold it", tool=tool)
            for tool in envelope.allowlist
            if tool not in allowlist
        ]
    minimum = envelope.minimum
    if not at_least(profile, minimum):
        found.append(Refusal(Reason.PROFILE, f"profile: got {profile}, expected {minimum} at least"))
    if envelope.mode is Mode.AGENT_AUTONOMOUS and Profile.R0 in (profile, envelope.declared_minimum):
        found.append(Refusal(Reason.PROFILE, "profile: agent-autonomous at R0 leaves nothing between agent and tools"))
    if not coverage.complete:
        blind = f"the adapter does not see every invocation (unseen: {', '.join(coverage.unseen)})"
        found += [
            Refusal(Reason.COVERAGE, f"step {name!r} is {step.risk}: {blind}", step=name)
            for name, step in envelope.steps.items()
            if is_destructive(step.risk)
        ]
    if at_least(profile, Profile.R1):
        found += [
            Refusal(Reason.RISK, f"step {name!r} is {step.risk}, the ceiling is {ceiling}", step=name)
            for name, step in envelope.steps.items()
            if exceeds(step.risk, ceiling)
        ]
        found += [
            Refusal(
                Reason.SCOPE_UNDECLARED_TOOL,
                f"step {name!r} asks for {tool!r}, which is not declared",
                step=name,
                tool=tool,
            )
            for name, tool in envelope.undeclared
        ]
    return tuple(found)
