"""The user's trust file and memory: read for the verifier, changed only when the user asks."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cli.options import Shared
from cli.text import say
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

    Both are notes under the log key; the verifier checks that before it believes either. A file that is there and is no note is
    returned as it is: what was remembered is lost, and the verifier says so. Only where a file cannot be read at all is that
    said here, and nothing is remembered.
    """
    newest: tuple[int, bytes] | None = None
    for path in (places.memory_file(origin), places.register_file(origin)):
        try:
            note = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            say(f"what is remembered of this ledger cannot be read: {error.strerror}: {path}")
            continue
        if not note.strip(b"\0"):
            continue  # what a loss of power leaves
        try:
            size = head_of(note).size
        except LedgerError:
            return note
        if newest is None or size > newest[0]:
            newest = (size, note)
    return newest[1] if newest else None


def write_memory(places: Places, origin: str, note: bytes, *, seen: bytes | None) -> str | None:
    """Remember a verified head; return what went wrong, None where nothing did: a folder that cannot be written is no fault.

    `seen` is what `read_memory` gave before: where another process has remembered something else since, that stays, since no
    proof joins the two.
    """
    path = places.memory_file(origin)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path.parent / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if read_memory(places, origin) == seen:
                replace(path, note, mode=0o600, durable=False)
        finally:
            os.close(descriptor)
    except (OSError, LedgerError) as error:
        return str(error)
    return None
