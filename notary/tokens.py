"""Tokens: who may submit what. The notary keeps a digest of each, never the token.

    tokens.json    {"schema":"receipt-ledger.notary-tokens/v1","tokens":[{"digest":"sha256:...","id":"<16 hex>","issued_at":"...",
                    "origins":[...],"scopes":[...]},...]}

A token is `rln_<id>_<43 characters of base64url>`: the id finds it, and the digest of the whole is compared in constant time. The
running service reads the file anew whenever it was replaced.

Source: docs/spec/notary.md, "Tokens".
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from ledger import canonical
from ledger.digest import digest
from ledger.errors import LedgerError, clip
from ledger.members import Digest, Member, Time
from ledger.storage.clock import now, random_bytes
from ledger.storage.durable import replace
from ledger.storage.lock import LedgerLock
from notary.errors import NotaryError

__all__ = ["Grant", "Scope", "Token", "Tokens"]

_SCHEMA: Final = "receipt-ledger.notary-tokens/v1"
_MAX_BYTES: Final = 16 << 20
_TOKEN = re.compile(r"rln_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_NOBODY: Final = digest(b"no token has this digest")


class Scope(StrEnum):
    """What a token allows."""

    NOTARIZE = "notarize"
    FULL = "full"
    PUBLISH = "publish"
    ADMIT = "admit"


class Token(Member):
    """What is kept of a token."""

    id: Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")]
    digest: Digest
    issued_at: Time
    scopes: Annotated[tuple[Annotated[Scope, Field(strict=False)], ...], Field(strict=False)]
    origins: Annotated[tuple[str, ...], Field(strict=False)]
    """Empty for all."""


class _File(Member):
    schema_: Literal["receipt-ledger.notary-tokens/v1"] = Field(alias="schema")
    tokens: Annotated[tuple[Token, ...], Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Grant:
    """What the holder of a token may do; without origins, for every origin."""

    id: str
    scopes: frozenset[Scope]
    origins: frozenset[str]

    def covers(self, origin: str) -> bool:
        """Return whether the token is good for an origin."""
        return not self.origins or origin in self.origins


class Tokens:
    """The token file of one notary."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._known: dict[str, Token] = {}

    def issue(self, *, scopes: Sequence[Scope] = (), origins: Sequence[str] = ()) -> str:
        """Return a new token, which is written down nowhere; without scopes it has all of them."""
        id_ = random_bytes(8).hex()
        token = f"rln_{id_}_{base64.urlsafe_b64encode(random_bytes(32)).decode('ascii').rstrip('=')}"
        made = Token(
            id=id_,
            digest=digest(token.encode("ascii")),
            issued_at=now(),
            scopes=tuple(sorted(set(scopes or Scope))),
            origins=tuple(sorted(set(origins))),
        )
        with LedgerLock(self._path.with_name("tokens.lock")).hold():
            self._write((*self._read(), made))
        return token

    def revoke(self, id_: str) -> None:
        """Forget a token by its id.

        Raises:
            NotaryError: there is none.
        """
        with LedgerLock(self._path.with_name("tokens.lock")).hold():
            before = self._read()
            after = tuple(each for each in before if each.id != id_)
            if len(after) == len(before):
                raise NotaryError(f"token: got id {clip(id_)}, which is none here", code="token.unknown")
            self._write(after)

    def listed(self) -> tuple[Token, ...]:
        """Return what is known of each token, the oldest first."""
        return self._read()

    def check(self, presented: str) -> Grant | None:
        """Return what a token allows, None where it is not one of this notary's."""
        self._refresh()
        match = _TOKEN.fullmatch(presented)
        found = self._known.get(match[1]) if match is not None else None
        expected = _NOBODY if found is None else found.digest
        # The comparison is made for an unknown id as well, so that the time says nothing of which ids there are.
        held = hmac.compare_digest(digest(presented.encode("utf-8", "replace")), expected)
        if found is None or not held:
            return None
        return Grant(found.id, frozenset(found.scopes), frozenset(found.origins))

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._seen, self._known = None, {}
            return
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            self._known = {each.id: each for each in self._read()}
            self._seen = seen

    def _read(self) -> tuple[Token, ...]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return ()
        try:
            return _File.model_validate(canonical.decode(data, max_bytes=_MAX_BYTES)).tokens
        except (LedgerError, ValidationError) as error:
            raise NotaryError(f"tokens {str(self._path)!r}: {error}", code="notary.tokens") from error

    def _write(self, tokens: Sequence[Token]) -> None:
        value = {"schema": _SCHEMA, "tokens": [each.model_dump(mode="json") for each in tokens]}
        replace(self._path, canonical.encode(value), mode=0o600, durable=True)
