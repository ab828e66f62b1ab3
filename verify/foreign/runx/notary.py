"""Counter-seals of the hosted runx notary, judged by runx's own rules with keys that the caller trusts.

    {"notary_verification":{"counter_seal":{"schema","payload":{...},"digest","payload_digest"?,
                                            "signature":{"alg":"Ed25519","value":"base64:..."}},
                            "signer_public_keys"?:[{"kid","public_key_pem"}]}}
    {"receipt":{"digest","mode","binary_version","notary_verification":{...}}}

- The signature covers the sorted compact JSON of the payload; `digest` is the SHA-256 of the same bytes.
- Any one trusted key is enough. Keys inside the document grant nothing; where none of them is trusted, that is a finding.
- The form with `receipt` binds the counter-seal to that digest; the other one is bound to no receipt, and says so by nothing.
- `kid`, `issued_at` and `verdict_digest` are covered by the signature and compared with nothing.

Source: docs/spec/runx-notary.md; the verdict is `runx.notary_verify_verdict.v1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

import orjson

from ledger.digest import is_digest
from ledger.errors import LedgerError
from ledger.keys import parse_base64, print_key_id, refuse_weak_point, verify_signature

__all__ = [
    "DOCUMENT_MAX_BYTES",
    "Finding",
    "RunxNotaryVerdict",
    "is_runx_notary",
    "public_key_of",
    "verify_runx_notary",
]

DOCUMENT_MAX_BYTES: Final = 10 << 20

Status: TypeAlias = Literal["valid", "invalid", "missing"]

_VERDICT_SCHEMA: Final = "runx.notary_verify_verdict.v1"
_SEAL_SCHEMA: Final = "runx.hosted_notary_counter_seal.v1"
_PAYLOAD_SCHEMA: Final = "runx.hosted_notary_counter_seal_payload.v1"
_PAYLOAD: Final = frozenset({"binary_version", "digest", "issued_at", "mode", "schema", "verdict_digest"})
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n-----END PUBLIC KEY-----\r?\n?")
_MAX_DEPTH: Final = 128
_SEAL: Final = "notary_verification.counter_seal"


@dataclass(frozen=True, slots=True)
class Finding:
    """What does not hold: runx's code, where, and a sentence."""

    code: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class RunxNotaryVerdict:
    """What runx's rules say of a document; `payload_digest` is the digest of the receipt that it seals, None where none is read."""

    schema: str | None
    digest_status: Status
    signature_status: Status
    trusted_key_count: int
    findings: tuple[Finding, ...]
    receipt: str | None = None
    issued_at: str | None = None
    mode: str | None = None

    @property
    def valid(self) -> bool:
        """Whether nothing speaks against the document."""
        return not self.findings

    def to_value(self) -> dict[str, Any]:
        """Return the verdict in runx's own shape."""
        return {
            "schema": _VERDICT_SCHEMA,
            "valid": self.valid,
            "counter_seal": {
                "schema": self.schema,
                "digest_status": self.digest_status,
                "signature_status": self.signature_status,
                "trusted_key_count": self.trusted_key_count,
            },
            "findings": [{"code": found.code, "path": found.path, "message": found.message} for found in self.findings],
        }


@dataclass(slots=True)
class _Judge:
    """Findings and statuses, as far as the document was read."""

    findings: list[Finding] = field(default_factory=list)
    digest_status: Status = "missing"
    signature_status: Status = "missing"

    def find(self, code: str, path: str, message: str) -> None:
        self.findings.append(Finding(code, path, message))


def is_runx_notary(data: bytes) -> bool:
    """Return whether a file shows the marks of a document of the hosted runx notary."""
    value = _parse(data)
    return isinstance(value, dict) and _verification(value) is not None


