"""What goes to a notary and what comes back.

A request, canonical JSON in one line; members in brackets may be absent:

    {["bundle":{...},]"checkpoint":"<signed note>","consistency":["<base64 of 32 bytes>",...],"entry":{...},
     ["keyring":[<item>,...],"last":{...},]"log_key":"ed25519:...","mode":"digest_only","old":0,"proof":["<base64>",...],
     "publish":false,"schema":"receipt-ledger.notarize/v1"}

For a head alone, `"schema":"receipt-ledger.notarize-head/v1"` with the members `checkpoint`, `consistency`, `log_key`, `old`, and both
or neither of `keyring` and `last`.

An answer:

    {"counter_seal":{<envelope>},"published":false,"record":{<envelope>},"schema":"receipt-ledger.notarization/v1",
     "tlog_proof":"<tlog-proof>"[,"verdict":{...}]}

Each printer is the inverse of its parser.

Source: docs/spec/notary.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ledger import canonical
from ledger.bundle import (
    Bundle,
    Item,
    LastEntry,
    join_hashes,
    join_items,
    join_last,
    parse_bundle,
    parse_hashes,
    parse_items,
    parse_last,
    print_bundle,
)
from ledger.errors import FormatError, clip
from ledger.keys import is_key_id
from ledger.note import NOTE_MAX_BYTES

__all__ = [
    "HEAD_REQUEST_SCHEMA",
    "NOTARIZATION_SCHEMA",
    "REQUEST_MAX_BYTES",
    "REQUEST_SCHEMA",
    "HeadRequest",
    "Mode",
    "Notarization",
    "Request",
    "parse_head_request",
    "parse_notarization",
    "parse_request",
    "print_head_request",
    "print_notarization",
    "print_request",
]

REQUEST_SCHEMA: Final = "receipt-ledger.notarize/v1"
HEAD_REQUEST_SCHEMA: Final = "receipt-ledger.notarize-head/v1"
REQUEST_MAX_BYTES: Final = 16 << 20
NOTARIZATION_SCHEMA: Final = "receipt-ledger.notarization/v1"

_ANSWER_MAX_BYTES: Final = 16 << 20
_MAX_CONSISTENCY: Final = 63
_HEAD: Final = frozenset({"checkpoint", "consistency", "log_key", "old", "schema"})
_NEEDED: Final = _HEAD | {"entry", "mode", "proof", "publish"}
_KEYRING: Final = frozenset({"keyring", "last"})
_ANSWER: Final = frozenset({"counter_seal", "published", "record", "schema", "tlog_proof"})

Mode = Literal["digest_only", "full"]


@dataclass(frozen=True, slots=True)
class HeadRequest:
    """A head to be remembered: `checkpoint` is a signed note by `log_key`.

    `old` is the size that the notary is thought to remember, `consistency` the proof from there to the head. `keyring` and
    `last`, both or neither, are those of a bundle under the same head.
    """

    checkpoint: bytes
    log_key: str
    old: int
    consistency: tuple[bytes, ...]
    keyring: tuple[Item, ...] = ()
    last: LastEntry | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One receipt's place under a head, to be counter-sealed.

    `entry` is the bytes of its entry, `proof` the inclusion proof under `head`. `bundle`, in mode full, is the evidence for the
    receipt, with the same checkpoint.
    """

    head: HeadRequest
    entry: bytes
    proof: tuple[bytes, ...]
    mode: Mode = "digest_only"
    publish: bool = False
    bundle: Bundle | None = None


@dataclass(frozen=True, slots=True)
class Notarization:
    """What a notary answers: bytes of the counter-seal, of its own record of it, and the proof of that record's entry.

    `record` is the envelope of an evaluation in the notary's own ledger, which names the digest of `counter_seal` as an
    artifact; `tlog_proof` proves its entry. `verdict` is the canonical verdict in mode full.
    """

    counter_seal: bytes
    record: bytes
    tlog_proof: bytes
    published: bool = False
    verdict: bytes | None = None


