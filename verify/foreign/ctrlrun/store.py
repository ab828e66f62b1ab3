"""A store of ctrlrun, judged from its rows.

Source: docs/how-to/ctrlrun.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ledger.errors import clip
from verify.foreign import Judgement
from verify.foreign.ctrlrun.anchors import Anchors
from verify.foreign.ctrlrun.chain import Chain, Hash, Head
from verify.foreign.ctrlrun.columns import Columns
from verify.foreign.ctrlrun.prune import Prune
from verify.foreign.ctrlrun.receipts import Receipts
from verify.foreign.ctrlrun.received import Received
from verify.foreign.ctrlrun.reconcile import Reconciliation
from verify.foreign.ctrlrun.tables import ReceiptRow, Tables, integer, text
from verify.foreign.ctrlrun.words import GENESIS
from verify.report import Coverage, Report

__all__ = ["judge_store"]


def judge_store(tables: Tables, *, kind: str = "store", received: Iterable[bytes] = ()) -> Judgement:
    """Return the judgement on a store.

    Args:
        tables: the store.
        kind: `store`, or `rows` where only the rows of `receipts` are at hand, so that no head ends them.
        received: receipts of this or of any other store, as a ledger received them: those of this one must be in it.
    """
    report = Report()
    report.expect("chain", "head", "documents", "action hashes", "places", "columns")
    checkpoint = _head_of(report, tables, "prune_checkpoint")
    anchors = Anchors(tables.rows("anchors"), checkpoint)
    meeting, prune = Reconciliation(), Prune(checkpoint)

    def seen(value: dict[str, Any], seq: int | None) -> None:
        meeting.receipt(value, seq)
        prune.receipt(value, seq)

    receipts = Receipts(report, Chain(checkpoint), meeting.receipt if checkpoint is None else seen)
    columns = Columns(tables.columns)
    outside = Received(received, checkpoint)
    count = 0
    for row in tables.receipts():
        count += 1
        _take(row, count, receipts, anchors, columns, hashed="hash" in tables.columns)
        if outside:
            outside.place(receipts.chain)
    chain = receipts.chain
    if kind == "rows":
        report.find("head", "foreign.end_unknown", message="no head is at hand: rows cut off the end leave no trace")
    else:
        chain.end(_head_of(report, tables, "receipt_chain") if tables.has("receipt_chain") else (0, GENESIS))
        report.ran("head")
        meeting.meet(report, tables, checkpoint)
    native = receipts.finish(kind)
    columns.finish(report)
    anchors.finish(report)
    outside.finish(report)
    prune.finish(report)
    for fault in tables.faults:
        report.find("store", "foreign.unreadable", message=fault)
    if not count and not report.failed("store"):
        report.find("subject", "coverage.empty", message="the store holds no receipt")
    report.find(
        "signature", "foreign.unsigned", message="nobody's signature says whose store this is", count=max(count, 1)
    )
    note = f"{chain.verified} of {chain.chained} receipts verified by ctrlrun's rules, {chain.unchained} unchained"
    return Judgement(native, report, Coverage(0, count, count), (note,))


def _take(
    row: ReceiptRow, number: int, receipts: Receipts, anchors: Anchors, columns: Columns, *, hashed: bool
) -> None:
    seq, data, hash_, *_ = row
    if seq is not None and type(seq) is not int:
        receipts.unreadable = "place"
        columns.add(f"row {number}", f"column seq holds {clip(text(seq) or seq)}, no integer")
        return
    where = f"row {number}" if seq is None else f"seq {seq}"
    stored: Hash = (
        (hash_.decode("utf-8", "backslashreplace") if type(hash_) is bytes else _hash(hash_)) if hashed else False
    )
    value = receipts.take(where, data if type(data) is bytes else None, seq=seq, stored=stored)
    if seq is not None and anchors.count:
        anchors.place(seq, text(hash_))
    if value is not None:
        columns.row(where, row, value)


def _hash(value: object) -> str | None:
    """Return a stored hash, None only where the column is empty: what is no text is a hash that nothing has."""
    return None if value is None else text(value) or clip(value)


def _head_of(report: Report, tables: Tables, table: str) -> Head | None:
    for row in tables.rows(table):
        seq, hash_ = integer(row.get("seq")), text(row.get("hash"))
        if seq is not None and hash_ is not None:
            return seq, hash_
        report.find("head", "foreign.malformed", where=table, message=f"{table} holds no place and hash")
    return None
