"""C2SP signed-note and tlog-checkpoint, read line by line on bytes. The oracle for notes and heads, and Go's test keys."""

from __future__ import annotations

import base64
from hashlib import sha256

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# Unicode White_Space, as the PropList of the standard has it.
SPACES = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


class RefusedError(Exception):
    pass


def unbase64(text):
    """Bytes of padded base64, bit by bit; spare bits must be zero."""
    body = text.rstrip(b"=")
    padding = len(text) - len(body)
    if len(text) % 4 or padding > 2 or any(letter not in ALPHABET for letter in body):
        raise RefusedError("base64")
    bits = "".join(format(ALPHABET.index(letter), "06b") for letter in body)
    whole = len(body) * 6 // 8 * 8
    if len(body) % 4 == 1 or "1" in bits[whole:] or (-len(body)) % 4 != padding:
        raise RefusedError("base64")
    return bytes(int(bits[at : at + 8], 2) for at in range(0, whole, 8))


def name_ok(name):
    return bool(name) and "+" not in name and not any(ord(letter) in SPACES or ord(letter) < 0x20 for letter in name)


def read_note(data):
    """(text, [(name, key id, signature)])"""
    if len(data) > 64 * 1024:
        raise RefusedError("size")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("UTF-8") from None
    if any(byte < 0x20 and byte != 0x0A for byte in data):
        raise RefusedError("control")
    at = len(data) - 1
    while at > 0 and data[at - 1 : at + 1] != b"\n\n":
        at -= 1
    if at <= 0:
        raise RefusedError("no empty line")
    text, rest = data[:at], data[at + 1 :]
    if not rest or rest[-1:] != b"\n":
        raise RefusedError("no signatures")
    signatures = []
    for line in rest[:-1].split(b"\n"):
        parts = line.split(b" ")
        if len(parts) != 3 or parts[0] != b"\xe2\x80\x94":
            raise RefusedError("line")
        name = parts[1].decode("utf-8")
        raw = unbase64(parts[2])
        if not name_ok(name) or len(raw) < 5:
            raise RefusedError("line")
        signatures.append((name, raw[:4], raw[4:]))
    if len(signatures) > 100:
        raise RefusedError("too many")
    return text.decode("utf-8"), signatures


def read_checkpoint(text):
    """(origin, size, root, extension lines)"""
    if not text.endswith("\n"):
        raise RefusedError("no final line feed")
    lines = text[:-1].split("\n")
    if len(lines) < 3 or "" in lines or any(ord(letter) < 0x20 for line in lines for letter in line):
        raise RefusedError("lines")
    origin, size, root, *extensions = lines
    if any(digit not in "0123456789" for digit in size) or (len(size) > 1 and size[0] == "0") or int(size) >= 2**63:
        raise RefusedError("size")
    try:
        raw = unbase64(root.encode("ascii"))
    except UnicodeEncodeError:
        raise RefusedError("root") from None
    if len(raw) != 32:
        raise RefusedError("root")
    return origin, int(size), raw, extensions


def key_id(name, kind, public):
    return sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]


def read_skey(text):
    """(name, seed) of a Go private test key: PRIVATE+KEY+name+id+base64(type, seed)."""
    from nacl.signing import SigningKey

    parts = text.split("+", 4)
    if len(parts) != 5 or parts[:2] != ["PRIVATE", "KEY"] or not name_ok(parts[2]):
        raise RefusedError("skey")
    raw = unbase64(parts[4].encode())
    if len(raw) != 33 or raw[0] != 1:
        raise RefusedError("skey")
    if key_id(parts[2], 1, bytes(SigningKey(raw[1:]).verify_key)).hex() != parts[3]:
        raise RefusedError("skey id")
    return parts[2], raw[1:]


def encode_base64(data):
    return base64.b64encode(data).decode("ascii")
