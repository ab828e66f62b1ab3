"""Chains of receipts for the rules: made in memory, one after another, and shown to a replay as they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ledger import receipt as kinds
from ledger.digest import digest
from ledger.members import Act, Actor, Adapter, Charge, Effect, Issuer, Limit, NextKeys, Producer, Tool
from ledger.receipt import Receipt, WouldHave, act_digest, parse_receipt, print_receipt
from ledger.rules.approval import Approver
from ledger.rules.replay import Replay
from ledger.words import Basis

ORIGIN = "ledger.invalid/rules"
ACTOR = Actor(agent="bot", user="unknown", model="unknown")


def key(name: str) -> str:
    return "ed25519:" + sha256(name.encode()).hexdigest()


def approver(name: str, *roles: str) -> tuple[str, Approver]:
    return name, Approver(key(name), roles)


def charges(amounts: dict[str, Any], member: str, basis: Basis | None = None) -> tuple[Charge, ...]:
    return tuple(
        Charge(meter=meter, basis=basis or (Basis.UNKNOWN if amount == "unknown" else Basis.QUOTED), **{member: amount})
        for meter, amount in amounts.items()
    )


def limits(amounts: dict[str, Any]) -> tuple[Limit, ...]:
    return tuple(
        Limit(meter=meter, **({"limit": limit} if isinstance(limit, int) else limit))
        for meter, limit in amounts.items()
    )


@dataclass
class Chain:
    """A chain under construction; `findings` holds what the replay said, entry by entry."""

    replay: Replay = field(default_factory=Replay)
    receipts: list[tuple[str, Receipt]] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)
    minute: int = 0
    """Minutes since noon of the next entry."""

    def codes(self) -> list[str]:
        return [each.code for each in self.findings]

    @property
    def now(self) -> str:
        return f"2026-11-30T{12 + self.minute // 60:02d}:{self.minute % 60:02d}:00.000Z"

    def add(self, kind: type, *, by: str = "issuer", **members: Any) -> str:
        made = kind(
            ledger=ORIGIN,
            issuer=Issuer(name=by, key=key(by)),
            issued_at=self.now,
            nonce=f"{len(self.receipts):032x}",
            producer=Producer(name="test", version="1"),
            **members,
        )
        payload = print_receipt(made)
        id_, index = digest(payload), len(self.receipts)
        # What is judged is what a verifier parses.
        parsed = parse_receipt(payload)
        self.receipts.append((id_, parsed))
        self.findings += self.replay.see(index, id_, parsed, recorded_at=self.now)
        return id_

    def header(self) -> str:
        return self.add(kinds.Header, format="receipt-ledger/v1", log_key=key("log"), next=NextKeys())

    def opening(self, budget: dict[str, Any] | None = None, **members: Any) -> str:
        adapter = Adapter(name="api", version="1", coverage="calls")
        return self.add(
            kinds.Opening, name="work", actor=ACTOR, adapter=adapter, limits=limits(budget or {}), **members
        )

    def act(self, run: str, *, effect: tuple[str, int] | None = None, **act: Any) -> dict[str, Any]:
        given = {
            "name": "refund",
            "access": "unknown",
            "arguments_digest": "unknown",
            "resource": "unknown",
            "environment": "unknown",
            **act,
        }
        made = Act(tool=given.pop("tool", None) or Tool(name=given["name"], version="1", digest="unknown"), **given)
        members: dict[str, Any] = {
            "run": run,
            "act": made,
            "act_digest": act_digest(made, ledger=ORIGIN, run=run, actor=ACTOR, effect_key=effect and effect[0]),
        }
        if effect is not None:
            members["effect"] = Effect(key=effect[0], attempt=effect[1])
        return members

    def intent(
        self,
        run: str,
        reserved: dict[str, Any] | None = None,
        *,
        effect: tuple[str, int] | None = None,
        act: dict[str, Any] | None = None,
        would_have: tuple[str, Any] | None = None,
        **members: Any,
    ) -> str:
        said = None if would_have is None else WouldHave(status=would_have[0], reason=would_have[1])
        return self.add(
            kinds.Intent,
            **self.act(run, effect=effect, **(act or {})),
            reserved=charges(reserved or {}, "reserved"),
            would_have=said,
            **members,
        )

    def outcome(
        self, run: str, intent: str, settled: dict[str, Any] | None = None, status: str = "committed", **members: Any
    ) -> str:
        duration_ms = members.pop("duration_ms", 0)
        return self.add(
            kinds.Outcome,
            run=run,
            intent=intent,
            status=status,
            charges=charges(settled or {}, "settled"),
            children=(intent,),
            duration_ms=duration_ms,
            **members,
        )

    def waiting(self, run: str, *, act: dict[str, Any] | None = None, **members: Any) -> str:
        given = {"reason": "approval.required", "status": "waiting", **members}
        return self.add(kinds.Decision, **self.act(run, **(act or {})), **given)

    def approval(self, request: str | None, /, *, by: str = "ada", answer: str = "granted", **members: Any) -> str:
        given: dict[str, Any] = {"role": "ops", "expires_at": "2026-11-30T23:00:00.000Z", "uses": 1}
        if request is not None:
            found = dict(self.receipts)[request]
            given |= {
                "request": request,
                "run": found.run,
                "act_digest": found.act_digest,
                "policy": found.policy,
                "precondition": found.act.precondition,
            }
        return self.add(kinds.Approval, by=by, answer=answer, **{**given, **members})

    def resolution(self, intent: str, happened: str, settled: dict[str, Any] | None = None) -> str:
        return self.add(
            kinds.Resolution,
            intent=intent,
            happened=happened,
            resolved_by="ada",
            charges=charges(settled or {}, "settled"),
        )

    def close(self, run: str, duration_ms: Any = 0, **members: Any) -> str:
        return self.add(kinds.Run, run=run, status="completed", duration_ms=duration_ms, children=(run,), **members)
