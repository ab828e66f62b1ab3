"""What goes to a notary and what comes back.

A request, canonical JSON in one line; members in brackets may be absent:

    {["bundle":{...},]"checkpoint":"<signed note>","consistency":["<base64 of 32 bytes>",...],"entry":{...},
     ["keyring":[<item>,...],"last":{...},]"log_key":"ed25519:...","mode":"digest_only","old":0,"proof":["<base64>",...],
     "publish":false,"schema":"receipt-ledger.notarize/v1"}

An answer:

    {"counter_seal":{<envelope>},"published":false,"record":{<envelope>},"schema":"receipt-ledger.notarization/v1",
     "tlog_proof":"<tlog-proof>"[,"verdict":{...}]}

`print_request(parse_request(b)) == b` and `print_notarization(parse_notarization(b)) == b`.

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
    "NOTARIZATION_SCHEMA",
    "REQUEST_MAX_BYTES",
    "REQUEST_SCHEMA",
    "Mode",
    "Notarization",
    "Request",
    "parse_notarization",
    "parse_request",
    "print_notarization",
    "print_request",
]

REQUEST_SCHEMA: Final = "receipt-ledger.notarize/v1"
REQUEST_MAX_BYTES: Final = 16 << 20
NOTARIZATION_SCHEMA: Final = "receipt-ledger.notarization/v1"

_ANSWER_MAX_BYTES: Final = 16 << 20
_MAX_CONSISTENCY: Final = 63
_NEEDED: Final = frozenset(
    {"checkpoint", "consistency", "entry", "log_key", "mode", "old", "proof", "publish", "schema"}
)
_KEYRING: Final = frozenset({"keyring", "last"})
_ANSWER: Final = frozenset({"counter_seal", "published", "record", "schema", "tlog_proof"})

Mode = Literal["digest_only", "full"]


@dataclass(frozen=True, slots=True)
class Request:
    """One receipt's place under a head, to be counter-sealed.

    `entry` is the bytes of its entry, `proof` the inclusion proof under the head of `checkpoint`, a signed note by `log_key`.
    `old` is the size that the notary is thought to remember, `consistency` the proof from there to the head. `keyring` and
    `last`, both or neither, are those of a bundle under the same head. `bundle`, in mode full, is the evidence for the receipt,
    with the same checkpoint.
    """

    entry: bytes
    proof: tuple[bytes, ...]
    checkpoint: bytes
    log_key: str
    old: int
    consistency: tuple[bytes, ...]
    mode: Mode = "digest_only"
    publish: bool = False
    keyring: tuple[Item, ...] = ()
    last: LastEntry | None = None
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
    if optional & _KEYRING and not optional >= _KEYRING:
        raise _malformed("keyring", sorted(optional), "keyring and last, or neither")
    entry, checkpoint, log_key, old = value["entry"], value["checkpoint"], value["log_key"], value["old"]
    if not isinstance(entry, dict):
        raise _malformed("entry", entry, "an object")
    if not isinstance(checkpoint, str) or len(checkpoint) > NOTE_MAX_BYTES:
        raise _malformed("checkpoint", checkpoint, "a signed note")
    if not isinstance(log_key, str) or not is_key_id(log_key):
        raise _malformed("log_key", log_key, "a key id")
    if type(old) is not int or old < 0 or type(value["publish"]) is not bool:
        raise _malformed("old", old, "a size, and publish true or false")
    consistency = parse_hashes(value["consistency"], "consistency")
    if len(consistency) > _MAX_CONSISTENCY:
        raise _malformed("consistency", len(consistency), f"at most {_MAX_CONSISTENCY} hashes")
    keyring = parse_items(value["keyring"], "keyring") if "keyring" in value else ()
    if "keyring" in value and not keyring:
        raise _malformed("keyring", [], "no member where there is nothing")
    bundle = None
    if mode == "full":
        if not isinstance(value["bundle"], dict):
            raise _malformed("bundle", value["bundle"], "an object")
        bundle = parse_bundle(canonical.encode_part(value["bundle"]))
    return Request(
        canonical.encode_part(entry),
        parse_hashes(value["proof"], "proof"),
        checkpoint.encode("utf-8"),
        log_key,
        old,
        consistency,
        "full" if mode == "full" else "digest_only",
        value["publish"],
        keyring,
        parse_last(value["last"]) if "last" in value else None,
        bundle,
    )


def print_request(request: Request) -> bytes:
    """Return the canonical bytes of a request; the inverse of `parse_request`.

    Raises:
        FormatError: what the format cannot hold.
    """
    members = (
        b"" if request.bundle is None else b'"bundle":%b' % print_bundle(request.bundle),
        _text("checkpoint", request.checkpoint),
        b'"consistency":[%b]' % join_hashes(request.consistency),
        b'"entry":%b' % request.entry,
        b'"keyring":[%b]' % join_items(request.keyring) if request.keyring else b"",
        b"" if request.last is None else join_last(request.last),
        f'"log_key":"{request.log_key}","mode":"{request.mode}","old":{request.old}'.encode(),
        b'"proof":[%b]' % join_hashes(request.proof),
        b'"publish":%b' % (b"true" if request.publish else b"false"),
        f'"schema":"{REQUEST_SCHEMA}"'.encode(),
    )
    data = b"{%b}" % b",".join(member for member in members if member)
    # What was joined need not be what was meant.
    if parse_request(data) != request:
        raise _malformed("parts", request.log_key, "each the canonical text of one value")
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


def _text(name: str, value: bytes) -> bytes:
    try:
        return canonical.encode({name: value.decode("utf-8")})[1:-1]
    except UnicodeDecodeError as error:
        raise _malformed(name, value, "UTF-8") from error


def _malformed(what: str, found: object, expected: str) -> FormatError:
    return FormatError(f"notarize: {what}: got {clip(found)}, expected {expected}", code="notarize.malformed")
