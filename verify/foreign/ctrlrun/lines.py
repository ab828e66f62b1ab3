"""Files of ctrlrun: sink files and dumped rows, a JSON object a line, and single documents.

| kind | a line of it |
|---|---|
| `receipt` | the whole file is one receipt document: it stands without its chain |
| `anchor` | the whole file is what an anchor freezes |
| `receipts` | a receipt document, as `JSONLEventSink` writes it and `ctrlrun receipts --json` prints it |
| `rows` | a row of the table `receipts`: the document as text under `json`, with the columns that were dumped |
| `events` | an event of a sink, or a row of the table `events` |
| `store` | the whole file is a SQLite database with the table `receipts` |
| `inspection` | the whole file is what `ctrlrun inspect --json` prints |
| `report` | the whole file is another report of ctrlrun's |

Lines end with LF and with nothing else: U+2028 stands inside strings. Several processes may write one sink, so lines of a chain may
stand in another order than their places; the walk goes by places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ledger.errors import StorageError
from verify.foreign import Judgement, Native, Recognised, strict
from verify.foreign.ctrlrun.chain import Chain
from verify.foreign.ctrlrun.document import faults_of, refusal_of
from verify.foreign.ctrlrun.reading import Reading, canonical_bytes, read
from verify.foreign.ctrlrun.receipts import Receipts
from verify.foreign.ctrlrun.store import judge_store
from verify.foreign.ctrlrun.tables import RECEIPT_COLUMNS, EffectRow, EventRow, ReceiptRow, Row
from verify.foreign.ctrlrun.words import EVENT_TYPES, RECEIPT_PREFIX
from verify.report import Coverage, Report

__all__ = ["judge_lines", "recognise"]

_LOOK_BYTES: Final = 1 << 20
_SCHEMA: Final = re.compile(r"ctrlrun\.[a-z._]{1,40}/[A-Za-z0-9.]{1,32}")
# Marks in a line that does not parse, so that damage in one place does not hide what the file was.
_RECEIPT_MARK: Final = re.compile(rb'^\s*\{.{0,4096}?"schema"\s*:\s*"(ctrlrun\.receipt/[A-Za-z0-9.]{1,32})"', re.DOTALL)
_ROW_MARK: Final = re.compile(rb'\\"schema\\"\s*:\s*\\"(ctrlrun\.receipt/[A-Za-z0-9.]{1,32})\\"')
_SQLITE: Final = b"SQLite format 3\0"
_TABLES: Final = re.compile(rb'CREATE TABLE "?receipts"?\s*\(\s*receipt_id\b|\{"schema":"ctrlrun\.receipt/v')
_OF_RECEIPTS: Final = frozenset({"receipt_id", "action_hash", "arguments", "decision"})
_ANCHOR: Final = "ctrlrun.anchor/v1"
_ANCHOR_KINDS: Final = ("interval", "checkpoint")
_UNKNOWN: Final = "unknown"
_INSPECTION: Final = "ctrlrun.inspection/"


def recognise(data: bytes) -> Recognised | None:
    """Return what a file is: the first line that shows it decides, so that damage in one does not hide the rest."""
    look = data[:_LOOK_BYTES]
    if look.startswith(_SQLITE):
        # The text of each table's definition, and of each receipt, stands in the file as it is.
        return Recognised("ctrlrun", "store", _UNKNOWN) if _TABLES.search(look) is not None else None
    whole = read(look)  # one document, printed over several lines or in one
    if whole.readable:
        found = _of_value(whole.value)
        return replace(found, kind="receipt") if found is not None and found.kind == "receipts" else found
    for line in strict.lines(look):
        reading = read(line.data)
        found = _of_value(reading.value) if reading.readable else _of_marks(line.data)
        if found is not None:
            return found
    return None


def _of_value(value: object) -> Recognised | None:
    """Return what an object shows itself to be."""
    if type(value) is not dict:
        return None
    schema = value.get("schema")
    if type(schema) is str and _SCHEMA.fullmatch(schema) is not None:
        if schema.startswith(RECEIPT_PREFIX):
            return Recognised("ctrlrun", "receipts", schema) if value.keys() & _OF_RECEIPTS else None
        return Recognised("ctrlrun", "inspection" if schema.startswith(_INSPECTION) else "report", schema)
    if value.get("domain") == _ANCHOR and value.keys() == {"domain", "hash", "kind", "seq"}:
        return Recognised("ctrlrun", "anchor", _ANCHOR)
    text = value.get("json")
    if type(text) is str and value.keys() & {"seq", "receipt_id"}:
        inner = _of_value(read(text.encode("utf-8", "surrogatepass")).value)
        if inner is not None and inner.kind == "receipts":
            return Recognised("ctrlrun", "rows", inner.version)
    type_ = value.get("type")
    if type(type_) is str and type_ in EVENT_TYPES and value.keys() >= {"event_id", "ts", "action_id"}:
        return Recognised("ctrlrun", "events", _UNKNOWN)
    return None


def _of_marks(line: bytes) -> Recognised | None:
    """Return what a line that shows nothing as a value shows by its marks."""
    receipt, row = _RECEIPT_MARK.match(line), _ROW_MARK.search(line)
    if receipt is not None:
        return Recognised("ctrlrun", "receipts", receipt[1].decode("ascii"))
    return None if row is None else Recognised("ctrlrun", "rows", row[1].decode("ascii"))


def judge_lines(data: bytes, found: Recognised) -> Judgement:
    """Return the judgement on a file that `recognise` knew."""
    match found.kind:
        case "receipts":
            return _judge_receipts(data)
        case "rows":
            return judge_store(_Dump(data), kind="rows")
        case "events":
            return _judge_events(data)
        case "store":
            return _judge_store_bytes(data, found)
        case "receipt" | "inspection":
            return _judge_alone(data, found)
        case "anchor":
            return _judge_anchor(data, found)
        case _:
            return _judge_report(found)


def _judge_store_bytes(data: bytes, found: Recognised) -> Judgement:
    from ledger.foreign.ctrlrun_store import open_bytes  # noqa: PLC0415  few documents are databases

    try:
        with open_bytes(data) as store:
            return judge_store(store)
    except StorageError as error:
        report = Report()
        report.find("store", "foreign.unreadable", message=str(error))
        native = Native("ctrlrun", found.kind, found.version, "unreadable", "unreadable", (), 0)
        return Judgement(native, report, Coverage(0, 0, 0))


def _judge_receipts(data: bytes) -> Judgement:
    report = Report()
    report.expect("chain", "head", "documents", "action hashes", "places")
    receipts = Receipts(report, Chain(), lambda value, seq: None)  # noqa: ARG005  nobody is told
    texts = [(line.number, line.data) for line in strict.lines(data)]
    placed: list[tuple[int, int, bytes]] = []
    for number, text in texts:
        seq = _place_of(read(text))
        placed.append((0 if seq is None else seq, number, text))
    placed.sort(key=lambda each: each[:2])
    for seq, number, text in placed:
        receipts.take(f"line {number}", text, seq=seq or None, stored=False)
    return _finish(report, receipts, len(placed))


def _place_of(reading: Reading) -> int | None:
    value = reading.value
    seq = value.get("seq") if type(value) is dict else None
    return seq if type(seq) is int and seq > 0 else None


def _finish(report: Report, receipts: Receipts, count: int) -> Judgement:
    chain = receipts.chain
    if chain.chained:
        said = "a file names no head: receipts cut off its end leave no trace"
        report.find("head", "foreign.end_unknown", message=said)
    native = receipts.finish("receipts")
    if not count:
        report.find("subject", "coverage.empty", message="the file holds no receipt")
    said = "nobody's signature says whose receipts these are"
    report.find("signature", "foreign.unsigned", message=said, count=max(count, 1))
    note = f"{chain.verified} of {chain.chained} receipts verified by ctrlrun's rules, {chain.unchained} unchained"
    return Judgement(native, report, Coverage(0, count, count), (note,))


class _Dump:
    """Rows of `receipts`, dumped as lines, in the order of their places."""

    def __init__(self, data: bytes) -> None:
        self.faults: list[str] = []
        self.columns: frozenset[str] = frozenset()
        self._rows: list[ReceiptRow] = []
        for line in strict.lines(data):
            reading = read(line.data)
            if type(reading.value) is not dict or reading.fault is not None:
                why = reading.fault.message if reading.fault is not None else "no row"
                self.faults.append(f"line {line.number}: {why}")
            if type(reading.value) is dict:
                self.columns |= reading.value.keys()
                self._rows.append(_row(reading.value))
        self._rows.sort(key=_order)

    def receipts(self) -> Iterator[ReceiptRow]:
        return iter(self._rows)

    def events(self, *types: str) -> Iterator[EventRow]:  # noqa: ARG002  the protocol
        return iter(())

    def event_types(self) -> Iterator[tuple[Any, ...]]:
        return iter(())

    def effects(self) -> Iterator[EffectRow]:
        return iter(())

    def has(self, table: str) -> bool:
        return table == "receipts"

    def rows(self, table: str) -> Iterator[Row]:  # noqa: ARG002  the protocol
        return iter(())


def _row(value: dict[str, Any]) -> ReceiptRow:
    def column(name: str) -> Any:  # noqa: ANN401  any JSON value
        found = value.get(name)
        return found.encode("utf-8", "surrogatepass") if isinstance(found, str) else found

    return tuple(column(name) for name in RECEIPT_COLUMNS)


def _order(row: ReceiptRow) -> tuple[int, int]:
    seq = row[0]
    return (0, 0) if seq is None else (1, seq) if type(seq) is int else (2, 0)


def _judge_events(data: bytes) -> Judgement:
    """Return the judgement on events alone: they are neither chained nor hashed, so there is nothing that could hold."""
    report = Report()
    numbers: list[int] = []
    unknown = 0
    for line in strict.lines(data):
        reading = read(line.data)
        value = reading.value
        if reading.fault is not None or type(value) is not dict:
            message = "no object" if reading.fault is None else reading.fault.message
            code = "foreign.malformed" if reading.fault is None else reading.fault.code
            report.find("events", code, where=f"line {line.number}", message=message)
        if type(value) is not dict:
            continue
        unknown += value.get("type") not in EVENT_TYPES
        if type(value.get("event_id")) is int:
            numbers.append(value["event_id"])
    report.ran("events", len(numbers))
    if unknown:
        report.find("events", "format.unknown", message="events of unknown types", count=unknown)
    lost = max(numbers, default=0) - len(set(numbers))
    if lost > 0:
        said = f"{len(set(numbers))} of {max(numbers)} events are there"
        report.find("events", "ctrlrun.events_missing", message=said, count=lost)
    report.find("chain", "foreign.unchained", message="events are neither chained nor hashed: nothing shows a change")
    native = Native("ctrlrun", "events", _UNKNOWN, "unverifiable", "events", (), 0)
    return Judgement(native, report, Coverage(0, len(numbers), len(numbers)))


def _judge_alone(data: bytes, found: Recognised) -> Judgement:
    """Return the judgement on one receipt, by itself or as part of what ctrlrun printed of an action."""
    report = Report()
    report.expect("documents", "action hashes")
    reading = read(data)
    if reading.fault is not None:
        report.find("documents", reading.fault.code, message=reading.fault.message)
    value = reading.value if type(reading.value) is dict else {}
    receipt = value if found.kind == "receipt" else value.get("receipt")
    count = int(type(receipt) is dict)
    if type(receipt) is dict:
        refusal = refusal_of(receipt)
        if refusal is not None:
            report.find("documents", "foreign.malformed", where="receipt", message=refusal)
        elif canonical_bytes(receipt) is None:
            said = "holds a number that is no integer, or half a surrogate pair"
            report.find("documents", "foreign.malformed", where="receipt", message=said)
        for code, message in faults_of(receipt, plain=False):
            name = "action hashes" if code == "ctrlrun.action_hash" else "documents"
            report.find(name, code, where="receipt", message=message)
        report.ran("documents")
        report.ran("action hashes")
    report.find("chain", "foreign.unchained", message="one receipt stands without its chain")
    report.find("signature", "foreign.unsigned", message="nobody's signature says whose receipt this is")
    native = Native("ctrlrun", found.kind, found.version, "unverifiable", "unchained", (), 0)
    return Judgement(native, report, Coverage(0, count, count))


def _judge_anchor(data: bytes, found: Recognised) -> Judgement:
    """Return the judgement on what an anchor freezes: whether it is true, only the store that it is about can show."""
    report = Report()
    value = read(data).value
    kinds = type(value.get("seq")) is int and type(value.get("hash")) is str and value.get("kind") in _ANCHOR_KINDS
    if kinds:
        report.ran("documents")
    else:
        report.find("documents", "foreign.malformed", message="no place, hash and kind")
    report.find("chain", "foreign.unchained", message="an anchor stands without the chain that it froze")
    native = Native("ctrlrun", "anchor", found.version, "unverifiable", "anchor", (), 0)
    return Judgement(native, report, Coverage(0, 1, 1))


def _judge_report(found: Recognised) -> Judgement:
    report = Report()
    report.find("subject", "check.unsupported", message=f"{found.version} holds nothing that could be verified")
    native = Native("ctrlrun", found.kind, found.version, "unverifiable", found.kind, (), 0)
    return Judgement(native, report, Coverage(0, 0, 0))
