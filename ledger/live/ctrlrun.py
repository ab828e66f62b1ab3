"""ctrlrun at work: a sink that records each of its receipts as it happens, and a provider of anchors for its chain.

    ledger = Ledger.open(".ledger")
    control = ctrlrun.Control(policy, store, sinks=[CtrlrunSink(ledger)])
    make_anchor(store, LedgerAnchors(ledger))

- A receipt is kept as the bytes that ctrlrun's own sink would write, under an import with a seal, with what it says as a run of one
  act. When ctrlrun goes on, it is durable here, under a signed head that whoever writes ctrlrun's store cannot take back.
- ctrlrun goes on when a sink fails. What could not be recorded is kept and tried again with the next receipt, and by `close`;
  `catch_up` brings in what a crash lost.
- An anchor is a receipt too: what it froze cannot be moved, and its token is the id of that receipt.

Nothing of ctrlrun is imported: the classes fit its protocols `EventSink` and `AnchorProvider` by their shape.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, Protocol

import orjson

from ledger.envelope import verify_seal
from ledger.errors import LedgerError, NotFoundError
from ledger.importing.ctrlrun import MAPPING, actor_of, fact_of_receipt
from ledger.importing.facts import RunFact, name_of
from ledger.importing.recording import Document, record_new
from ledger.members import Actor
from ledger.receipt import Import, parse_receipt
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.ledger import Ledger
from ledger.storage.reader import Reader
from ledger.storage.search import holding
from ledger.words import RunStatus

__all__ = ["ANCHOR", "Anchored", "CtrlrunSink", "LedgerAnchors", "received"]

ANCHOR: Final = "ctrlrun.anchor/v1"
_FORMAT: Final = "ctrlrun"
_RECEIPT: Final = "ctrlrun-receipt.json"
_NEEDLE: Final = b'"format":"ctrlrun"'
_KINDS: Final = ("interval", "checkpoint")
_MOST_WAITING: Final = 100_000


class _Receipt(Protocol):
    """A receipt of ctrlrun, as it hands one to its sinks."""

    def to_json(self) -> str:
        """Return it as the line that ctrlrun's own sink writes."""


class _Store(Protocol):
    """A store of ctrlrun that can list its receipts."""

    def receipts(self) -> Iterable[Any]:
        """Return the receipts, the oldest first."""


class CtrlrunSink:
    """Records the receipts of a `ctrlrun.Control` in a ledger. Threads may share it; processes have one each."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: deque[bytes] = deque()
        self._lock = Lock()

    @property
    def waiting(self) -> int:
        """How many receipts could not be recorded yet."""
        return len(self._waiting)

    def on_event(self, event: object) -> None:
        """Take an event: what events lead to stands in a receipt, so none is recorded."""

    def on_receipt(self, receipt: _Receipt) -> None:
        """Record a receipt, after those that still wait.

        Raises:
            LedgerError: it could not be recorded; it waits. ctrlrun logs that and goes on.
        """
        with self._lock:
            if len(self._waiting) >= _MOST_WAITING:
                raise LedgerError("ctrlrun: too many receipts wait to be recorded", code="live.full")
            self._waiting.append(_line(receipt))
            self._flush()

    def catch_up(self, store: _Store) -> int:
        """Record the receipts of a store that this ledger does not hold; return how many those were.

        Raises:
            LedgerError: one could not be recorded; those before it are.
        """
        known = {each.get("receipt_id") for _, each in received(self._ledger.reader)}
        count = 0
        with self._lock:
            self._flush()
            for receipt in store.receipts():
                if getattr(receipt, "receipt_id", None) in known or not hasattr(receipt, "to_json"):
                    continue
                self._waiting.append(_line(receipt))
                count += 1
                self._flush()
        return count

    def close(self) -> None:
        """Record what waits.

        Raises:
            LedgerError: it could not be recorded, and is lost with this process; `catch_up` finds it in the store.
        """
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        while self._waiting:
            _record(self._ledger, self._waiting[0])
            self._waiting.popleft()


def _line(receipt: _Receipt) -> bytes:
    return receipt.to_json().encode("utf-8")


def _record(ledger: Ledger, data: bytes) -> None:
    value = orjson.loads(data)
    schema = value.get("schema")
    document = Document(
        data, _RECEIPT, "application/json", _FORMAT, name_of(schema), "unverifiable", "unchained", MAPPING
    )
    fact = fact_of_receipt(value, document.digest)
    agent, user = actor_of(value)
    run = None
    if fact is not None:
        run = RunFact(
            name_of(value.get("action")),
            RunStatus.COMPLETED,
            document.digest,
            (fact,),
            actor=Actor(agent=agent, user=user, model="unknown"),
            adapter=_FORMAT,
            coverage="in-loop",
            correlation={"ctrlrun.receipt": name_of(value.get("receipt_id"))},
        )
    record_new(ledger, document, run)


def received(reader: Reader) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the receipts that a ledger received from ctrlrun as they happened: the bytes, and the members."""
    artifacts = ArtifactStore(reader.folder)
    for _, receipt in _imports(reader):
        if not receipt.version.startswith("ctrlrun.receipt/") or receipt.document.name != _RECEIPT:
            continue
        try:
            data = artifacts.content(receipt.document)
            value = orjson.loads(data)
        except (LedgerError, orjson.JSONDecodeError):
            continue  # erased, or damaged, which `ledger verify` says
        if isinstance(value, dict):
            yield data, value


