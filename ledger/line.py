r"""Journal lines: an entry with its envelope, or a head that ends a commit.

    {"entry":{...},"envelope":{...}}
    {"head":"<origin>\n<size>\n<root>\n\n— <origin> <signature>\n","previous_head":"sha256:..."}

`previous_head` is the digest of the head line before, without its LF; zeros on the first. Lines end in LF, which is not part
of what these functions take and return.

Source: docs/spec/journal.md.
"""

from __future__ import annotations

from typing import Final

from ledger import canonical
from ledger.digest import is_digest
from ledger.errors import CanonicalError, FormatError, clip

__all__ = ["ENTRY_PREFIX", "HEAD_PREFIX", "parse_entry_line", "parse_head_line", "print_entry_line", "print_head_line"]

ENTRY_PREFIX: Final = b'{"entry":'
HEAD_PREFIX: Final = b'{"head":'
_ENVELOPE: Final = b',"envelope":{"payload":'
_ENVELOPE_OFFSET: Final = len(b',"envelope":')


def parse_entry_line(line: bytes) -> tuple[bytes, bytes]:
    """Return the entry's bytes and the envelope's bytes; neither is parsed.

    Raises:
        FormatError: not the layout of an entry line.
    """
    # An entry holds no object, so the first match is the line's own.
    middle = line.find(_ENVELOPE)
    if middle < 0 or not line.startswith(ENTRY_PREFIX) or not line.endswith(b"}}"):
        raise FormatError(f"line: got {clip(line)}, expected an entry and its envelope", code="line.malformed")
    return line[len(ENTRY_PREFIX) : middle], line[middle + _ENVELOPE_OFFSET : -1]


def print_entry_line(entry: bytes, envelope: bytes) -> bytes:
    """Return the line of an entry and its envelope; the inverse of `parse_entry_line`."""
    return b"".join((ENTRY_PREFIX, entry, b',"envelope":', envelope, b"}"))


def parse_head_line(line: bytes) -> tuple[bytes, str]:
    """Return the signed note's bytes and the digest of the head line before.

    Raises:
        FormatError: not the exact text of a head line.
    """
    try:
        value = canonical.decode(line, max_depth=1)
    except CanonicalError as error:
        raise FormatError(f"line: {error}", code="line.malformed") from error
    note, previous = value.get("head"), value.get("previous_head")
    if len(value) != 2 or not isinstance(note, str) or not isinstance(previous, str) or not is_digest(previous):
        raise FormatError(
            f"line: got {clip(line)}, expected a head and the digest of the one before", code="line.malformed"
        )
    return note.encode("utf-8"), previous


def print_head_line(note: bytes, previous: str) -> bytes:
    """Return the line of a signed note; the inverse of `parse_head_line`."""
    return canonical.encode({"head": note.decode("utf-8"), "previous_head": previous})
