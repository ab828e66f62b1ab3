"""Errors of the formats and the store.

Every error has a stable dotted `code`, a message that says what was found and what was expected, and, where a person can do
something, a `hint` that says what. Messages are lower case and end without a full stop.
"""

from __future__ import annotations

__all__ = [
    "AdmissionError",
    "AlreadyClosedError",
    "CanonicalError",
    "ConflictError",
    "DamagedError",
    "FormatError",
    "KeyFileError",
    "LedgerError",
    "LockError",
    "NotFoundError",
    "RegisterError",
    "SignatureError",
    "StorageError",
    "UnknownFormatError",
    "UnrememberedWarning",
    "clip",
]


def clip(value: object, limit: int = 80) -> str:
    """Return `repr(value)` cut to `limit` characters, safe to print: control characters are escaped by `repr`."""
    text = ascii(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


class LedgerError(Exception):
    """Root of every error raised on purpose."""

    code = "ledger.error"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, where: str | None = None
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.hint = hint
        self.where = where


class FormatError(LedgerError):
    """Bytes that are not an exact print of the format they claim to be."""

    code = "format.malformed"


class CanonicalError(FormatError):
    """A value or a text outside the canonical JSON profile; `where` is the path inside the document."""

    code = "canonical.refused"


class UnknownFormatError(LedgerError):
    """A well-formed document under a schema, kind, key prefix or payload type that this version does not know."""

    code = "format.unknown"


class SignatureError(LedgerError):
    """A signature that does not verify, or a key that must not be used."""

    code = "signature.invalid"


class StorageError(LedgerError):
    """The disk did not do what was asked: full, read-only, not a ledger, a newer format."""

    code = "storage.error"


class DamagedError(StorageError):
    """The journal is not what its commit marks say; nothing is appended and nothing is moved."""

    code = "journal.damaged"


class RegisterError(StorageError):
    """The journal is shorter than, or inconsistent with, the newest head this machine wrote."""

    code = "register.mismatch"


class LockError(StorageError):
    """The ledger's lock could not be taken."""

    code = "storage.locked"


class KeyFileError(StorageError):
    """A key file is missing, readable by others, malformed, or lies where a key must not lie."""

    code = "keyfile.refused"


class UnrememberedWarning(UserWarning):
    """A commit is durable, and this machine could not remember its head: the state folder cannot be written."""


class NotFoundError(LedgerError):
    """No such receipt, run, artifact or entry."""

    code = "subject.absent"


class ConflictError(LedgerError):
    """A receipt id that is already in the ledger under another envelope."""

    code = "receipt.conflict"


class AdmissionError(LedgerError):
    """A receipt that the rules of receipt trees do not let into the ledger."""

    code = "admission.refused"


class AlreadyClosedError(AdmissionError):
    """The run is closed: only a resolution may follow."""

    code = "run.closed"
