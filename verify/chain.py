"""The chain: a fold over the bytes of a journal, commit by commit.

From a state (size, previous digest, keyring, merkle fold, digest of the last head line) and lines to the next state:

- each line has its exact layout; each entry has the next index and names the entry before, the keyring, the envelope, the receipt;
- each head has the origin, the size and the root of the entries before it, names the head line before, and bears a signature
  line of the log key in force; that signature is verified on the last head, on the first head after each header or key entry,
  and on every head where asked;
- what follows the last head is a torn tail only if nothing but a crash during an append explains it; all else is damage.

Everything in an entry but its time follows from what stands before it, so the fold writes the entry that must stand there and
compares bytes. Only where they differ is the line parsed, to say what is wrong.

Source: docs/spec/journal.md, docs/spec/entries.md.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

import orjson

from ledger import canonical
from ledger.checkpoint import Head, head_of, open_head
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import ENTRY_SCHEMA, Entry, parse_entry
from ledger.envelope import ENVELOPE_MAX_BYTES, RECEIPT_TYPE, Envelope, parse_envelope, verify_seal
from ledger.errors import FormatError, LedgerError, SignatureError, UnknownFormatError, clip
from ledger.keys import parse_key_id
from ledger.line import ENTRY_PREFIX, HEAD_PREFIX, parse_entry_line, parse_head_line
from ledger.members import TIME_PATTERN
from ledger.note import ED25519, NoteKey, parse_note
from ledger.receipt import Header, Key, parse_receipt
from verify.ids import IdSet
from verify.keyring import Keyring, header_problem
from verify.proof import RootFold
from verify.report import Report

__all__ = ["ChainFold", "Consume", "Rows", "Segment"]


@dataclass(frozen=True, slots=True)
class Segment:
    """The bytes of one journal file, as one snapshot; `name` is how findings call it."""

    name: str
    first_index: int
    data: bytes


Rows: TypeAlias = list[tuple[int, str, bytes, bytes]]
"""Index, receipt id in hexadecimal, payload, and the bytes of the line after it, for each entry of a commit."""
Consume: TypeAlias = Callable[[Rows], None]

_TYPE: Final = b',"payload_type":"'
_UNSEALED: Final = b',"payload_type":"' + RECEIPT_TYPE.encode("ascii") + b'","seals":[]}}'
_SEALED_START: Final = b',"payload_type":"' + RECEIPT_TYPE.encode("ascii") + b'","seals":[{"key":"ed25519:'
_SEALED = re.compile(re.escape(_SEALED_START) + rb'[0-9a-f]{64}","signature":"[A-Za-z0-9+/]{85}[AQgw]=="\}\]\}\}')
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
_MAX_LINE: Final = ENVELOPE_MAX_BYTES + 1024
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_FEW: Final = 200
"""Leaves below which adding them one by one is as fast as level by level."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


_KEYRING_KINDS: Final = (b"ke", b"he")
_BACK: Final = 23 + len(_SUFFIX)


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
        self.keys: list[tuple[int, str, Envelope | None]] = []
        """Header and key entries: index, receipt id and envelope."""
        self.faults = 0


