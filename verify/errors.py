"""Errors of the verifier."""

from __future__ import annotations

from ledger.errors import LedgerError

__all__ = ["ApartError", "ProofError", "TrustError"]


class ApartError(LedgerError):
    """A stretch of a ledger that cannot be judged apart from what stands before it; it says nothing about the evidence."""

    code = "report.apart"


class ProofError(LedgerError):
    """A merkle proof that does not prove what it was given for.

    `proof.malformed`: it cannot be a proof for these sizes. `proof.inclusion`, `proof.consistency`: it leads to another root.
    """

    code = "proof.malformed"


class TrustError(LedgerError):
    """A trust file that must not be used, or a pin that contradicts one already there."""

    code = "trust.malformed"
