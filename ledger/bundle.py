"""Bundles: everything needed to judge one receipt, or a range of entries, without the ledger they came from.

    {"artifacts":[{"data":"<base64>","digest":"sha256:..."},...],       absent where there are none
     "checkpoint":"<signed note>",
     "counter_seals":[{"consistency":[...],"seal":{...}},...],            absent where there are none, as below
     "covers":[<item>,...],                                              absent where there are none
     "items":[{"entry":{...},"envelope":{...},"proof":["<base64 of 32 bytes>",...]},...],
     "keyring":[<item>,...],
     "last":{"entry":{...},"proof":[...]},
     "schema":"receipt-ledger.bundle/v1",
     "subject":"sha256:..." | "<from>:<to>"}

A counter-seal is a notary's sealed document, `{"consistency":[...],"seal":{...}}`, or an older head with what others signed of
it, `{"consistency":[...],"note":"<signed note>"}` and perhaps `"timestamp":"<base64>"`. `consistency` joins the head that it
names to the checkpoint.

The whole document is canonical JSON in one line, so the bytes of an entry, an envelope or a counter-seal are the canonical
text of the nested object. `print_bundle(parse_bundle(b)) == b`, and `parse_bundle(print_bundle(x)) == x`.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ledger import canonical
from ledger.digest import is_digest
from ledger.errors import FormatError, clip
from ledger.keys import parse_base64, print_base64

__all__ = [
    "BUNDLE_MAX_BYTES",
    "BUNDLE_MAX_ITEMS",
    "BUNDLE_SCHEMA",
    "Bundle",
    "CarriedArtifact",
    "CarriedHead",
    "CarriedSeal",
    "Item",
    "LastEntry",
    "join_hashes",
    "join_items",
    "join_last",
    "parse_bundle",
    "parse_hashes",
    "parse_items",
    "parse_last",
    "parse_range",
    "print_bundle",
    "print_range",
]

BUNDLE_SCHEMA: Final = "receipt-ledger.bundle/v1"
BUNDLE_MAX_BYTES: Final = 128 << 20
BUNDLE_MAX_ITEMS: Final = 65_536
"""More than twice the largest receipt tree: items, covers, keyring, artifacts and counter-seals together."""
PROOF_MAX_HASHES: Final = 64

_REQUIRED: Final = frozenset({"checkpoint", "items", "keyring", "last", "schema", "subject"})
_OPTIONAL: Final = frozenset({"artifacts", "counter_seals", "covers"})
_ITEM: Final = frozenset({"entry", "envelope", "proof"})
_LAST: Final = frozenset({"entry", "proof"})
_SEALED: Final = frozenset({"consistency", "seal"})
_HEADED: Final = frozenset({"consistency", "note"})
_ARTIFACT: Final = frozenset({"data", "digest"})
_RANGE = re.compile(r"(0|[1-9][0-9]{0,15}):([1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Item:
    """One entry with its envelope and its inclusion proof (hashes of 32 bytes, the leaf's sibling first)."""

    entry: bytes
    envelope: bytes
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LastEntry:
    """The last entry under the head, with its inclusion proof: it names the newest keyring entry before it."""

    entry: bytes
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CarriedArtifact:
    """The stored bytes of an artifact, its salt included, under the digest that they are said to have."""

    digest: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CarriedSeal:
    """The sealed document of a notary, and the consistency proof from the head that it names to the bundle's checkpoint.

    The proof is empty where the two heads have one size.
    """

    consistency: tuple[bytes, ...]
    document: bytes


@dataclass(frozen=True, slots=True)
class CarriedHead:
    """A head of the same ledger, not newer, as a note with cosignatures, and the consistency proof from it to the checkpoint.

    `timestamp` is a timestamp token (RFC 3161) over the note without its cosignatures, as DER.
    """

    consistency: tuple[bytes, ...]
    note: bytes
    timestamp: bytes | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """Evidence for one receipt, or for a range of entries.

    `subject` is a receipt id, or a range `from:to` of indices, `to` excluded. For a receipt, `items` are sorted by index and hold
    the subject, the tree below it, the path from it up to the nearest sealed receipt, and the opening of its run. For a range,
    `items` are its entries and nothing else, and `covers` the paths from unsealed ones up to their nearest sealed receipt.
    `keyring` is the chain of header and key entries up to the checkpoint. `checkpoint` is the signed note that all proofs end in.
    """

    subject: str
    items: tuple[Item, ...]
    keyring: tuple[Item, ...]
    checkpoint: bytes
    last: LastEntry | None = None
    """The file always holds it; without it a key entry that follows those shown could be hidden."""
    covers: tuple[Item, ...] = ()
    artifacts: tuple[CarriedArtifact, ...] = ()
    """Sorted by digest, each once."""
    counter_seals: tuple[CarriedSeal | CarriedHead, ...] = ()
    """What others sealed or signed of this receipt and this ledger's heads."""


def parse_range(text: str) -> tuple[int, int] | None:
    """Return the indices that a subject of the form `from:to` names, `to` excluded; None for any other text."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    start, stop = int(match[1]), int(match[2])
    return (start, stop) if start < stop <= canonical.MAX_INTEGER else None


def print_range(start: int, stop: int) -> str:
    """Return the subject of a range; the inverse of `parse_range`."""
    return f"{start}:{stop}"


def parse_bundle(data: bytes) -> Bundle:
    """Return the bundle whose bytes are `data`; nothing in it is verified.

    Raises:
        CanonicalError: not canonical JSON, deeper than 64 levels or larger than 128 MiB.
        FormatError: `bundle.malformed`, or `bundle.unknown_schema`.
    """
    value = canonical.decode(data, max_bytes=BUNDLE_MAX_BYTES)
    if value.get("schema") != BUNDLE_SCHEMA:
        raise FormatError(
            f"bundle: got schema {clip(value.get('schema'))}, expected {BUNDLE_SCHEMA}", code="bundle.unknown_schema"
        )
    if not value.keys() >= _REQUIRED or not value.keys() <= _REQUIRED | _OPTIONAL:
        raise _malformed("members", sorted(value), "those of a bundle")
    subject, checkpoint = value["subject"], value["checkpoint"]
    if not isinstance(subject, str) or not (is_digest(subject) or parse_range(subject)):
        raise _malformed("subject", subject, "a receipt id or a range")
    if not isinstance(checkpoint, str):
        raise _malformed("checkpoint", checkpoint, "a signed note")
    for name in _OPTIONAL & value.keys():
        if value[name] == []:
            raise _malformed(name, [], "no member where there is nothing")
    bundle = Bundle(
        subject,
        parse_items(value["items"], "items"),
        parse_items(value["keyring"], "keyring"),
        checkpoint.encode("utf-8"),
        parse_last(value["last"]),
        parse_items(value.get("covers", []), "covers"),
        _parse_artifacts(value.get("artifacts", [])),
        _parse_counter_seals(value.get("counter_seals", [])),
    )
    if bundle.covers and is_digest(subject):
        raise _malformed("covers", "some", "none in the bundle of a receipt")
    parts: tuple[Sequence[Any], ...] = (
        bundle.items, bundle.keyring, bundle.covers, bundle.artifacts, bundle.counter_seals,
    )  # fmt: skip
    if sum(map(len, parts)) > BUNDLE_MAX_ITEMS:
        raise _malformed("items", sum(map(len, parts)), f"at most {BUNDLE_MAX_ITEMS}")
    return bundle


def print_bundle(bundle: Bundle) -> bytes:
    """Return the canonical bytes of a bundle; the inverse of `parse_bundle`.

    Raises:
        FormatError: a bundle that the format cannot hold, such as one with an envelope that is not canonical.
    """
    if bundle.last is None:
        raise _malformed("last", None, "the last entry under the head")
    artifacts = b",".join(
        f'{{"data":"{print_base64(each.data)}","digest":"{each.digest}"}}'.encode() for each in bundle.artifacts
    )
    note = canonical.encode({"checkpoint": _text(bundle.checkpoint, "checkpoint")})
    members = (
        b'"artifacts":[%b]' % artifacts if bundle.artifacts else b"",
        note[1:-1],
        b'"counter_seals":[%b]' % b",".join(map(_join_counter_seal, bundle.counter_seals))
        if bundle.counter_seals
        else b"",
        b'"covers":[%b]' % join_items(bundle.covers) if bundle.covers else b"",
        b'"items":[%b]' % join_items(bundle.items),
        b'"keyring":[%b]' % join_items(bundle.keyring),
        join_last(bundle.last),
        f'"schema":"{BUNDLE_SCHEMA}"'.encode(),
        f'"subject":"{bundle.subject}"'.encode(),
    )
    data = b"{%b}" % b",".join(member for member in members if member)
    # What was joined need not be what was meant: an entry may hold anything.
    if parse_bundle(data) != bundle:
        raise _malformed("parts", bundle.subject, "each the canonical text of one object")
    return data


def join_items(items: Sequence[Item]) -> bytes:
    """Return the canonical text of items, joined by commas; the inverse of `parse_items` where each part is canonical."""
    return b",".join(
        b'{"entry":%b,"envelope":%b,"proof":[%b]}' % (item.entry, item.envelope, join_hashes(item.proof))
        for item in items
    )


def join_last(last: LastEntry) -> bytes:
    """Return the canonical text of the member that holds the last entry."""
    return b'"last":{"entry":%b,"proof":[%b]}' % (last.entry, join_hashes(last.proof))


def join_hashes(hashes: Sequence[bytes]) -> bytes:
    """Return the canonical text of hashes, joined by commas."""
    return b",".join(f'"{print_base64(found)}"'.encode("ascii") for found in hashes)


def parse_items(value: object, name: str) -> tuple[Item, ...]:
    """Return the items of a member of a decoded canonical document.

    Raises:
        FormatError: `bundle.malformed`.
    """
    items = []
    for position, found in enumerate(_objects(value, name)):
        if found.keys() != _ITEM:
            raise _malformed(f"{name}[{position}]", sorted(found), "entry, envelope and proof")
        entry, envelope = found["entry"], found["envelope"]
        if not isinstance(entry, dict) or not isinstance(envelope, dict):
            raise _malformed(f"{name}[{position}]", type(envelope).__name__, "objects as entry and envelope")
        proof = parse_hashes(found["proof"], f"{name}[{position}].proof")
        items.append(Item(canonical.encode_part(entry), canonical.encode_part(envelope), proof))
    return tuple(items)


def parse_last(value: object) -> LastEntry:
    """Return the last entry of a decoded canonical document.

    Raises:
        FormatError: `bundle.malformed` or `base64.malformed`.
    """
    if not isinstance(value, dict) or value.keys() != _LAST or not isinstance(value["entry"], dict):
        raise _malformed("last", value, "an object with entry and proof")
    return LastEntry(canonical.encode_part(value["entry"]), parse_hashes(value["proof"], "last.proof"))


def parse_hashes(value: object, name: str) -> tuple[bytes, ...]:
    """Return a list of hashes of 32 bytes, each as base64, at most 64 of them.

    Raises:
        FormatError: `bundle.malformed` or `base64.malformed`.
    """
    if not isinstance(value, list) or len(value) > PROOF_MAX_HASHES:
        raise _malformed(name, value, f"a list of at most {PROOF_MAX_HASHES} hashes")
    hashes = []
    for text in value:
        found = parse_base64(text) if isinstance(text, str) and len(text) == 44 else b""
        if len(found) != 32:
            raise _malformed(name, text, "base64 of 32 bytes")
        hashes.append(found)
    return tuple(hashes)


def _parse_artifacts(value: object) -> tuple[CarriedArtifact, ...]:
    artifacts: list[CarriedArtifact] = []
    for found in _objects(value, "artifacts"):
        digest, text = found.get("digest"), found.get("data")
        if found.keys() != _ARTIFACT or not isinstance(digest, str) or not is_digest(digest):
            raise _malformed("artifacts", sorted(found), "digest and data")
        if not isinstance(text, str):
            raise _malformed("artifacts", text, "base64")
        if artifacts and digest <= artifacts[-1].digest:
            raise _malformed("artifacts", digest, "digests that go up, each once")
        artifacts.append(CarriedArtifact(digest, parse_base64(text)))
    return tuple(artifacts)


def _parse_counter_seals(value: object) -> tuple[CarriedSeal | CarriedHead, ...]:
    found: list[CarriedSeal | CarriedHead] = []
    for position, each in enumerate(_objects(value, "counter_seals")):
        name = f"counter_seals[{position}]"
        consistency = parse_hashes(each.get("consistency"), f"{name}.consistency")
        seal, note, timestamp = each.get("seal"), each.get("note"), each.get("timestamp", "")
        if each.keys() == _SEALED and isinstance(seal, dict):
            found.append(CarriedSeal(consistency, canonical.encode_part(seal)))
        elif each.keys() - {"timestamp"} == _HEADED and isinstance(note, str) and isinstance(timestamp, str):
            token = parse_base64(timestamp) if "timestamp" in each else None
            found.append(CarriedHead(consistency, note.encode("utf-8"), token))
        else:
            raise _malformed(name, sorted(each), "consistency, and a seal or a note")
    return tuple(found)


def _join_counter_seal(found: CarriedSeal | CarriedHead) -> bytes:
    proof = join_hashes(found.consistency)
    if isinstance(found, CarriedSeal):
        return b'{"consistency":[%b],"seal":%b}' % (proof, found.document)
    value: canonical.JsonObject = {"note": _text(found.note, "counter_seals")}
    if found.timestamp is not None:
        value["timestamp"] = print_base64(found.timestamp)
    return b'{"consistency":[%b],%b' % (proof, canonical.encode(value)[1:])


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(name, data, "UTF-8") from error


def _objects(value: object, name: str) -> list[canonical.JsonObject]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _malformed(name, value, "a list of objects")
    return value


def _malformed(what: str, found: object, expected: str) -> FormatError:
    return FormatError(f"bundle: {what}: got {clip(found)}, expected {expected}", code="bundle.malformed")
