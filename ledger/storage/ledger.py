"""`Ledger`: one ledger folder, to write to and to read from.

    ledger = Ledger.create("evidence")           keys, register and trust lie with the user, not in the folder
    with ledger.run("nightly", actor=Actor(agent="bot", user="ann", model="unknown")) as run:
        with run.call("refund", access="write", arguments={"amount": 500}, inline=("amount",)) as call:
            call.result = pay()
    ledger.head()                                 origin, size, root

Source: docs/spec/journal.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, Unpack

from pydantic import TypeAdapter, ValidationError

from ledger.bundle import Bundle
from ledger.checkpoint import Head
from ledger.digest import digest
from ledger.envelope import Envelope, parse_envelope, seal
from ledger.errors import KeyFileError, StorageError, clip
from ledger.keys import PrivateKey, next_digest
from ledger.members import Artifact, Continues, Issuer, Name, NextKeys, Origin, Producer
from ledger.receipt import Header, Receipt, Repair, print_receipt
from ledger.storage import evidence
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.clock import default_origin, nonce, now
from ledger.storage.durable import fsync_folder, make_folder, network_filesystem, storage_error
from ledger.storage.erasing import Erasing
from ledger.storage.journal import Rest, Stored, read_segment, segments
from ledger.storage.keyfile import LedgerKeys, create_ledger_keys, folder_holds_key, read_ledger_keys, read_next_keys
from ledger.storage.keyfolder import is_rotating, read_next_key, settle_keys
from ledger.storage.places import Places
from ledger.storage.reader import FORMAT, Reader
from ledger.storage.register import Register
from ledger.storage.rows import Keyring, RunState
from ledger.storage.writer import Builder, Position, Taker, View, Writer
from ledger.version import VERSION
from ledger.words import SEALED_KINDS, Reason

if TYPE_CHECKING:
    from ledger.canonical import JsonObject
    from ledger.rules.approval import Approver
    from ledger.run import Run
    from ledger.run_options import RunOptions

__all__ = ["Ledger", "Position"]

PRODUCER: Final = Producer(name="receipt-ledger", version=VERSION)


class Ledger:
    """One ledger folder. Threads may share it; processes open it each, or inherit it over a fork."""

    def __init__(self, folder: Path, header: Header, places: Places, passphrase: str | None = None) -> None:
        self.folder: Final = folder
        self.header: Final = header
        self.places: Final = places
        self.reader: Final = Reader(folder)
        self.artifacts: Final = ArtifactStore(folder)
        self.passphrase: Final = passphrase
        self._erasing = Erasing(self.artifacts)
        self._keys: LedgerKeys | None = None
        self._issuer_path = str(self.places.key_folder(header.ledger) / "issuer.pem")
        self._seen = (0, 0)
        self._settled = False
        """Whether this process has looked for a rotation that was interrupted."""
        self._writer: Writer | None = None

    # Making and opening.

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        origin: str | None = None,
        issuer: str | None = None,
        continues: Continues | None = None,
        places: Places | None = None,
        passphrase: str | None = None,
    ) -> Ledger:
        """Return a new ledger in a folder that is absent or empty.

        Keys are made for it in the user's data folder. `origin` is the ledger's name for ever, by default
        `ledger.invalid/` and 26 random characters; `issuer` is the name its owner signs under;
        `continues` is the head of the older ledger that it follows.

        Raises:
            StorageError: the folder is in use, read-only, or this machine remembers the origin.
        """
        path = Path(folder).absolute()
        places = places or Places.default()
        origin = origin or default_origin()
        # Names are checked before anything is made.
        _refuse_origin(origin)
        issuer_name = _issuer_name(issuer or f"owner@{origin}"[:256])
        _refuse_folder_in_use(path, folder)
        _refuse_known_origin(places, origin)
        existed, owns_keys = path.exists(), False
        try:
            make_folder(path)
            (path / "journal").mkdir()
            fsync_folder(path)
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            keys = create_ledger_keys(places.key_folder(origin), origin, passphrase=passphrase)
            owns_keys = True
            following = read_next_keys(places.key_folder(origin), passphrase=passphrase)
            header = Header(
                ledger=origin,
                issuer=Issuer(name=issuer_name, key=keys.issuer.key),
                issued_at=now(),
                nonce=nonce(),
                producer=PRODUCER,
                format=FORMAT,
                log_key=keys.log.key,
                next=NextKeys(issuer=next_digest(following.issuer.key), log=next_digest(following.log.key)),
                continues=continues,
            )
            ledger = cls(path, header, places, passphrase)
            ledger._keys = keys
            ledger.append(ledger.seal(header))
        except BaseException:
            # Keys and a folder that nothing was ever written under are of no use, and would stop the next attempt.
            if owns_keys:
                shutil.rmtree(places.key_folder(origin), ignore_errors=True)
                places.register_file(origin).unlink(missing_ok=True)
            for made in path.iterdir() if existed else (path,):
                shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
            raise
        return ledger

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], *, places: Places | None = None, passphrase: str | None = None
    ) -> Ledger:
        """Return the ledger in a folder; keys are read when something is first appended.

        Raises:
            NotFoundError: the folder holds no ledger.
            UnknownFormatError: a newer format.
            DamagedError: entry 0 is no header.
        """
        path = Path(folder).absolute()
        return cls(path, Reader(path).header(), places or Places.default(), passphrase)

    def close(self) -> None:
        """Release what is open; a closed ledger opens again when it is used."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading.

    @property
    def origin(self) -> str:
        """The ledger's name: the first line of its heads."""
        return self.header.ledger

    @property
    def issuer(self) -> Issuer:
        """The name and key that receipts of this machine are written under."""
        return Issuer(name=self.header.issuer.name, key=self._secret().issuer.key)

    def head(self) -> Head:
        """Return the newest head: origin, size, root."""
        return self.reader.head()

    def checkpoint(self) -> bytes:
        """Return the newest head as its signed note."""
        return self.reader.note()

    def get(self, receipt: str) -> Stored:
        """Return the entry and envelope of a receipt by its full id."""
        return self.reader.get(receipt)

    def find(self, short: str) -> list[str]:
        """Return the receipt ids that start with at least 8 hexadecimal digits."""
        return self.reader.find(short)

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[Stored]:
        """Yield committed entries from index `start` up to, not including, `stop`."""
        return self.reader.entries(start, stop)

    def evidence(self, receipt: str) -> Bundle:
        """Return everything needed to judge one receipt elsewhere."""
        return evidence.gather(self.reader, receipt)

    def journal(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield (name, first index, bytes) of each segment as it is now, for the verifier."""
        for first in segments(self.folder):
            yield f"journal/{first:016d}.jsonl", first, read_segment(self.folder, first)

    # Writing.

    def seal(self, receipt: Receipt) -> Envelope:
        """Return a receipt in an envelope, sealed by this ledger's issuer key."""
        return seal(print_receipt(receipt), self._secret().issuer)

    def envelope(self, receipt: Receipt) -> Envelope:
        """Return a receipt in an envelope: sealed if its kind always is, else bare."""
        return self.seal(receipt) if receipt.kind in SEALED_KINDS else Envelope(print_receipt(receipt))

    def append(self, envelope: Envelope | bytes) -> Position:
        """Append one receipt; return where it stands when it is durable.

        Raises:
            FormatError, SignatureError, AdmissionError, ConflictError: nothing was appended.
            RegisterError, DamagedError, StorageError: as `append_many`.
        """
        return self.append_many([envelope])[0]

    def append_many(self, envelopes: Sequence[Envelope | bytes]) -> list[Position]:
        """Append up to 8,192 receipts as one commit; return where each stands when all are durable.

        A receipt that is in the ledger under the same envelope keeps its place; its position says `already`.

        Raises:
            ConflictError: a known receipt id under another envelope; nothing was appended.
            RegisterError: the journal is not the newest that this machine wrote.
            DamagedError: the journal is damaged.
            StorageError: the disk refused; every acknowledged receipt is still there.
        """
        parsed = [parse_envelope(each) if isinstance(each, bytes) else each for each in envelopes]
        return self.commit(lambda _: parsed)

    def commit(self, build: Builder, take: Taker | None = None) -> list[Position]:
        """Append what `build` returns, called under the lock with the current state; staged artifacts go first.

        `take` is called under the same lock with where the receipts stand, once they are durable.
        """

        def flush_and_build(view: View) -> Sequence[Envelope]:
            if self._erasing.under_way():
                # What a crash left to be erased; a disk that refuses must not keep anything from being recorded.
                with contextlib.suppress(StorageError):
                    self._erasing.finish(self.reader.entries)
            built = build(view)
            self.artifacts.flush()
            return built

        return self._writing().commit(flush_and_build, take)

    def look(self, use: Callable[[View], None]) -> None:
        """Call `use` with the current state under the lock; nothing is appended."""
        self._writing().look(use)

    def open_runs(self) -> list[RunState]:
        """Return the runs that are not closed, oldest first."""
        found: list[RunState] = []
        self.look(lambda view: found.extend(view.state.open_runs()))
        return found

    # Runs: see ledger.run.

    def run(self, name: str, **options: Unpack[RunOptions]) -> Run:
        """Return a new run, whose opening is durable; `ledger.run_options.RunOptions` says what the options are."""
        from ledger.run import Run  # noqa: PLC0415  run composes storage, not the other way round

        return Run.start(self, name, **options)

    def attach(
        self, run: str, *, secrets: Mapping[str, str] | None = None, approvers: Mapping[str, Approver] | None = None
    ) -> Run:
        """Return a run that another process drives, to record calls in it; leaving it does not close it."""
        from ledger.run import Run  # noqa: PLC0415

        return Run.attach(self, run, secrets=secrets, approvers=approvers)

    def resume(
        self, run: str, *, secrets: Mapping[str, str] | None = None, approvers: Mapping[str, Approver] | None = None
    ) -> Run:
        """Return an open run whose driver is gone, to go on with it and close it."""
        from ledger.run import Run  # noqa: PLC0415

        return Run.resume(self, run, secrets=secrets, approvers=approvers)

    def close_run(self, run: str) -> Position:
        """Close an open run from its record; intents without outcome become `ambiguous`."""
        from ledger.run import close_run  # noqa: PLC0415

        return close_run(self, run)

    def resolve(
        self,
        reference: str,
        *,
        happened: bool,
        resolved_by: str,
        evidence: bytes | str | JsonObject | None = None,
        charges: Mapping[str, int | str] | None = None,
    ) -> Position:
        """Settle an ambiguous act, by effect key or by the receipt id of its intent; `ledger.resolving.resolve` says how."""
        from ledger.resolving import resolve  # noqa: PLC0415

        return resolve(self, reference, happened=happened, resolved_by=resolved_by, evidence=evidence, charges=charges)

    def artifact(self, reference: Artifact) -> bytes:
        """Return the content of an artifact, checked against its digest and size."""
        return self.artifacts.content(reference)

    def _secret(self) -> LedgerKeys:
        if self._keys is None or self._issuer_file() != self._seen:
            folder = self.places.key_folder(self.origin)
            if not folder.is_dir():
                raise KeyFileError(
                    f"keys: this user has none for {self.origin!r}",
                    code="keyfile.absent",
                    hint="only its owner appends to a ledger; reading and verifying need no key",
                )
            self._seen = self._issuer_file()
            self._keys = read_ledger_keys(folder, passphrase=self.passphrase)
            if not self._settled and is_rotating(folder):
                self.look(lambda _: None)  # under the lock the files are put in their places
        return self._keys

    def _issuer_file(self) -> tuple[int, int]:
        """Return what tells one file of the issuer key from another: another process may rotate it at any time."""
        try:
            status = os.stat(self._issuer_path)  # noqa: PTH116  at every receipt
        except OSError:
            return self._seen  # keys that were read once do for as long as they are in force
        return status.st_ino, status.st_mtime_ns

    def _in_force(self, keyring: Keyring) -> LedgerKeys:
        """Return this user's keys, which must be those in force; another process may have rotated them. Called under the lock."""
        held = self._secret()
        differ = (held.issuer.key, held.log.key) != (keyring.issuer_key, keyring.log_key)
        if not differ and self._settled:
            return held
        folder = self.places.key_folder(self.origin)
        if differ or is_rotating(folder):
            held = self._keys = settle_keys(
                folder,
                issuer=(keyring.issuer_key, keyring.next_issuer),
                log=(keyring.log_key, keyring.next_log),
                passphrase=self.passphrase,
            )
            self._seen = self._issuer_file()
        self._settled = True
        return held

    def _log_keys(self, before: Keyring, after: Keyring) -> tuple[PrivateKey, ...]:
        """Return the keys that sign the head of a commit: both where it rotates the log key."""
        keys: tuple[PrivateKey, ...]
        if not before.origin:
            keys = (self._secret().log,)
        elif after.log_key == before.log_key:
            return (self._in_force(before).log,)
        else:
            folder = self.places.key_folder(self.origin)
            keys = (self._in_force(before).log, read_next_key(folder, "log", passphrase=self.passphrase))
        if keys[-1].key != after.log_key:
            raise KeyFileError(
                "log key: the key at hand is not the one in force in this ledger",
                code="keyfile.refused",
                hint="look at: ledger keys show",
            )
        return keys

    def _writing(self) -> Writer:
        if self._writer is None:
            network = None if os.environ.get("LEDGER_NETWORK_FS") else network_filesystem(self.folder)
            if network is not None:
                raise StorageError(
                    f"ledger: {str(self.folder)!r} lies on a network file system ({network}), where locks may not hold",
                    code="storage.network",
                    hint="move it to a local disk, or set LEDGER_NETWORK_FS=1 if locks hold there",
                )
            held = folder_holds_key(self.folder)
            if held is not None:
                raise KeyFileError(
                    f"ledger: its folder holds a private key: {str(held)!r}",
                    code="keyfile.in_ledger",
                    hint="move it away and rotate it: whoever gets a copy of the ledger gets the key",
                )
            self._secret()
        if self._writer is None:
            register = Register(self.places.register_file(self.origin))
            self._writer = Writer(
                self.folder, log_keys=self._log_keys, register=register, seal_repair=self._seal_repair
            )
        return self._writer

    def _seal_repair(self, rest: Rest) -> Envelope:
        return self.seal(
            Repair(
                ledger=self.origin,
                issuer=self.issuer,
                issued_at=now(),
                nonce=nonce(),
                producer=PRODUCER,
                reason=Reason.TORN_TAIL,
                segment=rest.segment,
                offset_bytes=rest.offset,
                cut_bytes=len(rest.data),
                cut_digest=digest(rest.data),
            )
        )


def _refuse_folder_in_use(path: Path, name: str | os.PathLike[str]) -> None:
    try:
        used = path.exists() and (not path.is_dir() or any(path.iterdir()))
    except OSError as error:
        raise storage_error(error, path) from error
    if used:
        raise StorageError(
            f"ledger: {str(name)!r} is not an empty folder", code="storage.in_use", hint="name a new folder"
        )


def _refuse_known_origin(places: Places, origin: str) -> None:
    for known in (places.register_file(origin), places.memory_file(origin)):
        try:
            remembered = known.exists()
        except OSError as error:
            raise storage_error(error, known) from error
        if remembered:
            raise StorageError(
                f"ledger: this machine remembers the origin {origin!r} already",
                code="storage.origin_known",
                hint="an origin names one ledger for ever: choose another",
            )


def _issuer_name(name: str) -> str:
    try:
        return TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise StorageError(
            f"issuer: got {clip(name)}, expected 1 to 256 characters and no control character among them",
            code="issuer.malformed",
        ) from error


def _refuse_origin(origin: str) -> None:
    try:
        TypeAdapter(Origin).validate_python(origin)
    except ValidationError as error:
        raise StorageError(
            f"origin: got {origin!r}, expected 1 to 255 characters of a URL, without '+', '?' and '#'",
            code="origin.malformed",
            hint="for example: example.org/ledger/prod-7",
        ) from error
