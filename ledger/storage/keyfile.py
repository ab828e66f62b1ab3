"""Private keys in files: PKCS#8 PEM, readable by their owner only, never in a ledger's folder.

    <keys>/<sha256 of the origin>/issuer.pem  log.pem    the keys in force
                                  next/issuer.pem  log.pem    their successors, to be kept apart
                                  origin                      whose keys these are, for a person who looks

A key without passphrase has exactly one PEM text, so it is read and written here by its fixed prefix; `cryptography`, whose
import costs more than the rest of a start, reads and writes everything else.

Source: docs/spec/keys.md, RFC 8410, RFC 7468.
"""

from __future__ import annotations

import base64
import errno
import itertools
import os
import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import KeyFileError, StorageError
from ledger.keys import PrivateKey
from ledger.storage.clock import random_bytes
from ledger.storage.durable import fsync_folder, make_folder, storage_error, temporary_beside, write_new
from ledger.testkeys import PUBLISHED_TEST_KEYS

__all__ = [
    "LedgerKeys",
    "create_key",
    "create_ledger_keys",
    "folder_holds_key",
    "is_published_key",
    "read_key",
    "read_ledger_keys",
    "read_next_keys",
    "write_key",
]

_PREFIX: Final = bytes.fromhex("302e020100300506032b657004220420")
"""DER of a PKCS#8 Ed25519 key up to its seed: version 0, the algorithm, the lengths (RFC 8410, 7)."""
_PLAIN_PEM: Final = re.compile(rb"-----BEGIN PRIVATE KEY-----\n([A-Za-z0-9+/]{64})\n-----END PRIVATE KEY-----\n")
_ANY_KEY: Final = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|^PRIVATE\+KEY\+", re.MULTILINE)
_LIMIT_BYTES: Final = 16 * 1024
_OWN_FOLDERS: Final = frozenset({"journal", "artifacts", "tiles", "ids", "quarantine"})


def is_published_key(key: PrivateKey) -> bool:
    """Return whether anybody can know this key: test keys of standards, seeds of one repeated or of counted bytes."""
    seed = key.seed
    counted = all((after - before) % 256 == 1 for before, after in itertools.pairwise(seed))
    return len(set(seed)) == 1 or counted or key.key in PUBLISHED_TEST_KEYS


@dataclass(frozen=True, slots=True)
class LedgerKeys:
    """The two keys that a ledger's owner signs with; they are never the same key."""

    issuer: PrivateKey
    """Seals receipts."""
    log: PrivateKey
    """Signs heads."""
    next: LedgerKeys | None = None
    """Their successors: only where both were made a moment ago, since they are to be kept apart."""


def create_key(path: Path, *, passphrase: str | None = None) -> PrivateKey:
    """Return a new random key, written to `path`; see `write_key`."""
    key = PrivateKey.from_seed(random_bytes(32))
    write_key(path, key, passphrase=passphrase)
    return key


def write_key(path: Path, key: PrivateKey, *, passphrase: str | None = None) -> None:
    """Write `key` to a file that did not exist, mode 0600, durably; folders are made with mode 0700.

    Raises:
        KeyFileError: the file exists (`keyfile.exists`), or the passphrase is empty.
        StorageError: it cannot be written.
    """
    text = _print_plain(key) if passphrase is None else _print_encrypted(key, _passphrase_bytes(passphrase))
    make_folder(path.parent, mode=0o700)
    try:
        write_new(path, text, mode=0o600)
    except StorageError as error:
        if error.code != "storage.exists":
            raise
        raise KeyFileError(
            f"key file {path}: exists already, and a key is never overwritten",
            code="keyfile.exists",
            hint="choose another path, or move the old key to a safe place first",
            where=str(path),
        ) from error


def read_key(path: Path, *, passphrase: str | None = None) -> PrivateKey:
    """Return the Ed25519 key in `path`.

    Raises:
        KeyFileError: absent, a link, readable by others, not a private key, of another algorithm, under another
            passphrase, or a key that was published. Its `code` says which.
    """
    text = _read_owned(path)
    found = _PLAIN_PEM.fullmatch(text) if passphrase is None else None
    der = base64.b64decode(found[1]) if found is not None else b""
    seed = der[16:] if der.startswith(_PREFIX) else _read_any(path, text, passphrase)
    key = PrivateKey.from_seed(seed)
    if is_published_key(key):
        raise KeyFileError(
            f"key file {path}: this key is published as a test key, so anybody can sign with it",
            code="keyfile.published",
            hint="make a key of your own: ledger keys new",
            where=str(path),
        )
    return key


def create_ledger_keys(folder: Path, origin: str, *, passphrase: str | None = None) -> LedgerKeys:
    """Return new keys of `origin`, with `next` set; `folder` (`Places.key_folder`) appears whole or not at all.

    Raises:
        KeyFileError: the folder exists (`keyfile.exists`).
        StorageError: it cannot be written.
    """
    import shutil  # noqa: PLC0415  not needed to read a key

    make_folder(folder.parent, mode=0o700)
    unfinished = temporary_beside(folder)
    try:
        keys = LedgerKeys(
            issuer=create_key(unfinished / "issuer.pem", passphrase=passphrase),
            log=create_key(unfinished / "log.pem", passphrase=passphrase),
            next=LedgerKeys(
                issuer=create_key(unfinished / "next" / "issuer.pem", passphrase=passphrase),
                log=create_key(unfinished / "next" / "log.pem", passphrase=passphrase),
            ),
        )
        write_new(unfinished / "origin", origin.encode("utf-8") + b"\n")
        # The system refuses to put a folder in the place of one that holds something.
        unfinished.rename(folder)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise KeyFileError(
                f"key folder {folder}: exists already, and keys are never overwritten",
                code="keyfile.exists",
                hint="use the ledger that these keys belong to, or choose another origin",
                where=str(folder),
            ) from error
        raise storage_error(error, folder) from error
    finally:
        if unfinished.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
    fsync_folder(folder.parent)
    return keys


