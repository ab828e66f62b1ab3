r"""Signed notes (C2SP): a text and signature lines, each by a named key.

    If you think cryptography is the answer to your problem,
    then you don't know what your problem is.

    — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=

- The text ends in LF; the last empty line ends it; each line after it is `— <name> <base64 of key id and signature>`.
- UTF-8, no code point below U+0020 but LF; at most 64 KiB and 100 signatures.
- Key id = first 4 bytes of SHA-256(name, LF, type, public key). As text a key is `<name>+<key id in hex>+<base64 of type, public key>`.
- A signature is chosen by (name, key id), never by its place. Lines of unknown keys are ignored;
  a bad one of a known key rejects the whole note.

`print_note(parse_note(b)) == b` and `print_vkey(parse_vkey(t)) == t`.

Source: docs/spec/heads.md, C2SP signed-note v1.0.0, tlog-cosignature v1.0.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final

from ledger.errors import FormatError, SignatureError, UnknownFormatError, clip
from ledger.keys import PrivateKey, parse_base64, print_base64, print_key_id, verify_signature

__all__ = [
    "COSIGNATURE",
    "ED25519",
    "NOTE_MAX_BYTES",
    "NOTE_MAX_SIGNATURES",
    "Note",
    "NoteKey",
    "NoteSignature",
    "check_note",
    "cosignature_time",
    "cosigned_message",
    "is_note_name",
    "parse_note",
    "parse_vkey",
    "print_note",
    "print_vkey",
    "sign_cosignature",
    "sign_note",
]

ED25519: Final = 0x01
"""Key type: an Ed25519 signature over the text."""
COSIGNATURE: Final = 0x04
"""Key type: a dated Ed25519 signature of a witness over a checkpoint."""
NOTE_MAX_BYTES: Final = 64 * 1024
NOTE_MAX_SIGNATURES: Final = 100

_DASH: Final = "\u2014 "
# `\s` is the White_Space property and U+001C to U+001F.
_NAME = re.compile(r"[^\s+\x00-\x1f\ud800-\udfff]+")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_VKEY = re.compile(r"(?P<name>[^+]+)\+(?P<id>[0-9a-f]{8})\+(?P<key>[A-Za-z0-9+/]+={0,2})", re.DOTALL)
_MAX_TIME: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: the key's name, its id of 4 bytes, and the signature's bytes (at least one)."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in LF, and its signature lines in their order. Parsing a note says nothing about its signatures."""

    text: str
    signatures: tuple[NoteSignature, ...]


