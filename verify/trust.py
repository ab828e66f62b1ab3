"""Trust: whom the verifier accepts. It is an argument, and never read from the data or the folder it judges.

    quorum = 1
    [[origin]]
    name = "ledger.invalid/k3f..."
    log_key = "ed25519:..."            # the first log key; later ones follow from the ledger's own rotations
    header = "sha256:..."              # receipt id of entry 0
    [[issuer]]
    name = "build"
    key = "ed25519:..."                # the first key, as with the log key
    origin = ["ledger.invalid/k3f..."] # may be left out: any origin
    [[approver]]
    name = "ada"
    key = "ed25519:..."
    roles = ["release"]
    [[notary]]
    name = "notary.example.org"
    key = "ed25519:..."                # seals counter-seals; may be left out for a witness, which only cosigns
    cosigner = "ed25519:..."           # cosigns heads, under the same name; may be left out
    url = "https://notary.example.org" # where `ledger notarize` asks; trust does not depend on it
    [[timestamp]]
    name = "tsa.example.org"
    certificate = '''-----BEGIN CERTIFICATE-----...'''  # PEM of the certificate that its chain ends in

- Unknown members are refused: a misspelt restriction must not widen trust.
- One public key stands in one role under one name; one name has one key in a role.
- Weak points and published test keys are refused.
- No trust file at all means that nobody is pinned.

Source: docs/spec/trust.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from ledger.digest import digest
from ledger.errors import LedgerError, clip
from ledger.keys import parse_key_id, refuse_weak_point
from ledger.members import Digest, KeyId, Member, Name, Origin
from ledger.note import is_note_name
from ledger.testkeys import PUBLISHED_TEST_KEYS
from verify.errors import TrustError

__all__ = [
    "ApproverPin",
    "IssuerPin",
    "NotaryPin",
    "OriginPin",
    "TimestampPin",
    "Trust",
    "parse_trust",
    "pin",
    "unpin",
]

_MAX_BYTES: Final = 1 << 20

Certificate: TypeAlias = Annotated[
    str,
    StringConstraints(
        pattern=r"^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]{1,16000}\n-----END CERTIFICATE-----\n?$",
        max_length=16_384,
    ),
]
"""One X.509 certificate as PEM; whether it is one shows when a timestamp is judged by it."""


class OriginPin(Member):
    """A ledger: its first log key and the receipt id of its header."""

    name: Origin
    log_key: KeyId
    header: Digest | None = None


class IssuerPin(Member):
    """An issuer: its first key, and the origins it speaks in where that is restricted."""

    name: Name
    key: KeyId
    origin: Annotated[tuple[Origin, ...], Field(strict=False, min_length=1)] | None = None


class ApproverPin(Member):
    """An approver: key and roles."""

    name: Name
    key: KeyId
    roles: Annotated[tuple[Name, ...], Field(strict=False)] = ()


class NotaryPin(Member):
    """A notary: name, key of its counter-seals, key of its cosignatures under the same name, and where it is asked.

    One of the two keys may be absent: a witness of transparency logs only cosigns.
    """

    name: Name
    key: KeyId | None = None
    cosigner: KeyId | None = None
    url: Name | None = None


class TimestampPin(Member):
    """A timestamp authority (RFC 3161): PEM of the certificate that its chain ends in, and where it is asked."""

    name: Name
    certificate: Certificate
    url: Name | None = None


class _File(Member):
    origin: Annotated[tuple[OriginPin, ...], Field(strict=False)] = ()
    issuer: Annotated[tuple[IssuerPin, ...], Field(strict=False)] = ()
    approver: Annotated[tuple[ApproverPin, ...], Field(strict=False)] = ()
    notary: Annotated[tuple[NotaryPin, ...], Field(strict=False)] = ()
    timestamp: Annotated[tuple[TimestampPin, ...], Field(strict=False)] = ()
    quorum: Annotated[int, Field(ge=0, le=1_000)] = 0


_FILE: Final[TypeAdapter[_File]] = TypeAdapter(_File)


@dataclass(frozen=True, slots=True)
class Trust:
    """A trust file, read: pins by name. `digest` is that of its bytes, `source` says where they came from."""

    origins: Mapping[str, OriginPin]
    issuers: Mapping[str, IssuerPin]
    approvers: Mapping[str, ApproverPin]
    notaries: Mapping[str, NotaryPin]
    quorum: int
    digest: str
    source: str
    roles: Mapping[str, tuple[str, str]]
    """Key id -> the role and the name that it is pinned for."""
    timestamps: Mapping[str, TimestampPin] = field(default_factory=dict)

    def judge_issuer(self, name: str, key: str, origin: str) -> str | None:
        """Return the code that speaks against receipts of an issuer in a ledger, None if it is pinned for them."""
        pinned = self.issuers.get(name)
        if pinned is None:
            return "trust.issuer_mismatch" if key in self.roles else "trust.issuer_unpinned"
        if pinned.key != key or (pinned.origin is not None and origin not in pinned.origin):
            return "trust.issuer_mismatch"
        return None

    def judge_approver(self, name: str, key: str) -> str | None:
        """Return the code that speaks against approvals of an approver, None if it is pinned for them."""
        pinned = self.approvers.get(name)
        if pinned is None:
            return "trust.issuer_mismatch" if key in self.roles else "trust.approver_unpinned"
        return None if pinned.key == key else "trust.issuer_mismatch"

    def judge_notary(self, name: str, key: str) -> str | None:
        """Return the code that speaks against counter-seals of a notary, None if it is pinned for them."""
        pinned = self.notaries.get(name)
        if pinned is None:
            return "trust.notary_mismatch" if key in self.roles else "trust.notary_unpinned"
        return None if pinned.key == key else "trust.notary_mismatch"


def parse_trust(data: bytes, *, source: str, allow_test_keys: bool = False) -> Trust:
    """Return the trust that a file holds. `allow_test_keys` is for vectors and tests only.

    Raises:
        TrustError: not TOML of this shape, a key that must not be pinned, or one key or name pinned twice.
    """
    if len(data) > _MAX_BYTES:
        raise TrustError(f"trust {clip(source)}: got {len(data)} bytes, expected at most {_MAX_BYTES}")
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise TrustError(f"trust {clip(source)}: not TOML: {error}") from error
    try:
        file = _FILE.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        try:
            got = clip(first.get("input"))
        except RecursionError:
            got = "a value that nests too deeply"
        raise TrustError(f"trust {clip(source)}: {where}: {first['msg'].lower()}, got {got}", where=where) from error
    roles: dict[str, tuple[str, str]] = {}
    keyed = (
        *(("origin", found.name, found.log_key) for found in file.origin),
        *(("issuer", found.name, found.key) for found in file.issuer),
        *(("approver", found.name, found.key) for found in file.approver),
        *(("notary", found.name, found.key) for found in file.notary if found.key is not None),
        *(("cosigner", found.name, found.cosigner) for found in file.notary if found.cosigner is not None),
    )
    _check_notaries(file)
    for role, name, key in keyed:
        if role == "cosigner" and not is_note_name(name):
            raise TrustError(f"trust: notary {clip(name)}: a cosigner's name holds neither white space nor '+'")
        _refuse_key(role, name, key, allow_test_keys=allow_test_keys)
        if key in roles:
            raise TrustError(
                f"trust: key {clip(key)} is pinned for {roles[key][0]} {clip(roles[key][1])} and for {role} {clip(name)}",
                code="trust.key_twice",
            )
        if (role, name) in roles.values():
            raise TrustError(f"trust: {role} {clip(name)} is pinned twice", code="trust.name_twice")
        roles[key] = (role, name)
    return Trust(
        {found.name: found for found in file.origin},
        {found.name: found for found in file.issuer},
        {found.name: found for found in file.approver},
        {found.name: found for found in file.notary},
        file.quorum,
        digest(data),
        source,
        roles,
        {found.name: found for found in file.timestamp},
    )


def pin(
    data: bytes,
    *,
    origin: OriginPin | None = None,
    issuer: IssuerPin | None = None,
    approver: ApproverPin | None = None,
    notary: NotaryPin | None = None,
    timestamp: TimestampPin | None = None,
    allow_test_keys: bool = False,
) -> bytes:
    """Return a trust file with pins added; what the user wrote, comments included, stays. A pin already there adds nothing.

    Raises:
        TrustError: the file must not be used, or the name or key is already pinned otherwise (`trust.conflict`).
    """
    import tomlkit  # noqa: PLC0415  only writers need it

    before = parse_trust(data, source="trust file", allow_test_keys=allow_test_keys)
    document = tomlkit.parse(data.decode("utf-8"))
    added: tuple[tuple[str, Member | None, Mapping[str, Member]], ...] = (
        ("origin", origin, before.origins),
        ("issuer", issuer, before.issuers),
        ("approver", approver, before.approvers),
        ("notary", notary, before.notaries),
        ("timestamp", timestamp, before.timestamps),
    )
    for role, wanted, present in added:
        if wanted is None:
            continue
        value: dict[str, Any] = wanted.model_dump(exclude_none=True, mode="json")
        there = present.get(value["name"])
        if there is not None:
            if there != wanted:
                raise TrustError(
                    f"trust: {role} {clip(value['name'])} is already pinned otherwise",
                    code="trust.conflict",
                    hint=f"compare both with the owner, then: ledger trust remove {value['name']}",
                )
            continue
        table = tomlkit.table()
        for name, item in value.items():
            table.add(name, item)
        if role not in document:
            document.add(role, tomlkit.aot())
        document[role].append(table)
    result = tomlkit.dumps(document).encode("utf-8")
    parse_trust(result, source="trust file", allow_test_keys=allow_test_keys)
    return result


def unpin(data: bytes, name: str, *, allow_test_keys: bool = False) -> bytes:
    """Return a trust file without the pins under `name`, in whatever role.

    Raises:
        TrustError: the file must not be used, or nothing is pinned under that name (`trust.absent`).
    """
    import tomlkit  # noqa: PLC0415  only writers need it

    parse_trust(data, source="trust file", allow_test_keys=allow_test_keys)
    document = tomlkit.parse(data.decode("utf-8"))
    removed = 0
    for role in ("origin", "issuer", "approver", "notary", "timestamp"):
        tables = document.get(role, [])
        for position in range(len(tables) - 1, -1, -1):
            if tables[position]["name"] == name:
                del tables[position]
                removed += 1
        if role in document and not tables:
            del document[role]
    if not removed:
        raise TrustError(f"trust: nothing is pinned under {clip(name)}", code="trust.absent")
    result = tomlkit.dumps(document).encode("utf-8")
    parse_trust(result, source="trust file", allow_test_keys=allow_test_keys)
    return result


def _check_notaries(file: _File) -> None:
    """Raise for a notary without any key, one that is pinned twice, a quorum beyond their number, an authority pinned twice."""
    for pinned in file.notary:
        if pinned.key is None and pinned.cosigner is None:
            raise TrustError(f"trust: notary {clip(pinned.name)}: got no key, expected key, cosigner or both")
    if len({pinned.name for pinned in file.notary}) != len(file.notary):
        raise TrustError("trust: a notary is pinned twice", code="trust.name_twice")
    if file.quorum > len(file.notary):
        raise TrustError(
            f"trust: got quorum {file.quorum}, expected at most {len(file.notary)}, the number of notaries"
        )
    certificates: dict[str, str] = {}
    for each in file.timestamp:
        if each.name in certificates.values() or each.certificate in certificates:
            raise TrustError(f"trust: timestamp {clip(each.name)} is pinned twice", code="trust.name_twice")
        certificates[each.certificate] = each.name


def _refuse_key(role: str, name: str, key: str, *, allow_test_keys: bool) -> None:
    try:
        parse_key_id(key)
        refuse_weak_point(key)
    except LedgerError as error:
        raise TrustError(f"trust: {role} {clip(name)}: {error}", code=error.code) from error
    if key in PUBLISHED_TEST_KEYS and not allow_test_keys:
        raise TrustError(
            f"trust: {role} {clip(name)}: the private half of {clip(key)} is published", code="trust.test_key"
        )
