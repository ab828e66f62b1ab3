"""What an index says of itself: the rows of `index_state` and `checks`, from the verdict."""

from __future__ import annotations

from ledger.index.columns import Row
from ledger.index.schema import SCHEMA_VERSION
from ledger.index.session import Source
from ledger.storage.clock import now
from ledger.version import VERSION
from verify.report import Check, Verdict

__all__ = ["check_rows", "state_row"]


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