@dataclass(frozen=True, slots=True)
class NoteKey:
    """A public key under a name: `type` is ED25519 or COSIGNATURE, `public` its 32 bytes."""

    name: str
    type: int
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that name this key on signature lines; a hint, not an identity."""
        return _key_id(self.name, self.type, self.public)


def is_note_name(name: str) -> bool:
    """Return whether `name` may name a key: not empty, no space of any kind, no control character, no `+`."""
    return _NAME.fullmatch(name) is not None


def parse_note(data: bytes) -> Note:
    """Return the note whose bytes are `data`; no signature is verified.

    Raises:
        FormatError: not a signed note, or over the limits.
    """
    if len(data) > NOTE_MAX_BYTES:
        raise FormatError(f"note: got {len(data)} bytes, expected at most {NOTE_MAX_BYTES}", code="note.too_large")
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(data, "UTF-8") from error
    end = content.rfind("\n\n") + 1
    if end == 0 or not content.endswith("\n") or len(content) == end + 1 or _CONTROL.search(content) is not None:
        raise _malformed(data, "a text, an empty line and signature lines")
    lines = content[end + 1 : -1].split("\n")
    if len(lines) > NOTE_MAX_SIGNATURES:
        raise FormatError(
            f"note: got {len(lines)} signatures, expected at most {NOTE_MAX_SIGNATURES}", code="note.too_large"
        )
    return Note(content[:end], tuple([_parse_line(line) for line in lines]))


def print_note(note: Note) -> bytes:
    """Return the bytes of a note; the inverse of `parse_note`.

    Raises:
        FormatError: a text or name that the format cannot hold, no signatures, or over the limits.
    """
    if not note.text.endswith("\n") or _CONTROL.search(note.text) is not None:
        raise _malformed(note.text, "a text that ends in LF, without control characters")
    if not 1 <= len(note.signatures) <= NOTE_MAX_SIGNATURES:
        raise FormatError(
            f"note: got {len(note.signatures)} signatures, expected from 1 up to {NOTE_MAX_SIGNATURES}",
            code="note.malformed",
        )
    try:
        data = "".join((note.text, "\n", *map(_print_line, note.signatures))).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _malformed(note.text, "valid Unicode") from error
    if len(data) > NOTE_MAX_BYTES:
        raise FormatError(f"note: got {len(data)} bytes, expected at most {NOTE_MAX_BYTES}", code="note.too_large")
    return data


def parse_vkey(text: str) -> NoteKey:
    """Return the key that `text` names.

    Raises:
        FormatError: another layout, a key id that is not that of name and key, or a key of another length than its type's.
        UnknownFormatError: well formed, but of a type that this version does not know.
    """
    match = _VKEY.fullmatch(text)
    if match is None or not is_note_name(match["name"]):
        raise FormatError(f"vkey: got {clip(text)}, expected name+id+key", code="note.key_malformed")
    raw = parse_base64(match["key"])
    key = NoteKey(match["name"], raw[0], raw[1:])
    if key.key_id.hex() != match["id"]:
        raise FormatError(
            f"vkey: got key id {match['id']}, expected {key.key_id.hex()} for this name and key",
            code="note.key_malformed",
        )
    if key.type not in {ED25519, COSIGNATURE}:
        raise UnknownFormatError(f"vkey: type {key.type:#04x} is not known to this version", code="note.unknown_type")
    if len(key.public) != 32:
        raise FormatError(f"vkey: got a key of {len(key.public)} bytes, expected 32", code="note.key_malformed")
    return key


def print_vkey(key: NoteKey) -> str:
    """Return the text of a key; the inverse of `parse_vkey`.

    Raises:
        FormatError: a name, type or length that the format cannot hold.
    """
    if not is_note_name(key.name) or key.type not in {ED25519, COSIGNATURE} or len(key.public) != 32:
        raise FormatError(
            f"vkey: got {clip(key)}, expected a name, a known type and 32 bytes", code="note.key_malformed"
        )
    return f"{key.name}+{key.key_id.hex()}+{print_base64(bytes([key.type]) + key.public)}"


def sign_note(text: str, name: str, key: PrivateKey) -> NoteSignature:
    """Return the signature of `text` by `key` under `name`: a line of type ED25519."""
    return NoteSignature(name, _key_id(name, ED25519, key.public), key.sign(text.encode("utf-8")))


def sign_cosignature(text: str, name: str, key: PrivateKey, *, time_s: int) -> NoteSignature:
    """Return the dated signature of a checkpoint's `text`: a line of type COSIGNATURE, `time_s` in Unix seconds.

    A key that cosigns must not also sign notes of type ED25519: the cosigned message does not hold the cosigner's name.
    """
    signature = time_s.to_bytes(8, "big") + key.sign(cosigned_message(text, time_s=time_s))
    return NoteSignature(name, _key_id(name, COSIGNATURE, key.public), signature)


def cosigned_message(text: str, *, time_s: int) -> bytes:
    """Return the bytes that a cosignature covers: the time and the whole checkpoint, without signatures."""
    if not 0 <= time_s <= _MAX_TIME:
        raise FormatError(f"cosignature: got time {time_s}, expected Unix seconds", code="note.malformed")
    return f"cosignature/v1\ntime {time_s}\n{text}".encode()


def cosignature_time(signature: NoteSignature) -> int:
    """Return the Unix seconds that a cosignature line states; they are what the witness says, once it is verified.

    Raises:
        FormatError: not 8 bytes of time and 64 of signature.
    """
    if len(signature.signature) != 72:
        raise FormatError(
            f"cosignature: got {len(signature.signature)} bytes, expected 72 after the key id", code="note.malformed"
        )
    return int.from_bytes(signature.signature[:8], "big")


def check_note(note: Note, keys: Sequence[NoteKey]) -> tuple[NoteSignature, ...]:
    """Return the verified signatures: of those by one of `keys`, the first of each key, in the note's order.

    Every line by a known (name, key id) is verified, repeated ones too.

    Raises:
        SignatureError: `note.unsigned` if no line is by one of `keys`, `note.bad_signature` if one that is does not verify,
            `note.ambiguous_key` if two of `keys` share name and key id.
    """
    known = {(key.name, key.key_id): key for key in keys}
    if len(known) != len(keys):
        raise SignatureError("note: two keys share one name and key id", code="note.ambiguous_key")
    verified: dict[tuple[str, bytes], NoteSignature] = {}
    for line in note.signatures:
        found = line.name, line.key_id
        key = known.get(found)
        if key is None:
            continue
        try:
            _verify(note.text, line, key)
        except (FormatError, SignatureError) as error:
            raise SignatureError(
                f"note: the signature by {clip(key.name)} does not verify", code="note.bad_signature"
            ) from error
        verified.setdefault(found, line)
    if not verified:
        raise SignatureError("note: got no signature by a known key", code="note.unsigned")
    return tuple(verified.values())


def _verify(text: str, line: NoteSignature, key: NoteKey) -> None:
    if key.type == ED25519:
        verify_signature(print_key_id(key.public), line.signature, text.encode("utf-8"))
    elif key.type == COSIGNATURE:
        message = cosigned_message(text, time_s=cosignature_time(line))
        verify_signature(print_key_id(key.public), line.signature[8:], message)
    else:
        raise UnknownFormatError(
            f"note key: type {key.type:#04x} is not known to this version", code="note.unknown_type"
        )


def _parse_line(line: str) -> NoteSignature:
    if not line.startswith(_DASH):
        raise _malformed(line, "a signature line")
    name, _, encoded = line[2:].partition(" ")
    raw = parse_base64(encoded)
    if len(raw) < 5 or not is_note_name(name):
        raise _malformed(line, "a name, then 4 bytes of key id and a signature in base64")
    return NoteSignature(name, raw[:4], raw[4:])


def _print_line(line: NoteSignature) -> str:
    if not is_note_name(line.name) or len(line.key_id) != 4 or not line.signature:
        raise _malformed(line.name, "a name, 4 bytes of key id and a signature")
    return f"{_DASH}{line.name} {print_base64(line.key_id + line.signature)}\n"


@lru_cache(maxsize=1024)
def _key_id(name: str, type_: int, public: bytes) -> bytes:
    return sha256(name.encode("utf-8") + b"\n" + bytes([type_]) + public).digest()[:4]


def _malformed(found: object, expected: str) -> FormatError:
    return FormatError(f"note: got {clip(found)}, expected {expected}", code="note.malformed")
