"""A timestamp (RFC 3161) of the newest head: asked for, checked under the pinned certificate, kept beside the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.options import program_name
from ledger.checkpoint import head_of
from ledger.errors import LedgerError
from ledger.note import parse_note
from ledger.storage.counterseals import CounterSeals
from ledger.storage.reader import Reader
from notary.client import post_timestamp
from verify.timestamp import judge_token, timestamped_bytes
from verify.trust import Trust

__all__ = ["Stamped", "stamp"]


@dataclass(frozen=True, slots=True)
class Stamped:
    """A token that was checked and kept: who gave it, the time that it proves, the size of the head, and the file."""

    authority: str
    time: str
    size: int
    path: Path

    def to_value(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {"by": self.authority, "time": self.time, "size": self.size, "file": str(self.path)}


def stamp(folder: Path, url: str, trust: Trust | None) -> Stamped:
    """Return a timestamp over a ledger's newest head.

    Raises:
        LedgerError: no authority is pinned, none answered, or the answer does not hold; nothing is kept.
    """
    try:
        import rfc3161_client as rfc3161  # noqa: PLC0415  an extra
    except ImportError as error:
        raise LedgerError(
            "timestamp: the extra is not installed", code="timestamp.absent", hint="install receipt-ledger[timestamp]"
        ) from error
    if trust is None or not trust.timestamps:
        raise LedgerError(
            "timestamp: no authority is pinned, so no answer could be checked",
            code="usage.timestamp",
            hint=f"{program_name()} trust add NAME --role timestamp --certificate FILE",
        )
    note = Reader(folder).note()
    head = head_of(note)
    covered = timestamped_bytes(parse_note(note), head.origin)
    request = (
        rfc3161.TimestampRequestBuilder()
        .data(covered)
        .hash_algorithm(rfc3161.HashAlgorithm.SHA256)
        .nonce(nonce=True)
        .cert_request(cert_request=True)
        .build()
    )
    try:
        response = rfc3161.decode_timestamp_response(post_timestamp(url, request.as_bytes()))
        granted = response.status in {0, 1}
        token = bytes(response.time_stamp_token()) if granted else b""
        repeated = granted and response.tst_info.nonce == request.nonce
    except ValueError as error:
        raise LedgerError(f"timestamp: {url}: the answer cannot be read: {error}", code="timestamp.answer") from error
    if not granted:
        raise LedgerError(f"timestamp: {url}: refused with status {response.status}", code="timestamp.refused")
    if not repeated:
        raise LedgerError(f"timestamp: {url}: it does not repeat the number that was sent", code="timestamp.answer")
    found = judge_token(token, covered, trust)
    if found.code is not None:
        raise LedgerError(f"timestamp: {url}: {found.message}", code=found.code)
    path = CounterSeals(folder).put_timestamp(note, token)
    return Stamped(found.name, found.time, head.size, path)
