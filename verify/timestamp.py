"""Timestamp tokens (RFC 3161) over heads, judged by the certificates that trust pins.

- The imprint is SHA-256 of the signed note without cosignatures: the lines of the log alone, so that lines added later change nothing.
- The signer's chain ends in a pinned certificate and was valid at the token's own time, not now.
- The signer's certificate has the one extended key usage of timestamps, critical, and is the one that the signed attributes name.
- What counts is the token's time and its accuracy, later end.

The library is an extra, `timestamp`; without it a token cannot be judged, and that is said.

Source: RFC 3161, RFC 5816, docs/spec/notary.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha1, sha256
from typing import Any, Final

from ledger.errors import clip
from ledger.note import Note, print_note
from ledger.rules import instant
from verify.trust import TimestampPin, Trust

__all__ = ["TOKEN_MAX_BYTES", "TokenVerdict", "judge_token", "timestamped_bytes", "token_problem"]

TOKEN_MAX_BYTES: Final = 64 * 1024

_EPOCH: Final = "1970-01-01T00:00:00.000Z"
_SHA256: Final = "2.16.840.1.101.3.4.2.1"
_GRANTED: Final = bytes.fromhex("3003020100")
_ESS_V1: Final = bytes.fromhex("2a864886f70d010910020c")
_ESS_V2: Final = bytes.fromhex("2a864886f70d010910022f")
_RSA: Final = "2a864886f70d0101"
_ECDSA: Final = "2a8648ce3d0403"
_SIGNATURES: Final = {
    bytes.fromhex("60864801650304020" + digest): {
        bytes.fromhex(each) for each in (_RSA + "01", _RSA + rsa, _ECDSA + ecdsa)
    }
    for digest, rsa, ecdsa in (("1", "0b", "02"), ("2", "0c", "03"), ("3", "0d", "04"))
}
"""Object identifiers of a digest (SHA-256, SHA-384, SHA-512) and of the signatures over it."""
_TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{1,20}))?Z")
_OCTETS: Final = 0x04
_GENERALIZED_TIME: Final = 0x18
_SIGNED_ATTRIBUTES: Final = 0xA0


@dataclass(frozen=True, slots=True)
class TokenVerdict:
    """The name of the authority and the time that its token proves, or the code and the message that speak against it."""

    name: str = ""
    time: str = ""
    code: str | None = None
    message: str = ""


def timestamped_bytes(note: Note, origin: str) -> bytes:
    """Return what a timestamp of a head covers: its note with the lines of its log and no others."""
    return print_note(Note(note.text, tuple(line for line in note.signatures if line.name == origin)))


def judge_token(token: bytes, covered: bytes, trust: Trust | None) -> TokenVerdict:
    """Return the verdict on a token over the bytes `covered`, as DER of a TimeStampToken."""
    if trust is None or not trust.timestamps:
        return TokenVerdict(code="trust.timestamp_unpinned", message="no timestamp authority is pinned")
    problems = []
    for pinned in trust.timestamps.values():
        found = token_problem(token, covered, pinned)
        if found.code is None or found.code in {"timestamp.invalid", "check.unsupported"}:
            return found
        problems.append(found)
    return problems[-1]


def token_problem(token: bytes, covered: bytes, pinned: TimestampPin, *, nonce: int | None = None) -> TokenVerdict:
    """Return the verdict on a token under one pinned authority; with `nonce`, the token must repeat it."""
    try:
        import rfc3161_client  # noqa: F401, PLC0415  an extra, and nobody else needs it
        from cryptography import x509  # noqa: PLC0415
    except ImportError:
        return TokenVerdict(code="check.unsupported", message="timestamps need the extra `timestamp` of this package")
    try:
        root = x509.load_pem_x509_certificate(pinned.certificate.encode("ascii"))
    except ValueError as error:
        return TokenVerdict(code="trust.timestamp_unpinned", message=f"what is pinned for {pinned.name}: {error}")
    try:
        return _judge(token, covered, pinned, root, nonce)
    except Exception as error:  # noqa: BLE001  parsers of others over whatever bytes these are
        return _invalid(clip(f"{type(error).__name__}: {error}"))


def _judge(token: bytes, covered: bytes, pinned: TimestampPin, root: Any, nonce: int | None) -> TokenVerdict:  # noqa: ANN401
    import rfc3161_client  # noqa: PLC0415
    from cryptography import x509  # noqa: PLC0415

    response = rfc3161_client.decode_timestamp_response(_response_of(token))
    if response.time_stamp_token() != token:
        return _invalid("bytes follow it")
    info = response.tst_info
    if info.message_imprint.hash_algorithm.dotted_string != _SHA256:
        return _invalid("its imprint is not of SHA-256")
    if info.message_imprint.message != sha256(covered).digest():
        return _invalid("its imprint is of other bytes")
    leaf = _leaf(response)
    if leaf is None:
        return _invalid("it does not hold the certificate of its signer")
    builder = rfc3161_client.VerifierBuilder(roots=[root], nonce=nonce)
    try:
        builder.build().verify(response, info.message_imprint.message)
    except rfc3161_client.VerificationError as error:
        if not _leads_to(leaf, response, root):
            message = f"signed by {clip(leaf.subject.rfc4514_string())}, whose chain is not pinned"
            return TokenVerdict(code="trust.timestamp_unpinned", message=message)
        return _invalid(str(error))
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if len(usage) != 1:
        return _invalid("its signer may sign other things than timestamps")
    if not _names_signer(token, leaf):
        return _invalid("its signed attributes do not name the certificate of its signer")
    return TokenVerdict(pinned.name, instant.time_after(_EPOCH, _latest_ms(token, info)))


def _response_of(token: bytes) -> bytes:
    """Return a response that grants a token: the token is kept without it."""
    if not 0 < len(token) <= TOKEN_MAX_BYTES:
        raise ValueError(f"got {len(token)} bytes, expected at most {TOKEN_MAX_BYTES}")
    content = _GRANTED + token
    width = (len(content).bit_length() + 7) // 8
    length = (
        bytes([len(content)]) if len(content) < 0x80 else bytes([0x80 | width]) + len(content).to_bytes(width, "big")
    )
    return b"\x30" + length + content


def _leaf(response: Any) -> Any:  # noqa: ANN401  types of the library, which is imported late
    """Return the certificate of the token's only signer, None where it is not inside."""
    from cryptography import x509  # noqa: PLC0415

    signers = list(response.signed_data.signer_infos)
    if len(signers) != 1:
        return None
    for der in response.signed_data.certificates:
        found = x509.load_der_x509_certificate(der)
        if (found.issuer, found.serial_number) == (signers[0].issuer, signers[0].serial_number):
            return found
    return None


