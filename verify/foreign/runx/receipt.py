"""One `runx.receipt.v1`: its bytes, its id, its digest and its signature, each computed again.

    id      = digest of the canonical text without signature, digest, metadata, id and lineage
    digest  = digest of the canonical text without signature, digest and metadata
    signature = Ed25519 over the 71 characters of the digest, `base64:` and the 64 bytes; or `sig:` and the digest, which proves nothing

- Lineage is signed and not part of the id: two bodies of one id with other children can both be well formed.
- `metadata` is neither signed nor addressed.
- The writer hashes what it would write again, with lists and nulls that the text may leave out; so does this reader, where
  the text as it stands has another digest.

Source: runx 0.8.2.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ledger.canonical import JsonObject
from ledger.digest import digest
from ledger.errors import SignatureError
from ledger.keys import print_key_id, verify_signature
from verify.foreign.runx.receiptshape import RECEIPT
from verify.foreign.runx.stablejson import stable_bytes
from verify.foreign.shape import Misfit
from verify.foreign.strict import read_object

__all__ = ["RECEIPT_SCHEMA", "Finding", "KeyOf", "Mode", "Receipt", "SignatureState", "parse_receipt"]

RECEIPT_SCHEMA: Final = "runx.receipt.v1"
_UNSIGNED: Final = ("signature", "digest", "metadata")
_UNADDRESSED: Final = (*_UNSIGNED, "id", "lineage")
_LOCAL: Final = "sig:"
_HOSTED: Final = "base64:"

KeyOf: TypeAlias = Callable[[str], bytes | None]
"""Key id of an issuer (`kid`) -> its 32 public bytes, None where nobody vouches for it."""
Mode: TypeAlias = Literal["production", "local-development"]
"""How a receipt is signed, told from the receipt itself."""
SignatureState: TypeAlias = Literal["valid", "invalid", "not_evaluated"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, in the words of the verdict on one receipt (`seal_digest_mismatch`), and where."""

    code: str
    path: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that was read. `id_actual` and `digest_actual` are computed from what it holds."""

    value: JsonObject
    misfits: tuple[Misfit, ...]
    id_actual: str
    digest_actual: str
    size_bytes: int

    @property
    def id(self) -> str:
        """The id that it claims."""
        return _text(self.value.get("id"))

    @property
    def digest(self) -> str:
        """The digest that it claims."""
        return _text(self.value.get("digest"))

    @property
    def mode(self) -> Mode:
        """How it is signed."""
        return "local-development" if _text(self._part("signature").get("value")).startswith(_LOCAL) else "production"

    @property
    def kid(self) -> str:
        """The key id of its issuer."""
        return _text(self._part("issuer").get("kid"))

    @property
    def children(self) -> list[JsonObject]:
        """The references to its children, in order; what is no object is an empty one."""
        found = self._part("lineage").get("children")
        return [item if isinstance(item, dict) else {} for item in found] if isinstance(found, list) else []

    def signature(self, key_of: KeyOf) -> tuple[SignatureState, tuple[Finding, ...]]:
        """Return what the signature comes to under the keys at hand, over the digest computed again."""
        signature, issuer = self._part("signature"), self._part("issuer")
        value = _text(signature.get("value"))
        if signature.get("alg") != "Ed25519":
            return _invalid("signature_unsupported_algorithm", "signature.alg", "the algorithm is not Ed25519")
        if self.mode == "local-development":
            if value == _LOCAL + self.digest_actual and issuer.get("type") == "local":
                return "valid", ()
            return _invalid("signature_invalid", "signature.value", "the local signature is not that of the body")
        if issuer.get("type") not in ("hosted", "ci"):
            return _invalid("signature_unsupported_issuer", "issuer.type", "no such issuer signs with a key")
        raw = signature_bytes(value)
        if raw is None:
            return _invalid("signature_malformed", "signature.value", "the signature is not 64 bytes of base64")
        key = key_of(self.kid)
        if key is None:
            return _invalid("signature_key_missing", "issuer", "nobody vouches for a key under this kid")
        if issuer.get("public_key_sha256") != digest(key):
            return _invalid("signature_key_hash_mismatch", "issuer.public_key_sha256", "the key is another one")
        try:
            verify_signature(print_key_id(key), raw, self.digest_actual.encode("ascii"))
        except SignatureError:
            return _invalid("signature_invalid", "signature.value", "the signature is not over this body")
        return "valid", ()

    def _part(self, name: str) -> JsonObject:
        found = self.value.get(name)
        return found if isinstance(found, dict) else {}


def parse_receipt(data: bytes) -> Receipt:
    """Return a receipt, whatever its shape.

    Raises:
        ReadError: not an object of strict JSON, or a number out of range.
    """
    return receipt_of(read_object(data), len(data))


def receipt_of(value: JsonObject, size_bytes: int = 0) -> Receipt:
    """Return the receipt that a value is."""
    misfits = tuple(RECEIPT(value, ""))
    digest_actual, id_actual = _without(value, _UNSIGNED), _without(value, _UNADDRESSED)
    if not misfits and digest_actual != value["digest"]:
        filled = RECEIPT.filled(value)
        if filled != value:
            digest_actual, id_actual = _without(filled, _UNSIGNED), _without(filled, _UNADDRESSED)
    return Receipt(value, misfits, id_actual, digest_actual, size_bytes)


def signature_bytes(value: str) -> bytes | None:
    """Return the 64 bytes of a signature: `base64:` and either alphabet, padded or not; None for anything else."""
    text = value.removeprefix(_HOSTED)
    if text == value or not text.isascii():
        return None
    try:
        raw = base64.b64decode(text.rstrip("=").replace("-", "+").replace("_", "/") + "==", validate=True)
    except binascii.Error:
        return None
    spellings = {base64.b64encode(raw), base64.urlsafe_b64encode(raw)}
    spellings |= {spelling.rstrip(b"=") for spelling in spellings}
    return raw if len(raw) == 64 and text.encode("ascii") in spellings else None


def keys_of(keys: Mapping[str, bytes]) -> KeyOf:
    """Return the keys of a mapping."""
    return keys.get


def _without(value: JsonObject, names: tuple[str, ...]) -> str:
    return digest(stable_bytes({name: item for name, item in value.items() if name not in names}))


def _invalid(code: str, path: str, message: str) -> tuple[SignatureState, tuple[Finding, ...]]:
    return "invalid", (Finding(code, path, message),)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
