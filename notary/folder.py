"""A notary's folder, and where its keys are.

    notary.json      name, origin of its own ledger, public keys
    ledger/          its own ledger
    memory.sqlite    what it remembers; seals.sqlite is derived
    tokens.json      digests of tokens
    serving          locked while a service runs

The private keys lie with the user, beside those of the notary's own ledger: `seal.pem` and `cosigner.pem`.

Source: docs/spec/notary.md, "Keys and names".
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from ledger import canonical
from ledger.counterseal import NotaryName
from ledger.errors import LedgerError, clip
from ledger.keys import PrivateKey, parse_key_id
from ledger.members import KeyId, Member, Origin
from ledger.note import COSIGNATURE, NoteKey, is_note_name, print_vkey
from ledger.storage.clock import default_origin
from ledger.storage.durable import make_folder, write_new
from ledger.storage.keyfile import create_key, read_key
from ledger.storage.ledger import Ledger
from ledger.storage.places import Places
from notary.errors import NotaryError
from notary.memory import Memory
from notary.tokens import Tokens

__all__ = ["About", "NotaryFolder", "create", "open_folder", "print_pem"]

_SCHEMA: Final = "receipt-ledger.notary/v1"
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")
"""DER of an Ed25519 public key up to its 32 bytes (RFC 8410, 4)."""


class About(Member):
    """What a notary says of itself."""

    schema_: Literal["receipt-ledger.notary/v1"] = Field(default=_SCHEMA, alias="schema")
    name: NotaryName
    origin: Origin
    """Of its own ledger."""
    seal_key: KeyId
    cosigner_key: KeyId

    @property
    def cosigner_vkey(self) -> str:
        """The cosigner key as witnesses' clients write it."""
        return print_vkey(NoteKey(self.name, COSIGNATURE, parse_key_id(self.cosigner_key)))


@dataclass(frozen=True, slots=True)
class NotaryFolder:
    """An existing notary's folder."""

    path: Path
    about: About
    places: Places

    @property
    def ledger_folder(self) -> Path:
        """The folder of its own ledger."""
        return self.path / "ledger"

    @property
    def seals_file(self) -> Path:
        """The derived index of what it sealed."""
        return self.path / "seals.sqlite"

    def open_ledger(self) -> Ledger:
        """Return its own ledger."""
        opened = Ledger.open(self.ledger_folder, places=self.places)
        if opened.origin != self.about.origin:
            raise NotaryError(
                f"notary: its ledger is {clip(opened.origin)}, expected {self.about.origin}", code="notary.ledger"
            )
        return opened

    def open_memory(self) -> Memory:
        """Return its memory."""
        return Memory(self.path / "memory.sqlite", ledger=self.about.origin)

    def tokens(self) -> Tokens:
        """Return its tokens."""
        return Tokens(self.path / "tokens.json")

    def read_keys(self) -> tuple[PrivateKey, PrivateKey]:
        """Return the seal key and the cosigner key.

        Raises:
            KeyFileError: as `read_key`.
            NotaryError: one is not the key that the notary said it had.
        """
        folder = self.places.key_folder(self.about.origin)
        found = read_key(folder / "seal.pem"), read_key(folder / "cosigner.pem")
        if (found[0].key, found[1].key) != (self.about.seal_key, self.about.cosigner_key):
            raise NotaryError(f"notary: the keys in {str(folder)!r} are not this notary's", code="notary.keys")
        return found


def create(
    path: Path, *, name: str | None = None, origin: str | None = None, places: Places | None = None
) -> NotaryFolder:
    """Return a new notary in a folder that is absent or empty, with keys, a ledger and an empty memory.

    Raises:
        NotaryError: the folder is in use, or the name cannot be a notary's.
    """
    places = places or Places.default()
    origin = origin or name or default_origin().replace("ledger.invalid/", "notary.invalid/")
    name = name or origin
    try:
        TypeAdapter(NotaryName).validate_python(name)
        fits = is_note_name(name)
    except ValidationError:
        fits = False
    if not fits:
        raise NotaryError(
            f"name: got {clip(name)}, expected what a URL may hold, without + and space", code="notary.name"
        )
    path = path.absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise NotaryError(
            f"notary: {str(path)!r} is in use", code="notary.exists", hint="name a folder that is absent or empty"
        )
    make_folder(path, mode=0o700)
    Ledger.create(path / "ledger", origin=origin, issuer=f"notary@{name}"[:256], places=places).close()
    keys = places.key_folder(origin)
    seal, cosigner = create_key(keys / "seal.pem"), create_key(keys / "cosigner.pem")
    Memory.create(path / "memory.sqlite", ledger=origin).close()
    about = About(name=name, origin=origin, seal_key=seal.key, cosigner_key=cosigner.key)
    # Last: a folder without it is not a notary.
    write_new(path / "notary.json", canonical.encode(about.model_dump(by_alias=True, mode="json")), mode=0o644)
    return NotaryFolder(path, about, places)


def open_folder(path: Path, *, places: Places | None = None) -> NotaryFolder:
    """Return the notary in a folder.

    Raises:
        NotaryError: there is none.
    """
    try:
        data = (path / "notary.json").read_bytes()
    except OSError as error:
        raise NotaryError(
            f"notary: {str(path)!r} holds none", code="notary.absent", hint="make one with: ledger notary init DIR"
        ) from error
    try:
        about = About.model_validate(canonical.decode(data))
    except (LedgerError, ValidationError) as error:
        raise NotaryError(f"notary: {str(path / 'notary.json')!r}: {error}", code="notary.malformed") from error
    return NotaryFolder(path.absolute(), about, places or Places.default())


def print_pem(key: str) -> str:
    """Return a key id as a public key in PEM (SPKI)."""
    body = base64.b64encode(_SPKI + parse_key_id(key)).decode("ascii")
    return f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"
