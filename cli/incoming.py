"""What `ledger import` is given: files, folders and standard input, read whole, told apart and judged by their own rules."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from ledger.digest import digest
from ledger.errors import NotFoundError, clip
from verify.foreign import Judgement, Native, Recognised, format_of, recognise, verdict_of
from verify.foreign.axlr.stream import is_event
from verify.foreign.runx.store import INDEX, INDEX_OF_012, store_name
from verify.foreign.strict import ReadError, read_object
from verify.options import Options
from verify.report import Verdict
from verify.trust import Trust

__all__ = [
    "Incoming",
    "is_receipt_store",
    "judge_incoming",
    "judge_receipt_store",
    "read_live",
    "read_receipt_store",
    "read_targets",
]

_MARK: Final = b'"runx.receipt.v1"'
_SMALL_BYTES: Final = 1 << 20
_LOOKED_AT: Final = 16
"""Files of a folder that are looked into where their names say nothing."""
_SQLITE: Final = b"SQLite format 3\0"
_MEDIA_TYPES: Final = {b"{": "application/json", b"[": "application/json"}
_LINES: Final = frozenset({"stream", "journal", "receipts", "rows", "events"})
"""Kinds that are several documents, one a line."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A document as it came: what the person called it, its bytes, what it is, and its native verdict once it is judged."""

    name: str
    data: bytes
    found: Recognised
    native: Native | None = None
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of its bytes."""
        return digest(self.data)

    @property
    def media_type(self) -> str:
        """What its bytes are."""
        if self.found.kind in _LINES:
            return "application/jsonl"
        return _MEDIA_TYPES.get(self.data.lstrip()[:1], "application/octet-stream")


def read_targets(targets: list[str], format_: str | None, *, quiet: bool) -> list[Incoming]:
    """Return the documents that some targets name, in their order.

    Raises:
        NotFoundError: there is no such file, or it is nothing of a format that is known, or of the one that was asked for.
    """
    found: list[Incoming] = []
    for target in targets:
        if target == "-":
            data = read_live(sys.stdin.buffer, None if quiet else sys.stdout.buffer)
            found.append(_told(data, "standard input", format_))
            continue
        path = Path(target)
        if path.is_dir():
            if not is_receipt_store(path):
                raise NotFoundError(f"{clip(target)}: a folder that is no receipt store of runx", code="import.unknown")
            found += list(_from_store(path))
            continue
        if not path.exists():
            raise NotFoundError(f"{clip(target)}: no such file", code="import.absent")
        found.append(_told(_bytes_of(path), path.name, format_))
    return found


def _bytes_of(path: Path) -> bytes:
    """Return the bytes of a file; of a database with the commits that wait beside it."""
    with path.open("rb") as file:
        start = file.read(len(_SQLITE))
        if start != _SQLITE or not path.is_file():
            return start + file.read()
    from ledger.foreign.ctrlrun_store import read_bytes  # noqa: PLC0415  few documents are databases

    return read_bytes(path)


def _from_store(path: Path) -> Iterator[Incoming]:
    """Yield what lies in a receipt store: each file that is named as a receipt, readable or not, and what else is of runx."""
    for name, data in read_receipt_store(path).items():
        found = format_of("runx").recognise(data)
        if found is None and store_name(name) is not None:
            found = Recognised("runx", "receipt", "unknown")  # one bad file hides no other
        if found is not None and name not in (INDEX, INDEX_OF_012):
            yield Incoming(name, data, found)


def _told(data: bytes, name: str, format_: str | None) -> Incoming:
    found = recognise(data) if format_ is None else format_of(format_).recognise(data)
    if found is None:
        expected = "a document of a system that is known" if format_ is None else f"a document of {format_}"
        raise NotFoundError(
            f"{clip(name)}: got nothing that can be recognised, expected {expected}", code="import.unknown"
        )
    return Incoming(name, data, found)


def judge_incoming(documents: list[Incoming], trust: Trust | None, options: Options) -> list[Incoming]:
    """Return the documents with their native verdicts, those of runx judged together where several came."""
    judged: list[Incoming] = []
    for each in documents:
        judgement: Judgement = format_of(each.found.format).judge(each.data, each.found, trust=trust, options=options)
        judged.append(replace(each, native=judgement.native, notes=judgement.notes))
    receipts = {str(place): each.data for place, each in enumerate(judged) if each.found.kind == "receipt"}
    if len(receipts) < 2:
        return judged
    from verify.foreign.runx.judging import judge_together  # noqa: PLC0415  few imports are of several receipts

    for place, code in judge_together(receipts).items():
        native = judged[int(place)].native
        if native is not None:
            judged[int(place)] = replace(judged[int(place)], native=replace(native, status="fails", code=code))
    return judged


def is_receipt_store(path: Path) -> bool:
    """Return whether a folder shows itself to be a receipt store of runx, or to hold receipts of it under other names."""
    files = sorted(each for each in path.iterdir() if each.is_file())
    if any(store_name(each.name) is not None or each.name == INDEX_OF_012 for each in files):
        return True
    documents = [each for each in files if each.suffix == ".json" and each.stat().st_size <= _SMALL_BYTES]
    return any(_MARK in each.read_bytes() for each in documents[:_LOOKED_AT])


def read_receipt_store(path: Path) -> dict[str, bytes]:
    """Return the files of a receipt store that hold receipts, or say which it holds, by name."""
    names = sorted(each.name for each in path.iterdir() if each.is_file())
    return {name: (path / name).read_bytes() for name in names if name.endswith(".json") or name == INDEX_OF_012}


def judge_receipt_store(path: Path, subject: str, trust: Trust | None, asked: Options) -> Verdict | None:
    """Return the verdict on a folder, None where it is no receipt store of runx."""
    if not is_receipt_store(path):
        return None
    from verify.foreign.runx.judging import judge_folder  # noqa: PLC0415  few folders are stores

    return verdict_of(judge_folder(read_receipt_store(path), trust), subject=subject, trust=trust, options=asked)


def read_live(stream: BinaryIO, out: BinaryIO | None) -> bytes:
    """Return everything that a stream brings; lines of a run that goes on are passed to `out` as they come.

    An interrupt from the terminal reaches whoever writes the stream as well, and what that has left to say is still read.
    """
    parts: list[bytes] = []
    with _interrupts_left_to_the_writer():
        while line := stream.readline():
            if not parts and (out is None or not _is_live(line)):
                out = None
            parts.append(line)
            out = _passed(line, out)
    return b"".join(parts)


def _passed(line: bytes, out: BinaryIO | None) -> BinaryIO | None:
    if out is None:
        return None
    try:
        out.write(line)
        out.flush()
    except BrokenPipeError:
        return None  # nobody reads any more; what comes is recorded all the same
    return out


def _is_live(line: bytes) -> bool:
    try:
        return is_event(read_object(line))
    except ReadError:
        return False


@contextmanager
def _interrupts_left_to_the_writer() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
