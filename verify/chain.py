"""The chain: a fold over the bytes of a journal, line by line.

From a state (size, previous digest, keyring, merkle fold, digest of the last head line) and lines to the next state. Each line
has its exact layout; each entry has the next index and names the entry before, the keyring, the envelope and the receipt. Heads
are `verify.heads`, what follows the last one is `verify.journal`.

Everything in an entry but its time follows from what stands before it, so the fold writes the entry that must stand there and
compares bytes. Only where they differ is the line parsed, to say what is wrong.

Source: docs/spec/journal.md, docs/spec/entries.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from ledger import canonical
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import ENTRY_SCHEMA, Entry, parse_entry
from ledger.envelope import RECEIPT_TYPE, Envelope, parse_envelope
from ledger.errors import FormatError, UnknownFormatError
from ledger.line import HEAD_PREFIX, parse_entry_line
from ledger.members import TIME_PATTERN
from verify.heads import HeadFold, HeadPoint, HeadTotals, KeyEntry
from verify.ids import IdSet
from verify.journal import LINE_MAX_BYTES, Place, Segment, place, why_not_torn
from verify.report import Report

__all__ = ["ChainFold", "ChainPoint", "Consume", "Rows", "Segment"]

Rows: TypeAlias = list[tuple[int, str, bytes, bytes, bytes]]
"""Index, receipt id in hexadecimal, payload, the bytes of the line after it, and the time (without the Z), of each entry of a commit.

