"""Policies re-proved: a fold over receipts in chain order that finds an act which the policy in force forbids.

The policy of a run is the one that its opening names; its bytes come from the caller, by digest. Arguments come from the caller
too; where they are gone, the act is judged as leniently and as strictly as they could make it, and only what both say is said.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ledger.canonical import JsonValue
from ledger.receipt import Intent, Opening, Receipt
from ledger.rules.approval import Need
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.errors import PolicyError
from ledger.rules.narrowing import narrows
from ledger.rules.policy import Answer, Decision, Policy, decide
from ledger.rules.policy_file import parse_policy

__all__ = ["ArgumentsOf", "DocumentOf", "Judged", "PolicyReplay"]

DocumentOf = Callable[[str], bytes | None]
"""Digest -> the bytes of the document, None where they are not there."""
ArgumentsOf = Callable[[Intent], Mapping[str, JsonValue] | None]
"""Intent -> all arguments of its act, None where they are not there."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a policy says of one receipt: findings, the approvals that it needs, and whether that is all that can be said."""

    findings: tuple[Finding, ...] = ()
    need: Need | None = None
    known: bool = False


_NOTHING = Judged()


class PolicyReplay:
    """Policies of the runs of one ledger, folded over its receipts."""

    def __init__(self, document_of: DocumentOf, arguments_of: ArgumentsOf) -> None:
        self._document_of = document_of
        self._arguments_of = arguments_of
        self._policies: dict[str, str] = {}
        """Run -> the digest of its policy; kept after the close, since a run may go on from it."""
        self._read: dict[str, Policy | Doubt] = {}

    def state(self) -> dict[str, str]:
        """Return the state to go on from: the digest of each run's policy."""
        return dict(self._policies)

    def resume(self, state: Mapping[str, str]) -> None:
        """Go on from a state."""
        self._policies |= state

    def rules(self, run: str) -> bool:
        """Return whether a run was opened under a policy."""
        return run in self._policies

    def see(self, index: int, id_: str, receipt: Receipt) -> Judged:
        """Return what one receipt shows, and take it into account. Receipts come in chain order, each once."""
        match receipt:
            case Opening():
                return self._open(index, id_, receipt)
            case Intent():
                return self._intend(index, receipt)
            case _:
                return _NOTHING

    def _open(self, index: int, id_: str, opening: Opening) -> Judged:
        if opening.policy is not None:
            self._policies[id_] = opening.policy
        findings: list[Finding] = []
        for before, word in ((opening.continues, "goes on"), (opening.parent_opening, "is part of a run")):
            old = self._policies.get(before) if before is not None else None
            if old is None or old == opening.policy:
                continue
            if opening.policy is None:
                findings.append(Breach("policy.widened", index, f"the run {word} under a policy and names none"))
                continue
            wide, narrow = self._policy(old, index), self._policy(opening.policy, index)
            if isinstance(wide, Policy) and isinstance(narrow, Policy):
                if not narrows(wide, narrow):
                    findings.append(Breach("policy.widened", index, f"the run {word} under a policy that allows less"))
            else:
                findings.extend(each for each in (wide, narrow) if isinstance(each, Doubt))
        return Judged(tuple(findings))

    def _intend(self, index: int, intent: Intent) -> Judged:
        digest = self._policies.get(intent.run)
        if intent.policy != digest:
            message = f"policy: got {_short(intent.policy)}, expected {_short(digest)}"
            return Judged((Breach("policy.other", index, message),))
        if digest is None:
            return _NOTHING
        policy = self._policy(digest, index)
        if isinstance(policy, Doubt):
            return Judged((policy,))
        arguments = self._arguments_of(intent)
        if arguments is not None:
            return _judge(index, intent, decide(policy, intent.act, arguments))
        inline = intent.act.arguments or {}
        lenient = decide(policy, intent.act, inline, unseen="favours")
        strict = decide(policy, intent.act, inline, unseen="hinders")
        if lenient == strict or (not lenient.runs and lenient.answer is strict.answer):
            return _judge(index, intent, lenient)
        doubt = Doubt(
            "policy.arguments_absent", index, f"{lenient.answer.name.lower()} or {strict.answer.name.lower()}"
        )
        if lenient.answer is Answer.ASK and not lenient.observed:
            # It needs an approval at least; whether it is forbidden is not known.
            return Judged((doubt,), _judge(index, intent, lenient).need)
        return Judged((doubt,))

    def _policy(self, digest: str, index: int) -> Policy | Doubt:
        found = self._read.get(digest)
        if found is None:
            found = self._read[digest] = self._load(digest, index)
        return found if isinstance(found, Policy) else Doubt(found.code, index, found.message)

    def _load(self, digest: str, index: int) -> Policy | Doubt:
        data = self._document_of(digest)
        if data is None:
            return Doubt("policy.absent", index, f"policy {_short(digest)}: is not there")
        try:
            return parse_policy(data).policy
        except PolicyError as error:
            return Doubt("policy.unreadable", index, str(error))


def _judge(index: int, intent: Intent, decision: Decision) -> Judged:
    if decision.observed:
        said = intent.would_have
        expected = "denied" if decision.answer is Answer.DENY else "waiting"
        if said is None or said.status != expected or said.reason != decision.reason:
            got = "nothing" if said is None else f"{said.status}, {said.reason}"
            message = f"would have: got {got}, expected {expected}, {decision.reason}"
            return Judged((Breach("policy.unrecorded", index, message),), known=True)
        return Judged(known=True)
    match decision.answer:
        case Answer.DENY:
            return Judged((Breach("policy.breach", index, f"{decision.reason}, rule {decision.rule}"),), known=True)
        case Answer.ASK:
            return Judged(need=need_of(intent, decision), known=True)
        case Answer.ALLOW:
            return Judged(known=True)


def need_of(intent: Intent, decision: Decision) -> Need:
    """Return what an act needs under a decision that asks."""
    return Need(
        act_digest=intent.act_digest,
        act_name=intent.act.name,
        run=intent.run,
        precondition=intent.act.precondition,
        policy=intent.policy,
        roles=decision.roles,
        needed=max(1, decision.needed),
        standing=decision.standing,
    )


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:15]
