"""Terms of a grant: conditions on inline arguments, and whose approvals an act under it needs.

    {"schema": "receipt-ledger.terms/v1",
     "when": {"amount": {"le": 5000}, "currency": {"eq": "EUR"}},
     "approvals": [{"role": "finance", "needed": 1}, {"role": "security", "needed": 1}]}

- Conditions are those of a policy's `when`: one grammar, one evaluator.
- Duties are separate: an approver stands for one of them only.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.rules.condition import Condition, parse_conditions
from ledger.rules.document import read_object
from ledger.rules.errors import GrantError
from ledger.rules.shape import Shape

__all__ = ["NO_TERMS", "TERMS_SCHEMA", "Duty", "Terms", "TermsDocument", "parse_terms", "read_terms", "unfilled"]

TERMS_SCHEMA: Final = "receipt-ledger.terms/v1"
_SHAPE: Final = Shape("terms", GrantError)
_MOST_NEEDED: Final = 100


@dataclass(frozen=True, slots=True)
class Duty:
    """How many approvers of one role an act needs."""

    role: str
    needed: int = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """What a grant asks of each act, read."""

    when: tuple[Condition, ...] = ()
    duties: tuple[Duty, ...] = ()


NO_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class TermsDocument:
    """Terms with the canonical bytes that are kept, and their digest."""

    terms: Terms
    data: bytes
    digest: str


def read_terms(data: bytes) -> TermsDocument:
    """Return the terms of a file that a person wrote; white space and the order of members are free.

    Raises:
        GrantError: not JSON of this shape.
    """
    return parse_terms(canonical.encode(read_object(data, "terms", GrantError)))


def parse_terms(data: bytes) -> TermsDocument:
    """Return the terms whose canonical bytes are `data`.

    Raises:
        GrantError: not canonical, or not of this shape.
    """
    return TermsDocument(_terms_of(_SHAPE.canonical(data)), data, digest(data))


def unfilled(duties: Iterable[Duty], approvals: Sequence[tuple[str, str]]) -> Duty | None:
    """Return a duty that approvals (key, role) leave unfilled, None if all are filled by as many different keys as they need.

    Each key fills one place at most, whatever roles it approved in.
    """
    places = [duty for duty in duties for _ in range(duty.needed)]
    keys = list(dict.fromkeys(key for key, _ in approvals))
    willing = {(key, role) for key, role in approvals}
    holder: dict[int, str] = {}

    def fill(key: str, tried: set[int]) -> bool:
        """Return whether a key finds a place, moving others if that helps."""
        for number, duty in enumerate(places):
            if (key, duty.role) in willing and number not in tried:
                tried.add(number)
                if number not in holder or fill(holder[number], tried):
                    holder[number] = key
                    return True
        return False

    for key in keys:
        fill(key, set())
    return next((duty for number, duty in enumerate(places) if number not in holder), None)


def _terms_of(value: JsonObject) -> Terms:
    if value.get("schema") != TERMS_SCHEMA:
        raise _SHAPE.refuse("schema", value.get("schema"), TERMS_SCHEMA, code="grant.unknown")
    found = _SHAPE.members(value, "terms", required=("schema",), optional=("when", "approvals"))
    duties = []
    for place, each in enumerate(_SHAPE.items(found.get("approvals", []), "approvals")):
        at = f"approvals[{place}]"
        duty = _SHAPE.members(each, at, required=("role",), optional=("needed",))
        duties.append(
            Duty(_SHAPE.text(duty["role"], f"{at}.role"), _SHAPE.count(duty.get("needed", 1), f"{at}.needed", 100))
        )
    if len({duty.role for duty in duties}) != len(duties):
        raise GrantError("terms: approvals: got a role twice")
    if sum(duty.needed for duty in duties) > _MOST_NEEDED:
        raise GrantError(f"terms: approvals: got more than {_MOST_NEEDED} in all")
    return Terms(parse_conditions(_SHAPE, found.get("when", {}), "when"), tuple(duties))
