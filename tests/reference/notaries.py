"""A notary for tests of its clients: made once, served as a process of its own, and people who ask it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.reference.people import Done, Person, at_home, run
from tests.reference.submissions import Service


@dataclass(frozen=True)
class Notary:
    """A notary's folder, what its operator tells people of it, and a token that allows everything."""

    operator: Person
    folder: Path
    name: str
    seal_key: str
    cosigner: str
    pem: Path
    token: str

    @classmethod
    def made(cls, home: Path, name: str = "notary.example.org") -> Notary:
        operator, folder = Person(home), home / "notary"
        done = operator("--json", "notary", "init", folder, "--name", name)
        assert done.exit == 0, done.err
        value = done.json
        token = operator("notary", "token", folder).out.strip()
        pem = home / "seal.pem"
        pem.write_text(_pem(value["seal_key"]))
        return cls(operator, folder, value["name"], value["seal_key"], value["cosigner"], pem, token)

    def served(self, *options: str) -> Service:
        """Start it."""
        return Service(self.folder, self.operator.home, *options)

    def pinned_by(self, person: Person, *options: str) -> Person:
        """Have somebody pin it, and return that person."""
        done = person(
            "trust", "add", self.name, "--role", "notary", "--key", self.seal_key, "--cosigner", self.cosigner, *options
        )
        assert done.exit == 0, done.err
        return person

    def asked_by(self, person: Person, url: str, *arguments: str | Path, token: str | None = None) -> Done:
        """Have somebody run `ledger notarize --notary URL` with a token, by default one that allows everything."""
        return with_environment(
            person, {"LEDGER_NOTARY_TOKEN": self.token if token is None else token}, *arguments, "--notary", url
        )


def with_environment(person: Person, environment: dict[str, str], *arguments: str | Path) -> Done:
    """Run a command line of somebody who has set more in the environment."""
    person.home.mkdir(parents=True, exist_ok=True)
    with at_home(person.home, person.home):
        os.environ.update(environment)
        return run([str(each) for each in arguments])


@contextmanager
def no_network():
    """Let nothing open a connection: what is judged offline needs none."""
    import socket

    before = socket.socket

    class NoSocket(before):
        def __new__(cls, *_args, **_kwargs):
            raise OSError("no network here")

    socket.socket = NoSocket
    try:
        yield
    finally:
        socket.socket = before


def _pem(key: str) -> str:
    """Return a public key as PEM, written by another library than ours."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.removeprefix("ed25519:")))
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
