"""Effects while runs go on: what is known of a key, from the few receipts that bear on it.

Source: docs/spec/rules/effects.md.
"""

from __future__ import annotations

from typing import Final

from ledger.errors import DamagedError
from ledger.members import Act
from ledger.receipt import Intent, Receipt, parse_receipt
from ledger.refusals import Blocked, Happened
from ledger.rules.effect import Admitted, Already, Held, Known, admit, binding_of
from ledger.rules.effect_replay import EffectReplay
from ledger.rules.instant import ms_of
from ledger.storage.journal import Stored
from ledger.storage.reader import Reader
from ledger.storage.rows import Place
from ledger.storage.state import State
from ledger.storage.topics import attempts_of, settles
from ledger.words import Reason

__all__ = ["admit_effect", "known_of", "read_place"]

_HOW: Final = "settle it with: ledger resolve"


def known_of(reader: Reader, state: State, key: str) -> Known | None:
    """Return what is known of an effect key, None for one that was never attempted. Called under the lock.

    Raises:
        DamagedError: a receipt that bears on it is not where the state says.
    """
    found: dict[int, tuple[Stored, Receipt]] = {}
    for place in state.about(attempts_of(key)):
        stored, receipt = read_place(reader, place)
        if not isinstance(receipt, Intent) or receipt.effect is None or receipt.effect.key != key:
            continue
        found[stored.entry.index] = stored, receipt
        for settling in state.about(settles(stored.entry.receipt)):
            stored_after, after = read_place(reader, settling)
            found[stored_after.entry.index] = stored_after, after
    replay = EffectReplay()
    for index in sorted(found):
        stored, receipt = found[index]
        replay.see(index, stored.entry.receipt, receipt, now_ms=ms_of(stored.entry.recorded_at))
    return replay.known(key)


def read_place(reader: Reader, place: Place) -> tuple[Stored, Receipt]:
    """Return the entry at a place, and its receipt.

    Raises:
        DamagedError: it is not there.
    """
    index, segment, offset = place
    stored = reader.line_at(segment, offset)
    if stored is None or stored.entry.index != index:
        raise DamagedError(f"entry {index}: not where it should be", hint="`ledger verify` says what is wrong")
    return stored, parse_receipt(stored.envelope.payload)


def admit_effect(known: Known | None, act: Act, act_digest: str, key: str, *, now_ms: int) -> Admitted | Blocked:
    """Return the attempt as which an act with an effect key runs, or why it does not."""
    match admit(known, act_digest=act_digest, binding=binding_of(act), now_ms=now_ms):
        case Already() as found:
            return Happened(
                f"effect {key!r}: it happened already, as attempt {found.known.attempt}",
                settled_by=found.known.settled_by,
                same_act=found.same_act,
            )
        case Held() as found:
            hint = f"{_HOW} {found.known.intent[7:19]}" if found.reason is Reason.EFFECT_AMBIGUOUS else None
            return Blocked(found.reason, f"effect {key!r}: {found.message}", hint=hint)
        case Admitted() as found:
            return found