def parse_head_request(data: bytes) -> HeadRequest:
    """Return the request about a head whose bytes are `data`; nothing in it is verified.

    Raises:
        CanonicalError: not canonical JSON, or over 16 MiB.
        FormatError: `notarize.malformed`, or a code of the part that is malformed.
    """
    value = canonical.decode(data, max_bytes=REQUEST_MAX_BYTES)
    optional = value.keys() - _HEAD
    if value.get("schema") != HEAD_REQUEST_SCHEMA or not value.keys() >= _HEAD or not optional <= _KEYRING:
        raise _malformed("members", sorted(value), f"those of {HEAD_REQUEST_SCHEMA}")
    return _parse_head(value)


def print_head_request(request: HeadRequest) -> bytes:
    """Return the canonical bytes of a request about a head; the inverse of `parse_head_request`.

    Raises:
        FormatError: what the format cannot hold.
    """
    parts = _head_members(request) | {"schema": f'"schema":"{HEAD_REQUEST_SCHEMA}"'.encode()}
    data = b"{%b}" % b",".join(parts[name] for name in sorted(parts))
    # What was joined need not be what was meant.
    if parse_head_request(data) != request:
        raise _malformed("parts", request.log_key, "each the canonical text of one value")
    return data


def parse_request(data: bytes) -> Request:
    """Return the request whose bytes are `data`; nothing in it is verified.

    Raises:
        CanonicalError: not canonical JSON, or over 16 MiB.
        FormatError: `notarize.malformed`, or a code of the part that is malformed.
    """
    value = canonical.decode(data, max_bytes=REQUEST_MAX_BYTES)
    mode = value.get("mode")
    optional = value.keys() - _NEEDED
    if value.get("schema") != REQUEST_SCHEMA or not value.keys() >= _NEEDED or not optional <= _KEYRING | {"bundle"}:
        raise _malformed("members", sorted(value), f"those of {REQUEST_SCHEMA}")
    if mode not in ("digest_only", "full") or ("bundle" in value) != (mode == "full"):
        raise _malformed("mode", mode, "full with a bundle, or digest_only without one")
    if not isinstance(value["entry"], dict):
        raise _malformed("entry", value["entry"], "an object")
    if type(value["publish"]) is not bool:
        raise _malformed("publish", value["publish"], "true or false")
    bundle = None
    if mode == "full":
        if not isinstance(value["bundle"], dict):
            raise _malformed("bundle", value["bundle"], "an object")
        bundle = parse_bundle(canonical.encode_part(value["bundle"]))
    return Request(
        _parse_head(value),
        canonical.encode_part(value["entry"]),
        parse_hashes(value["proof"], "proof"),
        "full" if mode == "full" else "digest_only",
        value["publish"],
        bundle,
    )


def print_request(request: Request) -> bytes:
    """Return the canonical bytes of a request; the inverse of `parse_request`.

    Raises:
        FormatError: what the format cannot hold.
    """
    parts = _head_members(request.head) | {
        "entry": b'"entry":%b' % request.entry,
        "mode": f'"mode":"{request.mode}"'.encode(),
        "proof": b'"proof":[%b]' % join_hashes(request.proof),
        "publish": b'"publish":%b' % (b"true" if request.publish else b"false"),
        "schema": f'"schema":"{REQUEST_SCHEMA}"'.encode(),
    }
    if request.bundle is not None:
        parts["bundle"] = b'"bundle":%b' % print_bundle(request.bundle)
    data = b"{%b}" % b",".join(parts[name] for name in sorted(parts))
    if parse_request(data) != request:
        raise _malformed("parts", request.head.log_key, "each the canonical text of one value")
    return data


