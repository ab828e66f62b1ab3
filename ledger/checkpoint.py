r"""Heads: origin, size and root at one moment; signed, they are C2SP checkpoints.

    ledger.invalid/k3f...                              origin
    8192                                               size, decimal
    Gk+F8Y...=                                         root, base64 of 32 bytes
                                                       (an empty line ends the text)
    — ledger.invalid/k3f... u6Kd...                    signature of the log key

The key's name on the note is the origin. Our heads have no extension lines; those of others may.
`print_checkpoint(parse_checkpoint(t)) == t` for every text without extension lines.

Source: docs/spec/heads.md, C2SP tlog-checkpoint v1.0.0.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from ledger.errors import FormatError, clip
from ledger.keys import PrivateKey, parse_base64, parse_key_id, print_base64
from ledger.note import ED25519, Note, NoteKey, check_note, parse_note, print_note, sign_note

__all__ = ["MAX_SIZE", "Head", "head_of", "open_head", "parse_checkpoint", "print_checkpoint", "sign_head"]

MAX_SIZE: Final = 2**63 - 1

_CHECKPOINT = re.compile(
    r"(?P<origin>[^\x00-\x1f\ud800-\udfff]+)\n(?P<size>0|[1-9][0-9]{0,18})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"(?P<extensions>(?:[^\x00-\x1f\ud800-\udfff]+\n)*)"
)
# A head of ours as `sign_head` writes it, whole: what matches is what the parsers of note and checkpoint accept, read at once.
_SIGNED = re.compile(
    rb"(?P<origin>[!-*,-~]{1,255})\n(?P<size>0|[1-9][0-9]{0,17})\n(?P<root>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)\n\n"
    rb"\xe2\x80\x94 (?P=origin) [A-Za-z0-9+/]{90}[AEIMQUYcgkosw048]=\n"
)
_EMPTY_ROOT: Final = sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Head:
    """The first `size` entries of the ledger `origin` have this merkle root of 32 bytes."""

    origin: str
    size: int
    root: bytes


def parse_checkpoint(text: str, *, extensions: bool = False) -> Head:
    """Return the head that `text` states; extension lines, where allowed, are checked for form and dropped.

    Raises:
        FormatError: `head.malformed`, or `head.extension` for extension lines that are not allowed.
    """
    match = _CHECKPOINT.fullmatch(text)
    if match is None or int(match["size"]) > MAX_SIZE:
        raise FormatError(f"head: got {clip(text)}, expected origin, size and root", code="head.malformed")
    if match["extensions"] and not extensions:
        raise FormatError(f"head: got {clip(match['extensions'])}, expected no extension lines", code="head.extension")
    return Head(match["origin"], int(match["size"]), parse_base64(match["root"]))


def print_checkpoint(head: Head) -> str:
    """Return the text of a head; the inverse of `parse_checkpoint`.

    Raises:
        FormatError: an origin, size or root that the format cannot hold.
    """
    text = f"{head.origin}\n{head.size}\n{print_base64(head.root)}\n"
    match = _CHECKPOINT.fullmatch(text)
    # An origin with a line feed would print as another head, with what follows as extension lines.
    if match is None or match["extensions"] or head.size > MAX_SIZE:
        raise FormatError(f"head: got {clip(head)}, expected an origin, a size and 32 bytes", code="head.malformed")
    return text


def sign_head(head: Head, *log_keys: PrivateKey) -> bytes:
    """Return the signed note of a head, at most a few hundred bytes; the name of its keys, mostly one, is the origin.

    Raises:
        FormatError: an origin that cannot be the name of a note's key.
    """
    text = print_checkpoint(head)
    return print_note(Note(text, tuple(sign_note(text, head.origin, log_key) for log_key in log_keys)))


def open_head(note: bytes, *, origin: str, log_key: str) -> Head:
    """Return the head of a note that the log key (a key id) of `origin` signed.

    Lines of other keys, such as cosignatures of notaries, are not looked at.

    Raises:
        FormatError: not a note, not a head, extension lines, another origin (`head.origin`), or a size of 0 with another
            root than that of no leaves (`head.empty_root`).
        SignatureError: no line by that key (`note.unsigned`), or one that does not verify (`note.bad_signature`).
    """
    parsed = parse_note(note)
    check_note(parsed, (NoteKey(origin, ED25519, parse_key_id(log_key)),))
    head = parse_checkpoint(parsed.text)
    if head.origin != origin:
        raise FormatError(f"head: got origin {clip(head.origin)}, expected {clip(origin)}", code="head.origin")
    if head.size == 0 and head.root != _EMPTY_ROOT:
        raise FormatError(f"head: got root {head.root.hex()[:16]} at size 0", code="head.empty_root")
    return head


def head_of(note: bytes) -> Head:
    """Return the head that a note states, with no signature looked at: it proves nothing.

    Raises:
        FormatError: not a note, not a head, or extension lines.
    """
    match = _SIGNED.fullmatch(note)
    if match is not None:
        return Head(match["origin"].decode("ascii"), int(match["size"]), a2b_base64(match["root"]))
    return parse_checkpoint(parse_note(note).text)
