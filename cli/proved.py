"""Bundles for the rows of an answer: one for each receipt that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cli.refs import whole_run
from cli.text import escape, say
from ledger.bundle import print_bundle
from ledger.digest import is_digest
from ledger.errors import LedgerError, NotFoundError, clip
from ledger.index.asking import Answer, QueryError
from ledger.storage.durable import replace
from ledger.storage.evidence import gather
from ledger.storage.reader import Reader

__all__ = ["prove_rows"]

_MAX_PROOFS: Final = 1_000


def prove_rows(answer: Answer, folders: Mapping[str, Path], into: Path) -> tuple[Answer, list[str]]:
    """Return the answer and the files of the bundles that were written for its rows, one for each receipt.

    Raises:
        QueryError: no column `receipt`, or more than 1,000 receipts.
    """
    if "receipt" not in answer.columns:
        raise QueryError("prove: the rows have no column `receipt`", code="sql.nothing_to_prove")
    at = answer.columns.index("receipt")
    ledger = answer.columns.index("ledger") if "ledger" in answer.columns else None
    rows = list(answer.rows)
    wanted = dict.fromkeys((row[at], None if ledger is None else row[ledger]) for row in rows if row[at] is not None)
    if len(wanted) > _MAX_PROOFS:
        raise QueryError(f"prove: got {len(wanted):,} receipts, expected at most {_MAX_PROOFS:,}", code="sql.too_many")
    into.mkdir(parents=True, exist_ok=True)
    files = []
    readers = {origin: Reader(folder) for origin, folder in folders.items()}
    for receipt, origin in wanted:
        if not isinstance(receipt, str) or not is_digest(receipt):
            raise QueryError(f"prove: {clip(receipt)} is no receipt id", code="sql.nothing_to_prove")
        bundle = _bundle([readers[origin]] if origin in readers else list(readers.values()), receipt)
        file = into / f"{receipt[7:]}.bundle.json"
        replace(file, bundle, durable=False)
        files.append(str(file))
    say(f"wrote {len(files):,} bundles into {escape(str(into))}; each verifies alone: ledger verify FILE")
    return Answer(answer.columns, answer.types, iter(rows)), files


def _bundle(readers: Sequence[Reader], receipt: str) -> bytes:
    missing: LedgerError | None = None
    for reader in readers:
        try:
            return print_bundle(gather(reader, whole_run(reader, receipt)))
        except NotFoundError as error:
            missing = error
    assert missing is not None  # noqa: S101  there is a reader
    raise missing
