"""An index that is up to date: what was done for that, and what it says of itself, the rows of `index_state` and `checks`."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.digest import digest
from ledger.index.columns import Row
from ledger.index.schema import SCHEMA_VERSION
from ledger.index.session import Source
from ledger.storage.clock import now
from ledger.version import VERSION
from verify.report import Check, Verdict
from verify.trust import Trust

__all__ = ["ChangedError", "Indexed", "check_rows", "note_digest", "state_row", "trust_digest"]


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index that is up to date, and what was done for that: `nothing`, `caught up` or `made`.

    `problem` says why it will be made anew the next time, None where it will not. `said` is what it says of itself where it was
    written just now: its row of `index_state`, and code and exit of each check.
    """

    source: Source
    done: str
    problem: str | None = None
    said: tuple[Row, list[tuple[str | None, int]]] | None = None


class ChangedError(Exception):
    """Other bytes were found than those that were verified."""


def state_row(verdict: Verdict, source: Source, *, size: int, left_out: int) -> Row:
    """Return the row of `index_state`.

    Args:
        verdict: on the whole ledger.
        source: the index.
        size: entries that are indexed, but for those left out.
        left_out: how many of them are not.
    """
    checks = {name: [each for each in verdict.checks if each.name == name] for name in ("log key", "issuers", "memory")}
    head = verdict.head
    memory = checks["memory"]
    return {
        "ledger": source.ledger,
        "status": verdict.status,
        "exit": verdict.exit,
        "head_size": None if head is None else head.size,
        "head_root": None if head is None else f"sha256:{head.root.hex()}",
        "first_index": 0,
        "end_index": size,
        "left_out": left_out,
        "log_pinned": _all_ok(checks["log key"]),
        "issuers_pinned": _all_ok(checks["issuers"]),
        "memory": next((each.code for each in memory if each.code is not None), memory[0].status if memory else None),
        "trust_source": None if verdict.trust is None else verdict.trust.source,
        "trust_digest": None if verdict.trust is None else verdict.trust.digest,
        "verified_at": now().removesuffix("Z"),
        "folder": str(source.folder),
        "schema_version": SCHEMA_VERSION,
        "program_version": VERSION,
    }


def check_rows(verdict: Verdict, ledger: str) -> list[Row]:
    """Return the rows of `checks`."""
    return [
        {
            "ledger": ledger,
            "check": each.name,
            "status": each.status,
            "code": each.code,
            "place": each.where,
            "message": each.message or None,
            "count": each.count,
            "asked": each.asked,
            "exit": each.exit,
        }
        for each in verdict.checks
    ]


def _all_ok(checks: list[Check]) -> bool:
    return bool(checks) and all(each.status == "ok" for each in checks)


def trust_digest(trust: Trust | None) -> str:
    """Return the digest of a trust file, empty for none."""
    return "" if trust is None else trust.digest


def note_digest(note: bytes | None) -> str:
    """Return the digest of what is remembered of a ledger, empty for nothing."""
    return "" if note is None else digest(note)
