"""Counter-seals: a notary's dated seal over one receipt and its place under one head.

    {"payload":{"entry_index":4,"envelope":"sha256:...","issued_at":"2026-11-30T09:15:05.000Z","key":"ed25519:...",
                "mode":"digest_only","notary":"notary.example.org","origin":"ledger.example/spec","receipt":"sha256:...",
                "root":"sha256:...","schema":"receipt-ledger.counter-seal/v1","size":6,"verdict":"not_checked"},
     "payload_type":"application/vnd.receipt-ledger.counter-seal+json",
     "seals":[{"key":"ed25519:...","signature":"..."}]}                  (one line, no white space)

An envelope like that of a receipt, under a payload type of its own: no seal of a receipt is one of a notary, nor the other way
round. `key` inside the payload is the key of the seal. `print_counter_seal(parse_counter_seal(b)) == b`.

Reading a counter-seal says nothing about whom to believe: that is judged by `verify`.

Source: docs/spec/notary.md.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from ledger import canonical
from ledger.digest import print_digest
from ledger.envelope import Envelope, parse_envelope, print_envelope, seal, verify_seal
from ledger.errors import FormatError, SignatureError, UnknownFormatError, clip
from ledger.keys import PrivateKey
from ledger.members import Count, Digest, KeyId, Member, Origin, Time

__all__ = [
    "COUNTER_SEAL_MAX_BYTES",
    "COUNTER_SEAL_SCHEMA",
    "COUNTER_SEAL_TYPE",
    "CounterSeal",
    "FullVerdict",
    "NotaryName",
    "open_counter_seal",
    "parse_counter_seal",
    "print_counter_seal",
    "print_root",
    "seal_counter_seal",
]

COUNTER_SEAL_SCHEMA: Final = "receipt-ledger.counter-seal/v1"
COUNTER_SEAL_TYPE: Final = "application/vnd.receipt-ledger.counter-seal+json"
COUNTER_SEAL_MAX_BYTES: Final = 8 * 1024
"""Of the whole envelope; one with the longest names takes about 1.6 KiB."""

NotaryName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._~:/@!$&'()*,;=%-]{1,255}$")]
"""What a key of a signed note may be called: the name also stands on the notary's cosignature lines."""


def _not_a_usage_error(exit_: int) -> int:
    if exit_ == 2:
        raise ValueError("expected the exit code of a verdict")
    return exit_


class FullVerdict(Member):
    """What the notary's verifier said of the evidence that was sent: exit code, and digest of the verdict's canonical bytes."""

    digest: Digest
    exit: Annotated[int, Field(ge=0, le=6), AfterValidator(_not_a_usage_error)]


class CounterSeal(Member):
    """The payload of a counter-seal."""

    schema_: Literal["receipt-ledger.counter-seal/v1"] = Field(default=COUNTER_SEAL_SCHEMA, alias="schema")
    notary: NotaryName
    key: KeyId
    """The notary's key that seals this."""
    receipt: Digest
    """Receipt id."""
    envelope: Digest
    """Digest of the bytes of the receipt's envelope."""
    origin: Origin
    entry_index: Count
    size: Annotated[int, Field(ge=1, le=2**53 - 1)]
    """Size of the head that the notary saw the entry under."""
    root: Digest
    """Root of that head, as `sha256:` and hexadecimal digits."""
    mode: Literal["digest_only", "full"]
    verdict: FullVerdict | Literal["not_checked"]
    """`not_checked` where the notary saw digests only."""
    issued_at: Time
    """The notary's clock."""

    @model_validator(mode="after")
    def _agrees(self) -> CounterSeal:
        if self.entry_index >= self.size:
            raise ValueError("expected an entry_index below size")
        if (self.mode == "full") != isinstance(self.verdict, FullVerdict):
            raise ValueError("expected a verdict in mode full and there only")
        return self


def print_root(root: bytes) -> str:
    """Return the text of a head's root of 32 bytes, as it stands in a counter-seal."""
    return print_digest(root)


def parse_counter_seal(payload: bytes) -> CounterSeal:
    """Return the counter-seal whose canonical bytes are `payload`.

    Raises:
        CanonicalError: not canonical JSON, or over 8 KiB.
        UnknownFormatError: `counterseal.unknown_schema`.
        FormatError: `counterseal.malformed`.
    """
    value = canonical.decode(payload, max_bytes=COUNTER_SEAL_MAX_BYTES)
    schema = value.get("schema")
    if isinstance(schema, str) and schema != COUNTER_SEAL_SCHEMA:
        raise UnknownFormatError(
            f"counter-seal: schema {clip(schema)} is not known to this version", code="counterseal.unknown_schema"
        )
    try:
        # The alias has a default, which would let the member be absent.
        if schema is None:
            raise FormatError("counter-seal: got no schema", code="counterseal.malformed")
        return CounterSeal.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = "$" + "".join(f".{part}" for part in first["loc"])
        raise FormatError(
            f"counter-seal: {where}: {first['msg'].lower()}, got {clip(first.get('input'))}",
            code="counterseal.malformed",
            where=where,
        ) from error


def print_counter_seal(found: CounterSeal) -> bytes:
    """Return the canonical bytes of a counter-seal's payload; the inverse of `parse_counter_seal`."""
    return canonical.encode(found.model_dump(by_alias=True, mode="json"))


def seal_counter_seal(found: CounterSeal, key: PrivateKey) -> bytes:
    """Return the sealed document: the envelope's bytes. `key` is the one that the payload names.

    Raises:
        SignatureError: `counterseal.key` for another key.
    """
    if key.key != found.key:
        raise SignatureError(f"counter-seal: got key {key.key}, expected {found.key}", code="counterseal.key")
    return print_envelope(seal(print_counter_seal(found), key, payload_type=COUNTER_SEAL_TYPE))


def open_counter_seal(document: bytes) -> tuple[CounterSeal, Envelope]:
    """Return a counter-seal whose seal holds under the key that it names itself, and its envelope.

    Whether that key is to be believed under that name is for whoever trusts to say.

    Raises:
        FormatError: `envelope.malformed`, `envelope.too_large`, `base64.malformed`, `counterseal.malformed`.
        CanonicalError: a payload that is not canonical JSON.
        UnknownFormatError: `counterseal.unknown_type`, `counterseal.unknown_schema`, `key.unknown_algorithm`.
        SignatureError: `seal.absent`, `signature.invalid`, or `counterseal.key` where the seal is by another key than it names.
    """
    if len(document) > COUNTER_SEAL_MAX_BYTES:
        raise FormatError(
            f"counter-seal: got {len(document)} bytes, expected at most {COUNTER_SEAL_MAX_BYTES}",
            code="envelope.too_large",
        )
    envelope = parse_envelope(document)
    if envelope.payload_type != COUNTER_SEAL_TYPE:
        raise UnknownFormatError(
            f"counter-seal: payload type {clip(envelope.payload_type)} is not known to this version",
            code="counterseal.unknown_type",
        )
    found = parse_counter_seal(envelope.payload)
    if envelope.seal is not None and envelope.seal.key != found.key:
        raise SignatureError("counter-seal: its seal is by another key than it names", code="counterseal.key")
    verify_seal(envelope)
    return found, envelope
