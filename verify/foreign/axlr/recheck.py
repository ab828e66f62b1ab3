"""Rules re-checked over a recorded execution: its policy for every call, and its budget where one was given.

The policy is AXLR's object; `ledger.rules` decides, as when it enforces. Where the arguments of a call were not recorded, it is
decided as leniently and as strictly as they could make it, and only what both say is a breach.

- A call that ran, or may have, and that the policy forbids: `policy.breach`.
- A call that ran without a person's decision where the policy asks for one: `approval.missing`.
- A call that waits and is forbidden should have been refused before anybody was asked; a call called forbidden that this policy
  does not forbid may have been by another rule of the host. Both are told and break no rule, since nothing ran.
- A policy names an MCP tool by its own name or `<plugin>/<tool>` too, and a result by what the model calls it. A tool that may be
  one that a rule names so is decided both ways.

Source: docs/spec/rules/policy.md; the runtime contract of AXLR, "Policy per execution".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.errors import CanonicalError
from ledger.members import Act, Limit, Tool
from ledger.rules.amounts import DURATION
from ledger.rules.glob import is_literal
from ledger.rules.policy import Answer, Decision, Policy, Unseen, decide
from ledger.rules.tools import is_mcp_tool
from verify.foreign.axlr.result import Call, Result
from verify.foreign.runx.stablejson import stable_bytes

__all__ = ["Finding", "recheck_budget", "recheck_policy"]

_ALIASED: Final = re.compile(r"[^A-Za-z0-9_-]")
"""Characters that no model can use in the name of a tool."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A code of ours, where, and what; `informs` where it breaks no rule."""

    code: str
    where: str
    message: str
    informs: bool = False


def recheck_policy(policy: Policy, calls: Iterable[Call]) -> tuple[Finding, ...]:
    """Return what the policy says of the calls otherwise than what was done, each with the rule that decides."""
    found = (_recheck(policy, place, call) for place, call in enumerate(calls))
    return tuple(each for each in found if each is not None)


def _recheck(policy: Policy, place: int, call: Call) -> Finding | None:
    where = f"tool_calls[{place}] {call.call_id}"
    lenient, strict = _decisions(policy, call)
    forbidden = lenient.answer is Answer.DENY
    if call.status == "forbidden" and strict.answer is not Answer.DENY:
        message = f"{call.tool}: called forbidden, and nothing in this policy forbids it"
        return Finding("policy.breach", where, message, informs=True)
    if call.status == "pending" and forbidden:
        message = f"{call.tool}: waits, and is forbidden: {lenient.reason}, rule {lenient.rule}"
        return Finding("policy.breach", where, message, informs=True)
    if not call.ran:
        return None
    if forbidden:
        message = f"{call.tool}: {call.status}, and forbidden: {lenient.reason}, rule {lenient.rule}"
        return Finding("policy.breach", where, message)
    if strict.answer is Answer.DENY:
        what = "arguments that were not recorded" if call.arguments is None else "how the tool is called elsewhere"
        message = f"{call.tool}: {call.status}; whether rule {strict.rule} forbids it depends on {what}"
        return Finding("policy.arguments_absent", where, message)
    if lenient.answer is Answer.ASK and call.decision != "approve":
        message = f"{call.tool}: {call.status} by {call.decision}, and rule {lenient.rule} asks for a person's decision"
        return Finding("approval.missing", where, message)
    return None


def _decisions(policy: Policy, call: Call) -> tuple[Decision, Decision]:
    """Return the most lenient and the strictest decision that a call can have had."""
    modes: tuple[Unseen, ...] = ("absent",) if call.arguments is not None else ("favours", "hinders")
    arguments = _texts(call.arguments) if call.arguments is not None else None
    decisions = [
        decide(policy, _act(call.tool, name), arguments, unseen=mode)
        for name in (call.tool, *_other_names(policy, call.tool))
        for mode in modes
    ]
    return min(decisions, key=_strictness), max(decisions, key=_strictness)


def _strictness(decision: Decision) -> Answer:
    return decision.answer


def _act(tool: str, name: str) -> Act:
    """Return an act of a tool that a policy looks at; names of other systems may be longer than ours."""
    unknown = "unknown"
    made = Tool.model_construct(name=tool, version=unknown, digest="unknown")
    return Act.model_construct(
        name=name, tool=made, access="unknown", arguments_digest="unknown", resource=unknown, environment=unknown
    )


def _texts(arguments: JsonObject) -> JsonObject:
    """Return arguments whose values a policy can look at: what our canonical JSON does not take is given as its text."""
    found: JsonObject = {}
    for name, value in arguments.items():
        try:
            canonical.encode({"": value})
            found[name] = value
        except CanonicalError:
            found[name] = stable_bytes(value).decode("utf-8")
    return found


def _other_names(policy: Policy, tool: str) -> tuple[str, ...]:
    """Return the names by which rules may mean an MCP tool that the model calls otherwise."""
    if not is_mcp_tool(tool):
        return ()
    names: list[str] = []
    for rule in (*(policy.allow or ()), *policy.deny):
        plugin, slash, rest = rule.name.partition("/")
        if not is_literal(rule.name):
            if slash and is_literal(plugin):
                names += [f"{plugin}/{tool}", f"{plugin}/{tool.removeprefix(plugin + '_')}"]
        elif tool in {_ALIASED.sub("_", rule.name), rest}:
            names.append(rule.name)
    return tuple(dict.fromkeys(names))


def recheck_budget(limits: Iterable[Limit], result: Result) -> tuple[Finding, ...]:
    """Return the limits that the execution passed, and those of which its result says nothing."""
    spent = {**result.usage, "tool_calls": sum(call.ran for call in result.calls), "usd_micro": result.cost.usd_micro}
    findings: list[Finding] = []
    for limit in limits:
        amount = spent.get(limit.meter)
        if amount is None:
            code = "budget.time_unknown" if limit.meter == DURATION else "budget.basis_unknown"
            findings.append(Finding(code, limit.meter, "the result does not say how much there was"))
        elif amount > limit.limit + (limit.grace or 0):
            findings.append(Finding("budget.overspent", limit.meter, f"got {amount}, expected at most {limit.limit}"))
        elif limit.meter == "usd_micro" and result.unmetered_requests:
            message = f"{result.unmetered_requests} requests reported no cost"
            findings.append(Finding("budget.basis_unknown", limit.meter, message))
    return tuple(findings)
