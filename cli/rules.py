"""What the command line reads for the rules: policy documents, arguments and receipts that a ledger's folder keeps."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.errors import LedgerError, NotFoundError
from ledger.receipt import Intent
from ledger.rules.hold_replay import line_from
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.reader import Reader
from verify.rules import RuleSources, approvers_of
from verify.trust import Trust

__all__ = ["sources_of"]


def sources_of(folder: Path, trust: Trust | None) -> RuleSources:
    """Return what rules are re-proved with besides receipts; what is not there, or is not what it is named by, is absent."""
    store = ArtifactStore(folder)

    def document_of(name: str) -> bytes | None:
        try:
            data = store.get(name)
        except (LedgerError, OSError):
            return None
        return data if digest(data) == name else None

    def arguments_of(intent: Intent) -> JsonObject | None:
        for each in intent.artifacts:
            if each.digest == intent.act.arguments_digest:
                try:
                    return canonical.decode(store.content(each), max_bytes=1 << 30)
                except (LedgerError, OSError):
                    return None
        return None

    @cache
    def reader() -> Reader:
        return Reader(folder)

    def payload_of(id_: str) -> bytes | None:
        try:
            return reader().get(id_).envelope.payload
        except NotFoundError:
            return None
        except (LedgerError, OSError):
            return b""

    return RuleSources(approvers_of(trust), document_of, arguments_of, line_from(payload_of))