def read_ledger_keys(folder: Path, *, passphrase: str | None = None) -> LedgerKeys:
    """Return the keys in force in a key folder; the next ones are left alone.

    Raises:
        KeyFileError: as `read_key`; or one key in both files (`keyfile.same_key`).
    """
    issuer = read_key(folder / "issuer.pem", passphrase=passphrase)
    log = read_key(folder / "log.pem", passphrase=passphrase)
    if issuer.seed == log.seed:
        raise KeyFileError(
            f"key folder {folder}: the issuer key and the log key are the same key",
            code="keyfile.same_key",
            hint="make a second key: one seals receipts, the other signs heads",
            where=str(folder),
        )
    return LedgerKeys(issuer, log)


def read_next_keys(folder: Path, *, passphrase: str | None = None) -> LedgerKeys:
    """Return the successors in a key folder's `next`; raises as `read_ledger_keys`."""
    return read_ledger_keys(folder / "next", passphrase=passphrase)


def folder_holds_key(path: Path) -> Path | None:
    """Return a file of a ledger's folder that holds a private key, None where none was found.

    Looked at: `*.pem` and `*.key` in the folder and in its subfolders but those that a ledger itself makes. Such a file that
    cannot be read counts as a key.

    Raises:
        StorageError: the folder cannot be listed.
    """
    try:
        folders = [path] + [item for item in sorted(path.iterdir()) if item.is_dir() and item.name not in _OWN_FOLDERS]
        for folder in folders:
            for item in sorted(folder.iterdir()):
                if item.suffix.lower() in {".pem", ".key"} and item.is_file() and _holds_key(item):
                    return item
    except OSError as error:
        raise storage_error(error, path) from error
    return None


def _holds_key(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _ANY_KEY.search(file.read(1024 * 1024)) is not None
    except OSError:
        return True


def _read_owned(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise _refused(path, "no such file", "keyfile.absent", "the keys lie where `ledger init` was run") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            raise _refused(path, "is a symbolic link", "keyfile.link", "name the file itself") from error
        raise _refused(path, storage_error(error, path).args[0], "keyfile.unreadable", None) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "is not a regular file", "keyfile.not_a_file", None)
        mode = stat.S_IMODE(status.st_mode)
        if mode & ~0o600:
            raise _refused(
                path, f"mode is {mode:04o}, expected 0600", "keyfile.mode", f"run: chmod 600 {shlex.quote(str(path))}"
            )
        text = os.read(descriptor, _LIMIT_BYTES + 1)
    except OSError as error:
        raise _refused(path, storage_error(error, path).args[0], "keyfile.unreadable", None) from error
    finally:
        os.close(descriptor)
    if len(text) > _LIMIT_BYTES:
        raise _refused(path, f"is longer than {_LIMIT_BYTES} bytes", "keyfile.malformed", None)
    return text


def _refused(path: Path, what: str, code: str, hint: str | None) -> KeyFileError:
    return KeyFileError(f"key file {path}: {what}", code=code, hint=hint, where=str(path))


def _print_plain(key: PrivateKey) -> bytes:
    body = base64.b64encode(_PREFIX + key.seed)
    return b"-----BEGIN PRIVATE KEY-----\n" + body + b"\n-----END PRIVATE KEY-----\n"


def _print_encrypted(key: PrivateKey, passphrase: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  costs 70 ms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    return Ed25519PrivateKey.from_private_bytes(key.seed).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase),
    )


def _read_any(path: Path, text: bytes, passphrase: str | None) -> bytes:
    """Return the seed of a key in any form that `cryptography` reads."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  costs 70 ms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    secret = None if passphrase is None else _passphrase_bytes(passphrase)
    try:
        key = load_pem_private_key(text, secret)
    except TypeError as error:
        if secret is None:
            hint = "give the passphrase that the key was written with"
            raise _refused(path, "is under a passphrase", "keyfile.passphrase", hint) from error
        hint = "give no passphrase"
        raise _refused(path, "a passphrase was given, and the key has none", "keyfile.passphrase", hint) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        if secret is not None and b"ENCRYPTED" in text:
            hint = "give the passphrase that the key was written with"
            raise _refused(path, "does not open with this passphrase", "keyfile.passphrase", hint) from error
        hint = "a key file is PKCS#8 PEM with an Ed25519 key"
        raise _refused(path, "is not a private key in PEM", "keyfile.malformed", hint) from error
    if not isinstance(key, Ed25519PrivateKey):
        hint = "make a key of your own: ledger keys new"
        raise _refused(path, "holds a key of another algorithm, expected Ed25519", "keyfile.algorithm", hint)
    return key.private_bytes_raw()


def _passphrase_bytes(passphrase: str) -> bytes:
    if not passphrase:
        raise KeyFileError("passphrase: got an empty one, expected at least one character", code="keyfile.passphrase")
    return passphrase.encode("utf-8")
