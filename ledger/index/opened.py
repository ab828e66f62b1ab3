"""`ledger.index.connect`: an index as a DuckDB connection, for programs."""

from __future__ import annotations

import os
from pathlib import Path

from ledger.errors import NotFoundError, StorageError
from ledger.index.beside import Beside, look_up
from ledger.index.session import Session, Source, lock, open_session
from ledger.index.stamp import journal_marks, locate, read_stamp
from ledger.storage.clock import now
from ledger.storage.places import Places
from ledger.storage.reader import Reader

__all__ = ["connect"]


def connect(
    folder: str | os.PathLike[str], *, places: Places | None = None, beside: bool = True, unsafe: bool = False
) -> Session:
    """Return a read-only DuckDB connection to the index of a ledger, with the tables of docs/reference/sql.md.

    The index is the one that `ledger index` or `ledger sql` made; nothing is verified here. What it stands for, and what came to the
    ledger since, is in `index_state`: `head_size` against `Ledger.head()`.

    Args:
        folder: the ledger's folder.
        places: the user's folders where they are not the usual ones.
        beside: look artifacts and counter-seals up now, which reads every artifact that is mentioned; else they are absent.
        unsafe: leave the connection open to files, network and settings.

    Raises:
        NotFoundError: no ledger, or no index that this machine made.
        StorageError: the journal is not the one that was verified, but for what was appended.
    """
    places = places or Places.default()
    path = Path(folder).resolve()
    origin = Reader(path).header().ledger
    index = locate(path, origin, places)
    stamp = read_stamp(index, places)
    if stamp is None or not stamp.is_for(index) or stamp.origin != origin:
        raise NotFoundError(
            f"index: {str(path)!r} has none that this machine made",
            code="index.absent",
            hint=f"make it with: ledger -L {path} index",
        )
    if not stamp.begins(journal_marks(path)):
        raise StorageError(
            f"index: the journal in {str(path)!r} is not the one that was verified",
            code="index.journal_changed",
            hint=f"verify it again with: ledger -L {path} index",
        )
    asked_at = now().replace("T", " ").removesuffix("Z")
    connection = open_session([Source(index, origin, path)], asked_at=asked_at, unsafe=True)
    if beside:
        look_up(connection, Beside({origin: path}))
    if not unsafe:
        lock(connection)
    return connection
