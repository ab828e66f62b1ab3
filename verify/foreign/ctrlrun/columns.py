"""The columns beside each document, held against it: ctrlrun finds receipts by them, and its chain covers none of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ledger.errors import clip
from verify.foreign.ctrlrun.tables import ReceiptRow, text
from verify.report import MAX_FINDINGS, Report

__all__ = ["Columns"]

_COMPARED: Final = ("receipt_id", "action_id", "effect_key", "result", "prev_hash")


class Columns:
    """Takes rows with their documents, and reports on the columns that do not say what the document says."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._rows = 0
        self._strangers = 0
        self._wrong: list[tuple[str, str]] = []
        self._more = 0

    def row(self, where: str, row: ReceiptRow, value: dict[str, Any]) -> None:
        """Take a row and the document that it holds."""
        self._rows += 1
        _, _, _, receipt_id, action_id, effect_key, result, ts, prev_hash = row
        found = (receipt_id, action_id, effect_key, result, prev_hash)
        said = _said(value)
        if found != said:
            for name, column, member in zip(_COMPARED, found, said, strict=True):
                if column != member and name in self._names:
                    self._strangers += name == "receipt_id"
                    self.add(where, f"column {name} holds {_shown(column)}, the document {_shown(member)}")
                    return
        finished_at = value.get("finished_at")
        if type(ts) is bytes and type(finished_at) is str and ts[:23] == finished_at[:23].encode("utf-8", "replace"):
            return
        if not _same_time(ts, finished_at) and "ts" in self._names:
            self.add(where, f"column ts holds {clip(text(ts))}, the document finished at {clip(finished_at)}")

    def add(self, where: str, message: str) -> None:
        """Take what is wrong with a row."""
        if len(self._wrong) < MAX_FINDINGS:
            self._wrong.append((where, message))
        else:
            self._more += 1

    def finish(self, report: Report) -> None:
        """Report on all that was taken."""
        if not self._names & {"ts", *_COMPARED}:
            return
        report.ran("columns", self._rows)
        if self._strangers == self._rows > 1:
            # Documents and columns of two stores: nobody edited a column, and no lookup by one can be relied on.
            said = "no row has the columns of its document: they are those of other receipts"
            report.find("columns", "ctrlrun.columns_of_others", message=said, count=self._rows)
            return
        for where, message in self._wrong:
            report.find("columns", "ctrlrun.column", where=where, message=message)
        if self._more:
            report.find("columns", "ctrlrun.column", message="more rows", count=self._more)


def _said(value: dict[str, Any]) -> tuple[object, ...]:
    """Return the members that stand in columns too, as a store holds them."""
    get = value.get
    members = (get("receipt_id"), get("action_id"), get("effect_key"), get("result"), get("prev_hash"))
    try:
        # Nearly always all but the effect key are text.
        a, b, c, d, e = members
        return (a.encode(), b.encode(), None if c is None else c.encode(), d.encode(), e.encode())  # type: ignore[union-attr]
    except (AttributeError, UnicodeEncodeError):
        return tuple(each.encode("utf-8", "surrogatepass") if type(each) is str else each for each in members)


def _shown(column: object) -> str:
    return clip(text(column) if isinstance(column, bytes) else column)


def _same_time(column: object, said: object) -> bool:
    """Return whether a column of microseconds and a member of milliseconds name one moment."""
    found = text(column)
    if found is None or type(said) is not str:
        return found is None and said is None
    try:
        moment, other = datetime.fromisoformat(found), datetime.fromisoformat(said)
        return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000) == other
    except (ValueError, TypeError):
        return False