def verify_runx_notary(data: bytes, trusted_pems: Sequence[bytes]) -> RunxNotaryVerdict:
    """Return the verdict on a document.

    Args:
        data: the document, at most 10 MiB.
        trusted_pems: Ed25519 public keys as PEM files (SubjectPublicKeyInfo); at least one.
    """
    judge = _Judge()
    value = _parse(data)
    if not isinstance(value, dict):
        judge.find("notary_parse_error", "$", "not a JSON object of at most 10 MiB")
        return _end(judge, None, 0)
    verification = _verification(value)
    if verification is None:
        judge.find("notary_verification_missing", "$", "no notary_verification, at the top or in receipt")
        return _end(judge, None, 0)
    trusted = _trusted(judge, trusted_pems)
    _check_embedded(judge, verification.get("signer_public_keys"), trusted)
    seal = verification.get("counter_seal")
    if not isinstance(seal, dict):
        judge.find("counter_seal_missing", _SEAL, "no counter_seal")
        return _end(judge, None, len(trusted))
    schema = seal.get("schema") if isinstance(seal.get("schema"), str) else None
    payload = _check_payload(judge, seal, schema)
    if payload is None:
        return _end(judge, schema, len(trusted))
    signed = _sorted(payload)
    _check_digests(judge, seal, "sha256:" + sha256(signed).hexdigest())
    _check_signature(judge, seal.get("signature"), signed, trusted)
    _check_projection(judge, value, payload)
    return _end(judge, schema, len(trusted), payload)


def _end(judge: _Judge, schema: str | None, keys: int, payload: dict[str, Any] | None = None) -> RunxNotaryVerdict:
    said = {} if payload is None else payload
    texts = [said.get(name) for name in ("digest", "issued_at", "mode")]
    receipt, issued_at, mode = (text if isinstance(text, str) else None for text in texts)
    return RunxNotaryVerdict(
        schema, judge.digest_status, judge.signature_status, keys, tuple(judge.findings), receipt, issued_at, mode
    )