The last four are empty where the entry, its envelope or its receipt id could not be read.
"""
Consume: TypeAlias = Callable[[Rows], None]

_UNSEALED: Final = b',"payload_type":"' + RECEIPT_TYPE.encode("ascii") + b'","seals":[]}}'
_SEALED_START: Final = b',"payload_type":"' + RECEIPT_TYPE.encode("ascii") + b'","seals":[{"key":"ed25519:'
_SEALED = re.compile(re.escape(_SEALED_START) + rb'[0-9a-f]{64}","signature":"[A-Za-z0-9+/]{85}[AQgw]=="\}\]\}\}')
_SEALED_LENGTH: Final = len(_SEALED_START) + 64 + len('","signature":"') + 88 + len('"}]}}')
_MIDDLE: Final = b',"envelope":{"payload":'
_SUFFIX: Final = b'Z","schema":"' + ENTRY_SCHEMA.encode("ascii") + b'"}'
_SUFFIX_MIDDLE: Final = _SUFFIX + _MIDDLE
_TIME = re.compile(TIME_PATTERN[1:-1].encode("ascii"))
# Bytes before the envelope, without the digits of index and keyring.
_FIXED: Final = (
    len('{"entry":{"envelope":"sha256:","index":,"keyring":,"previous":"sha256:","receipt":"sha256:","recorded_at":"')
    + 3 * 64
    + 23
    + len(_SUFFIX)
)
_TOGETHER: Final = 64
"""Entries that are given on together: signatures are verified faster one after the other than between other work."""
_KEYRING_KINDS: Final = (b"ke", b"he")
_BACK: Final = 23 + len(_SUFFIX)


@dataclass(frozen=True, slots=True)
class ChainPoint:
    """What the entries after a commit depend on, where everything before it is in order.

    `previous` is the hexadecimal digest of the last entry, `time` when it was recorded (without the Z), `keyring` what the next
    entry names.
    """

    previous: str
    time: bytes
    keyring: int
    head: HeadPoint

    @property
    def size(self) -> int:
        """Entries before the point."""
        return self.head.fold.size


class _Pending:
    """Entries of the commit under way, and the state after them."""

    __slots__ = ("faults", "ids", "index", "keyring", "keys", "leaves", "previous", "rows", "time")

    def __init__(self) -> None:
        self.index = 0
        self.keyring = 0
        self.previous = ZERO_DIGEST[7:]
        """Hexadecimal digest of the entry before; empty where that entry could not be read."""
        self.time = b""
        self.leaves: list[bytes] = []
        self.ids: list[bytes] = []
        self.rows: Rows = []
        self.keys: list[KeyEntry] = []
        """Header and key entries: index, receipt id and envelope."""
        self.faults = 0


class ChainFold:
    """Folds segments, in order, into the state after the last commit.

    Attributes:
        heads: the fold over the ends of commits: size, head, keyring.
        ids: the ids of all committed receipts.
        first: index of the first entry that is judged; those before it were judged elsewhere.
    """

    def __init__(
        self,
        report: Report,
        *,
        every_head: bool = False,
        watch: int | None = None,
        consume: Consume | None = None,
        start: ChainPoint | None = None,
        offset: int = 0,
    ) -> None:
        self._report = report
        self._consume = consume
        self.heads = HeadFold(report, every_head=every_head, watch=watch, start=None if start is None else start.head)
        self.ids = IdSet()
        self._pending = _Pending()
        self.first = 0
        if start is not None:
            self.first = start.size
            self._move(start)
        self._segment: Segment | None = None
        self._fragment = b""
        """Bytes of the segment after its last LF."""
        self._rest_offset = offset
        """Where the bytes after the last head begin in the segment."""
        self._committed_ids = 0
        """How many of the pending ids stand under a head."""
        self._committed_rows = 0
        """How many of the pending rows do."""

    @property
    def size(self) -> int:
        """Entries committed so far."""
        return self.heads.size

    @property
    def end(self) -> int:
        """Where in the segment fed last the bytes after the last head begin."""
        return self._rest_offset

    def point(self) -> ChainPoint | None:
        """Return the point after the last commit, None where bytes follow it or something before it does not hold."""
        pending, head = self._pending, self.heads.point()
        if head is None or self._has_rest() or not pending.previous or head.fold.size != pending.index:
            return None
        return ChainPoint(pending.previous, pending.time, pending.keyring, head)

    def join(self, end: ChainPoint, totals: HeadTotals, ids: IdSet, *, size_bytes: int) -> None:
        """Move to a point that another fold reached from this one's, with what it found on the way.

        Args:
            end: the point.
            totals: what it counted.
            ids: the ids of the receipts on the way.
            size_bytes: length of the segment that ends there.
        """
        self.heads.join(end.head, totals)
        self.ids.join(ids)
        self._move(end)
        self._segment, self._fragment, self._rest_offset = None, b"", size_bytes

    def _move(self, point: ChainPoint) -> None:
        pending = self._pending
        pending.index, pending.previous = point.size, point.previous
        pending.time, pending.keyring = point.time, point.keyring

    def feed(self, segment: Segment, *, offset: int = 0) -> None:
        """Fold the next segment, from the end of a commit at an offset where the commits before were folded already."""
        if self._has_rest():
            self._damaged("another segment follows bytes after the last head")
        if segment.first_index != self._pending.index and not offset:
            self._report.find(
                "journal",
                "journal.segment_missing",
                where=segment.name,
                message=f"got a segment from entry {segment.first_index}, expected one from {self._pending.index}",
            )
            self.heads.sound = False
        self._segment = segment
        self._rest_offset = offset
        self._fragment = segment.data[self._lines(segment, offset) :]

    def finish(self) -> None:
        """Judge what follows the last head, and verify the last head's signature."""
        if self._has_rest():
            self._settle()
        self.heads.finish()
        if self.heads.count:
            self._report.ran("journal")
            self._report.ran("chain", self.size - self.first)

    def _lines(self, segment: Segment, position: int) -> int:  # noqa: PLR0915  one loop, kept whole for speed
        """Fold the whole lines of a segment from an offset; return the offset after the last."""
        data = segment.data
        find = data.find
        hash_ = sha256
        pending = self._pending
        rows = None if self._consume is None else pending.rows
        leaves, ids = pending.leaves, pending.ids
        index, previous, last_time = pending.index, pending.previous, pending.time
        before = f',"keyring":{pending.keyring},"previous":"sha256:'
        middle = _FIXED + len(str(index)) + len(str(pending.keyring))
        next_stop = 10 ** len(str(index)) if index else 1
        heads, keys = self.heads, pending.keys
        while (end := find(b"\n", position)) >= 0:
            line = data[position:end]
            if line[2:3] == b"h" and heads.take(line, index, leaves, keys, (segment, position)):
                position = self._rest_offset = end + 1
                self._committed_ids = len(ids)
                self._committed_rows = len(pending.rows)
                pending.faults = 0
                if rows and len(rows) >= _TOGETHER:
                    self._consume_rows()
                continue
            if line.endswith(_UNSEALED):
                tail = _UNSEALED
            else:
                tail = line[-_SEALED_LENGTH:]
                if _SEALED.fullmatch(tail) is None:
                    tail = b""
            if tail:
                payload = line[middle + 23 : -len(tail)]
                id_ = hash_(payload).digest()
                hex_ = id_.hex()
                start = (
                    f'{{"entry":{{"envelope":"sha256:{hash_(line[middle + 12 : -1]).hexdigest()}","index":{index}'
                    f'{before}{previous}","receipt":"sha256:{hex_}","recorded_at":"'
                ).encode()
                after = middle - _BACK
                time = line[after : after + 23]
                if (
                    line.startswith(start)
                    and line.startswith(_SUFFIX_MIDDLE, after + 23)
                    and (
                        time == last_time
                        or (time[:20] == last_time[:20] and time[20:].isdigit())
                        or _TIME.fullmatch(time + b"Z") is not None
                    )
                    and end - position <= LINE_MAX_BYTES
                ):
                    entry = line[9:middle]
                    previous = hash_(entry).hexdigest()
                    leaves.append(hash_(b"\0" + entry).digest())
                    ids.append(id_)
                    if time < last_time:
                        self._step_back(index, time, last_time)
                    last_time = time
                    if rows is not None:
                        rows.append((index, hex_, payload, tail, time))
                    index += 1
                    position = end + 1
                    # The first `"kind":"` of a header or key is the member itself; in other receipts it may be anything.
                    kind = payload.find(b'"kind":"') + 8
                    if index == next_stop or payload[kind : kind + 2] in _KEYRING_KINDS:
                        pending.index, pending.previous, pending.time = index, previous, last_time
                        self._keyring_entry(index - 1, "sha256:" + hex_, line[middle + 12 : -1])
                        before = f',"keyring":{pending.keyring},"previous":"sha256:'
                        middle = _FIXED + len(str(index)) + len(str(pending.keyring))
                        next_stop = 10 ** len(str(index)) if index else 1
                    continue
            pending.index, pending.previous, pending.time = index, previous, last_time
            if line.startswith(HEAD_PREFIX):
                self._head(line, (segment, position))
            else:
                self._odd_entry(line, segment, position)
                index, previous, last_time = pending.index, pending.previous, pending.time
                before = f',"keyring":{pending.keyring},"previous":"sha256:'
                middle = _FIXED + len(str(index)) + len(str(pending.keyring))
                next_stop = 10 ** len(str(index)) if index else 1
            position = end + 1
        pending.index, pending.previous, pending.time = index, previous, last_time
        self._consume_rows()
        heads.verify_waiting()
        self.ids.extend(ids[: self._committed_ids])
        del ids[: self._committed_ids]
        self._committed_ids = 0
        return position

    # Entries.

    def _odd_entry(self, line: bytes, segment: Segment, offset: int) -> None:
        """Say what is wrong with a line that is not the entry expected, and take from it what can be read."""
        pending, find = self._pending, self._report.find
        where = place((segment, offset))
        try:
            entry_bytes, envelope_bytes = parse_entry_line(line)
        except FormatError as error:
            find("journal", "line.malformed", where=where, message=str(error))
            self._skip_entry()
            return
        try:
            entry = parse_entry(entry_bytes)
        except UnknownFormatError as error:
            # Its bytes still are a leaf and a link, whatever they mean.
            find("chain", "format.unknown", where=f"entry {pending.index}, {where}", message=str(error))
            self._add_leaf(entry_bytes)
            self._add_unread()
            pending.index += 1
            return
        except FormatError as error:
            find("chain", "entry.malformed", where=where, message=str(error))
            self._skip_entry()
            return
        where = f"entry {entry.index}, {where}"
        if entry.index != pending.index:
            find("chain", "chain.index", where=where, message=f"got index {entry.index}, expected {pending.index}")
            pending.faults += 1
            self.heads.sound = False
        if pending.previous and entry.previous[7:] != pending.previous:
            find("chain", "chain.previous", where=where, message=f"it does not name the entry before: {entry.previous}")
            pending.faults += 1
        if entry.keyring != pending.keyring:
            message = f"got keyring {entry.keyring}, expected {pending.keyring}"
            find("chain", "chain.keyring", where=where, message=message)
            pending.faults += 1
        envelope = self._odd_envelope(entry, envelope_bytes, where)
        self._add_leaf(entry_bytes)
        pending.ids.append(bytes.fromhex(entry.receipt[7:]))
        time = entry.recorded_at[:-1].encode("ascii")
        if time < pending.time:
            self._step_back(entry.index, time, pending.time)
        pending.time = time
        if envelope is None:
            self._add_unread()
        elif self._consume is not None:
            tail = line[len(line) - len(envelope_bytes) - 1 + len(b'{"payload":') + len(envelope.payload) :]
            pending.rows.append((entry.index, entry.receipt[7:], envelope.payload, tail, time))
        self._keyring_entry(entry.index, entry.receipt, None if envelope is None else envelope_bytes)
        pending.index = entry.index + 1

    def _add_leaf(self, entry: bytes) -> None:
        self._pending.previous = sha256(entry).hexdigest()
        self._pending.leaves.append(sha256(b"\0" + entry).digest())

    def _add_unread(self) -> None:
        """Tell whoever takes the receipts that one is there which cannot be read."""
        if self._consume is not None:
            self._pending.rows.append((self._pending.index, "", b"", b"", b""))

    def _skip_entry(self) -> None:
        """Go on after a line that is no entry: what stands before and after it can no longer be joined."""
        self._add_unread()
        self._pending.faults += 1
        self._pending.index += 1
        self._pending.previous = ""
        self.heads.sound = False

    def _odd_envelope(self, entry: Entry, envelope_bytes: bytes, where: str) -> Envelope | None:
        """Return the envelope if it is the one that the entry names, in its exact layout."""
        pending, find = self._pending, self._report.find
        found: Envelope | None = None
        if digest(envelope_bytes) != entry.envelope:
            find("chain", "entry.envelope_digest", where=where)
            pending.faults += 1
        try:
            envelope = parse_envelope(envelope_bytes)
        except FormatError as error:
            find("chain", "envelope.malformed", where=where, message=str(error))
            pending.faults += 1
            return None
        if envelope.receipt_id != entry.receipt:
            find("chain", "entry.receipt_id", where=where)
            pending.faults += 1
        else:
            found = envelope
        return found

    def _step_back(self, index: int, time: bytes, before: bytes) -> None:
        message = f"recorded at {time.decode('ascii')}Z, after {before.decode('ascii')}Z"
        self._report.inform("time", "time.step_back", where=f"entry {index}", message=message)

    def _keyring_entry(self, index: int, id_: str, envelope_bytes: bytes | None) -> None:
        """Take an entry that may move the keyring: entry 0, a header, a key; most others do not."""
        pending = self._pending
        envelope = None if envelope_bytes is None else parse_envelope(envelope_bytes)
        if index == 0:
            pending.keys.append((index, id_, envelope))
            return
        if envelope is None:
            return
        try:
            kind = canonical.decode(envelope.payload).get("kind")
        except FormatError:
            return
        if kind in {"key", "header"}:
            pending.keyring = index
            pending.keys.append((index, id_, envelope))

    # Heads.

    def _head(self, line: bytes, at: Place) -> None:
        """Take a whole head line: the end of a commit, unless it cannot be read."""
        heads, pending = self.heads, self._pending
        heads.absorb(pending.leaves, pending.keys)
        if not heads.is_expected(line, pending.index):
            for code, message in heads.problems(line, pending.index):
                self._report.find("heads", code, where=place(at), message=message)
                pending.faults += 1
                if code == "head.malformed":
                    return
        self._commit(line, at)

    def _commit(self, line: bytes, at: Place) -> None:
        pending = self._pending
        self._rest_offset = at[1] + len(line) + 1
        self._committed_ids = len(pending.ids)
        pending.faults = 0
        self.heads.commit(line, pending.index, at)
        self._committed_rows = len(pending.rows)
        if len(pending.rows) >= _TOGETHER:
            self._consume_rows()

    def _consume_rows(self) -> None:
        """Give on the rows that stand under a head."""
        rows, count = self._pending.rows, self._committed_rows
        if self._consume is not None and count:
            self._consume(rows[:count])
            del rows[:count]
        self._committed_rows = 0

    # What follows the last head.

    def _has_rest(self) -> bool:
        return bool(self._fragment) or self._pending.index != self.size or self._pending.faults != 0

    def _settle(self) -> None:
        """Judge the bytes after the last head of the last segment: a commit but for its LF, a torn tail, or damage."""
        pending, fragment, segment = self._pending, self._fragment, self._segment
        assert segment is not None  # noqa: S101  there are bytes
        if pending.faults:
            self._damaged("lines after the last head do not hold")
        elif fragment.startswith(HEAD_PREFIX) and fragment.endswith(b'"}'):
            self._settle_head(fragment, (segment, len(segment.data) - len(fragment)))
        elif (why := why_not_torn(fragment, index=pending.index, previous=pending.previous)) is not None:
            self._damaged(why)
        else:
            rest = len(segment.data) - self._rest_offset
            self._report.inform(
                "journal",
                "journal.torn_tail",
                where=place((segment, self._rest_offset)),
                message=f"{rest} bytes of a commit that never ended; a writer sets them aside",
            )

    def _settle_head(self, line: bytes, at: Place) -> None:
        """Take a last line that is a whole head without LF: committed if all of it holds."""
        heads, pending = self.heads, self._pending
        heads.absorb(pending.leaves, pending.keys)
        problems = [] if heads.is_expected(line, pending.index) else heads.problems(line, pending.index)
        signature = heads.signature_problem(line)
        if signature is not None:
            problems.append(signature)
        if problems:
            self._damaged(f"the last line is a whole head that does not hold: {problems[0][1]}")
            return
        self._commit(line, at)
        self._consume_rows()
        self.ids.extend(pending.ids)

    def _damaged(self, message: str) -> None:
        segment = self._segment
        assert segment is not None  # noqa: S101  told by its callers
        self._report.find("journal", "journal.damaged", where=place((segment, self._rest_offset)), message=message)
