"""Effects: what an act does in the world happens once, however often it is proposed.

                       NotExecuted
          +------------------------------ failed <--------+
          v                                               | did not happen
    (new) --admit--> in_progress --lease runs out--> ambiguous --happened--> committed
                          |------anything else---------->                       ^
                          +------returns----------------------------------------+

- A committed effect never runs again: its recorded result comes back.
- Only proof that nothing was done makes an effect `failed`, and only a failed one is attempted again, under the next number.
- An ambiguous effect is settled by a resolution and by nothing else.
- A lease that runs out makes an effect ambiguous; it never gives the key back.

Source: docs/spec/rules/effects.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Final, Literal

from ledger import canonical
from ledger.errors import clip
from ledger.members import Act
from ledger.rules.errors import TemplateError
from ledger.words import OutcomeStatus, Reason

__all__ = [
    "DEFAULT_LEASE_MS",
    "PROOFS_OF_NOTHING",
    "Admitted",
    "Already",
    "EffectState",
    "Held",
    "Known",
    "admit",
    "begin",
    "binding_of",
    "finish",
    "idempotency_token",
    "resolve",
    "state_at",
]

DEFAULT_LEASE_MS: Final = 300_000
PROOFS_OF_NOTHING: Final = frozenset({Reason.NOT_EXECUTED, Reason.COMMAND_NOT_FOUND, Reason.COMMAND_NOT_EXECUTABLE})
"""Reasons of an outcome that prove that nothing was done."""
_OF_CTRLRUN: Final = "ctrlrun.idempotency/v1"


class EffectState(StrEnum):
    """Where an effect stands."""

    IN_PROGRESS = "in_progress"
    COMMITTED = "committed"
    FAILED = "failed"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one effect key: its newest attempt."""

    state: EffectState
    attempt: int
    intent: str
    """Receipt id of the attempt's intent."""
    act_digest: str
    binding: str
    """What carried it out; see `binding_of`."""
    lease_until_ms: int | None = None
    """UTC milliseconds after which nobody may assume that it still runs."""
    settled_by: str | None = None
    """Receipt id of the outcome or resolution that settled it."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The act runs, as this attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Already:
    """The effect happened: nothing runs, nothing is charged, and the recorded result comes back."""

    known: Known
    same_act: bool
    """Whether the act that is proposed now is the one that ran."""


@dataclass(frozen=True, slots=True)
class Held:
    """The act does not run now."""

    reason: Reason
    known: Known
    message: str


def admit(known: Known | None, *, act_digest: str, binding: str, now_ms: int) -> Admitted | Already | Held:
    """Return whether an act with this effect key runs, given what is known of the key.

    Args:
        known: The newest attempt under this key in this ledger, None for none.
        act_digest: The digest of the act that is proposed.
        binding: What would carry it out; a recorded result of something else is not handed out.
        now_ms: UTC milliseconds.
    """
    if known is None:
        return Admitted(1)
    match state_at(known, now_ms):
        case EffectState.FAILED:
            return Admitted(known.attempt + 1)
        case EffectState.COMMITTED:
            if known.binding != binding:
                return Held(Reason.EFFECT_COMMITTED, known, "it happened, by another tool than the one proposed now")
            return Already(known, known.act_digest == act_digest)
        case EffectState.AMBIGUOUS:
            return Held(Reason.EFFECT_AMBIGUOUS, known, "nobody knows whether it happened; resolve it first")
        case EffectState.IN_PROGRESS:
            other = "" if known.act_digest == act_digest else "another act under this key is "
            return Held(Reason.EFFECT_IN_PROGRESS, known, f"{other}in progress")


def state_at(known: Known, now_ms: int) -> EffectState:
    """Return the state of an effect at a time: one in progress whose lease has run out is ambiguous."""
    expired = known.lease_until_ms is not None and now_ms >= known.lease_until_ms
    return EffectState.AMBIGUOUS if known.state is EffectState.IN_PROGRESS and expired else known.state


def begin(
    *, attempt: int, intent: str, act_digest: str, binding: str, now_ms: int, lease_ms: int | None = DEFAULT_LEASE_MS
) -> Known:
    """Return what is known of an effect once the intent of an attempt is recorded."""
    until = None if lease_ms is None else now_ms + lease_ms
    return Known(EffectState.IN_PROGRESS, attempt, intent, act_digest, binding, until)


def finish(known: Known, status: OutcomeStatus, *, intent: str, outcome: str) -> Known:
    """Return what is known once the outcome of an intent is recorded.

    One that comes after the lease says how it really ended and counts. One that comes after a resolution, or after a later
    attempt began, changes nothing here; where it says something else, the replay finds it.
    """
    if known.intent != intent or known.settled_by is not None:
        return known
    return replace(known, state=EffectState(status.value), settled_by=outcome)


def resolve(
    known: Known, happened: Literal["happened", "did_not_happen"], *, resolution: str, now_ms: int
) -> Known | None:
    """Return what is known once a resolution is recorded, None if it does not settle anything: the effect is not ambiguous."""
    if state_at(known, now_ms) is not EffectState.AMBIGUOUS:
        return None
    state = EffectState.COMMITTED if happened == "happened" else EffectState.FAILED
    return replace(known, state=state, settled_by=resolution)


def binding_of(act: Act) -> str:
    """Return what carries an act out: a recorded result goes only to a call of the same act, tool, version and definition."""
    return f"{act.name}\n{act.tool.name}\n{act.tool.version}\n{act.tool.digest}"


def idempotency_token(key: str, attempt: int) -> str:
    """Return the UUID (version 8) that a provider can deduplicate an attempt by; the one that ctrlrun computes.

    Raises:
        TemplateError: an empty key, or an attempt that is no integer from 1.
    """
    if type(key) is not str or not key or type(attempt) is not int or attempt < 1:
        raise TemplateError(f"idempotency token: got {clip(key)}, {clip(attempt)}, expected a key and a count from 1")
    document: Mapping[str, object] = {"schema": _OF_CTRLRUN, "effect_key": key, "attempt": attempt}
    found = bytearray(sha256(canonical.encode(dict(document))).digest()[:16])
    found[6] = found[6] & 0x0F | 0x80
    found[8] = found[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(found)))
