"""Cosignatures: dated lines of notaries on a checkpoint, judged by the cosigner keys that trust pins.

A line is chosen by (name, key id) and verified by the pinned key; lines of other keys are not looked at. Who cosigns a head says
that at that second no head it remembered contradicted it.

Source: docs/spec/notary.md, C2SP tlog-cosignature v1.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ledger.errors import LedgerError
from ledger.keys import parse_key_id
from ledger.note import COSIGNATURE, Note, NoteKey, check_note, cosignature_time
from verify.trust import Trust

__all__ = ["Cosigned", "Cosigners", "cosigners_of"]

_MAX_TIME: Final = 253_402_300_799
"""The last second of the year 9999."""


@dataclass(frozen=True, slots=True)
class Cosigned:
    """A verified cosignature: the notary's name and the time that it states, None where it states none that a calendar holds."""

    notary: str
    time: str | None


@dataclass(frozen=True, slots=True)
class Cosigners:
    """The verified cosignatures of pinned notaries on a note, and the names of those whose line does not verify."""

    good: tuple[Cosigned, ...]
    bad: tuple[str, ...]


def cosigners_of(note: Note, trust: Trust | None) -> Cosigners:
    """Return who of the pinned notaries cosigned a note."""
    good: list[Cosigned] = []
    bad: list[str] = []
    for pinned in () if trust is None else trust.notaries.values():
        if pinned.cosigner is None:
            continue
        key = NoteKey(pinned.name, COSIGNATURE, parse_key_id(pinned.cosigner))
        try:
            (line,) = check_note(note, (key,))
        except LedgerError as error:
            if error.code != "note.unsigned":
                bad.append(pinned.name)
            continue
        good.append(Cosigned(pinned.name, _print_time(cosignature_time(line))))
    return Cosigners(tuple(good), tuple(bad))


def _print_time(seconds: int) -> str | None:
    if not 0 < seconds <= _MAX_TIME:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
