"""Policies while runs go on: which one a run is under, and what it decides about a call.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from ledger.canonical import JsonValue
from ledger.errors import LedgerError, NotFoundError
from ledger.members import Act
from ledger.receipt import Opening, parse_receipt
from ledger.rules.errors import PolicyError
from ledger.rules.narrowing import narrows
from ledger.rules.policy import DENY_MISSING, DENY_UNREADABLE, Decision, decide
from ledger.rules.policy_file import PolicyDocument, parse_policy, read_policy
from ledger.storage.ledger import Ledger

__all__ = ["decide_call", "policy_for"]

_read: dict[str, PolicyDocument] = {}
"""Documents that were read, by digest: the bytes behind a digest never change."""


def policy_for(
    ledger: Ledger, given: bytes | None, *, parent: str | None, continues: str | None
) -> PolicyDocument | None:
    """Return the policy of a run that is to be opened: the one given, else that of the run it is part of or follows.

    Raises:
        PolicyError: not a policy, one that allows more than the run before or above, or one there that cannot be read.
    """
    document = None if given is None else read_policy(given)
    for before, word in ((parent, "is part of"), (continues, "follows")):
        name = None if before is None else _policy_name(ledger, before)
        if name is None:
            continue
        try:
            old = _document(ledger, name)
        except LedgerError as error:
            raise PolicyError(f"policy: that of the run which this one {word} cannot be read: {error}") from error
        if document is None:
            document = old
        elif document.digest != old.digest and not narrows(old.policy, document.policy):
            raise PolicyError(
                f"policy: it is not shown to allow no more than that of the run which this one {word}",
                code="policy.widened",
            )
    return document


def decide_call(ledger: Ledger, name: str, act: Act, arguments: Mapping[str, JsonValue] | None) -> Decision:
    """Return what the policy of a digest decides about an act; one that is missing or unreadable denies."""
    try:
        policy = _document(ledger, name).policy
    except NotFoundError:
        return DENY_MISSING
    except LedgerError:
        return DENY_UNREADABLE
    return decide(policy, act, arguments)


def _document(ledger: Ledger, name: str) -> PolicyDocument:
    found = _read.get(name)
    if found is None:
        found = _read[name] = parse_policy(ledger.artifacts.get(name))
    return found


def _policy_name(ledger: Ledger, run: str) -> str | None:
    opening = parse_receipt(ledger.get(run).envelope.payload)
    return opening.policy if isinstance(opening, Opening) else None
