"""Receipts of ctrlrun taken one after the other: the walk of the chain, and what its check does not ask.

| check | asks |
|---|---|
| `chain` | the six breaks, by ctrlrun's rule |
| `documents` | that each text is one value to every reader, under a known schema with its members |
| `action hashes` | that each action hash is that of the action in the document |
| `places` | that a document stands where it says it stands, and that no receipt stands twice |
| `columns` | that the columns beside a document say what it says |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from ledger.errors import clip
from verify.foreign import Native, NativeStatus
from verify.foreign.ctrlrun.chain import Chain, Hash
from verify.foreign.ctrlrun.document import faults_of, refusal_of, schema_of
from verify.foreign.ctrlrun.hashes import action_hash_of
from verify.foreign.ctrlrun.reading import Reading, canonical_bytes, read, sha256_of
from verify.foreign.ctrlrun.words import CHAINED_SCHEMAS, RECEIPT_PREFIX
from verify.report import MAX_FINDINGS, Report

__all__ = ["CODES", "Receipts", "Seen"]

CODES: Final = {
    "content_altered": "ctrlrun.content_altered",
    "hash_missing": "ctrlrun.hash_missing",
    "link_broken": "ctrlrun.link_broken",
    "missing": "ctrlrun.missing",
    "head_mismatch": "ctrlrun.head_mismatch",
    "unchained": "ctrlrun.unchained",
}
"""Name of a break -> our code for it."""
_OF_DOCUMENTS: Final = ("documents", "action hashes", "places")
_FAULT_CHECKS: Final = {"ctrlrun.action_hash": "action hashes"}


class Seen(Protocol):
    """Who is told of each receipt that could be read."""

    def __call__(self, value: dict[str, Any], seq: int | None) -> None:
        """Take a document and its place, None where it has none."""


@dataclass(slots=True)
class Receipts:
    """Takes receipts in the order of their places, then says what the whole comes to."""

    report: Report
    chain: Chain
    seen: Seen
    unreadable: str | None = None
    """Why ctrlrun's own reader cannot say anything of all of them, where that is so."""
    newest: str = ""
    taken: int = 0
    _ids: set[str] = field(default_factory=set)

    def take(self, where: str, text: bytes | None, *, seq: int | None, stored: Hash) -> dict[str, Any] | None:
        """Take the next receipt; return its document where it could be read as an object.

        Args:
            where: what findings call it.
            text: the stored text, None where it is no text at all.
            seq: its place, None where it has none.
            stored: the hash stored beside it.
        """
        reading = Reading(None, readable=False, plain=False) if text is None else read(text)
        value = reading.value
        if reading.fault is not None:
            self.report.find("documents", reading.fault.code, where=where, message=reading.fault.message)
        elif not reading.readable:
            self.report.find("documents", "foreign.malformed", where=where, message="no text")
        if reading.usual:
            return self._take_usual(reading.value, where, seq, stored)
        faults = faults_of(value, plain=reading.plain) if type(value) is dict else []
        found, refusal = self._hash(reading, faults)
        self._walk(reading, seq, stored, found, refusal)
        self.taken += 1
        if refusal and reading.readable and reading.fault is None and not faults:
            self.report.find("documents", "foreign.malformed", where=where, message=refusal)
        if type(value) is not dict:
            return None
        self._report(where, faults)
        self._place(value, where, seq)
        self.seen(value, seq)
        return value

    def _take_usual(self, value: dict[str, Any], where: str, seq: int | None, stored: Hash) -> dict[str, Any]:
        """Take what surely is a receipt: nothing of it but its hashes and its place is left to look at."""
        self.taken += 1
        chain, previous = self.chain, value["prev_hash"]
        meets = seq is not None and previous == chain.last_hash
        if seq is None:
            chain.unchained += 1
        else:
            chain.add(seq, stored, sha256_of(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)), previous)
        if not meets or action_hash_of(value, plain=True) != value["action_hash"]:
            self._report(where, faults_of(value, plain=True))
        self._place(value, where, seq)
        self.seen(value, seq)
        return value

    def _report(self, where: str, faults: list[tuple[str, str]]) -> None:
        for code, message in faults:
            self.report.find(_FAULT_CHECKS.get(code, "documents"), code, where=where, message=message)

    def _hash(self, reading: Reading, faults: list[tuple[str, str]]) -> tuple[str | None, str]:
        """Return the hash of a document by ctrlrun's rule; None with the reason, where it has none or ctrlrun builds no receipt."""
        if not reading.readable:
            return None, "not read"
        # A document without a fault, or under another hash only, is one that ctrlrun builds.
        refusal = refusal_of(reading.value) if faults or type(reading.value) is not dict else None
        if refusal is not None:
            return None, refusal
        canonical = canonical_bytes(reading.value, plain=reading.plain)
        if canonical is None:
            return None, "holds a number that is no integer, or half a surrogate pair"
        return sha256_of(canonical), ""

    def _walk(self, reading: Reading, seq: int | None, stored: Hash, found: str | None, why: str) -> None:
        if seq is None:
            self.chain.unchained += 1
        elif reading.fault is not None and reading.fault.code == "foreign.too_deep":
            self.unreadable = "too_deep"
            self.chain.skip(seq)
        else:
            previous = reading.value.get("prev_hash") if found is not None else None
            self.chain.add(seq, stored, found, previous, why=why)

    def _place(self, value: dict[str, Any], where: str, seq: int | None) -> None:
        schema = schema_of(value)
        if schema in CHAINED_SCHEMAS and value.get("seq") != seq:
            said = f"says that it stands at {clip(value.get('seq'))}"
            self.report.find("places", "ctrlrun.place", where=where, message=said)
        id_ = value.get("receipt_id")
        if type(id_) is str:
            if id_ in self._ids:
                self.report.find("places", "foreign.repeated", where=where, message=f"{clip(id_)} stands twice")
            self._ids.add(id_)
        if schema.startswith(RECEIPT_PREFIX) and schema > self.newest:
            self.newest = schema

    def finish(self, kind: str) -> Native:
        """Report the breaks of the chain, and return ctrlrun's verdict; after the chain was ended."""
        chain = self.chain
        if self.taken:
            for name in _OF_DOCUMENTS:
                self.report.ran(name, self.taken)
        chain.end_unchained()
        for each in chain.breaks:
            name = "head" if each.name == "head_mismatch" else "chain"
            where = None if each.seq is None else f"seq {each.seq}"
            count = chain.unchained if each.name == "unchained" else 1
            self.report.find(name, CODES[each.name], where=where, message=each.detail, count=count)
        for name, count in chain.counts.items():
            if count > MAX_FINDINGS:
                self.report.find("chain", CODES[name], message="and more", count=count - MAX_FINDINGS)
        if chain.chained:
            self.report.ran("chain", chain.chained)
        status, code = self._status()
        natives = tuple(each.to_native() for each in chain.breaks[:MAX_FINDINGS])
        return Native("ctrlrun", kind, self.newest or "unknown", status, code, natives, sum(chain.counts.values()))

    def _status(self) -> tuple[NativeStatus, str]:
        if self.unreadable is not None:
            return "unreadable", self.unreadable
        names = [each.name for each in self.chain.breaks]
        if not names:
            return ("holds", "ok") if self.chain.chained else ("unverifiable", "empty")
        if set(names) == {"unchained"}:
            return "unverifiable", "unchained"
        return "fails", next(name for name in names if name != "unchained")
