"""Effects re-proved: a fold over receipts in chain order that finds an effect attempted when it might have happened.

A key means one effect in the whole ledger, whatever run it is attempted in. Receipts that restate a foreign document are judged
by its rules and keep keys of their own. Leases are measured by the recorder's clock, `recorded_at` of the entries.

Source: docs/spec/rules/effects.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.receipt import Intent, Outcome, Receipt, Resolution
from ledger.rules.breach import Breach, Finding
from ledger.rules.effect import (
    PROOFS_OF_NOTHING,
    Admitted,
    EffectState,
    Known,
    admit,
    begin,
    binding_of,
    finish,
    resolve,
    state_at,
)
from ledger.words import OutcomeStatus

__all__ = ["EffectReplay", "EffectsState"]

_Key = tuple[str, str]
"""The foreign document that it is restated from, empty for ours, and the effect key."""


@dataclass(frozen=True, slots=True)
class EffectsState:
    """Effects at rest: what is known by document and key, the document and key of each intent, and attempts that others followed."""

    known: Mapping[str, Mapping[str, Known]] = field(default_factory=dict)
    keys: Mapping[str, _Key] = field(default_factory=dict)
    past: Mapping[str, Known] = field(default_factory=dict)


class EffectReplay:
    """Effects of one ledger, folded over its receipts."""

    def __init__(self) -> None:
        self._known: dict[_Key, Known] = {}
        self._keys: dict[str, _Key] = {}
        """Intent -> its key."""
        self._past: dict[str, Known] = {}
        """Intent of an attempt that a later one followed -> what was known of it."""

    def known(self, key: str) -> Known | None:
        """Return what is known of an effect key, None for one that was never attempted."""
        return self._known.get(("", key))

    def state(self) -> EffectsState:
        """Return the state to go on from."""
        known: dict[str, dict[str, Known]] = {}
        for (document, key), found in self._known.items():
            known.setdefault(document, {})[key] = found
        return EffectsState(known, dict(self._keys), dict(self._past))

    def resume(self, state: EffectsState) -> None:
        """Go on from a state."""
        for document, keys in state.known.items():
            self._known |= {(document, key): found for key, found in keys.items()}
        self._keys |= state.keys
        self._past |= state.past

    def see(self, index: int, id_: str, receipt: Receipt, *, now_ms: int) -> list[Finding]:
        """Return what one receipt shows, and take it into account; `now_ms` is `recorded_at` of its entry."""
        match receipt:
            case Intent() if receipt.effect is not None:
                return self._intend(index, id_, receipt, now_ms)
            case Outcome():
                return self._end(index, id_, receipt)
            case Resolution():
                return self._resolve(index, id_, receipt, now_ms)
            case _:
                return []

    def _intend(self, index: int, id_: str, intent: Intent, now_ms: int) -> list[Finding]:
        assert intent.effect is not None  # noqa: S101  as it was matched
        key = (intent.source.document if intent.source is not None else "", intent.effect.key)
        known, binding, attempt = self._known.get(key), binding_of(intent.act), intent.effect.attempt
        found = admit(known, act_digest=intent.act_digest, binding=binding, now_ms=now_ms)
        findings: list[Finding] = []
        if not isinstance(found, Admitted):
            state = state_at(found.known, now_ms)
            code = "effect.retried_ambiguous" if state is EffectState.AMBIGUOUS else "effect.repeated"
            findings.append(Breach(code, index, f"attempted again while it was {state}: {_short(found.known.intent)}"))
        elif attempt != found.attempt and (known is not None or intent.source is None):
            # The earlier attempts of a foreign effect may stand in documents that were never imported.
            findings.append(Breach("effect.attempt", index, f"attempt: got {attempt}, expected {found.attempt}"))
        if known is not None:
            self._past[known.intent] = known
        self._known[key] = begin(
            attempt=attempt,
            intent=id_,
            act_digest=intent.act_digest,
            binding=binding,
            now_ms=now_ms,
            lease_ms=intent.lease_ms,
        )
        self._keys[id_] = key
        return findings

    def _end(self, index: int, id_: str, outcome: Outcome) -> list[Finding]:
        key = self._keys.get(outcome.intent)
        if key is None:
            return []
        known, findings = self._attempt(outcome.intent, key), list[Finding]()
        unproven = outcome.status is OutcomeStatus.FAILED and outcome.reason not in PROOFS_OF_NOTHING
        if unproven and outcome.source is None:
            findings.append(
                Breach("effect.unproven_failure", index, f"reason: got {outcome.reason}, expected one that proves it")
            )
        if known.settled_by is not None:
            # Resolved before its outcome came: an outcome that knows no better changes nothing.
            if outcome.status is not OutcomeStatus.AMBIGUOUS and outcome.status.value != known.state.value:
                findings.append(
                    Breach("effect.contradicted", index, f"status: got {outcome.status}, resolved as {known.state}")
                )
            return findings
        self._put(key, finish(known, outcome.status, intent=outcome.intent, outcome=id_))
        return findings

    def _resolve(self, index: int, id_: str, resolution: Resolution, now_ms: int) -> list[Finding]:
        key = self._keys.get(resolution.intent)
        if key is None:
            return []
        known = self._attempt(resolution.intent, key)
        after = resolve(known, resolution.happened, resolution=id_, now_ms=now_ms)
        if after is not None:
            self._put(key, after)
            return []
        expected = EffectState.COMMITTED if resolution.happened == "happened" else EffectState.FAILED
        if known.state is expected:
            return []
        if known.state is EffectState.IN_PROGRESS:
            return [Breach("effect.resolved_settled", index, "resolved while its lease had not run out")]
        return [Breach("effect.contradicted", index, f"resolved as {resolution.happened}, was {known.state}")]

    def _attempt(self, intent: str, key: _Key) -> Known:
        """Return what is known of one attempt, the newest or one before."""
        return self._past.get(intent) or self._known[key]

    def _put(self, key: _Key, known: Known) -> None:
        if known.intent in self._past:
            self._past[known.intent] = known
        else:
            self._known[key] = known


def _short(id_: str) -> str:
    return id_[:15]
