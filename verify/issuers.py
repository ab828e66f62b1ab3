"""Issuers that receipts name, each with where it was seen and the roles in which it must be pinned."""

from __future__ import annotations

from typing import Final

from ledger.facts import Facts

__all__ = ["Issuers", "role_of"]

_ROLES: Final = {"approval": "approver", "key": ""}


class Issuers:
    """Issuers that were seen: each (name, key) has a number, its roles, and the indices of its first and last receipt."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], int] = {}
        self.first: list[int] = []
        self.last: list[int] = []
        self.roles: list[set[str]] = []

    def join(self, other: Issuers) -> list[int]:
        """Add the issuers that were seen after these; return the number here of each of them."""
        numbers = []
        for known, theirs in other.numbers.items():
            first, last, roles = other.first[theirs], other.last[theirs], other.roles[theirs]
            number = self.numbers.get(known)
            if number is None:
                number = self.numbers[known] = len(self.last)
                self.first.append(first)
                self.last.append(last)
                self.roles.append(set(roles))
            else:
                self.first[number] = min(self.first[number], first)
                self.last[number] = max(self.last[number], last)
                self.roles[number] |= roles
            numbers.append(number)
        return numbers

    def see(self, facts: Facts, index: int) -> int:
        """Return the number of a receipt's issuer, which is seen at an index."""
        known = facts.name, facts.key
        number = self.numbers.get(known)
        if number is None:
            number = self.numbers[known] = len(self.last)
            self.first.append(index)
            self.last.append(index)
            self.roles.append({role_of(facts.kind)})
            return number
        # Plain comparisons: this is done once for each receipt of a ledger.
        if index > self.last[number]:
            self.last[number] = index
        elif index < self.first[number]:
            self.first[number] = index
        role, roles = _ROLES.get(facts.kind, "issuer"), self.roles[number]
        if role not in roles:
            roles.add(role)
        return number


def role_of(kind: str) -> str:
    """Return the role in which an issuer of this kind of receipt must be pinned; empty where the keyring decides."""
    return _ROLES.get(kind, "issuer")
