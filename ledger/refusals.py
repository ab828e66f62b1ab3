"""What a call that is not admitted raises: nothing ran, and the ledger says why.

Source: docs/spec/rules/README.md.
"""

from __future__ import annotations

from typing import Final

from ledger.errors import AdmissionError
from ledger.rules.budget import Refused
from ledger.words import Reason

__all__ = ["Blocked", "Happened", "Waiting"]


class Blocked(AdmissionError):  # noqa: N818  what is blocked is no fault
    """An act that a rule did not admit: nothing ran, and a `decision` in the ledger says why."""

    code = "rule.refused"

    def __init__(
        self, reason: Reason, message: str, *, refused: Refused | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, code=str(reason), hint=hint)
        self.reason: Final = reason
        self.refused: Final = refused
        """The meter, limit and amounts, where a budget refused it."""
        self.decision: str | None = None
        """Receipt id of the decision, once it is recorded."""


class Waiting(Blocked):
    """An act that waits for an approval. Its run stays open: once the answer is there, the same call in the same run goes on."""

    def __init__(self, message: str, *, refused: Refused | None = None, request: str | None = None) -> None:
        super().__init__(
            Reason.APPROVAL_REQUIRED,
            message,
            refused=refused,
            hint="`ledger pending` shows it, `ledger approve` answers it",
        )
        self.decision = request

    @property
    def request(self) -> str | None:
        """Receipt id of the waiting decision: what an approval answers."""
        return self.decision


class Happened(Blocked):
    """An act whose effect is committed: it does not run again, nothing is charged, and its result is on record."""

    def __init__(self, message: str, *, settled_by: str | None, same_act: bool) -> None:
        super().__init__(Reason.EFFECT_COMMITTED, message)
        self.settled_by: Final = settled_by
        """Receipt id of the outcome or the resolution that says so."""
        self.same_act: Final = same_act
        """Whether the act proposed now is the very one that ran."""
