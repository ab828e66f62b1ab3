"""Settling what nobody knows: resolutions of ambiguous acts, and the results on record of acts that happened.

Source: docs/spec/rules/effects.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pydantic import ValidationError

from ledger import canonical
from ledger.arguments import content_of
from ledger.attempts import known_of, read_place
from ledger.canonical import JsonObject
from ledger.envelope import Envelope
from ledger.errors import AdmissionError, NotFoundError
from ledger.members import Artifact, Charge, Effect
from ledger.receipt import Intent, Outcome, Resolution, parse_receipt
from ledger.recorder import Recorder, explain, opening_of
from ledger.refusals import Happened
from ledger.rules.amounts import read_amounts
from ledger.rules.effect import EffectState, Known, state_at
from ledger.rules.instant import ms_of
from ledger.storage.clock import now
from ledger.storage.ledger import Ledger, Position
from ledger.storage.topics import settles
from ledger.storage.writer import View
from ledger.words import Basis, OutcomeStatus

__all__ = ["Reconcile", "Recorded", "reconcile", "recorded_result", "resolve"]

Recorded: TypeAlias = bytes | str | JsonObject | None
"""The content of a result on record, None where there is none."""
Reconcile: TypeAlias = Callable[[Known], bool | None]
"""Says whether the attempt of an effect happened, after asking the world; None where it cannot tell."""

_RECONCILED: Final = "reconcile"


def resolve(
    ledger: Ledger,
    reference: str,
    *,
    happened: bool,
    resolved_by: str,
    evidence: bytes | str | JsonObject | None = None,
    charges: Mapping[str, int | str] | None = None,
) -> Position:
    """Settle an ambiguous act and return where the resolution stands.

    Args:
        ledger: The ledger.
        reference: An effect key, or the receipt id of an intent.
        happened: Whether it happened.
        resolved_by: Who says so.
        evidence: What they say it on; kept as an artifact.
        charges: What it cost, by meter; without it, what was set aside.

    Raises:
        NotFoundError: no such effect, or no such intent.
        AdmissionError: it is not ambiguous.
        ArgumentsError, BudgetError: a name, evidence or amounts outside their form.
    """
    data = None if evidence is None else content_of(evidence, "evidence")
    amounts = read_amounts(charges or {})

    def build(view: View) -> list[Envelope]:
        intent_id, intent = _ambiguous(ledger, view, reference)
        recorder = Recorder(ledger, opening_of(ledger, intent.run), intent.run)
        artifacts: tuple[Artifact, ...] = () if data is None else (recorder.keep(*data, "evidence"),)
        try:
            made = Resolution(
                **recorder.common(),
                intent=intent_id,
                effect=intent.effect,
                happened="happened" if happened else "did_not_happen",
                resolved_by=resolved_by,
                charges=tuple(
                    Charge(meter=meter, settled=amount, basis=Basis.REPORTED)  # type: ignore[arg-type]
                    for meter, amount in amounts.items()
                ),
                artifacts=artifacts,
            )
        except ValidationError as error:
            raise explain("resolve", error) from error
        return [ledger.envelope(made)]

    return ledger.commit(build)[-1]


def reconcile(ledger: Ledger, key: str, hook: Reconcile) -> bool:
    """Ask a hook whether an ambiguous effect happened, and record what it says; return whether it could tell."""
    found: list[Known | None] = []
    ledger.look(lambda view: found.append(known_of(ledger.reader, view.state, key)))
    known = found[0]
    if known is None:
        return False
    happened = hook(known)
    if happened is None:
        return False
    resolve(ledger, key, happened=happened, resolved_by=_RECONCILED)
    return True


def recorded_result(ledger: Ledger, happened: Happened) -> Recorded:
    """Return the result on record of an act that happened.

    Raises:
        NotFoundError, StorageError: it is erased or cannot be read.
    """
    if happened.settled_by is None:
        return None
    receipt = parse_receipt(ledger.get(happened.settled_by).envelope.payload)
    if not isinstance(receipt, Outcome):
        return None
    for artifact in receipt.artifacts:
        if artifact.name == "result":
            content = ledger.artifact(artifact)
            if artifact.media_type == "application/json":
                return canonical.decode(content, max_bytes=len(content))
            return content.decode("utf-8") if artifact.media_type.startswith("text/") else content
    return None


def _ambiguous(ledger: Ledger, view: View, reference: str) -> tuple[str, Intent]:
    """Return the intent whose act is ambiguous, and its id. Called under the lock.

    Raises:
        NotFoundError: no such effect, or no such intent.
        AdmissionError: it is not ambiguous.
    """
    id_ = reference
    known = known_of(ledger.reader, view.state, reference)
    if known is not None:
        id_ = known.intent
    elif not reference.startswith("sha256:"):
        raise NotFoundError(f"effect {reference!r}: no attempt of it in this ledger")
    intent = parse_receipt(ledger.get(id_).envelope.payload)
    if not isinstance(intent, Intent):
        raise NotFoundError(f"receipt {id_[:15]}: is of kind {intent.kind}, expected an intent")
    if intent.effect is not None:
        newest = known_of(ledger.reader, view.state, intent.effect.key)
        if newest is None or newest.intent != id_:
            raise _settled(intent.effect, "a later attempt began")
        state = state_at(newest, ms_of(now()))
        if state is EffectState.IN_PROGRESS:
            raise AdmissionError(
                f"effect {intent.effect.key!r}: still in progress, until its lease runs out or its run is closed",
                code="effect.in_progress",
                hint="where its driver is gone, close its run first: ledger close RUN",
            )
        if state is not EffectState.AMBIGUOUS:
            raise _settled(intent.effect, f"it is {state}")
        return id_, intent
    _refuse_settled(ledger, view, id_)
    return id_, intent


def _refuse_settled(ledger: Ledger, view: View, id_: str) -> None:
    """Raise unless an act without an effect is ambiguous and nothing has resolved it."""
    outcome = ledger.reader.parent_of(id_, after=ledger.get(id_).entry.index)
    receipt = None if outcome is None else parse_receipt(outcome.envelope.payload)
    if not isinstance(receipt, Outcome) or receipt.status != OutcomeStatus.AMBIGUOUS:
        how = receipt.status if isinstance(receipt, Outcome) else "still under way"
        raise AdmissionError(f"intent {id_[:15]}: it is {how}, so there is nothing to resolve", code="effect.settled")
    settling = (read_place(ledger.reader, place)[1] for place in view.state.about(settles(id_)))
    if any(isinstance(each, Resolution) and each.intent == id_ for each in settling):
        raise AdmissionError(f"intent {id_[:15]}: it is resolved already", code="effect.settled")


def _settled(effect: Effect, why: str) -> AdmissionError:
    return AdmissionError(f"effect {effect.key!r}: {why}, so there is nothing to resolve", code="effect.settled")
