"""What is kept of a verdict: the newest head that was verified, and heads that do not agree."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from cli.conflict import keep_conflict, keyring_of
from cli.options import Shared
from cli.trustfile import write_memory
from ledger.errors import LedgerError
from ledger.storage.journal import segment_path, segments
from ledger.storage.reader import Reader
from verify.options import Options
from verify.report import Verdict

__all__ = ["CONFLICTS", "keep", "remember"]

CONFLICTS: Final = frozenset({"head.forked", "head.unreconciled"})
"""Codes of heads that do not agree."""


def keep(verdict: Verdict, memory: bytes | None, folder: Path, options: Shared, asked: Options) -> tuple[str, ...]:
    """Return notes that say what was kept of heads that do not agree."""
    if all(check.code not in CONFLICTS for check in verdict.checks):
        return ()
    reader = Reader(folder)
    others = [note for note in (memory, *asked.heads) if note is not None]
    try:
        evidence = keyring_of(reader)
    except (LedgerError, OSError) as error:
        return (f"the heads that do not agree could not be kept: {error}",)
    return keep_conflict(verdict, others, evidence=evidence, reader=reader, options=options, file=options.equivocation)


def remember(verdict: Verdict, options: Shared, *, seen: bytes | None, folder: Path | None = None) -> Verdict:
    """Keep the head that the verdict says to remember; an unwritable folder is said, no more."""
    if verdict.remember is not None and verdict.head is not None:
        problem = None if folder is None else _make_durable(folder)
        if problem is None:
            problem = write_memory(options.places, verdict.head.origin, verdict.remember, seen=seen)
        if problem is not None:
            return replace(verdict, notes=(*verdict.notes, f"the head could not be remembered: {problem}"))
    return verdict


def _make_durable(folder: Path) -> str | None:
    """Return why the newest segment could not be made durable, None where it was, or where this disk cannot be written.

    The head to be remembered stands in it: a head that is remembered must not be lost by the ledger.
    """
    try:
        for path in (segment_path(folder, segments(folder)[-1]), folder / "journal"):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        return None if error.errno in {errno.EROFS, errno.EINVAL, errno.ENOTSUP} else str(error)
    return None
