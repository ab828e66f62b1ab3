"""Holds: which artifacts may not be erased now.

- A hold is placed on one artifact, or on a run: on all artifacts that the run and the runs below it refer to.
- It stays in force until a release names it. A release counts where its issuer's name is the one that placed the hold.
- Holds are told apart by receipt id: what two of them hold stays held until both are released.
- A `hold` receipt that says something else (a release of nothing, a hold of nothing) changes nothing.

Source: docs/spec/artifacts.md, "Holds".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ledger.receipt import Hold

__all__ = ["Held", "held_by", "holds_of"]


@dataclass(frozen=True, slots=True)
class Held:
    """A hold: its receipt id, what it holds, by whom and for what, and the receipt id of its release, None while in force."""

    receipt: str
    digest: str | None
    run: str | None
    matter: str | None
    placed_by: str
    placed_at: str
    released: str | None = None

    def covers(self, digest: str, runs: Iterable[str]) -> bool:
        """Return whether it holds an artifact that receipts of `runs` refer to; `runs` include those above them."""
        return self.released is None and (self.digest == digest or (self.run is not None and self.run in set(runs)))


def holds_of(receipts: Iterable[tuple[str, Hold]]) -> list[Held]:
    """Return every hold that was placed, in order, from the `hold` receipts (id and receipt) in chain order."""
    found: dict[str, Held] = {}
    for id_, receipt in receipts:
        changed = held_by(found, id_, receipt)
        if changed is not None:
            found[changed.receipt] = changed
    return list(found.values())


def held_by(known: Mapping[str, Held], id_: str, receipt: Hold) -> Held | None:
    """Return the hold that a `hold` receipt places or ends, None for one that changes nothing; `known` are those before, by id."""
    if receipt.action == "placed":
        if (receipt.digest is None) == (receipt.held_run is None):
            return None
        return Held(id_, receipt.digest, receipt.held_run, receipt.matter, receipt.issuer.name, receipt.issued_at)
    held = known.get(receipt.hold or "")
    if held is None or held.released is not None or held.placed_by != receipt.issuer.name:
        return None
    return replace(held, released=id_)