def parse_notarization(data: bytes) -> Notarization:
    """Return the answer whose bytes are `data`; nothing in it is verified.

    Raises:
        CanonicalError: not canonical JSON, or over 16 MiB.
        FormatError: `notarization.malformed`.
    """
    value = canonical.decode(data, max_bytes=_ANSWER_MAX_BYTES)
    seal, record, proof, verdict = (value.get(name) for name in ("counter_seal", "record", "tlog_proof", "verdict"))
    if (
        value.get("schema") != NOTARIZATION_SCHEMA
        or value.keys() - {"verdict"} != _ANSWER
        or not isinstance(seal, dict)
        or not isinstance(record, dict)
        or not isinstance(proof, str)
        or type(value["published"]) is not bool
        or ("verdict" in value and not isinstance(verdict, dict))
    ):
        raise FormatError(
            f"notarization: got members {clip(sorted(value))}, expected those of {NOTARIZATION_SCHEMA}",
            code="notarization.malformed",
        )
    return Notarization(
        canonical.encode_part(seal),
        canonical.encode_part(record),
        proof.encode("utf-8"),
        value["published"],
        canonical.encode_part(verdict) if isinstance(verdict, dict) else None,
    )


def print_notarization(found: Notarization) -> bytes:
    """Return the canonical bytes of an answer; the inverse of `parse_notarization`.

    Its parts are canonical: whoever makes them printed them.
    """
    members = (
        b'"counter_seal":%b,"published":%b' % (found.counter_seal, b"true" if found.published else b"false"),
        b'"record":%b,"schema":"%b"' % (found.record, NOTARIZATION_SCHEMA.encode()),
        _text("tlog_proof", found.tlog_proof),
        b"" if found.verdict is None else b'"verdict":%b' % found.verdict,
    )
    return b"{%b}" % b",".join(member for member in members if member)


def _parse_head(value: canonical.JsonObject) -> HeadRequest:
    checkpoint, log_key, old = value["checkpoint"], value["log_key"], value["old"]
    if not isinstance(checkpoint, str) or len(checkpoint) > NOTE_MAX_BYTES:
        raise _malformed("checkpoint", checkpoint, "a signed note")
    if not isinstance(log_key, str) or not is_key_id(log_key):
        raise _malformed("log_key", log_key, "a key id")
    if type(old) is not int or old < 0:
        raise _malformed("old", old, "a size")
    consistency = parse_hashes(value["consistency"], "consistency")
    if len(consistency) > _MAX_CONSISTENCY:
        raise _malformed("consistency", len(consistency), f"at most {_MAX_CONSISTENCY} hashes")
    if ("keyring" in value) != ("last" in value) or value.get("keyring") == []:
        raise _malformed("keyring", value.get("keyring"), "items and the last entry, or neither")
    return HeadRequest(
        checkpoint.encode("utf-8"),
        log_key,
        old,
        consistency,
        parse_items(value["keyring"], "keyring") if "keyring" in value else (),
        parse_last(value["last"]) if "last" in value else None,
    )


def _head_members(head: HeadRequest) -> dict[str, bytes]:
    """Return the canonical text of each member that is about the head."""
    parts = {
        "checkpoint": _text("checkpoint", head.checkpoint),
        "consistency": b'"consistency":[%b]' % join_hashes(head.consistency),
        "log_key": f'"log_key":"{head.log_key}"'.encode(),
        "old": f'"old":{head.old}'.encode(),
    }
    if head.keyring:
        parts["keyring"] = b'"keyring":[%b]' % join_items(head.keyring)
    if head.last is not None:
        parts["last"] = join_last(head.last)
    return parts


def _text(name: str, value: bytes) -> bytes:
    try:
        return canonical.encode({name: value.decode("utf-8")})[1:-1]
    except UnicodeDecodeError as error:
        raise _malformed(name, value, "UTF-8") from error


def _malformed(what: str, found: object, expected: str) -> FormatError:
    return FormatError(f"notarize: {what}: got {clip(found)}, expected {expected}", code="notarize.malformed")
