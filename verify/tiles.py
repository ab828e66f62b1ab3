"""Tiles as the verifier works them out: bundles of entries folded into hash tiles and a root, and compared with the files.

Nothing here comes from `ledger.tiles` or the prover, so that an error in one is not an error in both.

Source: docs/spec/published.md, C2SP tlog-tiles v0.1.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final, TypeAlias

from ledger.checkpoint import Head
from ledger.entry import ENTRY_SCHEMA, parse_entry
from ledger.errors import FormatError, UnknownFormatError
from ledger.members import TIME_PATTERN
from verify.ids import IdSet
from verify.proof import EMPTY_ROOT
from verify.report import Report

__all__ = ["Read", "TreeFold", "bundles"]

Read: TypeAlias = Callable[[str], bytes | None]
"""Gives the bytes of a file of the tree by its path, None where there is none; raises FormatError where it is no plain file."""

_WIDTH: Final = 256
_HASH: Final = 32
_MIDDLE: Final = len('{"envelope":"sha256:') + 64
_START = re.compile(rb'\{"envelope":"sha256:[0-9a-f]{64}"')
_REST = re.compile(
    rb'([0-9a-f]{64})","recorded_at":"(%b)","schema":"%b"\}'
    % (TIME_PATTERN[1:-1].encode("ascii"), re.escape(ENTRY_SCHEMA.encode("ascii")))
)


class TreeFold:
    """Folds the entries of a tree, bundle by bundle, into its tiles and its root.

    Attributes:
        size: how many entries were looked at.
        rooted: whether the root of all entries is that of the checkpoint.
        watched_root: the root at `watch` entries, where the tree has that many.
        keyring: the newest key entry that an entry names, 0 where the header is the only one.
    """

    def __init__(self, read: Read, report: Report, head: Head, *, watch: int | None) -> None:
        self._read = read
        self._report = report
        self._head = head
        self._watch = watch
        self._levels: list[list[bytes]] = [[]]
        """Hashes of the last tile of each level while it is not full."""
        self._previous = "0" * 64
        self._time = b""
        self._tiles = 0
        self.size = 0
        self.keyring = 0
        self.header = ""
        self.ids = IdSet()
        self.rooted = False
        self.watched_root: bytes | None = None

    def run(self) -> bool:
        """Go through the whole tree; return whether all of it could be read and leads to the root."""
        head, report = self._head, self._report
        for entries in bundles(self._read, head.size, report):
            self._entries(entries)
            self._leaves(entries)
        if self.size < head.size:
            return False
        self._edge()
        report.ran("chain", self.size)
        report.ran("ids", self.size)
        report.ran("tiles", self._tiles)
        root = _root(self._levels)
        if root != head.root:
            message = f"got root {head.root.hex()}, the entries have {root.hex()}"
            report.find("checkpoint", "head.root", where="checkpoint", message=message)
            return False
        report.ran("checkpoint")
        self.rooted = True
        return True

    def _entries(self, entries: list[bytes]) -> None:
        """Check the entries of a bundle as links of the chain."""
        ids: list[bytes] = []
        for index, entry in enumerate(entries, self.size):
            # Everything but digests and time follows from what stands before: where that stands, nothing need be parsed.
            middle = (
                f'","index":{index},"keyring":{self.keyring},"previous":"sha256:{self._previous}","receipt":"sha256:'
            )
            match = None
            if entry.startswith(middle.encode("ascii"), _MIDDLE) and _START.match(entry) is not None:
                match = _REST.fullmatch(entry, _MIDDLE + len(middle))
            receipt, time = match.groups() if match is not None else self._odd(entry, index)
            if receipt:
                ids.append(bytes.fromhex(receipt.decode("ascii")))
                if time < self._time:
                    message = f"recorded at {time.decode('ascii')}, after {self._time.decode('ascii')}"
                    self._report.inform("time", "time.step_back", where=f"entry {index}", message=message)
                self._time = time
            self._previous = sha256(entry).hexdigest()
        if self.size == 0 and ids:
            self.header = f"sha256:{ids[0].hex()}"
        self.ids.extend(ids)

    def _odd(self, entry: bytes, index: int) -> tuple[bytes, bytes]:
        """Say what is wrong with an entry that is not the one expected, if anything; return its receipt and time, if it has them."""
        find, where = self._report.find, f"entry {index}"
        try:
            found = parse_entry(entry)
        except UnknownFormatError as error:
            # Its bytes still are a leaf and a link, whatever they mean.
            find("chain", "format.unknown", where=where, message=str(error))
            return b"", b""
        except FormatError as error:
            find("chain", "entry.malformed", where=where, message=str(error))
            return b"", b""
        if found.index != index:
            find("chain", "chain.index", where=where, message=f"got index {found.index}, expected {index}")
        if found.previous[7:] != self._previous:
            find("chain", "chain.previous", where=where, message=f"it does not name the entry before: {found.previous}")
        # The keyring moves only to the entry just before: whether that is a key entry is in its receipt.
        last = max(index - 1, 0)
        if found.keyring not in (self.keyring, last):
            message = f"got keyring {found.keyring}, expected {self.keyring} or {last}"
            find("chain", "chain.keyring", where=where, message=message)
        self.keyring = found.keyring
        return found.receipt[7:].encode("ascii"), found.recorded_at.encode("ascii")

    def _leaves(self, entries: list[bytes]) -> None:
        """Add the leaves of a bundle, and compare each tile that they fill."""
        leaves = [sha256(b"\0" + entry).digest() for entry in entries]
        watch = self._watch
        if watch is not None and self.size < watch <= self.size + len(leaves):
            self.watched_root = _root([leaves[: watch - self.size], *self._levels[1:]])
        self.size += len(leaves)
        self._levels[0] = leaves
        level = 0
        while len(hashes := self._levels[level]) == _WIDTH:
            self._compare(level, (self.size >> 8 * (level + 1)) - 1, hashes)
            if level + 1 == len(self._levels):
                self._levels.append([])
            self._levels[level + 1].append(_fold(hashes))
            self._levels[level] = []
            level += 1

    def _edge(self) -> None:
        """Compare the partial tiles."""
        for level, hashes in enumerate(self._levels):
            if hashes:
                self._compare(level, self.size >> 8 * (level + 1), hashes)

    def _compare(self, level: int, index: int, hashes: list[bytes]) -> None:
        """Compare a tile with the hashes that it must hold."""
        path, data, full = _file(self._read, self._report, str(level), index, len(hashes))
        if data is None:
            return
        self._tiles += 1
        if len(data) != (full or len(hashes)) * _HASH:
            message = f"got {len(data)} bytes, expected {(full or len(hashes)) * _HASH}"
            self._report.find("tiles", "tile.malformed", where=path, message=message)
            return
        expected = b"".join(hashes)
        if data[: len(expected)] == expected:
            return
        wrong = next(at for at in range(len(hashes)) if data[at * _HASH : (at + 1) * _HASH] != hashes[at])
        self._report.find("tiles", "tile.hash", where=path, message=f"hash {wrong} is not that of the entries below it")


def bundles(read: Read, size: int, report: Report) -> Iterator[list[bytes]]:
    """Yield the entries of each bundle; end at the first that is missing or malformed, after saying so."""
    for index in range(-(-size // _WIDTH)):
        width = min(_WIDTH, size - index * _WIDTH)
        path, data, full = _file(read, report, "entries", index, width)
        if data is None:
            return
        try:
            yield _split(data, full or width)[:width]
        except FormatError as error:
            report.find("tiles", "tile.malformed", where=path, message=str(error))
            return


def _split(data: bytes, count: int) -> list[bytes]:
    """Return the entries of a bundle, which must be `count`, each after two bytes of length."""
    entries: list[bytes] = []
    at, end = 0, len(data)
    while at < end:
        if len(entries) == count:
            raise FormatError(f"{end - at} bytes follow its {count} entries")
        start = at + 2
        at = start + int.from_bytes(data[at:start], "big")
        if start > end or at > end:
            raise FormatError(f"it ends inside entry {len(entries)}")
        entries.append(data[start:at])
    if len(entries) != count:
        raise FormatError(f"got {len(entries)} entries, expected {count}")
    return entries


def _file(read: Read, report: Report, kind: str, index: int, width: int) -> tuple[str, bytes | None, int | None]:
    """Return path and bytes of a tile, None for bytes after saying why; and 256 where the full tile stands in for a partial one.

    A partial tile may be gone as soon as the full one is there: its beginning is what the partial one was.
    """
    path = _path(kind, index, width)
    try:
        data = read(path)
        if data is None and width < _WIDTH:
            longer = _path(kind, index, _WIDTH)
            data = read(longer)
            if data is not None:
                return longer, data, _WIDTH
    except FormatError as error:
        report.find("tiles", "tile.malformed", where=path, message=str(error))
        return path, None, None
    if data is None:
        report.find("tiles", "tile.missing", where=path)
    return path, data, None


def _path(kind: str, index: int, width: int) -> str:
    groups = [f"{index % 1000:03d}"]
    while index >= 1000:
        index //= 1000
        groups.insert(0, f"x{index % 1000:03d}")
    return f"tile/{kind}/{'/'.join(groups)}" + ("" if width == _WIDTH else f".p/{width}")


def _fold(hashes: list[bytes]) -> bytes:
    """Return the root of a power of two of sibling hashes."""
    while len(hashes) > 1:
        pairs = iter(hashes)
        hashes = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=True)]
    return hashes[0]


def _root(levels: list[list[bytes]]) -> bytes:
    """Return the root of a tree from the hashes of each level's last tile, level 0 first.

    A row of n hashes is one complete subtree for each bit set in n, the largest first; the whole is those of all levels, the
    highest level first, joined from the right (RFC 9162, 2.1.1).
    """
    running: bytes | None = None
    for hashes in levels:
        end = len(hashes)
        while end:
            width = end & -end
            left = _fold(hashes[end - width : end])
            running = left if running is None else sha256(b"\x01" + left + running).digest()
            end -= width
    return EMPTY_ROOT if running is None else running
