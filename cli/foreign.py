"""Documents and stores of other systems at the command line: what is no single run of bytes is opened here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from cli.judge import FILE_MAX_BYTES, judge_file
from cli.options import Shared
from cli.trustfile import read_trust
from ledger.errors import LedgerError, StorageError
from verify.options import Options
from verify.pins import trust_used
from verify.report import Coverage, Report, Verdict

__all__ = ["judge_path", "judge_store_file", "judge_stream"]

_SQLITE: Final = b"SQLite format 3\0"
_COLUMNS: Final = frozenset({"receipt_id", "json"})
"""Columns that receipts of ctrlrun have in every release."""
_LOOK_BYTES: Final = 1 << 20
_MAX_BYTES: Final = 4 << 30
"""A larger file is not read into memory."""
_ATTEMPTS: Final = 3


def judge_path(path: Path, subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a file, of ours or of another system, or on a store that lies in one."""
    with path.open("rb") as file:
        start = file.read(len(_SQLITE))
        if start == _SQLITE and path.is_file():
            return judge_store_file(path, subject, options, asked)
        return judge_file(_rest(start, file), subject, options, asked)


def judge_stream(file: IO[bytes], subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on what comes in, as on a file."""
    data = _rest(b"", file)
    if not data.startswith(_SQLITE):
        return judge_file(data, subject, options, asked)
    from tempfile import TemporaryDirectory  # noqa: PLC0415  few targets need it

    with TemporaryDirectory(prefix="receipt-ledger-") as folder:
        path = Path(folder) / "state.db"
        path.write_bytes(data)
        return judge_store_file(path, subject, options, asked)


def _rest(start: bytes, file: IO[bytes]) -> bytes:
    """Return a whole file that begins with `start`; of one that is too large for us and nothing foreign, enough to say so."""
    data = start + file.read(FILE_MAX_BYTES + 1 - len(start))
    if len(data) > FILE_MAX_BYTES:
        from verify.foreign import recognise  # noqa: PLC0415  what it loads would cost every file of ours

        if data.startswith(_SQLITE) or recognise(data) is not None:
            data += file.read(_MAX_BYTES - len(data))
    return data


def judge_store_file(path: Path, subject: str, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a SQLite file: a store of ctrlrun, or nothing that is known.

    Raises:
        StorageError: it changes while it is read, however often it is read again.
    """
    from ledger.foreign.ctrlrun_store import open_store  # noqa: PLC0415  what it loads would cost every other file
    from verify.foreign import verdict_of  # noqa: PLC0415  the same
    from verify.foreign.ctrlrun.store import judge_store  # noqa: PLC0415  the same

    trust = read_trust(options)
    folder, kept = _received(options)
    for attempt in range(_ATTEMPTS):
        try:
            with open_store(path) as store:
                if not store.columns >= _COLUMNS:
                    return _unusable(path, subject, store.faults, options, asked)
                judgement = judge_store(store, received=kept)
            if kept:
                notes = (
                    *judgement.notes,
                    f"compared with {len(kept):,} receipts that {folder} received as they happened",
                )
                judgement = replace(judgement, notes=notes)
            return verdict_of(judgement, subject=subject, trust=trust, options=asked)
        except StorageError as error:
            if error.code == "foreign.unreadable":
                return _unusable(path, subject, [str(error)], options, asked)
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _unusable(path: Path, subject: str, faults: list[str], options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a file without the table of receipts: damaged, where it shows that it had one, else nothing known."""
    from verify.foreign import recognise  # noqa: PLC0415  few files are asked

    with path.open("rb") as file:
        damaged = bool(faults) and recognise(file.read(_LOOK_BYTES)) is not None
    message = faults[0] if faults else "a database without receipts of ctrlrun"
    return _found(subject, "foreign.unreadable" if damaged else "subject.unknown", message, options, asked)


def _received(options: Shared) -> tuple[Path | None, list[bytes]]:
    """Return the ledger that is named or near, and the receipts of ctrlrun that it received as they happened."""
    try:
        folder = options.folder()
        from ledger.live.ctrlrun import received  # noqa: PLC0415  what it loads would cost every other file
        from ledger.storage.reader import Reader  # noqa: PLC0415  the same

        return folder, [data for data, _ in received(Reader(folder))]
    except LedgerError:
        if options.ledger is not None:
            raise
        return None, []  # none is near, or what is near is none: there is nothing to compare with


def _found(subject: str, code: str, message: str, options: Shared, asked: Options) -> Verdict:
    report = Report()
    report.find("subject", code, message=message)
    trust = trust_used(read_trust(options))
    return Verdict(subject, report.checks(), Coverage(0, 0, 0), None, trust, accepted=asked.accept)
