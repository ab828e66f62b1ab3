"""Runs as they are listed: read from the end of the journal, so that the newest ones cost the same however long the ledger is.

Receipts are read as the canonical text of a value and not checked against their models: a list is no verdict, and loading the models
takes longer than reading. Whatever is not as it should be is for `ledger verify` to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from ledger import canonical
from ledger.errors import LedgerError
from ledger.storage.journal import Stored
from ledger.storage.search import holding

__all__ = ["Filter", "payload_of", "run_rows"]

_OPENING: Final = b'"kind":"opening"'
_RUN: Final = b'"kind":"run"'
_DECISION: Final = b'"kind":"decision"'
_INTENT: Final = b'"kind":"intent"'
_REFUSED: Final = frozenset({"denied", "blocked"})


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs are listed; what is empty or None lets all through. Agents and tools may hold `*` and `?`."""

    after: int | None = None
    """Only runs whose opening stands after this index."""
    since: str | None = None
    until: str | None = None
    statuses: frozenset[str] = frozenset()
    correlation: tuple[tuple[str, str | None], ...] = ()
    """Names that must be there, each with its value or, None, with any."""
    agent: str | None = None
    tool: str | None = None

    def lets(self, row: dict[str, Any], tools: frozenset[str]) -> bool:
        """Return whether a run is listed, from its row and the tools and acts that it used."""
        given = row.get("correlation", {})
        return (
            (self.since is None or row["opened_at"] >= self.since)
            and (self.until is None or row["opened_at"] < self.until)
            and (not self.statuses or row["status"] in self.statuses)
            and (self.agent is None or fnmatchcase(row["agent"], self.agent))
            and (self.tool is None or any(fnmatchcase(name, self.tool) for name in tools))
            and all(name in given and value in {None, given[name]} for name, value in self.correlation)
        )


@dataclass(slots=True)
class _Below:
    """What was read of a run whose opening was not reached yet: reading goes backwards."""

    closing: tuple[Stored, dict[str, Any]] | None = None
    refused: int = 0
    tools: set[str] = field(default_factory=set)


def run_rows(
    folder: Path,
    size: int,
    wanted: Filter = Filter(),
    *,
    only: Collection[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield what is listed of each run among the first `size` entries, newest opening first; with `only`, of these runs."""
    left = None if only is None else set(only)
    needles = (_OPENING, _RUN, _DECISION, *((_INTENT,) if wanted.tool is not None else ()))
    below: dict[str, _Below] = {}
    segment, young = -1, True
    for stored in holding(folder, *needles, stop=size, newest_first=True):
        if stored.segment != segment:
            if not young:
                return  # a whole segment of openings is older than what is asked for
            segment, young = stored.segment, wanted.since is None
        value = payload_of(stored)
        kind = value.get("kind")
        if kind == "opening":
            seen = below.pop(stored.entry.receipt, None) or _Below()
            if wanted.after is not None and stored.entry.index <= wanted.after:
                return
            row = _row(stored, value, seen)
            young = young or row["opened_at"] >= (wanted.since or "")
            if (left is None or row["run"] in left) and wanted.lets(row, frozenset(seen.tools)):
                yield row
            if left is not None:
                left.discard(row["run"])
                if not left:
                    return
        elif kind in {"run", "decision", "intent"}:
            _note(below.setdefault(_text(value, "run"), _Below()), stored, value)


def payload_of(stored: Stored) -> dict[str, Any]:
    """Return the value of a receipt, an empty one where its bytes are not canonical JSON."""
    try:
        return dict(canonical.decode_for_schema(stored.envelope.payload))
    except LedgerError:
        return {}


def _note(seen: _Below, stored: Stored, value: dict[str, Any]) -> None:
    if value["kind"] == "run":
        # The last one counts, which is met first: an unlawful ledger may hold more.
        seen.closing = seen.closing or (stored, value)
    elif value["kind"] == "decision":
        seen.refused += value.get("status") in _REFUSED
    act = value.get("act")
    if isinstance(act, dict):
        tool = act.get("tool")
        seen.tools.add(_text(act, "name"))
        seen.tools.add(_text(tool, "name") if isinstance(tool, dict) else "")


def _row(stored: Stored, opening: dict[str, Any], seen: _Below) -> dict[str, Any]:
    """Return what is listed of a run: its closing receipt where it is closed, else its opening."""
    closing = {} if seen.closing is None else seen.closing[1]
    shown = stored.entry if seen.closing is None else seen.closing[0].entry
    actor = opening.get("actor")
    actor = actor if isinstance(actor, dict) else {}
    row: dict[str, Any] = {
        "index": shown.index,
        "receipt": shown.receipt,
        "kind": "opening" if seen.closing is None else "run",
        "run": stored.entry.receipt,
        "recorded_at": shown.recorded_at,
        "name": _text(opening, "name"),
        "status": "open" if seen.closing is None else _text(closing, "status"),
        "opened_at": _text(opening, "issued_at"),
        "agent": _text(actor, "agent"),
        "user": _text(actor, "user"),
        "refused": seen.refused,
    }
    for name in ("duration_ms", "reason", "totals"):
        if name in closing:
            row[name] = closing[name]
    if isinstance(opening.get("correlation"), dict):
        row["correlation"] = opening["correlation"]
    if "parent_opening" in opening:
        row["parent"] = opening["parent_opening"]
    return row


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
