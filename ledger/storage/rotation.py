"""Rotation and revocation: a `key` receipt sealed by the committed next key, and the key files after it.

The order is what a crash at any moment needs: the key after the next one is on the disk before the receipt that commits it is
appended; the receipt decides; the files follow it (`ledger.storage.keyfolder`).

Source: docs/spec/keys.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ledger.envelope import Envelope, seal
from ledger.errors import AdmissionError, KeyFileError, RegisterError
from ledger.keys import PrivateKey, next_digest
from ledger.members import Issuer, NextKeys
from ledger.receipt import Key, print_receipt
from ledger.storage.clock import nonce, now
from ledger.storage.keyfile import read_key
from ledger.storage.keyfolder import begin_rotation, cancel_rotation, read_next_key, retired_files
from ledger.storage.ledger import PRODUCER, Ledger
from ledger.storage.rows import Keyring
from ledger.storage.writer import View

__all__ = ["Rotation", "rotate"]

Role = Literal["issuer", "log"]


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotation that is durable: its receipt, the keys, and where the files are now."""

    receipt: str
    index: int
    role: Role
    key: str
    """In force from the next entry on."""
    retired: str
    next_file: Path
    """The key committed next; to be kept apart."""
    retired_file: Path | None
    """The key that was replaced, None where it was deleted."""


def rotate(
    ledger: Ledger,
    role: Role,
    *,
    revoke: bool = False,
    from_index: int | None = None,
    next_file: Path | None = None,
    after_file: Path | None = None,
    delete_retired: bool = False,
) -> Rotation:
    """Return the rotation of a role's key to its committed next key, once receipt and key files are durable.

    Args:
        ledger: the owner's ledger; its key files are moved.
        role: whose key.
        revoke: whether the retired key is no longer believed as well.
        from_index: first index at which it is not, for a revocation; by default the receipt's own.
        next_file: the next key where it is kept elsewhere.
        after_file: where the key after it goes; by default into the key folder's `next`.
        delete_retired: whether the retired key's file is removed in the end.

    Raises:
        KeyFileError: the next key is not at hand, or not the committed one; nothing was appended.
        AdmissionError: runs are open under the issuer key; nothing was appended.
        RegisterError, DamagedError, StorageError: as `Ledger.append`.
    """
    folder, passphrase = ledger.places.key_folder(ledger.origin), ledger.passphrase
    before = _keyring(ledger)
    committed = before.next_issuer if role == "issuer" else before.next_log
    retired = before.issuer_key if role == "issuer" else before.log_key
    following = _next_key(folder, role, committed, next_file, passphrase)
    brought = not (folder / "next" / f"{role}.pem").exists()
    after, place = begin_rotation(folder, role, following, after=after_file, passphrase=passphrase)

    def build(view: View) -> Sequence[Envelope]:
        receipt = Key(
            ledger=ledger.origin,
            issuer=Issuer(name=view.keyring.issuer_name, key=following.key),
            issued_at=now(),
            nonce=nonce(),
            producer=PRODUCER,
            action="revoke" if revoke else "rotate",
            role=role,
            key=following.key,
            retired=retired,
            next=NextKeys(**{role: next_digest(after.key)}),
            from_index=from_index,
        )
        return [seal(print_receipt(receipt), following)]

    try:
        position = ledger.commit(build)[0]
    except (AdmissionError, RegisterError):
        cancel_rotation(folder, role, brought=brought)
        if after_file is not None:
            after_file.unlink(missing_ok=True)
        raise
    _keyring(ledger)
    kept = _retired_file(folder, role, retired, passphrase)
    if delete_retired and kept is not None:
        kept.unlink()
        kept = None
    return Rotation(position.receipt, position.index, role, following.key, retired, place, kept)


def _keyring(ledger: Ledger) -> Keyring:
    """Return the keys in force; looking under the lock puts the key files in their places."""
    found: list[Keyring] = []
    ledger.look(lambda view: found.append(view.keyring))
    return found[0]


def _next_key(folder: Path, role: Role, committed: str | None, path: Path | None, passphrase: str | None) -> PrivateKey:
    if committed is None:
        raise KeyFileError(
            f"keys: no next {role} key was ever committed, so this ledger cannot rotate it",
            code="keyfile.not_committed",
            hint="open a new ledger that continues this one: ledger restore OLD NEW",
        )
    if path is None and not (folder / "next" / f"{role}.pem").exists():
        raise KeyFileError(
            f"keys: the next {role} key is not in {folder / 'next'}",
            code="keyfile.absent",
            hint="name the file that it was moved to: --next FILE",
        )
    key = read_next_key(folder, role, passphrase=passphrase) if path is None else read_key(path, passphrase=passphrase)
    if next_digest(key.key) != committed:
        raise KeyFileError(
            f"keys: {path or folder / 'next'}: this is not the {role} key that was committed",
            code="keyfile.not_committed",
            hint="the key that was made together with the one in force is needed",
        )
    return key


def _retired_file(folder: Path, role: Role, key: str, passphrase: str | None) -> Path | None:
    for path in reversed(retired_files(folder, role)):
        if read_key(path, passphrase=passphrase).key == key:
            return path
    return None
