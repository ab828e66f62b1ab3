r"""Pack records: one artifact's stored bytes under a header that names them.

    sha256:<64 hex> <length>\n<bytes>\n

Source: docs/spec/artifacts.md.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

__all__ = ["Span", "is_torn", "print_record", "record_at", "spans_of", "stray_spans"]

_CHUNK: Final = 64 * 1024
_HEADER: Final = re.compile(rb"sha256:([0-9a-f]{64}) (0|[1-9][0-9]{0,8})\n")
_PARTIAL: Final = re.compile(rb"sha256:[0-9a-f]{0,64}|sha256:[0-9a-f]{64} (?:0|[1-9][0-9]{0,8})?")
_HEADER_BYTES: Final = 7 + 64 + 1 + 9 + 1

Span: TypeAlias = tuple[bytes, int, int]
"""The 32 digest bytes of a record, where the record begins, where it ends (its LF included)."""


def print_record(key: bytes, data: bytes) -> bytes:
    """Return the record of `data`, named by its 32 digest bytes."""
    return b"sha256:%b %d\n%b\n" % (key.hex().encode("ascii"), len(data), data)


def spans_of(descriptor: int, start: int, size: int) -> Iterator[Span]:
    """Yield the unbroken row of whole records from `start` on; `size` is where the file ends. Bytes are not hashed."""
    position = base = start
    buffer = b""
    while position < size:
        if position + _HEADER_BYTES > base + len(buffer):
            base, buffer = position, os.pread(descriptor, _CHUNK, position)
        header = _HEADER.match(buffer, position - base)
        if header is None:
            return
        last = base + header.end() + int(header[2])
        if last >= size:
            return
        if last >= base + len(buffer):
            base, buffer = last, os.pread(descriptor, _CHUNK, last)
        if buffer[last - base : last - base + 1] != b"\n":
            return
        yield bytes.fromhex(header[1].decode("ascii")), position, last + 1
        position = last + 1


def stray_spans(tail: bytes) -> Iterator[Span]:
    """Yield the records in a tail that does not begin with a whole one; only records whose bytes match their digest."""
    position = 0
    while (header := _HEADER.search(tail, position)) is not None:
        key, last = bytes.fromhex(header[1].decode("ascii")), header.end() + int(header[2])
        whole = tail[last : last + 1] == b"\n" and hashlib.sha256(tail[header.end() : last]).digest() == key
        if whole:
            yield key, header.start(), last + 1
        position = last + 1 if whole else header.end()


def is_torn(tail: bytes) -> bool:
    """Return whether a tail is what an interrupted append leaves: one record that stops short, NULs after it or not."""
    if any(True for _ in stray_spans(tail)):
        return False
    written = tail.rstrip(b"\0")
    header = _HEADER.match(written)
    if header is None:
        return b"sha256:".startswith(written) or _PARTIAL.fullmatch(written) is not None
    length, content = int(header[2]), tail[header.end() : -1]
    # A whole record under a wrong length is damage: its bytes are worth keeping.
    mistaken = len(content) != length and hashlib.sha256(content).hexdigest() == header[1].decode("ascii")
    return header.end() + length >= len(written) and not mistaken


def record_at(descriptor: int, start: int, key: bytes) -> bytes | None:
    """Return the bytes of the record that begins at `start`, None where none of that digest begins there."""
    buffer = os.pread(descriptor, 4096, start)
    header = _HEADER.match(buffer)
    if header is None or bytes.fromhex(header[1].decode("ascii")) != key:
        return None
    length = int(header[2])
    rest = length - (len(buffer) - header.end())
    if rest > 0:
        buffer += os.pread(descriptor, rest, start + len(buffer))
    data = buffer[header.end() : header.end() + length]
    return data if len(data) == length else None