class ChainFold:
    """Folds segments, in order, into the state after the last commit.

    Attributes:
        size: entries committed so far.
        keyring: keys in force, None where entry 0 is no readable header.
        ids: the ids of all committed receipts.
        watched_root: root at `watch` entries, where the fold passed that size.
        signed: whether the signature of the last head was verified and holds.
    """

    def __init__(
        self,
        report: Report,
        *,
        every_head: bool = False,
        watch: int | None = None,
        consume: Consume | None = None,
    ) -> None:
        self._report = report
        self._every_head = every_head
        self._watch = watch
        self._consume = consume
        self.size = 0
        self.keyring: Keyring | None = None
        self.ids = IdSet()
        self.watched_root: bytes | None = None
        self.signed = False
        self._fold = RootFold()
        self._root = b""
        self._sound = True
        """Whether every entry so far stands at its index, so that roots can be recomputed."""
        self._heads = self._signatures = self._unreached = 0
        self._last = b""
        """The last head line."""
        self._last_place: tuple[Segment, int]
        self._last_digest = ZERO_DIGEST[7:]
        self._unverified = False
        self._key_changed = True
        self._pending = _Pending()
        self._segment: Segment | None = None
        self._fragment = b""
        self._rest_offset = 0
        self._committed_ids = 0
        self._origin = ""
        self._mark = b""
        """Key id of the log key in force, as it stands on a note."""
        self._log_line: re.Pattern[bytes] | None = None
        """A signature line by that key, after the name."""
        self._head_text = b""
        """What stands before it on a head line, with places for size and root."""
        self._after_note = b'\\n","previous_head":"' + ZERO_DIGEST.encode("ascii") + b'"}'

    @property
    def head(self) -> Head | None:
        """The last head; None before the first, and where its root is not that of the entries."""
        return Head(self._origin, self.size, self._root) if self._heads and self._root else None

    @property
    def note(self) -> bytes:
        """The signed note of the last head."""
        return parse_head_line(self._last)[0]

    def feed(self, segment: Segment) -> None:
        """Fold the next segment."""
        if self._rest():
            self._damaged("another segment follows bytes after the last head")
        if segment.first_index != self._pending.index:
            self._report.find(
                "journal",
                "journal.segment_missing",
                where=segment.name,
                message=f"got a segment from entry {segment.first_index}, expected one from {self._pending.index}",
            )
            self._sound = False
        self._segment = segment
        self._rest_offset = 0
        self._fragment = segment.data[self._lines(segment) :]

    def finish(self) -> None:
        """Judge what follows the last head, and verify the last head's signature."""
        report = self._report
        if self._rest():
            self._settle()
        if not self._heads:
            report.find("heads", "head.missing")
            return
        if self._unverified:
            self._verify_last()
        report.ran("journal")
        report.ran("chain", self.size)
        report.ran("heads", self._heads)
        if self.keyring is None:
            report.skip("head signatures", "check.unreachable", "no header says which key signs", asked=True)
        else:
            report.ran("keyring")
            report.ran("head signatures", self._signatures)
        if self._unreached:
            report.skip("heads", "check.unreachable", f"{self._unreached} roots follow one that differs", asked=True)

    def _lines(self, segment: Segment) -> int:  # noqa: PLR0915  one loop, kept whole for speed
        """Fold the whole lines of a segment; return the offset after the last."""
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
        position = 0
        while (end := find(b"\n", position)) >= 0:
            line = data[position:end]
            cut = line.rfind(_TYPE)
            tail = line[cut:]
            if tail == _UNSEALED or (tail.startswith(_SEALED_START) and _SEALED.fullmatch(tail) is not None):
                payload = line[middle + 23 : cut]
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
                        (time[:20] == last_time[:20] and time[20:].isdigit())
                        or _TIME.fullmatch(time + b"Z") is not None
                    )
                    and end - position <= _MAX_LINE
                ):
                    entry = line[9:middle]
                    previous = hash_(entry).hexdigest()
                    leaves.append(hash_(b"\0" + entry).digest())
                    ids.append(id_)
                    if time < last_time:
                        self._step_back(index, time, last_time)
                    last_time = time
                    if rows is not None:
                        rows.append((index, hex_, payload, tail))
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
                self._head(line, segment, position)
            else:
                self._odd_entry(line, segment, position)
                index, previous, last_time = pending.index, pending.previous, pending.time
                before = f',"keyring":{pending.keyring},"previous":"sha256:'
                middle = _FIXED + len(str(index)) + len(str(pending.keyring))
                next_stop = 10 ** len(str(index)) if index else 1
            position = end + 1
        pending.index, pending.previous, pending.time = index, previous, last_time
        self.ids.extend(ids[: self._committed_ids])
        del ids[: self._committed_ids]
        self._committed_ids = 0
        return position

    def _odd_entry(self, line: bytes, segment: Segment, offset: int) -> None:
        """Say what is wrong with a line that is not the entry expected, and take from it what can be read."""
        pending, find = self._pending, self._report.find
        where = _place(segment, offset)
        faults = pending.faults
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
            self._sound = False
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
        if envelope is not None and pending.faults == faults and self._consume is not None:
            tail = line[len(line) - len(envelope_bytes) - 1 + len(b'{"payload":') + len(envelope.payload) :]
            pending.rows.append((entry.index, entry.receipt[7:], envelope.payload, tail))
        self._keyring_entry(entry.index, entry.receipt, None if envelope is None else envelope_bytes)
        pending.index = entry.index + 1

    def _add_leaf(self, entry: bytes) -> None:
        self._pending.previous = sha256(entry).hexdigest()
        self._pending.leaves.append(sha256(b"\0" + entry).digest())

    def _skip_entry(self) -> None:
        """Go on after a line that is no entry: what stands before and after it can no longer be joined."""
        self._pending.faults += 1
        self._pending.index += 1
        self._pending.previous = ""
        self._sound = False

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

    # Keys.

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

    def _take_keys(self) -> None:
        """Move the keyring by the entries of a commit that ends."""
        for index, id_, envelope in self._pending.keys:
            problem = self._take_key(index, id_, envelope)
            if problem is not None:
                code, message = problem
                self._report.find("keyring", code, where=f"entry {index}", message=message)
        self._pending.keys.clear()
        if self.keyring is not None:
            self._origin = self.keyring.origin
            self._key_changed = True
            try:
                self._mark = NoteKey(self._origin, ED25519, parse_key_id(self.keyring.log_key)).key_id
            except UnknownFormatError:
                self._mark, self._log_line = b"", None
                return
            self._log_line = _log_line(self._mark)
            origin = orjson.dumps(self._origin)[1:-1].replace(b"%", b"%%")
            self._head_text = b'{"head":"' + origin + b"\\n%d\\n%b\\n\\n\xe2\x80\x94 " + origin + b" "

    def _take_key(self, index: int, id_: str, envelope: Envelope | None) -> tuple[str, str] | None:
        """Move the keyring by one entry; return the code and the message that speak against it."""
        if envelope is None:
            return "chain.first_entry", "entry 0 cannot be read"
        try:
            receipt = parse_receipt(envelope.payload)
            if isinstance(receipt, Header) != (index == 0):
                return "chain.first_entry", f"got kind {receipt.kind} at entry {index}"
            if envelope.seal is not None and envelope.seal.key != receipt.issuer.key:
                return "seal.issuer", f"the seal of this {receipt.kind} is by another key than its issuer's"
            verify_seal(envelope)
        except UnknownFormatError as error:
            return "format.unknown", str(error)
        except SignatureError as error:
            return ("seal.absent" if error.code == "seal.absent" else "seal.invalid"), str(error)
        except FormatError as error:
            return ("chain.first_entry" if index == 0 else "receipt.malformed"), str(error)
        if isinstance(receipt, Header):
            self.keyring = Keyring.start(receipt, id_)
            return header_problem(receipt)
        if not isinstance(receipt, Key) or self.keyring is None:
            return "key.chain", "no header stands before it"
        problem = self.keyring.take(receipt, index)
        return None if problem is None else ("key.chain", problem)

    # Heads.

    def _head(self, line: bytes, segment: Segment, offset: int) -> None:
        """Take a whole head line: the end of a commit, unless it cannot be read."""
        self._absorb()
        if not self._expected(line):
            where = _place(segment, offset)
            for code, message in self._problems(line):
                self._report.find("heads", code, where=where, message=message)
                self._pending.faults += 1
                if code == "head.malformed":
                    return
        self._commit(line, segment, offset)

    def _absorb(self) -> None:
        """Add the leaves and keys of the commit under way to the fold."""
        pending, fold = self._pending, self._fold
        leaves = pending.leaves
        if pending.keys:
            self._take_keys()
        if self._watch is not None and fold.size < self._watch <= fold.size + len(leaves):
            split = self._watch - fold.size
            fold.extend(leaves[:split])
            self.watched_root = fold.root() if self._sound else None
            del leaves[:split]
        if len(leaves) < _FEW:
            for leaf in leaves:
                fold.append(leaf)
        else:
            fold.extend(leaves)
        leaves.clear()

    def _expected(self, line: bytes) -> bool:
        """Return whether a head line is the one that must stand here, with one signature line, by the log key in force."""
        pattern, index, stop = self._log_line, self._pending.index, self._after_note
        if not self._sound or pattern is None or index == self.size:
            return False
        root = self._fold.root()
        start = self._head_text % (index, b2a_base64(root, newline=False))
        if (
            line.startswith(start)
            and line.endswith(stop)
            and pattern.fullmatch(line, len(start), len(line) - len(stop)) is not None
        ):
            self._root = root
            return True
        return False

    def _problems(self, line: bytes) -> list[tuple[str, str]]:
        """Return what is wrong with a head line that is not the one expected; none if it only bears more signatures."""
        try:
            note, previous = parse_head_line(line)
            head = head_of(note)
        except LedgerError as error:
            return [("head.malformed", str(error))]
        problems = []
        if previous[7:] != self._last_digest:
            problems.append(("head.link", f"got previous_head {previous}, expected sha256:{self._last_digest}"))
        if not self._origin:
            self._origin = head.origin
        if head.origin != self._origin:
            problems.append(("head.origin", f"got origin {clip(head.origin)}, expected {clip(self._origin)}"))
        size = self._pending.index
        if size == self.size:
            problems.append(("head.empty", "it ends a commit of no entries"))
        self._root = b""
        if head.size != size:
            problems.append(("head.size", f"got size {head.size}, expected {size}"))
            self._sound = False
        elif not self._sound:
            self._unreached += 1
        elif head.root != self._fold.root():
            problems.append(("head.root", f"got root {head.root.hex()}, expected {self._fold.root().hex()}"))
            self._sound = False
        else:
            self._root = head.root
        if self._mark:
            names = {(found.name, found.key_id) for found in parse_note(note).signatures}
            if (self._origin, self._mark) not in names:
                problems.append(("head.unsigned", "no line by the log key in force"))
        return problems

    def _commit(self, line: bytes, segment: Segment, offset: int) -> None:
        """Move the state to the end of the commit under way."""
        pending = self._pending
        self.size = pending.index
        self._last = line
        self._last_place = (segment, offset)
        self._last_digest = sha256(line).hexdigest()
        self._after_note = b'\\n","previous_head":"sha256:' + self._last_digest.encode() + b'"}'
        self._rest_offset = offset + len(line) + 1
        self._heads += 1
        self._committed_ids = len(pending.ids)
        pending.faults = 0
        if self._consume is not None:
            self._consume(pending.rows)
            pending.rows.clear()
        self._unverified = True
        if self._every_head or self._key_changed:
            self._verify_last()

    def _verify_last(self) -> None:
        """Verify the signature of the last head by the log key in force."""
        self._unverified = False
        self.signed = False
        if self.keyring is None:
            return
        self._key_changed = False
        problem = self._signature_problem(self._last)
        if problem is None:
            self._signatures += 1
            self.signed = True
        else:
            code, message = problem
            self._report.find("head signatures", code, where=_place(*self._last_place), message=message)

    def _signature_problem(self, line: bytes) -> tuple[str, str] | None:
        assert self.keyring is not None  # noqa: S101  told by its callers
        try:
            open_head(parse_head_line(line)[0], origin=self._origin, log_key=self.keyring.log_key)
        except UnknownFormatError as error:
            return "format.unknown", str(error)
        except LedgerError as error:
            return _HEAD_CODES.get(error.code, "head.malformed"), str(error)
        return None

    # What follows the last head.

    def _rest(self) -> bool:
        return bool(self._fragment) or self._pending.index != self.size or self._pending.faults != 0

    def _settle(self) -> None:
        """Judge the bytes after the last head of the last segment: a commit but for its LF, a torn tail, or damage."""
        pending, fragment, segment = self._pending, self._fragment, self._segment
        assert segment is not None  # noqa: S101  there are bytes
        offset = len(segment.data) - len(fragment)
        if fragment.startswith(HEAD_PREFIX) and fragment.endswith(b'"}') and not pending.faults:
            self._absorb()
            problems = [] if self._expected(fragment) else self._problems(fragment)
            signature = (
                self._signature_problem(fragment) if self.keyring is not None else ("head.unsigned", "no header")
            )
            if signature is not None:
                problems.append(signature)
            if problems:
                self._damaged(f"the last line is a whole head that does not hold: {problems[0][1]}")
            else:
                self._commit(fragment, segment, offset)
                self.ids.extend(pending.ids)
            return
        reason = self._why_not_torn(fragment) if not pending.faults else "lines after the last head do not hold"
        if reason is not None:
            self._damaged(reason)
            return
        rest = len(segment.data) - self._rest_offset
        self._report.inform(
            "journal",
            "journal.torn_tail",
            where=_place(segment, self._rest_offset),
            message=f"{rest} bytes of a commit that never ended; a writer sets them aside",
        )

    def _damaged(self, message: str) -> None:
        segment = self._segment
        assert segment is not None  # noqa: S101  told by its callers
        self._report.find("journal", "journal.damaged", where=_place(segment, self._rest_offset), message=message)

    def _why_not_torn(self, fragment: bytes) -> str | None:
        """Return why the last bytes, without LF, are not the beginning of a line that a crash cut short."""
        text = fragment.rstrip(b"\0")
        if b"\0" in text:
            return "NULs stand before other bytes"
        if not any(text.startswith(prefix[: len(text)]) for prefix in (ENTRY_PREFIX, HEAD_PREFIX)):
            return "the last bytes begin no line of a journal"
        # A head line holds one closing brace, its last byte, so a torn one holds none.
        if text.startswith(HEAD_PREFIX) and b"}" in text:
            return "the last line is a whole head that does not hold"
        end = _end_of_value(text)
        if end is None:
            return None
        if end != len(text):
            return "the last line goes on after its end"
        try:
            entry = parse_entry(parse_entry_line(text)[0])
        except LedgerError as error:
            return f"the last line is whole but is no entry: {error}"
        if entry.index != self._pending.index or entry.previous[7:] != self._pending.previous:
            return "the last line is a whole entry that does not continue the chain"
        return None


