"""People who approve, for tests: a name, a key, roles; and their answers as they would come from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.answering import Asked, answers_of, standing_approval
from ledger.consent import refuse_answers, requests_of
from ledger.envelope import seal
from ledger.keys import PrivateKey
from ledger.members import Issuer
from ledger.receipt import parse_receipt, print_receipt
from ledger.recorder import opening_of
from ledger.rules.approval import Approver
from ledger.storage.clock import now

LATER = "2999-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class Person:
    name: str
    key: PrivateKey
    roles: tuple[str, ...] = ("ops",)

    @property
    def issuer(self):
        return Issuer(name=self.name, key=self.key.key)


def person(name, number, roles=("ops",)):
    return Person(name, PrivateKey.from_seed(bytes([number]) * 32), roles)


def trusting(*people):
    return {each.name: Approver(each.key.key, each.roles) for each in people}


def asked(ledger, request):
    decision = parse_receipt(ledger.get(request).envelope.payload)
    opening = opening_of(ledger, decision.run)
    return Asked(
        ledger=ledger.origin,
        request=request,
        run=decision.run,
        run_name=opening.name,
        actor=opening.actor,
        act=decision.act,
        act_digest=decision.act_digest,
        effect_key=decision.effect.key if decision.effect else None,
        policy=decision.policy,
        roles=decision.roles,
        needed=decision.needed or 1,
    )


def answer(ledger, request, by, word="granted", *, role=None, expires_at=LATER, checked=True, changed=None):
    """Append somebody's answer to a request; return its receipt id."""
    one = asked(ledger, request)
    (made,) = answers_of([one], by.issuer, role=role, roles=by.roles, answer=word, expires_at=expires_at)
    return put(ledger, made.model_copy(update=changed or {}), by, checked=checked)


def stand(ledger, by, pattern, uses, *, expires_at=LATER, **bound):
    """Append a standing approval; return its receipt id."""
    made = standing_approval(
        ledger.origin, by.issuer, pattern=pattern, uses=uses, expires_at=expires_at, role=by.roles[0], **bound
    )
    return put(ledger, made, by)


def put(ledger, approval, by, *, checked=True):
    envelope = seal(print_receipt(approval), by.key)

    def build(view):
        if checked:
            refuse_answers(ledger, view, [envelope], approvers={})
        return [envelope]

    return ledger.commit(build)[-1].receipt


def states(ledger, run, *people):
    found = []

    def look(view):
        found.extend(
            requests_of(
                ledger.reader,
                view.state,
                view.keyring,
                run,
                opening_of(ledger, run),
                approvers=trusting(*people),
                now=now(),
            )
        )

    ledger.look(look)
    return {each.id: str(each.state) for each in found}
