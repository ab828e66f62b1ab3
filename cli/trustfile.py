"""The user's trust file and memory: read for the verifier, changed only when the user asks."""

from __future__ import annotations

from pathlib import Path

from cli.options import Shared
from ledger.checkpoint import head_of
from ledger.errors import LedgerError, clip
from ledger.receipt import Header
from ledger.storage.durable import replace
from ledger.storage.places import Places
from verify.errors import TrustError
from verify.trust import IssuerPin, OriginPin, Trust, parse_trust, pin

__all__ = ["pin_ledger", "read_memory", "read_trust", "write_memory"]


def read_trust(options: Shared) -> Trust | None:
    """Return whom the user believes, None where there is no trust file.

    Raises:
        TrustError: a file that was named is not there, or the file is malformed.
    """
    path = options.trust or options.places.trust_file
    if not path.exists():
        if options.trust is not None:
            raise TrustError(f"trust: no file {clip(str(path))}", code="trust.absent")
        return None
    return parse_trust(path.read_bytes(), source=str(path))


def pin_ledger(header: Header, header_id: str, path: Path) -> Path:
    """Pin a ledger's log key, issuer key and header in a trust file, and return the file's path."""
    before = path.read_bytes() if path.exists() else b""
    after = pin(
        before,
        origin=OriginPin(name=header.ledger, log_key=header.log_key, header=header_id),
        issuer=IssuerPin(name=header.issuer.name, key=header.issuer.key),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, after, mode=0o600, durable=True)
    return path


def read_memory(places: Places, origin: str) -> bytes | None:
    """Return the newest head this machine remembers of an origin: verified, or written by itself.

    Both are notes under the log key; the verifier checks that before it believes either.
    """
    newest: tuple[int, bytes] | None = None
    for path in (places.memory_file(origin), places.register_file(origin)):
        try:
            note = path.read_bytes()
            size = head_of(note).size
        except (OSError, LedgerError):
            continue
        if newest is None or size > newest[0]:
            newest = (size, note)
    return newest[1] if newest else None


def write_memory(places: Places, origin: str, note: bytes) -> str | None:
    """Remember a verified head; return what went wrong, None where nothing did: a folder that cannot be written is no fault."""
    path = places.memory_file(origin)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, note, mode=0o600, durable=False)
    except (OSError, LedgerError) as error:
        return str(error)
    return None
