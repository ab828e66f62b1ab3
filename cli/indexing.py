"""The index of a ledger brought up to date before it is asked.

What is current is known from a few numbers, so a question to it loads neither verifier nor loader.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cli.indexed import ChangedError, Indexed, note_digest, trust_digest
from cli.options import Shared
from cli.trustfile import read_memory, read_trust
from ledger.errors import LedgerError, NotFoundError, StorageError, clip
from ledger.index.session import Session, Source
from ledger.index.stamp import building, journal_marks, locate, read_stamp
from ledger.storage.reader import Reader
from verify.errors import TrustError
from verify.trust import Trust

__all__ = ["bring_up_to_date", "opened"]

_ATTEMPTS: Final = 3


def bring_up_to_date(folder: Path, options: Shared, *, jobs: int | None = None, rebuild: bool = False) -> Indexed:
    """Return the index of a ledger, which stands for the newest head in the folder.

    Raises:
        NotFoundError: the folder holds no ledger.
        DamagedError: its first entry is no header, so that nothing can be said of it.
        InterruptedWorkError: the user ended it.
        StorageError: the index cannot be written.
    """
    folder = folder.resolve()
    origin = _origin(folder)
    source = Source(locate(folder, origin, options.places), origin, folder)
    _refuse_trust_from_data(options, folder)
    trust = read_trust(options)
    if not rebuild and _is_current(source, options, trust):
        return Indexed(source, "nothing")
    with building(source.path, options.places):
        if not rebuild and _is_current(source, options, trust):
            return Indexed(source, "nothing")
        from cli.refreshing import refresh  # noqa: PLC0415  the verifier costs more than most questions

        for _ in range(_ATTEMPTS):
            try:
                return refresh(source, options, trust, jobs=jobs, rebuild=rebuild)
            except ChangedError:
                continue
            except StorageError as error:
                if error.code != "index.failed" or rebuild:
                    raise
                rebuild = True  # what is there may be what cannot be gone on from
    raise StorageError(f"index: {str(folder)!r} changed while it was read", code="index.journal_changed")


def opened(
    made: Sequence[Indexed], options: Shared, open_: Callable[[list[Source]], Session], *, jobs: int | None = None
) -> tuple[list[Indexed], Session]:
    """Return indices that are up to date with a session over them, as `open_` gives it; they are made anew if one cannot be read.

    Raises:
        StorageError: the index cannot be written, or its files do not belong together.
    """
    try:
        return list(made), open_([each.source for each in made])
    except StorageError as error:
        if error.code != "index.unreadable":
            raise
    again = [bring_up_to_date(each.source.folder, options, jobs=jobs, rebuild=True) for each in made]
    return again, open_([each.source for each in again])


def _is_current(source: Source, options: Shared, trust: Trust | None) -> bool:
    """Return whether an index was made from the journal as it is, under this trust and memory."""
    memory, stamp = read_memory(options.places, source.ledger), read_stamp(source.path, options.places)
    return (
        stamp is not None
        and stamp.is_for(source.path)
        and stamp.origin == source.ledger
        and stamp.trust == trust_digest(trust)
        and stamp.memory == note_digest(memory)
        and stamp.segments == journal_marks(source.folder)
    )


def _refuse_trust_from_data(options: Shared, folder: Path) -> None:
    """Raise where the trust file lies in the ledger that is to be judged by it: nothing in a ledger can vouch for it."""
    path = (options.trust or options.places.trust_file).resolve()
    if path.is_relative_to(folder):
        raise TrustError(
            f"trust: {clip(str(path))} lies in the ledger that it would vouch for",
            code="trust.from_data",
            hint="keep whom you trust apart from the evidence",
        )


def _origin(folder: Path) -> str:
    """Return the origin that a ledger's newest head names, else its header: good enough to find an index by."""
    reader = Reader(folder)
    try:
        return reader.head().origin
    except NotFoundError:
        raise
    except LedgerError:
        return reader.header().ledger
