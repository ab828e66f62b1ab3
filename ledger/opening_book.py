"""Runbooks before they start: read, held against what the client enforces and sees, and refused as closed runs.

Source: docs/spec/rules/runbooks.md, "Starting".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger import canonical
from ledger.digest import digest
from ledger.errors import clip
from ledger.members import Act, Adapter, Artifact, Runbook, Tool
from ledger.receipt import Decision, Opening, Run, act_digest
from ledger.recorder import common_of
from ledger.refusals import Blocked
from ledger.rules.document import read_object
from ledger.rules.errors import RunbookError
from ledger.rules.policy import Answer, Policy, decide
from ledger.rules.profile import coverage_of
from ledger.rules.runbook import Envelope, read_envelope
from ledger.rules.runbook_derive import RUNBOOK_SCHEMA, derive
from ledger.rules.runbook_replay import RUNBOOK_TOOL
from ledger.rules.runbook_start import Refusal, refusals
from ledger.storage.ledger import Ledger
from ledger.words import Profile, Risk, RunStatus

__all__ = ["ROUTED", "Book", "Refused", "document_artifact", "open_book", "proposed", "read_book", "refuse"]

ROUTED: Final = Adapter(name="in-loop", version="1", coverage="in-loop-routed")
"""The adapter of a client that states that it routes every invocation through this API."""


class Refused(Blocked):
    """A runbook that was not started: nothing ran, and a closed run says why."""

    def __init__(self, run: str, found: Sequence[Refusal]) -> None:
        reasons = "; ".join(each.message for each in found)
        super().__init__(found[0].reason, f"runbook: refused before it started: {reasons}")
        self.run: Final = run
        """Run id of the closed run that records the refusal."""
        self.refusals: Final = tuple(found)
        """Every reason."""


@dataclass(frozen=True, slots=True)
class Book:
    """A runbook that a run is to follow: its envelope, what its opening says, and what speaks against starting it."""

    envelope: Envelope
    said: Runbook
    refusals: tuple[Refusal, ...]
    kept: tuple[tuple[bytes, str], ...]
    """Documents to keep, each with its name."""

    def artifacts(self, ledger: Ledger) -> tuple[Artifact, ...]:
        """Return the references of the documents, which are staged."""
        found = []
        for data, name in self.kept:
            ledger.artifacts.stage(data)
            found.append(document_artifact(data, name))
        return tuple(found)


def read_book(data: bytes) -> tuple[Envelope, bytes | None]:
    """Return the policy envelope of a file, and the document where the file is one: its elements, of which it is derived.

    Raises:
        RunbookError: neither an envelope nor elements.
    """
    value = read_object(data, "runbook", RunbookError)
    if value.get("schema") == RUNBOOK_SCHEMA:
        return derive(data), canonical.encode(value)
    return read_envelope(data), None


def open_book(
    data: bytes,
    *,
    profile: str,
    ceiling: str,
    adapter: Adapter,
    statement: bytes | None = None,
    allowlist: Collection[str] | None = None,
    policy: Policy | None = None,
) -> Book:
    """Return a runbook to start a run of, with every reason not to.

    Args:
        data: A policy envelope, or the elements that one is derived from.
        profile: How much of it the client enforces.
        ceiling: The highest risk of a step that the client runs.
        adapter: What carries it out.
        statement: The adapter's coverage statement, where its coverage is a digest.
        allowlist: The tools that the client itself allows; where it is not given, those that its policy does not deny.
        policy: The client's policy. Without a list and without a policy nothing is allowed.

    Raises:
        RunbookError: the document cannot be read, or a word is unknown.
    """
    envelope, document = read_book(data)
    if profile not in set(Profile) or ceiling not in set(Risk):
        raise RunbookError(
            f"runbook: got profile {clip(profile)}, ceiling {clip(ceiling)}, expected {', '.join(Profile)} and one of {', '.join(Risk)}"
        )
    if statement is not None and digest(statement) != adapter.coverage:
        raise RunbookError("runbook: the statement is not the one that the adapter's coverage names")
    allowed = allowlist if allowlist is not None else _allowed(envelope, policy)
    found = refusals(
        envelope,
        profile=Profile(profile),
        coverage=coverage_of(adapter.coverage, statement),
        ceiling=Risk(ceiling),
        allowlist=allowed,
    )
    kept = [(envelope.data, "runbook-envelope")]
    if document is not None:
        kept.append((document, "runbook"))
    if statement is not None:
        kept.append((statement, "coverage-statement"))
    said = Runbook(envelope=envelope.digest, profile=Profile(profile), ceiling=Risk(ceiling))
    return Book(envelope, said, found, tuple(kept))


def refuse(ledger: Ledger, opening: Opening, found: Sequence[Refusal]) -> Refused:
    """Record a runbook that is not started as a closed run, in one commit, and return what says so."""
    opened = ledger.seal(opening)
    run = opened.receipt_id
    decisions = [
        ledger.envelope(
            Decision(
                **common_of(ledger),
                run=run,
                **proposed(ledger, run, opening, each.tool or RUNBOOK_TOOL, "runbook.start", each.step),
                status="denied",
                reason=each.reason,
                rule="start",
                step=each.step,
            )
        )
        for each in found
    ]
    closing = Run(
        **common_of(ledger),
        run=run,
        status=RunStatus.BLOCKED,
        reason=found[0].reason,
        duration_ms=0,
        children=(run, *(each.receipt_id for each in decisions)),
    )
    ledger.append_many([opened, *decisions, ledger.seal(closing)])
    return Refused(run, found)


def _allowed(envelope: Envelope, policy: Policy | None) -> tuple[str, ...]:
    """Return the tools of an envelope that a policy does not deny by their names."""
    return tuple(
        tool
        for tool in envelope.allowlist
        if policy is not None and decide(policy, _act(tool, tool), None, unseen="favours").answer is not Answer.DENY
    )


def proposed(
    ledger: Ledger,
    run: str,
    opening: Opening,
    tool: str,
    name: str,
    step: str | None,
    *,
    precondition: str | None = None,
) -> dict[str, Any]:
    """Return the members of a decision about an act that a supervisor asks for: the act and its digest."""
    act = _act(tool, name, step or "unknown", precondition)
    named = act_digest(act, ledger=ledger.origin, run=run, actor=opening.actor, effect_key=None)
    return {"act": act, "act_digest": named}


def _act(tool: str, name: str, resource: str = "unknown", precondition: str | None = None) -> Act:
    return Act(
        name=name,
        tool=Tool(name=tool, version="unknown", digest="unknown"),
        access="unknown",
        arguments_digest="unknown",
        resource=resource,
        environment="unknown",
        precondition=precondition,
    )


def document_artifact(data: bytes, name: str) -> Artifact:
    """Return the reference of a document that is kept as it is."""
    return Artifact(digest=digest(data), media_type="application/json", name=name, size_bytes=len(data), salted=False)
