"""What a notary refuses, each with the HTTP status that says so."""

from __future__ import annotations

from ledger.errors import LedgerError, StorageError

__all__ = ["NotaryError", "RefusedError"]


class RefusedError(LedgerError):
    """A request that is refused; `status` is the HTTP status, `size` the remembered size where that is what differs."""

    code = "notary.refused"

    def __init__(self, message: str, *, status: int, code: str, size: int | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.size = size
        self.origin_hash: str | None = None
        """Where a proof of equivocation may be kept, for a head that contradicts the remembered one."""


class NotaryError(StorageError):
    """A notary's folder that cannot be used: absent, in use, or with an old copy of its memory."""

    code = "notary.error"
