"""The grants of a ledger as they stand: read from its journal by whoever may read it, for a person to look at.

Source: docs/spec/rules/authority.md.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ledger.errors import LedgerError
from ledger.receipt import Grant, parse_receipt
from ledger.rules.grant import Uncovered, stands
from ledger.rules.grant_replay import GrantReplay
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.journal import Stored
from ledger.storage.reader import Reader
from ledger.storage.search import holding

__all__ = ["Listed", "grants_in"]


class Listed(NamedTuple):
    """A grant as a list shows it: its receipt, where it stands, and why nothing runs under it; None where something may."""

    stored: Stored
    receipt: Grant
    fallen: Uncovered | None


def grants_in(folder: Path, *, at: str) -> list[Listed]:
    """Return every grant of a ledger that was given or narrowed, oldest first, as it stands at a time.

    Nothing is verified here, and what does not parse is left out: both are for `verify` to say.
    """
    artifacts = ArtifactStore(folder)

    def document_of(digest: str) -> bytes | None:
        try:
            return artifacts.get(digest)
        except (LedgerError, OSError):
            return None

    replay = GrantReplay(document_of)
    found: list[tuple[Stored, Grant]] = []
    for stored in holding(folder, b'"kind":"grant"', stop=Reader(folder).head().size):
        with suppress(LedgerError):
            receipt = parse_receipt(stored.envelope.payload)
            if isinstance(receipt, Grant):
                entry = stored.entry
                replay.see(entry.index, entry.receipt, receipt, now=entry.recorded_at)
                found.append((stored, receipt))
    return [
        Listed(stored, receipt, stands(replay.line(stored.entry.receipt), replay.revoked, now=at))
        for stored, receipt in found
        if receipt.action != "revoked"
    ]
