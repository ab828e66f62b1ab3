"""Cosignatures: dated lines of notaries on a checkpoint, judged by the cosigner keys that trust pins.

A line is chosen by (name, key id) and verified by the pinned key; lines of other keys are not looked at. Who cosigns a head says
that at that second no head it remembered contradicted it.

Source: docs/spec/notary.md, C2SP tlog-cosignature v1.0.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.errors import LedgerError
from ledger.keys import parse_key_id
from ledger.note import COSIGNATURE, Note, NoteKey, check_note, cosignature_time
from ledger.rules import instant
from verify.trust import Trust

__all__ = ["Cosigned", "Cosigners", "cosigners_of"]


_EPOCH = "1970-01-01T00:00:00.000Z"
_MAX_SECONDS = 253_402_300_799
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
        seconds = cosignature_time(line)
        good.append(
            Cosigned(pinned.name, instant.time_after(_EPOCH, seconds * 1000) if 0 < seconds <= _MAX_SECONDS else None)
        )
    return Cosigners(tuple(good), tuple(bad))
