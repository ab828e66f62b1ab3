"""The columns beside each document, held against it: ctrlrun finds receipts by them, and its chain covers none of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ledger.errors import clip
from verify.foreign.ctrlrun.tables import ReceiptRow, text
from verify.report import MAX_FINDINGS, Report

__all__ = ["Columns"]

_COMPARED: Final = ("receipt_id", "action_id", "effect_key", "result")


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
        for name, found in (
            ("receipt_id", receipt_id),
            ("action_id", action_id),
            ("effect_key", effect_key),
            ("result", result),
            ("prev_hash", prev_hash),
        ):
            if name in self._names:
                said = value.get(name)
                if (None if found is None else text(found) or clip(found)) != said:
                    self._strangers += name == "receipt_id"
                    self.add(where, f"column {name} holds {clip(text(found))}, the document {clip(said)}")
                    return
        finished_at = value.get("finished_at")
        if "ts" in self._names and not _same_time(text(ts), finished_at):
            self.add(where, f"column ts holds {clip(text(ts))}, the document finished at {clip(finished_at)}")

    def add(self, where: str, message: str) -> None:
        """Take what is wrong with a row."""
        if len(self._wrong) < MAX_FINDINGS:
            self._wrong.append((where, message))
        else:
            self._more += 1

    def finish(self, report: Report) -> None:
        """Report on all that was taken."""
        if not self._names & {"ts", "prev_hash", *_COMPARED}:
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


def _same_time(column: str | None, said: object) -> bool:
    """Return whether a column of microseconds and a member of milliseconds name one moment."""
    if column is None or type(said) is not str:
        return column is None and said is None
    if column[:23] == said[:23]:
        return True
    try:
        moment, other = datetime.fromisoformat(column), datetime.fromisoformat(said)
        return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000) == other
    except (ValueError, TypeError):
        return False
