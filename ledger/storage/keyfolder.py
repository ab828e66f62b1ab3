"""The key folder over rotations: which file holds the key in force is settled by the journal, never by the files.

    issuer.pem  log.pem              in force
    next/issuer.pem  log.pem         committed; may be kept elsewhere
    next/issuer.after.pem  ...       made for a rotation that is under way, committed by it
    retired-issuer-0.pem  ...        in force once
    rotating                         which rotation is under way, or was when its process ended: role, commitment that it makes

A rotation writes every key that it needs before its receipt is appended. The receipt decides: before it nothing moved, after it
the files can be put in their places by whoever comes next, as often as needed. `settle_keys` does that, under the ledger's lock.
A rotation that this folder did not begin is not followed, even where the key in force is here: somebody else has the key after it.

Source: docs/spec/keys.md, "Key files".
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ledger.errors import KeyFileError
from ledger.keys import PrivateKey, next_digest
from ledger.storage.durable import fsync_folder, replace, storage_error, write_new
from ledger.storage.keyfile import LedgerKeys, create_key, read_key, read_ledger_keys, write_key

__all__ = ["begin_rotation", "cancel_rotation", "is_rotating", "read_next_key", "retired_files", "settle_keys"]

_MARK: Final = "rotating"
_MAX_RETIRED: Final = 10_000


def is_rotating(folder: Path) -> bool:
    """Return whether a rotation is under way or was interrupted, so that the files are to be settled."""
    return (folder / _MARK).exists()


def read_next_key(folder: Path, role: str, *, passphrase: str | None = None) -> PrivateKey:
    """Return the committed key of a role from `next`; raises as `read_key`."""
    return read_key(folder / "next" / f"{role}.pem", passphrase=passphrase)


def retired_files(folder: Path, role: str) -> list[Path]:
    """Return the files of a role's retired keys, the oldest first."""
    numbers = sorted(
        int(digits)
        for path in folder.glob(f"retired-{role}-*.pem")
        if (digits := path.stem.removeprefix(f"retired-{role}-")).isdecimal()
    )
    return [folder / f"retired-{role}-{number}.pem" for number in numbers]


def begin_rotation(
    folder: Path, role: str, following: PrivateKey, *, after: Path | None = None, passphrase: str | None = None
) -> tuple[PrivateKey, Path]:
    """Put `following`, the committed key, and a new key after it where a rotation needs them; all of it durable.

    Returns:
        The key after the next one and where it lies once the rotation is done: in `next`, or the file `after`.

    Raises:
        KeyFileError, StorageError: nothing is rotated; what was made is used by the next attempt.
    """
    place = folder / "next" / f"{role}.pem"
    if place.exists():
        if read_key(place, passphrase=passphrase).seed != following.seed:
            raise KeyFileError(
                f"key file {place}: is not the key given with --next, which was committed",
                code="keyfile.not_committed",
                hint="move it away",
                where=str(place),
            )
    else:
        write_key(place, following, passphrase=passphrase)
    made = after if after is not None else _after(folder, role)
    if after is None and made.exists():
        key = read_key(made, passphrase=passphrase)
    else:
        key = create_key(made, passphrase=passphrase)
    replace(folder / _MARK, _print_mark(role, next_digest(key.key)), mode=0o600, durable=True)
    return key, after or place


def cancel_rotation(folder: Path, role: str, *, brought: bool) -> None:
    """Take back `begin_rotation` after the ledger refused the receipt; `brought` where the next key was not in the folder before."""
    try:
        if brought:
            (folder / "next" / f"{role}.pem").unlink(missing_ok=True)
        _after(folder, role).unlink(missing_ok=True)
        (folder / _MARK).unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error


def settle_keys(
    folder: Path,
    *,
    issuer: tuple[str, str | None],
    log: tuple[str, str | None],
    passphrase: str | None = None,
) -> LedgerKeys:
    """Return the keys in force, each in its file; what an interrupted rotation left is finished.

    Args:
        folder: the key folder.
        issuer: key id in force and the commitment to the next one, None where nothing is committed.
        log: the same for the log key.
        passphrase: of all files.

    Raises:
        KeyFileError: a key in force is in none of the files, or was put in force from elsewhere (`keyfile.not_in_force`).
    """
    begun = _read_mark(folder)
    done = False
    for role, (in_force, committed) in (("issuer", issuer), ("log", log)):
        own = committed is not None and begun == _print_mark(role, committed)
        _settle(folder, role, in_force, committed, own=own, passphrase=passphrase)
        done = done or own
    # A mark of a rotation that is not in the journal stays: its process may be about to append it.
    if done:
        try:
            (folder / _MARK).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, folder) from error
    return read_ledger_keys(folder, passphrase=passphrase)


def _settle(
    folder: Path, role: str, in_force: str, committed: str | None, *, own: bool, passphrase: str | None
) -> None:
    current, following, after = folder / f"{role}.pem", folder / "next" / f"{role}.pem", _after(folder, role)
    if not current.exists() or read_key(current, passphrase=passphrase).key != in_force:
        if not own or not following.exists() or read_key(following, passphrase=passphrase).key != in_force:
            raise KeyFileError(
                f"keys: the {role} key in force, {in_force}, was not put in force from {folder}",
                code="keyfile.not_in_force",
                hint="bring the key folder that rotated it; if nobody of yours did, somebody else holds the next keys",
                where=str(current),
            )
        if current.exists():
            _retire(folder, role, current.read_bytes())
        _move(following, current)
    if after.exists() and committed == next_digest(read_key(after, passphrase=passphrase).key):
        _move(after, following)


def _retire(folder: Path, role: str, text: bytes) -> None:
    """Keep a copy of the key that is about to be replaced, once."""
    for number in range(_MAX_RETIRED):
        path = folder / f"retired-{role}-{number}.pem"
        if not path.exists():
            write_new(path, text, mode=0o600)
            return
        if path.read_bytes() == text:
            return
    raise KeyFileError(f"key folder {folder}: {_MAX_RETIRED} retired keys", hint="move some of them away")


def _move(source: Path, target: Path) -> None:
    try:
        source.replace(target)
    except OSError as error:
        raise storage_error(error, target) from error
    fsync_folder(target.parent)
    if source.parent != target.parent:
        fsync_folder(source.parent)


def _print_mark(role: str, commitment: str) -> bytes:
    return f"{role} {commitment}\n".encode("ascii")


def _read_mark(folder: Path) -> bytes:
    try:
        return (folder / _MARK).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise storage_error(error, folder / _MARK) from error


def _after(folder: Path, role: str) -> Path:
    return folder / "next" / f"{role}.after.pem"