def _imports(reader: Reader) -> Iterator[tuple[str, Import]]:
    for stored in holding(reader.folder, _NEEDLE, stop=reader.head().size):
        try:
            receipt = parse_receipt(stored.envelope.payload)
        except LedgerError:
            continue
        if isinstance(receipt, Import) and receipt.format == _FORMAT:
            yield stored.entry.receipt, receipt


@dataclass(frozen=True, slots=True)
class Anchored:
    """One anchored pair, in the shape of ctrlrun's `Anchor`."""

    seq: int
    hash: str
    token: str
    kind: str
    at: datetime


class LedgerAnchors:
    """Anchors of ctrlrun's chain in a ledger: fits `AnchorProvider`. `store` names the store where a ledger anchors several."""

    def __init__(self, ledger: Ledger, store: str = "ctrlrun") -> None:
        self._ledger = ledger
        self._name = name_of(store, "ctrlrun")

    def make(self, seq: int, hash: str, kind: str) -> tuple[str, datetime]:  # noqa: A002  the name in ctrlrun's protocol
        """Return the token and the time of a pair that is anchored now, durably and under a signed head."""
        document = Document(
            _text(seq, hash, kind), self._name, "application/json", _FORMAT, ANCHOR, "holds", kind, "ctrlrun.anchor/1"
        )
        token = record_new(self._ledger, document, None).receipt
        found = self._ledger.get(token)
        return token, _moment(parse_receipt(found.envelope.payload).issued_at)

    def check(self, seq: int, hash: str, token: str) -> bool:  # noqa: A002  as above
        """Return whether the receipt that a token names is in this ledger, sealed by its issuer, and froze this pair."""
        try:
            stored = self._ledger.get(token)
            verify_seal(stored.envelope)
            receipt = parse_receipt(stored.envelope.payload)
            if not isinstance(receipt, Import) or receipt.version != ANCHOR or receipt.document.name != self._name:
                return False
            data = self._ledger.artifacts.content(receipt.document)
        except NotFoundError:
            return False
        return any(data == _text(seq, hash, kind) for kind in _KINDS)

    def latest(self) -> tuple[int, str] | None:
        """Return the highest place that is anchored and its token, None where none is."""
        newest = max(self.since(0), key=lambda each: each.seq, default=None)
        return None if newest is None else (newest.seq, newest.token)

    def since(self, seq: int) -> Sequence[Anchored]:
        """Return every anchor at or above a place."""
        return [each for each in self._all() if each.seq >= seq]

    def _all(self) -> Iterator[Anchored]:
        for id_, receipt in _imports(self._ledger.reader):
            if receipt.version != ANCHOR or receipt.document.name != self._name:
                continue
            value = orjson.loads(self._ledger.artifacts.content(receipt.document))
            yield Anchored(value["seq"], value["hash"], id_, value["kind"], _moment(receipt.issued_at))


def _text(seq: int, hash_: str, kind: str) -> bytes:
    """Return the bytes that ctrlrun asks a provider to vouch for."""
    return orjson.dumps({"domain": ANCHOR, "seq": seq, "hash": hash_, "kind": kind}, option=orjson.OPT_SORT_KEYS)


def _moment(time: str) -> datetime:
    return datetime.fromisoformat(time).astimezone(UTC)