def _leads_to(leaf: Any, response: Any, root: Any) -> bool:  # noqa: ANN401
    """Return whether the issuers' names lead from a certificate to the pinned one: whose token it claims to be."""
    from cryptography import x509  # noqa: PLC0415

    inside = [x509.load_der_x509_certificate(der) for der in response.signed_data.certificates]
    at, steps = leaf, 0
    while at.issuer != root.subject:
        above = next((each for each in inside if each.subject == at.issuer and each.subject != at.subject), None)
        if above is None or steps > len(inside):
            return False
        at, steps = above, steps + 1
    return True


def _latest_ms(token: bytes, info: Any) -> int:  # noqa: ANN401
    """Return the token's time and its accuracy in milliseconds after 1970 began, rounded up; the library drops fractions."""
    (signed_data,) = _parts(_parts(_parts(token)[0][1])[1][1])
    content = _parts(_parts(_parts(_parts(signed_data[1])[2][1])[1][1])[0][1])[0][1]
    (text,) = [value.decode("ascii") for tag, value in _parts(content) if tag == _GENERALIZED_TIME]
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"time: got {clip(text)}")
    year, month, day, hour, minute, second, fraction = match.groups(default="")
    whole = instant.ms_of(f"{year}-{month}-{day}T{hour}:{minute}:{second}.000Z")
    microseconds = whole * 1000 + int((fraction + "000000")[:6]) + (len(fraction) > 6)
    accuracy = info.accuracy
    if accuracy is not None:
        microseconds += (accuracy.seconds or 0) * 1_000_000 + (accuracy.millis or 0) * 1000 + (accuracy.micros or 0)
    return -(-microseconds // 1000)


def _names_signer(token: bytes, leaf: Any) -> bool:  # noqa: ANN401
    """Return whether the signed attributes name a certificate, and what nothing signs says what it must.

    The attribute is signingCertificateV2 with SHA-256, or the older one, with SHA-1.
    """
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    der = leaf.public_bytes(Encoding.DER)
    wanted = {_ESS_V2: sha256(der).digest(), _ESS_V1: sha1(der, usedforsecurity=False).digest()}
    (signed_data,) = _parts(_parts(_parts(token)[0][1])[1][1])
    (signer,) = _parts(_parts(signed_data[1])[-1][1])
    fields = _parts(signer[1])
    position, attributes = next((at, content) for at, (tag, content) in enumerate(fields) if tag == _SIGNED_ATTRIBUTES)
    digest_algorithm, signature_algorithm = (_parts(fields[at][1])[0][1] for at in (position - 1, position + 1))
    versions = _parts(signed_data[1])[0][1], fields[0][1]
    if versions != (b"\x03", b"\x01") or signature_algorithm not in _SIGNATURES.get(digest_algorithm, ()):
        return False
    named = []
    for _, attribute in _parts(attributes):
        (_, oid), (_, values) = _parts(attribute)
        if oid in wanted:
            first = _parts(_parts(_parts(_parts(values)[0][1])[0][1])[0][1])
            named.append([content for tag, content in first if tag == _OCTETS] == [wanted[oid]])
    return bool(named) and all(named)


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """Return tag and content of each DER element that bytes consist of.

    Raises:
        ValueError: they are no such elements.
    """
    found = []
    at = 0
    while at < len(der):
        if at + 2 > len(der):
            raise ValueError("der: an element without its length")
        tag, length, at = der[at], der[at + 1], at + 2
        if length >= 0x80:
            width = length & 0x7F
            length, at = int.from_bytes(der[at : at + width], "big"), at + width
        if at + length > len(der):
            raise ValueError("der: an element that is cut short")
        found.append((tag, der[at : at + length]))
        at += length
    return found


def _invalid(message: str) -> TokenVerdict:
    return TokenVerdict(code="timestamp.invalid", message=message)