def _parse(data: bytes) -> object:
    """Return the JSON value of a document, None where there is none."""
    if len(data) > DOCUMENT_MAX_BYTES or _depth(data) > _MAX_DEPTH:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _depth(data: bytes) -> int:
    """Return how deep brackets nest, those in strings included: never less than the value does."""
    deepest = depth = 0
    for found in re.finditer(rb"[\[{\]}]", data):
        depth += 1 if found[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _verification(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the part that says what the notary sealed: in `receipt` where that holds one, else at the top."""
    receipt = value.get("receipt")
    for holder in (receipt if isinstance(receipt, dict) else {}, value):
        found = holder.get("notary_verification")
        if isinstance(found, dict):
            return found
    return None


def _trusted(judge: _Judge, pems: Sequence[bytes]) -> set[str]:
    """Return the key ids of the trusted keys."""
    if not pems:
        judge.find("notary_trusted_key_missing", "notary_key", "no trusted key was given")
    keys = set()
    for number, pem in enumerate(pems):
        path = f"notary_key[{number}]"
        if not pem.strip():
            judge.find("notary_trusted_key_missing_pem", path, "the key file is empty")
            continue
        key = public_key_of(pem)
        if key is None:
            judge.find("notary_trusted_key_malformed", path, "not an Ed25519 public key as PEM")
        else:
            keys.add(key)
    return keys


def public_key_of(pem: object) -> str | None:
    """Return the key id of a PEM public key, text or bytes; None where it is no Ed25519 key that may be trusted."""
    text = pem.decode("ascii", "replace") if isinstance(pem, bytes) else pem
    match = _PEM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    try:
        der = parse_base64(re.sub(r"[\r\n]", "", match[1]))
        if len(der) != len(_SPKI) + 32 or not der.startswith(_SPKI):
            return None
        key = print_key_id(der[len(_SPKI) :])
        refuse_weak_point(key)
    except LedgerError:
        return None
    return key


def _check_embedded(judge: _Judge, embedded: object, trusted: set[str]) -> None:
    if not isinstance(embedded, list) or not embedded:
        return
    keys = {public_key_of(each.get("public_key_pem")) for each in embedded if isinstance(each, dict)}
    if not keys & trusted:
        message = "none of the keys inside the document is a trusted one; they grant no trust"
        judge.find("notary_embedded_key_untrusted", "notary_verification.signer_public_keys", message)


def _check_payload(judge: _Judge, seal: dict[str, Any], schema: str | None) -> dict[str, Any] | None:
    """Return the payload where it is one, after saying what is wrong with it."""
    payload = seal.get("payload")
    if payload is None:
        judge.find("counter_seal_payload_missing", f"{_SEAL}.payload", "no payload")
        return None
    judge.digest_status = judge.signature_status = "invalid"
    if schema != _SEAL_SCHEMA:
        judge.find("counter_seal_payload_invalid", f"{_SEAL}.schema", f"expected {_SEAL_SCHEMA}")
    if (
        not isinstance(payload, dict)
        or payload.keys() != _PAYLOAD
        or not all(isinstance(each, str) for each in payload.values())
        or payload["schema"] != _PAYLOAD_SCHEMA
        or not is_digest(payload["digest"])
    ):
        judge.find("counter_seal_payload_invalid", f"{_SEAL}.payload", f"not a payload of {_PAYLOAD_SCHEMA}")
        return None
    return payload


def _sorted(payload: dict[str, Any]) -> bytes:
    """Return the bytes that are hashed and signed: members sorted, no white space."""
    return orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)


def _check_digests(judge: _Judge, seal: dict[str, Any], actual: str) -> None:
    stated = seal.get("digest")
    if not isinstance(stated, str):
        judge.digest_status = "missing"
        judge.find("counter_seal_digest_missing", f"{_SEAL}.digest", "no digest")
    elif stated != actual:
        judge.find("counter_seal_digest_mismatch", f"{_SEAL}.digest", f"the payload has {actual}")
    else:
        judge.digest_status = "valid"
    if "payload_digest" not in seal:
        return
    path = f"{_SEAL}.payload_digest"
    if not isinstance(seal["payload_digest"], str):
        judge.find("counter_seal_payload_digest_invalid", path, "not a digest")
    elif seal["payload_digest"] != actual:
        judge.find("counter_seal_payload_digest_mismatch", path, f"the payload has {actual}")


def _check_signature(judge: _Judge, signature: object, signed: bytes, trusted: set[str]) -> None:
    path = f"{_SEAL}.signature"
    if not isinstance(signature, dict):
        judge.signature_status = "missing"
        judge.find("counter_seal_signature_missing", path, "no signature")
        return
    if signature.get("alg") != "Ed25519":
        judge.find("counter_seal_signature_algorithm_unsupported", f"{path}.alg", "expected Ed25519")
        return
    value = signature.get("value")
    if not isinstance(value, str) or not value:
        judge.find("counter_seal_signature_value_missing", f"{path}.value", "no value")
        return
    raw = _signature_bytes(value.removeprefix("base64:"))
    if raw is None:
        judge.find("counter_seal_signature_malformed", f"{path}.value", "not base64 of 64 bytes")
        return
    if any(_verifies(key, raw, signed) for key in trusted):
        judge.signature_status = "valid"
    else:
        judge.find("counter_seal_signature_mismatch", path, "no trusted key verifies the signature")


def _signature_bytes(text: str) -> bytes | None:
    """Return the 64 bytes of a signature in standard or URL-safe base64, padded or not, in no looser spelling."""
    standard = text.replace("-", "+").replace("_", "/") if not re.search(r"[+/]", text) else text
    try:
        raw = parse_base64(standard if standard.endswith("=") else standard + "=" * (-len(standard) % 4))
    except LedgerError:
        return None
    return raw if len(raw) == 64 else None


def _verifies(key: str, signature: bytes, message: bytes) -> bool:
    try:
        verify_signature(key, signature, message)
    except LedgerError:
        return False
    return True


def _check_projection(judge: _Judge, value: dict[str, Any], payload: dict[str, Any]) -> None:
    """Check that the receipt beside the counter-seal is the one that was sealed."""
    receipt = value.get("receipt")
    if isinstance(receipt, dict) and receipt.get("digest") != payload["digest"]:
        path = "receipt.digest <-> notary_verification.counter_seal.payload.digest"
        judge.find("notary_projection_binding_mismatch", path, f"the counter-seal is over {payload['digest']}")
