"""Topics: which entries bear on one effect, one request, one approval, on authority, so that deciding reads these and no others.

A topic is a text; the state keeps the first eight bytes of its digest beside the places of its entries, so that two topics may
share places: whoever reads them looks at the receipts again.

Source: docs/spec/journal.md, "Derived files".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import orjson

from ledger.facts import Facts
from ledger.receipt import Approval, Decision, Receipt, parse_receipt
from ledger.storage.state import State

__all__ = [
    "GRANTED",
    "STANDING",
    "answers_to",
    "attempts",
    "attempts_of",
    "requests_for",
    "settles",
    "topics_of",
    "used",
    "waiting_in",
]

STANDING: Final = "standing"
"""Standing approvals."""
GRANTED: Final = "granted"
"""Grants, the intents under them, and what settles these; and some that settle others."""
_ATTEMPTS: Final = "attempts "
_WAITING: Final = b'"status":"waiting"'


def attempts_of(key: str) -> str:
    """Return the topic of the intents that attempt an effect."""
    return _ATTEMPTS + key


def settles(intent: str) -> str:
    """Return the topic of what settles an attempt: its outcome, and resolutions."""
    return f"settles {intent}"


def waiting_in(run: str) -> str:
    """Return the topic of the requests of a run."""
    return f"waiting {run}"


def requests_for(run: str, act_digest: str) -> str:
    """Return the topic of the requests for one act of a run."""
    return f"requests {run} {act_digest}"


def answers_to(request: str) -> str:
    """Return the topic of the answers to a request."""
    return f"answers {request}"


def used(approval: str) -> str:
    """Return the topic of the intents that use an approval."""
    return f"used {approval}"


def topics_of(state: State, facts: Facts, payload: bytes) -> tuple[str, ...]:
    """Return the topics of a receipt that comes next; most have none."""
    match facts.kind:
        case "intent" if facts.ruled:
            # Its facts were read, so these are the bytes of a lawful intent.
            intent = orjson.loads(payload)
            found = (attempts_of(intent["effect"]["key"]),) if "effect" in intent else ()
            granted = (GRANTED,) if "grant" in intent else ()
            return (*found, *granted, *map(used, intent.get("approvals", ())))
        case "outcome":
            pending = state.pending(facts.intent or "")
            return (settles(pending.id), GRANTED) if pending is not None and pending.attempts else ()
        case "resolution":
            return (settles(facts.intent or ""), GRANTED)
        case "grant":
            return (GRANTED,)
        case "decision" if _WAITING in payload:
            decision = _parsed(facts, payload)
            if isinstance(decision, Decision) and decision.status == "waiting":
                return (waiting_in(decision.run), requests_for(decision.run, decision.act_digest))
        case "approval":
            approval = _parsed(facts, payload)
            assert isinstance(approval, Approval)  # noqa: S101  its facts said so
            return (STANDING if approval.request is None else answers_to(approval.request),)
        case _:
            pass
    return ()


def attempts(topics: Collection[str]) -> bool:
    """Return whether a receipt with these topics attempts an effect, or acts under a grant: what settles it has topics too."""
    return any(topic == GRANTED or topic.startswith(_ATTEMPTS) for topic in topics)


def _parsed(facts: Facts, payload: bytes) -> Receipt:
    return facts.receipt or parse_receipt(payload)