def _log_line(mark: bytes) -> re.Pattern[bytes]:
    """Return the expression of 4 bytes of key id and 64 of signature in base64 without spare bits."""
    text = b2a_base64(mark, newline=False)
    # 4 bytes are five letters and two bits of the sixth.
    first = _BASE64.index(text[5:6]) & 0b110000
    sixth = _BASE64[first : first + 16]
    return re.compile(re.escape(text[:5]) + b"[" + re.escape(sixth) + b"][A-Za-z0-9+/]{84}[AEIMQUYcgkosw048]=")


def _place(segment: Segment, offset: int) -> str:
    line = segment.data.count(b"\n", 0, offset) + 1
    return f"{segment.name}:{line} (byte {offset})"


def _end_of_value(text: bytes) -> int | None:
    """Return the offset after the first JSON object of a text, None if the text ends inside it."""
    level = 0
    position = 0
    while position < len(text):
        byte = text[position]
        if byte == 0x22:
            match = _STRING.match(text, position)
            if match is None:
                return None
            position = match.end()
            continue
        if byte == 0x7B:
            level += 1
        elif byte == 0x7D:
            level -= 1
            if level == 0:
                return position + 1
        position += 1
    return None


_HEAD_CODES: Final = {
    "note.unsigned": "head.unsigned",
    "note.bad_signature": "head.signature",
    "head.origin": "head.origin",
}
