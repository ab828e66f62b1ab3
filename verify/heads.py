"""Heads: the fold over the ends of commits.

Each head has the origin, the size and the root of the entries before it, names the head line before, and bears a signature line
of the log key in force. That signature is verified on the last head, on the first head after each header or key entry, and on
every head where asked.

The text of a head line but for its signature follows from what stands before it, so the fold writes what must stand there and
compares bytes. Only where they differ is the line parsed, to say what is wrong.

Source: docs/spec/heads.md, docs/spec/journal.md.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

import orjson

from ledger.checkpoint import Head, head_of, open_head
from ledger.digest import ZERO_DIGEST
from ledger.envelope import Envelope, verify_seal
from ledger.errors import FormatError, LedgerError, SignatureError, UnknownFormatError, clip
from ledger.keys import parse_key_id, verify_signature
from ledger.line import parse_head_line
from ledger.note import ED25519, NoteKey, parse_note
from ledger.receipt import Header, Key, parse_receipt
from verify.journal import Place, place
from verify.keyring import Keyring, header_problem
from verify.proof import FoldState, RootFold
from verify.report import Report

__all__ = ["HEAD_CODES", "HeadFold", "HeadPoint", "HeadTotals", "KeyEntry", "Problem"]

Problem: TypeAlias = tuple[str, str]
"""A code and a message."""
_Expected: TypeAlias = tuple[bytes, int, int, bytes]
"""Of an expected head: its line, where the signature begins there, its size, and its root in base64."""
KeyEntry: TypeAlias = tuple[int, str, Envelope | None]
"""Index, receipt id and envelope of a header or key entry; the envelope is None where it could not be read."""

HEAD_CODES: Final = {
    "note.unsigned": "head.unsigned",
    "note.bad_signature": "head.signature",
    "signature.invalid": "head.signature",
    "head.origin": "head.origin",
}
"""Codes of findings, by the codes of the errors of opening a head."""
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SIGNATURE_LETTERS: Final = 92
"""Letters of 4 bytes of key id and 64 of signature in base64."""
_NOTHING: Final = re.compile(rb"(?!)")
_BEFORE_DIGEST: Final = b'\\n","previous_head":"sha256:'
_AFTER_DIGEST: Final = b'"}'
"""What stands after the last signature on a head line, around the hexadecimal digits of `previous_head`."""
_END_LENGTH: Final = len(_BEFORE_DIGEST) + 64 + len(_AFTER_DIGEST)
_TOGETHER: Final = 64
"""Signatures that are verified one after the other: faster than each between other work."""
_FEW: Final = 200
"""Leaves below which adding them one by one is as fast as level by level."""


def _signatures_of(mark: bytes) -> re.Pattern[bytes]:
    """Return the expression of 64 bytes of signature after the 4 of a key id, in base64 and no other text of it."""
    text = b2a_base64(mark + bytes(2), newline=False)
    split = _BASE64.index(text[5])  # 2 bits of the key id and 4 of the signature
    return re.compile(
        re.escape(text[:5]) + b"[" + _BASE64[split : split + 16] + b"][A-Za-z0-9+/]{84}[" + _BASE64[::4] + b"]="
    )


def _signature_at(line: bytes, start: int) -> bytes:
    """Return the signature that stands at an offset of an expected head line."""
    return a2b_base64(line[start : start + _SIGNATURE_LETTERS])[4:]


@dataclass(frozen=True, slots=True)
class HeadPoint:
    """What the commits after a head depend on, where everything before it is in order.

    `line` is the head line, `fold` the leaves before it from 0, `keys` the entries that made the keyring.
    """

    line: bytes
    fold: FoldState
    keys: tuple[KeyEntry, ...]


@dataclass(frozen=True, slots=True)
class HeadTotals:
    """What a fold over heads counted, and what it knows of the last one."""

    count: int = 0
    signatures: int = 0
    unverified: bool = True
    """Whether the signature of the last head was not looked at."""
    signed: bool = False
    """Whether the last signature looked at holds."""
    where: str = ""
    """Where the last head stands."""
    watched_root: bytes | None = None
    """Root at the watched size, where it was passed."""


class HeadFold:
    """Folds commits: leaves, keys and the head line that ends them.

    Attributes:
        size: entries under the last head.
        count: how many heads.
        keyring: keys in force, None where entry 0 is no readable header.
        origin: the ledger's name, empty before it is known.
        sound: whether every entry so far stands at its index, so that roots can be recomputed.
        signed: whether the signature of the last head was verified and holds.
        watched_root: root at `watch` entries, where the fold passed that size.
    """

    def __init__(self, report: Report, *, every_head: bool, watch: int | None, start: HeadPoint | None = None) -> None:
        self._report = report
        self._every_head = every_head
        self._watch = watch
        self.size = self.count = 0
        self.keyring: Keyring | None = None
        self.origin = ""
        self.sound = True
        self.signed = False
        self.watched_root: bytes | None = None
        self._fold = RootFold()
        self._root = b""
        """Root of the last head, empty where it is not that of the entries."""
        self._signatures = self._unreached = 0
        self._line = b""
        self._digest = ZERO_DIGEST[7:]
        """The last head line and its digest."""
        self._place: Place | str = ""
        self._unverified = False
        self._waiting: list[tuple[_Expected, Place]] = []
        """Expected heads whose signatures are to be verified."""
        self._key_changed = True
        self._keys: list[KeyEntry] = []
        """The entries that made the keyring."""
        self._signature: _Expected | None = None
        self._signers: tuple[str, ...] = ()
        """Keys that must sign the head under way, where that is not just the one in force."""
        self._mark = b""
        """Key id of the log key in force, as it stands on a note."""
        self._signed_by = _NOTHING.fullmatch
        """What a signature by that key looks like on a note."""
        self._signed_text = b""
        """The text of a note, with places for size and root in base64."""
        self._text = b""
        """What stands before it on a head line, with places for size and root."""
        self._end = _BEFORE_DIGEST + self._digest.encode("ascii") + _AFTER_DIGEST
        """What stands after it."""
        if start is not None:
            self._start(start)

    def _start(self, point: HeadPoint) -> None:
        """Go on from a point; its keyring was reported on before."""
        self._take_keys(point.keys, Report())
        self._key_changed, self._signers = False, ()
        self._fold = RootFold.resume(point.fold)
        self.size, self._root = self._fold.size, self._fold.root()
        self._set_line(point.line)
        self._unverified = True
        if self._watch == self.size:
            self.watched_root = self._root

    def _set_line(self, line: bytes) -> None:
        self._line = line
        self._digest = digest = sha256(line).hexdigest()
        self._end = _BEFORE_DIGEST + digest.encode() + _AFTER_DIGEST

    def point(self) -> HeadPoint | None:
        """Return the point after the last head, None where something before it does not hold."""
        if not self.sound or not self._root or not self._mark or self._key_changed or self._signers:
            return None
        return HeadPoint(self._line, self._fold.snapshot(), tuple(self._keys))

    def totals(self) -> HeadTotals:
        """Return what was counted up to the last head."""
        place_ = self._place if isinstance(self._place, str) else place(self._place)
        return HeadTotals(self.count, self._signatures, self._unverified, self.signed, place_, self.watched_root)

    def resume(self, totals: HeadTotals) -> None:
        """Go on from what was counted up to the point that this fold started from."""
        self.count, self._signatures = totals.count, totals.signatures
        self._unverified, self.signed, self._place = totals.unverified, totals.signed, totals.where
        self.watched_root = self.watched_root or totals.watched_root

    def join(self, end: HeadPoint, totals: HeadTotals) -> None:
        """Move to a point that another fold reached from this one's, with what it counted on the way."""
        self._fold = RootFold.resume(end.fold)
        self.size, self._root = self._fold.size, self._fold.root()
        self._set_line(end.line)
        self.count += totals.count
        self._signatures += totals.signatures
        self._unverified, self._place = totals.unverified, totals.where
        if len(end.keys) > len(self._keys):
            self._take_keys(end.keys[len(self._keys) :], Report())
            self._key_changed, self._signers = False, ()
        self.signed = totals.signed
        self.watched_root = self.watched_root or totals.watched_root

    @property
    def head(self) -> Head | None:
        """The last head; None before the first, and where its root is not that of the entries."""
        return Head(self.origin, self.size, self._root) if self.count and self._root else None

    @property
    def note(self) -> bytes:
        """The signed note of the last head."""
        return parse_head_line(self._line)[0]

    def absorb(self, leaves: list[bytes], keys: list[KeyEntry]) -> None:
        """Add the leaves and the header and key entries of the commit under way, and empty both lists."""
        fold = self._fold
        if keys:
            self.verify_waiting()
            self._take_keys(keys, self._report)
            keys.clear()
        if self._watch is not None and fold.size < self._watch <= fold.size + len(leaves):
            split = self._watch - fold.size
            fold.extend(leaves[:split])
            self.watched_root = fold.root() if self.sound else None
            del leaves[:split]
        if len(leaves) < _FEW:
            for leaf in leaves:
                fold.append(leaf)
        else:
            fold.extend(leaves)
        leaves.clear()

    def take(self, line: bytes, size: int, leaves: list[bytes], keys: list[KeyEntry], at: Place) -> bool:
        """Return whether a line was the head that must stand after `size` entries and was taken as the end of a commit.

        The leaves and keys of the commit are absorbed in any case.
        """
        if len(leaves) == 1 and not keys and self._watch is None:
            root: bytes | None = self._fold.append_root(leaves.pop())
        else:
            self.absorb(leaves, keys)
            root = None
        if not self.is_expected(line, size, root):
            return False
        self.commit(line, size, at)
        return True

    def is_expected(self, line: bytes, size: int, root: bytes | None = None) -> bool:
        """Return whether a line is the head that must stand after `size` entries, with one signature line, of the key in force.

        `root` is the root of the fold, where it is known already.
        """
        if not self.sound or not self._mark or size == self.size:
            return False
        root = root or self._fold.root()
        text = b2a_base64(root, newline=False)
        start, end = self._text % (size, text), self._end
        length = len(start)
        if (
            line[:length] != start
            or line[-_END_LENGTH:] != end
            or self._signed_by(line, length, len(line) - _END_LENGTH) is None
        ):
            return False
        self._root = root
        self._signature = line, length, size, text
        return True

    def problems(self, line: bytes, size: int) -> list[Problem]:
        """Return what is wrong with a head line that is not the one expected; none if it only bears more signatures."""
        try:
            note, previous = parse_head_line(line)
            head = head_of(note)
        except LedgerError as error:
            return [("head.malformed", str(error))]
        problems = []
        if previous[7:] != self._digest:
            problems.append(("head.link", f"got previous_head {previous}, expected sha256:{self._digest}"))
        self.origin = self.origin or head.origin
        if head.origin != self.origin:
            problems.append(("head.origin", f"got origin {clip(head.origin)}, expected {clip(self.origin)}"))
        if size == self.size:
            problems.append(("head.empty", "it ends a commit of no entries"))
        problems.extend(self._root_problems(head, size))
        if self._mark and (self.origin, self._mark) not in {
            (found.name, found.key_id) for found in parse_note(note).signatures
        }:
            problems.append(("head.unsigned", "no line by the log key in force"))
        return problems

    def commit(self, line: bytes, size: int, at: Place) -> None:
        """Move to the end of the commit that a head line ends."""
        self.size = size
        self.count += 1
        self._place = at
        self._set_line(line)
        self._unverified = True
        if self._key_changed:
            self._verify()
        elif self._every_head:
            expected = self._signature
            if expected is None or expected[0] is not line:
                self._verify()
                return
            self._unverified = False
            self._waiting.append((expected, at))
            if len(self._waiting) >= _TOGETHER:
                self.verify_waiting()

    def verify_waiting(self) -> None:
        """Verify the signatures of the heads that wait for it; all are by the key in force."""
        waiting, keyring = self._waiting, self.keyring
        if not waiting or keyring is None:
            return
        key, signed_text = keyring.log_key, self._signed_text
        for (line, start, size, root), at in waiting:
            try:
                verify_signature(key, _signature_at(line, start), signed_text % (size, root))
            except LedgerError:
                self.signed = False
                self._report_signature(line, key, at)
            else:
                self.signed = True
                self._signatures += 1
        waiting.clear()

    def signature_problem(self, line: bytes, key: str | None = None) -> Problem | None:
        """Return what speaks against the signature of a key, by default the one in force, on a head line."""
        if self.keyring is None:
            return "head.unsigned", "no header says which key signs"
        expected = self._signature
        if expected is not None and expected[0] is line and key in {None, self.keyring.log_key}:
            # The line was compared with the one expected: these are the signature and the text on its note.
            with suppress(LedgerError):
                verify_signature(self.keyring.log_key, _signature_at(*expected[:2]), self._signed_text % expected[2:])
                return None
        try:
            open_head(parse_head_line(line)[0], origin=self.origin, log_key=key or self.keyring.log_key)
        except UnknownFormatError as error:
            return "format.unknown", str(error)
        except LedgerError as error:
            return HEAD_CODES.get(error.code, "head.malformed"), str(error)
        return None

    def finish(self) -> None:
        """Verify the last head's signature, and report what was looked at."""
        report = self._report
        if not self.count:
            report.find("heads", "head.missing")
            return
        if self._unverified:
            self._verify()
        report.ran("heads", self.count)
        if self.keyring is None:
            report.skip("head signatures", "check.unreachable", "no header says which key signs", asked=True)
        else:
            report.ran("keyring")
            report.ran("head signatures", self._signatures)
        if self._unreached:
            report.skip("heads", "check.unreachable", f"{self._unreached} roots follow one that differs", asked=True)

    def _root_problems(self, head: Head, size: int) -> list[Problem]:
        self._root = b""
        if head.size != size:
            self.sound = False
            return [("head.size", f"got size {head.size}, expected {size}")]
        if not self.sound:
            self._unreached += 1
            return []
        root = self._fold.root()
        if head.root != root:
            self.sound = False
            return [("head.root", f"got root {head.root.hex()}, expected {root.hex()}")]
        self._root = root
        return []

    def _verify(self) -> None:
        """Verify the signatures that the last head must bear."""
        self.verify_waiting()
        self._unverified = False
        self.signed = False
        if self.keyring is None:
            return
        self._key_changed = False
        # The commit that replaces a log key carries the line of the key that it retires too.
        keys, self._signers = self._signers or (self.keyring.log_key,), ()
        self.signed = True
        for key in keys:
            if self._report_signature(self._line, key, self._place):
                self._signatures += 1
            else:
                self.signed = False

    def _report_signature(self, line: bytes, key: str, at: Place | str) -> bool:
        """Return whether the signature of a key on a head line holds; report what speaks against it."""
        problem = self.signature_problem(line, key)
        if problem is None:
            return True
        code, message = problem
        self._report.find("head signatures", code, where=at if isinstance(at, str) else place(at), message=message)
        return False

    # Keys.

    def _take_keys(self, keys: Sequence[KeyEntry], report: Report) -> None:
        """Move the keyring by the header and key entries of a commit that ends."""
        known = () if self.keyring is None else self.keyring.log_keys
        for index, id_, envelope in keys:
            problem = self._take_key(index, id_, envelope)
            if problem is not None:
                code, message = problem
                report.find("keyring", code, where=f"entry {index}", message=message)
            if problem is None or index == 0:
                self._keys.append((index, id_, envelope))
        keyring = self.keyring
        if keyring is None:
            return
        self._key_changed = True
        # Also where the first commit rotates the key that its header names: anybody can write such a header.
        if len(keyring.log_keys) > max(len(known), 1):
            self._signers = keyring.log_keys[max(len(known) - 1, 0) :]
        self.origin = keyring.origin
        try:
            self._mark = NoteKey(self.origin, ED25519, parse_key_id(keyring.log_key)).key_id
        except UnknownFormatError:
            self._mark = b""
            return
        self._signed_by = _signatures_of(self._mark).fullmatch
        self._signed_text = self.origin.encode("utf-8").replace(b"%", b"%%") + b"\n%d\n%b\n"
        origin = orjson.dumps(self.origin)[1:-1].replace(b"%", b"%%")
        self._text = b'{"head":"' + origin + b"\\n%d\\n%b\\n\\n\xe2\x80\x94 " + origin + b" "

    def _take_key(self, index: int, id_: str, envelope: Envelope | None) -> Problem | None:
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
